#include "collector/base/libcurl.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/base/old_symbols.h" /* IWYU pragma: keep */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { GLOBAL_DEFAULT = 3 };

static struct lac_curl curl;
static bool is_loaded;

static bool find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);

    memcpy(place, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* The last two are the same library with another TLS. */
static void *open_library(void)
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

/* The library stays, whatever happens: it may have threads or exit handlers. */
static void load(void)
{
    void *const library = open_library();
    int (*global_init)(long) = NULL;

    is_loaded = library != NULL && find(library, "curl_global_init", &global_init) &&
                find(library, "curl_easy_init", &curl.easy_init) &&
                find(library, "curl_easy_cleanup", &curl.easy_cleanup) &&
                find(library, "curl_easy_reset", &curl.easy_reset) &&
                find(library, "curl_easy_setopt", &curl.easy_setopt) &&
                find(library, "curl_easy_getinfo", &curl.easy_getinfo) &&
                find(library, "curl_easy_perform", &curl.easy_perform) &&
                find(library, "curl_easy_strerror", &curl.easy_strerror) &&
                find(library, "curl_slist_append", &curl.list_append) &&
                find(library, "curl_slist_free_all", &curl.list_free) &&
                global_init(GLOBAL_DEFAULT) == 0;
}

const struct lac_curl *lac_curl(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, load);
    return is_loaded ? &curl : NULL;
}

const char *lac_curl_ca_file(void)
{
    const char *const file = getenv("LACUNA_CA_FILE");

    return file != NULL && file[0] != '\0' ? file : NULL;
}
