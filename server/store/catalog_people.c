/* People, tokens and projects: reading their rows. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_people_rows_done(struct lac_people_rows *rows)
{
    for (uint32_t i = 0; i < rows->settings_count; i++) {
        free(rows->settings[i].description);
    }
    free(rows->users);
    free(rows->sessions);
    free(rows->tokens);
    free(rows->members);
    free(rows->settings);
    *rows = (struct lac_people_rows){0};
}

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

static void copy_hash(struct lac_statement *get, int column, uint8_t *out)
{
    const void *blob = lac_db_blob(get, column);

    memset(out, 0, LAC_SHA256_SIZE);
    if (blob != NULL && lac_db_bytes(get, column) == LAC_SHA256_SIZE) {
        memcpy(out, blob, LAC_SHA256_SIZE);
    }
}

/* Each takes a row of its statement. @return false: out of memory */

static bool take_user(struct lac_statement *get, struct lac_people_rows *rows)
{
    struct lac_user_row *row;

    if (!LAC_RESERVE(rows->users, rows->user_capacity, rows->user_count, 1)) {
        return false;
    }
    row = &rows->users[rows->user_count++];
    row->id = lac_db_i64(get, 0);
    copy_text(get, 1, row->name, sizeof(row->name));
    copy_text(get, 2, row->password, sizeof(row->password));
    row->is_admin = lac_db_int(get, 3) != 0;
    row->created_unix_ms = lac_db_i64(get, 4);
    return true;
}

static bool take_session(struct lac_statement *get, struct lac_people_rows *rows)
{
    struct lac_session_row *row;

    if (!LAC_RESERVE(rows->sessions, rows->session_capacity, rows->session_count, 1)) {
        return false;
    }
    row = &rows->sessions[rows->session_count++];
    copy_hash(get, 0, row->hash);
    row->user = lac_db_i64(get, 1);
    row->expires_unix_ms = lac_db_i64(get, 2);
    return true;
}

static bool take_token(struct lac_statement *get, struct lac_people_rows *rows)
{
    struct lac_token_row *row;

    if (!LAC_RESERVE(rows->tokens, rows->token_capacity, rows->token_count, 1)) {
        return false;
    }
    row = &rows->tokens[rows->token_count++];
    copy_hash(get, 0, row->hash);
    copy_text(get, 1, row->id, sizeof(row->id));
    copy_text(get, 2, row->label, sizeof(row->label));
    row->user = lac_db_i64(get, 3);
    copy_text(get, 4, row->scope, sizeof(row->scope));
    copy_text(get, 5, row->project, sizeof(row->project));
    row->created_unix_ms = lac_db_i64(get, 6);
    row->expires_unix_ms = lac_db_i64(get, 7);
    row->last_used_unix_ms = lac_db_i64(get, 8);
    return true;
}

static bool take_member(struct lac_statement *get, struct lac_people_rows *rows)
{
    struct lac_member_row *row;

    if (!LAC_RESERVE(rows->members, rows->member_capacity, rows->member_count, 1)) {
        return false;
    }
    row = &rows->members[rows->member_count++];
    copy_text(get, 0, row->project, sizeof(row->project));
    row->user = lac_db_i64(get, 1);
    copy_text(get, 2, row->role, sizeof(row->role));
    return true;
}

static bool take_settings(struct lac_statement *get, struct lac_people_rows *rows)
{
    enum lac_status status = LAC_OK;
    struct lac_settings_row *row;

    if (!LAC_RESERVE(rows->settings, rows->settings_capacity, rows->settings_count, 1)) {
        return false;
    }
    row = &rows->settings[rows->settings_count];
    copy_text(get, 0, row->project, sizeof(row->project));
    copy_text(get, 1, row->everybody, sizeof(row->everybody));
    row->description = lac_db_take_text(get, 2, &status);
    rows->settings_count += status == LAC_OK;
    return status == LAC_OK;
}

static enum lac_status load(struct lac_db *db, const char *sql,
                            bool (*take)(struct lac_statement *get, struct lac_people_rows *rows),
                            struct lac_people_rows *rows, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &get, reterr);

    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        if (!take(get, rows)) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for users and tokens");
        }
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

int64_t lac_store_data_version(struct lac_store *store)
{
    int64_t version;

    (void)pthread_mutex_lock(&store->lock);
    version = lac_db_data_version(store->catalog);
    (void)pthread_mutex_unlock(&store->lock);
    return version;
}

int64_t lac_store_data_version_now(struct lac_store *store)
{
    struct lac_error ignored;
    int64_t version;

    (void)pthread_mutex_lock(&store->lock);
    (void)!lac_db_run(store->catalog, "SELECT 1", &ignored); /* notices come with the answer */
    version = lac_db_data_version(store->catalog);
    (void)pthread_mutex_unlock(&store->lock);
    return version;
}

