/* Tables of a trace: kernels, copies, operators, ranges, calls, steps, gaps, batches, ... */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/api/app.h"
#include "server/export/step_spans.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/store/trace/trace_file.h"
#include "server/tables/launched.h"
#include "server/tables/trace_tables.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What is asked for: a table, and a page of it. */
struct table_request {
    struct lac_table_query query;
    struct lac_step_spans steps;
    uint64_t after; /**< rows before the page */
    uint64_t limit;
};

static const struct {
    const char *word;
    enum lac_table_by bit;
} groupings[] = {
    {"name", LAC_TABLE_BY_NAME},           {"operator", LAC_TABLE_BY_OPERATOR},
    {"track", LAC_TABLE_BY_TRACK},         {"family", LAC_TABLE_BY_FAMILY},
    {"direction", LAC_TABLE_BY_DIRECTION}, {"size", LAC_TABLE_BY_SIZE},
};

/** Words such as "name,operator". @return 0: one of them is none, or not of this table */
static unsigned groupings_of(const char *text, unsigned allowed)
{
    unsigned by = 0;

    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        unsigned bit = 0;

        for (unsigned i = 0; i < LAC_COUNT_OF(groupings); i++) {
            if (strlen(groupings[i].word) == length &&
                strncmp(groupings[i].word, text, length) == 0) {
                bit = groupings[i].bit;
            }
        }
        if ((bit & allowed) == 0) {
            return 0;
        }
        by |= bit;
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return by;
}

static bool read_grouping(const struct lac_request *request, struct lac_response *response,
                          struct lac_table_query *query)
{
    const char *by = lac_target_get(request->target, "by");
    const unsigned allowed = lac_table_by_allowed(query->table);
    char text[160] = "";

    query->by = by != NULL ? groupings_of(by, allowed) : 0;
    if (by == NULL || query->by != 0) {
        return true;
    }
    for (unsigned i = 0; i < LAC_COUNT_OF(groupings); i++) {
        if ((groupings[i].bit & allowed) != 0) {
            const size_t used = strlen(text);

            (void)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? ", " : "",
                           groupings[i].word);
        }
    }
    lac_response_error(response, 400, "bad_request", "by: this table %s%s",
                       allowed != 0 ? "can be grouped by " : "is a list and is not grouped", text);
    return false;
}

/** Column to order by, and its usual direction. */
static bool read_order(const struct lac_request *request, struct lac_response *response,
                       struct lac_table_query *query)
{
    static const char *const orders[] = {"asc", "desc", NULL};
    const char *sort = lac_target_get(request->target, "sort");
    unsigned count;
    const uint8_t *columns = lac_table_columns(query->table, &count);
    const bool is_in_time = query->table == LAC_TABLE_STEPS || query->table == LAC_TABLE_BATCHES;
    int order;

    query->sort = query->table == LAC_TABLE_GAPS          ? LAC_TABLE_DUR_COLUMN
                  : is_in_time                            ? LAC_TABLE_START_COLUMN
                  : query->table == LAC_TABLE_ALLOCATIONS ? LAC_TABLE_BYTES_COLUMN
                                                          : LAC_TABLE_TOTAL_COLUMN;
    if (sort != NULL) {
        bool is_there = false;

        for (unsigned i = 0; i < count && !is_there; i++) {
            const enum lac_table_column column = (enum lac_table_column)columns[i];

            is_there = strcmp(lac_table_head(column)->id, sort) == 0;
            query->sort = is_there ? column : query->sort;
        }
        if (!is_there) {
            lac_response_error(response, 400, "bad_request",
                               "sort: no such column; `columns` of the reply has them");
            return false;
        }
    }
    const enum lac_table_unit unit = lac_table_head(query->sort)->unit;
    const bool is_up = unit == LAC_UNIT_TEXT || unit == LAC_UNIT_AT || unit == LAC_UNIT_CAUSE;

    order = lac_api_choice(request, response, "order", orders, is_up ? 0 : 1);
    query->is_descending = order == 1;
    return order >= 0;
}

static bool read_request(const struct lac_request *request, struct lac_response *response,
                         struct table_request *asked)
{
    struct lac_table_query *query = &asked->query;
    int64_t after;
    int64_t limit;

