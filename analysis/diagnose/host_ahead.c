/*
 * A host that runs ahead of the device through all steps that were recorded: it launches a step in
 * less time than the device takes for it, and the queue never fills. Then the marks of the steps
 * say how fast the host launches, and only the device says how long a step takes.
 */

#include "analysis/diagnose/retime.h"

#include <math.h>
#include <stdint.h>

/** How much longer the device computed what was launched between the marks than they are apart;
 *  0 when nothing was. */
static double lag_ratio(const struct lac_diagnosis *diagnosis, int64_t from_ns, int64_t to_ns)
{
    const struct lac_model *model = diagnosis->model;
    const struct lac_slices *slices = &model->slices;
    int64_t device = diagnosis->analysis->devices[diagnosis->analysis->main_device].id;
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (!(diagnosis->track_flags[t] & LAC_TRACK_HAS_GPU) || track->device != device) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            uint32_t call = slices->link[i];
            /* copies ahead and collectives keep their own pace */
            bool is_launched_there = slices->kind[i] == LAC_SLICE_KERNEL && call != LAC_NONE &&
                                     slices->start_ns[call] >= from_ns &&
                                     slices->start_ns[call] < to_ns &&
                                     !lac_kernel_class_of(diagnosis, i)->is_comm;
            if (!is_launched_there) {
                continue;
            }
            int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
            first_ns = slices->start_ns[i] < first_ns ? slices->start_ns[i] : first_ns;
            last_ns = end_ns > last_ns ? end_ns : last_ns;
        }
    }
    return last_ns > first_ns ? (double)(last_ns - first_ns) / (double)(to_ns - from_ns) : 0.0;
}

static int64_t scaled_ns(int64_t ns, double ratio)
{
    return ns == LAC_UNKNOWN_NS ? ns : llround((double)ns * ratio);
}

void lac_host_ahead_measure(struct lac_diagnosis *diagnosis)
{
    const double ratio_min = 1.25; /* less is the last step, on which the device still works */
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_spans *kept = &diagnosis->kept;
    bool can_tell = diagnosis->time && diagnosis->has_api && !diagnosis->has_device_steps &&
                    analysis->main_device != LAC_NONE && kept->count > 0;
    if (!can_tell) {
        return;
    }
    double ratio = lag_ratio(diagnosis, kept->at[0].start_ns, kept->at[kept->count - 1].end_ns);
    if (ratio < ratio_min) {
        return;
    }
    analysis->step_device_ns = scaled_ns(analysis->step_mean_ns, ratio);
    /* summed between the marks, where only a part of each step's work was done */
    struct lac_needs *needs = &analysis->needs;
    needs->gpu_ns = scaled_ns(needs->gpu_ns, ratio);
    needs->copies_ns = LAC_UNKNOWN_NS; /* ahead of them or in line, that is not known here */
    needs->comm_ns = scaled_ns(needs->comm_ns, ratio);
    analysis->throughput_per_s /= ratio;
}
