#ifndef LAC_ANALYSIS_IMPORT_STACKS_STACK_IMPORTERS_H
#define LAC_ANALYSIS_IMPORT_STACKS_STACK_IMPORTERS_H

/* Importers of profilers' stacks, as importers.h has them: each knows its own by the first bytes. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Lines of frames with ";" between them, a space and a weight. */
bool lac_folded_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_folded_import(struct lac_source *source,
                                               const struct lac_import_options *options,
                                               size_t window_bytes, const char *name,
                                               struct lac_model **ret_model,
                                               struct lac_error *reterr);

/** Text of `perf script`. */
bool lac_perf_script_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_perf_script_import(struct lac_source *source,
                                                    const struct lac_import_options *options,
                                                    size_t window_bytes, const char *name,
                                                    struct lac_model **ret_model,
                                                    struct lac_error *reterr);

/** Text of `py-spy dump`. */
bool lac_pyspy_dump_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_pyspy_dump_import(struct lac_source *source,
                                                   const struct lac_import_options *options,
                                                   size_t window_bytes, const char *name,
                                                   struct lac_model **ret_model,
                                                   struct lac_error *reterr);

#endif
