/*
 * The rank that enters collectives last is the one the others wait for. Why it is late is read from
 * what its device does longer than the median rank's between them; where that does not cover four
 * fifths of the lateness, the traces cannot tell. What it gains to have it on time comes from the
 * run replayed, bounded by the waiting that nothing else hides.
 */

#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/wording/wording.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const reasons[LAC_RANK_PART_COUNT] = {
    [LAC_CAUSE_DATA_WAIT] = "it waits longer for data",
    [LAC_CAUSE_SYNC] = "its host works longer after synchronization",
    [LAC_CAUSE_LAUNCH] = "its host launches more slowly",
    [LAC_CAUSE_COPY_WAIT] = "it waits longer for copies",
    [LAC_CAUSE_ALLOCATOR] = "it spends longer allocating memory",
    [LAC_CAUSE_MODULE_LOAD] = "it spends longer loading or compiling code",
    [LAC_CAUSE_COMM] = "its host spends longer in communication calls",
    [LAC_CAUSE_DEPENDENCY] = "its streams wait longer for each other",
    [LAC_CAUSE_HOST] = "its host works longer between launches",
    [LAC_CAUSE_PROFILER] = "the profiler stalls it longer",
    [LAC_CAUSE_UNATTRIBUTED] = "it idles longer, for a reason not in the traces",
    [LAC_RANK_WORK] = "its GPU works longer",
};

/** Work in progress: per rank, then about the late one. */
struct lateness {
    const struct lac_rank_table *const *tables;
    const struct lac_rank_match *match;
    struct lac_run *run;
    double steps; /**< that the late rank's matched collectives lie in, to say things by; 1 when
                             the trace has too few */
    int64_t *caused_ns; /**< by rank: what the median of the others waited where it came last */
    int64_t *scratch;   /**< one a rank */
    double *part_ns;    /**< by rank and part, summed over matched collectives */
    uint64_t count, last_count; /**< collectives, and those that the late rank entered last */
    int64_t late_ns;            /**< of it, caused by the late rank */
    int64_t idle_ns;            /**< of it, with nothing else to run: what it costs */
    int64_t before_ns;          /**< of it, from before the recording */
    int64_t lead_ns;            /**< the late rank's recorded time up to its first collective */
    int reason;                 /**< enum lac_rank_part, or -1 */
    int64_t excess_ns;          /**< what its device does longer for that reason, */
    int64_t covered_ns;         /**< and for all reasons */
    bool can_tell;              /**< these explain what the others lose */
    bool is_uneven; /**< it has more work than the others: made less, theirs gets more */
};

/* -- who -------------------------------------------------------------------------------------- */

static int64_t dur_of(const struct lateness *l, const struct lac_rank_group *group, uint32_t member,
                      uint64_t index)
{
    const struct lac_collective *it = lac_rank_collective(l->tables, group, member, index);
    return it->end_ns - it->start_ns;
}

/** The member that comes last, and what the median of the others waits for it. */
static uint32_t last_of(struct lateness *l, const struct lac_rank_group *group, uint64_t index,
                        int64_t *ret_wait_ns)
{
    uint32_t last = 0;
    uint32_t count = 0;
    for (uint32_t m = 1; m < group->member_count; m++) {
        last = dur_of(l, group, m, index) < dur_of(l, group, last, index) ? m : last;
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        if (m != last) {
            l->scratch[count++] = dur_of(l, group, m, index);
        }
    }
    *ret_wait_ns = lac_median_ns(l->scratch, count) - dur_of(l, group, last, index);
    return last;
}

static void add_parts(struct lateness *l, const struct lac_rank_group *group, uint64_t index)
{
    for (uint32_t m = 0; m < group->member_count; m++) {
        const struct lac_collective *it = lac_rank_collective(l->tables, group, m, index);
        double *own = &l->part_ns[(size_t)group->members[m] * LAC_RANK_PART_COUNT];
        for (int part = 0; part < LAC_RANK_PART_COUNT; part++) {
            own[part] += (double)it->part_ns[part];
        }
    }
}

/** Sends and receives are left out: stages of a pipeline wait for each other by design. */
static bool is_left_out(const struct lateness *l, uint64_t instance)
{
    return lac_rank_group_is_transfer(&l->match->groups[l->match->instances[instance].group]);
}

