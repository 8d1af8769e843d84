#ifndef LAC_SERVER_JSON_JSON_READ_H
#define LAC_SERVER_JSON_JSON_READ_H

/*
 * Reads small JSON documents that come from outside: bodies of requests, answers of other servers,
 * arguments that a trace file keeps. json-c does it, and only behind this header.
 *
 * Strict: one object in UTF-8, within the limits, and nothing behind it; what is accepted is JSON to
 * every other reader. Of members of the same
 * name the last one counts. Integers beyond 64 bits become the nearest that is not, so what has to
 * be passed on digit by digit is not read here but copied (json_members.h).
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

struct lac_json_limits {
    size_t size_bytes_max;
    int depth_max; /**< values inside of each other, the object itself included */
};

/**
 * Read an object.
 *
 * @param text    need not end in a NUL
 * @param reterr  LAC_ERR_CORRUPT with what is wrong and at which byte, LAC_ERR_LIMIT, LAC_ERR_NOMEM
 * Cost: 10 to 17 ns a byte.
 */
LAC_MUST_USE enum lac_status lac_json_read(const char *text, size_t size_bytes,
                                           const struct lac_json_limits *limits,
                                           struct json_object **ret_object,
                                           struct lac_error *reterr);

/** NULL is fine. */
void lac_json_read_done(struct json_object *object);

/**
 * The text of a member, with its NUL; text that holds a NUL or needs more room is an error.
 *
 * @return LAC_OK, or LAC_ERR_CORRUPT with a sentence that names the member
 */
LAC_MUST_USE enum lac_status lac_json_read_text(const struct json_object *object, const char *key,
                                                char *out, size_t capacity_bytes,
                                                struct lac_error *reterr);

/** The number of a member: whole, of 64 bits.
 *  @return LAC_OK, or LAC_ERR_CORRUPT with a sentence that names the member */
LAC_MUST_USE enum lac_status lac_json_read_int(const struct json_object *object, const char *key,
                                               int64_t *ret_value, struct lac_error *reterr);

/** The same of true or false. */
LAC_MUST_USE enum lac_status lac_json_read_bool(const struct json_object *object, const char *key,
                                                bool *ret_value, struct lac_error *reterr);

/** Whether it has the member. */
bool lac_json_read_has(const struct json_object *object, const char *key);

/** Whether it has the member and that is null. */
bool lac_json_read_is_null(const struct json_object *object, const char *key);

/**
 * A list of texts, each of one line and not empty, with '\n' between them and a NUL at the end.
 *
 * @return LAC_OK, or LAC_ERR_CORRUPT with a sentence that names the member
 */
LAC_MUST_USE enum lac_status lac_json_read_lines(const struct json_object *object, const char *key,
                                                 char *out, size_t capacity_bytes,
                                                 struct lac_error *reterr);

#endif
