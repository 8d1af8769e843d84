/* What findings mean: the documents that are part of the program. */

#include "analysis/diagnose/documents.h"
#include "analysis/diagnose/result/cause.h"
#include "analysis/diagnose/result/finding_types.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_out.h"

#include <stddef.h>

/** The members that the list and a single document share. */
static void write_row(struct lac_json *json, enum lac_finding_kind kind)
{
    const struct lac_finding_type *type = lac_finding_type(kind);
    const char *cause = type->cause < LAC_CAUSE_COUNT_ ? lac_cause_name(type->cause) : "gpu";

    lac_json_text(json, "id", type->id);
    lac_json_text(json, "title", lac_finding_documents[kind].title);
    lac_json_text(json, "cause", cause);
    lac_json_text(json, "effort", lac_effort_name(type->effort));
}

/** The documents change with the program alone. */
static bool is_unchanged(const struct lac_request *request, struct lac_response *response,
                         const char *what)
{
    lac_response_etag(response, "finding %s %s", LAC_VERSION, what);
    response->cache = "no-cache";
    return lac_response_is_unchanged(request, response);
}

void lac_api_findings(void *app, const struct lac_request *request, struct lac_response *response)
{
    struct lac_json json;

    (void)app;
    if (is_unchanged(request, response, "list")) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "findings", '[');
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        lac_json_open(&json, NULL, '{');
        write_row(&json, (enum lac_finding_kind)kind);
        lac_json_close(&json, '}');
    }
    lac_json_close(&json, ']');
    lac_json_null(&json, "next");
    lac_json_close(&json, '}');
}

void lac_api_finding(void *app, const struct lac_request *request, struct lac_response *response)
{
    enum lac_finding_kind kind = lac_finding_kind_of(request->param[0]);
    struct lac_json json;

    (void)app;
    if (kind == LAC_FINDING_COUNT_) {
        lac_response_error(response, 404, "not_found", "no such finding");
        return;
    }
    if (is_unchanged(request, response, lac_finding_type(kind)->id)) {
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    write_row(&json, kind);
    lac_json_text(&json, "markdown", lac_finding_documents[kind].markdown);
    lac_json_close(&json, '}');
}
