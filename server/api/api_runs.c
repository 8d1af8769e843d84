/* Runs: their traces, and what they are to each other. The comparison is that of `lacuna analyze`
 * with several paths, of what the import of each rank kept for it. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "server/api/app.h"
#include "server/api/document_cache.h"
#include "server/api/run_ranks.h"
#include "server/base/buffer.h"
#include "server/http/query.h"
#include "server/http/request.h"
#include "server/json/analysis_json.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/people/access.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The documents of a run. */
enum { DETAIL_FULL = 0, DETAIL_BRIEF, DETAIL_COUNT_ };

static const char *const details[] = {"full", "brief", NULL};

/** Ranks of one comparison, and what is kept of all of them together. */
enum { MEMBERS_MAX = 256, MOVED_MAX = 1000 };
#define KEPT_BYTES_MAX ((uint64_t)1 << 30)

static void write_run(struct lac_json *json, const struct lac_run_row *row)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", row->id);
    lac_json_text(json, "name", row->name);
    lac_json_text(json, "project", row->project);
    lac_api_write_time(json, "created_at", row->created_unix_ms);
    lac_json_uint(json, "trace_count", row->trace_count);
    lac_json_uint(json, "ready_count", row->ready_count);
    lac_json_uint(json, "failed_count", row->failed_count);
    lac_json_uint(json, "event_count", row->event_count);
    lac_json_close(json, '}');
}

void lac_api_runs(void *app_context, const struct lac_request *request,
                  struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_run_list list = {0};
    struct lac_error error = {0};
    struct lac_json json;
    char *among = NULL;
    int64_t limit;

    if (!lac_api_int(request, response, "limit", 1, 1000, 100, &limit)) {
        return;
    }
    if (!lac_access_readable(app->people, app->store, &request->who, &among, response)) {
        return;
    }
    const struct lac_run_query query = {
        .project = lac_target_get(request->target, "project"),
        .after = lac_target_get(request->target, "after"),
        .limit = (uint32_t)limit,
        .among = among,
    };
    const enum lac_status status = lac_store_list_runs(app->store, &query, &list, &error);

    free(among);
    if (status != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    lac_json_init(&json, &response->body);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "runs", '[');
    for (uint32_t i = 0; i < list.count; i++) {
        write_run(&json, &list.rows[i]);
    }
    lac_json_close(&json, ']');
    lac_json_text(&json, "next", list.has_more ? list.next : NULL);
    lac_json_close(&json, '}');
    lac_run_list_done(&list);
}

/** @return false: the response says why */
static bool get_run(struct lac_app *app, const struct lac_request *request,
                    struct lac_response *response, struct lac_run_row *row)
{
    struct lac_error error = {0};

    if (!lac_store_id_is_valid(request->param[0])) {
        lac_response_error(response, 404, "not_found", "no such run");
        return false;
    }
    if (lac_store_get_run(app->store, request->param[0], row, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    return true;
}

void lac_api_run(void *app_context, const struct lac_request *request,
                 struct lac_response *response)
{
    struct lac_run_row row = {0};
    struct lac_json json;

    if (get_run(app_context, request, response, &row)) {
        lac_json_init(&json, &response->body);
        write_run(&json, &row);
        lac_run_row_done(&row);
    }
}

/* ---- traces that people put together ---- */

struct join_asked {
    char name[256];
    char lines[MEMBERS_MAX * LAC_ID_SIZE]; /**< the ids, one after another */
    const char *traces[MEMBERS_MAX];
    uint32_t count;
};

/** Split the lines of ids. @return false: too many, one is none, or one is there twice */
static bool split_ids(struct join_asked *asked)
{
    for (char *at = asked->lines; *at != '\0';) {
        char *end = at + strcspn(at, "\n");
        const bool is_last = *end == '\0';

        *end = '\0';
        for (uint32_t i = 0; i < asked->count; i++) {
            if (strcmp(asked->traces[i], at) == 0) {
                return false;
            }
        }
        if (asked->count == MEMBERS_MAX || !lac_store_id_is_valid(at)) {
            return false;
        }
        asked->traces[asked->count++] = at;
        at = is_last ? end : end + 1;
    }
    return true;
}

/** @return false: the response says why */
static bool read_join(const struct lac_request *request, struct join_asked *asked,
                      struct lac_response *response)
{
    static const struct lac_json_limits limits = {.size_bytes_max = LAC_API_LABELS_BYTES,
                                                  .depth_max = 3};
    struct json_object *object = NULL;
    struct lac_error error = {0};
    enum lac_status status =
        lac_json_read(request->body, request->body_size_bytes, &limits, &object, &error);

    if (status == LAC_OK) {
        status = lac_json_read_text(object, "name", asked->name, sizeof(asked->name), &error);
    }
    if (status == LAC_OK) {
        status = lac_json_read_lines(object, "traces", asked->lines, sizeof(asked->lines), &error);
    }
    lac_json_read_done(object);
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "%s", error.message);
        return false;
    }
    if (status != LAC_OK) {
        lac_response_error(response, 400, "bad_request",
                           "send a JSON object with name and traces: %s", error.message);
        return false;
    }
    if (asked->name[strcspn(asked->name, "\r\n")] != '\0' || asked->name[0] == '\0' ||
        !split_ids(asked) || asked->count < 2) {
        lac_response_error(response, 400, "bad_request",
                           "name must be one line; give 2 to %d traces, each once", MEMBERS_MAX);
        return false;
    }
    return true;
}

