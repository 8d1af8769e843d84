#include "analysis/import/tables/table_import.h"

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/tables/tables_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Calls that sums may become slices of; a row beyond it is one slice for all of its calls. */
enum { CALLS_MAX = 4 << 20 };

/* ---- recognition ---- */

/* The first lines hold a heading, or are what nvprof prints before one. */
bool lac_tables_is_table(const uint8_t *head, size_t size_bytes)
{
    static const char NVPROF[] = "NVPROF is profiling process ";
    struct lac_table_heading heading;
    size_t at = 0;
    size_t count = 0;
    if (size_bytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) {
        at = 3;
    }
    if (memchr(head, '\0', size_bytes) != NULL ||
        (at < size_bytes && (head[at] == '{' || head[at] == '<'))) {
        return false;
    }
    struct lac_table_field fields[LAC_TABLE_FIELDS_MAX];
    char line[LAC_SOURCE_PEEK_MAX];
    bool is_table = false;
    size_bytes = size_bytes < sizeof(line) ? size_bytes : sizeof(line);
    while (at < size_bytes && !is_table) {
        const uint8_t *newline = memchr(head + at, '\n', size_bytes - at);
        size_t past = newline == NULL ? size_bytes : (size_t)(newline - head);
        size_t size = past - at;
        memcpy(line, head + at, size);
        while (size > 0 && line[size - 1] == '\r') {
            size--;
        }
        is_table = size > 2 && line[0] == '=' && line[1] == '=' &&
                   memmem(line, size, NVPROF, strlen(NVPROF)) != NULL;
        is_table = is_table || lac_table_log_is_heading(line, size, fields);
        memcpy(line, head + at, size);
        is_table = is_table || lac_table_heading_read(line, size, &heading, fields, &count);
        at = past + 1;
    }
    return is_table;
}

/* ---- rows ---- */

static enum lac_status read_row(struct lac_tables *tables)
{
    switch (tables->heading.kind) {
    case LAC_TABLE_TIMED:
        return lac_table_timed_row(tables);
    case LAC_TABLE_SUMS:
        if (tables->has_timed) {
            lac_model_report(tables->model, LAC_REPORT_INFO, "sums_left_out", 1,
                             tables->lines.offset_bytes,
                             "Rows of sums beside rows with times were left out.");
            return LAC_OK;
        }
        return lac_table_sums_row(tables);
    case LAC_TABLE_LAUNCHES:
    case LAC_TABLE_METRICS:
        return lac_table_launch_row(tables);
    case LAC_TABLE_COUNTERS:
        return lac_table_counters_row(tables);
    case LAC_TABLE_TORCH:
        return lac_table_torch_row(tables);
    case LAC_TABLE_NONE:
    case LAC_TABLE_LOG:
    case LAC_TABLE_DMON:
    case LAC_TABLE_NMON:
        break;
    }
    return LAC_OK;
}

/* nvprof's text names a section on its first row only: " GPU activities:  99.3%  1.2s ...". The
 * other rows begin with a number, one field short. */
static void split_row(struct lac_tables *tables, char *line, size_t size)
{
    size_t most = tables->heading.split == LAC_TABLE_CSV ? LAC_TABLE_FIELDS_MAX
                                                         : tables->heading.column_count;
    struct lac_table_field text = lac_field_trimmed((struct lac_table_field){line, size});
    bool has_type = tables->heading.split == LAC_TABLE_SPACED &&
                    tables->heading.kind == LAC_TABLE_SUMS &&
                    tables->heading.column_of[LAC_ROLE_TYPE] == 0;
    if (!has_type || text.size == 0) {
        tables->field_count =
            lac_table_split(line, size, tables->heading.split, tables->fields, most);
        return;
    }
    const char *colon = memchr(text.text, ':', text.size);
    bool names_section = text.text[0] >= 'A' && text.text[0] <= 'Z' && colon != NULL;
    size_t past = names_section ? (size_t)(colon + 1 - line) : 0;
    tables->fields[0] =
        (struct lac_table_field){text.text, names_section ? past - (size_t)(text.text - line) : 0};
    tables->field_count = 1 + lac_table_split(line + past, size - past, LAC_TABLE_SPACED,
                                              tables->fields + 1, most - 1);
}

