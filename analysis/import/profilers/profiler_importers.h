#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_PROFILER_IMPORTERS_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_PROFILER_IMPORTERS_H

/* Importers of profilers' documents, as importers.h has them: each knows its own by the first
 * bytes. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** JSON of speedscope, whoever wrote it: py-spy does. */
bool lac_speedscope_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_speedscope_import(struct lac_source *source,
                                                   const struct lac_import_options *options,
                                                   size_t window_bytes, const char *name,
                                                   struct lac_model **ret_model,
                                                   struct lac_error *reterr);

/** JSON of the Firefox Profiler, whoever wrote it: samply does. */
bool lac_firefox_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_firefox_import(struct lac_source *source,
                                                const struct lac_import_options *options,
                                                size_t window_bytes, const char *name,
                                                struct lac_model **ret_model,
                                                struct lac_error *reterr);

/** What `python3 -m cProfile -o FILE` writes: a dictionary as marshal writes it. */
bool lac_cprofile_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_cprofile_import(struct lac_source *source,
                                                 const struct lac_import_options *options,
                                                 size_t window_bytes, const char *name,
                                                 struct lac_model **ret_model,
                                                 struct lac_error *reterr);

/** callgrind.out of valgrind, and the same format from others; also cachegrind's. */
bool lac_callgrind_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_callgrind_import(struct lac_source *source,
                                                  const struct lac_import_options *options,
                                                  size_t window_bytes, const char *name,
                                                  struct lac_model **ret_model,
                                                  struct lac_error *reterr);

/** Any pickle: line_profiler's, PyTorch's memory snapshots; another is refused. */
bool lac_pickled_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_pickled_import(struct lac_source *source,
                                                const struct lac_import_options *options,
                                                size_t window_bytes, const char *name,
                                                struct lac_model **ret_model,
                                                struct lac_error *reterr);

/** JSON of annotations of CUDA graphs: ids of nodes to what they belong to. */
bool lac_graph_notes_is_json(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_graph_notes_import(struct lac_source *source,
                                                    const struct lac_import_options *options,
                                                    size_t window_bytes, const char *name,
                                                    struct lac_model **ret_model,
                                                    struct lac_error *reterr);

/** JSON of rocprofv3. */
bool lac_rocprofv3_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_rocprofv3_import(struct lac_source *source,
                                                  const struct lac_import_options *options,
                                                  size_t window_bytes, const char *name,
                                                  struct lac_model **ret_model,
                                                  struct lac_error *reterr);

/** The table that line_profiler prints. */
bool lac_line_profiler_is_text(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_line_profiler_import_text(struct lac_source *source,
                                                           const struct lac_import_options *options,
                                                           size_t window_bytes, const char *name,
                                                           struct lac_model **ret_model,
                                                           struct lac_error *reterr);

/** scalene --json */
bool lac_scalene_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_scalene_import(struct lac_source *source,
                                                const struct lac_import_options *options,
                                                size_t window_bytes, const char *name,
                                                struct lac_model **ret_model,
                                                struct lac_error *reterr);

/** The table that cProfile and pstats print. */
bool lac_cprofile_is_text(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_cprofile_import_text(struct lac_source *source,
                                                      const struct lac_import_options *options,
                                                      size_t window_bytes, const char *name,
                                                      struct lac_model **ret_model,
                                                      struct lac_error *reterr);

/** Event files of TensorBoard. */
bool lac_tensorboard_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_tensorboard_import(struct lac_source *source,
                                                    const struct lac_import_options *options,
                                                    size_t window_bytes, const char *name,
                                                    struct lac_model **ret_model,
                                                    struct lac_error *reterr);

/** perf stat: text, -x, and -j. */
bool lac_perf_stat_is_its_own(const uint8_t *head, size_t size_bytes);
LAC_MUST_USE enum lac_status lac_perf_stat_import(struct lac_source *source,
                                                  const struct lac_import_options *options,
                                                  size_t window_bytes, const char *name,
                                                  struct lac_model **ret_model,
                                                  struct lac_error *reterr);

#endif
