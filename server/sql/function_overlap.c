/* overlap(t0_ns, t1_ns): how long a device computes, communicates and copies, and at once. */

#include "analysis/diagnose/names/names.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/slice_columns.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_columns.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

/** What a device works at. */
enum work { WORK_COMPUTE = 0, WORK_COMM, WORK_COPY, WORK_COUNT };

static const struct lac_sql_column columns[] = {
    {"device", "INTEGER", "devices.id", LAC_SQL_WORDS_PLAIN},
    {"first", "TEXT", "compute, or communication where second is copy", LAC_SQL_WORDS_PLAIN},
    {"second", "TEXT", "communication or copy (memory sets included)", LAC_SQL_WORDS_PLAIN},
    {"first_ns", "INTEGER", "the device does the first, whatever else it does",
     LAC_SQL_WORDS_PLAIN},
    {"second_ns", "INTEGER", "the device does the second", LAC_SQL_WORDS_PLAIN},
    {"both_ns", "INTEGER", "it does both at once", LAC_SQL_WORDS_PLAIN},
    {"second_alone_ns", "INTEGER", "second_ns without both_ns: exposed", LAC_SQL_WORDS_PLAIN},
    {"t0_ns", "INTEGER", "default: the start of the trace", LAC_SQL_WORDS_PLAIN},
    {"t1_ns", "INTEGER", "default: its end", LAC_SQL_WORDS_PLAIN},
};

static const struct {
    enum work first, second;
} pairs[] = {{WORK_COMPUTE, WORK_COMM}, {WORK_COMPUTE, WORK_COPY}, {WORK_COMM, WORK_COPY}};
enum { PAIRS = LAC_COUNT_OF(pairs) };

/** Work begins or ends. */
struct edge {
    int64_t time_ns;
    int8_t change; /**< 1 or -1 */
    uint8_t work;
};

struct edges {
    struct edge *at;
    uint64_t count, capacity;
};

struct overlap {
    int64_t device;
    int64_t ns[1 << WORK_COUNT]; /**< by what is done at once: a bit for each */
};

struct overlaps {
    struct overlap *at;
    uint64_t count;
};

static void close_overlaps(void *state)
{
    struct overlaps *overlaps = state;
    free(overlaps->at);
    free(overlaps);
}

static bool add_edge(struct edges *edges, int64_t time_ns, int8_t change, uint8_t work)
{
    if (edges->count == edges->capacity) {
        uint64_t capacity = edges->capacity > 0 ? edges->capacity * 2 : 4096;
        struct edge *at = realloc(edges->at, capacity * sizeof(*at));
        if (at == NULL) {
            return false;
        }
        edges->at = at;
        edges->capacity = capacity;
    }
    edges->at[edges->count++] = (struct edge){time_ns, change, work};
    return true;
}

/** @return the work, or WORK_COUNT: none; -1 out of memory */
static int work_of(struct lac_sql_trace *trace, uint8_t kind, uint32_t name)
{
    if (kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) {
        return WORK_COPY;
    }
    if (kind != LAC_SLICE_KERNEL) {
        return WORK_COUNT;
    }
    const struct lac_name_class *name_class = lac_sql_trace_class(trace, name);
    return name_class == NULL ? -1 : name_class->is_comm ? WORK_COMM : WORK_COMPUTE;
}

