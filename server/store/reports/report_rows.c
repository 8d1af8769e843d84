/* Reports that people write: rows, versions, and the snapshots of their parts. */

#include "server/store/reports/report_rows.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT_MAX = 1000 };

#define REPORT_COLUMNS                                                                             \
    "SELECT r.id, coalesce(p.name, ''), coalesce(r.title, ''), %s, r.author, r.editor, r.version," \
    " r.created_ms, r.updated_ms, (SELECT count(*) FROM report_comments c WHERE c.report = r.id"   \
    " AND c.thread = c.id AND c.resolved_ms IS NULL)"                                              \
    " FROM reports r LEFT JOIN projects p ON p.id = r.project "

enum lac_status lac_report_rows_begin(struct lac_store *store, bool writes,
                                      struct lac_error *reterr)
{
    return lac_catalog_begin(store->catalog, writes, "reports", reterr);
}

void lac_written_report_done(struct lac_written_report *row)
{
    free(row->project);
    free(row->title);
    free(row->markdown);
    free(row->author);
    free(row->editor);
    *row = (struct lac_written_report){0};
}

void lac_reports_list_done(struct lac_written_report_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        lac_written_report_done(&list->rows[i]);
    }
    free(list->rows);
    *list = (struct lac_written_report_list){0};
}

static enum lac_status read_row(struct lac_statement *get, struct lac_written_report *row)
{
    const char *id = lac_db_text(get, 0);
    enum lac_status status = LAC_OK;

    *row = (struct lac_written_report){
        .version = lac_db_i64(get, 6),
        .created_unix_ms = lac_db_i64(get, 7),
        .updated_unix_ms = lac_db_i64(get, 8),
        .open_thread_count = (uint32_t)lac_db_i64(get, 9),
    };
    (void)snprintf(row->id, sizeof(row->id), "%s", id != NULL ? id : "");
    row->project = lac_db_take_text(get, 1, &status);
    row->title = lac_db_take_text(get, 2, &status);
    row->markdown = lac_db_take_text(get, 3, &status);
    row->author = lac_db_take_text(get, 4, &status);
    row->editor = lac_db_take_text(get, 5, &status);
    if (status != LAC_OK) {
        lac_written_report_done(row);
    }
    return status;
}

/** Cursors are "w<updated_ms>.<id>". */
static bool parse_cursor(const char *after, int64_t *ret_ms, char *ret_id)
{
    char *end = NULL;

    *ret_ms = INT64_MAX;
    ret_id[0] = '\0';
    if (after == NULL || *after == '\0') {
        return true;
    }
    if (after[0] != 'w' || after[1] < '0' || after[1] > '9' || strlen(after) > 64) {
        return false;
    }
    *ret_ms = strtoll(after + 1, &end, 10);
    if (*end != '.' || !lac_store_id_is_valid(end + 1)) {
        return false;
    }
    (void)snprintf(ret_id, LAC_ID_SIZE, "%s", end + 1);
    return true;
}

static enum lac_status read_page(struct lac_statement *get, uint32_t limit,
                                 struct lac_written_report_list *list, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK && list->count == limit) {
            const struct lac_written_report *last = &list->rows[limit - 1];

            list->has_more = true;
            (void)snprintf(list->next, sizeof(list->next), "w%" PRId64 ".%s", last->updated_unix_ms,
                           last->id);
            return LAC_OK;
        }
        if (status == LAC_OK) {
            status = read_row(get, &list->rows[list->count]);
            list->count += status == LAC_OK ? 1 : 0;
        }
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status list_page(struct lac_store *store,
                                 const struct lac_written_report_query *query, int64_t before_ms,
                                 const char *before_id, struct lac_written_report_list *list,
                                 struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    char sql[1200];
    enum lac_status status = lac_report_rows_begin(store, false, reterr);

    (void)snprintf(sql, sizeof(sql),
                   REPORT_COLUMNS
                   "WHERE (r.updated_ms < ?1 OR (r.updated_ms = ?1 AND r.id < ?2))"
                   " AND (?3 IS NULL OR coalesce(p.name, '') = ?3)"
                   " AND (?6 IS NULL OR p.name IN (SELECT value FROM json_each(?6)))"
                   " AND (?4 IS NULL OR instr(lower(r.title), lower(?4)) > 0)"
                   " AND (?5 IS NULL OR EXISTS (SELECT 1 FROM report_comments m WHERE m.report ="
                   " r.id AND instr(m.mentions, '\n' || ?5 || '\n') > 0 AND NOT EXISTS"
                   " (SELECT 1 FROM report_comments f WHERE f.id = m.thread AND f.resolved_ms IS"
                   " NOT NULL))) ORDER BY r.updated_ms DESC, r.id DESC",
                   "NULL");
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, sql, &get, reterr);
    }
    if (status == LAC_OK) {
        const bool has_text = query->text != NULL && query->text[0] != '\0';

        lac_db_bind_i64(get, 1, before_ms);
        lac_db_bind_text(get, 2, before_id);
        lac_db_bind_text(get, 3, query->project);
        lac_db_bind_text(get, 4, has_text ? query->text : NULL);
        lac_db_bind_text(get, 5, query->mention);
        lac_db_bind_text(get, 6, query->among);
        status = read_page(get, query->limit, list, reterr);
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_reports_list(struct lac_store *store,
                                 const struct lac_written_report_query *query,
                                 struct lac_written_report_list *ret_list, struct lac_error *reterr)
{
    assert(store != NULL && query != NULL && ret_list != NULL);
    struct lac_written_report_list list = {0};
    int64_t before_ms = 0;
    char before_id[LAC_ID_SIZE];
    enum lac_status status;

    if (query->limit < 1 || query->limit > LIST_LIMIT_MAX ||
        !parse_cursor(query->after, &before_ms, before_id)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "reports: limit is 1 to %d, after is the cursor of the page before",
                        LIST_LIMIT_MAX);
    }
    list.rows = calloc(query->limit, sizeof(*list.rows));
    if (list.rows == NULL) {
        return LAC_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = list_page(store, query, before_ms, before_id, &list, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        lac_reports_list_done(&list);
        return status;
    }
    *ret_list = list;
    return LAC_OK;
}

enum lac_status lac_reports_get(struct lac_store *store, const char *id,
                                struct lac_written_report *ret_row, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_row != NULL);
    struct lac_statement *get = NULL;
    char sql[600];
    enum lac_status status;

    (void)snprintf(sql, sizeof(sql), REPORT_COLUMNS "WHERE r.id = ?1", "coalesce(r.body, '')");
    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, sql, &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        status = read_row(get, ret_row);
    } else if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no report has this id");
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- changes ---- */

