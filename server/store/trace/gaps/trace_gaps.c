/*
 * The table of gaps, loaded when first asked for: those that are long enough to be seen, which are
 * what everybody asks for and a small part of all; the whole table only for who asks for shorter.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "server/store/trace/gaps/gap_blocks.h"
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

/** Room in `table` for what `block` may add. */
static bool reserve(struct lac_gap_table *table, const struct lac_gap_table *block)
{
    bool is_done = lac_gap_grow(&table->share_cause, table->share_count + block->share_count) &&
                   lac_gap_grow(&table->share_ns, table->share_count + block->share_count);
    char *texts = realloc(table->texts, (size_t)(table->text_bytes + block->text_bytes) + 1);

    for (unsigned c = 0; c < LAC_GAP_COLUMNS && is_done; c++) {
        is_done = lac_gap_grow(&table->columns[c], table->count + block->count);
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

        if (block->columns[LAC_GAP_DUR][i] < floor_ns) {
            continue;
        }
        for (unsigned c = 0; c < LAC_GAP_COLUMNS; c++) {
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
    const int64_t *dur_ns = table->columns[LAC_GAP_DUR];

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
    status = floor_ns >= LONG_GAP_NS ? lac_gap_long_visit(file, take_long, &kept, reterr)
                                     : lac_gap_blocks_visit(file, 0, take_long, &kept, reterr);
    if (status == LAC_OK) {
        status = lac_gap_signatures_read(file, &table, reterr);
    }
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status == LAC_OK) {
        status = lac_gap_table_index(file, &table);
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
    uint32_t signature = (uint32_t)table->columns[LAC_GAP_SIGNATURE][i];

    *row = (struct lac_gap_row){
        .start_ns = table->columns[LAC_GAP_START][i],
        .dur_ns = table->columns[LAC_GAP_DUR][i],
        .device = table->columns[LAC_GAP_DEVICE][i],
        .cause = (uint8_t)table->columns[LAC_GAP_CAUSE][i],
        .ended_by = lac_gap_slice(table->columns[LAC_GAP_ENDED_BY][i]),
        .signature = signature,
        .per_step = signature < table->signature_count ? table->per_step[signature] : (double)NAN,
        .root_cause = "",
        .root_kind = (int8_t)table->columns[LAC_GAP_ROOT_KIND][i],
        .root_slice = lac_gap_slice(table->columns[LAC_GAP_ROOT][i]),
        .wait_slice = lac_gap_slice(table->columns[LAC_GAP_WAIT][i]),
        .batch_slice = lac_gap_slice(table->columns[LAC_GAP_BATCH][i]),
    };
    lac_gap_fill_shares(table, i, row);
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
    return table->columns[LAC_GAP_DUR][i] >= min_ns &&
           (device < 0 || table->columns[LAC_GAP_DEVICE][i] == device);
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
    const int64_t dur_ns = block->columns[LAC_GAP_DUR][i];
    int64_t left_ns = part_ns;
    uint64_t cause = (uint64_t)block->columns[LAC_GAP_CAUSE][i];

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
        const int64_t start_ns = block->columns[LAC_GAP_START][i];
        const int64_t end_ns = start_ns + block->columns[LAC_GAP_DUR][i];
        const int64_t from_ns = start_ns > gaps->query->t0_ns ? start_ns : gaps->query->t0_ns;
        const int64_t to_ns = end_ns < gaps->query->t1_ns ? end_ns : gaps->query->t1_ns;
        struct lac_area_device *device =
            from_ns < to_ns ? lac_area_device_of(gaps->area, block->columns[LAC_GAP_DEVICE][i])
                            : NULL;

        if (device != NULL) {
            add_shares(block, i, to_ns - from_ns, device);
        }
    }
    return LAC_OK;
}

enum lac_status lac_trace_area_gaps(struct lac_trace_file *file, const struct lac_area_query *query,
                                    struct lac_area *area, struct lac_error *reterr)
{
    const uint32_t wanted = 1U << LAC_GAP_START | 1U << LAC_GAP_DUR | 1U << LAC_GAP_DEVICE |
                            1U << LAC_GAP_CAUSE | 1U << LAC_GAP_SHARES;
    const uint32_t left_out = ((1U << LAC_GAP_COLUMNS) - 1) & ~wanted;
    struct area_gaps gaps = {query, area};
    struct lac_gap_blocks edges = {0};
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    status = lac_trace_area_gap_totals(file, query, area, &edges, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        status = lac_gap_blocks_visit(file, left_out, take_area, &gaps, reterr);
    }
    for (size_t i = 0; i < edges.count && status == LAC_OK; i++) {
        status = lac_gap_block_visit(file, edges.first[i], left_out, take_area, &gaps, reterr);
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
