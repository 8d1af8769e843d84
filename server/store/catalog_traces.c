/* Rows of traces: written at publication, read for lists. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/store.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT_MAX = 1000 };

#define TRACE_COLUMNS                                                                              \
    "t.seq, t.id, t.name, coalesce(p.name, ''), t.run, t.state, t.created_ms, t.sha256,"           \
    " t.size_bytes, t.generation, t.error_code, t.error_message, t.format, t.event_count,"         \
    " t.slice_count, t.dropped_count, t.repaired_count, t.duration_ns, t.t0_ns, t.rank, t.host,"   \
    " t.is_simulated, t.device_count, t.device_names, t.file_bytes, t.cause, t.letter, t.verdict," \
    " t.step_mean_ns, t.throughput_per_s, t.throughput_unit, t.not_computing_pct, t.next_change,"  \
    " t.gain_low_pct, t.gain_mid_pct, t.gain_high_pct, t.finding_id,"                              \
    " t.clock_offset_ns, t.clock_error_ns, m.model"                                                \
    " FROM traces t LEFT JOIN projects p ON p.id = t.project"                                      \
    " LEFT JOIN trained_models m ON m.trace = t.id "

enum trace_column {
    T_SEQ = 0,
    T_ID,
    T_NAME,
    T_PROJECT,
    T_RUN,
    T_STATE,
    T_CREATED,
    T_SHA256,
    T_SIZE,
    T_GENERATION,
    T_ERROR_CODE,
    T_ERROR_MESSAGE,
    T_FORMAT,
    T_EVENTS,
    T_SLICES,
    T_DROPPED,
    T_REPAIRED,
    T_DURATION,
    T_T0,
    T_RANK,
    T_HOST,
    T_SIMULATED,
    T_DEVICES,
    T_DEVICE_NAMES,
    T_FILE_BYTES,
    T_CAUSE,
    T_LETTER,
    T_VERDICT,
    T_STEP_MEAN,
    T_THROUGHPUT,
    T_UNIT,
    T_NOT_COMPUTING,
    T_NEXT_CHANGE,
    T_GAIN_LOW,
    T_GAIN_MID,
    T_GAIN_HIGH,
    T_FINDING,
    T_CLOCK_OFFSET,
    T_CLOCK_ERROR,
    T_MODEL,
};

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

static double real_or_nan(struct lac_statement *get, int column)
{
    return lac_db_is_null(get, column) ? (double)NAN : lac_db_f64(get, column);
}

static void read_summary(struct lac_statement *get, struct lac_trace_summary *summary)
{
    char letter[8];

    summary->present = !lac_db_is_null(get, T_CAUSE);
    copy_text(get, T_CAUSE, summary->cause, sizeof(summary->cause));
    copy_text(get, T_LETTER, letter, sizeof(letter));
    summary->letter = letter[0];
    copy_text(get, T_VERDICT, summary->text, sizeof(summary->text));
    summary->step_mean_ns =
        lac_db_is_null(get, T_STEP_MEAN) ? LAC_UNKNOWN_NS : lac_db_i64(get, T_STEP_MEAN);
    summary->throughput_per_s = real_or_nan(get, T_THROUGHPUT);
    copy_text(get, T_UNIT, summary->throughput_unit, sizeof(summary->throughput_unit));
    summary->not_computing_pct = real_or_nan(get, T_NOT_COMPUTING);
    copy_text(get, T_NEXT_CHANGE, summary->next_change, sizeof(summary->next_change));
    summary->gain_low_pct = real_or_nan(get, T_GAIN_LOW);
    summary->gain_mid_pct = real_or_nan(get, T_GAIN_MID);
    summary->gain_high_pct = real_or_nan(get, T_GAIN_HIGH);
    copy_text(get, T_FINDING, summary->finding_id, sizeof(summary->finding_id));
    copy_text(get, T_MODEL, summary->model, sizeof(summary->model));
}

static enum lac_status read_row(struct lac_statement *get, struct lac_trace_row *row)
{
    enum lac_status status = LAC_OK;
    int64_t state = lac_db_i64(get, T_STATE);

    *row = (struct lac_trace_row){
        .state = state >= 0 && state <= LAC_TRACE_FAILED ? (enum lac_trace_state)state
                                                         : LAC_TRACE_FAILED,
        .created_unix_ms = lac_db_i64(get, T_CREATED),
        .size_bytes = (uint64_t)lac_db_i64(get, T_SIZE),
        .generation = (uint32_t)lac_db_i64(get, T_GENERATION),
        .event_count = (uint64_t)lac_db_i64(get, T_EVENTS),
        .slice_count = (uint64_t)lac_db_i64(get, T_SLICES),
        .dropped_count = (uint64_t)lac_db_i64(get, T_DROPPED),
        .repaired_count = (uint64_t)lac_db_i64(get, T_REPAIRED),
        .duration_ns = lac_db_i64(get, T_DURATION),
        .t0_ns = lac_db_i64(get, T_T0),
        .rank = lac_db_is_null(get, T_RANK) ? -1 : (int32_t)lac_db_i64(get, T_RANK),
        .is_simulated = lac_db_int(get, T_SIMULATED) != 0,
        .device_count = (uint32_t)lac_db_i64(get, T_DEVICES),
        .file_bytes = (uint64_t)lac_db_i64(get, T_FILE_BYTES),
        .has_clock = !lac_db_is_null(get, T_CLOCK_OFFSET),
        .clock_offset_ns = lac_db_i64(get, T_CLOCK_OFFSET),
        .clock_error_ns = lac_db_i64(get, T_CLOCK_ERROR),
    };
    copy_text(get, T_ID, row->id, sizeof(row->id));
    copy_text(get, T_RUN, row->run, sizeof(row->run));
    if (lac_db_bytes(get, T_SHA256) == LAC_SHA256_SIZE) {
        memcpy(row->sha256, lac_db_blob(get, T_SHA256), LAC_SHA256_SIZE);
        row->has_sha256 = true;
    }
    read_summary(get, &row->summary);
    row->name = lac_db_take_text(get, T_NAME, &status);
    row->project = lac_db_take_text(get, T_PROJECT, &status);
    row->error_code = lac_db_take_text(get, T_ERROR_CODE, &status);
    row->error_message = lac_db_take_text(get, T_ERROR_MESSAGE, &status);
    row->format = lac_db_take_text(get, T_FORMAT, &status);
    row->host = lac_db_take_text(get, T_HOST, &status);
    row->device_names = lac_db_take_text(get, T_DEVICE_NAMES, &status);
    if (status != LAC_OK) {
        lac_trace_row_done(row);
    }
    return status;
}

void lac_trace_row_done(struct lac_trace_row *row)
{
    free(row->name);
    free(row->project);
    free(row->error_code);
    free(row->error_message);
    free(row->format);
    free(row->host);
    free(row->device_names);
    free(row->file_name);
    free(row->notes);
    free(row->tags);
    free(row->report);
    *row = (struct lac_trace_row){0};
}

void lac_trace_list_done(struct lac_trace_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        lac_trace_row_done(&list->rows[i]);
    }
    free(list->rows);
    *list = (struct lac_trace_list){0};
}

static enum lac_status read_report(struct lac_db *db, struct lac_trace_row *row,
                                   struct lac_error *reterr)
{
    enum { LINES_MAX = 64 };
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        "SELECT code, severity, count, first_offset_bytes, text FROM report_lines WHERE trace = ? "
        "ORDER BY line",
        &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, row->id);
        row->report = calloc(LINES_MAX, sizeof(*row->report));
        status = row->report != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    while (status == LAC_OK && row->report_count < LINES_MAX) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            struct lac_trace_report_line *line = &row->report[row->report_count++];

            copy_text(get, 0, line->code, sizeof(line->code));
            line->severity = lac_db_int(get, 1);
            line->count = (uint64_t)lac_db_i64(get, 2);
            line->first_offset_bytes = (uint64_t)lac_db_i64(get, 3);
            copy_text(get, 4, line->text, sizeof(line->text));
        }
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_catalog_get(struct lac_db *db, const char *id, bool with_report,
                                struct lac_trace_row *ret_row, struct lac_error *reterr)
{
    struct lac_trace_row row = {0};
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(db, "SELECT " TRACE_COLUMNS "WHERE t.id = ?", &get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    if (status == LAC_OK) {
        status = read_row(get, &row);
    }
    lac_db_finalize(get);
    if (status == LAC_OK && with_report) {
        status = read_report(db, &row, reterr);
    }
    if (status != LAC_OK) {
        lac_trace_row_done(&row);
        return status;
    }
    *ret_row = row;
    return LAC_OK;
}

/** Cursors are "s<seq>". @return false when it is none */
static bool parse_cursor(const char *after, int64_t *ret_seq)
{
    char *end = NULL;

    *ret_seq = INT64_MAX;
    if (after == NULL || *after == '\0') {
        return true;
    }
    if (after[0] != 's' || after[1] < '0' || after[1] > '9' || strlen(after) > 19) {
        return false;
    }
    *ret_seq = strtoll(after + 1, &end, 10);
    return *end == '\0';
}

