#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_PROFILER_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_PROFILER_H

/*
 * What another profiler (torch.profiler) wrote while our recorder left the GPU to it: its device
 * rows and the calls that launched them join our recording. Its ranges and operators do not: the
 * ranges of the same moments are ours already.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/builder.h"
#include "analysis/model/status.h"

/**
 * Read `source` and append. One that cannot be read, or that counts another clock than the time of
 * day, is reported and left out.
 *
 * @param near_ns when the recording was made: a month from it is another clock
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT
 */
LAC_MUST_USE enum lac_status lac_spool_profiler_join(struct lac_source *source,
                                                     const struct lac_import_options *options,
                                                     int64_t near_ns, struct lac_builder *builder,
                                                     struct lac_error *reterr);

#endif
