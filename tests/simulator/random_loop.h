#ifndef LAC_TESTS_SIMULATOR_RANDOM_LOOP_H
#define LAC_TESTS_SIMULATOR_RANDOM_LOOP_H

/*
 * Random training loops as examination papers for a diagnosis: a trace, and beside it what is true
 * of it. Truth is by counterfactual: the loop is run again without each of its causes.
 */

#include "analysis/model/status.h"
#include "tests/simulator/scenario.h"
#include "tests/simulator/train_loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_DEMO_TABLE_WORKERS = 40 };

struct lac_demo_answer {
    int64_t mean_ns;
    int64_t fetch_mean_ns;
    int64_t unstarved_ns;       /**< mean step with more workers than could ever be used */
    int32_t workers_wanted;     /**< ceil(1.15 f / s) */
    int32_t workers_with_cores; /**< the same, if every worker had a core */
    bool is_possible[LAC_DEMO_CAUSE_COUNT_];
    int64_t without_ns[LAC_DEMO_CAUSE_COUNT_];         /**< mean step when that cause is removed */
    int64_t by_workers_ns[LAC_DEMO_TABLE_WORKERS + 1]; /**< index: workers; 0 unused */
    enum lac_demo_cause best;                          /**< LAC_DEMO_CAUSE_COUNT_: none gains 3 % */
};

/** All ranks of a scenario, until none of them joins a collective at another time. */
LAC_MUST_USE enum lac_status lac_demo_run_ranks(const struct lac_demo_scenario *scenario,
                                                bool is_quiet, struct lac_demo_loop_run *ret_runs);

/** Cost: one simulation per change and per number of workers. */
LAC_MUST_USE enum lac_status lac_demo_answer_of(const struct lac_demo_scenario *scenario,
                                                struct lac_demo_answer *ret_answer);

struct lac_random_loops {
    const char *dir;
    uint64_t seed; /**< of the first; the next ones count up */
    uint64_t count;
    int how_many;     /**< causes: 1 one, 2 several, 0 drawn */
    bool with_ranks;  /**< several ranks each, a trace per rank */
    bool with_phases; /**< what jobs do beside steps, and when; no causes */
};

/**
 * Write DIR/random-SEED.json (or -rankR.json) and DIR/random-SEED.truth.json for each; with phases
 * DIR/phases-SEED.json and what is true of those.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM, LAC_ERR_MISUSE, with `reterr` naming the file
 */
LAC_MUST_USE enum lac_status lac_random_loops_write(const struct lac_random_loops *loops,
                                                    struct lac_error *reterr);

#endif
