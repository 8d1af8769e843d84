#ifndef LAC_COLLECTOR_BASE_BYTE_SIZE_H
#define LAC_COLLECTOR_BASE_BYTE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * A whole number as people give sizes: digits, then K, M, G or T (of 1024) in either case, which
 * "i", "B" or "iB" may follow.
 *
 * @return false: anything else, or more than 64 bits; *ret_value is as it was
 */
bool lac_byte_size_parse(const char *text, uint64_t *ret_value);

#endif
