/* What there is: processes, tracks, devices, strings, counters, and the trace itself. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* -- trace ----------------------------------------------------------------------------------- */

static const struct lac_sql_column trace_columns[] = {
    {"key", "TEXT", "name, format, host, t0_ns, duration_ns, ...", LAC_SQL_WORDS_PLAIN},
    {"value", "TEXT", "text or number; NULL unknown", LAC_SQL_WORDS_GIVEN},
};

static const char *const trace_keys[] = {
    "name",         "format",        "host",           "t0_ns", "duration_ns",
    "event_count",  "dropped_count", "repaired_count", "rank",  "world_size",
    "is_simulated", "slice_count",   "verdict"};

static enum lac_status count_trace(struct lac_sql_trace *trace, uint64_t *ret_count,
                                   struct lac_error *reterr)
{
    const struct lac_analysis *analysis = NULL;
    *ret_count = LAC_COUNT_OF(trace_keys);
    return lac_sql_trace_analysis(trace, &analysis, reterr);
}

static void trace_value(struct lac_sql_trace *trace, uint64_t row, sqlite3_context *out)
{
    const struct lac_trace_info *info = &trace->head->info;
    const int64_t numbers[] = {info->t0_ns,
                               info->duration_ns,
                               (int64_t)info->event_count,
                               (int64_t)info->dropped_count,
                               (int64_t)info->repaired_count,
                               info->rank < 0 ? LAC_UNKNOWN_NS : info->rank,
                               info->world_size < 0 ? LAC_UNKNOWN_NS : info->world_size,
                               info->is_simulated,
                               (int64_t)info->slice_count};
    if (row == 0 || row == 2) {
        lac_sql_put_string(out, trace, row == 0 ? info->name : info->host);
    } else if (row == 1) {
        lac_sql_put_text(out, lac_trace_format_name(info->format));
    } else if (row - 3 < LAC_COUNT_OF(numbers)) {
        lac_sql_put_ns(out, numbers[row - 3]);
    } else {
        lac_sql_put_text(out, trace->analysis != NULL ? trace->analysis->verdict.text : NULL);
    }
}

static void trace_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                       sqlite3_context *out)
{
    (void)state;
    if (column == 0) {
        lac_sql_put_text(out, trace_keys[row]);
    } else {
        trace_value(trace, row, out);
    }
}

static const struct lac_sql_rows trace_rows = {.count = count_trace, .cell = trace_cell};

/* -- processes, devices, strings --------------------------------------------------------------- */

static const struct lac_sql_column process_columns[] = {
    {"id", "INTEGER", "number of the process in the trace", LAC_SQL_WORDS_PLAIN},
    {"process_id", "TEXT", "as recorded", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "as recorded", LAC_SQL_WORDS_ARGV},
    {"labels", "TEXT", "as recorded", LAC_SQL_WORDS_GIVEN},
    {"is_gpu", "INTEGER", "1: a group of rows for a device, no process of the host",
     LAC_SQL_WORDS_PLAIN},
};

static enum lac_status count_processes(struct lac_sql_trace *trace, uint64_t *ret_count,
                                       struct lac_error *reterr)
{
    (void)reterr;
    *ret_count = trace->head->process_count;
    return LAC_OK;
}

static void process_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                         sqlite3_context *out)
{
    const struct lac_process *process = &trace->head->processes[row];
    (void)state;
    switch ((int)column) {
    case 0:
        sqlite3_result_int64(out, (int64_t)row);
        break;
    case 1:
        lac_sql_put_string(out, trace, process->id_text);
        break;
    case 2:
        lac_sql_put_string(out, trace, process->name);
        break;
    case 3:
        lac_sql_put_string(out, trace, process->labels);
        break;
    default:
        sqlite3_result_int(out, process->is_gpu);
    }
}

static const struct lac_sql_rows process_rows = {.count = count_processes, .cell = process_cell};

static const struct lac_sql_column device_columns[] = {
    {"id", "INTEGER", "number of the device, as recorded", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "NVIDIA H100, ...", LAC_SQL_WORDS_PLAIN},
    {"compute_capability", "TEXT", "9.0, ...; NULL unknown", LAC_SQL_WORDS_PLAIN},
    {"multiprocessors", "INTEGER", "NULL unknown", LAC_SQL_WORDS_PLAIN},
    {"memory_bytes", "INTEGER", "NULL unknown", LAC_SQL_WORDS_PLAIN},
};