static enum lac_status read_page(struct lac_statement *get, uint32_t limit,
                                 struct lac_trace_list *list, struct lac_error *reterr)
{
    int64_t last_seq = 0;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status != LAC_OK) {
            break;
        }
        if (list->count == limit) {
            list->has_more = true;
            (void)snprintf(list->next, sizeof(list->next), "s%lld", (long long)last_seq);
            break;
        }
        status = read_row(get, &list->rows[list->count]);
        if (status == LAC_OK) {
            list->count++;
            last_seq = lac_db_i64(get, T_SEQ);
        }
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

enum lac_status lac_catalog_list(struct lac_db *db, const struct lac_trace_query *query,
                                 struct lac_trace_list *ret_list, struct lac_error *reterr)
{
    struct lac_trace_list list = {0};
    struct lac_statement *get = NULL;
    int64_t before = 0;
    enum lac_status status;

    if (query->limit < 1 || query->limit > LIST_LIMIT_MAX || !parse_cursor(query->after, &before)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "traces: limit is 1 to %d, after is the cursor of the page before",
                        LIST_LIMIT_MAX);
    }
    list.rows = calloc(query->limit, sizeof(*list.rows));
    if (list.rows == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = lac_db_prepare(db,
                            "SELECT " TRACE_COLUMNS "LEFT JOIN labels l ON l.trace = t.id "
                            "WHERE t.seq < ?1 AND (?2 IS NULL OR"
                            " instr(lower(coalesce(l.name, t.name)), lower(?2)) > 0)"
                            " AND (?3 IS NULL OR coalesce(l.project, p.name) = ?3)"
                            " AND (?4 IS NULL OR coalesce(l.run, t.run) = ?4)"
                            " AND (?5 IS NULL OR coalesce(l.project, p.name) IN"
                            " (SELECT value FROM json_each(?5)))"
                            " ORDER BY t.seq DESC LIMIT ?6",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, before);
        lac_db_bind_text(get, 2, query->text != NULL && *query->text != '\0' ? query->text : NULL);
        lac_db_bind_text(get, 3, query->project);
        lac_db_bind_text(get, 4, query->run);
        lac_db_bind_text(get, 5, query->among);
        lac_db_bind_i64(get, 6, (int64_t)query->limit + 1); /* one more says that there are more */
        status = read_page(get, query->limit, &list, reterr);
    }
    lac_db_finalize(get);
    if (status != LAC_OK) {
        lac_trace_list_done(&list);
        return status;
    }
    *ret_list = list;
    return LAC_OK;
}

