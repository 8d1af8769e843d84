/*
 * Where an epoch ends: the training loader begins anew. One loader is followed, the one that the
 * training takes its batches from; loaders of validations count from 0 as well and end no epoch.
 */

#include "analysis/diagnose/steps/step_kinds.h"

#include <stddef.h>
#include <stdint.h>

/** Whether a moment lies in one of the first `count` stretches. Moments must ascend. */
static bool is_in_stretch(const struct lac_stretch *stretches, uint32_t count, int64_t t_ns,
                          uint32_t *cursor)
{
    while (*cursor < count && stretches[*cursor].end_ns <= t_ns) {
        (*cursor)++;
    }
    return *cursor < count && stretches[*cursor].start_ns <= t_ns;
}

/** A backward pass, or where none is recorded as much work as a training step: a forward pass alone
 *  has about a third. */
static bool does_training(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->facts->analysis->steps[s];
    if (search->usual.trains_by_host) {
        return search->works[s].backward > 0;
    }
    return search->usual.ops > 0 && (int64_t)step->op_count * 10 >= search->usual.ops * 7;
}

static enum lac_status put_epoch(struct lac_kind_search *search, uint32_t s, int64_t start_ns,
                                 int64_t end_ns, const char *why)
{
    struct lac_facts *facts = search->facts;
    if (facts->analysis->steps[s].kind == LAC_KIND_TRAIN) {
        lac_step_kind_set(facts, s, LAC_KIND_EPOCH_END, why);
    }
    return lac_stretch_add(facts, start_ns, end_ns, LAC_KIND_EPOCH_END);
}

/** Waits of the training's thread in steps, one after the other. */
struct wait_walk {
    uint64_t next;
    uint32_t track, step, cursor;
    uint32_t stretch_count; /* without those that are added meanwhile */
};

static struct wait_walk first_wait(const struct lac_facts *facts)
{
    return (struct wait_walk){.track = lac_marks_majority_track(&facts->wait_marks),
                              .stretch_count = facts->stretch_count};
}

/** The next wait in a step (walk->step), in no stretch of other work; NULL behind the last. */
static const struct lac_mark *next_wait(const struct lac_facts *facts, struct wait_walk *walk)
{
    const struct lac_analysis *analysis = facts->analysis;
    while (walk->next < facts->wait_marks.count) {
        const struct lac_mark *wait = &facts->wait_marks.at[walk->next++];
        uint32_t s = lac_step_at(analysis, wait->start_ns, walk->step);
        if (wait->track != walk->track || s == LAC_NONE) {
            continue;
        }
        walk->step = s;
        const struct lac_step *step = &analysis->steps[s];
        if (wait->start_ns < step->start_ns + step->dur_ns &&
            !is_in_stretch(facts->stretches, walk->stretch_count, wait->start_ns, &walk->cursor)) {
            return wait;
        }
    }
    return NULL;
}

/** Batches have numbers: the training's begin at 0 again. */
static enum lac_status by_numbers(struct lac_kind_search *search)
{
    const struct lac_facts *facts = search->facts;
    const struct lac_model *model = facts->model;
    int64_t *waits = search->scratch; /* by step */
    const struct lac_mark *wait = NULL;
    for (uint32_t s = 0; s < facts->analysis->step_count; s++) {
        waits[s] = 0;
    }
    struct wait_walk walk = first_wait(facts);
    while (next_wait(facts, &walk) != NULL) {
        waits[walk.step]++;
    }
    walk = first_wait(facts);
    int64_t last = -1; /* batch of the training */
    while ((wait = next_wait(facts, &walk))) {
        uint32_t s = walk.step;
        uint32_t row = model->slices.detail[wait->slice];
        int64_t batch = row < model->loader_info_count ? model->loader_infos[row].batch : -1;
        /* several in a step are another loader's, but for the last */
        bool is_last = wait->start_ns == search->works[s].last_wait_ns;
        bool has_others = waits[s] > search->usual.waits + 1;
        if (batch < 0 || !does_training(search, s) || (has_others && !is_last)) {
            continue;
        }
        if (batch == 0 && last > 0) {
            enum lac_status status =
                put_epoch(search, s, wait->start_ns, wait->start_ns + wait->dur_ns,
                          "the training loader counts its batches from 0 again");
            if (status) {
                return status;
            }
        }
        last = batch;
    }
    return LAC_OK;
}

/** No numbers: an iterator is made, or a batch more is taken and waited for as for no other: the
 *  last one of an epoch does not come. */
static enum lac_status by_signs(struct lac_kind_search *search)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    const struct lac_step_usual *usual = &search->usual;
    bool has_waited = false;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        const struct lac_step_features *work = &search->works[s];
        int64_t wait_ns = work->last_wait_end_ns - work->last_wait_ns;
        bool takes_more = usual->waits > 0 && (int64_t)work->waits == usual->waits + 1 &&
                          wait_ns > 3 * usual->wait_ns && wait_ns * 10 > usual->own_ns;
        bool begins = has_waited && step->kind == LAC_KIND_TRAIN && work->waits > 0 &&
                      work->first_batch < 0 && does_training(search, s) &&
                      (work->makes_loader || takes_more);
        has_waited = has_waited || (work->waits > 0 && does_training(search, s));
        if (!begins) {
            continue;
        }
        enum lac_status status =
            put_epoch(search, s, work->last_wait_ns, work->last_wait_end_ns,
                      work->makes_loader ? "creates a loader iterator"
                                         : "requests an extra batch, and waits longer for it");
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/** Whether step `s` is a wait for a batch that did not come, of the training's loader. */
static bool is_in_vain(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->facts->analysis->steps[s];
    if (!lac_step_kind_is_open(step) || search->works[s].waits != 1 ||
        !lac_step_does_nothing(search, s)) {
        return false;
    }
    /* behind a validation it is that one's loader that ends */
    return search->works[s].first_batch >= 0
               ? step[1].kind == LAC_KIND_EPOCH_END
               : does_training(search, s - 1) && step[-1].kind != LAC_KIND_VALIDATION;
}

/** Where a step is from one wait to the next: the wait in vain, and the first one of the new epoch
 *  when it takes longer than others. */
static enum lac_status by_waits_in_vain(struct lac_kind_search *search)
{
    const struct lac_analysis *analysis = search->facts->analysis;
    for (uint32_t s = 1; s + 1 < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!is_in_vain(search, s)) {
            continue;
        }
        lac_step_kind_set(search->facts, s, LAC_KIND_EPOCH_END,
                          "requests a batch that never arrives");
        enum lac_status status = lac_stretch_add(search->facts, step->start_ns,
                                                 step->start_ns + step->dur_ns, LAC_KIND_EPOCH_END);
        const struct lac_step_features *next = &search->works[s + 1];
        int64_t wait_ns = next->last_wait_end_ns - next->last_wait_ns;
        bool is_long = next->waits == 1 && next->first_batch < 0 && does_training(search, s + 1) &&
                       wait_ns > 3 * search->usual.wait_ns;
        if (!status && is_long) {
            status = put_epoch(search, s + 1, next->last_wait_ns, next->last_wait_end_ns, "");
        }
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

enum lac_status lac_steps_find_epochs(struct lac_kind_search *search)
{
    const struct lac_facts *facts = search->facts;
    bool trains = facts->has_backward || search->usual.trains_by_host ||
                  search->usual.trains_by_kernels || !facts->has_operators;
    if (!trains) { /* a loop over batches without training has no epochs */
        return LAC_OK;
    }
    enum lac_status status = by_numbers(search);
    if (!status) {
        status = by_signs(search);
    }
    return status ? status : by_waits_in_vain(search);
}
