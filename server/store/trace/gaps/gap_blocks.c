/* Blocks of gaps, decoded and checked. */

#include "server/store/trace/gaps/gap_blocks.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void lac_gap_table_done(struct lac_gap_table *table)
{
    for (unsigned c = 0; c < LAC_GAP_COLUMNS; c++) {
        free(table->columns[c]);
    }
    free(table->share_first);
    free(table->text_first);
    free(table->share_cause);
    free(table->share_ns);
    free(table->texts);
    free(table->by_dur);
    free(table->per_step);
    *table = (struct lac_gap_table){0};
}

bool lac_gap_grow(int64_t **array, uint64_t count)
{
    int64_t *grown = realloc(*array, (size_t)count * sizeof(*grown) + 1);

    if (grown == NULL) {
        return false;
    }
    *array = grown;
    return true;
}

static enum lac_status append_gaps(const struct lac_trace_file *file, struct lac_gap_table *table,
                                   sqlite3_stmt *get, uint32_t count)
{
    const unsigned stored = file->format_version >= LAC_TRACE_FORMAT_ROOTS
                                ? LAC_GAP_COLUMNS
                                : LAC_GAP_COLUMNS_BEFORE_ROOTS;
    int64_t *columns[LAC_GAP_COLUMNS];

    for (unsigned c = 0; c < LAC_GAP_COLUMNS; c++) {
        columns[c] = NULL;
        if ((table->left_out >> c & 1) == 0) {
            if (!lac_gap_grow(&table->columns[c], table->count + count)) {
                return LAC_ERR_NOMEM;
            }
            columns[c] = table->columns[c] + table->count;
        }
    }
    for (unsigned c = stored; c < LAC_GAP_COLUMNS; c++) {
        for (uint32_t i = 0; i < count && columns[c] != NULL; i++) {
            columns[c][i] = -1;
        }
    }
    table->count += count;
    return lac_columns_decode(sqlite3_column_blob(get, 2), (size_t)sqlite3_column_bytes(get, 2),
                              stored, count, columns);
}

static enum lac_status append_shares(struct lac_gap_table *table, sqlite3_stmt *get,
                                     uint32_t share_count)
{
    int64_t *columns[2];

    if (!lac_gap_grow(&table->share_cause, table->share_count + share_count) ||
        !lac_gap_grow(&table->share_ns, table->share_count + share_count)) {
        return LAC_ERR_NOMEM;
    }
    columns[0] = table->share_cause + table->share_count;
    columns[1] = table->share_ns + table->share_count;
    table->share_count += share_count;
    return share_count == 0
               ? LAC_OK
               : lac_columns_decode(sqlite3_column_blob(get, 4),
                                    (size_t)sqlite3_column_bytes(get, 4), 2, share_count, columns);
}

static enum lac_status append_texts(struct lac_gap_table *table, sqlite3_stmt *get,
                                    uint64_t text_bytes)
{
    char *texts = realloc(table->texts, (size_t)(table->text_bytes + text_bytes) + 1);
    uint8_t *raw = NULL;
    enum lac_status status;

    if (texts == NULL) {
        return LAC_ERR_NOMEM;
    }
    table->texts = texts;
    if (text_bytes == 0) {
        return LAC_OK;
    }
    status = lac_zstd_unpack(sqlite3_column_blob(get, 6), (size_t)sqlite3_column_bytes(get, 6),
                             text_bytes, &raw);
    if (status == LAC_OK) {
        memcpy(table->texts + table->text_bytes, raw, (size_t)text_bytes);
        table->text_bytes += text_bytes;
    }
    free(raw);
    return status;
}

/** One block into the empty `table`. */
static enum lac_status read_block(const struct lac_trace_file *file, struct lac_gap_table *table,
                                  sqlite3_stmt *get, uint64_t first)
{
    int64_t count = sqlite3_column_int64(get, 1);
    int64_t shares = sqlite3_column_int64(get, 3);
    int64_t texts = sqlite3_column_int64(get, 5);
    enum lac_status status;

    if (sqlite3_column_int64(get, 0) != (int64_t)first || count < 1 ||
        count > LAC_COLUMN_BLOCK_ROWS || shares < 0 || shares > count * LAC_CAUSE_COUNT_ ||
        texts < 0 || texts > count * 256) {
        return LAC_ERR_CORRUPT;
    }
    status = append_gaps(file, table, get, (uint32_t)count);
    if (status == LAC_OK && (table->left_out >> LAC_GAP_SHARES & 1) == 0) {
        status = append_shares(table, get, (uint32_t)shares);
    }
    if (status == LAC_OK && (table->left_out >> LAC_GAP_TEXT & 1) == 0) {
        status = append_texts(table, get, (uint64_t)texts);
    }
    return status;
}

