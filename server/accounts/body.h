#ifndef LAC_SERVER_ACCOUNTS_BODY_H
#define LAC_SERVER_ACCOUNTS_BODY_H

/* What the handlers of accounts share. */

#include "server/http/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct lac_app;

enum { LAC_ACCOUNTS_BODY_BYTES = 8192, LAC_SESSION_COOKIE_S = 14 * 24 * 3600 };

/** The body as an object, which the caller frees with lac_json_read_done(). @return false: the
 *  response says why */
bool lac_accounts_read(const struct lac_request *request, struct json_object **ret_object,
                       struct lac_response *response);

/** A text that may be missing or null: then "". @return false: the response says why */
bool lac_accounts_text(const struct json_object *object, const char *key, char *out,
                       size_t capacity_bytes, struct lac_response *response);

/** A time as ISO 8601 ("2026-12-31T00:00:00Z" or "2026-12-31"); 0 for "". @return false: the
 *  response says why */
bool lac_accounts_time(const char *key, const char *text, int64_t *ret_unix_ms,
                       struct lac_response *response);

/** Answer with a failure of people: what they name wrongly is 400, what is not there 404. */
void lac_accounts_fail(struct lac_response *response, const struct lac_error *error);

/** The address that wrong passwords are counted by; "" where many people share it: that of a proxy,
 *  or of this machine. */
const char *lac_accounts_peer(const struct lac_app *app, const struct lac_request *request);

/** @param age_s 0 ends it */
void lac_accounts_set_cookie(const struct lac_app *app, struct lac_response *response,
                             const char *name, const char *value, int age_s);

/** The strongest word for a set of rights; NULL none. */
const char *lac_accounts_role_of(unsigned rights);

#endif
