/* Reports that people write: text and versions, and what they look like. */

#include "analysis/compare/compare.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/kept_facts.h"
#include "server/api/report_evidence.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/access.h"
#include "server/reports/document.h"
#include "server/reports/draft.h"
#include "server/reports/part.h"
#include "server/store/bookmarks.h"
#include "server/store/people_rows.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a body asks for. */
struct asked {
    char title[LAC_REPORT_TITLE_BYTES];
    char project[256];
    char from[LAC_PART_TRACES_MAX * (LAC_ID_SIZE + 1)];
    char report[LAC_ID_SIZE]; /**< of a preview: whose evidence is there */
    char *markdown;
    bool has_title, has_project, has_markdown, has_version;
    int64_t version;
};

static bool is_one_line(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static enum lac_status read_line(const struct json_object *object, const char *key, char *out,
                                 size_t capacity_bytes, bool *ret_has, struct lac_error *reterr)
{
    enum lac_status status;

    if (!lac_json_read_has(object, key)) {
        return LAC_OK;
    }
    status = lac_json_read_text(object, key, out, capacity_bytes, reterr);
    if (status == LAC_OK && !is_one_line(out)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "\"%s\" is more than one line", key);
    }
    *ret_has = status == LAC_OK;
    return status;
}

static enum lac_status read_members(const struct json_object *object, struct asked *asked,
                                    struct lac_error *reterr)
{
    bool unused = false;
    enum lac_status status =
        read_line(object, "title", asked->title, sizeof(asked->title), &asked->has_title, reterr);

    if (status == LAC_OK) {
        status = read_line(object, "project", asked->project, sizeof(asked->project),
                           &asked->has_project, reterr);
    }
    if (status == LAC_OK) {
        status = read_line(object, "report", asked->report, sizeof(asked->report), &unused, reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "markdown")) {
        asked->has_markdown = true;
        status =
            lac_json_read_text(object, "markdown", asked->markdown, LAC_REPORT_TEXT_BYTES, reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "version")) {
        asked->has_version = true;
        status = lac_json_read_int(object, "version", &asked->version, reterr);
    }
    if (status == LAC_OK && lac_json_read_has(object, "from")) {
        status = lac_json_read_lines(object, "from", asked->from, sizeof(asked->from), reterr);
    }
    return status;
}

/** @return false: the response says why; else the caller frees the text */
static bool read_body(const struct lac_request *request, struct asked *asked,
                      struct lac_response *response)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_API_REPORT_BYTES,
                                                  .depth_max = 3};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    enum lac_status status = LAC_ERR_NOMEM;

    *asked = (struct asked){.markdown = calloc(1, LAC_REPORT_TEXT_BYTES)};
    if (asked->markdown != NULL) {
        status = lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error);
    }
    if (status == LAC_OK) {
        status = read_members(object, asked, &error);
    }
    lac_json_read_done(object);
    if (status == LAC_OK) {
        return true;
    }
    free(asked->markdown);
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this report");
    } else {
        lac_response_error(response, 400, "bad_request",
                           "send a JSON object with title and markdown: %s", error.message);
    }
    return false;
}

/** The report that the path names must look like one. */
static bool path_id_is_valid(const struct lac_request *request, struct lac_response *response)
{
    if (lac_store_id_is_valid(request->param[0])) {
        return true;
    }
    lac_response_error(response, 404, "not_found", "no such report");
    return false;
}

/* ---- replies ---- */

static void write_members(struct lac_json *json, const struct lac_written_report *row)
{
    lac_json_text(json, "id", row->id);
    lac_json_text(json, "project", row->project);
    lac_json_text(json, "title", row->title);
    lac_json_int(json, "version", row->version);
    lac_json_text(json, "author", row->author);
    lac_json_text(json, "editor", row->editor);
    lac_api_write_time(json, "created_at", row->created_unix_ms);
    lac_api_write_time(json, "updated_at", row->updated_unix_ms);
    lac_json_uint(json, "open_threads", row->open_thread_count);
}

