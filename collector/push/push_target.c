/* Where to send, as whom, and how far that server's clock is from ours. */

#include "collector/push/http_client.h"
#include "collector/push/push.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROBES = 8, PROBE_CONNECT_MS = 4000, TOKEN_BYTES_MAX = 512 };

static bool set_server(struct lac_push_target *target, const char *server, char *problem,
                       size_t capacity)
{
    size_t length = server != NULL ? strlen(server) : 0;

    if (length == 0) {
        (void)snprintf(problem, capacity, "no server: give --server URL or set LACUNA_SERVER");
        return false;
    }
    if ((strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) ||
        strpbrk(server, "#?\"\\ \t\r\n") != NULL || length >= sizeof(target->server)) {
        (void)snprintf(problem, capacity,
                       "%.200s is not a server address: http://HOST:PORT, without a key in it",
                       server);
        return false;
    }
    while (server[length - 1] == '/') {
        length--;
    }
    (void)snprintf(target->server, sizeof(target->server), "%.*s", (int)length, server);
    return true;
}

static bool read_token(const char *path, char *out, char *problem, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, out, TOKEN_BYTES_MAX) : -1;

    if (length <= 0) {
        (void)snprintf(problem, capacity, "cannot read the token from %s: %s", path,
                       length < 0 ? strerror(errno) : "the file is empty");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (length > 0) {
        out[length] = '\0';
    }
    return length > 0;
}

static bool set_token(struct lac_push_target *target, const char *token_file, char *problem,
                      size_t capacity)
{
    char token[TOKEN_BYTES_MAX + 1] = "";
    const char *const given = getenv("LACUNA_TOKEN");
    size_t length;

    if (token_file == NULL && given != NULL && given[0] != '\0') {
        (void)snprintf(token, sizeof(token), "%s", given);
    } else {
        const char *const path = token_file != NULL ? token_file : getenv("LACUNA_TOKEN_FILE");

        if (path == NULL || path[0] == '\0') {
            (void)snprintf(problem, capacity,
                           "no token: --token-file FILE (of a server of your own: "
                           "DATA/local.token), or the variable LACUNA_TOKEN");
            return false;
        }
        if (!read_token(path, token, problem, capacity)) {
            return false;
        }
        target->token_file = path;
    }
    length = strcspn(token, "\r\n");
    token[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (token[i] <= ' ' || token[i] > '~') {
            length = 0;
        }
    }
    if (length == 0) {
        (void)snprintf(problem, capacity, "the token must be one line without blanks");
        return false;
    }
    (void)snprintf(target->authorization, sizeof(target->authorization), "Authorization: Bearer %s",
                   token);
    return true;
}

bool lac_push_target_make(struct lac_push_target *target, const char *server,
                          const char *token_file, char *problem, size_t capacity)
{
    return set_server(target, server != NULL ? server : getenv("LACUNA_SERVER"), problem,
                      capacity) &&
           set_token(target, token_file, problem, capacity);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* "key":"123" */
static bool find_ns(const char *text, const char *key, int64_t *ret_ns)
{
    const char *const at = strstr(text, key);

    if (at == NULL || at[strlen(key)] < '0' || at[strlen(key)] > '9') {
        return false;
    }
    *ret_ns = strtoll(at + strlen(key), NULL, 10);
    return true;
}

void lac_push_probe(struct lac_http *http, const struct lac_push_target *target,
                    struct lac_push_clock *clock)
{
    static const char path[] = "/api/v1/clock";
    char url[sizeof(target->server) + sizeof(path)];
    struct lac_http_reply *const reply = malloc(sizeof(*reply));
    const struct lac_http_request request = {.method = "GET",
                                             .url = url,
                                             .fields = {target->authorization},
                                             .connect_ms = PROBE_CONNECT_MS};

    (void)snprintf(url, sizeof(url), "%s%s", target->server, path);
    for (unsigned i = 0; i < PROBES && reply != NULL; i++) {
        const int64_t sent_ns = now_ns();
        int64_t received_ns;
        int64_t answered_ns;

        if (!lac_http_ask(http, &request, reply) || reply->status != 200 ||
            !find_ns(reply->body, "\"receive_ns\":\"", &received_ns) ||
            !find_ns(reply->body, "\"send_ns\":\"", &answered_ns)) {
            break;
        }
        const int64_t back_ns = now_ns();
        const int64_t round_ns = (back_ns - sent_ns) - (answered_ns - received_ns);
        const int64_t error_ns = round_ns / 2 + 1;
        if (round_ns >= 0 && (!clock->is_known || error_ns < clock->error_ns)) {
            clock->is_known = true;
            clock->offset_ns = ((received_ns - sent_ns) + (answered_ns - back_ns)) / 2;
            clock->error_ns = error_ns;
        }
    }
    free(reply);
}
