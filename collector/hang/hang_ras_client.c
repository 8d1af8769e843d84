#include "collector/hang/hang_ras_client.h"

#include "collector/hang/hang_ras.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum {
    PORT = 28028,
    ANSWER_BYTES = 8 << 20,
    FIRST_BYTES = 65536,
    LIMIT_S = 10,
    ADDRESSES_MAX = 2,
};

enum step {
    STEP_NONE,
    STEP_CONNECT,
    STEP_GREET,
    STEP_TIMEOUT,
    STEP_FORMAT,
    STEP_STATUS,
    STEP_OVER
};

/* What is sent when a step begins. Other ranks get two seconds: a rank that is dead shall not keep
 * what all others say. */
static const char *const sent[] = {
    [STEP_GREET] = "CLIENT PROTOCOL 2\n",
    [STEP_TIMEOUT] = "TIMEOUT 2\n",
    [STEP_FORMAT] = "SET FORMAT json\n",
    [STEP_STATUS] = "VERBOSE STATUS\n",
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct lac_ras_client {
    union address addresses[ADDRESSES_MAX];
    unsigned address_count;
    unsigned tried;
    int fd;
    enum step step;
    enum lac_ras_progress progress;
    const char *why;
    bool is_json;
    uint64_t began_ns;
    char *answer;
    size_t used;
    size_t capacity;
};

/* ---- where it is */

static void add_v4(struct lac_ras_client *client, const char *host, uint16_t port)
{
    union address *const to = &client->addresses[client->address_count];

    memset(to, 0, sizeof(*to));
    to->v4.sin_family = AF_INET;
    to->v4.sin_port = htons(port);
    client->address_count += inet_pton(AF_INET, host, &to->v4.sin_addr) == 1;
}

static void add_v6(struct lac_ras_client *client, const char *host, uint16_t port)
{
    union address *const to = &client->addresses[client->address_count];

    memset(to, 0, sizeof(*to));
    to->v6.sin6_family = AF_INET6;
    to->v6.sin6_port = htons(port);
    client->address_count += inet_pton(AF_INET6, host, &to->v6.sin6_addr) == 1;
}

static void find_addresses(struct lac_ras_client *client, const char *address)
{
    const char *const colon = strrchr(address, ':');
    const unsigned long port = colon != NULL ? strtoul(colon + 1, NULL, 10) : PORT;
    const size_t length = colon != NULL ? (size_t)(colon - address) : strlen(address);
    char host[64];

    if (length >= sizeof(host) || port == 0 || port > UINT16_MAX) {
        return;
    }
    memcpy(host, address, length);
    host[length] = '\0';
    if (strcasecmp(host, "localhost") == 0) {
        add_v4(client, "127.0.0.1", (uint16_t)port);
        add_v6(client, "::1", (uint16_t)port);
    } else if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        add_v6(client, host + 1, (uint16_t)port);
    } else {
        add_v4(client, host, (uint16_t)port);
    }
}

struct lac_ras_client *lac_ras_client_create(const char *address)
{
    struct lac_ras_client *const client = calloc(1, sizeof(*client));

    if (client != NULL) {
        client->fd = -1;
        client->progress = LAC_RAS_FAILED;
        client->why = "nothing was asked";
        find_addresses(client, address != NULL && address[0] != '\0' ? address : "localhost:28028");
    }
    return client;
}

/* ---- the conversation */

static void hang_up(struct lac_ras_client *client)
{
    if (client->fd >= 0) {
        (void)close(client->fd);
        client->fd = -1;
    }
}

void lac_ras_client_destroy(struct lac_ras_client *client)
{
    if (client != NULL) {
        hang_up(client);
        free(client->answer);
        free(client);
    }
}

static enum lac_ras_progress end(struct lac_ras_client *client, enum lac_ras_progress progress,
                                 const char *why)
{
    hang_up(client);
    client->step = STEP_OVER;
    client->progress = progress;
    client->why = why;
    return progress;
}

static void call(struct lac_ras_client *client)
{
    while (client->tried < client->address_count) {
        const union address *const to = &client->addresses[client->tried++];
        const socklen_t length = to->any.sa_family == AF_INET ? sizeof(to->v4) : sizeof(to->v6);

        hang_up(client);
        client->fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (client->fd >= 0 &&
            (connect(client->fd, &to->any, length) == 0 || errno == EINPROGRESS)) {
            client->step = STEP_CONNECT;
            return;
        }
    }
    (void)end(client, LAC_RAS_FAILED, "nobody listens");
}

