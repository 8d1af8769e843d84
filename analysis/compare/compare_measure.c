/* What a kept step consists of: the parts of its time on the device that computes most, the causes
 * of its idle part, and kernel time by family. */

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

enum { SET_COMPUTE = 0, SET_COMM, SET_COPY, SET_MEMSET, SET_COUNT_ };

struct measuring {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
    struct lac_spans kept;
    struct lac_spans sets[SET_COUNT_];
    struct lac_compare_steps *steps;
};

/** Whether a kernel's name is one of communication, and its family; by the row of the analysis. */
static const struct lac_kernel_facts *facts_of(const struct lac_analysis *analysis,
                                               const uint32_t *row_of_name, uint32_t name)
{
    uint32_t row = row_of_name[name];
    return row == LAC_NONE ? NULL : &analysis->kernels[row];
}

static enum lac_status add_slice(struct measuring *m, const uint32_t *row_of_name, uint64_t slice)
{
    const struct lac_slices *slices = &m->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    int set = SET_COPY;
    if (slices->kind[slice] == LAC_SLICE_KERNEL) {
        const struct lac_kernel_facts *facts =
            facts_of(m->analysis, row_of_name, slices->name[slice]);
        set = facts != NULL && facts->names.is_comm ? SET_COMM : SET_COMPUTE;
        enum lac_family family = facts != NULL ? facts->names.family : LAC_FAMILY_OTHER;
        m->steps->family_ns[family] += lac_spans_length_inside(&m->kept, start_ns, end_ns);
    } else if (slices->kind[slice] == LAC_SLICE_MEMSET) {
        set = SET_MEMSET;
    }
    return lac_spans_add_unsorted(&m->sets[set], start_ns, end_ns);
}

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
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->device != device_id || track->kind == LAC_TRACK_COUNTER) {
            continue;
        }
        for (uint64_t s = track->first; s < track->first + track->count && !status; s++) {
            uint8_t kind = model->slices.kind[s];
            if (kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) {
                status = add_slice(m, row_of_name, s);
            }
        }
    }
    free(row_of_name);
    return status;
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

/** Each part is what its set covers inside the kept steps and none before it does. */
static enum lac_status divide(struct measuring *m)
{
    struct lac_spans covered = {0};
    int64_t before_ns = 0;
    enum lac_status status = LAC_OK;
    for (int set = 0; set < SET_COUNT_ && !status; set++) {
        lac_spans_normalize(&m->sets[set], 0);
        struct lac_spans clipped = {0};
        struct lac_spans united = {0};
        status = lac_spans_intersect(&m->sets[set], &m->kept, &clipped);
        if (!status) {
            status = lac_spans_unite(&covered, &clipped, &united);
        }
        lac_spans_done(&clipped);
        lac_spans_done(&covered);
        covered = united;
        int64_t length_ns = lac_spans_length(&covered);
        m->steps->part_ns[set] = length_ns - before_ns;
        before_ns = length_ns;
    }
    lac_spans_done(&covered);
    m->steps->part_ns[LAC_PART_IDLE] = lac_spans_length(&m->kept) - before_ns;
    return status;
}

static void add_causes(struct measuring *m)
{
    const struct lac_analysis *analysis = m->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t sum_ns = 0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        for (uint32_t p = 0; p < gap->piece_count; p++) {
            const struct lac_gap_piece *piece = &analysis->pieces[gap->first_piece + p];
            int64_t end_ns =
                p + 1 < gap->piece_count ? (piece + 1)->start_ns : gap->start_ns + gap->dur_ns;
            int64_t inside_ns = lac_spans_length_inside(&m->kept, piece->start_ns, end_ns);
            m->steps->cause_ns[piece->cause] += inside_ns;
            sum_ns += inside_ns;
        }
    }
    /* before the device's first and after its last operation nothing was attributed */
    m->steps->cause_ns[LAC_CAUSE_UNATTRIBUTED] += m->steps->part_ns[LAC_PART_IDLE] - sum_ns;
}

/** From sums to one step. The rest of the division goes where most is, so that sums stay sums. */
static void per_step(int64_t *values, int count, int64_t total_ns, int64_t steps)
{
    int64_t sum_ns = 0;
    int largest = 0;
    for (int i = 0; i < count; i++) {
        values[i] /= steps;
        sum_ns += values[i];
        largest = values[i] > values[largest] ? i : largest;
    }
    values[largest] += total_ns - sum_ns;
}

enum lac_status lac_compare_measure(const struct lac_model *model,
                                    const struct lac_analysis *analysis,
                                    struct lac_compare_steps *ret_steps)
{
    *ret_steps = (struct lac_compare_steps){0};
    if (analysis->step_kept_count == 0 || analysis->main_device == LAC_NONE) {
        return LAC_OK;
    }
    struct measuring m = {.model = model, .analysis = analysis, .steps = ret_steps};
    enum lac_status status = gather_kept(&m);
    if (!status) {
        status = gather(&m, analysis->devices[analysis->main_device].id);
    }
    if (!status) {
        status = divide(&m);
    }
    if (!status) {
        add_causes(&m);
        int64_t steps = analysis->step_kept_count;
        int64_t total_ns = lac_spans_length(&m.kept) / steps;
        per_step(ret_steps->part_ns, LAC_PART_COUNT_, total_ns, steps);
        per_step(ret_steps->cause_ns, LAC_CAUSE_COUNT_, ret_steps->part_ns[LAC_PART_IDLE], steps);
        for (int i = 0; i < LAC_FAMILY_COUNT_; i++) {
            ret_steps->family_ns[i] /= steps;
        }
        ret_steps->is_known = true;
    }
    lac_spans_done(&m.kept);
    for (int set = 0; set < SET_COUNT_; set++) {
        lac_spans_done(&m.sets[set]);
    }
    return status;
}
