/* Communication that no computing hides, as far as no finding before this one names its cause. One
 * rank cannot tell a late rank from a slow network. */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** What was waited for inside the collectives: a sentence, or "". Messages of the same kind went
 *  through faster elsewhere in the trace, and bytes take what they take. */
static const char *waiting_text(const struct lac_facts *facts, enum lac_collective_kind kind)
{
    const struct lac_collectives *all = facts->collectives;
    double best = lac_best_link_gb_s(all, kind);
    double now_ns = 0.0;
    double bytes_ns = 0.0;
    for (uint64_t i = 0; i < all->count && best > 0.0; i++) {
        const struct lac_message *at = &all->at[i];
        if (at->kind == kind && at->bytes >= 0 && at->dur_ns > 0) {
            double part = lac_time_at_rate(at, best) / (double)at->dur_ns;
            now_ns += (double)at->exposed_ns;
            bytes_ns += part * (double)at->exposed_ns;
        }
    }
    if (now_ns <= 0.0 || now_ns - bytes_ns < WAITING_SAID_MIN * now_ns) {
        return "";
    }
    return lac_texts_add(
        &facts->analysis->texts,
        " At %s GB/s, its best in this trace, its bytes take %s of its %s: the rest waits for "
        "other ranks or for a busier link.",
        lac_format_rate(best).text, lac_format_ns(lac_round(bytes_ns / all->steps)).text,
        lac_format_ns(lac_round(now_ns / all->steps)).text);
}

/** Steps with what fits behind computing hidden (expected half of it, at worst nothing can be moved), for
 *  the part of the exposed time that no other finding accounts for. */
static void estimate(const struct lac_facts *facts, struct lac_finding *finding, double part)
{
    double now_ns = facts->time->step_ns;
    struct lac_change change;
    lac_change_clear(&change);
    change.hides_comm = true;
    double least_ns = facts->time->busy_ns - facts->time->exposed_comm_ns; /* what hides it stays */
    double replayed_ns = fmax(least_ns, lac_what_if_replay(facts, &change));
    double hidden_ns = now_ns - part * fmax(0.0, now_ns - replayed_ns);
    const double steps[LAC_CASE_COUNT_] = {hidden_ns, 0.5 * (hidden_ns + now_ns), now_ns};
    lac_finding_estimate_steps(facts, finding, steps);
}

/** Whether these are exchanges of experts: what each brings is needed at once, and each waits for the rank
 *  that has the most tokens, so that nothing is gained by launching it earlier. */
static bool are_of_experts(const struct lac_facts *facts, enum lac_collective_kind kind)
{
    const struct lac_collectives *all = facts->collectives;
    uint64_t count = 0;
    for (uint64_t i = 0; i < all->count; i++) {
        count += all->at[i].kind == LAC_COLLECTIVE_ALL_TO_ALL ||
                 all->at[i].kind == LAC_COLLECTIVE_BETWEEN;
    }
    return (kind == LAC_COLLECTIVE_ALL_TO_ALL || kind == LAC_COLLECTIVE_BETWEEN) &&
           all->steps > 0.0 && (double)count >= EXPERT_EXCHANGES_MIN * all->steps;
}

/** Exposed time of one kind of collective, by the range that started it. */
struct part {
    const char *range;
    double ns;
};

/** Whether the inputs of the next batch are exchanged beside this one already, so that what is left of
 *  the exchanges is of another kind. */
static bool is_pipelined(const struct lac_facts *facts, enum lac_collective_kind kind)
{
    return kind == LAC_COLLECTIVE_ALL_TO_ALL && lac_has_torchrec_pipeline(facts->model);
}

/** Exposed time of that kind by range, the most first. @return how many there are */
static uint32_t parts_of(const struct lac_facts *facts, enum lac_collective_kind kind,
                         struct part *parts, uint32_t capacity)
{
    const struct lac_collectives *all = facts->collectives;
    uint32_t count = 0;
    for (uint64_t i = 0; i < all->count; i++) {
        uint32_t slice = facts->step_operations->ops[all->at[i].at].slice;
        uint32_t call = facts->model->slices.link[slice];
        if (all->at[i].kind != kind || call == LAC_NONE) {
            continue;
        }
        const char *range = lac_range_around(facts, call, LAC_TORCHREC_EXCHANGE);
        uint32_t p = 0;
        while (p < count && strcmp(parts[p].range, range) != 0) {
            p++;
        }
        if (p == capacity || range[0] == '\0') {
            continue;
        }
        if (p == count) {
            parts[count++] = (struct part){.range = range};
        }
        parts[p].ns += (double)all->at[i].exposed_ns;
        for (; p > 0 && parts[p].ns > parts[p - 1].ns; p--) {
            const struct part less = parts[p - 1];
            parts[p - 1] = parts[p];
            parts[p] = less;
        }
    }
    return count;
}

