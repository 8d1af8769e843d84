/*
 * Collectives that take longer than their bytes need: hundreds of small ones, a link that does a
 * fraction of what it can, or a place in the stream that computes. The first that holds is said.
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Predicted steps from what a change takes off: the host's time, and the communication's. */
static void estimate(const struct lac_facts *facts, struct lac_finding *finding,
                     const double host_ns[LAC_CASE_COUNT_], const double comm_ns[LAC_CASE_COUNT_])
{
    const struct lac_step_time *time = facts->time;
    double steps[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        if (time->comm_ns > 0.0) {
            change.factor[LAC_OP_COMM] = fmax(0.0, 1.0 - comm_ns[which] / time->comm_ns);
        }
        if (host_ns[which] > 0.0 && time->host_ns > 0.0) {
            change.host_factor = fmax(0.0, 1.0 - host_ns[which] / time->host_ns);
        }
        double least_ns = time->step_ns - host_ns[which] - comm_ns[which];
        steps[which] = fmax(least_ns, lac_what_if_replay(facts, &change));
    }
    lac_finding_estimate_steps(facts, finding, steps);
}

/** Whether the estimated finding is worth saying; its cost and severity. */
static bool is_worth_it(const struct lac_facts *facts, struct lac_finding *finding, double cost_ns)
{
    if (lac_pct_of_step(facts, cost_ns) < COST_OF_WORK_MIN_PCT ||
        finding->gain_mid_pct < GAIN_MIN_PCT) {
        return false;
    }
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    return true;
}

static void point_at_longest(const struct lac_facts *facts, struct lac_finding *finding,
                             const char *text)
{
    const struct lac_collectives *all = facts->collectives;
    const struct lac_message *longest = &all->at[0];
    for (uint64_t i = 1; i < all->count; i++) {
        longest = all->at[i].dur_ns > longest->dur_ns ? &all->at[i] : longest;
    }
    lac_evidence_slice(facts, finding, facts->step_operations->ops[longest->at].slice, text);
}

/* -- hundreds of small ones -------------------------------------------------------------------- */

struct small {
    uint64_t count, in_a_row, sizes;
    uint64_t all;     /**< reductions, small or not */
    double bytes;     /**< of those that say so */
    double host_ns;   /**< of the host in the calls */
    double around_ns; /**< of the host from one call to the next, where they follow each other */
    double ns, shortest_ns, exposed_ns, exposed_wire_ns;
};

/** Without a size all of them count: their mean says whether they are small. */
static bool is_small(const struct lac_message *collective)
{
    return collective->bytes < MESSAGE_LARGE_BYTES;
}

/** Host time from the launch of one operation to that of the next; 0 when it is not recorded, or too
 *  long to be the way from one tensor to the next. */
static double launched_apart(const struct lac_facts *facts, uint32_t from, uint32_t to)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t a = slices->link[facts->step_operations->ops[from].slice];
    uint32_t b = slices->link[facts->step_operations->ops[to].slice];
    if (a == LAC_NONE || b == LAC_NONE || slices->start_ns[b] < slices->start_ns[a]) {
        return 0.0;
    }
    int64_t apart_ns = slices->start_ns[b] - slices->start_ns[a];
    return apart_ns < SMALL_APART_NS_MAX ? (double)apart_ns : 0.0;
}

/** Whether nothing that multiplies matrices runs between two operations. */
static bool follows(const struct lac_facts *facts, uint32_t from, uint32_t to)
{
    const struct lac_step_operations *work = facts->step_operations;
    for (uint32_t i = from + 1; i < to; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        enum lac_family family = kernel != NULL ? kernel->names.family : LAC_FAMILY_OTHER;
        if (family == LAC_FAMILY_GEMM || family == LAC_FAMILY_CONV ||
            family == LAC_FAMILY_ATTENTION) {
            return false;
        }
    }
    return true;
}