static void find_caused(struct lateness *l)
{
    for (uint64_t i = 0; i < l->match->instance_count; i++) {
        const struct lac_rank_instance *it = &l->match->instances[i];
        const struct lac_rank_group *group = &l->match->groups[it->group];
        int64_t wait_ns = 0;
        if (!is_left_out(l, i)) {
            uint32_t rank = group->members[last_of(l, group, it->index, &wait_ns)];
            l->caused_ns[rank] = lac_sum_ns(l->caused_ns[rank], wait_ns);
        }
    }
}

/** How many collectives that rank entered last, of how many. */
static void count_last(struct lateness *l, uint32_t rank)
{
    for (uint64_t i = 0; i < l->match->instance_count; i++) {
        const struct lac_rank_instance *it = &l->match->instances[i];
        const struct lac_rank_group *group = &l->match->groups[it->group];
        int64_t wait_ns = 0;
        if (!is_left_out(l, i)) {
            l->count++;
            l->last_count += group->members[last_of(l, group, it->index, &wait_ns)] == rank;
        }
    }
}

static void sum_parts(struct lateness *l)
{
    for (size_t i = 0; i < (size_t)l->run->rank_count * LAC_RANK_PART_COUNT; i++) {
        l->part_ns[i] = 0.0;
    }
    for (uint64_t i = 0; i < l->match->instance_count; i++) {
        const struct lac_rank_instance *it = &l->match->instances[i];
        if (!is_left_out(l, i)) {
            add_parts(l, &l->match->groups[it->group], it->index);
        }
    }
}

/** Lateness at the first collective of the recording that the recording does not explain. */
static void find_before(struct lateness *l)
{
    for (uint64_t i = 0; i < l->match->instance_count; i++) {
        const struct lac_rank_instance *it = &l->match->instances[i];
        const struct lac_rank_group *group = &l->match->groups[it->group];
        int64_t wait_ns = 0;
        uint32_t last = last_of(l, group, it->index, &wait_ns);
        if (group->members[last] != l->run->late || is_left_out(l, i)) {
            continue;
        }
        uint32_t count = 0;
        for (uint32_t m = 0; m < group->member_count; m++) {
            const struct lac_collective *own = lac_rank_collective(l->tables, group, m, it->index);
            int64_t lead_ns = own->start_ns - l->tables[group->members[m]]->lead_ns;
            if (!own->is_first) {
                return;
            }
            if (m == last) {
                l->lead_ns = lead_ns;
            } else {
                l->scratch[count++] = lead_ns;
            }
        }
        int64_t shown_ns = l->lead_ns - lac_median_ns(l->scratch, count);
        int64_t before_ns = shown_ns > 0 ? wait_ns - shown_ns : wait_ns;
        l->before_ns = before_ns > 0 ? before_ns : 0;
        return;
    }
}

/* -- why -------------------------------------------------------------------------------------- */

/** What of the late rank's idle time is its host's doing. */
static bool is_of_host(int part)
{
    return part == LAC_CAUSE_SYNC || part == LAC_CAUSE_LAUNCH || part == LAC_CAUSE_ALLOCATOR ||
           part == LAC_CAUSE_MODULE_LOAD || part == LAC_CAUSE_HOST;
}

/** How much longer its host needs for the steps than the median of the others' hosts: those who
 *  wait in a collective do not show that theirs are as slow. INT64_MAX where not known. */
static int64_t host_excess(struct lateness *l)
{
    uint32_t count = 0;
    const struct lac_rank_table *late = l->tables[l->run->late];
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        if (r != l->run->late && l->run->ranks[r].is_matched && l->tables[r]->host_ns > 0) {
            l->scratch[count++] = l->tables[r]->host_ns;
        }
    }
    if (late->step_count < STEPS_MIN || late->host_ns <= 0 || count == 0) {
        return INT64_MAX;
    }
    int64_t excess_ns = late->host_ns - lac_median_ns(l->scratch, count);
    return excess_ns > 0 ? lac_round((double)excess_ns * l->steps) : 0;
}

/** How much longer the late rank's part is than the median of the others', in ns. */
static int64_t excess_of(struct lateness *l, int part)
{
    uint32_t count = 0;
    int64_t own_ns = 0;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        double ns = l->part_ns[(size_t)r * LAC_RANK_PART_COUNT + (size_t)part];
        int64_t whole_ns = ns < 9e18 ? (int64_t)ns : INT64_MAX / 2;
        if (r == l->run->late) {
            own_ns = whole_ns;
        } else if (l->run->ranks[r].is_matched) {
            l->scratch[count++] = whole_ns;
        }
    }
    int64_t excess_ns = own_ns - lac_median_ns(l->scratch, count);
    int64_t most_ns = is_of_host(part) ? host_excess(l) : INT64_MAX;
    return excess_ns < most_ns ? excess_ns : most_ns;
}

