#ifndef LAC_SERVER_JSON_JSON_OUT_H
#define LAC_SERVER_JSON_JSON_OUT_H

/*
 * Writes JSON straight into a reply: no tree, no copy. Commas come by themselves; opening and
 * closing must balance. Failures stick in the buffer.
 */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_json {
    struct lac_buffer *out;
    bool needs_comma;
    unsigned depth;
};

void lac_json_init(struct lac_json *json, struct lac_buffer *out);
/** `key` NULL: an element of an array, or the outermost value. Keys are ours: plain ASCII. */
void lac_json_open(struct lac_json *json, const char *key, char bracket);
void lac_json_close(struct lac_json *json, char bracket);
void lac_json_int(struct lac_json *json, const char *key, int64_t value);
void lac_json_uint(struct lac_json *json, const char *key, uint64_t value);
/** NaN and infinities are null. */
void lac_json_real(struct lac_json *json, const char *key, double value);
void lac_json_bool(struct lac_json *json, const char *key, bool value);
void lac_json_null(struct lac_json *json, const char *key);
/** `text` NULL: null. */
void lac_json_text(struct lac_json *json, const char *key, const char *text);
/** As a string of digits: absolute times exceed 2^53. */
void lac_json_int_text(struct lac_json *json, const char *key, int64_t value);
/** Text that is JSON already. */
void lac_json_raw(struct lac_json *json, const char *key, const char *text, size_t size_bytes);

#endif
