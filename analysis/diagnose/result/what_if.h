#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_WHAT_IF_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_WHAT_IF_H

/* Changes to try on the steps, as --what-if and the API take them. */

#include "analysis/model/status.h"

#include <stdint.h>

/** Shares of the time of collectives for which a step is played, beside all of it. */
enum { LAC_COMM_PARTS = 4 };

/** A change to try on the re-timed steps (--what-if K=V,...). Unset
 *  fields are LAC_WHAT_IF_UNSET. */
#define LAC_WHAT_IF_UNSET (-1)
struct lac_what_if_changes {
    int32_t workers;                                         /**< number of loader workers */
    int8_t layout_nhwc;                                      /**< 1: no layout conversions */
    int8_t pinned;                                           /**< 1: copies from pinned memory */
    int8_t async_copies;                                     /**< 1: own stream, one batch ahead */
    int8_t no_sync, no_allocator, no_module_load, no_launch; /**< 1: without that cause */
    double comm;    /**< factor on exposed communication, negative unset */
    double kernels; /**< factor on computing kernels, negative unset */
};
/** Predicted mean step and its band; all LAC_UNKNOWN_NS where it is not known. */
struct lac_what_if_step {
    int64_t low_ns, mean_ns, high_ns;
};
void lac_what_if_clear(struct lac_what_if_changes *changes);

/** Parse "workers=4,pinned=1". @return LAC_OK or LAC_ERR_MISUSE with a sentence that
 *  names the key. */
LAC_MUST_USE enum lac_status lac_what_if_parse(const char *text,
                                               struct lac_what_if_changes *ret_changes,
                                               struct lac_error *reterr);

#endif
