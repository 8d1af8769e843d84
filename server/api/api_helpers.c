#include "analysis/diagnose/names/names.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/api/app.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "server/people/access.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lac_api_fail(struct lac_response *response, const struct lac_error *error)
{
    if (error->status == LAC_ERR_CORRUPT) {
        /* our own file is damaged: not the client's fault */
        lac_response_error(response, 500, lac_status_name(error->status), "%s", error->message);
    } else {
        lac_response_fail(response, error);
    }
}

void lac_api_note(struct lac_app *app, const struct lac_request *request, const char *action,
                  const char *fmt, ...)
{
    char object[512];
    struct lac_error error;
    va_list values;

    va_start(values, fmt);
    (void)vsnprintf(object, sizeof(object), fmt, values);
    va_end(values);
    (void)!lac_store_audit(app->store, request->who.name, action, object, &error);
}

bool lac_api_are_ids(const struct lac_request *request, const char *const *nouns, unsigned count,
                     struct lac_response *response)
{
    for (unsigned i = 0; i < count; i++) {
        if (!lac_store_id_is_valid(request->param[i])) {
            lac_response_error(response, 404, "not_found", "no such %s", nouns[i]);
            return false;
        }
    }
    return true;
}

bool lac_api_may_write(struct lac_app *app, const struct lac_request *request,
                       enum lac_owned_kind kind)
{
    struct lac_response unsent;
    bool may;

    lac_response_init(&unsent);
    may = lac_access_may_object(app->people, app->store, &request->who, kind, request->param[0],
                                LAC_RIGHT_WRITE, &unsent);
    lac_response_done(&unsent);
    return may;
}

