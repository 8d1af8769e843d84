#ifndef LAC_ANALYSIS_DIAGNOSE_STRAGGLER_H
#define LAC_ANALYSIS_DIAGNOSE_STRAGGLER_H

/* Private: which rank the others wait for, and why it is late. */

#include "analysis/diagnose/ranks.h" // IWYU pragma: export

/** Fill late, finding and note of a run whose collectives are matched. */
LAC_MUST_USE enum lac_status lac_straggler_find(struct lac_run *run,
                                                const struct lac_rank_trace *ranks);

#endif
