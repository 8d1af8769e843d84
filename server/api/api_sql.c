/* Questions in SQL, each in a limited process of its own. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_read.h"
#include "server/people/access.h"
#include "server/sql/reference.h"
#include "server/sql/sql_child.h"
#include "server/sql/sql_query.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one query may take of the server. */
enum { SECONDS_MAX = 20, ROWS_MAX = 100000, ROWS_USUAL = 1000, QUERIES_AT_ONCE = 2 };
#define REPLY_BYTES_MAX ((uint64_t)16 << 20)
#define MEMORY_BYTES    ((uint64_t)512 << 20)

static atomic_int running;

void lac_api_sql_reference(void *app, const struct lac_request *request,
                           struct lac_response *response)
{
    (void)app;
    (void)request;
    lac_sql_reference_json(&response->body);
}

/** A query, and of which traces. */
struct question {
    char *query;  /**< owned */
    char *traces; /**< owned: ids, a line each; NULL: of the trace in the path */
    char *runs;   /**< owned: ids of runs, a line each */
};

static void question_done(struct question *question)
{
    free(question->query);
    free(question->traces);
    free(question->runs);
}

enum { IDS_BYTES = LAC_SQL_TRACES_MAX * (LAC_ID_LENGTH + 1) + 1 };

/** A list of ids that may be missing. */
static enum lac_status read_ids(const struct json_object *object, const char *key, char **ret_ids,
                                struct lac_error *reterr)
{
    *ret_ids = calloc(IDS_BYTES, 1);
    if (*ret_ids == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    return lac_json_read_has(object, key)
               ? lac_json_read_lines(object, key, *ret_ids, IDS_BYTES, reterr)
               : LAC_OK;
}

/** The body: {"query": "SELECT ..."}, of several traces with "traces" or "runs". @return false: the
 *  response says why */
static bool read_question(const struct lac_request *request, bool is_many,
                          struct question *ret_question, struct lac_response *response)
{
    const struct lac_json_limits limits = {LAC_SQL_BODY_BYTES_MAX, 3};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    ret_question->query = malloc(LAC_SQL_TEXT_BYTES_MAX + 1);
    enum lac_status status =
        ret_question->query != NULL
            ? lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error)
            : lac_fail(&error, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "query", ret_question->query,
                                    LAC_SQL_TEXT_BYTES_MAX + 1, &error);
    }
    if (status == LAC_OK && is_many) {
        status = read_ids(object, "traces", &ret_question->traces, &error);
    }
    if (status == LAC_OK && is_many) {
        status = read_ids(object, "runs", &ret_question->runs, &error);
    }
    lac_json_read_done(object);
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
    } else if (status) {
        lac_response_error(response, 400, "bad_request",
                           "send a JSON object, {\"query\": \"SELECT ...\"%s}: %s",
                           is_many ? ", \"traces\": [\"ID\", ...]" : "", error.message);
    }
    return status == LAC_OK;
}

/** Run it in its process. @param asked traces are filled in */
static void answer_asked(struct lac_sql_request *asked, const struct lac_request *request,
                         struct lac_response *response)
{
    static const char *const formats[] = {"json", "csv", NULL};
    struct lac_error error = {0};
    int64_t rows = 0;
    int64_t seconds = 0;
    const int format = lac_api_choice(request, response, "format", formats, 0);
    if (format < 0 || !lac_api_int(request, response, "limit", 1, ROWS_MAX, ROWS_USUAL, &rows) ||
        !lac_api_int(request, response, "timeout", 1, SECONDS_MAX, SECONDS_MAX, &seconds)) {
        return;
    }
    asked->bytes_max = REPLY_BYTES_MAX;
    asked->memory_bytes = MEMORY_BYTES;
    asked->is_csv = format == 1;
    asked->row_max = (uint64_t)rows;
    asked->seconds = (unsigned)seconds;
    enum lac_status status = lac_sql_child_run(asked, &response->body, &error);
    if (status == LAC_ERR_MISUSE || status == LAC_ERR_LIMIT) {
        lac_response_error(response, 400, status == LAC_ERR_LIMIT ? "query_limit" : "query_error",
                           "%s", error.message);
    } else if (status) {
        lac_api_fail(response, &error);
    } else if (format == 1) {
        response->mime = "text/csv; charset=utf-8";
        lac_response_header(response, "Content-Disposition", "attachment");
    }
}

static void answer_sql(struct lac_trace_file *file, const struct lac_request *request,
                       struct lac_response *response)
{
    const char *const path = lac_trace_file_path(file);
    struct lac_sql_request asked = {.trace_paths = &path, .trace_count = 1};
    struct question question = {.query = NULL};
    struct lac_error error = {0};
    if (lac_store_make_whole(file, &error) != LAC_OK) { /* a child reads it by its path */
        lac_api_fail(response, &error);
        return;
    }
    if (read_question(request, false, &question, response)) {
        asked.query = question.query;
        answer_asked(&asked, request, response);
    }
    question_done(&question);
}

/* ---- several traces ---- */

