#ifndef LAC_SERVER_INGEST_HOST_LIMITS_H
#define LAC_SERVER_INGEST_HOST_LIMITS_H

/*
 * Limits that this process was started under (ulimit, systemd, a login node): an import gets what
 * we want or what they leave, whichever is less, and says so where that was too little.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What an import may use up, by the limit of the system. */
enum lac_host_limit {
    LAC_HOST_ADDRESSES = 0, /**< bytes; ulimit -v */
    LAC_HOST_FILE,          /**< bytes of one file; -f */
    LAC_HOST_CPU,           /**< seconds; -t */
    LAC_HOST_CORE,          /**< bytes; -c */
    LAC_HOST_DESCRIPTORS,   /**< -n */
    LAC_HOST_PROCESSES,     /**< -u */
};

/** The smaller of `wanted` and the hard limit of this process. */
uint64_t lac_host_limit_least(enum lac_host_limit what, uint64_t wanted);

/** Set soft and hard limit of this process to the smaller of `value` and its hard limit.
 *  @return false with errno */
bool lac_host_limit_set(enum lac_host_limit what, uint64_t value);

/** What to do about a hard limit below `wanted`, as the end of a sentence that begins with what
 *  went wrong. @return its length; 0 and "" when the limit is not below */
size_t lac_host_limit_advice(enum lac_host_limit what, uint64_t wanted, char *out,
                             size_t capacity_bytes);

#endif
