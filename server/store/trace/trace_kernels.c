/* The table of kernels: distinct names with what their names say. */

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_LIMIT_MAX = 10000 };

static void fill_kernel(const struct lac_trace_file *file, const struct lac_name_stat *stat,
                        int64_t all_ns, struct lac_kernel_row *row)
{
    const char *name = lac_model_str(&file->head, stat->name);
    size_t length = lac_strings_length(&file->head.strings, stat->name);
    struct lac_name_class name_class = {0};

    lac_names_classify_with(file->names, name, length, &name_class);
    *row = (struct lac_kernel_row){
        .name = stat->name,
        .count = stat->count,
        .total_ns = stat->total_ns,
        .mean_ns = stat->total_ns / (int64_t)stat->count,
        .min_ns = stat->min_ns,
        .max_ns = stat->max_ns,
        .pct_of_kernel_time = all_ns > 0 ? 100.0 * (double)stat->total_ns / (double)all_ns : 0.0,
        .per_step_ns =
            file->lazy.step_count > 0 ? stat->total_ns / (int64_t)file->lazy.step_count : INT64_MIN,
        .longest_slice = stat->longest,
        .tensor_core = -1,
    };
    if (name_class.tensor_core == LAC_TENSOR_CORE_YES) {
        row->tensor_core = 1;
    } else if (name_class.is_eligible && name_class.tensor_core == LAC_TENSOR_CORE_NO) {
        row->tensor_core = 0;
    }
    (void)lac_kernel_short_name(name, length, row->short_name, sizeof(row->short_name));
    (void)snprintf(row->family, sizeof(row->family), "%s",
                   lac_word(LAC_WORDS_FAMILY, name_class.family)->id);
    (void)snprintf(row->layout_class, sizeof(row->layout_class), "%s",
                   lac_word(LAC_WORDS_LAYOUT, name_class.layout)->id);
}

/** Whether the name is that of a kernel: a CUDA graph that was recorded as a whole is none. */
static bool is_kernel(const struct lac_trace_file *file, const struct lac_name_stat *stat)
{
    struct lac_name_class name_class = {0};

    if (stat->kind != LAC_SLICE_KERNEL) {
        return false;
    }
    lac_names_classify_with(file->names, lac_model_str(&file->head, stat->name),
                            lac_strings_length(&file->head.strings, stat->name), &name_class);
    return !name_class.is_graph;
}

/** With lazy_lock held. */
static enum lac_status load_kernels(struct lac_trace_file *file, const struct lac_name_stat *stats,
                                    uint32_t stat_count)
{
    struct lac_kernel_table *table = &file->lazy.kernels;
    uint32_t count = 0;

    for (uint32_t i = 0; i < stat_count; i++) {
        if (is_kernel(file, &stats[i])) {
            count++;
            if (__builtin_add_overflow(table->total_ns, stats[i].total_ns, &table->total_ns)) {
                table->total_ns = INT64_MAX;
            }
        }
    }
    table->rows = malloc(((size_t)count + 1) * sizeof(*table->rows));
    if (table->rows == NULL) {
        table->total_ns = 0;
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < stat_count; i++) {
        if (is_kernel(file, &stats[i])) {
            fill_kernel(file, &stats[i], table->total_ns, &table->rows[table->count++]);
        }
    }
    file->lazy.has_kernels = true;
    return LAC_OK;
}

struct order {
    const struct lac_model *head;
    enum lac_kernel_sort sort;
    bool descending;
};

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : (a > b ? 1 : 0);
}

