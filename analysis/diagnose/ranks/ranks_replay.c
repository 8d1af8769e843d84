/* The run played again: each rank's own time between collectives, and collectives that begin when
 * their last rank is there. */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/ranks/ranks_private.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

int64_t lac_median_ns(int64_t *values, uint32_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(*values), by_value);
    return values[(count - 1) / 2];
}

struct replay {
    const struct lac_rank_table *const *tables;
    int64_t *left_ns;  /**< by rank: end of its last collective as recorded */
    int64_t *ready_ns; /**< by rank: the same in the replay; -1 before its first */
    int64_t *own_ns;   /**< by member: from there to its arrival */
    int64_t *scratch;
    enum lac_ranks_change change;
    uint32_t faster;
    bool with_first;
};

/** The time a rank needs of its own before this collective. Before its first one it is how much
 *  later it comes than the earliest. */
static void measure(struct replay *replay, const struct lac_rank_group *group, uint64_t index)
{
    int64_t longest_ns = 0;
    for (uint32_t m = 0; m < group->member_count; m++) {
        const struct lac_collective *it = lac_rank_collective(replay->tables, group, m, index);
        int64_t dur_ns = it->end_ns - it->start_ns;
        longest_ns = dur_ns > longest_ns ? dur_ns : longest_ns;
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        const struct lac_collective *it = lac_rank_collective(replay->tables, group, m, index);
        uint32_t r = group->members[m];
        int64_t own_ns = replay->ready_ns[r] < 0 ? longest_ns - (it->end_ns - it->start_ns)
                                                 : it->start_ns - replay->left_ns[r];
        replay->own_ns[m] = own_ns > 0 ? own_ns : 0;
    }
}

static void hurry(struct replay *replay, const struct lac_rank_group *group)
{
    uint32_t count = 0;
    uint32_t own = group->member_count;
    for (uint32_t m = 0; m < group->member_count; m++) {
        if (group->members[m] == replay->faster) {
            own = m;
        } else {
            replay->scratch[count++] = replay->own_ns[m];
        }
    }
    if (own == group->member_count ||
        (replay->ready_ns[replay->faster] < 0 && !replay->with_first)) {
        return;
    }
    int64_t median_ns = lac_median_ns(replay->scratch, count);
    if (median_ns < replay->own_ns[own]) {
        replay->own_ns[own] = median_ns;
    }
}

/** All need as long as their mean. */
static void even_out(struct replay *replay, const struct lac_rank_group *group)
{
    double sum_ns = 0.0;
    if (lac_rank_group_is_transfer(group)) {
        return;
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        if (replay->ready_ns[group->members[m]] < 0 && !replay->with_first) {
            return;
        }
        sum_ns += (double)replay->own_ns[m];
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        replay->own_ns[m] = lac_round(sum_ns / group->member_count);
    }
}

static void play(struct replay *replay, const struct lac_rank_group *group, uint64_t index)
{
    int64_t begin_ns = 0;
    int64_t transfer_ns = INT64_MAX;
    measure(replay, group, index);
    if (replay->change == LAC_RANKS_ONE_FASTER) {
        hurry(replay, group);
    } else if (replay->change == LAC_RANKS_EVEN) {
        even_out(replay, group);
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        const struct lac_collective *it = lac_rank_collective(replay->tables, group, m, index);
        int64_t ready_ns = replay->ready_ns[group->members[m]];
        int64_t here_ns = lac_sum_ns(ready_ns > 0 ? ready_ns : 0, replay->own_ns[m]);
        begin_ns = here_ns > begin_ns ? here_ns : begin_ns;
        int64_t dur_ns = it->end_ns - it->start_ns;
        transfer_ns = dur_ns < transfer_ns ? dur_ns : transfer_ns;
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        uint32_t r = group->members[m];
        replay->ready_ns[r] = lac_sum_ns(begin_ns, transfer_ns);
        replay->left_ns[r] = lac_rank_collective(replay->tables, group, m, index)->end_ns;
    }
}

