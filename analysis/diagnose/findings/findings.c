/* The findings: looked for in the order of the registry, weighed, and put in order. */

#include "analysis/diagnose/findings/findings.h"

#include "analysis/diagnose/loading/loading.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FOR_TRAINING = 1, FOR_LOOP = 2, FOR_ANY = 4, FOR_BATCHES = 8, FOR_STEP = 16 };
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

/** Whether what repeats may be spoken of although nothing says that it is a step: it repeats alike. */
static bool repeats_alike(const struct lac_analysis *analysis)
{
    return analysis->step_kept_count > STEPS_MIN &&
           analysis->step_uncertain_pct <= REPETITION_UNCERTAIN_MAX_PCT;
}

/** Which finders may look; none beside a finding that makes times say little. Inference is a loop of
 *  batches; one step shows what stands in every step. */
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
    if (facts->time == NULL || analysis->main_device == LAC_NONE) {
        return 0;
    }
    /* one step shows what stands in each, two that differ show nothing */
    bool has_mean = analysis->step_kept_count > 1 &&
                    (analysis->step_kept_count >= STEPS_MIN ||
                     analysis->step_uncertain_pct <= REPETITION_UNCERTAIN_MAX_PCT);
    bool is_marked = strcmp(analysis->step_method, "period") != 0 || repeats_alike(analysis);
    switch (analysis->workload) {
    case LAC_WORKLOAD_TRAINING:
        return FOR_TRAINING | FOR_STEP | FOR_BATCHES | FOR_LOOP;
    case LAC_WORKLOAD_INFERENCE:
        if (!is_marked) {
            return 0;
        }
        return has_mean ? FOR_STEP | FOR_BATCHES | FOR_LOOP
                        : (analysis->step_kept_count == 1 ? FOR_STEP : 0);
    case LAC_WORKLOAD_FEW_STEPS:
        return analysis->step_kept_count == 1 ? FOR_STEP : 0;
    case LAC_WORKLOAD_NO_STEPS:
        return repeats_alike(analysis) ? FOR_STEP : 0;
    case LAC_WORKLOAD_NO_GPU:
    case LAC_WORKLOAD_COLD_START:
    case LAC_WORKLOAD_HOST_TRAINING:
        break;
    }
    return 0;
}

/** Whether one step shows a finding of that kind. */
static bool stands_in_every_step(enum lac_finding_kind kind)
{
    for (size_t i = 0; i < LAC_COUNT_OF(finders); i++) {
        if (finders[i].kind == kind) {
            return finders[i].subjects == FOR_STEP;
        }
    }
    return false;
}

static void append(struct lac_analysis *analysis, const struct lac_finding *finding)
{
    assert(analysis->finding_count < LAC_FINDINGS_MAX);
    analysis->findings[analysis->finding_count++] = *finding;
}

void lac_findings_append(const struct lac_facts *facts, const struct lac_finding *finding)
{
    append(facts->analysis, finding);
}

/** Whether a finding before it already names the cause of the time that this one is about. */
static bool gives_way(const struct lac_analysis *analysis, enum lac_finding_kind kind)
{
    static const struct {
        enum lac_finding_kind general, specific;
    } pairs[] = {
        {LAC_FINDING_SYNC_STALL, LAC_FINDING_SYNC_PER_LAYER},
        {LAC_FINDING_SYNC_STALL, LAC_FINDING_ITERATION_GAP},
        {LAC_FINDING_SYNC_PER_LAYER, LAC_FINDING_ITERATION_GAP},
        {LAC_FINDING_LAUNCH_BOUND, LAC_FINDING_ITERATION_GAP},
        {LAC_FINDING_BLOCKING_COPY, LAC_FINDING_WEIGHTS_OVER_PCIE},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(pairs); i++) {
        if (pairs[i].general == kind && lac_finding_of(analysis, pairs[i].specific) != NULL) {
            return true;
        }
    }
    return false;
}

