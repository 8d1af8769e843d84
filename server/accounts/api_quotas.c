/* How many bytes a project may hold and a token bring: what `lacuna admin quota` says and sets. */

#include "analysis/model/status.h"
#include "collector/base/byte_size.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/base/project_name.h"
#include "server/http/request.h"
#include "server/ingest/quota.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_BYTES = 64 };

static void write_limit(struct lac_json *json, const char *key, uint64_t limit_bytes)
{
    if (limit_bytes == 0) {
        lac_json_null(json, key);
    } else {
        lac_json_uint(json, key, limit_bytes);
    }
}

/* -- one --------------------------------------------------------------------------------------- */

/* Whose quota a path names: "-" is what belongs to no project. @return false: the response says why */
static bool name_of(const struct lac_request *request, enum lac_quota_kind kind,
                    const char **ret_name, struct lac_response *response)
{
    const char *name = request->param[0];

    if (kind == LAC_QUOTA_TOKEN ? !lac_store_id_is_valid(name)
                                : strcmp(name, "-") != 0 && !lac_project_name_is_valid(name)) {
        lac_response_error(response, 404, "not_found", "no such %s",
                           kind == LAC_QUOTA_TOKEN ? "token" : "project");
        return false;
    }
    *ret_name = kind == LAC_QUOTA_PROJECT && strcmp(name, "-") == 0 ? "" : name;
    return true;
}

static void look(struct lac_app *app, const struct lac_request *request, enum lac_quota_kind kind,
                 struct lac_response *response)
{
    struct lac_quota_look seen;
    struct lac_error error = {0};
    struct lac_json json;
    const char *name;

    if (!name_of(request, kind, &name, response)) {
        return;
    }
    if (lac_quota_look(app->ingest, kind, name, &seen, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_uint(&json, "used_bytes", seen.used_bytes);
    write_limit(&json, "limit_bytes", seen.limit_bytes);
    lac_json_bool(&json, "is_default", seen.is_default);
    lac_json_close(&json, '}');
}

/** "200G", "none" or "default". @param ret_bytes -1: as the server's own; 0: no limit */
static bool read_limit(const struct lac_request *request, char *text, int64_t *ret_bytes,
                       struct lac_response *response)
{
    struct json_object *object = NULL;
    uint64_t bytes = 0;
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return false;
    }
    is_read = lac_accounts_text(object, "limit", text, LIMIT_BYTES, response);
    lac_json_read_done(object);
    if (!is_read) {
        return false;
    }
    if (strcmp(text, "default") == 0 || strcmp(text, "none") == 0) {
        *ret_bytes = *text == 'd' ? -1 : 0;
        return true;
    }
    if (!lac_byte_size_parse(text, &bytes) || bytes == 0 || bytes > (uint64_t)INT64_MAX) {
        lac_response_error(response, 400, "bad_request",
                           "\"limit\" is a size as \"200G\", \"none\" or \"default\"");
        return false;
    }
    *ret_bytes = (int64_t)bytes;
    return true;
}

static void set(struct lac_app *app, const struct lac_request *request, enum lac_quota_kind kind,
                struct lac_response *response)
{
    struct lac_error error = {0};
    char text[LIMIT_BYTES];
    int64_t bytes = 0;
    const char *name;

    if (!name_of(request, kind, &name, response) || !read_limit(request, text, &bytes, response)) {
        return;
    }
    if (lac_store_put_quota(app->store, kind, name, bytes, &error) != LAC_OK) {
        lac_accounts_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "set-quota", "%s %.400s: %s",
                 kind == LAC_QUOTA_TOKEN ? "token" : "project", name, text);
    response->http_status = 204;
}

void lac_api_project_quota(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    look(app_context, request, LAC_QUOTA_PROJECT, response);
}

void lac_api_project_quota_put(void *app_context, const struct lac_request *request,
                               struct lac_response *response)
{
    set(app_context, request, LAC_QUOTA_PROJECT, response);
}

void lac_api_token_quota(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    look(app_context, request, LAC_QUOTA_TOKEN, response);
}

void lac_api_token_quota_put(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    set(app_context, request, LAC_QUOTA_TOKEN, response);
}

/* -- all --------------------------------------------------------------------------------------- */

static void write_quota(void *context, const struct lac_quota_row *row)
{
    struct lac_json *const json = context;

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "kind", row->kind == LAC_QUOTA_TOKEN ? "token" : "project");
    lac_json_text(json, "name", row->name);
    lac_json_uint(json, "used_bytes", row->used_bytes);
    write_limit(json, "limit_bytes", row->limit_bytes);
    lac_json_close(json, '}');
}

void lac_api_quotas(void *app_context, const struct lac_request *request,
                    struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    struct lac_json json;

    (void)request;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    write_limit(&json, "project_default_bytes", lac_quota_default(app->ingest, LAC_QUOTA_PROJECT));
    write_limit(&json, "token_default_bytes", lac_quota_default(app->ingest, LAC_QUOTA_TOKEN));
    lac_json_open(&json, "quotas", '[');
    if (lac_store_list_quotas(app->store, write_quota, &json, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}
