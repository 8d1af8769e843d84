#ifndef LAC_COLLECTOR_PUSH_HTTP_CLIENT_H
#define LAC_COLLECTOR_PUSH_HTTP_CLIENT_H

/*
 * HTTP by the libcurl of the host, loaded when it is needed. Where there is none, nothing of this
 * works and everything else does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_http;

/** @param problem set on failure to one sentence @return NULL: no libcurl */
struct lac_http *lac_http_open(char *problem, size_t capacity);
/** NULL is allowed. */
void lac_http_close(struct lac_http *http);

enum { LAC_HTTP_FIELDS_MAX = 8, LAC_HTTP_BODY_MAX = 4096 };

struct lac_http_request {
    const char *method; /**< "HEAD", "GET", "POST", "PATCH", "PUT", "DELETE" */
    const char *url;
    const char *fields[LAC_HTTP_FIELDS_MAX]; /**< "Name: value"; NULL ends them */
    const void *body;                        /**< of PATCH and PUT */
    size_t body_bytes;
    long connect_ms; /**< 0: 15 s */
};

struct lac_http_reply {
    long status; /**< 0: none came, `problem` says why */
    char problem[320];
    char location[512]; /**< "" when absent, as the others */
    char trace[64];
    bool has_offset;
    uint64_t offset_bytes;
    size_t body_bytes;
    char body[LAC_HTTP_BODY_MAX]; /**< its beginning, NUL-terminated */
};

/** Ask and wait. @return whether a reply came, whatever it says */
bool lac_http_ask(struct lac_http *http, const struct lac_http_request *request,
                  struct lac_http_reply *reply);

#endif
