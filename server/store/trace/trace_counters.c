/* Counters seen through bins of time. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A block takes a MiB unpacked, and new memory as long as the unpacking: a question over many is
 * answered through one, and keeps none. */
enum { POINTS_MAX = 8192, KEPT_BLOCKS_MAX = 4 };

/** Of keys in the cache: no set of columns is this. */
#define SAMPLES_TYPE (UINT32_C(1) << 29)

struct bins {
    struct lac_counter_points points; /**< count = bins; a bin is empty while ts_ns is -1 */
    int64_t t0_ns, t1_ns;
    bool has_sample;
    int64_t first_ns; /**< of the first sample */
    int64_t held_ns;  /**< of the last one so far, whose value holds until the next */
    double held;
    double sum; /**< of values, each times the ns that it held */
};

/** A block unpacked, which is nearly all that an answer costs. */
struct block {
    uint32_t count;
    int64_t *value; /**< the bits of a double each */
    int64_t ts_ns[];
};

static bool bins_create(struct bins *bins, uint32_t count)
{
    struct lac_counter_points *points = &bins->points;

    points->ts_ns = malloc(count * sizeof(*points->ts_ns));
    points->min = calloc(count, sizeof(*points->min));
    points->max = calloc(count, sizeof(*points->max));
    points->last = calloc(count, sizeof(*points->last));
    points->count = count;
    if (points->ts_ns == NULL || points->min == NULL || points->max == NULL ||
        points->last == NULL) {
        return false;
    }
    memset(points->ts_ns, 0xFF, count * sizeof(*points->ts_ns));
    return true;
}

/** By doubles: the width may be 2^53, times the bins too much for 64 bits. */
static uint32_t bin_of(const struct bins *bins, int64_t ts_ns)
{
    const uint32_t count = bins->points.count;
    const uint32_t bin = (uint32_t)((double)(ts_ns - bins->t0_ns) * (double)count /
                                    (double)(bins->t1_ns - bins->t0_ns));

    return bin < count ? bin : count - 1;
}

/** The first time that lies in a later bin: nearly all samples are only compared with it. */
static int64_t end_of(const struct bins *bins, uint32_t bin)
{
    int64_t end_ns;

    if (bin + 1 >= bins->points.count) {
        return bins->t1_ns;
    }
    end_ns = bins->t0_ns + (int64_t)((double)(bins->t1_ns - bins->t0_ns) * (double)(bin + 1) /
                                     (double)bins->points.count);
    while (bin_of(bins, end_ns) > bin) {
        end_ns--;
    }
    while (end_ns < bins->t1_ns && bin_of(bins, end_ns) <= bin) {
        end_ns++;
    }
    return end_ns;
}

