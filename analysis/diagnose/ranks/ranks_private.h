#ifndef LAC_ANALYSIS_DIAGNOSE_RANKS_PRIVATE_H
#define LAC_ANALYSIS_DIAGNOSE_RANKS_PRIVATE_H

/*
 * Private to ranks_*.c and straggler.c, in the order in which lac_ranks_join() uses them:
 *
 *   ranks_table.c   a rank's collectives, and what its device did between them
 *   ranks_store.c   the same as bytes, and from bytes
 *   ranks_match.c   which collectives of several ranks are the same one
 *   ranks_align.c   the ranks on one clock, for pictures
 *   ranks_replay.c  the run played again with a rank that comes earlier, or with all as one
 *   straggler.c     who is late, why, and what it costs
 *   imbalance.c     where nobody is: who takes turns being late, why, and what that costs
 */

#include "analysis/diagnose/facts/collectives.h" // IWYU pragma: export
#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/ranks/ranks.h"            // IWYU pragma: export
#include "analysis/diagnose/ranks/ranks_thresholds.h" // IWYU pragma: export

/** What a device does from one collective to the next: idle by cause, and work (beside collectives,
 *  too: who waits in one computes there). */
enum { LAC_RANK_WORK = LAC_CAUSE_COUNT_, LAC_RANK_PART_COUNT };

struct lac_collective {
    int64_t start_ns, end_ns;
    uint32_t name;
    bool is_first; /**< in the trace: what came before it is recorded in part */
    float part_ns[LAC_RANK_PART_COUNT]; /**< idle since the end of the one before, or since lead_ns;
                                             work of all streams since its start */
};

/** One name's collectives: at[first, first + count), by start. */
struct lac_collective_row {
    char *name;
    uint64_t first, count;
    uint8_t kind; /**< enum lac_collective_kind; of several under one name: BETWEEN */
};

/** A kernel that computes, to tell slower from more. */
struct lac_rank_kernel {
    uint64_t name_hash;
    uint64_t count;
    int64_t total_ns;
};
enum { LAC_RANK_KERNELS_MAX = 24 };

struct lac_rank_table {
    char *name, *host, *device;
    int32_t rank, world_size; /**< -1 not recorded */
    char letter;
    char cause[24];
    uint32_t step_count, step_kept_count;
    int64_t step_mean_ns;
    int64_t need_ns; /**< of a step with no other rank to wait for; 0 unknown */
    int64_t host_ns; /**< of a step: its host's own work; LAC_UNKNOWN_NS not known */
    double idle_pct, exposed_comm_pct;
    bool has_device;
    int64_t device_id;
    int64_t first_ns; /**< of the device's operations */
    int64_t lead_ns;  /**< where recording of the first collective's approach begins */
    int64_t span_ns;
    int64_t partition_ns[LAC_PART_COUNT_];
    int64_t idle_ns;
    int64_t gap_at_ns, gap_ns; /**< the longest; 0 none */
    uint8_t gap_cause;
    uint64_t kernel_count;
    struct lac_rank_kernel kernels[LAC_RANK_KERNELS_MAX]; /**< by total */
    uint32_t kernel_kept_count;
    struct lac_collective *at; /**< by name, then start */
    uint64_t count, capacity;
    struct lac_collective_row *rows; /**< by name */
    uint32_t row_count;
};

/** The same collectives on some ranks: entry i of a member is at[first + i]. */
struct lac_rank_group {
    uint32_t member_count;
    uint32_t *members; /**< index of the rank */
    uint64_t *first;   /**< in the table of that rank */
    uint64_t count;
    uint8_t kind; /**< enum lac_collective_kind; BETWEEN where the members' differ */
};

/** One collective of a group. */
struct lac_rank_instance {
    int64_t key_ns; /**< to sort by: its end, on the clock of one rank */
    uint32_t group;
    uint64_t index;
};

