#include "server/sql/result_text.h"

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/base/csv.h"
#include "server/json/json_out.h"
#include "server/sql/sql_query.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16, CELL_WIDTH_MAX = 60 };

#define EXACT_MAX ((int64_t)1 << 53)

static void flush(struct lac_sql_result *result)
{
    if (result->file != NULL && result->out.size_bytes > 0) {
        result->has_failed = fwrite(result->out.bytes, 1, result->out.size_bytes, result->file) !=
                                 result->out.size_bytes ||
                             result->has_failed;
        result->out.size_bytes = 0;
    }
}

/** The shortest digits that read back the same. */
static void add_real(struct lac_buffer *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    lac_buffer_puts(out, text);
}

static void add_hex(struct lac_buffer *out, const char *bytes, size_t size_bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size_bytes; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        const char pair[2] = {digits[byte >> 4], digits[byte & 15]};
        lac_buffer_add(out, pair, sizeof(pair));
    }
}

/* -- JSON ------------------------------------------------------------------------------------ */

static void add_json_cell(struct lac_json *json, const struct lac_sql_cell *cell)
{
    struct lac_buffer hex = {0};
    switch (cell->type) {
    case LAC_SQL_INTEGER:
        if (cell->integer > EXACT_MAX || cell->integer < -EXACT_MAX) {
            lac_json_int_text(json, NULL, cell->integer);
        } else {
            lac_json_int(json, NULL, cell->integer);
        }
        break;
    case LAC_SQL_REAL:
        lac_json_real(json, NULL, cell->real);
        break;
    case LAC_SQL_TEXT:
        lac_json_text_sized(json, NULL, cell->bytes != NULL ? cell->bytes : "", cell->size_bytes);
        break;
    case LAC_SQL_BLOB:
        add_hex(&hex, cell->bytes, cell->size_bytes);
        lac_json_text_sized(json, NULL, hex.bytes != NULL ? hex.bytes : "", hex.size_bytes);
        lac_buffer_done(&hex);
        break;
    case LAC_SQL_NULL:
        lac_json_null(json, NULL);
    }
}

static void add_json_row(struct lac_sql_result *result, const struct lac_sql_cell *cells,
                         unsigned count)
{
    struct lac_json json;
    lac_buffer_puts(&result->out, result->row_count > 0 ? ",\n" : "\n");
    lac_json_init_form(&json, &result->out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '[');
    for (unsigned c = 0; c < count; c++) {
        add_json_cell(&json, &cells[c]);
    }
    lac_json_close(&json, ']');
}

static void add_json_columns(struct lac_sql_result *result, const char *const *names,
                             unsigned count)
{
    struct lac_json json;
    lac_buffer_puts(&result->out, "{\"columns\":");
    lac_json_init_form(&json, &result->out, LAC_JSON_REPLY);
    lac_json_open(&json, NULL, '[');
    for (unsigned c = 0; c < count; c++) {
        lac_json_text(&json, NULL, names[c]);
    }
    lac_json_close(&json, ']');
    lac_buffer_puts(&result->out, ",\"rows\":[");
}

/* -- CSV ------------------------------------------------------------------------------------- */

static void add_plain_cell(struct lac_buffer *out, const struct lac_sql_cell *cell, bool is_csv)
{
    switch (cell->type) {
    case LAC_SQL_INTEGER:
        lac_buffer_int(out, cell->integer);
        break;
    case LAC_SQL_REAL:
        if (isfinite(cell->real)) {
            add_real(out, cell->real);
        }
        break;
    case LAC_SQL_TEXT:
        if (is_csv) {
            lac_csv_text(out, cell->bytes != NULL ? cell->bytes : "", cell->size_bytes);
        } else {
            lac_buffer_add(out, cell->bytes, cell->size_bytes);
        }
        break;
    case LAC_SQL_BLOB:
        add_hex(out, cell->bytes, cell->size_bytes);
        break;
    case LAC_SQL_NULL:
        break;
    }
}

