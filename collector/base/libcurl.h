#ifndef LAC_COLLECTOR_BASE_LIBCURL_H
#define LAC_COLLECTOR_BASE_LIBCURL_H

/*
 * HTTP by the libcurl of the host, loaded when it is first needed: without it nothing of that works
 * and everything else does. What we use of its interface has been stable since 7.32 (soname 4).
 */

enum {
    LAC_CURL_WRITEDATA = 10001,
    LAC_CURL_URL = 10002,
    LAC_CURL_PROXY = 10004,
    LAC_CURL_READDATA = 10009,
    LAC_CURL_ERRORBUFFER = 10010, /**< LAC_CURL_ERROR_BYTES */
    LAC_CURL_POSTFIELDS = 10015,
    LAC_CURL_USERAGENT = 10018,
    LAC_CURL_HTTPHEADER = 10023,
    LAC_CURL_HEADERDATA = 10029,
    LAC_CURL_CUSTOMREQUEST = 10036,
    LAC_CURL_XFERINFODATA = 10057,
    LAC_CURL_CAINFO = 10065,
    LAC_CURL_OPENSOCKETDATA = 10164,
    LAC_CURL_COPYPOSTFIELDS = 10165,
    LAC_CURL_SEEKDATA = 10168,
    LAC_CURL_WRITEFUNCTION = 20011,
    LAC_CURL_READFUNCTION = 20012,
    LAC_CURL_HEADERFUNCTION = 20079,
    LAC_CURL_OPENSOCKETFUNCTION = 20163,
    LAC_CURL_SEEKFUNCTION = 20167,
    LAC_CURL_XFERINFOFUNCTION = 20219,
    LAC_CURL_INFILESIZE_LARGE = 30115,
    LAC_CURL_POSTFIELDSIZE_LARGE = 30120,
    LAC_CURL_LOW_SPEED_LIMIT = 19,
    LAC_CURL_LOW_SPEED_TIME = 20,
    LAC_CURL_NOPROGRESS = 43,
    LAC_CURL_NOBODY = 44,
    LAC_CURL_UPLOAD = 46,
    LAC_CURL_FOLLOWLOCATION = 52,
    LAC_CURL_HTTP_VERSION = 84,
    LAC_CURL_NOSIGNAL = 99,
    LAC_CURL_TIMEOUT_MS = 155,
    LAC_CURL_CONNECTTIMEOUT_MS = 156,
    LAC_CURL_PROTOCOLS = 181,
    LAC_CURL_RESPONSE_CODE = 0x200002, /**< of easy_getinfo() */
};

enum {
    LAC_CURL_HTTP_1_1 = 2, /**< LAC_CURL_HTTP_VERSION */
    LAC_CURL_HTTP = 1,     /**< LAC_CURL_PROTOCOLS */
    LAC_CURL_HTTPS = 2,    /**< LAC_CURL_PROTOCOLS */
    LAC_CURL_ERROR_BYTES = 256,
    LAC_CURL_READ_ABORT = 0x10000000, /**< returned by LAC_CURL_READFUNCTION */
    /* errors */
    LAC_CURL_E_UNSUPPORTED_PROTOCOL = 1,
    LAC_CURL_E_URL_MALFORMAT = 3,
    LAC_CURL_E_OUT_OF_MEMORY = 27,
    LAC_CURL_E_ABORTED_BY_CALLBACK = 42,
    LAC_CURL_E_PEER_FAILED_VERIFICATION = 60,
};

struct lac_curl {
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    void (*easy_reset)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    int (*easy_perform)(void *easy);
    const char *(*easy_strerror)(int code);
    void *(*list_append)(void *list, const char *text);
    void (*list_free)(void *list);
};

/**
 * libcurl's functions, for good. By any thread; the first call loads it: the file that
 * LACUNA_LIBCURL names, or what distributions call it.
 * @return NULL: it is not on this machine
 */
const struct lac_curl *lac_curl(void);

/** @return the file of certificates that LACUNA_CA_FILE names; NULL: the host's own are used */
const char *lac_curl_ca_file(void);

#endif