static void bind_known(struct lac_statement *put, int index, double value)
{
    lac_db_bind_f64(put, index, value); /* NaN becomes null */
}

static void bind_summary(struct lac_statement *put, int at, const struct lac_trace_summary *summary,
                         const char *letter)
{
    if (!summary->present) {
        return;
    }
    lac_db_bind_text(put, at, summary->cause);
    lac_db_bind_text(put, at + 1, letter);
    lac_db_bind_text(put, at + 2, summary->text);
    if (summary->step_mean_ns != LAC_UNKNOWN_NS) {
        lac_db_bind_i64(put, at + 3, summary->step_mean_ns);
    }
    bind_known(put, at + 4, summary->throughput_per_s);
    lac_db_bind_text(put, at + 5, summary->throughput_unit);
    bind_known(put, at + 6, summary->not_computing_pct);
    lac_db_bind_text(put, at + 7, summary->next_change);
    bind_known(put, at + 8, summary->gain_low_pct);
    bind_known(put, at + 9, summary->gain_mid_pct);
    bind_known(put, at + 10, summary->gain_high_pct);
    lac_db_bind_text(put, at + 11, summary->finding_id);
}

static void bind_row(struct lac_statement *put, const struct lac_trace_row *row, int64_t project,
                     const char *original)
{
    int at = 1;

    lac_db_bind_text(put, at++, row->id);
    if (project != 0) {
        lac_db_bind_i64(put, at, project);
    }
    at++;
    lac_db_bind_text(put, at++, row->run[0] != '\0' ? row->run : NULL);
    lac_db_bind_text(put, at++, row->name);
    lac_db_bind_i64(put, at++, row->state);
    lac_db_bind_i64(put, at++, row->created_unix_ms);
    if (row->has_sha256) {
        lac_db_bind_blob(put, at, row->sha256, LAC_SHA256_SIZE);
    }
    at++;
    lac_db_bind_i64(put, at++, (int64_t)row->size_bytes);
    lac_db_bind_i64(put, at++, row->generation);
    lac_db_bind_text(put, at++, original);
    lac_db_bind_text(put, at++, row->format);
    lac_db_bind_i64(put, at++, (int64_t)row->event_count);
    lac_db_bind_i64(put, at++, (int64_t)row->slice_count);
    lac_db_bind_i64(put, at++, (int64_t)row->dropped_count);
    lac_db_bind_i64(put, at++, (int64_t)row->repaired_count);
    lac_db_bind_i64(put, at++, row->duration_ns);
    lac_db_bind_i64(put, at++, row->t0_ns);
    if (row->rank >= 0) {
        lac_db_bind_i64(put, at, row->rank);
    }
    at++;
    lac_db_bind_text(put, at++, row->host);
    lac_db_bind_i64(put, at++, row->is_simulated);
    lac_db_bind_i64(put, at++, row->device_count);
    lac_db_bind_text(put, at++, row->device_names);
    lac_db_bind_i64(put, at++, (int64_t)row->file_bytes);
}

