#include "collector/gather/spool_bounds.h"

#include "lacuna/spool.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

bool lac_spool_header_check(struct lac_spool_header *header)
{
    assert(header != NULL);
    if (header->text_bytes > LAC_SPOOL_TEXT_BYTES) {
        header->text_bytes = LAC_SPOOL_TEXT_BYTES;
    }
    header->text[LAC_SPOOL_TEXT_BYTES - 1] = '\0';
    return memcmp(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic)) == 0 &&
           header->version == LAC_SPOOL_VERSION && header->segment_bytes > 0 &&
           header->segment_bytes % 65536 == 0 &&
           header->segment_bytes <= LAC_SPOOL_SEGMENT_BYTES_MAX;
}

uint64_t lac_spool_segments_in(uint64_t count, uint64_t size_bytes, uint32_t segment_bytes)
{
    assert(segment_bytes > 0);
    const uint64_t whole = size_bytes > LAC_SPOOL_SEGMENTS_OFFSET
                               ? (size_bytes - LAC_SPOOL_SEGMENTS_OFFSET) / segment_bytes
                               : 0;
    const uint64_t most = whole < LAC_SPOOL_SEGMENTS_MAX ? whole : LAC_SPOOL_SEGMENTS_MAX;

    return count < most ? count : most;
}
