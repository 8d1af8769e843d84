/*
 * What a job does beside training steps: validations, checkpoints, ends of epochs, recompilations.
 * Shares of the phases of what was recorded, which is not the whole job.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stddef.h>
#include <stdint.h>

struct advice {
    enum lac_phase_kind phase;
    const char *text;
    enum lac_finding_kind aside; /* the finding that says it better, with a gain */
    bool is_left_out;            /* of the mean step */
    const char *change;
    const char *costs;
};

static const struct advice validation_advice = {
    LAC_PHASE_VALIDATION,
    "evaluating",
    LAC_FINDING_COUNT_,
    true,
    "with torch.inference_mode():            # no graph, less memory: a larger batch fits\n"
    "    evaluate(model, validation_loader)  # as many workers as in training; less often",
    "Evaluating less often delays detecting regressions."};

static const struct advice checkpoint_advice = {
    LAC_PHASE_CHECKPOINT,
    "writing checkpoints",
    LAC_FINDING_COUNT_,
    true,
    "import torch.distributed.checkpoint as dcp\n"
    "saving = dcp.async_save(state, checkpoint_id=path)  # PyTorch 2.3; training continues\n"
    "# ... before the next one: saving.result()",
    "Host memory for one copy of the state; a crash loses an unfinished checkpoint."};

static const struct advice epoch_end_advice = {
    LAC_PHASE_EPOCH_END,
    "waiting at the ends of epochs",
    LAC_FINDING_WORKER_RESPAWN,
    false,
    "DataLoader(..., persistent_workers=True)   # one loader for all epochs, made once",
    "The workers' memory between epochs."};

static const struct advice recompile_advice = {
    LAC_PHASE_RECOMPILATION,
    "loading and compiling code after the first steps",
    LAC_FINDING_MODULE_LOAD,
    false,
    "torch._dynamo.mark_dynamic(batch, 0)         # if torch.compile is used\n"
    "DataLoader(..., drop_last=True)               # no shorter last batch: one shape for all",
    "One partial batch per epoch is skipped."};

struct phase_time {
    int64_t ns;
    uint32_t count, longest; /* phases, and the index of one */
};

static struct phase_time time_of(const struct lac_analysis *analysis, enum lac_phase_kind phase)
{
    struct phase_time time = {0};
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        const struct lac_phase *at = &analysis->phases[p];
        if (at->kind != phase) {
            continue;
        }
        if (time.count++ == 0 || at->dur_ns > analysis->phases[time.longest].dur_ns) {
            time.longest = p;
        }
        time.ns = lac_sum_ns(time.ns, at->dur_ns);
    }
    return time;
}

/** Whether the change follows from what was recorded. */
static bool is_open(const struct lac_facts *facts, const struct advice *advice)
{
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_TENSORFLOW) {
        return false;
    }
    return advice->phase != LAC_PHASE_EPOCH_END ||
           (facts->analysis->loader.num_workers > 0 &&
            lac_setting_truth(facts, "settings", "persistent_workers") != 1);
}

/** The range that the longest phase is, or the interval. */
static void show(const struct lac_facts *facts, struct lac_finding *finding,
                 const struct lac_phase *phase)
{
    const struct lac_marks *marks = &facts->other_work_marks;
    for (uint64_t i = 0; i < marks->count && marks->at[i].start_ns <= phase->start_ns; i++) {
        if (marks->at[i].start_ns == phase->start_ns) {
            lac_evidence_slice(facts, finding, marks->at[i].slice, "the longest");
            return;
        }
    }
    if (finding->evidence_count < LAC_EVIDENCE_MAX) {
        finding->evidence[finding->evidence_count++] =
            (struct lac_evidence){.track = LAC_NONE,
                                  .slice = LAC_NONE,
                                  .track_name = "steps",
                                  .t0_ns = phase->start_ns,
                                  .t1_ns = phase->start_ns + phase->dur_ns,
                                  .text = "the longest"};
    }
}

static void say(const struct lac_facts *facts, struct lac_finding *finding,
                const struct advice *advice, const struct phase_time *time)
{
    struct lac_analysis *analysis = facts->analysis;
    lac_finding_open_fact(finding);
    const struct lac_phase *longest = &analysis->phases[time->longest];
    const char *times = time->count == 1
                            ? "once"
                            : lac_texts_add(&analysis->texts, "%s",
                                            lac_format_count((int64_t)time->count, "time").text);
    finding->title =
        lac_texts_add(&analysis->texts, "%s of the recording goes to %s: %s in total, %s",
                      lac_format_pct(lac_pct(time->ns, analysis->duration_ns)).text, advice->text,
                      lac_format_ns(time->ns).text, times);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "The longest took %s, as long as %s training steps. %s; the share over the "
                      "whole job may differ.",
                      lac_format_ns(longest->dur_ns).text,
                      lac_format_rate((double)longest->dur_ns / facts->time->step_ns).text,
                      advice->is_left_out ? "It is not a training step and not in the mean"
                                          : "It recurs, so its steps count in the mean");
    bool has_change = is_open(facts, advice);
    finding->change = has_change ? advice->change : "";
    finding->costs = has_change ? advice->costs : "";
    finding->wrong_if = "the recording happened to include it, and it is rare in the job.";
    show(facts, finding, longest);
}

static bool find_phase(const struct lac_facts *facts, struct lac_finding *finding,
                       const struct advice *advice)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct phase_time time = time_of(analysis, advice->phase);
    if (analysis->step_count == 0 || time.count == 0 ||
        lac_pct(time.ns, analysis->duration_ns) < PHASE_MIN_PCT ||
        lac_finding_of(analysis, advice->aside) != NULL) {
        return false;
    }
    say(facts, finding, advice, &time);
    return true;
}

bool lac_find_validation_overhead(const struct lac_facts *facts, struct lac_finding *finding)
{
    return find_phase(facts, finding, &validation_advice);
}

bool lac_find_checkpoint_overhead(const struct lac_facts *facts, struct lac_finding *finding)
{
    return find_phase(facts, finding, &checkpoint_advice);
}

bool lac_find_epoch_end_overhead(const struct lac_facts *facts, struct lac_finding *finding)
{
    return find_phase(facts, finding, &epoch_end_advice);
}

bool lac_find_recompile_overhead(const struct lac_facts *facts, struct lac_finding *finding)
{
    return find_phase(facts, finding, &recompile_advice);
}
