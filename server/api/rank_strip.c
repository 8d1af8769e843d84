/* A device's row in a picture of many ranks: the coarse tiles say what ran, the gaps why nothing
 * did. */

#include "server/api/rank_strip.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/cause.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "collector/base/count_of.h"
#include "server/store/trace/trace_file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_HEADER_BYTES = 16, CELLS_A_PART = 4 };
/** What counts as a gap in an analysis. */
#define LONG_GAP_NS 10000

/** What a name's slices do: learned once a name. */
enum work {
    WORK_UNASKED = 0,
    WORK_COMM,
    WORK_COPY,
    WORK_NONE,
    WORK_COMPUTE /**< and enum lac_strip_kind above it */
};

struct making {
    struct lac_trace_file *file;
    const struct lac_strip_query *query;
    struct lac_strip *strip;
    uint8_t *kernels; /**< enum work of a kernel by name id */
    struct lac_error *reterr;
};

/** Where part i begins; exact at both ends. */
static int64_t edge_of(const struct lac_strip_query *query, uint32_t i)
{
    assert(query->points > 0);
    const int64_t length_ns = query->t1_ns - query->t0_ns;
    const int64_t whole = length_ns / query->points;
    const int64_t rest = length_ns % query->points;

    return query->t0_ns + whole * i + rest * i / query->points;
}

/** The part that holds t. @param t_ns in the window */
static uint32_t part_at(const struct lac_strip_query *query, int64_t t_ns)
{
    const double share = (double)(t_ns - query->t0_ns) / (double)(query->t1_ns - query->t0_ns);
    const double guess = share * query->points;
    uint32_t part = guess < 0.0 ? 0 : (uint32_t)guess;

    part = part < query->points ? part : query->points - 1;
    while (part > 0 && edge_of(query, part) > t_ns) {
        part--;
    }
    while (part + 1 < query->points && edge_of(query, part + 1) <= t_ns) {
        part++;
    }
    return part;
}

/** Spread `busy_ns` evenly over [start, end) and add it to the parts. */
static void spread(const struct lac_strip_query *query, int64_t start_ns, int64_t end_ns,
                   int64_t busy_ns, int64_t *parts_ns)
{
    const int64_t length_ns = end_ns - start_ns;
    const int64_t from_ns = start_ns > query->t0_ns ? start_ns : query->t0_ns;
    const int64_t to_ns = end_ns < query->t1_ns ? end_ns : query->t1_ns;

    if (from_ns >= to_ns) {
        return;
    }
    for (uint32_t i = part_at(query, from_ns); i < query->points && edge_of(query, i) < to_ns;
         i++) {
        const int64_t left_ns = edge_of(query, i) > from_ns ? edge_of(query, i) : from_ns;
        const int64_t right_ns = edge_of(query, i + 1) < to_ns ? edge_of(query, i + 1) : to_ns;

        parts_ns[i] +=
            busy_ns == length_ns
                ? right_ns - left_ns
                : (int64_t)((double)busy_ns * (double)(right_ns - left_ns) / (double)length_ns);
    }
}

static enum lac_strip_kind kind_of(enum lac_family family)
{
    switch (family) {
    case LAC_FAMILY_GEMM:
    case LAC_FAMILY_MOE:
        return LAC_STRIP_MATRIX;
    case LAC_FAMILY_CONV:
        return LAC_STRIP_CONVOLUTION;
    case LAC_FAMILY_ATTENTION:
        return LAC_STRIP_ATTENTION;
    case LAC_FAMILY_NORM:
    case LAC_FAMILY_SOFTMAX:
    case LAC_FAMILY_OPTIMIZER:
    case LAC_FAMILY_REDUCE:
    case LAC_FAMILY_INDEX:
    case LAC_FAMILY_ELEMENTWISE:
    case LAC_FAMILY_RNG:
    case LAC_FAMILY_FILL:
    case LAC_FAMILY_POOL:
    case LAC_FAMILY_LAYOUT:
    case LAC_FAMILY_COPY:
        return LAC_STRIP_MEMORY;
    case LAC_FAMILY_OTHER:
    case LAC_FAMILY_TRITON:
    case LAC_FAMILY_COMM:
    case LAC_FAMILY_COUNT_:
        break;
    }
    return LAC_STRIP_OTHER;
}

