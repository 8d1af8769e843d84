#ifndef LAC_SERVER_HTTP_REQUEST_H
#define LAC_SERVER_HTTP_REQUEST_H

/*
 * What handlers see of HTTP: a request, a response, a route. Nothing of libmicrohttpd.
 *
 * A handler reads the request, fills the response and returns. It never touches the connection, so
 * it can run on the loop or on a worker, as its route says.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/http/principal.h" // IWYU pragma: export
#include "server/http/query.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_method {
    LAC_METHOD_OTHER = 0,
    LAC_METHOD_GET,
    LAC_METHOD_POST,
    LAC_METHOD_PUT,
    LAC_METHOD_PATCH,
    LAC_METHOD_DELETE,
    LAC_METHOD_OPTIONS,
    LAC_METHOD_COUNT_
};

/** Who may use a route. There is no zero: a route without an access rule does not compile. */
enum lac_access {
    LAC_ACCESS_OPEN = 1, /**< anybody who can connect, and whose Host and Origin are ours */
    LAC_ACCESS_KEY,      /**< who holds the local key, and administrators of the service */
    LAC_ACCESS_SIGNED,   /**< anybody who is known; the handler looks after the rest */
    LAC_ACCESS_READ,     /**< may read the project of the object that the path names */
    LAC_ACCESS_STATE,    /**< may read it, or upload to it */
    LAC_ACCESS_COMMENT,  /**< may comment on its reports */
    LAC_ACCESS_UPLOAD,   /**< may upload to it */
    LAC_ACCESS_WRITE,    /**< may write to it */
    LAC_ACCESS_ADMIN,    /**< may administer it */
    LAC_ACCESS_COUNT_
};

/** Where a route's handler runs. */
enum lac_run_where {
    LAC_RUN_LOOP = 1, /**< on the loop: must not block, must take microseconds */
    LAC_RUN_QUICK,    /**< on a worker; milliseconds */
    LAC_RUN_SLOW,     /**< on a worker, of which some stay free for the quick ones */
    LAC_RUN_UPLOAD,   /**< body streamed to `stream`, each call on a worker */
    LAC_RUN_EVENTS,   /**< handler writes the beginning of an event stream that then stays open */
};

enum { LAC_REQUEST_PARAMS_MAX = 6, LAC_RESPONSE_HEADERS_MAX = 10 };

/** Header fields that handlers may want. One that is given twice is refused before they see it. */
enum lac_field {
    LAC_FIELD_TUS_RESUMABLE = 0,
    LAC_FIELD_UPLOAD_LENGTH,
    LAC_FIELD_UPLOAD_DEFER_LENGTH,
    LAC_FIELD_UPLOAD_OFFSET,
    LAC_FIELD_UPLOAD_METADATA,
    LAC_FIELD_UPLOAD_CHECKSUM,
    LAC_FIELD_UPLOAD_CONCAT,
    LAC_FIELD_CONTENT_TYPE,
    LAC_FIELD_METHOD_OVERRIDE,
    LAC_FIELD_COOKIE,
    LAC_FIELD_COUNT_
};

/** body_bytes_max of routes whose limit is the configured upload limit. */
#define LAC_BODY_UPLOAD  UINT64_MAX
#define LAC_SIZE_UNKNOWN UINT64_MAX

struct lac_request {
    enum lac_method method;
    const struct lac_target *target;           /**< path (base path removed) and query */
    const char *param[LAC_REQUEST_PARAMS_MAX]; /**< what `{...}` of the pattern matched, in order */
    const char *body; /**< whole body, NUL-terminated, may hold NULs; "" when streamed or none */
    size_t body_size_bytes;
    uint64_t content_length;   /**< as announced; LAC_SIZE_UNKNOWN for chunked bodies, 0 for none */
    const char *base_path;     /**< "" or "/x/y": what to put before paths in replies */
    const char *if_none_match; /**< NULL when absent */
    const char *field[LAC_FIELD_COUNT_]; /**< by enum lac_field; NULL when absent */
    struct lac_principal who;            /**< who asks; nobody on an open route without proof */
    enum lac_proof proof;
    char cookie[56];           /**< of the session that proved it, "" none */
    char peer[LAC_PEER_BYTES]; /**< address of the client as text, "" unknown */
    const char *head; /**< of a request that is passed on (struct lac_http_options): request
                                    line and header fields as another server is to get them, but what
                                    says how long the body is, and the empty line; else NULL */
};

struct lac_response {
    unsigned http_status; /**< 200 unless set */
    const char *mime;     /**< static; "application/json" unless set */
    const char *cache;    /**< Cache-Control, static; "no-store" unless set */
    const char *policy;   /**< Content-Security-Policy, static; NULL: the page's own */
    bool may_have_opener; /**< a page of another origin that opened it may send it messages */
    char etag[96];        /**< with quotes; "" none */
    bool may_gzip;        /**< the body compresses; true unless cleared */
    struct lac_buffer body;
    bool has_file; /**< an open file instead of `body`: owned, sent from its beginning */
    int file;
    uint64_t file_size_bytes;
    const void *borrowed; /**< static bytes instead of `body`, when not NULL */
    size_t borrowed_size_bytes;
    const char *encoding;  /**< Content-Encoding of `borrowed`, NULL none */
    const char *long_name; /**< one header whose value may be long: static name, NULL none */
    char *long_value;      /**< owned */
    char *relayed; /**< owned: all header fields as another server gave them, "Name: value\n" each,
                        instead of ours; NULL: ours */
    unsigned header_count;
    struct {
        const char *name; /**< static */
        char value[320];
    } header[LAC_RESPONSE_HEADERS_MAX];
};

