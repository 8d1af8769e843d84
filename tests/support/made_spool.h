#ifndef LAC_TESTS_SUPPORT_MADE_SPOOL_H
#define LAC_TESTS_SUPPORT_MADE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

/**
 * A spool with a sound header in a file without a name. The bytes are its segments, one after the
 * other, at most 16:
 *
 *   kind, clock of GPU records, thread, how many ids of the program or changes of thread it holds,
 *   u32 length, then `length` bytes of records
 *
 * @return a descriptor, the caller's to close; import it as /proc/self/fd/N. Ends the program when
 *         that fails.
 */
int lac_made_spool(const uint8_t *data, size_t size_bytes);

#endif
