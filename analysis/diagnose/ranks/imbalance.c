/*
 * Where no rank is the late one, all may wait for one that is late this time: the rank whose experts
 * were sent the most tokens, whose batch has the longest sequences, whose batch came late. The work
 * is there whoever does it, so what can be gained is that all arrive when their mean does now:
 *
 *   rank 0  [computes      ][--------waits--][exchange]      max - mean of the arrivals,
 *   rank 1  [computes                       ][exchange]      added up over the collectives
 *   rank 2  [computes   ][-----------waits--][exchange]
 *
 * It is said where what the last one's device did longer before it arrived covers the waiting.
 */

#include "analysis/diagnose/findings/communication/communication_thresholds.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/wording/wording.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { QUARTERS = 4 };

/** Why the last one is late. */
enum why { WHY_WORK = 0, WHY_DATA, WHY_HOST, WHY_COUNT_, WHY_UNKNOWN = WHY_COUNT_ };

struct imbalance {
    const struct lac_rank_table *const *tables;
    const struct lac_rank_match *match;
    struct lac_run *run;
    uint32_t matched;    /**< ranks */
    double steps;        /**< of the first rank that is matched */
    double step_ns;      /**< mean of the ranks' */
    double waited_ns;    /**< mean of the ranks', over the recording, as are the next */
    double exchanged_ns; /**< of it, for experts' tokens */
    double quarter_ns[QUARTERS];
    double excess_ns[WHY_COUNT_]; /**< what the last one did longer than the mean of all */
    uint64_t collective_count;
    int64_t longest_ns; /**< the longest wait of the first rank, where it is, and for whom */
    int64_t longest_at_ns;
    uint32_t longest_for;
};

static enum why why_of(int part)
{
    switch (part) {
    case LAC_RANK_WORK:
        return WHY_WORK;
    case LAC_CAUSE_DATA_WAIT:
        return WHY_DATA;
    case LAC_CAUSE_HOST:
    case LAC_CAUSE_LAUNCH:
    case LAC_CAUSE_SYNC:
        return WHY_HOST;
    default:
        return WHY_UNKNOWN;
    }
}

/* -- what is waited ---------------------------------------------------------------------------- */

/** What the last one's device did longer before this collective than the mean of all. */
static void add_excess(struct imbalance *all, const struct lac_rank_group *group, uint64_t index,
                       uint32_t last, double weight)
{
    for (int part = 0; part < LAC_RANK_PART_COUNT; part++) {
        enum why why = why_of(part);
        double sum_ns = 0.0;
        for (uint32_t m = 0; m < group->member_count && why != WHY_UNKNOWN; m++) {
            sum_ns += (double)lac_rank_collective(all->tables, group, m, index)->part_ns[part];
        }
        if (why != WHY_UNKNOWN) {
            const double own_ns =
                (double)lac_rank_collective(all->tables, group, last, index)->part_ns[part];

            all->excess_ns[why] += weight * (own_ns - sum_ns / group->member_count);
        }
    }
}

static void add_collective(struct imbalance *all, const struct lac_rank_group *group,
                           uint64_t index, int quarter)
{
    uint32_t last = 0;
    double sum_ns = 0.0;
    int64_t least_ns = INT64_MAX;
    const struct lac_collective *own = NULL; /* the first rank's */
    for (uint32_t m = 0; m < group->member_count; m++) {
        const struct lac_collective *it = lac_rank_collective(all->tables, group, m, index);
        int64_t dur_ns = it->end_ns - it->start_ns;
        sum_ns += (double)dur_ns;
        last = dur_ns < least_ns ? m : last;
        least_ns = dur_ns < least_ns ? dur_ns : least_ns;
        own = group->members[m] == 0 ? it : own;
    }
    /* of all ranks: a group of some is waited in by these only */
    double weight = (double)group->member_count / (double)all->matched;
    double waited_ns = weight * (sum_ns / group->member_count - (double)least_ns);
    all->waited_ns += waited_ns;
    all->quarter_ns[quarter] += waited_ns;
    all->collective_count++;
    all->exchanged_ns += group->kind == LAC_COLLECTIVE_ALL_TO_ALL ? waited_ns : 0.0;
    if (own != NULL && own->end_ns - own->start_ns - least_ns > all->longest_ns) {
        all->longest_ns = own->end_ns - own->start_ns - least_ns;
        all->longest_at_ns = own->start_ns;
        all->longest_for = group->members[last];
    }
    add_excess(all, group, index, last, weight);
}

