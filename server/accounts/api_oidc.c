/* Signing in at a provider: there, and back. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/http/guard.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/oidc/oidc.h"
#include "server/people/people.h"
#include "server/store/store.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>

enum { ATTEMPT_S = 600 };

/* The provider's page leads back from another site, and a cookie of SameSite=Strict would stay
 * away. It is worth nothing without the provider's answer. */
static void set_attempt(const struct lac_app *app, struct lac_response *response,
                        const char *secret, int age_s)
{
    lac_response_header(response, "Set-Cookie",
                        "lacuna_oidc=%s; Path=%s/api/v1/session/oidc; HttpOnly; SameSite=Lax; "
                        "Max-Age=%d%s",
                        secret, app->base_path, age_s, app->is_secure ? "; Secure" : "");
}

static void fail(struct lac_response *response, const struct lac_error *error)
{
    const bool is_ours = error->status == LAC_ERR_MISUSE;

    lac_response_error(response, is_ours ? 403 : 502, is_ours ? "sign_in_failed" : "provider", "%s",
                       error->message);
}

void lac_api_oidc(void *app_context, const struct lac_request *request,
                  struct lac_response *response)
{
    struct lac_app *app = app_context;
    char secret[LAC_OIDC_SECRET_BYTES];
    char address[LAC_OIDC_ADDRESS_BYTES];
    struct lac_error error = {0};

    (void)request;
    if (app->oidc == NULL) {
        response->http_status = 204;
        return;
    }
    if (lac_oidc_begin(app->oidc, secret, address, &error) != LAC_OK ||
        !lac_response_long_header(response, "Location", address)) {
        fail(response, &error);
        return;
    }
    set_attempt(app, response, secret, ATTEMPT_S);
    response->http_status = 302;
}

void lac_api_oidc_callback(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct lac_app *app = app_context;
    const char *state = lac_target_get(request->target, "state");
    const char *code = lac_target_get(request->target, "code");
    const char *cookies = request->field[LAC_FIELD_COOKIE];
    char secret[LAC_OIDC_SECRET_BYTES] = "";
    char name[LAC_OIDC_NAME_BYTES];
    char session[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};

    if (app->oidc == NULL) {
        lac_response_error(response, 404, "not_found", "no provider is set up here");
        return;
    }
    set_attempt(app, response, "", 0); /* an attempt is for one answer */
    if (state == NULL || code == NULL || cookies == NULL ||
        !lac_cookie_get(cookies, "lacuna_oidc", secret, sizeof(secret))) {
        lac_response_error(response, 403, "sign_in_failed",
                           "this sign-in was not begun in this browser, or the provider refused "
                           "it: begin again");
        return;
    }
    if (lac_oidc_finish(app->oidc, secret, state, code, name, &error) != LAC_OK) {
        fail(response, &error);
        return;
    }
    if (lac_people_sign_in_named(app->people, name, session, &who, &error) != LAC_OK) {
        lac_response_error(response, 403, "sign_in_failed",
                           "the provider knows you, but there is no user \"%s\" here: ask an "
                           "administrator of this service",
                           name);
        return;
    }
    (void)!lac_store_audit(app->store, who.name, "sign-in-oidc", request->peer, &error);
    lac_accounts_set_cookie(app, response, "lacuna_session", session, LAC_SESSION_COOKIE_S);
    sodium_memzero(session, sizeof(session));
    lac_response_header(response, "Location", "%s/", app->base_path);
    response->http_status = 302;
}
