/* critical_path(step): what bounded a step on its device, from its first moment to its last: the
 * operations while the device worked, and what it waited for while it did not. */

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/slice_columns.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum column {
    COLUMN_STEP,
    COLUMN_POSITION,
    COLUMN_START,
    COLUMN_DUR,
    COLUMN_END,
    COLUMN_KIND,
    COLUMN_NAME,
    COLUMN_SLICE,
    COLUMN_CAUSE,
    COLUMN_ROOT,
    COLUMN_WHY,
    COLUMN_ARGUMENT,
};

static const struct lac_sql_column columns[] = {
    [COLUMN_STEP] = {"step", "INTEGER", "steps.step", LAC_SQL_WORDS_PLAIN},
    [COLUMN_POSITION] = {"position", "INTEGER", "from 0, in the order of time",
                         LAC_SQL_WORDS_PLAIN},
    [COLUMN_START] = {"start_ns", "INTEGER", "since the start of the trace", LAC_SQL_WORDS_PLAIN},
    [COLUMN_DUR] = {"dur_ns", "INTEGER",
                    "how long it bounded the step; of a step they sum to its length",
                    LAC_SQL_WORDS_PLAIN},
    [COLUMN_END] = {"end_ns", "INTEGER", "start_ns + dur_ns", LAC_SQL_WORDS_PLAIN},
    [COLUMN_KIND] = {"kind", "TEXT",
                     "kernel, copy, memset or gap; of several at once what computes before what "
                     "communicates before what copies, then the one that ends last",
                     LAC_SQL_WORDS_PLAIN},
    [COLUMN_NAME] = {"name", "TEXT", "of the operation; of a gap its cause", LAC_SQL_WORDS_PLAIN},
    [COLUMN_SLICE] = {"slice", "INTEGER", "slices.id", LAC_SQL_WORDS_PLAIN},
    [COLUMN_CAUSE] = {"cause", "TEXT", "of a gap, as in gaps; else NULL", LAC_SQL_WORDS_PLAIN},
    [COLUMN_ROOT] = {"root", "INTEGER",
                     "slices.id of what opened the gap: a blocking call, a late batch",
                     LAC_SQL_WORDS_PLAIN},
    [COLUMN_WHY] = {"why", "TEXT", "what opened the gap, in a sentence", LAC_SQL_WORDS_SENTENCE},
    [COLUMN_ARGUMENT] = {"of_step", "INTEGER", "steps.step; default all", LAC_SQL_WORDS_PLAIN},
};

/** Work of the device, or a piece of its idle time. */
struct piece {
    int64_t start_ns, end_ns;
    uint32_t slice, name;
    uint8_t kind;
    uint8_t rank; /**< what the device does first of several */
};

enum { RANK_COMPUTE = 0, RANK_COMM, RANK_COPY, RANK_MEMSET, RANK_IDLE };

struct pieces {
    struct piece *at;
    uint64_t count, capacity;
};

struct link {
    struct piece piece;
    uint32_t step, position;
    uint32_t root; /**< slice that opened the gap it is part of; LAC_NONE */
    char *why;     /**< what opened that gap, in a sentence; NULL */
};

struct path {
    struct link *at;
    uint64_t count, capacity;
};

static void close_path(void *state)
{
    struct path *path = state;
    for (uint64_t i = 0; i < path->count; i++) {
        free(path->at[i].why);
    }
    free(path->at);
    free(path);
}

static bool add_piece(struct pieces *pieces, const struct piece *piece)
{
    if (pieces->count == pieces->capacity) {
        uint64_t capacity = pieces->capacity > 0 ? pieces->capacity * 2 : 1024;
        struct piece *at = realloc(pieces->at, capacity * sizeof(*at));
        if (at == NULL) {
            return false;
        }
        pieces->at = at;
        pieces->capacity = capacity;
    }
    pieces->at[pieces->count++] = *piece;
    return true;
}

