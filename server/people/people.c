#include "server/people/people.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/http/principal.h"
#include "server/people/people_private.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a token's use may wait until it is on disk. */
enum { TOUCH_MS = 60000 };

int64_t lac_people_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* -- words ------------------------------------------------------------------------------------- */

#define WRITER (LAC_RIGHT_READ | LAC_RIGHT_COMMENT | LAC_RIGHT_UPLOAD | LAC_RIGHT_WRITE)

static const struct {
    const char *word;
    unsigned as_scope;
    unsigned as_role; /**< 0: there is no such role */
} words[] = {
    {"read", LAC_RIGHT_READ, LAC_RIGHT_READ | LAC_RIGHT_COMMENT},
    {"upload", LAC_RIGHT_UPLOAD, 0},
    {"write", WRITER, WRITER},
    {"admin", LAC_RIGHTS_ALL, LAC_RIGHTS_ALL},
};

unsigned lac_role_rights(const char *role)
{
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strcmp(words[i].word, role) == 0) {
            return words[i].as_role;
        }
    }
    return 0;
}

unsigned lac_scope_rights(const char *scope)
{
    for (size_t i = 0; i < LAC_COUNT_OF(words); i++) {
        if (strcmp(words[i].word, scope) == 0) {
            return words[i].as_scope;
        }
    }
    return 0;
}

bool lac_user_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";
    const size_t length = strlen(name);

    return length >= 1 && length <= LAC_USER_NAME_MAX && strchr(letters, name[0]) != NULL &&
           strspn(name, others) == length && strcmp(name, "local") != 0;
}

/* -- the rows in memory ------------------------------------------------------------------------ */

enum lac_status lac_people_reload(struct lac_people *people, struct lac_error *reterr)
{
    struct lac_people_rows fresh = {0};
    enum lac_status status;

    (void)pthread_mutex_lock(&people->reload_lock); /* an older load must not win */
    status = lac_store_load_people(people->store, &fresh, reterr);
    if (status == LAC_OK) {
        struct lac_people_rows old;

        (void)pthread_mutex_lock(&people->lock);
        for (uint32_t i = 0; i < fresh.token_count; i++) { /* uses that are not on disk yet */
            const struct lac_token_row *known =
                lac_people_token(&people->rows, fresh.tokens[i].hash);

            if (known != NULL && known->last_used_unix_ms > fresh.tokens[i].last_used_unix_ms) {
                fresh.tokens[i].last_used_unix_ms = known->last_used_unix_ms;
            }
        }
        old = people->rows;
        people->rows = fresh;
        (void)pthread_mutex_unlock(&people->lock);
        lac_people_rows_done(&old);
    }
    (void)pthread_mutex_unlock(&people->reload_lock);
    return status;
}

enum lac_status lac_people_create(struct lac_store *store, struct lac_people **ret_people,
                                  struct lac_error *reterr)
{
    assert(store != NULL && ret_people != NULL);
    struct lac_people *people = calloc(1, sizeof(*people));
    enum lac_status status;

    if (people == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for users and tokens");
    }
    people->store = store;
    (void)pthread_mutex_init(&people->lock, NULL);
    (void)pthread_mutex_init(&people->reload_lock, NULL);
    status = lac_people_reload(people, reterr);
    if (status != LAC_OK) {
        lac_people_destroy(people);
        return status;
    }
    *ret_people = people;
    return LAC_OK;
}

/* When each token was used, where that is not on disk yet. @return how many; the caller frees */
static uint32_t take_used(struct lac_people *people, struct lac_token_row **ret_tokens)
{
    struct lac_token_row *tokens = NULL;
    uint32_t count = 0;

    (void)pthread_mutex_lock(&people->lock);
    if (people->has_used_tokens) {
        tokens = calloc((size_t)people->rows.token_count + 1, sizeof(*tokens));
        for (uint32_t i = 0; i < people->rows.token_count && tokens != NULL; i++) {
            if (people->rows.tokens[i].last_used_unix_ms >= people->touched_ms) {
                tokens[count++] = people->rows.tokens[i];
            }
        }
        people->has_used_tokens = tokens == NULL;
    }
    (void)pthread_mutex_unlock(&people->lock);
    *ret_tokens = tokens;
    return count;
}

static void keep_uses(struct lac_people *people, int64_t now_ms)
{
    struct lac_token_row *tokens = NULL;
    struct lac_error error;
    const uint32_t count = take_used(people, &tokens);

    if (count > 0) { /* on a full disk: the next time */
        (void)!lac_store_touch_tokens(people->store, tokens, count, &error);
    }
    free(tokens);
    people->touched_ms = now_ms;
}