typedef void (*lac_handler)(void *app, const struct lac_request *request,
                            struct lac_response *response);

/** A streamed body. Calls for one request never overlap, but may come from different workers. */
struct lac_body_handler {
    /** @return LAC_OK and a sink, or a failure that becomes the reply */
    enum lac_status (*begin)(void *app, const struct lac_request *request, void **ret_sink,
                             struct lac_error *reterr);
    /**
     * Instead of `begin`, when not NULL: on the loop, before the first byte of the body; must not
     * block. @return false: the response says why, and the body is not taken
     */
    bool (*open)(void *app, const struct lac_request *request, void **ret_sink,
                 struct lac_response *response);
    enum lac_status (*data)(void *sink, const uint8_t *bytes, size_t size_bytes,
                            struct lac_error *reterr);
    /** The whole body came: finish and answer. Frees the sink. */
    void (*finish)(void *sink, const struct lac_request *request, struct lac_response *response);
    /** It did not: undo. Frees the sink. */
    void (*cancel)(void *sink);
};

struct lac_route {
    enum lac_method method;
    const char *pattern; /**< "/api/v1/traces/{id}/g{n}": `{}` takes one segment's rest */
    enum lac_access access;
    enum lac_run_where run;
    uint64_t body_bytes_max; /**< 0: no body */
    lac_handler handler;
    const struct lac_body_handler *stream; /**< for LAC_RUN_UPLOAD, else NULL */
};

/* Compiles only for constants that are a valid access rule. */
#define LAC_ACCESS_CHECKED(access_)                                                                \
    ((enum lac_access)((access_) + 0 * sizeof(struct {                                             \
                                       _Static_assert((access_) >= LAC_ACCESS_OPEN &&              \
                                                          (access_) < LAC_ACCESS_COUNT_,           \
                                                      "every route needs an access rule");         \
                                       int unused;                                                 \
                                   })))

/** One row of a route table; the only way rows are written. */
#define LAC_ROUTE(method_, pattern_, access_, run_, body_bytes_max_, handler_, stream_)            \
    {                                                                                              \
        .method = LAC_METHOD_##method_, .pattern = (pattern_),                                     \
        .access = LAC_ACCESS_CHECKED(LAC_ACCESS_##access_), .run = LAC_RUN_##run_,                 \
        .body_bytes_max = (body_bytes_max_), .handler = (handler_), .stream = (stream_)            \
    }

/** Prepare an empty 200 reply. */
void lac_response_init(struct lac_response *response);
void lac_response_done(struct lac_response *response);

/** Answer with the bytes of an open file, which becomes the response's: for what is too large for
 * memory. It is not compressed, and few are sent at a time. */
void lac_response_file(struct lac_response *response, int file, uint64_t size_bytes);

/** Add a header. `name` static; the value is cut at 319 bytes and must not hold line breaks
 * (asserted). */
void lac_response_header(struct lac_response *response, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Set the one header whose value may be of any length. `name` static. @return false: no memory */
bool lac_response_long_header(struct lac_response *response, const char *name, const char *value);

/** Append the body of an error. */
void lac_http_write_error(struct lac_buffer *out, const char *code, const char *message);

/** Replace the body by `{"error":{"code","message"}}` with that HTTP status. */
void lac_response_error(struct lac_response *response, unsigned http_status, const char *code,
                        const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** The same for a failure of ours: HTTP status by the one table, and its code. */
void lac_response_fail(struct lac_response *response, const struct lac_error *err);

/** The one table: status of ours -> HTTP status. */
unsigned lac_http_status_of(enum lac_status status, int sys_errno);

/** What clients read for it: "not_found"; static. */
const char *lac_http_code_of(enum lac_status status, int sys_errno);

/** Give the reply an ETag made from the text: for content that never changes under its address. */
void lac_response_etag(struct lac_response *response, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** The tag of the gzip form: `"abc"` -> `"abc-gz"`; "" when it would not fit. */
void lac_etag_of_gzip(const char *etag, char *out, size_t capacity_bytes);

/** Before the work of making a body whose ETag is set: whether the client has it, in either form.
 * Then the response is a finished 304. */
bool lac_response_is_unchanged(const struct lac_request *request, struct lac_response *response);

/** Whether an If-None-Match header names `etag` (strong comparison of its list, or "*"). */
bool lac_etag_matches(const char *if_none_match, const char *etag);

/** What a path matched. */
struct lac_route_match {
    unsigned allowed; /**< bit set of 1 << enum lac_method of the routes that have this path */
    const char *param[LAC_REQUEST_PARAMS_MAX]; /**< pieces of the path, in `storage` */
    char storage[512];
};

/**
 * Find the route of method and path.
 *
 * @return the route, or NULL: then the path is unknown when match->allowed is 0, else the method
 */
const struct lac_route *lac_route_find(const struct lac_route *routes, unsigned route_count,
                                       enum lac_method method, const char *path,
                                       struct lac_route_match *match);

/** "GET", ... ; LAC_METHOD_OTHER for methods we do not know; HEAD is GET. */
enum lac_method lac_method_of(const char *name);
const char *lac_method_name(enum lac_method method);

#endif
