/* Users and the audit. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void write_users(void *context, const struct lac_people_rows *rows)
{
    struct lac_json *json = context;

    lac_json_open(json, "users", '[');
    for (uint32_t i = 0; i < rows->user_count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", rows->users[i].name);
        lac_json_bool(json, "is_admin", rows->users[i].is_admin);
        lac_json_bool(json, "has_password", rows->users[i].password[0] != '\0');
        lac_api_write_time(json, "created_at", rows->users[i].created_unix_ms);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

void lac_api_users(void *app_context, const struct lac_request *request,
                   struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_json json;

    (void)request;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_people_look(app->people, write_users, &json);
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

struct looked_for {
    const char *name;
    bool is_there, is_admin;
};

static void look_for(void *context, const struct lac_people_rows *rows)
{
    struct looked_for *user = context;

    for (uint32_t i = 0; i < rows->user_count; i++) {
        if (strcmp(rows->users[i].name, user->name) == 0) {
            user->is_there = true;
            user->is_admin = rows->users[i].is_admin;
        }
    }
}

/* PUT /users/{name}: add one, or change password and rights of one that is there. */
void lac_api_user_put(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    const char *name = request->param[0];
    struct looked_for known = {.name = name};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    char password[LAC_PASSWORD_BYTES_MAX + 2];
    bool is_admin = false;
    bool has_password;

    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    lac_people_look(app->people, look_for, &known);
    is_admin = known.is_admin;
    if (lac_json_read_has(object, "is_admin") &&
        lac_json_read_bool(object, "is_admin", &is_admin, &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
        lac_json_read_done(object);
        return;
    }
    has_password = lac_json_read_has(object, "password");
    if (!lac_accounts_text(object, "password", password, sizeof(password), response)) {
        lac_json_read_done(object);
        return;
    }
    lac_json_read_done(object);
    if (lac_people_put_user(app->people, name, has_password ? password : NULL, is_admin, &error) !=
        LAC_OK) {
        lac_accounts_fail(response, &error);
    } else {
        lac_api_note(app, request, known.is_there ? "change-user" : "add-user", "%s%s%s", name,
                     is_admin ? ", administrator" : "", has_password ? ", password" : "");
        response->http_status = known.is_there ? 204 : 201;
    }
    sodium_memzero(password, sizeof(password));
}

void lac_api_user_delete(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (lac_people_remove_user(app->people, request->param[0], &error) != LAC_OK) {
        lac_accounts_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "remove-user", "%s", request->param[0]);
    response->http_status = 204;
}

/* A new password ended all sessions: whoever changed it goes on in a new one. */
static void go_on(struct lac_app *app, const struct lac_request *request, const char *password,
                  struct lac_response *response)
{
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_principal who;
    struct lac_error error = {0};

    if (lac_people_sign_in(app->people, request->who.name, password,
                           lac_accounts_peer(app, request), secret, &who, &error) == LAC_OK) {
        lac_accounts_set_cookie(app, response, "lacuna_session", secret, LAC_SESSION_COOKIE_S);
        sodium_memzero(secret, sizeof(secret));
    }
}

/* POST /session/password: one's own, with the old one. */
void lac_api_password(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct json_object *object = NULL;
    struct lac_error error = {0};
    char old[LAC_PASSWORD_BYTES_MAX + 2];
    char fresh[LAC_PASSWORD_BYTES_MAX + 2];
    enum lac_status status;

    if (request->who.kind != LAC_PRINCIPAL_USER) {
        lac_response_error(response, 403, "forbidden", "only a user who is signed in has one");
        return;
    }
    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    if (lac_accounts_text(object, "old", old, sizeof(old), response) &&
        lac_accounts_text(object, "new", fresh, sizeof(fresh), response)) {
        status = lac_people_check_password(app->people, request->who.name, old,
                                           lac_accounts_peer(app, request), &error);
        if (status == LAC_OK) {
            status = lac_people_put_user(app->people, request->who.name, fresh,
                                         request->who.is_service_admin, &error);
        }
        if (status == LAC_OK) {
            lac_api_note(app, request, "change-password", "%s", request->who.name);
            response->http_status = 204;
            go_on(app, request, fresh, response);
        } else if (status == LAC_ERR_NOT_FOUND) {
            lac_response_error(response, 403, "wrong_password", "the old password is wrong");
        } else if (status == LAC_ERR_LIMIT) {
            lac_response_error(response, 429, "too_many_tries", "%s", error.message);
        } else {
            lac_accounts_fail(response, &error);
        }
    }
    lac_json_read_done(object);
    sodium_memzero(old, sizeof(old));
    sodium_memzero(fresh, sizeof(fresh));
}

/* -- the audit --------------------------------------------------------------------------------- */

void lac_api_audit(void *app_context, const struct lac_request *request,
                   struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_audit_row *rows = NULL;
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t count = 0;
    int64_t limit;
    int64_t before;

    if (!lac_api_int(request, response, "limit", 1, 1000, 100, &limit) ||
        !lac_api_int(request, response, "after", 0, INT64_MAX, INT64_MAX, &before)) {
        return;
    }
    if (lac_store_list_audit(app->store, before, (uint32_t)limit, &rows, &count, &error) !=
        LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "audit", '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(&json, NULL, '{');
        lac_json_int(&json, "id", rows[i].id);
        lac_api_write_time(&json, "at", rows[i].at_unix_ms);
        lac_json_text(&json, "actor", rows[i].actor);
        lac_json_text(&json, "action", rows[i].action);
        lac_json_text(&json, "object", rows[i].object);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    if (count == (uint32_t)limit && count > 0) {
        lac_json_int_text(&json, "next", rows[count - 1].id);
    } else {
        lac_json_null(&json, "next");
    }
    lac_json_close(&json, '}');
    free(rows);
}
