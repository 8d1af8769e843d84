#ifndef LAC_SERVER_EXPORT_STEP_SPANS_H
#define LAC_SERVER_EXPORT_STEP_SPANS_H

/* The time of some steps, as flame graphs and tables count it. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_step_spans {
    struct lac_flame_span *spans; /**< once joined: ascending, none touches another */
    uint32_t span_count;
    uint32_t step_count; /**< that were added; 0: not of steps, but of all time */
};

/** Room for that many steps. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_step_spans_init(struct lac_step_spans *spans,
                                                 uint32_t step_count_max);
/** At most step_count_max times. A step without length is counted and has no time. */
void lac_step_spans_add(struct lac_step_spans *spans, int64_t start_ns, int64_t dur_ns);
/** Those that touch or overlap become one. Without any time no step counts. */
void lac_step_spans_join(struct lac_step_spans *spans);

/**
 * The steps that the verdict's mean is of, joined: what a step takes is then told alike by all. None:
 * `step_count` is 0.
 *
 * @param is_host   between the host's marks, not on the device
 * @param ret_spans the caller gives it to lac_step_spans_done(), also after a failure
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_step_spans_measured(const struct lac_analysis *analysis,
                                                     bool is_host,
                                                     struct lac_step_spans *ret_spans);

/** Make a flame graph count only these; it borrows them. Without any it stays as it is. */
void lac_step_spans_use(const struct lac_step_spans *spans, struct lac_flame_options *options);

/** A zeroed struct is allowed. */
void lac_step_spans_done(struct lac_step_spans *spans);

#endif