struct lac_rank_match {
    struct lac_rank_group *groups;
    uint32_t group_count, group_capacity;
    struct lac_rank_instance *instances; /**< in an order that every rank has */
    uint64_t instance_count;
    int64_t *offset_ns; /**< by rank: what to add to its clock for that of its island */
    uint32_t *island;   /**< by rank: the first rank of those that collectives connect */
};

/** The collective of a group's member. */
static inline const struct lac_collective *
lac_rank_collective(const struct lac_rank_table *const *tables, const struct lac_rank_group *group,
                    uint32_t member, uint64_t index)
{
    return &tables[group->members[member]]->at[group->first[member] + index];
}

/** Communication of a rank with nothing beside it, in the steps in which its collectives match. */
static inline double lac_rank_exposed_ns(const struct lac_rank_table *table,
                                         const struct lac_rank_facts *facts)
{
    const double part =
        facts->step_count > 0 ? (double)facts->matched_step_count / (double)facts->step_count : 1.0;
    return part * (double)table->partition_ns[LAC_PART_EXPOSED_COMM];
}

/** Whether it goes from one rank to another, or may: those do not begin when all are there. */
static inline bool lac_rank_group_is_transfer(const struct lac_rank_group *group)
{
    return group->kind == LAC_COLLECTIVE_SEND || group->kind == LAC_COLLECTIVE_RECEIVE ||
           (group->kind == LAC_COLLECTIVE_BETWEEN && group->member_count < 3);
}

/** A rank that is there twice is looked at once. @param is_left_out all false */
void lac_ranks_leave_out_doubles(const struct lac_rank_table *const *tables, uint32_t rank_count,
                                 bool *is_left_out);

/** Ranks that `is_left_out` names are not looked at. */
LAC_MUST_USE enum lac_status lac_ranks_match(const struct lac_rank_table *const *tables,
                                             uint32_t rank_count, const bool *is_left_out,
                                             struct lac_rank_match *ret_match);
void lac_rank_match_done(struct lac_rank_match *match);

/** What is changed when the run is played again. */
enum lac_ranks_change {
    LAC_RANKS_AS_RECORDED = 0,
    LAC_RANKS_ONE_FASTER, /**< a rank comes when the median of the others does, where that is earlier */
    LAC_RANKS_EVEN, /**< every rank needs what their mean is now: the work stays, its shares do
                               not differ. Transfers from one rank to another stay as they are */
};

/**
 * Time from the first matched collective to the last. Every rank needs its own time from the end of
 * one to the start of the next; a collective begins when its last rank is there and takes its
 * transfer.
 *
 * @param faster      the rank that ONE_FASTER is about
 * @param with_first  whether the change is to the first collective too
 */
LAC_MUST_USE enum lac_status lac_ranks_replay(const struct lac_rank_table *const *tables,
                                              uint32_t rank_count,
                                              const struct lac_rank_match *match,
                                              enum lac_ranks_change change, uint32_t faster,
                                              bool with_first, int64_t *ret_ns);

/** Lower median; sorts. 0 without values. */
int64_t lac_median_ns(int64_t *values, uint32_t count);

/** Fill late, finding and note of a run whose collectives are matched. */
LAC_MUST_USE enum lac_status lac_straggler_find(struct lac_run *run,
                                                const struct lac_rank_table *const *tables,
                                                const struct lac_rank_match *match);

/** Whether so many exchanges repeat in a step that they are those of experts' tokens. */
bool lac_ranks_exchange_tokens(const struct lac_rank_match *match, uint32_t step_count);

/** What evens out the ranks' work: brief, change, costs, effort. */
void lac_even_work_advise(struct lac_finding *finding, bool is_experts);

/** Fill the finding of a run in which no rank is the late one. */
LAC_MUST_USE enum lac_status lac_imbalance_find(struct lac_run *run,
                                                const struct lac_rank_table *const *tables,
                                                const struct lac_rank_match *match);

#endif
