/* Signing in and out, and who one is. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/http/key.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_COOKIE_S = 30 * 24 * 3600 };

void lac_accounts_set_cookie(const struct lac_app *app, struct lac_response *response,
                             const char *name, const char *value, int age_s)
{
    lac_response_header(response, "Set-Cookie",
                        "%s=%s; Path=%s/; HttpOnly; SameSite=Strict; Max-Age=%d%s", name, value,
                        app->base_path, age_s, app->is_secure ? "; Secure" : "");
}

static void sign_in_with_key(struct lac_app *app, const char *given, struct lac_response *response)
{
    if (!lac_key_matches(app->key, given)) {
        lac_response_error(response, 403, "wrong_key",
                           "wrong key: open the address that `lacuna serve` printed last");
        return;
    }
    response->http_status = 204;
    lac_accounts_set_cookie(app, response, "lacuna_key", app->key->cookie, KEY_COOKIE_S);
}

const char *lac_accounts_peer(const struct lac_app *app, const struct lac_request *request)
{
    const bool is_shared = app->is_secure || strncmp(request->peer, "127.", 4) == 0 ||
                           strcmp(request->peer, "::1") == 0;

    return is_shared ? "" : request->peer;
}

static void sign_in(struct lac_app *app, const struct lac_request *request, const char *name,
                    const char *password, struct lac_response *response)
{
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};
    const enum lac_status status = lac_people_sign_in(
        app->people, name, password, lac_accounts_peer(app, request), secret, &who, &error);

    if (status == LAC_OK) {
        response->http_status = 204;
        lac_accounts_set_cookie(app, response, "lacuna_session", secret, LAC_SESSION_COOKIE_S);
        sodium_memzero(secret, sizeof(secret));
        (void)!lac_store_audit(app->store, who.name, "sign-in", request->peer, &error);
    } else if (status == LAC_ERR_NOT_FOUND) {
        lac_response_error(response, 403, "wrong_password", "%s", error.message);
        (void)!lac_store_audit(app->store, lac_user_name_is_valid(name) ? name : "?",
                               "wrong-password", request->peer, &error);
    } else if (status == LAC_ERR_LIMIT) {
        lac_response_error(response, 429, "too_many_tries", "%s", error.message);
        lac_response_header(response, "Retry-After", "%llu",
                            (unsigned long long)error.offset_bytes);
    } else {
        lac_api_fail(response, &error);
    }
}

void lac_api_session(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct json_object *object = NULL;
    char name[LAC_PERSON_NAME_BYTES + 192];
    char secret[LAC_PASSWORD_BYTES_MAX + 1];
    struct lac_error error = {0};
    enum lac_status status;
    bool is_key;

    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    is_key = lac_json_read_has(object, "key");
    status = is_key ? lac_json_read_text(object, "key", secret, sizeof(secret), &error)
                    : lac_json_read_text(object, "name", name, sizeof(name), &error);
    if (status == LAC_OK && !is_key) {
        status = lac_json_read_text(object, "password", secret, sizeof(secret), &error);
    }
    lac_json_read_done(object);
    if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request",
                           "send {\"key\": \"...\"} or {\"name\": \"...\", \"password\": \"...\"}: "
                           "%s",
                           error.message);
    } else if (is_key) {
        sign_in_with_key(app, secret, response);
    } else {
        sign_in(app, request, name, secret, response);
    }
    sodium_memzero(secret, sizeof(secret));
}

void lac_api_session_end(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (request->who.kind == LAC_PRINCIPAL_USER && request->cookie[0] != '\0' &&
        lac_people_sign_out(app->people, request->cookie, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    response->http_status = 204;
    lac_accounts_set_cookie(
        app, response, request->who.kind == LAC_PRINCIPAL_KEY ? "lacuna_key" : "lacuna_session", "",
        0);
}

static const char *const kinds[] = {"nobody", "key", "user", "token"};

/* The strongest word that a set of rights is called by. */
const char *lac_accounts_role_of(unsigned rights)
{
    return (rights & LAC_RIGHT_ADMIN) != 0    ? "admin"
           : (rights & LAC_RIGHT_WRITE) != 0  ? "write"
           : (rights & LAC_RIGHT_READ) != 0   ? "read"
           : (rights & LAC_RIGHT_UPLOAD) != 0 ? "upload"
                                              : NULL;
}

void lac_api_whoami(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_app *app = app_context;
    const struct lac_principal *who = &request->who;
    struct lac_project_row *rows = NULL;
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t count = 0;

    if (lac_store_list_projects(app->store, &rows, &count, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "kind", kinds[who->kind]);
    lac_json_text(&json, "name", who->name);
    lac_json_bool(&json, "is_admin",
                  who->is_service_admin && who->project[0] == '\0' &&
                      (who->scope & LAC_RIGHT_ADMIN) != 0);
    lac_json_text(&json, "scope", lac_accounts_role_of(who->scope));
    lac_json_text(&json, "project", who->project[0] != '\0' ? who->project : NULL);
    lac_json_open(&json, "projects", '[');
    for (uint32_t i = 0; i < count; i++) {
        const char *role = lac_accounts_role_of(lac_people_rights(app->people, who, rows[i].name));

        if (role != NULL) {
            lac_json_open(&json, NULL, '{');
            lac_json_text(&json, "name", rows[i].name);
            lac_json_text(&json, "role", role);
            lac_json_close(&json, '}');
        }
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    free(rows);
}
