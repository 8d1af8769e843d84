/*
 * What a start makes of the data folder, with the folder's lock held: deletions and publications
 * that were interrupted are finished, and rows and files are made to agree. The files decide: a row
 * says what the facts in its file say, a file without a row gets one, a row without a file says so.
 * What belongs to nothing goes to lost/. No trace and no original is removed here but those that
 * somebody deleted.
 */

#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/sql.h"
#include "server/store/trace_facts.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOST_MESSAGE                                                                               \
    "its file is not in the data folder any more: it was deleted or moved away; put it back into " \
    "traces/ and start again, or upload the trace again"

enum { NAMES_TOLD = 3, NOTICE_BYTES = 512 };

struct id_list {
    char (*ids)[LAC_ID_SIZE];
    uint32_t count;
    uint32_t capacity;
};

struct recovery {
    struct lac_store *store;
    struct lac_error *reterr;
    enum lac_status status;
    struct id_list traces;         /**< in trash/ when this began: deleted traces */
    struct id_list uploads;        /**< and uploads that were deleted before they were traces */
    struct lac_trace_facts *found; /**< files whose rows are missing or say something else */
    uint32_t found_count, found_capacity;
};

void lac_store_tell(const struct lac_store *store, const char *fmt, ...)
{
    char line[NOTICE_BYTES];
    va_list args;

    if (store->notice == NULL) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    store->notice(store->notice_context, line);
}

/* -- small things -------------------------------------------------------------------------------*/

/** Those who look at the list of traces hear of it: only while they can, not at a start. */
static void tell_changed(const struct recovery *recovery, const char *id, bool deleted)
{
    const struct lac_store *store = recovery->store;

    if (store->is_live && store->changed != NULL) {
        store->changed(store->changed_context, id, deleted);
    }
}

/** A full disk ends no start: what had no room is done when there is some. */
static void take_status(struct recovery *recovery, enum lac_status status)
{
    if (status != LAC_OK && lac_sql_is_full(recovery->reterr)) {
        recovery->store->sweep_is_due = true;
        *recovery->reterr = (struct lac_error){0};
    } else if (status != LAC_OK) {
        recovery->status = status;
    }
}