/** " TorchRec's pipeline is in use ...: alltoall_fwd_single 7 ms, alltoall_bwd_single 3.1 ms." */
static const char *pipelined_text(const struct lac_facts *facts, enum lac_collective_kind kind)
{
    enum { PARTS_MAX = 16, SAID_MAX = 3 };
    struct lac_text **texts = &facts->analysis->texts;
    struct part parts[PARTS_MAX];
    uint32_t count = parts_of(facts, kind, parts, PARTS_MAX);
    const char *text = "";
    for (uint32_t p = 0; p < count && p < SAID_MAX; p++) {
        text = lac_texts_add(
            texts, "%s%s%s %s", text, p == 0 ? ": " : ", ", lac_bare_range(facts, parts[p].range),
            lac_format_ns(lac_round(parts[p].ns / facts->collectives->steps)).text);
    }
    return lac_texts_add(texts,
                         " TorchRec's pipeline is in use: it exchanges the next batch's inputs "
                         "beside this one. What is exposed per step%s.",
                         count > 0 ? text : " is the rest");
}

/** What is left of a pipeline's exchanges: what they gain by fewer bytes depends on the link and on the
 *  other ranks, which this trace does not show. */
static void propose_smaller(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_communication_advice advice = lac_embedding_exchange_advice();
    finding->brief = advice.brief;
    finding->change = lac_texts_add(
        &facts->analysis->texts,
        "# first: lacuna analyze RANK0 RANK1 ...   finds a rank that is late\n%s", advice.change);
    finding->costs = advice.costs;
    finding->check = "analyze all ranks together";
    lac_finding_forget_gain(finding);
    finding->severity = LAC_SEVERITY_INFO;
}

/** What overlaps it. Nothing where that gains nothing, and nothing for the layers of a model that is split
 *  over ranks and makes no gradients: each waits for the sum of the one before. */
static void propose(const struct lac_facts *facts, struct lac_finding *finding,
                    enum lac_collective_kind kind)
{
    struct lac_communication_advice advice = lac_communication_advice(kind);
    bool is_exchange = kind == LAC_COLLECTIVE_SEND || kind == LAC_COLLECTIVE_RECEIVE ||
                       kind == LAC_COLLECTIVE_BETWEEN;
    finding->check = "analyze all ranks together";
    if (finding->gain_mid_pct < GAIN_MIN_PCT || (lac_is_inference(facts) && !is_exchange)) {
        finding->severity = LAC_SEVERITY_INFO;
        return;
    }
    finding->brief = advice.brief;
    finding->change = lac_texts_add(
        &facts->analysis->texts,
        "%s\n# first: lacuna analyze RANK0 RANK1 ...   finds a rank that is late", advice.change);
    finding->expect = lac_texts_add(&facts->analysis->texts,
                                    "%s. Assumes that half of what fits behind computing is "
                                    "hidden; no gain if another rank is late.",
                                    lac_finding_expect(facts, finding));
    finding->costs = advice.costs;
}

static void point_at_longest(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (kernel_facts->names.is_comm) {
            lac_evidence_slice(
                facts, finding, kernel_facts->longest_slice,
                lac_texts_add(&facts->analysis->texts, "the longest of %s",
                              lac_format_count((int64_t)kernel_facts->count, "collective").text));
            return;
        }
    }
}

bool lac_find_exposed_communication(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    if (analysis->workload == LAC_WORKLOAD_NO_STEPS) { /* a part of a step has no share of it */
        return false;
    }
    double said_ns = lac_communication_said_ns(facts);
    double cost_ns = fmax(0.0, time->exposed_comm_ns - said_ns);
    double cost_pct = lac_pct_of_step(facts, cost_ns);
    if (cost_pct < (said_ns > 0.0 ? REST_MIN_PCT : COST_MIN_PCT)) {
        return false;
    }
    estimate(facts, finding, cost_ns / time->exposed_comm_ns);
    if (cost_pct < COST_NOTED_MIN_PCT &&
        finding->gain_mid_pct < GAIN_MIN_PCT) { /* little, and nothing to propose */
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.4;
    enum lac_collective_kind kind = lac_most_exposed_kind(facts->collectives);
    finding->title = lac_texts_add(
        &analysis->texts, "%s take %s of every %s step (%s)",
        said_ns > 0.0 ? "Other exposed collectives" : "Exposed collectives",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    double hidden_pct =
        time->comm_ns > 0.0 ? 100.0 * (1.0 - time->exposed_comm_ns / time->comm_ns) : 0.0;
    finding->why = lac_texts_add(
        &analysis->texts,
        "%.0f %% of the communication overlaps with compute; most of the rest is %s.%s A "
        "collective "
        "kernel also waits for the last rank. From one rank, a straggler and a slow network look "
        "the same.",
        fmax(0.0, hidden_pct), lac_collective_name(kind), waiting_text(facts, kind));
    if (are_of_experts(facts, kind)) {
        finding->why = lac_texts_add(
            &analysis->texts,
            "%s The layers of experts need what they exchange at once, so that it cannot overlap. "
            "Most of such time is a wait for the rank with the most tokens.",
            finding->why);
        finding->check = "analyze all ranks together";
        lac_finding_forget_gain(finding);
        finding->severity = LAC_SEVERITY_INFO;
    } else if (is_pipelined(facts, kind)) {
        finding->why =
            lac_texts_add(&analysis->texts, "%s%s", finding->why, pipelined_text(facts, kind));
        propose_smaller(facts, finding);
    } else {
        propose(facts, finding, kind);
    }
    finding->wrong_if = "the other ranks' collectives take as long: then the network is the limit.";
    point_at_longest(facts, finding);
    return true;
}