static int64_t exposed_of(const struct lateness *l, uint32_t rank)
{
    return lac_round(lac_rank_exposed_ns(l->tables[rank], &l->run->ranks[rank]));
}

/** Of the lateness what the others lose by it: the rest of their waiting hides behind computing. */
static int64_t lost_ns(struct lateness *l)
{
    int64_t late_ns = l->late_ns - l->before_ns;
    if (l->tables[l->run->late]->step_count < STEPS_MIN) {
        return late_ns;
    }
    uint32_t count = 0;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        if (r != l->run->late && l->run->ranks[r].is_matched) {
            l->scratch[count++] = exposed_of(l, r);
        }
    }
    int64_t own_ns = exposed_of(l, l->run->late);
    int64_t lost_ns = lac_median_ns(l->scratch, count) - own_ns;
    return lost_ns > 0 && lost_ns < late_ns ? lost_ns : late_ns;
}

/** The reason, and how much of the lateness it and the others like it cover. */
static int find_reason(struct lateness *l, int64_t *ret_excess_ns, int64_t *ret_covered_ns)
{
    int best = -1;
    *ret_excess_ns = 0;
    *ret_covered_ns = 0;
    for (int part = 0; part < LAC_RANK_PART_COUNT; part++) {
        int64_t excess_ns = excess_of(l, part);
        if (excess_ns > 0) {
            *ret_covered_ns = lac_sum_ns(*ret_covered_ns, excess_ns);
        }
        if (excess_ns > *ret_excess_ns) {
            *ret_excess_ns = excess_ns;
            best = part;
        }
    }
    return best;
}

static const struct lac_rank_kernel *find_kernel(const struct lac_rank_table *table, uint64_t hash)
{
    for (uint32_t k = 0; k < table->kernel_kept_count; k++) {
        if (table->kernels[k].name_hash == hash) {
            return &table->kernels[k];
        }
    }
    return NULL;
}

/** How many times as long the late rank's largest kernels take as the median rank's same ones, NaN
 *  when they are not the same; `ret_spread` is the largest over the smallest of these ratios. */
static double kernel_ratio(struct lateness *l, double *ret_spread)
{
    const struct lac_rank_table *own = l->tables[l->run->late];
    double sum_own = 0.0;
    double sum_usual = 0.0;
    double least = (double)INFINITY;
    double most = 0.0;
    for (uint32_t k = 0; k < own->kernel_kept_count && k < 8; k++) {
        const struct lac_rank_kernel *kernel = &own->kernels[k];
        uint32_t count = 0;
        for (uint32_t r = 0; r < l->run->rank_count; r++) {
            const struct lac_rank_kernel *other =
                r == l->run->late ? NULL : find_kernel(l->tables[r], kernel->name_hash);
            if (other != NULL && other->count == kernel->count) {
                l->scratch[count++] = other->total_ns;
            }
        }
        int64_t usual_ns = lac_median_ns(l->scratch, count);
        if (usual_ns > 0 && kernel->total_ns > 0) {
            double ratio = (double)kernel->total_ns / (double)usual_ns;
            sum_own += (double)kernel->total_ns;
            sum_usual += (double)usual_ns;
            least = ratio < least ? ratio : least;
            most = ratio > most ? ratio : most;
        }
    }
    *ret_spread = most > 0.0 ? most / least : (double)INFINITY;
    return sum_usual > 0.0 ? sum_own / sum_usual : (double)NAN;
}

/** More kernels, the same ones all slower, or some of them longer: "" where none of it shows. Whether
 *  its work is more, not slower, is told with it. */
static const char *about_work(struct lateness *l)
{
    struct lac_run *run = l->run;
    const struct lac_rank_table *own = l->tables[run->late];
    uint32_t count = 0;
    double spread = 0.0;
    double ratio = kernel_ratio(l, &spread);
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (r != run->late) {
            l->scratch[count++] = (int64_t)l->tables[r]->kernel_count;
        }
    }
    double usual = (double)lac_median_ns(l->scratch, count);
    if ((double)own->kernel_count > MORE_KERNELS_MIN * usual) {
        l->is_uneven = true;
        return lac_texts_add(&run->texts,
                             " It runs %s, the median of the others %s: its share of the work is "
                             "larger.",
                             lac_format_count((int64_t)own->kernel_count, "kernel").text,
                             lac_format_rate(usual).text);
    }
    if (isfinite(ratio) && ratio > SLOWER_KERNELS_MIN && spread < ALIKE_SPREAD_MAX) {
        return lac_texts_add(&run->texts,
                             " The same kernels all take about %.2f times as long: a lower clock "
                             "(temperature, power limit) or another job on that GPU.",
                             ratio);
    }
    if (isfinite(ratio) && ratio > SLOWER_KERNELS_MIN) {
        l->is_uneven = true;
        return " It runs as many kernels as the others, but some take longer: larger inputs "
               "(longer sequences, an uneven shard).";
    }
    return "";
}

