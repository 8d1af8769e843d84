/*
 * Whether workers take turns. Those that hold a lock, or ask one service, do not show it in how
 * long a batch takes alone: the time in the lock's queue is part of every piece of work. It shows
 * in when pieces end. Independent workers end anyhow, two of them now and then at once; those that
 * take turns end one by one, as far apart as the work under the lock takes. And a piece takes as
 * many times longer as others are under way beside it.
 */

#include "analysis/diagnose/loading/loading.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 65536, PIECES_MIN = 12 };

/** One piece of work of one worker. */
struct piece {
    int64_t start_ns, end_ns;
    int64_t cpu_ns; /**< -1 not recorded */
    double beside;  /**< pieces under way during it, itself included, mean */
};

struct pieces {
    struct piece *at;
    uint64_t count;
};

static void add_piece(struct pieces *pieces, int64_t start_ns, int64_t dur_ns, int64_t cpu_ns)
{
    if (pieces->count < PIECES_MAX) {
        pieces->at[pieces->count++] = (struct piece){start_ns, start_ns + dur_ns, cpu_ns, 0.0};
    }
}

/** Items of workers where they were recorded, else their batches. */
static void collect(const struct lac_facts *facts, struct pieces *pieces)
{
    const struct lac_model *model = facts->model;
    for (uint64_t i = 0; i < facts->loader_parts.count; i++) {
        const struct lac_mark *mark = &facts->loader_parts.at[i];
        uint32_t row = model->slices.detail[mark->slice];
        bool is_item =
            strcmp(lac_model_str(model, model->slices.name[mark->slice]), "loader.item") == 0;
        if (is_item && row < model->loader_info_count && model->loader_infos[row].worker >= 0) {
            add_piece(pieces, mark->start_ns, mark->dur_ns, model->loader_infos[row].cpu_ns);
        }
    }
    if (pieces->count >= PIECES_MIN) {
        return;
    }
    pieces->count = 0;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker >= 0) {
            add_piece(pieces, fetch->start_ns, fetch->dur_ns, fetch->cpu_ns);
        }
    }
}

static int by_end(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    const int order = LAC_ORDER(x->end_ns, y->end_ns);
    return order != 0 ? order : LAC_ORDER(x->start_ns, y->start_ns);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return LAC_ORDER(x, y);
}

/** Sum over sorted times up to `count` of how long before `t_ns` each was. */
static double since(const int64_t *times, const double *sums, uint64_t count, int64_t t_ns)
{
    uint64_t low = 0;
    LAC_BISECT(low, count, middle, times[middle] < t_ns);
    return (double)low * (double)(t_ns - times[0]) - sums[low];
}

/** How many pieces were under way during each, on average. */
static enum lac_status count_beside(struct pieces *pieces)
{
    uint64_t count = pieces->count;
    int64_t *times = malloc(2 * count * sizeof(*times));
    double *sums = malloc(2 * (count + 1) * sizeof(*sums));
    if (times == NULL || sums == NULL) {
        free(times);
        free(sums);
        return LAC_ERR_NOMEM;
    }
    int64_t *const starts = times;
    int64_t *const ends = times + count;
    for (uint64_t i = 0; i < count; i++) {
        starts[i] = pieces->at[i].start_ns;
        ends[i] = pieces->at[i].end_ns;
    }
    qsort(starts, count, sizeof(*starts), by_time);
    qsort(ends, count, sizeof(*ends), by_time);
    double *const start_sums = sums;
    double *const end_sums = sums + count + 1;
    start_sums[0] = 0.0;
    end_sums[0] = 0.0;
    for (uint64_t i = 0; i < count; i++) { /* from the first of each: small numbers stay exact */
        start_sums[i + 1] = start_sums[i] + (double)(starts[i] - starts[0]);
        end_sums[i + 1] = end_sums[i] + (double)(ends[i] - ends[0]);
    }
    for (uint64_t i = 0; i < count; i++) {
        struct piece *piece = &pieces->at[i];
        double begun = since(starts, start_sums, count, piece->end_ns) -
                       since(starts, start_sums, count, piece->start_ns);
        double ended = since(ends, end_sums, count, piece->end_ns) -
                       since(ends, end_sums, count, piece->start_ns);
        double length = (double)(piece->end_ns - piece->start_ns);
        piece->beside = length > 0.0 ? (begun - ended) / length : 1.0;
    }
    free(times);
    free(sums);
    return LAC_OK;
}

