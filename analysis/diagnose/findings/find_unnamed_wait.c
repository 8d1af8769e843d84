/*
 * A wait that looks like one for data, in a trace that names no loading: once a step the device has
 * nothing to do, nothing of the host is recorded meanwhile, and a batch copied to the device ends
 * it. That is said with little confidence, without a gain: what it was is not in the trace.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

enum { BATCH_MIN_BYTES = COPY_SMALL_BYTES, PIECE_MIN_NS = 200000 };

/** Waits of that kind. */
struct unnamed {
    double total_ns;
    uint32_t step_count; /**< kept steps that hold one */
    uint64_t longest;    /**< gap, UINT64_MAX none */
    int64_t longest_ns;
};

/** Whether the operation is a copy to the device as large as a batch. */
static bool is_batch_copy(const struct lac_model *model, uint32_t slice)
{
    uint32_t row = model->slices.detail[slice];
    if (model->slices.kind[slice] != LAC_SLICE_COPY || row == LAC_NONE ||
        row >= model->copy_count) {
        return false;
    }
    const struct lac_copy *copy = &model->copies[row];
    return copy->copy_kind == LAC_COPY_HTOD && copy->bytes > BATCH_MIN_BYTES;
}

/** Time of the gap in which nothing is recorded that would explain it, in long pieces. */
static int64_t unexplained_ns(const struct lac_facts *facts, const struct lac_gap *gap)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t sum_ns = 0;
    for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
        uint8_t cause = analysis->pieces[p].cause;
        int64_t dur_ns = lac_gap_piece_dur_ns(analysis, p);
        bool is_open = cause == LAC_CAUSE_HOST || cause == LAC_CAUSE_UNATTRIBUTED;
        if (is_open && dur_ns >= PIECE_MIN_NS) { /* what follows a synchronization is that */
            sum_ns += dur_ns;
        }
    }
    if (facts->main_host == LAC_NONE || sum_ns == 0) {
        return sum_ns;
    }
    /* inside an operator or a call of the host it is that, not a wait */
    const struct lac_spans *busy = &facts->hosts[facts->main_host].sets[LAC_SET_BUSY];
    int64_t busy_ns = lac_spans_length_inside(busy, gap->start_ns, gap->start_ns + gap->dur_ns);
    return busy_ns * 2 > gap->dur_ns ? 0 : sum_ns;
}

static void measure(const struct lac_facts *facts, struct unnamed *unnamed)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    uint32_t s = 0;
    uint32_t last = LAC_NONE;
    unnamed->longest = UINT64_MAX;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        while (s < analysis->step_count &&
               analysis->steps[s].start_ns + analysis->steps[s].dur_ns <=
                   gap->start_ns + gap->dur_ns / 2) {
            s++;
        }
        if (s == analysis->step_count) {
            return;
        }
        if (analysis->steps[s].left_out != LAC_STEP_KEPT ||
            !is_batch_copy(facts->model, gap->ended_by)) {
            continue;
        }
        int64_t ns = unexplained_ns(facts, gap);
        if (ns == 0) {
            continue;
        }
        unnamed->total_ns += (double)ns;
        unnamed->step_count += s != last;
        last = s;
        if (ns > unnamed->longest_ns) {
            unnamed->longest_ns = ns;
            unnamed->longest = g;
        }
    }
}

bool lac_find_unnamed_wait(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->loader.is_present) {
        return false;
    }
    struct unnamed unnamed = {0};
    measure(facts, &unnamed);
    double cost_ns = unnamed.total_ns / (double)analysis->step_kept_count;
    bool is_usual = (uint64_t)unnamed.step_count * 5 >= (uint64_t)analysis->step_kept_count;
    if (!is_usual || unnamed.step_count < STEPS_MIN ||
        lac_pct_of_step(facts, cost_ns) < COST_NOTED_MIN_PCT) {
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.4;
    finding->title = lac_texts_add(
        &analysis->texts, "The GPU seems to wait %s of every %s step for data (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "In %u of %s the GPU is idle until a batch is copied to it, with no recorded host "
        "activity. Loading is not marked in this trace: it may be other Python code.",
        (unsigned)unnamed.step_count, lac_format_count(analysis->step_kept_count, "step").text);
    finding->brief = "record the loader";
    finding->change_kind = LAC_CHANGE_COMMAND;
    finding->change =
        "lacuna run -- python train.py   # records every wait for a batch, and the workers";
    finding->costs = "A recording of a few minutes. The fix depends on what it shows.";
    finding->wrong_if = "the training loop does other work between steps.";
    finding->check = "reuse one cached batch: if the wait persists, it is not data loading";
    lac_evidence_gap(facts, finding, unnamed.longest,
                     lac_texts_add(&analysis->texts, "%s idle, then a batch is copied",
                                   lac_format_ns(unnamed.longest_ns).text));
    return true;
}
