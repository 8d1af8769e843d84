#ifndef LAC_COLLECTOR_HANG_HANG_RULE_H
#define LAC_COLLECTOR_HANG_HANG_RULE_H

/*
 * When a job that makes no progress hangs. Decided from a few numbers a look, without input or
 * output, so that a test can play thousands of jobs:
 *
 *   GOES ON -> (quiet for longer than the pace explains) asks what the processes do
 *           -> (quiet for as long as what they do may take) ALARM -> (progress) goes on
 *
 * The pace is the job's own: the 99th percentile of its last quiet times.
 */

#include <stdbool.h>
#include <stdint.h>

/** What the processes do, as far as their stacks tell: how long that may take. */
enum lac_hang_kind {
    LAC_HANG_UNKNOWN, /**< nobody answered */
    LAC_HANG_BLOCKED, /**< nobody works: locks, reads, collectives */
    LAC_HANG_LOADING, /**< a batch is being made, or waited for */
    LAC_HANG_BUSY,    /**< some rank computes, sleeps or waits for a program that it started */
    LAC_HANG_LONG,    /**< some rank compiles, or writes a checkpoint */
};

/** A look at the job. Counts may start anywhere, and never fall unless a process ended. */
struct lac_hang_look {
    uint64_t progress; /**< ranges that the threads which train opened */
    uint64_t steps;    /**< training steps that have ended */
    uint64_t io_bytes; /**< read and written; 0: not looked at */
    uint64_t births;   /**< processes that were started */
    bool is_working;   /**< a thread that trains has a core */
    bool is_stopped;   /**< the whole job is stopped, as by Ctrl-Z or a batch system */
};

enum lac_hang_wish {
    LAC_HANG_GO_ON,
    LAC_HANG_ASK,     /**< ask the processes, then call lac_hang_rule_answer() */
    LAC_HANG_ALARM,   /**< it hangs; said once */
    LAC_HANG_RESUMED, /**< there is progress again after an alarm */
};

enum { LAC_HANG_GAPS = 256 };

struct lac_hang_rule {
    double scale; /**< of all floors; 1 except in tests */
    struct lac_hang_look last;
    bool has_looked;
    uint64_t looked_ns;   /**< the last look */
    uint64_t progress_ns; /**< when there was progress last */
    uint64_t active_ns;   /**< the same, or other signs of life */
    uint64_t life_ns;     /**< the same, of what is looked at here alone */
    uint64_t asked_ns;    /**< 0: not in this quiet time */
    enum lac_hang_kind kind;
    bool is_alarmed;
    uint64_t longest_ns; /**< quiet time that ended by itself although it was suspected */
    uint64_t gap_ns[LAC_HANG_GAPS];
    uint32_t gap_count; /**< so far */
};

/** @param scale of all floors: 1, or less in a test that cannot wait */
void lac_hang_rule_begin(struct lac_hang_rule *rule, double scale);

/** A look at `now_ns` of a clock that nobody sets; four a second are enough. A few ns, and a sort of
 * 256 numbers while the job is quiet. */
enum lac_hang_wish lac_hang_rule_next(struct lac_hang_rule *rule, uint64_t now_ns,
                                      const struct lac_hang_look *look);

/** What the processes answered. */
void lac_hang_rule_answer(struct lac_hang_rule *rule, uint64_t now_ns, enum lac_hang_kind kind);

/** The same, learned without asking again. */
void lac_hang_rule_learn(struct lac_hang_rule *rule, enum lac_hang_kind kind);

/** Another part of the job, which is not looked at here, had progress then: the quiet time begins there,
 * if that is later. It says nothing of the pace.
 *
 * @param life_ns when it had a sign of life, which counts as long as one of ours; 0: not known */
void lac_hang_rule_elsewhere(struct lac_hang_rule *rule, uint64_t progress_ns, uint64_t life_ns);

/** The job was taken for stopped as a whole, and is not: the quiet time began then. */
void lac_hang_rule_not_stopped(struct lac_hang_rule *rule, uint64_t progress_ns);

/** How long there has been no progress. */
uint64_t lac_hang_rule_quiet_ns(const struct lac_hang_rule *rule, uint64_t now_ns);

/** The longest time without progress that the job's own pace explains; 0: no pace is known. */
uint64_t lac_hang_rule_pace_ns(const struct lac_hang_rule *rule);

#endif