/* -- what is said ----------------------------------------------------------------------------- */

static struct lac_text32 a_step(const struct lateness *l, int64_t ns)
{
    return lac_format_ns(lac_round((double)ns / l->steps));
}

/** What a late rank is compared with. */
static const char *usual_rank(const struct lateness *l)
{
    return l->run->rank_count == 2 ? "the other rank" : "the median rank";
}

/** What lies before the recording, or "". */
static const char *say_before(struct lateness *l)
{
    if (l->before_ns * 5 < l->late_ns) {
        return "";
    }
    return lac_texts_add(
        &l->run->texts,
        " The first recorded collective accounts for %s of that. All ranks need about as long to "
        "reach it (%s here), so rank %d only started later. The cause lies before the recording.",
        lac_format_ns(l->before_ns).text, lac_format_ns(l->lead_ns).text,
        (int)l->run->ranks[l->run->late].rank);
}

/** Who else is waited for, or "". */
static const char *say_second(struct lateness *l)
{
    uint32_t second = LAC_NONE;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        bool is_more = second == LAC_NONE || l->caused_ns[r] > l->caused_ns[second];
        second = r != l->run->late && is_more ? r : second;
    }
    if (second == LAC_NONE || l->caused_ns[second] * 5 < l->late_ns) {
        return "";
    }
    return lac_texts_add(&l->run->texts, " Next is rank %d with %s%s.",
                         (int)l->run->ranks[second].rank, a_step(l, l->caused_ns[second]).text,
                         l->steps > 1.0 ? " per step" : "");
}

/** Find the reason, before anything is said or estimated. @return what its work shows, or "" */
static const char *find_why(struct lateness *l)
{
    l->reason = find_reason(l, &l->excess_ns, &l->covered_ns);
    int64_t rest_ns = lost_ns(l);
    l->can_tell = l->before_ns * 2 < l->late_ns && l->reason >= 0 &&
                  l->reason != LAC_CAUSE_UNATTRIBUTED &&
                  (double)l->covered_ns >= REASON_COVERS_MIN * (double)rest_ns &&
                  (double)l->excess_ns >= REASON_SHARE_MIN * (double)rest_ns;
    return l->can_tell && l->reason == LAC_RANK_WORK ? about_work(l) : "";
}

static void write_reason(struct lateness *l, const char *split, const char *work)
{
    struct lac_run *run = l->run;
    struct lac_finding *finding = &run->finding;
    int rank = (int)run->ranks[run->late].rank;
    const char *per = l->steps > 1.0 ? " per step" : "";
    bool is_recorded = l->before_ns * 2 < l->late_ns;
    finding->brief = "inspect that rank";
    finding->confidence = l->can_tell ? 0.7 : 0.4;
    const char *before = say_before(l);
    const char *second = say_second(l);
    if (l->can_tell) {
        finding->why = lac_texts_add(
            &run->texts, "%s Between collectives %s than the median rank, by %s%s.%s%s%s", split,
            reasons[l->reason], a_step(l, l->excess_ns).text, per, work, before, second);
        finding->change_kind = LAC_CHANGE_COMMAND;
        finding->change = lac_texts_add(
            &run->texts, "lacuna analyze TRACE_OF_RANK_%d   # on its own: %s; not the network",
            rank, reasons[l->reason]);
        if (l->is_uneven) {
            lac_even_work_advise(
                finding, lac_ranks_exchange_tokens(l->match, l->tables[run->late]->step_count));
        }
        return;
    }
    const char *shown =
        !is_recorded
            ? ""
            : lac_texts_add(
                  &run->texts,
                  " The traces do not show why: extra GPU time over %s explains %s of %s.",
                  usual_rank(l), a_step(l, l->covered_ns).text, a_step(l, lost_ns(l)).text);
    finding->why = lac_texts_add(&run->texts, "%s%s%s%s", split, before, shown, second);
    finding->change =
        lac_texts_add(&run->texts,
                      is_recorded ? "Record rank %d with its data loading (lacuna run), and check "
                                    "its node: clocks, temperature, other jobs."
                                  : "Record ten or more steps on all ranks. If only the recording "
                                    "of rank %d began late, it is no longer last.",
                      rank);
    finding->effort = LAC_EFFORT_SETTING; /* recording more takes no other hardware */
}

