#ifndef LAC_SERVER_JSON_JSON_STRING_H
#define LAC_SERVER_JSON_JSON_STRING_H

/* Text as a JSON string; part of json_out.h, which everybody else uses. */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/**
 * Append the text with quotes. Escaped are quotes, backslashes and control characters, for a reply
 * `<`, `>`, `&`, DEL, U+2028 and U+2029 too; bytes that are not UTF-8 become U+FFFD.
 */
void lac_json_string(struct lac_buffer *out, const char *text, size_t size_bytes, bool is_reply);

#endif
