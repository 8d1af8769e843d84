#ifndef LAC_SERVER_OBJECTS_SIGV4_H
#define LAC_SERVER_OBJECTS_SIGV4_H

/*
 * Version 4 signatures of requests to S3 and what speaks like it. Pure functions: the time is the
 * caller's.
 */

#include "collector/base/sha.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_SHA256_HEX_SIZE = 2 * LAC_SHA256_SIZE + 1,
    LAC_SIGV4_HEADERS_MAX = 8,
    LAC_SIGV4_AUTHORIZATION_SIZE = 1024,
};

struct lac_sigv4_key {
    const char *access_key;
    const char *secret_key;
    const char *region;
    const char *service; /**< "s3" */
};

struct lac_sigv4_header {
    const char *name; /**< lower case */
    const char *value;
};

struct lac_sigv4_request {
    const char *method;
    const char *path;                       /**< encoded, begins with '/' */
    const char *query;                      /**< encoded, sorted by name, each with '='; "" none */
    const char *time;                       /**< "20130524T000000Z" */
    const char *payload_sha256;             /**< hex */
    const struct lac_sigv4_header *headers; /**< all that are signed, sorted by name */
    size_t header_count;
};

/** Percent-encode all but unreserved characters, and '/' where `keep_slash`.
 *  @return false: no room */
bool lac_uri_encode(const char *text, bool keep_slash, char *out, size_t capacity);

/** The value of the Authorization header. @param out LAC_SIGV4_AUTHORIZATION_SIZE bytes
 *  @return false: a name or key is too long for it */
bool lac_sigv4_sign(const struct lac_sigv4_key *key, const struct lac_sigv4_request *request,
                    char *out);

#endif