    if (!lac_api_int(request, response, "t0", 0, LAC_TIME_MAX_NS, 0, &query->t0_ns) ||
        !lac_api_int(request, response, "t1", 0, LAC_TIME_MAX_NS, LAC_TIME_MAX_NS, &query->t1_ns) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX, 0, &after) ||
        !lac_api_int(request, response, "limit", 1, 10000, 500, &limit) ||
        !read_grouping(request, response, query) || !read_order(request, response, query)) {
        return false;
    }
    if (query->t1_ns <= query->t0_ns) {
        lac_response_error(response, 400, "bad_request", "t1 must be larger than t0");
        return false;
    }
    query->text = lac_target_get(request->target, "q");
    asked->after = (uint64_t)after;
    asked->limit = (uint64_t)limit;
    return true;
}

/** The time of steps, instead of t0 to t1: what runs on a device in its steps, the host's between the
 *  host's marks. */
static bool read_steps(struct lac_trace_file *file, const struct lac_request *request,
                       struct lac_response *response, struct table_request *asked)
{
    struct lac_table_query *query = &asked->query;
    const bool is_of_device = query->table == LAC_TABLE_KERNELS ||
                              query->table == LAC_TABLE_COPIES || query->table == LAC_TABLE_STEPS ||
                              query->table == LAC_TABLE_GAPS;

    if (!lac_api_steps_asked(file, request, response, !is_of_device, &asked->steps)) {
        return false;
    }
    if (asked->steps.span_count > 0) {
        query->spans = asked->steps.spans;
        query->span_count = asked->steps.span_count;
        query->step_count = asked->steps.step_count;
        query->t0_ns = query->spans[0].start_ns > 0 ? query->spans[0].start_ns : 0;
        query->t1_ns = query->spans[query->span_count - 1].end_ns;
    }
    return true;
}

/* -- the reply ------------------------------------------------------------------------------- */

static void write_columns(struct lac_json *json, enum lac_table_name table)
{
    unsigned count;
    const uint8_t *columns = lac_table_columns(table, &count);

    lac_json_open(json, "columns", '[');
    for (unsigned i = 0; i < count; i++) {
        const struct lac_table_head *head = lac_table_head((enum lac_table_column)columns[i]);

        lac_json_open(json, NULL, '{');
        lac_json_text(json, "id", head->id);
        lac_json_text(json, "label", head->label);
        lac_json_text(json, "unit", lac_table_unit_word(head->unit));
        lac_json_text(json, "definition", head->definition);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_cells(struct lac_json *json, const char *key, enum lac_table_name table,
                        const struct lac_table_row *row)
{
    unsigned count;
    const uint8_t *columns = lac_table_columns(table, &count);

    lac_json_open(json, key, '[');
    for (unsigned i = 0; i < count; i++) {
        const struct lac_cell *cell = &row->cells[columns[i]];

        switch (cell->type) {
        case LAC_CELL_NONE:
            lac_json_null(json, NULL);
            break;
        case LAC_CELL_INT:
            lac_json_int(json, NULL, cell->integer);
            break;
        case LAC_CELL_REAL:
            lac_json_real(json, NULL, cell->real);
            break;
        case LAC_CELL_TEXT:
            lac_json_text(json, NULL, cell->text);
            break;
        }
    }
    lac_json_close(json, ']');
}

static void write_bins(struct lac_json *json, const struct lac_table_row *row)
{
    if (!row->has_bins) {
        lac_json_null(json, "bins");
        return;
    }
    lac_json_open(json, "bins", '[');
    for (unsigned b = 0; b < LAC_TABLE_BINS; b++) {
        lac_json_uint(json, NULL, row->bins[b]);
    }
    lac_json_close(json, ']');
}

static void write_row(struct lac_json *json, const char *key, enum lac_table_name table,
                      const struct lac_table_row *row)
{
    lac_json_open(json, key, '{');
    write_cells(json, "cells", table, row);
    lac_json_text(json, "short", row->short_name);
    lac_api_write_id(json, "slice", row->slice);
    if (row->start_ns >= 0) {
        lac_json_int(json, "start_ns", row->start_ns);
        lac_json_int(json, "dur_ns", row->dur_ns);
    }
    if (row->device >= 0) {
        lac_json_int(json, "device", row->device);
    }
    write_bins(json, row);
    lac_json_close(json, '}');
}

static void write_table(struct lac_response *response, struct lac_trace_file *file,
                        const struct table_request *asked, const struct lac_table *table)
{
    const struct lac_model *head = lac_trace_file_head(file);
    const enum lac_table_name name = asked->query.table;
    const uint64_t end = asked->after + asked->limit;
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "table", lac_table_word(name));
    lac_json_int(&json, "t0_ns", asked->query.t0_ns);
    lac_json_int(&json, "t1_ns", lac_api_end_ns(head, asked->query.t1_ns));
    lac_json_uint(&json, "steps", table->step_count);
    write_columns(&json, name);
    lac_json_uint(&json, "total", table->count);
    lac_json_bool(&json, "is_cut", table->is_cut);
    lac_json_bool(&json, "has_operators", table->has_operators);
    lac_json_bool(&json, "has_percentiles", table->has_percentiles);
    if (table->has_all) {
        write_row(&json, "all", name, &table->all);
    } else {
        lac_json_null(&json, "all");
    }
    lac_json_open(&json, "rows", '[');
    for (uint64_t i = asked->after; i < end && i < table->count; i++) {
        write_row(&json, NULL, name, &table->rows[i]);
    }
    lac_json_close(&json, ']');
    if (end < table->count) {
        lac_json_int_text(&json, "next", (int64_t)end);
    } else {
        lac_json_null(&json, "next");
    }
    lac_json_close(&json, '}');
}

static bool find_table(const struct lac_request *request, struct lac_response *response,
                       enum lac_table_name *ret_table)
{
    for (unsigned t = 0; t < LAC_TABLE_COUNT_; t++) {
        if (strcmp(lac_table_word((enum lac_table_name)t), request->param[1]) == 0) {
            *ret_table = (enum lac_table_name)t;
            return true;
        }
    }
    lac_response_error(response, 404, "not_found",
                       "no such table: there are kernels, copies, operators, ranges, calls, "
                       "python, allocations, steps, gaps and batches");
    return false;
}

static void answer_table(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct table_request asked = {0};
    struct lac_table table = {0};
    struct lac_error error = {0};
    uint32_t *tracks = NULL;

    if (!find_table(request, response, &asked.query.table) ||
        !read_request(request, response, &asked) || !read_steps(file, request, response, &asked)) {
        lac_step_spans_done(&asked.steps);
        return;
    }
    if (lac_target_get(request->target, "tracks") != NULL) {
        if (!lac_api_tracks_asked(request, response, head->track_count, &tracks,
                                  &asked.query.track_count)) {
            lac_step_spans_done(&asked.steps);
            return;
        }
        asked.query.tracks = tracks;
    }
    if (!lac_api_is_unchanged(request, file, response)) {
        if (lac_table_make(file, &asked.query, &table, &error) == LAC_OK) {
            write_table(response, file, &asked, &table);
        } else {
            lac_api_fail(response, &error);
        }
    }
    lac_table_done(&table);
    lac_step_spans_done(&asked.steps);
    free(tracks);
}

void lac_api_table(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_table);
}

