#ifndef LAC_SERVER_API_APP_H
#define LAC_SERVER_API_APP_H

/*
 * What the handlers share, and what they share among each other. One struct lac_app lives as long
 * as the server; handlers get it as `app`.
 */

#include "analysis/flame/flame.h"
#include "server/export/step_spans.h"
#include "server/http/key.h"
#include "server/http/request.h"
#include "server/http/server.h"
#include "server/ingest/ingest.h"
#include "server/ingest/resumable.h"
#include "server/json/json_out.h"
#include "server/store/people_rows.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

/** Largest body of a query: its text, escaped. */
enum { LAC_SQL_BODY_BYTES_MAX = 400000 };

struct lac_document_cache;
struct lac_hangs;
struct lac_people;
struct lac_webhooks;

/** What happened in a project, for who is told of it (server/webhooks). */
struct lac_news {
    const char *event;      /**< "trace.ready", ... */
    const char *project;    /**< "" none */
    const char *object;     /**< id of what it is about, and what tells two times apart */
    const char *path;       /**< of the page */
    const char *text;       /**< one line */
    int64_t object_unix_ms; /**< when the object came; 0: now */
};

struct lac_oidc;
struct lac_main_node;

struct lac_app {
    struct lac_store *store;
    struct lac_ingest *ingest;
    struct lac_resumable *uploads;
    struct lac_http_server *http;
    struct lac_hangs *hangs;              /**< jobs that hang now */
    struct lac_document_cache *documents; /**< of runs and of comparisons */
    const struct lac_key *key;
    struct lac_people *people;
    struct lac_oidc *oidc; /**< NULL: people do not sign in at a provider */
    struct lac_webhooks *webhooks;
    /** Of `webhooks`: called from any thread, does not wait for the network; NULL none. */
    void (*tell_news)(struct lac_webhooks *webhooks, const struct lac_news *news);
    bool stands_by; /**< another server holds the catalog: no ingest, uploads and webhooks here */
    struct lac_main_node *main_node; /**< where that is; of one that stands by */
    bool is_secure;                  /**< clients come by TLS: cookies say Secure */
    const char *base_path;           /**< "" or "/x/y" */
};

/** The route table of the API (routes.c). */
extern const struct lac_route lac_api_routes[];
extern const unsigned lac_api_route_count;

/** For lac_ingest_options.changed: tells every open event stream. `context` is the app. */
void lac_api_trace_changed(void *context, const char *id, bool deleted,
                           const struct lac_ingest_progress *progress);

/** A line of the audit: who asks did this to that object (cut at 511 bytes). What was done stays done
 *  where the line cannot be written. */
