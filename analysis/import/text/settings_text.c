#include "analysis/import/text/settings_text.h"

#include "analysis/import/text/json_text.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Deeper values end the reading, also outside the settings. */
enum { DEPTH_MAX = 64 };

/** Where the rows of a value go. */
#define NOWHERE (UINT32_MAX - 1)
#define AS_ROOT UINT32_MAX

/** A cursor over the text. */
struct reader {
    const uint8_t *at, *end;
    struct lac_setting_rows *rows;
    uint64_t left_out;
    enum lac_status status; /**< LAC_ERR_CORRUPT: no JSON */
};

static bool read_value(struct reader *reader, uint32_t parent, const char *name, int depth);

static bool fail(struct reader *reader, enum lac_status status)
{
    reader->status = status;
    return false;
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' ||
                                        *reader->at == '\r' || *reader->at == '\n')) {
        reader->at++;
    }
}

/** Past the character, if it is next. */
static bool take(struct reader *reader, char c)
{
    skip_space(reader);
    if (reader->at < reader->end && *reader->at == (uint8_t)c) {
        reader->at++;
        return true;
    }
    return false;
}

/** A row, or what is left out. @return the row, NOWHERE when it is left out */
static uint32_t add(struct reader *reader, uint32_t parent, enum lac_setting_type type,
                    const char *name, const char *value)
{
    if (parent == NOWHERE) {
        return NOWHERE;
    }
    uint32_t row = (uint32_t)reader->rows->count;
    enum lac_status status = lac_settings_add(reader->rows, parent, type, name, value);
    if (status == LAC_OK) {
        return row;
    }
    if (status == LAC_ERR_NOMEM) {
        (void)fail(reader, status);
    } else {
        reader->left_out++;
    }
    return NOWHERE;
}

/** The string at the cursor. @return its text, which the caller frees; NULL: see status */
static char *read_string(struct reader *reader)
{
    struct lac_json_repairs ignored = {0};
    const uint8_t *first = reader->at + 1;
    const uint8_t *last = lac_json_string_end(first, reader->end);
    if (last == NULL) {
        (void)fail(reader, LAC_ERR_CORRUPT);
        return NULL;
    }
    char *text = malloc((size_t)(last - first) * 3 + 5);
    if (text == NULL) {
        (void)fail(reader, LAC_ERR_NOMEM);
        return NULL;
    }
    size_t length =
        lac_json_string_decode(first, (size_t)(last - first), (uint8_t *)text, &ignored);
    text[length] = '\0';
    reader->at = last + 1;
    return text;
}

static bool read_text(struct reader *reader, uint32_t parent, const char *name)
{
    char *text = read_string(reader);
    if (text != NULL) {
        (void)add(reader, parent, LAC_SETTING_TEXT, name, text);
    }
    free(text);
    return reader->status == LAC_OK;
}

/** A number or a word. */
static bool read_scalar(struct reader *reader, uint32_t parent, const char *name)
{
    static const struct {
        const char *text;
        enum lac_setting_type type;
    } words[] = {
        {"null", LAC_SETTING_NULL}, {"true", LAC_SETTING_TRUE}, {"false", LAC_SETTING_FALSE}};
    char text[400];
    size_t length = 0;
    while (reader->at<reader->end && * reader->at> ' ' && strchr(",:{}[]\"", *reader->at) == NULL) {
        if (length + 1 == sizeof(text)) {
            return fail(reader, LAC_ERR_CORRUPT);
        }
        text[length++] = (char)*reader->at++;
    }
    text[length] = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strcmp(text, words[i].text) == 0) {
            (void)add(reader, parent, words[i].type, name, NULL);
            return reader->status == LAC_OK;
        }
    }
    if (length == 0) {
        return fail(reader, LAC_ERR_CORRUPT);
    }
    int64_t integer = 0;
    bool is_integer = lac_decimal_integer((const uint8_t *)text, length, &integer);
    (void)add(reader, parent, is_integer ? LAC_SETTING_INTEGER : LAC_SETTING_REAL, name, text);
    return reader->status == LAC_OK;
}

/** Where the rows of a member go: all of them are read, those of "lacuna" > "settings" and "host"
 *  kept. */
struct place {
    uint32_t parent;
    bool is_lacuna; /**< the members of this object are the roots */
    bool is_outermost;
};

static bool read_object(struct reader *reader, const struct place *place, int depth)
{
    if (take(reader, '}')) {
        return true;
    }
    do {
        skip_space(reader);
        if (reader->at == reader->end || *reader->at != '"') {
            return fail(reader, LAC_ERR_CORRUPT);
        }
        char *name = read_string(reader);
        bool is_read = name != NULL && (take(reader, ':') || fail(reader, LAC_ERR_CORRUPT));
        skip_space(reader);
        bool is_object = is_read && reader->at < reader->end && *reader->at == '{';
        bool is_root = place->is_lacuna && is_object &&
                       (strcmp(name, "settings") == 0 || strcmp(name, "host") == 0);
        if (is_read && place->is_outermost && is_object && strcmp(name, "lacuna") == 0) {
            const struct place inside = {.parent = NOWHERE, .is_lacuna = true};
            reader->at++;
            is_read = read_object(reader, &inside, depth + 1);
        } else if (is_read) {
            is_read = read_value(reader, is_root ? AS_ROOT : place->parent, name, depth + 1);
        }
        free(name);
        if (!is_read) {
            return false;
        }
    } while (take(reader, ','));
    return take(reader, '}') || fail(reader, LAC_ERR_CORRUPT);
}

static bool read_list(struct reader *reader, uint32_t parent, int depth)
{
    if (take(reader, ']')) {
        return true;
    }
    do {
        skip_space(reader);
        if (!read_value(reader, parent, NULL, depth + 1)) {
            return false;
        }
    } while (take(reader, ','));
    return take(reader, ']') || fail(reader, LAC_ERR_CORRUPT);
}

static bool read_value(struct reader *reader, uint32_t parent, const char *name, int depth)
{
    if (reader->at == reader->end || depth > DEPTH_MAX) {
        return fail(reader, LAC_ERR_CORRUPT);
    }
    if (*reader->at == '"') {
        return read_text(reader, parent, name);
    }
    if (*reader->at != '{' && *reader->at != '[') {
        return read_scalar(reader, parent, name);
    }
    bool is_list = *reader->at++ == '[';
    const struct place inside = {
        .parent = add(reader, parent, is_list ? LAC_SETTING_LIST : LAC_SETTING_OBJECT, name, NULL)};
    if (reader->status != LAC_OK) {
        return false;
    }
    return is_list ? read_list(reader, inside.parent, depth) : read_object(reader, &inside, depth);
}

enum lac_status lac_settings_read_text(struct lac_model *model)
{
    uint32_t id = model->info.metadata;
    const uint8_t *text = (const uint8_t *)lac_model_str(model, id);
    struct reader reader = {.at = text,
                            .end = text + lac_strings_length(&model->strings, id),
                            .rows = &model->settings};
    const struct place outermost = {.parent = NOWHERE, .is_outermost = true};
    lac_settings_done(&model->settings);
    if (!take(&reader, '{')) {
        return LAC_OK;
    }
    if (!read_object(&reader, &outermost, 0)) {
        lac_settings_done(&model->settings);
        return reader.status == LAC_ERR_NOMEM ? LAC_ERR_NOMEM : LAC_OK;
    }
    if (reader.left_out > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "settings_left_out", reader.left_out, 0,
                         "Settings that were too many, too long, nested too deeply or there twice "
                         "were left out.");
    }
    return LAC_OK;
}
