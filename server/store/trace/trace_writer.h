#ifndef LAC_SERVER_STORE_TRACE_TRACE_WRITER_H
#define LAC_SERVER_STORE_TRACE_TRACE_WRITER_H

/*
 * Model -> trace file (FORMAT.md). The file is complete and synced when lac_trace_write() returns
 * LAC_OK; after a failure nothing is left at the path.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"

#include <stddef.h>
#include <stdint.h>

struct lac_analysis;

/** A document to keep. Borrowed. */
struct lac_trace_text {
    const char *text; /**< NULL: there is none */
    size_t length;
};

struct lac_trace_write_options {
    const char *path;    /**< must not exist; taken as it is, relative to the working directory */
    uint32_t generation; /**< 1 for a complete trace */
    const struct lac_analysis *analysis; /**< gaps, findings and summary; may be NULL */
    struct lac_trace_text documents[LAC_DOCUMENT_COUNT_]; /**< by enum lac_trace_document */
};

/**
 * Write a finished model, with the derived tracks it has.
 *
 * @return LAC_OK, LAC_ERR_IO (disk full, file exists), LAC_ERR_NOMEM, LAC_ERR_LIMIT (a document
 *         too large)
 * Cost: about 60 ns a slice; a few MB beside the model, and 8 bytes per (name, chunk) pair.
 */
LAC_MUST_USE enum lac_status lac_trace_write(const struct lac_model *model,
                                             const struct lac_trace_write_options *options,
                                             struct lac_error *reterr);

#endif
