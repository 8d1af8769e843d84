#ifndef LAC_SERVER_STORE_TRACE_TRACE_WRITER_H
#define LAC_SERVER_STORE_TRACE_TRACE_WRITER_H

/*
 * Model -> trace file (FORMAT.md). The file is complete and synced when lac_trace_write() or
 * lac_trace_writer_end() returns LAC_OK; after a failure nothing is left at the path.
 *
 * The recorded slices, which are most of a file, can be written while the model is diagnosed:
 *
 *   begin(model) ---- lac_diagnose(model) ---- settle() ---- derived tracks ---- tables() ---- end()
 *        \___ recorded slices, by a helper ___/
 *
 * What the file holds does not depend on who writes it.
 */

#include "analysis/crew/crew.h"
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

struct lac_trace_writer;

/**
 * Create the file, and begin with the recorded slices where `crew` has helpers; else
 * lac_trace_writer_settle() writes them.
 *
 * @param model stays as it is until settled, and until the end but for derived tracks
 * @param path  borrowed until the end
 */
LAC_MUST_USE enum lac_status lac_trace_writer_begin(const struct lac_model *model, const char *path,
                                                    uint32_t generation, struct lac_crew *crew,
                                                    struct lac_trace_writer **ret_writer,
                                                    struct lac_error *reterr);

/** Wait until the recorded slices are written. The model may get its derived tracks then. */
LAC_MUST_USE enum lac_status lac_trace_writer_settle(struct lac_trace_writer *writer);

/** The derived slices, and all else but the documents. @param analysis may be NULL */
LAC_MUST_USE enum lac_status lac_trace_writer_tables(struct lac_trace_writer *writer,
                                                     const struct lac_analysis *analysis);

/**
 * The documents; closes and syncs the file. Ends the writer in any case.
 *
 * @param status    so far: where it is not LAC_OK, the file is removed and the status returned
 * @param documents LAC_DOCUMENT_COUNT_ of them, or NULL
 * @param reterr    filled where the writer failed
 */
LAC_MUST_USE enum lac_status lac_trace_writer_end(struct lac_trace_writer *writer,
                                                  enum lac_status status,
                                                  const struct lac_trace_text *documents,
                                                  struct lac_error *reterr);

#endif