struct opened {
    struct lac_store *store;
    struct lac_people *people;
    const struct lac_principal *who;
    struct lac_trace_file *files[LAC_SQL_TRACES_MAX];
    const char *paths[LAC_SQL_TRACES_MAX];
    unsigned count;
};

/** @return false: the response says why */
static bool open_one(struct opened *opened, const char *id, struct lac_response *response)
{
    struct lac_error error = {0};
    if (opened->count == LAC_SQL_TRACES_MAX) {
        lac_response_error(response, 413, "limit", "a query reads %d traces at most",
                           LAC_SQL_TRACES_MAX);
        return false;
    }
    struct lac_trace_file **file = &opened->files[opened->count];
    if (lac_store_id_is_valid(id) &&
        !lac_access_may_object(opened->people, opened->store, opened->who, LAC_OWNED_TRACE, id,
                               LAC_RIGHT_READ, response)) {
        return false;
    }
    enum lac_status status = lac_store_id_is_valid(id)
                                 ? lac_store_open_trace(opened->store, id, file, &error)
                                 : LAC_ERR_NOT_FOUND;
    if (status == LAC_OK) {
        opened->paths[opened->count++] = lac_trace_file_path(*file);
        status = lac_store_make_whole(*file, &error); /* given back with the others */
    }
    if (status == LAC_OK) {
        return true;
    }
    if (status == LAC_ERR_NOT_FOUND) {
        lac_response_error(response, 404, "not_found", "no such trace: %.26s", id);
    } else if (status == LAC_ERR_MISUSE) {
        lac_response_error(response, 409, "not_ready", "the trace %.26s is not ready", id);
    } else {
        lac_api_fail(response, &error);
    }
    return status == LAC_OK;
}

/** The ready traces of a run, the first first. @return false: the response says why */
static bool open_run(struct opened *opened, const char *run, struct lac_response *response)
{
    const struct lac_trace_query query = {.run = run, .limit = LAC_SQL_TRACES_MAX + 1};
    struct lac_trace_list list = {0};
    struct lac_error error = {0};
    bool is_good = lac_store_id_is_valid(run);
    if (!is_good) {
        lac_response_error(response, 404, "not_found", "no such run: %.26s", run);
    } else if (lac_store_list_traces(opened->store, &query, &list, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        is_good = false;
    } else if (list.count == 0) {
        lac_response_error(response, 404, "not_found", "no such run: %.26s", run);
        is_good = false;
    }
    for (uint32_t i = list.count; i > 0 && is_good; i--) { /* the list has the newest first */
        if (list.rows[i - 1].state == LAC_TRACE_READY) {
            is_good = open_one(opened, list.rows[i - 1].id, response);
        }
    }
    lac_trace_list_done(&list);
    return is_good;
}

/** Each line of `ids`, which is taken apart. */
static bool open_lines(struct opened *opened, char *ids, struct lac_response *response,
                       bool (*open_it)(struct opened *, const char *, struct lac_response *))
{
    char *rest = NULL;
    for (char *id = strtok_r(ids, "\n", &rest); id != NULL; id = strtok_r(NULL, "\n", &rest)) {
        if (!open_it(opened, id, response)) {
            return false;
        }
    }
    return true;
}

static void answer_many(struct lac_app *app, const struct lac_request *request,
                        struct lac_response *response)
{
    struct opened opened = {.store = app->store, .people = app->people, .who = &request->who};
    struct question question = {.query = NULL};
    if (read_question(request, true, &question, response) &&
        open_lines(&opened, question.traces, response, open_one) &&
        open_lines(&opened, question.runs, response, open_run)) {
        struct lac_sql_request asked = {.trace_paths = opened.paths,
                                        .trace_count = opened.count,
                                        .is_many = true,
                                        .query = question.query};
        if (opened.count > 0) {
            answer_asked(&asked, request, response);
        } else {
            lac_response_error(response, 400, "bad_request",
                               "name traces or runs: {\"query\": \"...\", \"traces\": [\"ID\"]}");
        }
    }
    for (unsigned i = 0; i < opened.count; i++) {
        lac_store_release_trace(app->store, opened.files[i]);
    }
    question_done(&question);
}

/** Whether another query may run now; then the caller ends it with leave(). */
static bool enter(struct lac_response *response)
{
    if (atomic_fetch_add(&running, 1) < QUERIES_AT_ONCE) {
        return true;
    }
    lac_response_header(response, "Retry-After", "2");
    lac_response_error(response, 503, "busy", "%d queries run already: try again in a moment",
                       QUERIES_AT_ONCE);
    return false;
}

static void leave(void)
{
    (void)atomic_fetch_sub(&running, 1);
}

void lac_api_sql(void *app, const struct lac_request *request, struct lac_response *response)
{
    if (enter(response)) {
        lac_api_answer_trace(app, request, response, answer_sql);
    }
    leave();
}

void lac_api_sql_many(void *app, const struct lac_request *request, struct lac_response *response)
{
    if (enter(response)) {
        answer_many(app, request, response);
    }
    leave();
}