const char *lac_strip_kind_name(enum lac_strip_kind kind)
{
    static const char *const names[] = {[LAC_STRIP_MATRIX] = "matrix",
                                        [LAC_STRIP_CONVOLUTION] = "convolution",
                                        [LAC_STRIP_ATTENTION] = "attention",
                                        [LAC_STRIP_MEMORY] = "memory",
                                        [LAC_STRIP_OTHER] = "other"};

    return names[kind];
}

static enum work work_of(struct making *making, uint8_t kind, uint32_t name)
{
    const struct lac_model *head = lac_trace_file_head(making->file);

    if (kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) {
        return WORK_COPY;
    }
    if (kind != LAC_SLICE_KERNEL || name >= head->strings.count) {
        return WORK_NONE;
    }
    if (making->kernels[name] == WORK_UNASKED) {
        const char *text = lac_model_str(head, name);
        struct lac_name_class name_class;

        lac_names_classify(text, strlen(text), &name_class);
        making->kernels[name] =
            name_class.is_comm ? WORK_COMM : (uint8_t)(WORK_COMPUTE + kind_of(name_class.family));
    }
    return (enum work)making->kernels[name];
}

static void add_work(struct making *making, enum work work, int64_t start_ns, int64_t end_ns,
                     int64_t busy_ns)
{
    const struct lac_strip *strip = making->strip;

    if (work == WORK_COMM || work == WORK_COPY) {
        spread(making->query, start_ns, end_ns, busy_ns,
               work == WORK_COMM ? strip->comm_ns : strip->copy_ns);
    } else if (work >= WORK_COMPUTE) {
        spread(making->query, start_ns, end_ns, busy_ns, strip->kind_ns[work - WORK_COMPUTE]);
    }
}

/** @param first of the tiles that are asked for: a slice on the border of two is in both */
static void add_tile(struct making *making, const struct lac_tile *tile, uint32_t first,
                     bool with_cells)
{
    const int64_t cell_ns = lac_tile_cell_ns(tile->level);
    const int64_t begin_ns = (int64_t)tile->index * LAC_TILE_CELLS * cell_ns;

    for (uint32_t i = 0; i < tile->native_count; i++) {
        const struct lac_tile_native *native = &tile->natives[i];

        if (native->dur_ns > 0 && (tile->index == first || native->start_ns >= begin_ns)) {
            add_work(making, work_of(making, native->kind, native->name), native->start_ns,
                     native->start_ns + native->dur_ns, native->dur_ns);
        }
    }
    for (uint32_t i = 0; with_cells && i < tile->cell_count; i++) {
        const struct lac_tile_cell *cell = &tile->cells[i];
        const int64_t at_ns = begin_ns + (int64_t)cell->cell * cell_ns;

        add_work(making, work_of(making, cell->kind, cell->name), at_ns, at_ns + cell_ns,
                 cell->busy_ns);
    }
}

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static enum lac_status add_batch(struct making *making, const uint8_t *bytes, size_t size_bytes,
                                 uint32_t first, bool with_cells)
{
    size_t at = BATCH_HEADER_BYTES;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK && at + sizeof(uint32_t) <= size_bytes) {
        const uint32_t section_bytes = read_u32(bytes + at);
        struct lac_tile tile = {0};

        if (section_bytes == 0 || section_bytes > size_bytes - at) {
            return LAC_ERR_CORRUPT;
        }
        status = lac_tile_decode(bytes + at, section_bytes, &tile, making->reterr);
        if (status == LAC_OK) {
            add_tile(making, &tile, first, with_cells);
            lac_tile_done(&tile);
        }
        at += section_bytes;
    }
    return status;
}

