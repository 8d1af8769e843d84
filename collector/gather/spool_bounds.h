#ifndef LAC_COLLECTOR_GATHER_SPOOL_BOUNDS_H
#define LAC_COLLECTOR_GATHER_SPOOL_BOUNDS_H

/* What of a spool's header is believed: nothing that the file itself does not bear out. */

#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_SPOOL_SEGMENT_BYTES_MAX = 16 << 20,
    LAC_SPOOL_SEGMENTS_MAX = 1 << 20, /* what the importer takes */
};

/**
 * Whether a copy of a header is one that this version reads, and its sizes are possible. Cuts
 * text_bytes and the text to what is there. To be called once, on memory that nobody else changes.
 */
bool lac_spool_header_check(struct lac_spool_header *header);

/** How many segments there are: `count`, as a header says, but no more than are whole in a file of
 * `size_bytes`. @param segment_bytes of a checked header */
uint64_t lac_spool_segments_in(uint64_t count, uint64_t size_bytes, uint32_t segment_bytes);

#endif
