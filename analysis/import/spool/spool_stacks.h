#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_STACKS_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_STACKS_H

/*
 * What Python threads were found in, 50 times a second, as rows of their own: LAC_TRACK_STACKS, one
 * a thread. A sample stands for the time since the one before it, so a slice is a stretch of
 * samples that agree so far: its length is samples times 20 ms, not that of a call. Private to the
 * spool importer.
 */

#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdint.h>

struct lac_spool_process;
struct lac_spool_stacks;

/** A LAC_EVENT_STACK_FRAME. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_stack_frame(struct lac_spool_process *process,
                                                   const struct lac_event *event);
/** A LAC_EVENT_STACK_SAMPLE of that time. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_stack_sample(struct lac_spool_process *process,
                                                    const struct lac_event *event, int64_t now_ns);

/** All are there: make the rows. @return LAC_OK, LAC_ERR_NOMEM or LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_spool_stacks_store(struct lac_spool_process *process);

/** NULL is allowed. */
void lac_spool_stacks_destroy(struct lac_spool_stacks *stacks);

#endif