static enum lac_status put_snapshots(struct lac_db *db, const char *id,
                                     const struct lac_report_change *change, const char *now,
                                     struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < change->snapshot_count && status == LAC_OK; i++) {
        const char *texts[4] = {id, change->snapshots[i].part, now, change->snapshots[i].text};

        status = lac_catalog_change(db,
                                    "INSERT INTO report_parts VALUES(?1, ?2,"
                                    " CAST(?3 AS INTEGER), ?4) ON CONFLICT DO NOTHING",
                                    texts, 4, NULL, reterr);
    }
    return status;
}

/** The newest version goes into the history as well. */
static enum lac_status put_version(struct lac_db *db, const char *id, const char *author,
                                   struct lac_error *reterr)
{
    const char *texts[2] = {id, author};

    return lac_catalog_change(db,
                              "INSERT INTO report_versions SELECT id, version, title, body, ?2,"
                              " updated_ms FROM reports WHERE id = ?1",
                              texts, 2, NULL, reterr);
}

static enum lac_status put_project(struct lac_db *db, const char *id, const char *name,
                                   struct lac_error *reterr)
{
    int64_t project = 0;
    char number[LAC_NUMBER_SIZE];
    const char *texts[2] = {id, number};
    enum lac_status status = lac_catalog_project(db, name, &project, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)lac_catalog_number_text(number, project);
    return lac_catalog_change(
        db, "UPDATE reports SET project = nullif(CAST(?2 AS INTEGER), 0) WHERE id = ?1", texts, 2,
        NULL, reterr);
}

enum lac_status lac_reports_create(struct lac_store *store, const struct lac_report_change *change,
                                   char *ret_id, struct lac_error *reterr)
{
    assert(store != NULL && change != NULL && ret_id != NULL && change->title != NULL &&
           change->markdown != NULL && change->author != NULL);
    char now[LAC_NUMBER_SIZE];
    const char *texts[5] = {ret_id, change->title, change->markdown,
                            lac_catalog_number_text(now, lac_now_unix_ms()), change->author};
    enum lac_status status = lac_store_new_id(ret_id, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, true, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog,
                                    "INSERT INTO reports(id, title, body, created_ms, updated_ms,"
                                    " version, author, editor) VALUES(?1, ?2, ?3, CAST(?4 AS"
                                    " INTEGER), CAST(?4 AS INTEGER), 1, ?5, ?5)",
                                    texts, 5, NULL, reterr);
        if (status == LAC_OK) {
            status = put_project(store->catalog, ret_id, change->project, reterr);
        }
        if (status == LAC_OK) {
            status = put_version(store->catalog, ret_id, change->author, reterr);
        }
        if (status == LAC_OK) {
            status = put_snapshots(store->catalog, ret_id, change, now, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

static enum lac_status read_number(struct lac_db *db, const char *sql, const char *id,
                                   int64_t *ret_number, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        *ret_number = lac_db_i64(get, 0);
    }
    lac_db_finalize(get);
    return status;
}

/** Whether the change may be made now. */
static enum lac_status look_before(struct lac_db *db, const char *id, int64_t base,
                                   struct lac_error *reterr)
{
    int64_t version = 0;
    int64_t parts = 0;
    enum lac_status status =
        read_number(db, "SELECT version FROM reports WHERE id = ?1", id, &version, reterr);

    if (status == LAC_ERR_NOT_FOUND) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no report has this id");
    }
    if (status == LAC_OK && version != base) {
        return lac_fail(reterr, LAC_ERR_BUSY, 0,
                        "somebody saved version %" PRId64 " meanwhile: merge, then save again",
                        version);
    }
    if (status == LAC_OK && version >= LAC_REPORT_VERSIONS_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "the report has %d versions, the most there can be: begin a new one",
                        LAC_REPORT_VERSIONS_MAX);
    }
    if (status == LAC_OK) {
        status = read_number(db, "SELECT count(*) FROM report_parts WHERE report = ?1", id, &parts,
                             reterr);
    }
    if (status == LAC_OK && parts > LAC_REPORT_PART_HISTORY_MAX) {
        return lac_fail(reterr, LAC_ERR_LIMIT, 0,
                        "the versions of this report show more than %d parts: begin a new one",
                        LAC_REPORT_PART_HISTORY_MAX);
    }
    return status;
}

