#ifndef LAC_TESTS_SUPPORT_PATCHED_SPOOL_H
#define LAC_TESTS_SUPPORT_PATCHED_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Spools for fuzz targets: sound ones, and what is wrong with them. The input is a list of
 *
 *   u8 kind + 4 * file, u8 after, u16 segment (LAC_PATCH_HEADER: the file's header), u32 offset in
 *   it, u8 length, `length` bytes
 *
 * kind 0 writes the bytes there; 1 does so later, after so many looks; 2 cuts the file there; 3
 * cuts it later. So a single byte of input changes a field, and mutations keep the rest sound.
 */

enum { LAC_PATCH_WRITE = 0, LAC_PATCH_LATER = 1, LAC_PATCH_CUT = 2, LAC_PATCH_CUT_LATER = 3 };
enum { LAC_PATCH_HEADER = 0xffff };
enum { LAC_PATCHED_SEGMENT = 65536, LAC_PATCHED_SEGMENTS = 4 };
enum { LAC_PATCHED_BYTES = (1 + LAC_PATCHED_SEGMENTS) * LAC_PATCHED_SEGMENT };

struct lac_patch {
    unsigned kind;
    unsigned file;
    uint32_t after;
    uint64_t offset; /**< in the file */
    const uint8_t *bytes;
    size_t length;
};

/** The next patch of the input; moves `*data` and `*size_bytes` on. @return false: no more */
bool lac_patch_next(const uint8_t **data, size_t *size_bytes, struct lac_patch *ret);

/** A sound spool: names, events of two threads, GPU records. */
void lac_patched_spool_make(uint8_t bytes[LAC_PATCHED_BYTES]);

/** All patches of kind WRITE and CUT of a file. @return bytes of the file */
size_t lac_patched_spool(const uint8_t *data, size_t size_bytes, unsigned file,
                         uint8_t bytes[LAC_PATCHED_BYTES]);

/** A structure-aware mutation: mostly a patch of a field that matters to a value that matters.
 * @return the new size, 0: mutate the bytes instead */
size_t lac_patches_mutate(uint8_t *data, size_t size_bytes, size_t capacity, unsigned seed);

#endif
