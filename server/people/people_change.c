/* Signing in, and every change: the catalog first, then the rows in memory. */

#include "analysis/model/status.h"
#include "collector/base/encode.h"
#include "server/http/principal.h"
#include "server/people/people.h"
#include "server/people/people_private.h"
#include "server/people/throttle.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <assert.h>
#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SESSION_MS (INT64_C(14) * 24 * 3600 * 1000)

/* What was changed is on disk; without memory for it the next refresh sees it. */
static enum lac_status changed(struct lac_people *people, enum lac_status status)
{
    struct lac_error error;

    if (status == LAC_OK) {
        (void)!lac_people_reload(people, &error);
    }
    return status;
}

/* -- sessions ---------------------------------------------------------------------------------- */

static int64_t wait_s(struct lac_people *people, const char *name, const char *peer)
{
    const int64_t now_ms = lac_people_now_ms();
    const int64_t by_name = lac_throttle_wait_s(&people->throttle, "name", name, now_ms);
    const int64_t by_peer =
        *peer == '\0' ? 0 : lac_throttle_wait_s(&people->throttle, "peer", peer, now_ms);

    return by_name > by_peer ? by_name : by_peer;
}

enum lac_status lac_people_check_password(struct lac_people *people, const char *name,
                                          const char *password, const char *peer,
                                          struct lac_error *reterr)
{
    assert(people != NULL && name != NULL && password != NULL && peer != NULL);
    char hash[LAC_PASSWORD_HASH_BYTES] = "";
    const struct lac_user_row *user;
    int64_t left_s;
    bool matches;

    lac_people_hear(people); /* whom `lacuna admin user add` made a moment ago signs in */
    (void)pthread_mutex_lock(&people->lock);
    left_s = wait_s(people, name, peer);
    if (left_s == 0) { /* before it is looked at: guesses at the same time count, too */
        lac_throttle_failed(&people->throttle, "name", name, lac_people_now_ms());
    }
    user = lac_people_user_named(&people->rows, name);
    if (user != NULL) {
        memcpy(hash, user->password, sizeof(hash));
    }
    (void)pthread_mutex_unlock(&people->lock);
    if (left_s > 0) {
        return lac_fail(reterr, LAC_ERR_LIMIT, (uint64_t)left_s,
                        "too many wrong passwords: try again in %lld s", (long long)left_s);
    }
    matches = strlen(password) <= LAC_PASSWORD_BYTES_MAX && lac_password_matches(hash, password);
    sodium_memzero(hash, sizeof(hash));
    (void)pthread_mutex_lock(&people->lock);
    if (matches) {
        lac_throttle_succeeded(&people->throttle, "name", name);
    } else if (*peer != '\0') {
        lac_throttle_failed(&people->throttle, "peer", peer, lac_people_now_ms());
    }
    (void)pthread_mutex_unlock(&people->lock);
    return matches ? LAC_OK : lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "wrong name or password");
}

enum lac_status lac_people_sign_in_named(struct lac_people *people, const char *name,
                                         char *ret_secret, struct lac_principal *ret_who,
                                         struct lac_error *reterr)
{
    assert(people != NULL && name != NULL && ret_secret != NULL && ret_who != NULL);
    struct lac_session_row session = {.expires_unix_ms = lac_people_now_ms() + SESSION_MS};

    lac_people_hear(people);
    if (!lac_people_named(people, name, ret_who)) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "wrong name or password");
    }
    session.user = ret_who->user;
    lac_secret_make(ret_secret);
    lac_secret_hash(ret_secret, session.hash);
    return changed(people, lac_store_put_session(people->store, &session, reterr));
}

enum lac_status lac_people_sign_in(struct lac_people *people, const char *name,
                                   const char *password, const char *peer, char *ret_secret,
                                   struct lac_principal *ret_who, struct lac_error *reterr)
{
    const enum lac_status status = lac_people_check_password(people, name, password, peer, reterr);

    return status == LAC_OK ? lac_people_sign_in_named(people, name, ret_secret, ret_who, reterr)
                            : status;
}

enum lac_status lac_people_sign_out(struct lac_people *people, const char *secret,
                                    struct lac_error *reterr)
{
    assert(people != NULL && secret != NULL);
    uint8_t hash[LAC_SHA256_SIZE];

