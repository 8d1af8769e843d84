/* Table open_before, written and read: which slices of a thread are open where a chunk begins, so
 * that the chunk is counted without those before it. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4 /* lane, end, kind, name */ };

/* -- written ----------------------------------------------------------------------------------- */

/** Lanes that are open at `at_ns`, as one block. */
static enum lac_status encode(const struct lac_open_slice *open, uint32_t lane_count, int64_t at_ns,
                              struct lac_bytes *out, uint32_t *ret_count)
{
    int64_t *storage = malloc(sizeof(*storage) * COLUMNS * lane_count);
    const int64_t *columns[COLUMNS];
    uint32_t count = 0;
    enum lac_status status;

    if (storage == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        columns[c] = storage + c * lane_count;
    }
    for (uint32_t l = 0; l < lane_count; l++) {
        if (open[l].end_ns >= at_ns) {
            const int64_t values[COLUMNS] = {l, open[l].end_ns, open[l].kind, open[l].name};

            for (size_t c = 0; c < COLUMNS; c++) {
                storage[c * lane_count + count] = values[c];
            }
            count++;
        }
    }
    *ret_count = count;
    out->size_bytes = 0;
    status = lac_columns_encode(columns, COLUMNS, count, out);
    free(storage);
    return status;
}

enum lac_status lac_trace_write_open(struct lac_trace_writer *writer, uint64_t first,
                                     const struct lac_open_slice *open, uint32_t lane_count)
{
    sqlite3_stmt *insert = NULL;
    uint32_t count = 0;
    /* made with its first row: a page that a small trace does without */
    enum lac_status status = lac_sql_run(writer->db,
                                         "CREATE TABLE IF NOT EXISTS open_before("
                                         "first INTEGER PRIMARY KEY, count, data)",
                                         writer->reterr);

    if (status == LAC_OK) {
        status = encode(open, lane_count, writer->model->slices.start_ns[first], &writer->scratch2,
                        &count);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(writer->db, "INSERT INTO open_before VALUES(?,?,?)", &insert,
                                 writer->reterr);
    }
    if (status == LAC_OK) {
        lac_sql_bind_i64(insert, 1, (int64_t)first);
        lac_sql_bind_i64(insert, 2, count);
        lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

/* -- read -------------------------------------------------------------------------------------- */

/** The block under the statement, into its lanes. */
static enum lac_status decode(const struct lac_trace_file *file, uint32_t lane_count,
                              sqlite3_stmt *get, struct lac_open_slice *open)
{
    const int64_t count = sqlite3_column_int64(get, 0);
    int64_t *storage;
    int64_t *columns[COLUMNS];
    enum lac_status status;

    if (count < 0 || count > lane_count) {
        return LAC_ERR_CORRUPT;
    }
    storage = malloc(sizeof(*storage) * COLUMNS * ((size_t)count + 1));
    if (storage == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        columns[c] = storage + c * (size_t)count;
    }
    status = lac_columns_decode(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1),
                                COLUMNS, (uint32_t)count, columns);
    for (int64_t r = 0; r < count && status == LAC_OK; r++) {
        if (columns[0][r] < 0 || columns[0][r] >= lane_count || columns[1][r] < 0 ||
            columns[2][r] < 0 || columns[2][r] >= LAC_SLICE_KIND_COUNT_ || columns[3][r] < 0 ||
            columns[3][r] >= (int64_t)file->head.strings.count) {
            status = LAC_ERR_CORRUPT;
            break;
        }
        open[columns[0][r]] = (struct lac_open_slice){.end_ns = columns[1][r],
                                                      .kind = (uint8_t)columns[2][r],
                                                      .name = (uint32_t)columns[3][r]};
    }
    free(storage);
    return status;
}

/** What the file says. @return LAC_ERR_NOT_FOUND where it says nothing of this chunk */
static enum lac_status read_stored(struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                                   struct lac_open_slice *open, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    (void)pthread_mutex_lock(&file->db_lock);
    if (file->lacks_open) {
        status = LAC_ERR_NOT_FOUND;
    } else if (file->get_open == NULL) {
        status = lac_trace_has_table(file, "open_before", reterr);
        file->lacks_open = status == LAC_ERR_NOT_FOUND;
    }
    if (status == LAC_OK && file->get_open == NULL) {
        status = lac_sql_prepare(file->db, "SELECT count, data FROM open_before WHERE first = ?",
                                 &file->get_open, reterr);
    }
    if (status == LAC_OK) {
        lac_sql_bind_i64(file->get_open, 1, (int64_t)chunk->first);
        status = lac_sql_step_row(file->get_open, "trace file", reterr);
        if (status == LAC_OK) {
            status = decode(file, file->head.tracks[chunk->track].lane_count, file->get_open, open);
        }
        lac_sql_reset(file->get_open);
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "open slices") : status;
}

/** Fill the lanes that one chunk leaves open at `at_ns`, where nothing later did. */
static void find_open(const struct lac_slices *at, int64_t at_ns, struct lac_open_slice *open)
{
    for (uint64_t i = at->count; i > 0; i--) {
        struct lac_open_slice *lane = &open[at->lane[i - 1]];
        const int64_t end_ns = at->start_ns[i - 1] + at->dur_ns[i - 1];

        if (lane->end_ns < 0 && end_ns >= at_ns) {
            *lane = (struct lac_open_slice){end_ns, at->name[i - 1], at->kind[i - 1]};
        }
    }
}

/** A file that does not say: walk back, skipping chunks that end before. */
static enum lac_status walk_back(struct lac_trace_file *file, uint32_t chunk,
                                 struct lac_open_slice *open, struct lac_error *reterr)
{
    const struct lac_chunk_entry *here = &file->chunks[chunk];

    for (uint32_t c = chunk; c > file->track_chunk[here->track]; c--) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        enum lac_status status;

        if (file->chunks[c - 1].end_last < here->start_first) {
            continue;
        }
        status = lac_trace_chunk(file, c - 1, LAC_COLUMNS_TILE, &columns, &pin, reterr);
        if (status != LAC_OK) {
            return status;
        }
        find_open(&columns->at, here->start_first, open);
        lac_cache_unpin(file->cache, pin);
    }
    return LAC_OK;
}

enum lac_status lac_trace_open_before(struct lac_trace_file *file, uint32_t chunk,
                                      struct lac_open_slice *open, struct lac_error *reterr)
{
    assert(chunk < file->chunk_count);
    const struct lac_chunk_entry *here = &file->chunks[chunk];
    enum lac_status status;

    for (uint32_t l = 0; l < file->head.tracks[here->track].lane_count; l++) {
        open[l] = (struct lac_open_slice){.end_ns = -1};
    }
    if (chunk == file->track_chunk[here->track]) {
        return LAC_OK;
    }
    status = read_stored(file, here, open, reterr);
    return status == LAC_ERR_NOT_FOUND ? walk_back(file, chunk, open, reterr) : status;
}