static void explain_not_ready(struct lac_app *app, const char *id, struct lac_response *response)
{
    struct lac_trace_row row = {0};
    struct lac_error error = {0};

    if (lac_store_get_trace(app->store, id, &row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    if (row.state == LAC_TRACE_FAILED) {
        lac_response_error(response, 409, "import_failed", "the import of this trace failed: %s",
                           row.error_message != NULL ? row.error_message : "no reason is known");
    } else {
        lac_response_error(response, 409, "not_ready", "this trace is still %s",
                           row.state == LAC_TRACE_RECEIVING ? "being received" : "being imported");
        lac_response_header(response, "Retry-After", "1");
    }
    lac_trace_row_done(&row);
}

struct lac_trace_file *lac_api_open_trace(struct lac_app *app, const struct lac_request *request,
                                          struct lac_response *response)
{
    const char *id = request->param[0];
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    enum lac_status status;

    if (!lac_store_id_is_valid(id)) {
        lac_response_error(response, 404, "not_found", "no such trace");
        return NULL;
    }
    status = lac_store_open_trace(app->store, id, &file, &error);
    if (status == LAC_OK) {
        return file;
    }
    if (status == LAC_ERR_MISUSE) {
        explain_not_ready(app, id, response);
    } else if (status == LAC_ERR_LIMIT) {
        /* our own file is newer: not the client's fault */
        lac_response_error(response, 500, lac_status_name(status), "%s", error.message);
    } else {
        lac_api_fail(response, &error);
    }
    return NULL;
}

int64_t lac_api_end_ns(const struct lac_model *head, int64_t asked_ns)
{
    return asked_ns == LAC_TIME_MAX_NS ? head->info.duration_ns : asked_ns;
}

void lac_api_answer_trace(struct lac_app *app, const struct lac_request *request,
                          struct lac_response *response, lac_api_answer_fn *answer)
{
    struct lac_trace_file *file = lac_api_open_trace(app, request, response);

    if (file != NULL) {
        answer(file, request, response);
        lac_store_release_trace(app->store, file);
    }
}

bool lac_api_is_unchanged(const struct lac_request *request, const struct lac_trace_file *file,
                          struct lac_response *response)
{
    char text[LAC_TARGET_BYTES_MAX + 128];
    size_t used = 0;

    for (unsigned i = 0; i < request->target->pair_count; i++) {
        const int length = snprintf(text + used, sizeof(text) - used, "&%s=%s",
                                    request->target->pair[i].key, request->target->pair[i].value);

        used += (size_t)length;
        if (used >= sizeof(text)) {
            return false;
        }
    }
    text[used] = '\0';
    lac_response_etag(response, "%s %" PRIu32 " %s %s", LAC_VERSION,
                      lac_trace_file_generation(file), request->target->path, text);
    response->cache = "private, no-cache";
    return lac_response_is_unchanged(request, response);
}

int lac_api_choice(const struct lac_request *request, struct lac_response *response,
                   const char *key, const char *const *words, int fallback)
{
    const char *text = lac_target_get(request->target, key);
    char list[200] = "";

    if (text == NULL) {
        return fallback;
    }
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            return i;
        }
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    lac_response_error(response, 400, "bad_request", "%s must be one of: %s", key, list);
    return -1;
}

bool lac_api_int(const struct lac_request *request, struct lac_response *response, const char *key,
                 int64_t low, int64_t high, int64_t fallback, int64_t *ret_value)
{
    struct lac_error error = {0};

    if (lac_target_int(request->target, key, low, high, fallback, ret_value, &error) == LAC_OK) {
        return true;
    }
    lac_response_error(response, 400, "bad_request", "%s", error.message);
    return false;
}

bool lac_api_path_number(const struct lac_request *request, struct lac_response *response,
                         unsigned index, uint64_t high, uint64_t *ret_value)
{
    if (lac_parse_uint(request->param[index], ret_value) && *ret_value <= high) {
        return true;
    }
    lac_response_error(response, 404, "not_found", "no such address: '%.20s' is not a number here",
                       request->param[index]);
    return false;
}

bool lac_api_tracks_asked(const struct lac_request *request, struct lac_response *response,
                          uint32_t track_count, uint32_t **ret_tracks, uint32_t *ret_count)
{
    const char *text = lac_target_get(request->target, "tracks");
    struct lac_id_range *ranges;
    uint32_t *tracks;
    struct lac_error error = {0};
    unsigned range_count = 0;
    uint32_t count = 0;
    enum lac_status status = LAC_ERR_NOMEM;

    if (text == NULL) {
        lac_response_error(response, 400, "bad_request", "tracks is missing: tracks=1,4-9");
        return false;
    }
    ranges = malloc(LAC_QUERY_RANGES_MAX * sizeof(*ranges));
    tracks = malloc(LAC_TILE_TRACKS_MAX * sizeof(*tracks));
    if (ranges == NULL || tracks == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
    } else {
        status = lac_parse_ranges(text, LAC_TILE_TRACKS_MAX, ranges, LAC_QUERY_RANGES_MAX,
                                  &range_count, &error);
        if (status != LAC_OK) {
            lac_response_error(response, status == LAC_ERR_LIMIT ? 413 : 400,
                               status == LAC_ERR_LIMIT ? "limit" : "bad_request", "tracks: %s",
                               error.message);
        }
    }
    for (unsigned i = 0; i < range_count && status == LAC_OK; i++) {
        for (uint64_t t = ranges[i].first; t <= ranges[i].last && t < track_count; t++) {
            tracks[count++] = (uint32_t)t;
        }
    }
    free(ranges);
    if (status != LAC_OK) {
        free(tracks);
        return false;
    }
    *ret_tracks = tracks;
    *ret_count = count;
    return true;
}

void lac_api_write_id(struct lac_json *json, const char *key, uint32_t id)
{
    if (id == LAC_NONE) {
        lac_json_null(json, key);
    } else {
        lac_json_uint(json, key, id);
    }
}

const char *lac_api_kind_name(uint8_t kind)
{
    return lac_slice_kind_name(kind < LAC_SLICE_KIND_COUNT_ ? (enum lac_slice_kind)kind
                                                            : LAC_SLICE_OTHER);
}

void lac_api_write_name(struct lac_json *json, const struct lac_model *head, uint32_t name,
                        uint8_t kind)
{
    const char *text = lac_model_str(head, name);
    char short_name[160];

    if (kind == LAC_SLICE_KERNEL) {
        (void)lac_kernel_short_name(text, lac_strings_length(&head->strings, name), short_name,
                                    sizeof(short_name));
    } else {
        (void)snprintf(short_name, sizeof(short_name), "%s", text);
    }
    lac_json_text(json, "kind", lac_api_kind_name(kind));
    lac_json_text(json, "name", text);
    lac_json_uint(json, "name_id", name);
    lac_json_text(json, "short", short_name);
}
