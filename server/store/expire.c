#include "server/store/expire.h"

#include "analysis/model/status.h"
#include "collector/base/reserve.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace_facts.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };

/** What is kept for good: pinned, or a baseline. */
#define KEPT "(SELECT trace FROM pins UNION SELECT trace FROM baselines)"

struct due {
    char id[LAC_ID_SIZE]; /**< of the trace, or of the original */
    char name[NAME_BYTES];
};

struct due_list {
    struct due *rows;
    uint32_t count;
};

static void copy_text(struct lac_statement *get, int column, char *out, size_t capacity_bytes)
{
    const char *text = lac_db_text(get, column);

    (void)snprintf(out, capacity_bytes, "%s", text != NULL ? text : "");
}

/** Rows (id, name) of a statement with ?1 bound, oldest first. */
static enum lac_status list_due(struct lac_store *store, const char *sql, int64_t before_ms,
                                struct due_list *list, struct lac_error *reterr)
{
    struct lac_statement *get = NULL;
    uint32_t capacity = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog, sql, &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, before_ms);
    }
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        if (list->count == capacity) {
            struct due *grown;

            capacity = capacity > 0 ? capacity * 2 : 64;
            grown = realloc(list->rows, capacity * sizeof(*grown));
            if (grown == NULL) {
                status = LAC_ERR_NOMEM;
                break;
            }
            list->rows = grown;
        }
        copy_text(get, 0, list->rows[list->count].id, LAC_ID_SIZE);
        copy_text(get, 1, list->rows[list->count].name, NAME_BYTES);
        list->count++;
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static uint64_t size_of(const struct lac_store *store, const char *kind, const char *id,
                        const char *ending)
{
    char path[LAC_STORE_PATH_SIZE];
    struct stat info;

    return lac_store_path(store, path, kind, id, ending) && stat(path, &info) == 0
               ? (uint64_t)info.st_size
               : 0;
}

static void tell(const struct lac_expiry *expiry, const char *what, const struct due *due,
                 uint64_t bytes, struct lac_expired *expired)
{
    if (expiry->told != NULL) {
        expiry->told(expiry->context, what, due->id, due->name, bytes);
    }
    expired->bytes += bytes;
}

/** A trace file no longer says that its upload is kept. */
static enum lac_status forget_in_file(struct lac_store *store, const char *trace,
                                      struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    struct lac_trace_facts facts = {0};
    enum lac_status status;

    (void)lac_store_path(store, path, "traces", trace, ".db");
    status = lac_trace_facts_read(path, &facts, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        return LAC_OK; /* of an older version: the catalog alone says it */
    }
    if (status == LAC_OK) {
        facts.original[0] = '\0';
        status = lac_trace_facts_write(path, &facts, reterr);
    }
    lac_trace_facts_done(&facts);
    return status;
}

/** The traces made of an original; the caller frees them. */
static enum lac_status list_made(struct lac_store *store, const char *original,
                                 char (**ret_ids)[LAC_ID_SIZE], uint32_t *ret_count,
                                 struct lac_error *reterr)
{
    char(*ids)[LAC_ID_SIZE] = NULL;
    struct lac_statement *get = NULL;
    uint32_t capacity = 0;
    enum lac_status status;

    *ret_count = 0;
    (void)pthread_mutex_lock(&store->lock);
    status =
        lac_db_prepare(store->catalog, "SELECT id FROM traces WHERE original = ?1", &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, original);
    }
    while (status == LAC_OK && (status = lac_db_step_row(get, "catalog", reterr)) == LAC_OK) {
        if (LAC_RESERVE(ids, capacity, *ret_count, 1)) {
            copy_text(get, 0, ids[(*ret_count)++], LAC_ID_SIZE);
        } else {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    *ret_ids = ids;
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

/** Files first: a start makes the catalog say what they say. */
static enum lac_status drop_original(struct lac_store *store, const char *original,
                                     struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    const char *texts[1] = {original};
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    int folder = lac_folder_lock(store, false);
    enum lac_status status = list_made(store, original, &ids, &count, reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = lac_remote_fetch(store, LAC_OBJECT_TRACE, ids[i], reterr);
    }
    (void)pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        status = lac_remote_forget(store, LAC_OBJECT_TRACE, ids[i], reterr);
        if (status == LAC_OK) {
            status = forget_in_file(store, ids[i], reterr);
        }
    }
    free(ids);
    if (status == LAC_OK) {
        status = lac_remote_forget(store, LAC_OBJECT_ORIGINAL, original, reterr);
    }
    if (status == LAC_OK) {
        status = lac_catalog_change_alone(store->catalog, true,
                                          "UPDATE traces SET original = NULL WHERE original = ?1",
                                          texts, 1, NULL, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (status == LAC_OK && lac_store_path(store, path, "originals", original, ".zst")) {
        (void)unlink(path);
    }
    lac_folder_unlock(folder);
    return status;
}

static enum lac_status expire_originals(struct lac_store *store, const struct lac_expiry *expiry,
                                        struct lac_expired *expired, struct lac_error *reterr)
{
    struct due_list list = {0};
    enum lac_status status =
        list_due(store,
                 "SELECT original, min(name) FROM traces WHERE original IS NOT NULL GROUP BY"
                 " original HAVING max(created_ms) < ?1 AND min(CASE state WHEN 2 THEN 1"
                 " ELSE 0 END) = 1 AND max(CASE WHEN id IN " KEPT
                 " THEN 1 ELSE 0 END) = 0 ORDER BY min(seq)",
                 expiry->originals_before_ms, &list, reterr);

    for (uint32_t i = 0; i < list.count && status == LAC_OK; i++) {
        tell(expiry, "original", &list.rows[i],
             size_of(store, "originals", list.rows[i].id, ".zst"), expired);
        expired->originals++;
        if (!expiry->is_dry_run) {
            status = drop_original(store, list.rows[i].id, reterr);
        }
    }
    free(list.rows);
    return status;
}

static enum lac_status expire_traces(struct lac_store *store, const struct lac_expiry *expiry,
                                     struct lac_expired *expired, struct lac_error *reterr)
{
    struct due_list list = {0};
    enum lac_status status = list_due(store,
                                      "SELECT id, name FROM traces WHERE state = 2 AND"
                                      " created_ms < ?1 AND id NOT IN " KEPT " ORDER BY seq",
                                      expiry->traces_before_ms, &list, reterr);

    for (uint32_t i = 0; i < list.count && status == LAC_OK; i++) {
        tell(expiry, "trace", &list.rows[i], size_of(store, "traces", list.rows[i].id, ".db"),
             expired);
        expired->traces++;
        if (!expiry->is_dry_run) {
            status = lac_store_delete_trace(store, list.rows[i].id, reterr);
            status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status; /* somebody was faster */
        }
    }
    free(list.rows);
    return status;
}

enum lac_status lac_store_expire(struct lac_store *store, const struct lac_expiry *expiry,
                                 struct lac_expired *ret_expired, struct lac_error *reterr)
{
    assert(store != NULL && expiry != NULL && ret_expired != NULL);
    enum lac_status status = LAC_OK;

    *ret_expired = (struct lac_expired){0};
    if (expiry->originals_before_ms > 0) {
        status = expire_originals(store, expiry, ret_expired, reterr);
    }
    if (status == LAC_OK && expiry->traces_before_ms > 0) {
        status = expire_traces(store, expiry, ret_expired, reterr);
    }
    return status;
}