enum lac_status lac_store_load_people(struct lac_store *store, struct lac_people_rows *ret_rows,
                                      struct lac_error *reterr)
{
    assert(store != NULL && ret_rows != NULL);
    static const struct {
        const char *sql;
        bool (*take)(struct lac_statement *get, struct lac_people_rows *rows);
    } tables[] = {
        {"SELECT id, name, password, is_admin, created_ms FROM users ORDER BY name", take_user},
        {"SELECT hash, user, expires_ms FROM sessions ORDER BY hash", take_session},
        {"SELECT hash, id, label, user, scope, project, created_ms, expires_ms, last_used_ms"
         " FROM tokens ORDER BY hash",
         take_token},
        {"SELECT project, user, role FROM members ORDER BY project, user", take_member},
        {"SELECT project, everybody, description FROM project_settings ORDER BY project",
         take_settings},
    };
    struct lac_people_rows rows = {0};
    enum lac_status status = LAC_OK;

    (void)pthread_mutex_lock(&store->lock);
    rows.data_version = lac_db_data_version(store->catalog);
    for (size_t i = 0; i < LAC_COUNT_OF(tables) && status == LAC_OK; i++) {
        status = load(store->catalog, tables[i].sql, tables[i].take, &rows, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        lac_people_rows_done(&rows);
        return status;
    }
    *ret_rows = rows;
    return LAC_OK;
}

/* -- projects ---------------------------------------------------------------------------------- */

enum lac_status lac_store_list_projects(struct lac_store *store, struct lac_project_row **ret_rows,
                                        uint32_t *ret_count, struct lac_error *reterr)
{
    assert(store != NULL && ret_rows != NULL && ret_count != NULL);
    struct lac_project_row *rows = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(
        store->catalog,
        "WITH of_traces(name, n) AS (SELECT coalesce(l.project, p.name) AS name, count(*)"
        " FROM traces t LEFT JOIN projects p ON p.id = t.project"
        " LEFT JOIN labels l ON l.trace = t.id GROUP BY 1),"
        " names(name) AS (SELECT name FROM projects UNION SELECT name FROM of_traces"
        " UNION SELECT project FROM members UNION SELECT project FROM project_settings)"
        " SELECT n.name, coalesce(p.created_ms, 0), coalesce(o.n, 0) FROM names n"
        " LEFT JOIN projects p ON p.name = n.name LEFT JOIN of_traces o ON o.name = n.name"
        " WHERE n.name IS NOT NULL AND n.name <> '' ORDER BY n.name",
        &get, reterr);
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        if (!LAC_RESERVE(rows, capacity, count, 1)) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the projects");
            break;
        }
        copy_text(get, 0, rows[count].name, sizeof(rows[count].name));
        rows[count].created_unix_ms = lac_db_i64(get, 1);
        rows[count].trace_count = (uint32_t)lac_db_i64(get, 2);
        count++;
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_ERR_NOT_FOUND) {
        free(rows);
        return status;
    }
    *ret_rows = rows;
    *ret_count = count;
    return LAC_OK;
}

#define OF_TRACE(id)                                                                               \
    "SELECT coalesce(l.project, p.name, '') FROM traces t LEFT JOIN projects p ON p.id ="          \
    " t.project LEFT JOIN labels l ON l.trace = t.id WHERE t.id = " id
#define OF_REPORT(id)                                                                              \
    "SELECT coalesce(p.name, '') FROM reports r LEFT JOIN projects p ON p.id = r.project"          \
    " WHERE r.id = " id

enum lac_status lac_store_project_of(struct lac_store *store, enum lac_owned_kind kind,
                                     const char *id, char *out, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL && out != NULL);
    static const char *const queries[] = {
        [LAC_OWNED_TRACE] = OF_TRACE("?1"),
        /* a run is where its traces are: the first of them tells */
        [LAC_OWNED_RUN] =
            "SELECT coalesce((SELECT coalesce(l.project, p.name) FROM traces t"
            " LEFT JOIN projects p ON p.id = t.project LEFT JOIN labels l ON l.trace = t.id"
            " WHERE t.id IN (SELECT id FROM (" LAC_RUN_MEMBERS ") AS members WHERE in_run = r.id)"
            " ORDER BY t.seq LIMIT 1), q.name, '') FROM runs r"
            " LEFT JOIN projects q ON q.id = r.project WHERE r.id = ?1",
        [LAC_OWNED_REPORT] = OF_REPORT("?1"),
        [LAC_OWNED_SHARE] = "SELECT coalesce(CASE s.kind WHEN 'report' THEN (" OF_REPORT(
            "s.target") ") ELSE (" OF_TRACE("s.target") ") END, '') FROM shares s WHERE s.id = ?1",
    };
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog, queries[kind], &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        copy_text(get, 0, out, LAC_PROJECT_BYTES);
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* -- quotas ------------------------------------------------------------------------------------ */

