/*
 * What a job does beside training steps, by the ranges that name it: evaluations and checkpoints.
 * A share of what was recorded, which is not the whole job.
 */

#include "analysis/diagnose/work.h"

#include <stdint.h>
#include <string.h>

enum phase { PHASE_EVALUATION = 0, PHASE_CHECKPOINT, PHASE_COUNT };

static const struct {
    const char *text;
    const char *change;
    const char *costs;
} phases[PHASE_COUNT] = {
    {"evaluating",
     "with torch.inference_mode():            # no graph, less memory: a larger batch fits\n"
     "    evaluate(model, validation_loader)  # workers as many as in training; less often",
     "Evaluating less often shows a turn for the worse later."},
    {"writing checkpoints",
     "import torch.distributed.checkpoint as dcp\n"
     "saving = dcp.async_save(state, checkpoint_id=path)  # PyTorch 2.3; training goes on\n"
     "# ... before the next one: saving.result()",
     "Memory of the host for one copy of the state; a crash loses what was not written yet."},
};

struct phase_time {
    int64_t ns, longest_ns, covered_ns;
    uint64_t count;
    uint32_t longest;
};

static enum phase phase_of(const struct lac_diagnosis *diagnosis, const struct lac_mark *mark)
{
    const char *name = lac_model_str(diagnosis->model, diagnosis->model->slices.name[mark->slice]);
    bool is_writing = strcasestr(name, "checkpoint") || strcasestr(name, "save");
    return is_writing ? PHASE_CHECKPOINT : PHASE_EVALUATION;
}

/** Outermost ranges of each phase, of the threads that train. */
static void collect(const struct lac_diagnosis *diagnosis, struct phase_time times[PHASE_COUNT])
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        times[phase] = (struct phase_time){.longest = LAC_NONE};
    }
    for (uint64_t i = 0; i < diagnosis->other_work_marks.count; i++) {
        const struct lac_mark *mark = &diagnosis->other_work_marks.at[i];
        uint8_t flags = diagnosis->track_flags[mark->track];
        struct phase_time *time = &times[phase_of(diagnosis, mark)];
        int64_t end_ns = mark->start_ns + mark->dur_ns;
        if ((flags & (LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS)) == 0 || end_ns <= time->covered_ns) {
            continue; /* by start: what ends earlier than one before it lies inside that */
        }
        int64_t from_ns = mark->start_ns > time->covered_ns ? mark->start_ns : time->covered_ns;
        time->ns = lac_sum_ns(time->ns, end_ns - from_ns);
        time->count++;
        time->covered_ns = end_ns;
        if (mark->dur_ns > time->longest_ns) {
            time->longest_ns = mark->dur_ns;
            time->longest = mark->slice;
        }
    }
}

static void say(struct lac_diagnosis *diagnosis, enum phase phase, const struct phase_time *time,
                int64_t recorded_ns)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_finding *finding = lac_finding_open_fact(diagnosis, "phase-overhead");
    if (!finding) {
        return;
    }
    const char *times = time->count == 1
                            ? "once"
                            : lac_texts_add(&analysis->texts, "%s",
                                            lac_say_count((int64_t)time->count, "time").text);
    finding->title =
        lac_texts_add(&analysis->texts, "%s of what was recorded goes to %s: %s in all, %s",
                      lac_say_pct(lac_pct(time->ns, recorded_ns)).text, phases[phase].text,
                      lac_say_ns(time->ns).text, times);
    finding->why = lac_texts_add(
        &analysis->texts,
        "The longest took %s, as long as %s training steps. It is no training step and is left out "
        "of their mean; in the whole job its share may be another one.",
        lac_say_ns(time->longest_ns).text,
        lac_say_rate((double)time->longest_ns / diagnosis->time->step_ns).text);
    finding->change = phases[phase].change;
    finding->costs = phases[phase].costs;
    finding->wrong_if = "the recording was made just where it happens, and it is rare in the job.";
    lac_evidence_slice(diagnosis, finding, time->longest, "the longest");
}

void lac_find_phase_overhead(struct lac_diagnosis *diagnosis)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
    int64_t recorded_ns = diagnosis->model->info.duration_ns;
    struct phase_time times[PHASE_COUNT];
    collect(diagnosis, times);
    if (analysis->step_count == 0 || recorded_ns <= 0) {
        return;
    }
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        if (times[phase].count > 0 && lac_pct(times[phase].ns, recorded_ns) >= 5.0) {
            say(diagnosis, (enum phase)phase, &times[phase], recorded_ns);
        }
    }
}
