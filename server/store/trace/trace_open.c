#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_MAX_BYTES = 4096, STANDALONE_CACHE_BYTES = 64 << 20 };

enum lac_status lac_trace_corrupt(const struct lac_trace_file *file, struct lac_error *reterr,
                                  const char *what)
{
    return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s is damaged (%s): " LAC_SQL_DAMAGE_ADVICE,
                    file->label, what);
}

/** SQLite takes immutable only from a URI: percent-encode the path. @return false when too long */
static bool path_to_uri(const char *path, char *out, size_t capacity_bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char tail[] = "?immutable=1&mode=ro";
    size_t used = (size_t)snprintf(out, capacity_bytes, "file:");

    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("/._-~+,", c) != NULL;

        if (used + 4 > capacity_bytes) {
            return false;
        }
        if (plain) {
            out[used++] = (char)c;
        } else {
            out[used++] = '%';
            out[used++] = hex[c >> 4];
            out[used++] = hex[c & 15];
        }
    }
    if (used + sizeof(tail) > capacity_bytes) {
        return false;
    }
    memcpy(out + used, tail, sizeof(tail));
    return true;
}

/** Open read only, as a file that may be hostile and that nobody changes. */
static enum lac_status open_database(struct lac_trace_file *file, const char *path,
                                     struct lac_error *reterr)
{
    char uri[PATH_MAX_BYTES];
    struct stat status;
    uint64_t bad_offset = 0;
    enum lac_status result;

