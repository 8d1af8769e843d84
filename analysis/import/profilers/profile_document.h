#ifndef LAC_ANALYSIS_IMPORT_PROFILERS_PROFILE_DOCUMENT_H
#define LAC_ANALYSIS_IMPORT_PROFILERS_PROFILE_DOCUMENT_H

/* Profiles that are one document: read whole before anything of them is known. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Larger ones are refused: profilers sum up, and a document takes ten times its size to read. */
#define LAC_DOCUMENT_BYTES_MAX ((size_t)256 << 20)

/** How the values of a document are written. */
enum lac_document_form { LAC_DOCUMENT_JSON, LAC_DOCUMENT_PICKLE, LAC_DOCUMENT_MARSHAL };

/** A document of plain values that is being read. Zero it, open it; close it also after a failure. */
struct lac_profile_file {
    struct lac_profile profile;
    struct lac_plain_heap heap;
    struct lac_plain *root;
    uint8_t *bytes;
    size_t size;
    struct lac_source *source;
    const struct lac_import_options *options;
    size_t window_bytes;
    const char *name;
    struct lac_error *reterr;
    uint64_t visits;
};

/** The importer's arguments, and all of the source as plain values.
 *  @return as lac_json_plain_read(), lac_pickle_read() or lac_marshal_read(); LAC_ERR_LIMIT also
 *  where it is larger than LAC_DOCUMENT_BYTES_MAX */
LAC_MUST_USE enum lac_status
lac_document_open(struct lac_profile_file *document, struct lac_source *source,
                  const struct lac_import_options *options, size_t window_bytes, const char *name,
                  enum lac_document_form form, struct lac_error *reterr);
/** A builder for what the document holds. */
LAC_MUST_USE enum lac_status lac_document_begin(struct lac_profile_file *document,
                                                enum lac_trace_format format);
/** The end of it, as lac_profile_close(), whose parameters these are; once it was begun. */
LAC_MUST_USE enum lac_status lac_document_end(struct lac_profile_file *document,
                                              enum lac_status status, const char *what,
                                              const char *unit, struct lac_model **ret_model);
/** The same for documents of slices with times, and no stacks. */
LAC_MUST_USE enum lac_status lac_document_end_timed(struct lac_profile_file *document,
                                                    enum lac_status status,
                                                    struct lac_model **ret_model);
void lac_document_close(struct lac_profile_file *document);

/** Count values that are looked at: a hostile file holds one list very often. @return false: with
 *  these more than 64 a byte of the document, or 2^27, which is LAC_ERR_LIMIT; they are not counted */
LAC_MUST_USE bool lac_document_visit(struct lac_profile_file *document, uint64_t count);

/** Something that is left out, counted under `code`. */
void lac_document_drop(const struct lac_profile_file *document, const char *code, const char *what);

/**
 * The name of a frame: "name (file.py:12)", of the file its last part.
 *
 * @param name, file texts; else "?", and no file
 * @param line       0: not known
 */
LAC_MUST_USE enum lac_status lac_document_frame(const struct lac_profile_file *document,
                                                const struct lac_plain *name,
                                                const struct lac_plain *file, int64_t line,
                                                uint32_t *ret_name);

/** Whether the bytes hold that text. */
bool lac_document_has(const uint8_t *head, size_t size_bytes, const char *text);

#endif
