/*
 * The table of gaps, loaded when first asked for: those that are long enough to be seen, which are
 * what everybody asks for and a small part of all; the whole table only for who asks for shorter.
 */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_LIMIT_MAX = 10000 };

/** What counts as a gap in an analysis. */
#define LONG_GAP_NS 10000

enum gap_column {
    GAP_START = 0,
    GAP_DUR,
    GAP_DEVICE,
    GAP_CAUSE,
    GAP_SIGNATURE,
    GAP_ENDED_BY,
    GAP_SHARES,
    GAP_TEXT,
    GAP_ROOT_KIND,
    GAP_ROOT,
    GAP_WAIT,
    GAP_BATCH,
    GAP_COLUMNS,
    GAP_COLUMNS_BEFORE_ROOTS = GAP_ROOT_KIND, /**< in files before LAC_TRACE_FORMAT_ROOTS */
};

void lac_gap_table_done(struct lac_gap_table *table)
{
    for (unsigned c = 0; c < GAP_COLUMNS; c++) {
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

/** Grow an array to `count` entries. @return false when out of memory */
static bool grow(int64_t **array, uint64_t count)
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
    const unsigned stored =
        file->format_version >= LAC_TRACE_FORMAT_ROOTS ? GAP_COLUMNS : GAP_COLUMNS_BEFORE_ROOTS;
    int64_t *columns[GAP_COLUMNS];

    for (unsigned c = 0; c < GAP_COLUMNS; c++) {
        if (!grow(&table->columns[c], table->count + count)) {
            return LAC_ERR_NOMEM;
        }
        columns[c] = table->columns[c] + table->count;
    }
    for (unsigned c = stored; c < GAP_COLUMNS; c++) {
        for (uint32_t i = 0; i < count; i++) {
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

    if (!grow(&table->share_cause, table->share_count + share_count) ||
        !grow(&table->share_ns, table->share_count + share_count)) {
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
    if (status == LAC_OK) {
        status = append_shares(table, get, (uint32_t)shares);
    }
    if (status == LAC_OK) {
        status = append_texts(table, get, (uint64_t)texts);
    }
    return status;
}

/** A column's slice, or -1 for none. */
static bool is_slice(const struct lac_trace_file *file, int64_t value)
{
    return value >= -1 && value < (int64_t)file->head.slices.count;
}

static uint32_t slice_of(int64_t value)
{
    return value < 0 ? LAC_NONE : (uint32_t)value;
}

static bool gap_is_sane(const struct lac_trace_file *file, const struct lac_gap_table *table,
                        uint64_t i)
{
    int64_t start_ns = table->columns[GAP_START][i];
    int64_t dur_ns = table->columns[GAP_DUR][i];
    int64_t root_kind = table->columns[GAP_ROOT_KIND][i];

    return start_ns >= 0 && start_ns <= LAC_TIME_MAX_NS && dur_ns >= 0 &&
           dur_ns <= LAC_TIME_MAX_NS - start_ns && table->columns[GAP_CAUSE][i] >= 0 &&
           table->columns[GAP_CAUSE][i] < LAC_CAUSE_COUNT_ &&
           table->columns[GAP_SIGNATURE][i] >= 0 &&
           table->columns[GAP_SIGNATURE][i] <= UINT32_MAX &&
           is_slice(file, table->columns[GAP_ENDED_BY][i]) && root_kind >= -1 &&
           root_kind < LAC_ROOT_COUNT_ && is_slice(file, table->columns[GAP_ROOT][i]) &&
           is_slice(file, table->columns[GAP_WAIT][i]) &&
           is_slice(file, table->columns[GAP_BATCH][i]) && table->columns[GAP_SHARES][i] >= 0 &&
           table->columns[GAP_SHARES][i] <= LAC_CAUSE_COUNT_ && table->columns[GAP_TEXT][i] >= 0 &&
           table->columns[GAP_TEXT][i] < 256;
}

/** Check, and lay out shares and texts. */
static enum lac_status index_gaps(const struct lac_trace_file *file, struct lac_gap_table *table)
{
    uint64_t shares = 0;
    uint64_t texts = 0;

    table->share_first = malloc((table->count + 1) * sizeof(*table->share_first));
    table->text_first = malloc((table->count + 1) * sizeof(*table->text_first));
    if (table->share_first == NULL || table->text_first == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        if (!gap_is_sane(file, table, i)) {
            return LAC_ERR_CORRUPT;
        }
        table->share_first[i] = shares;
        table->text_first[i] = texts;
        shares += (uint64_t)table->columns[GAP_SHARES][i];
        texts += (uint64_t)table->columns[GAP_TEXT][i];
    }
    table->share_first[table->count] = shares;
    table->text_first[table->count] = texts;
    for (uint64_t i = 0; i < table->share_count; i++) {
        if (table->share_cause[i] < 0 || table->share_cause[i] >= LAC_CAUSE_COUNT_) {
            return LAC_ERR_CORRUPT;
        }
    }
    return shares == table->share_count && texts == table->text_bytes ? LAC_OK : LAC_ERR_CORRUPT;
}

/** A block's table is used for the next one: what it holds is forgotten, its memory kept. */
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

/** Room in `table` for what `block` may add. */
static bool reserve(struct lac_gap_table *table, const struct lac_gap_table *block)
{
    bool is_done = grow(&table->share_cause, table->share_count + block->share_count) &&
                   grow(&table->share_ns, table->share_count + block->share_count);
    char *texts = realloc(table->texts, (size_t)(table->text_bytes + block->text_bytes) + 1);

    for (unsigned c = 0; c < GAP_COLUMNS && is_done; c++) {
        is_done = grow(&table->columns[c], table->count + block->count);
    }
    table->texts = texts != NULL ? texts : table->texts;
    return is_done && texts != NULL;
}

/** Append the gaps of `block` that last `floor_ns` or longer. */
static enum lac_status keep_long(struct lac_gap_table *table, const struct lac_gap_table *block,
                                 int64_t floor_ns)
{
    if (!reserve(table, block)) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < block->count; i++) {
        const uint64_t shares = block->share_first[i + 1] - block->share_first[i];
        const uint64_t texts = block->text_first[i + 1] - block->text_first[i];

        if (block->columns[GAP_DUR][i] < floor_ns) {
            continue;
        }
        for (unsigned c = 0; c < GAP_COLUMNS; c++) {
            table->columns[c][table->count] = block->columns[c][i];
        }
        table->count++;
        for (uint64_t k = 0; k < shares; k++) {
            const uint64_t from = block->share_first[i] + k;

            table->share_cause[table->share_count] = block->share_cause[from];
            table->share_ns[table->share_count++] = block->share_ns[from];
        }
        memcpy(table->texts + table->text_bytes, block->texts + block->text_first[i], texts);
        table->text_bytes += texts;
    }
    return LAC_OK;
}

static int by_dur_then_start(const void *left, const void *right, void *context)
{
    const struct lac_gap_table *table = context;
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    const int64_t *dur_ns = table->columns[GAP_DUR];

    if (dur_ns[a] != dur_ns[b]) {
        return dur_ns[a] > dur_ns[b] ? -1 : 1;
    }
    return a < b ? -1 : (a > b ? 1 : 0);
}

static enum lac_status sort_gaps(struct lac_gap_table *table)
{
    table->by_dur = malloc((table->count + 1) * sizeof(*table->by_dur));
    if (table->by_dur == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        table->by_dur[i] = i;
    }
    qsort_r(table->by_dur, (size_t)table->count, sizeof(*table->by_dur), by_dur_then_start, table);
    return LAC_OK;
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

/** With both locks held. */
static enum lac_status read_signatures(struct lac_trace_file *file, struct lac_gap_table *table,
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

/** Takes a block of gaps, checked and laid out. */
typedef enum lac_status take_gaps_fn(void *context, const struct lac_gap_table *block);

/** With db_lock held: all gaps, block by block, every one checked. */
static enum lac_status read_gaps(struct lac_trace_file *file, take_gaps_fn *take, void *context,
                                 struct lac_error *reterr)
{
    struct lac_gap_table block = {0};
    uint64_t first = 0;
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT * FROM gap ORDER BY first", &get, reterr);

    while (status == LAC_OK) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            empty(&block);
            status = read_block(file, &block, get, first);
        }
        if (status == LAC_OK) {
            status = index_gaps(file, &block);
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

/** With db_lock held: the block that begins with gap `first`. */
static enum lac_status read_gaps_at(struct lac_trace_file *file, int64_t first, take_gaps_fn *take,
                                    void *context, struct lac_error *reterr)
{
    struct lac_gap_table block = {0};
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT * FROM gap WHERE first = ?", &get, reterr);

    if (status == LAC_OK) {
        lac_sql_bind_i64(get, 1, first);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        status = read_block(file, &block, get, (uint64_t)first);
    }
    if (status == LAC_OK) {
        status = index_gaps(file, &block);
    }
    if (status == LAC_OK) {
        status = take(context, &block);
    }
    lac_gap_table_done(&block);
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_ERR_CORRUPT : status;
}

/** Gaps of `floor_ns` and longer are kept. */
struct long_gaps {
    struct lac_gap_table *table;
    int64_t floor_ns;
};

static enum lac_status take_long(void *context, const struct lac_gap_table *block)
{
    const struct long_gaps *kept = context;

    return keep_long(kept->table, block, kept->floor_ns);
}

/** With lazy_lock held. */
static enum lac_status load_gaps(struct lac_trace_file *file, int64_t floor_ns,
                                 struct lac_gap_table *ret_table, struct lac_error *reterr)
{
    struct lac_gap_table table = {0};
    struct long_gaps kept = {&table, floor_ns};
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = read_gaps(file, take_long, &kept, reterr);
    if (status == LAC_OK) {
        status = read_signatures(file, &table, reterr);
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status == LAC_OK) {
        status = index_gaps(file, &table);
    }
    if (status == LAC_OK) {
        status = sort_gaps(&table);
    }
    if (status != LAC_OK) {
        lac_gap_table_done(&table);
        return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "gaps") : status;
    }
    *ret_table = table;
    return LAC_OK;
}

/** The table that a query needs, loaded on the first call. Fixed once it is there. */
static enum lac_status gap_table(struct lac_trace_file *file, int64_t min_ns,
                                 const struct lac_gap_table **ret_table, struct lac_error *reterr)
{
    const bool is_long = min_ns >= LONG_GAP_NS;
    struct lac_gap_table *table = is_long ? &file->lazy.long_gaps : &file->lazy.gaps;
    bool *has_table = is_long ? &file->lazy.has_long_gaps : &file->lazy.has_gaps;
    enum lac_status status = LAC_OK;

    (void)pthread_mutex_lock(&file->lazy_lock);
    if (!*has_table) {
        status = load_gaps(file, is_long ? LONG_GAP_NS : 0, table, reterr);
        *has_table = status == LAC_OK;
    }
    (void)pthread_mutex_unlock(&file->lazy_lock);
    *ret_table = table;
    return status;
}

static void fill_gap(const struct lac_gap_table *table, uint64_t i, struct lac_gap_row *row)
{
    uint32_t signature = (uint32_t)table->columns[GAP_SIGNATURE][i];

    *row = (struct lac_gap_row){
        .start_ns = table->columns[GAP_START][i],
        .dur_ns = table->columns[GAP_DUR][i],
        .device = table->columns[GAP_DEVICE][i],
        .cause = (uint8_t)table->columns[GAP_CAUSE][i],
        .ended_by = slice_of(table->columns[GAP_ENDED_BY][i]),
        .signature = signature,
        .per_step = signature < table->signature_count ? table->per_step[signature] : (double)NAN,
        .root_cause = "",
        .root_kind = (int8_t)table->columns[GAP_ROOT_KIND][i],
        .root_slice = slice_of(table->columns[GAP_ROOT][i]),
        .wait_slice = slice_of(table->columns[GAP_WAIT][i]),
        .batch_slice = slice_of(table->columns[GAP_BATCH][i]),
    };
    if (table->columns[GAP_SHARES][i] == 0) {
        row->cause_ns[row->cause] = row->dur_ns;
    }
    for (uint64_t s = table->share_first[i]; s < table->share_first[i + 1]; s++) {
        row->cause_ns[table->share_cause[s]] = table->share_ns[s];
    }
}

/** The sentence of a gap. @param out LAC_GAP_TEXT_BYTES */
static void copy_text(const struct lac_gap_table *table, uint64_t i, char *out)
{
    const size_t length = (size_t)(table->text_first[i + 1] - table->text_first[i]);

    memcpy(out, table->texts + table->text_first[i], length);
    out[length] = '\0';
}

static bool is_asked_for(const struct lac_gap_table *table, uint64_t i, int64_t device,
                         int64_t min_ns)
{
    return table->columns[GAP_DUR][i] >= min_ns &&
           (device < 0 || table->columns[GAP_DEVICE][i] == device);
}

/** Give the rows of a page their sentences, in one buffer of the page. */
static enum lac_status fill_texts(const struct lac_gap_table *table, const uint64_t *indexes,
                                  struct lac_gap_page *page)
{
    size_t used = 0;

    page->texts = malloc((size_t)page->count * 256 + 1);
    if (page->texts == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t r = 0; r < page->count; r++) {
        uint64_t first = table->text_first[indexes[r]];
        size_t length = (size_t)(table->text_first[indexes[r] + 1] - first);

        memcpy(page->texts + used, table->texts + first, length);
        page->texts[used + length] = '\0';
        page->rows[r].root_cause = page->texts + used;
        used += length + 1;
    }
    return LAC_OK;
}

static enum lac_status select_gaps(const struct lac_gap_table *table,
                                   const struct lac_gap_query *query, uint64_t offset,
                                   struct lac_gap_page *page)
{
    uint64_t *indexes = malloc((size_t)query->limit * sizeof(*indexes));
    enum lac_status status = LAC_OK;

    page->rows = malloc((size_t)query->limit * sizeof(*page->rows));
    if (indexes == NULL || page->rows == NULL) {
        free(indexes);
        return LAC_ERR_NOMEM;
    }
    for (uint64_t k = 0; k < table->count; k++) {
        uint64_t i = query->sort == LAC_GAP_SORT_DUR ? table->by_dur[k] : k;

        if (!is_asked_for(table, i, query->device, query->min_ns)) {
            continue;
        }
        if (page->total >= offset && page->count < query->limit) {
            indexes[page->count] = i;
            fill_gap(table, i, &page->rows[page->count++]);
        }
        page->total++;
    }
    page->has_more = page->total > offset + page->count;
    status = fill_texts(table, indexes, page);
    free(indexes);
    return status;
}

enum lac_status lac_trace_file_gaps(struct lac_trace_file *file, const struct lac_gap_query *query,
                                    struct lac_gap_page *ret_page, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && ret_page != NULL);
    const struct lac_gap_table *table = NULL;
    struct lac_gap_page page = {0};
    uint64_t offset = 0;
    enum lac_status status;

    if (query->limit < 1 || query->limit > GAP_LIMIT_MAX ||
        !lac_offset_cursor(query->after, &offset)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "gaps: limit is 1 to %d, after is the cursor of the page before",
                        GAP_LIMIT_MAX);
    }
    status = gap_table(file, query->min_ns, &table, reterr);
    if (status == LAC_OK) {
        status = select_gaps(table, query, offset, &page);
    }
    if (status != LAC_OK) {
        lac_gap_page_done(&page);
        return status;
    }
    if (page.has_more) {
        lac_offset_cursor_write(offset + page.count, page.next, sizeof(page.next));
    }
    *ret_page = page;
    return LAC_OK;
}

enum lac_status lac_trace_file_each_gap(struct lac_trace_file *file,
                                        const struct lac_gap_query *query, lac_take_gap_fn *take,
                                        void *context, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && take != NULL);
    const struct lac_gap_table *table = NULL;
    char text[LAC_GAP_TEXT_BYTES];
    bool goes_on = true;
    const enum lac_status status = gap_table(file, query->min_ns, &table, reterr);

    for (uint64_t k = 0; status == LAC_OK && goes_on && k < table->count; k++) {
        const uint64_t i = query->sort == LAC_GAP_SORT_DUR ? table->by_dur[k] : k;
        struct lac_gap_row row;

        if (is_asked_for(table, i, query->device, query->min_ns)) {
            fill_gap(table, i, &row);
            copy_text(table, i, text);
            row.root_cause = text;
            goes_on = take(context, &row);
        }
    }
    return status;
}

/* -- all gaps, a block at a time --------------------------------------------------------------- */

struct lac_gap_reader {
    struct lac_trace_file *file;
    int64_t device, min_ns;
    struct lac_gap_table block;
    uint64_t at;   /**< in the block */
    uint64_t next; /**< the first gap of the next block */
    char text[LAC_GAP_TEXT_BYTES];
};

enum lac_status lac_gap_reader_open(struct lac_trace_file *file, int64_t device, int64_t min_ns,
                                    struct lac_gap_reader **ret_reader, struct lac_error *reterr)
{
    assert(file != NULL && ret_reader != NULL);
    struct lac_gap_reader *reader = calloc(1, sizeof(*reader));
    enum lac_status status;

    if (reader == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    reader->file = file;
    reader->device = device;
    reader->min_ns = min_ns;
    (void)pthread_mutex_lock(&file->db_lock);
    status = read_signatures(file, &reader->block, reterr);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        lac_gap_reader_close(reader);
        return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "gaps") : status;
    }
    *ret_reader = reader;
    return LAC_OK;
}

void lac_gap_reader_close(struct lac_gap_reader *reader)
{
    if (reader != NULL) {
        lac_gap_table_done(&reader->block);
        free(reader);
    }
}

/** @return LAC_ERR_NOT_FOUND: there is none any more */
static enum lac_status next_block(struct lac_gap_reader *reader, struct lac_error *reterr)
{
    struct lac_trace_file *const file = reader->file;
    sqlite3_stmt *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_sql_prepare(file->db, "SELECT * FROM gap WHERE first >= ? ORDER BY first LIMIT 1",
                             &get, reterr);
    if (status == LAC_OK) {
        lac_sql_bind_i64(get, 1, (int64_t)reader->next);
        status = lac_sql_step_row(get, "trace file", reterr);
    }
    if (status == LAC_OK) {
        empty(&reader->block);
        status = read_block(file, &reader->block, get, reader->next);
    }
    if (status == LAC_OK) {
        status = index_gaps(file, &reader->block);
    }
    (void)sqlite3_finalize(get);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status == LAC_OK) {
        reader->next += reader->block.count;
        reader->at = 0;
    }
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "gaps") : status;
}

