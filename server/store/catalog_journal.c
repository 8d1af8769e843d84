/* Runs over time: figures, settings, comparisons of neighbors. See journal_rows.h. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Traces `t` of the project in `?1`: what people say comes first, "-" is none. */
#define OF_PROJECT                                                                                 \
    " LEFT JOIN projects p ON p.id = t.project LEFT JOIN labels l ON l.trace = t.id"               \
    " WHERE t.state = 2 AND (?1 IS NULL OR coalesce(l.project, p.name, '') ="                      \
    " CASE ?1 WHEN '" LAC_NO_PROJECT "' THEN '' ELSE ?1 END)"

/** Figures `f` of `t` that are of this program and of this import. */
#define FIGURES                                                                                    \
    "figures f ON f.trace = t.id AND f.generation = coalesce(t.generation, 0) AND f.version = ?2 "

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

static double real_or_nan(struct lac_statement *get, int column)
{
    return lac_db_is_null(get, column) ? (double)NAN : lac_db_f64(get, column);
}

/** A statement with the project and the version bound. */
static enum lac_status prepare(struct lac_store *store, const char *sql, const char *project,
                               struct lac_statement **ret_get, struct lac_error *reterr)
{
    enum lac_status status = lac_db_prepare(store->catalog, sql, ret_get, reterr);

    if (status == LAC_OK) {
        lac_db_bind_text(*ret_get, 1, project);
        if (lac_db_parameter_count(*ret_get) > 1) {
            lac_db_bind_i64(*ret_get, 2, LAC_FIGURES_VERSION);
        }
    }
    return status;
}