/* "==42== API calls:" of older versions, which have no column for it. */
static void note_section(struct lac_tables *tables, const char *line, size_t size)
{
    struct lac_table_field text = {line, size};
    if (lac_field_has(text, "API calls:")) {
        tables->section = LAC_SLICE_API;
    } else if (lac_field_has(text, "Profiling result:")) {
        tables->section = LAC_SLICE_OTHER;
    }
}

static bool ends_table(const struct lac_tables *tables, const char *line, size_t size)
{
    struct lac_table_field text = lac_field_trimmed((struct lac_table_field){line, size});
    return text.size == 0 || line[0] == '=' || lac_field_begins(text, "Processing [") ||
           (tables->heading.split == LAC_TABLE_SPACED && lac_field_begins(text, "Regs: ")) ||
           (tables->heading.kind == LAC_TABLE_TORCH && lac_field_begins(text, "Self CPU time"));
}

/* What is kept of rows until the next is complete. */
static enum lac_status end_rows(struct lac_tables *tables)
{
    const enum lac_status status = lac_table_launch_end(tables);
    return status == LAC_OK ? lac_table_counters_end(tables) : status;
}

static enum lac_status on_heading(struct lac_tables *tables, const struct lac_table_heading *read)
{
    enum lac_status status = end_rows(tables);
    tables->heading = *read;
    tables->is_first_row = true;
    if (tables->model->info.format == LAC_FORMAT_UNKNOWN) {
        tables->model->info.format = read->format;
    }
    if (status == LAC_OK && (read->kind == LAC_TABLE_LAUNCHES || read->kind == LAC_TABLE_METRICS)) {
        status = lac_table_launches_begin(tables);
    }
    if (status == LAC_OK && read->kind == LAC_TABLE_COUNTERS) {
        status = lac_table_counters_begin(tables);
    }
    return status;
}

/* The line may be a heading: it is taken over or left alone. */
static enum lac_status try_heading(struct lac_tables *tables, char *line, size_t size,
                                   bool *ret_is_heading)
{
    struct lac_table_heading heading;
    char *copy = NULL;
    size_t count = 0;
    *ret_is_heading = false;
    if (size > 0 && ((line[0] >= '0' && line[0] <= '9') || line[0] == '{')) {
        return LAC_OK; /* most lines, soon told */
    }
    copy = malloc(size + 1);
    if (copy == NULL) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    memcpy(copy, line, size);
    *ret_is_heading = lac_table_heading_read(copy, size, &heading, tables->fields, &count);
    tables->field_count = count;
    enum lac_status status = *ret_is_heading ? on_heading(tables, &heading) : LAC_OK;
    free(copy);
    return status;
}

static bool is_rule(const char *line, size_t size)
{
    struct lac_table_field text = lac_field_trimmed((struct lac_table_field){line, size});
    return text.size > 2 && text.text[0] == '-' && text.text[1] == '-' && text.text[2] == '-';
}

static enum lac_status on_line(struct lac_tables *tables, char *line, size_t size)
{
    bool is_heading = false;
    bool is_log = false;
    enum lac_status status = LAC_OK;
    if (tables->log != NULL) {
        return lac_table_log_line(tables, line, size);
    }
    if (tables->model->info.format == LAC_FORMAT_UNKNOWN) {
        status = lac_table_log_begin(tables, line, size, &is_log);
        if (status != LAC_OK || is_log) {
            return status;
        }
    }
    status = try_heading(tables, line, size, &is_heading);
    if (status != LAC_OK || is_heading) {
        return status;
    }
    if (ends_table(tables, line, size)) {
        note_section(tables, line, size);
        tables->heading.kind = LAC_TABLE_NONE;
        return end_rows(tables);
    }
    if (tables->heading.kind == LAC_TABLE_NONE || is_rule(line, size)) {
        return LAC_OK;
    }
    split_row(tables, line, size);
    tables->lines.row_count++;
    tables->model->info.event_count++;
    if (tables->field_count == SIZE_MAX) {
        if (memchr(line, '"', size) == NULL) {
            return lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                            "a row of more than %d columns", LAC_TABLE_FIELDS_MAX);
        }
        lac_tables_drop(tables, "row_damaged", "Rows whose quotes do not close were dropped.");
        return LAC_OK;
    }
    bool is_first = tables->is_first_row;
    tables->is_first_row = false;
    bool is_launch = tables->heading.kind == LAC_TABLE_LAUNCHES;
    if (is_first && !is_launch && lac_table_units_read(tables)) {
        tables->model->info.event_count--;
        return LAC_OK;
    }
    return read_row(tables);
}