static enum lac_status count_devices(struct lac_sql_trace *trace, uint64_t *ret_count,
                                     struct lac_error *reterr)
{
    (void)reterr;
    *ret_count = trace->head->device_count;
    return LAC_OK;
}

static void device_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                        sqlite3_context *out)
{
    const struct lac_device *device = &trace->head->devices[row];
    char text[32];
    (void)state;
    switch ((int)column) {
    case 0:
        sqlite3_result_int64(out, device->id);
        break;
    case 1:
        lac_sql_put_string(out, trace, device->name);
        break;
    case 2:
        if (device->cc_major > 0) {
            (void)snprintf(text, sizeof(text), "%d.%d", device->cc_major, device->cc_minor);
            sqlite3_result_text(out, text, -1, SQLITE_TRANSIENT);
        }
        break;
    case 3:
        lac_sql_put_optional(out, device->sm_count > 0 ? device->sm_count : -1);
        break;
    default:
        lac_sql_put_optional(out, device->memory_bytes > 0 ? device->memory_bytes : -1);
    }
}

static const struct lac_sql_rows device_rows = {.count = count_devices, .cell = device_cell};

static const struct lac_sql_column string_columns[] = {
    {"id", "INTEGER", "number of the string in the trace", LAC_SQL_WORDS_PLAIN},
    {"text", "TEXT", "a name, an id or a template of arguments", LAC_SQL_WORDS_ARGS},
};

static enum lac_status count_strings(struct lac_sql_trace *trace, uint64_t *ret_count,
                                     struct lac_error *reterr)
{
    (void)reterr;
    *ret_count = trace->head->strings.count;
    return LAC_OK;
}

static void string_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                        sqlite3_context *out)
{
    const struct lac_strings *strings = &trace->head->strings;
    (void)state;
    if (column == 0) {
        sqlite3_result_int64(out, (int64_t)row);
    } else {
        sqlite3_result_text(out, lac_strings_get(strings, (uint32_t)row),
                            (int)lac_strings_length(strings, (uint32_t)row), SQLITE_STATIC);
    }
}

static const struct lac_sql_rows string_rows = {.count = count_strings, .cell = string_cell};

/* -- tracks, threads, streams ------------------------------------------------------------------ */

enum track_column {
    TRACK_ID,
    TRACK_KIND,
    TRACK_NAME,
    TRACK_PROCESS,
    TRACK_PROCESS_ID,
    TRACK_THREAD_ID,
    TRACK_STREAM,
    TRACK_DEVICE,
    TRACK_ROLE,
    TRACK_SLICES,
    TRACK_SAMPLES,
};

static const struct lac_sql_column track_columns[] = {
    [TRACK_ID] = {"id", "INTEGER", "number of the track in the trace", LAC_SQL_WORDS_PLAIN},
    [TRACK_KIND] = {"kind", "TEXT",
                    "thread, stream, counter, async, marks, gpu_range, steps or gaps",
                    LAC_SQL_WORDS_PLAIN},
    [TRACK_NAME] = {"name", "TEXT", "as recorded", LAC_SQL_WORDS_TRACK},
    [TRACK_PROCESS] = {"process", "INTEGER", "processes.id, NULL of derived tracks",
                       LAC_SQL_WORDS_PLAIN},
    [TRACK_PROCESS_ID] = {"process_id", "TEXT", "as recorded", LAC_SQL_WORDS_PLAIN},
    [TRACK_THREAD_ID] = {"thread_id", "TEXT", "as recorded, NULL of what is no thread",
                         LAC_SQL_WORDS_PLAIN},
    [TRACK_STREAM] = {"stream", "INTEGER", "number of the GPU stream, NULL of a thread",
                      LAC_SQL_WORDS_PLAIN},
    [TRACK_DEVICE] = {"device", "INTEGER", "devices.id, NULL on the host", LAC_SQL_WORDS_PLAIN},
    [TRACK_ROLE] =
        {"role", "TEXT",
         "main, worker, autograd, pin; of a stream collectives, copies or gpu; NULL unknown",
         LAC_SQL_WORDS_PLAIN},
    [TRACK_SLICES] = {"slice_count", "INTEGER", "slices on it", LAC_SQL_WORDS_PLAIN},
    [TRACK_SAMPLES] = {"sample_count", "INTEGER", "samples of a counter", LAC_SQL_WORDS_PLAIN},
};

