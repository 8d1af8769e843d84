#ifndef LAC_ANALYSIS_IMPORT_STACKS_STACK_SAMPLES_H
#define LAC_ANALYSIS_IMPORT_STACKS_STACK_SAMPLES_H

/*
 * Stacks with weights, from whatever profiler, into slices.
 *
 * Without times (folded stacks, sums of a profiler) a thread's stacks are merged and laid side by
 * side as in a flame graph: a slice is as long as its weight, and lac_trace_info.has_no_time is
 * set. With times each sample lasts one period from its time on, and samples that follow each other
 * within a period share the frames they have in common; as many periods as there were samples, so
 * that adding up gives the samples again.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/model/builder.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAC_STACK_FRAMES_MAX = 4096,  /**< of one stack */
    LAC_STACK_DIGITS_MAX = 6,     /**< of a weight, behind the point */
    LAC_STACK_NODES_MAX = 1 << 26 /**< different stacks and beginnings of stacks */
};

struct lac_stacks;

/** @param builder borrowed @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_stacks_open(struct lac_builder *builder,
                                             const struct lac_import_options *options,
                                             struct lac_stacks **ret_stacks);
/** NULL is allowed. */
void lac_stacks_close(struct lac_stacks *stacks);

/** Intern a name: UTF-8 is repaired, a longer one than name_bytes_max is cut. */
LAC_MUST_USE enum lac_status lac_stacks_name(struct lac_stacks *stacks, const char *text,
                                             size_t length, uint32_t *ret_name);

/** The bottom of the stacks of a thread, made if new. @param id a name: tells threads of a process
 *  apart */
LAC_MUST_USE enum lac_status lac_stacks_thread(struct lac_stacks *stacks, int64_t pid, int64_t tid,
                                               uint32_t id, uint32_t name, uint32_t *ret_bottom);

/** The same for threads that have no name of their own: `number` tells them apart. */
LAC_MUST_USE enum lac_status lac_stacks_numbered_thread(struct lac_stacks *stacks, int64_t pid,
                                                        int64_t tid, uint32_t number, uint32_t name,
                                                        uint32_t *ret_bottom);

/** The same on a row that is there already: of a profile beside a trace, which the finish tells of
 *  as such. */
LAC_MUST_USE enum lac_status lac_stacks_row(struct lac_stacks *stacks, uint32_t track,
                                            uint32_t *ret_bottom);

/** The stack with the frame `name` on top of the stack `below`. @return LAC_OK, LAC_ERR_NOMEM or
 *  LAC_ERR_LIMIT (too deep, too many) */
LAC_MUST_USE enum lac_status lac_stacks_push(struct lac_stacks *stacks, uint32_t below,
                                             uint32_t name, uint32_t *ret_stack);

/** Add to the weight of a stack. @param weight times 10^digits; at most LAC_STACK_DIGITS_MAX
 *  digits @return LAC_OK, LAC_ERR_LIMIT: all weights together exceed 2^53 */
LAC_MUST_USE enum lac_status lac_stacks_weigh(struct lac_stacks *stacks, uint32_t stack,
                                              int64_t weight, unsigned digits);

/** A sample of a stack at a time. */
LAC_MUST_USE enum lac_status lac_stacks_sample(struct lac_stacks *stacks, uint32_t stack,
                                               int64_t time_ns);

/** A call that lasted from a time on: a slice of its own. Of calls alike the outer one comes first.
 *  Where there are any, weights and samples make no slices. @param dur_ns >= 0 */
LAC_MUST_USE enum lac_status lac_stacks_call(struct lac_stacks *stacks, uint32_t stack,
                                             int64_t start_ns, int64_t dur_ns);

/** Whether there was a sample, a weight or a call. */
bool lac_stacks_is_empty(const struct lac_stacks *stacks);

/** Says in `reterr` why one of the above was not LAC_OK. @return status */
enum lac_status lac_stacks_fail(enum lac_status status, uint64_t offset_bytes,
                                struct lac_error *reterr);

/**
 * Give slices to the builder: of samples, if there were any, else of weights.
 *
 * @param unit      what weights count; NULL: ns. Samples always count as "samples"
 * @param period_ns of samples; 0: as found from their times
 */
LAC_MUST_USE enum lac_status lac_stacks_finish(struct lac_stacks *stacks, const char *unit,
                                               int64_t period_ns);

#endif