static const char *const quota_words[] = {
    [LAC_QUOTA_PROJECT] = "project", [LAC_QUOTA_TOKEN] = "token"};

/* With the store's lock. One number of one name. @return LAC_ERR_NOT_FOUND: no row */
static enum lac_status number_of(struct lac_store *store, const char *sql, const char *name,
                                 uint64_t *ret_number, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(store->catalog, sql, &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, name);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        const int64_t number = lac_db_i64(get, 0);

        *ret_number = number > 0 ? (uint64_t)number : 0;
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_store_quota(struct lac_store *store, enum lac_quota_kind kind, const char *name,
                                uint64_t *limit_bytes, struct lac_error *reterr)
{
    assert(store != NULL && name != NULL && limit_bytes != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = number_of(store,
                       kind == LAC_QUOTA_PROJECT
                           ? "SELECT bytes FROM quotas WHERE kind = 'project' AND name = ?1"
                           : "SELECT bytes FROM quotas WHERE kind = 'token' AND name = ?1",
                       name, limit_bytes, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/* With the store's lock. */
static enum lac_status used_bytes(struct lac_store *store, enum lac_quota_kind kind,
                                  const char *name, uint64_t *ret_bytes, struct lac_error *reterr)
{
    *ret_bytes = 0;
    return number_of(
        store,
        kind == LAC_QUOTA_PROJECT
            ? "SELECT CAST(coalesce(sum(u.n), 0) AS BIGINT) FROM (SELECT max(t.size_bytes) AS n"
              " FROM traces t LEFT JOIN projects p ON p.id = t.project"
              " LEFT JOIN labels l ON l.trace = t.id WHERE coalesce(l.project, p.name, '') = ?1"
              " GROUP BY coalesce(t.run, t.id), t.sha256) AS u"
            : "SELECT CAST(coalesce(sum(t.size_bytes), 0) AS BIGINT) FROM uploaders u"
              " JOIN traces t ON t.id = u.trace WHERE u.token = ?1",
        name, ret_bytes, reterr);
}

enum lac_status lac_store_used_bytes(struct lac_store *store, enum lac_quota_kind kind,
                                     const char *name, uint64_t *ret_bytes,
                                     struct lac_error *reterr)
{
    assert(store != NULL && name != NULL && ret_bytes != NULL);
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = used_bytes(store, kind, name, ret_bytes, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_list_quotas(struct lac_store *store, lac_quota_fn *visit, void *context,
                                      struct lac_error *reterr)
{
    assert(store != NULL && visit != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(
        store->catalog, "SELECT kind, name, bytes FROM quotas ORDER BY kind, name", &get, reterr);
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        char kind[LAC_WORD_BYTES];
        char name[LAC_PROJECT_BYTES];
        struct lac_quota_row row = {.name = name};

        copy_text(get, 0, kind, sizeof(kind));
        copy_text(get, 1, name, sizeof(name));
        row.kind =
            strcmp(kind, quota_words[LAC_QUOTA_TOKEN]) == 0 ? LAC_QUOTA_TOKEN : LAC_QUOTA_PROJECT;
        row.limit_bytes = (uint64_t)lac_db_i64(get, 2);
        status = used_bytes(store, row.kind, name, &row.used_bytes, reterr);
        if (status == LAC_OK) {
            visit(context, &row);
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/* -- the audit --------------------------------------------------------------------------------- */

enum lac_status lac_store_list_audit(struct lac_store *store, int64_t before_id, uint32_t limit,
                                     struct lac_audit_row **ret_rows, uint32_t *ret_count,
                                     struct lac_error *reterr)
{
    assert(store != NULL && ret_rows != NULL && ret_count != NULL && limit <= 1000);
    struct lac_audit_row *rows = calloc((size_t)limit + 1, sizeof(*rows));
    uint32_t count = 0;
    struct lac_statement *get = NULL;
    enum lac_status status;

    if (rows == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the audit");
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            "SELECT id, at_ms, actor, action, object FROM audit WHERE id < ?1"
                            " ORDER BY id DESC LIMIT ?2",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, before_id);
        lac_db_bind_i64(get, 2, limit);
    }
    while (status == LAC_OK && count < limit &&
           (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        struct lac_audit_row *row = &rows[count++];

        row->id = lac_db_i64(get, 0);
        row->at_unix_ms = lac_db_i64(get, 1);
        copy_text(get, 2, row->actor, sizeof(row->actor));
        copy_text(get, 3, row->action, sizeof(row->action));
        copy_text(get, 4, row->object, sizeof(row->object));
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK && status != LAC_ERR_NOT_FOUND) {
        free(rows);
        return status;
    }
    *ret_rows = rows;
    *ret_count = count;
    return LAC_OK;
}
