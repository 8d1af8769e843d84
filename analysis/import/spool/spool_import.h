#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_IMPORT_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_IMPORT_H

/* Our own recordings: a folder of spools (one process each) or a single spool becomes one model;
 * one of several ranks, as a launcher above torchrun leaves it, a model a rank. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/status.h"

#include <stdbool.h>

/** Whether `path` is a folder, or a file that begins as a spool does. */
bool lac_spool_is_recording(const char *path);

/**
 * Import the spools directly in the folder `path`, or the spool file `path`.
 *
 * @return LAC_OK; LAC_ERR_NOT_FOUND when the folder holds none; else as lac_import_file()
 * A spool that cannot be read is reported in the model and left out, unless it is the only one.
 */
LAC_MUST_USE enum lac_status lac_spool_import(const char *path,
                                              const struct lac_import_options *options,
                                              lac_import_sink sink, void *context,
                                              struct lac_error *reterr);

/** The same of the spools in `space`; what they expand to counts against `budget`.
 *  options->name is set. */
LAC_MUST_USE enum lac_status lac_spool_import_space(const struct lac_spool_space *space,
                                                    struct lac_source_budget *budget,
                                                    const struct lac_import_options *options,
                                                    lac_import_sink sink, void *context,
                                                    struct lac_error *reterr);

#endif
