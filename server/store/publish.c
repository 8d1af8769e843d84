#include "server/store/publish.h"

#include "analysis/diagnose/result/finding_types.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/utf8.h"
#include "server/store/catalog.h"
#include "server/store/database/database.h"
#include "server/store/remote.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace_facts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** How often it is asked what became of a commit, each time with the patience of a connection. */
enum { UNSURE_TRIES = 30, UNSURE_PAUSE_MS = 100 };

/** A trace on its way: the row that it will have. */
struct arrival {
    struct lac_trace_facts facts;
    struct lac_object_row object;
    bool is_moved;
};

/** Valid UTF-8, whatever the importing child wrote: other bytes become '?'. */
static void make_utf8(char *text)
{
    uint8_t *at = (uint8_t *)text;
    const uint8_t *const end = at + strlen(text);

    while (*at != '\0') {
        const uint32_t length = lac_utf8_length(at, end);

        if (length == 0) {
            *at++ = '?';
        } else {
            at += length;
        }
    }
}

static char *clean_copy(const char *text)
{
    char *copy = strdup(text);

    if (copy != NULL) {
        make_utf8(copy);
    }
    return copy;
}

/** Distinct device names, a newline between them. */
static char *device_names(const struct lac_model *head)
{
    size_t capacity = 1;
    size_t used = 0;
    char *names;

    for (uint32_t d = 0; d < head->device_count; d++) {
        capacity += lac_strings_length(&head->strings, head->devices[d].name) + 1;
    }
    names = malloc(capacity);
    if (names == NULL) {
        return NULL;
    }
    for (uint32_t d = 0; d < head->device_count; d++) {
        uint32_t name = head->devices[d].name;
        bool seen = name == 0;

        for (uint32_t e = 0; e < d && !seen; e++) {
            seen = head->devices[e].name == name;
        }
        if (!seen) {
            size_t length = strlen(lac_model_str(head, name));

            if (used > 0) {
                names[used++] = '\n';
            }
            memcpy(names + used, lac_model_str(head, name), length);
            used += length;
        }
    }
    names[used] = '\0';
    make_utf8(names);
    return names;
}

static enum lac_status read_findings(struct lac_trace_file *file, struct lac_trace_facts *facts,
                                     struct lac_error *reterr)
{
    sqlite3_stmt *get = NULL;
    enum lac_status status =
        lac_sql_prepare(file->db, "SELECT * FROM finding ORDER BY rank", &get, reterr);

    facts->findings = calloc(LAC_FINDINGS_MAX, sizeof(*facts->findings));
    if (facts->findings == NULL) {
        (void)sqlite3_finalize(get);
        return LAC_ERR_NOMEM;
    }
    while (status == LAC_OK && facts->finding_count < LAC_FINDINGS_MAX) {
        status = lac_sql_step_row(get, "trace file", reterr);
        if (status == LAC_OK) {
            struct lac_finding_row *row = &facts->findings[facts->finding_count++];
            const char *id = (const char *)sqlite3_column_text(get, 1);
            const char *severity = (const char *)sqlite3_column_text(get, 2);
            const char *title = (const char *)sqlite3_column_text(get, 9);
            double reals[5];

            for (int i = 0; i < 5; i++) {
                reals[i] = sqlite3_column_type(get, 4 + i) == SQLITE_NULL
                               ? (double)NAN
                               : sqlite3_column_double(get, 4 + i);
            }
            *row =
                (struct lac_finding_row){.has_cost_ns = sqlite3_column_type(get, 3) != SQLITE_NULL,
                                         .cost_ns_per_step = sqlite3_column_int64(get, 3),
                                         .cost_pct = reals[0],
                                         .gain_low_pct = reals[1],
                                         .gain_mid_pct = reals[2],
                                         .gain_high_pct = reals[3],
                                         .confidence = reals[4]};
            (void)snprintf(row->finding_id, sizeof(row->finding_id), "%s", id != NULL ? id : "");
            (void)snprintf(row->severity, sizeof(row->severity), "%s",
                           severity != NULL ? severity : "");
            (void)snprintf(row->title, sizeof(row->title), "%s", title != NULL ? title : "");
            make_utf8(row->finding_id);
            make_utf8(row->severity);
            make_utf8(row->title);
        }
    }
    (void)sqlite3_finalize(get);
    return status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
}

