#include "server/sql/export_sqlite.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/store/trace/checked_file.h"
#include "server/store/trace/sql.h"

#include <assert.h>
#include <math.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
    "CREATE TABLE trace(key TEXT PRIMARY KEY, value);"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid TEXT, name TEXT, labels TEXT);"
    "CREATE TABLE device(id INTEGER PRIMARY KEY, name TEXT, compute_capability TEXT,"
    " sm_count INTEGER, memory_bytes INTEGER);"
    "CREATE TABLE track(id INTEGER PRIMARY KEY, kind TEXT, process INTEGER REFERENCES process(id),"
    " name TEXT, tid TEXT, device INTEGER);"
    "CREATE TABLE slice(id INTEGER PRIMARY KEY, track INTEGER REFERENCES track(id), kind TEXT,"
    " name TEXT, start_ns INTEGER, dur_ns INTEGER, depth INTEGER, correlation INTEGER,"
    " link INTEGER);"
    "CREATE TABLE kernel(slice INTEGER PRIMARY KEY REFERENCES slice(id), short_name TEXT,"
    " family TEXT, layout_class TEXT, tensor_core TEXT, device INTEGER, grid_x INTEGER,"
    " grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER);"
    "CREATE TABLE copy(slice INTEGER PRIMARY KEY REFERENCES slice(id), kind TEXT, src TEXT,"
    " dst TEXT, bytes INTEGER, device INTEGER);"
    "CREATE TABLE counter(track INTEGER REFERENCES track(id), ts_ns INTEGER, value REAL);"
    "CREATE TABLE step(id INTEGER PRIMARY KEY, start_ns INTEGER, dur_ns INTEGER, wait_ns INTEGER,"
    " starved_ns INTEGER, left_out TEXT);"
    "CREATE TABLE gap(device INTEGER, start_ns INTEGER, dur_ns INTEGER, cause TEXT,"
    " ended_by INTEGER REFERENCES slice(id));"
    "CREATE TABLE finding(position INTEGER PRIMARY KEY, id TEXT, severity TEXT,"
    " cost_ns_per_step INTEGER, gain_low_pct REAL, gain_mid_pct REAL, gain_high_pct REAL,"
    " title TEXT, why TEXT, change TEXT, expect TEXT, costs TEXT, wrong_if TEXT, check_with TEXT);";

static const char indexes[] = "CREATE INDEX slice_track ON slice(track, start_ns);"
                              "CREATE INDEX slice_name ON slice(name);"
                              "CREATE INDEX gap_device ON gap(device, start_ns);"
                              "COMMIT;";

struct writer {
    const struct lac_export_sqlite *source;
    const struct lac_model *model;
    sqlite3 *db;
    struct lac_error *reterr;
    enum lac_status status;
};

static sqlite3_stmt *prepare(struct writer *writer, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (writer->status == LAC_OK) {
        writer->status = lac_sql_prepare(writer->db, sql, &statement, writer->reterr);
    }
    return statement;
}

static void step(struct writer *writer, sqlite3_stmt *statement)
{
    writer->status = lac_sql_step_done(statement, "writing a table", writer->reterr);
}

/** Text is copied: what text() gives is borrowed only until its next call. */
static void bind_text(struct writer *writer, sqlite3_stmt *statement, int index,
                      enum lac_export_text what, const char *text)
{
    const char *plain = writer->source->text(writer->source->context, what, text);
    (void)sqlite3_bind_text(statement, index, plain, -1, SQLITE_TRANSIENT);
}

static void bind_ns(sqlite3_stmt *statement, int index, int64_t ns)
{
    if (ns == LAC_UNKNOWN_NS) {
        (void)sqlite3_bind_null(statement, index);
    } else {
        lac_sql_bind_i64(statement, index, ns);
    }
}

static void bind_real(sqlite3_stmt *statement, int index, double value)
{
    if (isfinite(value)) {
        lac_sql_bind_f64(statement, index, value);
    } else {
        (void)sqlite3_bind_null(statement, index);
    }
}

static void bind_optional(sqlite3_stmt *statement, int index, int64_t value)
{
    bind_ns(statement, index, value < 0 ? LAC_UNKNOWN_NS : value);
}

