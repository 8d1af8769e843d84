/* The stream that computes most, as a sequence of kernels: what steps without names
 * are found in. */

#include "analysis/diagnose/steps/step_sequence.h"

#include <stdint.h>

/** Time of computing kernels on a track. */
static int64_t computing_ns(const struct lac_facts *facts, const struct lac_track *track)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t sum_ns = 0;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        if (slices->kind[i] == LAC_SLICE_KERNEL && !lac_kernel_class_of(facts, i)->is_comm) {
            sum_ns = lac_sum_ns(sum_ns, slices->dur_ns[i]);
        }
    }
    return sum_ns;
}

bool lac_sequence_begin(const struct lac_facts *facts, struct lac_sequence *ret_sequence)
{
    const struct lac_model *model = facts->model;
    const struct lac_analysis *analysis = facts->analysis;
    if (analysis->main_device == LAC_NONE || facts->kernel_row_count == 0) {
        return false;
    }
    int64_t most_ns = -1;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->device != analysis->devices[analysis->main_device].id ||
            !(facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        int64_t sum_ns = computing_ns(facts, track);
        if (sum_ns > most_ns) {
            most_ns = sum_ns;
            *ret_sequence = (struct lac_sequence){
                .slices = &model->slices, .at = track->first, .end = track->first + track->count};
        }
    }
    return most_ns >= 0;
}

bool lac_sequence_next(struct lac_sequence *sequence, uint64_t *ret_slice)
{
    const struct lac_slices *slices = sequence->slices;
    while (sequence->at < sequence->end) {
        uint64_t slice = sequence->at++;
        if (slices->kind[slice] != LAC_SLICE_KERNEL) {
            continue;
        }
        int64_t start_ns = slices->start_ns[slice];
        int64_t end_ns = start_ns + slices->dur_ns[slice];
        bool is_first = sequence->count++ == 0; /* kernels of a stream may overlap in a bad trace */
        sequence->before_end_ns =
            is_first || sequence->last_end_ns > start_ns ? start_ns : sequence->last_end_ns;
        sequence->last_end_ns =
            is_first || end_ns > sequence->last_end_ns ? end_ns : sequence->last_end_ns;
        *ret_slice = slice;
        return true;
    }
    return false;
}
