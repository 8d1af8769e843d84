#include "server/demo/event_queue.h"

#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>

static bool before(const struct lac_demo_entry *a, const struct lac_demo_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct lac_demo_entry *a, struct lac_demo_entry *b)
{
    struct lac_demo_entry kept = *a;
    *a = *b;
    *b = kept;
}

enum lac_status lac_demo_queue_add(struct lac_demo_queue *queue, int64_t at_ns, int32_t what,
                                   int64_t which)
{
    if (!LAC_RESERVE(queue->entries, queue->capacity, queue->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    uint32_t at = queue->count++;
    queue->entries[at] = (struct lac_demo_entry){at_ns, queue->entered++, what, which};
    while (at > 0 && before(&queue->entries[at], &queue->entries[(at - 1) / 2])) {
        swap(&queue->entries[at], &queue->entries[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    return LAC_OK;
}

bool lac_demo_queue_take(struct lac_demo_queue *queue, struct lac_demo_entry *ret_entry)
{
    if (queue->count == 0) {
        return false;
    }
    *ret_entry = queue->entries[0];
    queue->entries[0] = queue->entries[--queue->count];
    for (uint32_t at = 0;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < queue->count; child++) {
            if (before(&queue->entries[child], &queue->entries[least])) {
                least = child;
            }
        }
        if (least == at) {
            return true;
        }
        swap(&queue->entries[at], &queue->entries[least]);
        at = least;
    }
}

void lac_demo_queue_done(struct lac_demo_queue *queue)
{
    free(queue->entries);
    *queue = (struct lac_demo_queue){0};
}
