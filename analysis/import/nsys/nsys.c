#include "analysis/import/nsys/nsys.h"

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/temporary.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

bool lac_nsys_is_sqlite(const char *path)
{
    static const char MAGIC[16] = "SQLite format 3";
    char head[sizeof(MAGIC)];
    struct stat st;
    /* a pipe must not lose its first bytes here: only regular files are looked into */
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return false;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, head, sizeof(head));
    (void)close(fd);
    return got == (ssize_t)sizeof(head) && memcmp(head, MAGIC, sizeof(MAGIC)) == 0;
}

/* Say what the file is, if it is not an export. */
static enum lac_status check_kind(struct lac_nsys *nsys)
{
    struct lac_nsys_db *db = &nsys->db;
    bool has_metadata =
        lac_nsys_db_has(db, "META_DATA_EXPORT") || lac_nsys_db_has(db, "EXPORT_META_DATA");
    if (lac_nsys_db_has(db, "StringIds") || has_metadata) {
        return LAC_OK;
    }
    nsys->is_nvprof = lac_nsys_db_has(db, "StringTable");
    enum lac_status status = lac_nsys_db_status(db);
    if (status != LAC_OK || nsys->is_nvprof) {
        return status;
    }
    nsys->is_rocpd = lac_nsys_is_rocpd(nsys);
    if (nsys->is_rocpd) {
        return lac_nsys_db_status(db);
    }
    if (lac_nsys_db_has(db, "chunk") && lac_nsys_db_has(db, "name_stat")) {
        return lac_fail(nsys->reterr, LAC_ERR_CORRUPT, 0,
                        "a trace file of Lacuna's own store; import the original instead");
    }
    return lac_fail(nsys->reterr, LAC_ERR_CORRUPT, 0,
                    "an SQLite database, but no Nsight Systems export: it has neither StringIds "
                    "nor META_DATA_EXPORT, nor the tables of nvprof or rocpd");
}

static void expect_rows(struct lac_nsys *nsys)
{
    static const char *const TABLES[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                         "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME",
                                         "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                         "NVTX_EVENTS",
                                         "OSRT_API",
                                         "GPU_METRICS",
                                         "COMPOSITE_EVENTS"};
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES); i++) {
        uint64_t count =
            lac_nsys_db_has(&nsys->db, TABLES[i]) ? lac_nsys_db_row_count(&nsys->db, TABLES[i]) : 0;
        /* a wild rowid says nothing */
        nsys->db.rows_expected += count < nsys->db.file_bytes ? count : 0;
    }
}

static enum lac_status read_all(struct lac_nsys *nsys, int64_t *ret_base_ns)
{
    enum lac_status (*const PARTS[])(struct lac_nsys *) = {
        lac_nsys_read_strings, lac_nsys_read_enums,   lac_nsys_read_gpu,     lac_nsys_read_calls,
        lac_nsys_read_nvtx,    lac_nsys_read_metrics, lac_nsys_read_samples,
    };
    enum lac_status status = check_kind(nsys);
    expect_rows(nsys);
    if (status == LAC_OK && nsys->is_nvprof) {
        nsys->model->info.format = LAC_FORMAT_NVPROF;
        *ret_base_ns = 0;
        lac_builder_demangle(nsys->builder); /* it has the compiler's names alone */
        status = lac_nsys_read_nvprof(nsys);
        return status == LAC_OK ? lac_nsys_db_status(&nsys->db) : status;
    }
    if (status == LAC_OK && nsys->is_rocpd) {
        nsys->model->info.format = LAC_FORMAT_ROCPROF;
        *ret_base_ns = 0;
        status = lac_nsys_read_rocpd(nsys);
        return status == LAC_OK ? lac_nsys_db_status(&nsys->db) : status;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(PARTS) && status == LAC_OK; i++) {
        status = PARTS[i](nsys);
    }
    if (status == LAC_OK) {
        status = lac_nsys_read_target(nsys, ret_base_ns);
    }
    return status == LAC_OK ? lac_nsys_db_status(&nsys->db) : status;
}