/** Call for each entry of a folder of the data folder; nothing when there is no such folder. */
static void each_entry(struct recovery *recovery, const char *folder_name,
                       void (*visit)(struct recovery *, const char *name))
{
    char path[LAC_STORE_PATH_SIZE];
    DIR *folder;
    const struct dirent *entry;

    (void)lac_store_path(recovery->store, path, folder_name, NULL, NULL);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            visit(recovery, entry->d_name);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/** State of a trace, or -1 when there is no row. In doubt 1: nothing is done then. */
static int state_of(struct recovery *recovery, const char *id)
{
    int64_t state = LAC_TRACE_IMPORTING;
    struct lac_error error;
    enum lac_status status =
        lac_catalog_number(recovery->store->catalog, "state", id, &state, &error);

    return status == LAC_ERR_NOT_FOUND ? -1 : (int)state;
}

bool lac_store_set_aside(struct lac_store *store, const char *folder, const char *name,
                         const char *why)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];
    char unique[300];
    struct stat info;

    (void)lac_store_path(store, to, "lost", NULL, NULL);
    if (mkdir(to, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    (void)snprintf(unique, sizeof(unique), "%s", name);
    for (int i = 1; lac_store_path(store, to, "lost", unique, NULL) && lstat(to, &info) == 0; i++) {
        (void)snprintf(unique, sizeof(unique), "%s.%d", name, i); /* nothing is written over */
    }
    if (!lac_store_path(store, from, folder, name, NULL) || rename(from, to) != 0) {
        return false;
    }
    lac_store_tell(store, "%s/%s %s: moved to lost/%s", folder, name, why, unique);
    return true;
}

static bool was_deleted_upload(const struct recovery *recovery, const char *id)
{
    for (uint32_t i = 0; i < recovery->uploads.count; i++) {
        if (strcmp(recovery->uploads.ids[i], id) == 0) {
            return true;
        }
    }
    return false;
}

/** Take the facts. */
static void add_found(struct recovery *recovery, struct lac_trace_facts *facts)
{
    if (!LAC_RESERVE(recovery->found, recovery->found_capacity, recovery->found_count, 1)) {
        recovery->status = lac_fail(recovery->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        lac_trace_facts_done(facts);
        return;
    }
    recovery->found[recovery->found_count++] = *facts;
    *facts = (struct lac_trace_facts){0};
}

/* -- deletions ----------------------------------------------------------------------------------*/

static void note_deleted(struct recovery *recovery, const char *name)
{
    char id[LAC_ID_SIZE];
    struct id_list *list = lac_store_id_of(name, ".db", id)       ? &recovery->traces
                           : lac_store_id_of(name, ".upload", id) ? &recovery->uploads
                                                                  : NULL;

    if (recovery->status != LAC_OK || list == NULL) {
        return;
    }
    if (!LAC_RESERVE(list->ids, list->capacity, list->count, 1)) {
        recovery->status = lac_fail(recovery->reterr, LAC_ERR_NOMEM, 0, "out of memory");
        return;
    }
    memcpy(list->ids[list->count++], id, LAC_ID_SIZE);
}

/** What somebody deleted stays deleted, also when the catalog is an older one. */
static void finish_deletions(struct recovery *recovery)
{
    struct lac_store *store = recovery->store;

    each_entry(recovery, "trash", note_deleted);
    for (uint32_t i = 0; i < recovery->traces.count && recovery->status == LAC_OK; i++) {
        char original[LAC_ID_SIZE] = "";
        char path[LAC_STORE_PATH_SIZE];
        enum lac_status status = lac_db_begin(store->catalog, true, recovery->reterr);

        if (status == LAC_OK) {
            status = lac_catalog_delete(store->catalog, recovery->traces.ids[i], original,
                                        recovery->reterr);
            status = lac_db_end(store->catalog, status, recovery->reterr);
        }
        if (status == LAC_OK && original[0] != '\0' &&
            lac_store_path(store, path, "originals", original, ".zst")) {
            (void)unlink(path);
        }
        if (status == LAC_OK) {
            tell_changed(recovery, recovery->traces.ids[i], true);
        }
        if (status != LAC_ERR_NOT_FOUND) {
            take_status(recovery, status);
        }
    }
}

static void empty_trash(struct recovery *recovery)
{
    const struct {
        const struct id_list *list;
        const char *ending;
    } kinds[] = {{&recovery->traces, ".db"}, {&recovery->uploads, ".upload"}};
    char path[LAC_STORE_PATH_SIZE];

    for (unsigned k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < kinds[k].list->count; i++) {
            const char *id = kinds[k].list->ids[i];

            if (state_of(recovery, id) < 0 &&
                lac_store_path(recovery->store, path, "trash", id, kinds[k].ending)) {
                (void)unlink(path);
            }
        }
    }
}

/* -- files --------------------------------------------------------------------------------------*/

/** Whether the catalog says what the facts say. */
static bool agrees(struct recovery *recovery, const struct lac_trace_facts *facts)
{
    struct lac_trace_facts known = {0};
    char *texts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    struct lac_error error;
    bool same = false;
    enum lac_status status =
        lac_catalog_facts(recovery->store->catalog, facts->row.id, &known, &error);

    if (status == LAC_OK && known.row.state == LAC_TRACE_READY) {
        status = lac_trace_facts_encode(facts, false, &texts[0], &sizes[0], &error);
        if (status == LAC_OK) {
            status = lac_trace_facts_encode(&known, false, &texts[1], &sizes[1], &error);
        }
        same =
            status == LAC_OK && sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0;
    }
    if (status != LAC_OK && status != LAC_ERR_NOT_FOUND && status != LAC_ERR_CORRUPT) {
        recovery->status = status;
        *recovery->reterr = error;
    }
    lac_trace_facts_done(&known);
    free(texts[0]);
    free(texts[1]);
    return same;
}

/** A file that says nothing of its own row: of version 1, or its end is cut off or damaged. */
static void take_silent_file(struct recovery *recovery, const char *name, const char *id)
{
    struct lac_store *store = recovery->store;
    struct lac_trace_facts facts = {0};
    char path[LAC_STORE_PATH_SIZE];
    struct lac_error error = {0};
    struct stat info;
    enum lac_status status;

    if (state_of(recovery, id) == LAC_TRACE_READY) {
        return; /* the row knows */
    }
    (void)lac_store_path(store, path, "traces", id, ".db");
    status = lac_publish_examine(store, path, false, &facts, &error);
    if (status == LAC_OK) {
        memcpy(facts.row.id, id, LAC_ID_SIZE);
        memcpy(facts.upload, id, LAC_ID_SIZE);
        facts.upload_count = 1;
        facts.row.project = strdup("");
        if (stat(path, &info) == 0) {
            facts.row.created_unix_ms = (int64_t)info.st_mtime * 1000;
        }
        if (lac_store_path(store, path, "originals", id, ".zst") && stat(path, &info) == 0) {
            memcpy(facts.original, id, LAC_ID_SIZE);
        }
        status = facts.row.project != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status == LAC_OK) {
        add_found(recovery, &facts);
    } else if (status == LAC_ERR_NOMEM) {
        recovery->status = lac_fail(recovery->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else if (status == LAC_ERR_CORRUPT || status == LAC_ERR_LIMIT) {
        (void)lac_store_set_aside(store, "traces", name, "cannot be opened and no row names it");
    }
    lac_trace_facts_done(&facts);
}

static void take_file(struct recovery *recovery, const char *name)
{
    struct lac_trace_facts facts = {0};
    char path[LAC_STORE_PATH_SIZE];
    char id[LAC_ID_SIZE];
    struct lac_error error = {0};
    enum lac_status status;

    if (recovery->status != LAC_OK) {
        return;
    }
    if (!lac_store_id_of(name, ".db", id)) {
        (void)lac_store_set_aside(recovery->store, "traces", name, "is not a trace file of ours");
        return;
    }
    (void)lac_store_path(recovery->store, path, "traces", name, NULL);
    status = lac_trace_facts_read(path, &facts, &error);
    if (status == LAC_OK && strcmp(facts.row.id, id) != 0) {
        (void)lac_store_set_aside(recovery->store, "traces", name,
                                  "is the file of another trace under a wrong name");
    } else if (status == LAC_OK) {
        if (was_deleted_upload(recovery, facts.upload) && state_of(recovery, id) < 0) {
            (void)unlink(path); /* deleted while it was published */
        } else if (!agrees(recovery, &facts) && recovery->status == LAC_OK) {
            add_found(recovery, &facts);
        }
    } else if (status == LAC_ERR_NOT_FOUND || status == LAC_ERR_CORRUPT) {
        take_silent_file(recovery, name, id);
    } else if (status == LAC_ERR_NOMEM) {
        recovery->status = status;
        *recovery->reterr = error;
    }
    lac_trace_facts_done(&facts);
}

/* -- publications -------------------------------------------------------------------------------*/

/** Move the rest of an upload whose first files are in traces/ already. */
static void finish_publication(struct recovery *recovery, const char *id)
{
    struct lac_store *store = recovery->store;
    struct lac_staging staging;
    struct lac_error error;
    char from[LAC_STORE_PATH_SIZE + 32];
    char to[LAC_STORE_PATH_SIZE];
    uint32_t first = 0;
    uint32_t count = 0;

    while (first < recovery->found_count && strcmp(recovery->found[first].upload, id) != 0) {
        first++;
    }
    if (first == recovery->found_count || !lac_store_id_is_valid(id) ||
        lac_staging_adopt(store, id, &staging, &error) != LAC_OK) {
        return;
    }
    count = recovery->found[first].upload_count;
    if (recovery->found[first].original[0] != '\0') {
        (void)snprintf(from, sizeof(from), "%s/" LAC_STAGED_ORIGINAL, staging.path);
        (void)lac_store_path(store, to, "originals", id, ".zst");
        (void)rename(from, to);
    }
    for (uint32_t n = 0; n < count && recovery->status == LAC_OK; n++) {
        struct lac_trace_facts facts = {0};

        (void)snprintf(from, sizeof(from), "%s/" LAC_STAGED_TRACE_FORMAT, staging.path, n);
        if (lac_trace_facts_read(from, &facts, &error) == LAC_OK && strcmp(facts.upload, id) == 0 &&
            lac_store_path(store, to, "traces", facts.row.id, ".db") && rename(from, to) == 0) {
            add_found(recovery, &facts);
        }
        lac_trace_facts_done(&facts);
    }
    lac_staging_close(&staging);
}

static int in_order(const void *a, const void *b)
{
    const struct lac_trace_facts *x = a;
    const struct lac_trace_facts *y = b;
    int by_upload = strcmp(x->upload, y->upload);

    if (x->row.created_unix_ms != y->row.created_unix_ms) {
        return x->row.created_unix_ms < y->row.created_unix_ms ? -1 : 1;
    }
    if (by_upload != 0) {
        return by_upload;
    }
    return LAC_ORDER(x->ordinal, y->ordinal);
}

static long long count_rows(const struct recovery *recovery, const char *sql)
{
    struct lac_statement *get = NULL;
    struct lac_error error;
    long long count = 0;

    if (lac_db_prepare(recovery->store->catalog, sql, &get, &error) == LAC_OK &&
        lac_db_step_row(get, "catalog.db", &error) == LAC_OK) {
        count = lac_db_i64(get, 0);
    }
    lac_db_finalize(get);
    return count;
}

/** Say how many rows were made or corrected, with the first names. */
static void tell_found(const struct recovery *recovery, uint32_t listed, uint32_t corrected)
{
    char names[NAMES_TOLD * (LAC_ID_SIZE + 16) + 16] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < recovery->found_count && i < NAMES_TOLD; i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%straces/%s.db",
                                 i > 0 ? ", " : "", recovery->found[i].row.id);
    }
    lac_store_tell(
        recovery->store,
        "catalog.db did not say what the trace files say: %u traces are listed again, "
        "%u rows corrected (%s%s); it names %lld traces, %lld projects and %lld runs now",
        listed, corrected, names, recovery->found_count > NAMES_TOLD ? ", ..." : "",
        count_rows(recovery, "SELECT count(*) FROM traces"),
        count_rows(recovery, "SELECT count(*) FROM projects"),
        count_rows(recovery, "SELECT count(*) FROM runs"));
}

/** Whether the upload's staging folder is there still: its publication did not end. */
static bool is_staged(const struct recovery *recovery, const char *upload)
{
    char path[LAC_STORE_PATH_SIZE];
    struct stat info;

    return lac_store_path(recovery->store, path, "staging", upload, NULL) &&
           lstat(path, &info) == 0;
}

/** Whether the catalog, which could be read, has the upload as waiting for its import. */
static bool is_waiting(const struct recovery *recovery, const char *upload)
{
    int64_t state = -1;
    struct lac_error error;

    return lac_catalog_number(recovery->store->catalog, "state", upload, &state, &error) ==
               LAC_OK &&
           state == LAC_TRACE_IMPORTING;
}

/** Files of uploads that the catalog still has as waiting go back to staging/: the upload is
 * imported once more, and a deletion until then is of all that there is. They count as not found. */
static void take_back(struct recovery *recovery)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE];
    char name[64];
    uint32_t kept = 0;

    for (uint32_t i = 0; i < recovery->found_count; i++) {
        struct lac_trace_facts *facts = &recovery->found[i];

        if (!is_staged(recovery, facts->upload) || !is_waiting(recovery, facts->upload)) {
            recovery->found[kept++] = *facts;
            continue;
        }
        (void)snprintf(name, sizeof(name), "/" LAC_STAGED_TRACE_FORMAT, facts->ordinal);
        if (lac_store_path(recovery->store, from, "traces", facts->row.id, ".db") &&
            lac_store_path(recovery->store, to, "staging", facts->upload, name)) {
            (void)rename(from, to);
        }
        if (facts->original[0] != '\0' &&
            lac_store_path(recovery->store, from, "originals", facts->original, ".zst") &&
            lac_store_path(recovery->store, to, "staging", facts->upload,
                           "/" LAC_STAGED_ORIGINAL)) {
            (void)rename(from, to);
        }
        lac_trace_facts_done(facts);
    }
    recovery->found_count = kept;
}

