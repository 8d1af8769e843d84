#ifndef LAC_ANALYSIS_FLAME_FLAME_WORKER_H
#define LAC_ANALYSIS_FLAME_FLAME_WORKER_H

/*
 * Who was late: the worker whose batch a training thread waited for, found by time alone. A wait
 * ends when its batch is handed over, so the batch belongs to the last fetch that ended before
 * that.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

/** Clocks are read on both sides of the queue, and the queue itself takes a while. */
#define LAC_FLAME_HAND_OVER_NS INT64_C(2000000)

/** Names of the slices in question, and of the cause. */
#define LAC_FLAME_WAIT_NAME  "loader.wait"
#define LAC_FLAME_FETCH_NAME "loader.fetch"
#define LAC_FLAME_CAUSE_NAME "data_wait"

struct lac_flame_fetch {
    int64_t start_ns, end_ns;
    uint32_t track;
};

struct lac_flame_workers {
    struct lac_flame_fetch *fetches; /**< ascending end_ns */
    uint64_t fetch_count;
    struct lac_flame_fetch *waits; /**< of training threads, ascending start_ns */
    uint64_t wait_count;
    uint32_t wait_name; /**< string id of "loader.wait", 0 none */
    uint32_t data_wait; /**< string id of the cause, 0 none */
};

/** Gather the model's fetches and waits; both empty when it has no workers. Cost: one pass over
 * names. */
LAC_MUST_USE enum lac_status lac_flame_workers_init(const struct lac_model *model,
                                                    struct lac_flame_workers *ret_workers);
void lac_flame_workers_done(struct lac_flame_workers *workers);

/** Track of the worker that the idle time [start_ns, end_ns), most of it in one wait for data,
 *  waited for. LAC_NONE: not recorded, or the worker had finished before, so that the time went
 *  into the hand-over. */
uint32_t lac_flame_late_worker(const struct lac_flame_workers *workers, int64_t start_ns,
                               int64_t end_ns);

#endif