enum lac_status lac_gap_reader_next(struct lac_gap_reader *reader, struct lac_gap_row *ret_row,
                                    struct lac_error *reterr)
{
    assert(reader != NULL && ret_row != NULL);
    for (;;) {
        while (reader->at < reader->block.count) {
            const uint64_t i = reader->at++;

            if (is_asked_for(&reader->block, i, reader->device, reader->min_ns)) {
                fill_gap(&reader->block, i, ret_row);
                copy_text(&reader->block, i, reader->text);
                ret_row->root_cause = reader->text;
                return LAC_OK;
            }
        }
        const enum lac_status status = next_block(reader, reterr);

        if (status != LAC_OK) {
            return status;
        }
    }
}

/* -- the gaps of an area ----------------------------------------------------------------------- */

struct area_gaps {
    const struct lac_area_query *query;
    struct lac_area *area;
};

/** `part_ns` of a gap's `dur_ns` lie in the area: its shares in proportion, the rest to the last,
 *  so that they add up. */
static void add_shares(const struct lac_gap_table *block, uint64_t i, int64_t part_ns,
                       struct lac_area_device *device)
{
    const int64_t dur_ns = block->columns[GAP_DUR][i];
    int64_t left_ns = part_ns;
    uint64_t cause = (uint64_t)block->columns[GAP_CAUSE][i];

