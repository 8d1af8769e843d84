#ifndef LAC_SERVER_STORE_TRACE_NAME_TOTALS_H
#define LAC_SERVER_STORE_TRACE_NAME_TOTALS_H

/*
 * Totals of slices by name and kind, inside an interval: what an area of the timeline holds.
 *
 * A slice counts if it overlaps the interval, or if it has no length and starts in it; its times
 * are those inside the interval. Its self time is what its children leave of that. Totals of parts
 * add up: a child takes its time from its parent's row wherever the parent was counted, so the row
 * of a part alone may have a negative self time.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>

/** A table by (name, kind). All zero is an empty one. */
struct lac_name_totals {
    struct lac_area_name *rows; /**< in order of first appearance; owned */
    uint32_t count, capacity;
    uint32_t *slots; /**< row + 1, 0 free; a power of two of them */
    uint32_t slot_count;
};

void lac_name_totals_done(struct lac_name_totals *totals);

/** Empty, but keep the memory. */
void lac_name_totals_clear(struct lac_name_totals *totals);

/** Add what `row` says to the row of its name and kind. @return false when out of memory */
LAC_MUST_USE bool lac_name_totals_add(struct lac_name_totals *totals,
                                      const struct lac_area_name *row);

/** The last slice of a lane, which may be the parent of what follows. */
struct lac_open_slice {
    int64_t end_ns; /**< -1: none yet */
    uint32_t name;
    uint8_t kind;
};

/** Slices [0, at->count) of one track, in order of their starts. */
struct lac_totals_part {
    const struct lac_slices *at; /**< columns start, dur, name, kind; lane if `open` */
    uint64_t first;              /**< id of the first one */
    int64_t t0_ns, t1_ns;
    /** By lane: what came before; brought up to date. NULL where lanes are not nested, so that all
     *  time is self time. */
    struct lac_open_slice *open;
};

/** Add the slices of a part. @return false when out of memory */
LAC_MUST_USE bool lac_name_totals_count(struct lac_name_totals *totals,
                                        const struct lac_totals_part *part);

#endif