static void write_texts(struct lateness *l, const char *work)
{
    struct lac_run *run = l->run;
    struct lac_finding *finding = &run->finding;
    const struct lac_rank_facts *late = &run->ranks[run->late];
    bool has_steps = l->steps > 1.0;
    uint32_t matched = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        matched += run->ranks[r].is_matched;
    }
    finding->title = lac_texts_add(
        &run->texts, "%s for rank %d: %s%s",
        run->rank_count == 2 ? "The other rank waits" : "The other ranks wait", (int)late->rank,
        a_step(l, l->idle_ns).text, has_steps ? " of every step" : "");
    const bool hides = (double)l->idle_ns < HIDES_MAX * (double)l->late_ns;
    const char *split = lac_texts_add(
        &run->texts,
        "Rank %d was the last to enter %llu of %s across %s; %s waits %s%s for it%s%s.",
        (int)late->rank, (unsigned long long)l->last_count,
        lac_format_count((int64_t)l->count, "collective").text,
        lac_format_count(matched, "rank").text,
        matched == 2 ? "the other" : "the median of the others", a_step(l, l->late_ns).text,
        has_steps ? " per step" : "", hides ? ", with nothing else to run for " : "",
        hides ? a_step(l, l->idle_ns).text : "");
    finding->costs = "None: training results are unaffected.";
    write_reason(l, split, work);
    finding->wrong_if = "that rank's collectives move less data than the others'.";
    finding->check =
        "swap its node or data shard with another rank's: the straggler should move with it";
    finding->where = "";
}

static void add_place(struct lateness *l, int64_t t0_ns, int64_t t1_ns, const char *text)
{
    struct lac_run *run = l->run;
    struct lac_finding *finding = &run->finding;

    finding->evidence[finding->evidence_count++] =
        (struct lac_evidence){.track = LAC_NONE,
                              .slice = LAC_NONE,
                              .track_name = lac_texts_add(
                                  &run->texts, "rank %d, GPU %lld", (int)run->ranks[run->late].rank,
                                  (long long)l->tables[run->late]->device_id),
                              .t0_ns = t0_ns,
                              .t1_ns = t1_ns,
                              .text = text};
}

/** The collective for which the others waited longest, with what the late rank did meanwhile; then
 *  its longest gap, where that is long enough to be the reason. */
static void add_evidence(struct lateness *l)
{
    struct lac_run *run = l->run;
    const struct lac_rank_table *table = l->tables[run->late];
    const struct lac_collective *latest = NULL;
    int64_t latest_ns = 0;

    for (uint64_t i = 0; i < l->match->instance_count; i++) {
        const struct lac_rank_instance *it = &l->match->instances[i];
        const struct lac_rank_group *group = &l->match->groups[it->group];
        int64_t wait_ns = 0;
        const uint32_t last = last_of(l, group, it->index, &wait_ns);

        if (group->members[last] == run->late && wait_ns > latest_ns && !is_left_out(l, i)) {
            latest = lac_rank_collective(l->tables, group, last, it->index);
            latest_ns = wait_ns;
        }
    }
    if (latest != NULL) {
        const int64_t from_ns = latest->start_ns > latest_ns ? latest->start_ns - latest_ns : 0;

        add_place(l, from_ns, latest->end_ns,
                  lac_texts_add(&run->texts, "its latest arrival: the others wait %s",
                                lac_format_ns(latest_ns).text));
    }
    if (table->gap_ns > 0 && table->gap_ns >= latest_ns / 2) {
        add_place(l, table->gap_at_ns, table->gap_at_ns + table->gap_ns,
                  lac_texts_add(&run->texts, "its longest gap: %s, waiting %s",
                                lac_format_ns(table->gap_ns).text,
                                lac_waits_for((enum lac_cause)table->gap_cause)));
    }
}

/* -- what it gains ---------------------------------------------------------------------------- */

