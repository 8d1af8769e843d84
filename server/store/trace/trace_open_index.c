/* The indexes of chunks and tiles, and the steps. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static enum lac_status count_rows(struct lac_trace_file *file, const char *sql, uint64_t max,
                                  uint32_t *ret_count, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(file->db, sql, &get, reterr);

    if (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        int64_t count = sqlite3_column_int64(get, 0);

        if (count < 0 || (uint64_t)count > max || count > UINT32_MAX - 1) {
            status = lac_trace_corrupt(file, reterr, "too many rows");
        } else {
            *ret_count = (uint32_t)count;
        }
    }
    (void)sqlite3_finalize(get);
    return status;
}

/** Chunks must cover the slices of every track, in order, without holes. */
static bool chunk_is_sane(const struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                          uint64_t expected_first)
{
    const struct lac_track *track;

    if (chunk->track >= file->head.track_count || chunk->first != expected_first ||
        chunk->count < 1 || chunk->count > LAC_CHUNK_SLICES) {
        return false;
    }
    track = &file->head.tracks[chunk->track];
    return track->kind != LAC_TRACK_COUNTER && chunk->first >= track->first &&
           chunk->first + chunk->count <= track->first + track->count && chunk->start_first >= 0 &&
           chunk->start_first <= chunk->start_last && chunk->start_last <= chunk->end_last &&
           chunk->end_last <= LAC_TIME_MAX_NS;
}

static enum lac_status read_chunks(struct lac_trace_file *file, sqlite3_stmt *get,
                                   uint32_t row_count, struct lac_error *reterr)
{
    uint64_t next = 0;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        struct lac_chunk_entry *chunk = &file->chunks[file->chunk_count];

        status = lac_sql_step_row(get, "trace file", reterr);
        if (status != LAC_OK) {
            break;
        }
        if (file->chunk_count == row_count) {
            return lac_trace_corrupt(file, reterr, "chunk index");
        }
        *chunk = (struct lac_chunk_entry){.first = (uint64_t)sqlite3_column_int64(get, 0),
                                          .start_first = sqlite3_column_int64(get, 3),
                                          .start_last = sqlite3_column_int64(get, 4),
                                          .end_last = sqlite3_column_int64(get, 5),
                                          .blob = sqlite3_column_int64(get, 6)};
        chunk->track = (uint32_t)sqlite3_column_int64(get, 1);
        chunk->count = (uint32_t)sqlite3_column_int64(get, 2);
        if (!chunk_is_sane(file, chunk, next) ||
            (file->chunk_count > 0 &&
             (chunk->track < chunk[-1].track ||
              (chunk->track == chunk[-1].track && chunk->start_first < chunk[-1].start_last)))) {
            return lac_trace_corrupt(file, reterr, "chunk index");
        }
        next += chunk->count;
        file->chunk_count++;
    }
    if (status == LAC_ERR_NOT_FOUND) {
        status = next == file->head.slices.count
                     ? LAC_OK
                     : lac_trace_corrupt(file, reterr, "chunks are missing");
    }
    return status;
}

static enum lac_status index_chunks(struct lac_trace_file *file)
{
    uint32_t chunk = 0;

    file->track_chunk = malloc(((size_t)file->head.track_count + 1) * sizeof(*file->track_chunk));
    if (file->track_chunk == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t <= file->head.track_count; t++) {
        while (chunk < file->chunk_count && file->chunks[chunk].track < t) {
            chunk++;
        }
        file->track_chunk[t] = chunk;
    }
    return LAC_OK;
}

static enum lac_status read_tiles(struct lac_trace_file *file, sqlite3_stmt *get, uint32_t rows,
                                  struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            if (file->tile_count == rows) {
                return lac_trace_corrupt(file, reterr, "tile index");
            }
            file->tile_keys[file->tile_count] = (uint64_t)sqlite3_column_int64(get, 0);
            file->tile_blobs[file->tile_count++] = sqlite3_column_int64(get, 1);
        }
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_trace_read_index(struct lac_trace_file *file, struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    uint32_t chunks = 0;
    uint32_t tiles = 0;
    enum lac_status status =
        count_rows(file, "SELECT count(*) FROM chunk", file->head.slices.count, &chunks, reterr);

    if (status == LAC_OK) {
        status = count_rows(file, "SELECT count(*) FROM tile", UINT32_MAX - 1, &tiles, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    file->chunks = calloc((size_t)chunks + 1, sizeof(*file->chunks));
    file->tile_keys = calloc((size_t)tiles + 1, sizeof(*file->tile_keys));
    file->tile_blobs = calloc((size_t)tiles + 1, sizeof(*file->tile_blobs));
    if (file->chunks == NULL || file->tile_keys == NULL || file->tile_blobs == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = lac_sql_prepare(file->db,
                             "SELECT first, track, count, start_first, start_last, end_last, data "
                             "FROM chunk ORDER BY first",
                             &get, reterr);
    if (status == LAC_OK) {
        status = read_chunks(file, get, chunks, reterr);
    }
    (void)sqlite3_finalize(get);
    get = NULL;
    if (status == LAC_OK) {
        status = index_chunks(file);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(file->db, "SELECT id, data FROM tile ORDER BY id", &get, reterr);
    }
    if (status == LAC_OK) {
        status = read_tiles(file, get, tiles, reterr);
    }
    (void)sqlite3_finalize(get);
    return status;
}

static enum lac_status copy_steps(struct lac_trace_file *file, uint32_t chunk,
                                  struct lac_error *reterr)
{
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    enum lac_status status = lac_trace_chunk(file, chunk, LAC_COLUMNS_TILE, &columns, &pin, reterr);

    if (status != LAC_OK) {
        return status;
    }
    for (uint64_t i = 0; i < columns->at.count; i++) {
        file->lazy.step_start_ns[file->lazy.step_count] = columns->at.start_ns[i];
        file->lazy.step_dur_ns[file->lazy.step_count] = columns->at.dur_ns[i];
        file->lazy.step_name[file->lazy.step_count++] = columns->at.name[i];
    }
    lac_cache_unpin(file->cache, pin);
    return LAC_OK;
}

enum lac_status lac_trace_read_steps(struct lac_trace_file *file, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    for (uint32_t t = 0; t < file->head.track_count; t++) {
        uint64_t count = file->head.tracks[t].count;

        if (file->head.tracks[t].kind != LAC_TRACK_STEPS || count == 0 || count > UINT32_MAX) {
            continue;
        }
        file->lazy.step_start_ns = malloc(count * sizeof(int64_t));
        file->lazy.step_dur_ns = malloc(count * sizeof(int64_t));
        file->lazy.step_host_start_ns = malloc(count * sizeof(int64_t));
        file->lazy.step_host_dur_ns = malloc(count * sizeof(int64_t));
        file->lazy.step_name = malloc(count * sizeof(uint32_t));
        if (file->lazy.step_start_ns == NULL || file->lazy.step_dur_ns == NULL ||
            file->lazy.step_host_start_ns == NULL || file->lazy.step_host_dur_ns == NULL ||
            file->lazy.step_name == NULL) {
            return LAC_ERR_NOMEM;
        }
        for (uint32_t c = file->track_chunk[t]; c < file->track_chunk[t + 1] && status == LAC_OK;
             c++) {
            status = copy_steps(file, c, reterr);
        }
        if (status == LAC_OK) {
            lac_trace_read_marks(file);
        }
        break; /* there is one such track */
    }
    return status;
}
