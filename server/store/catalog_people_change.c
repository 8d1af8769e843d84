/* People, tokens and projects: changing their rows, on disk when a function returns. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hold the store, and begin. An old catalog that there is no room to convert takes none of this. */
static enum lac_status begin(struct lac_store *store, struct lac_error *reterr)
{
    (void)pthread_mutex_lock(&store->lock);
    return lac_catalog_begin(store->catalog, true, "users and tokens", reterr);
}

static enum lac_status end(struct lac_store *store, enum lac_status status,
                           struct lac_error *reterr)
{
    if (lac_db_is_current(store->catalog)) {
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* One statement. `kinds` says what is bound to ?1, ?2, ...: t text, i int64_t, h a hash. */
static enum lac_status change(struct lac_store *store, enum lac_status status,
                              struct lac_error *reterr, const char *sql, const char *kinds, ...)
{
    struct lac_statement *put = NULL;
    va_list values;

    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, sql, &put, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    va_start(values, kinds);
    for (int i = 0; kinds[i] != '\0'; i++) {
        if (kinds[i] == 't') {
            lac_db_bind_text(put, i + 1, va_arg(values, const char *));
        } else if (kinds[i] == 'h') {
            lac_db_bind_blob(put, i + 1, va_arg(values, const uint8_t *), LAC_SHA256_SIZE);
        } else {
            lac_db_bind_i64(put, i + 1, va_arg(values, int64_t));
        }
    }
    va_end(values);
    status = lac_db_step_done(put, "cannot change the catalog", reterr);
    lac_db_finalize(put);
    return status;
}

/* The statement before must have changed something. */
static enum lac_status must_have_changed(struct lac_store *store, enum lac_status status,
                                         const char *what, struct lac_error *reterr)
{
    return status == LAC_OK && lac_db_changes(store->catalog) == 0
               ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "%s", what)
               : status;
}

enum lac_status lac_store_put_user(struct lac_store *store, const struct lac_user_row *user,
                                   struct lac_error *reterr)
{
    assert(store != NULL && user != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr,
                    "DELETE FROM sessions WHERE user IN (SELECT id FROM users WHERE name = ?1 AND"
                    " coalesce(password, '') <> coalesce(?2, ''))",
                    "tt", user->name, user->password);
    status =
        change(store, status, reterr,
               "INSERT INTO users(name, password, is_admin, created_ms) VALUES(?1, ?2, ?3, ?4)"
               " ON CONFLICT(name) DO UPDATE SET password = ?2, is_admin = ?3",
               "ttii", user->name, user->password, (int64_t)user->is_admin, user->created_unix_ms);
    return end(store, status, reterr);
}

enum lac_status lac_store_remove_user(struct lac_store *store, const char *name,
                                      struct lac_error *reterr)
{
    assert(store != NULL && name != NULL);
    static const char *const tables[] = {
        "DELETE FROM sessions WHERE user = (SELECT id FROM users WHERE name = ?1)",
        "DELETE FROM tokens WHERE user = (SELECT id FROM users WHERE name = ?1)",
        "DELETE FROM members WHERE user = (SELECT id FROM users WHERE name = ?1)",
    };
    enum lac_status status = begin(store, reterr);

    for (size_t i = 0; i < LAC_COUNT_OF(tables); i++) {
        status = change(store, status, reterr, tables[i], "t", name);
    }
    status = change(store, status, reterr, "DELETE FROM users WHERE name = ?1", "t", name);
    status = must_have_changed(store, status, "no such user", reterr);
    return end(store, status, reterr);
}

enum lac_status lac_store_put_session(struct lac_store *store,
                                      const struct lac_session_row *session,
                                      struct lac_error *reterr)
{
    assert(store != NULL && session != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr, "DELETE FROM sessions WHERE expires_ms <= ?1", "i",
                    lac_now_unix_ms());
    status = change(store, status, reterr,
                    "INSERT INTO sessions(hash, user, expires_ms) VALUES(?1, ?2, ?3)", "hii",
                    session->hash, session->user, session->expires_unix_ms);
    return end(store, status, reterr);
}

enum lac_status lac_store_remove_session(struct lac_store *store, const uint8_t *hash,
                                         struct lac_error *reterr)
{
    assert(store != NULL && hash != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr, "DELETE FROM sessions WHERE hash = ?1", "h", hash);
    return end(store, status, reterr);
}

enum lac_status lac_store_put_token(struct lac_store *store, const struct lac_token_row *token,
                                    struct lac_error *reterr)
{
    assert(store != NULL && token != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr,
                    "INSERT INTO tokens(hash, id, label, user, scope, project, created_ms,"
                    " expires_ms, last_used_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
                    "httittii", token->hash, token->id, token->label, token->user, token->scope,
                    token->project, token->created_unix_ms, token->expires_unix_ms);
    return end(store, status, reterr);
}

enum lac_status lac_store_remove_token(struct lac_store *store, const char *id,
                                       struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr, "DELETE FROM tokens WHERE id = ?1", "t", id);
    status = must_have_changed(store, status, "no such token", reterr);
    status = change(store, status, reterr, "DELETE FROM quotas WHERE kind = 'token' AND name = ?1",
                    "t", id);
    return end(store, status, reterr);
}

