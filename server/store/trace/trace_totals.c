/* Tables total and gap_total, written and read: what each chunk holds by name and kind, and each
 * block of gaps by device and cause, so that an area of any width decodes only what lies on its
 * edges. */

#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
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
#include <string.h>

enum {
    COLUMNS = 7, /* kind, name, count, total, self, longest's length, longest */
    /* a chunk whose slices hardly share names is as quickly counted as its totals are read */
    SLICES_PER_ROW_MIN = 8,
};

/* -- written ----------------------------------------------------------------------------------- */

struct lac_totals_writer {
    struct lac_trace_writer *writer;
    sqlite3_stmt *insert;
    struct lac_name_totals totals;
    struct lac_open_slice *open; /**< of the present track, by lane */
    uint32_t open_capacity;
    uint32_t lane_count;  /**< of the present track */
    uint64_t track_first; /**< its first slice */
    bool is_nested;
    bool is_big; /**< of more than one chunk: counting one takes a millisecond, and is kept */
};

enum lac_status lac_totals_writer_create(struct lac_trace_writer *writer,
                                         struct lac_totals_writer **ret_totals)
{
    struct lac_totals_writer *totals = calloc(1, sizeof(*totals));

    if (totals == NULL) {
        return LAC_ERR_NOMEM;
    }
    totals->writer = writer;
    *ret_totals = totals;
    return LAC_OK;
}

/** The table is made with its first row: a page that a small trace does without. */
static enum lac_status prepare(struct lac_totals_writer *totals)
{
    struct lac_trace_writer *writer = totals->writer;
    enum lac_status status = LAC_OK;

    if (totals->insert == NULL) {
        status =
            lac_sql_run(writer->db, "CREATE TABLE total(first INTEGER PRIMARY KEY, count, data)",
                        writer->reterr);
        if (status == LAC_OK) {
            status = lac_sql_prepare(writer->db, "INSERT INTO total VALUES(?,?,?)", &totals->insert,
                                     writer->reterr);
        }
    }
    return status;
}

void lac_totals_writer_destroy(struct lac_totals_writer *totals)
{
    if (totals == NULL) {
        return;
    }
    (void)sqlite3_finalize(totals->insert);
    lac_name_totals_done(&totals->totals);
    free(totals->open);
    free(totals);
}

enum lac_status lac_totals_writer_track(struct lac_totals_writer *totals,
                                        const struct lac_track *track)
{
    totals->is_nested = track->kind == LAC_TRACK_THREAD;
    totals->is_big = track->count > LAC_CHUNK_SLICES;
    totals->lane_count = track->lane_count;
    totals->track_first = track->first;
    if (!totals->is_nested || !totals->is_big) {
        return LAC_OK;
    }
    if (track->lane_count > totals->open_capacity) {
        struct lac_open_slice *open =
            realloc(totals->open, (size_t)track->lane_count * sizeof(*open));

        if (open == NULL) {
            return LAC_ERR_NOMEM;
        }
        totals->open = open;
        totals->open_capacity = track->lane_count;
    }
    for (uint32_t l = 0; l < track->lane_count; l++) {
        totals->open[l] = (struct lac_open_slice){.end_ns = -1};
    }
    return LAC_OK;
}

/** Rows as columns of one block. */
static enum lac_status encode(const struct lac_name_totals *totals, struct lac_bytes *out)
{
    int64_t *storage = malloc(sizeof(*storage) * COLUMNS * (totals->count + (size_t)1));
    const int64_t *columns[COLUMNS];
    enum lac_status status;

    if (storage == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        columns[c] = storage + (size_t)c * totals->count;
    }
    for (uint32_t r = 0; r < totals->count; r++) {
        const struct lac_area_name *row = &totals->rows[r];
        const int64_t values[COLUMNS] = {row->kind,
                                         row->name,
                                         (int64_t)row->count,
                                         row->total_ns,
                                         row->self_ns,
                                         row->max_ns,
                                         row->longest == LAC_NONE ? -1 : (int64_t)row->longest};

        for (uint32_t c = 0; c < COLUMNS; c++) {
            storage[(size_t)c * totals->count + r] = values[c];
        }
    }
    out->size_bytes = 0;
    status = lac_columns_encode(columns, COLUMNS, totals->count, out);
    free(storage);
    return status;
}

