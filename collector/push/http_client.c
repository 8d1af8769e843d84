#include "collector/push/http_client.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/old_symbols.h" /* IWYU pragma: keep */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What we use of libcurl's interface, which has been stable since 7.16 (soname 4). */
enum {
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_READDATA = 10009,
    OPT_ERRORBUFFER = 10010,
    OPT_POSTFIELDS = 10015,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_HEADERDATA = 10029,
    OPT_CAINFO = 10065,
    OPT_CUSTOMREQUEST = 10036,
    OPT_SEEKDATA = 10168,
    OPT_WRITEFUNCTION = 20011,
    OPT_READFUNCTION = 20012,
    OPT_HEADERFUNCTION = 20079,
    OPT_SEEKFUNCTION = 20167,
    OPT_INFILESIZE_LARGE = 30115,
    OPT_POSTFIELDSIZE_LARGE = 30120,
    OPT_LOW_SPEED_LIMIT = 19,
    OPT_LOW_SPEED_TIME = 20,
    OPT_NOBODY = 44,
    OPT_UPLOAD = 46,
    OPT_HTTP_VERSION = 84,
    OPT_NOSIGNAL = 99,
    OPT_CONNECTTIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
    INFO_RESPONSE_CODE = 0x200002,
    GLOBAL_DEFAULT = 3,
    HTTP_1_1 = 2,
    HTTP_AND_HTTPS = 3,
    ERROR_BUFFER_BYTES = 256,
    SLOWEST_BYTES_PER_S = 100,
    SLOWEST_S = 120,
};

struct lac_http {
    void *library;
    void *easy;
    int (*global_init)(long);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *);
    void (*easy_reset)(void *);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_getinfo)(void *, int, ...);
    int (*easy_perform)(void *);
    const char *(*easy_strerror)(int);
    void *(*list_append)(void *, const char *);
    void (*list_free)(void *);
};

/* A request's body on its way out. */
struct outgoing {
    const char *bytes;
    size_t size_bytes;
    size_t sent_bytes;
};

static bool find(struct lac_http *http, const char *name, void *place)
{
    void *const symbol = dlsym(http->library, name);

    memcpy(place, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool find_all(struct lac_http *http)
{
    return find(http, "curl_global_init", &http->global_init) &&
           find(http, "curl_easy_init", &http->easy_init) &&
           find(http, "curl_easy_cleanup", &http->easy_cleanup) &&
           find(http, "curl_easy_reset", &http->easy_reset) &&
           find(http, "curl_easy_setopt", &http->easy_setopt) &&
           find(http, "curl_easy_getinfo", &http->easy_getinfo) &&
           find(http, "curl_easy_perform", &http->easy_perform) &&
           find(http, "curl_easy_strerror", &http->easy_strerror) &&
           find(http, "curl_slist_append", &http->list_append) &&
           find(http, "curl_slist_free_all", &http->list_free);
}

/* LACUNA_LIBCURL, or what distributions call it; the last two are the same library with another
 * TLS.
 */
static void *load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};
    const char *const wish = getenv("LACUNA_LIBCURL");
    void *library = NULL;

    if (wish != NULL && wish[0] != '\0') {
        LAC_DEBUG(PUSH, 1, "LACUNA_LIBCURL=%s", wish);
        return dlopen(wish, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(names) && library == NULL; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        LAC_DEBUG(PUSH, 1, "%s %s", names[i], library != NULL ? "is loaded" : "is missing");
    }
    return library;
}

struct lac_http *lac_http_open(char *problem, size_t capacity)
{
    struct lac_http *const http = calloc(1, sizeof(*http));

    (void)snprintf(problem, capacity, "libcurl (libcurl.so.4) cannot be loaded");
    if (http == NULL) {
        return NULL;
    }
    http->library = load();
    if (http->library == NULL || !find_all(http) || http->global_init(GLOBAL_DEFAULT) != 0) {
        free(http); /* the library stays: it may have threads or exit handlers */
        return NULL;
    }
    http->easy = http->easy_init();
    if (http->easy == NULL) {
        free(http);
        return NULL;
    }
    problem[0] = '\0';
    return http;
}

void lac_http_close(struct lac_http *http)
{
    if (http != NULL) {
        http->easy_cleanup(http->easy);
        free(http);
    }
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct lac_http_reply *const reply = context;
    const size_t room = sizeof(reply->body) - 1 - reply->body_bytes;
    const size_t taken = size * count < room ? size * count : room;

    memcpy(reply->body + reply->body_bytes, bytes, taken);
    reply->body_bytes += taken;
    reply->body[reply->body_bytes] = '\0';
    return size * count; /* the rest is of no use */
}

/* "Name: value\r\n" into `out`, cut at its capacity. @return whether it was that header */
static bool take_value(const char *line, size_t length, const char *name, char *out,
                       size_t capacity)
{
    const size_t name_length = strlen(name);
    size_t first = name_length + 1;

    if (length <= first || strncasecmp(line, name, name_length) != 0 || line[name_length] != ':') {
        return false;
    }
    while (first < length && line[first] == ' ') {
        first++;
    }
    while (length > first && (line[length - 1] == '\r' || line[length - 1] == '\n')) {
        length--;
    }
    (void)snprintf(out, capacity, "%.*s", (int)(length - first), line + first);
    return true;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct lac_http_reply *const reply = context;
    const size_t length = size * count;
    char number[32];

    if (length >= 5 && strncmp(bytes, "HTTP/", 5) == 0) { /* after a 100 Continue another follows */
        reply->location[0] = reply->trace[0] = '\0';
        reply->has_offset = false;
    }
    if (!take_value(bytes, length, "Location", reply->location, sizeof(reply->location)) &&
        !take_value(bytes, length, "Lacuna-Trace-Id", reply->trace, sizeof(reply->trace)) &&
        take_value(bytes, length, "Upload-Offset", number, sizeof(number)) && number[0] >= '0' &&
        number[0] <= '9') {
        reply->offset_bytes = strtoull(number, NULL, 10);
        reply->has_offset = true;
    }
    return length;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *context)
{
    struct outgoing *const out = context;
    const size_t left = out->size_bytes - out->sent_bytes;
    const size_t given = size * count < left ? size * count : left;

    memcpy(bytes, out->bytes + out->sent_bytes, given);
    out->sent_bytes += given;
    return given;
}

static int seek_body(void *context, int64_t offset, int origin)
{
    struct outgoing *const out = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > out->size_bytes) {
        return 1;
    }
    out->sent_bytes = (size_t)offset;
    return 0;
}

