/*
 * The rank that waits least is the one the others wait for. Why it is late is read from what it
 * does longer than the median rank; where that does not cover four fifths of the lateness, the
 * trace cannot tell.
 */

#include "analysis/diagnose/straggler.h"

#include "analysis/diagnose/texts.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { COMPUTING = LAC_CAUSE_COUNT_, COPYING, PART_COUNT };

static const char *const reasons[PART_COUNT] = {
    [LAC_CAUSE_DATA_WAIT] = "it waits longer for data",
    [LAC_CAUSE_SYNC] = "its host works longer after synchronisations",
    [LAC_CAUSE_LAUNCH] = "its host launches more slowly",
    [LAC_CAUSE_COPY_WAIT] = "it waits longer for copies",
    [LAC_CAUSE_ALLOCATOR] = "it allocates memory",
    [LAC_CAUSE_MODULE_LOAD] = "it loads or compiles code",
    [LAC_CAUSE_COMM] = "its host is longer in communication calls",
    [LAC_CAUSE_DEPENDENCY] = "its streams wait longer for each other",
    [LAC_CAUSE_HOST] = "its host works longer between launches",
    [LAC_CAUSE_PROFILER] = "the recorder holds it up",
    [LAC_CAUSE_UNATTRIBUTED] = "it idles longer, for reasons that the trace does not show",
    [COMPUTING] = "its kernels take longer",
    [COPYING] = "its copies take longer",
};

static const struct lac_device_facts *device_of(const struct lac_rank_trace *rank)
{
    const struct lac_analysis *analysis = rank->analysis;
    return analysis->main_device == LAC_NONE ? NULL : &analysis->devices[analysis->main_device];
}

static int64_t part_of(const struct lac_rank_trace *rank, int part)
{
    const struct lac_device_facts *device = device_of(rank);
    if (!device) {
        return 0;
    }
    if (part == COMPUTING) {
        return device->partition_ns[LAC_PART_COMPUTE];
    }
    return part == COPYING ? device->partition_ns[LAC_PART_EXPOSED_COPY]
                           : device->idle_by_cause_ns[part];
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/** Lower median of `values`; sorts them. */
static int64_t median(int64_t *values, uint32_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof *values, by_value);
    return values[(count - 1) / 2];
}

/** The reason, and how much of the lateness it and the others like it cover. */
static int find_reason(const struct lac_run *run, const struct lac_rank_trace *ranks,
                       int64_t *scratch, int64_t *ret_excess_ns, int64_t *ret_covered_ns)
{
    int best = -1;
    *ret_excess_ns = 0;
    *ret_covered_ns = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        uint32_t count = 0;
        for (uint32_t r = 0; r < run->rank_count; r++) {
            if (r != run->late) {
                scratch[count++] = part_of(&ranks[r], part);
            }
        }
        int64_t excess_ns = part_of(&ranks[run->late], part) - median(scratch, count);
        if (excess_ns > 0) {
            *ret_covered_ns += excess_ns;
        }
        if (excess_ns > *ret_excess_ns) {
            *ret_excess_ns = excess_ns;
            best = part;
        }
    }
    return best;
}

/** More kernels, or the same ones slower. */
static const char *about_kernels(struct lac_run *run, const struct lac_rank_trace *ranks,
                                 int64_t *scratch)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (r != run->late) {
            scratch[count++] = (int64_t)ranks[r].analysis->kernel_count;
        }
    }
    double usual = (double)median(scratch, count);
    double own = (double)ranks[run->late].analysis->kernel_count;
    bool is_more = own > 1.05 * usual;
    return is_more ? " It runs more kernels than the others: its share of the work is larger."
                   : " They are as many as on the other ranks: the same work runs more slowly "
                     "(clock, temperature, another job on the GPU), or on larger inputs.";
}

/** Steps to say things by; 1 when the trace has too few. */
static double steps_of(const struct lac_rank_trace *rank)
{
    uint32_t steps = rank->analysis->step_count;
    return steps >= 3 ? (double)steps : 1.0;
}

static void write_texts(struct lac_run *run, const struct lac_rank_trace *ranks, int64_t *scratch,
                        int64_t lateness_ns)
{
    struct lac_finding *finding = &run->finding;
    const struct lac_rank_facts *late = &run->ranks[run->late];
    double steps = steps_of(&ranks[run->late]);
    const char *unit = steps > 1.0 ? " of every step" : "";
    int64_t excess_ns = 0;
    int64_t covered_ns = 0;
    int reason = find_reason(run, ranks, scratch, &excess_ns, &covered_ns);
    bool can_tell = reason >= 0 && reason != LAC_CAUSE_UNATTRIBUTED &&
                    covered_ns * 5 >= lateness_ns * 4 && excess_ns * 2 >= lateness_ns;
    finding->title =
        lac_texts_add(&run->texts, "%s for rank %d: %s%s",
                      run->rank_count == 2 ? "The other rank waits" : "The other ranks wait",
                      (int)late->rank, lac_say_ns(llround((double)lateness_ns / steps)).text, unit);
    const char *split = lac_texts_add(
        &run->texts,
        "Of %s matched over %s, rank %d enters %llu last and waits %s in all; the median of the "
        "others waits %s.",
        lac_say_count((int64_t)run->collective_count, "collective").text,
        lac_say_count(run->rank_count, "rank").text, (int)late->rank,
        (unsigned long long)late->last_count, lac_say_ns(late->wait_ns).text,
        lac_say_ns(late->wait_ns + lateness_ns).text);
    if (!can_tell) {
        finding->why =
            lac_texts_add(&run->texts,
                          "%s Why it is late these traces cannot tell: what it does longer than "
                          "the median rank covers %s of %s.",
                          split, lac_say_ns(covered_ns).text, lac_say_ns(lateness_ns).text);
        finding->brief = "look at that rank";
        finding->change = lac_texts_add(&run->texts,
                                        "Record rank %d for longer, with its data loading, and "
                                        "look at its node (clocks, temperature, other jobs).",
                                        (int)late->rank);
    } else {
        finding->why = lac_texts_add(
            &run->texts, "%s Against the median rank %s (%s more%s).%s", split, reasons[reason],
            lac_say_ns(llround((double)excess_ns / steps)).text, steps > 1.0 ? " a step" : "",
            reason == COMPUTING ? about_kernels(run, ranks, scratch) : "");
        finding->brief = "look at that rank";
        finding->change = lac_texts_add(
            &run->texts, "lacuna analyze RANK%d   # on its own: %s; the network is not the cause",
            (int)late->rank, reasons[reason]);
    }
    finding->expect = lac_texts_add(&run->texts, "up to %s less%s for all other ranks.",
                                    lac_say_ns(llround((double)lateness_ns / steps)).text,
                                    steps > 1.0 ? " a step" : "");
    finding->costs = "None in training: the same work, evenly done.";
    finding->wrong_if = "the collectives of that rank move less data than those of the others.";
    finding->check = "swap that rank's node or shard with another one: the lateness moves along";
    finding->confidence = can_tell ? 0.7 : 0.4;
}

