#include "server/json/rows_csv.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/base/csv.h"
#include "server/json/json_read.h"

#include <json-c/json_object.h>
#include <json-c/json_object_iterator.h>
#include <json-c/json_types.h>
#include <json-c/linkhash.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 64, /* of a reply */
    NESTED_MAX = 4, /* objects in a row that become columns; deeper ones stay JSON */
    COLUMNS_MAX = 1000,
    PATH_BYTES = 320,
};

/** The columns, in order, and the cells of the row at hand. */
struct sheet {
    char **paths;
    struct json_object **cells;
    unsigned count;
    unsigned next; /**< where the next member is likely found: rows have one order */
    enum lac_status status;
};

enum lac_status lac_description_read(const char *text, size_t size_bytes,
                                     struct json_object **ret_description, struct lac_error *reterr)
{
    static const struct lac_json_limits limits = {.size_bytes_max = (size_t)16 << 20,
                                                  .depth_max = DEPTH_MAX};

    return lac_json_read(text, size_bytes, &limits, ret_description, reterr);
}

static struct json_object *member_of(struct json_object *object, const char *key)
{
    struct json_object *member = NULL;

    return json_object_is_type(object, json_type_object) &&
                   json_object_object_get_ex(object, key, &member)
               ? member
               : NULL;
}

/** The schema that another refers to. */
static struct json_object *resolved(struct json_object *components, struct json_object *schema)
{
    for (int hops = 0; hops < NESTED_MAX; hops++) {
        const char *reference = json_object_get_string(member_of(schema, "$ref"));
        const char *name = reference != NULL ? strrchr(reference, '/') : NULL;

        if (name == NULL) {
            break;
        }
        schema = member_of(components, name + 1);
    }
    return schema;
}

bool lac_rows_form_of(struct json_object *description, const char *pattern,
                      struct lac_rows_form *ret_form)
{
    static const char *const way[] = {"get", "responses", "200", "content"};
    struct json_object *at = member_of(member_of(description, "paths"), pattern);

    for (unsigned i = 0; i < LAC_COUNT_OF(way); i++) {
        at = member_of(at, way[i]);
    }
    struct json_object *csv = member_of(at, "text/csv");
    struct json_object *components = member_of(member_of(description, "components"), "schemas");
    struct json_object *rows = member_of(csv, "x-rows");

    *ret_form = (struct lac_rows_form){
        .rows = rows,
        .names = member_of(csv, "x-columns"),
        .schema = resolved(components, member_of(member_of(at, "application/json"), "schema")),
        .components = components,
        .list = json_object_get_string(
            json_object_is_type(rows, json_type_array) ? json_object_array_get_idx(rows, 0) : rows),
    };
    return ret_form->list != NULL;
}

/* -- columns ----------------------------------------------------------------------------------- */

static void add_column(struct sheet *sheet, const char *path)
{
    char *copy = sheet->status == LAC_OK && sheet->count < COLUMNS_MAX ? strdup(path) : NULL;

    if (copy == NULL) {
        sheet->status = sheet->count < COLUMNS_MAX ? LAC_ERR_NOMEM : LAC_ERR_LIMIT;
        return;
    }
    sheet->paths[sheet->count++] = copy;
}

/** @return its number, or that of no column */
static unsigned find_column(struct sheet *sheet, const char *path)
{
    for (unsigned i = 0; i < sheet->count; i++) {
        const unsigned at = (sheet->next + i) % sheet->count;

        if (strcmp(sheet->paths[at], path) == 0) {
            sheet->next = at + 1;
            return at;
        }
    }
    return sheet->count;
}

static bool path_to(char *path, const char *before, const char *key)
{
    return snprintf(path, PATH_BYTES, "%s%s%s", before, before[0] != '\0' ? "." : "", key) <
           PATH_BYTES;
}

/** Whether a schema's `type` names this one, alone or in a list. */
static bool has_type(struct json_object *schema, const char *type)
{
    struct json_object *types = member_of(schema, "type");

    if (!json_object_is_type(types, json_type_array)) {
        return types != NULL && strcmp(json_object_get_string(types), type) == 0;
    }
    for (size_t i = 0; i < json_object_array_length(types); i++) {
        if (strcmp(json_object_get_string(json_object_array_get_idx(types, i)), type) == 0) {
            return true;
        }
    }
    return false;
}

/** The columns that a schema names. An object whose members it does not name has none yet. */
static void add_described(struct sheet *sheet, struct json_object *components,
                          struct json_object *schema, const char *before, int depth)
{
    struct json_object *properties = member_of(resolved(components, schema), "properties");

