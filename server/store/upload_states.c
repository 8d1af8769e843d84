/* The states of an upload in the catalog: receiving, importing, failed; what content is there, and
 * what is kept of a failed one. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace_facts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** One change of the catalog, as a transaction of its own; also when the disk is full: all of them
 *  give something up. */
static enum lac_status change(struct lac_store *store, bool durable, const char *sql,
                              const char *const *texts, unsigned text_count, int *ret_changes,
                              struct lac_error *reterr)
{
    bool tried = false;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    do {
        status = lac_catalog_change_alone(store->catalog, durable, sql, texts, text_count,
                                          ret_changes, reterr);
    } while (status != LAC_OK && lac_store_make_room(store, reterr, &tried));
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_begin_receiving(struct lac_store *store, const char *id, const char *name,
                                          const char *project, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    struct lac_trace_row row = {.state = LAC_TRACE_RECEIVING, .generation = 1, .rank = -1};
    int64_t project_id = 0;
    char no_name[] = "";
    enum lac_status status;

    lac_store_sweep_if_due(store);
    (void)snprintf(row.id, sizeof(row.id), "%s", id);
    row.created_unix_ms = lac_now_unix_ms();
    row.name = name != NULL ? strdup(name) : no_name;
    if (row.name == NULL) {
        return LAC_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, false, reterr);
    if (status == LAC_OK) {
        status = lac_catalog_project(store->catalog, project, &project_id, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_put_trace(store->catalog, &row, project_id, NULL, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (name != NULL) {
        free(row.name);
    }
    return status;
}

enum lac_status lac_staged_facts_write(const struct lac_staging *staging,
                                       const struct lac_trace_facts *facts,
                                       struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE + 32];
    enum lac_status status;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_FACTS, staging->path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot store the upload: %s", strerror(errno));
    }
    status = lac_facts_to(fd, 0, facts, reterr);
    (void)close(fd);
    if (status == LAC_OK) {
        fd = open(staging->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) != 0) {
            status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot sync the upload: %s", strerror(errno));
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    return status;
}

enum lac_status lac_staged_facts_read(const struct lac_staging *staging,
                                      struct lac_trace_facts *ret_facts, struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE + 32];

    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_FACTS, staging->path);
    return lac_trace_facts_read(path, ret_facts, reterr);
}

/** Beside the bytes of the upload, before its row says that they are there. */
static enum lac_status keep_facts(struct lac_store *store, const char *id, const uint8_t *sha256,
                                  uint64_t size_bytes, struct lac_error *reterr)
{
    struct lac_trace_facts facts = {0};
    struct lac_staging staging = {.fd = -1};
    struct stat info;
    enum lac_status status = lac_catalog_facts(store->catalog, id, &facts, reterr);

    if (status == LAC_OK) {
        memcpy(facts.row.sha256, sha256, LAC_SHA256_SIZE);
        facts.row.has_sha256 = true;
        facts.row.size_bytes = size_bytes;
        memcpy(facts.upload, id, LAC_ID_SIZE);
        (void)lac_store_path(store, staging.path, "staging", id, NULL);
        if (stat(staging.path, &info) == 0) { /* a caller without one has nothing to keep */
            status = lac_staged_facts_write(&staging, &facts, reterr);
        }
    } else if (status == LAC_ERR_NOT_FOUND) {
        status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "the upload was removed meanwhile");
    }
    lac_trace_facts_done(&facts);
    return status;
}

bool lac_store_is_shared(const struct lac_store *store)
{
    return store->remote != NULL && store->has_shared_catalog;
}

enum lac_status lac_store_put_upload(struct lac_store *store, const char *id, const uint8_t *sha256,
                                     uint64_t size_bytes, struct lac_object_row *ret_row,
                                     struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];

    *ret_row = (struct lac_object_row){.kind = LAC_OBJECT_UPLOAD};
    if (!lac_store_is_shared(store)) {
        return LAC_OK;
    }
    if (!lac_store_path(store, path, "staging", id, "/" LAC_STAGED_UPLOAD) ||
        access(path, F_OK) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the uploaded bytes are not in staging/ any more");
    }
    memcpy(ret_row->id, id, LAC_ID_SIZE);
    memcpy(ret_row->sha256, sha256, LAC_SHA256_SIZE);
    ret_row->bytes = size_bytes;
    return lac_remote_put_hashed(store, ret_row, path, reterr);
}

