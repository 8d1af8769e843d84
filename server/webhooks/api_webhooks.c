/* /projects/{name}/webhooks: where a project's news go. */

#include "analysis/model/status.h"
#include "server/accounts/body.h"
#include "server/api/app.h"
#include "server/api/report_evidence.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/store/catalog.h"
#include "server/store/journal_rows.h"
#include "server/store/webhook_rows.h"
#include "server/webhooks/address.h"
#include "server/webhooks/webhooks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The project of the path as the catalog calls it. */
static const char *project_of(const struct lac_request *request)
{
    return strcmp(request->param[0], LAC_NO_PROJECT) == 0 ? "" : request->param[0];
}

static void write_hook(struct lac_json *json, const struct lac_webhook *hook, bool with_secret)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", hook->id);
    lac_json_text(json, "url", hook->url);
    lac_json_text(json, "form", hook->is_slack ? "slack" : "json");
    lac_json_open(json, "events", '[');
    for (unsigned i = 0; lac_webhook_events[i] != NULL; i++) {
        char word[40];

        (void)snprintf(word, sizeof(word), " %s ", lac_webhook_events[i]);
        if (strstr(hook->events, word) != NULL) {
            lac_json_text(json, NULL, lac_webhook_events[i]);
        }
    }
    lac_json_close(json, ']');
    lac_json_text(json, "author", hook->author);
    lac_api_write_time(json, "created_at", hook->created_unix_ms);
    if (with_secret) {
        lac_json_text(json, "secret", hook->secret);
    } else {
        lac_json_uint(json, "delivered_count", hook->delivered_count);
        lac_json_uint(json, "waiting_count", hook->waiting_count);
        lac_json_uint(json, "failed_count", hook->failed_count);
        if (hook->last_unix_ms != 0) {
            lac_api_write_time(json, "last_at", hook->last_unix_ms);
            lac_json_uint(json, "last_status", (uint64_t)hook->last_status);
        } else {
            lac_json_null(json, "last_at");
            lac_json_null(json, "last_status");
        }
        lac_json_text(json, "problem", hook->problem[0] != '\0' ? hook->problem : NULL);
    }
    lac_json_close(json, '}');
}

void lac_api_webhooks(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_webhook *hooks = calloc(LAC_WEBHOOKS_MAX, sizeof(*hooks));
    struct lac_error error = {0};
    struct lac_json json;
    uint32_t count = 0;

    if (hooks == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this list");
    } else if (lac_webhooks_list(app->store, project_of(request), hooks, &count, &error) !=
               LAC_OK) {
        lac_api_fail(response, &error);
    } else {
        lac_json_init(&json, &response->body);
        lac_json_open(&json, NULL, '{');
        lac_json_open(&json, "webhooks", '[');
        for (uint32_t i = 0; i < count; i++) {
            write_hook(&json, &hooks[i], false);
        }
        lac_json_close(&json, ']');
        lac_json_open(&json, "events", '[');
        for (unsigned i = 0; lac_webhook_events[i] != NULL; i++) {
            lac_json_text(&json, NULL, lac_webhook_events[i]);
        }
        lac_json_close(&json, ']');
        lac_json_null(&json, "next");
        lac_json_close(&json, '}');
    }
    free(hooks);
}

/** The body into `hook`. @return false: the response says why */
static bool read_hook(struct lac_app *app, const struct lac_request *request,
                      struct lac_webhook *hook, struct lac_response *response)
{
    struct json_object *object = NULL;
    char form[16] = "";
    char events[LAC_WEBHOOK_EVENTS_BYTES] = "";
    const char *problem = NULL;
    bool is_read;

    if (!lac_accounts_read(request, &object, response)) {
        return false;
    }
    is_read = lac_accounts_text(object, "url", hook->url, sizeof(hook->url), response) &&
              lac_accounts_text(object, "form", form, sizeof(form), response) &&
              lac_accounts_text(object, "events", events, sizeof(events), response);
    lac_json_read_done(object);
    if (!is_read) {
        return false;
    }
    problem = lac_webhook_url_problem(hook->url, lac_webhooks_allowed(app->webhooks));
    if (problem != NULL) {
        lac_response_error(response, 400, "bad_request", "url: the address %s", problem);
        return false;
    }
    hook->is_slack = strcmp(form, "slack") == 0;
    if (form[0] != '\0' && !hook->is_slack && strcmp(form, "json") != 0) {
        lac_response_error(response, 400, "bad_request", "form is json or slack");
        return false;
    }
    if (!lac_webhook_events_read(events, hook->events, sizeof(hook->events))) {
        lac_response_error(response, 400, "bad_request",
                           "events: names with blanks between them, of trace.ready, trace.failed, "
                           "report.published, report.comment, report.mention, run.regression, "
                           "run.hang and run.resumed");
        return false;
    }
    return true;
}

void lac_api_webhook_add(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_webhook hook = {0};
    struct lac_error error = {0};
    struct lac_json json;

    if (request->param[0][0] == '\0' || strlen(request->param[0]) >= sizeof(hook.project)) {
        lac_response_error(response, 404, "not_found", "no such project");
        return;
    }
    if (!read_hook(app, request, &hook, response)) {
        return;
    }
    (void)snprintf(hook.project, sizeof(hook.project), "%s", project_of(request));
    (void)snprintf(hook.author, sizeof(hook.author), "%s", lac_api_asker(request));
    if (lac_webhooks_add(app->store, &hook, &error) != LAC_OK) {
        if (error.status == LAC_ERR_LIMIT) {
            lac_response_error(response, 409, "limit", "%s", error.message);
        } else {
            lac_api_fail(response, &error);
        }
        return;
    }
    lac_api_note(app, request, "add-webhook", "%s: %s", request->param[0], hook.id);
    response->http_status = 201;
    lac_json_init(&json, &response->body);
    write_hook(&json, &hook, true);
}

void lac_api_webhook_remove(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (lac_webhooks_remove(app->store, project_of(request), request->param[1], &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_note(app, request, "remove-webhook", "%s: %s", request->param[0], request->param[1]);
    response->http_status = 204;
}

void lac_api_webhook_try(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    char object[48];
    const struct lac_news news = {.event = "test",
                                  .project = project_of(request),
                                  .object = object,
                                  .path = "/",
                                  .text = "a test of this webhook"};

    (void)snprintf(object, sizeof(object), "test-%" PRId64, lac_now_unix_ms());
    if (!lac_webhooks_try(app->webhooks, request->param[1], &news)) {
        lac_response_error(response, 404, "not_found", "no such webhook");
        return;
    }
    response->http_status = 202;
}