    if (properties == NULL) {
        return;
    }
    json_object_object_foreach(properties, key, property)
    {
        struct json_object *inner = resolved(components, property);
        char path[PATH_BYTES];

        if (!path_to(path, before, key)) {
            continue;
        }
        if ((has_type(inner, "object") || member_of(inner, "properties") != NULL) &&
            depth < NESTED_MAX) {
            add_described(sheet, components, inner, path, depth + 1);
        } else if (member_of(inner, "type") != NULL || member_of(inner, "enum") != NULL) {
            add_column(sheet, path);
        }
    }
}

/**
 * What a row holds: new columns, or (with `is_filling`) the cells of those that are known.
 * Null makes no column: what it stands for is told by other rows.
 */
static void walk_row(struct sheet *sheet, struct json_object *row, const char *before, int depth,
                     bool is_filling)
{
    json_object_object_foreach(row, key, value)
    {
        char path[PATH_BYTES];

        if (value == NULL || !path_to(path, before, key)) {
            continue;
        }
        if (json_object_is_type(value, json_type_object) && depth < NESTED_MAX) {
            walk_row(sheet, value, path, depth + 1, is_filling);
            continue;
        }
        const unsigned column = find_column(sheet, path);

        if (column == sheet->count && !is_filling) {
            add_column(sheet, path);
        } else if (column < sheet->count && is_filling) {
            sheet->cells[column] = value;
        }
        if (sheet->status != LAC_OK) {
            return;
        }
    }
}

/* -- cells ------------------------------------------------------------------------------------- */

static void put_json(struct lac_buffer *out, struct json_object *value)
{
    size_t size_bytes = 0;
    const char *text = json_object_to_json_string_length(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size_bytes);

    if (text == NULL) {
        out->status = LAC_ERR_NOMEM;
    } else if (json_object_is_type(value, json_type_array) ||
               json_object_is_type(value, json_type_object)) {
        lac_csv_text(out, text, size_bytes);
    } else {
        lac_buffer_add(out, text, size_bytes);
    }
}

static bool is_plain_list(struct json_object *value)
{
    bool is_plain = json_object_is_type(value, json_type_array);

    for (size_t i = 0; is_plain && i < json_object_array_length(value); i++) {
        struct json_object *element = json_object_array_get_idx(value, i);

        is_plain = !json_object_is_type(element, json_type_array) &&
                   !json_object_is_type(element, json_type_object);
    }
    return is_plain;
}

/** "a; b" */
static void put_list(struct lac_buffer *out, struct json_object *list)
{
    struct lac_buffer text = {0};

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *element = json_object_array_get_idx(list, i);

        lac_buffer_puts(&text, i > 0 ? "; " : "");
        lac_buffer_puts(&text, element != NULL ? json_object_get_string(element) : "");
    }
    out->status = text.status != LAC_OK ? text.status : out->status;
    lac_csv_text(out, text.bytes != NULL ? text.bytes : "", text.size_bytes);
    lac_buffer_done(&text);
}

static void put_cell(struct lac_buffer *out, struct json_object *value)
{
    if (json_object_is_type(value, json_type_string)) {
        lac_csv_text(out, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    } else if (is_plain_list(value)) {
        put_list(out, value);
    } else if (value != NULL) {
        put_json(out, value);
    }
}

static void put_comma(struct lac_buffer *out, size_t column)
{
    lac_buffer_puts(out, column > 0 ? "," : "");
}

static void put_text_cell(struct lac_buffer *out, size_t column, const char *text)
{
    put_comma(out, column);
    lac_csv_text(out, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

/* -- the three kinds of rows ------------------------------------------------------------------- */

/** Rows that are objects. */
static void put_objects(const struct lac_rows_form *form, struct json_object *rows,
                        struct lac_buffer *out, struct sheet *sheet)
{
    struct json_object *list = member_of(member_of(form->schema, "properties"), form->list);

    add_described(sheet, form->components, member_of(resolved(form->components, list), "items"), "",
                  0);
    for (size_t i = 0; i < json_object_array_length(rows) && sheet->status == LAC_OK; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);

        if (json_object_is_type(row, json_type_object)) {
            walk_row(sheet, row, "", 0, false);
        }
    }
    for (unsigned c = 0; c < sheet->count; c++) {
        put_text_cell(out, c, sheet->paths[c]);
    }
    lac_buffer_puts(out, "\r\n");
    for (size_t i = 0; i < json_object_array_length(rows) && sheet->status == LAC_OK; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);

        if (!json_object_is_type(row, json_type_object)) {
            continue;
        }
        memset(sheet->cells, 0, sheet->count * sizeof(struct json_object *));
        walk_row(sheet, row, "", 0, true);
        for (unsigned c = 0; c < sheet->count; c++) {
            put_comma(out, c);
            put_cell(out, sheet->cells[c]);
        }
        lac_buffer_puts(out, "\r\n");
    }
}

/** Rows that are lists, or hold one in `cells`. @param names of the columns, or objects with `id` */
static void put_lists(struct json_object *rows, struct json_object *names, struct lac_buffer *out)
{
    for (size_t c = 0; c < json_object_array_length(names); c++) {
        struct json_object *name = json_object_array_get_idx(names, c);
        struct json_object *id = member_of(name, "id");

        put_text_cell(out, c, json_object_get_string(id != NULL ? id : name));
    }
    lac_buffer_puts(out, "\r\n");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        struct json_object *cells = member_of(row, "cells");

        cells = cells != NULL ? cells : row;
        for (size_t c = 0; c < json_object_array_length(names); c++) {
            put_comma(out, c);
            if (json_object_is_type(cells, json_type_array)) {
                put_cell(out, json_object_array_get_idx(cells, c));
            }
        }
        lac_buffer_puts(out, "\r\n");
    }
}

