#include "server/store/trace/trace_writer.h"

#include "analysis/crew/crew.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"
#include "collector/base/count_of.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_write_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char schema_sql[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE string(first INTEGER PRIMARY KEY, count, raw_bytes, data);"
    "CREATE TABLE process(idx INTEGER PRIMARY KEY, pid, id_text, name, labels, sort_index, is_gpu);"
    "CREATE TABLE thread(track INTEGER PRIMARY KEY, role);"
    "CREATE TABLE device(idx INTEGER PRIMARY KEY, id, name, cc_major, cc_minor, sm_count,"
    " memory_bytes);"
    "CREATE TABLE track(idx INTEGER PRIMARY KEY, kind, process, name, id_text, tid, device,"
    " sort_index, lane_count, first, count);"
    "CREATE TABLE chunk(first INTEGER PRIMARY KEY, track, count, start_first, start_last, end_last,"
    " data);"
    "CREATE TABLE tile(id INTEGER PRIMARY KEY, data);"
    "CREATE TABLE blob(id INTEGER PRIMARY KEY, bytes);"
    "CREATE TABLE name_stat(first INTEGER PRIMARY KEY, count, data, posting_bytes, postings);"
    "CREATE TABLE detail(id INTEGER PRIMARY KEY, count, data);"
    "CREATE TABLE sample(id INTEGER PRIMARY KEY, track, count, ts_first, ts_last, data);"
    "CREATE TABLE flow(first INTEGER PRIMARY KEY, count, data);"
    "CREATE TABLE gap(first INTEGER PRIMARY KEY, count, data, share_count, shares, text_bytes,"
    " texts);"
    "CREATE TABLE gap_signature(id INTEGER PRIMARY KEY, count, data);"
    "CREATE TABLE finding(rank INTEGER PRIMARY KEY, finding_id, severity, cost_ns_per_step,"
    " cost_pct, gain_low_pct, gain_mid_pct, gain_high_pct, confidence, title);"
    "CREATE TABLE document(name TEXT PRIMARY KEY, raw_bytes, data) WITHOUT ROWID;"
    "CREATE TABLE report(line INTEGER PRIMARY KEY, code, severity, count, first_offset_bytes,"
    " text);"
    "CREATE TABLE setting(idx INTEGER PRIMARY KEY, parent, type, name, value);"
    "CREATE TABLE step(first INTEGER PRIMARY KEY, count, data);";

/** Small pages for small traces: every table has at least one page of its own. */
static unsigned page_bytes(const struct lac_model *model)
{
    if (model->slices.count < 200000) {
        return 1024;
    }
    return model->slices.count < 4000000 ? 4096 : 16384;
}

static enum lac_status create(struct lac_trace_writer *writer)
{
    enum lac_status status;
    char pragmas[400];
    int fd = open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0) {
        return lac_fail(writer->reterr, LAC_ERR_IO, 0, "cannot create the trace file: %s",
                        strerror(errno));
    }
    (void)close(fd);
    if (sqlite3_open_v2(writer->path, &writer->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        LAC_CHECKED_VFS) != SQLITE_OK) {
        return lac_sql_fail(writer->db, "cannot create the trace file", writer->reterr);
    }
    /* no journal: the file is thrown away unless it is complete */
    (void)snprintf(
        pragmas, sizeof(pragmas),
        "PRAGMA page_size = %u; PRAGMA application_id = 0x4C414354;"
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY;"
        "BEGIN;",
        page_bytes(writer->model));
    status = lac_checked_begin(writer->db, page_bytes(writer->model), writer->reterr);
    if (status == LAC_OK) {
        status = lac_sql_run(writer->db, pragmas, writer->reterr);
    }
    if (status == LAC_OK) {
        status = lac_sql_run(writer->db, schema_sql, writer->reterr);
    }
    if (status != LAC_OK) {
        return status;
    }
    return lac_sql_prepare(writer->db, "INSERT INTO blob VALUES(?,?)", &writer->insert_blob,
                           writer->reterr);
}

