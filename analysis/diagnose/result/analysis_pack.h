#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_ANALYSIS_PACK_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_ANALYSIS_PACK_H

/* An analysis as bytes, to be kept with its trace (server/store/FORMAT.md). What is read may be
 * anybody's bytes: ids are those of the model, numbers possible. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Everything but gaps, steps and what-if.
 *
 * @param ret_bytes the caller frees @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_analysis_pack(const struct lac_analysis *analysis,
                                               const struct lac_model *model, uint8_t **ret_bytes,
                                               size_t *ret_size_bytes);

/**
 * The inverse: an analysis without gaps and steps.
 *
 * @param bytes allocated; taken, whatever is returned: texts lie in it
 * @param model its info, strings and counts are used
 * @return LAC_OK, LAC_ERR_CORRUPT (of another version too), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_analysis_unpack(uint8_t *bytes, size_t size_bytes,
                                                 const struct lac_model *model,
                                                 struct lac_analysis **ret_analysis);

#endif
