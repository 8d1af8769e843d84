/*
 * What to do after the first change: the changes that still gain when those before them are made,
 * re-timed together. Gains of findings overlap; a plan never counts the same time twice.
 */

#include "analysis/diagnose/findings.h"
#include "analysis/diagnose/loading.h"

#include <math.h>
#include <stdint.h>

/** A change that may come next. */
struct candidate {
    const char *brief;
    struct lac_what_if_changes what_if;
    bool uses_tensor_cores;
};

enum { CANDIDATES_MAX = 5 };

/** Everything made so far. */
struct state {
    struct lac_what_if_changes what_if;
    bool uses_tensor_cores;
    double step_ns;
};

static double retime(const struct lac_diagnosis *diagnosis,
                     const struct lac_what_if_changes *what_if, bool uses_tensor_cores)
{
    struct lac_change change;
    lac_change_from_what_if(diagnosis, what_if, LAC_CASE_MID, &change);
    if (uses_tensor_cores) {
        change.factor[LAC_OP_UNUSED_TENSOR] /= LAC_TENSOR_SPEEDUP_MID;
    }
    return lac_retime(diagnosis, &change);
}

/** Workers that keep up with the step as it would be without waiting for data; 0: no more wanted.
 */
static int32_t workers_for(const struct lac_diagnosis *diagnosis, const struct state *state)
{
    enum { PLENTY = 4096 };
    const struct lac_loader_facts *loader = &diagnosis->analysis->loader;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS || loader->num_workers < 0 ||
        !lac_may_add_workers(diagnosis)) {
        return 0;
    }
    struct lac_what_if_changes what_if = state->what_if;
    int32_t now = what_if.workers > 0 ? what_if.workers : loader->num_workers;
    what_if.workers = PLENTY;
    double s_ns = retime(diagnosis, &what_if, state->uses_tensor_cores);
    double wanted = ceil(1.15 * (double)loader->fetch_mean_ns / fmax(s_ns, 1.0));
    return wanted > now && wanted < PLENTY ? (int32_t)wanted : 0;
}

static int list_candidates(struct lac_diagnosis *diagnosis, const struct state *state,
                           struct candidate candidates[CANDIDATES_MAX])
{
    const struct lac_step_time *time = diagnosis->time;
    struct lac_analysis *analysis = diagnosis->analysis;
    int count = 0;
    int32_t workers = workers_for(diagnosis, state);
    struct candidate next = {.what_if = state->what_if,
                             .uses_tensor_cores = state->uses_tensor_cores};
    if (workers > 0) {
        candidates[count] = next;
        candidates[count].what_if.workers = workers;
        candidates[count++].brief = lac_texts_add(&analysis->texts, "num_workers=%d", (int)workers);
    }
    if (time->class_ns[LAC_OP_LAYOUT] > 0.0 && state->what_if.layout_nhwc != 1) {
        candidates[count] = next;
        candidates[count].what_if.layout_nhwc = 1;
        candidates[count++].brief = "channels-last";
    }
    bool is_pageable = time->class_ns[LAC_OP_COPY_PAGEABLE] > 0.0;
    if (is_pageable && state->what_if.pinned != 1) {
        candidates[count] = next;
        candidates[count].what_if.pinned = 1;
        candidates[count++].brief = "pin_memory=True";
    }
    bool is_pinned = state->what_if.pinned == 1 || time->class_ns[LAC_OP_COPY_PINNED] > 0.0;
    if (is_pinned && state->what_if.async_copies != 1) {
        candidates[count] = next;
        candidates[count].what_if.async_copies = 1;
        candidates[count++].brief = "copy one batch ahead";
    }
    if (lac_has_unused_tensor_cores(diagnosis) && !state->uses_tensor_cores) {
        candidates[count] = next;
        candidates[count].uses_tensor_cores = true;
        candidates[count++].brief = "tensor cores";
    }
    return count;
}

void lac_plan_make(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct state state = {.step_ns = diagnosis->time->step_ns};
    lac_what_if_clear(&state.what_if);
    while (analysis->plan_count < LAC_PLAN_MAX) {
        struct candidate candidates[CANDIDATES_MAX];
        int count = list_candidates(diagnosis, &state, candidates);
        int best = -1;
        double best_ns = 0.99 * state.step_ns; /* less than a percent is no step of a plan */
        for (int i = 0; i < count; i++) {
            double step_ns =
                retime(diagnosis, &candidates[i].what_if, candidates[i].uses_tensor_cores);
            if (step_ns < best_ns) {
                best_ns = step_ns;
                best = i;
            }
        }
        if (best < 0) {
            return;
        }
        analysis->plan[analysis->plan_count++] =
            (struct lac_plan_step){.brief = candidates[best].brief,
                                   .step_ns = llround(best_ns),
                                   .gain_pct = 100.0 * (state.step_ns - best_ns) / state.step_ns};
        state =
            (struct state){candidates[best].what_if, candidates[best].uses_tensor_cores, best_ns};
    }
}
