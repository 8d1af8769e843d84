#include "server/api/report_evidence.h"

#include "analysis/compare/compare.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/api/kept_facts.h"
#include "server/base/buffer.h"
#include "server/http/request.h"
#include "server/people/access.h"
#include "server/reports/document.h"
#include "server/reports/part.h"
#include "server/reports/part_evidence.h"
#include "server/reports/snapshot.h"
#include "server/store/reports/report_store.h"
#include "server/store/store.h"
#include "server/store/trace/trace_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lac_api_asker(const struct lac_request *request)
{
    return request->who.name;
}

/** A trace that is open with what was found in it. */
struct opened {
    struct lac_trace_file *file;
    struct lac_kept_facts facts;
};

static void close_one(struct lac_app *app, struct opened *one)
{
    if (one->file != NULL) {
        lac_kept_facts_close(one->file, &one->facts);
        lac_store_release_trace(app->store, one->file);
    }
}

static bool open_one(struct lac_app *app, const char *id, struct opened *one, char *why,
                     size_t why_capacity)
{
    struct lac_error error = {0};
    struct lac_response unsent;
    const enum lac_status status = lac_store_open_trace(app->store, id, &one->file, &error);
    bool is_open = false;

    if (status != LAC_OK) {
        (void)snprintf(why, why_capacity, "%s",
                       status == LAC_ERR_NOT_FOUND ? "This trace is not here (any more)."
                       : status == LAC_ERR_MISUSE  ? "This trace is not imported yet."
                                                   : "This trace cannot be read.");
        return false;
    }
    lac_response_init(&unsent);
    is_open = lac_kept_facts_open(one->file, &unsent, &one->facts);
    lac_response_done(&unsent);
    if (!is_open) {
        (void)snprintf(why, why_capacity, "What was found in this trace cannot be read.");
    }
    return is_open;
}

static enum lac_status take_one(const struct opened *one, const struct lac_report_part *part,
                                struct lac_buffer *out, struct lac_error *reterr)
{
    const struct lac_evidence_source source = {.file = one->file, .analysis = one->facts.analysis};

    if (part->kind == LAC_PART_WINDOW) {
        return lac_evidence_window(out, &source, part->from_ns, part->to_ns, reterr);
    }
    if (part->kind == LAC_PART_FLAME) {
        return lac_evidence_flame(out, &source, reterr);
    }
    if (part->kind == LAC_PART_FINDING) {
        return lac_evidence_finding(out, &source, part->of, reterr);
    }
    lac_evidence_table(out, &source, part->of);
    return LAC_OK;
}

static bool take_series(struct lac_app *app, const struct lac_report_part *part,
                        struct lac_buffer *out, char *why, size_t why_capacity)
{
    struct lac_trace_row *rows = calloc(LAC_PART_TRACES_MAX, sizeof(*rows));
    struct lac_error error = {0};
    unsigned count = 0;

    while (rows != NULL && count < part->trace_count &&
           lac_store_get_trace(app->store, part->trace[count], &rows[count], &error) == LAC_OK) {
        count++;
    }
    if (count == part->trace_count) {
        lac_evidence_series(out, rows, count, part->of);
    } else {
        (void)snprintf(why, why_capacity, "A trace of this series is not here (any more).");
    }
    for (unsigned i = 0; i < count; i++) {
        lac_trace_row_done(&rows[i]);
    }
    free(rows);
    return count == part->trace_count;
}

static bool take(struct lac_app *app, const struct lac_report_part *part, struct lac_buffer *out,
                 char *why, size_t why_capacity)
{
    struct opened opened[2] = {{0}};
    struct lac_error error = {0};
    enum lac_status status = LAC_OK;
    bool is_taken;

    if (part->kind == LAC_PART_SERIES) {
        return take_series(app, part, out, why, why_capacity);
    }
    is_taken = open_one(app, part->trace[0], &opened[0], why, why_capacity);
    if (is_taken && part->kind == LAC_PART_COMPARE) {
        is_taken = open_one(app, part->trace[1], &opened[1], why, why_capacity);
    }
    if (is_taken && part->kind == LAC_PART_COMPARE) {
        struct lac_compare_side sides[2];

        for (int i = 0; i < 2; i++) {
            sides[i] = (struct lac_compare_side){lac_trace_file_head(opened[i].file),
                                                 opened[i].facts.analysis, opened[i].facts.compare};
        }
        status = lac_evidence_compare(out, sides, &error);
    } else if (is_taken) {
        status = take_one(&opened[0], part, out, &error);
    }
    if (status != LAC_OK) {
        (void)snprintf(why, why_capacity, "%s", error.message);
        is_taken = false;
    }
    close_one(app, &opened[0]);
    close_one(app, &opened[1]);
    return is_taken;
}

char *lac_report_evidence_take(struct lac_app *app, const struct lac_principal *who,
                               const struct lac_report_part *part, char *ret_why,
                               size_t why_capacity)
{
    struct lac_buffer out = {.size_bytes_max = LAC_SNAPSHOT_BYTES_MAX};

    for (unsigned i = 0; i < part->trace_count; i++) {
        if (!lac_access_reads_trace(app->people, app->store, who, part->trace[i])) {
            (void)snprintf(ret_why, why_capacity, "This trace is not here (any more).");
            return NULL;
        }
    }
    if (!take(app, part, &out, ret_why, why_capacity)) {
        lac_buffer_done(&out);
        return NULL;
    }
    if (out.status != LAC_OK || out.bytes == NULL) {
        (void)snprintf(ret_why, why_capacity, "%s",
                       out.status == LAC_ERR_LIMIT
                           ? "This is too much for one part: choose a shorter window."
                           : "There was no memory for this part.");
        lac_buffer_done(&out);
        return NULL;
    }
    return out.bytes;
}

char *lac_report_evidence_get(void *context, const struct lac_report_part *part, const char *line,
                              char *ret_why, size_t why_capacity)
{
    const struct lac_report_evidence *evidence = context;
    struct lac_error error = {0};
    char *snapshot = NULL;

    if (evidence->report != NULL && lac_reports_snapshot(evidence->app->store, evidence->report,
                                                         line, &snapshot, NULL, &error) == LAC_OK) {
        return snapshot;
    }
    if (evidence->takes) {
        return lac_report_evidence_take(evidence->app, evidence->who, part, ret_why, why_capacity);
    }
    (void)snprintf(ret_why, why_capacity,
                   "Nothing is kept of this part: its trace was not there when it was saved.");
    return NULL;
}

struct gathering {
    const struct lac_report_evidence *evidence;
    struct lac_buffer *out;
};

static void gather_hosts(void *context, const struct lac_report_part *part, const char *line)
{
    struct gathering *gathering = context;
    struct lac_report_evidence evidence = *gathering->evidence;
    char why[256];
    char *snapshot = lac_report_evidence_get(&evidence, part, line, why, sizeof(why));

    if (snapshot != NULL) {
        lac_snapshot_hosts(snapshot, gathering->out);
    }
    free(snapshot);
}

void lac_report_evidence_hosts(const struct lac_report_evidence *evidence, const char *markdown,
                               struct lac_buffer *out)
{
    struct gathering gathering = {evidence, out};
    struct lac_error error = {0};

    if (lac_document_parts(markdown, gather_hosts, &gathering, &error) != LAC_OK) {
        out->status = LAC_ERR_LIMIT;
    }
}
