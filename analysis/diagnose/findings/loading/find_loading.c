/* The wait for data: which finding explains it, and what all of those share. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

bool lac_is_short_of_cores(const struct lac_diagnosis *diagnosis)
{
    const struct lac_step_time *time = diagnosis->time;
    return time->cores_ns >= 0.75 * time->step_ns;
}

struct lac_finding *lac_loading_open(struct lac_diagnosis *diagnosis, const char *id)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_step_time *time = diagnosis->time;
    double starved_pct = lac_pct_of_step(diagnosis, time->starved_ns);
    struct lac_finding *finding = lac_finding_new(diagnosis, id);
    if (!finding) {
        return NULL;
    }
    lac_finding_cost(diagnosis, finding, time->starved_ns);
    finding->title =
        lac_texts_add(&analysis->texts, "%s waits %s of every %s step for data (%s)",
                      analysis->main_device == LAC_NONE ? "The training process" : "The GPU",
                      lac_say_ns(lac_round(time->starved_ns)).text,
                      lac_say_ns(analysis->step_mean_ns).text, lac_say_pct(starved_pct).text);
    finding->severity = starved_pct >= 20.0   ? LAC_SEVERITY_CRITICAL
                        : starved_pct >= 10.0 ? LAC_SEVERITY_WARNING
                                              : LAC_SEVERITY_INFO;
    finding->confidence = analysis->step_kept_count >= 2 * STEPS_MIN ? 0.9 : 0.7;
    return finding;
}

void lac_loading_price(struct lac_diagnosis *diagnosis, struct lac_finding *finding, double best_ns,
                       double mid_ns, double worst_ns)
{
    /* waits that overlap could sum to more than a step */
    const double steps[LAC_CASE_COUNT_] = {fmax(0.0, best_ns), fmax(0.0, mid_ns), worst_ns};
    lac_finding_price_steps(diagnosis, finding, steps);
}

double lac_loading_step(const struct lac_diagnosis *diagnosis, double fetch_ns)
{
    const struct lac_step_time *time = diagnosis->time;
    int32_t workers = diagnosis->analysis->loader.num_workers;
    workers = workers > 0 ? workers : 1;
    return fmax(fmax(diagnosis->loading->free_ns, fetch_ns / workers), time->cores_ns);
}

/** Which of the longest gaps come after those already taken. */
struct gap_order {
    int64_t below_ns;
    uint64_t last;
};

/** The longest gap for data that was not taken yet; UINT64_MAX none. */
static uint64_t next_gap(const struct lac_diagnosis *diagnosis, struct gap_order *order)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
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
static void add_gaps(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct gap_order order = {INT64_MAX, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        uint64_t at = next_gap(diagnosis, &order);
        if (at == UINT64_MAX) {
            return;
        }
        lac_evidence_rooted_gap(diagnosis, finding, at, analysis->gaps[at].dur_ns);
    }
}

/** Without a device: up to three of the longest waits for a batch inside steps. */
static void add_waits(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    const struct lac_marks *marks = &diagnosis->wait_marks;
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
            bool is_inside = lac_spans_length_inside(&diagnosis->kept, mark->start_ns,
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
        lac_evidence_slice(diagnosis, finding, marks->at[best].slice,
                           lac_texts_add(&diagnosis->analysis->texts, "waited %s for a batch",
                                         lac_say_ns(marks->at[best].dur_ns).text));
    }
}

void lac_loading_evidence(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    if (diagnosis->analysis->main_device == LAC_NONE) {
        add_waits(diagnosis, finding);
    } else {
        add_gaps(diagnosis, finding);
    }
}

