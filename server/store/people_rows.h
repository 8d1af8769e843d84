#ifndef LAC_SERVER_STORE_PEOPLE_ROWS_H
#define LAC_SERVER_STORE_PEOPLE_ROWS_H

/*
 * People, their sessions and tokens, members and settings of projects, and the audit, as the
 * catalog has them. Secrets are here as hashes only. Who may do what is server/people's business:
 * it keeps all of these rows in memory, and changes them here.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_PERSON_NAME_BYTES = 65,
    LAC_PROJECT_BYTES = 256,
    LAC_PASSWORD_HASH_BYTES = 128,
    LAC_TOKEN_LABEL_BYTES = 129,
    LAC_WORD_BYTES = 12, /**< a role or a scope */
};

struct lac_user_row {
    int64_t id;
    char name[LAC_PERSON_NAME_BYTES];
    char password[LAC_PASSWORD_HASH_BYTES]; /**< "" none: only a trusted proxy lets them in */
    bool is_admin;
    int64_t created_unix_ms;
};

/** A browser that signed in. */
struct lac_session_row {
    uint8_t hash[LAC_SHA256_SIZE];
    int64_t user;
    int64_t expires_unix_ms;
};

struct lac_token_row {
    char id[LAC_ID_SIZE];
    uint8_t hash[LAC_SHA256_SIZE];
    char label[LAC_TOKEN_LABEL_BYTES];
    int64_t user; /**< who made it; 0: the holder of the local key */
    char scope[LAC_WORD_BYTES];
    char project[LAC_PROJECT_BYTES]; /**< "" every one of the maker's */
    int64_t created_unix_ms;
    int64_t expires_unix_ms;   /**< 0 never */
    int64_t last_used_unix_ms; /**< 0 never */
};

struct lac_member_row {
    char project[LAC_PROJECT_BYTES];
    int64_t user;
    char role[LAC_WORD_BYTES];
};

struct lac_settings_row {
    char project[LAC_PROJECT_BYTES];
    char everybody[LAC_WORD_BYTES]; /**< role of all who are signed in, "" none */
    char *description;              /**< of people, NULL none */
};

/** All of them. */
struct lac_people_rows {
    struct lac_user_row *users;
    struct lac_session_row *sessions;
    struct lac_token_row *tokens;
    struct lac_member_row *members;
    struct lac_settings_row *settings;
    uint32_t user_count, user_capacity;
    uint32_t session_count, session_capacity;
    uint32_t token_count, token_capacity;
    uint32_t member_count, member_capacity;
    uint32_t settings_count, settings_capacity;
    int64_t data_version; /**< as lac_store_data_version() before the first row was read */
};

/** Free the contents; zeroed structs are allowed. */
void lac_people_rows_done(struct lac_people_rows *rows);

/** @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_store_load_people(struct lac_store *store,
                                                   struct lac_people_rows *ret_rows,
                                                   struct lac_error *reterr);

/** A number that differs once another process has changed the catalog; 0 when it cannot be read. */
int64_t lac_store_data_version(struct lac_store *store);

/** The same, and what was committed before this call is in it for certain: PostgreSQL, which tells of
 *  changes a moment later, is asked. */
int64_t lac_store_data_version_now(struct lac_store *store);

/** Add a user, or replace password and rights of the one of this name (`id` is not looked at). A
 *  changed password ends the user's sessions. */
LAC_MUST_USE enum lac_status lac_store_put_user(struct lac_store *store,
                                                const struct lac_user_row *user,
                                                struct lac_error *reterr);

