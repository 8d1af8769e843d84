/*
 * JSON of the Firefox Profiler, which samply and others write, too: tables of stacks, frames and
 * functions that name each other by row, and for each thread samples with their times.
 *
 * The processed form has a list a column, and in newer files tables that all threads share; the form
 * that Firefox itself hands out ("Gecko") has rows with a schema, and processes inside processes.
 *
 * Source: github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md and
 * gecko-profile-format.md
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Processes in processes; times beyond are none: 146 years. */
enum { PROCESS_DEPTH_MAX = 8 };
#define TIME_MOST_NS ((double)((int64_t)1 << 62))

bool lac_firefox_is_its_own(const uint8_t *head, size_t size_bytes)
{
    static const char *const SIGNS[] = {"\"preprocessedProfileVersion\"", "\"markerSchema\"",
                                        "\"subcategories\"", "\"gcpoison\""};
    size_t at = 0;
    while (at < size_bytes && (head[at] == ' ' || head[at] == '\n' || head[at] == '\r')) {
        at++;
    }
    bool is_it =
        at < size_bytes && head[at] == '{' && lac_document_has(head, size_bytes, "\"meta\"");
    bool has_sign = false;
    for (size_t i = 0; i < LAC_COUNT_OF(SIGNS) && is_it && !has_sign; i++) {
        has_sign = lac_document_has(head, size_bytes, SIGNS[i]);
    }
    return is_it && has_sign && !lac_document_has(head, size_bytes, "\"traceEvents\"");
}

/* -- tables ------------------------------------------------------------------------------------ */

/** A column of a table, whichever way it is written. */
struct column {
    const struct lac_plain *cells; /**< or rows of cells */
    int64_t place;                 /**< in a row; -1: `cells` are the cells */
};

static struct column column_of(const struct lac_plain *table, const char *name)
{
    const struct lac_plain *schema = lac_plain_get(table, "schema");
    int64_t place = -1;
    if (lac_plain_integer(lac_plain_get(schema, name), &place) && place >= 0 &&
        place <= UINT32_MAX) {
        return (struct column){.cells = lac_plain_get(table, "data"), .place = place};
    }
    return (struct column){.cells = schema != NULL ? NULL : lac_plain_get(table, name),
                           .place = -1};
}

static uint32_t rows_of(struct column column)
{
    const bool is_list = column.cells != NULL && lac_plain_is(column.cells, LAC_PLAIN_LIST);
    return is_list ? column.cells->count : 0;
}

static const struct lac_plain *cell(struct column column, uint32_t row)
{
    const struct lac_plain *value = lac_plain_at(column.cells, row);
    return column.place < 0 ? value : lac_plain_at(value, (uint32_t)column.place);
}

/** A row that another table names. @return false: none, or not there */
static bool row_at(struct column column, uint32_t row, uint32_t count, uint32_t *ret_row)
{
    int64_t index = -1;
    if (!lac_plain_integer(cell(column, row), &index) || index < 0 || index >= count) {
        return false;
    }
    *ret_row = (uint32_t)index;
    return true;
}

/** A stack of the thread `thread`, or of none yet. */
struct known_stack {
    uint32_t thread;
    uint32_t stack;
};

/** The tables that a thread's samples name, and what is known of them already. */
struct tables {
    const struct lac_plain *stack_table; /**< whose columns these are */
    const struct lac_plain *texts;
    struct column prefix, frame;            /**< of stacks */
    struct column func, location;           /**< of frames */
    struct column name, file, line, source; /**< of functions */
    struct column source_file;
    uint32_t *frame_names; /**< string ids, or LAC_NONE */
    struct known_stack *stacks;
};

struct reader {
    struct lac_profile_file document;
    struct tables tables;
    uint32_t thread_count; /**< so far; those that are read count from 1 */
    const char *unit;      /**< of weights without times */
    bool has_kind;         /**< the first thread said what samples are */
    bool is_timed;
};

static void forget_tables(struct tables *tables)
{
    free(tables->frame_names);
    free(tables->stacks);
    *tables = (struct tables){.stack_table = NULL};
}

