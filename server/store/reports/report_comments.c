/* What people say beside a report: threads of comments, and what became of its findings. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/reports/report_rows.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static void visit_comment(struct lac_statement *get, lac_comment_fn *visit, void *context)
{
    const struct lac_comment comment = {
        .id = lac_catalog_text(get, 0),
        .thread = lac_catalog_text(get, 1),
        .part = lac_catalog_text(get, 2),
        .body = lac_catalog_text(get, 3),
        .author = lac_catalog_text(get, 4),
        .mentions = lac_catalog_text(get, 5),
        .at_unix_ms = lac_db_i64(get, 6),
        .edited_unix_ms = lac_db_i64(get, 7),
        .resolved_by = lac_catalog_text(get, 8),
        .resolved_unix_ms = lac_db_i64(get, 9),
    };

    visit(context, &comment);
}

enum lac_status lac_comments_list(struct lac_store *store, const char *report, const char *id,
                                  lac_comment_fn *visit, void *context, struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    bool has_any = false;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "SELECT id, thread, part, body, author, mentions, at_ms,"
                                " edited_ms, resolved_by, resolved_ms FROM report_comments WHERE"
                                " report = ?1 AND (?2 IS NULL OR id = ?2) ORDER BY at_ms, id",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, report);
        lac_db_bind_text(get, 2, id);
        while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
            visit_comment(get, visit, context);
            has_any = true;
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_ERR_NOT_FOUND && id != NULL && !has_any) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "this report has no such comment");
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_comments_add(struct lac_store *store, const char *report,
                                 const struct lac_comment *comment, char *ret_id,
                                 struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && comment != NULL && ret_id != NULL);
    char now[LAC_NUMBER_SIZE];
    char most[LAC_NUMBER_SIZE];
    const char *texts[9] = {ret_id,
                            report,
                            comment->thread,
                            comment->part,
                            comment->body,
                            comment->author,
                            comment->mentions,
                            lac_catalog_number_text(now, lac_now_unix_ms()),
                            lac_catalog_number_text(most, LAC_COMMENTS_MAX)};
    enum lac_status status = lac_store_new_id(ret_id, reterr);

    if (status != LAC_OK) {
        return status;
    }
    /* an answer goes to the thread of the comment that it names, and is about the same part */
    return lac_store_change_one(
        store, "reports",
        "INSERT INTO report_comments SELECT ?1, r.id,"
        " CASE WHEN ?3 = '' THEN ?1 ELSE f.thread END,"
        " CASE WHEN ?3 = '' THEN ?4 ELSE f.part END, ?5, ?6, ?7,"
        " CAST(?8 AS INTEGER), NULL, NULL, NULL FROM reports r"
        " LEFT JOIN report_comments f ON f.report = r.id AND f.id = ?3"
        " WHERE r.id = ?2 AND (?3 = '' OR f.id IS NOT NULL) AND (SELECT count(*)"
        " FROM report_comments WHERE report = ?2) < CAST(?9 AS INTEGER)",
        texts, 9,
        "no such report or thread, or the report has 2000 comments, the most there "
        "can be",
        reterr);
}

enum lac_status lac_comments_edit(struct lac_store *store, const char *report, const char *id,
                                  const char *author, const char *body, const char *mentions,
                                  struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && id != NULL && body != NULL && mentions != NULL);
    char now[LAC_NUMBER_SIZE];
    const char *texts[6] = {report, id,       author,
                            body,   mentions, lac_catalog_number_text(now, lac_now_unix_ms())};

    return lac_store_change_one(
        store, "reports",
        "UPDATE report_comments SET body = ?4, mentions = ?5, edited_ms = CAST(?6 AS"
        " INTEGER) WHERE report = ?1 AND id = ?2 AND (?3 IS NULL OR author = ?3)",
        texts, 6, "no comment of yours has this id", reterr);
}