static enum lac_status change_report(struct lac_db *db, const char *id,
                                     const struct lac_report_change *change,
                                     struct lac_error *reterr)
{
    char now[LAC_NUMBER_SIZE];
    const char *texts[5] = {id, change->title, change->markdown,
                            lac_catalog_number_text(now, lac_now_unix_ms()), change->author};
    enum lac_status status =
        lac_catalog_change(db,
                           "UPDATE reports SET title = coalesce(?2, title), body = coalesce(?3,"
                           " body), updated_ms = CASE WHEN updated_ms > CAST(?4 AS INTEGER)"
                           " THEN updated_ms ELSE CAST(?4 AS INTEGER) END, version = version + 1, "
                           "editor = ?5 WHERE id = ?1",
                           texts, 5, NULL, reterr);

    if (status == LAC_OK && change->project != NULL) {
        status = put_project(db, id, change->project, reterr);
    }
    if (status == LAC_OK) {
        status = put_version(db, id, change->author, reterr);
    }
    return status == LAC_OK ? put_snapshots(db, id, change, now, reterr) : status;
}

enum lac_status lac_reports_change(struct lac_store *store, const char *id, int64_t base,
                                   const struct lac_report_change *change, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && change != NULL && change->author != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, true, reterr);
    if (status == LAC_OK) {
        status = look_before(store->catalog, id, base, reterr);
        if (status == LAC_OK) {
            status = change_report(store->catalog, id, change, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_reports_delete(struct lac_store *store, const char *id,
                                   struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    static const char *const others[] = {
        "DELETE FROM report_versions WHERE report = ?1",
        "DELETE FROM report_parts WHERE report = ?1",
        "DELETE FROM report_comments WHERE report = ?1",
        "DELETE FROM report_findings WHERE report = ?1",
        "DELETE FROM shares WHERE target = ?1",
    };
    const char *texts[1] = {id};
    int changes = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, true, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(store->catalog, "DELETE FROM reports WHERE id = ?1", texts, 1,
                                    &changes, reterr);
        if (status == LAC_OK && changes == 0) {
            status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no report has this id");
        }
        for (size_t i = 0; i < LAC_COUNT_OF(others) && status == LAC_OK; i++) {
            status = lac_catalog_change(store->catalog, others[i], texts, 1, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- versions, snapshots ---- */

enum lac_status lac_reports_versions(struct lac_store *store, const char *id,
                                     lac_report_version_fn *visit, void *context,
                                     struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "SELECT version, title, author, at_ms, length(CAST(body AS BLOB))"
                                " FROM report_versions WHERE report = ?1 ORDER BY version DESC",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
            visit(context, lac_db_i64(get, 0), lac_catalog_text(get, 1), lac_catalog_text(get, 2),
                  lac_db_i64(get, 3), lac_db_i64(get, 4));
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_reports_version(struct lac_store *store, const char *id, int64_t version,
                                    struct lac_written_report *ret_row, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_row != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "SELECT v.report, coalesce(p.name, ''), v.title, v.body, r.author,"
                                " v.author, v.version, r.created_ms, v.at_ms, 0 FROM"
                                " report_versions v JOIN reports r ON r.id = v.report"
                                " LEFT JOIN projects p ON p.id = r.project"
                                " WHERE v.report = ?1 AND v.version = ?2",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        lac_db_bind_i64(get, 2, version);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        status = read_row(get, ret_row);
    } else if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "this report has no such version");
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_reports_snapshot(struct lac_store *store, const char *id, const char *part,
                                     char **ret_text, int64_t *ret_at_unix_ms,
                                     struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && part != NULL && ret_text != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_report_rows_begin(store, false, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(
            store->catalog,
            "SELECT snapshot, at_ms FROM report_parts WHERE report = ?1 AND part = ?2", &get,
            reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        lac_db_bind_text(get, 2, part);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        *ret_text = lac_db_take_text(get, 0, &status);
        if (ret_at_unix_ms != NULL) {
            *ret_at_unix_ms = lac_db_i64(get, 1);
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