/** All tiles of a track and level that the window touches. */
static enum lac_status add_level(struct making *making, uint32_t track, uint8_t level,
                                 bool with_cells)
{
    const struct lac_strip_query *query = making->query;
    const int64_t tile_ns = lac_tile_cell_ns(level) * LAC_TILE_CELLS;
    const int64_t from_ns = query->t0_ns > 0 ? query->t0_ns : 0;
    const int64_t duration_ns = lac_trace_file_head(making->file)->info.duration_ns;
    const int64_t to_ns = query->t1_ns - 1 < duration_ns ? query->t1_ns - 1 : duration_ns;
    enum lac_status status = LAC_OK;

    for (int64_t tile = from_ns / tile_ns; tile * tile_ns <= to_ns && status == LAC_OK;
         tile += LAC_TILES_MAX) {
        int64_t last = tile + LAC_TILES_MAX - 1;
        uint8_t *bytes = NULL;
        size_t size_bytes = 0;

        last = last * tile_ns <= to_ns ? last : to_ns / tile_ns;
        status = lac_trace_file_tiles(making->file, level, (uint32_t)tile, (uint32_t)last, &track,
                                      1, &bytes, &size_bytes, making->reterr);
        if (status == LAC_OK) {
            /* what reaches into the second batch was counted in the first */
            status = add_batch(making, bytes, size_bytes,
                               tile == from_ns / tile_ns ? (uint32_t)tile : UINT32_MAX, with_cells);
        }
        free(bytes);
    }
    return status;
}

/** The coarsest level of whose cells several go into a part: a cell does not say where in it the
 *  work was. */
static uint8_t level_of(const struct making *making)
{
    const int64_t part_ns =
        (making->query->t1_ns - making->query->t0_ns) / (int64_t)making->query->points;
    const uint8_t max = lac_trace_file_level_max(making->file);
    uint8_t level = lac_tile_level_min(lac_trace_file_head(making->file)->info.duration_ns);

    while (level < max && lac_tile_cell_ns((uint8_t)(level + 1)) <= part_ns / CELLS_A_PART) {
        level++;
    }
    return level;
}

static enum lac_status add_operations(struct making *making)
{
    const struct lac_model *head = lac_trace_file_head(making->file);
    const uint8_t max = lac_trace_file_level_max(making->file);
    const uint8_t finest = level_of(making);
    enum lac_status status = LAC_OK;

    for (uint32_t t = 0; t < head->track_count && status == LAC_OK; t++) {
        const struct lac_track *track = &head->tracks[t];

        if (track->kind != LAC_TRACK_STREAM || track->device != making->query->device) {
            continue;
        }
        for (uint8_t level = finest; level <= max && status == LAC_OK; level++) {
            status = add_level(making, t, level, level == finest);
        }
    }
    return status;
}

static bool add_gap(void *context, const struct lac_gap_row *gap)
{
    struct making *const making = context;
    const struct lac_strip_query *query = making->query;
    const int64_t end_ns = gap->start_ns + gap->dur_ns;
    const int64_t from_ns = gap->start_ns > query->t0_ns ? gap->start_ns : query->t0_ns;
    const int64_t to_ns = end_ns < query->t1_ns ? end_ns : query->t1_ns;

    if (from_ns >= to_ns) {
        return gap->start_ns < query->t1_ns;
    }
    for (uint32_t i = part_at(query, from_ns); i < query->points && edge_of(query, i) < to_ns;
         i++) {
        const int64_t left_ns = edge_of(query, i) > from_ns ? edge_of(query, i) : from_ns;
        const int64_t right_ns = edge_of(query, i + 1) < to_ns ? edge_of(query, i + 1) : to_ns;
        const double share = (double)(right_ns - left_ns) / (double)gap->dur_ns;

        for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
            making->strip->cause_ns[i][c] += (int64_t)((double)gap->cause_ns[c] * share);
        }
    }
    return true;
}

static enum lac_status add_gaps(struct making *making)
{
    const struct lac_gap_query query = {
        .device = making->query->device, .min_ns = LONG_GAP_NS, .sort = LAC_GAP_SORT_START};

    return lac_trace_file_each_gap(making->file, &query, add_gap, making, making->reterr);
}