/** Numbers of the tracks that a table lists. */
struct track_list {
    uint32_t count;
    uint32_t tracks[];
};

static enum lac_status list_tracks(struct lac_sql_trace *trace, int kind, void **ret_state,
                                   uint64_t *ret_count)
{
    const struct lac_model *head = trace->head;
    struct track_list *list = malloc(sizeof(*list) + head->track_count * sizeof(uint32_t));
    if (list == NULL) {
        return LAC_ERR_NOMEM;
    }
    list->count = 0;
    for (uint32_t t = 0; t < head->track_count; t++) {
        if (kind < 0 || (int)head->tracks[t].kind == kind) {
            list->tracks[list->count++] = t;
        }
    }
    *ret_state = list;
    *ret_count = list->count;
    return LAC_OK;
}

static enum lac_status open_tracks(struct lac_sql_trace *trace,
                                   const struct lac_sql_arguments *arguments, void **ret_state,
                                   uint64_t *ret_count, struct lac_error *reterr)
{
    (void)arguments;
    (void)reterr;
    return list_tracks(trace, -1, ret_state, ret_count);
}

static enum lac_status open_threads(struct lac_sql_trace *trace,
                                    const struct lac_sql_arguments *arguments, void **ret_state,
                                    uint64_t *ret_count, struct lac_error *reterr)
{
    (void)arguments;
    (void)reterr;
    return list_tracks(trace, LAC_TRACK_THREAD, ret_state, ret_count);
}

static enum lac_status open_streams(struct lac_sql_trace *trace,
                                    const struct lac_sql_arguments *arguments, void **ret_state,
                                    uint64_t *ret_count, struct lac_error *reterr)
{
    (void)arguments;
    (void)reterr;
    return list_tracks(trace, LAC_TRACK_STREAM, ret_state, ret_count);
}

static void put_track(struct lac_sql_trace *trace, uint32_t number, enum track_column column,
                      sqlite3_context *out)
{
    const struct lac_track *track = &trace->head->tracks[number];
    bool has_process = track->process < trace->head->process_count;
    bool is_counter = track->kind == LAC_TRACK_COUNTER;
    bool is_named = is_counter || track->kind == LAC_TRACK_ASYNC; /* whose id is the name */
    bool is_stream = track->kind == LAC_TRACK_STREAM || track->kind == LAC_TRACK_GPU_RANGE;
    switch ((int)column) {
    case TRACK_ID:
        sqlite3_result_int64(out, number);
        break;
    case TRACK_KIND:
        lac_sql_put_text(out, lac_track_kind_name(track->kind));
        break;
    case TRACK_NAME:
        lac_sql_put_string(out, trace, track->name);
        break;
    case TRACK_PROCESS:
        lac_sql_put_optional(out, has_process ? (int64_t)track->process : -1);
        break;
    case TRACK_PROCESS_ID:
        lac_sql_put_string(out, trace,
                           has_process ? trace->head->processes[track->process].id_text : 0);
        break;
    case TRACK_THREAD_ID:
        lac_sql_put_string(out, trace, is_stream || is_named ? 0 : track->id_text);
        break;
    case TRACK_STREAM:
        lac_sql_put_optional(out, is_stream ? track->tid : -1);
        break;
    case TRACK_DEVICE:
        lac_sql_put_optional(out, track->device);
        break;
    case TRACK_ROLE:
        lac_sql_put_text(out, lac_trace_file_track_role(trace->file, number));
        break;
    case TRACK_SLICES:
        sqlite3_result_int64(out, is_counter ? 0 : (int64_t)track->count);
        break;
    case TRACK_SAMPLES:
        sqlite3_result_int64(out, is_counter ? (int64_t)track->count : 0);
        break;
    default:
        break;
    }
}

static void track_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                       sqlite3_context *out)
{
    const struct track_list *list = state;
    put_track(trace, list->tracks[row], (enum track_column)column, out);
}

static const struct lac_sql_rows track_rows = {
    .open = open_tracks, .cell = track_cell, .close = free};
static const struct lac_sql_rows thread_rows = {
    .open = open_threads, .cell = track_cell, .close = free};
static const struct lac_sql_rows stream_rows = {
    .open = open_streams, .cell = track_cell, .close = free};

/* -- counters and arrows ----------------------------------------------------------------------- */

