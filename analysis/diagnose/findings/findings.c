/* The findings: looked for in the order of the registry, weighed, and put in order. */

#include "analysis/diagnose/findings/findings.h"

#include "analysis/diagnose/loading/loading.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FOR_TRAINING = 1, FOR_LOOP = 2, FOR_ANY = 4 };
enum phase { PHASE_FIRST, PHASE_WAIT, PHASE_REST };

static const struct finder {
    enum lac_finding_kind kind;
    enum phase phase;
    unsigned subjects; /**< bits of FOR_ */
    bool (*find)(const struct lac_facts *facts, struct lac_finding *finding);
} finders[] = {
#define LAC_FINDER(kind, phase, subjects, finder)                                                  \
    {LAC_FINDING_##kind, PHASE_##phase, FOR_##subjects, finder},
#include "analysis/diagnose/result/finding_registry.def"
};

/** Which finders may look; none beside a finding that makes times say little. */
static unsigned subjects_of(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (analysis->findings[i].distorts) {
            return 0;
        }
    }
    if (analysis->workload == LAC_WORKLOAD_HOST_TRAINING) {
        return FOR_LOOP;
    }
    bool is_training = analysis->workload == LAC_WORKLOAD_TRAINING && facts->time != NULL;
    return is_training ? FOR_TRAINING | FOR_LOOP : 0;
}

static void append(struct lac_analysis *analysis, const struct lac_finding *finding)
{
    assert(analysis->finding_count < LAC_FINDINGS_MAX);
    analysis->findings[analysis->finding_count++] = *finding;
}

static void find_all(const struct lac_facts *facts, enum phase phase, unsigned subjects)
{
    for (size_t i = 0; i < LAC_COUNT_OF(finders); i++) {
        struct lac_finding finding;
        lac_finding_init(&finding, finders[i].kind);
        if (finders[i].phase == phase && (finders[i].subjects & subjects) != 0 &&
            finders[i].find(facts, &finding)) {
            append(facts->analysis, &finding);
        }
    }
}

/** The first finding that is sure takes the wait for data. */
static bool find_explanation(const struct lac_facts *facts, struct lac_finding *finding)
{
    for (size_t i = 0; i < LAC_COUNT_OF(finders); i++) {
        lac_finding_init(finding, finders[i].kind);
        if (finders[i].phase == PHASE_WAIT && finders[i].find(facts, finding)) {
            return true;
        }
    }
    return false;
}

/** "in-process", "worker-bound", the finding that explains the wait, or "". */
static const char *verdict_of(const struct lac_facts *facts, const struct lac_finding *finding)
{
    if (finding->kind != LAC_FINDING_INPUT_STARVATION) {
        return finding->id;
    }
    if (facts->time->is_in_process) {
        return "in-process";
    }
    return facts->analysis->loader.worker_busy_pct >= WORKERS_BUSY_PCT ? "worker-bound" : "";
}

/** Why the wait for data, where there is one that is told of. */
static void explain_wait(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_finding finding;
    enum lac_waiting waiting = lac_waiting_for_data(facts);
    if (waiting == LAC_WAITING_NOT || !find_explanation(facts, &finding)) {
        return;
    }
    if (waiting == LAC_WAITING_LITTLE && !(finding.gain_mid_pct >= GAIN_MIN_PCT)) {
        return; /* and nothing to propose */
    }
    if (finding.kind != LAC_FINDING_INPUT_STARVATION) {
        finding.excludes_workers = finding.workers < 0;
    }
    analysis->loader.recommended_num_workers = finding.workers;
    analysis->loading.verdict = verdict_of(facts, &finding);
    append(analysis, &finding);
}

/** A wait for data that a change takes away is worth as much as any other wait: a warning
 *  from 3 %. */
static void weigh_data_wait(struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (finding->severity == LAC_SEVERITY_INFO && finding->gain_mid_pct >= WARNING_GAIN_PCT &&
            lac_finding_type(finding->kind)->is_about_loading) {
            finding->severity = LAC_SEVERITY_WARNING;
        }
    }
}

bool lac_finding_says_it_all(const struct lac_finding *finding)
{
    return lac_finding_type(finding->kind)->place == LAC_PLACE_FIRST &&
           finding->severity == LAC_SEVERITY_CRITICAL;
}

/** Whether a few steps show it: what is rare or comes in bursts needs more of them, and what costs
 *  less than the mean is known to may be chance. */
static bool is_seen_in_few(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    return !lac_finding_type(finding->kind)->is_about_loading &&
           finding->cost_pct > analysis->step_uncertain_pct;
}

bool lac_has_few_steps(const struct lac_analysis *analysis)
{
    return (analysis->workload == LAC_WORKLOAD_TRAINING ||
            analysis->workload == LAC_WORKLOAD_HOST_TRAINING) &&
           analysis->step_kept_count <= STEPS_MIN;
}

/** What a few steps do not show is a remark. */
static void weigh_few_steps(struct lac_analysis *analysis)
{
    bool has_few = lac_has_few_steps(analysis);
    for (uint32_t i = 0; i < analysis->finding_count && has_few; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (lac_finding_says_it_all(finding) || is_seen_in_few(analysis, finding)) {
            continue;
        }
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = fmin(FEW_STEPS_CONFIDENCE, finding->confidence);
        finding->brief = finding->change = finding->expect = finding->costs = finding->where = "";
        finding->check = "record ten steps after five of warm-up";
    }
}

/** What to do first: by gain; what every step pays before what is paid once; "the GPU is the limit"
 *  before what gains less than a percent. */
static double rank_of(const struct lac_finding *finding)
{
    if (lac_finding_says_it_all(finding)) {
        return HUGE_VAL;
    }
    switch (lac_finding_type(finding->kind)->place) {
    case LAC_PLACE_LIMIT:
        return RANK_OF_LIMIT;
    case LAC_PLACE_UNSURE:
        return RANK_OF_UNSURE;
    case LAC_PLACE_FIRST:
    case LAC_PLACE_BY_GAIN:
        break;
    }
    if (isnan(finding->gain_mid_pct) || finding->change[0] == '\0') { /* a remark */
        return RANK_OF_FACTS;
    }
    return finding->is_one_time_cost ? fmin(RANK_OF_ONCE, finding->gain_mid_pct)
                                     : finding->gain_mid_pct;
}

static bool comes_before(const struct lac_finding *a, const struct lac_finding *b)
{
    double rank_a = rank_of(a);
    double rank_b = rank_of(b);
    return rank_a > rank_b || (rank_a == rank_b && strcmp(a->id, b->id) < 0);
}

/** By rank, then id; those of one id stay as they were found. */
static void put_in_order(struct lac_analysis *analysis)
{
    for (uint32_t i = 1; i < analysis->finding_count; i++) {
        struct lac_finding finding = analysis->findings[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(&finding, &analysis->findings[at - 1]); at--) {
            analysis->findings[at] = analysis->findings[at - 1];
        }
        analysis->findings[at] = finding;
    }
}

void lac_findings_make(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    find_all(facts, PHASE_FIRST, FOR_ANY);
    unsigned subjects = subjects_of(facts);
    if (subjects != 0) {
        lac_padding_take_setting(facts);
        explain_wait(facts);
        find_all(facts, PHASE_REST, subjects);
    }
    weigh_data_wait(analysis);
    weigh_few_steps(analysis);
    put_in_order(analysis);
    lac_findings_place(facts);
    if ((subjects & FOR_TRAINING) != 0) {
        lac_plan_make(facts);
    }
}
