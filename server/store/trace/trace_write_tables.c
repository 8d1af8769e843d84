/* Tables string, detail, sample and flow. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_write_private.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** zstd levels of strings: they are a tenth of a small trace, where time does not matter. */
enum { STRING_LEVEL_SMALL = 9, STRING_LEVEL_LARGE = 3, STRING_SMALL_BYTES = 1 << 20 };

static enum lac_status write_string_block(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                          uint32_t first, uint32_t end)
{
    const struct lac_strings *strings = &writer->model->strings;
    struct lac_bytes *raw = &writer->scratch2;
    int level = strings->bytes_used <= STRING_SMALL_BYTES ? STRING_LEVEL_SMALL : STRING_LEVEL_LARGE;
    enum lac_status status = LAC_OK;

    raw->size_bytes = 0;
    for (uint32_t id = first; id < end && status == LAC_OK; id++) {
        status = lac_bytes_append_leb(raw, lac_strings_length(strings, id));
    }
    for (uint32_t id = first; id < end && status == LAC_OK; id++) {
        status =
            lac_bytes_append(raw, lac_strings_get(strings, id), lac_strings_length(strings, id));
    }
    if (status == LAC_OK) {
        status = lac_zstd_pack(raw->data, raw->size_bytes, level, &writer->scratch);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(insert, 1, first);
    lac_sql_bind_i64(insert, 2, end - first);
    lac_sql_bind_i64(insert, 3, (int64_t)raw->size_bytes);
    lac_sql_bind_blob(insert, 4, writer->scratch.data, writer->scratch.size_bytes);
    return lac_sql_step_done(insert, "trace file", writer->reterr);
}

enum lac_status lac_trace_write_strings(struct lac_trace_writer *writer)
{
    const struct lac_strings *strings = &writer->model->strings;
    sqlite3_stmt *insert = NULL;
    enum lac_status status =
        lac_sql_prepare(writer->db, "INSERT INTO string VALUES(?,?,?,?)", &insert, writer->reterr);