static enum lac_status copy_report(const struct lac_model *head, struct lac_trace_row *row)
{
    row->report = calloc((size_t)head->report_count + 1, sizeof(*row->report));
    if (row->report == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < head->report_count; i++) {
        struct lac_trace_report_line *line = &row->report[row->report_count++];

        line->severity = (int)head->report[i].severity;
        line->count = head->report[i].count;
        line->first_offset_bytes = head->report[i].first_offset_bytes;
        memcpy(line->code, head->report[i].code, sizeof(line->code));
        memcpy(line->text, head->report[i].text, sizeof(line->text));
        make_utf8(line->code);
        make_utf8(line->text);
    }
    return LAC_OK;
}

static enum lac_status fill_row(struct lac_trace_file *file, struct lac_trace_row *row)
{
    const struct lac_model *head = lac_trace_file_head(file);
    const struct lac_trace_info *info = &head->info;

    row->state = LAC_TRACE_READY;
    row->generation = file->generation;
    row->event_count = info->event_count;
    row->slice_count = info->slice_count;
    row->dropped_count = info->dropped_count;
    row->repaired_count = info->repaired_count;
    row->duration_ns = info->duration_ns;
    row->t0_ns = info->t0_ns;
    row->rank = info->rank;
    row->is_simulated = info->is_simulated;
    row->device_count = head->device_count;
    row->file_bytes = file->file_bytes;
    row->summary = file->summary;
    make_utf8(row->summary.cause);
    make_utf8(row->summary.text);
    make_utf8(row->summary.throughput_unit);
    make_utf8(row->summary.next_change);
    make_utf8(row->summary.finding_id);
    make_utf8(row->summary.model);
    row->name = clean_copy(lac_model_str(head, info->name));
    row->format = clean_copy(lac_trace_format_name(info->format));
    row->device_names = device_names(head);
    if (info->host != 0) {
        row->host = clean_copy(lac_model_str(head, info->host));
    }
    if (row->name == NULL || row->format == NULL || row->device_names == NULL ||
        (info->host != 0 && row->host == NULL)) {
        return LAC_ERR_NOMEM;
    }
    return copy_report(head, row);
}

enum lac_status lac_publish_examine(struct lac_store *store, const char *path, bool is_new,
                                    struct lac_trace_facts *facts, struct lac_error *reterr)
{
    struct lac_trace_file *file = NULL;
    enum lac_status status =
        lac_trace_file_open_with(path, store->cache, store->model_cache, &file, reterr);

    if (status == LAC_OK && is_new && !lac_checked_is_on(file->db)) {
        status = lac_trace_corrupt(file, reterr, "it has no checksums");
    }
    if (status == LAC_OK) {
        status = fill_row(file, &facts->row);
    }
    if (status == LAC_OK) {
        status = read_findings(file, facts, reterr);
    }
    lac_trace_file_close(file);
    return status;
}

