#ifndef LAC_COLLECTOR_LAUNCH_DRAIN_PRIVATE_H
#define LAC_COLLECTOR_LAUNCH_DRAIN_PRIVATE_H

/* What drain*.c share. */

#include "collector/launch/drain.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

struct source;

struct lac_drain {
    const char *spool_folder;
    const char *output_folder;
    struct source *sources;
    uint8_t *buffer; /* one segment of the largest size */
    struct lac_drain_counts counts;
    enum lac_spool_stop wish;
    uint64_t limit_bytes;
    uint64_t others_bytes; /* of files that others write */
    uint64_t lost_events;  /* in segments that did not fit */
    uint64_t next_refresh_ns;
    bool refreshes;  /* this round copies what is half filled, too */
    bool only_looks; /* the processes are not ours to tell */
};

#endif