static void add_csv_row(struct lac_sql_result *result, const struct lac_sql_cell *cells,
                        unsigned count)
{
    for (unsigned c = 0; c < count; c++) {
        lac_buffer_puts(&result->out, c > 0 ? "," : "");
        add_plain_cell(&result->out, &cells[c], true);
    }
    lac_buffer_puts(&result->out, "\r\n");
}

/* -- a table for people ------------------------------------------------------------------------ */

/** Text that a terminal shows as it is: one line, no control characters. */
static void add_shown(struct lac_buffer *out, const char *text, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool is_c1 = byte == 0xC2 && i + 1 < size_bytes && (unsigned char)text[i + 1] < 0xA0;
        if (byte < ' ' || byte == 0x7F || is_c1) {
            lac_buffer_puts(out, byte == '\n' || byte == '\t' ? " " : "?");
            i += is_c1;
        } else {
            lac_buffer_add(out, &text[i], 1);
        }
    }
}

static void add_table_row(struct lac_sql_result *result, const struct lac_sql_cell *cells,
                          unsigned count)
{
    for (unsigned c = 0; c < count; c++) {
        struct lac_buffer text = {0};
        add_plain_cell(&text, &cells[c], false);
        add_shown(&result->cells, text.bytes != NULL ? text.bytes : "", text.size_bytes);
        lac_buffer_add(&result->cells, "", 1);
        if (cells[c].type == LAC_SQL_TEXT || cells[c].type == LAC_SQL_BLOB) {
            result->is_number[c] = 0;
        }
        lac_buffer_done(&text);
    }
}

