/*
 * Several servers with one catalog in PostgreSQL and one object storage: one holds the catalog and
 * writes, the others answer what only reads. What the holder does is told by notifications, so that
 * the others forget what they know and tell those who listen to them.
 *
 * A text is "ID c" (changed), "ID d" (deleted) or "ID m STATE DONE TOTAL RATE EVENTS ETA" (an import
 * moves on; ETA is - where it is unknown).
 */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/store/database/holder.h"
#include "server/store/database/postgres_catalog.h"
#include "server/store/publish.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/pieces/pieces.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- the holder ----------------------------------------------------------------------------------*/

void lac_store_tell_standby(struct lac_store *store, const char *id, bool deleted,
                            const struct lac_store_moving *moving)
{
    char text[LAC_HOLD_TEXT_BYTES];
    char eta[32] = "-";

    if (store->hold == NULL || !lac_store_id_is_valid(id)) {
        return;
    }
    if (moving == NULL) {
        (void)snprintf(text, sizeof(text), "%s %c", id, deleted ? 'd' : 'c');
    } else {
        if (!isnan(moving->eta_s)) {
            (void)snprintf(eta, sizeof(eta), "%.1f", moving->eta_s);
        }
        (void)snprintf(text, sizeof(text),
                       "%s m %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", id,
                       moving->state, moving->done_bytes, moving->total_bytes, moving->bytes_per_s,
                       moving->events, eta);
    }
    lac_hold_tell(store->hold, text, LAC_ID_SIZE - 1);
}

void lac_store_recheck(struct lac_store *store, const char *id)
{
    if (store->only_reads && lac_store_id_is_valid(id)) {
        lac_standby_recheck(store, id);
    }
}

enum lac_status lac_store_announce(struct lac_store *store, const char *address, char *ret_secret,
                                   struct lac_error *reterr)
{
    const bool is_known = ret_secret[0] != '\0';
    char secret[LAC_ID_SIZE];
    enum lac_status status = LAC_OK;

    if (store->hold == NULL) {
        return LAC_OK;
    }
    if (is_known) {
        (void)snprintf(secret, sizeof(secret), "%s", ret_secret);
    } else {
        status = lac_store_new_id(secret, reterr);
    }
    if (status == LAC_OK) {
        (void)pthread_mutex_lock(&store->lock);
        status = lac_holder_announce(store->catalog, address, secret, reterr);
        (void)pthread_mutex_unlock(&store->lock);
    }
    if (status == LAC_OK && !is_known) {
        memcpy(ret_secret, secret, sizeof(secret));
    }
    return status;
}

/* -- the others ----------------------------------------------------------------------------------*/

static void hear_change(void *context)
{
    const struct lac_store *const store = context;

    store->ears.changed(store->ears.context);
}

static void hear_missed(void *context)
{
    lac_standby_recheck(context, NULL);
}

/** The numbers of an import that moves on. @return false: it is no such text */
static bool read_moving(const char *text, struct lac_store_moving *moving)
{
    uint64_t state;
    uint64_t *const numbers[] = {&state, &moving->done_bytes, &moving->total_bytes,
                                 &moving->bytes_per_s, &moving->events};

    for (size_t i = 0; i < LAC_COUNT_OF(numbers); i++) {
        char *end;

        if (text[0] != ' ' || text[1] < '0' || text[1] > '9') {
            return false;
        }
        *numbers[i] = strtoull(text + 1, &end, 10);
        text = end;
    }
    if (state > LAC_TRACE_FAILED || text[0] != ' ') {
        return false;
    }
    moving->state = (uint32_t)state;
    moving->eta_s = strcmp(text, " -") == 0 ? (double)NAN : strtod(text + 1, NULL);
    return true;
}