/** Edges of the slices of one chunk inside [t0, t1). */
static enum lac_status read_chunk(struct lac_sql_trace *trace, const struct lac_sql_chunk *chunk,
                                  int64_t t0_ns, int64_t t1_ns, struct edges *edges)
{
    const struct lac_slices *at = &chunk->columns->at;
    for (uint64_t i = 0; i < at->count; i++) {
        int64_t start_ns = at->start_ns[i] > t0_ns ? at->start_ns[i] : t0_ns;
        int64_t end_ns = at->start_ns[i] + at->dur_ns[i];
        end_ns = end_ns < t1_ns ? end_ns : t1_ns;
        int work = end_ns > start_ns ? work_of(trace, at->kind[i], at->name[i]) : WORK_COUNT;
        if (work == WORK_COUNT) {
            continue;
        }
        if (work < 0 || !add_edge(edges, start_ns, 1, (uint8_t)work) ||
            !add_edge(edges, end_ns, -1, (uint8_t)work)) {
            return LAC_ERR_NOMEM;
        }
    }
    return LAC_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct edge *left = a;
    const struct edge *right = b;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static void sweep(struct edges *edges, struct overlap *overlap)
{
    uint64_t open[WORK_COUNT] = {0};
    if (edges->count > 0) {
        qsort(edges->at, edges->count, sizeof(*edges->at), by_time);
    }
    for (uint64_t i = 0; i < edges->count; i++) {
        const struct edge *edge = &edges->at[i];
        unsigned now = 0;
        for (unsigned work = 0; work < WORK_COUNT; work++) {
            now |= (unsigned)(open[work] > 0) << work;
        }
        overlap->ns[now] += i > 0 ? edge->time_ns - edge[-1].time_ns : 0;
        open[edge->work] += (uint64_t)(int64_t)edge->change;
    }
}

static enum lac_status measure(struct lac_sql_trace *trace, int64_t t0_ns, int64_t t1_ns,
                               struct overlap *overlap, struct lac_error *reterr)
{
    const unsigned wanted = (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR) |
                            (1U << LAC_COLUMN_NAME) | (1U << LAC_COLUMN_KIND);
    struct edges edges = {0};
    struct lac_sql_chunk chunk = {0};
    enum lac_status status = LAC_OK;
    for (uint32_t c = 0; c < trace->chunk_count && status == LAC_OK; c++) {
        const struct lac_chunk_entry *entry = &trace->chunks[c];
        const struct lac_track *track = &trace->head->tracks[entry->track];
        if (track->kind != LAC_TRACK_STREAM || track->device != overlap->device ||
            entry->start_first >= t1_ns || entry->end_last <= t0_ns) {
            continue;
        }
        if (lac_sql_trace_is_late(trace)) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, 0, "overlap() had its time");
            break;
        }
        status = lac_sql_chunk_get(trace, c, wanted, &chunk, reterr);
        status = status ? status : read_chunk(trace, &chunk, t0_ns, t1_ns, &edges);
    }
    lac_sql_chunk_done(trace, &chunk);
    if (status == LAC_OK) {
        sweep(&edges, overlap);
    }
    free(edges.at);
    return status;
}

static enum lac_status open_overlaps(struct lac_sql_trace *trace,
                                     const struct lac_sql_arguments *arguments, void **ret_state,
                                     uint64_t *ret_count, struct lac_error *reterr)
{
    struct overlaps *overlaps = calloc(1, sizeof(*overlaps));
    int64_t t0_ns = lac_sql_argument(arguments, 0, 0);
    int64_t t1_ns = lac_sql_argument(arguments, 1, LAC_TIME_MAX_NS);
    enum lac_status status = LAC_OK;
    if (overlaps == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = overlaps;
    overlaps->at = calloc(trace->head->device_count + 1, sizeof(*overlaps->at));
    if (overlaps->at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t d = 0; d < trace->head->device_count && status == LAC_OK; d++) {
        overlaps->at[d].device = trace->head->devices[d].id;
        status = measure(trace, t0_ns, t1_ns, &overlaps->at[d], reterr);
    }
    overlaps->count = trace->head->device_count;
    *ret_count = status == LAC_OK ? overlaps->count * PAIRS : 0;
    return status;
}

/** Time in which the device does all of what `wanted` has bits for. */
static int64_t time_of(const struct overlap *overlap, unsigned wanted)
{
    int64_t ns = 0;
    for (unsigned now = 0; now < LAC_COUNT_OF(overlap->ns); now++) {
        ns += (now & wanted) == wanted ? overlap->ns[now] : 0;
    }
    return ns;
}

static void overlap_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                         sqlite3_context *out)
{
    static const char *const words[] = {"compute", "communication", "copy"};
    const struct overlaps *overlaps = state;
    const struct overlap *overlap = &overlaps->at[row / PAIRS];
    enum work first = pairs[row % PAIRS].first;
    enum work second = pairs[row % PAIRS].second;
    int64_t both_ns = time_of(overlap, 1U << first | 1U << second);
    (void)trace;
    switch (column) {
    case 0:
        sqlite3_result_int64(out, overlap->device);
        break;
    case 1:
        lac_sql_put_text(out, words[first]);
        break;
    case 2:
        lac_sql_put_text(out, words[second]);
        break;
    case 3:
        sqlite3_result_int64(out, time_of(overlap, 1U << first));
        break;
    case 4:
        sqlite3_result_int64(out, time_of(overlap, 1U << second));
        break;
    case 5:
        sqlite3_result_int64(out, both_ns);
        break;
    default:
        sqlite3_result_int64(out, time_of(overlap, 1U << second) - both_ns);
    }
}

static const struct lac_sql_rows rows = {
    .open = open_overlaps, .cell = overlap_cell, .close = close_overlaps};

const struct lac_sql_table lac_sql_overlap_table = {
    .name = "overlap",
    .doc = "what each device does at once, in all or in an interval: overlap(t0_ns, t1_ns)",
    .columns = columns,
    .column_count = LAC_COUNT_OF(columns),
    .argument_count = 2,
    .rows = &rows,
};