static int by_order(const void *left, const void *right, void *context)
{
    const struct lac_kernel_row *a = left;
    const struct lac_kernel_row *b = right;
    const struct order *order = context;
    int result = 0;

    switch (order->sort) {
    case LAC_KERNEL_SORT_TOTAL:
        result = compare_i64(a->total_ns, b->total_ns);
        break;
    case LAC_KERNEL_SORT_COUNT:
        result = compare_i64((int64_t)a->count, (int64_t)b->count);
        break;
    case LAC_KERNEL_SORT_MEAN:
        result = compare_i64(a->mean_ns, b->mean_ns);
        break;
    case LAC_KERNEL_SORT_MIN:
        result = compare_i64(a->min_ns, b->min_ns);
        break;
    case LAC_KERNEL_SORT_MAX:
        result = compare_i64(a->max_ns, b->max_ns);
        break;
    case LAC_KERNEL_SORT_FAMILY:
        result = strcmp(a->family, b->family);
        break;
    case LAC_KERNEL_SORT_NAME:
        break;
    }
    if (order->sort == LAC_KERNEL_SORT_NAME) {
        result = strcmp(lac_model_str(order->head, a->name), lac_model_str(order->head, b->name));
    }
    result = order->descending ? -result : result;
    if (result == 0) {
        result = strcmp(lac_model_str(order->head, a->name), lac_model_str(order->head, b->name));
    }
    return result != 0 ? result : compare_i64(a->name, b->name);
}

static enum lac_status matching(const struct lac_trace_file *file,
                                const struct lac_kernel_query *query,
                                struct lac_kernel_row **ret_rows, uint32_t *ret_count)
{
    const struct lac_kernel_table *table = &file->lazy.kernels;
    size_t word_length = 0;
    char *word = lac_text_lower(query->text != NULL ? query->text : "", &word_length);
    struct lac_kernel_row *rows = malloc(((size_t)table->count + 1) * sizeof(*rows));
    struct order order = {&file->head, query->sort, query->descending};
    uint32_t count = 0;

    if (word == NULL || rows == NULL) {
        free(word);
        free(rows);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lac_kernel_row *row = &table->rows[i];

        if (lac_text_contains(lac_model_str(&file->head, row->name),
                              lac_strings_length(&file->head.strings, row->name), word,
                              word_length) ||
            lac_text_contains(row->short_name, strlen(row->short_name), word, word_length)) {
            rows[count++] = *row;
        }
    }
    free(word);
    qsort_r(rows, count, sizeof(*rows), by_order, &order);
    *ret_rows = rows;
    *ret_count = count;
    return LAC_OK;
}

enum lac_status lac_trace_file_kernels(struct lac_trace_file *file,
                                       const struct lac_kernel_query *query,
                                       struct lac_kernel_page *ret_page, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && ret_page != NULL);
    const struct lac_name_stat *stats = NULL;
    uint32_t stat_count = 0;
    struct lac_kernel_row *rows = NULL;
    uint32_t count = 0;
    uint64_t offset = 0;
    enum lac_status status;

    if (query->limit < 1 || query->limit > KERNEL_LIMIT_MAX ||
        !lac_offset_cursor(query->after, &offset)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "kernels: limit is 1 to %d, after is the cursor of the page before",
                        KERNEL_LIMIT_MAX);
    }
    status = lac_trace_stats(file, &stats, &stat_count, reterr);
    if (status == LAC_OK) {
        (void)pthread_mutex_lock(&file->lazy_lock);
        if (!file->lazy.has_kernels) {
            status = load_kernels(file, stats, stat_count);
        }
        (void)pthread_mutex_unlock(&file->lazy_lock);
    }
    if (status == LAC_OK) {
        status = matching(file, query, &rows, &count);
    }
    if (status != LAC_OK) {
        return status;
    }
    *ret_page = (struct lac_kernel_page){.rows = rows, .total = count};
    if (offset < count) {
        uint32_t left = count - (uint32_t)offset;

        ret_page->count = left < query->limit ? left : query->limit;
        memmove(rows, rows + offset, ret_page->count * sizeof(*rows));
        ret_page->has_more = left > query->limit;
    }
    if (ret_page->has_more) {
        lac_offset_cursor_write(offset + ret_page->count, ret_page->next, sizeof(ret_page->next));
    }
    return LAC_OK;
}

void lac_kernel_page_done(struct lac_kernel_page *page)
{
    free(page->rows);
    *page = (struct lac_kernel_page){0};
}
