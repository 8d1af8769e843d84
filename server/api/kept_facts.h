#ifndef LAC_SERVER_API_KEPT_FACTS_H
#define LAC_SERVER_API_KEPT_FACTS_H

/* What the import of a trace kept for comparisons and reports. Of a trace that an older program
 * imported it is made once and kept in memory while there is room. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/analysis.h"
#include "server/http/request.h"
#include "server/store/trace/trace_file.h"

/** Read only. */
struct lac_kept_facts {
    struct lac_analysis *analysis; /**< without gaps */
    struct lac_compare_facts *compare;
    struct lac_cache_entry *pin; /**< private */
};

/** @param ret_facts give them to lac_kept_facts_close() before the file @return false: the response
 *         says why */
bool lac_kept_facts_open(struct lac_trace_file *file, struct lac_response *response,
                         struct lac_kept_facts *ret_facts);

/** A zeroed struct is allowed. */
void lac_kept_facts_close(struct lac_trace_file *file, struct lac_kept_facts *facts);

#endif