static void add_up(struct imbalance *all)
{
    const struct lac_rank_match *match = all->match;
    for (uint64_t i = 0; i < match->instance_count; i++) {
        const struct lac_rank_instance *it = &match->instances[i];
        const struct lac_rank_group *group = &match->groups[it->group];
        if (!lac_rank_group_is_transfer(group)) {
            add_collective(all, group, it->index,
                           (int)((double)i * QUARTERS / (double)match->instance_count));
        }
    }
}

/** Whether most quarters of the recording wait about as much: one slow batch is no imbalance. */
static bool is_steady(const struct imbalance *all)
{
    int count = 0;
    for (int q = 0; q < QUARTERS; q++) {
        count += all->quarter_ns[q] * QUARTERS >= IMBALANCE_STEADY_MIN * all->waited_ns;
    }
    return count >= QUARTERS - 1;
}

static enum why find_why(const struct imbalance *all)
{
    int best = 0;
    for (int why = 1; why < WHY_COUNT_; why++) {
        best = all->excess_ns[why] > all->excess_ns[best] ? why : best;
    }
    return all->excess_ns[best] >= IMBALANCE_COVERS_MIN * all->waited_ns ? (enum why)best
                                                                         : WHY_UNKNOWN;
}

/** Steps, and what the mean rank needs for one by itself. @return whether there are enough */
static bool take_steps(struct imbalance *all, double *ret_need_ns)
{
    double need_ns = 0.0;
    for (uint32_t r = 0; r < all->run->rank_count; r++) {
        const struct lac_rank_table *table = all->tables[r];
        if (!all->run->ranks[r].is_matched) {
            continue;
        }
        if (table->step_count < STEPS_MIN || table->step_mean_ns <= 0) {
            return false;
        }
        all->steps = all->matched == 0 ? (double)all->run->ranks[r].matched_step_count : all->steps;
        all->matched++;
        all->step_ns += (double)table->step_mean_ns;
        need_ns += (double)table->need_ns;
    }
    all->step_ns /= fmax(1.0, (double)all->matched);
    *ret_need_ns = need_ns / fmax(1.0, (double)all->matched);
    return all->matched > 1;
}

/* -- what it gains ----------------------------------------------------------------------------- */

/** Waiting with nothing beside it, of the mean rank: at most, and at least. */
static void exposed_wait(const struct imbalance *all, double *ret_most_ns, double *ret_least_ns)
{
    *ret_most_ns = *ret_least_ns = 0.0;
    for (uint32_t r = 0; r < all->run->rank_count; r++) {
        const struct lac_rank_facts *facts = &all->run->ranks[r];
        if (facts->is_matched) {
            const double exposed_ns = lac_rank_exposed_ns(all->tables[r], facts);
            *ret_most_ns += fmin(exposed_ns, (double)facts->wait_ns) / all->matched;
            *ret_least_ns += fmax(0.0, exposed_ns - (double)facts->transfer_ns) / all->matched;
        }
    }
}

