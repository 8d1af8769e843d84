/* What a kept step consists of: the partition of the analysis, and kernel time by family. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/facts/intervals.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct measuring {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
    struct lac_spans kept;
    struct lac_compare_steps *steps;
};

/** Whether a kernel's name is one of communication, and its family; by the row of the analysis. */
static const struct lac_kernel_facts *facts_of(const struct lac_analysis *analysis,
                                               const uint32_t *row_of_name, uint32_t name)
{
    uint32_t row = row_of_name[name];
    return row == LAC_NONE ? NULL : &analysis->kernels[row];
}

static void add_kernel(struct measuring *m, const uint32_t *row_of_name, uint64_t slice)
{
    const struct lac_slices *slices = &m->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    const struct lac_kernel_facts *facts = facts_of(m->analysis, row_of_name, slices->name[slice]);
    enum lac_family family = facts != NULL ? facts->names.family : LAC_FAMILY_OTHER;
    m->steps->family_ns[family] +=
        lac_spans_length_inside(&m->kept, start_ns, start_ns + slices->dur_ns[slice]);
}

/** Kernel time by family. */
static enum lac_status gather(struct measuring *m, int64_t device_id)
{
    const struct lac_model *model = m->model;
    uint32_t *row_of_name = malloc((size_t)model->strings.count * sizeof(*row_of_name));
    if (row_of_name == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(row_of_name, 0xff, (size_t)model->strings.count * sizeof(*row_of_name));
    for (uint32_t row = 0; row < m->analysis->kernel_name_count; row++) {
        row_of_name[m->analysis->kernels[row].name] = row;
    }
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->device != device_id || track->kind == LAC_TRACK_COUNTER) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count; s++) {
            if (model->slices.kind[s] == LAC_SLICE_KERNEL) {
                add_kernel(m, row_of_name, s);
            }
        }
    }
    free(row_of_name);
    return LAC_OK;
}

/** Kept steps as a set; steps that touch or overlap are one interval. */
static enum lac_status gather_kept(struct measuring *m)
{
    enum lac_status status = LAC_OK;
    for (uint32_t s = 0; s < m->analysis->step_count && !status; s++) {
        const struct lac_step *step = &m->analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            status =
                lac_spans_add_unsorted(&m->kept, step->start_ns, step->start_ns + step->dur_ns);
        }
    }
    lac_spans_normalize(&m->kept, 0);
    return status;
}

/** The sum that the analysis shows: parts of it, the idle ones together and by cause. */
static void take_partition(const struct lac_time_partition *partition,
                           struct lac_compare_steps *ret_steps)
{
    for (int part = 0; part < LAC_PART_IDLE; part++) {
        ret_steps->part_ns[part] = partition->part_ns[part];
    }
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        ret_steps->cause_ns[cause] = partition->part_ns[lac_time_part_of((enum lac_cause)cause)];
        ret_steps->part_ns[LAC_PART_IDLE] += ret_steps->cause_ns[cause];
    }
}

enum lac_status lac_compare_measure(const struct lac_model *model,
                                    const struct lac_analysis *analysis,
                                    struct lac_compare_steps *ret_steps)
{
    *ret_steps = (struct lac_compare_steps){0};
    if (analysis->step_kept_count == 0 || analysis->partition.of != LAC_OF_STEP) {
        return LAC_OK;
    }
    struct measuring m = {.model = model, .analysis = analysis, .steps = ret_steps};
    enum lac_status status = gather_kept(&m);
    if (!status) {
        status = gather(&m, analysis->devices[analysis->main_device].id);
    }
    if (!status) {
        take_partition(&analysis->partition, ret_steps);
        for (int i = 0; i < LAC_FAMILY_COUNT_; i++) {
            ret_steps->family_ns[i] /= analysis->step_kept_count;
        }
        ret_steps->is_known = true;
    }
    lac_spans_done(&m.kept);
    return status;
}