    for (uint32_t first = 0; first < strings->count && status == LAC_OK;) {
        uint32_t end = first + 1;

        while (end < strings->count &&
               strings->offset[end + 1] - strings->offset[first] <= LAC_STRING_BLOCK_BYTES) {
            end++;
        }
        status = write_string_block(writer, insert, first, end);
        first = end;
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static int64_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/** Fill row `i` of `columns` from entry `row` of a detail table. @return the number of columns */
static uint32_t detail_row(const struct lac_model *model, enum lac_detail_table table, uint32_t row,
                           int64_t **columns, uint32_t i)
{
    uint32_t c = 0;

    switch (table) {
    case LAC_DETAIL_KERNEL_CONFIG: {
        const struct lac_kernel_config *config = &model->kernel_configs[row];

        for (unsigned d = 0; d < 3; d++) {
            columns[c++][i] = config->grid[d];
        }
        for (unsigned d = 0; d < 3; d++) {
            columns[c++][i] = config->block[d];
        }
        columns[c++][i] = config->registers_per_thread;
        columns[c++][i] = config->shared_memory_bytes;
        columns[c++][i] = float_bits(config->occupancy_pct);
        columns[c++][i] = float_bits(config->blocks_per_sm);
        columns[c++][i] = (int64_t)config->graph_node;
        columns[c++][i] = config->module;
        break;
    }
    case LAC_DETAIL_COPY:
        columns[c++][i] = model->copies[row].bytes;
        columns[c++][i] = model->copies[row].copy_kind;
        columns[c++][i] = model->copies[row].src;
        columns[c++][i] = model->copies[row].dst;
        columns[c++][i] = model->copies[row].is_async;
        columns[c++][i] = (int64_t)model->copies[row].graph_node;
        columns[c++][i] = model->copies[row].module;
        break;
    case LAC_DETAIL_LOADER:
        columns[c++][i] = model->loader_infos[row].batch;
        columns[c++][i] = model->loader_infos[row].cpu_ns;
        columns[c++][i] = model->loader_infos[row].worker;
        break;
    case LAC_DETAIL_ALLOC:
        columns[c++][i] = model->allocs[row].bytes;
        columns[c++][i] = model->allocs[row].total_allocated;
        columns[c++][i] = model->allocs[row].device;
        break;
    case LAC_DETAIL_COUNT_:
        break;
    }
    return c;
}

static enum lac_status write_detail(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                    int64_t **columns, enum lac_detail_table table, uint32_t rows)
{
    enum lac_status status = LAC_OK;

    for (uint32_t first = 0; first < rows && status == LAC_OK; first += LAC_COLUMN_BLOCK_ROWS) {
        uint32_t count =
            rows - first < LAC_COLUMN_BLOCK_ROWS ? rows - first : LAC_COLUMN_BLOCK_ROWS;
        uint32_t column_count = 0;

        for (uint32_t i = 0; i < count; i++) {
            column_count = detail_row(writer->model, table, first + i, columns, i);
        }
        writer->scratch2.size_bytes = 0;
        status = lac_columns_encode((const int64_t *const *)columns, column_count, count,
                                    &writer->scratch2);
        if (status == LAC_OK) {
            lac_sql_bind_i64(insert, 1, (int64_t)table << 48 | first);
            lac_sql_bind_i64(insert, 2, count);
            lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
            status = lac_sql_step_done(insert, "trace file", writer->reterr);
        }
    }
    return status;
}

enum lac_status lac_trace_write_details(struct lac_trace_writer *writer)
{
    const struct lac_model *model = writer->model;
    const uint32_t rows[LAC_DETAIL_COUNT_] = {[LAC_DETAIL_KERNEL_CONFIG] =
                                                  model->kernel_config_count,
                                              [LAC_DETAIL_COPY] = model->copy_count,
                                              [LAC_DETAIL_LOADER] = model->loader_info_count,
                                              [LAC_DETAIL_ALLOC] = model->alloc_count};
    int64_t *columns[LAC_COLUMN_BLOCK_COLUMNS] = {NULL};
    int64_t *storage =
        malloc(sizeof(int64_t) * LAC_COLUMN_BLOCK_COLUMNS * (size_t)LAC_COLUMN_BLOCK_ROWS);
    sqlite3_stmt *insert = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (storage != NULL) {
        for (size_t c = 0; c < LAC_COLUMN_BLOCK_COLUMNS; c++) {
            columns[c] = storage + c * LAC_COLUMN_BLOCK_ROWS;
        }
        status = lac_sql_prepare(writer->db, "INSERT INTO detail VALUES(?,?,?)", &insert,
                                 writer->reterr);
    }
    for (unsigned table = 0; table < LAC_DETAIL_COUNT_ && status == LAC_OK; table++) {
        status = write_detail(writer, insert, columns, (enum lac_detail_table)table, rows[table]);
    }
    (void)sqlite3_finalize(insert);
    free(storage);
    return status;
}

static enum lac_status write_sample_block(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                          uint32_t track, uint64_t first, uint32_t count,
                                          int64_t *bits)
{
    const int64_t *ts_ns = writer->model->sample_ts_ns + first;
    const int64_t *columns[2] = {ts_ns, bits};
    enum lac_status status;

    memcpy(bits, writer->model->sample_value + first, count * sizeof(*bits));
    writer->scratch2.size_bytes = 0;
    status = lac_columns_encode(columns, 2, count, &writer->scratch2);
    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_i64(insert, 1, (int64_t)first);
    lac_sql_bind_i64(insert, 2, track);
    lac_sql_bind_i64(insert, 3, count);
    lac_sql_bind_i64(insert, 4, ts_ns[0]);
    lac_sql_bind_i64(insert, 5, ts_ns[count - 1]);
    lac_sql_bind_blob(insert, 6, writer->scratch2.data, writer->scratch2.size_bytes);
    return lac_sql_step_done(insert, "trace file", writer->reterr);
}

enum lac_status lac_trace_write_samples(struct lac_trace_writer *writer)
{
    int64_t *bits = malloc(sizeof(*bits) * LAC_COLUMN_BLOCK_ROWS);
    sqlite3_stmt *insert = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (bits != NULL) {
        status = lac_sql_prepare(writer->db, "INSERT INTO sample VALUES(?,?,?,?,?,?)", &insert,
                                 writer->reterr);
    }
    for (uint32_t t = 0; t < writer->model->track_count && status == LAC_OK; t++) {
        const struct lac_track *track = &writer->model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER) {
            continue;
        }
        for (uint64_t i = 0; i < track->count && status == LAC_OK; i += LAC_COLUMN_BLOCK_ROWS) {
            uint64_t left = track->count - i;

            status = write_sample_block(
                writer, insert, t, track->first + i,
                left < LAC_COLUMN_BLOCK_ROWS ? (uint32_t)left : LAC_COLUMN_BLOCK_ROWS, bits);
        }
    }
    (void)sqlite3_finalize(insert);
    free(bits);
    return status;
}

enum lac_status lac_trace_write_flows(struct lac_trace_writer *writer)
{
    const struct lac_model *model = writer->model;
    int64_t *storage = malloc(sizeof(*storage) * 3 * LAC_COLUMN_BLOCK_ROWS);
    sqlite3_stmt *insert = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (storage != NULL) {
        status =
            lac_sql_prepare(writer->db, "INSERT INTO flow VALUES(?,?,?)", &insert, writer->reterr);
    }
    for (uint64_t first = 0; first < model->flow_count && status == LAC_OK;
         first += LAC_COLUMN_BLOCK_ROWS) {
        uint64_t left = model->flow_count - first;
        uint32_t count = left < LAC_COLUMN_BLOCK_ROWS ? (uint32_t)left : LAC_COLUMN_BLOCK_ROWS;
        const int64_t *columns[3] = {storage, storage + LAC_COLUMN_BLOCK_ROWS,
                                     storage + 2 * (size_t)LAC_COLUMN_BLOCK_ROWS};

        for (uint32_t i = 0; i < count; i++) {
            const struct lac_flow *flow = &model->flows[first + i];

            storage[i] = flow->src;
            storage[LAC_COLUMN_BLOCK_ROWS + i] = flow->dst;
            storage[2 * (size_t)LAC_COLUMN_BLOCK_ROWS + i] = flow->name;
        }
        writer->scratch2.size_bytes = 0;
        status = lac_columns_encode(columns, 3, count, &writer->scratch2);
        if (status == LAC_OK) {
            lac_sql_bind_i64(insert, 1, (int64_t)first);
            lac_sql_bind_i64(insert, 2, count);
            lac_sql_bind_blob(insert, 3, writer->scratch2.data, writer->scratch2.size_bytes);
            status = lac_sql_step_done(insert, "trace file", writer->reterr);
        }
    }
    (void)sqlite3_finalize(insert);
    free(storage);
    return status;
}
