#ifndef LAC_COLLECTOR_BASE_TAR_H
#define LAC_COLLECTOR_BASE_TAR_H

/* The header block of a tar archive, to write (ustar) and to read (ustar, GNU, pax, older ones). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_TAR_BLOCK_BYTES = 512,
    LAC_TAR_NAME_BYTES = 100,   /**< of a name in a header, without a NUL when it is full */
    LAC_TAR_PREFIX_BYTES = 155, /**< of the path before it, in ustar */

    /* where a header has what */
    LAC_TAR_NAME_AT = 0,
    LAC_TAR_TYPE_AT = 156,
    LAC_TAR_MAGIC_AT = 257,
    LAC_TAR_PREFIX_AT = 345,
};

/**
 * A header of ustar, with neither owner nor time.
 *
 * @param block LAC_TAR_BLOCK_BYTES of it
 * @param name  its first LAC_TAR_NAME_BYTES bytes are taken
 * @param type  '0' a file, 'x' a pax header of the file that follows
 */
void lac_tar_header_make(uint8_t *block, const char *name, char type, uint64_t size_bytes);

/** Whether a block is a header: its checksum fits. */
bool lac_tar_is_header(const uint8_t *block, size_t size_bytes);

/** The size that a header states. @return false: it makes no sense */
bool lac_tar_header_size(const uint8_t *block, uint64_t *ret_size_bytes);

/** Zeros that follow content of so many bytes. */
uint64_t lac_tar_padding(uint64_t size_bytes);

#endif
