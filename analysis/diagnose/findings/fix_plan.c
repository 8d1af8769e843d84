/*
 * What to do after the first change: the changes that still gain when those before them are made,
 * played together. Gains of findings overlap; a plan never counts the same time twice.
 */

#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Changes made together. */
struct state {
    struct lac_what_if_changes what_if;
    bool uses_tensor_cores;
    bool hides_comm;
    bool is_edited[LAC_FINDING_COUNT_]; /**< by the chosen slices of that finding (edits.h) */
    double step_ns;
};

/** A change that may come next: everything made so far, and this. */
struct candidate {
    const char *brief;
    struct state state;
    double gain_min; /**< worth a step of the plan, as a part of the step */
};

enum { CANDIDATES_MAX = 10 + LAC_FINDING_COUNT_ };

static double replay(const struct lac_facts *facts, const struct state *state)
{
    struct lac_change change;
    lac_change_from_what_if(facts, &state->what_if, LAC_CASE_MID, &change);
    if (state->uses_tensor_cores) {
        change.factor[LAC_OP_UNUSED_TENSOR] /= lac_tensor_speedup(facts, LAC_CASE_MID);
    }
    change.hides_comm = state->hides_comm;
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        if (state->is_edited[kind]) {
            lac_change_edit(&change, facts->time->edits[kind], 1.0);
        }
    }
    return lac_what_if_replay(facts, &change);
}

/** Whether more workers may be proposed: no finding is sure that they do not help. */
static bool may_add_workers(const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (analysis->findings[i].excludes_workers) {
            return false;
        }
    }
    return true;
}

/** Workers that keep up with the step as it would be without waiting for data; 0:
 *  no more wanted. */
static int32_t workers_for(const struct lac_facts *facts, const struct state *state)
{
    enum { PLENTY = 4096 };
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS || loader->num_workers < 0 ||
        !may_add_workers(facts->analysis)) {
        return 0;
    }
    struct state plenty = *state;
    int32_t now = plenty.what_if.workers > 0 ? plenty.what_if.workers : loader->num_workers;
    plenty.what_if.workers = PLENTY;
    double s_ns = replay(facts, &plenty);
    double wanted = ceil(WORKERS_MARGIN * (double)loader->fetch_mean_ns / fmax(s_ns, 1.0));
    return wanted > now && wanted < PLENTY ? (int32_t)wanted : 0;
}

/** The finding of that kind when its gain is known, or NULL. */
static const struct lac_finding *estimated(const struct lac_analysis *analysis,
                                           enum lac_finding_kind kind)
{
    const struct lac_finding *finding = lac_finding_of(analysis, kind);
    bool proposes = finding != NULL && !isnan(finding->gain_mid_pct) && finding->brief[0] != '\0';
    return proposes ? finding : NULL;
}

struct list {
    struct candidate at[CANDIDATES_MAX];
    int count;
};

static struct candidate *add(struct list *list, const struct state *state, const char *brief)
{
    struct candidate *candidate = &list->at[list->count++];
    *candidate = (struct candidate){brief, *state, PLAN_GAIN_MIN};
    return candidate;
}

/** Loading, conversions, copies, tensor cores. */
static void list_work(const struct lac_facts *facts, const struct state *state, struct list *list)
{
    const struct lac_step_time *time = facts->time;
    int32_t workers = workers_for(facts, state);
    if (workers > 0) {
        add(list, state, lac_texts_add(&facts->analysis->texts, "num_workers=%d", (int)workers))
            ->state.what_if.workers = workers;
    }
    if (time->class_ns[LAC_OP_LAYOUT] > 0.0 && state->what_if.layout_nhwc != 1) {
        add(list, state, "channels-last")->state.what_if.layout_nhwc = 1;
    }
    bool is_pageable = time->class_ns[LAC_OP_COPY_PAGEABLE] > 0.0;
    if (is_pageable && state->what_if.pinned != 1) {
        add(list, state, "pin_memory=True")->state.what_if.pinned = 1;
    }
    bool is_pinned = state->what_if.pinned == 1 || time->class_ns[LAC_OP_COPY_PINNED] > 0.0;
    if (is_pinned && state->what_if.async_copies != 1) {
        add(list, state, "copy one batch ahead")->state.what_if.async_copies = 1;
    }
    if (lac_has_unused_tensor_cores(facts) && !state->uses_tensor_cores) {
        add(list, state, "tensor cores")->state.uses_tensor_cores = true;
    }
}