enum lac_status lac_totals_writer_add(struct lac_totals_writer *totals, uint64_t first,
                                      uint32_t count)
{
    struct lac_trace_writer *writer = totals->writer;
    const struct lac_slices *all = &writer->model->slices;
    const struct lac_slices at = {.start_ns = all->start_ns + first,
                                  .dur_ns = all->dur_ns + first,
                                  .name = all->name + first,
                                  .lane = all->lane + first,
                                  .kind = all->kind + first,
                                  .count = count};
    const struct lac_totals_part part = {.at = &at,
                                         .first = first,
                                         .t0_ns = 0,
                                         .t1_ns = INT64_MAX,
                                         .open = totals->is_nested ? totals->open : NULL};
    enum lac_status status;

    if (!totals->is_big) {
        return LAC_OK;
    }
    if (totals->is_nested && first > totals->track_first) {
        status = lac_trace_write_open(writer, first, totals->open, totals->lane_count);
        if (status != LAC_OK) {
            return status;
        }
    }
    lac_name_totals_clear(&totals->totals);
    if (!lac_name_totals_count(&totals->totals, &part)) {
        return LAC_ERR_NOMEM;
    }
    if (totals->totals.count > count / SLICES_PER_ROW_MIN) {
        return LAC_OK;
    }
    status = prepare(totals);
    if (status == LAC_OK) {
        status = encode(&totals->totals, &writer->scratch2);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(totals->insert, 1, (int64_t)first);
    lac_sql_bind_i64(totals->insert, 2, totals->totals.count);
    lac_sql_bind_blob(totals->insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
    return lac_sql_step_done(totals->insert, "trace file", writer->reterr);
}

/* -- read -------------------------------------------------------------------------------------- */

static bool row_of(const struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                   int64_t *const *columns, uint32_t r, struct lac_area_name *row)
{
    const int64_t end = (int64_t)(chunk->first + chunk->count);

    if (columns[0][r] < 0 || columns[0][r] >= LAC_SLICE_KIND_COUNT_ || columns[1][r] < 0 ||
        columns[1][r] >= (int64_t)file->head.strings.count || columns[2][r] < 0 ||
        columns[2][r] > chunk->count || columns[6][r] < -1 || columns[6][r] >= end ||
        (columns[6][r] >= 0 && columns[6][r] < (int64_t)chunk->first) ||
        (columns[2][r] > 0) != (columns[6][r] >= 0)) {
        return false;
    }
    *row =
        (struct lac_area_name){.kind = (uint8_t)columns[0][r],
                               .name = (uint32_t)columns[1][r],
                               .count = (uint64_t)columns[2][r],
                               .total_ns = columns[3][r],
                               .self_ns = columns[4][r],
                               .max_ns = columns[5][r],
                               .longest = columns[6][r] < 0 ? LAC_NONE : (uint32_t)columns[6][r]};
    return true;
}

/** The block under the statement, as rows. */
static enum lac_status decode(const struct lac_trace_file *file,
                              const struct lac_chunk_entry *chunk, sqlite3_stmt *get,
                              struct lac_name_totals *ret_totals)
{
    const int64_t count = sqlite3_column_int64(get, 0);
    int64_t *storage;
    int64_t *columns[COLUMNS];
    enum lac_status status;

    if (count < 0 || count > chunk->count) {
        return LAC_ERR_CORRUPT;
    }
    storage = malloc(sizeof(*storage) * COLUMNS * ((size_t)count + 1));
    ret_totals->rows = malloc(((size_t)count + 1) * sizeof(*ret_totals->rows));
    if (storage == NULL || ret_totals->rows == NULL) {
        free(storage);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t c = 0; c < COLUMNS; c++) {
        columns[c] = storage + (size_t)c * (size_t)count;
    }
    status = lac_columns_decode(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1),
                                COLUMNS, (uint32_t)count, columns);
    for (uint32_t r = 0; r < count && status == LAC_OK; r++) {
        status = row_of(file, chunk, columns, r, &ret_totals->rows[r]) ? LAC_OK : LAC_ERR_CORRUPT;
    }
    ret_totals->count = (uint32_t)count;
    free(storage);
    return status;
}

enum lac_status lac_trace_has_table(const struct lac_trace_file *file, const char *name,
                                    struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(
        file->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", &get, reterr);

    if (status == LAC_OK) {
        lac_sql_bind_text(get, 1, name);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    (void)sqlite3_finalize(get);
    return status;
}

enum lac_status lac_trace_stored_totals(struct lac_trace_file *file,
                                        const struct lac_chunk_entry *chunk,
                                        struct lac_name_totals *ret_totals,
                                        struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    if (file->format_version < LAC_TRACE_FORMAT_TOTALS) {
        return LAC_ERR_NOT_FOUND;
    }
    (void)pthread_mutex_lock(&file->db_lock);
    if (file->get_totals == NULL) {
        status = lac_trace_has_table(file, "total", reterr);
    }
    if (status == LAC_OK && file->get_totals == NULL) {
        status = lac_sql_prepare(file->db, "SELECT count, data FROM total WHERE first = ?",
                                 &file->get_totals, reterr);
    }
    if (status == LAC_OK) {
        lac_sql_bind_i64(file->get_totals, 1, (int64_t)chunk->first);
        status = lac_sql_step_row(file->get_totals, "trace file", reterr);
        if (status == LAC_OK) {
            status = decode(file, chunk, file->get_totals, ret_totals);
        }
        lac_sql_reset(file->get_totals);
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        lac_name_totals_done(ret_totals);
    }
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "totals") : status;
}

enum {
    GAP_COLUMNS = 2 + LAC_GAP_CAUSES, /* device, idle, by cause */
    DEVICES_MAX = 1024,               /* of a block; one with more is read itself */
};
_Static_assert((int)GAP_COLUMNS <= (int)LAC_COLUMN_BLOCK_COLUMNS,
               "a row of totals is one row of a block");

/* -- gaps, written ----------------------------------------------------------------------------- */

struct device_sum {
    int64_t device, idle_ns;
    int64_t cause_ns[LAC_GAP_CAUSES];
};

/** The row of a device, made when there is none; NULL: no room. Gaps of one come together. */
static struct device_sum *sum_of(struct device_sum *sums, uint32_t *count, int64_t device)
{
    for (uint32_t i = *count; i > 0; i--) {
        if (sums[i - 1].device == device) {
            return &sums[i - 1];
        }
    }
    if (*count == DEVICES_MAX) {
        return NULL;
    }
    sums[*count] = (struct device_sum){.device = device};
    return &sums[(*count)++];
}

/** As it is counted when an area is asked for: shares as they are, what is left to the last. */
static void add_gap(const struct lac_gap_rows *rows, uint32_t i, uint32_t *share,
                    struct device_sum *sum)
{
    int64_t left_ns = rows->dur_ns[i];
    int64_t cause = rows->cause[i];

    for (int64_t s = 0; s < rows->shares[i]; s++, (*share)++) {
        const int64_t ns = rows->share_ns[*share];
        const int64_t taken_ns = ns < 0 ? 0 : ns < left_ns ? ns : left_ns;

        cause = rows->share_cause[*share];
        sum->cause_ns[cause] += taken_ns;
        left_ns -= taken_ns;
    }
    sum->cause_ns[cause] += left_ns;
    sum->idle_ns += rows->dur_ns[i];
}

static enum lac_status insert_gaps(struct lac_trace_writer *writer, uint64_t first,
                                   const int64_t edges_ns[2], const struct device_sum *sums,
                                   uint32_t count)
{
    int64_t *storage = malloc(sizeof(*storage) * GAP_COLUMNS * (count + (size_t)1));
    const int64_t *columns[GAP_COLUMNS];
    sqlite3_stmt *statement = NULL;
    enum lac_status status = storage != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (size_t c = 0; c < GAP_COLUMNS && status == LAC_OK; c++) {
        columns[c] = storage + c * count;
        for (uint32_t r = 0; r < count; r++) {
            storage[c * count + r] = c == 0   ? sums[r].device
                                     : c == 1 ? sums[r].idle_ns
                                              : sums[r].cause_ns[c - 2];
        }
    }
    writer->scratch2.size_bytes = 0;
    if (status == LAC_OK) {
        status = lac_columns_encode(columns, GAP_COLUMNS, count, &writer->scratch2);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(writer->db, "INSERT INTO gap_total VALUES(?,?,?,?,?)", &statement,
                                 writer->reterr);
    }
    if (status == LAC_OK) {
        lac_sql_bind_i64(statement, 1, (int64_t)first);
        lac_sql_bind_i64(statement, 2, edges_ns[0]);
        lac_sql_bind_i64(statement, 3, edges_ns[1]);
        lac_sql_bind_i64(statement, 4, count);
        lac_sql_bind_blob(statement, 5, writer->scratch2.data, writer->scratch2.size_bytes);
        status = lac_sql_step_done(statement, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(statement);
    free(storage);
    return status;
}

enum lac_status lac_trace_write_gap_totals(struct lac_trace_writer *writer, uint64_t first,
                                           const struct lac_gap_rows *rows, uint32_t count)
{
    struct device_sum *sums = malloc(sizeof(*sums) * DEVICES_MAX);
    uint32_t sum_count = 0;
    uint32_t share = 0;
    int64_t edges_ns[2] = {INT64_MAX, 0};
    enum lac_status status = sums != NULL ? LAC_OK : LAC_ERR_NOMEM;

    if (first == 0 && status == LAC_OK) {
        status = lac_sql_run(writer->db,
                             "CREATE TABLE gap_total(first INTEGER PRIMARY KEY, start_ns, end_ns,"
                             " count, data)",
                             writer->reterr);
    }

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const int64_t end_ns = rows->start_ns[i] + rows->dur_ns[i];
        struct device_sum *sum = sum_of(sums, &sum_count, rows->device[i]);

        if (sum == NULL) {
            sum_count = 0; /* no rows: the block itself is read */
            edges_ns[0] = 0;
            edges_ns[1] = INT64_MAX;
            break;
        }
        add_gap(rows, i, &share, sum);
        edges_ns[0] = rows->start_ns[i] < edges_ns[0] ? rows->start_ns[i] : edges_ns[0];
        edges_ns[1] = end_ns > edges_ns[1] ? end_ns : edges_ns[1];
    }
    if (status == LAC_OK) {
        status = insert_gaps(writer, first, edges_ns, sums, sum_count);
    }
    free(sums);
    return status;
}

/* -- gaps, read -------------------------------------------------------------------------------- */

/** Add a block that lies in the area as a whole. */
static enum lac_status add_block(sqlite3_stmt *get, struct lac_area *area)
{
    const int64_t count = sqlite3_column_int64(get, 3);
    int64_t *storage;
    int64_t *columns[GAP_COLUMNS];
    enum lac_status status;

    if (count < 1 || count > DEVICES_MAX) {
        return LAC_ERR_CORRUPT;
    }
    storage = malloc(sizeof(*storage) * GAP_COLUMNS * (size_t)count);
    if (storage == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t c = 0; c < GAP_COLUMNS; c++) {
        columns[c] = storage + c * (size_t)count;
    }
    status = lac_columns_decode(sqlite3_column_blob(get, 4), (size_t)sqlite3_column_bytes(get, 4),
                                GAP_COLUMNS, (uint32_t)count, columns);
    for (int64_t r = 0; r < count && status == LAC_OK; r++) {
        struct lac_area_device *device = lac_area_device_of(area, columns[0][r]);

        for (size_t c = 1; c < GAP_COLUMNS && device != NULL; c++) {
            int64_t *into = c == 1 ? &device->idle_ns : &device->cause_ns[c - 2];

            if (__builtin_add_overflow(*into, columns[c][r], into)) {
                status = LAC_ERR_CORRUPT;
            }
        }
    }
    free(storage);
    return status;
}

enum lac_status lac_trace_area_gap_totals(struct lac_trace_file *file,
                                          const struct lac_area_query *query, struct lac_area *area,
                                          struct lac_gap_blocks *ret_edges,
                                          struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status = file->format_version >= LAC_TRACE_FORMAT_TOTALS
                                 ? lac_trace_has_table(file, "gap_total", reterr)
                                 : LAC_ERR_NOT_FOUND;

    if (status != LAC_OK) {
        return status;
    }
    status = lac_sql_prepare(
        file->db, "SELECT first, start_ns, end_ns, count, data FROM gap_total ORDER BY first", &get,
        reterr);

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status != LAC_OK) {
            break;
        }
        const int64_t start_ns = sqlite3_column_int64(get, 1);
        const int64_t end_ns = sqlite3_column_int64(get, 2);

        if (start_ns >= query->t1_ns || end_ns <= query->t0_ns) {
            continue;
        }
        if (start_ns >= query->t0_ns && end_ns <= query->t1_ns &&
            sqlite3_column_int64(get, 3) > 0) {
            status = add_block(get, area);
            continue;
        }
        int64_t *first = realloc(ret_edges->first, (ret_edges->count + (size_t)1) * sizeof(*first));

        if (first == NULL) {
            status = LAC_ERR_NOMEM;
        } else {
            ret_edges->first = first;
            first[ret_edges->count++] = sqlite3_column_int64(get, 0);
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}
