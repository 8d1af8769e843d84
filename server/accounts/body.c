#include "server/accounts/body.h"

#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/json/json_read.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool lac_accounts_read(const struct lac_request *request, struct json_object **ret_object,
                       struct lac_response *response)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_ACCOUNTS_BODY_BYTES,
                                                  .depth_max = 4};
    struct lac_error error = {0};
    const enum lac_status status =
        lac_json_read(request->body, request->body_size_bytes, &limits, ret_object, &error);

    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
    } else if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "send a JSON object: %s", error.message);
    }
    return status == LAC_OK;
}

bool lac_accounts_text(const struct json_object *object, const char *key, char *out,
                       size_t capacity_bytes, struct lac_response *response)
{
    struct lac_error error = {0};

    out[0] = '\0';
    if (!lac_json_read_has(object, key) || lac_json_read_is_null(object, key)) {
        return true;
    }
    if (lac_json_read_text(object, key, out, capacity_bytes, &error) != LAC_OK) {
        lac_response_error(response, 400, "bad_request", "%s", error.message);
        return false;
    }
    return true;
}

bool lac_accounts_time(const char *key, const char *text, int64_t *ret_unix_ms,
                       struct lac_response *response)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d"};
    struct tm parts;

    *ret_unix_ms = 0;
    if (*text == '\0') {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        const char *rest;

        memset(&parts, 0, sizeof(parts));
        rest = strptime(text, forms[i], &parts);
        if (rest != NULL && *rest == '\0' && parts.tm_year < 8000) {
            *ret_unix_ms = (int64_t)timegm(&parts) * 1000;
            return true;
        }
    }
    lac_response_error(response, 400, "bad_request",
                       "\"%s\" is a time in UTC, as in 2026-12-31T00:00:00Z or 2026-12-31", key);
    return false;
}

void lac_accounts_fail(struct lac_response *response, const struct lac_error *error)
{
    if (error->status == LAC_ERR_MISUSE) {
        lac_response_error(response, 400, "bad_request", "%s", error->message);
    } else {
        lac_api_fail(response, error);
    }
}
