/* Table exposed, written and read: when a device executes something, but no computing kernel. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 16384, COLUMNS = 2 }; /* start, length */

/** Columns of one block. */
struct block {
    int64_t *columns[COLUMNS];
};

static bool block_init(struct block *block)
{
    block->columns[0] = malloc(sizeof(int64_t) * COLUMNS * BLOCK_ROWS);
    block->columns[1] = block->columns[0] != NULL ? block->columns[0] + BLOCK_ROWS : NULL;
    return block->columns[0] != NULL;
}

static void block_done(struct block *block)
{
    free(block->columns[0]);
}

/* -- written ----------------------------------------------------------------------------------- */

/** Insert the spans of one device from `first` on, as many as a block holds. */
static enum lac_status insert_block(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                    struct block *block, uint64_t first, uint32_t *ret_count)
{
    const struct lac_analysis *analysis = writer->analysis;
    const struct lac_exposed_span *spans = analysis->exposed + first;
    uint32_t count = 0;
    int64_t total_ns = 0;
    enum lac_status status;

    for (; count < BLOCK_ROWS && first + count < analysis->exposed_count &&
           spans[count].device == spans[0].device;
         count++) {
        block->columns[0][count] = spans[count].start_ns;
        block->columns[1][count] = spans[count].end_ns - spans[count].start_ns;
        total_ns += block->columns[1][count];
    }
    *ret_count = count;
    writer->scratch2.size_bytes = 0;
    status = lac_columns_encode((const int64_t *const *)block->columns, COLUMNS, count,
                                &writer->scratch2);
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(insert, 1, (int64_t)first);
    lac_sql_bind_i64(insert, 2, analysis->devices[spans[0].device].id);
    lac_sql_bind_i64(insert, 3, spans[0].start_ns);
    lac_sql_bind_i64(insert, 4, spans[count - 1].end_ns);
    lac_sql_bind_i64(insert, 5, total_ns);
    lac_sql_bind_i64(insert, 6, count);
    lac_sql_bind_blob(insert, 7, writer->scratch2.data, writer->scratch2.size_bytes);
    return lac_sql_step_done(insert, "trace file", writer->reterr);
}

enum lac_status lac_trace_write_exposed(struct lac_trace_writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct block block;
    sqlite3_stmt *insert = NULL;
    enum lac_status status;

    if (analysis->device_count == 0) {
        return LAC_OK; /* a page that other traces do without */
    }
    if (!block_init(&block)) {
        return LAC_ERR_NOMEM;
    }
    status = lac_sql_run(writer->db,
                         "CREATE TABLE exposed(first INTEGER PRIMARY KEY, device, start_ns, end_ns,"
                         " total_ns, count, data)",
                         writer->reterr);
    if (status == LAC_OK) {
        status = lac_sql_prepare(writer->db, "INSERT INTO exposed VALUES(?,?,?,?,?,?,?)", &insert,
                                 writer->reterr);
    }
    for (uint64_t first = 0; first < analysis->exposed_count && status == LAC_OK;) {
        uint32_t count;

        status = insert_block(writer, insert, &block, first, &count);
        first += count;
    }
    (void)sqlite3_finalize(insert);
    block_done(&block);
    return status;
}

/* -- read -------------------------------------------------------------------------------------- */

/** Add what a block that crosses the area's edges has inside. */
static enum lac_status add_part(sqlite3_stmt *get, const struct lac_area_query *query,
                                struct block *block, int64_t *sum_ns)
{
    const int64_t count = sqlite3_column_int64(get, 4);
    enum lac_status status;

    if (count < 1 || count > BLOCK_ROWS) {
        return LAC_ERR_CORRUPT;
    }
    status = lac_columns_decode(sqlite3_column_blob(get, 5), (size_t)sqlite3_column_bytes(get, 5),
                                COLUMNS, (uint32_t)count, block->columns);
    for (int64_t i = 0; i < count && status == LAC_OK; i++) {
        const int64_t start_ns = block->columns[0][i];
        int64_t end_ns;

        if (__builtin_add_overflow(start_ns, block->columns[1][i], &end_ns)) {
            return LAC_ERR_CORRUPT;
        }
        const int64_t from_ns = start_ns > query->t0_ns ? start_ns : query->t0_ns;
        const int64_t to_ns = end_ns < query->t1_ns ? end_ns : query->t1_ns;

        if (to_ns > from_ns && __builtin_add_overflow(*sum_ns, to_ns - from_ns, sum_ns)) {
            return LAC_ERR_CORRUPT;
        }
    }
    return status;
}

static enum lac_status add_blocks(struct lac_trace_file *file, const struct lac_area_query *query,
                                  struct lac_area *area, struct block *block,
                                  struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(
        file->db,
        "SELECT device, start_ns, end_ns, total_ns, count, data FROM exposed ORDER BY first", &get,
        reterr);

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status != LAC_OK) {
            break;
        }
        struct lac_area_device *device = lac_area_device_of(area, sqlite3_column_int64(get, 0));
        const int64_t start_ns = sqlite3_column_int64(get, 1);
        const int64_t end_ns = sqlite3_column_int64(get, 2);
        const int64_t total_ns = sqlite3_column_int64(get, 3);

        if (device == NULL || start_ns >= query->t1_ns || end_ns <= query->t0_ns) {
            continue;
        }
        if (start_ns < query->t0_ns || end_ns > query->t1_ns) {
            status = add_part(get, query, block, &device->exposed_ns);
        } else if (total_ns < 0 ||
                   __builtin_add_overflow(device->exposed_ns, total_ns, &device->exposed_ns)) {
            status = LAC_ERR_CORRUPT;
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_trace_area_exposed(struct lac_trace_file *file,
                                       const struct lac_area_query *query, struct lac_area *area,
                                       struct lac_error *reterr)
{
    struct block block;
    enum lac_status status;

    if (!block_init(&block)) {
        return LAC_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_trace_has_table(file, "exposed", reterr);
    if (status == LAC_OK) {
        status = add_blocks(file, query, area, &block, reterr);
    } else if (status == LAC_ERR_NOT_FOUND) {
        for (uint32_t d = 0; d < area->device_count; d++) {
            area->devices[d].exposed_ns = -1;
        }
        status = LAC_OK;
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    block_done(&block);
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "exposed time") : status;
}
