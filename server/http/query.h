#ifndef LAC_SERVER_HTTP_QUERY_H
#define LAC_SERVER_HTTP_QUERY_H

/*
 * The request target: percent decoding, `?a=b&c=d`, number lists. Hostile bytes; fuzzed
 * (tests/fuzz/fuzz_query.c). Nothing here allocates: decoded text lies in the caller's storage.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_TARGET_BYTES_MAX = 8192, /**< longest raw request target */
    LAC_QUERY_PAIRS_MAX = 32,
    LAC_QUERY_RANGES_MAX = 4096, /**< entries of a list such as 1,4-9 */
};

/** A parsed request target. */
struct lac_target {
    char path[LAC_TARGET_BYTES_MAX + 1]; /**< decoded, starts with '/' */
    char text[LAC_TARGET_BYTES_MAX + LAC_QUERY_PAIRS_MAX * 2 +
              2]; /**< keys and values, NUL-terminated */
    struct {
        const char *key;
        const char *value; /**< "" when absent */
    } pair[LAC_QUERY_PAIRS_MAX];
    unsigned pair_count;
};

/**
 * Split and decode `raw` (origin form: "/path?query"). The result points into itself: do not copy.
 *
 * @return LAC_OK; LAC_ERR_CORRUPT for a target that does not start with '/', a bad or cut %XX, an
 *         encoded or raw control character (NUL included), text that is not UTF-8, `.` or `..` as
 *         a path segment, an empty segment, an encoded '/', a key given twice; LAC_ERR_LIMIT for a
 *         target that is too long or has too many pairs
 */
LAC_MUST_USE enum lac_status lac_target_parse(const char *raw, size_t size_bytes,
                                              struct lac_target *ret_target,
                                              struct lac_error *reterr);

/** Value of `key`, or NULL when it was not given. Borrowed from the target. */
const char *lac_target_get(const struct lac_target *target, const char *key);

/** Parse a whole decimal int64. @return false for anything else: empty, signs but '-', spaces,
 * overflow */
bool lac_parse_int(const char *text, int64_t *ret_value);

/** Parse a whole decimal uint64. */
bool lac_parse_uint(const char *text, uint64_t *ret_value);

/**
 * Integer parameter `key` within [low, high].
 *
 * @param ret_value set to `fallback` when the key is absent
 * @return LAC_OK, or LAC_ERR_MISUSE with a sentence that names key and bounds
 */
LAC_MUST_USE enum lac_status lac_target_int(const struct lac_target *target, const char *key,
                                            int64_t low, int64_t high, int64_t fallback,
                                            int64_t *ret_value, struct lac_error *reterr);

struct lac_id_range {
    uint32_t first;
    uint32_t last; /**< inclusive */
};

/**
 * Parse "1,4-9" into ascending, disjoint, merged ranges.
 *
 * @param ranges    room for `capacity` entries
 * @param ids_max   most ids that all ranges together may name
 * @return LAC_OK, LAC_ERR_MISUSE (not such a list) or LAC_ERR_LIMIT
 */
LAC_MUST_USE enum lac_status lac_parse_ranges(const char *text, uint64_t ids_max,
                                              struct lac_id_range *ranges, unsigned capacity,
                                              unsigned *ret_count, struct lac_error *reterr);

#endif