static int64_t smaller(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/** What of the transfers stays exposed though nobody is late: as on the late rank, which waits for
 *  no one and has more to hide them behind. */
static int64_t exposed_transfer(const struct lateness *l)
{
    const struct lac_rank_facts *late = &l->run->ranks[l->run->late];
    int64_t exposed_ns = exposed_of(l, l->run->late);
    return exposed_ns > late->wait_ns ? smaller(exposed_ns - late->wait_ns, late->transfer_ns) : 0;
}

/** And at most: with less to compute the late rank may hide less of them. */
static int64_t exposed_transfer_most(const struct lateness *l)
{
    const int64_t least_ns = exposed_transfer(l);
    const int64_t hidden_ns = l->run->ranks[l->run->late].transfer_ns - least_ns;
    return least_ns + lac_round(STILL_HIDDEN_LESS * (double)(hidden_ns > 0 ? hidden_ns : 0));
}

/** What the median of the other ranks waits with nothing else running: at least, and at most. */
static void exposed_wait(struct lateness *l, int64_t *ret_low_ns, int64_t *ret_high_ns)
{
    const int64_t stays_ns = exposed_transfer(l);
    const int64_t stays_most_ns = exposed_transfer_most(l);
    for (int is_high = 0; is_high < 2; is_high++) {
        uint32_t count = 0;
        for (uint32_t r = 0; r < l->run->rank_count; r++) {
            const struct lac_rank_facts *rank_facts = &l->run->ranks[r];
            if (r == l->run->late || !rank_facts->is_matched) {
                continue;
            }
            int64_t exposed_ns = exposed_of(l, r);
            int64_t low_ns = exposed_ns > stays_most_ns ? exposed_ns - stays_most_ns : 0;
            int64_t high_ns = smaller(exposed_ns - stays_ns, rank_facts->wait_ns);
            l->scratch[count++] = is_high ? high_ns : low_ns;
        }
        *(is_high ? ret_high_ns : ret_low_ns) = lac_median_ns(l->scratch, count);
    }
}

/** What the lateness costs: waiting beside computing costs nothing. */
static int64_t idle_waiting_ns(struct lateness *l)
{
    int64_t low_ns = 0;
    int64_t high_ns = 0;
    if (l->steps <= 1.0) {
        return l->late_ns;
    }
    exposed_wait(l, &low_ns, &high_ns);
    return high_ns > 0 ? smaller(high_ns, l->late_ns) : 0;
}

/** What is left of the steps when every other rank takes only what it needs by itself: while they
 *  wait for the late one their own hosts and loaders get ahead, which hides that they are no
 *  faster. */
static int64_t room_ns(const struct lateness *l)
{
    const struct lac_rank_table *late = l->tables[l->run->late];
    int64_t need_ns = 0;
    const double steps = l->steps;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        bool is_other = r != l->run->late && l->run->ranks[r].is_matched;
        need_ns = is_other && l->tables[r]->need_ns > need_ns ? l->tables[r]->need_ns : need_ns;
    }
    if (steps <= 1.0 || late->step_mean_ns <= 0 || need_ns == 0) {
        return INT64_MAX;
    }
    double room = ((double)late->step_mean_ns - (double)need_ns) * steps;
    return room <= 0.0 ? 0 : room < 9e18 ? (int64_t)room : INT64_MAX;
}

static enum lac_status find_gain(struct lateness *l, int64_t *ret_low_ns, int64_t *ret_high_ns)
{
    uint32_t late = l->run->late;
    int64_t recorded_ns = 0;
    int64_t later_ns = 0;
    int64_t all_ns = 0;
    /* what it is late by from before the recording returns only if this is every step's begin */
    bool is_shown = l->before_ns * 5 < l->late_ns;
    bool is_one_step = l->steps <= 1.0;
    enum lac_ranks_change change = l->is_uneven ? LAC_RANKS_EVEN : LAC_RANKS_ONE_FASTER;
    enum lac_status status = lac_ranks_replay(l->tables, l->run->rank_count, l->match,
                                              LAC_RANKS_AS_RECORDED, LAC_NONE, false, &recorded_ns);
    if (!status) {
        status = lac_ranks_replay(l->tables, l->run->rank_count, l->match, change, late, is_shown,
                                  &later_ns);
    }
    if (!status) {
        status = lac_ranks_replay(l->tables, l->run->rank_count, l->match, change, late,
                                  is_shown || is_one_step, &all_ns);
    }
    int64_t low_ns = 0;
    int64_t high_ns = 0;
    exposed_wait(l, &low_ns, &high_ns);
    int64_t room_most_ns = room_ns(l);
    int64_t room_least_ns = room_most_ns - exposed_transfer_most(l);
    *ret_high_ns = smaller(smaller(recorded_ns - all_ns, high_ns), room_most_ns);
    *ret_high_ns = *ret_high_ns > 0 ? *ret_high_ns : 0;
    *ret_low_ns = smaller(smaller(recorded_ns - later_ns, low_ns), room_least_ns);
    *ret_low_ns = smaller(*ret_low_ns, lac_round(PROMISED_MAX * (double)*ret_high_ns));
    *ret_low_ns = *ret_low_ns > 0 ? *ret_low_ns : 0;
    return status;
}