/** Characters, as a terminal counts them: near enough. */
static unsigned width_of(const char *text)
{
    unsigned width = 0;
    assert(text != NULL);
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

/** `text` in exactly `width` columns; cut with an ellipsis where it is longer. */
static void add_padded(struct lac_buffer *out, const char *text, unsigned width, bool is_right,
                       bool is_last)
{
    assert(text != NULL);
    unsigned has = width_of(text);
    if (has > width) {
        unsigned shown = 0;
        const char *end = text;
        while (*end != '\0' && (shown < width - 2 || ((unsigned char)*end & 0xC0) == 0x80)) {
            shown += ((unsigned char)end[1] & 0xC0) != 0x80;
            end++;
        }
        lac_buffer_add(out, text, (size_t)(end - text));
        lac_buffer_puts(out, "..");
        return;
    }
    if (is_right) {
        lac_buffer_printf(out, "%*s", (int)(width - has), "");
    }
    lac_buffer_puts(out, text);
    if (!is_right && !is_last) {
        lac_buffer_printf(out, "%*s", (int)(width - has), "");
    }
}

static void add_line(struct lac_sql_result *result, const char *const *texts,
                     const unsigned *widths)
{
    for (unsigned c = 0; c < result->column_count; c++) {
        lac_buffer_puts(&result->out, c > 0 ? "  " : "");
        add_padded(&result->out, texts[c], widths[c], result->is_number[c] != 0,
                   c + 1 == result->column_count);
    }
    lac_buffer_puts(&result->out, "\n");
}

static void write_table(struct lac_sql_result *result)
{
    unsigned count = result->column_count;
    unsigned *widths = calloc(count + 1, sizeof(*widths));
    const char **texts = calloc(count + 1, sizeof(*texts));
    const char *next = result->cells.bytes;
    if (widths == NULL || texts == NULL || result->cells.status != LAC_OK) {
        result->out.status = LAC_ERR_NOMEM;
    } else if (count > 0 && (next != NULL || result->row_count == 0)) {
        for (unsigned c = 0; c < count; c++) {
            widths[c] = width_of(result->names[c]);
        }
        for (uint64_t r = 0; r < result->row_count; r++) {
            for (unsigned c = 0; c < count; c++, next += strlen(next) + 1) {
                unsigned width = width_of(next);
                width = result->width > 0 && width > CELL_WIDTH_MAX ? CELL_WIDTH_MAX : width;
                widths[c] = width > widths[c] ? width : widths[c];
            }
        }
        add_line(result, (const char *const *)result->names, widths);
        next = result->cells.bytes;
        for (uint64_t r = 0; r < result->row_count; r++) {
            for (unsigned c = 0; c < count; c++, next += strlen(next) + 1) {
                texts[c] = next;
            }
            add_line(result, texts, widths);
            if (result->out.size_bytes > FLUSH_BYTES) {
                flush(result);
            }
        }
    }
    free(widths);
    free((void *)texts);
}

/* -- the sink -------------------------------------------------------------------------------- */

static bool keep_names(struct lac_sql_result *result, const char *const *names, unsigned count)
{
    result->names = calloc(count + 1, sizeof(*result->names));
    result->is_number = malloc(count + 1);
    if (result->names == NULL || result->is_number == NULL) {
        return false;
    }
    memset(result->is_number, 1, count + 1);
    for (unsigned c = 0; c < count; c++) {
        struct lac_buffer shown = {0};
        add_shown(&shown, names[c], strlen(names[c]));
        result->names[c] = shown.bytes != NULL ? shown.bytes : strdup("");
        if (result->names[c] == NULL) {
            return false;
        }
    }
    return true;
}

static bool take_columns(void *context, const char *const *names, unsigned count)
{
    struct lac_sql_result *result = context;
    if (result->form == LAC_SQL_FORM_JSON) {
        add_json_columns(result, names, count);
    } else if (result->form == LAC_SQL_FORM_CSV) {
        for (unsigned c = 0; c < count; c++) {
            lac_buffer_puts(&result->out, c > 0 ? "," : "");
            lac_csv_text(&result->out, names[c], strlen(names[c]));
        }
        lac_buffer_puts(&result->out, "\r\n");
    } else if (!keep_names(result, names, count)) {
        result->out.status = LAC_ERR_NOMEM;
    }
    result->column_count = count;
    return result->out.status == LAC_OK;
}

static bool take_row(void *context, const struct lac_sql_cell *cells, unsigned count)
{
    struct lac_sql_result *result = context;
    if (result->row_max > 0 && result->row_count >= result->row_max) {
        result->cut = "rows";
        return false;
    }
    size_t before = result->out.size_bytes;
    if (result->form == LAC_SQL_FORM_JSON) {
        add_json_row(result, cells, count);
    } else if (result->form == LAC_SQL_FORM_CSV) {
        add_csv_row(result, cells, count);
    } else {
        add_table_row(result, cells, count);
    }
    if (result->bytes_max > 0 && result->out.size_bytes > result->bytes_max) {
        result->out.size_bytes = before; /* without the row that does not fit */
        result->cut = "bytes";
        return false;
    }
    result->row_count++;
    if (result->out.size_bytes > FLUSH_BYTES) {
        flush(result);
    }
    return result->out.status == LAC_OK && result->cells.status == LAC_OK && !result->has_failed;
}

struct lac_sql_sink lac_sql_result_sink(struct lac_sql_result *result)
{
    return (struct lac_sql_sink){take_columns, take_row, result};
}

enum lac_status lac_sql_result_finish(struct lac_sql_result *result)
{
    if (result->form == LAC_SQL_FORM_JSON) {
        lac_buffer_printf(&result->out, "],\"row_count\":%" PRIu64 ",\"cut\":%s%s%s}\n",
                          result->row_count, result->cut != NULL ? "\"" : "",
                          result->cut != NULL ? result->cut : "null",
                          result->cut != NULL ? "\"" : "");
    } else if (result->form == LAC_SQL_FORM_TABLE) {
        write_table(result);
    }
    flush(result);
    return result->out.status != LAC_OK ? result->out.status
           : result->has_failed         ? LAC_ERR_IO
                                        : LAC_OK;
}

void lac_sql_result_done(struct lac_sql_result *result)
{
    for (unsigned c = 0; result->names != NULL && c < result->column_count; c++) {
        free(result->names[c]);
    }
    free(result->names);
    free(result->is_number);
    lac_buffer_done(&result->out);
    lac_buffer_done(&result->cells);
}
