#include "server/demo/pipeline.h"

#include <stdint.h>
#include <stdlib.h>

enum { EVENTS_FIRST = 16384 };

struct lac_demo_event *lac_demo_event_add(struct lac_demo_event **events, uint64_t *count,
                                          uint64_t *capacity, int thread,
                                          enum lac_demo_event_kind kind)
{
    if (*count == *capacity) {
        uint64_t wanted = *capacity == 0 ? EVENTS_FIRST : *capacity * 2;
        void *moved = realloc(*events, wanted * sizeof(**events));
        if (moved == NULL) {
            return NULL;
        }
        *events = moved;
        *capacity = wanted;
    }
    struct lac_demo_event *event = &(*events)[(*count)++];
    *event = (struct lac_demo_event){
        .cpu_ns = -1,
        .number = -1,
        .worker = -1,
        .thread = (uint16_t)thread,
        .kind = (uint8_t)kind,
    };
    return event;
}