static void hear_trace(void *context, const char *text)
{
    struct lac_store *const store = context;
    struct lac_store_moving moving = {0};
    char id[LAC_ID_SIZE];
    char kind;

    (void)snprintf(id, sizeof(id), "%s", text);
    if (!lac_store_id_is_valid(id) || strlen(text) < LAC_ID_SIZE + 1 ||
        text[LAC_ID_SIZE - 1] != ' ') {
        return;
    }
    kind = text[LAC_ID_SIZE];
    if (kind == 'm' && !read_moving(text + LAC_ID_SIZE + 1, &moving)) {
        return;
    }
    if (kind != 'm') {
        lac_standby_recheck(store, id);
    }
    store->ears.trace(store->ears.context, id, kind == 'd', kind == 'm' ? &moving : NULL);
}

static void hear_holder(void *context, const struct lac_holder_seen *seen)
{
    const struct lac_store *const store = context;
    struct lac_store_holder holder = {.node = "", .address = "", .secret = ""};

    if (seen != NULL) {
        holder.node = seen->node;
        holder.address = seen->address;
        holder.secret = seen->secret;
        holder.is_there = seen->silent_ms < LAC_HOLD_MS;
    }
    store->ears.holder(store->ears.context, seen != NULL ? &holder : NULL);
}

enum lac_status lac_store_watch(struct lac_store *store, const struct lac_store_ears *ears,
                                struct lac_error *reterr)
{
    assert(store != NULL && ears != NULL && store->only_reads && store->watch == NULL);
    const struct lac_watch_ears all = {.changed = hear_change,
                                       .trace = hear_trace,
                                       .missed = hear_missed,
                                       .holder = hear_holder,
                                       .context = store};
    char home[sizeof(store->data_dir)];

    /* catalog.url is in the folder around the copies */
    (void)snprintf(home, sizeof(home), "%.*s",
                   (int)(strrchr(store->data_dir, '/') - store->data_dir), store->data_dir);
    store->ears = *ears;
    return lac_db_watch_elsewhere(home, &all, &store->watch, reterr);
}

void lac_store_watch_stop(struct lac_store *store)
{
    lac_watch_stop(store->watch);
    store->watch = NULL;
}

/* -- their copies --------------------------------------------------------------------------------*/

/** Whether what the copy was made of can be kept in mind: else it would never be known for old. */
enum lac_status lac_standby_know_copy(struct lac_store *store, const struct lac_object_row *row,
                                      struct lac_error *reterr)
{
    uint32_t i = 0;
    enum lac_status status = LAC_OK;

