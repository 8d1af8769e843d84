#include "analysis/import/spool/spool_external.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/text/number_args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXTERNALS_MAX = 1 << 20, KIND_MAX = 5 };

struct external {
    uint64_t id;
    uint32_t correlation;
    uint32_t kind;
};

struct lac_spool_externals {
    struct external *all;
    size_t count;
    size_t capacity;
    uint64_t left_out;
};

void lac_spool_externals_destroy(struct lac_spool_externals *externals)
{
    if (externals != NULL) {
        free(externals->all);
        free(externals);
    }
}

static enum lac_status add(struct lac_spool_process *process, const struct lac_gpu_external *record)
{
    struct lac_spool_externals *externals = process->externals;

    if (externals == NULL) {
        externals = calloc(1, sizeof(*externals));
        if (externals == NULL) {
            return LAC_ERR_NOMEM;
        }
        process->externals = externals;
    }
    /* arguments are signed; CUPTI numbers kinds from 1 to KIND_MAX */
    if (externals->count == EXTERNALS_MAX || record->id > INT64_MAX || record->kind > KIND_MAX) {
        externals->left_out++;
        return LAC_OK;
    }
    if (!LAC_RESERVE(externals->all, externals->capacity, externals->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    externals->all[externals->count++] = (struct external){
        .id = record->id, .correlation = record->head.correlation, .kind = record->kind};
    return LAC_OK;
}

enum lac_status lac_spool_externals_collect(struct lac_spool_process *process,
                                            const uint8_t *records, size_t size_bytes)
{
    enum lac_status status = LAC_OK;

    for (size_t at = 0; at + sizeof(struct lac_gpu_record) <= size_bytes && status == LAC_OK;) {
        const struct lac_gpu_record *const head =
            (const struct lac_gpu_record *)(const void *)(records + at);
        const size_t record_bytes = (size_t)head->units * 16;

        if (head->type == 0 || record_bytes < sizeof(*head) || record_bytes > size_bytes - at) {
            break;
        }
        if (head->type == LAC_GPU_EXTERNAL && record_bytes >= sizeof(struct lac_gpu_external)) {
            status = add(process, (const struct lac_gpu_external *)(const void *)head);
        }
        at += record_bytes;
    }
    return status;
}

static int by_correlation(const void *left, const void *right)
{
    const struct external *const a = left;
    const struct external *const b = right;

    int order = LAC_ORDER(a->correlation, b->correlation);
    order = order != 0 ? order : LAC_ORDER(a->kind, b->kind);
    return order != 0 ? order : LAC_ORDER(a->id, b->id);
}

/* One id of each kind a call is what is shown: more would be looked through for each of its
 * slices. */
static void keep_one_of_each(struct lac_spool_externals *externals)
{
    size_t kept = 0;

    for (size_t i = 0; i < externals->count; i++) {
        const struct external *const before = kept > 0 ? &externals->all[kept - 1] : NULL;

        if (before == NULL || before->correlation != externals->all[i].correlation ||
            before->kind != externals->all[i].kind) {
            externals->all[kept++] = externals->all[i];
        }
    }
    externals->count = kept;
}

void lac_spool_externals_sort(struct lac_spool_process *process)
{
    struct lac_spool_externals *const externals = process->externals;

    if (externals == NULL) {
        return;
    }
    if (externals->count > 0) {
        qsort(externals->all, externals->count, sizeof(*externals->all), by_correlation);
        keep_one_of_each(externals);
    }
    if (externals->left_out > 0) {
        lac_model_report(lac_builder_model(process->builder), LAC_REPORT_INFO,
                         "external_ids_left_out", externals->left_out, 0,
                         "ids that the program gave to its calls: more than are kept, or of a "
                         "kind or size that is not known");
    }
}

/* The first of this correlation, or where it would be. */
static size_t find(const struct lac_spool_externals *externals, uint32_t correlation)
{
    size_t low = 0;

    LAC_BISECT(low, externals->count, middle, externals->all[middle].correlation < correlation);
    return low;
}

/* The first under the name that everybody knows. */
static void add_ids(struct lac_number_args *arguments, const struct lac_spool_externals *externals,
                    uint32_t correlation)
{
    const size_t first = find(externals, correlation);

    for (size_t i = first; i < externals->count && externals->all[i].correlation == correlation;
         i++) {
        char name[40];

        (void)snprintf(name, sizeof(name),
                       i == first ? "External id" : "External id of kind %" PRIu32,
                       externals->all[i].kind);
        lac_number_args_add(arguments, name, (int64_t)externals->all[i].id);
    }
}

enum lac_status lac_spool_external_store(const struct lac_spool_process *process, uint32_t graph,
                                         struct lac_slice_in *slice)
{
    struct lac_number_args arguments = {.used = 0};

    if (process->externals != NULL && slice->corr != 0) {
        add_ids(&arguments, process->externals, slice->corr);
    }
    if (graph != 0) {
        lac_number_args_add(&arguments, "graph id", graph);
    }
    return lac_number_args_store(&arguments, process->builder, slice);
}