/** With sessions, tokens and memberships. @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_store_remove_user(struct lac_store *store, const char *name,
                                                   struct lac_error *reterr);

/** Add a session; those that have expired go. */
LAC_MUST_USE enum lac_status lac_store_put_session(struct lac_store *store,
                                                   const struct lac_session_row *session,
                                                   struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_store_remove_session(struct lac_store *store, const uint8_t *hash,
                                                      struct lac_error *reterr);

LAC_MUST_USE enum lac_status lac_store_put_token(struct lac_store *store,
                                                 const struct lac_token_row *token,
                                                 struct lac_error *reterr);
/** @return LAC_OK or LAC_ERR_NOT_FOUND */
LAC_MUST_USE enum lac_status lac_store_remove_token(struct lac_store *store, const char *id,
                                                    struct lac_error *reterr);
/** Keep when tokens were last used. */
LAC_MUST_USE enum lac_status lac_store_touch_tokens(struct lac_store *store,
                                                    const struct lac_token_row *tokens,
                                                    uint32_t count, struct lac_error *reterr);

/** role "" removes the membership. @return LAC_OK, or LAC_ERR_NOT_FOUND (no such user or member) */
LAC_MUST_USE enum lac_status lac_store_put_member(struct lac_store *store, const char *project,
                                                  const char *user, const char *role,
                                                  struct lac_error *reterr);

LAC_MUST_USE enum lac_status lac_store_put_settings(struct lac_store *store, const char *project,
                                                    const char *everybody, const char *description,
                                                    struct lac_error *reterr);

/** A project as people see it: of its own table, or named by a trace's label. */
struct lac_project_row {
    char name[LAC_PROJECT_BYTES];
    int64_t created_unix_ms; /**< 0 not known */
    uint32_t trace_count;
};

/** All projects by name; the caller frees *ret_rows. */
LAC_MUST_USE enum lac_status lac_store_list_projects(struct lac_store *store,
                                                     struct lac_project_row **ret_rows,
                                                     uint32_t *ret_count, struct lac_error *reterr);

/** Add a project; one that is there stays as it is. */
LAC_MUST_USE enum lac_status lac_store_add_project(struct lac_store *store, const char *name,
                                                   struct lac_error *reterr);

/** What belongs to a project. */
enum lac_owned_kind { LAC_OWNED_TRACE = 0, LAC_OWNED_RUN, LAC_OWNED_REPORT, LAC_OWNED_SHARE };

/** The project that it belongs to; "" none.
 *  @param out LAC_PROJECT_BYTES
 *  @return LAC_OK, or LAC_ERR_NOT_FOUND when there is none of this id */
LAC_MUST_USE enum lac_status lac_store_project_of(struct lac_store *store, enum lac_owned_kind kind,
                                                  const char *id, char *out,
                                                  struct lac_error *reterr);

/* -- quotas ------------------------------------------------------------------------------------ */

enum lac_quota_kind { LAC_QUOTA_PROJECT = 0, LAC_QUOTA_TOKEN };

/** How many bytes, as they were uploaded, a project may hold, or a token bring. */
struct lac_quota_row {
    enum lac_quota_kind kind;
    const char *name;     /**< of the project ("" none), or id of the token */
    uint64_t limit_bytes; /**< 0: no limit */
    uint64_t used_bytes;  /**< by traces that are there */
};

typedef void lac_quota_fn(void *context, const struct lac_quota_row *row);

/** @param bytes 0: no limit; -1: what holds for all others */
LAC_MUST_USE enum lac_status lac_store_put_quota(struct lac_store *store, enum lac_quota_kind kind,
                                                 const char *name, int64_t bytes,
                                                 struct lac_error *reterr);

/** @param limit_bytes stays what it is where there is no quota of this name */
LAC_MUST_USE enum lac_status lac_store_quota(struct lac_store *store, enum lac_quota_kind kind,
                                             const char *name, uint64_t *limit_bytes,
                                             struct lac_error *reterr);

/** What is stored of a project, or of a token. Ranks of one upload count once. */
LAC_MUST_USE enum lac_status lac_store_used_bytes(struct lac_store *store, enum lac_quota_kind kind,
                                                  const char *name, uint64_t *ret_bytes,
                                                  struct lac_error *reterr);

/** All quotas that were set, projects first. `visit` must not call the store. */
LAC_MUST_USE enum lac_status lac_store_list_quotas(struct lac_store *store, lac_quota_fn *visit,
                                                   void *context, struct lac_error *reterr);

/** Keep which token brought a trace. */
LAC_MUST_USE enum lac_status lac_store_set_uploader(struct lac_store *store, const char *trace,
                                                    const char *token, struct lac_error *reterr);

/** A line of the audit. */
struct lac_audit_row {
    int64_t id, at_unix_ms;
    char actor[LAC_PERSON_NAME_BYTES];
    char action[64];
    char object[513];
};

/** Newest first, of those before `before_id`; the caller frees *ret_rows. @param limit 1..1000 */
LAC_MUST_USE enum lac_status lac_store_list_audit(struct lac_store *store, int64_t before_id,
                                                  uint32_t limit, struct lac_audit_row **ret_rows,
                                                  uint32_t *ret_count, struct lac_error *reterr);

#endif