static void count_small(const struct lac_facts *facts, struct small *small)
{
    enum { SIZES_MAX = 16 };
    const struct lac_collectives *all = facts->collectives;
    int64_t sizes[SIZES_MAX];
    uint32_t before = LAC_NONE;
    double rate = lac_usual_link_gb_s(facts, -1);
    small->shortest_ns = HUGE_VAL;
    for (uint64_t i = 0; i < all->count; i++) {
        const struct lac_message *at = &all->at[i];
        if (at->kind != LAC_COLLECTIVE_ALL_REDUCE && at->kind != LAC_COLLECTIVE_REDUCE_SCATTER) {
            continue;
        }
        small->all++;
        if (!is_small(at)) {
            continue;
        }
        small->count++;
        if (before != LAC_NONE && follows(facts, before, at->at)) {
            small->in_a_row++;
            small->around_ns += launched_apart(facts, before, at->at);
        }
        before = at->at;
        small->host_ns += (double)at->host_ns;
        small->ns += (double)at->dur_ns;
        small->exposed_ns += (double)at->exposed_ns;
        small->bytes += at->bytes > 0 ? (double)at->bytes : 0.0;
        small->shortest_ns = fmin(small->shortest_ns, (double)at->dur_ns);
        small->exposed_wire_ns += fmin((double)at->exposed_ns, lac_time_at_rate(at, rate));
        bool is_new = at->bytes >= 0;
        for (uint64_t s = 0; s < small->sizes && is_new; s++) {
            is_new = sizes[s] != at->bytes;
        }
        if (is_new && small->sizes < SIZES_MAX) {
            sizes[small->sizes++] = at->bytes;
        }
    }
}

static bool find_small(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    double steps = facts->collectives->steps;
    struct small small = {0};
    count_small(facts, &small);
    double count = (double)small.count / steps;
    bool are_gradients = (double)small.in_a_row >= SMALL_IN_A_ROW_MIN * (double)small.count ||
                         small.sizes >= SMALL_SIZES_MIN;
    if (count < SMALL_COUNT_MIN || !are_gradients ||
        small.ns >= SMALL_NS_MAX * (double)small.count ||
        (double)small.count < SMALL_SHARE_MIN * (double)small.all) {
        return false;
    }
    double buckets = small.bytes > 0.0 ? ceil(small.bytes / steps / BUCKET_BYTES) : BUCKETS_USUAL;
    double fewer = fmax(0.0, 1.0 - buckets / count);
    double host_ns = fewer * small.host_ns / steps;
    double exposed_ns = small.exposed_ns / steps;
    double starts_ns = fmin(exposed_ns, fewer * count * small.shortest_ns);
    double wire_ns = small.bytes > 0.0 ? small.exposed_wire_ns / steps : exposed_ns / 2.0;
    /* at best all that is done tensor by tensor, at worst half of the calls: tensors are still
     * copied into the buckets */
    double around_ns = fmax(host_ns, fewer * small.around_ns / steps);
    const double host[LAC_CASE_COUNT_] = {around_ns, host_ns, 0.5 * host_ns};
    const double comm[LAC_CASE_COUNT_] = {fmax(starts_ns, exposed_ns - wire_ns), starts_ns, 0.0};
    estimate(facts, finding, host, comm);
    if (!is_worth_it(facts, finding, exposed_ns)) {
        return false;
    }
    finding->confidence = 0.7;
    finding->title = lac_texts_add(
        &analysis->texts,
        "%s collectives per step, one per tensor, take %s of the host and %s of every %s step",
        lac_format_rate(count).text, lac_format_ns(lac_round(small.host_ns / steps)).text,
        lac_format_ns(lac_round(exposed_ns)).text, lac_format_ns(analysis->step_mean_ns).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s reductions of %s on average; each call keeps the host %s. Gradients that travel in "
        "buckets need %s.",
        lac_format_rate(count).text,
        lac_format_ns(lac_round(small.exposed_ns / (double)small.count)).text,
        lac_format_ns(lac_round(small.host_ns / (double)small.count)).text,
        lac_format_count((int64_t)buckets, "collective").text);
    finding->brief = "reduce gradients in buckets";
    finding->change =
        "model = DistributedDataParallel(model, bucket_cap_mb=25, gradient_as_bucket_view=True)\n"
        "# by hand: flatten first, one call for all\n"
        "flat = torch._utils._flatten_dense_tensors(grads)\n"
        "dist.all_reduce(flat)";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "Memory for the buckets, unless gradients are views into them.";
    finding->wrong_if = "each collective is needed at once by the next operation.";
    finding->check =
        lac_texts_add(&analysis->texts, "record ten steps; expect %s collectives per step and %s",
                      lac_format_rate(buckets).text, lac_format_ns(finding->step_mid_ns).text);
    point_at_longest(facts, finding, "the longest of them");
    return true;
}