/** Rows of a statement into an array that grows. `read` fills the next element. */
static enum lac_status read_rows(struct lac_statement *get, size_t size_bytes,
                                 void (*read)(struct lac_statement *get, void *out), void **rows,
                                 uint32_t *count, struct lac_error *reterr)
{
    uint32_t capacity = 0;
    enum lac_status status;

    while ((status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        if (*count == capacity) {
            const uint32_t more = capacity > 0 ? capacity * 2 : 64;
            void *grown = realloc(*rows, (size_t)more * size_bytes);

            if (grown == NULL) {
                return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
            }
            *rows = grown;
            capacity = more;
        }
        read(get, (char *)*rows + (size_t)*count * size_bytes);
        *count += 1;
    }
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/* ---- figures ---- */

/** "1,2,...": numbers that fail are 0. */
static void read_parts(const char *text, int64_t *part_ns)
{
    for (int i = 0; i < LAC_TIME_PART_COUNT; i++) {
        char *end = NULL;

        part_ns[i] = text != NULL ? strtoll(text, &end, 10) : 0;
        text = end != NULL && *end == ',' ? end + 1 : NULL;
    }
}

static void read_point(struct lac_statement *get, void *out)
{
    struct lac_point *point = out;
    struct lac_figures *figures = &point->figures;

    *point = (struct lac_point){0};
    copy_text(get, 0, figures->trace, sizeof(figures->trace));
    copy_text(get, 1, point->run, sizeof(point->run));
    point->rank = lac_db_is_null(get, 2) ? -1 : lac_db_int(get, 2);
    point->seq = lac_db_i64(get, 3);
    point->step_mean_ns = lac_db_is_null(get, 4) ? LAC_UNKNOWN_NS : lac_db_i64(get, 4);
    point->throughput_per_s = real_or_nan(get, 5);
    copy_text(get, 6, point->throughput_unit, sizeof(point->throughput_unit));
    point->not_computing_pct = real_or_nan(get, 7);
    figures->recorded_unix_ms = lac_db_i64(get, 8);
    copy_text(get, 9, figures->person, sizeof(figures->person));
    copy_text(get, 10, figures->job, sizeof(figures->job));
    figures->pace.log_step = real_or_nan(get, 11);
    figures->pace.variance = lac_db_f64(get, 12);
    figures->pace.count = (uint32_t)lac_db_i64(get, 13);
    figures->fingerprint = (uint64_t)lac_db_i64(get, 14);
    figures->gpu_ns = lac_db_i64(get, 15);
    read_parts(lac_db_text(get, 16), figures->part_ns);
    figures->energy_j = real_or_nan(get, 17);
    figures->generation = (uint32_t)lac_db_i64(get, 18);
    figures->mfu_pct = real_or_nan(get, 19);
}

void lac_point_list_done(struct lac_point_list *list)
{
    free(list->points);
    *list = (struct lac_point_list){0};
}

enum lac_status lac_store_points(struct lac_store *store, const char *project,
                                 struct lac_point_list *ret_list, struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && ret_list != NULL);
    struct lac_point_list list = {0};
    struct lac_statement *get = NULL;
    void *rows = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = prepare(store,
                     "SELECT t.id, nullif(coalesce(l.run, t.run), ''), t.rank, t.seq, "
                     "t.step_mean_ns, t.throughput_per_s,"
                     " t.throughput_unit, t.not_computing_pct, f.recorded_ms, f.person, f.job,"
                     " f.log_step, f.variance, f.steps, f.fingerprint, f.gpu_ns, f.parts,"
                     " f.energy_j, f.generation, f.mfu_pct FROM traces t JOIN " FIGURES OF_PROJECT
                     " ORDER BY f.recorded_ms, t.seq",
                     project, &get, reterr);
    if (status == LAC_OK) {
        status = read_rows(get, sizeof(*list.points), read_point, &rows, &list.count, reterr);
    }
    lac_db_finalize(get);
    get = NULL;
    list.points = rows;
    if (status == LAC_OK) {
        status = prepare(store, "SELECT count(*) FROM traces t" OF_PROJECT, project, &get, reterr);
    }
    if (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        const int64_t all = lac_db_i64(get, 0);

        list.missing = all > list.count ? (uint32_t)(all - list.count) : 0;
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        lac_point_list_done(&list);
        return status;
    }
    *ret_list = list;
    return LAC_OK;
}

enum lac_status lac_store_unfigured(struct lac_store *store, const char *project, uint32_t limit,
                                    char (*ids)[LAC_ID_SIZE], uint32_t *ret_count,
                                    struct lac_error *reterr)
{
    assert(store != NULL && ids != NULL && ret_count != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret_count = 0;
    (void)pthread_mutex_lock(&store->lock);
    status = prepare(store,
                     "SELECT t.id FROM traces t LEFT JOIN " FIGURES OF_PROJECT
                     " AND f.trace IS NULL ORDER BY t.seq DESC",
                     project, &get, reterr);
    while (status == LAC_OK && *ret_count < limit) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            copy_text(get, 0, ids[*ret_count], LAC_ID_SIZE);
            *ret_count += 1;
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status insert_figures(struct lac_db *db, const struct lac_figures *figures,
                                      const char *document, struct lac_error *reterr)
{
    char parts[LAC_TIME_PART_COUNT * 21 + 1];
    size_t used = 0;
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_prepare(
        db, "INSERT INTO figures VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", &put, reterr);

    for (int i = 0; i < LAC_TIME_PART_COUNT; i++) {
        used += (size_t)snprintf(parts + used, sizeof(parts) - used, "%s%" PRId64, i > 0 ? "," : "",
                                 figures->part_ns[i]);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(put, 1, figures->trace);
        lac_db_bind_i64(put, 2, LAC_FIGURES_VERSION);
        lac_db_bind_i64(put, 3, figures->generation);
        lac_db_bind_i64(put, 4, figures->recorded_unix_ms);
        lac_db_bind_text(put, 5, figures->person);
        lac_db_bind_text(put, 6, figures->job);
        lac_db_bind_f64(put, 7, figures->pace.log_step);
        lac_db_bind_f64(put, 8, figures->pace.variance);
        lac_db_bind_i64(put, 9, figures->pace.count);
        lac_db_bind_i64(put, 10, (int64_t)figures->fingerprint);
        lac_db_bind_i64(put, 11, figures->gpu_ns);
        lac_db_bind_text(put, 12, parts);
        lac_db_bind_f64(put, 13, figures->energy_j);
        lac_db_bind_text(put, 14, document);
        lac_db_bind_f64(put, 15, figures->mfu_pct);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

static enum lac_status insert_settings(struct lac_db *db, const char *trace,
                                       const struct lac_setting_text *settings, uint32_t count,
                                       struct lac_error *reterr)
{
    struct lac_statement *put = NULL;
    enum lac_status status = lac_db_prepare(
        db, "INSERT INTO figure_settings VALUES(?,?,?) ON CONFLICT DO NOTHING", &put, reterr);

    for (uint32_t i = 0; i < count && i < LAC_FIGURE_SETTINGS_MAX && status == LAC_OK; i++) {
        lac_db_bind_text(put, 1, trace);
        lac_db_bind_text(put, 2, settings[i].key);
        lac_db_bind_text(put, 3, settings[i].value);
        status = lac_db_step_done(put, "catalog", reterr);
    }
    lac_db_finalize(put);
    return status;
}

enum lac_status lac_catalog_forget_figures(struct lac_db *db, const char *trace,
                                           struct lac_error *reterr)
{
    static const char *const sql[] = {
        "DELETE FROM figures WHERE trace = ?", "DELETE FROM figure_settings WHERE trace = ?",
        "DELETE FROM neighbors WHERE b = ?", "DELETE FROM neighbors WHERE a = ?"};
    const char *texts[1] = {trace};
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < LAC_COUNT_OF(sql) && status == LAC_OK; i++) {
        status = lac_catalog_change(db, sql[i], texts, 1, NULL, reterr);
    }
    return status;
}

enum lac_status lac_store_put_figures(struct lac_store *store, const struct lac_figures *figures,
                                      const char *document, const struct lac_setting_text *settings,
                                      uint32_t setting_count, struct lac_error *reterr)
{
    assert(store != NULL && figures != NULL && document != NULL);
    int64_t seq = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_number(store->catalog, "seq", figures->trace, &seq, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_forget_figures(store->catalog, figures->trace, reterr);
        }
        if (status == LAC_OK) {
            status = insert_figures(store->catalog, figures, document, reterr);
        }
        if (status == LAC_OK) {
            status =
                insert_settings(store->catalog, figures->trace, settings, setting_count, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- comparisons of neighbors ---- */

static void read_neighbors(struct lac_statement *get, void *out)
{
    struct lac_neighbors *row = out;

    copy_text(get, 0, row->b, sizeof(row->b));
    copy_text(get, 1, row->a, sizeof(row->a));
    row->predicted_pct = real_or_nan(get, 2);
    row->achieved_pct = real_or_nan(get, 3);
}

void lac_neighbor_list_done(struct lac_neighbor_list *list)
{
    free(list->rows);
    *list = (struct lac_neighbor_list){0};
}

enum lac_status lac_store_neighbors(struct lac_store *store, const char *project,
                                    struct lac_neighbor_list *ret_list, struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && ret_list != NULL);
    struct lac_neighbor_list list = {0};
    struct lac_statement *get = NULL;
    void *rows = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = prepare(store,
                     "SELECT n.b, n.a, n.predicted_pct, n.achieved_pct FROM neighbors n"
                     " JOIN traces t ON t.id = n.b" OF_PROJECT " AND n.version = ?2 ORDER BY n.b",
                     project, &get, reterr);
    if (status == LAC_OK) {
        status = read_rows(get, sizeof(*list.rows), read_neighbors, &rows, &list.count, reterr);
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    list.rows = rows;
    if (status != LAC_OK) {
        lac_neighbor_list_done(&list);
        return status;
    }
    *ret_list = list;
    return LAC_OK;
}

enum lac_status lac_store_put_neighbors(struct lac_store *store,
                                        const struct lac_neighbors *neighbors, const char *document,
                                        struct lac_error *reterr)
{
    assert(store != NULL && neighbors != NULL && document != NULL);
    struct lac_statement *put = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        /* of two traces that are still there */
        status = lac_db_prepare(store->catalog,
                                "INSERT INTO neighbors SELECT ?1, ?2, ?3, ?4, ?5, ?6"
                                " WHERE (SELECT count(*) FROM traces WHERE id IN (?1, ?2)) = 2"
                                " ON CONFLICT(b) DO UPDATE SET a = excluded.a,"
                                " version = excluded.version,"
                                " predicted_pct = excluded.predicted_pct,"
                                " achieved_pct = excluded.achieved_pct,"
                                " document = excluded.document",
                                &put, reterr);
        if (status == LAC_OK) {
            lac_db_bind_text(put, 1, neighbors->b);
            lac_db_bind_text(put, 2, neighbors->a);
            lac_db_bind_i64(put, 3, LAC_FIGURES_VERSION);
            lac_db_bind_f64(put, 4, neighbors->predicted_pct);
            lac_db_bind_f64(put, 5, neighbors->achieved_pct);
            lac_db_bind_text(put, 6, document);
            status = lac_db_step_done(put, "catalog", reterr);
        }
        lac_db_finalize(put);
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- a page ---- */

/** ?1: ids as a JSON array, ?2: the version of what is kept. */
static const char details_sql[] =
    "SELECT e.key, coalesce(l.name, t.name), l.notes, l.tags, t.host, t.device_names, t.cause,"
    " t.is_simulated, b.trace IS NOT NULL, s.trace IS NOT NULL, f.document, n.document"
    " FROM json_each(?1) e JOIN traces t ON t.id = e.value"
    " LEFT JOIN labels l ON l.trace = t.id LEFT JOIN projects p ON p.id = t.project"
    " LEFT JOIN figures f ON f.trace = t.id AND f.version = ?2"
    " LEFT JOIN neighbors n ON n.b = t.id AND n.version = ?2"
    " LEFT JOIN baselines b ON b.project = coalesce(l.project, p.name, '') AND b.trace = t.id"
    " LEFT JOIN pins s ON s.trace = t.id";

void lac_run_details_done(struct lac_run_details *details, uint32_t count)
{
    for (uint32_t i = 0; i < count && details != NULL; i++) {
        struct lac_run_details *it = &details[i];

        free(it->name);
        free(it->notes);
        free(it->tags);
        free(it->host);
        free(it->device_names);
        free(it->cause);
        free(it->figures);
        free(it->neighbors);
    }
    free(details);
}

static enum lac_status read_details(struct lac_statement *get, struct lac_run_details *out)
{
    enum lac_status status = LAC_OK;

    out->is_there = true;
    out->name = lac_db_take_text(get, 1, &status);
    out->notes = lac_db_take_text(get, 2, &status);
    out->tags = lac_db_take_text(get, 3, &status);
    out->host = lac_db_take_text(get, 4, &status);
    out->device_names = lac_db_take_text(get, 5, &status);
    out->cause = lac_db_take_text(get, 6, &status);
    out->is_simulated = lac_db_int(get, 7) != 0;
    out->is_baseline = lac_db_int(get, 8) != 0;
    out->is_pinned = lac_db_int(get, 9) != 0;
    out->figures = lac_db_take_text(get, 10, &status);
    out->neighbors = lac_db_take_text(get, 11, &status);
    return status;
}

/** ["id","id",...]: ids are base32. */
static char *array_of(const char *const *traces, uint32_t count)
{
    const size_t capacity_bytes = (size_t)count * (LAC_ID_SIZE + 3) + 3;
    char *text = malloc(capacity_bytes);
    size_t used = 0;

    if (text != NULL) {
        text[used++] = '[';
        for (uint32_t i = 0; i < count; i++) {
            used += (size_t)snprintf(text + used, capacity_bytes - used, "%s\"%.26s\"",
                                     i > 0 ? "," : "", traces[i]);
        }
        (void)snprintf(text + used, capacity_bytes - used, "]");
    }
    return text;
}

enum lac_status lac_store_run_details(struct lac_store *store, const char *const *traces,
                                      uint32_t count, struct lac_run_details **ret_details,
                                      struct lac_error *reterr)
{
    assert(store != NULL && (traces != NULL || count == 0) && ret_details != NULL);
    struct lac_run_details *details = calloc((size_t)count + 1, sizeof(*details));
    char *ids = array_of(traces, count);
    struct lac_statement *get = NULL;
    enum lac_status status = details != NULL && ids != NULL
                                 ? LAC_OK
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    (void)pthread_mutex_lock(&store->lock);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog, details_sql, &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, ids);
        lac_db_bind_i64(get, 2, LAC_FIGURES_VERSION);
    }
    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            const int64_t at = lac_db_i64(get, 0);

            assert(details != NULL);
            status = at >= 0 && at < count && !details[at].is_there
                         ? read_details(get, &details[at])
                         : lac_fail(reterr, LAC_ERR_CORRUPT, 0, "catalog.db: two rows of a trace");
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    free(ids);
    if (status != LAC_ERR_NOT_FOUND) {
        lac_run_details_done(details, count);
        return status;
    }
    *ret_details = details;
    return LAC_OK;
}

/* ---- settings ---- */

static void read_value(struct lac_statement *get, void *out)
{
    struct lac_setting_value *row = out;

    copy_text(get, 0, row->trace, sizeof(row->trace));
    copy_text(get, 1, row->value, sizeof(row->value));
}

void lac_setting_values_done(struct lac_setting_values *values)
{
    free(values->rows);
    *values = (struct lac_setting_values){0};
}

enum lac_status lac_store_setting_values(struct lac_store *store, const char *project,
                                         const char *key, struct lac_setting_values *ret_values,
                                         struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && key != NULL && ret_values != NULL);
    struct lac_setting_values values = {0};
    struct lac_statement *get = NULL;
    void *rows = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = prepare(store,
                     "SELECT t.id, s.value FROM traces t JOIN figure_settings s ON s.trace = t.id"
                     " AND s.key = ?3" OF_PROJECT " AND ?2 > 0 ORDER BY t.id",
                     project, &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 3, key);
        status = read_rows(get, sizeof(*values.rows), read_value, &rows, &values.count, reterr);
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    values.rows = rows;
    if (status != LAC_OK) {
        lac_setting_values_done(&values);
        return status;
    }
    *ret_values = values;
    return LAC_OK;
}

enum lac_status lac_store_varied(struct lac_store *store, const char *project,
                                 struct lac_varied *varied, uint32_t *ret_count,
                                 struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && varied != NULL && ret_count != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    *ret_count = 0;
    (void)pthread_mutex_lock(&store->lock);
    status =
        prepare(store,
                "SELECT s.key, count(DISTINCT s.value) AS n, count(*) FROM (SELECT t.id FROM"
                " traces t" OF_PROJECT " AND ?2 > 0 ORDER BY t.seq DESC LIMIT ?3) newest"
                " JOIN figure_settings s ON s.trace = newest.id"
                " GROUP BY s.key HAVING count(DISTINCT s.value) > 1 ORDER BY 3 DESC, n DESC, s.key",
                project, &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 3, LAC_VARIED_TRACES);
    }
    while (status == LAC_OK && *ret_count < LAC_VARIED_MAX) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK) {
            struct lac_varied *it = &varied[*ret_count];

            copy_text(get, 0, it->key, sizeof(it->key));
            it->value_count = (uint32_t)lac_db_i64(get, 1);
            it->trace_count = (uint32_t)lac_db_i64(get, 2);
            *ret_count += 1;
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}