enum lac_status lac_store_acknowledge(struct lac_store *store, const char *id,
                                      const uint8_t *sha256, uint64_t size_bytes,
                                      struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    struct lac_statement *update = NULL;
    struct lac_object_row object;
    enum lac_status status = lac_store_put_upload(store, id, sha256, size_bytes, &object, reterr);

    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = keep_facts(store, id, sha256, size_bytes, reterr);
    (void)pthread_mutex_unlock(&store->lock);
    if (status != LAC_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_begin(store->catalog, true, reterr);
    if (status == LAC_OK) {
        status = lac_db_prepare(store->catalog,
                                "UPDATE traces SET state = 1, sha256 = ?, size_bytes = ? "
                                "WHERE id = ? AND state = 0",
                                &update, reterr);
        if (status == LAC_OK) {
            lac_db_bind_blob(update, 1, sha256, LAC_SHA256_SIZE);
            lac_db_bind_i64(update, 2, (int64_t)size_bytes);
            lac_db_bind_text(update, 3, id);
            status = lac_db_step_done(update, "catalog", reterr);
        }
        if (status == LAC_OK && lac_db_changes(store->catalog) != 1) {
            status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "the upload was removed meanwhile");
        }
        lac_db_finalize(update);
        if (status == LAC_OK && object.bytes > 0) {
            status = lac_catalog_put_object(store->catalog, &object, reterr);
        }
        status = lac_db_end(store->catalog, status, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_fail(struct lac_store *store, const char *id, const char *code,
                               const char *message, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    const char *texts[3] = {code, message, id};

    return change(store, true,
                  "UPDATE traces SET state = 3, error_code = ?1, error_message = ?2 "
                  "WHERE id = ?3 AND state IN (0, 1)",
                  texts, 3, NULL, reterr);
}

enum lac_status lac_store_lose(struct lac_store *store, const char *id, const char *message,
                               struct lac_error *reterr)
{
    const char *texts[2] = {message, id};

    return change(store, true,
                  "UPDATE traces SET state = 3, error_code = 'lost', error_message = ?1 "
                  "WHERE id = ?2 AND state = 2",
                  texts, 2, NULL, reterr);
}

enum lac_status lac_store_drop(struct lac_store *store, const char *id, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    const char *texts[1] = {id};

    return change(store, false, "DELETE FROM traces WHERE id = ? AND state IN (0, 1)", texts, 1,
                  NULL, reterr);
}

enum lac_status lac_store_find_content(struct lac_store *store, const char *project,
                                       const char *name, const uint8_t *sha256, char *ret_id,
                                       struct lac_error *reterr)
{
    assert(store != NULL && ret_id != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            "SELECT t.id FROM traces t LEFT JOIN projects p ON p.id = t.project "
                            "WHERE t.sha256 = ?1 AND (?2 IS NULL OR t.name = ?2 OR t.run IN "
                            "(SELECT r.id FROM runs r WHERE r.name = ?2)) "
                            "AND coalesce(p.name, '') = ?3 AND t.state IN (1, 2) "
                            "ORDER BY t.seq LIMIT 1",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_blob(get, 1, sha256, LAC_SHA256_SIZE);
        lac_db_bind_text(get, 2, name);
        lac_db_bind_text(get, 3, project != NULL ? project : "");
        status = lac_db_step_row(get, "catalog", reterr);
    }
    if (status == LAC_OK) {
        (void)snprintf(ret_id, LAC_ID_SIZE, "%s", lac_db_text(get, 0));
    }
    lac_db_finalize(get);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/** Ids that a statement selects; finalizes it. */
static enum lac_status collect_ids(struct lac_statement *get, char (**ret_ids)[LAC_ID_SIZE],
                                   uint32_t *ret_count, struct lac_error *reterr)
{
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    enum lac_status status = LAC_OK;

    while (status == LAC_OK) {
        status = lac_db_step_row(get, "catalog", reterr);
        if (status == LAC_OK && !LAC_RESERVE(ids, capacity, count, 1)) {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
        if (status == LAC_OK) {
            (void)snprintf(ids[count++], LAC_ID_SIZE, "%s", lac_db_text(get, 0));
        }
    }
    lac_db_finalize(get);
    if (status != LAC_ERR_NOT_FOUND) {
        free(ids);
        return status;
    }
    *ret_ids = ids;
    *ret_count = count;
    return LAC_OK;
}

enum lac_status lac_store_list_state(struct lac_store *store, enum lac_trace_state state,
                                     char (**ret_ids)[LAC_ID_SIZE], uint32_t *ret_count,
                                     struct lac_error *reterr)
{
    assert(store != NULL && ret_count != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog, "SELECT id FROM traces WHERE state = ? ORDER BY seq",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_i64(get, 1, state);
        status = collect_ids(get, ret_ids, ret_count, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

enum lac_status lac_store_list_failed(struct lac_store *store, const char *code,
                                      char (**ret_ids)[LAC_ID_SIZE], uint32_t *ret_count,
                                      struct lac_error *reterr)
{
    assert(store != NULL && ret_count != NULL);
    struct lac_statement *get = NULL;
    enum lac_status status;

    (void)pthread_mutex_lock(&store->lock);
    status = lac_db_prepare(store->catalog,
                            "SELECT id FROM traces WHERE state = 3 AND error_code = ? "
                            "ORDER BY seq",
                            &get, reterr);
    if (status == LAC_OK) {
        lac_db_bind_text(get, 1, code);
        status = collect_ids(get, ret_ids, ret_count, reterr);
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/* -- what the host did wrong ------------------------------------------------------------------- */

bool lac_store_host_failed(const char *code)
{
    static const char *const codes[] = {"io",     "no_space",       "out_of_memory", "crashed",
                                        "killed", "resource_limit", "busy"};

    for (size_t i = 0; code != NULL && i < LAC_COUNT_OF(codes); i++) {
        if (strcmp(code, codes[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool lac_store_upload_is_kept(const struct lac_store *store, const char *id)
{
    assert(store != NULL && id != NULL);
    char path[LAC_STORE_PATH_SIZE];
    struct stat info;

    return lac_store_path(store, path, "staging", id, "/" LAC_STAGED_UPLOAD) &&
           lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool lac_store_staging_is_wanted(struct lac_store *store, const char *id)
{
    struct lac_trace_row row;
    struct lac_error error;
    enum lac_status status = lac_catalog_get(store->catalog, id, false, &row, &error);
    bool wanted = status != LAC_ERR_NOT_FOUND; /* in doubt nothing is removed */

    if (status == LAC_OK) {
        wanted = row.state == LAC_TRACE_IMPORTING ||
                 (row.state == LAC_TRACE_FAILED && lac_store_host_failed(row.error_code));
        lac_trace_row_done(&row);
    }
    return wanted;
}

enum lac_status lac_store_retry(struct lac_store *store, const char *id, struct lac_error *reterr)
{
    assert(store != NULL && id != NULL);
    struct lac_trace_row row;
    const char *texts[2] = {id, NULL};
    int changes = 0;
    enum lac_status status = lac_store_get_trace(store, id, &row, reterr);

    if (status != LAC_OK) {
        return status;
    }
    if (row.state == LAC_TRACE_FAILED && lac_store_host_failed(row.error_code)) {
        texts[1] = row.error_code; /* so that nobody else has tried and failed meanwhile */
        status = change(store, true,
                        "UPDATE traces SET state = 1, error_code = NULL, error_message = NULL "
                        "WHERE id = ?1 AND state = 3 AND error_code = ?2",
                        texts, 2, &changes, reterr);
    }
    lac_trace_row_done(&row);
    if (status == LAC_OK && changes != 1) {
        status = lac_fail(reterr, LAC_ERR_MISUSE, 0,
                          "only an import that failed for this machine's reasons can be tried "
                          "again");
    }
    return status;
}