/** All rows of the files that were found, in one commit. */
static void list_found(struct recovery *recovery)
{
    struct lac_store *store = recovery->store;
    uint32_t listed = 0;
    uint32_t corrected = 0;
    enum lac_status status;

    if (recovery->found_count == 0 || recovery->status != LAC_OK) {
        return;
    }
    qsort(recovery->found, recovery->found_count, sizeof(*recovery->found), in_order);
    status = lac_db_begin(store->catalog, true, recovery->reterr);
    for (uint32_t i = 0; i < recovery->found_count && status == LAC_OK; i++) {
        const struct lac_trace_facts *facts = &recovery->found[i];
        int state = state_of(recovery, facts->row.id);

        status = lac_catalog_put_facts(store->catalog, facts, recovery->reterr);
        if (!is_staged(recovery, facts->upload)) { /* else it was cut off: that is usual */
            *(state < 0 ? &listed : &corrected) += 1;
        }
    }
    status = lac_db_end(store->catalog, status, recovery->reterr);
    if (status == LAC_OK) {
        if (listed + corrected > 0) {
            tell_found(recovery, listed, corrected);
        }
        for (uint32_t i = 0; i < recovery->found_count; i++) {
            tell_changed(recovery, recovery->found[i].row.id, false);
        }
        return;
    }
    take_status(recovery, status);
    if (recovery->status == LAC_OK) {
        lac_store_tell(store, "the disk is full: %u traces are listed again once there is room",
                       recovery->found_count);
        take_back(recovery);
    }
}