/** Whether all are traces of one project that who asks may change, ready or at an end. @return false:
 *  the response says why. Else the caller frees *ret_project */
static bool may_move(struct lac_app *app, const struct lac_request *request,
                     const char *const *traces, uint32_t count, bool with_failed,
                     struct lac_response *response, char **ret_project)
{
    char *project = NULL;
    struct lac_error error = {0};

    for (uint32_t i = 0; i < count; i++) {
        struct lac_trace_row row = {0};

        if (!lac_access_may_object(app->people, app->store, &request->who, LAC_OWNED_TRACE,
                                   traces[i], LAC_RIGHT_WRITE, response)) {
            free(project);
            return false;
        }
        if (lac_store_get_trace(app->store, traces[i], &row, &error) != LAC_OK) {
            lac_api_fail(response, &error);
            free(project);
            return false;
        }
        const bool is_at_end =
            row.state == LAC_TRACE_READY || (with_failed && row.state == LAC_TRACE_FAILED);
        const char *own = row.project != NULL ? row.project : "";

        if (!is_at_end) {
            lac_response_error(response, 409, "not_ready", "trace %s is not ready", row.id);
        } else if (project == NULL) {
            project = strdup(own);
            if (project == NULL) {
                lac_response_error(response, 503, "out_of_memory", "no memory for this request");
            }
        } else if (!with_failed && strcmp(project, own) != 0) {
            lac_response_error(response, 409, "conflict", "all traces must belong to one project");
        }
        lac_trace_row_done(&row);
        if (response->http_status >= 400) {
            free(project);
            return false;
        }
    }
    *ret_project = project;
    return true;
}

