#ifndef LAC_ANALYSIS_IMPORT_IMPORTERS_H
#define LAC_ANALYSIS_IMPORT_IMPORTERS_H

/* Which importer reads what, decided by content. A format is one row in importers.c. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes that an importer of streams may look at to know its own. */
enum { LAC_IMPORT_HEAD_BYTES = LAC_SOURCE_PEEK_MAX };

/** Reads one trace from bytes as they come, also out of an archive. */
struct lac_stream_importer {
    /** Whether it reads what begins with these bytes: LAC_IMPORT_HEAD_BYTES, fewer when it ends
     *  before. */
    bool (*is_its_own)(const uint8_t *head, size_t size_bytes);
    /** As lac_import_file(), of one trace. @param window_bytes a hint for who reads in windows */
    enum lac_status (*import)(struct lac_source *source, const struct lac_import_options *options,
                              size_t window_bytes, const char *name, struct lac_model **ret_model,
                              struct lac_error *reterr);
    /** What it reads, as the sentence on an unknown file lists it; NULL: nothing, it only says what
     *  to do instead, or another row has said it. */
    const char *reads;
};

/** Reads a file or folder by its path: what seeks, or opens the file by itself as SQLite does. */
struct lac_path_importer {
    bool (*is_its_own)(const char *path);
    /** As lac_import_file(). */
    enum lac_status (*import)(const char *path, const struct lac_import_options *options,
                              lac_import_sink sink, void *context, struct lac_error *reterr);
};

/** The importer of what begins with these bytes. The last row reads whatever is left and says what
 *  it expected. */
const struct lac_stream_importer *lac_stream_importer_of(const uint8_t *head, size_t size_bytes);

/** What all of them read, "a, b, c"; what does not fit is left out and `--help` named instead.
 *  @param capacity 64 or more @return its length */
size_t lac_importers_list(char *out, size_t capacity);

/** @return NULL when the path is to be read as a stream */
const struct lac_path_importer *lac_path_importer_of(const char *path);

#endif
