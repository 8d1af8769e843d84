#ifndef LAC_SERVER_PEOPLE_PEOPLE_H
#define LAC_SERVER_PEOPLE_PEOPLE_H

/*
 * Who may do what. One struct lac_people keeps all users, sessions, tokens and memberships in
 * memory, so that a request is judged without touching the disk; changes go to the catalog first.
 * What another process changes (`lacuna admin user`) is seen within a second, and at once by who
 * signs in.
 *
 *   service admin     every right in every project
 *   member            of a project: read (and comment), write or admin
 *   everybody         signed in: what the project's setting `everybody` says, "none" unless set
 *   a token           its maker's rights, within its scope and, where it has one, its project
 *
 * Passwords are kept as Argon2id hashes, sessions and tokens as SHA-256 of 256 random bits.
 * Any number of threads may call any of these, unless it says so.
 */

#include "analysis/model/status.h"
#include "server/http/principal.h"
#include "server/store/people_rows.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_people;

enum {
    LAC_SECRET_TEXT_BYTES = 53, /**< 256 bits as base32, and a NUL */
    LAC_PASSWORD_BYTES_MIN = 8,
    LAC_PASSWORD_BYTES_MAX = 1024,
};

/** @param store borrowed for as long as the result lives
 *  @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_people_create(struct lac_store *store,
                                               struct lac_people **ret_people,
                                               struct lac_error *reterr);
/** NULL is allowed. */
void lac_people_destroy(struct lac_people *people);

/** Look whether another process has changed the catalog, and keep when tokens were used. Called
 *  about once a second, by one thread. Cost: 20 us where nothing changed. */
void lac_people_refresh(struct lac_people *people);

/** Somebody knows that another process has changed them. Any thread. */
void lac_people_read_again(struct lac_people *people);

/** Whether there is any user or token. */
bool lac_people_has_any(struct lac_people *people);

/** Who shows this secret: a token as bearer, a session as cookie. Does not block on the disk. */
bool lac_people_identify(struct lac_people *people, enum lac_proof proof, const char *secret,
                         struct lac_principal *ret_who);

/** The user of this name, as a trusted proxy says; not the disk. */
bool lac_people_named(struct lac_people *people, const char *name, struct lac_principal *ret_who);

/** What `who` may do in a project, a set of LAC_RIGHT_...; "" is what belongs to none. */
unsigned lac_people_rights(struct lac_people *people, const struct lac_principal *who,
                           const char *project);

/** Rights in any project at all. */
unsigned lac_people_rights_anywhere(struct lac_people *people, const struct lac_principal *who);

/* -- sessions ---------------------------------------------------------------------------------- */

/**
 * Sign in: a new session each time, so that nobody can prepare one. Takes about 70 ms of CPU time
 * and 64 MiB, one at a time, also for names that do not exist.
 *
 * @param peer       address of the client: failures are counted by name and by address; "": it
 *                   says nothing, as that of a proxy
 * @param ret_secret LAC_SECRET_TEXT_BYTES: the cookie
 * @return LAC_OK; LAC_ERR_NOT_FOUND (wrong name or password); LAC_ERR_LIMIT (too many failures:
 *         error.offset_bytes holds the seconds to wait); LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_people_sign_in(struct lac_people *people, const char *name,
                                                const char *password, const char *peer,
                                                char *ret_secret, struct lac_principal *ret_who,
                                                struct lac_error *reterr);
/** A new session for whom a provider has named. @return LAC_OK; LAC_ERR_NOT_FOUND: no such user */
LAC_MUST_USE enum lac_status lac_people_sign_in_named(struct lac_people *people, const char *name,
                                                      char *ret_secret,
                                                      struct lac_principal *ret_who,
                                                      struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_people_sign_out(struct lac_people *people, const char *secret,
                                                 struct lac_error *reterr);

/* -- changes ----------------------------------------------------------------------------------- */

/** Whether a name is one for a user: 1 to 64 of a-z A-Z 0-9 . _ - @, a letter or digit first. */
bool lac_user_name_is_valid(const char *name);

/** Rights of "read", "write" or "admin"; 0 for any other word. */
unsigned lac_role_rights(const char *role);

/** Rights of a token's scope: those of roles, and "upload"; 0 for any other word. */
unsigned lac_scope_rights(const char *scope);

/**
 * Add a user, or change the password and rights of one that is there.
 *
 * @param password NULL: keeps the one there is; none for a new user, whom only a proxy can name
 * @return LAC_OK; LAC_ERR_MISUSE (name, or a password too short or too long); LAC_ERR_IO,
 *         LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_people_put_user(struct lac_people *people, const char *name,
                                                 const char *password, bool is_admin,
                                                 struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_people_remove_user(struct lac_people *people, const char *name,
                                                    struct lac_error *reterr);
/** Whether this is the password of the user; throttled as signing in is. */
LAC_MUST_USE enum lac_status lac_people_check_password(struct lac_people *people, const char *name,
                                                       const char *password, const char *peer,
                                                       struct lac_error *reterr);

/**
 * Make a token for `who`.
 *
 * @param row        label, scope, project and expiry are read; id and times are filled in
 * @param ret_secret LAC_SECRET_TEXT_BYTES: shown once, kept nowhere
 */
LAC_MUST_USE enum lac_status lac_people_make_token(struct lac_people *people,
                                                   const struct lac_principal *who,
                                                   struct lac_token_row *row, char *ret_secret,
                                                   struct lac_error *reterr);
/** @return LAC_OK; LAC_ERR_NOT_FOUND, also for a token of somebody else */
LAC_MUST_USE enum lac_status lac_people_remove_token(struct lac_people *people,
                                                     const struct lac_principal *who,
                                                     const char *id, struct lac_error *reterr);

/** role "" ends the membership. */
LAC_MUST_USE enum lac_status lac_people_put_member(struct lac_people *people, const char *project,
                                                   const char *user, const char *role,
                                                   struct lac_error *reterr);
/** @param everybody the role of all who are signed in, "" none
 *  @param description  what it is about, as people write it */
LAC_MUST_USE enum lac_status lac_people_put_settings(struct lac_people *people, const char *project,
                                                     const char *everybody, const char *description,
                                                     struct lac_error *reterr);

/** Look at all rows, in the order of the catalog; `told` must not call anything here. */
void lac_people_look(struct lac_people *people,
                     void (*told)(void *context, const struct lac_people_rows *rows),
                     void *context);

#endif
