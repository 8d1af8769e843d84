/* What a finding costs and what its change gains: the steps played again, best, expected, worst. */

#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static bool is_among(uint32_t part, const uint32_t *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i] == part) {
            return true;
        }
    }
    return false;
}

/** Whether the cause stops the host: what it delays need not be idle time, as communication or a copy may
 *  run on meanwhile, and that time is claimed, too. */
static bool stops_host(enum lac_cause cause)
{
    return cause == LAC_CAUSE_SYNC || cause == LAC_CAUSE_ALLOCATOR ||
           cause == LAC_CAUSE_MODULE_LOAD;
}

/** Whether the profiler's own stalls hold the steps up: what is played without a stop of the host then
 *  takes them in, and nothing tells them apart. */
static bool holds_by_profiler(const struct lac_time_partition *partition)
{
    const int64_t profiler_ns = partition->part_ns[lac_time_part_of(LAC_CAUSE_PROFILER)];
    return (double)profiler_ns > PROFILER_HOLDS_MIN * (double)partition->total_ns;
}

bool lac_is_held_by_profiler(const struct lac_facts *facts)
{
    return holds_by_profiler(&facts->analysis->partition);
}

/** Parts that a kind of finding may claim, those of its cause first; then, where it is about idle time,
 *  the rest of that: what holds up the host has many names on the device. */
static void list_parts(const struct lac_time_partition *partition, enum lac_finding_kind kind,
                       uint32_t parts[LAC_TIME_PART_COUNT], uint32_t *ret_count)
{
#define IDLE(cause) (LAC_PART_IDLE + (cause))
    /* a call that copies stops the host, which then has nothing launched ahead */
    static const uint32_t of_copies[] = {LAC_PART_EXPOSED_COPY, IDLE(LAC_CAUSE_COPY_WAIT),
                                         IDLE(LAC_CAUSE_LAUNCH), IDLE(LAC_CAUSE_HOST)};
    static const uint32_t of_comm[] = {LAC_PART_EXPOSED_COMM, IDLE(LAC_CAUSE_COMM)};
    static const uint32_t of_launches[] = {IDLE(LAC_CAUSE_LAUNCH), IDLE(LAC_CAUSE_HOST)};
    static const uint32_t of_host[] = {IDLE(LAC_CAUSE_HOST), IDLE(LAC_CAUSE_LAUNCH)};
    /* while the host stands still, what was launched before may run on: there is no hole to see */
    static const uint32_t beside[] = {LAC_PART_EXPOSED_COMM, LAC_PART_EXPOSED_COPY};
    /* operations that are not launched any more do not run either */
    static const uint32_t work[] = {LAC_PART_EXPOSED_MEMSET, LAC_PART_EXPOSED_COPY,
                                    LAC_PART_COMPUTE};
#undef IDLE
    const struct lac_finding_type *type = lac_finding_type(kind);
    enum lac_cause cause = type->is_about_loading ? LAC_CAUSE_DATA_WAIT : type->cause;
    uint32_t of_cause = lac_time_part_of(cause);
    const uint32_t *first = cause == LAC_CAUSE_COPY_WAIT ? of_copies
                            : cause == LAC_CAUSE_COMM    ? of_comm
                            : cause == LAC_CAUSE_LAUNCH  ? of_launches
                            : cause == LAC_CAUSE_HOST    ? of_host
                                                         : &of_cause;
    const uint32_t own = first == &of_cause ? 1 : first == of_copies ? 4 : 2;
    uint32_t count = own;
    for (uint32_t i = 0; i < own; i++) {
        parts[i] = first[i];
    }
    for (uint32_t part = LAC_PART_IDLE; part < LAC_TIME_PART_COUNT; part++) {
        /* what the profiler takes is not there without it: no other change gains it */
        if (!is_among(part, first, own) && part != lac_time_part_of(LAC_CAUSE_PROFILER)) {
            parts[count++] = part;
        }
    }
    if (stops_host(cause) && !holds_by_profiler(partition)) {
        memcpy(parts + count, beside, sizeof(beside));
        count += LAC_COUNT_OF(beside);
    }
    if (cause == LAC_CAUSE_COPY_WAIT && !holds_by_profiler(partition)) {
        parts[count++] = LAC_PART_EXPOSED_COMM; /* a copy in line may lie beneath a collective */
    }
    if (kind == LAC_FINDING_SLOW_OPTIMIZER || kind == LAC_FINDING_ZERO_GRAD_FILLS) {
        memcpy(parts + count, work, sizeof(work));
        count += LAC_COUNT_OF(work);
    }
    *ret_count = count;
}