static enum lac_status put_report(struct lac_db *db, const struct lac_trace_row *row,
                                  struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status =
        lac_db_prepare(db, "INSERT INTO report_lines VALUES(?,?,?,?,?,?,?)", &put, reterr);

    for (uint32_t i = 0; i < row->report_count && status == LAC_OK; i++) {
        const struct lac_trace_report_line *line = &row->report[i];

        lac_db_bind_text(put, 1, row->id);
        lac_db_bind_i64(put, 2, i);
        lac_db_bind_text(put, 3, line->code);
        lac_db_bind_i64(put, 4, line->severity);
        lac_db_bind_i64(put, 5, (int64_t)line->count);
        lac_db_bind_i64(put, 6, (int64_t)line->first_offset_bytes);
        lac_db_bind_text(put, 7, line->text);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

/** The table is one of its own: an old catalog that there is no room to convert can be read without. */
static enum lac_status put_trained_model(struct lac_db *db, const struct lac_trace_row *row,
                                         struct lac_error *reterr)
{
    const char *texts[2] = {row->id, row->summary.model};

    return row->summary.model[0] == '\0'
               ? lac_catalog_change(db, "DELETE FROM trained_models WHERE trace = ?", texts, 1,
                                    NULL, reterr)
               : lac_catalog_change(db,
                                    "INSERT INTO trained_models(trace, model) VALUES(?1, ?2)"
                                    " ON CONFLICT(trace) DO UPDATE SET model = excluded.model",
                                    texts, 2, NULL, reterr);
}

enum lac_status lac_catalog_put_trace(struct lac_db *db, const struct lac_trace_row *row,
                                      int64_t project, const char *original,
                                      struct lac_error *reterr)
{
    /* the row of an upload is there already: its place in the list, its project and name stay */
    static const char sql[] =
        "INSERT INTO traces(id, project, run, name, state, created_ms, sha256, size_bytes,"
        " generation, original, format, event_count, slice_count, dropped_count, repaired_count,"
        " duration_ns, t0_ns, rank, host, is_simulated, device_count, device_names, file_bytes,"
        " cause, letter, verdict, step_mean_ns, throughput_per_s, throughput_unit,"
        " not_computing_pct, next_change, gain_low_pct, gain_mid_pct, gain_high_pct, finding_id)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT(id) DO UPDATE SET run=coalesce(excluded.run, traces.run), name=excluded.name,"
        " state=excluded.state, generation=excluded.generation, error_code=NULL,"
        " error_message=NULL, original=excluded.original, format=excluded.format,"
        " event_count=excluded.event_count, slice_count=excluded.slice_count,"
        " dropped_count=excluded.dropped_count, repaired_count=excluded.repaired_count,"
        " duration_ns=excluded.duration_ns, t0_ns=excluded.t0_ns, rank=excluded.rank,"
        " host=excluded.host, is_simulated=excluded.is_simulated,"
        " device_count=excluded.device_count, device_names=excluded.device_names,"
        " file_bytes=excluded.file_bytes, cause=excluded.cause, letter=excluded.letter,"
        " verdict=excluded.verdict, step_mean_ns=excluded.step_mean_ns,"
        " throughput_per_s=excluded.throughput_per_s, throughput_unit=excluded.throughput_unit,"
        " not_computing_pct=excluded.not_computing_pct, next_change=excluded.next_change,"
        " gain_low_pct=excluded.gain_low_pct, gain_mid_pct=excluded.gain_mid_pct,"
        " gain_high_pct=excluded.gain_high_pct, finding_id=excluded.finding_id";
    const char letter[2] = {row->summary.letter, '\0'};
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_prepare(db, sql, &put, reterr);

    if (status == LAC_OK) {
        bind_row(put, row, project, original);
        bind_summary(put, 24, &row->summary, letter);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    if (status == LAC_OK) {
        status = put_trained_model(db, row, reterr);
    }
    return status == LAC_OK ? put_report(db, row, reterr) : status;
}

enum lac_status lac_catalog_put_findings(struct lac_db *db, const char *trace,
                                         const struct lac_finding_row *findings, uint32_t count,
                                         struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status =
        lac_db_prepare(db, "INSERT INTO findings VALUES(?,?,?,?,?,?,?,?,?,?,?)", &put, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        const struct lac_finding_row *finding = &findings[i];

        lac_db_bind_text(put, 1, trace);
        lac_db_bind_i64(put, 2, i);
        lac_db_bind_text(put, 3, finding->finding_id);
        lac_db_bind_text(put, 4, finding->severity);
        if (finding->has_cost_ns) {
            lac_db_bind_i64(put, 5, finding->cost_ns_per_step);
        }
        bind_known(put, 6, finding->cost_pct);
        bind_known(put, 7, finding->gain_low_pct);
        bind_known(put, 8, finding->gain_mid_pct);
        bind_known(put, 9, finding->gain_high_pct);
        bind_known(put, 10, finding->confidence);
        lac_db_bind_text(put, 11, finding->title);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

enum lac_status lac_catalog_original(struct lac_db *db, const char *id, char *ret_original,
                                     struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status =
        lac_db_prepare(db, "SELECT original FROM traces WHERE id = ?", &get, reterr);

    ret_original[0] = '\0';
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        copy_text(get, 0, ret_original, LAC_ID_SIZE);
    }
    lac_db_finalize(get);
    return status == LAC_ERR_NOT_FOUND
               ? lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id")
               : status;
}

/** The original of a trace, "" none; whether others need it. */
static enum lac_status original_of(struct lac_db *db, const char *id, char *ret_original,
                                   struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    enum lac_status status = lac_db_prepare(
        db,
        "SELECT t.original, (SELECT count(*) FROM traces o WHERE o.original = t.original"
        " AND o.id <> t.id) FROM traces t WHERE t.id = ?",
        &get, reterr);

    ret_original[0] = '\0';
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK && lac_db_i64(get, 1) == 0) {
        copy_text(get, 0, ret_original, LAC_ID_SIZE);
    }
    lac_db_finalize(get);
    return status;
}

enum lac_status lac_catalog_delete(struct lac_db *db, const char *id, char *ret_original,
                                   struct lac_error *reterr)
{
    static const char *const sql[] = {"DELETE FROM findings WHERE trace = ?",
                                      "DELETE FROM report_lines WHERE trace = ?",
                                      "DELETE FROM labels WHERE trace = ?",
                                      "DELETE FROM trained_models WHERE trace = ?",
                                      "DELETE FROM baselines WHERE trace = ?",
                                      "DELETE FROM pins WHERE trace = ?",
                                      "DELETE FROM bookmarks WHERE trace = ?",
                                      "DELETE FROM uploaders WHERE trace = ?",
                                      "DELETE FROM traces WHERE id = ?",
                                      "DELETE FROM objects WHERE kind IN (0, 2) AND id = ?"};
    const char *texts[1] = {id};
    enum lac_status status = original_of(db, id, ret_original, reterr);

    if (status == LAC_ERR_NOT_FOUND) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    if (status == LAC_OK) {
        status = lac_catalog_forget_figures(db, id, reterr);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(sql) && status == LAC_OK; i++) {
        status = lac_catalog_change(db, sql[i], texts, 1, NULL, reterr);
    }
    if (status == LAC_OK && ret_original[0] != '\0') {
        texts[0] = ret_original;
        status = lac_catalog_change(db, "DELETE FROM objects WHERE kind = 1 AND id = ?", texts, 1,
                                    NULL, reterr);
    }
    if (status == LAC_OK) {
        status = lac_catalog_change(
            db,
            "DELETE FROM runs WHERE id NOT IN (SELECT run FROM traces WHERE run IS NOT NULL UNION"
            " SELECT run FROM labels WHERE run IS NOT NULL)",
            NULL, 0, NULL, reterr);
    }
    return status;
}
