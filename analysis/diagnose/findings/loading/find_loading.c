/* What the findings that explain a wait for data share. */

#include "analysis/diagnose/findings/loading/loading_findings.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

bool lac_is_short_of_cores(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    return time->cores_ns >= CORES_FULL_MIN * time->step_ns;
}

void lac_loading_open(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double starved_pct = lac_pct_of_step(facts, time->starved_ns);
    /* the first batch, too, for which the device waited before its first operation */
    lac_finding_cost(facts, finding, fmax(time->starved_ns, time->idle_ns[LAC_CAUSE_DATA_WAIT]));
    finding->title = lac_texts_add(
        &analysis->texts, "%s waits %s of every %s step for data (%s)",
        analysis->main_device == LAC_NONE ? "The training process" : "The GPU",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->severity = starved_pct >= CRITICAL_WAIT_PCT  ? LAC_SEVERITY_CRITICAL
                        : starved_pct >= WARNING_WAIT_PCT ? LAC_SEVERITY_WARNING
                                                          : LAC_SEVERITY_INFO;
    finding->confidence = analysis->step_kept_count >= 2 * STEPS_MIN ? 0.9 : 0.7;
}

void lac_loading_estimate(const struct lac_facts *facts, struct lac_finding *finding,
                          double best_ns, double mid_ns, double worst_ns)
{
    /* waits that overlap could sum to more than a step */
    const double steps[LAC_CASE_COUNT_] = {fmax(0.0, best_ns), fmax(0.0, mid_ns), worst_ns};
    lac_finding_estimate_steps(facts, finding, steps);
}

double lac_loading_step(const struct lac_facts *facts, double fetch_ns)
{
    const struct lac_step_time *time = facts->time;
    int32_t workers = facts->analysis->loader.num_workers;
    workers = workers > 0 ? workers : 1;
    double data_ns = time->batches * fmax(fetch_ns / workers, time->pin_ns);
    return fmax(fmax(facts->loading->free_ns, data_ns), time->cores_ns);
}

/** Which of the longest gaps come after those already taken. */
struct gap_order {
    int64_t below_ns;
    uint64_t last;
};

/** The longest gap for data that was not taken yet; UINT64_MAX none. */
static uint64_t next_gap(const struct lac_facts *facts, struct gap_order *order)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    uint64_t best = UINT64_MAX;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        bool is_next =
            gap->dur_ns < order->below_ns || (gap->dur_ns == order->below_ns && g > order->last);
        if (gap->cause == LAC_CAUSE_DATA_WAIT && is_next &&
            (best == UINT64_MAX || gap->dur_ns > analysis->gaps[best].dur_ns)) {
            best = g;
        }
    }
    if (best != UINT64_MAX) {
        *order = (struct gap_order){analysis->gaps[best].dur_ns, best};
    }
    return best;
}

/** Up to three of the longest gaps in which data was waited for, and what was late. */
static void add_gaps(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct gap_order order = {INT64_MAX, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        uint64_t at = next_gap(facts, &order);
        if (at == UINT64_MAX) {
            return;
        }
        lac_evidence_rooted_gap(facts, finding, at, analysis->gaps[at].dur_ns);
    }
}

/** Without a device: up to three of the longest waits for a batch inside steps. */
static void add_waits(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_marks *marks = &facts->wait_marks;
    uint64_t chosen[3];
    uint64_t count = 0;
    while (count < 3 && count < marks->count) {
        uint64_t best = UINT64_MAX;
        for (uint64_t i = 0; i < marks->count; i++) {
            const struct lac_mark *mark = &marks->at[i];
            bool is_taken = false;
            for (uint64_t c = 0; c < count; c++) {
                is_taken = is_taken || chosen[c] == i;
            }
            bool is_inside = lac_spans_length_inside(&facts->host_kept, mark->start_ns,
                                                     mark->start_ns + mark->dur_ns) > 0;
            if (!is_taken && is_inside &&
                (best == UINT64_MAX || mark->dur_ns > marks->at[best].dur_ns)) {
                best = i;
            }
        }
        if (best == UINT64_MAX) {
            return;
        }
        chosen[count++] = best;
        lac_evidence_slice(facts, finding, marks->at[best].slice,
                           lac_texts_add(&facts->analysis->texts, "waited %s for a batch",
                                         lac_format_ns(marks->at[best].dur_ns).text));
    }
}

void lac_loading_evidence(const struct lac_facts *facts, struct lac_finding *finding)
{
    if (facts->analysis->main_device == LAC_NONE) {
        add_waits(facts, finding);
    } else {
        add_gaps(facts, finding);
    }
}

const char *lac_loader_code(const struct lac_facts *facts, const char *argument, const char *value)
{
    static const struct {
        const char *argument;
        enum lac_switch which;
    } switches[] = {{"num_workers", LAC_SWITCH_NUM_WORKERS},
                    {"prefetch_factor", LAC_SWITCH_PREFETCH_FACTOR},
                    {"persistent_workers", LAC_SWITCH_PERSISTENT_WORKERS}};
    const char *code = NULL;
    for (size_t i = 0; i < LAC_COUNT_OF(switches) && code == NULL; i++) {
        code = strcmp(argument, switches[i].argument) == 0
                   ? lac_framework_advice(facts, switches[i].which, value)
                   : NULL;
    }
    return code != NULL
               ? code
               : lac_texts_add(&facts->analysis->texts, "DataLoader(..., %s=%s)", argument, value);
}
