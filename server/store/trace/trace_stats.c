/* Name statistics, postings and rows of the detail tables. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool stat_is_sane(const struct lac_trace_file *file, const struct lac_name_stat *stat)
{
    return stat->name < file->head.strings.count && stat->kind < LAC_SLICE_KIND_COUNT_ &&
           stat->count >= 1 && stat->count <= file->head.slices.count &&
           stat->longest < file->head.slices.count && stat->min_ns >= 0 &&
           stat->min_ns <= stat->max_ns && stat->total_ns >= stat->max_ns;
}

static int compare_key(const struct lac_name_stat *stat, uint8_t kind, uint32_t name)
{
    if (stat->kind != kind) {
        return stat->kind < kind ? -1 : 1;
    }
    return stat->name < name ? -1 : (stat->name > name ? 1 : 0);
}

enum { STAT_COLUMNS = 8 };

/** Turn decoded columns into entries. */
static enum lac_status add_stats(const struct lac_trace_file *file, struct lac_trace_lazy *lazy,
                                 const int64_t *const *columns, uint32_t count,
                                 uint64_t posting_bytes)
{
    uint64_t next = lazy->posting_bytes;
    uint64_t end = lazy->posting_bytes + posting_bytes;

    for (uint32_t i = 0; i < count; i++) {
        struct lac_name_stat *stat = &lazy->stats[lazy->stat_count];

        *stat = (struct lac_name_stat){.name = (uint32_t)columns[1][i],
                                       .kind = (uint8_t)columns[0][i],
                                       .count = (uint64_t)columns[2][i],
                                       .total_ns = columns[3][i],
                                       .min_ns = columns[4][i],
                                       .max_ns = columns[5][i],
                                       .longest = (uint32_t)columns[6][i],
                                       .posting_first = next};
        if (columns[0][i] < 0 || columns[0][i] > UINT8_MAX || columns[1][i] < 0 ||
            columns[1][i] > UINT32_MAX || columns[6][i] < 0 || columns[6][i] > UINT32_MAX ||
            columns[7][i] < 1 || columns[7][i] > (int64_t)(end - next) ||
            !stat_is_sane(file, stat) ||
            (lazy->stat_count > 0 && compare_key(stat - 1, stat->kind, stat->name) >= 0)) {
            return LAC_ERR_CORRUPT;
        }
        next += (uint64_t)columns[7][i];
        lazy->stat_count++;
    }
    return next == end ? LAC_OK : LAC_ERR_CORRUPT;
}

static enum lac_status grow_stats(struct lac_trace_lazy *lazy, uint32_t count,
                                  uint64_t posting_bytes)
{
    struct lac_name_stat *stats =
        realloc(lazy->stats, ((size_t)lazy->stat_count + count) * sizeof(*stats));
    uint8_t *postings;

    if (stats == NULL) {
        return LAC_ERR_NOMEM;
    }
    lazy->stats = stats;
    postings = realloc(lazy->postings, (size_t)(lazy->posting_bytes + posting_bytes) + 1);
    if (postings == NULL) {
        return LAC_ERR_NOMEM;
    }
    lazy->postings = postings;
    return LAC_OK;
}

static enum lac_status add_block(const struct lac_trace_file *file, struct lac_trace_lazy *lazy,
                                 sqlite3_stmt *get)
{
    int64_t first = sqlite3_column_int64(get, 0);
    int64_t count = sqlite3_column_int64(get, 1);
    int64_t posting_bytes = sqlite3_column_int64(get, 3);
    int64_t *columns[STAT_COLUMNS];
    int64_t *storage;
    uint8_t *postings = NULL;
    enum lac_status status;

    if (first != (int64_t)lazy->stat_count || count < 1 || count > LAC_COLUMN_BLOCK_ROWS ||
        posting_bytes < count || posting_bytes > INT32_MAX) {
        return LAC_ERR_CORRUPT;
    }
    storage = malloc(sizeof(*storage) * STAT_COLUMNS * (size_t)count);
    if (storage == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t c = 0; c < STAT_COLUMNS; c++) {
        columns[c] = storage + c * (size_t)count;
    }
    status = lac_columns_decode(sqlite3_column_blob(get, 2), (size_t)sqlite3_column_bytes(get, 2),
                                STAT_COLUMNS, (uint32_t)count, columns);
    if (status == LAC_OK) {
        status = lac_zstd_unpack(sqlite3_column_blob(get, 4), (size_t)sqlite3_column_bytes(get, 4),
                                 (uint64_t)posting_bytes, &postings);
    }
    if (status == LAC_OK) {
        status = grow_stats(lazy, (uint32_t)count, (uint64_t)posting_bytes);
    }
    if (status == LAC_OK) {
        memcpy(lazy->postings + lazy->posting_bytes, postings, (size_t)posting_bytes);
        status = add_stats(file, lazy, (const int64_t *const *)columns, (uint32_t)count,
                           (uint64_t)posting_bytes);
        lazy->posting_bytes += (uint64_t)posting_bytes;
    }
    free(postings);
    free(storage);
    return status;
}