/** @return a rank, -1: no piece, -2: out of memory */
static int rank_of(struct lac_sql_trace *trace, uint8_t kind, uint32_t name)
{
    switch (kind) {
    case LAC_SLICE_KERNEL: {
        const struct lac_name_class *name_class = lac_sql_trace_class(trace, name);
        return name_class == NULL ? -2 : name_class->is_comm ? RANK_COMM : RANK_COMPUTE;
    }
    case LAC_SLICE_COPY:
        return RANK_COPY;
    case LAC_SLICE_MEMSET:
        return RANK_MEMSET;
    case LAC_SLICE_GAP:
        return RANK_IDLE;
    default:
        return -1;
    }
}

static enum lac_status read_chunk(struct lac_sql_trace *trace, const struct lac_sql_chunk *chunk,
                                  int64_t t0_ns, int64_t t1_ns, struct pieces *pieces)
{
    const struct lac_slices *at = &chunk->columns->at;
    const uint64_t first = trace->chunks[chunk->chunk].first;
    for (uint64_t i = 0; i < at->count; i++) {
        const int64_t end_ns = at->start_ns[i] + at->dur_ns[i];
        if (at->start_ns[i] >= t1_ns || end_ns <= t0_ns || at->dur_ns[i] <= 0) {
            continue;
        }
        const int rank = rank_of(trace, at->kind[i], at->name[i]);
        const struct piece piece = {.start_ns = at->start_ns[i],
                                    .end_ns = end_ns,
                                    .slice = (uint32_t)(first + i),
                                    .name = at->name[i],
                                    .kind = at->kind[i],
                                    .rank = (uint8_t)rank};
        if (rank == -2 || (rank >= 0 && !add_piece(pieces, &piece))) {
            return LAC_ERR_NOMEM;
        }
    }
    return LAC_OK;
}

static int by_start(const void *a, const void *b)
{
    const struct piece *left = a;
    const struct piece *right = b;
    return left->start_ns != right->start_ns
               ? (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns)
               : (left->slice > right->slice) - (left->slice < right->slice);
}

/** Everything of the device inside [t0, t1), by start. */
static enum lac_status read_pieces(struct lac_sql_trace *trace, int64_t device, int64_t t0_ns,
                                   int64_t t1_ns, struct pieces *pieces, struct lac_error *reterr)
{
    const unsigned wanted = (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR) |
                            (1U << LAC_COLUMN_NAME) | (1U << LAC_COLUMN_KIND);
    struct lac_sql_chunk chunk = {0};
    enum lac_status status = LAC_OK;
    for (uint32_t c = 0; c < trace->chunk_count && status == LAC_OK; c++) {
        const struct lac_chunk_entry *entry = &trace->chunks[c];
        const struct lac_track *track = &trace->head->tracks[entry->track];
        const bool is_its = track->device == device &&
                            (track->kind == LAC_TRACK_STREAM || track->kind == LAC_TRACK_GAPS);
        if (!is_its || entry->start_first >= t1_ns || entry->end_last <= t0_ns) {
            continue;
        }
        if (lac_sql_trace_is_late(trace)) {
            status = lac_fail(reterr, LAC_ERR_LIMIT, 0, "critical_path() had its time");
            break;
        }
        status = lac_sql_chunk_get(trace, c, wanted, &chunk, reterr);
        status = status ? status : read_chunk(trace, &chunk, t0_ns, t1_ns, pieces);
    }
    lac_sql_chunk_done(trace, &chunk);
    if (pieces->count > 0) {
        qsort(pieces->at, pieces->count, sizeof(*pieces->at), by_start);
    }
    return status;
}