void lac_api_note(struct lac_app *app, const struct lac_request *request, const char *action,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/** Append a trace as JSON (README.md, "Trace"). `progress` may be NULL. */
struct lac_json;
void lac_api_write_trace(const struct lac_store *store, struct lac_json *json, const char *key,
                         const struct lac_trace_row *row,
                         const struct lac_ingest_progress *progress);

/** Append a time of day as ISO 8601 text. */
void lac_api_write_time(struct lac_json *json, const char *key, int64_t unix_ms);

/** The same, null for 0: it never was. */
void lac_api_write_time_or_null(struct lac_json *json, const char *key, int64_t unix_ms);

/** Whether the first parameters of the path look like ids. @param nouns of what each is: "report"
 *  @return false: the response is a 404 "no such report" */
bool lac_api_are_ids(const struct lac_request *request, const char *const *nouns, unsigned count,
                     struct lac_response *response);

/** Whether who asks may write to the object that the path begins with, which they may at least
 *  comment on. */
bool lac_api_may_write(struct lac_app *app, const struct lac_request *request,
                       enum lac_owned_kind kind);

/** Answer with a failure of the store: as lac_response_fail(), but what is damaged is a file of
 * ours, not the request: 500 `corrupt`. */
void lac_api_fail(struct lac_response *response, const struct lac_error *error);

/**
 * Open the trace that the path names. On failure the response says why: 404, 409 `not_ready` while
 * it is received or imported, 409 `import_failed`.
 *
 * @return NULL on failure; else give it back with lac_store_release_trace()
 */
struct lac_trace_file *lac_api_open_trace(struct lac_app *app, const struct lac_request *request,
                                          struct lac_response *response);

/** Until when something was asked for, as a reply says it: where no end was given, to that of the trace. */
int64_t lac_api_end_ns(const struct lac_model *head, int64_t asked_ns);

/** Answers a request about an open trace. */
typedef void lac_api_answer_fn(struct lac_trace_file *file, const struct lac_request *request,
                               struct lac_response *response);

/** A whole handler: open the trace that the path names, answer, give it back. */
void lac_api_answer_trace(struct lac_app *app, const struct lac_request *request,
                          struct lac_response *response, lac_api_answer_fn *answer);

/**
 * Give the reply an ETag of trace, generation, path and parameters: what a ready trace says never
 * changes. @return true when the client has it: the response is a finished 304.
 */
bool lac_api_is_unchanged(const struct lac_request *request, const struct lac_trace_file *file,
                          struct lac_response *response);

/** Parameter `key` as one of `words` (NULL-terminated). @return index, or -1: the
 *  response says why */
int lac_api_choice(const struct lac_request *request, struct lac_response *response,
                   const char *key, const char *const *words, int fallback);

/** Integer parameter; @return false: the response says why. */
bool lac_api_int(const struct lac_request *request, struct lac_response *response, const char *key,
                 int64_t low, int64_t high, int64_t fallback, int64_t *ret_value);

/** Path parameter `index` as a number up to `high`. @return false: the response is a 404 */
bool lac_api_path_number(const struct lac_request *request, struct lac_response *response,
                         unsigned index, uint64_t high, uint64_t *ret_value);

/** Parameter `tracks`, as in "1,4-9": the indexes that exist, ascending; at most
 *  LAC_TILE_TRACKS_MAX. The caller frees. @return false: the response says why */
bool lac_api_tracks_asked(const struct lac_request *request, struct lac_response *response,
                          uint32_t track_count, uint32_t **ret_tracks, uint32_t *ret_count);

/** What a request for a flame graph asks for. */
struct lac_api_flame {
    struct lac_flame_options options; /**< points to what follows */
    struct lac_step_spans steps;
    uint8_t *is_chosen;
};

/**
 * Parameter steps: "measured", or numbers such as "2,5-9". Not given, or no step is measured: none.
 *
 * @param is_host   between the host's marks, not on the device
 * @param ret_steps joined; the caller gives it to lac_step_spans_done(), also after a failure
 * @return false: the response says why
 */
bool lac_api_steps_asked(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response, bool is_host,
                         struct lac_step_spans *ret_steps);

/**
 * Parameters metric, by, order, t0, t1, steps and tracks of a flame graph, its size as usual.
 *
 * @param ret_asked the caller gives it to lac_api_flame_done(), also after a failure
 * @return false: the response says why
 */
bool lac_api_flame_asked(struct lac_trace_file *file, const struct lac_request *request,
                         struct lac_response *response, struct lac_api_flame *ret_asked);
void lac_api_flame_done(struct lac_api_flame *asked);

/** Make it. @return as lac_trace_flame() */
LAC_MUST_USE enum lac_status lac_api_flame_make(struct lac_trace_file *file,
                                                const struct lac_api_flame *asked,
                                                struct lac_flame **ret_flame,
                                                struct lac_error *reterr);

/** A member that is an index, null for LAC_NONE. */
void lac_api_write_id(struct lac_json *json, const char *key, uint32_t id);

/** Of what a file says is an enum lac_slice_kind. */
const char *lac_api_kind_name(uint8_t kind);

/** Members kind, name, name_id and short of a slice. */
void lac_api_write_name(struct lac_json *json, const struct lac_model *head, uint32_t name,
                        uint8_t kind);

/* handlers, by file */
void lac_api_healthz(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_metrics(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_session(void *app, const struct lac_request *request, struct lac_response *response);
/* server/forms */
void lac_api_schemas(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_schema(void *app, const struct lac_request *request, struct lac_response *response);

/** openapi.json as it is in the program. */
const char *lac_openapi_text(size_t *ret_size_bytes);
void lac_api_openapi(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_events(void *app, const struct lac_request *request, struct lac_response *response);

extern const struct lac_body_handler lac_api_upload;

/* api_uploads.c: tus 1.0.0 */
extern const struct lac_body_handler lac_api_upload_create;
extern const struct lac_body_handler lac_api_upload_append;
void lac_api_upload_options(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_upload_status(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_upload_delete(void *app, const struct lac_request *request,
                           struct lac_response *response);

/* api_vocabulary.c */
void lac_api_findings(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_finding(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_vocabulary(void *app, const struct lac_request *request,
                        struct lac_response *response);

void lac_api_clock(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_list(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_get(void *app, const struct lac_request *request, struct lac_response *response);
/** Bytes of the body of a PATCH of a trace. */
enum { LAC_API_LABELS_BYTES = 16384 };
void lac_api_label(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_retry(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_delete(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_analysis(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_tracks(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_steps(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_tiles(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_counters(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_names(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_slice(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_slices(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_search(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_kernels(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_gaps(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_flame(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_sql(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_sql_reference(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_launched(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_table(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_area(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_runs(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_run(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_run_create(void *app, const struct lac_request *request,
                        struct lac_response *response);
void lac_api_run_dissolve(void *app, const struct lac_request *request,
                          struct lac_response *response);
void lac_api_run_analysis(void *app, const struct lac_request *request,
                          struct lac_response *response);

/* run_timeline.c */
void lac_api_run_strips(void *app, const struct lac_request *request,
                        struct lac_response *response);
void lac_api_strip(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_run_collectives(void *app, const struct lac_request *request,
                             struct lac_response *response);
/* server/journal: runs of a project over time */
void lac_api_journal(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_trends(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_series(void *app, const struct lac_request *request, struct lac_response *response);

void lac_api_compare(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_sql_many(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_window_picture(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_flame_picture(void *app, const struct lac_request *request,
                           struct lac_response *response);
/* api_reports.c, api_report_talk.c, api_shares.c: reports that people write, and links */
enum { LAC_API_REPORT_BYTES = 400000, LAC_API_COMMENT_BYTES = 40000, LAC_API_SHARE_BYTES = 8192 };
void lac_api_reports(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_report_create(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_report_preview(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_report_get(void *app, const struct lac_request *request,
                        struct lac_response *response);
void lac_api_report_change(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_report_delete(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_report_document(void *app, const struct lac_request *request,
                             struct lac_response *response);
void lac_api_report_versions(void *app, const struct lac_request *request,
                             struct lac_response *response);
void lac_api_report_version(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_comments(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_comment_add(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_comment_change(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_comment_delete(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_bookmarks(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_bookmark_add(void *app, const struct lac_request *request,
                          struct lac_response *response);
void lac_api_bookmark_change(void *app, const struct lac_request *request,
                             struct lac_response *response);
void lac_api_bookmark_delete(void *app, const struct lac_request *request,
                             struct lac_response *response);
void lac_api_finding_states(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_finding_state_put(void *app, const struct lac_request *request,
                               struct lac_response *response);
void lac_api_report_shares(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_report_share(void *app, const struct lac_request *request,
                          struct lac_response *response);
void lac_api_trace_shares(void *app, const struct lac_request *request,
                          struct lac_response *response);
void lac_api_trace_share(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_shares(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_share_revoke(void *app, const struct lac_request *request,
                          struct lac_response *response);
void lac_api_shared(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_report_style(void *app, const struct lac_request *request,
                          struct lac_response *response);

/** The report of a trace, or what it would tell. `LINK`: HTML to be read at its address. */
enum lac_report_format {
    LAC_REPORT_HTML = 0,
    LAC_REPORT_MARKDOWN,
    LAC_REPORT_CONTENTS,
    LAC_REPORT_LINK,
};
void lac_api_report_of(enum lac_report_format format, struct lac_trace_file *file,
                       const char *redact, struct lac_response *response);

/** The object that says what a redactor met, as the reply. */
struct lac_redactor;
void lac_api_write_contents(const struct lac_redactor *redactor, struct lac_response *response);

void lac_api_report(void *app, const struct lac_request *request, struct lac_response *response);

/* server/download: the trace as a file for other tools, or what was uploaded of it */
void lac_api_download(void *app, const struct lac_request *request, struct lac_response *response);

/* server/accounts */

/** For lac_http_options: who asks, whether it may, who hears of it. */
bool lac_api_identify(void *app, enum lac_proof proof, const char *secret,
                      struct lac_principal *ret_who);
/** The user whom a trusted proxy names. */
bool lac_api_identify_named(void *app, const char *name, struct lac_principal *ret_who);
bool lac_api_permit(void *app, const struct lac_route *route, const struct lac_request *request,
                    struct lac_response *response);
bool lac_api_may_hear(void *app, const struct lac_principal *who, const char *project);

/** The project that an upload goes to: the one that is given, else the one that the token is for.
 *  @param given NULL or "" none */
const char *lac_api_upload_project(const struct lac_principal *who, const char *given);

void lac_api_session_end(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_whoami(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_oidc(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_oidc_callback(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_password(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_users(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_user_put(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_user_delete(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_audit(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_tokens(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_token_make(void *app, const struct lac_request *request,
                        struct lac_response *response);
void lac_api_token_end(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_projects(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_project_add(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_project(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_members(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_member_put(void *app, const struct lac_request *request,
                        struct lac_response *response);
void lac_api_member_delete(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_project_settings(void *app, const struct lac_request *request,
                              struct lac_response *response);
void lac_api_project_settings_put(void *app, const struct lac_request *request,
                                  struct lac_response *response);
void lac_api_project_quota(void *app, const struct lac_request *request,
                           struct lac_response *response);
void lac_api_project_quota_put(void *app, const struct lac_request *request,
                               struct lac_response *response);
void lac_api_token_quota(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_token_quota_put(void *app, const struct lac_request *request,
                             struct lac_response *response);
void lac_api_quotas(void *app, const struct lac_request *request, struct lac_response *response);

/* server/hangs */
enum { LAC_API_HANG_BYTES = 8192 };
void lac_api_hangs(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_hang_put(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_hang_remove(void *app, const struct lac_request *request,
                         struct lac_response *response);

/* server/webhooks */
enum { LAC_API_WEBHOOK_BYTES = 8192 };
void lac_api_webhooks(void *app, const struct lac_request *request, struct lac_response *response);
void lac_api_webhook_add(void *app, const struct lac_request *request,
                         struct lac_response *response);
void lac_api_webhook_remove(void *app, const struct lac_request *request,
                            struct lac_response *response);
void lac_api_webhook_try(void *app, const struct lac_request *request,
                         struct lac_response *response);

#endif