static void find_all(const struct lac_facts *facts, enum phase phase, unsigned subjects)
{
    for (size_t i = 0; i < LAC_COUNT_OF(finders); i++) {
        struct lac_finding finding;
        lac_finding_init(&finding, finders[i].kind);
        if (finders[i].phase == phase && (finders[i].subjects & subjects) != 0 &&
            !gives_way(facts->analysis, finders[i].kind) && finders[i].find(facts, &finding)) {
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

/** From how many steps on a finding shows: what stands in every step, in one; a wait for workers'
 *  batches, over two turns of theirs, else where there are more than three. */
static uint32_t steps_wanted(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    int32_t workers = analysis->loader.num_workers;
    if (!lac_finding_type(finding->kind)->is_about_loading || workers == 0) {
        return 1;
    }
    if (analysis->loader.are_workers_inferred) { /* from turns that were seen */
        return (uint32_t)workers;
    }
    uint32_t turns = workers > 0 ? 2 * (uint32_t)workers : 0;
    turns = turns < STEPS_SHOW_ALL ? turns : STEPS_SHOW_ALL;
    return turns > STEPS_MIN ? turns : STEPS_MIN + 1;
}

/** Whether the steps show it: there are as many as that takes, and it costs more than the mean of so
 *  few is known to, or stands in each. */
static bool is_shown(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    if (analysis->step_kept_count < steps_wanted(analysis, finding)) {
        return false;
    }
    if (lac_finding_type(finding->kind)->is_fact && analysis->step_kept_count > STEPS_MIN) {
        return true;
    }
    return analysis->step_kept_count >= STEPS_SHOW_ALL || stands_in_every_step(finding->kind) ||
           lac_finding_type(finding->kind)
               ->is_about_loading || /* in turns: not what is by chance */
           finding->cost_pct > analysis->step_uncertain_pct;
}

/** What the steps do not show is a remark. */
static void weigh_few_steps(struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (lac_finding_says_it_all(finding) || is_shown(analysis, finding)) {
            continue;
        }
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = fmin(FEW_STEPS_CONFIDENCE, finding->confidence);
        finding->brief = finding->change = finding->expect = finding->costs = finding->where = "";
        finding->check = "record ten steps after five of warm-up";
    }
}

/** What to do first: by what the change gains times how sure that is; of a wait whose gain is not known,
 *  what it costs stands for it. What every step pays before what is paid once. "The GPU is the limit" has
 *  no gain: it stands where one percent would. */
static double rank_of(const struct lac_finding *finding)
{
    if (lac_finding_says_it_all(finding)) {
        return HUGE_VAL;
    }
    const struct lac_finding_type *type = lac_finding_type(finding->kind);
    if (type->place == LAC_PLACE_LIMIT) {
        return RANK_OF_LIMIT;
    }
    bool is_remark = finding->change[0] == '\0';
    if (isnan(finding->gain_mid_pct) && !is_remark && type->is_about_loading &&
        finding->severity > LAC_SEVERITY_INFO) {
        return finding->confidence * finding->cost_pct;
    }
    if (isnan(finding->gain_mid_pct) || is_remark) {
        return RANK_OF_FACTS;
    }
    double rank = finding->confidence * finding->gain_mid_pct;
    return finding->is_one_time_cost ? fmin(RANK_OF_ONCE, rank) : rank;
}

/** Of two that are worth nearly the same, the one that takes less. */
static bool takes_less(const struct lac_finding *a, const struct lac_finding *b)
{
    double rank_a = rank_of(a);
    double rank_b = rank_of(b);
    bool are_near = fmin(rank_a, rank_b) > RANK_OF_LIMIT && isfinite(rank_a) && isfinite(rank_b) &&
                    fmin(rank_a, rank_b) * NEAR_TIE_MIN >= fmax(rank_a, rank_b);
    return are_near && a->effort < b->effort;
}

static bool comes_before(const struct lac_finding *a, const struct lac_finding *b)
{
    double rank_a = rank_of(a);
    double rank_b = rank_of(b);
    return rank_a > rank_b || (rank_a == rank_b && strcmp(a->id, b->id) < 0);
}

/** "The GPU is the limit" is no remark, and comes before those. */
static void put_limit_before_remarks(struct lac_analysis *analysis)
{
    uint32_t first = 0;
    while (first < analysis->finding_count &&
           analysis->findings[first].severity > LAC_SEVERITY_INFO) {
        first++;
    }
    for (uint32_t i = first + 1; i < analysis->finding_count; i++) {
        struct lac_finding finding = analysis->findings[i];
        if (lac_finding_type(finding.kind)->place == LAC_PLACE_LIMIT) {
            memmove(&analysis->findings[first + 1], &analysis->findings[first],
                    (i - first) * sizeof(finding));
            analysis->findings[first] = finding;
            return;
        }
    }
}

/** By rank, then id; those of one id stay as they were found. Then, once from the top, what takes less
 *  before what is worth little more. */
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
    for (uint32_t first = 0; first < analysis->finding_count; first++) {
        uint32_t best = first;
        for (uint32_t i = first + 1; i < analysis->finding_count; i++) {
            if (takes_less(&analysis->findings[i], &analysis->findings[first]) &&
                analysis->findings[i].effort < analysis->findings[best].effort) {
                best = i;
            }
        }
        struct lac_finding finding = analysis->findings[best];
        for (uint32_t at = best; at > first; at--) {
            analysis->findings[at] = analysis->findings[at - 1];
        }
        analysis->findings[first] = finding;
    }
}

/** Time of a step that both claim: of each part of the partition what they cannot have beside each
 *  other. */
static int64_t claimed_by_both(const struct lac_analysis *analysis, const struct lac_finding *a,
                               const struct lac_finding *b)
{
    int64_t both_ns = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        int64_t there_ns = analysis->partition.part_ns[part];
        int64_t over_ns = lac_sum_ns(a->part_ns[part], b->part_ns[part]) - there_ns;
        both_ns = over_ns > 0 ? lac_sum_ns(both_ns, over_ns) : both_ns;
    }
    return both_ns;
}

/** Two changes that take away the same time are alternatives: the later one says so. */
static void tell_alternatives(struct lac_analysis *analysis)
{
    for (uint32_t i = 1; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        const struct lac_finding *other = NULL;
        int64_t most_ns = 0;
        for (uint32_t before = 0; before < i && finding->expect[0] != '\0'; before++) {
            const struct lac_finding *at = &analysis->findings[before];
            int64_t both_ns = claimed_by_both(analysis, finding, at);
            if (at->brief[0] != '\0' && !isnan(at->gain_mid_pct) && both_ns > most_ns) {
                other = at;
                most_ns = both_ns;
            }
        }
        if (other != NULL && (double)most_ns >= SAME_TIME_MIN * (double)finding->cost_ns_per_step) {
            const char *stop = finding->expect[strlen(finding->expect) - 1] == '.' ? "" : ".";
            finding->expect = lac_texts_add(
                &analysis->texts, "%s%s The same %s as \"%s\" takes away: the gains do not add up.",
                finding->expect, stop, lac_format_ns(most_ns).text, other->brief);
        }
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
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        lac_finding_settle(facts, &analysis->findings[i]);
    }
    put_in_order(analysis);
    put_limit_before_remarks(analysis);
    tell_alternatives(analysis);
    if ((subjects & FOR_BATCHES) != 0) {
        lac_plan_make(facts);
    }
    lac_findings_place(facts);
}