/** Columns side by side. */
static void put_columns(const struct lac_rows_form *form, struct json_object *reply,
                        struct lac_buffer *out)
{
    const size_t count = json_object_array_length(form->rows);
    struct json_object *first = member_of(reply, form->list);
    const size_t row_count =
        json_object_is_type(first, json_type_array) ? json_object_array_length(first) : 0;

    for (size_t c = 0; c < count; c++) {
        put_text_cell(out, c, json_object_get_string(json_object_array_get_idx(form->rows, c)));
    }
    lac_buffer_puts(out, "\r\n");
    for (size_t i = 0; i < row_count; i++) {
        for (size_t c = 0; c < count; c++) {
            struct json_object *column =
                member_of(reply, json_object_get_string(json_object_array_get_idx(form->rows, c)));

            put_comma(out, c);
            if (json_object_is_type(column, json_type_array)) {
                put_cell(out, json_object_array_get_idx(column, i));
            }
        }
        lac_buffer_puts(out, "\r\n");
    }
}

static enum lac_status write_sheet(const struct lac_rows_form *form, struct json_object *reply,
                                   struct lac_buffer *out, struct lac_error *reterr)
{
    struct sheet sheet = {.paths = calloc(COLUMNS_MAX, sizeof(char *)),
                          .cells = calloc(COLUMNS_MAX, sizeof(struct json_object *))};
    struct json_object *rows = member_of(reply, form->list);
    struct json_object *names = member_of(reply, "columns");

    names = names != NULL ? names : form->names;
    if (sheet.paths == NULL || sheet.cells == NULL) {
        sheet.status = LAC_ERR_NOMEM;
    } else if (json_object_is_type(form->rows, json_type_array)) {
        put_columns(form, reply, out);
    } else if (!json_object_is_type(rows, json_type_array)) {
        sheet.status = LAC_ERR_NOT_FOUND;
    } else if (json_object_is_type(names, json_type_array)) {
        put_lists(rows, names, out);
    } else {
        put_objects(form, rows, out, &sheet);
    }
    for (unsigned c = 0; c < sheet.count; c++) {
        free(sheet.paths[c]);
    }
    free(sheet.paths);
    free(sheet.cells);
    sheet.status = sheet.status == LAC_OK ? out->status : sheet.status;
    if (sheet.status == LAC_ERR_NOT_FOUND) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "this has no rows: it leaves as JSON alone");
    }
    return sheet.status == LAC_OK ? LAC_OK
                                  : lac_fail(reterr, sheet.status, 0, "no room for this as CSV");
}

enum lac_status lac_rows_csv(const struct lac_rows_form *form, const char *reply, size_t size_bytes,
                             struct lac_buffer *out, char *ret_next, size_t next_capacity_bytes,
                             struct lac_error *reterr)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_BUFFER_BYTES_MAX,
                                                  .depth_max = DEPTH_MAX};
    struct json_object *object = NULL;
    enum lac_status status = lac_json_read(reply, size_bytes, &limits, &object, reterr);

    ret_next[0] = '\0';
    if (status == LAC_OK) {
        struct json_object *next = member_of(object, "next");

        if (json_object_is_type(next, json_type_string)) {
            (void)snprintf(ret_next, next_capacity_bytes, "%s", json_object_get_string(next));
        }
        status = write_sheet(form, object, out, reterr);
    }
    lac_json_read_done(object);
    return status;
}
