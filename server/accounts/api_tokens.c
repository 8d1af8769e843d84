/* Tokens: for scripts and for nodes that upload. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/base/project_name.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/access.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static void write_token(struct lac_json *json, const struct lac_token_row *row, const char *user)
{
    lac_json_text(json, "id", row->id);
    lac_json_text(json, "name", row->label);
    lac_json_text(json, "user", user);
    lac_json_text(json, "scope", row->scope);
    lac_json_text(json, "project", row->project[0] != '\0' ? row->project : NULL);
    lac_api_write_time_or_null(json, "created_at", row->created_unix_ms);
    lac_api_write_time_or_null(json, "expires_at", row->expires_unix_ms);
    lac_api_write_time_or_null(json, "last_used_at", row->last_used_unix_ms);
}

/* -- list -------------------------------------------------------------------------------------- */

struct listing {
    struct lac_json json;
    const struct lac_principal *who;
};

static const char *name_of(const struct lac_people_rows *rows, int64_t user)
{
    for (uint32_t i = 0; i < rows->user_count; i++) {
        if (rows->users[i].id == user) {
            return rows->users[i].name;
        }
    }
    return "local";
}

static void write_tokens(void *context, const struct lac_people_rows *rows)
{
    struct listing *listing = context;
    const struct lac_principal *who = listing->who;

    for (uint32_t i = 0; i < rows->token_count; i++) {
        const struct lac_token_row *row = &rows->tokens[i];

        if (who->is_service_admin || row->user == who->user) {
            lac_json_open(&listing->json, NULL, '{');
            write_token(&listing->json, row, name_of(rows, row->user));
            lac_json_close(&listing->json, '}');
        }
    }
}

/* A token makes no tokens, nor sees those of its maker. */
static bool is_person(const struct lac_request *request, struct lac_response *response)
{
    const bool is =
        request->who.kind == LAC_PRINCIPAL_KEY || request->who.kind == LAC_PRINCIPAL_USER;

    if (!is) {
        lac_response_error(response, 403, "forbidden",
                           "tokens are made and ended by people: sign in, or use the local key");
    }
    return is;
}

void lac_api_tokens(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct listing listing = {.who = &request->who};

    if (!is_person(request, response)) {
        return;
    }
    lac_json_init(&listing.json, &response->body);
    lac_json_open(&listing.json, NULL, '{');
    lac_json_open(&listing.json, "tokens", '[');
    lac_people_look(app->people, write_tokens, &listing);
    lac_json_close(&listing.json, ']');
    lac_json_null(&listing.json, "next");
    lac_json_close(&listing.json, '}');
}

/* -- make -------------------------------------------------------------------------------------- */

static bool read_token(struct lac_app *app, const struct lac_request *request,
                       struct lac_token_row *row, struct lac_response *response)
{
    struct json_object *object = NULL;
    char expires[40];
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return false;
    }
    is_read = lac_accounts_text(object, "name", row->label, sizeof(row->label), response) &&
              lac_accounts_text(object, "scope", row->scope, sizeof(row->scope), response) &&
              lac_accounts_text(object, "project", row->project, sizeof(row->project), response) &&
              lac_accounts_text(object, "expires_at", expires, sizeof(expires), response) &&
              lac_accounts_time("expires_at", expires, &row->expires_unix_ms, response);
    lac_json_read_done(object);
    if (!is_read) {
        return false;
    }
    if (row->label[0] == '\0' || lac_scope_rights(row->scope) == 0) {
        lac_response_error(response, 400, "bad_request",
                           "give the token a name, and a scope: read, upload, write or admin");
        return false;
    }
    if (row->expires_unix_ms != 0 && row->expires_unix_ms <= (int64_t)time(NULL) * 1000) {
        lac_response_error(response, 400, "bad_request", "\"expires_at\" has passed");
        return false;
    }
    if (row->project[0] != '\0' && !lac_project_name_is_valid(row->project)) {
        lac_response_error(response, 400, "bad_request", "no project can have that name");
        return false;
    }
    return row->project[0] == '\0' || lac_access_may(app->people, &request->who, row->project,
                                                     LAC_RIGHTS_ALL, "project", response);
}

void lac_api_token_make(void *app_context, const struct lac_request *request,
                        struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_token_row row = {0};
    char secret[LAC_SECRET_TEXT_BYTES];
    struct lac_error error = {0};
    struct lac_json json;

    if (!is_person(request, response) || !read_token(app, request, &row, response)) {
        return;
    }
    if (lac_people_make_token(app->people, &request->who, &row, secret, &error) != LAC_OK) {
        lac_accounts_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "make-token", "%s (%s%s%s) %s", row.id, row.scope,
                 row.project[0] != '\0' ? ", " : "", row.project, row.label);
    response->http_status = 201;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    write_token(&json, &row, request->who.name);
    lac_json_text(&json, "token", secret);
    lac_json_close(&json, '}');
    sodium_memzero(secret, sizeof(secret));
}

void lac_api_token_end(void *app_context, const struct lac_request *request,
                       struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (!is_person(request, response)) {
        return;
    }
    if (lac_people_remove_token(app->people, &request->who, request->param[0], &error) != LAC_OK) {
        lac_accounts_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "end-token", "%s", request->param[0]);
    response->http_status = 204;
}
