/* Projects: who may do what in them, and their settings. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/base/project_name.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/people.h"
#include "server/store/people_rows.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void write_project(struct lac_app *app, const struct lac_principal *who,
                          struct lac_json *json, const struct lac_project_row *row)
{
    lac_json_text(json, "name", row->name);
    lac_json_text(json, "role",
                  lac_accounts_role_of(lac_people_rights(app->people, who, row->name)));
    lac_json_uint(json, "trace_count", row->trace_count);
    if (row->created_unix_ms == 0) {
        lac_json_null(json, "created_at");
    } else {
        lac_api_write_time(json, "created_at", row->created_unix_ms);
    }
}

/* All projects that the asker has any right in. @return false: the response says why */
static bool list(struct lac_app *app, struct lac_project_row **ret_rows, uint32_t *ret_count,
                 struct lac_response *response)
{
    struct lac_error error = {0};

    if (lac_store_list_projects(app->store, ret_rows, ret_count, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    return true;
}

void lac_api_projects(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_project_row *rows = NULL;
    struct lac_json json;
    uint32_t count = 0;

    if (!list(app, &rows, &count, response)) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "projects", '[');
    for (uint32_t i = 0; i < count; i++) {
        if (lac_people_rights(app->people, &request->who, rows[i].name) != 0) {
            lac_json_open(&json, NULL, '{');
            write_project(app, &request->who, &json, &rows[i]);
            lac_json_close(&json, '}');
        }
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
    free(rows);
}

void lac_api_project_add(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct json_object *object = NULL;
    struct lac_error error = {0};
    struct lac_json json;
    char name[LAC_PROJECT_BYTES];
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    is_read = lac_accounts_text(object, "name", name, sizeof(name), response);
    lac_json_read_done(object);
    if (!is_read) {
        return;
    }
    if (!lac_project_name_is_valid(name)) {
        lac_response_error(response, 400, "bad_request", LAC_PROJECT_NAME_RULE);
        return;
    }
    if (lac_store_add_project(app->store, name, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "add-project", "%s", name);
    response->http_status = 201;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "name", name);
    lac_json_close(&json, '}');
}

/* -- members ----------------------------------------------------------------------------------- */

struct members {
    struct lac_json *json;
    const char *project;
};

static void write_members(void *context, const struct lac_people_rows *rows)
{
    const struct members *members = context;

    lac_json_open(members->json, "members", '[');
    for (uint32_t i = 0; i < rows->member_count; i++) {
        if (strcmp(rows->members[i].project, members->project) != 0) {
            continue;
        }
        for (uint32_t u = 0; u < rows->user_count; u++) {
            if (rows->users[u].id == rows->members[i].user) {
                lac_json_open(members->json, NULL, '{');
                lac_json_text(members->json, "user", rows->users[u].name);
                lac_json_text(members->json, "role", rows->members[i].role);
                lac_json_close(members->json, '}');
            }
        }
    }
    lac_json_close(members->json, ']');
}

void lac_api_project(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    const char *name = request->param[0];
    struct lac_project_row *rows = NULL;
    struct lac_json json;
    struct members members = {.json = &json, .project = name};
    uint32_t count = 0;
    uint32_t i = 0;

    if (!list(app, &rows, &count, response)) {
        return;
    }
    while (i < count && strcmp(rows[i].name, name) != 0) {
        i++;
    }
    if (i == count) {
        lac_response_error(response, 404, "not_found", "no such project");
    } else {
        lac_json_init(&json, &response->body);
        lac_json_open(&json, NULL, '{');
        write_project(app, &request->who, &json, &rows[i]);
        lac_people_look(app->people, write_members, &members);
        lac_json_close(&json, '}');
    }
    free(rows);
}

void lac_api_members(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_json json;
    struct members members = {.json = &json, .project = request->param[0]};

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_people_look(app->people, write_members, &members);
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

static void change_member(struct lac_app *app, const struct lac_request *request, const char *role,
                          struct lac_response *response)
{
    struct lac_error error = {0};

    if (!lac_project_name_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such project");
        return;
    }
    if (lac_people_put_member(app->people, request->param[0], request->param[1], role, &error) !=
        LAC_OK) {
        lac_accounts_fail(response, &error);
        return;
    }
    lac_api_note(app, request, *role != '\0' ? "set-member" : "remove-member", "%s: %s%s%s",
                 request->param[0], request->param[1], *role != '\0' ? " " : "", role);
    response->http_status = 204;
}

void lac_api_member_put(void *app_context, const struct lac_request *request,
                        struct lac_response *response)
{
    struct json_object *object = NULL;
    char role[LAC_WORD_BYTES];
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    is_read = lac_accounts_text(object, "role", role, sizeof(role), response);
    lac_json_read_done(object);
    if (!is_read) {
        return;
    }
    if (lac_role_rights(role) == 0) {
        lac_response_error(response, 400, "bad_request", "a role is read, write or admin");
        return;
    }
    change_member(app_context, request, role, response);
}

void lac_api_member_delete(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    change_member(app_context, request, "", response);
}

/* -- settings ---------------------------------------------------------------------------------- */

enum { DESCRIPTION_BYTES = 1024 };

struct settings {
    struct lac_json *json;
    const char *project;
};

static void write_settings(void *context, const struct lac_people_rows *rows)
{
    const struct settings *settings = context;
    const char *everybody = "none";
    const char *description = "";

    for (uint32_t i = 0; i < rows->settings_count; i++) {
        if (strcmp(rows->settings[i].project, settings->project) == 0) {
            everybody =
                rows->settings[i].everybody[0] != '\0' ? rows->settings[i].everybody : "none";
            description = rows->settings[i].description;
        }
    }
    lac_json_text(settings->json, "everybody", everybody);
    lac_json_text(settings->json, "description", description != NULL ? description : "");
}

void lac_api_project_settings(void *app_context, const struct lac_request *request,
                              struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_json json;
    struct settings settings = {.json = &json, .project = request->param[0]};

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_people_look(app->people, write_settings, &settings);
    lac_json_close(&json, '}');
}

void lac_api_project_settings_put(void *app_context, const struct lac_request *request,
                                  struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct json_object *object = NULL;
    struct lac_error error = {0};
    char everybody[LAC_WORD_BYTES];
    char description[DESCRIPTION_BYTES];
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return;
    }
    is_read = lac_accounts_text(object, "everybody", everybody, sizeof(everybody), response) &&
              lac_accounts_text(object, "description", description, sizeof(description), response);
    lac_json_read_done(object);
    if (!is_read) {
        return;
    }
    if (strcmp(everybody, "none") == 0) {
        everybody[0] = '\0';
    }
    if (everybody[0] != '\0' && lac_role_rights(everybody) == 0) {
        lac_response_error(response, 400, "bad_request",
                           "\"everybody\" is none, read, write or admin");
        return;
    }
    if (lac_people_put_settings(app->people, request->param[0], everybody, description, &error) !=
        LAC_OK) {
        lac_accounts_fail(response, &error);
    } else {
        lac_api_note(app, request, "settings", "%s: everybody %s", request->param[0],
                     everybody[0] != '\0' ? everybody : "none");
        response->http_status = 204;
    }
}
