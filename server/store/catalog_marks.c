/* Baselines and pins: what people decide about single traces. */

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
