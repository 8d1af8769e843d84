/* `?limit=` and `?after=` on lists that are answered whole: they are short, and made in one piece. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/api/app.h"
#include "server/forms/forms.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/list_page.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LIMIT_MAX = 10000 };

/** The member with the rows, by route; openapi.json has the parameters. */
static const struct {
    const char *pattern, *list;
} lists[] = {
    {"/api/v1/schemas", "schemas"},
    {"/api/v1/findings", "findings"},
    {"/api/v1/tokens", "tokens"},
    {"/api/v1/quotas", "quotas"},
    {"/api/v1/users", "users"},
    {"/api/v1/projects", "projects"},
    {"/api/v1/projects/{name}/members", "members"},
    {"/api/v1/projects/{name}/webhooks", "webhooks"},
    {"/api/v1/hangs", "hangs"},
    {"/api/v1/traces/{id}/bookmarks", "bookmarks"},
    {"/api/v1/reports/{id}/versions", "versions"},
    {"/api/v1/reports/{id}/comments", "comments"},
    {"/api/v1/reports/{id}/findings", "findings"},
    {"/api/v1/reports/{id}/share", "shares"},
    {"/api/v1/traces/{id}/share", "shares"},
    {"/api/v1/shares", "shares"},
};

void lac_forms_page(const struct lac_route *route, const struct lac_request *request,
                    struct lac_response *response)
{
    int64_t limit = LIMIT_MAX;
    int64_t after = 0;
    const char *list = NULL;

    if (lac_target_get(request->target, "limit") == NULL &&
        lac_target_get(request->target, "after") == NULL) {
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(lists); i++) {
        if (strcmp(lists[i].pattern, route->pattern) == 0) {
            list = lists[i].list;
        }
    }
    if (list == NULL || !lac_api_int(request, response, "limit", 1, LIMIT_MAX, limit, &limit) ||
        !lac_api_int(request, response, "after", 0, UINT32_MAX, 0, &after)) {
        return;
    }
    if (lac_list_page(&response->body, list, (uint64_t)after, (uint64_t)limit) != LAC_OK) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
    }
}