    lac_secret_hash(secret, hash);
    return changed(people, lac_store_remove_session(people->store, hash, reterr));
}

/* -- users ------------------------------------------------------------------------------------- */

enum lac_status lac_people_put_user(struct lac_people *people, const char *name,
                                    const char *password, bool is_admin, struct lac_error *reterr)
{
    assert(people != NULL && name != NULL);
    struct lac_user_row user = {.is_admin = is_admin, .created_unix_ms = lac_people_now_ms()};
    const struct lac_user_row *known;
    enum lac_status status = LAC_OK;

    if (!lac_user_name_is_valid(name)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "a user's name is 1 to 64 of a-z, A-Z, 0-9 and . _ - @, begins with a "
                        "letter or digit, and is not \"local\"");
    }
    if (password != NULL &&
        (strlen(password) < LAC_PASSWORD_BYTES_MIN || strlen(password) > LAC_PASSWORD_BYTES_MAX)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a password has %d to %d bytes",
                        LAC_PASSWORD_BYTES_MIN, LAC_PASSWORD_BYTES_MAX);
    }
    (void)snprintf(user.name, sizeof(user.name), "%s", name);
    if (password != NULL) {
        status = lac_password_hash(password, user.password, reterr);
    } else {
        (void)pthread_mutex_lock(&people->lock);
        known = lac_people_user_named(&people->rows, name);
        if (known != NULL) {
            memcpy(user.password, known->password, sizeof(user.password));
        }
        (void)pthread_mutex_unlock(&people->lock);
    }
    if (status == LAC_OK) {
        status = lac_store_put_user(people->store, &user, reterr);
    }
    return changed(people, status);
}

enum lac_status lac_people_remove_user(struct lac_people *people, const char *name,
                                       struct lac_error *reterr)
{
    assert(people != NULL && name != NULL);
    return changed(people, lac_store_remove_user(people->store, name, reterr));
}

/* -- tokens ------------------------------------------------------------------------------------ */

enum lac_status lac_people_make_token(struct lac_people *people, const struct lac_principal *who,
                                      struct lac_token_row *row, char *ret_secret,
                                      struct lac_error *reterr)
{
    assert(people != NULL && who != NULL && row != NULL && ret_secret != NULL);
    uint8_t id[16];

    if (sodium_init() < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "no source of random numbers");
    }
    randombytes_buf(id, sizeof(id));
    lac_base32_encode(id, sizeof(id), row->id);
    lac_secret_make(ret_secret);
    lac_secret_hash(ret_secret, row->hash);
    row->user = who->user;
    row->created_unix_ms = lac_people_now_ms();
    row->last_used_unix_ms = 0;
    return changed(people, lac_store_put_token(people->store, row, reterr));
}

enum lac_status lac_people_remove_token(struct lac_people *people, const struct lac_principal *who,
                                        const char *id, struct lac_error *reterr)
{
    assert(people != NULL && who != NULL && id != NULL);
    bool is_theirs = false;

    (void)pthread_mutex_lock(&people->lock);
    for (uint32_t i = 0; i < people->rows.token_count && !is_theirs; i++) {
        is_theirs = strcmp(people->rows.tokens[i].id, id) == 0 &&
                    (who->is_service_admin || people->rows.tokens[i].user == who->user);
    }
    (void)pthread_mutex_unlock(&people->lock);
    if (!is_theirs) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no such token");
    }
    return changed(people, lac_store_remove_token(people->store, id, reterr));
}

/* -- projects ---------------------------------------------------------------------------------- */

enum lac_status lac_people_put_member(struct lac_people *people, const char *project,
                                      const char *user, const char *role, struct lac_error *reterr)
{
    assert(people != NULL && project != NULL && user != NULL && role != NULL);
    if (*role != '\0' && lac_role_rights(role) == 0) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a role is read, write or admin");
    }
    return changed(people, lac_store_put_member(people->store, project, user, role, reterr));
}

enum lac_status lac_people_put_settings(struct lac_people *people, const char *project,
                                        const char *everybody, const char *description,
                                        struct lac_error *reterr)
{
    assert(people != NULL && project != NULL && everybody != NULL && description != NULL);
    return changed(people,
                   lac_store_put_settings(people->store, project, everybody, description, reterr));
}
