#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "server/demo/pipeline.h"

#include <stdint.h>
#include <stdlib.h>

struct lac_demo_event *lac_demo_event_add(struct lac_demo_event **events, uint64_t *count,
                                          uint64_t *capacity, int thread,
                                          enum lac_demo_event_kind kind)
{
    if (LAC_GROW(*events, capacity, *count + 1) != LAC_OK) {
        return NULL;
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
