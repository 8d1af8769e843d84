/* Steps, causes, projected ranges and the loader's queue as tracks of the model, for timelines and
 * flame graphs. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/facts/prefetch_queue_depth.h"
#include "analysis/diagnose/facts/recorded/backward_modules.h"
#include "analysis/diagnose/facts/recorded/gpu_allocations.h"
#include "analysis/diagnose/facts/recorded/launch_queue.h"
#include "analysis/diagnose/facts/recorded/projected_ranges.h"
#include "analysis/diagnose/facts/recorded/stream_rows.h"
#include "analysis/diagnose/result/analysis.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lac_status intern(struct lac_model *model, const char *text, uint32_t *ret_id)
{
    return lac_strings_intern(&model->strings, text, strlen(text), ret_id);
}

static enum lac_status add_steps(const struct lac_analysis *analysis, struct lac_model *model)
{
    if (analysis->step_count == 0) {
        return LAC_OK;
    }
    struct lac_track track = {
        .kind = LAC_TRACK_STEPS, .process = LAC_NONE, .tid = -1, .device = -1, .sort_index = -1000};
    /* what repeats may be a layer: then nothing is called a step */
    const bool is_loop = analysis->workload != LAC_WORKLOAD_NO_STEPS;
    enum lac_status status = intern(model, is_loop ? "steps" : "repeats", &track.name);
    struct lac_derived_slice *slices = malloc(analysis->step_count * sizeof(*slices));
    if (slices == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        const struct lac_step *step = &analysis->steps[s];
        slices[s] = (struct lac_derived_slice){.start_ns = step->start_ns,
                                               .dur_ns = step->dur_ns,
                                               .name = step->name,
                                               .link = step->slice,
                                               .kind = LAC_SLICE_STEP};
        if (step->name == 0) {
            char text[32];
            (void)snprintf(text, sizeof(text), "%s %u", is_loop ? "step" : "repeat", (unsigned)s);
            status = intern(model, text, &slices[s].name);
        }
    }
    if (!status) {
        qsort(slices, analysis->step_count, sizeof(*slices), lac_derived_slice_order);
        status = lac_model_add_track(model, &track, slices, analysis->step_count);
    }
    free(slices);
    return status;
}

static enum lac_status add_gaps(const struct lac_analysis *analysis, struct lac_model *model,
                                uint32_t device)
{
    const struct lac_device_facts *device_facts = &analysis->devices[device];
    if (device_facts->gap_count == 0) {
        return LAC_OK;
    }
    struct lac_track track = {.kind = LAC_TRACK_GAPS,
                              .process = LAC_NONE,
                              .tid = -1,
                              .device = device_facts->id,
                              .sort_index = -999};
    char text[48];
    (void)snprintf(text, sizeof(text), "why idle, GPU %lld", (long long)device_facts->id);
    enum lac_status status = intern(model, text, &track.name);
    uint32_t names[LAC_CAUSE_COUNT_];
    for (int cause = 0; cause < LAC_CAUSE_COUNT_ && !status; cause++) {
        status = intern(model, lac_cause_name((enum lac_cause)cause), &names[cause]);
    }
    struct lac_derived_slice *slices =
        status ? NULL : malloc(device_facts->gap_piece_count * sizeof(*slices));
    if (slices == NULL) {
        return status ? status : LAC_ERR_NOMEM;
    }
    uint64_t first = analysis->gaps[device_facts->first_gap].first_piece;
    for (uint32_t i = 0; i < device_facts->gap_piece_count; i++) {
        const struct lac_gap_piece *piece = &analysis->pieces[first + i];
        slices[i] = (struct lac_derived_slice){.start_ns = piece->start_ns,
                                               .dur_ns = lac_gap_piece_dur_ns(analysis, first + i),
                                               .name = names[piece->cause],
                                               .link = analysis->gaps[piece->gap].ended_by,
                                               .kind = LAC_SLICE_GAP};
    }
    status = lac_model_add_track(model, &track, slices, device_facts->gap_piece_count);
    free(slices);
    return status;
}

enum lac_status lac_diagnose_add_tracks(const struct lac_analysis *analysis,
                                        struct lac_model *model)
{
    assert(analysis != NULL && model != NULL);
    enum lac_status status = lac_prefetch_queue_depth_add(model);
    status = status ? status : lac_gpu_allocations_add(model);
    status = status ? status : lac_launch_queue_add(model);
    status = status ? status : add_steps(analysis, model);
    for (uint32_t d = 0; d < analysis->device_count && !status; d++) {
        status = add_gaps(analysis, model, d);
    }
    status = status ? status : lac_backward_modules_add(model);
    status = status ? status : lac_projected_ranges_add(model);
    return status ? status : lac_graph_modules_add(model);
}