/**
 * What makes the host wait, and what it needs itself. Waits may be hidden behind another wait now:
 * they may come in without a finding of their own, but then have to gain as much as one would.
 */
static void list_waits(const struct lac_facts *facts, const struct state *state, struct list *list)
{
    const struct lac_analysis *analysis = facts->analysis;
    bool is_played = lac_graph_trust(facts->time) != LAC_TRUST_NONE;
    const struct lac_finding *sync = estimated(analysis, LAC_FINDING_SYNC_STALL);
    const struct lac_finding *allocator = estimated(analysis, LAC_FINDING_ALLOCATOR_THRASH);
    if ((sync != NULL || is_played) && state->what_if.no_sync != 1) {
        struct candidate *next = add(list, state, "synchronize less often");
        next->state.what_if.no_sync = 1;
        next->gain_min = sync != NULL ? next->gain_min : PLAN_WITHOUT_FINDING_MIN;
    }
    if ((allocator != NULL || (is_played && facts->alloc_marks.count > 0)) &&
        state->what_if.no_allocator != 1) {
        struct candidate *next =
            add(list, state, allocator != NULL ? allocator->brief : "no allocation in the step");
        next->state.what_if.no_allocator = 1;
        next->gain_min = allocator != NULL ? next->gain_min : PLAN_WITHOUT_FINDING_MIN;
    }
    const struct lac_finding *module = estimated(analysis, LAC_FINDING_MODULE_LOAD);
    if (module != NULL && state->what_if.no_module_load != 1) {
        add(list, state, module->brief)->state.what_if.no_module_load = 1;
    }
    const struct lac_finding *launch = estimated(analysis, LAC_FINDING_LAUNCH_BOUND);
    if (launch != NULL && state->what_if.no_launch != 1) {
        add(list, state, launch->brief)->state.what_if.no_launch = 1;
    }
    if (estimated(analysis, LAC_FINDING_EXPOSED_COMMUNICATION) != NULL && !state->hides_comm) {
        add(list, state, "overlap communication")->state.hides_comm = true;
    }
}

/** Findings whose change is one of chosen slices. */
static void list_edits(const struct lac_facts *facts, const struct state *state, struct list *list)
{
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        const struct lac_finding *finding = estimated(facts->analysis, (enum lac_finding_kind)kind);
        if (finding != NULL && facts->time->edits[kind] != NULL && !state->is_edited[kind]) {
            add(list, state, finding->brief)->state.is_edited[kind] = true;
        }
    }
}

void lac_plan_make(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    /* of a few steps, what is less than the mean is known to may be chance */
    double seen_min = analysis->step_kept_count < STEPS_SHOW_ALL
                          ? analysis->step_uncertain_pct / 100.0
                          : PLAN_GAIN_MIN;
    struct state state = {.step_ns = facts->time->step_ns};
    lac_what_if_clear(&state.what_if);
    while (analysis->plan_count < LAC_PLAN_MAX) {
        struct list list = {.count = 0};
        list_work(facts, &state, &list);
        list_waits(facts, &state, &list);
        list_edits(facts, &state, &list);
        struct candidate *best = NULL;
        for (int i = 0; i < list.count; i++) {
            struct candidate *next = &list.at[i];
            next->state.step_ns = replay(facts, &next->state);
            double gain_min = fmax(seen_min, next->gain_min);
            bool is_worth_it = next->state.step_ns < (1.0 - gain_min) * state.step_ns;
            if (is_worth_it && (best == NULL || next->state.step_ns < best->state.step_ns)) {
                best = next;
            }
        }
        if (best == NULL) {
            return;
        }
        analysis->plan[analysis->plan_count++] = (struct lac_plan_step){
            .brief = best->brief,
            .step_ns = lac_round(best->state.step_ns),
            .gain_pct = 100.0 * (state.step_ns - best->state.step_ns) / state.step_ns};
        state = best->state;
    }
}