struct part_list {
    struct lac_json *json;
    struct lac_app *app;
    const char *report;
};

static void write_part(void *context, const struct lac_report_part *part, const char *line)
{
    struct part_list *list = context;
    struct lac_error error = {0};
    char *snapshot = NULL;
    int64_t at_unix_ms = 0;
    const bool is_kept = lac_reports_snapshot(list->app->store, list->report, line, &snapshot,
                                              &at_unix_ms, &error) == LAC_OK;

    lac_json_open(list->json, NULL, '{');
    lac_json_text(list->json, "part", line);
    lac_json_text(list->json, "kind", lac_part_kind_name(part->kind));
    lac_json_bool(list->json, "kept", is_kept);
    if (is_kept) {
        lac_api_write_time(list->json, "kept_at", at_unix_ms);
        lac_json_uint(list->json, "size_bytes", strlen(snapshot));
    } else {
        lac_json_null(list->json, "kept_at");
        lac_json_null(list->json, "size_bytes");
    }
    lac_json_close(list->json, '}');
    free(snapshot);
}

static void write_report(struct lac_app *app, struct lac_response *response,
                         const struct lac_written_report *row)
{
    struct lac_json json;
    struct part_list list = {&json, app, row->id};
    struct lac_error error = {0};

    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    write_members(&json, row);
    lac_json_text(&json, "markdown", row->markdown);
    lac_json_open(&json, "parts", '[');
    (void)!lac_document_parts(row->markdown, write_part, &list, &error);
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
}

