#ifndef LAC_ANALYSIS_IMPORT_CHROME_JSON_WINDOW_H
#define LAC_ANALYSIS_IMPORT_CHROME_JSON_WINDOW_H

/*
 * A sliding window over a source: the parser sees [at, end) and LAC_JSON_PAD zero bytes after it,
 * so that it may load whole vectors and needs no bounds check per byte. What must be seen in one
 * piece (an event) is parsed again from its start after lac_json_window_more().
 *
 *   base_bytes            at                 end
 *   |  consumed           |  not yet parsed  | 0 0 0 0 ...
 */

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_JSON_PAD = 64 };

struct lac_json_window {
    struct lac_source *source; /**< borrowed */
    uint8_t *bytes;
    const uint8_t *at;   /**< first byte not yet parsed; moved by the parser */
    const uint8_t *end;  /**< end of what was read */
    uint64_t base_bytes; /**< offset of bytes[0] in the expanded input */
    size_t capacity_bytes;
    size_t pending_bytes_max; /**< most that may have to be seen in one piece */
    bool ended;               /**< the source has no more */
};

/** @param capacity_bytes first size, e.g. 256 KiB; @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_json_window_init(struct lac_json_window *window,
                                                  struct lac_source *source, size_t capacity_bytes,
                                                  size_t pending_bytes_max,
                                                  struct lac_error *reterr);

/** Free the contents; a zeroed struct is allowed. */
void lac_json_window_done(struct lac_json_window *window);

/**
 * Read more, keeping [at, end): doubles what can be seen, so that parsing again costs O(n) in all.
 * Moves `at` and `end`; when nothing was left to read, sets `ended` and moves nothing.
 *
 * @return LAC_OK, LAC_ERR_LIMIT when pending_bytes_max is already pending, or what reading gave
 */
LAC_MUST_USE enum lac_status lac_json_window_more(struct lac_json_window *window,
                                                  struct lac_error *reterr);

/** Offset of `p` in the expanded input. */
static inline uint64_t lac_json_window_offset(const struct lac_json_window *window,
                                              const uint8_t *p)
{
    return window->base_bytes + (uint64_t)(p - window->bytes);
}

#endif
