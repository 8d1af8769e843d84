/* The schemas of what leaves: GET /schemas and /schemas/{name}. */

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_read.h"
#include "server/json/rows_csv.h"
#include "server/json/schema_json.h"

#include <stddef.h>

/** @param name NULL: the list */
static void answer(const char *name, const struct lac_request *request,
                   struct lac_response *response)
{
    struct json_object *description = NULL;
    struct lac_error error = {0};
    size_t size_bytes;
    const char *text = lac_openapi_text(&size_bytes);

    lac_response_etag(response, "schemas %s %zu %s", LAC_VERSION, size_bytes,
                      request->target->path);
    response->cache = "no-cache";
    if (lac_response_is_unchanged(request, response)) {
        return;
    }
    enum lac_status status = lac_description_read(text, size_bytes, &description, &error);

    if (status == LAC_OK) {
        status = name == NULL ? lac_schema_list(description, &response->body, &error)
                              : lac_schema_write(description, name, &response->body, &error);
    }
    lac_json_read_done(description);
    if (status == LAC_ERR_NOT_FOUND) {
        lac_response_error(response, 404, "not_found",
                           "no document has this name: GET /api/v1/schemas lists them");
    } else if (status != LAC_OK) {
        lac_response_fail(response, &error);
    }
}

void lac_api_schemas(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    answer(NULL, request, response);
}

void lac_api_schema(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    answer(request->param[0], request, response);
}
