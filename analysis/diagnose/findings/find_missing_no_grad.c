/*
 * An evaluation that records what a backward pass would need: none follows, so its activations are
 * kept for nothing. The recorder numbers operators by the graph that is being built; inside
 * torch.no_grad() the number is left out.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>
#include <string.h>

enum { OPERATORS_MAX = 4000, NODES_MIN = 10, RANGES_MAX = 4 };

/** Nodes that were added to the graph in the range, 0 when a backward pass is in it. */
static int64_t nodes_built(const struct lac_facts *facts, const struct lac_mark *mark)
{
    const struct lac_model *model = facts->model;
    int64_t first = -1;
    int64_t last = -1;
    uint64_t seen = 0;
    uint64_t end = model->tracks[mark->track].first + model->tracks[mark->track].count;
    for (uint64_t i = mark->slice; i < end && seen < OPERATORS_MAX; i++) {
        if (model->slices.start_ns[i] >= mark->start_ns + mark->dur_ns) {
            break;
        }
        if (model->slices.kind[i] != LAC_SLICE_OP) {
            continue;
        }
        seen++;
        enum lac_host_class host_class = lac_host_class_of(facts, model->slices.name[i]);
        if (host_class == LAC_HOST_BACKWARD || host_class == LAC_HOST_OPTIMIZER) {
            return 0;
        }
        int64_t number = lac_sequence_number(model, i);
        if (number >= 0) {
            first = first < 0 ? number : first;
            last = number > last ? number : last;
        }
    }
    return first < 0 ? 0 : last - first;
}

/** Whether another thread went backward meanwhile: autograd has threads of its own. */
static bool has_backward_beside(const struct lac_facts *facts, const struct lac_mark *mark)
{
    const struct lac_model *model = facts->model;
    uint32_t process = model->tracks[mark->track].process;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_THREAD || track->process != process || t == mark->track) {
            continue;
        }
        uint64_t end = track->first + track->count;
        uint64_t seen = 0;
        for (uint64_t i = lac_model_lower_bound(model, t, mark->start_ns);
             i < end && seen < OPERATORS_MAX; i++, seen++) {
            if (model->slices.start_ns[i] >= mark->start_ns + mark->dur_ns) {
                break;
            }
            if (lac_host_class_of(facts, model->slices.name[i]) == LAC_HOST_BACKWARD) {
                return true;
            }
        }
    }
    return false;
}

static bool is_evaluation(const struct lac_facts *facts, const struct lac_mark *mark)
{
    const char *name = lac_model_str(facts->model, facts->model->slices.name[mark->slice]);
    return strcasestr(name, "validat") != NULL || strcasestr(name, "evaluat") != NULL;
}

bool lac_find_missing_no_grad(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t with = LAC_NONE;
    int64_t nodes = 0;
    int checked = 0;
    for (uint64_t i = 0; i < facts->other_work_marks.count && checked < RANGES_MAX; i++) {
        const struct lac_mark *mark = &facts->other_work_marks.at[i];
        if (!is_evaluation(facts, mark)) {
            continue;
        }
        checked++;
        int64_t built = nodes_built(facts, mark);
        if (built >= NODES_MIN && !has_backward_beside(facts, mark)) {
            with = with == LAC_NONE ? mark->slice : with;
            nodes = built > nodes ? built : nodes;
        }
    }
    if (with == LAC_NONE) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->severity = LAC_SEVERITY_WARNING;
    finding->title = "Evaluation builds an autograd graph that no backward pass uses";
    finding->why = lac_texts_add(&analysis->texts,
                                 "It builds %lld graph nodes without a backward pass: activations "
                                 "stay in memory until the range ends.",
                                 (long long)nodes);
    finding->brief = "torch.no_grad() in the evaluation";
    finding->change = "model.eval()\nwith torch.no_grad():      # or torch.inference_mode()\n"
                      "    evaluate(model, validation_loader)";
    finding->costs = "None.";
    finding->wrong_if = "the evaluation computes gradients on purpose.";
    finding->check = "record again: the evaluation's operators have no sequence number";
    lac_evidence_slice(facts, finding, with, "an evaluation that builds a graph");
    return true;
}