const char *lac_loader_code(struct lac_diagnosis *diagnosis, const char *argument,
                            const char *value)
{
    struct lac_text **texts = &diagnosis->analysis->texts;
    bool is_trainer = lac_setting_is(diagnosis, "settings", "framework", "HF Trainer");
    static const char *const of_trainer[] = {"num_workers", "prefetch_factor", "persistent_workers",
                                             "pin_memory"};
    for (size_t i = 0; i < sizeof of_trainer / sizeof of_trainer[0] && is_trainer; i++) {
        if (strcmp(argument, of_trainer[i]) == 0) {
            return lac_texts_add(texts, "TrainingArguments(..., dataloader_%s=%s)", argument,
                                 value);
        }
    }
    return lac_texts_add(texts, "DataLoader(..., %s=%s)", argument, value);
}

/* What is certain to be elsewhere first: a quota or a mask makes all the others look true. */
static const struct {
    const char *id;
    bool (*find)(struct lac_diagnosis *diagnosis);
} explanations[] = {
    {"cpu-throttled", lac_find_cpu_throttled},
    {"affinity", lac_find_affinity},
    {"cpu-oversubscription", lac_find_cpu_oversubscription},
    {"worker-respawn", lac_find_worker_respawn},
    {"workers-serialized", lac_find_workers_serialized},
    {"worker-hand-over", lac_find_worker_hand_over},
    {"small-files", lac_find_small_files},
    {"storage-latency", lac_find_storage_latency},
    {"slow-samples", lac_find_slow_samples},
    {"input-starvation", NULL}, /* none of them: how many workers it takes */
};
enum { EXPLANATIONS = sizeof explanations / sizeof explanations[0] - 1 };

bool lac_is_about_loading(const char *id)
{
    for (size_t i = 0; i <= EXPLANATIONS; i++) {
        if (strcmp(explanations[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

bool lac_may_add_workers(const struct lac_diagnosis *diagnosis)
{
    return !diagnosis->loading || !diagnosis->loading->is_explained ||
           diagnosis->loading->proposes_workers;
}

/* From here on a wait is told of whatever it gains; from there on when a change gains a percent. */
#define STARVED_PCT       5.0
#define STARVED_LEAST_PCT 1.0

/** Whether the device felt the wait in a step again and again: in three of each half. */
static bool returns(const struct lac_analysis *analysis)
{
    enum { TIMES = 3 };
    uint32_t felt[2] = {0};
    uint32_t seen = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            felt[2 * seen++ >= analysis->step_kept_count] += step->starved_ns * 100 >= step->dur_ns;
        }
    }
    return felt[0] >= TIMES && felt[1] >= TIMES;
}

static void explain(struct lac_diagnosis *diagnosis)
{
    struct lac_loading *loading = diagnosis->loading;
    for (size_t i = 0; i < EXPLANATIONS && !loading->is_explained; i++) {
        loading->is_explained = explanations[i].find(diagnosis);
        if (loading->is_explained) {
            diagnosis->analysis->loading.verdict = explanations[i].id;
        }
    }
    if (!loading->is_explained) {
        lac_find_input_starvation(diagnosis);
    }
    if (!loading->proposes_workers) {
        diagnosis->analysis->loader.recommended_num_workers = -1;
    }
}

void lac_find_loading(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_loading *loading = diagnosis->loading;
    double starved_pct = lac_pct_of_step(diagnosis, diagnosis->time->starved_ns);
    if (!analysis->loader.is_present || !loading || starved_pct < STARVED_LEAST_PCT ||
        (starved_pct < STARVED_PCT && !returns(analysis))) {
        return;
    }
    uint32_t count = analysis->finding_count;
    int32_t recommended = analysis->loader.recommended_num_workers;
    explain(diagnosis);
    bool gains = analysis->finding_count > count && analysis->findings[count].gain_mid_pct >= 1.0;
    if (starved_pct < STARVED_PCT && !gains) { /* little, and nothing to propose */
        analysis->finding_count = count;
        analysis->loader.recommended_num_workers = recommended;
        analysis->loading.verdict = "";
        loading->is_explained = loading->proposes_workers = false;
    }
}
