#include "server/oidc/fetch.h"

#include "analysis/model/status.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What we use of libcurl's interface, which has been stable since 7.16 (soname 4). */
enum {
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_COPYPOSTFIELDS = 10165,
    OPT_CAINFO = 10065,
    OPT_WRITEFUNCTION = 20011,
    OPT_FOLLOWLOCATION = 52,
    OPT_TIMEOUT_MS = 155,
    OPT_PROTOCOLS = 181,
    OPT_NOSIGNAL = 99,
    INFO_RESPONSE_CODE = 0x200002,
    GLOBAL_DEFAULT = 3,
    HTTP_ALONE = 1,
    HTTPS_ALONE = 2,
    TIMEOUT_MS = 10000,
    ERROR_BYTES = 256,
};

static struct {
    int (*global_init)(long);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_getinfo)(void *, int, ...);
    int (*easy_perform)(void *);
    bool is_loaded;
} curl;

static void find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);

    memcpy(place, &symbol, sizeof(symbol));
    curl.is_loaded = curl.is_loaded && symbol != NULL;
}

static void load(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return;
    }
    curl.is_loaded = true;
    find(library, "curl_global_init", &curl.global_init);
    find(library, "curl_easy_init", &curl.easy_init);
    find(library, "curl_easy_cleanup", &curl.easy_cleanup);
    find(library, "curl_easy_setopt", &curl.easy_setopt);
    find(library, "curl_easy_getinfo", &curl.easy_getinfo);
    find(library, "curl_easy_perform", &curl.easy_perform);
    curl.is_loaded = curl.is_loaded && curl.global_init(GLOBAL_DEFAULT) == 0;
}

struct taken {
    char *bytes;
    size_t size_bytes;
};

/* More than there is room for ends the request. */
static size_t take(char *bytes, size_t size, size_t count, void *context)
{
    struct taken *taken = context;
    const size_t length = size * count;

    if (length >= LAC_FETCH_BYTES_MAX - taken->size_bytes) {
        return 0;
    }
    memcpy(taken->bytes + taken->size_bytes, bytes, length);
    taken->size_bytes += length;
    return length;
}

static void set_options(void *easy, const char *url, const char *form, struct taken *taken,
                        char *error)
{
    const char *ca = getenv("LACUNA_CA_FILE");
    const bool is_plain = strncmp(url, "http:", 5) == 0;

    (void)curl.easy_setopt(easy, OPT_NOSIGNAL, 1L);
    (void)curl.easy_setopt(easy, OPT_ERRORBUFFER, error);
    (void)curl.easy_setopt(easy, OPT_URL, url);
    (void)curl.easy_setopt(easy, OPT_PROTOCOLS, is_plain ? (long)HTTP_ALONE : (long)HTTPS_ALONE);
    (void)curl.easy_setopt(easy, OPT_FOLLOWLOCATION, 0L);
    (void)curl.easy_setopt(easy, OPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    (void)curl.easy_setopt(easy, OPT_WRITEFUNCTION, take);
    (void)curl.easy_setopt(easy, OPT_WRITEDATA, taken);
    if (ca != NULL && *ca != '\0') {
        (void)curl.easy_setopt(easy, OPT_CAINFO, ca);
    }
    if (form != NULL) {
        (void)curl.easy_setopt(easy, OPT_COPYPOSTFIELDS, form);
    }
}

enum lac_status lac_fetch(const char *url, const char *form, char *out, size_t *ret_size_bytes,
                          struct lac_error *reterr)
{
    assert(url != NULL && out != NULL && ret_size_bytes != NULL);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct taken taken = {.bytes = out};
    char error[ERROR_BYTES] = "";
    long http_status = 0;
    void *easy;
    int code;

    (void)pthread_once(&once, load);
    easy = curl.is_loaded ? curl.easy_init() : NULL;
    if (easy == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "signing in at a provider needs libcurl (libcurl.so.4), which is not on "
                        "this machine");
    }
    set_options(easy, url, form, &taken, error);
    code = curl.easy_perform(easy);
    (void)curl.easy_getinfo(easy, INFO_RESPONSE_CODE, &http_status);
    curl.easy_cleanup(easy);
    out[taken.size_bytes] = '\0';
    *ret_size_bytes = taken.size_bytes;
    if (code != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the provider: %s", error);
    }
    if (http_status != 200) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the provider answered %ld", http_status);
    }
    return LAC_OK;
}