/** The values that a column may have, both ends included. */
static void limits_of(const struct lac_trace_file *file, unsigned column, int64_t *ret_low,
                      int64_t *ret_high)
{
    static const struct {
        int64_t low, high;
    } limits[LAC_GAP_COLUMNS] = {
        [LAC_GAP_START] = {0, LAC_TIME_MAX_NS},
        [LAC_GAP_DUR] = {0, LAC_TIME_MAX_NS},
        [LAC_GAP_DEVICE] = {INT64_MIN, INT64_MAX},
        [LAC_GAP_CAUSE] = {0, LAC_CAUSE_COUNT_ - 1},
        [LAC_GAP_SIGNATURE] = {0, UINT32_MAX},
        [LAC_GAP_SHARES] = {0, LAC_CAUSE_COUNT_},
        [LAC_GAP_TEXT] = {0, 255},
        [LAC_GAP_ROOT_KIND] = {-1, LAC_ROOT_COUNT_ - 1},
    };
    const bool is_slice = column == LAC_GAP_ENDED_BY || column >= LAC_GAP_ROOT;

    *ret_low = is_slice ? -1 : limits[column].low;
    *ret_high = is_slice ? (int64_t)file->head.slices.count - 1 : limits[column].high;
}

static bool are_gaps_sane(const struct lac_trace_file *file, const struct lac_gap_table *table)
{
    const int64_t *start_ns = table->columns[LAC_GAP_START];
    const int64_t *dur_ns = table->columns[LAC_GAP_DUR];
    const uint32_t times = 1U << LAC_GAP_START | 1U << LAC_GAP_DUR;
    int bad = 0;

    for (unsigned c = 0; c < LAC_GAP_COLUMNS; c++) {
        const int64_t *values = table->columns[c];
        int64_t low;
        int64_t high;

        limits_of(file, c, &low, &high);
        for (uint64_t i = 0; (table->left_out >> c & 1) == 0 && i < table->count; i++) {
            bad |= (values[i] < low) | (values[i] > high);
        }
    }
    for (uint64_t i = 0; (table->left_out & times) == 0 && bad == 0 && i < table->count; i++) {
        bad |= dur_ns[i] > LAC_TIME_MAX_NS - start_ns[i];
    }
    return bad == 0;
}

static enum lac_status index_shares(struct lac_gap_table *table)
{
    uint64_t shares = 0;

    table->share_first = malloc((table->count + 1) * sizeof(*table->share_first));
    if (table->share_first == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        table->share_first[i] = shares;
        shares += (uint64_t)table->columns[LAC_GAP_SHARES][i];
    }
    table->share_first[table->count] = shares;
    for (uint64_t i = 0; i < table->share_count; i++) {
        if (table->share_cause[i] < 0 || table->share_cause[i] >= LAC_CAUSE_COUNT_) {
            return LAC_ERR_CORRUPT;
        }
    }
    return shares == table->share_count ? LAC_OK : LAC_ERR_CORRUPT;
}

static enum lac_status index_texts(struct lac_gap_table *table)
{
    uint64_t texts = 0;

    table->text_first = malloc((table->count + 1) * sizeof(*table->text_first));
    if (table->text_first == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        table->text_first[i] = texts;
        texts += (uint64_t)table->columns[LAC_GAP_TEXT][i];
    }
    table->text_first[table->count] = texts;
    return texts == table->text_bytes ? LAC_OK : LAC_ERR_CORRUPT;
}

enum lac_status lac_gap_table_index(const struct lac_trace_file *file, struct lac_gap_table *table)
{
    enum lac_status status = are_gaps_sane(file, table) ? LAC_OK : LAC_ERR_CORRUPT;

    if (status == LAC_OK && (table->left_out >> LAC_GAP_SHARES & 1) == 0) {
        status = index_shares(table);
    }
    if (status == LAC_OK && (table->left_out >> LAC_GAP_TEXT & 1) == 0) {
        status = index_texts(table);
    }
    return status;
}

static void empty(struct lac_gap_table *block)
{
    block->count = 0;
    block->share_count = 0;
    block->text_bytes = 0;
    free(block->share_first);
    free(block->text_first);
    block->share_first = NULL;
    block->text_first = NULL;
}