/* -- rows ---------------------------------------------------------------------------------------*/

/** Rows of traces whose files are not there say so. */
static void find_lost(struct recovery *recovery)
{
    struct lac_store *store = recovery->store;
    char(*ids)[LAC_ID_SIZE] = NULL;
    uint32_t count = 0;
    uint32_t lost = 0;
    enum lac_status status =
        lac_store_list_state(store, LAC_TRACE_READY, &ids, &count, recovery->reterr);

    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE];
        struct stat info;

        if (!lac_store_path(store, path, "traces", ids[i], ".db") || lstat(path, &info) == 0 ||
            errno != ENOENT || lac_remote_has(store, LAC_OBJECT_TRACE, ids[i])) {
            continue;
        }
        status = lac_store_lose(store, ids[i], LOST_MESSAGE, recovery->reterr);
        lost++;
        if (status == LAC_OK) {
            tell_changed(recovery, ids[i], false);
        }
    }
    free(ids);
    if (lost > 0 && status == LAC_OK) {
        lac_store_tell(store,
                       "%u traces are gone: catalog.db names them, but traces/ does not hold "
                       "their files",
                       lost);
    }
    take_status(recovery, status);
}

/** An upload whose bytes are all there, of which the catalog does not know that, or not any more:
 * its facts were written after its bytes and before its acknowledgement. */
