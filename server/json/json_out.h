#ifndef LAC_SERVER_JSON_JSON_OUT_H
#define LAC_SERVER_JSON_JSON_OUT_H

/*
 * Writes JSON straight into a buffer: no tree, no copy. Commas come by themselves; opening and
 * closing must balance. Failures stick in the buffer. Same calls, same bytes.
 */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How it looks. In every form bytes that are not UTF-8 become U+FFFD, so it is always valid. */
enum lac_json_form {
    LAC_JSON_REPLY,    /**< one line; `<`, `>`, `&`, U+2028 and U+2029 are escaped as well */
    LAC_JSON_DOCUMENT, /**< one line; escaped is only what JSON asks for */
    LAC_JSON_INDENTED, /**< a document for people: a line a member, two spaces a level */
};

struct lac_json {
    struct lac_buffer *out;
    enum lac_json_form form;
    bool needs_comma;
    bool wants_line;
    unsigned depth;
};

/** Begin a reply. */
void lac_json_init(struct lac_json *json, struct lac_buffer *out);
void lac_json_init_form(struct lac_json *json, struct lac_buffer *out, enum lac_json_form form);

/** What comes next, a bracket included, begins a line: for files that are read line by line. */
void lac_json_line(struct lac_json *json);

/** `key` NULL: an element of an array, or the outermost value. */
void lac_json_open(struct lac_json *json, const char *key, char bracket);
void lac_json_close(struct lac_json *json, char bracket);
void lac_json_int(struct lac_json *json, const char *key, int64_t value);
void lac_json_uint(struct lac_json *json, const char *key, uint64_t value);
/** Negative: null. */
void lac_json_optional(struct lac_json *json, const char *key, int64_t value);
/** LAC_UNKNOWN_NS: null. */
void lac_json_ns(struct lac_json *json, const char *key, int64_t ns);
/** The shortest digits that read back the same. NaN and infinities are null. */
void lac_json_real(struct lac_json *json, const char *key, double value);
/** Four decimals: the same digits on every machine. NaN and infinities are null. */
void lac_json_decimals(struct lac_json *json, const char *key, double value);
void lac_json_bool(struct lac_json *json, const char *key, bool value);
void lac_json_null(struct lac_json *json, const char *key);
/** `text` NULL: null. */
void lac_json_text(struct lac_json *json, const char *key, const char *text);
void lac_json_text_sized(struct lac_json *json, const char *key, const char *text,
                         size_t size_bytes);
/** As a string of digits: absolute times exceed 2^53. */
void lac_json_int_text(struct lac_json *json, const char *key, int64_t value);
/** Text that is JSON already; LAC_JSON_INDENTED indents its lines as deep as it stands. */
void lac_json_raw(struct lac_json *json, const char *key, const char *text, size_t size_bytes);

#endif
