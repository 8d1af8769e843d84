/* Copies from pageable memory keep the host until they are done. Pinned, and not blocking, they do
 * not: their calls, and the synchronization behind each, no longer wait. */

#include "analysis/diagnose/facts/step_operations.h"
#include "analysis/diagnose/replay/edits.h"

#include <stddef.h>
#include <stdint.h>

/** The synchronization that a blocking copy ends with, behind its call; LAC_NONE without one. */
static uint32_t wait_behind(const struct lac_facts *facts, uint32_t call)
{
    enum { LOOK_AHEAD = 8 };
    const struct lac_model *model = facts->model;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, call)];
    for (uint64_t at = (uint64_t)call + 1;
         at <= (uint64_t)call + LOOK_AHEAD && at < track->first + track->count; at++) {
        if (model->slices.kind[at] == LAC_SLICE_API) {
            bool is_wait = lac_api_class_of(facts, model->slices.name[at]) == LAC_API_SYNC;
            return is_wait ? (uint32_t)at : LAC_NONE;
        }
    }
    return LAC_NONE;
}

struct lac_edits *lac_pinned_copies(const struct lac_facts *facts, enum lac_finding_kind kind)
{
    const struct lac_model *model = facts->model;
    const struct lac_step_operations *work = facts->step_operations;
    struct lac_edits *edits = lac_edits_of(facts, kind);
    if (edits != NULL || work == NULL) { /* chosen before: changes that were noted hold them */
        return edits;
    }
    for (uint64_t i = 0; i < work->count; i++) {
        uint32_t slice = work->ops[i].slice;
        uint32_t row = model->slices.detail[slice];
        if (model->slices.kind[slice] != LAC_SLICE_COPY || row >= model->copy_count ||
            model->copies[row].copy_kind != LAC_COPY_HTOD ||
            model->copies[row].src != LAC_MEMORY_PAGEABLE ||
            model->slices.link[slice] == LAC_NONE) {
            continue;
        }
        edits = edits != NULL ? edits : lac_edits_begin(facts, kind);
        lac_edits_no_wait(edits, model->slices.link[slice]);
        uint32_t wait = wait_behind(facts, model->slices.link[slice]);
        if (wait != LAC_NONE) {
            lac_edits_no_wait(edits, wait);
        }
    }
    return edits;
}