static void write_trace(struct writer *writer)
{
    const struct lac_trace_info *info = &writer->model->info;
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"t0_ns", info->t0_ns},
                   {"duration_ns", info->duration_ns},
                   {"event_count", (int64_t)info->event_count},
                   {"dropped_count", (int64_t)info->dropped_count},
                   {"simulated", info->is_simulated},
                   {"step_mean_ns", writer->source->analysis->step_mean_ns}};
    sqlite3_stmt *statement = prepare(writer, "INSERT INTO trace VALUES(?,?)");
    for (size_t i = 0; i < LAC_COUNT_OF(numbers) && !writer->status; i++) {
        lac_sql_bind_text(statement, 1, numbers[i].key);
        bind_ns(statement, 2, numbers[i].value);
        step(writer, statement);
    }
    const struct {
        const char *key, *value;
        enum lac_export_text what;
    } texts[] = {
        {"name", lac_model_str(writer->model, info->name), LAC_EXPORT_TEXT_GIVEN},
        {"host", lac_model_str(writer->model, info->host), LAC_EXPORT_TEXT_PLAIN},
        {"format", lac_trace_format_name(info->format), LAC_EXPORT_TEXT_PLAIN},
        {"verdict", writer->source->analysis->verdict.text, LAC_EXPORT_TEXT_PLAIN},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(texts) && !writer->status; i++) {
        lac_sql_bind_text(statement, 1, texts[i].key);
        bind_text(writer, statement, 2, texts[i].what, texts[i].value);
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
}