/** What the file cannot say: ids, where it belongs, what was uploaded. */
static enum lac_status complete(const struct lac_publication *what, struct arrival *arrivals,
                                uint32_t index, const char *run, struct lac_error *reterr)
{
    struct lac_trace_facts *facts = &arrivals[index].facts;
    struct lac_trace_row *row = &facts->row;
    enum lac_status status = LAC_OK;

    (void)snprintf(facts->upload, sizeof(facts->upload), "%s", what->staging->id);
    facts->ordinal = index;
    facts->upload_count = what->trace_count;
    if (what->has_original) {
        (void)snprintf(facts->original, sizeof(facts->original), "%s", what->staging->id);
    }
    if (index == 0) {
        (void)snprintf(row->id, sizeof(row->id), "%s", what->staging->id);
    } else {
        status = lac_store_new_id(row->id, reterr);
    }
    if (status == LAC_OK && what->trace_count == 1 && what->name != NULL && what->name[0] != '\0') {
        free(row->name); /* as it was given; the importer took folder and endings off */
        row->name = clean_copy(what->name);
        status = row->name != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (status != LAC_OK) {
        return status;
    }
    row->created_unix_ms = lac_now_unix_ms();
    row->size_bytes = what->size_bytes;
    row->has_sha256 = what->sha256 != NULL;
    if (what->sha256 != NULL) {
        memcpy(row->sha256, what->sha256, LAC_SHA256_SIZE);
    }
    row->project = strdup(what->project != NULL ? what->project : "");
    if (row->project != NULL && what->trace_count > 1) {
        memcpy(row->run, run, sizeof(row->run));
        facts->run_created_ms = arrivals[0].facts.row.created_unix_ms;
        facts->run_name = strdup(what->name != NULL ? what->name : arrivals[0].facts.row.name);
        status = facts->run_name != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    return row->project != NULL ? status : LAC_ERR_NOMEM;
}

static enum lac_status examine_all(struct lac_store *store, const struct lac_publication *what,
                                   struct arrival *arrivals, struct lac_error *reterr)
{
    char run[LAC_ID_SIZE] = "";
    enum lac_status status = LAC_OK;

    if (what->trace_count > 1) {
        status = lac_store_new_id(run, reterr);
    }
    for (uint32_t i = 0; i < what->trace_count && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE + 32];

        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, what->staging->path, i);
        status = lac_publish_examine(store, path, true, &arrivals[i].facts, reterr);
        if (status == LAC_OK) {
            status = complete(what, arrivals, i, run, reterr);
        }
    }
    return status;
}

/** The run that the uploader named, also of an archive of several ranks, instead of one of its own. */
static enum lac_status join_known_run(struct lac_trace_facts *facts,
                                      const struct lac_trace_facts *known)
{
    if (known->row.run[0] == '\0') {
        return LAC_OK;
    }
    memcpy(facts->row.run, known->row.run, sizeof(facts->row.run));
    facts->run_created_ms = known->run_created_ms;
    free(facts->run_name);
    facts->run_name = strdup(known->run_name);
    return facts->run_name != NULL ? LAC_OK : LAC_ERR_NOMEM;
}

/** What the row of the upload says, which it had from its uploader. */
static enum lac_status take_row(const struct lac_trace_facts *known,
                                const struct lac_publication *what, struct arrival *arrivals)
{
    struct lac_trace_facts *first = &arrivals[0].facts;

    for (uint32_t i = 0; i < what->trace_count; i++) {
        struct lac_trace_row *row = &arrivals[i].facts.row;

        free(row->project);
        row->project = strdup(known->row.project);
        if (row->project == NULL) {
            return LAC_ERR_NOMEM;
        }
    }
    first->row.created_unix_ms = known->row.created_unix_ms;
    first->row.size_bytes = known->row.size_bytes;
    first->row.has_sha256 = known->row.has_sha256;
    memcpy(first->row.sha256, known->row.sha256, sizeof(first->row.sha256));
    first->row.has_clock = known->row.has_clock;
    first->row.clock_offset_ns = known->row.clock_offset_ns;
    first->row.clock_error_ns = known->row.clock_error_ns;
    for (uint32_t i = 0; i < what->trace_count && known->run_name != NULL; i++) {
        const enum lac_status status = join_known_run(&arrivals[i].facts, known);

        if (status != LAC_OK) {
            return status;
        }
    }
    return LAC_OK;
}

/** All that the rows will say goes into the files, before the first of them is moved: from then on
 * a start can finish the publication. */
static enum lac_status write_facts(struct lac_store *store, const struct lac_publication *what,
                                   struct arrival *arrivals, struct lac_error *reterr)
{
    struct lac_trace_facts known = {0};
    enum lac_status status = LAC_OK;