/* ---- all of it ---- */

static enum lac_status read_all(struct lac_tables *tables)
{
    enum lac_status status = LAC_OK;
    while (status == LAC_OK) {
        char *line = NULL;
        size_t size = 0;
        status = lac_table_line(&tables->lines, &line, &size);
        if (status != LAC_OK || line == NULL) {
            break;
        }
        status = on_line(tables, line, size);
    }
    if (status == LAC_OK) {
        status = end_rows(tables);
    }
    if (status == LAC_OK) {
        status = lac_table_log_end(tables);
    }
    if (status == LAC_OK && tables->slice_count == 0 && tables->model->sample_count == 0 &&
        tables->log == NULL) {
        status = lac_fail(tables->reterr, LAC_ERR_CORRUPT, 0,
                          "the table has no row that could be read: a profile of nothing, or one "
                          "cut off before its rows");
    }
    if (status == LAC_OK && tables->has_timed && tables->has_sums) {
        status = lac_fail(tables->reterr, LAC_ERR_CORRUPT, 0,
                          "a summary comes before the table with times: give each its own file");
    }
    return status;
}

static void report_all(struct lac_tables *tables)
{
    tables->model->info.has_no_time = tables->has_sums;
    tables->model->info.slice_count = tables->slice_count;
    if (tables->merged_count > 0) {
        lac_model_report(tables->model, LAC_REPORT_INFO, "calls_merged", tables->merged_count, 0,
                         "The table counts more calls than are kept apart: rows that came after "
                         "the first 4 million calls are shown as one call each.");
    }
    const struct lac_source *source = tables->lines.source;
    if (lac_source_damage(source) != NULL) {
        lac_model_report(tables->model, LAC_REPORT_REPAIRED, "input_damaged", 1, 0,
                         lac_source_damage(source));
    }
}

static void tables_done(struct lac_tables *tables)
{
    lac_table_lines_done(&tables->lines);
    lac_table_launches_done(tables);
    lac_table_counters_done(tables);
    lac_table_log_done(tables);
    lac_builder_destroy(tables->builder);
    free(tables);
}

enum lac_status lac_tables_import(struct lac_source *source,
                                  const struct lac_import_options *options, size_t window_bytes,
                                  const char *name, struct lac_model **ret_model,
                                  struct lac_error *reterr)
{
    struct lac_tables *tables = calloc(1, sizeof(*tables));
    (void)window_bytes;
    *ret_model = NULL;
    if (tables == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    tables->options = options;
    tables->reterr = reterr;
    tables->section = LAC_SLICE_OTHER;
    tables->calls_left = CALLS_MAX;
    tables->lines =
        (struct lac_table_lines){.source = source, .options = options, .reterr = reterr};
    enum lac_status status = lac_tables_pass(tables, lac_builder_create(&tables->builder));
    if (status == LAC_OK) {
        tables->model = lac_builder_model(tables->builder);
        lac_builder_use_crew(tables->builder, options->crew);
        tables->model->info.rank = -1;
        tables->model->info.world_size = -1;
        status =
            lac_tables_pass(tables, lac_strings_intern(&tables->model->strings, name, strlen(name),
                                                       &tables->model->info.name));
    }
    if (status == LAC_OK) {
        status = read_all(tables);
    }
    if (status == LAC_OK) {
        report_all(tables);
        tables->model->info.expanded_bytes = tables->lines.next_bytes;
        status = lac_tables_pass(tables, lac_builder_finish(tables->builder, 0, ret_model));
        tables->builder = status == LAC_OK ? NULL : tables->builder;
    }
    tables_done(tables);
    return status;
}
