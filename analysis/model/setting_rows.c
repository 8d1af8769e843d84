#include "analysis/model/setting_rows.h"

#include "analysis/model/grow.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Put a text behind the others. The empty text is at 0. */
static enum lac_status add_text(struct lac_setting_rows *rows, const char *text, uint32_t *ret_at)
{
    size_t length = text != NULL ? strlen(text) : 0;
    enum lac_status status;

    *ret_at = 0;
    if (length == 0 && rows->text_bytes > 0) {
        return LAC_OK;
    }
    if (length > LAC_SETTINGS_BYTES_MAX || rows->text_bytes + length + 2 > LAC_SETTINGS_BYTES_MAX) {
        return LAC_ERR_LIMIT;
    }
    status = LAC_GROW(rows->texts, &rows->text_capacity, rows->text_bytes + length + 2);
    if (status != LAC_OK) {
        return status;
    }
    if (rows->text_bytes == 0) {
        rows->texts[rows->text_bytes++] = '\0';
    }
    if (length > 0) {
        *ret_at = (uint32_t)rows->text_bytes;
        memcpy(rows->texts + rows->text_bytes, text, length + 1);
        rows->text_bytes += length + 1;
    }
    return LAC_OK;
}

/** Whether it is written as JSON writes numbers. */
static bool is_number(const char *text)
{
    static const char digits[] = "0123456789";
    text += *text == '-';
    size_t whole = strspn(text, digits);
    if (whole == 0 || (whole > 1 && *text == '0')) {
        return false;
    }
    text += whole;
    if (*text == '.') {
        size_t fraction = strspn(++text, digits);
        if (fraction == 0) {
            return false;
        }
        text += fraction;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        size_t exponent = strspn(text, digits);
        if (exponent == 0) {
            return false;
        }
        text += exponent;
    }
    return *text == '\0';
}

/** Whether the value is one of that type. */
static bool is_value(enum lac_setting_type type, const char *value)
{
    switch (type) {
    case LAC_SETTING_INTEGER:
        return is_number(value) && strpbrk(value, ".eE") == NULL;
    case LAC_SETTING_REAL:
        return is_number(value);
    case LAC_SETTING_TEXT:
        return true;
    case LAC_SETTING_NULL:
    case LAC_SETTING_FALSE:
    case LAC_SETTING_TRUE:
    case LAC_SETTING_LIST:
    case LAC_SETTING_OBJECT:
        return value[0] == '\0';
    case LAC_SETTING_TYPE_COUNT_:
        break;
    }
    return false;
}

/** Whether a row of this kind may be added to the parent. */
static enum lac_status check_parent(const struct lac_setting_rows *rows, uint32_t parent,
                                    enum lac_setting_type type, const char *name)
{
    unsigned depth = 0;

    if (parent == UINT32_MAX) {
        return type == LAC_SETTING_OBJECT &&
                       lac_settings_find(rows, parent, name != NULL ? name : "") == UINT32_MAX
                   ? LAC_OK
                   : LAC_ERR_MISUSE;
    }
    if (parent >= rows->count || rows->at[parent].end != rows->count) {
        return LAC_ERR_MISUSE;
    }
    for (uint32_t at = parent; at != UINT32_MAX; at = rows->at[at].parent) {
        depth++;
    }
    if (depth > LAC_SETTINGS_DEPTH_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (rows->at[parent].type == LAC_SETTING_LIST) {
        return name == NULL || name[0] == '\0' ? LAC_OK : LAC_ERR_MISUSE;
    }
    return rows->at[parent].type == LAC_SETTING_OBJECT &&
                   lac_settings_find(rows, parent, name != NULL ? name : "") == UINT32_MAX
               ? LAC_OK
               : LAC_ERR_MISUSE;
}

enum lac_status lac_settings_add(struct lac_setting_rows *rows, uint32_t parent,
                                 enum lac_setting_type type, const char *name, const char *value)
{
    struct lac_setting row = {.parent = parent, .type = (uint8_t)type};
    uint64_t text_bytes = rows->text_bytes;
    /* first: what is too much costs no search through the rows */
    enum lac_status status =
        rows->count == LAC_SETTINGS_MAX ? LAC_ERR_LIMIT : check_parent(rows, parent, type, name);

    if (status == LAC_OK && !is_value(type, value != NULL ? value : "")) {
        status = LAC_ERR_MISUSE;
    }
    if (status == LAC_OK) {
        status = LAC_GROW(rows->at, &rows->capacity, rows->count + 1);
    }
    if (status == LAC_OK) {
        status = add_text(rows, name, &row.name);
    }
    if (status == LAC_OK) {
        status = add_text(rows, value, &row.value);
    }
    if (status != LAC_OK) {
        rows->text_bytes = text_bytes;
        return status;
    }
    row.end = (uint32_t)rows->count + 1;
    rows->at[rows->count++] = row;
    for (uint32_t at = parent; at != UINT32_MAX; at = rows->at[at].parent) {
        rows->at[at].end = row.end;
    }
    return LAC_OK;
}

enum lac_status lac_settings_change(struct lac_setting_rows *rows, uint64_t row, const char *value)
{
    if (row >= rows->count || rows->at[row].type != LAC_SETTING_TEXT) {
        return LAC_ERR_MISUSE;
    }
    return add_text(rows, value, &rows->at[row].value);
}

uint32_t lac_settings_find(const struct lac_setting_rows *rows, uint32_t parent, const char *name)
{
    uint32_t end = parent == UINT32_MAX ? (uint32_t)rows->count : rows->at[parent].end;

    for (uint32_t at = parent + 1; at < end; at = rows->at[at].end) {
        if (strcmp(lac_settings_name(rows, at), name) == 0) {
            return at;
        }
    }
    return UINT32_MAX;
}

void lac_settings_done(struct lac_setting_rows *rows)
{
    free(rows->at);
    free(rows->texts);
    *rows = (struct lac_setting_rows){0};
}