static void nsys_done(struct lac_nsys *nsys)
{
    lac_nsys_db_close(&nsys->db);
    lac_builder_destroy(nsys->builder);
    lac_nsys_map_done(&nsys->string_of);
    lac_nsys_map_done(&nsys->process_of);
    lac_nsys_map_done(&nsys->pid_seen);
    lac_nsys_map_done(&nsys->track_of);
    lac_nsys_map_done(&nsys->stream_of);
    lac_nsys_map_done(&nsys->domain_of);
    lac_nsys_map_done(&nsys->gpu_pid_of);
    lac_nsys_map_done(&nsys->own_gpu_of);
    lac_nsys_map_done(&nsys->metric_of);
    lac_nsys_map_done(&nsys->call_of);
    lac_nsys_map_done(&nsys->marker_of);
    free(nsys->strings);
    free(nsys->bytes);
    free(nsys->open);
    free(nsys);
}

/* The model under construction, of a database that is open. */
static enum lac_status prepare(struct lac_nsys *nsys, const char *name)
{
    enum lac_status status = lac_nsys_pass(nsys, lac_builder_create(&nsys->builder));
    if (status == LAC_OK) {
        nsys->model = lac_builder_model(nsys->builder);
        lac_builder_use_crew(nsys->builder, nsys->crew);
        nsys->last_ns = INT64_MIN;
        nsys->model->info.format = LAC_FORMAT_NSYS;
        nsys->model->info.rank = -1;
        nsys->model->info.world_size = -1;
        nsys->model->info.input_bytes = nsys->db.file_bytes;
        nsys->model->info.expanded_bytes = nsys->db.file_bytes;
        status = lac_nsys_pass(nsys, lac_strings_intern(&nsys->model->strings, name, strlen(name),
                                                        &nsys->model->info.name));
    }
    if (status == LAC_OK && nsys->db.has_log) {
        lac_model_report(nsys->model, LAC_REPORT_INFO, "log_not_read", 1, 0,
                         "Changes in the -wal or -journal file beside it are not read: open it "
                         "once with the sqlite3 shell, which writes them into it.");
    }
    return status;
}

/* From an open database to a model; the importer is used up. */
static enum lac_status read_open(struct lac_nsys *nsys, const char *name, enum lac_status status,
                                 struct lac_model **ret_model)
{
    int64_t base_ns = 0;
    if (status == LAC_OK) {
        status = prepare(nsys, name);
    }
    if (status == LAC_OK) {
        status = read_all(nsys, &base_ns);
    }
    if (status == LAC_OK) {
        nsys->model->info.event_count = nsys->db.event_count;
        nsys->model->info.slice_count = nsys->slice_count;
        status = lac_nsys_pass(nsys, lac_builder_finish(nsys->builder, base_ns, ret_model));
        nsys->builder = status == LAC_OK ? NULL : nsys->builder;
    }
    nsys_done(nsys);
    return status;
}

static struct lac_nsys *new_importer(const struct lac_import_options *options,
                                     struct lac_error *reterr)
{
    struct lac_nsys *nsys = calloc(1, sizeof(*nsys));
    if (nsys != NULL) {
        nsys->limits = &options->limits;
        nsys->crew = options->crew;
        nsys->reterr = reterr;
    }
    return nsys;
}

enum lac_status lac_nsys_import(const char *path, const struct lac_import_options *options,
                                lac_import_sink sink, void *context, struct lac_error *reterr)
{
    struct lac_nsys *nsys = new_importer(options, reterr);
    struct lac_model *model = NULL;
    char name[512];
    lac_import_name(options->name != NULL ? options->name : path, name, sizeof(name));
    if (nsys == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    enum lac_status status = lac_nsys_db_open(&nsys->db, path, options, reterr);
    status = read_open(nsys, name, status, &model);
    return status == LAC_OK ? sink(context, model, reterr) : status;
}

enum lac_status lac_nsys_import_dump(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr)
{
    struct lac_nsys *nsys = new_importer(options, reterr);
    (void)window_bytes;
    *ret_model = NULL;
    if (nsys == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    enum lac_status status = lac_nsys_db_open_dump(&nsys->db, source, options, reterr);
    return read_open(nsys, name, status, ret_model);
}

enum lac_status lac_nsys_import_stream(struct lac_source *source,
                                       const struct lac_import_options *options,
                                       size_t window_bytes, const char *name,
                                       struct lac_model **ret_model, struct lac_error *reterr)
{
    struct lac_nsys *nsys = new_importer(options, reterr);
    int fd = -1;
    (void)window_bytes;
    *ret_model = NULL;
    if (nsys == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    enum lac_status status = lac_temporary_copy(options->temporary_dir, source, &fd, reterr);
    if (status == LAC_OK) {
        status = lac_nsys_db_open_fd(&nsys->db, fd, options, reterr);
    }
    status = read_open(nsys, name, status, ret_model);
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}
