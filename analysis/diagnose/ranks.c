/* Collectives matched over ranks by name and ordinal: waiting told from transfer. */

#include "analysis/diagnose/ranks.h"

#include "analysis/diagnose/straggler.h"
#include "analysis/diagnose/texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A rank's collectives of one name, by start. */
struct collective {
    int64_t start_ns, dur_ns;
};

struct row {
    struct collective *at;
    uint64_t count, capacity;
};

static int by_start(const void *a, const void *b)
{
    const struct collective *x = a;
    const struct collective *y = b;
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    return x->dur_ns < y->dur_ns ? -1 : x->dur_ns > y->dur_ns;
}

static enum lac_status row_add(struct row *row, struct collective collective)
{
    if (row->count == row->capacity) {
        uint64_t capacity = row->capacity ? row->capacity * 2 : 64;
        struct collective *grown = realloc(row->at, capacity * sizeof *grown);
        if (!grown) {
            return LAC_ERR_NOMEM;
        }
        row->at = grown;
        row->capacity = capacity;
    }
    row->at[row->count++] = collective;
    return LAC_OK;
}

/** All kernels of that name in the trace. */
static enum lac_status collect(const struct lac_model *model, uint32_t name, struct row *row)
{
    const struct lac_slices *slices = &model->slices;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_STREAM) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            if (slices->kind[i] != LAC_SLICE_KERNEL || slices->name[i] != name) {
                continue;
            }
            enum lac_status status =
                row_add(row, (struct collective){slices->start_ns[i], slices->dur_ns[i]});
            if (status) {
                return status;
            }
        }
    }
    if (row->count > 1) {
        qsort(row->at, row->count, sizeof *row->at, by_start);
    }
    return LAC_OK;
}

/** The row of a kernel's name in an analysis, or NULL. */
static const struct lac_kernel_facts *find_kernel(const struct lac_rank_trace *rank,
                                                  const char *name)
{
    for (uint32_t row = 0; row < rank->analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *facts = &rank->analysis->kernels[row];
        if (facts->names.is_comm && strcmp(lac_model_str(rank->model, facts->name), name) == 0) {
            return facts;
        }
    }
    return NULL;
}

/** Split the k-th collective of all ranks into transfer and waiting. */
static void split(struct lac_run *run, const struct row *rows, uint64_t k)
{
    uint32_t last = 0;
    for (uint32_t r = 1; r < run->rank_count; r++) {
        if (rows[r].at[k].dur_ns < rows[last].at[k].dur_ns) {
            last = r;
        }
    }
    int64_t transfer_ns = rows[last].at[k].dur_ns;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        run->ranks[r].transfer_ns += transfer_ns;
        run->ranks[r].wait_ns += rows[r].at[k].dur_ns - transfer_ns;
    }
    run->ranks[last].last_count++;
    run->collective_count++;
}

/** Match one name over all ranks; names that do not occur equally often tell nothing. */
static enum lac_status match_name(struct lac_run *run, const struct lac_rank_trace *ranks,
                                  const char *name)
{
    struct row *rows = calloc(run->rank_count, sizeof *rows);
    if (!rows) {
        return LAC_ERR_NOMEM;
    }
    uint64_t count = 0;
    bool is_equal = true;
    for (uint32_t r = 0; r < run->rank_count && is_equal; r++) {
        const struct lac_kernel_facts *facts = find_kernel(&ranks[r], name);
        is_equal = facts && (r == 0 || facts->count == count);
        count = facts ? facts->count : 0;
    }
    enum lac_status status = LAC_OK;
    for (uint32_t r = 0; r < run->rank_count && is_equal && !status; r++) {
        status = collect(ranks[r].model, find_kernel(&ranks[r], name)->name, &rows[r]);
        is_equal = rows[r].count == count;
    }
    for (uint64_t k = 0; k < count && is_equal && !status; k++) {
        split(run, rows, k);
    }
    for (uint32_t r = 0; r < run->rank_count; r++) {
        free(rows[r].at);
    }
    free(rows);
    return status;
}

static void fill_facts(struct lac_run *run, const struct lac_rank_trace *ranks)
{
    for (uint32_t r = 0; r < run->rank_count; r++) {
        const struct lac_analysis *analysis = ranks[r].analysis;
        int32_t recorded = ranks[r].model->info.rank;
        run->ranks[r].rank = recorded >= 0 ? recorded : (int32_t)r;
        if (analysis->main_device != LAC_NONE) {
            const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
            run->ranks[r].compute_ns = device->partition_ns[LAC_PART_COMPUTE];
            run->ranks[r].idle_ns = device->idle_ns;
        }
    }
}

enum lac_status lac_ranks_compare(const struct lac_rank_trace *ranks, uint32_t rank_count,
                                  struct lac_run **ret_run)
{
    struct lac_run *run = calloc(1, sizeof *run);
    if (!run) {
        return LAC_ERR_NOMEM;
    }
    run->late = LAC_NONE;
    run->note = "";
    run->rank_count = rank_count;
    run->ranks = calloc(rank_count ? rank_count : 1, sizeof *run->ranks);
    enum lac_status status = run->ranks ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        fill_facts(run, ranks);
    }
    for (uint32_t row = 0; rank_count > 1 && !status && row < ranks[0].analysis->kernel_name_count;
         row++) {
        const struct lac_kernel_facts *facts = &ranks[0].analysis->kernels[row];
        if (facts->names.is_comm) {
            status = match_name(run, ranks, lac_model_str(ranks[0].model, facts->name));
        }
    }
    if (!status) {
        status = lac_straggler_find(run, ranks);
        status = lac_texts_failed(run->texts) ? LAC_ERR_NOMEM : status;
    }
    if (status) {
        lac_run_destroy(run);
        return status;
    }
    *ret_run = run;
    return LAC_OK;
}

void lac_run_destroy(struct lac_run *run)
{
    if (run) {
        free(run->ranks);
        lac_texts_destroy(run->texts);
        free(run);
    }
}
