#include "server/store/bookmarks.h"

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHAT "bookmarks"

enum lac_status lac_bookmarks_list(struct lac_store *store, const char *trace, const char *id,
                                   lac_bookmark_fn *visit, void *context, struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    bool has_any = false;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, false, WHAT, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "SELECT id, start_ns, dur_ns, note, author, at_ms, edited_ms FROM"
                                " bookmarks WHERE trace = ?1 AND (?2 IS NULL OR id = ?2)"
                                " ORDER BY start_ns, dur_ns, id",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, trace);
        lac_db_bind_text(get, 2, id);
        while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
            const struct lac_bookmark bookmark = {
                .id = lac_catalog_text(get, 0),
                .start_ns = lac_db_i64(get, 1),
                .dur_ns = lac_db_i64(get, 2),
                .note = lac_catalog_text(get, 3),
                .author = lac_catalog_text(get, 4),
                .at_unix_ms = lac_db_i64(get, 5),
                .edited_unix_ms = lac_db_i64(get, 6),
            };

            visit(context, &bookmark);
            has_any = true;
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_ERR_NOT_FOUND && id != NULL && !has_any) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "this trace has no such bookmark");
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** In a transaction: whether the trace is there and takes one more. */
static enum lac_status has_room(struct lac_store *store, const char *trace,
                                struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    int64_t seq = 0;
    enum lac_status status = lac_catalog_number(store->catalog, "seq", trace, &seq, reterr);

    if (status == LAC_ERR_NOT_FOUND) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, "SELECT count(*) FROM bookmarks WHERE trace = ?1",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, trace);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK && lac_db_i64(get, 0) >= LAC_BOOKMARKS_MAX) {
        status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                          "the trace has %d bookmarks, the most there can be: delete some",
                          LAC_BOOKMARKS_MAX);
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_bookmarks_add(struct lac_store *store, const char *trace,
                                  const struct lac_bookmark *bookmark, char *ret_id,
                                  struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL && bookmark != NULL && ret_id != NULL);
    char start[LAC_NUMBER_SIZE];
    char dur[LAC_NUMBER_SIZE];
    char now[LAC_NUMBER_SIZE];
    const char *texts[7] = {ret_id,
                            trace,
                            lac_catalog_number_text(start, bookmark->start_ns),
                            lac_catalog_number_text(dur, bookmark->dur_ns),
                            bookmark->note,
                            bookmark->author,
                            lac_catalog_number_text(now, lac_now_unix_ms())};
    enum lac_status status = lac_store_new_id(ret_id, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, true, WHAT, reterr);
    if (status == LAC_OK) {
        status = has_room(store, trace, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_change(store->catalog,
                                        "INSERT INTO bookmarks VALUES(?1, ?2, CAST(?3 AS INTEGER),"
                                        " CAST(?4 AS INTEGER), ?5, ?6, CAST(?7 AS INTEGER), NULL)",
                                        texts, 7, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

static const char not_yours[] = "this trace has no bookmark of yours with this id";

enum lac_status lac_bookmarks_change(struct lac_store *store, const char *trace, const char *id,
                                     const char *author, const char *note, struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL && id != NULL && note != NULL);
    char now[LAC_NUMBER_SIZE];
    const char *texts[5] = {trace, id, author, note,
                            lac_catalog_number_text(now, lac_now_unix_ms())};

    return lac_store_change_one(store, WHAT,
                                "UPDATE bookmarks SET note = ?4, edited_ms = CAST(?5 AS INTEGER)"
                                " WHERE trace = ?1 AND id = ?2 AND (?3 IS NULL OR author = ?3)",
                                texts, 5, not_yours, reterr);
}

enum lac_status lac_bookmarks_delete(struct lac_store *store, const char *trace, const char *id,
                                     const char *author, struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL && id != NULL);
    const char *texts[3] = {trace, id, author};

    return lac_store_change_one(store, WHAT,
                                "DELETE FROM bookmarks WHERE trace = ?1 AND id = ?2"
                                " AND (?3 IS NULL OR author = ?3)",
                                texts, 3, not_yours, reterr);
}
