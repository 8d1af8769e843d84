#ifndef LAC_SERVER_API_RANK_STRIP_H
#define LAC_SERVER_API_RANK_STRIP_H

/* What one device did, in a few hundred equal parts of a window: a row of a picture of many ranks.
 * It is made of the coarse tiles and of the gaps, so its cost goes by the parts, not by the window. */

#include "analysis/diagnose/result/analysis.h"
#include "server/store/trace/trace_file.h"

#include <stdint.h>

enum { LAC_STRIP_POINTS_MAX = 2000 };

/** What computing kernels do. */
enum lac_strip_kind {
    LAC_STRIP_MATRIX,
    LAC_STRIP_CONVOLUTION,
    LAC_STRIP_ATTENTION,
    LAC_STRIP_MEMORY, /**< elementwise, reductions, normalizations, layouts, copies by kernels */
    LAC_STRIP_OTHER,
    LAC_STRIP_KIND_COUNT_
};

struct lac_strip_query {
    int64_t device;
    int64_t first_ns, end_ns; /**< of the device's operations */
    int64_t t0_ns, t1_ns;     /**< the window, on the trace's clock; may begin before 0 */
    uint32_t points;          /**< 1..LAC_STRIP_POINTS_MAX, and no more than ns in the window */
};

/** ns of each part; compute, comm, copy and the causes are apart from each other, and what is left
 *  of a part are gaps below 10 us, or lies outside of what was recorded. */
struct lac_strip {
    uint32_t points;
    int64_t *compute_ns;
    int64_t *kind_ns[LAC_STRIP_KIND_COUNT_]; /**< compute_ns by kind: they sum to it */
    int64_t *comm_ns; /**< without computing beside it; of copies without either */
    int64_t *copy_ns;
    int64_t (*cause_ns)[LAC_CAUSE_COUNT_];
};

/** @param ret_strip give it to lac_strip_done(). @return also LAC_ERR_NOMEM, LAC_ERR_CORRUPT */
LAC_MUST_USE enum lac_status lac_strip_make(struct lac_trace_file *file,
                                            const struct lac_strip_query *query,
                                            struct lac_strip *ret_strip, struct lac_error *reterr);

/** In JSON. */
const char *lac_strip_kind_name(enum lac_strip_kind kind);

/** A zeroed struct is allowed. */
void lac_strip_done(struct lac_strip *strip);

#endif