static void write_rows(struct writer *writer)
{
    const struct lac_model *model = writer->model;
    sqlite3_stmt *statement = prepare(writer, "INSERT INTO process VALUES(?,?,?,?)");
    for (uint32_t p = 0; p < model->process_count && !writer->status; p++) {
        const struct lac_process *process = &model->processes[p];
        lac_sql_bind_i64(statement, 1, p);
        lac_sql_bind_text(statement, 2, lac_model_str(model, process->id_text));
        bind_text(writer, statement, 3, LAC_EXPORT_TEXT_ARGV, lac_model_str(model, process->name));
        bind_text(writer, statement, 4, LAC_EXPORT_TEXT_PLAIN,
                  lac_model_str(model, process->labels));
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
    statement = prepare(writer, "INSERT INTO device VALUES(?,?,?||'.'||?,?,?)");
    for (uint32_t d = 0; d < model->device_count && !writer->status; d++) {
        const struct lac_device *device = &model->devices[d];
        lac_sql_bind_i64(statement, 1, device->id);
        lac_sql_bind_text(statement, 2, lac_model_str(model, device->name));
        lac_sql_bind_i64(statement, 3, device->cc_major);
        lac_sql_bind_i64(statement, 4, device->cc_minor);
        bind_optional(statement, 5, device->sm_count > 0 ? device->sm_count : -1);
        bind_optional(statement, 6, device->memory_bytes > 0 ? device->memory_bytes : -1);
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
    statement = prepare(writer, "INSERT INTO track VALUES(?,?,?,?,?,?)");
    for (uint32_t t = 0; t < model->recorded_track_count && !writer->status; t++) {
        const struct lac_track *track = &model->tracks[t];
        lac_sql_bind_i64(statement, 1, t);
        lac_sql_bind_text(statement, 2, lac_track_kind_name(track->kind));
        bind_optional(statement, 3, track->process == LAC_NONE ? -1 : (int64_t)track->process);
        bind_text(writer, statement, 4, LAC_EXPORT_TEXT_PLAIN, lac_model_str(model, track->name));
        lac_sql_bind_text(statement, 5, lac_model_str(model, track->id_text));
        bind_optional(statement, 6, track->device);
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
}

/* -- slices ---------------------------------------------------------------------------------- */

struct slice_statements {
    sqlite3_stmt *slice, *kernel, *copy;
};

static void write_kernel(struct writer *writer, sqlite3_stmt *statement,
                         const struct lac_track *track, uint64_t s)
{
    const struct lac_model *model = writer->model;
    uint32_t name = model->slices.name[s];
    struct lac_name_class class;
    char short_name[96];
    lac_names_classify(lac_model_str(model, name), lac_strings_length(&model->strings, name),
                       &class);
    (void)lac_kernel_short_name(lac_model_str(model, name),
                                lac_strings_length(&model->strings, name), short_name,
                                sizeof(short_name));
    lac_sql_bind_i64(statement, 1, (int64_t)s);
    lac_sql_bind_text(statement, 2, short_name);
    lac_sql_bind_text(statement, 3, lac_word(LAC_WORDS_FAMILY, class.family)->id);
    lac_sql_bind_text(statement, 4, lac_word(LAC_WORDS_LAYOUT, class.layout)->id);
    lac_sql_bind_text(statement, 5, lac_tensor_core_name(class.tensor_core));
    bind_optional(statement, 6, track->device);
    uint32_t detail = model->slices.detail[s];
    for (int i = 0; i < 3 && detail < model->kernel_config_count; i++) {
        lac_sql_bind_i64(statement, 7 + i, model->kernel_configs[detail].grid[i]);
        lac_sql_bind_i64(statement, 10 + i, model->kernel_configs[detail].block[i]);
    }
    step(writer, statement);
}

static void write_copy(struct writer *writer, sqlite3_stmt *statement,
                       const struct lac_track *track, uint64_t s)
{
    const struct lac_model *model = writer->model;
    uint32_t detail = model->slices.detail[s];
    lac_sql_bind_i64(statement, 1, (int64_t)s);
    if (detail < model->copy_count) {
        const struct lac_copy *copy = &model->copies[detail];
        lac_sql_bind_text(statement, 2, lac_copy_kind_name((enum lac_copy_kind)copy->copy_kind));
        lac_sql_bind_text(statement, 3, lac_memory_kind_name((enum lac_memory_kind)copy->src));
        lac_sql_bind_text(statement, 4, lac_memory_kind_name((enum lac_memory_kind)copy->dst));
        bind_optional(statement, 5, copy->bytes);
    }
    bind_optional(statement, 6, track->device);
    step(writer, statement);
}

static void write_slice(struct writer *writer, const struct slice_statements *statements,
                        uint32_t t, uint64_t s)
{
    const struct lac_model *model = writer->model;
    const struct lac_slices *slices = &model->slices;
    const char *name = lac_model_str(model, slices->name[s]);
    uint8_t kind = slices->kind[s];
    bool is_given = (kind == LAC_SLICE_RANGE || kind == LAC_SLICE_PYTHON) &&
                    lac_names_host_class(name, strlen(name)) == LAC_HOST_OTHER;
    sqlite3_stmt *statement = statements->slice;
    lac_sql_bind_i64(statement, 1, (int64_t)s);
    lac_sql_bind_i64(statement, 2, t);
    lac_sql_bind_text(statement, 3, lac_slice_kind_name((enum lac_slice_kind)kind));
    bind_text(writer, statement, 4, is_given ? LAC_EXPORT_TEXT_GIVEN : LAC_EXPORT_TEXT_PLAIN, name);
    lac_sql_bind_i64(statement, 5, slices->start_ns[s]);
    lac_sql_bind_i64(statement, 6, slices->dur_ns[s]);
    lac_sql_bind_i64(statement, 7, slices->lane[s]);
    bind_optional(statement, 8, slices->corr[s] == 0 ? -1 : (int64_t)slices->corr[s]);
    bind_optional(statement, 9, slices->link[s] == LAC_NONE ? -1 : (int64_t)slices->link[s]);
    step(writer, statement);
    if (writer->status == LAC_OK && kind == LAC_SLICE_KERNEL) {
        write_kernel(writer, statements->kernel, &model->tracks[t], s);
    } else if (writer->status == LAC_OK && (kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET)) {
        write_copy(writer, statements->copy, &model->tracks[t], s);
    }
}

static void write_slices(struct writer *writer)
{
    const struct lac_model *model = writer->model;
    struct slice_statements statements = {
        .slice = prepare(writer, "INSERT INTO slice VALUES(?,?,?,?,?,?,?,?,?)"),
        .kernel = prepare(writer, "INSERT INTO kernel VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"),
        .copy = prepare(writer, "INSERT INTO copy VALUES(?,?,?,?,?,?)"),
    };
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_counter = track->kind == LAC_TRACK_COUNTER;
        for (uint64_t s = track->first;
             !is_counter && s < track->first + track->count && !writer->status; s++) {
            write_slice(writer, &statements, t, s);
        }
    }
    (void)sqlite3_finalize(statements.slice);
    (void)sqlite3_finalize(statements.kernel);
    (void)sqlite3_finalize(statements.copy);
}

static void write_samples(struct writer *writer)
{
    const struct lac_model *model = writer->model;
    sqlite3_stmt *statement = prepare(writer, "INSERT INTO counter VALUES(?,?,?)");
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        bool is_counter = track->kind == LAC_TRACK_COUNTER;
        for (uint64_t s = track->first;
             is_counter && s < track->first + track->count && !writer->status; s++) {
            lac_sql_bind_i64(statement, 1, t);
            lac_sql_bind_i64(statement, 2, model->sample_ts_ns[s]);
            bind_real(statement, 3, model->sample_value[s]);
            step(writer, statement);
        }
    }
    (void)sqlite3_finalize(statement);
}

/* -- what was found -------------------------------------------------------------------------- */

static void write_steps_and_gaps(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->source->analysis;
    sqlite3_stmt *statement = prepare(writer, "INSERT INTO step VALUES(?,?,?,?,?,?)");
    for (uint32_t s = 0; s < analysis->step_count && !writer->status; s++) {
        const struct lac_step *it = &analysis->steps[s];
        lac_sql_bind_i64(statement, 1, s);
        lac_sql_bind_i64(statement, 2, it->start_ns);
        lac_sql_bind_i64(statement, 3, it->dur_ns);
        lac_sql_bind_i64(statement, 4, it->wait_ns);
        lac_sql_bind_i64(statement, 5, it->starved_ns);
        lac_sql_bind_text(statement, 6,
                          it->left_out == LAC_STEP_KEPT
                              ? NULL
                              : lac_step_left_out_name((enum lac_step_left_out)it->left_out));
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
    statement = prepare(writer, "INSERT INTO gap VALUES(?,?,?,?,?)");
    for (uint64_t p = 0; p < analysis->piece_count && !writer->status; p++) {
        const struct lac_gap_piece *piece = &analysis->pieces[p];
        const struct lac_gap *gap = &analysis->gaps[piece->gap];
        lac_sql_bind_i64(statement, 1, analysis->devices[gap->device].id);
        lac_sql_bind_i64(statement, 2, piece->start_ns);
        lac_sql_bind_i64(statement, 3, lac_gap_piece_dur_ns(analysis, p));
        lac_sql_bind_text(statement, 4, lac_cause_name((enum lac_cause)piece->cause));
        bind_optional(statement, 5, gap->ended_by == LAC_NONE ? -1 : (int64_t)gap->ended_by);
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
}

static void write_findings(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->source->analysis;
    sqlite3_stmt *statement =
        prepare(writer, "INSERT INTO finding VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    for (uint32_t i = 0; i < analysis->finding_count && !writer->status; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        const char *const texts[] = {finding->title,  finding->why,   finding->change,
                                     finding->expect, finding->costs, finding->wrong_if,
                                     finding->check};
        lac_sql_bind_i64(statement, 1, i);
        lac_sql_bind_text(statement, 2, finding->id);
        lac_sql_bind_text(statement, 3, lac_severity_name(finding->severity));
        bind_ns(statement, 4, finding->cost_ns_per_step);
        bind_real(statement, 5, finding->gain_low_pct);
        bind_real(statement, 6, finding->gain_mid_pct);
        bind_real(statement, 7, finding->gain_high_pct);
        for (int t = 0; t < 7; t++) {
            bind_text(writer, statement, 8 + t, LAC_EXPORT_TEXT_PLAIN, texts[t]);
        }
        step(writer, statement);
    }
    (void)sqlite3_finalize(statement);
}

enum lac_status lac_export_sqlite(const struct lac_export_sqlite *source, const char *path,
                                  struct lac_error *reterr)
{
    assert(source != NULL && path != NULL);
    struct writer writer = {.source = source, .model = source->model, .reterr = reterr};
    writer.status = lac_sql_init(reterr);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (!writer.status && sqlite3_open_v2(path, &writer.db, flags, LAC_CHECKED_VFS)) {
        writer.status = lac_sql_fail(writer.db, "opening the file", reterr);
    }
    if (!writer.status) {
        writer.status = lac_sql_run(writer.db, schema, reterr);
    }
    write_trace(&writer);
    write_rows(&writer);
    write_slices(&writer);
    write_samples(&writer);
    write_steps_and_gaps(&writer);
    write_findings(&writer);
    if (!writer.status) {
        writer.status = lac_sql_run(writer.db, indexes, reterr);
    }
    (void)sqlite3_close(writer.db);
    return writer.status;
}