static enum lac_status learn_tables(struct reader *reader, const struct lac_plain *thread)
{
    struct tables *tables = &reader->tables;
    const struct lac_plain *shared = lac_plain_get(reader->document.root, "shared");
    const struct lac_plain *stack_table = lac_plain_get(thread, "stackTable");
    const struct lac_plain *home = stack_table != NULL ? thread : shared;
    stack_table = lac_plain_get(home, "stackTable");
    if (stack_table != NULL && stack_table == tables->stack_table) {
        return LAC_OK;
    }
    if (stack_table == NULL) { /* the thread before may have had one */
        forget_tables(tables);
        return LAC_OK;
    }
    const struct lac_plain *frame_table = lac_plain_get(home, "frameTable");
    const struct lac_plain *func_table = lac_plain_get(home, "funcTable");
    const struct lac_plain *texts = lac_plain_get(thread, "stringArray");
    const struct lac_plain *sources = lac_plain_get(shared, "sources");
    texts = texts != NULL ? texts : lac_plain_get(thread, "stringTable");
    forget_tables(tables);
    *tables = (struct tables){
        .stack_table = stack_table,
        .texts = texts != NULL ? texts : lac_plain_get(shared, "stringArray"),
        .prefix = column_of(stack_table, "prefix"),
        .frame = column_of(stack_table, "frame"),
        .func = column_of(frame_table, "func"),
        .location = column_of(frame_table, "location"),
        .name = column_of(func_table, "name"),
        .file = column_of(func_table, "fileName"),
        .line = column_of(func_table, "lineNumber"),
        .source = column_of(func_table, "source"),
        .source_file = column_of(sources, "filename"),
    };
    const size_t frames = (size_t)rows_of(tables->func) + rows_of(tables->location);
    tables->frame_names = malloc((frames + 1) * sizeof(*tables->frame_names));
    tables->stacks = calloc((size_t)rows_of(tables->frame) + 1, sizeof(*tables->stacks));
    if (tables->frame_names == NULL || tables->stacks == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(tables->frame_names, 0xff, (frames + 1) * sizeof(*tables->frame_names));
    return LAC_OK;
}

static const struct lac_plain *text_at(const struct tables *tables, struct column column,
                                       uint32_t row)
{
    uint32_t text = 0;
    return row_at(column, row, UINT32_MAX, &text) ? lac_plain_at(tables->texts, text) : NULL;
}

/* -- stacks ------------------------------------------------------------------------------------ */

static enum lac_status name_frame(struct reader *reader, uint32_t frame, uint32_t *ret_name)
{
    struct tables *tables = &reader->tables;
    const bool is_gecko = tables->location.cells != NULL;
    uint32_t func = 0;
    int64_t line = 0;
    enum lac_status status = LAC_OK;
    if (tables->frame_names[frame] == LAC_NONE) {
        const struct lac_plain *name = NULL;
        const struct lac_plain *file = NULL;
        if (is_gecko) {
            name = text_at(tables, tables->location, frame);
        } else if (row_at(tables->func, frame, rows_of(tables->name), &func)) {
            uint32_t source = 0;
            name = text_at(tables, tables->name, func);
            file = row_at(tables->source, func, rows_of(tables->source_file), &source)
                       ? text_at(tables, tables->source_file, source)
                       : text_at(tables, tables->file, func);
            if (!lac_plain_integer(cell(tables->line, func), &line)) {
                line = 0;
            }
        }
        status =
            lac_document_frame(&reader->document, name, file, line, &tables->frame_names[frame]);
    }
    *ret_name = tables->frame_names[frame];
    return status;
}

/* The stack of a row: down to what is known of this thread, and up again. A row names an earlier
 * one, so that none contains itself. */
static enum lac_status find_stack(struct reader *reader, uint32_t row, uint32_t bottom,
                                  uint32_t *ret_stack)
{
    struct tables *tables = &reader->tables;
    const uint32_t frames =
        tables->location.cells != NULL ? rows_of(tables->location) : rows_of(tables->func);
    uint32_t rows[LAC_STACK_FRAMES_MAX];
    uint32_t depth = 0;
    uint32_t at = row;
    uint32_t stack = bottom;
    for (bool goes_on = true; goes_on;) {
        if (tables->stacks[at].thread == reader->thread_count) {
            stack = tables->stacks[at].stack;
            break;
        }
        if (depth == LAC_STACK_FRAMES_MAX || !lac_document_visit(&reader->document, 1)) {
            return LAC_ERR_LIMIT;
        }
        rows[depth++] = at;
        goes_on = row_at(tables->prefix, at, at, &at);
    }
    while (depth > 0) {
        uint32_t frame = 0;
        uint32_t name = 0;
        at = rows[--depth];
        enum lac_status status = LAC_OK;
        if (row_at(tables->frame, at, frames, &frame)) {
            status = name_frame(reader, frame, &name);
        } else {
            lac_document_drop(&reader->document, "frame_not_there",
                              "frames of stacks that are not in the file");
            continue;
        }
        if (status == LAC_OK) {
            status = lac_stacks_push(reader->document.profile.stacks, stack, name, &stack);
        }
        if (status != LAC_OK) {
            return status;
        }
        tables->stacks[at] = (struct known_stack){.thread = reader->thread_count, .stack = stack};
    }
    *ret_stack = stack;
    return LAC_OK;
}

/* -- samples ----------------------------------------------------------------------------------- */

/** What a thread's samples are given by. */
struct samples {
    struct column stack, time, delta, weight;
    double base_ms, interval_ms; /**< when its process began, since 1970; 0: not said */
    double at_ms;                /**< of the sample before, where distances are written */
};

/* Samples that were alike are one with a weight, at the time of the last. */
static enum lac_status add_times(struct reader *reader, const struct samples *samples,
                                 uint32_t stack, double weight)
{
    const double step_ms = samples->interval_ms > 0.0 ? samples->interval_ms : 1.0;
    enum lac_status status = LAC_OK;
    if (weight != floor(weight) || weight < 0.0 || weight > 1e9 ||
        !lac_document_visit(&reader->document, (uint64_t)weight)) {
        lac_document_drop(&reader->document, "weight_not_understood",
                          "samples that count a fraction, less than nothing or too much");
        return LAC_OK;
    }
    for (double left = weight; left > 0.0 && status == LAC_OK; left -= 1.0) {
        const double whole_ms = floor(samples->base_ms); /* ns since 1970 do not fit a double */
        const double rest_ms =
            samples->base_ms - whole_ms + samples->at_ms - (left - 1.0) * step_ms;
        if (!(fabs(rest_ms) * 1e6 + whole_ms * 1e6 < TIME_MOST_NS)) {
            lac_document_drop(&reader->document, "time_not_understood", "samples without a time");
            return LAC_OK;
        }
        status = lac_stacks_sample(reader->document.profile.stacks, stack,
                                   (int64_t)whole_ms * 1000000 + llround(rest_ms * 1e6));
    }
    return status;
}

static enum lac_status add_weight(struct reader *reader, uint32_t stack, double weight)
{
    const double scaled = reader->unit == NULL ? weight * 1e6 : weight;
    if (!(scaled >= 0.0) || scaled > 9e15) {
        lac_document_drop(&reader->document, "weight_not_understood",
                          "weights that are negative or beyond 2^53");
        return LAC_OK;
    }
    return lac_stacks_weigh(reader->document.profile.stacks, stack, llround(scaled), 0);
}

static enum lac_status read_sample(struct reader *reader, struct samples *samples, uint32_t row,
                                   uint32_t bottom)
{
    uint32_t at = 0;
    uint32_t stack = 0;
    double number = 0.0;
    double weight = 1.0;
    reader->document.profile.model->info.event_count++;
    if (lac_plain_number(cell(samples->time, row), &number)) {
        samples->at_ms = number;
    } else if (lac_plain_number(cell(samples->delta, row), &number)) {
        samples->at_ms += number;
    } else if (reader->is_timed) {
        lac_document_drop(&reader->document, "time_not_understood", "samples without a time");
        return LAC_OK;
    }
    if (!row_at(samples->stack, row, rows_of(reader->tables.frame), &at)) {
        return LAC_OK; /* nothing ran */
    }
    (void)lac_plain_number(cell(samples->weight, row), &weight);
    enum lac_status status = find_stack(reader, at, bottom, &stack);
    if (status != LAC_OK || stack == bottom) {
        return status;
    }
    return reader->is_timed ? add_times(reader, samples, stack, weight)
                            : add_weight(reader, stack, weight);
}

/* Whether samples are times, or weights of which unit: the first thread says it for all. */
static bool agrees(struct reader *reader, const struct lac_plain *table)
{
    const struct lac_plain *type = lac_plain_get(table, "weightType");
    const bool has_weights = lac_plain_is(lac_plain_get(table, "weight"), LAC_PLAIN_LIST);
    const bool is_bytes = has_weights && lac_plain_equals(type, "bytes");
    const bool is_timed = !is_bytes && !(has_weights && lac_plain_equals(type, "tracing-ms"));
    const char *unit = is_bytes ? "bytes" : NULL;
    if (!reader->has_kind) {
        reader->has_kind = true;
        reader->is_timed = is_timed;
        reader->unit = unit;
    }
    return reader->is_timed == is_timed && (reader->unit != NULL) == (unit != NULL);
}

/* -- threads ----------------------------------------------------------------------------------- */

/** Numbers are also written as text. @return -1: none */
static int64_t number_of(const struct lac_plain *value)
{
    int64_t number = 0;
    if (lac_plain_integer(value, &number)) {
        return number;
    }
    bool is_number = lac_plain_is(value, LAC_PLAIN_TEXT) && value->count > 0 && value->count < 18;
    for (uint32_t i = 0; is_number && i < value->count; i++) {
        is_number = value->text[i] >= '0' && value->text[i] <= '9';
        number = number * 10 + (value->text[i] - '0');
    }
    return is_number ? number : -1;
}

static enum lac_status read_thread(struct reader *reader, const struct lac_plain *thread,
                                   const struct lac_plain *meta)
{
    const struct lac_plain *table = lac_plain_get(thread, "samples");
    const struct lac_plain *name = lac_plain_get(thread, "name");
    struct lac_stacks *stacks = reader->document.profile.stacks;
    struct samples samples = {.stack = column_of(table, "stack"),
                              .time = column_of(table, "time"),
                              .delta = column_of(table, "timeDeltas"),
                              .weight = column_of(table, "weight")};
    const uint32_t count = rows_of(samples.stack);
    uint32_t name_id = 0;
    uint32_t bottom = 0;
    reader->thread_count++;
    if (count == 0) {
        return LAC_OK; /* most threads of a browser */
    }
    if (!agrees(reader, table)) {
        lac_document_drop(&reader->document, "unit_differs",
                          "threads whose samples count something else than those of the first");
        return LAC_OK;
    }
    if (!lac_plain_number(lac_plain_get(meta, "startTime"), &samples.base_ms) ||
        !(samples.base_ms >= 0.0 && samples.base_ms < 4e12)) {
        samples.base_ms = 0.0;
    }
    (void)lac_plain_number(lac_plain_get(meta, "interval"), &samples.interval_ms);
    enum lac_status status = learn_tables(reader, thread);
    if (status == LAC_OK && lac_plain_is(name, LAC_PLAIN_TEXT)) {
        status = lac_stacks_name(stacks, name->text, name->count, &name_id);
    }
    if (status == LAC_OK) {
        const int64_t pid = number_of(lac_plain_get(thread, "pid"));
        status = lac_stacks_numbered_thread(stacks, pid < 0 ? 0 : pid,
                                            number_of(lac_plain_get(thread, "tid")),
                                            reader->thread_count, name_id, &bottom);
    }
    for (uint32_t i = 0; i < count && status == LAC_OK && reader->tables.stack_table != NULL; i++) {
        status = read_sample(reader, &samples, i, bottom);
    }
    return status;
}

static void tell_of_markers(struct reader *reader, const struct lac_plain *thread)
{
    const struct lac_plain *markers = lac_plain_get(thread, "markers");
    const uint32_t count = rows_of(column_of(markers, "name"));
    if (count > 0) {
        lac_model_report(reader->document.profile.model, LAC_REPORT_INFO, "markers_not_shown",
                         count, 0, "markers beside the samples are left out");
    }
}

/* Recursion: to PROCESS_DEPTH_MAX. */
static enum lac_status read_process(struct reader *reader, const struct lac_plain *process,
                                    unsigned depth)
{
    const struct lac_plain *threads = lac_plain_get(process, "threads");
    const struct lac_plain *processes = lac_plain_get(process, "processes");
    const struct lac_plain *meta = lac_plain_get(process, "meta");
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0;
         lac_plain_is(threads, LAC_PLAIN_LIST) && i < threads->count && status == LAC_OK; i++) {
        status = read_thread(reader, threads->items[i], meta);
        tell_of_markers(reader, threads->items[i]);
    }
    for (uint32_t i = 0; depth < PROCESS_DEPTH_MAX && lac_plain_is(processes, LAC_PLAIN_LIST) &&
                         i < processes->count && status == LAC_OK;
         i++) {
        status = read_process(reader, processes->items[i], depth + 1);
    }
    return status;
}

