#ifndef LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_PRIVATE_H
#define LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_PRIVATE_H

/* Private: the facts without the conclusions, for tests of what stands between them. */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** What is there, and the mean step, into facts whose `model` and empty `analysis` are set. */
LAC_MUST_USE enum lac_status lac_facts_find(struct lac_facts *facts);
/** Release all but the analysis; after a failure, too. */
void lac_facts_done(struct lac_facts *facts);

#endif
