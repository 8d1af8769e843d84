/* What people say of their traces: names, projects, notes, tags and runs that somebody gave, baselines and
 * pins. They lie beside the rows of the traces, which follow their files and can be made again from
 * these. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Replace a text of the row by the column, where it has one. */
static void overlay(struct lac_statement *get, int column, char **text, enum lac_status *status)
{
    char *given = lac_db_take_text(get, column, status);

    if (*status == LAC_OK && given != NULL) {
        free(*text);
        *text = given;
    } else {
        free(given);
    }
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp((*(struct lac_trace_row *const *)a)->id, (*(struct lac_trace_row *const *)b)->id);
}

/** The row whose id the statement's row begins with. */
static struct lac_trace_row *row_of(struct lac_statement *get, struct lac_trace_row **by_id,
                                    uint32_t count)
{
    struct lac_trace_row key = {0};
    const struct lac_trace_row *const key_at = &key;
    struct lac_trace_row **found;

    (void)snprintf(key.id, sizeof(key.id), "%s", lac_db_text(get, 0));
    found = bsearch(&key_at, by_id, count, sizeof(*by_id), compare_ids);
    return found != NULL ? *found : NULL;
}

static enum lac_status take_labels(struct lac_statement *get, struct lac_trace_row *row)
{
    enum lac_status status = LAC_OK;

    if (!lac_db_is_null(get, 1)) { /* it was renamed */
        free(row->file_name);
        row->file_name = row->name;
        row->name = NULL;
    }
    overlay(get, 1, &row->name, &status);
    overlay(get, 2, &row->project, &status);
    overlay(get, 3, &row->notes, &status);
    overlay(get, 4, &row->tags, &status);
    if (!lac_db_is_null(get, 5)) { /* somebody put it there, or out */
        (void)snprintf(row->run, sizeof(row->run), "%s", lac_db_text(get, 5));
    }
    return status;
}

/** The ids as a JSON array: they need no escaping. The caller frees it. */
static char *write_ids(const struct lac_trace_row *rows, uint32_t count)
{
    const size_t capacity = (size_t)count * (LAC_ID_SIZE + 2) + 3;
    char *text = malloc(capacity);
    size_t used = 0;

    for (uint32_t i = 0; i < count && text != NULL; i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%c\"%s\"", i > 0 ? ',' : '[',
                                 rows[i].id);
    }
    if (text != NULL) {
        (void)snprintf(text + used, capacity - used, count > 0 ? "]" : "[]");
    }
    return text;
}

/** One query for all: over a network each takes its time. */
enum lac_status lac_catalog_read_labels(struct lac_db *db, struct lac_trace_row *rows,
                                        uint32_t count, struct lac_error *reterr)
{
    char *const ids = write_ids(rows, count);
    struct lac_trace_row **by_id = malloc(((size_t)count + 1) * sizeof(*by_id));
    struct lac_statement *get = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (ids != NULL && by_id != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            by_id[i] = &rows[i];
        }
        qsort((void *)by_id, count, sizeof(*by_id), compare_ids);
        status = lac_db_prepare(db,
                                "SELECT trace, name, project, notes, tags, run FROM labels"
                                " WHERE trace IN (SELECT value FROM json_each(?1))",
                                &get, reterr);
    }
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, ids);
    }
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        struct lac_trace_row *const row = row_of(get, by_id, count);

        status = row != NULL ? take_labels(get, row) : LAC_OK;
    }
    lac_db_finalize(get);
    free((void *)by_id);
    free(ids);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** One column: NULL leaves it, "" takes the label away. */
static enum lac_status put_label(struct lac_db *db, const char *sql, const char *id,
                                 const char *text, struct lac_error *reterr)
{
    const char *texts[2] = {id, text};

    return text == NULL ? LAC_OK : lac_catalog_change(db, sql, texts, 2, NULL, reterr);
}

enum lac_status lac_catalog_put_labels(struct lac_db *db, const char *id,
                                       const struct lac_trace_labels *labels,
                                       struct lac_error *reterr)
{
    const char *texts[1] = {id};
    int64_t seq = 0;
    enum lac_status status;