/** Claim `cost_ns` of the partition, at most `work_ns` of it of the device's own work. @return how much
 *  of it there was */
static int64_t claim(const struct lac_time_partition *partition, struct lac_finding *finding,
                     int64_t cost_ns, int64_t work_ns)
{
    bool is_work = lac_finding_type(finding->kind)->cause == LAC_CAUSE_COUNT_;
    /* less work on the device may be less to launch, too */
    uint32_t parts[LAC_TIME_PART_COUNT] = {LAC_PART_COMPUTE, LAC_PART_IDLE + LAC_CAUSE_LAUNCH,
                                           LAC_PART_IDLE + LAC_CAUSE_HOST};
    uint32_t count = 3;
    int64_t left_ns = cost_ns;
    memset(finding->part_ns, 0, sizeof(finding->part_ns));
    if (!is_work) {
        list_parts(partition, finding->kind, parts, &count);
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t there_ns = partition->part_ns[parts[i]];
        there_ns = parts[i] == LAC_PART_COMPUTE && work_ns < there_ns ? work_ns : there_ns;
        finding->part_ns[parts[i]] = left_ns < there_ns ? left_ns : there_ns;
        left_ns -= finding->part_ns[parts[i]];
    }
    return cost_ns - left_ns;
}

static void fill_steps(const struct lac_facts *facts, struct lac_finding *finding,
                       const double step_ns[LAC_CASE_COUNT_])
{
    double now_ns = facts->time->step_ns;
    double best_ns = fmin(now_ns, fmin(step_ns[LAC_CASE_BEST], step_ns[LAC_CASE_MID]));
    double worst_ns = fmin(now_ns, fmax(step_ns[LAC_CASE_WORST], step_ns[LAC_CASE_MID]));
    double mid_ns = fmin(now_ns, step_ns[LAC_CASE_MID]);
    finding->step_low_ns = lac_round(best_ns);
    finding->step_mid_ns = lac_round(mid_ns);
    finding->step_high_ns = lac_round(worst_ns);
    finding->gain_low_pct = 100.0 * (now_ns - worst_ns) / now_ns;
    finding->gain_mid_pct = 100.0 * (now_ns - mid_ns) / now_ns;
    finding->gain_high_pct = 100.0 * (now_ns - best_ns) / now_ns;
}

/** Whether its cost is told by parts of the partition. */
static bool claims_parts(const struct lac_finding *finding)
{
    bool claims = false;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        claims = claims || finding->part_ns[part] > 0;
    }
    return claims;
}

/** Idle time of a step that the finding does not claim. */
static double other_idle_ns(const struct lac_facts *facts, const struct lac_finding *finding)
{
    bool is_of_idle = lac_finding_type(finding->kind)->cause != LAC_CAUSE_COUNT_;
    double left_ns = 0.0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        const bool is_own = cause != LAC_CAUSE_PROFILER ||
                            lac_finding_type(finding->kind)->cause == LAC_CAUSE_PROFILER;
        left_ns += is_own ? facts->time->idle_ns[cause] -
                                (double)finding->part_ns[lac_time_part_of((enum lac_cause)cause)]
                          : 0.0;
    }
    if (is_of_idle && !claims_parts(finding)) { /* the partition is not of a step */
        left_ns -= (double)finding->cost_ns_per_step;
    }
    return fmax(0.0, left_ns);
}

/**
 * No case takes more of the step than there is to take: what the finding costs and, where that is
 * enough to be said beside it, idle time under other names that goes with it. The device's own work
 * stays what it is, as far as the cost is not of that.
 */
static void keep_within_cost(const struct lac_facts *facts, struct lac_finding *finding)
{
    if (finding->cost_ns_per_step == LAC_UNKNOWN_NS || finding->step_low_ns == LAC_UNKNOWN_NS) {
        return;
    }
    double now_ns = facts->time->step_ns;
    double most_ns = (double)finding->cost_ns_per_step;
    double best_ns = now_ns - (double)finding->step_low_ns;
    double mid_ns = now_ns - (double)finding->step_mid_ns;
    double worst_ns = now_ns - (double)finding->step_high_ns;
    double beside_ns = fmin(best_ns - most_ns, other_idle_ns(facts, finding));
    if (lac_pct_of_step(facts, beside_ns) >= GAIN_MIN_PCT) {
        most_ns += beside_ns;
    }
    if (best_ns <= most_ns) {
        return;
    }
    double part = mid_ns > most_ns ? most_ns / best_ns : 1.0;
    const double steps[LAC_CASE_COUNT_] = {now_ns - most_ns, now_ns - part * mid_ns,
                                           now_ns - part * worst_ns};
    fill_steps(facts, finding, steps);
}