    if (!store->only_reads || row->kind != LAC_OBJECT_TRACE) {
        return LAC_OK;
    }
    (void)pthread_mutex_lock(&store->lock);
    while (i < store->known_count && strcmp(store->known[i].id, row->id) != 0) {
        i++;
    }
    if (!LAC_RESERVE(store->known, store->known_capacity, i, 1)) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else {
        memcpy(store->known[i].id, row->id, LAC_ID_SIZE);
        memcpy(store->known[i].sha256, row->sha256, LAC_SHA256_SIZE);
        store->known_count += i == store->known_count;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

/** With the store's lock. In doubt (the catalog is away) it stays. */
static bool is_outdated(struct lac_store *store, const struct lac_known_copy *copy)
{
    struct lac_object_row row;
    struct lac_error ignored = {0};
    const enum lac_status status =
        lac_catalog_get_object(store->catalog, LAC_OBJECT_TRACE, copy->id, &row, &ignored);

    return status == LAC_ERR_NOT_FOUND ||
           (status == LAC_OK && memcmp(row.sha256, copy->sha256, sizeof(row.sha256)) != 0);
}

void lac_standby_recheck(struct lac_store *store, const char *id)
{
    for (uint32_t i = 0;; i++) {
        struct lac_known_copy copy;
        bool is_old;

        (void)pthread_mutex_lock(&store->lock);
        while (i < store->known_count && id != NULL && strcmp(store->known[i].id, id) != 0) {
            i++;
        }
        if (i >= store->known_count) {
            (void)pthread_mutex_unlock(&store->lock);
            return;
        }
        copy = store->known[i];
        is_old = is_outdated(store, &copy);
        (void)pthread_mutex_unlock(&store->lock);
        if (is_old) {
            lac_remote_drop_copy(store, copy.id);
        }
    }
}

void lac_standby_forget_all(struct lac_store *store)
{
    char path[LAC_STORE_PATH_SIZE];

    for (uint32_t i = 0; i < store->known_count; i++) {
        if (lac_store_path(store, path, "traces", store->known[i].id, ".db")) {
            lac_pieces_forget(path);
        }
    }
    free(store->known);
    store->known = NULL;
    store->known_count = 0;
    store->known_capacity = 0;
}

/** An object of which ranges are read. */
struct ranges {
    struct lac_objects *objects;
    char name[LAC_OBJECT_NAME_SIZE];
};

static enum lac_status read_range(void *context, uint64_t offset, void *out, size_t size_bytes,
                                  struct lac_error *reterr)
{
    const struct ranges *const ranges = context;

    const enum lac_status status =
        lac_objects_get_range(ranges->objects, ranges->name, offset, out, size_bytes, reterr);

    return status == LAC_ERR_NOT_FOUND ? lac_fail(reterr, LAC_ERR_IO, 0, "%s is not in %s any more",
                                                  ranges->name, lac_objects_url(ranges->objects))
                                       : status;
}

/** A file whose pieces come as they are read. Its pages carry checksums, or it is fetched whole.
 *  @return LAC_ERR_MISUSE: this one is to be fetched whole */
enum lac_status lac_standby_fetch_pieces(struct lac_store *store, const struct lac_object_row *row,
                                         const char *path, struct lac_error *reterr)
{
    enum { FIRST_BYTES = 4 * LAC_PIECE_BYTES };
    struct ranges *const ranges = calloc(1, sizeof(*ranges));
    const size_t first_bytes = row->bytes < FIRST_BYTES ? (size_t)row->bytes : FIRST_BYTES;
    uint8_t *const first = malloc(FIRST_BYTES);
    const struct lac_pieces_source source = {
        .read = read_range, .done = free, .context = ranges, .size_bytes = row->bytes};
    enum lac_status status = LAC_OK;

    if (ranges == NULL || first == NULL) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    } else {
        ranges->objects = lac_remote_storage(store, reterr);
        lac_object_name(row, ranges->name);
        status = ranges->objects == NULL ? LAC_ERR_IO
                                         : read_range(ranges, 0, first, first_bytes, reterr);
    }
    if (status == LAC_OK && !lac_checked_begins(first, first_bytes)) {
        status = LAC_ERR_MISUSE;
    }
    if (status == LAC_OK) {
        status = lac_pieces_make(path, &source, first, first_bytes, reterr);
    }
    if (status != LAC_OK) {
        free(ranges);
    }
    free(first);
    return status;
}

static void remove_files(const char *path)
{
    char inner[LAC_STORE_PATH_SIZE];
    DIR *const folder = opendir(path);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            snprintf(inner, sizeof(inner), "%.3800s/%s", path, entry->d_name) <
                (int)sizeof(inner)) {
            (void)unlink(inner); /* not a folder's, nor through a link */
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

enum lac_status lac_store_clear_standby(const char *data_dir, bool make, struct lac_error *reterr)
{
    static const char *const folders[] = {"traces", "originals", "staging", "fetch"};
    char path[LAC_STORE_PATH_SIZE];
    struct stat info;

    for (size_t i = 0; i < LAC_COUNT_OF(folders); i++) {
        (void)snprintf(path, sizeof(path), "%.3800s/standby/%s", data_dir, folders[i]);
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            remove_files(path);
            (void)rmdir(path);
        }
    }
    (void)snprintf(path, sizeof(path), "%.3800s/standby", data_dir);
    (void)rmdir(path);
    if (make && mkdir(path, 0700) != 0 && errno != EEXIST) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot make the folder %s: %s", path,
                        strerror(errno));
    }
    return LAC_OK;
}