static enum lac_status estimate(struct imbalance *all, struct lac_finding *finding, enum why why,
                                double need_ns)
{
    int64_t now_ns = 0;
    int64_t even_ns = 0;
    double most_ns = 0.0;
    double least_ns = 0.0;
    uint32_t count = all->run->rank_count;
    enum lac_status status = lac_ranks_replay(all->tables, count, all->match, LAC_RANKS_AS_RECORDED,
                                              LAC_NONE, false, &now_ns);
    if (!status) {
        status = lac_ranks_replay(all->tables, count, all->match, LAC_RANKS_EVEN, LAC_NONE, false,
                                  &even_ns);
    }
    exposed_wait(all, &most_ns, &least_ns);
    double replayed_ns = (double)now_ns - (double)even_ns;
    double share = fmin(1.0, all->excess_ns[why] / all->waited_ns); /* of it, for that reason */
    double room_ns = fmax(0.0, all->step_ns - need_ns);
    double best_ns = fmin(room_ns, share * fmax(0.0, fmin(replayed_ns, most_ns)) / all->steps);
    double worst_ns = fmin(best_ns, share * fmax(0.0, fmin(replayed_ns, least_ns)) / all->steps);
    double scale = 100.0 / all->step_ns;
    finding->cost_ns_per_step = lac_round(all->waited_ns / all->steps);
    finding->cost_pct = fmin(100.0, scale * all->waited_ns / all->steps);
    finding->gain_high_pct = fmin(100.0, scale * best_ns);
    finding->gain_mid_pct = IMBALANCE_SHARE_MID * finding->gain_high_pct;
    finding->gain_low_pct = fmin(100.0, scale * IMBALANCE_SHARE_WORST * worst_ns);
    finding->step_low_ns = lac_round(all->step_ns * (1.0 - finding->gain_high_pct / 100.0));
    finding->step_mid_ns = lac_round(all->step_ns * (1.0 - finding->gain_mid_pct / 100.0));
    finding->step_high_ns = lac_round(all->step_ns * (1.0 - finding->gain_low_pct / 100.0));
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.65;
    return status;
}

/* -- what is said ------------------------------------------------------------------------------ */

bool lac_ranks_exchange_tokens(const struct lac_rank_match *match, uint32_t step_count)
{
    uint64_t count = 0;
    for (uint32_t g = 0; g < match->group_count; g++) {
        bool is_exchange = match->groups[g].kind == LAC_COLLECTIVE_ALL_TO_ALL;
        count = is_exchange && match->groups[g].count > count ? match->groups[g].count : count;
    }
    return step_count > 0 && (double)count >= EXPERT_EXCHANGES_MIN * (double)step_count;
}

void lac_even_work_advise(struct lac_finding *finding, bool is_experts)
{
    finding->effort = LAC_EFFORT_LINES;
    finding->change_kind = LAC_CHANGE_CODE;
    if (is_experts) {
        finding->brief = "spread the tokens over the experts";
        finding->change = "config.router_aux_loss_coef *= 2  # Megatron: --moe-aux-loss-coeff\n"
                          "# or a limit, --moe-expert-capacity-factor 1.25, or copies of busy\n"
                          "# experts (EPLB)";
        finding->costs = "A stronger balancing loss may cost quality, a limit drops tokens, and "
                         "copies of experts take memory.";
    } else {
        finding->brief = "as much work in each rank's batch";
        finding->change = "TrainingArguments(..., group_by_length=True)  # alike in a batch\n"
                          "# or batches of as many tokens (pixels, atoms), not samples";
        finding->costs = "Batches by length are less random; batches by tokens differ in their "
                         "number of samples, so weight the loss by it.";
    }
}

static void advise(struct lac_finding *finding, enum why why, bool is_experts)
{
    if (why == WHY_WORK) {
        lac_even_work_advise(finding, is_experts);
    } else if (why == WHY_DATA) {
        finding->effort = LAC_EFFORT_SETTING;
        finding->brief = "prefetch_factor=4";
        finding->change = "DataLoader(..., prefetch_factor=4)  # ahead of slow batches\n"
                          "# and a worker more on every rank, where workers are busy";
        finding->costs = "Memory for the batches that are ready: prefetch_factor x num_workers.";
    } else {
        finding->effort = LAC_EFFORT_LINES;
        finding->brief = "host work in the same step on all ranks";
        finding->change = "gc.disable()  # gc.collect(1) every 100 steps, on all ranks at once\n"
                          "# likewise logging, metrics and checkpoints";
        finding->costs = "Garbage is kept until the next collection.";
    }
}

/** Who comes last how often: the three that do most. */
static const char *say_turns(struct imbalance *all)
{
    const struct lac_run *run = all->run;
    const char *text = "";
    uint32_t before = LAC_NONE;
    uint32_t said = 0;
    for (; said < 3; said++) {
        uint32_t next = LAC_NONE;
        for (uint32_t r = 0; r < run->rank_count; r++) {
            uint64_t count = run->ranks[r].last_count;
            uint64_t limit = before == LAC_NONE ? UINT64_MAX : run->ranks[before].last_count;
            bool is_after = before == LAC_NONE || count < limit || (count == limit && r > before);
            bool is_more = next == LAC_NONE || count > run->ranks[next].last_count;
            next = run->ranks[r].is_matched && is_after && is_more ? r : next;
        }
        if (next == LAC_NONE) {
            break;
        }
        text = lac_texts_add(&all->run->texts, "%s%srank %d %llu times", text, said > 0 ? ", " : "",
                             (int)run->ranks[next].rank,
                             (unsigned long long)run->ranks[next].last_count);
        before = next;
    }
    return text;
}