enum lac_status lac_store_touch_tokens(struct lac_store *store, const struct lac_token_row *tokens,
                                       uint32_t count, struct lac_error *reterr)
{
    assert(store != NULL && (tokens != NULL || count == 0));
    const bool is_alone =
        store->only_reads; /* the only thing that one that stands by writes: a time
                                                that only grows needs no order among servers */
    enum lac_status status = LAC_OK;

    if (is_alone) {
        (void)pthread_mutex_lock(&store->lock);
    } else {
        status = begin(store, reterr);
    }
    for (uint32_t i = 0; i < count; i++) {
        status = change(store, status, reterr,
                        "UPDATE tokens SET last_used_ms = ?2 WHERE id = ?1 AND last_used_ms < ?2",
                        "ti", tokens[i].id, tokens[i].last_used_unix_ms);
    }
    if (is_alone) {
        (void)pthread_mutex_unlock(&store->lock);
        return status;
    }
    return end(store, status, reterr);
}

enum lac_status lac_store_put_member(struct lac_store *store, const char *project, const char *user,
                                     const char *role, struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && user != NULL && role != NULL);
    enum lac_status status = begin(store, reterr);

    if (*role == '\0') {
        status = change(store, status, reterr,
                        "DELETE FROM members WHERE project = ?1 AND user = (SELECT id FROM users"
                        " WHERE name = ?2)",
                        "tt", project, user);
        status = must_have_changed(store, status, "no such member", reterr);
    } else {
        status = change(store, status, reterr,
                        "INSERT INTO members(project, user, role)"
                        " SELECT ?1, id, ?3 FROM users WHERE name = ?2"
                        " ON CONFLICT(project, user) DO UPDATE SET role = excluded.role",
                        "ttt", project, user, role);
        status = must_have_changed(store, status, "no such user", reterr);
    }
    return end(store, status, reterr);
}

enum lac_status lac_store_put_settings(struct lac_store *store, const char *project,
                                       const char *everybody, const char *description,
                                       struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && description != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr,
                    "INSERT INTO project_settings(project, everybody, description)"
                    " VALUES(?1, ?2, ?3) ON CONFLICT(project) DO UPDATE SET"
                    " everybody = excluded.everybody, description = excluded.description",
                    "ttt", project, everybody, description);
    return end(store, status, reterr);
}

enum lac_status lac_store_add_project(struct lac_store *store, const char *name,
                                      struct lac_error *reterr)
{
    assert(store != NULL && name != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr,
                    "INSERT INTO projects(name, created_ms) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
                    "ti", name, lac_now_unix_ms());
    return end(store, status, reterr);
}

/* -- quotas ------------------------------------------------------------------------------------ */

enum lac_status lac_store_put_quota(struct lac_store *store, enum lac_quota_kind kind,
                                    const char *name, int64_t bytes, struct lac_error *reterr)
{
    assert(store != NULL && name != NULL);
    const char *const word = kind == LAC_QUOTA_PROJECT ? "project" : "token";
    enum lac_status status = begin(store, reterr);

    if (kind == LAC_QUOTA_TOKEN) { /* a wrong id would limit nothing, silently */
        status =
            change(store, status, reterr, "UPDATE tokens SET id = id WHERE id = ?1", "t", name);
        status = must_have_changed(store, status, "no such token", reterr);
    }
    status = change(store, status, reterr, "DELETE FROM quotas WHERE kind = ?1 AND name = ?2", "tt",
                    word, name);
    if (bytes >= 0) {
        status = change(store, status, reterr,
                        "INSERT INTO quotas(kind, name, bytes) VALUES(?1, ?2, ?3)", "tti", word,
                        name, bytes);
    }
    return end(store, status, reterr);
}

enum lac_status lac_store_set_uploader(struct lac_store *store, const char *trace,
                                       const char *token, struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL && token != NULL);
    enum lac_status status = begin(store, reterr);

    status = change(store, status, reterr, "DELETE FROM uploaders WHERE trace = ?1", "t", trace);
    status = change(store, status, reterr, "INSERT INTO uploaders(trace, token) VALUES(?1, ?2)",
                    "tt", trace, token);
    return end(store, status, reterr);
}
