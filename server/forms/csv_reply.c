/* `?format=csv` on whatever answers rows. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/base/buffer.h"
#include "server/forms/forms.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_read.h"
#include "server/json/rows_csv.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static void take_csv(const struct lac_rows_form *form, struct lac_response *response)
{
    struct lac_buffer csv = {0};
    struct lac_error error = {0};
    char next[256];
    const enum lac_status status = lac_rows_csv(
        form, response->body.bytes, response->body.size_bytes, &csv, next, sizeof(next), &error);

    if (status != LAC_OK) {
        lac_buffer_done(&csv);
        lac_response_fail(response, &error);
        return;
    }
    lac_buffer_done(&response->body);
    response->body = csv;
    response->mime = "text/csv; charset=utf-8";
    lac_response_header(response, "Content-Disposition", "attachment; filename=\"%s.csv\"",
                        form->list);
    if (next[0] != '\0') {
        lac_response_header(response, "Lacuna-Next", "%s", next);
    }
}

void lac_forms_finish(void *app, const struct lac_route *route, const struct lac_request *request,
                      struct lac_response *response)
{
    const char *format = lac_target_get(request->target, "format");
    struct json_object *description = NULL;
    struct lac_rows_form form = {.list = NULL};
    struct lac_error error = {0};
    size_t size_bytes;

    (void)app;
    if (route->method != LAC_METHOD_GET || response->http_status != 200 ||
        response->borrowed != NULL || response->body.bytes == NULL ||
        strcmp(response->mime, "application/json") != 0) {
        return;
    }
    lac_forms_page(route, request, response);
    if (format == NULL || response->http_status != 200) {
        return;
    }
    const char *text = lac_openapi_text(&size_bytes);

    if (lac_description_read(text, size_bytes, &description, &error) != LAC_OK) {
        lac_response_fail(response, &error);
    } else if (lac_rows_form_of(description, route->pattern, &form)) {
        if (strcmp(format, "csv") == 0) {
            take_csv(&form, response);
        } else if (strcmp(format, "json") != 0) {
            lac_response_error(response, 400, "bad_request", "format: one of json, csv");
        }
    }
    lac_json_read_done(description);
}