void lac_finding_cost(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns)
{
    lac_finding_cost_of(facts, finding, cost_ns, HUGE_VAL);
}

void lac_finding_cost_of(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns,
                         double work_ns)
{
    /* what is spread over steps but not inside them may be more than a step */
    cost_ns = fmax(0.0, fmin(cost_ns, facts->time->step_ns));
    const struct lac_time_partition *partition = &facts->analysis->partition;
    finding->cost_ns_per_step = lac_round(cost_ns);
    if (partition->of == LAC_OF_STEP && !lac_finding_type(finding->kind)->is_fact) {
        finding->cost_ns_per_step = claim(partition, finding, finding->cost_ns_per_step,
                                          lac_round(fmin(work_ns, facts->time->step_ns)));
    }
    finding->cost_pct = lac_pct_of_step(facts, (double)finding->cost_ns_per_step);
    keep_within_cost(facts, finding);
}

const char *lac_finding_parts(const struct lac_facts *facts, const struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const char *text = "";
    uint32_t count = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        int64_t ns = finding->part_ns[part];
        if (ns * 20 < finding->cost_ns_per_step || ns == 0) { /* too little for a word */
            continue;
        }
        text = lac_texts_add(&analysis->texts, "%s%s%s %s", text, count++ == 0 ? ": " : " + ",
                             lac_time_part_brief(part), lac_format_ns(ns).text);
    }
    return count > 1 ? text : "";
}

bool lac_finding_hides(const struct lac_finding *finding)
{
    const int64_t hidden_ns =
        finding->part_ns[LAC_PART_EXPOSED_COMM] + finding->part_ns[LAC_PART_EXPOSED_COPY];
    return hidden_ns * 20 >= finding->cost_ns_per_step && hidden_ns > 0;
}

void lac_finding_estimate_steps(const struct lac_facts *facts, struct lac_finding *finding,
                                const double step_ns[LAC_CASE_COUNT_])
{
    fill_steps(facts, finding, step_ns);
    keep_within_cost(facts, finding);
}

void lac_finding_note(const struct lac_facts *facts, enum lac_finding_kind kind,
                      const struct lac_change *mid)
{
    facts->time->mids[kind] = *mid;
    facts->time->has_mid[kind] = true;
}

/** Whether the step with the change would be shorter yet if every batch were there in time. */
static bool is_bound_by_loader(const struct lac_facts *facts,
                               const struct lac_what_if_changes *what_if, double step_ns)
{
    struct lac_change change;
    lac_change_from_what_if(facts, what_if, LAC_CASE_MID, &change);
    change.is_loader_free = true;
    return facts->analysis->loader.is_present &&
           step_ns > ENDS_AT_LOADER_MIN * lac_what_if_replay(facts, &change);
}

/** A wait that a change takes away is not gone for all of them: a call in a library, a batch of another
 *  size. What is asked for (`sync=0`) is answered without it. @return whether there are such waits */
static bool leave_a_rest(struct lac_change *change)
{
    bool takes_waits = false;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        takes_waits = takes_waits || change->idle_factor[cause] < WAITS_LEFT_MID;
        change->idle_factor[cause] = fmax(change->idle_factor[cause], WAITS_LEFT_MID);
    }
    return takes_waits;
}

void lac_finding_estimate(const struct lac_facts *facts, struct lac_finding *finding,
                          const struct lac_what_if_changes *what_if)
{
    double step_ns[LAC_CASE_COUNT_];
    bool takes_waits = false;
    struct lac_change changes[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        lac_change_from_what_if(facts, what_if, (enum lac_case)which, &changes[which]);
    }
    takes_waits = leave_a_rest(&changes[LAC_CASE_MID]);
    lac_finding_note(facts, finding->kind, &changes[LAC_CASE_MID]);
    lac_what_if_replays(facts, changes, LAC_CASE_COUNT_, step_ns);
    if (takes_waits) { /* also where the device's own work is what is left: it never runs without a gap */
        double best_ns = step_ns[LAC_CASE_BEST];
        step_ns[LAC_CASE_MID] = fmax(step_ns[LAC_CASE_MID],
                                     best_ns + WAITS_LEFT_MID * (facts->time->step_ns - best_ns));
    }
    lac_finding_estimate_steps(facts, finding, step_ns);
    finding->ends_at_loader = is_bound_by_loader(facts, what_if, step_ns[LAC_CASE_MID]);
}

