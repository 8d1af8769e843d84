/* What part of the timeline a report shows for a finding: around its evidence, with the thread that
 * it is about. */

#include "analysis/diagnose/findings/findings.h"

#include <stddef.h>
#include <stdint.h>

/** Track of the thread that launched the operation which ended the gap around `t_ns`. */
static uint32_t launching_track(const struct lac_facts *facts,
                                const struct lac_device_facts *device, int64_t t_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        bool is_it = gap->start_ns + gap->dur_ns > t_ns && gap->ended_by != LAC_NONE;
        if (is_it && model->slices.link[gap->ended_by] != LAC_NONE) {
            return lac_model_track_of(model, model->slices.link[gap->ended_by]);
        }
    }
    return LAC_NONE;
}

/** The host thread that the finding speaks of, or LAC_NONE. */
static uint32_t evidence_thread(const struct lac_facts *facts, const struct lac_finding *finding)
{
    const struct lac_model *model = facts->model;
    for (uint32_t i = 0; finding != NULL && i < finding->evidence_count; i++) {
        uint32_t track = finding->evidence[i].track;
        if (track < model->recorded_track_count && model->tracks[track].kind == LAC_TRACK_THREAD) {
            return track;
        }
    }
    return LAC_NONE;
}

/** A gap like the one that is evidence (same signature, as long), nearest to the trace's middle: at
 *  its begin much is cut off. */
static void move_to_middle(const struct lac_facts *facts, int64_t *first_ns, int64_t *last_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    const int64_t middle_ns = device->first_ns + device->span_ns / 2;
    const struct lac_gap *own = NULL;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count && own == NULL;
         g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        bool is_it = gap->start_ns == *first_ns && gap->start_ns + gap->dur_ns == *last_ns;
        own = is_it ? gap : NULL;
    }
    int64_t nearest_ns = INT64_MAX;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count && own != NULL;
         g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        int64_t away_ns =
            gap->start_ns > middle_ns ? gap->start_ns - middle_ns : middle_ns - gap->start_ns;
        if (gap->signature == own->signature && gap->dur_ns >= own->dur_ns - own->dur_ns / 10 &&
            away_ns < nearest_ns) {
            nearest_ns = away_ns;
            *first_ns = gap->start_ns;
            *last_ns = gap->start_ns + gap->dur_ns;
        }
    }
}

/** The interval to show: the finding's first evidence on a device, with what is around it. */
static bool choose_window(const struct lac_facts *facts, const struct lac_finding *finding,
                          struct lac_view *view)
{
    const struct lac_analysis *analysis = facts->analysis;
    const int64_t end_ns = facts->model->info.duration_ns;
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    for (uint32_t i = 0; finding != NULL && i < finding->evidence_count && last_ns <= first_ns;
         i++) {
        first_ns = finding->evidence[i].t0_ns;
        last_ns = finding->evidence[i].t1_ns;
    }
    view->has_mark = last_ns > first_ns;
    if (view->has_mark) {
        move_to_middle(facts, &first_ns, &last_ns);
    }
    for (uint32_t s = analysis->step_count / 2; s < analysis->step_count && last_ns <= first_ns;
         s++) {
        first_ns = analysis->steps[s].start_ns;
        last_ns = first_ns + analysis->steps[s].dur_ns;
    }
    if (last_ns <= first_ns) {
        return false;
    }
    view->mark_ns = first_ns;
    view->mark_end_ns = last_ns;
    int64_t length_ns = last_ns - first_ns;
    int64_t around_ns = length_ns * 3 / 4;
    if (analysis->step_mean_ns != LAC_UNKNOWN_NS && around_ns < analysis->step_mean_ns / 8) {
        int64_t more_ns = length_ns * 12;
        around_ns = more_ns < analysis->step_mean_ns / 8 ? more_ns : analysis->step_mean_ns / 8;
    }
    view->t0_ns = first_ns - around_ns > 0 ? first_ns - around_ns : 0;
    view->t1_ns = last_ns + around_ns < end_ns ? last_ns + around_ns : end_ns;
    return view->t1_ns - view->t0_ns >= 100;
}

/** The view of a finding, or (NULL) of a step in the middle. */
static void choose(const struct lac_facts *facts, const struct lac_finding *finding,
                   struct lac_view *view)
{
    const struct lac_analysis *analysis = facts->analysis;
    view->is_known = choose_window(facts, finding, view);
    if (view->is_known) {
        view->thread = evidence_thread(facts, finding);
        if (view->thread == LAC_NONE) {
            view->thread =
                launching_track(facts, &analysis->devices[analysis->main_device], view->mark_ns);
        }
    }
}

void lac_views_choose(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    bool has_evidence = false;
    if (analysis->main_device == LAC_NONE) {
        return;
    }
    for (uint32_t i = 0; i < analysis->finding_count && i < LAC_VIEW_COUNT - 1; i++) {
        if (analysis->findings[i].evidence_count > 0) {
            choose(facts, &analysis->findings[i], &analysis->views[i]);
            has_evidence = true;
        }
    }
    if (!has_evidence) {
        choose(facts, NULL, &analysis->views[LAC_VIEW_COUNT - 1]);
    }
}
