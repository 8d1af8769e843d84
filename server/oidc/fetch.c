#include "server/oidc/fetch.h"

#include "analysis/model/status.h"
#include "collector/base/libcurl.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

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

static void set_options(const struct lac_curl *curl, void *easy, const char *url, const char *form,
                        struct taken *taken, char *error)
{
    const char *ca_file = lac_curl_ca_file();
    const bool is_plain = strncmp(url, "http:", 5) == 0;

    (void)curl->easy_setopt(easy, LAC_CURL_NOSIGNAL, 1L);
    (void)curl->easy_setopt(easy, LAC_CURL_ERRORBUFFER, error);
    (void)curl->easy_setopt(easy, LAC_CURL_URL, url);
    (void)curl->easy_setopt(easy, LAC_CURL_PROTOCOLS,
                            is_plain ? (long)LAC_CURL_HTTP : (long)LAC_CURL_HTTPS);
    (void)curl->easy_setopt(easy, LAC_CURL_FOLLOWLOCATION, 0L);
    (void)curl->easy_setopt(easy, LAC_CURL_TIMEOUT_MS, (long)TIMEOUT_MS);
    (void)curl->easy_setopt(easy, LAC_CURL_WRITEFUNCTION, take);
    (void)curl->easy_setopt(easy, LAC_CURL_WRITEDATA, taken);
    if (ca_file != NULL) {
        (void)curl->easy_setopt(easy, LAC_CURL_CAINFO, ca_file);
    }
    if (form != NULL) {
        (void)curl->easy_setopt(easy, LAC_CURL_COPYPOSTFIELDS, form);
    }
}

enum lac_status lac_fetch(const char *url, const char *form, char *out, size_t *ret_size_bytes,
                          struct lac_error *reterr)
{
    assert(url != NULL && out != NULL && ret_size_bytes != NULL);
    const struct lac_curl *curl = lac_curl();
    struct taken taken = {.bytes = out};
    char error[LAC_CURL_ERROR_BYTES] = "";
    long http_status = 0;
    void *easy;
    int code;

    easy = curl != NULL ? curl->easy_init() : NULL;
    if (easy == NULL) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "signing in at a provider needs libcurl (libcurl.so.4), which is not on "
                        "this machine");
    }
    set_options(curl, easy, url, form, &taken, error);
    code = curl->easy_perform(easy);
    (void)curl->easy_getinfo(easy, LAC_CURL_RESPONSE_CODE, &http_status);
    curl->easy_cleanup(easy);
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