    if (what->has_row) {
        (void)pthread_mutex_lock(&store->lock);
        status = lac_catalog_facts(store->catalog, what->staging->id, &known, reterr);
        (void)pthread_mutex_unlock(&store->lock);
        if (status == LAC_OK) {
            status = take_row(&known, what, arrivals);
        }
        lac_trace_facts_done(&known);
    }
    for (uint32_t i = 0; i < what->trace_count && status == LAC_OK; i++) {
        char path[LAC_STORE_PATH_SIZE + 32];

        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, what->staging->path, i);
        (void)chmod(path, 0600);
        status = lac_trace_facts_write(path, &arrivals[i].facts, reterr);
    }
    return status;
}

/** Into object storage, where that is used, before anything is listed. */
static enum lac_status put_all(struct lac_store *store, const struct lac_publication *what,
                               struct arrival *arrivals, struct lac_object_row *original,
                               struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE + 32];
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < what->trace_count && status == LAC_OK; i++) {
        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, what->staging->path, i);
        status = lac_remote_put(store, LAC_OBJECT_TRACE, arrivals[i].facts.row.id, path,
                                &arrivals[i].object, reterr);
    }
    if (status == LAC_OK && what->has_original) {
        (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_ORIGINAL, what->staging->path);
        status =
            lac_remote_put(store, LAC_OBJECT_ORIGINAL, what->staging->id, path, original, reterr);
    }
    return status;
}

static enum lac_status move(const char *from, const char *to, struct lac_error *reterr)
{
    if (rename(from, to) != 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot move a trace file into the data folder: %s",
                        strerror(errno));
    }
    return LAC_OK;
}

enum lac_status lac_store_sync_folder(const struct lac_store *store, const char *name,
                                      struct lac_error *reterr)
{
    char path[LAC_STORE_PATH_SIZE];
    int fd;
    enum lac_status status = LAC_OK;