/* -- in the stream that computes --------------------------------------------------------------- */

static bool find_in_line(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_collectives *all = facts->collectives;
    const struct lac_step_operations *work = facts->step_operations;
    double in_line_ns = 0.0;
    double exposed_ns = 0.0;
    for (uint64_t i = 0; i < all->count; i++) {
        const struct lac_message *at = &all->at[i];
        bool is_reduction =
            at->kind == LAC_COLLECTIVE_ALL_REDUCE || at->kind == LAC_COLLECTIVE_REDUCE_SCATTER;
        bool is_backward = (work->ops[at->at].context & LAC_OPERATION_IN_BACKWARD) != 0;
        exposed_ns += (double)at->exposed_ns;
        if (is_reduction && !is_backward && at->bytes >= MESSAGE_LARGE_BYTES) {
            return false; /* a layer's own sum: the next one needs it */
        }
        in_line_ns += is_reduction && is_backward && at->is_in_line ? (double)at->exposed_ns : 0.0;
    }
    double backward_ns = 0.0;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_kernel_facts *kernel = lac_step_operation_kernel(facts, &work->ops[i]);
        bool is_computing = kernel != NULL && !kernel->names.is_comm &&
                            (work->ops[i].context & LAC_OPERATION_IN_BACKWARD) != 0;
        backward_ns += is_computing ? (double)work->ops[i].exposed_ns : 0.0;
    }
    if (in_line_ns < IN_LINE_MIN * exposed_ns) {
        return false;
    }
    double most_ns = fmin(in_line_ns, backward_ns) / all->steps;
    const double host[LAC_CASE_COUNT_] = {0.0};
    const double comm[LAC_CASE_COUNT_] = {most_ns, IN_LINE_HIDES * most_ns, 0.0};
    estimate(facts, finding, host, comm);
    if (!is_worth_it(facts, finding, in_line_ns / all->steps)) {
        return false;
    }
    finding->confidence = 0.5;
    finding->title = lac_texts_add(
        &analysis->texts,
        "Gradients are reduced in the stream that computes: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "A stream runs one thing at a time: the collectives start behind the backward pass's "
        "kernels, and the next ones wait for them. On a stream of their own, %s of computing could "
        "hide them.",
        lac_format_ns(lac_round(backward_ns / all->steps)).text);
    finding->brief = "reduce on a stream of its own";
    finding->change = "work = dist.all_reduce(bucket, async_op=True)   # in the gradient hook\n"
                      "work.wait()                                    # before optimizer.step()";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "Computing beside a collective is a few percent slower.";
    finding->wrong_if = "the next kernel needs the sum.";
    finding->check = "record ten steps: the collectives run beside the backward pass";
    point_at_longest(facts, finding, "the longest of them");
    return true;
}

/* -- a link that does a fraction of what it can ------------------------------------------------ */

/** Time of the large messages, and how much of it their bytes do not need. */
struct excess {
    double large_ns, excess_ns;
    double expected_ns; /**< of it, what a link that was mended is expected to save */
    double exposed_ns;  /**< of the excess */
    const struct lac_message *largest;
    int32_t ranks;
};

static struct excess measure_excess(const struct lac_facts *facts)
{
    const struct lac_collectives *all = facts->collectives;
    struct excess excess = {.ranks = -1};
    for (uint64_t i = 0; i < all->count; i++) {
        const struct lac_message *at = &all->at[i];
        if (at->bytes < MESSAGE_LARGE_BYTES || at->kind == LAC_COLLECTIVE_ALL_TO_ALL ||
            at->kind == LAC_COLLECTIVE_SEND || at->kind == LAC_COLLECTIVE_RECEIVE ||
            at->kind == LAC_COLLECTIVE_BETWEEN) {
            continue; /* what is exchanged waits for the computing of others */
        }
        double now_ns = (double)at->dur_ns;
        double usual = lac_usual_link_gb_s(facts, at->ranks);
        double over_ns = now_ns - lac_time_at_rate(at, usual);
        excess.large_ns += now_ns;
        excess.excess_ns += over_ns;
        excess.expected_ns += now_ns - lac_time_at_rate(at, LINK_EXPECTED * usual);
        excess.exposed_ns += now_ns > 0.0 ? fmin((double)at->exposed_ns, over_ns) : 0.0;
        if (excess.largest == NULL || at->bytes > excess.largest->bytes) {
            excess.largest = at;
        }
        excess.ranks = at->ranks > excess.ranks ? at->ranks : excess.ranks;
    }
    return excess;
}

