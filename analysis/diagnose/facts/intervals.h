#ifndef LAC_ANALYSIS_DIAGNOSE_INTERVALS_H
#define LAC_ANALYSIS_DIAGNOSE_INTERVALS_H

/*
 * Sets of time: sorted, disjoint, non-touching half-open intervals [start, end).
 *
 * Filled by lac_spans_add() in ascending start order (O(1) each) or lac_spans_add_unsorted() and
 * lac_spans_normalize(). Zero-length intervals add nothing.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_span {
    int64_t start_ns;
    int64_t end_ns;
};

struct lac_spans {
    struct lac_span *at;
    uint64_t count;
    uint64_t capacity;
};

/** Free the contents; a zeroed struct is allowed. */
void lac_spans_done(struct lac_spans *spans);

/** Add [start, end), start not before the start of the last one; merges. */
LAC_MUST_USE enum lac_status lac_spans_add(struct lac_spans *spans, int64_t start_ns,
                                           int64_t end_ns);

/** The same, but also merges when the hole before it is `bridge_ns` or shorter. */
LAC_MUST_USE enum lac_status lac_spans_add_bridged(struct lac_spans *spans, int64_t start_ns,
                                                   int64_t end_ns, int64_t bridge_ns);

/** Append without keeping order; normalize before any other use. */
LAC_MUST_USE enum lac_status lac_spans_add_unsorted(struct lac_spans *spans, int64_t start_ns,
                                                    int64_t end_ns);

/** The same of what will be normalized with `bridge_ns`: what comes in order takes no room. */
LAC_MUST_USE enum lac_status lac_spans_add_unsorted_bridged(struct lac_spans *spans,
                                                            int64_t start_ns, int64_t end_ns,
                                                            int64_t bridge_ns);

/** Sort and merge, holes of `bridge_ns` or shorter included. O(n) when already sorted. */
void lac_spans_normalize(struct lac_spans *spans, int64_t bridge_ns);

/** Sum of lengths. */
int64_t lac_spans_length(const struct lac_spans *spans);

/** Length of the part inside [start, end). O(log n + hits). */
int64_t lac_spans_length_inside(const struct lac_spans *spans, int64_t start_ns, int64_t end_ns);

/** Length of the intersection. O(a + b). */
int64_t lac_spans_intersection_length(const struct lac_spans *a, const struct lac_spans *b);

/** result = a and b; result must be empty. */
LAC_MUST_USE enum lac_status
lac_spans_intersect(const struct lac_spans *a, const struct lac_spans *b, struct lac_spans *result);

/** result = a without b; result must be empty. */
LAC_MUST_USE enum lac_status
lac_spans_subtract(const struct lac_spans *a, const struct lac_spans *b, struct lac_spans *result);

/** result = a or b; result must be empty. */
LAC_MUST_USE enum lac_status lac_spans_unite(const struct lac_spans *a, const struct lac_spans *b,
                                             struct lac_spans *result);

/** Index of the first span that ends after `t_ns` (count if none). O(log n). */
uint64_t lac_spans_first_after(const struct lac_spans *spans, int64_t t_ns);

/** Lengths summed up to each span (count + 1 entries), for lac_spans_length_up_to(). Caller frees;
 *  NULL when out of memory. */
int64_t *lac_spans_prefix(const struct lac_spans *spans);

/** Length of the part before `t_ns`; differences give the part inside any window in O(log n). */
int64_t lac_spans_length_up_to(const struct lac_spans *spans, const int64_t *prefix, int64_t t_ns);

/** Whether the invariant holds. O(n). */
bool lac_spans_is_valid(const struct lac_spans *spans);

#endif
