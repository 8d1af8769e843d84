#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_PICKLED_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_PICKLED_H

/* What a pickle may hold that is read here: pickled.c tells by its values, not by its name. */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>

/** line_profiler's LineStats. */
bool lac_line_profiler_is_pickled(const struct lac_plain *root);
LAC_MUST_USE enum lac_status lac_line_profiler_read(struct lac_profile_file *document,
                                                    struct lac_model **ret_model);

/** PyTorch's memory snapshots. */
bool lac_torch_memory_is_pickled(const struct lac_plain *root);
LAC_MUST_USE enum lac_status lac_torch_memory_read(struct lac_profile_file *document,
                                                   struct lac_model **ret_model);

/** Annotations of CUDA graphs. */
bool lac_graph_notes_is_pickled(const struct lac_plain *root);
LAC_MUST_USE enum lac_status lac_graph_notes_read_pickled(struct lac_profile_file *document,
                                                          struct lac_model **ret_model);

/** Dumps of PyTorch's flight recorder for NCCL. */
bool lac_flight_is_pickled(const struct lac_plain *root);
LAC_MUST_USE enum lac_status lac_flight_read_pickled(struct lac_profile_file *document,
                                                     struct lac_model **ret_model);

#endif