enum lac_status lac_comments_resolve(struct lac_store *store, const char *report, const char *id,
                                     const char *author, const char *by, struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && id != NULL);
    char now[LAC_NUMBER_SIZE];
    const char *texts[5] = {report, id, by, lac_catalog_number_text(now, lac_now_unix_ms()),
                            author};

    return lac_store_change_one(
        store, "reports",
        "UPDATE report_comments SET resolved_by = ?3, resolved_ms = CASE WHEN ?3 IS"
        " NULL THEN NULL ELSE CAST(?4 AS INTEGER) END WHERE report = ?1 AND id = ?2"
        " AND thread = id AND (?5 IS NULL OR author = ?5)",
        texts, 5,
        author == NULL ? "no thread of this report begins with this comment"
                       : "no thread of yours begins with this comment",
        reterr);
}

/** In a transaction: the comment is emptied where others have answered it, else deleted. */
static enum lac_status delete_said(struct lac_db *catalog, const char *const texts[3],
                                   struct lac_error *reterr)
{
    int changes = 0;
    enum lac_status status = LAC_OK;

    if (texts[2] != NULL) {
        status = lac_catalog_change(
            catalog,
            "UPDATE report_comments SET body = '', mentions = '', author = '' WHERE report = ?1 AND"
            " id = ?2 AND thread = ?2 AND author = ?3 AND EXISTS (SELECT 1 FROM report_comments a"
            " WHERE a.report = ?1 AND a.thread = ?2 AND a.author <> ?3)",
            texts, 3, &changes, reterr);
    }
    if (status == LAC_OK && changes == 0) {
        status = lac_catalog_change(
            catalog,
            "DELETE FROM report_comments WHERE report = ?1 AND (id = ?2 OR thread = ?2)"
            " AND EXISTS (SELECT 1 FROM report_comments f WHERE f.report = ?1 AND"
            " f.id = ?2 AND (?3 IS NULL OR f.author = ?3))",
            texts, 3, &changes, reterr);
    }
    if (status == LAC_OK && changes == 0) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no comment of yours has this id");
    }
    /* what was emptied goes with the last answer */
    return status == LAC_OK ? lac_catalog_change(
                                  catalog,
                                  "DELETE FROM report_comments WHERE report = ?1 AND body = '' AND"
                                  " NOT EXISTS (SELECT 1 FROM report_comments a WHERE"
                                  " a.report = ?1 AND a.thread = report_comments.id AND"
                                  " a.id <> report_comments.id)",
                                  texts, 1, &changes, reterr)
                            : status;
}

enum lac_status lac_comments_delete(struct lac_store *store, const char *report, const char *id,
                                    const char *author, struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && id != NULL);
    const char *const texts[3] = {report, id, author};
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, true, reterr);
    if (status == LAC_OK) {
        status = delete_said(store->catalog, texts, reterr);
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- findings ---- */

enum lac_status lac_finding_states(struct lac_store *store, const char *report,
                                   lac_finding_state_fn *visit, void *context,
                                   struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "SELECT part, state, note, author, at_ms FROM report_findings"
                                " WHERE report = ?1 ORDER BY part",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, report);
        while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
            visit(context, lac_catalog_text(get, 0), lac_catalog_text(get, 1),
                  lac_catalog_text(get, 2), lac_catalog_text(get, 3), lac_db_i64(get, 4));
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_finding_set_state(struct lac_store *store, const char *report, const char *part,
                                      const char *state, const char *note, const char *author,
                                      struct lac_error *reterr)
{
    assert(store != NULL && report != NULL && part != NULL && state != NULL && note != NULL);
    char now[LAC_NUMBER_SIZE];
    const char *texts[6] = {report, part,   state,
                            note,   author, lac_catalog_number_text(now, lac_now_unix_ms())};

    return lac_store_change_one(
        store, "reports",
        "INSERT INTO report_findings SELECT id, ?2, ?3, ?4, ?5, CAST(?6 AS INTEGER)"
        " FROM reports WHERE id = ?1 ON CONFLICT(report, part) DO UPDATE SET"
        " state = excluded.state, note = excluded.note, author = excluded.author,"
        " at_ms = excluded.at_ms",
        texts, 6, "no report has this id", reterr);
}
