#ifndef LAC_SERVER_TABLES_LAUNCHED_H
#define LAC_SERVER_TABLES_LAUNCHED_H

/* What surrounds a slice, and what it launched: the way from a kernel to the operators that asked
 * for it, and from an operator or range to the device's work of it. */

#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>

/** Levels told of a chain, calls looked at, operations told one by one. */
enum { LAC_CHAIN_MAX = 64, LAC_CALLS_MAX = 100000, LAC_LAUNCHED_TOLD = 200 };

struct lac_launched {
    /** From the innermost: of GPU work its call, then what is around that; of a host slice what is
     *  around it. */
    struct lac_slice_row chain[LAC_CHAIN_MAX];
    uint32_t chain_count;
    /** Of a host slice, what was launched inside it: the first ones, by start. */
    struct lac_slice_row *told;
    uint32_t told_count;
    uint64_t count;
    int64_t total_ns;
    int64_t first_ns, end_ns; /**< where it lies on the devices; 0 without any */
    bool is_cut;              /**< more calls than LAC_CALLS_MAX: counted are those of the first */
};

/**
 * @param ret_launched the caller gives it to lac_launched_done()
 * @return LAC_OK, LAC_ERR_NOT_FOUND (no such slice), LAC_ERR_NOMEM, LAC_ERR_CORRUPT, LAC_ERR_IO
 * Cost: the chunks that the slice spans on its track, and those that hold what it launched
 */
LAC_MUST_USE enum lac_status lac_launched_by(struct lac_trace_file *file, uint32_t slice,
                                             struct lac_launched *ret_launched,
                                             struct lac_error *reterr);
/** A zeroed struct is allowed. */
void lac_launched_done(struct lac_launched *launched);

#endif