static double longest_span_ns(const struct lateness *l)
{
    int64_t longest_ns = 0;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        bool is_longer = l->run->ranks[r].is_matched && l->tables[r]->span_ns > longest_ns;
        longest_ns = is_longer ? l->tables[r]->span_ns : longest_ns;
    }
    return (double)longest_ns;
}

static enum lac_status estimate(struct lateness *l)
{
    struct lac_finding *finding = &l->run->finding;
    const struct lac_rank_table *table = l->tables[l->run->late];
    const double steps = l->steps;
    bool has_step = steps > 1.0 && table->step_mean_ns > 0;
    double whole_ns = has_step ? (double)table->step_mean_ns * steps : longest_span_ns(l);
    int64_t low_ns = 0;
    int64_t high_ns = 0;
    enum lac_status status = find_gain(l, &low_ns, &high_ns);
    double scale = whole_ns > 0.0 ? 100.0 / whole_ns : 0.0;
    double mid_ns = 0.5 * ((double)low_ns + (double)high_ns);
    finding->cost_pct = fmin(100.0, scale * (double)l->idle_ns);
    finding->cost_ns_per_step = lac_round((double)l->idle_ns / steps);
    finding->gain_low_pct = fmin(100.0, scale * (double)low_ns);
    finding->gain_mid_pct = fmin(100.0, scale * mid_ns);
    finding->gain_high_pct = fmin(100.0, scale * (double)high_ns);
    finding->step_low_ns = finding->step_mid_ns = finding->step_high_ns = LAC_UNKNOWN_NS;
    if (has_step) {
        double mean_ns = (double)table->step_mean_ns;
        finding->step_low_ns = lac_round(mean_ns * (1.0 - finding->gain_high_pct / 100.0));
        finding->step_mid_ns = lac_round(mean_ns * (1.0 - finding->gain_mid_pct / 100.0));
        finding->step_high_ns = lac_round(mean_ns * (1.0 - finding->gain_low_pct / 100.0));
    }
    finding->severity = lac_severity_of_gain(has_step ? finding->gain_mid_pct : finding->cost_pct);
    return status;
}

static void say_expected(struct lateness *l)
{
    struct lac_finding *finding = &l->run->finding;
    struct lac_text **texts = &l->run->texts;
    struct lac_text32 band = lac_format_band(finding->gain_low_pct, finding->gain_high_pct);
    const char *wish = l->is_uneven
                           ? "as much work on every rank"
                           : lac_texts_add(texts, "rank %d as fast as %s",
                                           (int)l->run->ranks[l->run->late].rank, usual_rank(l));
    if (finding->step_mid_ns != LAC_UNKNOWN_NS && finding->gain_high_pct < GAIN_MIN_PCT) {
        finding->expect = lac_texts_add(texts,
                                        "No gain yet: the other ranks need %s per step themselves, "
                                        "for data or their GPU. Fix that first, per rank.",
                                        lac_format_ns(finding->step_mid_ns).text);
        finding->severity = LAC_SEVERITY_INFO;
    } else if (finding->step_mid_ns != LAC_UNKNOWN_NS) {
        struct lac_text32 then = lac_format_ns(finding->step_mid_ns);
        struct lac_text32 now = lac_format_ns(l->tables[l->run->late]->step_mean_ns);

        finding->expect =
            strcmp(then.text, now.text) == 0
                ? lac_texts_add(texts, "%s per step, as now (%s less), with %s.", now.text,
                                band.text, wish)
                : lac_texts_add(texts, "%s per step instead of %s (%s less), with %s.", then.text,
                                now.text, band.text, wish);
    } else {
        finding->expect = lac_texts_add(
            texts, "%s less time over this recording, with %s%s.", band.text, wish,
            l->before_ns > 0 ? "; the upper end only if it is as late in every step" : "");
    }
}

/* -- all of it -------------------------------------------------------------------------------- */