/* -- what a slice launched ------------------------------------------------------------------- */

static void write_launched_row(struct lac_json *json, const struct lac_model *head,
                               const struct lac_slice_row *row)
{
    lac_json_open(json, NULL, '{');
    lac_json_uint(json, "slice", row->slice);
    lac_json_uint(json, "track", row->track);
    lac_json_uint(json, "lane", row->lane);
    lac_api_write_name(json, head, row->name, row->kind);
    lac_json_int(json, "start_ns", row->start_ns);
    lac_json_int(json, "dur_ns", row->dur_ns);
    lac_json_close(json, '}');
}

static void write_launched(struct lac_response *response, const struct lac_model *head,
                           const struct lac_launched *launched)
{
    struct lac_json json;

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "chain", '[');
    for (uint32_t i = 0; i < launched->chain_count; i++) {
        write_launched_row(&json, head, &launched->chain[i]);
    }
    lac_json_close(&json, ']');
    lac_json_uint(&json, "count", launched->count);
    lac_json_int(&json, "total_ns", launched->total_ns);
    lac_json_int(&json, "first_ns", launched->first_ns);
    lac_json_int(&json, "end_ns", launched->end_ns);
    lac_json_bool(&json, "is_cut", launched->is_cut);
    lac_json_open(&json, "launched", '[');
    for (uint32_t i = 0; i < launched->told_count; i++) {
        write_launched_row(&json, head, &launched->told[i]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
}

static void answer_launched(struct lac_trace_file *file, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_launched launched = {0};
    struct lac_error error = {0};
    uint64_t id;

    if (!lac_api_path_number(request, response, 1, UINT32_MAX - 1, &id) ||
        lac_api_is_unchanged(request, file, response)) {
        return;
    }
    if (lac_launched_by(file, (uint32_t)id, &launched, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    write_launched(response, lac_trace_file_head(file), &launched);
    lac_launched_done(&launched);
}

void lac_api_launched(void *app, const struct lac_request *request, struct lac_response *response)
{
    lac_api_answer_trace(app, request, response, answer_launched);
}
