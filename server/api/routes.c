#include "collector/base/count_of.h"
#include "server/api/app.h"
#include "server/http/request.h"

#include <stddef.h>

/*
 * Every route, with who may use it and where its handler runs. openapi.json describes the same
 * routes; a test compares them. GET of anything else outside /api/ is the page.
 */
const struct lac_route lac_api_routes[] = {
    LAC_ROUTE(GET, "/healthz", OPEN, LOOP, 0, lac_api_healthz, NULL),
    LAC_ROUTE(GET, "/metrics", KEY, QUICK, 0, lac_api_metrics, NULL),
    LAC_ROUTE(GET, "/openapi.json", OPEN, LOOP, 0, lac_api_openapi, NULL),
    LAC_ROUTE(GET, "/api/v1/openapi.json", OPEN, LOOP, 0, lac_api_openapi, NULL),
    LAC_ROUTE(GET, "/api/v1/findings", OPEN, LOOP, 0, lac_api_findings, NULL),
    LAC_ROUTE(GET, "/api/v1/findings/{id}", OPEN, LOOP, 0, lac_api_finding, NULL),
    LAC_ROUTE(GET, "/api/v1/vocabulary", OPEN, LOOP, 0, lac_api_vocabulary, NULL),
    LAC_ROUTE(POST, "/api/v1/session", OPEN, LOOP, 4096, lac_api_session, NULL),
    LAC_ROUTE(GET, "/api/v1/events", KEY, EVENTS, 0, lac_api_events, NULL),
    LAC_ROUTE(GET, "/api/v1/clock", KEY, LOOP, 0, lac_api_clock, NULL),
    LAC_ROUTE(OPTIONS, "/api/v1/uploads", KEY, LOOP, 0, lac_api_upload_options, NULL),
    LAC_ROUTE(POST, "/api/v1/uploads", KEY, UPLOAD, LAC_BODY_UPLOAD, NULL, &lac_api_upload_create),
    LAC_ROUTE(OPTIONS, "/api/v1/uploads/{id}", KEY, LOOP, 0, lac_api_upload_options, NULL),
    LAC_ROUTE(GET, "/api/v1/uploads/{id}", KEY, QUICK, 0, lac_api_upload_look, NULL),
    LAC_ROUTE(PATCH, "/api/v1/uploads/{id}", KEY, UPLOAD, LAC_BODY_UPLOAD, NULL,
              &lac_api_upload_append),
    LAC_ROUTE(DELETE, "/api/v1/uploads/{id}", KEY, SLOW, 0, lac_api_upload_remove, NULL),
    LAC_ROUTE(POST, "/api/v1/traces", KEY, UPLOAD, LAC_BODY_UPLOAD, NULL, &lac_api_upload),
    LAC_ROUTE(GET, "/api/v1/traces", KEY, QUICK, 0, lac_api_list, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}", KEY, QUICK, 0, lac_api_get, NULL),
    LAC_ROUTE(PATCH, "/api/v1/traces/{id}", KEY, SLOW, LAC_API_LABELS_BYTES, lac_api_label, NULL),
    LAC_ROUTE(DELETE, "/api/v1/traces/{id}", KEY, SLOW, 0, lac_api_delete, NULL),
    LAC_ROUTE(POST, "/api/v1/traces/{id}/retry", KEY, SLOW, 0, lac_api_retry, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/analysis", KEY, QUICK, 0, lac_api_analysis, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/tracks", KEY, SLOW, 0, lac_api_tracks, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/steps", KEY, SLOW, 0, lac_api_steps, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/g{n}/tiles/{level}/{first}-{last}", KEY, QUICK, 0,
              lac_api_tiles, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/counters/{track}", KEY, QUICK, 0, lac_api_counters, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/names", KEY, QUICK, 0, lac_api_names, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/slices", KEY, QUICK, 0, lac_api_slices, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/slices/{n}", KEY, QUICK, 0, lac_api_slice, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/search", KEY, SLOW, 0, lac_api_search, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/kernels", KEY, QUICK, 0, lac_api_kernels, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/gaps", KEY, QUICK, 0, lac_api_gaps, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/area", KEY, SLOW, 0, lac_api_area, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/tables/{name}", KEY, SLOW, 0, lac_api_table, NULL),
    LAC_ROUTE(GET, "/api/v1/sql", OPEN, LOOP, 0, lac_api_sql_reference, NULL),
    LAC_ROUTE(POST, "/api/v1/sql", KEY, SLOW, LAC_SQL_BODY_BYTES_MAX, lac_api_sql_many, NULL),
    LAC_ROUTE(POST, "/api/v1/traces/{id}/sql", KEY, SLOW, LAC_SQL_BODY_BYTES_MAX, lac_api_sql,
              NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/flame", KEY, SLOW, 0, lac_api_flame, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/window.svg", KEY, SLOW, 0, lac_api_window_picture, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/flame.svg", KEY, SLOW, 0, lac_api_flame_picture, NULL),
    LAC_ROUTE(GET, "/api/v1/traces/{id}/report", KEY, SLOW, 0, lac_api_report, NULL),
    LAC_ROUTE(GET, "/api/v1/runs", KEY, QUICK, 0, lac_api_runs, NULL),
    LAC_ROUTE(GET, "/api/v1/runs/{id}", KEY, QUICK, 0, lac_api_run, NULL),
    LAC_ROUTE(GET, "/api/v1/runs/{id}/analysis", KEY, SLOW, 0, lac_api_run_analysis, NULL),
    LAC_ROUTE(GET, "/api/v1/runs/{id}/strips", KEY, SLOW, 0, lac_api_run_strips, NULL),
    LAC_ROUTE(GET, "/api/v1/runs/{id}/collectives", KEY, SLOW, 0, lac_api_run_collectives, NULL),
    LAC_ROUTE(GET, "/api/v1/projects/{name}/journal", KEY, SLOW, 0, lac_api_journal, NULL),
    LAC_ROUTE(GET, "/api/v1/projects/{name}/trends", KEY, SLOW, 0, lac_api_trends, NULL),
    LAC_ROUTE(GET, "/api/v1/projects/{name}/series", KEY, SLOW, 0, lac_api_series, NULL),
    LAC_ROUTE(GET, "/api/v1/compare", KEY, SLOW, 0, lac_api_compare, NULL),
};
const unsigned lac_api_route_count = LAC_COUNT_OF(lac_api_routes);
