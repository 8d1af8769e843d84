#ifndef LAC_SERVER_STORE_BOOKMARKS_H
#define LAC_SERVER_STORE_BOOKMARKS_H

/* Bookmarks: times and stretches of a trace's timeline that people marked, with a note or without.
 * Thread-safe. Kept in the catalog until they or the trace are deleted. */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdint.h>

enum {
    LAC_BOOKMARK_NOTE_BYTES = 4096, /**< with its NUL */
    LAC_BOOKMARKS_MAX = 500,        /**< of one trace */
};

struct lac_bookmark {
    const char *id;
    int64_t start_ns; /**< since the trace's start, 0 to 2^53 - 1 */
    int64_t dur_ns;   /**< 0: a single time */
    const char *note; /**< "" none */
    const char *author;
    int64_t at_unix_ms, edited_unix_ms; /**< edited 0: never */
};

/** @param bookmark borrowed until it returns */
typedef void lac_bookmark_fn(void *context, const struct lac_bookmark *bookmark);

/** By time. @param id NULL: all of the trace @return LAC_OK; LAC_ERR_NOT_FOUND when `id` is none */
LAC_MUST_USE enum lac_status lac_bookmarks_list(struct lac_store *store, const char *trace,
                                                const char *id, lac_bookmark_fn *visit,
                                                void *context, struct lac_error *reterr);

/** Durable. @param bookmark its id and times of writing are not read @param ret_id LAC_ID_SIZE bytes
 *  @return LAC_OK; LAC_ERR_NOT_FOUND: no such trace; LAC_ERR_LIMIT: it has LAC_BOOKMARKS_MAX */
LAC_MUST_USE enum lac_status lac_bookmarks_add(struct lac_store *store, const char *trace,
                                               const struct lac_bookmark *bookmark, char *ret_id,
                                               struct lac_error *reterr);

/** Give one another note. Durable. @param author whose it must be; NULL takes anybody's
 *  @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_bookmarks_change(struct lac_store *store, const char *trace,
                                                  const char *id, const char *author,
                                                  const char *note, struct lac_error *reterr);

/** Durable. @param author as above @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_bookmarks_delete(struct lac_store *store, const char *trace,
                                                  const char *id, const char *author,
                                                  struct lac_error *reterr);

#endif