    if (stat(path, &status) != 0) {
        return lac_fail(reterr, errno == ENOENT ? LAC_ERR_NOT_FOUND : LAC_ERR_IO, 0,
                        "cannot open the trace file %s: %s", file->label, strerror(errno));
    }
    file->file_bytes = (uint64_t)status.st_size;
    if (!path_to_uri(path, uri, sizeof(uri))) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the path of the trace file is too long");
    }
    if (sqlite3_open_v2(uri, &file->db,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                        LAC_CHECKED_VFS) != SQLITE_OK) {
        return lac_sql_fail(file->db, "cannot open the trace file", reterr);
    }
    (void)sqlite3_db_config(file->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(file->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(file->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(file->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_limit(file->db, SQLITE_LIMIT_ATTACHED, 0);
    result = lac_sql_run(file->db,
                         "PRAGMA query_only=1; PRAGMA cell_size_check=1; PRAGMA cache_size=-2048;"
                         "PRAGMA mmap_size=0",
                         reterr);
    return result == LAC_ERR_CORRUPT && !lac_checked_damage(file->db, &bad_offset)
               ? lac_trace_corrupt(file, reterr, "no SQLite file")
               : result;
}

static enum lac_status create(struct lac_cache *cache, struct lac_cache *model_cache,
                              struct lac_trace_file **ret_file)
{
    struct lac_trace_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (pthread_mutex_init(&file->db_lock, NULL) != 0) {
        free(file);
        return LAC_ERR_NOMEM;
    }
    if (pthread_mutex_init(&file->lazy_lock, NULL) != 0) {
        (void)pthread_mutex_destroy(&file->db_lock);
        free(file);
        return LAC_ERR_NOMEM;
    }
    file->cache = cache;
    file->model_cache = model_cache;
    file->owner = lac_cache_new_owner(cache);
    *ret_file = file;
    return LAC_OK;
}

enum lac_status lac_trace_file_open_with(const char *path, struct lac_cache *cache,
                                         struct lac_cache *model_cache,
                                         struct lac_trace_file **ret_file, struct lac_error *reterr)
{
    struct lac_trace_file *file = NULL;
    enum lac_status status = lac_sql_init(reterr);

    if (status == LAC_OK) {
        status = create(cache, model_cache, &file);
    }
    if (status == LAC_OK) {
        lac_sql_label(path, file->label, sizeof(file->label));
        status = open_database(file, path, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_meta(file, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_strings(file, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_rows(file, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_settings(file, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_index(file, reterr);
    }
    if (status == LAC_OK) {
        status = lac_sql_prepare(file->db, "SELECT bytes FROM blob WHERE id = ?", &file->get_blob,
                                 reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_read_steps(file, reterr);
    }
    if (status != LAC_OK) {
        if (status == LAC_ERR_NOMEM) {
            (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory while opening a trace");
        }
        lac_trace_file_close(file);
        return status;
    }
    *ret_file = file;
    return LAC_OK;
}

enum lac_status lac_trace_file_open(const char *path, uint64_t cache_bytes,
                                    struct lac_trace_file **ret_file, struct lac_error *reterr)
{
    struct lac_cache *cache = NULL;
    struct lac_cache *model_cache = NULL;
    enum lac_status status =
        lac_cache_create(cache_bytes > 0 ? cache_bytes : STANDALONE_CACHE_BYTES, &cache);

    if (status == LAC_OK) {
        status = lac_cache_create((uint64_t)1 << 40, &model_cache);
    }
    if (status == LAC_OK) {
        status = lac_trace_file_open_with(path, cache, model_cache, ret_file, reterr);
    }
    if (status != LAC_OK) {
        lac_cache_destroy(cache);
        lac_cache_destroy(model_cache);
        return status;
    }
    (*ret_file)->owns_caches = true;
    return LAC_OK;
}

static void lazy_done(struct lac_trace_lazy *lazy)
{
    free(lazy->stats);
    free(lazy->postings);
    lac_gap_table_done(&lazy->gaps);
    lac_gap_table_done(&lazy->long_gaps);
    free(lazy->kernels.rows);
    free(lazy->step_start_ns);
    free(lazy->step_host_start_ns);
    free(lazy->step_host_dur_ns);
    free(lazy->step_dur_ns);
    free(lazy->step_name);
    free(lazy->is_left_out);
}

static void head_done(struct lac_model *head)
{
    free(head->processes);
    free(head->tracks);
    free(head->devices);
    lac_settings_done(&head->settings);
    lac_strings_done(&head->strings);
}

void lac_trace_file_close(struct lac_trace_file *file)
{
    if (file == NULL) {
        return;
    }
    lac_cache_drop_owner(file->cache, file->owner);
    lac_cache_drop_owner(file->model_cache, file->owner);
    (void)sqlite3_finalize(file->get_blob);
    (void)sqlite3_finalize(file->get_totals);
    (void)sqlite3_finalize(file->get_open);
    (void)sqlite3_close(file->db);
    if (file->owns_caches) {
        lac_cache_destroy(file->cache);
        lac_cache_destroy(file->model_cache);
    }
    lazy_done(&file->lazy);
    head_done(&file->head);
    free((void *)file->roles);
    free(file->chunks);
    free(file->track_chunk);
    free(file->tile_keys);
    free(file->tile_blobs);
    (void)pthread_mutex_destroy(&file->db_lock);
    (void)pthread_mutex_destroy(&file->lazy_lock);
    free(file);
}

const struct lac_model *lac_trace_file_head(const struct lac_trace_file *file)
{
    return &file->head;
}

uint32_t lac_trace_file_generation(const struct lac_trace_file *file)
{
    return file->generation;
}

uint8_t lac_trace_file_level_max(const struct lac_trace_file *file)
{
    return file->level_max;
}

const char *lac_trace_file_track_role(const struct lac_trace_file *file, uint32_t track)
{
    return track < file->head.track_count ? file->roles[track] : NULL;
}

void lac_trace_file_steps(const struct lac_trace_file *file, struct lac_trace_steps *ret_steps)
{
    *ret_steps = (struct lac_trace_steps){.count = file->lazy.step_count,
                                          .start_ns = file->lazy.step_start_ns,
                                          .dur_ns = file->lazy.step_dur_ns,
                                          .host_start_ns = file->lazy.step_host_start_ns,
                                          .host_dur_ns = file->lazy.step_host_dur_ns,
                                          .name = file->lazy.step_name};
}

enum lac_status lac_trace_read_blob(struct lac_trace_file *file, int64_t id, uint8_t **ret_bytes,
                                    size_t *ret_size_bytes, struct lac_error *reterr)
{
    uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    enum lac_status status;

    (void)pthread_mutex_lock(&file->db_lock);
    lac_sql_bind_i64(file->get_blob, 1, id);
    status = lac_sql_step_row(file->get_blob, "trace file", reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        status = lac_trace_corrupt(file, reterr, "a blob is missing");
    }
    if (status == LAC_OK) {
        const void *data = sqlite3_column_blob(file->get_blob, 0);

        size_bytes = (size_t)sqlite3_column_bytes(file->get_blob, 0);
        bytes = malloc(size_bytes + 1);
        if (bytes == NULL || (data == NULL && size_bytes > 0)) {
            status = LAC_ERR_NOMEM;
        } else if (size_bytes > 0) {
            memcpy(bytes, data, size_bytes);
        }
    }
    lac_sql_reset(file->get_blob);
    (void)pthread_mutex_unlock(&file->db_lock);
    if (status != LAC_OK) {
        free(bytes);
        return status;
    }
    *ret_bytes = bytes;
    *ret_size_bytes = size_bytes;
    return LAC_OK;
}
