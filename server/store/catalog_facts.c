/* Rows of the catalog and the facts in trace files: the same things, both ways. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/trace_facts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINDINGS_MAX = 256 };

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

static double real_or_nan(struct lac_statement *get, int column)
{
    return lac_db_is_null(get, column) ? (double)NAN : lac_db_f64(get, column);
}

/** The original, and the run's name and time. */
static enum lac_status read_origin(struct lac_db *db, struct lac_trace_facts *facts,
                                   struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        "SELECT t.original, r.id IS NOT NULL, coalesce(r.name, ''), r.created_ms FROM traces t"
        " LEFT JOIN runs r ON r.id = t.run WHERE t.id = ?",
        &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, facts->row.id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        copy_text(get, 0, facts->original, sizeof(facts->original));
        if (lac_db_int(get, 1) != 0) {
            facts->run_name = lac_db_take_text(get, 2, &status);
            facts->run_created_ms = lac_db_i64(get, 3);
        }
    }
    lac_db_finalize(get);
    return status;
}

static enum lac_status read_findings(struct lac_db *db, struct lac_trace_facts *facts,
                                     struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(db, "SELECT * FROM findings WHERE trace = ? ORDER BY rank", &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, facts->row.id);
        facts->findings = calloc(FINDINGS_MAX, sizeof(*facts->findings));
        status = facts->findings != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    while (status == LAC_OK && facts->finding_count < FINDINGS_MAX) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            struct lac_finding_row *finding = &facts->findings[facts->finding_count++];

            copy_text(get, 2, finding->finding_id, sizeof(finding->finding_id));
            copy_text(get, 3, finding->severity, sizeof(finding->severity));
            finding->has_cost_ns = !lac_db_is_null(get, 4);
            finding->cost_ns_per_step = lac_db_i64(get, 4);
            finding->cost_pct = real_or_nan(get, 5);
            finding->gain_low_pct = real_or_nan(get, 6);
            finding->gain_mid_pct = real_or_nan(get, 7);
            finding->gain_high_pct = real_or_nan(get, 8);
            finding->confidence = real_or_nan(get, 9);
            copy_text(get, 10, finding->title, sizeof(finding->title));
        }
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_catalog_facts(struct lac_db *db, const char *id,
                                  struct lac_trace_facts *ret_facts, struct lac_error *reterr)
{
    struct lac_trace_facts facts = {0};
    enum lac_status status = lac_catalog_get(db, id, true, &facts.row, reterr);

    if (status == LAC_OK) {
        status = read_origin(db, &facts, reterr);
    }
    if (status == LAC_OK) {
        status = read_findings(db, &facts, reterr);
    }
    if (status != LAC_OK) {
        lac_trace_facts_done(&facts);
        return status;
    }
    *ret_facts = facts;
    return LAC_OK;
}

/** Its place in the list, 0 when it has none. */
static enum lac_status seq_of(struct lac_db *db, const char *id, int64_t *ret_seq,
                              struct lac_error *reterr)
{
    enum lac_status status;

    *ret_seq = 0;
    status = lac_catalog_number(db, "seq", id, ret_seq, reterr);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status clear_rows(struct lac_db *db, const char *id, struct lac_error *reterr)
{
    static const char *const sql[] = {
        "DELETE FROM findings WHERE trace = ?", "DELETE FROM report_lines WHERE trace = ?",
        "DELETE FROM trained_models WHERE trace = ?", "DELETE FROM traces WHERE id = ?"};
    const char *texts[1] = {id};
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < LAC_COUNT_OF(sql) && status == LAC_OK; i++) {
        status = lac_catalog_change(db, sql[i], texts, 1, NULL, reterr);
    }
    return status;
}

/** What lac_catalog_put_trace() leaves to others. */
static enum lac_status put_rest(struct lac_db *db, const struct lac_trace_row *row, int64_t seq,
                                struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status =
        lac_db_prepare(db,
                       "UPDATE traces SET seq = coalesce(?2, seq), clock_offset_ns = ?3,"
                       " clock_error_ns = ?4 WHERE id = ?1",
                       &put, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(put, 1, row->id);
        if (seq != 0) {
            lac_db_bind_i64(put, 2, seq);
        }
        if (row->has_clock) {
            lac_db_bind_i64(put, 3, row->clock_offset_ns);
            lac_db_bind_i64(put, 4, row->clock_error_ns);
        }
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

enum lac_status lac_catalog_put_facts(struct lac_db *db, const struct lac_trace_facts *facts,
                                      struct lac_error *reterr)
{
    const struct lac_trace_row *row = &facts->row;
    int64_t project = 0;
    int64_t seq = 0;
    enum lac_status status = lac_catalog_project(db, row->project, &project, reterr);

    if (status == LAC_OK && row->run[0] != '\0') {
        status = lac_catalog_put_run(db, row->run, project,
                                     facts->run_name != NULL ? facts->run_name : "",
                                     facts->run_created_ms, reterr);
    }
    if (status == LAC_OK) {
        status = seq_of(db, row->id, &seq, reterr);
    }
    if (status == LAC_OK) {
        status = clear_rows(db, row->id, reterr);
    }
    if (status == LAC_OK) {
        status = lac_catalog_put_trace(db, row, project,
                                       facts->original[0] != '\0' ? facts->original : NULL, reterr);
    }
    if (status == LAC_OK) {
        status = put_rest(db, row, seq, reterr);
    }
    return status == LAC_OK ? lac_catalog_put_findings(db, row->id, facts->findings,
                                                       facts->finding_count, reterr)
                            : status;
}