enum lac_severity lac_severity_of_gain(double gain_pct)
{
    if (gain_pct >= CRITICAL_GAIN_PCT) {
        return LAC_SEVERITY_CRITICAL;
    }
    return gain_pct >= WARNING_GAIN_PCT ? LAC_SEVERITY_WARNING : LAC_SEVERITY_INFO;
}

bool lac_finding_open_hidden(const struct lac_facts *facts, struct lac_finding *finding,
                             double cost_ns, double most_ns, double cost_min_pct,
                             const struct lac_what_if_changes *what_if)
{
    struct lac_finding estimated = *finding;
    const struct lac_step_time *time = facts->time;
    const bool may_hide = most_ns > cost_ns && lac_graph_trust(time) == LAC_TRUST_ALL &&
                          !lac_is_held_by_profiler(facts);
    if (lac_pct_of_step(facts, cost_ns) < cost_min_pct && !may_hide) {
        return false;
    }
    lac_finding_estimate(facts, &estimated, what_if);
    if (may_hide) {
        cost_ns = fmin(most_ns, fmax(cost_ns, time->step_ns - (double)estimated.step_low_ns));
    }
    if (estimated.gain_mid_pct < GAIN_MIN_PCT || /* something longer hides it: nothing to propose */
        lac_pct_of_step(facts, cost_ns) < cost_min_pct) {
        return false;
    }
    lac_finding_cost(facts, &estimated, cost_ns);
    estimated.severity = lac_severity_of_gain(estimated.gain_mid_pct);
    estimated.confidence = 0.75;
    *finding = estimated;
    return true;
}

bool lac_finding_open(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns,
                      double cost_min_pct, const struct lac_what_if_changes *what_if)
{
    const struct lac_step_time *time = facts->time;
    /* launches that a stop of the host delays may leave no hole: communication or a copy runs on */
    const bool may_hide =
        stops_host(lac_finding_type(finding->kind)->cause) &&
        lac_pct_of_step(facts, time->exposed_comm_ns + time->exposed_copy_ns) >= cost_min_pct;
    return lac_finding_open_hidden(facts, finding, cost_ns, may_hide ? (double)INFINITY : cost_ns,
                                   cost_min_pct, what_if);
}

/* -- of operations of kept steps -- */

void lac_saving_add(const struct lac_facts *facts, struct lac_saving *saving, uint64_t slice,
                    double ns)
{
    if (facts->step_operations->steps > 0.0) {
        saving->ns[lac_kernel_op_class(facts, slice)] += ns / facts->step_operations->steps;
    }
}

void lac_change_from_saving(const struct lac_facts *facts, const struct lac_saving *saving,
                            double factor, struct lac_change *ret_change)
{
    lac_change_clear(ret_change);
    for (int op_class = 0; op_class < LAC_OP_CLASS_COUNT_; op_class++) {
        double all_ns = facts->time->class_ns[op_class];
        if (all_ns > 0.0) {
            ret_change->factor[op_class] = fmax(0.0, 1.0 - factor * saving->ns[op_class] / all_ns);
        }
    }
}

void lac_shorter_begin(const struct lac_facts *facts, enum lac_finding_kind kind,
                       struct lac_shorter *ret_shorter)
{
    *ret_shorter = (struct lac_shorter){.edits = lac_edits_begin(facts, kind)};
}

void lac_shorter_add(const struct lac_facts *facts, struct lac_shorter *shorter,
                     const struct lac_step_operation *op, const double parts[LAC_CASE_COUNT_])
{
    lac_edits_operation(shorter->edits, op->slice, 1.0 - parts[LAC_CASE_BEST]);
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        shorter->ns[which] += parts[which] * (double)facts->model->slices.dur_ns[op->slice];
        lac_saving_add(facts, &shorter->saving[which], op->slice,
                       parts[which] * (double)op->sole_ns);
    }
}

void lac_changes_from_shorter(const struct lac_facts *facts, const struct lac_shorter *shorter,
                              struct lac_change ret_changes[LAC_CASE_COUNT_])
{
    const bool is_played = lac_graph_trust(facts->time) == LAC_TRUST_ALL;
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        if (!is_played) {
            lac_change_from_saving(facts, &shorter->saving[which], 1.0, &ret_changes[which]);
            continue;
        }
        const double best_ns = shorter->ns[LAC_CASE_BEST];
        lac_change_clear(&ret_changes[which]);
        lac_change_shorten(&ret_changes[which], shorter->edits,
                           best_ns > 0.0 ? shorter->ns[which] / best_ns : 0.0);
    }
}

