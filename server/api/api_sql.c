/* Questions in SQL, each in a limited process of its own. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_read.h"
#include "server/sql/reference.h"
#include "server/sql/sql_child.h"
#include "server/sql/sql_query.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/** The query from the body, {"query": "SELECT ..."}. @return NULL: the response says why */
static char *read_query(const struct lac_request *request, struct lac_response *response)
{
    const struct lac_json_limits limits = {LAC_SQL_BODY_BYTES_MAX, 2};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    char *query = malloc(LAC_SQL_TEXT_BYTES_MAX + 1);
    enum lac_status status = query != NULL ? lac_json_read(request->body, request->body_size_bytes,
                                                           &limits, &object, &error)
                                           : lac_fail(&error, LAC_ERR_NOMEM, 0, "out of memory");
    if (status == LAC_OK) {
        status = lac_json_read_text(object, "query", query, LAC_SQL_TEXT_BYTES_MAX + 1, &error);
    }
    lac_json_read_done(object);
    if (status == LAC_OK) {
        return query;
    }
    free(query);
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
    } else {
        lac_response_error(response, 400, "bad_request",
                           "send a JSON object, {\"query\": \"SELECT ...\"}: %s", error.message);
    }
    return NULL;
}

static void answer_sql(struct lac_trace_file *file, const struct lac_request *request,
                       struct lac_response *response)
{
    struct lac_sql_request asked = {.trace_path = lac_trace_file_path(file),
                                    .bytes_max = REPLY_BYTES_MAX,
                                    .memory_bytes = MEMORY_BYTES};
    struct lac_error error = {0};
    int64_t rows = 0;
    int64_t seconds = 0;
    if (!lac_api_int(request, response, "limit", 1, ROWS_MAX, ROWS_USUAL, &rows) ||
        !lac_api_int(request, response, "timeout", 1, SECONDS_MAX, SECONDS_MAX, &seconds)) {
        return;
    }
    char *query = read_query(request, response);
    if (query == NULL) {
        return;
    }
    asked.query = query;
    asked.row_max = (uint64_t)rows;
    asked.seconds = (unsigned)seconds;
    enum lac_status status = lac_sql_child_run(&asked, &response->body, &error);
    if (status == LAC_ERR_MISUSE || status == LAC_ERR_LIMIT) {
        lac_response_error(response, 400, status == LAC_ERR_LIMIT ? "query_limit" : "query_error",
                           "%s", error.message);
    } else if (status) {
        lac_api_fail(response, &error);
    }
    free(query);
}

void lac_api_sql(void *app, const struct lac_request *request, struct lac_response *response)
{
    if (atomic_fetch_add(&running, 1) < QUERIES_AT_ONCE) {
        lac_api_answer_trace(app, request, response, answer_sql);
    } else {
        lac_response_header(response, "Retry-After", "2");
        lac_response_error(response, 503, "busy", "%d queries run already: try again in a moment",
                           QUERIES_AT_ONCE);
    }
    (void)atomic_fetch_sub(&running, 1);
}
