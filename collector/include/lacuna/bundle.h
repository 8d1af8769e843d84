#ifndef LACUNA_BUNDLE_H
#define LACUNA_BUNDLE_H

/*
 * A recording on its way: parts of its files. While the job still runs, in the order in which they
 * became final; of a recording that is complete, file by file. FORMAT.md explains it; this header
 * is the layout. Version 1 stays readable for ever.
 *
 *   bundle = LAC_BUNDLE_MAGIC, then parts
 *   part   = struct lac_bundle_part, `name_bytes` of name, `data_bytes` of content
 *
 * Everything is little endian. A part places its content at `offset` of the file of that name,
 * which is then at least `offset + size_bytes` long: what lies between is zero. A later part
 * replaces what an earlier one put there. A bundle that ends anywhere is readable up to there.
 */

#include <stddef.h>
#include <stdint.h>

#define LAC_BUNDLE_MAGIC      "LACPART1"
#define LAC_BUNDLE_PART_MAGIC 0x5452504cu /* "LPRT" */
#define LAC_BUNDLE_NAME_BYTES 255u
#define LAC_BUNDLE_DATA_BYTES (16u << 20)
#define LAC_BUNDLE_OFFSET_MAX ((uint64_t)1 << 44)

struct lac_bundle_part {
    uint32_t magic;      /**< LAC_BUNDLE_PART_MAGIC */
    uint32_t name_bytes; /**< 1 to LAC_BUNDLE_NAME_BYTES; a name, never a path */
    uint32_t size_bytes; /**< of the part in its file, at most LAC_BUNDLE_DATA_BYTES */
    uint32_t data_bytes; /**< at most size_bytes: zeros at the end are left out */
    uint64_t offset;     /**< at most LAC_BUNDLE_OFFSET_MAX */
};

_Static_assert(sizeof(struct lac_bundle_part) == 24, "parts of a bundle");

#endif