static void answer_report(struct lac_app *app, const char *id, struct lac_response *response)
{
    struct lac_written_report row = {0};
    struct lac_error error = {0};

    if (lac_reports_get(app->store, id, &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    write_report(app, response, &row);
    lac_written_report_done(&row);
}

void lac_api_reports(void *app_context, const struct lac_request *request,
                     struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_written_report_list list = {0};
    struct lac_error error = {0};
    struct lac_json json;
    char *among = NULL;
    int64_t limit;

    if (!lac_api_int(request, response, "limit", 1, 1000, 100, &limit) ||
        !lac_access_readable(app->people, app->store, &request->who, &among, response)) {
        return;
    }
    const struct lac_written_report_query query = {
        .project = lac_target_get(request->target, "project"),
        .text = lac_target_get(request->target, "q"),
        .mention = lac_target_get(request->target, "mention"),
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
        .among = among,
    };
    const enum lac_status status = lac_reports_list(app->store, &query, &list, &error);

    free(among);
    if (status != LAC_OK) {
        if (error.status == LAC_ERR_MISUSE) {
            lac_response_error(response, 400, "bad_request", "%s", error.message);
        } else {
            lac_api_fail(response, &error);
        }
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "reports", '[');
    for (uint32_t i = 0; i < list.count; i++) {
        lac_json_open(&json, NULL, '{');
        write_members(&json, &list.rows[i]);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", list.has_more ? list.next : NULL);
    lac_json_close(&json, '}');
    lac_reports_list_done(&list);
}

void lac_api_report_get(void *app_context, const struct lac_request *request,
                        struct lac_response *response)
{
    if (path_id_is_valid(request, response)) {
        answer_report(app_context, request->param[0], response);
    }
}

/* ---- saving ---- */

struct taking {
    struct lac_app *app;
    const struct lac_principal *who;
    const char *report; /**< NULL: a new one */
    uint32_t count;
    struct lac_report_snapshot snapshots[LAC_REPORT_PARTS_MAX];
    char *lines[LAC_REPORT_PARTS_MAX], *texts[LAC_REPORT_PARTS_MAX];
};

static void take_part(void *context, const struct lac_report_part *part, const char *line)
{
    struct taking *taking = context;
    struct lac_error error = {0};
    char why[256];
    char *snapshot = NULL;

    if (taking->report != NULL && lac_reports_snapshot(taking->app->store, taking->report, line,
                                                       &snapshot, NULL, &error) == LAC_OK) {
        free(snapshot);
        return; /* as it was when it was saved first */
    }
    snapshot = lac_report_evidence_take(taking->app, taking->who, part, why, sizeof(why));
    char *copy = snapshot != NULL ? strdup(line) : NULL;

    if (copy == NULL) {
        free(snapshot);
        return;
    }
    taking->lines[taking->count] = copy;
    taking->texts[taking->count] = snapshot;
    taking->snapshots[taking->count++] = (struct lac_report_snapshot){copy, snapshot};
}

static void taking_done(struct taking *taking)
{
    for (uint32_t i = 0; i < taking->count; i++) {
        free(taking->lines[i]);
        free(taking->texts[i]);
    }
}

enum { DRAFT_BOOKMARKS_MAX = 10 };

/** Bookmarks of a trace on their way into its draft. */
struct bookmarks {
    struct lac_buffer *out;
    const char *trace;
    const struct lac_model *model;
    unsigned count;
};

static void draft_bookmark(void *context, const struct lac_bookmark *bookmark)
{
    struct bookmarks *const bookmarks = context;

    if (bookmarks->count < DRAFT_BOOKMARKS_MAX) {
        if (bookmarks->count == 0) {
            lac_buffer_puts(bookmarks->out, "# Bookmarks\n\n");
        }
        lac_draft_bookmark(bookmarks->out, bookmarks->trace, bookmarks->model, bookmark);
        bookmarks->count++;
    }
}

/** Texts of a draft. @return false: the response says why */
static bool open_side(struct lac_app *app, const struct lac_request *request, const char *id,
                      struct lac_response *response, struct lac_trace_file **ret_file,
                      struct lac_kept_facts *facts)
{
    struct lac_request one = *request;

    one.param[0] = id;
    *ret_file = lac_api_open_trace(app, &one, response);
    return *ret_file != NULL && lac_kept_facts_open(*ret_file, response, facts);
}

static bool draft_bookmarks(struct lac_app *app, const char *trace, const struct lac_model *model,
                            struct lac_buffer *out, struct lac_response *response)
{
    struct bookmarks bookmarks = {.out = out, .trace = trace, .model = model};
    struct lac_error error = {0};

    if (lac_bookmarks_list(app->store, trace, NULL, draft_bookmark, &bookmarks, &error) == LAC_OK) {
        return true;
    }
    lac_api_fail(response, &error);
    return false;
}

static bool draft_of_traces(struct lac_app *app, const struct lac_request *request,
                            const char *const *ids, unsigned count, struct lac_buffer *out,
                            char *title, struct lac_response *response)
{
    struct lac_trace_file *files[2] = {NULL, NULL};
    struct lac_kept_facts facts[2] = {{0}, {0}};
    bool is_open = true;

    for (unsigned i = 0; i < count && is_open; i++) {
        is_open = open_side(app, request, ids[i], response, &files[i], &facts[i]);
    }
    if (is_open && count == 1) {
        const struct lac_model *model = lac_trace_file_head(files[0]);

        (void)snprintf(title, LAC_REPORT_TITLE_BYTES, "%.200s",
                       lac_model_str(model, model->info.name));
        lac_draft_trace(out, ids[0], model, facts[0].analysis);
        is_open = draft_bookmarks(app, ids[0], model, out, response);
    } else if (is_open) {
        const struct lac_compare_side sides[2] = {
            {lac_trace_file_head(files[0]), facts[0].analysis, facts[0].compare},
            {lac_trace_file_head(files[1]), facts[1].analysis, facts[1].compare}};

        (void)snprintf(title, LAC_REPORT_TITLE_BYTES, "%.100s, then %.100s",
                       lac_model_str(sides[0].model, sides[0].model->info.name),
                       lac_model_str(sides[1].model, sides[1].model->info.name));
        lac_draft_compare(out, ids, sides);
    }
    for (unsigned i = 0; i < count; i++) {
        if (files[i] != NULL) {
            lac_kept_facts_close(files[i], &facts[i]);
            lac_store_release_trace(app->store, files[i]);
        }
    }
    return is_open;
}

static bool draft_of_series(struct lac_app *app, const char *const *ids, unsigned count,
                            struct lac_buffer *out, char *title, struct lac_response *response)
{
    struct lac_trace_row *rows = calloc(LAC_PART_TRACES_MAX, sizeof(*rows));
    struct lac_error error = {0};
    unsigned found = 0;

    if (rows == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this draft");
        return false;
    }
    while (found < count &&
           lac_store_get_trace(app->store, ids[found], &rows[found], &error) == LAC_OK) {
        found++;
    }
    if (found == count) {
        (void)snprintf(title, LAC_REPORT_TITLE_BYTES, "%u runs in a row", count);
        lac_draft_series(out, rows, count);
    } else {
        lac_api_fail(response, &error);
    }
    for (unsigned i = 0; i < found; i++) {
        lac_trace_row_done(&rows[i]);
    }
    free(rows);
    return found == count;
}

/** The first text, of one trace, two, or more. @return false: the response says why */
static bool draft(struct lac_app *app, const struct lac_request *request, struct asked *asked,
                  struct lac_response *response)
{
    const char *ids[LAC_PART_TRACES_MAX];
    unsigned count = 0;
    char *rest = NULL;
    char title[LAC_REPORT_TITLE_BYTES] = "";
    struct lac_buffer out = {.size_bytes_max = LAC_REPORT_TEXT_BYTES - 1};
    bool is_made = true;

    for (char *id = strtok_r(asked->from, "\n", &rest); id != NULL && is_made;
         id = strtok_r(NULL, "\n", &rest)) {
        is_made = lac_store_id_is_valid(id) && count < LAC_PART_TRACES_MAX;
        if (is_made) {
            ids[count++] = id;
        }
    }
    if (!is_made) {
        lac_response_error(response, 404, "not_found", "\"from\" names a trace that is not here");
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!lac_access_may_object(app->people, app->store, &request->who, LAC_OWNED_TRACE, ids[i],
                                   LAC_RIGHT_READ, response)) {
            return false;
        }
    }
    is_made = count <= 2 ? draft_of_traces(app, request, ids, count, &out, title, response)
                         : draft_of_series(app, ids, count, &out, title, response);
    if (is_made && (out.status != LAC_OK || out.bytes == NULL)) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this draft");
        is_made = false;
    }
    if (is_made) {
        memcpy(asked->markdown, out.bytes, out.size_bytes + 1);
        if (!asked->has_title) {
            for (char *at = title; *at != '\0'; at++) { /* a name of a trace may hold anything */
                *at = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
            }
            memcpy(asked->title, title, sizeof(title));
        }
    }
    lac_buffer_done(&out);
    return is_made;
}

/** For webhooks: a report is there for who may read its project. */
static void tell_of_report(struct lac_app *app, const char *id,
                           const struct lac_report_change *change)
{
    char path[LAC_ID_SIZE + 16];
    char text[400];

    if (app->tell_news != NULL) {
        (void)snprintf(path, sizeof(path), "/reports/%s", id);
        (void)snprintf(text, sizeof(text), "%.64s wrote \"%.250s\"", change->author, change->title);
        app->tell_news(app->webhooks, &(struct lac_news){.event = "report.published",
                                                         .project = change->project,
                                                         .object = id,
                                                         .path = path,
                                                         .text = text});
    }
}

void lac_api_report_create(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct asked asked;
    struct taking taking = {.app = app, .who = &request->who};
    struct lac_error error = {0};
    char id[LAC_ID_SIZE];

    if (!read_body(request, &asked, response)) {
        return;
    }
    if (!lac_access_may(app->people, &request->who, asked.project, LAC_RIGHT_WRITE, "project",
                        response)) {
        free(asked.markdown);
        return;
    }
    if (asked.from[0] != '\0' && !draft(app, request, &asked, response)) {
        free(asked.markdown);
        return;
    }
    if (asked.title[0] == '\0') {
        lac_response_error(response, 400, "bad_request", "give the report a title, of one line");
        free(asked.markdown);
        return;
    }
    if (lac_document_parts(asked.markdown, take_part, &taking, &error) != LAC_OK) {
        lac_response_error(response, 413, "limit", "%s", error.message);
    } else {
        const struct lac_report_change change = {.project = asked.project,
                                                 .title = asked.title,
                                                 .markdown = asked.markdown,
                                                 .author = lac_api_asker(request),
                                                 .snapshots = taking.snapshots,
                                                 .snapshot_count = taking.count};

        if (lac_reports_create(app->store, &change, id, &error) == LAC_OK) {
            tell_of_report(app, id, &change);
            response->http_status = 201;
            lac_response_header(response, "Location", "%s/api/v1/reports/%s", request->base_path,
                                id);
            answer_report(app, id, response);
        } else {
            lac_api_fail(response, &error);
        }
    }
    taking_done(&taking);
    free(asked.markdown);
}

/** Somebody was first: all three texts, to merge them. */
static void answer_conflict(struct lac_app *app, const char *id, const struct asked *asked,
                            struct lac_response *response, const char *message)
{
    struct lac_written_report current = {0};
    struct lac_written_report base = {0};
    struct lac_error error = {0};
    struct lac_json json;

    if (lac_reports_get(app->store, id, &current, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    response->http_status = 409;
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "error", '{');
    lac_json_text(&json, "code", "version_conflict");
    lac_json_text(&json, "message", message);
    lac_json_close(&json, '}');
    lac_json_open(&json, "current", '{');
    write_members(&json, &current);
    lac_json_text(&json, "markdown", current.markdown);
    lac_json_close(&json, '}');
    lac_json_open(&json, "yours", '{');
    lac_json_int(&json, "version", asked->version);
    lac_json_text(&json, "title", asked->has_title ? asked->title : NULL);
    lac_json_text(&json, "markdown", asked->has_markdown ? asked->markdown : NULL);
    lac_json_close(&json, '}');
    if (lac_reports_version(app->store, id, asked->version, &base, &error) == LAC_OK) {
        lac_json_open(&json, "base", '{');
        lac_json_text(&json, "title", base.title);
        lac_json_text(&json, "markdown", base.markdown);
        lac_json_close(&json, '}');
    } else {
        lac_json_null(&json, "base");
    }
    lac_json_close(&json, '}');
    lac_written_report_done(&current);
    lac_written_report_done(&base);
}

static void save(struct lac_app *app, const struct lac_request *request, const struct asked *asked,
                 struct lac_response *response)
{
    const char *id = request->param[0];
    struct taking taking = {.app = app, .who = &request->who, .report = id};
    struct lac_error error = {0};
    enum lac_status status = LAC_OK;

    if (asked->has_project && !lac_access_may(app->people, &request->who, asked->project,
                                              LAC_RIGHT_WRITE, "project", response)) {
        return;
    }
    if (asked->has_markdown) {
        status = lac_document_parts(asked->markdown, take_part, &taking, &error);
    }
    if (status == LAC_OK) {
        const struct lac_report_change change = {
            .project = asked->has_project ? asked->project : NULL,
            .title = asked->has_title ? asked->title : NULL,
            .markdown = asked->has_markdown ? asked->markdown : NULL,
            .author = lac_api_asker(request),
            .snapshots = taking.snapshots,
            .snapshot_count = taking.count};

        status = lac_reports_change(app->store, id, asked->version, &change, &error);
    }
    taking_done(&taking);
    if (status == LAC_OK) {
        answer_report(app, id, response);
    } else if (status == LAC_ERR_BUSY) {
        answer_conflict(app, id, asked, response, error.message);
    } else {
        lac_api_fail(response, &error);
    }
}

void lac_api_report_change(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct asked asked;

    if (!path_id_is_valid(request, response) || !read_body(request, &asked, response)) {
        return;
    }
    if (!asked.has_version) {
        lac_response_error(response, 400, "bad_request",
                           "\"version\" is missing: the version that the change was made of");
    } else if (asked.has_title && asked.title[0] == '\0') {
        lac_response_error(response, 400, "bad_request", "give the report a title, of one line");
    } else {
        save(app_context, request, &asked, response);
    }
    free(asked.markdown);
}

void lac_api_report_delete(void *app_context, const struct lac_request *request,
                           struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_written_report row = {0};
    struct lac_error error = {0};
    enum lac_status status;

    if (!path_id_is_valid(request, response)) {
        return;
    }
    status = lac_reports_get(app->store, request->param[0], &row, &error);
    if (status == LAC_OK) {
        status = lac_reports_delete(app->store, request->param[0], &error);
    }
    if (status == LAC_OK) {
        lac_api_note(app, request, "delete-report", "%s%s%s: %s", request->param[0],
                     row.project[0] != '\0' ? " of " : "", row.project, row.title);
        response->http_status = 204;
    } else {
        lac_api_fail(response, &error);
    }
    lac_written_report_done(&row);
}

/* ---- versions ---- */

static void write_version(void *context, int64_t version, const char *title, const char *author,
                          int64_t at_unix_ms, int64_t size_bytes)
{
    struct lac_json *json = context;

    lac_json_open(json, NULL, '{');
    lac_json_int(json, "version", version);
    lac_json_text(json, "title", title);
    lac_json_text(json, "editor", author);
    lac_api_write_time(json, "saved_at", at_unix_ms);
    lac_json_int(json, "size_bytes", size_bytes);
    lac_json_close(json, '}');
}

void lac_api_report_versions(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_written_report row = {0};
    struct lac_error error = {0};
    struct lac_json json;

    if (!path_id_is_valid(request, response)) {
        return;
    }
    if (lac_reports_get(app->store, request->param[0], &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_written_report_done(&row);
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "versions", '[');
    if (lac_reports_versions(app->store, request->param[0], write_version, &json, &error) !=
        LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

void lac_api_report_version(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_written_report row = {0};
    struct lac_error error = {0};
    struct lac_json json;
    uint64_t version;

    if (!path_id_is_valid(request, response) ||
        !lac_api_path_number(request, response, 1, LAC_REPORT_VERSIONS_MAX, &version)) {
        return;
    }
    if (lac_reports_version(app->store, request->param[0], (int64_t)version, &row, &error) !=
        LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_int(&json, "version", row.version);
    lac_json_text(&json, "title", row.title);
    lac_json_text(&json, "editor", row.editor);
    lac_api_write_time(&json, "saved_at", row.updated_unix_ms);
    lac_json_text(&json, "markdown", row.markdown);
    lac_json_close(&json, '}');
    lac_written_report_done(&row);
}

/* ---- documents ---- */

enum { FORM_FRAME = 0, FORM_HTML, FORM_MARKDOWN, FORM_CONTENTS };

#define DOCUMENT_POLICY                                                                            \
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "              \
    "form-action 'none'; frame-ancestors 'none'; sandbox"

static void write_document(struct lac_document *document, int form, struct lac_response *response)
{
    struct lac_error error = {0};
    struct lac_buffer unsent = {0};
    enum lac_status status = LAC_OK;

    if (form == FORM_MARKDOWN) {
        response->mime = "text/markdown; charset=utf-8";
        lac_document_markdown(&response->body, document);
    } else {
        response->mime = form == FORM_CONTENTS ? "application/json" : "text/html; charset=utf-8";
        status = lac_document_html(form == FORM_CONTENTS ? &unsent : &response->body, document,
                                   form != FORM_FRAME, &error);
    }
    if (form == FORM_CONTENTS && status == LAC_OK) {
        lac_api_write_contents(document->redactor, response);
    }
    if (form == FORM_HTML || form == FORM_MARKDOWN) {
        lac_response_header(response, "Content-Disposition", "attachment");
    }
    if (status != LAC_OK) {
        response->mime = "application/json";
        lac_response_error(response, 413, "limit", "%s", error.message);
    }
    response->policy = DOCUMENT_POLICY;
    lac_buffer_done(&unsent);
}

/** @param row of a version or a text that is not saved */
static void answer_document(struct lac_app *app, const struct lac_request *request,
                            const struct lac_written_report *row, int form, const char *redact,
                            struct lac_response *response)
{
    struct lac_report_evidence evidence = {.app = app,
                                           .who = &request->who,
                                           .report = row->id[0] != '\0' ? row->id : NULL,
                                           .takes = true};
    struct lac_redactor redactor = {0};
    struct lac_buffer hosts = {0};
    struct lac_error error = {0};
    struct lac_document document = {
        .title = row->title,
        .markdown = row->markdown,
        .version = row->version,
        .updated_unix_ms = row->updated_unix_ms,
        .base_path = form == FORM_FRAME ? request->base_path : NULL,
        .evidence = lac_report_evidence_get,
        .context = &evidence,
        .redactor = &redactor,
    };

    if (form != FORM_FRAME) {
        evidence.takes = false;
        lac_report_evidence_hosts(&evidence, row->markdown, &hosts);
    }
    if (hosts.status != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this report");
    } else if (lac_redactor_init_hosts(&redactor, redact, hosts.bytes != NULL ? hosts.bytes : "",
                                       &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
    } else {
        write_document(&document, form, response);
    }
    lac_redactor_done(&redactor);
    lac_buffer_done(&hosts);
}

void lac_api_report_document(void *app_context, const struct lac_request *request,
                             struct lac_response *response)
{
    static const char *const forms[] = {"frame", "html", "markdown", "contents", NULL};
    struct lac_app *app = app_context;
    struct lac_written_report row = {0};
    struct lac_error error = {0};
    int64_t version;
    int form;

    if (!path_id_is_valid(request, response) ||
        !lac_api_int(request, response, "version", 0, LAC_REPORT_VERSIONS_MAX, 0, &version)) {
        return;
    }
    form = lac_api_choice(request, response, "format", forms, FORM_HTML);
    if (form < 0) {
        return;
    }
    if ((version > 0 ? lac_reports_version(app->store, request->param[0], version, &row, &error)
                     : lac_reports_get(app->store, request->param[0], &row, &error)) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    answer_document(app, request, &row, form, lac_target_get(request->target, "redact"), response);
    lac_written_report_done(&row);
}

void lac_api_report_preview(void *app_context, const struct lac_request *request,
                            struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct asked asked;
    struct lac_written_report row = {0};

    if (!read_body(request, &asked, response)) {
        return;
    }
    row.title = asked.title;
    row.markdown = asked.markdown;
    if (lac_store_id_is_valid(asked.report)) {
        memcpy(row.id, asked.report, sizeof(row.id));
    }
    answer_document(app, request, &row, FORM_FRAME, NULL, response);
    free(asked.markdown);
}

void lac_api_report_style(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    (void)app_context;
    response->mime = "text/css; charset=utf-8";
    response->cache = "private, no-cache";
    lac_response_etag(response, "report.css %s", LAC_VERSION);
    if (!lac_response_is_unchanged(request, response)) {
        lac_document_style(&response->body);
    }
}