    (void)lac_store_path(store, path, name, NULL, NULL);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        status =
            lac_fail(reterr, LAC_ERR_IO, 0, "cannot sync the folder %s: %s", name, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

/** @param ret_original_moved whether originals/ has a file that it did not have before */
static enum lac_status move_all(struct lac_store *store, const struct lac_publication *what,
                                struct arrival *arrivals, bool *ret_original_moved,
                                struct lac_error *reterr)
{
    char from[LAC_STORE_PATH_SIZE + 32];
    char to[LAC_STORE_PATH_SIZE];
    struct stat info;
    enum lac_status status = LAC_OK;

    for (uint32_t i = 0; i < what->trace_count && status == LAC_OK; i++) {
        (void)snprintf(from, sizeof(from), "%s/" LAC_STAGED_TRACE_FORMAT, what->staging->path, i);
        (void)lac_store_path(store, to, "traces", arrivals[i].facts.row.id, ".db");
        status = move(from, to, reterr);
        arrivals[i].is_moved = status == LAC_OK;
    }
    if (status == LAC_OK && what->has_original) {
        (void)snprintf(from, sizeof(from), "%s/" LAC_STAGED_ORIGINAL, what->staging->path);
        (void)lac_store_path(store, to, "originals", what->staging->id, ".zst");
        (void)chmod(from, 0600);
        *ret_original_moved = lstat(to, &info) != 0; /* one that is imported again has it */
        status = move(from, to, reterr);
        *ret_original_moved = *ret_original_moved && status == LAC_OK;
        if (status == LAC_OK) {
            status = lac_store_sync_folder(store, "originals", reterr);
        }
    }
    return status == LAC_OK ? lac_store_sync_folder(store, "traces", reterr) : status;
}

/** Whether the acknowledged upload is still wanted, and its project. */
static enum lac_status check_row(struct lac_store *store, const struct lac_publication *what,
                                 struct lac_error *reterr)
{
    struct lac_trace_row row;
    enum lac_status status =
        lac_catalog_get(store->catalog, what->staging->id, false, &row, reterr);

    if (status == LAC_OK) {
        if (row.state != LAC_TRACE_IMPORTING) {
            status = lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "the trace is not being imported");
        }
        lac_trace_row_done(&row);
    }
    return status;
}

static enum lac_status commit_rows(struct lac_store *store, const struct lac_publication *what,
                                   struct arrival *arrivals, const struct lac_object_row *original,
                                   const struct lac_object_row *upload, struct lac_error *reterr)
{
    struct lac_db *db = store->catalog;
    int64_t project = 0;
    enum lac_status status = LAC_OK;

    if (what->has_row) {
        status = check_row(store, what, reterr);
        if (status == LAC_OK) {
            status = lac_catalog_number(db, "project", what->staging->id, &project, reterr);
        }
    } else {
        status = lac_catalog_project(db, what->project, &project, reterr);
    }
    if (status == LAC_OK && what->trace_count > 1) {
        const struct lac_trace_facts *first = &arrivals[0].facts;

        status = lac_catalog_put_run(db, first->row.run, project, first->run_name,
                                     first->run_created_ms, reterr);
    }
    for (uint32_t i = 0; i < what->trace_count && status == LAC_OK; i++) {
        status = lac_catalog_put_trace(db, &arrivals[i].facts.row, project,
                                       what->has_original ? what->staging->id : NULL, reterr);
        if (status == LAC_OK) {
            status =
                lac_catalog_put_findings(db, arrivals[i].facts.row.id, arrivals[i].facts.findings,
                                         arrivals[i].facts.finding_count, reterr);
        }
        if (status == LAC_OK && arrivals[i].object.bytes > 0) {
            status = lac_catalog_put_object(db, &arrivals[i].object, reterr);
        }
    }
    if (status == LAC_OK && original->bytes > 0) {
        status = lac_catalog_put_object(db, original, reterr);
    }
    if (status == LAC_OK && upload->bytes > 0) {
        const char *texts[1] = {upload->id};

        status = lac_catalog_change(db, "DELETE FROM objects WHERE kind = 2 AND id = ?", texts, 1,
                                    NULL, reterr);
    }
    return status;
}

/** The object that the acknowledged upload is in, zeroed where there is none. */
static void find_upload(struct lac_store *store, const char *id, struct lac_object_row *upload)
{
    struct lac_error ignored = {0};

    if (store->remote == NULL ||
        lac_catalog_get_object(store->catalog, LAC_OBJECT_UPLOAD, id, upload, &ignored) != LAC_OK) {
        upload->bytes = 0;
    }
}

/** After a failure: back to where it came from, which is its caller's to keep or remove. */
static void take_back(struct lac_store *store, const struct lac_publication *what,
                      const struct arrival *arrivals, bool original_moved)
{
    char from[LAC_STORE_PATH_SIZE];
    char to[LAC_STORE_PATH_SIZE + 32];

    for (uint32_t i = 0; i < what->trace_count; i++) {
        if (arrivals[i].is_moved) {
            (void)lac_store_path(store, from, "traces", arrivals[i].facts.row.id, ".db");
            (void)snprintf(to, sizeof(to), "%s/" LAC_STAGED_TRACE_FORMAT, what->staging->path, i);
            (void)rename(from, to);
        }
    }
    if (original_moved) {
        (void)lac_store_path(store, from, "originals", what->staging->id, ".zst");
        (void)snprintf(to, sizeof(to), "%s/" LAC_STAGED_ORIGINAL, what->staging->path);
        (void)rename(from, to);
    }
}

/** Whether PostgreSQL went away: with the answer to a commit, it may have been made. */
static bool is_unsure(enum lac_status status, const struct lac_error *error)
{
    return status == LAC_ERR_IO && error->sys_errno == ECONNRESET;
}

/** Whether the commit was made. @return LAC_OK when it was; LAC_ERR_IO when it cannot be told, or,
 *          with *ret_is_sure, when it was not */
static enum lac_status look_for_rows(struct lac_store *store, const char *id, bool *ret_is_sure,
                                     struct lac_error *reterr)
{
    struct lac_trace_row row;
    struct lac_error ignored;
    bool is_made = false;
    /* waits for PostgreSQL, and for the end of the connection that was lost */
    enum lac_status status = lac_db_begin(store->catalog, true, reterr);