enum lac_status lac_gap_block_decode(const struct lac_trace_file *file, struct lac_gap_table *block,
                                     sqlite3_stmt *get, uint64_t first)
{
    enum lac_status status;

    empty(block);
    status = read_block(file, block, get, first);
    return status == LAC_OK ? lac_gap_table_index(file, block) : status;
}

static enum lac_status append_signatures(struct lac_gap_table *table, sqlite3_stmt *get)
{
    int64_t first = sqlite3_column_int64(get, 0);
    int64_t count = sqlite3_column_int64(get, 1);
    int64_t *columns[1];
    double *per_step;

    if (first != (int64_t)table->signature_count || count < 1 || count > LAC_COLUMN_BLOCK_ROWS ||
        first + count > UINT32_MAX) {
        return LAC_ERR_CORRUPT;
    }
    per_step = realloc(table->per_step, (size_t)(first + count) * sizeof(*per_step));
    if (per_step == NULL) {
        return LAC_ERR_NOMEM;
    }
    table->per_step = per_step;
    _Static_assert(sizeof(double) == sizeof(int64_t), "bits of a double are read as int64");
    columns[0] = malloc((size_t)count * sizeof(int64_t));
    if (columns[0] == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (lac_columns_decode(sqlite3_column_blob(get, 2), (size_t)sqlite3_column_bytes(get, 2), 1,
                           (uint32_t)count, columns) != LAC_OK) {
        free(columns[0]);
        return LAC_ERR_CORRUPT;
    }
    memcpy(table->per_step + first, columns[0], (size_t)count * sizeof(double));
    free(columns[0]);
    table->signature_count += (uint32_t)count;
    return LAC_OK;
}

enum lac_status lac_gap_signatures_read(struct lac_trace_file *file, struct lac_gap_table *table,
                                        struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT * FROM gap_signature ORDER BY id", &get, reterr);

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = append_signatures(table, get);
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** All blocks of a table. @param query gives them, in order */
static enum lac_status visit(struct lac_trace_file *file, const char *query, uint32_t left_out,
                             lac_take_gaps_fn *take, void *context, struct lac_error *reterr)
{
    struct lac_gap_table block = {.left_out = left_out};
    uint64_t first = 0;
    sqlite3_stmt *get = NULL;
    enum lac_status status = lac_sql_prepare(file->db, query, &get, reterr);

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = lac_gap_block_decode(file, &block, get, first);
        }
        if (status == LAC_OK) {
            status = take(context, &block);
            first += block.count;
        }
    }
    lac_gap_table_done(&block);
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_gap_blocks_visit(struct lac_trace_file *file, uint32_t left_out,
                                     lac_take_gaps_fn *take, void *context,
                                     struct lac_error *reterr)
{
    return visit(file, "SELECT * FROM gap ORDER BY first", left_out, take, context, reterr);
}

enum lac_status lac_gap_long_visit(struct lac_trace_file *file, lac_take_gaps_fn *take,
                                   void *context, struct lac_error *reterr)
{
    enum lac_status status = lac_trace_has_table(file, "long_gap", reterr);

    if (status == LAC_OK) {
        return visit(file, "SELECT * FROM long_gap ORDER BY first", 0, take, context, reterr);
    }
    return status == LAC_ERR_NOT_FOUND ? lac_gap_blocks_visit(file, 0, take, context, reterr)
                                       : status;
}

enum lac_status lac_gap_block_visit(struct lac_trace_file *file, int64_t first, uint32_t left_out,
                                    lac_take_gaps_fn *take, void *context, struct lac_error *reterr)
{
    struct lac_gap_table block = {.left_out = left_out};
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT * FROM gap WHERE first = ?", &get, reterr);

    if (status == LAC_OK) {
        lac_sql_bind_i64(get, 1, first);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        status = lac_gap_block_decode(file, &block, get, (uint64_t)first);
    }
    if (status == LAC_OK) {
        status = take(context, &block);
    }
    lac_gap_table_done(&block);
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_ERR_CORRUPT : status;
}

void lac_gap_fill_shares(const struct lac_gap_table *table, uint64_t i, struct lac_gap_row *row)
{
    memset(row->cause_ns, 0, sizeof(row->cause_ns));
    if (table->columns[LAC_GAP_SHARES][i] == 0) {
        row->cause_ns[row->cause] = row->dur_ns;
    }
    for (uint64_t s = table->share_first[i]; s < table->share_first[i + 1]; s++) {
        row->cause_ns[table->share_cause[s]] = table->share_ns[s];
    }
}

uint32_t lac_gap_slice(int64_t value)
{
    return value < 0 ? LAC_NONE : (uint32_t)value;
}
