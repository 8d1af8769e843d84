#ifndef LAC_ANALYSIS_IMPORT_STACKS_LINES_H
#define LAC_ANALYSIS_IMPORT_STACKS_LINES_H

/* Lines of a source, one at a time, without a copy of each. */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zero-initialize, set source and options, then lac_lines_next() until it gives nothing. */
struct lac_lines {
    struct lac_source *source;
    const struct lac_import_options *options;
    size_t window_bytes; /**< first size of the window; 0: 256 KiB */
    char *window;
    size_t capacity_bytes;
    size_t begin, end; /**< what of the window is not taken */
    uint64_t offset_bytes;
    uint64_t count;     /**< lines so far */
    uint64_t next_told; /**< progress is told from this many bytes on */
    bool is_over;
};

/**
 * The next line, without its end ("\n" or "\r\n"). Borrowed until the next call. At most
 * event_bytes_max bytes.
 *
 * @param ret_line NULL after the last one
 * @return LAC_OK, LAC_ERR_LIMIT (a longer line; also expansion), LAC_ERR_IO (also canceled) or
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_lines_next(struct lac_lines *lines, const char **ret_line,
                                            size_t *ret_length, struct lac_error *reterr);

void lac_lines_done(struct lac_lines *lines);

#endif
