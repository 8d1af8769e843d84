/*
 * What repeats by its kernels alone may be a part of one pass: blocks forward, or blocks backward. A loop
 * of training has an update in each step; where the recording has one or none, it is no loop. One
 * update makes the recording one step.
 */

#include "analysis/diagnose/steps/step_sequence.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool lac_kernel_name_trains(const struct lac_facts *facts, uint32_t row)
{
    static const char *const signs[] = {"ackward", "ackprop", "dgrad", "wgrad",
                                        "_bwd",    "bn_bw",   "Grad"};
    const struct lac_kernel_facts *kernel = &facts->analysis->kernels[row];
    if (kernel->names.family == LAC_FAMILY_OPTIMIZER) {
        return true;
    }
    const char *name = lac_model_str(facts->model, kernel->name);
    for (size_t i = 0; i < LAC_COUNT_OF(signs); i++) {
        if (strstr(name, signs[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/** Kernels of the sequence, in what repeats and all over. */
struct contents {
    uint64_t kernels, outside;
    uint64_t update_bursts;  /* runs of the optimizer's kernels */
    uint32_t with_gradients; /* repetitions with a kernel of a backward pass */
    bool has_gradients;
};

/** Kernels that a burst of updates may have between them. */
enum { BURST_HOLE_MAX = 64 };

static enum lac_status read_contents(const struct lac_facts *facts, struct contents *contents)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_sequence sequence;
    uint8_t *trains = calloc((size_t)facts->kernel_row_count + 1, 1);
    if (trains == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        bool is_update = analysis->kernels[row].names.family == LAC_FAMILY_OPTIMIZER;
        trains[row] = !is_update && lac_kernel_name_trains(facts, row);
    }
    uint32_t step = 0;
    uint32_t last = LAC_NONE;
    uint64_t slice = 0;
    uint64_t update_at = 0;
    bool has_sequence = lac_sequence_begin(facts, &sequence);
    while (has_sequence && lac_sequence_next(&sequence, &slice)) {
        int64_t start_ns = sequence.slices->start_ns[slice];
        uint32_t row = facts->kernel_row[sequence.slices->name[slice]];
        contents->kernels++;
        if (lac_kernel_class_of(facts, slice)->family == LAC_FAMILY_OPTIMIZER) {
            bool is_new = update_at == 0 || contents->kernels - update_at > BURST_HOLE_MAX;
            contents->update_bursts += is_new;
            update_at = contents->kernels;
        }
        while (step < analysis->step_count &&
               analysis->steps[step].start_ns + analysis->steps[step].dur_ns <= start_ns) {
            step++;
        }
        bool is_inside = step < analysis->step_count && analysis->steps[step].start_ns <= start_ns;
        contents->outside += !is_inside;
        if (row != LAC_NONE && trains[row]) {
            contents->has_gradients = true;
            contents->with_gradients += is_inside && step != last;
            last = is_inside ? step : last;
        }
    }
    free(trains);
    return LAC_OK;
}

/** Whether forward and backward pass are not both in what repeats: some repetitions have gradients and
 *  some none, or more lies outside than is cut off at the ends. */
static bool is_half_of_a_pass(const struct contents *contents, uint32_t count)
{
    uint64_t in_one = (contents->kernels - contents->outside) / count;
    bool is_mixed = (uint64_t)contents->with_gradients * 10 < (uint64_t)count * 9;
    return contents->has_gradients && (is_mixed || (contents->outside > 3 * in_one &&
                                                    contents->outside * 5 > contents->kernels));
}

enum lac_status lac_steps_judge_repetition(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct contents contents = {0};
    if (analysis->main_device == LAC_NONE || facts->kernel_row_count == 0) {
        return LAC_OK;
    }
    enum lac_status status = read_contents(facts, &contents);
    uint64_t marks = facts->optimizer_marks.count;
    uint64_t updates = marks > contents.update_bursts ? marks : contents.update_bursts;
    bool trains = facts->has_backward || contents.has_gradients;
    if (status || !trains || updates > 1) {
        return status;
    }
    if (updates == 1) {
        const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
        analysis->step_count = 0;
        analysis->step_method = "optimizer";
        return lac_steps_add(facts, device->first_ns, device->span_ns, 0, LAC_NONE);
    }
    facts->repeats_inside_pass =
        analysis->step_count > 0 && is_half_of_a_pass(&contents, analysis->step_count);
    return LAC_OK;
}