void lac_ras_client_begin(struct lac_ras_client *client, uint64_t now_ns)
{
    assert(client != NULL);
    if (client->progress == LAC_RAS_WAITS) {
        return;
    }
    client->progress = LAC_RAS_WAITS;
    client->began_ns = now_ns;
    client->used = 0;
    client->tried = 0;
    client->is_json = false;
    client->why = "";
    call(client);
}

/* Whether the connection stands; it may be another address's turn. */
static bool is_connected(struct lac_ras_client *client)
{
    int error = 0;
    socklen_t length = sizeof(error);
    union address peer;
    socklen_t peer_length = sizeof(peer);

    if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
        call(client);
        return false;
    }
    return getpeername(client->fd, &peer.any, &peer_length) == 0;
}

/* Short lines go into an empty socket at once. */
static bool begin_step(struct lac_ras_client *client, enum step step)
{
    const size_t length = strlen(sent[step]);

    client->step = step;
    client->used = 0;
    if (send(client->fd, sent[step], length, MSG_NOSIGNAL) != (ssize_t)length) {
        (void)end(client, LAC_RAS_FAILED, "it does not take our question");
        return false;
    }
    return true;
}

/* What has come. @return 1: something, 0: nothing now, -1: it is over, or does not fit */
static int receive(struct lac_ras_client *client)
{
    ssize_t got;

    if (client->used == client->capacity) {
        const size_t more = client->capacity > 0 ? client->capacity * 2 : FIRST_BYTES;
        char *const larger = more <= ANSWER_BYTES ? realloc(client->answer, more) : NULL;

        if (larger == NULL) {
            (void)end(client, LAC_RAS_FAILED, "its answer is too long");
            return -1;
        }
        client->answer = larger;
        client->capacity = more;
    }
    do {
        got = recv(client->fd, client->answer + client->used, client->capacity - client->used, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        client->used += (size_t)got;
        return 1;
    }
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

static bool begins(const struct lac_ras_client *client, const char *text)
{
    return client->used >= strlen(text) && strncasecmp(client->answer, text, strlen(text)) == 0;
}

/* A line is there: what follows it. @return false: it is over */
static bool answer_line(struct lac_ras_client *client)
{
    if (client->step == STEP_GREET) {
        if (!begins(client, "SERVER PROTOCOL ")) {
            (void)end(client, LAC_RAS_FAILED, "it is not NCCL's RAS service");
            return false;
        }
        return begin_step(client, STEP_TIMEOUT);
    }
    if (client->step == STEP_TIMEOUT) {
        return begin_step(client, STEP_FORMAT);
    }
    client->is_json = begins(client, "OK"); /* before 2.28 it does not know the command */
    return begin_step(client, STEP_STATUS);
}

enum lac_ras_progress lac_ras_client_go_on(struct lac_ras_client *client, uint64_t now_ns)
{
    assert(client != NULL);
    if (client->progress != LAC_RAS_WAITS) {
        return client->progress;
    }
    if (now_ns - client->began_ns > LIMIT_S * SECOND) {
        return end(client, LAC_RAS_FAILED, "it does not answer");
    }
    if (client->step == STEP_CONNECT &&
        (!is_connected(client) || !begin_step(client, STEP_GREET))) {
        return client->progress;
    }
    for (;;) {
        const int got = receive(client);

        if (got == 0 || client->step == STEP_OVER) {
            return client->progress;
        }
        if (got < 0) {
            return client->step == STEP_STATUS && client->used > 0
                       ? end(client, LAC_RAS_DONE, "")
                       : end(client, LAC_RAS_FAILED, "it hangs up");
        }
        if (client->step != STEP_STATUS && client->answer[client->used - 1] == '\n' &&
            !answer_line(client)) {
            return client->progress;
        }
    }
}

bool lac_ras_client_parse(const struct lac_ras_client *client, struct lac_ras *ret)
{
    assert(client != NULL && ret != NULL);
    if (client->progress != LAC_RAS_DONE) {
        return false;
    }
    return client->is_json ? lac_ras_parse_json(client->answer, client->used, ret)
                           : lac_ras_parse_text(client->answer, client->used, ret);
}

const char *lac_ras_client_why(const struct lac_ras_client *client)
{
    assert(client != NULL);
    return client->why;
}
