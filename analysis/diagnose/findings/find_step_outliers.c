/*
 * Steps longer than their like. Steps that did other work (validation, a checkpoint, the end of an
 * epoch) are a kind of their own, not outliers: they are counted, not blamed.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

struct outliers {
    uint32_t count, longest;
    double excess_ns, usual_ns;
};

static void measure(const struct lac_analysis *analysis, struct outliers *outliers)
{
    uint32_t usual_count = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT && step->kind == LAC_KIND_TRAIN && !step->is_outlier) {
            outliers->usual_ns += (double)(step->dur_ns - step->wait_ns);
            usual_count++;
        }
    }
    outliers->usual_ns /= usual_count > 0 ? (double)usual_count : 1.0;
    outliers->longest = LAC_NONE;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!step->is_outlier) {
            continue;
        }
        outliers->count++;
        outliers->excess_ns += (double)(step->dur_ns - step->wait_ns) - outliers->usual_ns;
        if (outliers->longest == LAC_NONE ||
            step->dur_ns > analysis->steps[outliers->longest].dur_ns) {
            outliers->longest = s;
        }
    }
}

/** The cause of most of the idle time inside that step. */
static enum lac_cause cause_inside(const struct lac_facts *facts, const struct lac_step *step)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t by_cause_ns[LAC_CAUSE_COUNT_] = {0};
    int64_t end_ns = step->start_ns + step->dur_ns;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        if (gap->start_ns >= end_ns) {
            break;
        }
        if (gap->start_ns >= step->start_ns) {
            by_cause_ns[gap->cause] += gap->dur_ns;
        }
    }
    int largest = 0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        largest = by_cause_ns[cause] > by_cause_ns[largest] ? cause : largest;
    }
    return by_cause_ns[largest] * 4 >= step->dur_ns ? (enum lac_cause)largest
                                                    : LAC_CAUSE_UNATTRIBUTED;
}

/** Whether they come at even distances, three at least: then it is a cycle of the loop (workers
 * that take turns, logging, a checkpoint), not an accident. */
static bool is_cycle(const struct lac_analysis *analysis, uint32_t count)
{
    uint32_t last = LAC_NONE;
    uint32_t distance = 0;
    uint32_t same = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (!analysis->steps[s].is_outlier) {
            continue;
        }
        if (last != LAC_NONE) {
            distance = distance == 0 ? s - last : distance;
            same += s - last == distance;
        }
        last = s;
    }
    return count >= 3 && same == count - 1;
}

bool lac_find_step_outliers(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct outliers outliers = {0};
    measure(analysis, &outliers);
    double cost_ns = outliers.excess_ns / (double)analysis->step_kept_count;
    /* what comes back more often than every tenth step is a pattern of the loop */
    if (outliers.count == 0 || is_cycle(analysis, outliers.count) ||
        outliers.count * 10 > analysis->step_kept_count ||
        lac_pct_of_step(facts, cost_ns) < COST_MIN_PCT) {
        return false;
    }
    const struct lac_step *longest = &analysis->steps[outliers.longest];
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.6;
    finding->title = lac_texts_add(
        &analysis->texts, "%u of %s %s longer than others of %s kind: %s of the time",
        (unsigned)outliers.count, lac_format_count(analysis->step_kept_count, "step").text,
        outliers.count == 1 ? "is" : "are", outliers.count == 1 ? "its" : "their",
        lac_format_pct(finding->cost_pct).text);
    enum lac_cause cause = cause_inside(facts, longest);
    finding->why = lac_texts_add(
        &analysis->texts,
        "Without waiting for data, they take %s on average, the others %s. They launch the same "
        "work, "
        "so they are not validation or checkpoints%s%s.",
        lac_format_ns(lac_round(outliers.usual_ns + outliers.excess_ns / outliers.count)).text,
        lac_format_ns(lac_round(outliers.usual_ns)).text,
        cause == LAC_CAUSE_UNATTRIBUTED ? "; the GPU is not idle longer in them"
                                        : "; in the longest, the GPU waits ",
        cause == LAC_CAUSE_UNATTRIBUTED ? "" : lac_waits_for(cause));
    if (longest->slice != LAC_NONE) {
        lac_evidence_slice(facts, finding, longest->slice, "the longest of them");
    } else if (finding->evidence_count < LAC_EVIDENCE_MAX) {
        finding->evidence[finding->evidence_count++] =
            (struct lac_evidence){.track = LAC_NONE,
                                  .slice = LAC_NONE,
                                  .track_name = "steps",
                                  .t0_ns = longest->start_ns,
                                  .t1_ns = longest->start_ns + longest->dur_ns,
                                  .text = "the longest of them"};
    }
    return true;
}
