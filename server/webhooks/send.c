/* A POST to where it may go. See send.h. */

#include "server/webhooks/send.h"

#include "collector/base/count_of.h"
#include "collector/base/sha.h"
#include "server/webhooks/address.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What we use of libcurl's interface, which has been stable since 7.32 (soname 4). */
enum {
    OPT_URL = 10002,
    OPT_PROXY = 10004,
    OPT_ERRORBUFFER = 10010,
    OPT_POSTFIELDS = 10015,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_XFERINFODATA = 10057,
    OPT_OPENSOCKETDATA = 10164,
    OPT_WRITEFUNCTION = 20011,
    OPT_OPENSOCKETFUNCTION = 20163,
    OPT_XFERINFOFUNCTION = 20219,
    OPT_NOPROGRESS = 43,
    OPT_FOLLOWLOCATION = 52,
    OPT_HTTP_VERSION = 84,
    OPT_NOSIGNAL = 99,
    OPT_TIMEOUT_MS = 155,
    OPT_CONNECTTIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
    INFO_RESPONSE_CODE = 0x200002,
    GLOBAL_DEFAULT = 3,
    HTTP_1_1 = 2,
    HTTP_AND_HTTPS = 3,
    CONNECT_MS = 10000,
    ERROR_BUFFER_BYTES = 256,
    REPLY_BYTES_MAX = 65536,
};

struct lac_sender {
    const struct lac_nets *allowed;
    const bool *stopping;
    void *library;
    bool was_refused; /**< of the request in progress: its address may not be */
    int (*global_init)(long);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_getinfo)(void *, int, ...);
    int (*easy_perform)(void *);
    const char *(*easy_strerror)(int);
    void *(*list_append)(void *, const char *);
    void (*list_free)(void *);
};

/** As libcurl declares it. */
struct curl_address {
    int family, socktype, protocol;
    unsigned int size_bytes;
    struct sockaddr address; /**< and what is beyond it */
};

static bool find(struct lac_sender *sender, const char *name, void *place)
{
    void *const symbol = dlsym(sender->library, name);

    memcpy(place, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool load(struct lac_sender *sender)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

    if (sender->easy_init != NULL) {
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(names) && sender->library == NULL; i++) {
        sender->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return sender->library != NULL && find(sender, "curl_global_init", &sender->global_init) &&
           find(sender, "curl_easy_cleanup", &sender->easy_cleanup) &&
           find(sender, "curl_easy_setopt", &sender->easy_setopt) &&
           find(sender, "curl_easy_getinfo", &sender->easy_getinfo) &&
           find(sender, "curl_easy_perform", &sender->easy_perform) &&
           find(sender, "curl_easy_strerror", &sender->easy_strerror) &&
           find(sender, "curl_slist_append", &sender->list_append) &&
           find(sender, "curl_slist_free_all", &sender->list_free) &&
           sender->global_init(GLOBAL_DEFAULT) == 0 &&
           find(sender, "curl_easy_init", &sender->easy_init);
}

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
    free(sender); /* the library stays: it may have threads or exit handlers */
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

static void set_options(struct lac_sender *sender, void *easy, const struct lac_post *post,
                        char *error)
{
    (void)sender->easy_setopt(easy, OPT_NOSIGNAL, 1L);
    (void)sender->easy_setopt(easy, OPT_ERRORBUFFER, error);
    (void)sender->easy_setopt(easy, OPT_URL, post->url);
    (void)sender->easy_setopt(easy, OPT_PROXY, "");
    (void)sender->easy_setopt(easy, OPT_USERAGENT, "lacuna/" LAC_VERSION);
    (void)sender->easy_setopt(easy, OPT_HTTP_VERSION, (long)HTTP_1_1);
    (void)sender->easy_setopt(easy, OPT_PROTOCOLS, (long)HTTP_AND_HTTPS);
    (void)sender->easy_setopt(easy, OPT_FOLLOWLOCATION, 0L);
    (void)sender->easy_setopt(easy, OPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)sender->easy_setopt(easy, OPT_TIMEOUT_MS, (long)LAC_SEND_MS);
    (void)sender->easy_setopt(easy, OPT_OPENSOCKETFUNCTION, open_socket);
    (void)sender->easy_setopt(easy, OPT_OPENSOCKETDATA, sender);
    (void)sender->easy_setopt(easy, OPT_WRITEFUNCTION, drop_body);
    (void)sender->easy_setopt(easy, OPT_XFERINFOFUNCTION, go_on);
    (void)sender->easy_setopt(easy, OPT_XFERINFODATA, sender);
    (void)sender->easy_setopt(easy, OPT_NOPROGRESS, 0L);
    (void)sender->easy_setopt(easy, OPT_POSTFIELDS, post->body);
}

int lac_sender_post(struct lac_sender *sender, const struct lac_post *post, char *problem,
                    size_t capacity_bytes)
{
    char error[ERROR_BUFFER_BYTES] = "";
    void *fields = NULL;
    void *easy = load(sender) ? sender->easy_init() : NULL;
    long status = 0;
    int code;

    (void)snprintf(problem, capacity_bytes,
                   "libcurl is missing: on Debian and Ubuntu, apt install libcurl4");
    if (easy == NULL) {
        return 0;
    }
    sender->was_refused = false;
    set_options(sender, easy, post, error);
    for (size_t i = 0; i < LAC_SEND_FIELDS_MAX && post->fields[i] != NULL; i++) {
        fields = sender->list_append(fields, post->fields[i]);
    }
    (void)sender->easy_setopt(easy, OPT_HTTPHEADER, fields);
    code = sender->easy_perform(easy);
    (void)sender->easy_getinfo(easy, INFO_RESPONSE_CODE, &status);
    problem[0] = '\0';
    if (code != 0 && (status < 200 || sender->was_refused)) {
        (void)snprintf(problem, capacity_bytes, "%s",
                       sender->was_refused ? "the address is private, loopback or link-local, and "
                                             "not allowed"
                       : error[0] != '\0'  ? error
                                           : sender->easy_strerror(code));
        status = 0;
    }
    sender->list_free(fields);
    sender->easy_cleanup(easy);
    return (int)status;
}

void lac_webhook_sign(const char *secret, const char *time, const char *body, char *out)
{
    const size_t length = strlen(secret);
    uint8_t inner_pad[LAC_SHA_BLOCK_BYTES] = {0};
    uint8_t outer_pad[LAC_SHA_BLOCK_BYTES] = {0};
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;

    memcpy(inner_pad, secret, length < sizeof(inner_pad) ? length : sizeof(inner_pad));
    memcpy(outer_pad, inner_pad, sizeof(outer_pad));
    for (size_t i = 0; i < sizeof(inner_pad); i++) {
        inner_pad[i] ^= 0x36;
        outer_pad[i] ^= 0x5c;
    }
    lac_sha256_init(&hash);
    lac_sha_add(&hash, inner_pad, sizeof(inner_pad));
    lac_sha_add(&hash, time, strlen(time));
    lac_sha_add(&hash, ".", 1);
    lac_sha_add(&hash, body, strlen(body));
    lac_sha_end(&hash, digest);
    lac_sha256_init(&hash);
    lac_sha_add(&hash, outer_pad, sizeof(outer_pad));
    lac_sha_add(&hash, digest, sizeof(digest));
    lac_sha_end(&hash, digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
}