/** The longest wait of another rank is what to look at: the late rank's own device meanwhile. */
static void add_evidence(struct lac_run *run, const struct lac_rank_trace *ranks)
{
    struct lac_finding *finding = &run->finding;
    const struct lac_analysis *analysis = ranks[run->late].analysis;
    const struct lac_device_facts *device = device_of(&ranks[run->late]);
    if (!device || device->gap_count == 0) {
        return;
    }
    uint64_t longest = device->first_gap;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        longest = analysis->gaps[g].dur_ns > analysis->gaps[longest].dur_ns ? g : longest;
    }
    const struct lac_gap *gap = &analysis->gaps[longest];
    finding->evidence[finding->evidence_count++] = (struct lac_evidence){
        .track = LAC_NONE,
        .slice = LAC_NONE,
        .track_name = lac_texts_add(&run->texts, "rank %d, GPU %lld",
                                    (int)run->ranks[run->late].rank, (long long)device->id),
        .t0_ns = gap->start_ns,
        .t1_ns = gap->start_ns + gap->dur_ns,
        .text = lac_texts_add(&run->texts, "its longest gap: %s, %s", lac_say_ns(gap->dur_ns).text,
                              lac_cause_name((enum lac_cause)gap->cause))};
}

static void price(struct lac_run *run, const struct lac_rank_trace *ranks, int64_t lateness_ns)
{
    struct lac_finding *finding = &run->finding;
    const struct lac_device_facts *device = device_of(&ranks[run->late]);
    double span_ns = device ? (double)device->span_ns : 0.0;
    double pct = span_ns > 0.0 ? 100.0 * (double)lateness_ns / span_ns : 0.0;
    finding->id = "straggler-rank";
    finding->where = "";
    finding->cost_pct = pct;
    finding->cost_ns_per_step = llround((double)lateness_ns / steps_of(&ranks[run->late]));
    finding->gain_low_pct = 0.0;
    finding->gain_mid_pct = 0.5 * pct;
    finding->gain_high_pct = pct;
    finding->step_low_ns = LAC_UNKNOWN_NS;
    finding->step_mid_ns = LAC_UNKNOWN_NS;
    finding->step_high_ns = LAC_UNKNOWN_NS;
    finding->severity = pct >= 20.0  ? LAC_SEVERITY_CRITICAL
                        : pct >= 5.0 ? LAC_SEVERITY_WARNING
                                     : LAC_SEVERITY_INFO;
}

enum lac_status lac_straggler_find(struct lac_run *run, const struct lac_rank_trace *ranks)
{
    if (run->rank_count < 2) {
        return LAC_OK;
    }
    if (run->collective_count == 0) {
        run->note = "No collective occurs equally often on all ranks: who waits for whom cannot be "
                    "told from these traces.";
        return LAC_OK;
    }
    int64_t *scratch = malloc(run->rank_count * sizeof *scratch);
    if (!scratch) {
        return LAC_ERR_NOMEM;
    }
    uint32_t least = 0;
    for (uint32_t r = 1; r < run->rank_count; r++) {
        least = run->ranks[r].wait_ns < run->ranks[least].wait_ns ? r : least;
    }
    uint32_t count = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (r != least) {
            scratch[count++] = run->ranks[r].wait_ns;
        }
    }
    int64_t lateness_ns = median(scratch, count) - run->ranks[least].wait_ns;
    const struct lac_device_facts *device = device_of(&ranks[least]);
    bool is_worth_it = device && lateness_ns * 50 >= device->span_ns;
    /* with many ranks, the late one has to be the last more often than by turns */
    bool is_steady = run->ranks[least].last_count * run->rank_count >= run->collective_count * 2 ||
                     run->rank_count == 2;
    if (is_worth_it && is_steady) {
        run->late = least;
        run->has_finding = true;
        price(run, ranks, lateness_ns);
        write_texts(run, ranks, scratch, lateness_ns);
        add_evidence(run, ranks);
    } else {
        run->note = "No rank stands out: none is waited for by the others for 2 % of the time, or "
                    "they are late in turns.";
    }
    free(scratch);
    return LAC_OK;
}