static const struct lac_sql_column counter_columns[] = {
    {"track", "INTEGER", "tracks.id", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "of the counter", LAC_SQL_WORDS_TRACK},
    {"device", "INTEGER", "devices.id, NULL on the host", LAC_SQL_WORDS_PLAIN},
    {"time_ns", "INTEGER", "since the start of the trace", LAC_SQL_WORDS_PLAIN},
    {"value", "REAL", "in the unit that the name says", LAC_SQL_WORDS_PLAIN},
};

/** Where reading is: rows come in order, so the track of the last row is near. */
struct samples {
    const struct lac_model *details;
    uint32_t track;
};

static enum lac_status open_samples(struct lac_sql_trace *trace,
                                    const struct lac_sql_arguments *arguments, void **ret_state,
                                    uint64_t *ret_count, struct lac_error *reterr)
{
    struct samples *samples = calloc(1, sizeof(*samples));
    (void)arguments;
    if (samples == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = samples;
    enum lac_status status = lac_sql_trace_details(trace, &samples->details, reterr);
    *ret_count = status == LAC_OK ? samples->details->sample_count : 0;
    return status;
}

static void sample_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                        sqlite3_context *out)
{
    struct samples *samples = state;
    const struct lac_model *head = trace->head;
    while (samples->track + 1 < head->track_count &&
           (head->tracks[samples->track].kind != LAC_TRACK_COUNTER ||
            row >= head->tracks[samples->track].first + head->tracks[samples->track].count)) {
        samples->track++;
    }
    switch ((int)column) {
    case 0:
        sqlite3_result_int64(out, samples->track);
        break;
    case 1:
        lac_sql_put_string(out, trace, head->tracks[samples->track].name);
        break;
    case 2:
        lac_sql_put_optional(out, head->tracks[samples->track].device);
        break;
    case 3:
        sqlite3_result_int64(out, samples->details->sample_ts_ns[row]);
        break;
    default:
        lac_sql_put_real(out, samples->details->sample_value[row]);
    }
}

static const struct lac_sql_rows sample_rows = {
    .open = open_samples, .cell = sample_cell, .close = free};

static const struct lac_sql_column arrow_columns[] = {
    {"source", "INTEGER", "slices.id", LAC_SQL_WORDS_PLAIN},
    {"destination", "INTEGER", "slices.id", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "as recorded", LAC_SQL_WORDS_PLAIN},
};

static enum lac_status count_arrows(struct lac_sql_trace *trace, uint64_t *ret_count,
                                    struct lac_error *reterr)
{
    const struct lac_model *details = NULL;
    enum lac_status status = lac_sql_trace_details(trace, &details, reterr);
    *ret_count = status == LAC_OK ? details->flow_count : 0;
    return status;
}

static void arrow_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                       sqlite3_context *out)
{
    const struct lac_flow *flow = &trace->details->flows[row];
    (void)state;
    if (column == 2) {
        lac_sql_put_string(out, trace, flow->name);
    } else {
        lac_sql_put_id(out, column == 0 ? flow->src : flow->dst);
    }
}

static const struct lac_sql_rows arrow_rows = {.count = count_arrows, .cell = arrow_cell};

/* -- all ------------------------------------------------------------------------------------- */

#define ROW(table_name, noun, maker, table_doc)                                                    \
    {                                                                                              \
        .name = (table_name), .doc = (table_doc), .columns = noun##_columns,                       \
        .column_count = LAC_COUNT_OF(noun##_columns), .rows = &(maker)                             \
    }

const struct lac_sql_table lac_sql_thing_tables[] = {
    ROW("trace", trace, trace_rows, "the trace itself, a line a fact"),
    ROW("processes", process, process_rows, "processes of the host, and groups of GPU rows"),
    ROW("tracks", track, track_rows, "rows of the timeline: threads, streams, counters, ..."),
    ROW("threads", track, thread_rows, "tracks that are host threads"),
    ROW("streams", track, stream_rows, "tracks that are GPU streams"),
    ROW("devices", device, device_rows, "GPUs"),
    ROW("counters", counter, sample_rows, "samples of counters, in order of time by counter"),
    ROW("arrows", arrow, arrow_rows, "arrows that the trace recorded itself, launches aside"),
    ROW("strings", string, string_rows, "every distinct text of the trace"),
};
const unsigned lac_sql_thing_table_count = LAC_COUNT_OF(lac_sql_thing_tables);
