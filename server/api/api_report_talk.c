/* What people say beside a report: comments in threads, and what became of its findings. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/api/app.h"
#include "server/api/report_evidence.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/reports/part.h"
#include "server/store/people_rows.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MENTIONS_BYTES = 1024, NAME_BYTES = 64 };

/** What the parameters of a path are ids of. */
static const char *const nouns[] = {"report", "comment"};

/** @return the object of the body, or NULL: the response says why */
static struct json_object *read_body(const struct lac_request *request, size_t size_bytes_max,
                                     struct lac_response *response)
{
    const struct lac_json_limits limits = {.size_bytes_max = size_bytes_max, .depth_max = 3};
    struct json_object *object = NULL;
    struct lac_error error = {0};

    if (lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error) ==
        LAC_OK) {
        return object;
    }
    lac_response_error(response, error.status == LAC_ERR_NOMEM ? 503 : 400,
                       error.status == LAC_ERR_NOMEM ? "out_of_memory" : "bad_request",
                       "send a JSON object: %s", error.message);
    return NULL;
}

static enum lac_status read_optional(const struct json_object *object, const char *key, char *out,
                                     size_t capacity_bytes, struct lac_error *reterr)
{
    return lac_json_read_has(object, key)
               ? lac_json_read_text(object, key, out, capacity_bytes, reterr)
               : LAC_OK;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/** Names after an @ at the beginning of a word, '\n' around each. */
static void find_mentions(const char *text, char *out, size_t capacity_bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (const char *at = text; *at != '\0'; at++) {
        size_t length = 0;

        if (*at != '@' || (at > text && is_name(at[-1]))) {
            continue;
        }
        while (is_name(at[1 + length])) {
            length++;
        }
        while (length > 0 && at[length] == '.') { /* the end of the sentence */
            length--;
        }
        if (length > 0 && length < NAME_BYTES && used + length + 3 < capacity_bytes) {
            used += (size_t)snprintf(out + used, capacity_bytes - used, "%s%.*s\n",
                                     used == 0 ? "\n" : "", (int)length, at + 1);
        }
    }
}

/* ---- comments ---- */

static void write_mentions(struct lac_json *json, const char *mentions)
{
    lac_json_open(json, "mentions", '[');
    while (*mentions != '\0') {
        const size_t length = strcspn(mentions, "\n");

        if (length > 0) {
            lac_json_text_sized(json, NULL, mentions, length);
        }
        mentions += length + (mentions[length] == '\n');
    }
    lac_json_close(json, ']');
}

static void write_comment(void *context, const struct lac_comment *comment)
{
    struct lac_json *json = context;

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", comment->id);
    lac_json_text(json, "thread", comment->thread);
    lac_json_text(json, "part", comment->part);
    lac_json_text(json, "body", comment->body);
    lac_json_text(json, "author", comment->author);
    write_mentions(json, comment->mentions);
    lac_api_write_time(json, "created_at", comment->at_unix_ms);
    lac_api_write_time_or_null(json, "edited_at", comment->edited_unix_ms);
    lac_json_bool(json, "resolved", comment->resolved_unix_ms != 0);
    lac_json_text(json, "resolved_by",
                  comment->resolved_unix_ms != 0 ? comment->resolved_by : NULL);
    lac_api_write_time_or_null(json, "resolved_at", comment->resolved_unix_ms);
    lac_json_close(json, '}');
}

/** A list, or the one comment. */
static void answer_comments(struct lac_app *app, const char *report, const char *id,
                            struct lac_response *response)
{
    struct lac_error error = {0};
    struct lac_json json;

    lac_json_init(&json, &response->body);
    if (id == NULL) {
        lac_json_open(&json, NULL, '{');
        lac_json_open(&json, "comments", '[');
    }
    if (lac_comments_list(app->store, report, id, write_comment, &json, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    if (id == NULL) {
        lac_json_close(&json, ']');
        lac_json_null(&json, "next");
        lac_json_close(&json, '}');
    }
}

/** Whether the report is there. @return false: the response says why */
static bool report_exists(struct lac_app *app, const char *id, struct lac_response *response)
{
    struct lac_written_report row = {0};
    struct lac_error error = {0};

    if (lac_reports_get(app->store, id, &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    lac_written_report_done(&row);
    return true;
}

void lac_api_comments(void *app_context, const struct lac_request *request,
                      struct lac_response *response)
{
    if (lac_api_are_ids(request, nouns, 1, response) &&
        report_exists(app_context, request->param[0], response)) {
        answer_comments(app_context, request->param[0], NULL, response);
    }
}

/** For webhooks: who said what beside which report, and who is named. */
static void tell_of_comment(struct lac_app *app, const char *report, const char *comment,
                            const struct lac_comment *said)
{
    struct lac_written_report row = {0};
    struct lac_error error = {0};
    char path[LAC_ID_SIZE + 16];
    char text[512];

    if (app->tell_news == NULL || lac_reports_get(app->store, report, &row, &error) != LAC_OK) {
        return;
    }
    (void)snprintf(path, sizeof(path), "/reports/%s", report);
    (void)snprintf(text, sizeof(text), "%.64s on \"%.120s\": %.250s", said->author, row.title,
                   said->body);
    struct lac_news news = {.event = "report.comment",
                            .project = row.project,
                            .object = comment,
                            .path = path,
                            .text = text};

    app->tell_news(app->webhooks, &news);
    if (said->mentions[0] != '\0') {
        news.event = "report.mention";
        app->tell_news(app->webhooks, &news);
    }
    lac_written_report_done(&row);
}

void lac_api_comment_add(void *app_context, const struct lac_request *request,
                         struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    char body[LAC_COMMENT_BYTES] = "";
    char thread[LAC_ID_SIZE] = "";
    char part[LAC_REPORT_PART_BYTES] = "";
    char mentions[MENTIONS_BYTES];
    char id[LAC_ID_SIZE];
    struct json_object *object = lac_api_are_ids(request, nouns, 1, response)
                                     ? read_body(request, LAC_API_COMMENT_BYTES, response)
                                     : NULL;

    if (object == NULL) {
        return;
    }
    enum lac_status status = lac_json_read_text(object, "body", body, sizeof(body), &error);

    if (status == LAC_OK) {
        status = read_optional(object, "thread", thread, sizeof(thread), &error);
    }
    if (status == LAC_OK) {
        status = read_optional(object, "part", part, sizeof(part), &error);
    }
    lac_json_read_done(object);
    if (status != LAC_OK || body[strspn(body, " \t\r\n")] == '\0') {
        lac_response_error(response, 400, "bad_request", "send {\"body\":\"...\"}%s%s",
                           status != LAC_OK ? ": " : ", not empty",
                           status != LAC_OK ? error.message : "");
        return;
    }
    find_mentions(body, mentions, sizeof(mentions));

    const struct lac_comment comment = {.thread = thread,
                                        .part = part,
                                        .body = body,
                                        .author = lac_api_asker(request),
                                        .mentions = mentions};

    if (lac_comments_add(app->store, request->param[0], &comment, id, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    tell_of_comment(app, request->param[0], id, &comment);
    response->http_status = 201;
    answer_comments(app, request->param[0], id, response);
}

static enum lac_status change_comment(struct lac_app *app, const struct lac_request *request,
                                      const struct json_object *object, bool *ret_is_bad,
                                      struct lac_error *reterr)
{
    const char *asker = lac_api_asker(request);
    char body[LAC_COMMENT_BYTES] = "";
    char mentions[MENTIONS_BYTES];
    bool is_resolved = false;
    enum lac_status status = LAC_OK;

    *ret_is_bad = true;
    if (lac_json_read_has(object, "body")) {
        status = lac_json_read_text(object, "body", body, sizeof(body), reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "resolved")) {
        status = lac_json_read_bool(object, "resolved", &is_resolved, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    *ret_is_bad = false;
    if (body[0] != '\0') {
        find_mentions(body, mentions, sizeof(mentions));
        status = lac_comments_edit(app->store, request->param[0], request->param[1], asker, body,
                                   mentions, reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "resolved")) {
        /* who only reads and comments closes the threads that they began themselves */
        status =
            lac_comments_resolve(app->store, request->param[0], request->param[1],
                                 lac_api_may_write(app, request, LAC_OWNED_REPORT) ? NULL : asker,
                                 is_resolved ? asker : NULL, reterr);
    }
    return status;
}

void lac_api_comment_change(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_error error = {0};
    bool is_bad = false;
    struct json_object *object = lac_api_are_ids(request, nouns, 2, response)
                                     ? read_body(request, LAC_API_COMMENT_BYTES, response)
                                     : NULL;

    if (object == NULL) {
        return;
    }
    const enum lac_status status = change_comment(app_context, request, object, &is_bad, &error);

    lac_json_read_done(object);
    if (status == LAC_OK) {
        answer_comments(app_context, request->param[0], request->param[1], response);
    } else if (is_bad) {
        lac_response_error(response, 400, "bad_request", "send body or resolved: %s",
                           error.message);
    } else {
        lac_api_fail(response, &error);
    }
}

void lac_api_comment_delete(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};

    if (!lac_api_are_ids(request, nouns, 2, response)) {
        return;
    }
    if (lac_comments_delete(app->store, request->param[0], request->param[1],
                            lac_api_asker(request), &error) == LAC_OK) {
        lac_api_note(app, request, "delete-comment", "%s of report %s", request->param[1],
                     request->param[0]);
        response->http_status = 204;
    } else {
        lac_api_fail(response, &error);
    }
}

/* ---- findings ---- */

static void write_state(void *context, const char *part, const char *state, const char *note,
                        const char *author, int64_t at_unix_ms)
{
    struct lac_json *json = context;

    lac_json_open(json, NULL, '{');
    lac_json_text(json, "part", part);
    lac_json_text(json, "state", state);
    lac_json_text(json, "note", note);
    lac_json_text(json, "author", author);
    lac_api_write_time(json, "updated_at", at_unix_ms);
    lac_json_close(json, '}');
}

void lac_api_finding_states(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    struct lac_json json;

    if (!lac_api_are_ids(request, nouns, 1, response) ||
        !report_exists(app, request->param[0], response)) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "findings", '[');
    if (lac_finding_states(app->store, request->param[0], write_state, &json, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

static enum lac_status read_state(const struct json_object *object, struct lac_report_part *part,
                                  char *state, size_t state_capacity, char *note,
                                  size_t note_capacity, struct lac_error *reterr)
{
    static const char *const states[] = {"open", "in_work", "fixed", "wont_fix"};
    char line[LAC_REPORT_PART_BYTES];
    bool is_known = false;
    enum lac_status status = lac_json_read_text(object, "part", line, sizeof(line), reterr);

    if (status == LAC_OK) {
        status = lac_part_read(line, part, reterr);
    }
    if (status == LAC_OK && part->kind != LAC_PART_FINDING) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"part\" is no finding");
    }
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "state", state, state_capacity, reterr);
    }
    if (status == LAC_OK) {
        status = read_optional(object, "note", note, note_capacity, reterr);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(states); i++) {
        is_known = is_known || strcmp(state, states[i]) == 0;
    }
    if (status == LAC_OK && !is_known) {
        status =
            lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"state\" is open, in_work, fixed or wont_fix");
    }
    if (status == LAC_OK && note[0] == '\0' && strcmp(state, "wont_fix") == 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "say in \"note\" why it will not be fixed");
    }
    return status;
}

void lac_api_finding_state_put(void *app_context, const struct lac_request *request,
                               struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_error error = {0};
    struct lac_report_part part = {0};
    char line[LAC_REPORT_PART_BYTES];
    char state[16] = "";
    char note[1024] = "";
    struct json_object *object = lac_api_are_ids(request, nouns, 1, response)
                                     ? read_body(request, LAC_API_SHARE_BYTES, response)
                                     : NULL;

    if (object == NULL) {
        return;
    }
    const enum lac_status status =
        read_state(object, &part, state, sizeof(state), note, sizeof(note), &error);

    lac_json_read_done(object);
    if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "send part, state and note: %s",
                           error.message);
        return;
    }
    lac_part_line(&part, line, sizeof(line));
    if (lac_finding_set_state(app->store, request->param[0], line, state, note,
                              lac_api_asker(request), &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_api_finding_states(app, request, response);
}