/** How the ends follow each other; `scratch` holds `count` numbers. */
static void measure_ends(const struct pieces *pieces, double *scratch, struct lac_turns *turns)
{
    uint64_t spaced = 0;
    bool has_cpu = true;
    double cpu_ns = 0.0;
    for (uint64_t i = 1; i < pieces->count; i++) {
        const struct piece *piece = &pieces->at[i];
        scratch[i - 1] = (double)(piece->end_ns - pieces->at[i - 1].end_ns);
        has_cpu = has_cpu && piece->cpu_ns >= 0;
        cpu_ns += (double)piece->cpu_ns;
        spaced += scratch[i - 1] >= SPACED_CPU_MIN * (double)piece->cpu_ns;
    }
    uint64_t gaps = pieces->count - 1;
    qsort(scratch, gaps, sizeof(*scratch), by_number);
    turns->between_ns = (double)(pieces->at[gaps].end_ns - pieces->at[0].end_ns) / (double)gaps;
    turns->close_ns = scratch[gaps / 10];
    turns->cpu_cores = has_cpu && turns->between_ns > 0.0
                           ? cpu_ns / (double)gaps / turns->between_ns
                           : (double)NAN;
    turns->spaced_pct = has_cpu ? 100.0 * (double)spaced / (double)gaps : (double)NAN;
}

/** How different pieces are: the length that nine tenths stay below, less that of one tenth. */
static double spread_of(const struct pieces *pieces, double *scratch)
{
    for (uint64_t i = 0; i < pieces->count; i++) {
        scratch[i] = (double)(pieces->at[i].end_ns - pieces->at[i].start_ns);
    }
    qsort(scratch, pieces->count, sizeof(*scratch), by_number);
    return scratch[(pieces->count - 1) * 9 / 10] - scratch[(pieces->count - 1) / 10];
}

/** Median length of pieces that had [least, most) under way; their number and mean company. */
static double median_beside(const struct pieces *pieces, double least, double most, double *scratch,
                            uint64_t *ret_count, double *ret_beside)
{
    uint64_t count = 0;
    double beside = 0.0;
    for (uint64_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->at[i];
        if (piece->beside >= least && piece->beside < most) {
            scratch[count++] = (double)(piece->end_ns - piece->start_ns);
            beside += piece->beside;
        }
    }
    *ret_count = count;
    *ret_beside = count > 0 ? beside / (double)count : (double)NAN;
    if (count == 0) {
        return (double)NAN;
    }
    qsort(scratch, count, sizeof(*scratch), by_number);
    return scratch[(count - 1) / 2];
}