static void take_upload(struct recovery *recovery, const char *id)
{
    struct lac_store *store = recovery->store;
    struct lac_trace_facts facts = {0};
    struct lac_object_row object;
    struct lac_staging staging;
    struct lac_error error;
    enum lac_status status;

    int state = lac_store_id_is_valid(id) ? state_of(recovery, id) : LAC_TRACE_READY;

    if (recovery->status != LAC_OK || state > LAC_TRACE_RECEIVING ||
        was_deleted_upload(recovery, id) ||
        lac_staging_adopt(store, id, &staging, &error) != LAC_OK) {
        return;
    }
    status = lac_staged_facts_read(&staging, &facts, &error);
    if (status == LAC_OK && strcmp(facts.row.id, id) == 0) {
        facts.row.state = LAC_TRACE_IMPORTING;
        if (lac_store_put_upload(store, id, facts.row.sha256, facts.row.size_bytes, &object,
                                 &error) != LAC_OK) {
            object.bytes = 0;
            lac_store_tell(store, "staging/%s is in no object storage until it is imported: %s", id,
                           error.message);
        }
        status = lac_db_begin(store->catalog, true, recovery->reterr);
        if (status == LAC_OK) {
            status = lac_catalog_put_facts(store->catalog, &facts, recovery->reterr);
            if (status == LAC_OK && object.bytes > 0) {
                status = lac_catalog_put_object(store->catalog, &object, recovery->reterr);
            }
            status = lac_db_end(store->catalog, status, recovery->reterr);
        }
        if (status == LAC_OK) {
            lac_store_tell(store,
                           "staging/%s is an upload that catalog.db did not name: it is "
                           "imported again",
                           id);
        } else {
            take_status(recovery, status);
        }
    }
    lac_trace_facts_done(&facts);
    lac_staging_close(&staging);
}