    for (uint64_t s = block->share_first[i]; s < block->share_first[i + 1]; s++) {
        const int64_t ns =
            part_ns == dur_ns
                ? block->share_ns[s]
                : (int64_t)((double)block->share_ns[s] * (double)part_ns / (double)dur_ns);
        const int64_t taken_ns = ns < 0 ? 0 : ns < left_ns ? ns : left_ns;

        cause = (uint64_t)block->share_cause[s];
        device->cause_ns[cause] += taken_ns;
        left_ns -= taken_ns;
    }
    device->cause_ns[cause] += left_ns;
    device->idle_ns += part_ns;
}

static enum lac_status take_area(void *context, const struct lac_gap_table *block)
{
    const struct area_gaps *gaps = context;

    for (uint64_t i = 0; i < block->count; i++) {
        const int64_t start_ns = block->columns[GAP_START][i];
        const int64_t end_ns = start_ns + block->columns[GAP_DUR][i];
        const int64_t from_ns = start_ns > gaps->query->t0_ns ? start_ns : gaps->query->t0_ns;
        const int64_t to_ns = end_ns < gaps->query->t1_ns ? end_ns : gaps->query->t1_ns;
        struct lac_area_device *device =
            from_ns < to_ns ? lac_area_device_of(gaps->area, block->columns[GAP_DEVICE][i]) : NULL;

        if (device != NULL) {
            add_shares(block, i, to_ns - from_ns, device);
        }
    }
    return LAC_OK;
}

enum lac_status lac_trace_area_gaps(struct lac_trace_file *file, const struct lac_area_query *query,
                                    struct lac_area *area, struct lac_error *reterr)
{
    struct area_gaps gaps = {query, area};
    struct lac_gap_blocks edges = {0};
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_trace_area_gap_totals(file, query, area, &edges, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        status = read_gaps(file, take_area, &gaps, reterr);
    }
    for (size_t i = 0; i < edges.count && status == LAC_OK; i++) {
        status = read_gaps_at(file, edges.first[i], take_area, &gaps, reterr);
    }
    free(edges.first);
    (void)pthread_mutex_unlock(&file->db_lock);
    return status == LAC_ERR_CORRUPT ? lac_trace_corrupt(file, reterr, "gaps") : status;
}

void lac_gap_page_done(struct lac_gap_page *page)
{
    free(page->rows);
    free(page->texts);
    *page = (struct lac_gap_page){0};
}