static void take_version(struct lac_people *people, int64_t version)
{
    struct lac_error error;

    (void)pthread_mutex_lock(&people->lock);
    const int64_t seen = people->rows.data_version;
    (void)pthread_mutex_unlock(&people->lock);
    if (version != seen) {
        (void)!lac_people_reload(people, &error); /* what is there stays until the next time */
    }
}

void lac_people_hear(struct lac_people *people)
{
    take_version(people, lac_store_data_version_now(people->store));
}

void lac_people_refresh(struct lac_people *people)
{
    const int64_t now_ms = lac_people_now_ms();

    if (now_ms - people->touched_ms >= TOUCH_MS || now_ms < people->touched_ms) {
        keep_uses(people, now_ms);
    }
    take_version(people, lac_store_data_version(people->store));
}

void lac_people_read_again(struct lac_people *people)
{
    struct lac_error ignored;

    (void)!lac_people_reload(people, &ignored); /* what is there stays until the next time */
}

void lac_people_destroy(struct lac_people *people)
{
    if (people == NULL) {
        return;
    }
    keep_uses(people, lac_people_now_ms());
    lac_people_rows_done(&people->rows);
    (void)pthread_mutex_destroy(&people->lock);
    (void)pthread_mutex_destroy(&people->reload_lock);
    free(people);
}

bool lac_people_has_any(struct lac_people *people)
{
    bool has_any;

    (void)pthread_mutex_lock(&people->lock);
    has_any = people->rows.user_count > 0 || people->rows.token_count > 0;
    (void)pthread_mutex_unlock(&people->lock);
    return has_any;
}

void lac_people_look(struct lac_people *people,
                     void (*told)(void *context, const struct lac_people_rows *rows), void *context)
{
    (void)pthread_mutex_lock(&people->lock);
    told(context, &people->rows);
    (void)pthread_mutex_unlock(&people->lock);
}

/* -- who asks ---------------------------------------------------------------------------------- */

const struct lac_user_row *lac_people_user(const struct lac_people_rows *rows, int64_t id)
{
    for (uint32_t i = 0; i < rows->user_count; i++) {
        if (rows->users[i].id == id) {
            return &rows->users[i];
        }
    }
    return NULL;
}

const struct lac_user_row *lac_people_user_named(const struct lac_people_rows *rows,
                                                 const char *name)
{
    for (uint32_t i = 0; i < rows->user_count; i++) {
        if (strcmp(rows->users[i].name, name) == 0) {
            return &rows->users[i];
        }
    }
    return NULL;
}

/* Rows are in order of their hashes. Time tells at most how many bytes of a hash are right, and
 * who does not know the secret cannot choose its hash. */
struct lac_token_row *lac_people_token(const struct lac_people_rows *rows, const uint8_t *hash)
{
    uint32_t low = 0;
    uint32_t high = rows->token_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = memcmp(rows->tokens[middle].hash, hash, LAC_SHA256_SIZE);

