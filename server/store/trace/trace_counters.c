/* Counters seen through bins of time. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 8192 };

struct bins {
    struct lac_counter_points points; /**< count = bins; a bin is empty while ts_ns is -1 */
    int64_t t0_ns, t1_ns;
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

static void add_sample(struct bins *bins, int64_t ts_ns, double value)
{
    struct lac_counter_points *points = &bins->points;
    /* by doubles: the width may be 2^53, times the bins too much for 64 bits */
    uint32_t bin = (uint32_t)((double)(ts_ns - bins->t0_ns) * (double)points->count /
                              (double)(bins->t1_ns - bins->t0_ns));

    bin = bin < points->count ? bin : points->count - 1;
    if (points->ts_ns[bin] < 0) {
        points->min[bin] = value;
        points->max[bin] = value;
    }
    points->min[bin] = value < points->min[bin] ? value : points->min[bin];
    points->max[bin] = value > points->max[bin] ? value : points->max[bin];
    points->last[bin] = value;
    points->ts_ns[bin] = ts_ns;
}

static enum lac_status add_block(struct bins *bins, sqlite3_stmt *get)
{
    int64_t count = sqlite3_column_int64(get, 0);
    int64_t *columns[2];
    enum lac_status status;

    if (count < 1 || count > LAC_COLUMN_BLOCK_ROWS) {
        return LAC_ERR_CORRUPT;
    }
    columns[0] = malloc(sizeof(int64_t) * 2 * (size_t)count);
    if (columns[0] == NULL) {
        return LAC_ERR_NOMEM;
    }
    columns[1] = columns[0] + count;
    status = lac_columns_decode(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1),
                                2, (uint32_t)count, columns);
    for (int64_t i = 0; i < count && status == LAC_OK; i++) {
        if (columns[0][i] >= bins->t0_ns && columns[0][i] < bins->t1_ns) {
            double value;

            memcpy(&value, &columns[1][i], sizeof(value));
            add_sample(bins, columns[0][i], value);
        }
    }
    free(columns[0]);
    return status;
}

static enum lac_status add_blocks(struct lac_trace_file *file, uint32_t track, struct bins *bins,
                                  struct lac_error *reterr)
{
    const struct lac_track *of = &file->head.tracks[track];
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_sql_prepare(file->db,
                             "SELECT count, data FROM sample WHERE id >= ? AND id < ? "
                             "AND ts_last >= ? AND ts_first < ? ORDER BY id",
                             &get, reterr);
    if (status == LAC_OK) {
        lac_sql_bind_i64(get, 1, (int64_t)of->first);
        lac_sql_bind_i64(get, 2, (int64_t)(of->first + of->count));
        lac_sql_bind_i64(get, 3, bins->t0_ns);
        lac_sql_bind_i64(get, 4, bins->t1_ns);
    }
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = add_block(bins, get);
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
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