enum lac_status lac_trace_write_blob(struct lac_trace_writer *writer, const void *data,
                                     size_t size_bytes, int64_t *ret_id)
{
    lac_sql_bind_i64(writer->insert_blob, 1, writer->next_blob);
    lac_sql_bind_blob(writer->insert_blob, 2, data, size_bytes);
    *ret_id = writer->next_blob++;
    return lac_sql_step_done(writer->insert_blob, "trace file", writer->reterr);
}

enum meta_type { META_I64, META_F64, META_TEXT, META_BLOB };

static enum lac_status write_meta(struct lac_trace_writer *writer, const char *key,
                                  enum meta_type type, int64_t number, double real,
                                  const void *data, size_t size_bytes)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status =
        lac_sql_prepare(writer->db, "INSERT INTO meta VALUES(?,?)", &insert, writer->reterr);

    if (status != LAC_OK) {
        return status;
    }
    lac_sql_bind_text(insert, 1, key);
    switch (type) {
    case META_I64:
        lac_sql_bind_i64(insert, 2, number);
        break;
    case META_F64:
        lac_sql_bind_f64(insert, 2, real); /* NaN becomes null */
        break;
    case META_TEXT:
        lac_sql_bind_text(insert, 2, data);
        break;
    case META_BLOB:
        lac_sql_bind_blob(insert, 2, data, size_bytes);
        break;
    }
    status = lac_sql_step_done(insert, "trace file", writer->reterr);
    (void)sqlite3_finalize(insert);
    return status;
}

enum lac_status lac_trace_write_meta_i64(struct lac_trace_writer *writer, const char *key,
                                         int64_t value)
{
    return write_meta(writer, key, META_I64, value, 0, NULL, 0);
}

enum lac_status lac_trace_write_meta_f64(struct lac_trace_writer *writer, const char *key,
                                         double value)
{
    return write_meta(writer, key, META_F64, 0, value, NULL, 0);
}

enum lac_status lac_trace_write_meta_text(struct lac_trace_writer *writer, const char *key,
                                          const char *text)
{
    return write_meta(writer, key, META_TEXT, 0, 0, text, 0);
}

static enum lac_status write_all_meta(struct lac_trace_writer *writer)
{
    const struct lac_model *model = writer->model;
    const struct lac_trace_info *info = &model->info;
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"format_version", LAC_TRACE_FORMAT_VERSION},
        {"generation", writer->generation},
        {"level_max", lac_tile_level_max(info->duration_ns)},
        {"tile_min_slices", LAC_TILE_MIN_SLICES},
        {"slice_total", (int64_t)model->slices.count},
        {"string_count", model->strings.count},
        {"string_bytes", (int64_t)model->strings.bytes_used},
        {"process_count", model->process_count},
        {"track_count", model->track_count},
        {"device_count", model->device_count},
        {"recorded_track_count", model->recorded_track_count},
        {"arg_number_count", (int64_t)model->arg_number_count},
        {"sample_count", (int64_t)model->sample_count},
        {"flow_count", (int64_t)model->flow_count},
        {"kernel_config_count", model->kernel_config_count},
        {"copy_count", model->copy_count},
        {"loader_info_count", model->loader_info_count},
        {"alloc_count", model->alloc_count},
        {"name", info->name},
        {"format", info->format},
        {"t0_ns", info->t0_ns},
        {"duration_ns", info->duration_ns},
        {"event_count", (int64_t)info->event_count},
        {"slice_count", (int64_t)info->slice_count},
        {"dropped_count", (int64_t)info->dropped_count},
        {"repaired_count", (int64_t)info->repaired_count},
        {"input_bytes", (int64_t)info->input_bytes},
        {"expanded_bytes", (int64_t)info->expanded_bytes},
        {"rank", info->rank},
        {"world_size", info->world_size},
        {"backend", info->backend},
        {"host", info->host},
        {"metadata", info->metadata},
        {"is_simulated", info->is_simulated},
        {"has_python_stacks", info->has_python_stacks},
        {"has_shapes", info->has_shapes},
        {"has_no_time", info->has_no_time},
        {"weight_unit", info->weight_unit},
        {"weight_scale", info->weight_scale},
        {"profile_count", info->profile_count},
        {"profile_unit", info->profile_unit},
        {"profile_scale", info->profile_scale},
    };
    enum lac_status status = lac_trace_write_meta_text(writer, "program_version", LAC_VERSION);

    for (size_t i = 0; i < LAC_COUNT_OF(numbers) && status == LAC_OK; i++) {
        status = lac_trace_write_meta_i64(writer, numbers[i].key, numbers[i].value);
    }
    if (status == LAC_OK) {
        uint8_t counts[128 * 8];

        for (unsigned i = 0; i < 128 * 8; i++) {
            counts[i] = (uint8_t)(info->phase_count[i / 8] >> (8 * (i % 8)));
        }
        status = write_meta(writer, "phase_count", META_BLOB, 0, 0, counts, sizeof(counts));
    }
    return status;
}