static double real_of(int64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/** Samples [first, end) of the block, all of one bin. */
static void add_run(struct lac_counter_points *points, uint32_t bin, const struct block *block,
                    uint32_t first, uint32_t end)
{
    const bool is_empty = points->ts_ns[bin] < 0;
    double min = is_empty ? real_of(block->value[first]) : points->min[bin];
    double max = is_empty ? min : points->max[bin];

    for (uint32_t i = first; i < end; i++) {
        const double value = real_of(block->value[i]);

        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    points->min[bin] = min;
    points->max[bin] = max;
    points->last[bin] = real_of(block->value[end - 1]);
    points->ts_ns[bin] = block->ts_ns[end - 1];
}

/** Add samples [first, end) of the block to the mean. */
static void add_held(struct bins *bins, const struct block *block, uint32_t first, uint32_t end)
{
    if (!bins->has_sample) {
        bins->has_sample = true;
        bins->first_ns = bins->held_ns = block->ts_ns[first];
    }
    for (uint32_t i = first; i < end; i++) {
        bins->sum += bins->held * (double)(block->ts_ns[i] - bins->held_ns);
        bins->held_ns = block->ts_ns[i];
        bins->held = real_of(block->value[i]);
    }
}

static void add_samples(struct bins *bins, const struct block *block)
{
    for (uint32_t i = 0; i < block->count;) {
        const uint32_t first = i;
        const int64_t from_ns = block->ts_ns[i++];
        uint32_t bin;
        int64_t end_ns;

        if (from_ns < bins->t0_ns || from_ns >= bins->t1_ns) {
            continue;
        }
        bin = bin_of(bins, from_ns);
        end_ns = end_of(bins, bin);
        while (i < block->count && block->ts_ns[i] >= from_ns && block->ts_ns[i] < end_ns) {
            i++;
        }
        add_run(&bins->points, bin, block, first, i);
        add_held(bins, block, first, i);
    }
}

static size_t block_bytes(uint32_t count)
{
    return sizeof(struct block) + 2 * (size_t)count * sizeof(int64_t);
}

/** Unpack the block that `get` is at. */
static enum lac_status unpack(sqlite3_stmt *get, struct block *block, uint32_t count)
{
    int64_t *columns[2] = {block->ts_ns, block->ts_ns + count};

    block->count = count;
    block->value = columns[1];
    return lac_columns_decode(sqlite3_column_blob(get, 2), (size_t)sqlite3_column_bytes(get, 2), 2,
                              count, columns);
}

/** Unpack the block that `get` is at and keep it. */
static enum lac_status read_block(struct lac_trace_file *file, const struct lac_cache_key *key,
                                  sqlite3_stmt *get, uint32_t count,
                                  struct lac_cache_entry **ret_entry)
{
    struct block *block = malloc(block_bytes(count));
    enum lac_status status = block != NULL ? unpack(get, block, count) : LAC_ERR_NOMEM;

    if (status != LAC_OK) {
        free(block);
        return status;
    }
    *ret_entry = lac_cache_put(file->cache, key, block, block_bytes(count), free);
    return *ret_entry != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

/** @param scratch of a block's size: where to unpack one that is not kept; NULL to keep it */
static enum lac_status add_block(struct lac_trace_file *file, struct bins *bins, sqlite3_stmt *get,
                                 struct block *scratch)
{
    const struct lac_cache_key key = {.owner = file->owner,
                                      .index = (uint64_t)sqlite3_column_int64(get, 0),
                                      .type = SAMPLES_TYPE};
    const int64_t count = sqlite3_column_int64(get, 1);
    struct lac_cache_entry *entry = lac_cache_get(file->cache, &key);
    enum lac_status status = LAC_OK;

    if (count < 1 || count > LAC_COLUMN_BLOCK_ROWS) {
        status = LAC_ERR_CORRUPT;
    } else if (entry == NULL) {
        status = scratch != NULL ? unpack(get, scratch, (uint32_t)count)
                                 : read_block(file, &key, get, (uint32_t)count, &entry);
    }
    if (status == LAC_OK) {
        add_samples(bins, entry != NULL ? lac_cache_data(entry) : scratch);
    }
    lac_cache_unpin(file->cache, entry);
    return status;
}

/** Prepare a question for the blocks of a track that the bins touch. */
static enum lac_status ask_blocks(struct lac_trace_file *file, uint32_t track,
                                  const struct bins *bins, const char *sql, sqlite3_stmt **ret_get,
                                  struct lac_error *reterr)
{
    const struct lac_track *of = &file->head.tracks[track];
    enum lac_status status = lac_sql_prepare(file->db, sql, ret_get, reterr);

    if (status == LAC_OK) {
        lac_sql_bind_i64(*ret_get, 1, (int64_t)of->first);
        lac_sql_bind_i64(*ret_get, 2, (int64_t)(of->first + of->count));
        lac_sql_bind_i64(*ret_get, 3, bins->t0_ns);
        lac_sql_bind_i64(*ret_get, 4, bins->t1_ns);
    }
    return status;
}

#define OF_BLOCKS " FROM sample WHERE id >= ? AND id < ? AND ts_last >= ? AND ts_first < ? "

/** Whether they are few enough to be kept: then the windows beside this one find them. */
static enum lac_status are_kept(struct lac_trace_file *file, uint32_t track,
                                const struct bins *bins, bool *ret_are_kept,
                                struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        ask_blocks(file, track, bins, "SELECT count(*)" OF_BLOCKS, &get, reterr);

    if (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    *ret_are_kept = status == LAC_OK && sqlite3_column_int64(get, 0) <= KEPT_BLOCKS_MAX;
    (void)sqlite3_finalize(get);
    return status;
}

static enum lac_status add_blocks(struct lac_trace_file *file, uint32_t track, struct bins *bins,
                                  struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    struct block *scratch = NULL;
    bool kept = false;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = are_kept(file, track, bins, &kept, reterr);
    if (status == LAC_OK && !kept) {
        scratch = malloc(block_bytes(LAC_COLUMN_BLOCK_ROWS));
        status = scratch != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        status = ask_blocks(file, track, bins, "SELECT id, count, data" OF_BLOCKS "ORDER BY id",
                            &get, reterr);
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = add_block(file, bins, get, scratch);
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    free(scratch);
    if (status == LAC_ERR_CORRUPT) {
        status = lac_trace_corrupt(file, reterr, "samples");
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_trace_file_counter(struct lac_trace_file *file, uint32_t track, int64_t t0_ns,
                                       int64_t t1_ns, uint32_t points,
                                       struct lac_counter_points *ret_points,
                                       struct lac_error *reterr)
{
    assert(file != NULL && ret_points != NULL);
    struct bins bins = {.t0_ns = t0_ns, .t1_ns = t1_ns};
    uint32_t kept = 0;
    enum lac_status status;

    if (track >= file->head.track_count || file->head.tracks[track].kind != LAC_TRACK_COUNTER) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "track %u is not a counter", track);
    }
    if (points < 1 || points > POINTS_MAX || t1_ns <= t0_ns || t0_ns < 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "counter: t0 < t1, and 1 to %d points",
                        POINTS_MAX);
    }
    status = bins_create(&bins, points) ? add_blocks(file, track, &bins, reterr) : LAC_ERR_NOMEM;
    if (status != LAC_OK) {
        lac_counter_points_done(&bins.points);
        return status;
    }
    for (uint32_t b = 0; b < points; b++) {
        if (bins.points.ts_ns[b] >= 0) {
            bins.points.ts_ns[kept] = bins.points.ts_ns[b];
            bins.points.min[kept] = bins.points.min[b];
            bins.points.max[kept] = bins.points.max[b];
            bins.points.last[kept++] = bins.points.last[b];
        }
    }
    bins.points.count = kept;
    if (bins.has_sample) {
        bins.points.mean = (bins.sum + bins.held * (double)(t1_ns - bins.held_ns)) /
                           (double)(t1_ns - bins.first_ns);
    }
    *ret_points = bins.points;
    return LAC_OK;
}

void lac_counter_points_done(struct lac_counter_points *points)
{
    free(points->ts_ns);
    free(points->min);
    free(points->max);
    free(points->last);
    *points = (struct lac_counter_points){0};
}
