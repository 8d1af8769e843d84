/* A POST to where it may go. See send.h. */

#include "server/webhooks/send.h"

#include "collector/base/encode.h"
#include "collector/base/libcurl.h"
#include "collector/base/sha.h"
#include "server/base/hmac.h"
#include "server/webhooks/address.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECT_MS = 10000, REPLY_BYTES_MAX = 65536 };

struct lac_sender {
    const struct lac_nets *allowed;
    const bool *stopping;
    bool was_refused; /**< of the request in progress: its address may not be */
};

/** As libcurl declares it. */
struct curl_address {
    int family, socktype, protocol;
    unsigned int size_bytes;
    struct sockaddr address; /**< and what is beyond it */
};

struct lac_sender *lac_sender_create(const struct lac_nets *allowed, const bool *stopping)
{
    struct lac_sender *sender = calloc(1, sizeof(*sender));

    if (sender != NULL) {
        sender->allowed = allowed;
        sender->stopping = stopping;
    }
    return sender;
}

void lac_sender_destroy(struct lac_sender *sender)
{
    free(sender);
}

/** The socket of a connection, for an address that may be; -1 is CURL_SOCKET_BAD. */
static int open_socket(void *context, int purpose, struct curl_address *to)
{
    struct lac_sender *sender = context;
    uint8_t copy[sizeof(struct sockaddr_storage)] = {0};
    const size_t size_bytes = to->size_bytes < sizeof(copy) ? to->size_bytes : sizeof(copy);
    struct sockaddr_storage address;

    (void)purpose;
    memcpy(copy, &to->address, size_bytes);
    memcpy(&address, copy, sizeof(address));
    if (!lac_address_may((const struct sockaddr *)&address, size_bytes, sender->allowed)) {
        sender->was_refused = true;
        return -1;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/** Nobody needs the body, and an endless one ends. */
static size_t drop_body(const char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count <= REPLY_BYTES_MAX ? size * count : 0;
}

static int go_on(void *context, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const struct lac_sender *sender = context;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return __atomic_load_n(sender->stopping, __ATOMIC_RELAXED) ? 1 : 0;
}

static void set_options(const struct lac_curl *curl, struct lac_sender *sender, void *easy,
                        const struct lac_post *post, char *error)
{
    (void)curl->easy_setopt(easy, LAC_CURL_NOSIGNAL, 1L);
    (void)curl->easy_setopt(easy, LAC_CURL_ERRORBUFFER, error);
    (void)curl->easy_setopt(easy, LAC_CURL_URL, post->url);
    (void)curl->easy_setopt(easy, LAC_CURL_PROXY, "");
    (void)curl->easy_setopt(easy, LAC_CURL_USERAGENT, "lacuna/" LAC_VERSION);
    (void)curl->easy_setopt(easy, LAC_CURL_HTTP_VERSION, (long)LAC_CURL_HTTP_1_1);
    (void)curl->easy_setopt(easy, LAC_CURL_PROTOCOLS, (long)(LAC_CURL_HTTP | LAC_CURL_HTTPS));
    (void)curl->easy_setopt(easy, LAC_CURL_FOLLOWLOCATION, 0L);
    (void)curl->easy_setopt(easy, LAC_CURL_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl->easy_setopt(easy, LAC_CURL_TIMEOUT_MS, (long)LAC_SEND_MS);
    (void)curl->easy_setopt(easy, LAC_CURL_OPENSOCKETFUNCTION, open_socket);
    (void)curl->easy_setopt(easy, LAC_CURL_OPENSOCKETDATA, sender);
    (void)curl->easy_setopt(easy, LAC_CURL_WRITEFUNCTION, drop_body);
    (void)curl->easy_setopt(easy, LAC_CURL_XFERINFOFUNCTION, go_on);
    (void)curl->easy_setopt(easy, LAC_CURL_XFERINFODATA, sender);
    (void)curl->easy_setopt(easy, LAC_CURL_NOPROGRESS, 0L);
    (void)curl->easy_setopt(easy, LAC_CURL_POSTFIELDS, post->body);
}

int lac_sender_post(struct lac_sender *sender, const struct lac_post *post, char *problem,
                    size_t capacity_bytes)
{
    char error[LAC_CURL_ERROR_BYTES] = "";
    void *fields = NULL;
    const struct lac_curl *curl = lac_curl();
    void *easy = curl != NULL ? curl->easy_init() : NULL;
    long status = 0;
    int code;

    (void)snprintf(problem, capacity_bytes,
                   "libcurl is missing: on Debian and Ubuntu, apt install libcurl4");
    if (easy == NULL) {
        return 0;
    }
    sender->was_refused = false;
    set_options(curl, sender, easy, post, error);
    for (size_t i = 0; i < LAC_SEND_FIELDS_MAX && post->fields[i] != NULL; i++) {
        fields = curl->list_append(fields, post->fields[i]);
    }
    (void)curl->easy_setopt(easy, LAC_CURL_HTTPHEADER, fields);
    code = curl->easy_perform(easy);
    (void)curl->easy_getinfo(easy, LAC_CURL_RESPONSE_CODE, &status);
    problem[0] = '\0';
    if (code != 0 && (status < 200 || sender->was_refused)) {
        (void)snprintf(problem, capacity_bytes, "%s",
                       sender->was_refused ? "the address is private, loopback or link-local, and "
                                             "not allowed"
                       : error[0] != '\0'  ? error
                                           : curl->easy_strerror(code));
        status = 0;
    }
    curl->list_free(fields);
    curl->easy_cleanup(easy);
    return (int)status;
}

void lac_webhook_sign(const char *secret, const char *time, const char *body, char *out)
{
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_hmac hmac;

    lac_hmac_init(&hmac, secret, strlen(secret));
    lac_hmac_add(&hmac, time, strlen(time));
    lac_hmac_add(&hmac, ".", 1);
    lac_hmac_add(&hmac, body, strlen(body));
    lac_hmac_end(&hmac, digest);
    lac_hex_encode(digest, sizeof(digest), out);
}
