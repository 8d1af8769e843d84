#ifndef LAC_SERVER_OBJECTS_S3_REQUEST_H
#define LAC_SERVER_OBJECTS_S3_REQUEST_H

/*
 * One request to S3: signed, sent with libcurl, repeated while the storage is away or busy.
 */

#include "analysis/model/status.h"
#include "collector/base/libcurl.h"
#include "server/base/buffer.h"
#include "server/objects/objects_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_S3_HANDLES_KEPT = 16, LAC_S3_ETAG_SIZE = 96, LAC_S3_TEXT_SIZE = 512 };

struct lac_s3 {
    const struct lac_curl *curl;
    char endpoint[LAC_S3_TEXT_SIZE]; /**< scheme and authority */
    char bucket[64];
    char prefix[LAC_S3_TEXT_SIZE]; /**< "" or ends with '/' */
    char region[64];
    char access_key[LAC_S3_TEXT_SIZE], secret_key[256];
    char session_token[4096]; /**< "" none */
    atomic_bool is_known;     /**< the bucket has answered */
    pthread_mutex_t lock;     /**< guards the two below */
    void *handles[LAC_S3_HANDLES_KEPT];
    unsigned handle_count;
};

struct lac_s3_call {
    const char *method;
    const char *name;  /**< of the object; NULL: the bucket */
    const char *query; /**< encoded and sorted; NULL none */
    const char *what;  /**< for messages: "read", "write", ... */
    unsigned patience_ms;
    /* what is sent: of a file, or bytes */
    int fd; /**< -1: `body` */
    const char *body;
    uint64_t offset, size_bytes;
    const char *payload_sha256; /**< hex; NULL: of nothing */
    /* what is asked for */
    uint64_t range_offset, range_bytes; /**< range_bytes UINT64_MAX: to the end; 0: no range */
    const struct lac_object_sink *sink; /**< NULL: into reply */
    /* what came back */
    long http_status;
    struct lac_buffer reply; /**< the caller's to free */
    uint64_t content_bytes;
    char etag[LAC_S3_ETAG_SIZE];
};

/** @return LAC_OK (2xx), LAC_ERR_NOT_FOUND (404), LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_s3_do(struct lac_objects *objects, struct lac_s3_call *call,
                                       struct lac_error *reterr);

/**
 * The text of the next element of that name in a reply, with the five entities put back.
 * @param at where to look, moved behind it @return false: there is none, or it does not fit
 */
bool lac_s3_element(const char **at, const char *name, char *out, size_t capacity);

#endif
