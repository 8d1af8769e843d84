#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_PROFILE_DOCUMENT_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_PROFILE_DOCUMENT_H

/* Profiles that are one document: read whole before anything of them is known. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/** Larger ones are refused: profilers sum up, and a document takes ten times its size to read. */
#define LAC_DOCUMENT_BYTES_MAX ((size_t)256 << 20)

/**
 * All that is left of the source.
 *
 * @param ret_bytes the caller frees
 * @return LAC_OK, LAC_ERR_LIMIT (too large), LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_document_read(struct lac_source *source,
                                               const struct lac_import_options *options,
                                               uint8_t **ret_bytes, size_t *ret_size,
                                               struct lac_error *reterr);

#endif