/** Append, or lengthen the last one when it goes on. */
static bool add_link(struct path *path, const struct piece *piece, uint32_t step,
                     uint32_t *position)
{
    struct link *last = path->at != NULL && path->count > 0 ? &path->at[path->count - 1] : NULL;
    if (last != NULL && last->step == step && last->piece.slice == piece->slice &&
        last->piece.end_ns == piece->start_ns) {
        last->piece.end_ns = piece->end_ns;
        return true;
    }
    if (path->at == NULL || path->count == path->capacity) {
        uint64_t capacity = path->capacity > 0 ? path->capacity * 2 : 1024;
        struct link *at = realloc(path->at, capacity * sizeof(*at));
        if (at == NULL) {
            return false;
        }
        path->at = at;
        path->capacity = capacity;
    }
    path->at[path->count++] =
        (struct link){.piece = *piece, .step = step, .position = (*position)++, .root = LAC_NONE};
    return true;
}

/** Pieces that are under way: as many as a device has streams at once. */
struct open {
    const struct piece **at;
    size_t count, capacity;
};

static bool open_piece(struct open *open, const struct piece *piece)
{
    if (open->count == open->capacity) {
        size_t capacity = open->capacity > 0 ? open->capacity * 2 : 64;
        const struct piece **at = realloc((void *)open->at, capacity * sizeof(*at));
        if (at == NULL) {
            return false;
        }
        open->at = at;
        open->capacity = capacity;
    }
    open->at[open->count++] = piece;
    return true;
}

/** The one that bounds, and in `*end_ns` when the first of them ends. Those that have ended go. */
static const struct piece *choose(struct open *open, int64_t now_ns, int64_t *end_ns)
{
    const struct piece *best = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < open->count; i++) {
        const struct piece *piece = open->at[i];
        if (piece->end_ns <= now_ns) {
            continue;
        }
        open->at[kept++] = piece;
        *end_ns = piece->end_ns < *end_ns ? piece->end_ns : *end_ns;
        if (best == NULL || piece->rank < best->rank ||
            (piece->rank == best->rank && piece->end_ns > best->end_ns)) {
            best = piece;
        }
    }
    open->count = kept;
    return best;
}

/** The chain of one step. @param next the first piece that may begin in it or later; moves on */
static bool walk(const struct pieces *pieces, uint64_t *next, struct open *open, int64_t t0_ns,
                 int64_t t1_ns, uint32_t step, struct path *path)
{
    uint32_t position = 0;
    for (int64_t now_ns = t0_ns; now_ns < t1_ns;) {
        while (*next < pieces->count && pieces->at[*next].start_ns <= now_ns) {
            if (!open_piece(open, &pieces->at[(*next)++])) {
                return false;
            }
        }
        int64_t end_ns = *next < pieces->count && pieces->at[*next].start_ns < t1_ns
                             ? pieces->at[*next].start_ns
                             : t1_ns;
        const struct piece *best = choose(open, now_ns, &end_ns);
        if (best != NULL) {
            struct piece piece = *best;
            piece.start_ns = now_ns;
            piece.end_ns = end_ns;
            if (!add_link(path, &piece, step, &position)) {
                return false;
            }
        }
        now_ns = end_ns;
    }
    return true;
}