enum lac_status lac_ranks_replay(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                 const struct lac_rank_match *match, enum lac_ranks_change change,
                                 uint32_t faster, bool with_first, int64_t *ret_ns)
{
    int64_t *memory = calloc((size_t)rank_count * 4 + 1, sizeof(*memory));
    if (memory == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct replay replay = {.tables = tables,
                            .left_ns = memory,
                            .ready_ns = memory + rank_count,
                            .own_ns = memory + (size_t)rank_count * 2,
                            .scratch = memory + (size_t)rank_count * 3,
                            .change = change,
                            .faster = faster,
                            .with_first = with_first};
    for (uint32_t r = 0; r < rank_count; r++) {
        replay.ready_ns[r] = -1;
    }
    for (uint64_t i = 0; i < match->instance_count; i++) {
        const struct lac_rank_instance *it = &match->instances[i];
        play(&replay, &match->groups[it->group], it->index);
    }
    int64_t last_ns = 0;
    for (uint32_t r = 0; r < rank_count; r++) {
        last_ns = replay.ready_ns[r] > last_ns ? replay.ready_ns[r] : last_ns;
    }
    free(memory);
    *ret_ns = last_ns;
    return LAC_OK;
}

/* -- with a change ----------------------------------------------------------------------------- */

/** Of the time of a rank's collectives the part that is transfer: the rest it waits for others. */
static double transfer_part(const struct lac_rank_facts *facts)
{
    double transfer_ns = (double)facts->transfer_ns;
    double wait_ns = (double)facts->wait_ns;
    bool is_known = facts->is_matched && transfer_ns + wait_ns > 0.0;
    return is_known ? transfer_ns / (transfer_ns + wait_ns) : 1.0;
}

/** A step of a rank whose collectives take `part` of their time, from what it is for each of
 *  LAC_COMM_PARTS and for all of it. It is no line from none to all: what hides costs nothing. */
static double own_step(const double steps_ns[LAC_COMM_PARTS + 1], double part)
{
    const double at = part * LAC_COMM_PARTS;
    const int below = at < LAC_COMM_PARTS ? (int)at : LAC_COMM_PARTS - 1;
    return steps_ns[below] + (at - below) * (steps_ns[below + 1] - steps_ns[below]);
}

/** The longest of all ranks' own steps, before and after. */
struct longest {
    double now_ns, low_ns, mid_ns, high_ns;
};

static const char *why_not_run(struct lac_run *run, const struct lac_rank_what_if *ranks)
{
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (ranks[r].why_not[0] != '\0') {
            return lac_texts_add(&run->texts, "rank %d: %s", (int)run->ranks[r].rank,
                                 ranks[r].why_not);
        }
        if (run->ranks[r].step_mean_ns == LAC_UNKNOWN_NS ||
            ranks[r].step.mean_ns == LAC_UNKNOWN_NS) {
            return lac_texts_add(&run->texts,
                                 "rank %d: no steps were found, which could be replayed",
                                 (int)run->ranks[r].rank);
        }
    }
    return run->collective_count > 0
               ? ""
               : "no collective was found on two ranks, so what they wait for each other is not "
                 "known: each rank's own answer takes the others as they were";
}

void lac_run_what_if(struct lac_run *run, const struct lac_rank_what_if *ranks,
                     struct lac_run_what_if *ret_what_if)
{
    const struct lac_what_if_step unknown = {LAC_UNKNOWN_NS, LAC_UNKNOWN_NS, LAC_UNKNOWN_NS};
    *ret_what_if = (struct lac_run_what_if){
        .step = unknown, .now_ns = LAC_UNKNOWN_NS, .assumption = "", .why_not = ""};
    ret_what_if->why_not = why_not_run(run, ranks);
    if (ret_what_if->why_not[0] != '\0') {
        return;
    }
    struct longest longest = {0.0, 0.0, 0.0, 0.0};
    double now_ns = 0.0;
    for (uint32_t r = 0; r < run->rank_count; r++) {
        const struct lac_rank_facts *facts = &run->ranks[r];
        const struct lac_rank_what_if *it = &ranks[r];
        const double part = transfer_part(facts);
        double step_ns[LAC_COMM_PARTS + 1];
        double low_ns[LAC_COMM_PARTS + 1];
        double mid_ns[LAC_COMM_PARTS + 1];
        double high_ns[LAC_COMM_PARTS + 1];
        for (int i = 0; i <= LAC_COMM_PARTS; i++) {
            const bool is_all = i == LAC_COMM_PARTS;
            const struct lac_what_if_step *step = is_all ? &it->step : &it->by_comm[i];
            step_ns[i] = (double)(is_all ? facts->step_mean_ns : it->now_by_comm_ns[i]);
            low_ns[i] = (double)step->low_ns;
            mid_ns[i] = (double)step->mean_ns;
            high_ns[i] = (double)step->high_ns;
        }
        now_ns += (double)facts->step_mean_ns / run->rank_count;
        longest.now_ns = fmax(longest.now_ns, own_step(step_ns, part));
        longest.low_ns = fmax(longest.low_ns, own_step(low_ns, part));
        longest.mid_ns = fmax(longest.mid_ns, own_step(mid_ns, part));
        longest.high_ns = fmax(longest.high_ns, own_step(high_ns, part));
    }
    /* now one rank is late, now another: that stays, at best not */
    double in_turn_ns = fmax(0.0, now_ns - longest.now_ns);
    double mid_ns = longest.mid_ns + in_turn_ns;
    ret_what_if->now_ns = lac_round(now_ns);
    ret_what_if->step = (struct lac_what_if_step){
        .low_ns = lac_round(fmin(longest.low_ns, mid_ns)),
        .mean_ns = lac_round(mid_ns),
        .high_ns = lac_round(fmax(longest.high_ns + in_turn_ns, mid_ns)),
    };
    ret_what_if->assumption = lac_texts_add(
        &run->texts,
        "All %u ranks change alike, and the one that needs longest sets the pace: from replaying "
        "each, with collectives that take as long as the rank that entered last needed.",
        (unsigned)run->rank_count);
}
