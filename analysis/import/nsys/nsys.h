#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_H

/*
 * Nsight Systems SQLite exports (`nsys export --type sqlite`), schema 3.x.
 *
 * Read: kernels, copies, memsets, runtime and driver calls, synchronization records, CUDA graphs
 * recorded as a whole, NVTX, operating system calls, overheads, names of processes, threads and
 * devices. Every table and most columns may be missing. What is in the file and not read is named
 * in the import report.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"

/** Whether the file at `path` is a regular file that begins as an SQLite database does. */
bool lac_nsys_is_sqlite(const char *path);

/**
 * Import an export.
 *
 * @param reterr    says what is wrong and what to do
 * @return LAC_OK; LAC_ERR_CORRUPT (no export, or damaged), LAC_ERR_LIMIT, LAC_ERR_IO,
 *         LAC_ERR_NOMEM; what `sink` returns
 */
LAC_MUST_USE enum lac_status lac_nsys_import(const char *path,
                                             const struct lac_import_options *options,
                                             lac_import_sink sink, void *context,
                                             struct lac_error *reterr);

/** The same of a database in an archive, or compressed, as importers.c calls it: it is laid out in a
 *  file without a name in options->temporary_dir. */
LAC_MUST_USE enum lac_status lac_nsys_import_stream(struct lac_source *source,
                                                    const struct lac_import_options *options,
                                                    size_t window_bytes, const char *name,
                                                    struct lac_model **ret_model,
                                                    struct lac_error *reterr);

/** The same of a database as SQL text, as importers.c calls it. */
LAC_MUST_USE enum lac_status lac_nsys_import_dump(struct lac_source *source,
                                                  const struct lac_import_options *options,
                                                  size_t window_bytes, const char *name,
                                                  struct lac_model **ret_model,
                                                  struct lac_error *reterr);

#endif