/** What opened the gaps that idle pieces are part of. Both lists are in the order of time. */
static enum lac_status join_gaps(struct lac_sql_trace *trace, int64_t device, struct path *path,
                                 struct lac_error *reterr)
{
    struct lac_gap_reader *reader = NULL;
    struct lac_gap_row gap = {.start_ns = INT64_MIN};
    enum lac_status status = lac_gap_reader_open(trace->file, device, 0, &reader, reterr);
    for (uint64_t i = 0; i < path->count && status == LAC_OK; i++) {
        struct link *link = &path->at[i];
        if (link->piece.rank != RANK_IDLE) {
            continue;
        }
        while (status == LAC_OK &&
               (gap.start_ns == INT64_MIN || gap.start_ns + gap.dur_ns <= link->piece.start_ns)) {
            status = lac_gap_reader_next(reader, &gap, reterr);
        }
        if (status == LAC_OK && gap.start_ns <= link->piece.start_ns) {
            link->root = gap.root_slice;
            link->why = strdup(gap.root_cause);
            status = link->why != NULL ? LAC_OK : LAC_ERR_NOMEM;
        }
    }
    lac_gap_reader_close(reader);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status make_path(struct lac_sql_trace *trace, int64_t device,
                                 const struct lac_trace_steps *steps, uint64_t first,
                                 uint64_t count, struct path *path, struct lac_error *reterr)
{
    struct pieces pieces = {0};
    struct open open = {0};
    uint64_t next = 0;
    const uint64_t last = first + count - 1;
    enum lac_status status =
        read_pieces(trace, device, steps->start_ns[first],
                    steps->start_ns[last] + steps->dur_ns[last], &pieces, reterr);
    for (uint64_t s = first; s <= last && status == LAC_OK; s++) {
        const int64_t t0_ns = steps->start_ns[s];
        if (!walk(&pieces, &next, &open, t0_ns, t0_ns + steps->dur_ns[s], (uint32_t)s, path)) {
            status = LAC_ERR_NOMEM;
        }
    }
    if (status == LAC_OK) {
        status = join_gaps(trace, device, path, reterr);
    }
    free((void *)open.at);
    free(pieces.at);
    return status;
}

static enum lac_status open_path(struct lac_sql_trace *trace,
                                 const struct lac_sql_arguments *arguments, void **ret_state,
                                 uint64_t *ret_count, struct lac_error *reterr)
{
    struct lac_trace_steps steps;
    const struct lac_analysis *analysis = NULL;
    const int64_t asked = lac_sql_argument(arguments, 0, -1);
    const bool is_asked =
        arguments->value[0] != NULL && sqlite3_value_type(arguments->value[0]) != SQLITE_NULL;
    struct path *path = calloc(1, sizeof(*path));
    if (path == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = path;
    enum lac_status status = lac_sql_trace_analysis(trace, &analysis, reterr);
    lac_trace_file_steps(trace->file, &steps);
    const bool is_there = !is_asked || (asked >= 0 && (uint64_t)asked < steps.count);
    if (status || analysis == NULL || analysis->main_device == LAC_NONE || steps.count == 0 ||
        !is_there) {
        return status;
    }
    status = make_path(trace, analysis->devices[analysis->main_device].id, &steps,
                       is_asked ? (uint64_t)asked : 0, is_asked ? 1 : steps.count, path, reterr);
    *ret_count = status == LAC_OK ? path->count : 0;
    return status;
}

static void path_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                      sqlite3_context *out)
{
    const struct link *link = &((const struct path *)state)->at[row];
    const struct piece *piece = &link->piece;
    switch ((int)column) {
    case COLUMN_STEP:
        sqlite3_result_int64(out, link->step);
        break;
    case COLUMN_POSITION:
        sqlite3_result_int64(out, link->position);
        break;
    case COLUMN_START:
        sqlite3_result_int64(out, piece->start_ns);
        break;
    case COLUMN_DUR:
        sqlite3_result_int64(out, piece->end_ns - piece->start_ns);
        break;
    case COLUMN_END:
        sqlite3_result_int64(out, piece->end_ns);
        break;
    case COLUMN_KIND:
        lac_sql_put_text(out, lac_slice_kind_name((enum lac_slice_kind)piece->kind));
        break;
    case COLUMN_NAME:
        lac_sql_put_string(out, trace, piece->name);
        break;
    case COLUMN_SLICE:
        lac_sql_put_id(out, piece->slice);
        break;
    case COLUMN_CAUSE:
        lac_sql_put_string(out, trace, piece->rank == RANK_IDLE ? piece->name : 0);
        break;
    case COLUMN_ROOT:
        lac_sql_put_id(out, link->root);
        break;
    default:
        lac_sql_put_text(out, link->why);
    }
}

static const struct lac_sql_rows rows = {.open = open_path, .cell = path_cell, .close = close_path};

const struct lac_sql_table lac_sql_critical_table = {
    .name = "critical_path",
    .doc = "what bounded a step on its device, moment for moment: critical_path(of_step)",
    .columns = columns,
    .column_count = LAC_COUNT_OF(columns),
    .argument_count = 1,
    .rows = &rows,
};
