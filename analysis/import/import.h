#ifndef LAC_ANALYSIS_IMPORT_IMPORT_H
#define LAC_ANALYSIS_IMPORT_IMPORT_H

/*
 * The way in: a file of any known format becomes one or more models.
 *
 * Everything here reads hostile bytes. Content decides the format, never the file's name.
 * Compression (gzip, zstd) and tar are undone on the way, streaming; memory is bounded apart from
 * the model's columns.
 */

#include "analysis/import/source/import_options.h" // IWYU pragma: export
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * Import the file at `path`.
 *
 * @param reterr  says what, and at which byte of the expanded input; message names what to do
 * @return LAC_OK; LAC_ERR_CORRUPT (not a format we know, or damaged beyond repair), LAC_ERR_LIMIT,
 *         LAC_ERR_IO, LAC_ERR_NOMEM, or what the sink returned
 */
LAC_MUST_USE enum lac_status lac_import_file(const char *path,
                                             const struct lac_import_options *options,
                                             lac_import_sink sink, void *context,
                                             struct lac_error *reterr);

/** The same from memory, for tests and fuzzers. */
LAC_MUST_USE enum lac_status lac_import_bytes(const uint8_t *bytes, size_t size_bytes,
                                              const struct lac_import_options *options,
                                              lac_import_sink sink, void *context,
                                              struct lac_error *reterr);

#endif
