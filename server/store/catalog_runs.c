/* Runs: what traces of one job have in common. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
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

#define RUN_COLUMNS                                                                                \
    "SELECT r.id, coalesce(r.name, ''), coalesce(max(p.name), ''), r.created_ms, count(t.id),"     \
    " sum(CASE t.state WHEN 2 THEN 1 ELSE 0 END), sum(CASE t.state WHEN 3 THEN 1 ELSE 0 END),"     \
    " sum(t.event_count)"                                                                          \
    " FROM runs r JOIN (" LAC_RUN_MEMBERS                                                          \
    ") t ON t.in_run = r.id LEFT JOIN projects p ON p.id = r.project "

static enum lac_status read_run(struct lac_statement *get, struct lac_run_row *row)
{
    const char *id = lac_db_text(get, 0);
    enum lac_status status = LAC_OK;

    *row = (struct lac_run_row){
        .created_unix_ms = lac_db_i64(get, 3),
        .trace_count = (uint32_t)lac_db_i64(get, 4),
        .ready_count = (uint32_t)lac_db_i64(get, 5),
        .failed_count = (uint32_t)lac_db_i64(get, 6),
        .event_count = (uint64_t)lac_db_i64(get, 7),
    };
    (void)snprintf(row->id, sizeof(row->id), "%s", id != NULL ? id : "");
    row->name = lac_db_take_text(get, 1, &status);
    row->project = lac_db_take_text(get, 2, &status);
    if (status != LAC_OK) {
        lac_run_row_done(row);
    }
    return status;
}

void lac_run_row_done(struct lac_run_row *row)
{
    free(row->name);
    free(row->project);
    *row = (struct lac_run_row){0};
}

void lac_run_list_done(struct lac_run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        lac_run_row_done(&list->rows[i]);
    }
    free(list->rows);
    *list = (struct lac_run_list){0};
}

/** Cursors are "r<created_ms>.<id>": runs are never renumbered, so a page ends where it ended. */
static bool parse_cursor(const char *after, int64_t *ret_created_ms, char *ret_id)
{
    char *end = NULL;

    *ret_created_ms = INT64_MAX;
    ret_id[0] = '\0';
    if (after == NULL || *after == '\0') {
        return true;
    }
    if (after[0] != 'r' || after[1] < '0' || after[1] > '9' || strlen(after) > 64) {
        return false;
    }
    *ret_created_ms = strtoll(after + 1, &end, 10);
    if (*end != '.' || !lac_store_id_is_valid(end + 1)) {
        return false;
    }
    (void)snprintf(ret_id, LAC_ID_SIZE, "%s", end + 1);
    return true;
}

static enum lac_status read_page(struct lac_statement *get, uint32_t limit,
                                 struct lac_run_list *list, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status != LAC_OK) {
            break;
        }
        if (list->count == limit) {
            const struct lac_run_row *last = &list->rows[limit - 1];

            list->has_more = true;
            (void)snprintf(list->next, sizeof(list->next), "r%" PRId64 ".%s", last->created_unix_ms,
                           last->id);
            break;
        }
        status = read_run(get, &list->rows[list->count]);
        list->count += status == LAC_OK ? 1 : 0;
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_store_list_runs(struct lac_store *store, const struct lac_run_query *query,
                                    struct lac_run_list *ret_list, struct lac_error *reterr)
{
    assert(store != NULL && query != NULL && ret_list != NULL);
    struct lac_run_list list = {0};
    struct lac_statement *get = NULL;
    int64_t before_ms = 0;
    char before_id[LAC_ID_SIZE];
    enum lac_status status;

    if (query->limit < 1 || query->limit > LIST_LIMIT_MAX ||
        !parse_cursor(query->after, &before_ms, before_id)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "runs: limit is 1 to %d, after is the cursor of the page before",
                        LIST_LIMIT_MAX);
    }
    list.rows = calloc(query->limit, sizeof(*list.rows));
    if (list.rows == NULL) {
        return LAC_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            RUN_COLUMNS
                            "WHERE (r.created_ms < ?1 OR (r.created_ms = ?1 AND r.id < ?2))"
                            " AND (?3 IS NULL OR p.name = ?3)"
                            " AND (?4 IS NULL OR p.name IN (SELECT value FROM json_each(?4)))"
                            " GROUP BY r.id ORDER BY r.created_ms DESC, r.id DESC",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, before_ms);
        lac_db_bind_text(get, 2, before_id);
        lac_db_bind_text(get, 3, query->project);
        lac_db_bind_text(get, 4, query->among);
        status = read_page(get, query->limit, &list, reterr);
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        lac_run_list_done(&list);
        return status;
    }
    *ret_list = list;
    return LAC_OK;
}

enum lac_status lac_store_get_run(struct lac_store *store, const char *id,
                                  struct lac_run_row *ret_row, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && ret_row != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status =
        lac_db_prepare(store->catalog, RUN_COLUMNS "WHERE r.id = ?1 GROUP BY r.id", &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        status = read_run(get, ret_row);
    } else if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no run has this id");
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* -- traces that people put together ----------------------------------------------------------- */

static enum lac_status set_runs(struct lac_db *db, const char *const *traces, uint32_t count,
                                const char *run, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const char *texts[2] = {traces[i], run};

        status = lac_catalog_change(db,
                                    "INSERT INTO labels(trace, run) SELECT id, ?2 FROM traces"
                                    " WHERE id = ?1 ON CONFLICT(trace) DO UPDATE SET"
                                    " run = excluded.run",
                                    texts, 2, NULL, reterr);
    }
    return status;
}

enum lac_status lac_store_make_run(struct lac_store *store, const char *name, const char *project,
                                   const char *const *traces, uint32_t count, char *ret_id,
                                   struct lac_error *reterr)
{
    assert(store != NULL && name != NULL && project != NULL && traces != NULL && ret_id != NULL);
    struct lac_db *const db = store->catalog;
    int64_t project_id = 0;
    enum lac_status status = lac_store_new_id(ret_id, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(db, true, "a run", reterr);
    if (status == LAC_OK) {
        status = lac_catalog_project(db, project, &project_id, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_put_run(db, ret_id, project_id, name, lac_now_unix_ms(), reterr);
        }
        if (status == LAC_OK) {
            status = set_runs(db, traces, count, ret_id, reterr);
        }
        status = lac_db_end(db, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_dissolve_run(struct lac_store *store, const char *id,
                                       struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    struct lac_db *const db = store->catalog;
    const char *texts[1] = {id};
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(db, true, "labels", reterr);
    if (status == LAC_OK) {
        status = lac_catalog_change(db, "UPDATE labels SET run = '' WHERE run = ?1", texts, 1, NULL,
                                    reterr);
        if (status == LAC_OK) { /* those that came with it */
            status = lac_catalog_change(db,
                                        "INSERT INTO labels(trace, run) SELECT id, '' FROM traces"
                                        " WHERE run = ?1 ON CONFLICT(trace) DO UPDATE SET"
                                        " run = coalesce(labels.run, excluded.run)",
                                        texts, 1, NULL, reterr);
        }
        status = lac_db_end(db, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