/** On the timeline of the first rank: that is the one a reader opens where none is the late one. */
static void add_evidence(struct imbalance *all, struct lac_finding *finding)
{
    struct lac_run *run = all->run;
    if (all->longest_ns == 0) {
        return;
    }
    finding->evidence[finding->evidence_count++] = (struct lac_evidence){
        .track = LAC_NONE,
        .slice = LAC_NONE,
        .track_name = lac_texts_add(&run->texts, "rank %d, GPU %lld", (int)run->ranks[0].rank,
                                    (long long)all->tables[0]->device_id),
        .t0_ns = all->longest_at_ns,
        .t1_ns = all->longest_at_ns + all->longest_ns,
        .text = lac_texts_add(&run->texts, "its longest wait: %s, for rank %d",
                              lac_format_ns(all->longest_ns).text,
                              (int)run->ranks[all->longest_for].rank)};
}

static void say(struct imbalance *all, struct lac_finding *finding, enum why why)
{
    static const char *const longer[WHY_COUNT_] = {[WHY_WORK] = "Its GPU computed longer",
                                                   [WHY_DATA] = "It waited longer for data",
                                                   [WHY_HOST] = "Its host worked longer"};
    struct lac_text **texts = &all->run->texts;
    bool is_experts = all->exchanged_ns * 2.0 >= all->waited_ns &&
                      lac_ranks_exchange_tokens(all->match, (uint32_t)all->steps);
    finding->title = lac_texts_add(
        texts, "The ranks wait for each other in turns: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(lac_round(all->step_ns)).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        texts,
        "%s across %s begin when the last rank arrives, a different rank each time: %s. "
        "%s before it arrived, %s per step more than the mean of all%s.",
        lac_format_count((int64_t)all->collective_count, "collective").text,
        lac_format_count(all->matched, "rank").text, say_turns(all), longer[why],
        lac_format_ns(lac_round(all->excess_ns[why] / all->steps)).text,
        is_experts && why == WHY_WORK ? ": its experts were sent more tokens" : "");
    advise(finding, why, is_experts);
    finding->expect = lac_texts_add(
        texts, "%s per step instead of %s (%s less), if all ranks arrive when their mean does now.",
        lac_format_ns(finding->step_mid_ns).text, lac_format_ns(lac_round(all->step_ns)).text,
        lac_format_band(finding->gain_low_pct, finding->gain_high_pct).text);
    finding->wrong_if = "the collectives of some ranks move less data than those of others.";
    finding->check = why == WHY_WORK && is_experts
                         ? "log the tokens of each rank's experts: the busiest enters last"
                         : "record ten steps of all ranks again and compare \"waits there\"";
    finding->where = "";
    add_evidence(all, finding);
}

enum lac_status lac_imbalance_find(struct lac_run *run, const struct lac_rank_table *const *tables,
                                   const struct lac_rank_match *match)
{
    struct imbalance all = {.tables = tables, .match = match, .run = run};
    double need_ns = 0.0;
    if (!take_steps(&all, &need_ns)) {
        return LAC_OK;
    }
    add_up(&all);
    enum why why = find_why(&all);
    bool is_much = 100.0 * all.waited_ns >= COST_OF_WORK_MIN_PCT * all.step_ns * all.steps;
    if (!is_much || !is_steady(&all) || why == WHY_UNKNOWN) {
        return LAC_OK;
    }
    lac_finding_init(&run->finding, LAC_FINDING_IMBALANCE_AND_BUBBLE);
    enum lac_status status = estimate(&all, &run->finding, why, need_ns);
    if (!status && run->finding.gain_mid_pct >= GAIN_MIN_PCT) {
        run->has_finding = true;
        say(&all, &run->finding, why);
    }
    return status;
}
