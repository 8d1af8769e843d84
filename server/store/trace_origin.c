/* Where a trace comes from, as its uploader said: the run, and what its host's clock read. */

#include "analysis/model/status.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/store_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** Id of the run of that name in the project, made if it is new. */
static enum lac_status find_run(struct lac_db *db, const char *project, const char *run,
                                char *ret_id, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    int64_t project_id = 0;
    enum lac_status status = lac_catalog_project(db, project, &project_id, reterr);

    if (status == LAC_OK) {
        status =
            lac_db_prepare(db,
                           "SELECT id FROM runs r WHERE name = ?1 AND coalesce(project, 0) = ?2"
                           /* not one that people made of other jobs */
                           " AND EXISTS (SELECT 1 FROM traces t WHERE t.run = r.id) LIMIT 1",
                           &get, reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_db_bind_text(get, 1, run);
    lac_db_bind_i64(get, 2, project_id);
    status = lac_db_step_row(get, "catalog", reterr);
    if (status == LAC_OK) {
        (void)snprintf(ret_id, LAC_ID_SIZE, "%s", lac_db_text(get, 0));
    }
    lac_db_finalize(get);
    if (status == LAC_ERR_NOT_FOUND) {
        status = lac_store_new_id(ret_id, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_put_run(db, ret_id, project_id, run, lac_now_unix_ms(), reterr);
        }
    }
    return status;
}

enum lac_status lac_store_join_run(struct lac_store *store, const char *id, const char *project,
                                   const char *run, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    char run_id[LAC_ID_SIZE] = "";
    const char *texts[2] = {run_id, id};
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        status = find_run(store->catalog, project, run, run_id, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_change(store->catalog, "UPDATE traces SET run = ?1 WHERE id = ?2",
                                        texts, 2, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_set_clock(struct lac_store *store, const char *id, int64_t offset_ns,
                                    int64_t error_ns, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    char offset[32];
    char error[32];
    const char *texts[3] = {offset, error, id};
    enum lac_status status;

    (void)snprintf(offset, sizeof(offset), "%lld", (long long)offset_ns);
    (void)snprintf(error, sizeof(error), "%lld", (long long)error_ns);
    (void)pthread_mutex_lock(&store->lock);
    status = lac_catalog_change_alone(store->catalog, false,
                                      "UPDATE traces SET clock_offset_ns = CAST(?1 AS INTEGER),"
                                      " clock_error_ns = CAST(?2 AS INTEGER) WHERE id = ?3",
                                      texts, 3, NULL, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