enum lac_status lac_worker_turns_measure(const struct lac_facts *facts, struct lac_turns *ret_turns)
{
    *ret_turns = (struct lac_turns){.cpu_cores = (double)NAN,
                                    .spaced_pct = (double)NAN,
                                    .alone_ns = (double)NAN,
                                    .beside_ns = (double)NAN,
                                    .beside_workers = (double)NAN};
    uint64_t most = facts->loader_parts.count + facts->fetch_count;
    most = most < PIECES_MAX ? most : PIECES_MAX;
    struct pieces pieces = {.at = malloc((most + 1) * sizeof(*pieces.at))};
    double *scratch = malloc((most + 1) * sizeof(*scratch));
    enum lac_status status = pieces.at != NULL && scratch != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        collect(facts, &pieces);
    }
    if (!status && pieces.count >= PIECES_MIN) {
        status = count_beside(&pieces);
    }
    if (!status && pieces.count >= PIECES_MIN) {
        qsort(pieces.at, pieces.count, sizeof(*pieces.at), by_end);
        ret_turns->count = pieces.count;
        measure_ends(&pieces, scratch, ret_turns);
        double crowd = 0.0;
        for (uint64_t i = 0; i < pieces.count; i++) {
            crowd = fmax(crowd, pieces.at[i].beside);
        }
        double beside = 0.0;
        ret_turns->spread_ns = spread_of(&pieces, scratch);
        ret_turns->alone_ns = median_beside(&pieces, 0.0, ALONE_BESIDE_MAX, scratch,
                                            &ret_turns->alone_count, &beside);
        ret_turns->beside_ns =
            median_beside(&pieces, fmax(COMPANY_MIN, COMPANY_OF_CROWD * crowd), (double)INFINITY,
                          scratch, &ret_turns->beside_count, &ret_turns->beside_workers);
    }
    free(pieces.at);
    free(scratch);
    return status;
}

/* -- whether they do -- */

enum { ENDS_MIN = 12, ENDS_OF_TWO_MIN = 24, ENDS_MANY = 48, ALONE_MIN = 4, BESIDE_MIN = 16 };

/** What would explain the same picture in another way. */
static bool is_something_else(const struct lac_loading *loading)
{
    const struct lac_loading_samples *samples = &loading->samples;
    bool reads = samples->has_threads &&
                 (samples->disk_pct >= DISK_PCT || samples->storage_mb_s >= STORAGE_MB_S);
    const struct lac_batch_reads *in_reads = &loading->reads; /* a wait that has its place */
    bool waits_in_reads = in_reads->count > 0 &&
                          in_reads->cpu_ns < READ_COMPUTES_MAX * in_reads->ns &&
                          in_reads->ns >= READ_SHARE * loading->wall_ns;
    return samples->wait_for_cores || reads || waits_in_reads;
}

enum lac_serialization lac_serialization_of(const struct lac_facts *facts)
{
    const struct lac_loading *loading = facts->loading;
    const struct lac_turns *turns = &loading->turns;
    /* two are evenly apart by chance sooner than more are */
    uint64_t ends_min = loading->workers > 2 ? ENDS_MIN : ENDS_OF_TWO_MIN;
    if (loading->workers < 2 || is_something_else(loading)) {
        return LAC_SERIAL_NOT;
    }
    if (loading->alone_pct >= ALONE_PCT_MIN && loading->covered_pct >= COVERED_PCT_MIN &&
        turns->count >= ends_min) {
        return LAC_SERIAL_ONE_AT_A_TIME;
    }
    bool is_apart = turns->count >= ends_min && turns->close_ns >= CLOSE_MIN * turns->between_ns;
    if (!is_apart || loading->overlap < OVERLAP_MIN) {
        return LAC_SERIAL_NOT;
    }
    bool grows = turns->alone_count >= ALONE_MIN && turns->beside_count >= BESIDE_MIN &&
                 turns->beside_ns >= GROWTH_MIN * turns->beside_workers * turns->alone_ns;
    if (grows) {
        return LAC_SERIAL_GROWTH;
    }
    bool has_company =
        isnan(turns->alone_ns) || turns->beside_ns > COMPANY_SLOWER_MIN * turns->alone_ns;
    if (has_company && turns->count >= ENDS_MANY &&
        turns->spread_ns >= SPREAD_MIN * turns->between_ns) {
        return LAC_SERIAL_ONE_BY_ONE;
    }
    bool has_cores = facts->settings.allowed_cores >= 2;
    bool is_one_core = turns->cpu_cores >= ONE_CORE_MIN && turns->cpu_cores <= ONE_CORE_MAX &&
                       turns->spaced_pct >= SPACED_PCT_MIN;
    return has_cores && is_one_core && turns->alone_count < ALONE_MIN ? LAC_SERIAL_ONE_CORE
                                                                      : LAC_SERIAL_NOT;
}