/** Whether one rank causes so much more of the waiting than turns would that it is the late one. */
static bool stands_out(const struct lateness *l, uint32_t rank, uint32_t matched)
{
    int64_t sum_ns = 0;
    for (uint32_t r = 0; r < l->run->rank_count; r++) {
        sum_ns = lac_sum_ns(sum_ns, l->caused_ns[r]);
    }
    double share = fmin(LATE_SHARE_MAX, fmax(LATE_SHARE_MIN, LATE_TIMES_TURNS / (double)matched));
    double caused_ns = (double)l->caused_ns[rank];
    return caused_ns * 50.0 >= (double)l->tables[rank]->span_ns && caused_ns > 0.0 &&
           caused_ns >= share * (double)sum_ns;
}

/** Whether it causes most in three quarters of the run: one slow batch makes nobody a late rank. */
static bool is_steady(struct lateness *l, uint32_t rank)
{
    enum { PARTS = 4, INSTANCES_MIN = 16 };
    const struct lac_rank_match *match = l->match;
    uint32_t first_count = 0;
    if (match->instance_count < INSTANCES_MIN || l->tables[rank]->step_count < 3) {
        return true; /* too short to tell */
    }
    for (uint64_t part = 0; part < PARTS; part++) {
        uint64_t end = match->instance_count * (part + 1) / PARTS;
        uint32_t most = 0;
        for (uint32_t r = 0; r < l->run->rank_count; r++) {
            l->part_ns[r] = 0.0; /* free again: the reason is found on a new sum */
        }
        for (uint64_t i = match->instance_count * part / PARTS; i < end; i++) {
            const struct lac_rank_instance *it = &match->instances[i];
            int64_t wait_ns = 0;
            uint32_t last = last_of(l, &match->groups[it->group], it->index, &wait_ns);
            l->part_ns[match->groups[it->group].members[last]] +=
                is_left_out(l, i) ? 0.0 : (double)wait_ns;
        }
        for (uint32_t r = 0; r < l->run->rank_count; r++) {
            most = l->part_ns[r] > l->part_ns[most] ? r : most;
        }
        first_count += most == rank;
    }
    return first_count * 4 >= PARTS * 3;
}

static enum lac_status judge(struct lateness *l)
{
    struct lac_run *run = l->run;
    uint32_t most = 0;
    uint32_t matched = 0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        most = l->caused_ns[r] > l->caused_ns[most] ? r : most;
        matched += run->ranks[r].is_matched;
    }
    if (!stands_out(l, most, matched) || !is_steady(l, most)) {
        enum lac_status found = lac_imbalance_find(run, l->tables, l->match);
        count_last(l, most);
        const char *why = run->has_finding ? "No straggler: the ranks take turns being late."
                          : l->count == 0
                              ? "No straggler is looked for: only sends and receives match, and "
                                "stages of a pipeline wait for each other by design."
                              : "No straggler: no rank delays the others by 2 % of the time, or "
                                "they take turns being late.";
        run->note =
            lac_texts_add(&run->texts, "%s%s%s", why, run->note[0] != '\0' ? " " : "", run->note);
        return found;
    }
    run->late = most;
    run->has_finding = true;
    l->steps = l->tables[most]->step_count >= STEPS_MIN ? run->ranks[most].matched_step_count : 1.0;
    l->steps = l->steps >= STEPS_MIN ? l->steps : 1.0;
    lac_finding_init(&run->finding, LAC_FINDING_STRAGGLER_RANK);
    count_last(l, most);
    l->late_ns = l->caused_ns[most];
    l->idle_ns = idle_waiting_ns(l);
    sum_parts(l);
    find_before(l);
    const char *work = find_why(l);
    enum lac_status status = estimate(l);
    write_texts(l, work);
    say_expected(l);
    add_evidence(l);
    return status;
}

enum lac_status lac_straggler_find(struct lac_run *run, const struct lac_rank_table *const *tables,
                                   const struct lac_rank_match *match)
{
    struct lateness l = {.tables = tables, .match = match, .run = run};
    if (run->collective_count == 0) {
        run->note =
            lac_texts_add(&run->texts,
                          "No collective matches on two ranks (same name, order and time between "
                          "ends): stragglers cannot be identified from these traces.%s%s",
                          run->note[0] != '\0' ? " " : "", run->note);
        return LAC_OK;
    }
    l.caused_ns = calloc(run->rank_count, sizeof(*l.caused_ns));
    l.scratch = calloc(run->rank_count, sizeof(*l.scratch));
    l.part_ns = calloc((size_t)run->rank_count * LAC_RANK_PART_COUNT, sizeof(*l.part_ns));
    enum lac_status status =
        l.caused_ns != NULL && l.scratch != NULL && l.part_ns != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        find_caused(&l);
        status = judge(&l);
    }
    free(l.caused_ns);
    free(l.scratch);
    free(l.part_ns);
    return status;
}
