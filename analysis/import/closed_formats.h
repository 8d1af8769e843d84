#ifndef LAC_ANALYSIS_IMPORT_CLOSED_FORMATS_H
#define LAC_ANALYSIS_IMPORT_CLOSED_FORMATS_H

/*
 * Files of known tools that only the tool itself can read, or that another of its exports says
 * better: recognized, so that the error names the command that makes a file we read.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** As importers.h has them. */
bool lac_closed_is_its_own(const uint8_t *head, size_t size_bytes);
/** @return LAC_ERR_CORRUPT with a sentence that says how to export */
LAC_MUST_USE enum lac_status lac_closed_refuse(struct lac_source *source,
                                               const struct lac_import_options *options,
                                               size_t window_bytes, const char *name,
                                               struct lac_model **ret_model,
                                               struct lac_error *reterr);

/** A folder that is no recording: what of it is to be given instead. */
bool lac_closed_is_folder(const char *path);
LAC_MUST_USE enum lac_status lac_closed_refuse_folder(const char *path,
                                                      const struct lac_import_options *options,
                                                      lac_import_sink sink, void *context,
                                                      struct lac_error *reterr);

#endif