void lac_api_run_create(void *app_context, const struct lac_request *request,
                        struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct join_asked asked = {.count = 0};
    struct lac_run_row run = {0};
    struct lac_error error = {0};
    struct lac_json json;
    char id[LAC_ID_SIZE];
    char *project = NULL;

    if (!read_join(request, &asked, response) ||
        !may_move(app, request, asked.traces, asked.count, false, response, &project)) {
        return;
    }
    if (lac_store_make_run(app->store, asked.name, project, asked.traces, asked.count, id,
                           &error) != LAC_OK ||
        lac_store_get_run(app->store, id, &run, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        free(project);
        return;
    }
    lac_api_note(app, request, "join-run", "%s, %u traces, name \"%s\"", id, asked.count,
                 asked.name);
    response->http_status = 201;
    lac_response_header(response, "Location", "%s/api/v1/runs/%s", request->base_path, id);
    lac_json_init(&json, &response->body);
    write_run(&json, &run);
    for (uint32_t i = 0; i < asked.count; i++) {
        lac_api_trace_changed(app, asked.traces[i], false, NULL);
    }
    lac_run_row_done(&run);
    free(project);
}

void lac_api_run_dissolve(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_app *app = app_context;
    const struct lac_trace_query query = {.run = request->param[0], .limit = MOVED_MAX};
    struct lac_trace_list list = {0};
    struct lac_run_row row = {0};
    struct lac_error error = {0};
    const char **traces;
    char *project = NULL;

    if (!get_run(app, request, response, &row)) {
        return;
    }
    lac_run_row_done(&row);
    if (lac_store_list_traces(app->store, &query, &list, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return;
    }
    traces = (const char **)calloc((size_t)list.count + 1, sizeof(*traces));
    for (uint32_t i = 0; i < list.count && traces != NULL; i++) {
        traces[i] = list.rows[i].id;
    }
    if (traces == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this request");
    } else if (list.has_more) {
        lac_response_error(response, 413, "limit", "this run has more than %d traces", MOVED_MAX);
    } else if (may_move(app, request, traces, list.count, true, response, &project)) {
        if (lac_store_dissolve_run(app->store, request->param[0], &error) == LAC_OK) {
            lac_api_note(app, request, "dissolve-run", "%s, %u traces", request->param[0],
                         list.count);
            response->http_status = 204;
            for (uint32_t i = 0; i < list.count; i++) {
                lac_api_trace_changed(app, traces[i], false, NULL);
            }
        } else {
            lac_api_fail(response, &error);
        }
    }
    free(project);
    free((void *)traces);
    lac_trace_list_done(&list);
}

/* ---- the comparison ---- */

/** A rank on its way into the comparison. */
struct member {
    char trace[LAC_ID_SIZE];
    uint32_t generation;
    int32_t rank;
    uint32_t place;        /**< in order of creation */
    int64_t host_clock_ns; /**< what to add to its clock for the server's; 0 unknown */
    int64_t t0_ns;         /**< absolute time of its time 0; once read */
    int64_t duration_ns;
    struct lac_rank_table *table;
    char *document;
};

struct lac_run_ranks {
    struct lac_app *app;
    struct member *members;
    uint32_t count;
    uint64_t stamp; /**< of which traces in which generations */
};

static int by_rank(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    const int order = LAC_ORDER(x->rank, y->rank);
    return order != 0 ? order : LAC_ORDER(x->place, y->place);
}

static int by_place(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    return LAC_ORDER(x->place, y->place);
}

/** FNV-1a. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size_bytes; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/** Ranks in order when every trace knows its own, else as they came. */
static void sort_members(struct lac_run_ranks *comparison)
{
    bool is_ranked = true;

    for (uint32_t i = 0; i < comparison->count; i++) {
        is_ranked = is_ranked && comparison->members[i].rank >= 0;
    }
    if (comparison->count > 1) {
        qsort(comparison->members, comparison->count, sizeof(*comparison->members),
              is_ranked ? by_rank : by_place);
    }
    comparison->stamp = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < comparison->count; i++) {
        const struct member *member = &comparison->members[i];

        comparison->stamp = mix(comparison->stamp, member->trace, LAC_ID_LENGTH);
        comparison->stamp = mix(comparison->stamp, &member->generation, sizeof(member->generation));
    }
}

/** The ready traces of the run. @return false: the response says why */
static bool list_members(struct lac_run_ranks *comparison, const char *run,
                         struct lac_response *response)
{
    const struct lac_trace_query query = {.run = run, .limit = MEMBERS_MAX + 1};
    struct lac_trace_list list = {0};
    struct lac_error error = {0};
    bool is_waiting = false;

    if (lac_store_list_traces(comparison->app->store, &query, &list, &error) != LAC_OK) {
        lac_api_fail(response, &error);
        return false;
    }
    comparison->members = calloc((size_t)list.count + 1, sizeof(*comparison->members));
    for (uint32_t i = 0; i < list.count && comparison->members != NULL; i++) {
        const struct lac_trace_row *row = &list.rows[i];

        is_waiting =
            is_waiting || row->state == LAC_TRACE_RECEIVING || row->state == LAC_TRACE_IMPORTING;
        if (row->state == LAC_TRACE_READY) {
            struct member *member = &comparison->members[comparison->count++];

            memcpy(member->trace, row->id, sizeof(member->trace));
            member->generation = row->generation;
            member->rank = row->rank;
            member->host_clock_ns = row->has_clock ? row->clock_offset_ns : 0;
            member->place = list.count - i; /* the list has the newest first */
        }
    }
    if (comparison->members == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this run");
    } else if (list.count > MEMBERS_MAX) {
        lac_response_error(response, 413, "limit", "this run has more than %d traces", MEMBERS_MAX);
    } else if (is_waiting) {
        lac_response_error(response, 409, "not_ready",
                           "traces of this run are still being received or imported");
        lac_response_header(response, "Retry-After", "1");
    } else if (comparison->count == 0) {
        lac_response_error(response, 409, "import_failed",
                           "no trace of this run could be imported");
    }
    lac_trace_list_done(&list);
    if (response->http_status >= 400) {
        return false;
    }
    sort_members(comparison);
    return true;
}

static void comparison_done(struct lac_run_ranks *comparison)
{
    for (uint32_t i = 0; i < comparison->count; i++) {
        struct member *member = &comparison->members[i];

        lac_rank_table_destroy(member->table);
        free(member->document);
    }
    free(comparison->members);
}

/** The table that the import kept. @return false: it has to be made */
static bool take_kept_table(struct lac_trace_file *file, struct lac_rank_table **ret_table)
{
    struct lac_error ignored = {0};
    char *bytes = NULL;
    size_t size_bytes = 0;
    bool is_kept = lac_trace_file_document(file, LAC_DOCUMENT_RANK_TABLE, &bytes, &size_bytes,
                                           &ignored) == LAC_OK &&
                   lac_rank_table_unpack((const uint8_t *)bytes, size_bytes, ret_table) == LAC_OK;

    free(bytes);
    return is_kept;
}

/** Load and diagnose a trace that an older program imported, and keep what is compared. */
static enum lac_status make_table(struct lac_trace_file *file, struct lac_rank_table **ret_table,
                                  struct lac_error *reterr)
{
    const struct lac_model *model = NULL;
    struct lac_analysis *analysis = NULL;
    enum lac_status status = lac_trace_file_whole_model(file, &model, reterr);

    if (status == LAC_OK) {
        status = lac_diagnose(model, NULL, &analysis, reterr);
    }
    if (status == LAC_OK) {
        status = lac_rank_table_create(model, analysis, ret_table);
    }
    lac_analysis_destroy(analysis);
    lac_trace_file_release_model(file, model);
    return status;
}

/** What is read of a rank. */
static enum lac_status take_member(struct lac_store *store, struct member *member,
                                   bool with_document, struct lac_error *reterr)
{
    struct lac_trace_file *file = NULL;
    size_t length = 0;
    enum lac_status status = lac_store_open_trace(store, member->trace, &file, reterr);

    if (status != LAC_OK) {
        return status;
    }
    member->t0_ns = lac_trace_file_head(file)->info.t0_ns;
    member->duration_ns = lac_trace_file_head(file)->info.duration_ns;
    if (with_document) {
        status = lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &member->document, &length,
                                         reterr);
    }
    if (status == LAC_OK && !take_kept_table(file, &member->table)) {
        status = make_table(file, &member->table, reterr);
    }
    lac_store_release_trace(store, file);
    return status;
}