    status = lac_catalog_begin(db, true, "labels", reterr);
    if (status != LAC_OK) {
        return status;
    }
    status = lac_catalog_number(db, "seq", id, &seq, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
    }
    if (status == LAC_OK) {
        status =
            lac_catalog_change(db, "INSERT INTO labels(trace) VALUES(?1) ON CONFLICT DO NOTHING",
                               texts, 1, NULL, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET name = nullif(?2, '') WHERE trace = ?1", id,
                           labels->name, reterr);
    }
    if (status == LAC_OK) { /* no project is a choice, too: "" stays */
        status = put_label(db, "UPDATE labels SET project = ?2 WHERE trace = ?1", id,
                           labels->project, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET notes = nullif(?2, '') WHERE trace = ?1", id,
                           labels->notes, reterr);
    }
    if (status == LAC_OK) {
        status = put_label(db, "UPDATE labels SET tags = nullif(?2, '') WHERE trace = ?1", id,
                           labels->tags, reterr);
    }
    return lac_db_end(db, status, reterr);
}

/* -- baselines and pins ------------------------------------------------------------------------ */

/** The project of trace ?1 as people see it, "" none. */
#define PROJECT_OF                                                                                 \
    "(SELECT coalesce(l.project, p.name, '') FROM traces t LEFT JOIN projects p ON p.id ="         \
    " t.project LEFT JOIN labels l ON l.trace = t.id WHERE t.id = ?1)"

enum lac_status lac_store_baseline(struct lac_store *store, const char *project, char *ret_trace,
                                   struct lac_error *reterr)
{
    assert(store != NULL && project != NULL && ret_trace != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    ret_trace[0] = '\0';
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            "SELECT trace FROM baselines WHERE project ="
                            " CASE ?1 WHEN '" LAC_NO_PROJECT "' THEN '' ELSE ?1 END",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, project);
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(ret_trace, LAC_ID_SIZE, "%s", lac_db_text(get, 0));
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status mark(struct lac_db *db, const char *trace, int is_baseline, int is_pinned,
                            struct lac_error *reterr)
{
    char now[24];
    const char *texts[2] = {trace, now};
    enum lac_status status = LAC_OK;

    (void)snprintf(now, sizeof(now), "%" PRId64, lac_now_unix_ms());
    if (is_baseline >= 0) { /* one that was moved to another project leaves no trace in its old */
        status = lac_catalog_change(db, "DELETE FROM baselines WHERE trace = ?1", texts, 1, NULL,
                                    reterr);
    }
    if (status == LAC_OK && is_baseline > 0) {
        status = lac_catalog_change(db,
                                    "INSERT INTO baselines VALUES(" PROJECT_OF ", ?1)"
                                    " ON CONFLICT(project) DO UPDATE SET trace = excluded.trace",
                                    texts, 1, NULL, reterr);
    }
    if (status == LAC_OK && is_pinned == 0) {
        status =
            lac_catalog_change(db, "DELETE FROM pins WHERE trace = ?1", texts, 1, NULL, reterr);
    }
    if (status == LAC_OK && is_pinned > 0) {
        status = lac_catalog_change(db, "INSERT INTO pins VALUES(?1, ?2) ON CONFLICT DO NOTHING",
                                    texts, 2, NULL, reterr);
    }
    return status;
}

enum lac_status lac_store_set_marks(struct lac_store *store, const char *trace, int is_baseline,
                                    int is_pinned, struct lac_error *reterr)
{
    assert(store != NULL && trace != NULL);
    int64_t seq = 0;
    enum lac_status status;

    if (is_baseline < 0 && is_pinned < 0) {
        return LAC_OK;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_begin(store->catalog, true, "marks", reterr);
    if (status == LAC_OK) {
        status = lac_catalog_number(store->catalog, "seq", trace, &seq, reterr);
        if (status == LAC_ERR_NOT_FOUND) {
            (void)lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no trace has this id");
        }
        if (status == LAC_OK) {
            status = mark(store->catalog, trace, is_baseline, is_pinned, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