static void set_method(struct lac_http *http, const struct lac_http_request *request,
                       struct outgoing *out)
{
    if (strcmp(request->method, "HEAD") == 0) {
        (void)http->easy_setopt(http->easy, OPT_NOBODY, 1L);
    } else if (strcmp(request->method, "DELETE") == 0) {
        (void)http->easy_setopt(http->easy, OPT_CUSTOMREQUEST, "DELETE");
    } else if (strcmp(request->method, "POST") == 0) {
        (void)http->easy_setopt(http->easy, OPT_POSTFIELDS, "");
        (void)http->easy_setopt(http->easy, OPT_POSTFIELDSIZE_LARGE, (int64_t)0);
    } else if (strcmp(request->method, "PATCH") == 0) {
        (void)http->easy_setopt(http->easy, OPT_UPLOAD, 1L);
        (void)http->easy_setopt(http->easy, OPT_CUSTOMREQUEST, "PATCH");
        (void)http->easy_setopt(http->easy, OPT_INFILESIZE_LARGE, (int64_t)request->body_bytes);
        (void)http->easy_setopt(http->easy, OPT_READFUNCTION, give_body);
        (void)http->easy_setopt(http->easy, OPT_READDATA, out);
        (void)http->easy_setopt(http->easy, OPT_SEEKFUNCTION, seek_body);
        (void)http->easy_setopt(http->easy, OPT_SEEKDATA, out);
    }
}

/* LACUNA_CA_FILE: who vouches for the server, where the host's own certificates do not. */
static void set_trust(struct lac_http *http)
{
    const char *const file = getenv("LACUNA_CA_FILE");

    if (file != NULL && file[0] != '\0') {
        (void)http->easy_setopt(http->easy, OPT_CAINFO, file);
    }
}

static void set_options(struct lac_http *http, const struct lac_http_request *request,
                        struct lac_http_reply *reply, char *error)
{
    http->easy_reset(http->easy);
    (void)http->easy_setopt(http->easy, OPT_NOSIGNAL, 1L);
    (void)http->easy_setopt(http->easy, OPT_ERRORBUFFER, error);
    (void)http->easy_setopt(http->easy, OPT_URL, request->url);
    (void)http->easy_setopt(http->easy, OPT_USERAGENT, "lacuna-node/" LAC_VERSION);
    (void)http->easy_setopt(http->easy, OPT_HTTP_VERSION, (long)HTTP_1_1);
    set_trust(http);
    (void)http->easy_setopt(http->easy, OPT_PROTOCOLS, (long)HTTP_AND_HTTPS);
    (void)http->easy_setopt(http->easy, OPT_CONNECTTIMEOUT_MS,
                            request->connect_ms != 0 ? request->connect_ms : 15000L);
    (void)http->easy_setopt(http->easy, OPT_LOW_SPEED_LIMIT, (long)SLOWEST_BYTES_PER_S);
    (void)http->easy_setopt(http->easy, OPT_LOW_SPEED_TIME, (long)SLOWEST_S);
    (void)http->easy_setopt(http->easy, OPT_WRITEFUNCTION, take_body);
    (void)http->easy_setopt(http->easy, OPT_WRITEDATA, reply);
    (void)http->easy_setopt(http->easy, OPT_HEADERFUNCTION, take_header);
    (void)http->easy_setopt(http->easy, OPT_HEADERDATA, reply);
}

bool lac_http_ask(struct lac_http *http, const struct lac_http_request *request,
                  struct lac_http_reply *reply)
{
    struct outgoing out = {.bytes = request->body, .size_bytes = request->body_bytes};
    char error[ERROR_BUFFER_BYTES] = "";
    void *fields = NULL;
    int code;

    memset(reply, 0, sizeof(*reply));
    set_options(http, request, reply, error);
    set_method(http, request, &out);
    for (size_t i = 0; i < LAC_HTTP_FIELDS_MAX && request->fields[i] != NULL; i++) {
        fields = http->list_append(fields, request->fields[i]);
    }
    (void)http->easy_setopt(http->easy, OPT_HTTPHEADER, fields);
    code = http->easy_perform(http->easy);
    (void)http->easy_getinfo(http->easy, INFO_RESPONSE_CODE, &reply->status);
    http->list_free(fields);
    if (code != 0) {
        (void)snprintf(reply->problem, sizeof(reply->problem), "%s",
                       error[0] != '\0' ? error : http->easy_strerror(code));
        /* an answer that came before all was sent is an answer: a refusal */
        if (reply->status < 400) {
            reply->status = 0;
        }
    }
    return reply->status != 0;
}