enum lac_status lac_firefox_import(struct lac_source *source,
                                   const struct lac_import_options *options, size_t window_bytes,
                                   const char *name, struct lac_model **ret_model,
                                   struct lac_error *reterr)
{
    struct reader reader = {.thread_count = 0};
    double interval_ms = 0.0;
    *ret_model = NULL;
    enum lac_status status = lac_document_open(&reader.document, source, options, window_bytes,
                                               name, LAC_DOCUMENT_JSON, reterr);
    if (status == LAC_OK) {
        struct lac_profile *profile = &reader.document.profile;
        status = lac_document_begin(&reader.document, LAC_FORMAT_FIREFOX);
        if (status == LAC_OK) {
            status = lac_profile_failed(profile, read_process(&reader, reader.document.root, 0));
        }
        const struct lac_plain *meta = lac_plain_get(reader.document.root, "meta");
        const bool has_period = lac_plain_number(lac_plain_get(meta, "interval"), &interval_ms) &&
                                interval_ms > 0.0 && interval_ms < 1e6;
        status = lac_profile_close(profile, status, "profile of the Firefox Profiler", reader.unit,
                                   has_period ? llround(interval_ms * 1e6) : 0, ret_model);
    }
    forget_tables(&reader.tables);
    lac_document_close(&reader.document);
    return status;
}