static bool find_slow_link(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_collectives *all = facts->collectives;
    struct excess excess = measure_excess(facts);
    double usual = lac_usual_link_gb_s(facts, excess.ranks);
    double best = lac_best_link_gb_s(all, LAC_COLLECTIVE_KIND_COUNT_);
    if (excess.largest == NULL || excess.excess_ns < (1.0 - LINK_SLOW_MAX) * excess.large_ns ||
        best >= LINK_SLOW_MAX * usual) {
        return false; /* some went through well: the others waited for a rank */
    }
    double exposed_ns = excess.exposed_ns / all->steps;
    double excess_ns = excess.excess_ns / all->steps;
    const double host[LAC_CASE_COUNT_] = {0.0};
    const double comm[LAC_CASE_COUNT_] = {excess_ns, excess.expected_ns / all->steps, 0.0};
    estimate(facts, finding, host, comm);
    if (!is_worth_it(facts, finding, exposed_ns)) {
        return false;
    }
    const struct lac_message *largest = excess.largest;
    const char *name = lac_collective_name((enum lac_collective_kind)largest->kind);
    finding->confidence = 0.6;
    finding->change_kind = LAC_CHANGE_COMMAND;
    finding->effort = LAC_EFFORT_SETTING;
    finding->title = lac_texts_add(
        &analysis->texts,
        "Collectives move %s GB/s where such a GPU's link does %s: %s of every %s step (%s)",
        lac_format_rate(best).text, lac_format_rate(usual).text,
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s %s of %s over %s takes %s; its bytes need %s. %.0f %% of the collectives' time is no "
        "transfer over a link that works: a slow transport (sockets, no peer access), or a rank "
        "that is late every time.",
        name[0] == 'a' ? "An" : "A", name, lac_format_bytes(largest->bytes).text,
        lac_format_count(excess.ranks, "rank").text, lac_format_ns(largest->dur_ns).text,
        lac_format_ns(lac_round(lac_time_at_rate(largest, usual))).text,
        100.0 * excess.excess_ns / excess.large_ns);
    finding->brief = "find out which transport NCCL uses";
    finding->change =
        "NCCL_DEBUG=INFO torchrun ...   # \"via SHM\", \"via NET/Socket\": not the fast link\n"
        "unset NCCL_P2P_DISABLE NCCL_IB_DISABLE NCCL_SHM_DISABLE\n"
        "lacuna analyze RANK0 RANK1 ...  # a rank that is always late looks the same";
    finding->expect =
        lac_texts_add(&analysis->texts, "%s. No gain from the link where a rank is late.",
                      lac_finding_expect(facts, finding));
    finding->costs = "None.";
    finding->wrong_if = "the other ranks' traces show that one of them enters last every time.";
    finding->check = "all_reduce_perf of nccl-tests with a message of the same size";
    lac_evidence_slice(facts, finding, facts->step_operations->ops[largest->at].slice,
                       lac_texts_add(&analysis->texts, "%s in %s",
                                     lac_format_bytes(largest->bytes).text,
                                     lac_format_ns(largest->dur_ns).text));
    return true;
}

bool lac_find_collective_efficiency(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_collectives *all = facts->collectives;
    bool is_training = facts->analysis->workload == LAC_WORKLOAD_TRAINING ||
                       facts->analysis->workload == LAC_WORKLOAD_FEW_STEPS;
    if (!is_training || all->count == 0 || all->steps <= 0.0) {
        return false;
    }
    return find_small(facts, finding) || find_slow_link(facts, finding) ||
           find_in_line(facts, finding);
}