/** With lazy_lock held. */
static enum lac_status load_stats(struct lac_trace_file *file, struct lac_error *reterr)
{
    struct lac_trace_lazy loaded = {0};
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_sql_prepare(file->db,
                             "SELECT first, count, data, posting_bytes, postings FROM name_stat "
                             "ORDER BY first",
                             &get, reterr);
    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            status = add_block(file, &loaded, get);
        }
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_ERR_NOT_FOUND) {
        free(loaded.stats);
        free(loaded.postings);
        return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "name statistics")
                                         : status;
    }
    file->lazy.stats = loaded.stats;
    file->lazy.stat_count = loaded.stat_count;
    file->lazy.postings = loaded.postings;
    file->lazy.posting_bytes = loaded.posting_bytes;
    file->lazy.has_stats = true;
    return LAC_OK;
}

enum lac_status lac_trace_stats(struct lac_trace_file *file, const struct lac_name_stat **ret_stats,
                                uint32_t *ret_count, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    (void)pthread_mutex_lock(&file->lazy_lock);
    if (!file->lazy.has_stats) {
        status = load_stats(file, reterr);
    }
    *ret_stats = file->lazy.stats;
    *ret_count = file->lazy.stat_count;
    (void)pthread_mutex_unlock(&file->lazy_lock);
    return status;
}

enum lac_status lac_trace_find_stat(struct lac_trace_file *file, uint8_t kind, uint32_t name,
                                    const struct lac_name_stat **ret_stat, struct lac_error *reterr)
{
    const struct lac_name_stat *stats = NULL;
    uint32_t low = 0;
    uint32_t count = 0;
    enum lac_status status = lac_trace_stats(file, &stats, &count, reterr);

    *ret_stat = NULL;
    if (status == LAC_OK) {
        LAC_BISECT(low, count, row, compare_key(&stats[row], kind, name) < 0);
    }
    if (status == LAC_OK && low < count && compare_key(&stats[low], kind, name) == 0) {
        *ret_stat = &stats[low];
    }
    return status;
}

enum lac_status lac_trace_postings(struct lac_trace_file *file, const struct lac_name_stat *stat,
                                   uint32_t **ret_chunks, uint32_t *ret_count,
                                   struct lac_error *reterr)
{
    const struct lac_trace_lazy *lazy = &file->lazy; /* loaded: there is a stat */
    bool is_last = stat + 1 == lazy->stats + lazy->stat_count;
    size_t end = (size_t)(is_last ? lazy->posting_bytes : stat[1].posting_first);
    size_t position = (size_t)stat->posting_first;
    uint32_t *chunks = malloc((end - position + 1) * sizeof(*chunks)); /* a byte or more each */
    uint64_t chunk = 0;
    uint32_t count = 0;

    if (chunks == NULL) {
        return LAC_ERR_NOMEM;
    }
    while (position < end) {
        uint64_t delta = 0;

        if (!lac_leb_read(lazy->postings, end, &position, &delta) || delta >= file->chunk_count ||
            (count > 0 && delta == 0) || chunk + delta >= file->chunk_count) {
            free(chunks);
            return lac_trace_corrupt(file, reterr, "postings");
        }
        chunk += delta;
        chunks[count++] = (uint32_t)chunk;
    }
    *ret_chunks = chunks;
    *ret_count = count;
    return LAC_OK;
}

/** The block of a detail table that begins at row `first`: columns one after another; the caller
 *  frees. */
