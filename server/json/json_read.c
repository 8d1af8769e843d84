#include "server/json/json_read.h"

#include "analysis/model/status.h"
#include "server/json/json_words.h"

#include <assert.h>
#include <json-c/json_c_version.h>
#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <json-c/json_types.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define NO_MEMORY "no memory to read JSON"

/** Whether json-c ran out of memory; before 0.17 it gives nothing and calls that a success. */
static bool is_out_of_memory(enum json_tokener_error error)
{
#if JSON_C_VERSION_NUM >= (17 << 8)
    if (error == json_tokener_error_memory) {
        return true;
    }
#endif
    return error == json_tokener_success;
}

/** Why json-c gave nothing. */
static enum lac_status refuse(json_tokener *tokener, const struct lac_json_limits *limits,
                              struct lac_error *reterr)
{
    const enum json_tokener_error error = json_tokener_get_error(tokener);
    const size_t at = json_tokener_get_parse_end(tokener);
    if (is_out_of_memory(error)) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, NO_MEMORY);
    }
    if (error == json_tokener_error_depth) {
        return lac_fail(reterr, LAC_ERR_LIMIT, at, "nested deeper than %d", limits->depth_max);
    }
    return lac_fail(reterr, LAC_ERR_CORRUPT, at, "no JSON at byte %zu: %s", at,
                    error == json_tokener_continue ? "it ends too early"
                                                   : json_tokener_error_desc(error));
}

enum lac_status lac_json_read(const char *text, size_t size_bytes,
                              const struct lac_json_limits *limits, struct json_object **ret_object,
                              struct lac_error *reterr)
{
    *ret_object = NULL;
    while (size_bytes > 0 && lac_json_is_space(text[size_bytes - 1])) {
        size_bytes--;
    }
    if (size_bytes > limits->size_bytes_max || size_bytes > INT_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0, "%zu bytes of JSON, %zu at most", size_bytes,
                        limits->size_bytes_max);
    }
    const char *const end = text + size_bytes;
    const char *bad = lac_json_skip_space(text, end);
    if (bad == end || *bad != '{') {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                        bad == end ? "it is empty" : "not a JSON object");
    }
    if (!lac_json_check_words(text, end, &bad)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, (uint64_t)(bad - text),
                        "no JSON at byte %zu: unexpected character", (size_t)(bad - text));
    }
    json_tokener *tokener = json_tokener_new_ex(limits->depth_max);
    if (tokener == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, NO_MEMORY);
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *object = json_tokener_parse_ex(tokener, text, (int)size_bytes);
    enum lac_status status = LAC_OK;
    if (object == NULL) {
        status = refuse(tokener, limits, reterr);
    } else if (json_tokener_get_parse_end(tokener) != size_bytes) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, json_tokener_get_parse_end(tokener),
                          "more than one JSON object");
    }
    json_tokener_free(tokener);
    if (status != LAC_OK) {
        json_object_put(object);
        return status;
    }
    *ret_object = object;
    return LAC_OK;
}

void lac_json_read_done(struct json_object *object)
{
    json_object_put(object);
}

enum lac_status lac_json_read_text(const struct json_object *object, const char *key, char *out,
                                   size_t capacity_bytes, struct lac_error *reterr)
{
    struct json_object *member = NULL;
    if (!json_object_object_get_ex(object, key, &member)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is missing", key);
    }
    if (!json_object_is_type(member, json_type_string)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is not text", key);
    }
    const char *text = json_object_get_string(member);
    const size_t length = (size_t)json_object_get_string_len(member);
    if (length >= capacity_bytes) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is longer than %zu bytes", key,
                        capacity_bytes - 1);
    }
    if (memchr(text, '\0', length) != NULL) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" holds a NUL", key);
    }
    memcpy(out, text, length + 1);
    return LAC_OK;
}

enum lac_status lac_json_read_int(const struct json_object *object, const char *key,
                                  int64_t *ret_value, struct lac_error *reterr)
{
    struct json_object *member = NULL;

    if (!json_object_object_get_ex(object, key, &member) ||
        !json_object_is_type(member, json_type_int)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is not a whole number", key);
    }
    *ret_value = json_object_get_int64(member);
    return LAC_OK;
}

enum lac_status lac_json_read_bool(const struct json_object *object, const char *key,
                                   bool *ret_value, struct lac_error *reterr)
{
    struct json_object *member = NULL;

    if (!json_object_object_get_ex(object, key, &member) ||
        !json_object_is_type(member, json_type_boolean)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is not true or false", key);
    }
    *ret_value = json_object_get_boolean(member) != 0;
    return LAC_OK;
}

bool lac_json_read_has(const struct json_object *object, const char *key)
{
    return json_object_object_get_ex(object, key, NULL) != 0;
}

bool lac_json_read_is_null(const struct json_object *object, const char *key)
{
    struct json_object *value = NULL;

    return json_object_object_get_ex(object, key, &value) != 0 && value == NULL;
}

/** Whether a value is a text of one line that is not empty. */
static bool is_line(struct json_object *value)
{
    const char *text;
    size_t length;

    if (!json_object_is_type(value, json_type_string)) {
        return false;
    }
    text = json_object_get_string(value);
    length = (size_t)json_object_get_string_len(value);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return false;
        }
    }
    return length > 0;
}

enum lac_status lac_json_read_lines(const struct json_object *object, const char *key, char *out,
                                    size_t capacity_bytes, struct lac_error *reterr)
{
    struct json_object *member = NULL;
    size_t used = 0;

    if (!json_object_object_get_ex(object, key, &member)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is missing", key);
    }
    if (!json_object_is_type(member, json_type_array)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is not a list", key);
    }
    out[0] = '\0';
    for (size_t i = 0; i < json_object_array_length(member); i++) {
        struct json_object *value = json_object_array_get_idx(member, i);

        if (!is_line(value)) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" holds what is no line of text",
                            key);
        }
        const size_t length = (size_t)json_object_get_string_len(value);
        if (length + 2 > capacity_bytes - used) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" are longer than %zu bytes", key,
                            capacity_bytes - 2);
        }
        if (used > 0) {
            out[used++] = '\n';
        }
        memcpy(out + used, json_object_get_string(value), length + 1);
        used += length;
    }
    return LAC_OK;
}
