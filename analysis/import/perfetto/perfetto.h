#ifndef LAC_ANALYSIS_IMPORT_PERFETTO_PERFETTO_H
#define LAC_ANALYSIS_IMPORT_PERFETTO_PERFETTO_H

/*
 * Traces of Perfetto (.perfetto-trace, .pftrace): track events, render stages and counters of GPUs,
 * also in compressed packets. What the kernel traced (ftrace) is left out and counted.
 *
 * Packets become events of a Chrome trace, in a file without a name, which the importer of these
 * then reads: categories, arguments, pairs and arrows mean the same in both.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** As importers.h has them. */
bool lac_perfetto_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_perfetto_import(struct lac_source *source,
                                                 const struct lac_import_options *options,
                                                 size_t window_bytes, const char *name,
                                                 struct lac_model **ret_model,
                                                 struct lac_error *reterr);

#endif