static enum lac_status take_members(struct lac_run_ranks *comparison, bool with_documents,
                                    struct lac_error *reterr)
{
    uint64_t kept_bytes = 0;
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < comparison->count && status == LAC_OK; i++) {
        status =
            take_member(comparison->app->store, &comparison->members[i], with_documents, reterr);
        if (status == LAC_OK) {
            kept_bytes += lac_rank_table_bytes(comparison->members[i].table);
            if (kept_bytes > KEPT_BYTES_MAX) {
                status = lac_fail(reterr, LAC_ERR_LIMIT, 0,
                                  "the ranks of this run are too large to compare: %u of %u take "
                                  "more than %u MiB",
                                  (unsigned)(i + 1), (unsigned)comparison->count,
                                  (unsigned)(KEPT_BYTES_MAX >> 20));
            }
        }
    }
    return status;
}

static enum lac_status join_members(const struct lac_run_ranks *comparison,
                                    struct lac_run **ret_run)
{
    const struct lac_rank_table **tables = calloc((size_t)comparison->count + 1, sizeof(*tables));
    enum lac_status status = LAC_ERR_NOMEM;

    if (tables != NULL) {
        for (uint32_t i = 0; i < comparison->count; i++) {
            tables[i] = comparison->members[i].table;
        }
        status = lac_ranks_join(tables, comparison->count, ret_run);
    }
    free(tables);
    return status;
}