static enum lac_status write_processes(struct lac_trace_writer *writer)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(
        writer->db, "INSERT INTO process VALUES(?,?,?,?,?,?,?)", &insert, writer->reterr);

    for (uint32_t i = 0; i < writer->model->process_count && status == LAC_OK; i++) {
        const struct lac_process *process = &writer->model->processes[i];

        lac_sql_bind_i64(insert, 1, i);
        lac_sql_bind_i64(insert, 2, process->pid);
        lac_sql_bind_i64(insert, 3, process->id_text);
        lac_sql_bind_i64(insert, 4, process->name);
        lac_sql_bind_i64(insert, 5, process->labels);
        lac_sql_bind_i64(insert, 6, process->sort_index);
        lac_sql_bind_i64(insert, 7, process->is_gpu);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static enum lac_status write_devices(struct lac_trace_writer *writer)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(writer->db, "INSERT INTO device VALUES(?,?,?,?,?,?,?)",
                                             &insert, writer->reterr);

    for (uint32_t i = 0; i < writer->model->device_count && status == LAC_OK; i++) {
        const struct lac_device *device = &writer->model->devices[i];

        lac_sql_bind_i64(insert, 1, i);
        lac_sql_bind_i64(insert, 2, device->id);
        lac_sql_bind_i64(insert, 3, device->name);
        lac_sql_bind_i64(insert, 4, device->cc_major);
        lac_sql_bind_i64(insert, 5, device->cc_minor);
        lac_sql_bind_i64(insert, 6, device->sm_count);
        lac_sql_bind_i64(insert, 7, device->memory_bytes);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static enum lac_status write_tracks(struct lac_trace_writer *writer)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(
        writer->db, "INSERT INTO track VALUES(?,?,?,?,?,?,?,?,?,?,?)", &insert, writer->reterr);

    for (uint32_t i = 0; i < writer->model->track_count && status == LAC_OK; i++) {
        const struct lac_track *track = &writer->model->tracks[i];

        lac_sql_bind_i64(insert, 1, i);
        lac_sql_bind_i64(insert, 2, track->kind);
        if (track->process != LAC_NONE) {
            lac_sql_bind_i64(insert, 3, track->process);
        }
        lac_sql_bind_i64(insert, 4, track->name);
        lac_sql_bind_i64(insert, 5, track->id_text);
        lac_sql_bind_i64(insert, 6, track->tid);
        lac_sql_bind_i64(insert, 7, track->device);
        lac_sql_bind_i64(insert, 8, track->sort_index);
        lac_sql_bind_i64(insert, 9, track->lane_count);
        lac_sql_bind_i64(insert, 10, (int64_t)track->first);
        lac_sql_bind_i64(insert, 11, (int64_t)track->count);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static enum lac_status write_roles(struct lac_trace_writer *writer)
{
    const char **roles =
        (const char **)calloc((size_t)writer->model->track_count + 1, sizeof(*roles));
    sqlite3_stmt *insert = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (roles != NULL) {
        status = lac_track_roles(writer->model, roles);
    }
    if (status == LAC_OK) {
        status =
            lac_sql_prepare(writer->db, "INSERT INTO thread VALUES(?,?)", &insert, writer->reterr);
    }
    for (uint32_t i = 0; i < writer->model->track_count && status == LAC_OK; i++) {
        if (roles[i] != NULL) {
            lac_sql_bind_i64(insert, 1, i);
            lac_sql_bind_text(insert, 2, roles[i]);
            status = lac_sql_step_done(insert, "trace file", writer->reterr);
        }
    }
    (void)sqlite3_finalize(insert);
    free((void *)roles);
    return status;
}

static enum lac_status write_report(struct lac_trace_writer *writer)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status = lac_sql_prepare(writer->db, "INSERT INTO report VALUES(?,?,?,?,?,?)",
                                             &insert, writer->reterr);

    for (uint32_t i = 0; i < writer->model->report_count && status == LAC_OK; i++) {
        const struct lac_report_line *line = &writer->model->report[i];

        lac_sql_bind_i64(insert, 1, i);
        lac_sql_bind_text(insert, 2, line->code);
        lac_sql_bind_i64(insert, 3, line->severity);
        lac_sql_bind_i64(insert, 4, (int64_t)line->count);
        lac_sql_bind_i64(insert, 5, (int64_t)line->first_offset_bytes);
        lac_sql_bind_text(insert, 6, line->text);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static enum lac_status write_document(struct lac_trace_writer *writer, sqlite3_stmt *insert,
                                      enum lac_trace_document document)
{
    const struct lac_trace_text *text = &writer->documents[document];
    enum lac_status status;

    if (text->text == NULL) {
        return LAC_OK;
    }
    if (text->length > LAC_DOCUMENT_BYTES_MAX) {
        return lac_fail(writer->reterr, LAC_ERR_LIMIT, 0, "the document %s is larger than %u MiB",
                        lac_trace_document_names[document],
                        (unsigned)(LAC_DOCUMENT_BYTES_MAX >> 20));
    }
    status = lac_zstd_pack(text->text, text->length, 3, &writer->scratch);
    if (status == LAC_OK) {
        lac_sql_bind_text(insert, 1, lac_trace_document_names[document]);
        lac_sql_bind_i64(insert, 2, (int64_t)text->length);
        lac_sql_bind_blob(insert, 3, writer->scratch.data, writer->scratch.size_bytes);
        status = lac_sql_step_done(insert, "trace file", writer->reterr);
    }
    return status;
}

static enum lac_status write_documents(struct lac_trace_writer *writer)
{
    sqlite3_stmt *insert = NULL;
    enum lac_status status =
        lac_sql_prepare(writer->db, "INSERT INTO document VALUES(?,?,?)", &insert, writer->reterr);

    for (unsigned d = 0; d < LAC_DOCUMENT_COUNT_ && status == LAC_OK; d++) {
        status = write_document(writer, insert, (enum lac_trace_document)d);
    }
    (void)sqlite3_finalize(insert);
    return status;
}

static enum lac_status sync_file(const char *path, struct lac_error *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum lac_status status = LAC_OK;

    if (fd < 0 || fsync(fd) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot sync the trace file: %s", strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static void write_recorded(void *context, uint32_t part)
{
    struct lac_trace_writer *writer = context;

    (void)part; /* there is one */
    writer->recorded_status =
        lac_slice_writer_tracks(writer->slices, 0, writer->model->recorded_track_count);
}

/** Give a failure of the writer its words. */
static enum lac_status told(struct lac_trace_writer *writer, enum lac_status status)
{
    return status == LAC_ERR_NOMEM ? lac_fail(writer->reterr, LAC_ERR_NOMEM, 0,
                                              "out of memory while writing the trace file")
                                   : status;
}

static enum lac_status begin(struct lac_trace_writer *writer)
{
    enum lac_status status = lac_sql_init(writer->reterr);

    if (status == LAC_OK) {
        status = create(writer);
        writer->exists = writer->db != NULL;
    }
    if (status == LAC_OK) {
        status = lac_slice_writer_create(writer, &writer->slices);
    }
    return status;
}

enum lac_status lac_trace_writer_begin(const struct lac_model *model, const char *path,
                                       uint32_t generation, struct lac_crew *crew,
                                       struct lac_trace_writer **ret_writer,
                                       struct lac_error *reterr)
{
    assert(model != NULL && path != NULL && ret_writer != NULL);
    struct lac_trace_writer *writer = calloc(1, sizeof(*writer));
    enum lac_status status = LAC_OK;

    if (writer == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory while writing the trace file");
    }
    writer->model = model;
    writer->path = path;
    writer->generation = generation;
    writer->crew = crew;
    writer->next_blob = 1;
    writer->reterr = &writer->error;
    status = begin(writer);
    if (status != LAC_OK) {
        writer->is_settled = true;
        return lac_trace_writer_end(writer, told(writer, status), NULL, reterr);
    }
    lac_crew_begin(crew, &writer->recorded, 1, write_recorded, writer);
    *ret_writer = writer;
    return LAC_OK;
}

enum lac_status lac_trace_writer_settle(struct lac_trace_writer *writer)
{
    assert(writer != NULL);
    if (!writer->is_settled) {
        lac_crew_end(writer->crew, &writer->recorded);
        writer->is_settled = true;
        (void)told(writer, writer->recorded_status);
    }
    return writer->recorded_status;
}

static enum lac_status write_derived(struct lac_trace_writer *writer)
{
    enum lac_status status = lac_slice_writer_tracks(
        writer->slices, writer->model->recorded_track_count, writer->model->track_count);

    return status == LAC_OK ? lac_slice_writer_names(writer->slices) : status;
}

enum lac_status lac_trace_writer_tables(struct lac_trace_writer *writer,
                                        const struct lac_analysis *analysis)
{
    static enum lac_status (*const parts[])(struct lac_trace_writer *) = {
        lac_trace_writer_settle,
        write_all_meta,
        write_processes,
        write_devices,
        write_tracks,
        write_roles,
        write_report,
        lac_trace_write_settings,
        lac_trace_write_strings,
        write_derived,
        lac_trace_write_details,
        lac_trace_write_samples,
        lac_trace_write_flows,
        lac_trace_write_analysis,
    };
    enum lac_status status = LAC_OK;

    assert(writer != NULL);
    writer->analysis = analysis;
    for (size_t i = 0; i < LAC_COUNT_OF(parts) && status == LAC_OK; i++) {
        status = parts[i](writer);
    }
    return told(writer, status);
}

/** What stands behind all else, and the end of the file. */
static enum lac_status finish(struct lac_trace_writer *writer, enum lac_status status)
{
    if (status == LAC_OK && writer->documents != NULL) {
        status = told(writer, write_documents(writer));
    }
    lac_slice_writer_destroy(writer->slices);
    (void)sqlite3_finalize(writer->insert_blob);
    if (status == LAC_OK) {
        status = told(writer, lac_sql_run(writer->db, "COMMIT", writer->reterr));
    }
    if (sqlite3_close(writer->db) != SQLITE_OK && status == LAC_OK) {
        status = lac_fail(writer->reterr, LAC_ERR_IO, 0, "cannot close the trace file");
    }
    return status == LAC_OK ? sync_file(writer->path, writer->reterr) : status;
}

enum lac_status lac_trace_writer_end(struct lac_trace_writer *writer, enum lac_status status,
                                     const struct lac_trace_text *documents,
                                     struct lac_error *reterr)
{
    assert(writer != NULL);
    const enum lac_status settled = lac_trace_writer_settle(writer);

    writer->documents = documents;
    status = finish(writer, status == LAC_OK ? settled : status);
    if (status != LAC_OK && writer->exists) {
        (void)unlink(writer->path);
    }
    if (status != LAC_OK && writer->error.status == status && reterr != NULL) {
        *reterr = writer->error;
    }
    lac_bytes_done(&writer->scratch);
    lac_bytes_done(&writer->scratch2);
    free(writer);
    return status;
}

enum lac_status lac_trace_write(const struct lac_model *model,
                                const struct lac_trace_write_options *options,
                                struct lac_error *reterr)
{
    struct lac_trace_writer *writer = NULL;
    enum lac_status status =
        lac_trace_writer_begin(model, options->path, options->generation, NULL, &writer, reterr);

    if (status == LAC_OK) {
        status = lac_trace_writer_tables(writer, options->analysis);
        status = lac_trace_writer_end(writer, status, options->documents, reterr);
    }
    return status;
}
