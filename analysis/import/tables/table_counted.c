/* Counters of rocprofv3 (--pmc): a row a counter of a dispatch, those of one dispatch below each
 * other. The dispatch is one slice, its counters are arguments. */

#include "analysis/import/tables/tables_private.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS_MAX = 64, NAME_BYTES_MAX = 64, TEXT_BYTES = COUNTERS_MAX * (NAME_BYTES_MAX + 5) };

struct lac_table_counted {
    bool is_open;
    struct lac_slice_in slice; /**< without arguments */
    uint32_t count;
    size_t used; /**< of `text` */
    int64_t numbers[COUNTERS_MAX];
    char text[TEXT_BYTES + 1]; /**< args.h */
};

bool lac_table_is_counted(const struct lac_tables *tables)
{
    return tables->heading.column_of[LAC_ROLE_METRIC] >= 0 &&
           tables->heading.column_of[LAC_ROLE_METRIC_VALUE] >= 0;
}

static bool is_same(const struct lac_slice_in *a, const struct lac_slice_in *b)
{
    return a->track == b->track && a->start_ns == b->start_ns && a->dur_ns == b->dur_ns &&
           a->name == b->name && a->corr == b->corr;
}

/** Names of counters are words: SQ_WAVES, TCC_HIT[0], TCC_HIT_sum. */
static bool is_word(struct lac_table_field name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (!isalnum((unsigned char)name.text[i]) && memchr("_[]().:-", name.text[i], 9) == NULL) {
            return false;
        }
    }
    return name.size > 0 && name.size <= NAME_BYTES_MAX;
}

static void add_counter(struct lac_tables *tables)
{
    struct lac_table_counted *const counted = tables->counted;
    const struct lac_table_field name = lac_table_get(tables, LAC_ROLE_METRIC);
    double value = 0.0;

    if (counted->count == COUNTERS_MAX || !is_word(name) ||
        !lac_field_real(lac_table_get(tables, LAC_ROLE_METRIC_VALUE), &value)) {
        lac_tables_drop(tables, "counters_left_out",
                        "Counters without a name or a number, and those of a dispatch beyond the "
                        "64th, were left out.");
        return;
    }
    const bool is_whole = fabs(value) < 9e15 && value == floor(value);
    char *to = counted->text + counted->used;

    *to++ = counted->count > 0 ? ',' : '{';
    *to++ = '"';
    memcpy(to, name.text, name.size);
    to += name.size;
    *to++ = '"';
    *to++ = ':';
    *to++ = is_whole ? LAC_ARG_INTEGER : LAC_ARG_REAL;
    counted->used = (size_t)(to - counted->text);
    if (is_whole) {
        counted->numbers[counted->count] = (int64_t)value;
    } else {
        memcpy(&counted->numbers[counted->count], &value, sizeof(value));
    }
    counted->count++;
}

enum lac_status lac_table_counted_end(struct lac_tables *tables)
{
    struct lac_table_counted *const counted = tables->counted;
    enum lac_status status = LAC_OK;

    if (counted == NULL || !counted->is_open) {
        return LAC_OK;
    }
    counted->is_open = false;
    if (counted->count > 0) {
        counted->text[counted->used++] = '}';
        status = lac_strings_intern(&tables->model->strings, counted->text, counted->used,
                                    &counted->slice.args);
        if (status == LAC_OK) {
            status = lac_builder_arg_numbers(tables->builder, counted->numbers, counted->count,
                                             &counted->slice.arg_num);
        }
    }
    return status == LAC_OK ? lac_tables_add(tables, &counted->slice)
                            : lac_tables_pass(tables, status);
}

enum lac_status lac_table_counted_row(struct lac_tables *tables, const struct lac_slice_in *slice)
{
    enum lac_status status = LAC_OK;

    if (tables->counted == NULL) {
        tables->counted = calloc(1, sizeof(*tables->counted));
        if (tables->counted == NULL) {
            return lac_tables_pass(tables, LAC_ERR_NOMEM);
        }
    }
    if (!tables->counted->is_open || !is_same(&tables->counted->slice, slice)) {
        status = lac_table_counted_end(tables);
        tables->counted->is_open = true;
        tables->counted->slice = *slice;
        tables->counted->count = 0;
        tables->counted->used = 0;
    }
    if (status == LAC_OK) {
        add_counter(tables);
    }
    return status;
}

void lac_table_counted_done(struct lac_tables *tables)
{
    free(tables->counted);
    tables->counted = NULL;
}