/** Both documents of a run. */
static enum lac_status write_documents(const struct lac_run_ranks *comparison,
                                       char *text[DETAIL_COUNT_])
{
    struct lac_run_member *members = calloc((size_t)comparison->count + 1, sizeof(*members));
    struct lac_run *run = NULL;
    enum lac_status status = members != NULL ? LAC_OK : LAC_ERR_NOMEM;

    for (uint32_t i = 0; i < comparison->count && status == LAC_OK; i++) {
        const struct member *member = &comparison->members[i];

        members[i] =
            (struct lac_run_member){.trace_id = member->trace, .document = member->document};
    }
    if (status == LAC_OK) {
        status = join_members(comparison, &run);
    }
    for (int detail = 0; detail < DETAIL_COUNT_ && status == LAC_OK; detail++) {
        const struct lac_run_json_options options = {.is_brief = detail == DETAIL_BRIEF};

        status = lac_run_json(run, members, &options, &text[detail], NULL);
    }
    lac_run_destroy(run);
    free(members);
    return status;
}

void lac_run_ranks_fail(struct lac_response *response, enum lac_status status,
                        const struct lac_error *error)
{
    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory to compare these ranks");
    } else if (status == LAC_ERR_MISUSE || status == LAC_ERR_NOT_FOUND) {
        /* a trace went away between the list and its turn: the next request sees it gone */
        lac_response_error(response, 409, "not_ready", "the traces of this run are changing");
        lac_response_header(response, "Retry-After", "1");
    } else {
        lac_api_fail(response, error);
    }
}

/** Under which the document is kept. */
static void key_of(const char *run, int detail, char key[LAC_DOCUMENT_KEY_SIZE])
{
    (void)snprintf(key, LAC_DOCUMENT_KEY_SIZE, "run %s %s", run, details[detail]);
}

/** Compare the ranks and answer with the document of `detail`; keep both. */
static void answer(struct lac_run_ranks *comparison, const char *run, int detail,
                   struct lac_response *response)
{
    char *text[DETAIL_COUNT_] = {NULL};
    char key[LAC_DOCUMENT_KEY_SIZE];
    char stamp[LAC_DOCUMENT_STAMP_SIZE];
    struct lac_error error = {0};
    enum lac_status status = take_members(comparison, true, &error);

    if (status == LAC_OK) {
        status = write_documents(comparison, text);
    }
    if (status == LAC_OK) {
        lac_buffer_puts(&response->body, text[detail]);
    } else {
        lac_run_ranks_fail(response, status, &error);
    }
    (void)snprintf(stamp, sizeof(stamp), "%016" PRIx64, comparison->stamp);
    for (int i = 0; i < DETAIL_COUNT_; i++) {
        if (status == LAC_OK) {
            key_of(run, i, key);
            lac_document_cache_put(comparison->app->documents, key, stamp, text[i],
                                   strlen(text[i]));
        }
        free(text[i]);
    }
}

void lac_api_run_analysis(void *app_context, const struct lac_request *request,
                          struct lac_response *response)
{
    struct lac_app *app = app_context;
    struct lac_run_ranks comparison = {.app = app};
    struct lac_run_row row = {0};
    const int detail = lac_api_choice(request, response, "detail", details, DETAIL_FULL);
    char key[LAC_DOCUMENT_KEY_SIZE];
    char stamp[LAC_DOCUMENT_STAMP_SIZE];