    *ret_is_sure = false;
    if (status != LAC_OK) {
        return status;
    }
    status = lac_catalog_get(store->catalog, id, false, &row, reterr);
    *ret_is_sure = status == LAC_OK || status == LAC_ERR_NOT_FOUND;
    if (status == LAC_OK) {
        is_made = row.state == LAC_TRACE_READY;
        lac_trace_row_done(&row);
    }
    (void)!lac_db_end(store->catalog, LAC_ERR_NOT_FOUND, &ignored); /* nothing to commit */
    if (*ret_is_sure && !is_made) {
        errno = ECONNRESET;
        return lac_fail(reterr, LAC_ERR_IO, 0, "the connection to the catalog was lost: try again");
    }
    return status;
}

/** The rows in one commit. Taking the files of one back that was made would lose them: one whose
 *  answer was lost is looked for until it is known. @param ret_is_sure whether it is */
static enum lac_status list_all(struct lac_store *store, const struct lac_publication *what,
                                struct arrival *arrivals, const struct lac_object_row *original,
                                const struct lac_object_row *upload, bool *ret_is_sure,
                                struct lac_error *reterr)
{
    struct lac_error own = {0};
    enum lac_status status = lac_db_begin(store->catalog, true, &own);

    *ret_is_sure = status != LAC_OK; /* nothing was begun */
    if (status == LAC_OK) {
        status = commit_rows(store, what, arrivals, original, upload, &own);
        status = lac_db_end(store->catalog, status, &own);
        *ret_is_sure = !is_unsure(status, &own);
    }
    for (int i = 0; i < UNSURE_TRIES && !*ret_is_sure; i++) {
        (void)pthread_mutex_unlock(&store->lock); /* others may have something to ask, too */
        const bool is_ending = what->is_ending != NULL && what->is_ending(what->context);

        (void)nanosleep(&(struct timespec){.tv_nsec = UNSURE_PAUSE_MS * 1000000L}, NULL);
        (void)pthread_mutex_lock(&store->lock);
        if (is_ending) {
            break;
        }
        status = look_for_rows(store, arrivals[0].facts.row.id, ret_is_sure, &own);
    }
    if (status != LAC_OK && reterr != NULL) {
        *reterr = own;
    }
    return status;
}

enum lac_status lac_store_publish(struct lac_store *store,
                                  const struct lac_publication *publication,
                                  char (*ret_ids)[LAC_ID_SIZE], struct lac_error *reterr)
{
    assert(store != NULL && publication != NULL);
    struct arrival *arrivals = calloc(publication->trace_count, sizeof(*arrivals));
    enum lac_status status = arrivals != NULL ? LAC_OK : LAC_ERR_NOMEM;
    struct lac_object_row original = {0};
    struct lac_object_row upload = {0};
    bool original_moved = false;
    bool is_sure = true;
    int folder = -1;

    if (status == LAC_OK) {
        status = examine_all(store, publication, arrivals, reterr);
    }
    if (status == LAC_OK) {
        status = write_facts(store, publication, arrivals, reterr);
    }
    if (status == LAC_OK) {
        status = put_all(store, publication, arrivals, &original, reterr);
    }
    if (status == LAC_OK) {
        folder =
            lac_folder_lock(store, false); /* a sweeper must not see the files before the rows */
        status = folder >= 0 ? move_all(store, publication, arrivals, &original_moved, reterr)
                             : lac_fail(reterr, LAC_ERR_IO, 0, "cannot lock the data folder: %s",
                                        strerror(errno));
        if (status == LAC_OK) {
            (void)pthread_mutex_lock(&store->lock);
            find_upload(store, publication->staging->id, &upload);
            status = list_all(store, publication, arrivals, &original, &upload, &is_sure, reterr);
            (void)pthread_mutex_unlock(&store->lock);
        }
        if (status != LAC_OK && is_sure) {
            take_back(store, publication, arrivals, original_moved);
        }
        lac_folder_unlock(folder);
    }
    if (status == LAC_OK) {
        lac_remote_remove(store, &upload);
    }
    for (uint32_t i = 0; arrivals != NULL && i < publication->trace_count; i++) {
        if (status == LAC_OK) {
            memcpy(ret_ids[i], arrivals[i].facts.row.id, LAC_ID_SIZE);
        }
        lac_trace_facts_done(&arrivals[i].facts);
    }
    free(arrivals);
    return status;
}
