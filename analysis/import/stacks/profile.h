#ifndef LAC_ANALYSIS_IMPORT_STACKS_PROFILE_H
#define LAC_ANALYSIS_IMPORT_STACKS_PROFILE_H

/* What importers of profiles share: a builder with stacks, and its end. Private to this folder and
 * to analysis/import/profilers. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

struct lac_profile {
    struct lac_builder *builder;
    struct lac_model *model; /**< under construction */
    struct lac_stacks *stacks;
    struct lac_lines lines; /**< for those that read lines */
    struct lac_error *reterr;
};

/** @return LAC_OK or LAC_ERR_NOMEM, said in reterr */
LAC_MUST_USE enum lac_status
lac_profile_open(struct lac_profile *profile, struct lac_source *source,
                 const struct lac_import_options *options, size_t window_bytes, const char *name,
                 enum lac_trace_format format, struct lac_error *reterr);

/** Its one process, of that name: for rows and counters that are nobody's.
 *  @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_profile_process(const struct lac_profile *profile,
                                                 const char *name, uint32_t *ret_process);

/**
 * End it, after success or failure.
 *
 * @param what  of the format, as in "no stack in this <what>": the error where there is nothing
 * @param unit, period_ns as lac_stacks_finish()
 * @return status, or what finishing gives
 */
LAC_MUST_USE enum lac_status lac_profile_close(struct lac_profile *profile, enum lac_status status,
                                               const char *what, const char *unit,
                                               int64_t period_ns, struct lac_model **ret_model);

/** A status of lac_stacks_*() with its sentence. */
enum lac_status lac_profile_failed(const struct lac_profile *profile, enum lac_status status);

#endif