    if (detail < 0 || !get_run(app, request, response, &row)) {
        return;
    }
    if (list_members(&comparison, row.id, response)) {
        key_of(row.id, detail, key);
        (void)snprintf(stamp, sizeof(stamp), "%016" PRIx64, comparison.stamp);
        lac_response_etag(response, "%s %s %s", LAC_VERSION, key, stamp);
        response->cache = "private, no-cache";
        if (!lac_response_is_unchanged(request, response) &&
            !lac_document_cache_get(app->documents, key, stamp, &response->body)) {
            lac_document_cache_begin_work(app->documents);
            /* another request may have done it meanwhile */
            if (!lac_document_cache_get(app->documents, key, stamp, &response->body)) {
                answer(&comparison, row.id, detail, response);
            }
            lac_document_cache_end_work(app->documents);
        }
    }
    comparison_done(&comparison);
    lac_run_row_done(&row);
}

/* ---- for what compares runs ---- */

struct lac_run_ranks *lac_run_ranks_open(struct lac_app *app, const char *id,
                                         struct lac_response *response)
{
    struct lac_run_ranks *ranks = calloc(1, sizeof(*ranks));

    if (ranks == NULL) {
        lac_response_error(response, 503, "out_of_memory", "no memory for this run");
        return NULL;
    }
    ranks->app = app;
    if (!list_members(ranks, id, response)) {
        lac_run_ranks_close(ranks);
        return NULL;
    }
    return ranks;
}

void lac_run_ranks_close(struct lac_run_ranks *ranks)
{
    if (ranks != NULL) {
        comparison_done(ranks);
        free(ranks);
    }
}

uint64_t lac_run_ranks_stamp(const struct lac_run_ranks *ranks)
{
    return ranks->stamp;
}

const char *lac_run_ranks_lowest(const struct lac_run_ranks *ranks)
{
    const struct member *lowest = &ranks->members[0];

    for (uint32_t i = 1; i < ranks->count; i++) {
        const struct member *member = &ranks->members[i];

        if (member->rank >= 0 && (lowest->rank < 0 || member->rank < lowest->rank)) {
            lowest = member; /* members without a rank stand as they came */
        }
    }
    return lowest->trace;
}

bool lac_run_ranks_join(struct lac_run_ranks *ranks, struct lac_response *response,
                        struct lac_run **ret_run)
{
    struct lac_error error = {0};
    enum lac_status status = LAC_OK;

    *ret_run = NULL;
    if (ranks->count > 1) {
        status = take_members(ranks, true, &error);
        if (status == LAC_OK) {
            status = join_members(ranks, ret_run);
        }
    }
    if (status != LAC_OK) {
        lac_run_ranks_fail(response, status, &error);
    }
    return status == LAC_OK;
}

/* ---- for a picture of them ---- */

struct lac_run_ranks *lac_run_ranks_of_path(struct lac_app *app, const struct lac_request *request,
                                            struct lac_response *response)
{
    struct lac_run_row row = {0};
    struct lac_run_ranks *ranks = NULL;

    if (get_run(app, request, response, &row)) {
        ranks = lac_run_ranks_open(app, row.id, response);
        lac_run_row_done(&row);
    }
    return ranks;
}

uint32_t lac_run_ranks_count(const struct lac_run_ranks *ranks)
{
    return ranks->count;
}

const char *lac_run_ranks_trace(const struct lac_run_ranks *ranks, uint32_t index)
{
    return ranks->members[index].trace;
}

enum lac_status lac_run_ranks_align(struct lac_run_ranks *ranks,
                                    struct lac_ranks_alignment *ret_alignment,
                                    struct lac_error *reterr)
{
    const struct lac_rank_table **tables = calloc((size_t)ranks->count + 1, sizeof(*tables));
    enum lac_status status = tables != NULL ? take_members(ranks, false, reterr) : LAC_ERR_NOMEM;

    if (status == LAC_OK) {
        for (uint32_t i = 0; i < ranks->count; i++) {
            tables[i] = ranks->members[i].table;
        }
        status = lac_ranks_align(tables, ranks->count, ret_alignment);
    }
    free(tables);
    return status;
}

/** Clocks of hosts agree within this, or one of them counts from something else. */
#define HOST_CLOCKS_APART_MAX_NS (INT64_C(3600) * 1000 * 1000 * 1000)

/** How far a rank's time 0 is behind that of another by what both recorded.
 *  @return false: that is not known */