bool lac_finding_open_changes(const struct lac_facts *facts, struct lac_finding *finding,
                              double cost_ns, double cost_min_pct,
                              const struct lac_change changes[LAC_CASE_COUNT_])
{
    struct lac_finding estimated = *finding;
    if (lac_pct_of_step(facts, cost_ns) < cost_min_pct) {
        return false;
    }
    double steps[LAC_CASE_COUNT_];
    lac_what_if_replays(facts, changes, LAC_CASE_COUNT_, steps);
    lac_finding_note(facts, finding->kind, &changes[LAC_CASE_MID]);
    lac_finding_estimate_steps(facts, &estimated, steps);
    lac_finding_cost(facts, &estimated, cost_ns);
    if (estimated.gain_mid_pct < GAIN_MIN_PCT) { /* something else hides it: nothing to propose */
        return false;
    }
    estimated.severity = lac_severity_of_gain(estimated.gain_mid_pct);
    estimated.confidence = 0.6;
    *finding = estimated;
    return true;
}

void lac_finding_open_fact(struct lac_finding *finding)
{
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.8;
}

void lac_finding_forget_gain(struct lac_finding *finding)
{
    finding->gain_low_pct = finding->gain_mid_pct = finding->gain_high_pct = (double)NAN;
    finding->step_low_ns = finding->step_mid_ns = finding->step_high_ns = LAC_UNKNOWN_NS;
}

void lac_finding_settle(const struct lac_facts *facts, struct lac_finding *finding)
{
    if (finding->change[0] == '\0') { /* what proposes no change has no gain */
        lac_finding_forget_gain(finding);
    }
    if (finding->cost_ns_per_step == LAC_UNKNOWN_NS || finding->step_low_ns == LAC_UNKNOWN_NS) {
        return;
    }
    const struct lac_time_partition *partition = &facts->analysis->partition;
    int64_t gone_ns = lac_round(facts->time->step_ns) - finding->step_low_ns;
    int64_t rest_ns = gone_ns - finding->cost_ns_per_step;
    if (rest_ns <= 0) {
        return;
    }
    struct lac_text **texts = &facts->analysis->texts;
    finding->title = lac_texts_add(texts, "%s; the change can also remove %s of other idle time",
                                   finding->title, lac_format_ns(rest_ns).text);
    bool claims = claims_parts(finding);
    for (uint32_t part = LAC_PART_IDLE; part < LAC_TIME_PART_COUNT && claims; part++) {
        int64_t there_ns = partition->part_ns[part] - finding->part_ns[part];
        int64_t taken_ns = there_ns < rest_ns ? there_ns : rest_ns;
        finding->part_ns[part] += taken_ns;
        rest_ns -= taken_ns;
    }
    finding->cost_ns_per_step = gone_ns;
    finding->cost_pct = lac_pct_of_step(facts, (double)gone_ns);
}

/* -- in words -- */

/** What stands in the way after the change, or "". */
static const char *next_limit(const struct lac_facts *facts, const struct lac_finding *finding)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    bool is_unknown =
        loader->is_present && loader->num_workers != 0 && loader->fetch_mean_ns == LAC_UNKNOWN_NS;
    if (lac_finding_type(finding->kind)->is_about_loading) {
        return "";
    }
    if (finding->ends_at_loader) {
        return "; after that, data loading is the limit";
    }
    return is_unknown && finding->gain_mid_pct >= UNKNOWN_LOADER_GAIN_PCT
               ? "; data loading was not recorded and may limit it"
               : "";
}

const char *lac_finding_expect(const struct lac_facts *facts, const struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text32 step = lac_format_ns(finding->step_mid_ns);
    double factor = (double)analysis->step_mean_ns / (double)finding->step_mid_ns;
    struct lac_text32 rate = lac_format_rate(analysis->throughput_per_s * factor);
    struct lac_text32 band = lac_format_band(finding->gain_low_pct, finding->gain_high_pct);
    struct lac_text32 mid = lac_format_band(finding->gain_mid_pct, finding->gain_mid_pct);
    bool is_wide = strcmp(band.text, mid.text) != 0;
    const char *per_s =
        isnan(analysis->throughput_per_s)
            ? ""
            : lac_texts_add(&analysis->texts, ", %s %s/s", rate.text, analysis->throughput_unit);
    return lac_texts_add(
        &analysis->texts, "%s per step%s: %s less time per step (%s%s%s measured)%s", step.text,
        per_s, mid.text, is_wide ? band.text : "", is_wide ? ", " : "",
        lac_format_count(analysis->step_kept_count, "step").text, next_limit(facts, finding));
}