static enum lac_status read_detail_block(struct lac_trace_file *file, unsigned table,
                                         uint32_t first, uint32_t column_count,
                                         int64_t **ret_values, uint32_t *ret_count,
                                         struct lac_error *reterr)
{
    int64_t *columns[LAC_COLUMN_BLOCK_COLUMNS] = {NULL};
    int64_t *storage = NULL;
    sqlite3_stmt *get = NULL;
    int64_t count = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_sql_prepare(file->db, "SELECT count, data FROM detail WHERE id = ?", &get, reterr);
    if (status == LAC_OK) {
        lac_sql_bind_i64(get, 1, (int64_t)table << 48 | first);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        count = sqlite3_column_int64(get, 0);
        if (count < 1 || count > LAC_COLUMN_BLOCK_ROWS) {
            status = LAC_ERR_CORRUPT;
        }
    }
    if (status == LAC_OK) {
        storage = malloc(sizeof(*storage) * (size_t)count * column_count);
        status = storage != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        for (uint32_t c = 0; c < column_count; c++) {
            columns[c] = storage + (size_t)c * (size_t)count;
        }
        status =
            lac_columns_decode(sqlite3_column_blob(get, 1), (size_t)sqlite3_column_bytes(get, 1),
                               column_count, (uint32_t)count, columns);
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        free(storage);
        return status == LAC_ERR_NOT_FOUND || status == LAC_ERR_CORRUPT
                   ? lac_trace_corrupt(file, reterr, "details")
                   : status;
    }
    *ret_values = storage;
    *ret_count = (uint32_t)count;
    return LAC_OK;
}

enum lac_status lac_trace_detail_row(struct lac_trace_file *file, unsigned table, uint32_t row,
                                     uint32_t column_count, int64_t *values,
                                     struct lac_error *reterr)
{
    const uint32_t at = row % LAC_COLUMN_BLOCK_ROWS;
    int64_t *block = NULL;
    uint32_t count = 0;
    enum lac_status status =
        read_detail_block(file, table, row - at, column_count, &block, &count, reterr);

    if (status == LAC_OK && at >= count) {
        status = lac_trace_corrupt(file, reterr, "details");
    }
    for (uint32_t c = 0; c < column_count && status == LAC_OK && block != NULL; c++) {
        values[c] = block[(size_t)c * count + at];
    }
    free(block);
    return status;
}

enum lac_status lac_trace_loader_batches(struct lac_trace_file *file, int64_t **ret_batches,
                                         struct lac_error *reterr)
{
    const uint32_t total = file->head.loader_info_count;
    int64_t *batches = malloc(((size_t)total + 1) * sizeof(*batches));
    enum lac_status status = batches != NULL ? LAC_OK : LAC_ERR_NOMEM;
    uint32_t done = 0;

    while (status == LAC_OK && done < total) {
        int64_t *block = NULL;
        uint32_t count = 0;

        status = read_detail_block(file, LAC_DETAIL_LOADER, done, 3, &block, &count, reterr);
        if (status == LAC_OK && count > total - done) {
            status = lac_trace_corrupt(file, reterr, "details");
        }
        if (status == LAC_OK && block != NULL) {
            memcpy(batches + done, block, count * sizeof(*batches));
            done += count;
        }
        free(block);
    }
    if (status != LAC_OK) {
        free(batches);
        return status;
    }
    *ret_batches = batches;
    return LAC_OK;
}

bool lac_text_contains(const char *text, size_t length, const char *word, size_t word_length)
{
    char first;

    if (word_length == 0) {
        return true;
    }
    first = word[0];
    for (size_t i = 0; i + word_length <= length; i++) {
        char c = text[i];
        size_t matched = 1;

        c = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        if (c != first) {
            continue;
        }
        while (matched < word_length) {
            char d = text[i + matched];

            d = (char)(d >= 'A' && d <= 'Z' ? d - 'A' + 'a' : d);
            if (d != word[matched]) {
                break;
            }
            matched++;
        }
        if (matched == word_length) {
            return true;
        }
    }
    return false;
}

char *lac_text_lower(const char *text, size_t *ret_length)
{
    size_t length = strlen(text);
    char *lower = malloc(length + 1);

    if (lower == NULL) {
        return NULL;
    }
    for (size_t i = 0; i <= length; i++) {
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    }
    *ret_length = length;
    return lower;
}

bool lac_offset_cursor(const char *cursor, uint64_t *ret_offset)
{
    char *end = NULL;

    *ret_offset = 0;
    if (cursor == NULL || *cursor == '\0') {
        return true;
    }
    if (cursor[0] != 'o' || cursor[1] < '0' || cursor[1] > '9' || strlen(cursor) > 18) {
        return false;
    }
    *ret_offset = strtoull(cursor + 1, &end, 10);
    return *end == '\0';
}

void lac_offset_cursor_write(uint64_t offset, char *out, size_t capacity_bytes)
{
    (void)snprintf(out, capacity_bytes, "o%llu", (unsigned long long)offset);
}
