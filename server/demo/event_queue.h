#ifndef LAC_SERVER_DEMO_EVENT_QUEUE_H
#define LAC_SERVER_DEMO_EVENT_QUEUE_H

/*
 * What happens next in the simulation. A binary heap by (time, order of entry), so
 * that entries of the same time leave in the order in which they came.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_demo_entry {
    int64_t at_ns;
    uint64_t order;
    int32_t what;  /**< caller's own code */
    int64_t which; /**< caller's own number */
};

struct lac_demo_queue {
    struct lac_demo_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint64_t entered;
};

/** @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_demo_queue_add(struct lac_demo_queue *queue, int64_t at_ns,
                                                int32_t what, int64_t which);

/** Take the earliest entry. @return false when there is none */
bool lac_demo_queue_take(struct lac_demo_queue *queue, struct lac_demo_entry *ret_entry);

void lac_demo_queue_done(struct lac_demo_queue *queue);

#endif
