/* The training process' operators, ranges and calls, with what is open around them (host_walk.h). */

#include "analysis/diagnose/findings/host/host_walk.h"

#include "analysis/diagnose/replay/graph.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { VISITS_MAX = 2000000 };

const char *lac_host_name(const struct lac_facts *facts, uint64_t slice)
{
    return lac_model_str(facts->model, facts->model->slices.name[slice]);
}

uint32_t lac_host_around(const struct lac_host_open *open, bool (*is_wanted)(const char *name))
{
    for (uint32_t d = 0; d < open->depth; d++) {
        if (is_wanted(lac_host_name(open->facts, open->slice[d]))) {
            return open->slice[d];
        }
    }
    return LAC_NONE;
}

bool lac_host_is_loading(const struct lac_host_open *open)
{
    for (uint32_t d = 0; d < open->depth; d++) {
        uint32_t name = open->facts->model->slices.name[open->slice[d]];
        enum lac_host_class host_class = lac_host_class_of(open->facts, name);
        if (host_class == LAC_HOST_LOADER_WAIT || host_class == LAC_HOST_LOADER_FETCH) {
            return true;
        }
    }
    return false;
}

struct window {
    int64_t start_ns, end_ns;
    double steps;
};

/** The first kept steps that follow each other, as many as a replay would take. */
static struct window first_steps(const struct lac_analysis *analysis)
{
    struct window window = {0};
    uint64_t operations = 0;
    for (uint32_t s = 0; s < analysis->step_count && operations < LAC_GRAPH_OPS_MAX; s++) {
        const struct lac_step *step = &analysis->steps[s];
        bool is_kept = step->left_out == LAC_STEP_KEPT;
        if (!is_kept && window.steps > 0.0) {
            break;
        }
        if (is_kept) {
            window.start_ns = window.steps > 0.0 ? window.start_ns : step->host_start_ns;
            window.end_ns = step->host_start_ns + step->host_dur_ns;
            window.steps += 1.0;
            operations += step->op_count;
        }
    }
    return window;
}

/** The replayed steps, or the first ones. */
static struct window window_of(const struct lac_facts *facts)
{
    struct window window = {0};
    const struct lac_graph *graph = facts->time != NULL ? facts->time->graph : NULL;
    if (graph == NULL || graph->step_count == 0) {
        return facts->time != NULL ? first_steps(facts->analysis) : window;
    }
    lac_edits_window(facts, &window.start_ns, &window.end_ns);
    window.steps = graph->step_count;
    return window;
}

double lac_host_walk(const struct lac_facts *facts,
                     void (*visit)(void *context, const struct lac_host_open *open, uint64_t slice),
                     void *context)
{
    const struct lac_slices *slices = &facts->model->slices;
    struct window window = window_of(facts);
    struct lac_host_open open = {.facts = facts};
    uint64_t visited = 0;
    for (uint32_t t = 0; t < facts->model->recorded_track_count && window.steps > 0.0; t++) {
        const struct lac_track *track = &facts->model->tracks[t];
        if (track->kind != LAC_TRACK_THREAD ||
            (facts->track_flags[t] & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) == 0) {
            continue;
        }
        open.track = t;
        open.depth = 0;
        for (uint64_t i = lac_model_lower_bound(facts->model, t, window.start_ns);
             i < track->first + track->count && slices->start_ns[i] < window.end_ns &&
             visited < VISITS_MAX;
             i++) {
            while (open.depth > 0 && slices->start_ns[open.slice[open.depth - 1]] +
                                             slices->dur_ns[open.slice[open.depth - 1]] <=
                                         slices->start_ns[i]) {
                open.depth--;
            }
            uint8_t kind = slices->kind[i];
            bool is_named =
                kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER;
            if (is_named || kind == LAC_SLICE_API) {
                visit(context, &open, i);
                visited++;
            }
            if (is_named && open.depth < LAC_HOST_DEPTH_MAX) {
                open.slice[open.depth++] = (uint32_t)i;
            }
        }
    }
    return visited < VISITS_MAX ? window.steps : 0.0;
}

uint32_t lac_host_launched(const struct lac_facts *facts, uint64_t call)
{
    uint32_t other = facts->model->slices.link[call];
    return other != LAC_NONE && lac_is_gpu_work(facts->model->slices.kind[other]) ? other
                                                                                  : LAC_NONE;
}

bool lac_host_open_edited(const struct lac_facts *facts, struct lac_finding *finding,
                          struct lac_edits *edits, const double share[LAC_CASE_COUNT_])
{
    struct lac_change changes[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        lac_change_clear(&changes[which]);
        lac_change_edit(&changes[which], edits, share[which]);
    }
    double gone_ns = facts->time->step_ns - lac_what_if_replay(facts, &changes[LAC_CASE_BEST]);
    return lac_finding_open_changes(facts, finding, fmax(0.0, gone_ns), COST_MIN_PCT, changes);
}