        if (order == 0) {
            return &rows->tokens[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static const struct lac_session_row *find_session(const struct lac_people_rows *rows,
                                                  const uint8_t *hash)
{
    for (uint32_t i = 0; i < rows->session_count; i++) {
        if (memcmp(rows->sessions[i].hash, hash, LAC_SHA256_SIZE) == 0) {
            return &rows->sessions[i];
        }
    }
    return NULL;
}

void lac_people_principal_of(const struct lac_user_row *user, struct lac_principal *ret_who)
{
    *ret_who = (struct lac_principal){.kind = LAC_PRINCIPAL_USER,
                                      .user = user->id,
                                      .scope = LAC_RIGHTS_ALL,
                                      .is_service_admin = user->is_admin};
    (void)snprintf(ret_who->name, sizeof(ret_who->name), "%s", user->name);
}

static bool by_token(struct lac_people *people, const uint8_t *hash, struct lac_principal *ret_who)
{
    const int64_t now_ms = lac_people_now_ms();
    struct lac_token_row *token = lac_people_token(&people->rows, hash);
    const struct lac_user_row *user = NULL;

    if (token == NULL || (token->expires_unix_ms != 0 && token->expires_unix_ms <= now_ms)) {
        return false;
    }
    if (token->user != 0) {
        user = lac_people_user(&people->rows, token->user);
        if (user == NULL) {
            return false;
        }
        lac_people_principal_of(user, ret_who);
    } else {
        *ret_who = (struct lac_principal){.name = "local", .is_service_admin = true};
    }
    ret_who->kind = LAC_PRINCIPAL_TOKEN;
    ret_who->scope = lac_scope_rights(token->scope);
    (void)snprintf(ret_who->project, sizeof(ret_who->project), "%s", token->project);
    (void)snprintf(ret_who->token, sizeof(ret_who->token), "%s", token->id);
    token->last_used_unix_ms = now_ms;
    people->has_used_tokens = true;
    return true;
}

static bool by_session(struct lac_people *people, const uint8_t *hash,
                       struct lac_principal *ret_who)
{
    const struct lac_session_row *session = find_session(&people->rows, hash);
    const struct lac_user_row *user =
        session == NULL ? NULL : lac_people_user(&people->rows, session->user);

    if (user == NULL || session->expires_unix_ms <= lac_people_now_ms()) {
        return false;
    }
    lac_people_principal_of(user, ret_who);
    return true;
}

bool lac_people_identify(struct lac_people *people, enum lac_proof proof, const char *secret,
                         struct lac_principal *ret_who)
{
    assert(people != NULL && secret != NULL && ret_who != NULL);
    uint8_t hash[LAC_SHA256_SIZE];
    bool is_known;

    if (strlen(secret) != LAC_SECRET_TEXT_BYTES - 1) {
        return false;
    }
    lac_secret_hash(secret, hash);
    (void)pthread_mutex_lock(&people->lock);
    is_known = proof == LAC_PROOF_BEARER ? by_token(people, hash, ret_who)
                                         : by_session(people, hash, ret_who);
    (void)pthread_mutex_unlock(&people->lock);
    return is_known;
}

bool lac_people_named(struct lac_people *people, const char *name, struct lac_principal *ret_who)
{
    assert(people != NULL && name != NULL && ret_who != NULL);
    const struct lac_user_row *user;

    (void)pthread_mutex_lock(&people->lock);
    user = lac_people_user_named(&people->rows, name);
    if (user != NULL) {
        lac_people_principal_of(user, ret_who);
    }
    (void)pthread_mutex_unlock(&people->lock);
    return user != NULL;
}

/* -- rights ------------------------------------------------------------------------------------ */

/* As a member, or as anybody who is signed in. */
static unsigned rights_of_user(const struct lac_people_rows *rows, int64_t user,
                               const char *project)
{
    unsigned rights = 0;

    if (project[0] == '\0') {
        return 0; /* what belongs to no project is the administrators' */
    }
    for (uint32_t i = 0; i < rows->member_count; i++) {
        if (rows->members[i].user == user && strcmp(rows->members[i].project, project) == 0) {
            rights |= lac_role_rights(rows->members[i].role);
        }
    }
    for (uint32_t i = 0; i < rows->settings_count; i++) {
        if (strcmp(rows->settings[i].project, project) == 0) {
            rights |= lac_role_rights(rows->settings[i].everybody);
        }
    }
    return rights;
}

unsigned lac_people_rights(struct lac_people *people, const struct lac_principal *who,
                           const char *project)
{
    assert(people != NULL && who != NULL && project != NULL);
    unsigned rights = LAC_RIGHTS_ALL;

    if (who->kind == LAC_PRINCIPAL_NOBODY ||
        (who->project[0] != '\0' && strcmp(who->project, project) != 0)) {
        return 0;
    }
    if (!who->is_service_admin) {
        (void)pthread_mutex_lock(&people->lock);
        rights = rights_of_user(&people->rows, who->user, project);
        (void)pthread_mutex_unlock(&people->lock);
    }
    return rights & who->scope;
}

unsigned lac_people_rights_anywhere(struct lac_people *people, const struct lac_principal *who)
{
    assert(people != NULL && who != NULL);
    unsigned rights = 0;

    if (who->kind == LAC_PRINCIPAL_NOBODY) {
        return 0;
    }
    if (who->is_service_admin || who->project[0] != '\0') {
        return lac_people_rights(people, who, who->project);
    }
    (void)pthread_mutex_lock(&people->lock);
    for (uint32_t i = 0; i < people->rows.member_count; i++) {
        if (people->rows.members[i].user == who->user) {
            rights |= lac_role_rights(people->rows.members[i].role);
        }
    }
    for (uint32_t i = 0; i < people->rows.settings_count; i++) {
        rights |= lac_role_rights(people->rows.settings[i].everybody);
    }
    (void)pthread_mutex_unlock(&people->lock);
    return rights & who->scope;
}