static bool recorded_offset(const struct member *of, const struct member *to, int64_t *ret_ns)
{
    int64_t here_ns;
    int64_t there_ns;
    int64_t apart_ns;

    if (of->t0_ns == 0 || to->t0_ns == 0 ||
        __builtin_add_overflow(of->t0_ns, of->host_clock_ns, &here_ns) ||
        __builtin_add_overflow(to->t0_ns, to->host_clock_ns, &there_ns) ||
        __builtin_sub_overflow(here_ns, there_ns, &apart_ns) ||
        apart_ns > HOST_CLOCKS_APART_MAX_NS || apart_ns < -HOST_CLOCKS_APART_MAX_NS) {
        return false;
    }
    *ret_ns = apart_ns;
    return true;
}

static void set_clocks(const struct lac_run_ranks *ranks,
                       const struct lac_ranks_alignment *alignment, struct lac_rank_clock *clocks)
{
    uint32_t home = 0;
    int64_t earliest_ns = INT64_MAX;

    while (home + 1 < ranks->count && !alignment->is_aligned[home]) {
        home++;
    }
    home = alignment->is_aligned[home] ? home : 0;
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct member *member = &ranks->members[i];
        struct lac_rank_clock *clock = &clocks[i];

        clock->rank = member->rank >= 0 ? member->rank : (int32_t)i;
        clock->duration_ns = member->duration_ns;
        clock->has_device =
            lac_rank_table_device(member->table, &clock->device, &clock->first_ns, &clock->span_ns);
        clock->how = LAC_CLOCK_NONE;
        if (alignment->is_aligned[i]) {
            clock->how = LAC_CLOCK_COLLECTIVES;
            clock->offset_ns = alignment->offset_ns[i];
        } else if (recorded_offset(member, &ranks->members[home], &clock->offset_ns)) {
            clock->how = LAC_CLOCK_RECORDED;
            clock->offset_ns += alignment->is_aligned[home] ? alignment->offset_ns[home] : 0;
        }
    }
    for (uint32_t i = 0; i < ranks->count; i++) {
        if (clocks[i].how != LAC_CLOCK_NONE && clocks[i].offset_ns < earliest_ns) {
            earliest_ns = clocks[i].offset_ns;
        }
    }
    for (uint32_t i = 0; i < ranks->count; i++) {
        clocks[i].offset_ns -= clocks[i].how != LAC_CLOCK_NONE ? earliest_ns : 0;
    }
}

bool lac_run_ranks_clocks(struct lac_run_ranks *ranks, const char *run,
                          struct lac_response *response, struct lac_rank_clock **ret_clocks)
{
    struct lac_document_cache *documents = ranks->app->documents;
    const size_t size_bytes = (size_t)ranks->count * sizeof(struct lac_rank_clock);
    struct lac_buffer kept = {0};
    struct lac_ranks_alignment alignment = {0};
    struct lac_rank_clock *clocks = calloc((size_t)ranks->count + 1, sizeof(*clocks));
    struct lac_error error = {0};
    char key[LAC_DOCUMENT_KEY_SIZE];
    char stamp[LAC_DOCUMENT_STAMP_SIZE];
    enum lac_status status = clocks != NULL ? LAC_OK : LAC_ERR_NOMEM;

    (void)snprintf(key, sizeof(key), "run %s clocks", run);
    (void)snprintf(stamp, sizeof(stamp), "%016" PRIx64, ranks->stamp);
    if (status == LAC_OK && !lac_document_cache_get(documents, key, stamp, &kept)) {
        lac_document_cache_begin_work(documents);
        status = lac_run_ranks_align(ranks, &alignment, &error);
        if (status == LAC_OK) {
            set_clocks(ranks, &alignment, clocks);
            lac_document_cache_put(documents, key, stamp, (const char *)clocks, size_bytes);
        }
        lac_document_cache_end_work(documents);
    } else if (status == LAC_OK) {
        memcpy(clocks, kept.bytes, kept.size_bytes < size_bytes ? kept.size_bytes : size_bytes);
    }
    lac_ranks_alignment_done(&alignment);
    lac_buffer_done(&kept);
    if (status != LAC_OK) {
        free(clocks);
        lac_run_ranks_fail(response, status, &error);
        return false;
    }
    *ret_clocks = clocks;
    return true;
}