/** What computes is the sum of its kinds. */
static void sum_kinds(struct lac_strip *strip)
{
    for (uint32_t i = 0; i < strip->points; i++) {
        for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
            strip->compute_ns[i] += strip->kind_ns[k][i];
        }
    }
}

/** Kinds that ran at the same time share what there is of a part. */
static void share_kinds(struct lac_strip *strip)
{
    for (uint32_t i = 0; i < strip->points; i++) {
        int64_t left_ns = strip->compute_ns[i];
        int64_t sum_ns = 0;

        for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
            sum_ns += strip->kind_ns[k][i];
        }
        for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
            const int64_t whole_ns = strip->kind_ns[k][i];
            /* of what is left: so the last one takes the rest, and nothing is lost to rounding */
            const int64_t part_ns =
                whole_ns == sum_ns ? left_ns
                                   : (int64_t)((double)left_ns * (double)whole_ns / (double)sum_ns);

            strip->kind_ns[k][i] = part_ns;
            left_ns -= part_ns;
            sum_ns -= whole_ns;
        }
    }
}

/** Of what ran at the same time only computing counts, then communication, then copies. */
static void leave_exposed(const struct lac_strip_query *query, struct lac_strip *strip)
{
    for (uint32_t i = 0; i < strip->points; i++) {
        const int64_t left_ns =
            edge_of(query, i) > query->first_ns ? edge_of(query, i) : query->first_ns;
        const int64_t right_ns =
            edge_of(query, i + 1) < query->end_ns ? edge_of(query, i + 1) : query->end_ns;
        int64_t busy_ns = right_ns > left_ns ? right_ns - left_ns : 0;
        int64_t *const parts_ns[] = {&strip->compute_ns[i], &strip->comm_ns[i], &strip->copy_ns[i]};

        for (unsigned c = 0; c < LAC_CAUSE_COUNT_; c++) {
            busy_ns -= strip->cause_ns[i][c];
        }
        for (unsigned p = 0; p < LAC_COUNT_OF(parts_ns); p++) {
            busy_ns = busy_ns > 0 ? busy_ns : 0;
            *parts_ns[p] = *parts_ns[p] < busy_ns ? *parts_ns[p] : busy_ns;
            busy_ns -= *parts_ns[p];
        }
    }
}

enum lac_status lac_strip_make(struct lac_trace_file *file, const struct lac_strip_query *query,
                               struct lac_strip *ret_strip, struct lac_error *reterr)
{
    const struct lac_model *head = lac_trace_file_head(file);
    struct lac_strip strip = {.points = query->points};
    struct making making = {.file = file,
                            .query = query,
                            .strip = &strip,
                            .kernels = calloc((size_t)head->strings.count + 1, 1),
                            .reterr = reterr};
    enum lac_status status = LAC_ERR_NOMEM;

    strip.compute_ns = calloc((size_t)query->points * (3 + LAC_STRIP_KIND_COUNT_), sizeof(int64_t));
    strip.cause_ns = calloc(query->points, sizeof(*strip.cause_ns));
    if (strip.compute_ns != NULL && strip.cause_ns != NULL && making.kernels != NULL) {
        strip.comm_ns = strip.compute_ns + query->points;
        strip.copy_ns = strip.comm_ns + query->points;
        for (unsigned k = 0; k < LAC_STRIP_KIND_COUNT_; k++) {
            strip.kind_ns[k] = strip.copy_ns + (size_t)query->points * (k + 1);
        }
        status = add_operations(&making);
    }
    if (status == LAC_OK) {
        status = add_gaps(&making);
    }
    free(making.kernels);
    if (status != LAC_OK) {
        lac_strip_done(&strip);
        return status;
    }
    sum_kinds(&strip);
    leave_exposed(query, &strip);
    share_kinds(&strip);
    *ret_strip = strip;
    return LAC_OK;
}

void lac_strip_done(struct lac_strip *strip)
{
    free(strip->compute_ns);
    free(strip->cause_ns);
    *strip = (struct lac_strip){0};
}