static void take_original(struct recovery *recovery, const char *name)
{
    struct lac_statement *get = NULL;
    struct lac_error error;
    char id[LAC_ID_SIZE];
    bool known = true; /* in doubt nothing is moved */

    if (lac_store_id_of(name, ".zst", id) &&
        lac_db_prepare(
            recovery->store->catalog,
            "SELECT 1 FROM traces WHERE original = ?1 OR (id = ?1 AND state = 1) LIMIT 1", &get,
            &error) == LAC_OK) {
        lac_db_bind_text(get, 1, id);
        known = lac_db_step_row(get, "catalog.db", &error) != LAC_ERR_NOT_FOUND;
    } else if (!lac_store_id_of(name, ".zst", id)) {
        known = false;
    }
    lac_db_finalize(get);
    if (!known) {
        (void)lac_store_set_aside(recovery->store, "originals", name, "belongs to no trace");
    }
}

enum lac_status lac_store_recover(struct lac_store *store, struct lac_error *reterr)
{
    struct recovery recovery = {.store = store, .reterr = reterr};

    store->sweep_is_due = false;
    finish_deletions(&recovery);
    each_entry(&recovery, "traces", take_file);
    if (lac_store_is_shared(store)) {
        take_back(&recovery); /* what is listed has to be in object storage, for another server */
    }
    if (recovery.status == LAC_OK && recovery.found_count > 0) {
        each_entry(&recovery, "staging", finish_publication);
    }
    list_found(&recovery);
    if (recovery.status == LAC_OK) {
        find_lost(&recovery);
    }
    if (!store->is_live) { /* else nobody would begin its import */
        each_entry(&recovery, "staging", take_upload);
    }
    if (recovery.status == LAC_OK && !store->sweep_is_due) {
        each_entry(&recovery, "originals", take_original);
        empty_trash(&recovery);
    }
    for (uint32_t i = 0; i < recovery.found_count; i++) {
        lac_trace_facts_done(&recovery.found[i]);
    }
    free(recovery.found);
    free(recovery.traces.ids);
    free(recovery.uploads.ids);
    return recovery.status;
}
