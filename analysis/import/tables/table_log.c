/*
 * Logs of counters: nvidia-smi --query-gpu (CSV, with and without headings), nvidia-smi dmon, dcgmi
 * dmon, nmon. Each column of each GPU is a counter track of the process "host".
 */

#include "analysis/import/tables/table_log_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *heading;
    const char *counter;
    double scale;
} COLUMNS[] = {
#define LAC_LOG_COLUMN(heading, counter, scale) {(heading), (counter), (scale)},
#include "analysis/import/tables/table_log.def"
#undef LAC_LOG_COLUMN
};

/* ---- headings ---- */

static int column_row(struct lac_table_field heading)
{
    for (size_t i = 0; i < LAC_COUNT_OF(COLUMNS); i++) {
        if (lac_field_is(heading, COLUMNS[i].heading)) {
            return (int)i;
        }
    }
    return -1;
}

static struct lac_table_field without_unit(struct lac_table_field heading)
{
    const char *open = memchr(heading.text, '[', heading.size);
    return open == NULL ? heading
                        : lac_field_trimmed((struct lac_table_field){
                              heading.text, (size_t)(open - heading.text)});
}

static bool is_any(struct lac_table_field field, const char *const *texts)
{
    for (size_t i = 0; texts[i] != NULL; i++) {
        if (strlen(texts[i]) == field.size && strncasecmp(texts[i], field.text, field.size) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const TIMES[] = {"timestamp", "time", "datetime", "#timestamp", NULL};
static const char *const NUMBERS[] = {"gpu", "gpu_index", "gpu_id", "index", NULL};
static const char *const NAMES[] = {"uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", NULL};

/* "2026/04/25 16:06:06.780, 0 %, 2 MiB": a date, then values with units. */
static bool is_row_of_values(const struct lac_table_field *fields, size_t count)
{
    int64_t ns = 0;
    enum lac_date_zone zone;
    struct lac_table_field number;
    struct lac_table_field unit;
    static const char *const UNITS[] = {"%", "MiB", "W", "MHz", NULL};
    if (count < 2 || !lac_field_date(fields[0], &ns, &zone)) {
        return false;
    }
    for (size_t i = 1; i < count; i++) {
        if (lac_field_number(fields[i], &number, &unit) && is_any(unit, UNITS)) {
            return true;
        }
    }
    return false;
}

/* Headings of nvidia-smi: one of its own names that has a point in it, or all of them its own. */
static bool is_smi_heading(const struct lac_table_field *fields, size_t count)
{
    size_t known = 0;
    bool has_point = false;
    for (size_t i = 0; i < count; i++) {
        struct lac_table_field heading = without_unit(fields[i]);
        bool is_known = column_row(heading) >= 0 && memchr(heading.text, '.', heading.size) != NULL;
        known += is_known ? 1 : 0;
        has_point = has_point || is_known;
    }
    return has_point && (known == count || count > 1);
}

static enum lac_table_kind log_kind(char *line, size_t size, struct lac_table_field *fields,
                                    size_t *ret_count)
{
    struct lac_table_field text = lac_field_trimmed((struct lac_table_field){line, size});
    *ret_count = 0;
    if (text.size < 4 || text.text[0] == '{' || text.text[0] == '=') {
        return LAC_TABLE_NONE;
    }
    if (lac_field_begins(text, "AAA,")) {
        return LAC_TABLE_NMON;
    }
    if (text.text[0] == '#') {
        struct lac_table_field rest =
            lac_field_trimmed((struct lac_table_field){text.text + 1, text.size - 1});
        size_t count = lac_table_split(line + (rest.text - line), rest.size, LAC_TABLE_WORDS,
                                       fields, LAC_TABLE_FIELDS_MAX);
        bool has_gpu = false;
        bool has_counter = false;
        for (size_t i = 0; i < count && count != SIZE_MAX; i++) {
            has_gpu =
                has_gpu || lac_field_is(fields[i], "gpu") || lac_field_is(fields[i], "Entity");
            has_counter = has_counter || column_row(fields[i]) >= 0;
        }
        *ret_count = count;
        return has_gpu && has_counter ? LAC_TABLE_DMON : LAC_TABLE_NONE;
    }
    if (memchr(line, '"', size) != NULL) {
        return LAC_TABLE_NONE;
    }
    size_t count = lac_table_split(line, size, LAC_TABLE_CSV, fields, LAC_TABLE_FIELDS_MAX);
    *ret_count = count;
    if (count == SIZE_MAX || count == 0) {
        return LAC_TABLE_NONE;
    }
    return is_smi_heading(fields, count) || is_row_of_values(fields, count) ? LAC_TABLE_LOG
                                                                            : LAC_TABLE_NONE;
}

bool lac_table_log_is_heading(char *line, size_t size, struct lac_table_field *fields)
{
    size_t count = 0;
    return log_kind(line, size, fields, &count) != LAC_TABLE_NONE;
}

static void set_column(struct lac_log_column *column, struct lac_table_field heading)
{
    int row = column_row(without_unit(heading));
    const char *open = memchr(heading.text, '[', heading.size);
    struct lac_table_field name = without_unit(heading);
    char text[LAC_LOG_NAME_BYTES - 20];
    char unit[16] = "";
    if (row >= 0) {
        (void)snprintf(column->name, sizeof(column->name), "%s", COLUMNS[row].counter);
        column->scale = COLUMNS[row].scale;
        return;
    }
    if (open != NULL && heading.text[heading.size - 1] == ']') {
        lac_field_copy(
            (struct lac_table_field){open + 1, (size_t)(heading.text + heading.size - 2 - open)},
            unit, sizeof(unit));
    }
    lac_field_copy(name, text, sizeof(text));
    (void)snprintf(column->name, sizeof(column->name), unit[0] != '\0' ? "%s (%s)" : "%s%s", text,
                   unit);
    column->scale = 1;
}

/* Columns of a row that has no heading above it: by their place and unit. */
static void name_by_unit(struct lac_table_log *log, const struct lac_table_field *fields)
{
    for (size_t i = 1; i < log->column_count; i++) {
        struct lac_table_field number;
        struct lac_table_field unit = {"", 0};
        char text[16];
        log->columns[i].scale = 1;
        if (!lac_field_number(fields[i], &number, &unit)) {
            continue;
        }
        lac_field_copy(unit, text, sizeof(text));
        (void)snprintf(log->columns[i].name, sizeof(log->columns[i].name),
                       text[0] != '\0' ? "column %zu (%s)" : "column %zu%s", i + 1, text);
    }
}

static void name_by_heading(struct lac_table_log *log, const struct lac_table_field *fields)
{
    for (size_t i = 0; i < log->column_count; i++) {
        struct lac_table_field heading = without_unit(fields[i]);
        bool is_date = lac_field_is(heading, "Date");
        if (log->time_column < 0 && (is_any(heading, TIMES) || is_date)) {
            log->time_column = (int)i;
        } else if (log->time_column >= 0 && log->clock_column < 0 &&
                   lac_field_is(heading, "Time")) {
            log->clock_column = (int)i;
        } else if (is_any(heading, NUMBERS) && !log->gpu_is_number) {
            log->gpu_column = (int)i; /* a log with both has put the number under "gpu" */
            log->gpu_is_number = true;
        } else if (is_any(heading, NUMBERS)) {
            continue; /* the number once more */
        } else if (lac_field_is(heading, "memory.total")) {
            log->columns[i].is_memory_size = true;
        } else if (lac_field_is(heading, "Entity")) {
            log->gpu_column = (int)i;
        } else if (is_any(heading, NAMES)) {
            log->gpu_column = log->gpu_column < 0 ? (int)i : log->gpu_column;
        } else if (!lac_field_is(heading, "name") && !lac_field_is(heading, "gpu_name")) {
            set_column(&log->columns[i], fields[i]);
        }
    }
}

static enum lac_status check_times(struct lac_tables *tables)
{
    struct lac_table_log *log = tables->log;
    if (log->kind == LAC_TABLE_LOG && log->time_column < 0) {
        return lac_fail(tables->reterr, LAC_ERR_CORRUPT, 0,
                        "an nvidia-smi log without times: record it with nvidia-smi "
                        "--query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv -l 1");
    }
    if (log->kind == LAC_TABLE_DMON && log->time_column < 0) {
        log->is_without_time = true;
    }
    return LAC_OK;
}

static enum lac_status host_process(struct lac_tables *tables)
{
    uint32_t id = 0;
    enum lac_status status = lac_tables_intern_own(tables, &id, "host");
    if (status == LAC_OK) {
        status = lac_tables_pass(
            tables, lac_builder_process(tables->builder, id, -1, &tables->log->process));
    }
    if (status == LAC_OK) {
        lac_builder_process_at(tables->builder, tables->log->process)->name = id;
    }
    return status;
}

static enum lac_status on_values(struct lac_tables *tables);

enum lac_status lac_table_log_begin(struct lac_tables *tables, char *line, size_t size,
                                    bool *ret_is_log)
{
    char *copy = malloc(size + 1);
    size_t count = 0;
    *ret_is_log = false;
    if (copy == NULL) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    memcpy(copy, line, size);
    enum lac_table_kind kind = log_kind(copy, size, tables->fields, &count);
    *ret_is_log = kind != LAC_TABLE_NONE;
    enum lac_status status = LAC_OK;
    if (*ret_is_log) {
        tables->log = calloc(1, sizeof(*tables->log));
        status = tables->log == NULL ? lac_tables_pass(tables, LAC_ERR_NOMEM) : LAC_OK;
    }
    if (*ret_is_log && status == LAC_OK) {
        struct lac_table_log *log = tables->log;
        log->kind = kind;
        log->column_count = count;
        log->time_column = -1;
        log->clock_column = -1;
        log->gpu_column = -1;
        log->first_gpu = -1;
        tables->field_count = count;
        tables->model->info.format = LAC_FORMAT_GPU_LOG;
        status = host_process(tables);
        if (status == LAC_OK && kind == LAC_TABLE_NMON) {
            status = lac_nmon_open(tables);
        }
        if (status == LAC_OK && kind == LAC_TABLE_LOG && is_row_of_values(tables->fields, count)) {
            log->time_column = 0;
            name_by_unit(log, tables->fields);
            status = on_values(tables);
        } else if (status == LAC_OK && kind != LAC_TABLE_NMON) {
            name_by_heading(log, tables->fields);
            status = check_times(tables);
        }
    }
    free(copy);
    return status;
}

void lac_table_log_done(struct lac_tables *tables)
{
    if (tables->log != NULL) {
        lac_nmon_done(tables->log->nmon);
    }
    free(tables->log);
    tables->log = NULL;
}

/* ---- rows ---- */

enum lac_status lac_table_log_sample(struct lac_tables *tables, int64_t gpu, const char *name,
                                     double value)
{
    uint32_t id = 0;
    uint32_t track = 0;
    enum lac_status status =
        gpu >= 0 ? lac_tables_intern_own(tables, &id, "GPU %" PRId64 ": %s", gpu, name)
                 : lac_tables_intern_own(tables, &id, "%s", name);
    if (status == LAC_OK) {
        status = lac_tables_pass(tables, lac_builder_track(tables->builder, LAC_TRACK_COUNTER,
                                                           tables->log->process, id, -1, &track));
    }
    if (status == LAC_OK && tables->model->track_count > tables->options->limits.track_count_max) {
        status = lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                          "more than %u tracks (limit track_count_max)",
                          tables->options->limits.track_count_max);
    }
    if (status == LAC_OK) {
        lac_builder_track_at(tables->builder, track)->name = id;
        lac_builder_track_at(tables->builder, track)->device = gpu;
        status = lac_tables_pass(
            tables, lac_builder_sample(tables->builder, track, tables->log->now_ns, value));
    }
    return status;
}

/* The GPU of a row: its number, else the how manieth of the names it is. */
static enum lac_status gpu_of(struct lac_tables *tables, int64_t *ret_gpu)
{
    struct lac_table_log *log = tables->log;
    struct lac_table_field field = {"", 0};
    uint32_t id = 0;
    *ret_gpu = 0;
    if (log->gpu_column >= 0 && (size_t)log->gpu_column < tables->field_count) {
        field = tables->fields[log->gpu_column];
    }
    if (lac_field_begins(field, "GPU ")) {
        field = (struct lac_table_field){field.text + 4, field.size - 4};
    }
    if (field.size == 0 ||
        (lac_field_integer(field, ret_gpu) && *ret_gpu >= 0 && *ret_gpu < LAC_LOG_GPUS_MAX)) {
        return LAC_OK;
    }
    enum lac_status status = lac_tables_intern(tables, field, &id);
    uint32_t at = 0;
    while (at < log->gpu_count && log->gpus[at] != id) {
        at++;
    }
    if (at == log->gpu_count && at + 1 < LAC_LOG_GPUS_MAX) {
        log->gpus[log->gpu_count++] = id;
    }
    *ret_gpu = at;
    return status;
}

/* The time of a row; false: it has none that can be read. */
static bool read_time(struct lac_tables *tables)
{
    struct lac_table_log *log = tables->log;
    enum lac_date_zone zone = LAC_DATE_UTC;
    char text[96];
    char clock[32] = "";
    if ((size_t)log->time_column >= tables->field_count) {
        return false;
    }
    lac_field_copy(tables->fields[log->time_column], text, 48);
    if (log->clock_column >= 0 && (size_t)log->clock_column < tables->field_count) {
        size_t used = strlen(text);
        lac_field_copy(tables->fields[log->clock_column], clock, sizeof(clock));
        (void)snprintf(text + used, sizeof(text) - used, " %s", clock);
    }
    int64_t ns = 0;
    if (!lac_field_date((struct lac_table_field){text, strlen(text)}, &ns, &zone)) {
        return false;
    }
    log->is_local = log->is_local || zone == LAC_DATE_LOCAL;
    log->now_ns = ns;
    log->has_now = true;
    return true;
}

/* A mask of reasons is written in base 16. */
bool lac_table_log_value(struct lac_table_field field, double *ret_value)
{
    if (field.size > 2 && field.size <= 18 && field.text[0] == '0' && field.text[1] == 'x') {
        uint64_t bits = 0;
        for (size_t i = 2; i < field.size; i++) {
            char c = field.text[i];
            int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
            if (digit < 0) {
                return false;
            }
            bits = bits << 4 | (uint64_t)digit;
        }
        *ret_value = (double)bits;
        return true;
    }
    return lac_field_real(field, ret_value);
}

/* MiB, as nvidia-smi counts. What never changes is no counter: it would be a straight line. */
static enum lac_status set_memory_size(struct lac_tables *tables, int64_t gpu,
                                       struct lac_table_field field)
{
    double mebibytes = 0;
    if (!lac_table_log_value(field, &mebibytes) || !(mebibytes > 0 && mebibytes < 1e9)) {
        return LAC_OK;
    }
    struct lac_device *device = lac_builder_device(tables->builder, gpu);
    if (device == NULL) {
        return LAC_ERR_NOMEM;
    }
    device->memory_bytes = (int64_t)(mebibytes * 1048576.0);
    return LAC_OK;
}

static enum lac_status on_values(struct lac_tables *tables)
{
    struct lac_table_log *log = tables->log;
    int64_t gpu = 0;
    enum lac_status status = gpu_of(tables, &gpu);
    if (status != LAC_OK) {
        return status;
    }
    if (log->is_without_time) {
        log->first_gpu = log->first_gpu < 0 ? gpu : log->first_gpu;
        log->round += gpu == log->first_gpu && log->has_now ? 1 : 0;
        log->now_ns = log->round * INT64_C(1000000000);
        log->has_now = true;
    } else if (!read_time(tables)) {
        lac_tables_drop(tables, "row_without_times", "Rows without a time were dropped.");
        return LAC_OK;
    }
    tables->model->info.event_count++;
    tables->lines.row_count++;
    for (size_t i = 0; i < tables->field_count && i < log->column_count && status == LAC_OK; i++) {
        double value = 0;
        if (log->columns[i].is_memory_size) {
            status = set_memory_size(tables, gpu, tables->fields[i]);
        } else if (log->columns[i].name[0] != '\0' &&
                   lac_table_log_value(tables->fields[i], &value)) {
            status = lac_table_log_sample(tables, gpu, log->columns[i].name,
                                          value * log->columns[i].scale);
        }
    }
    return status;
}

/* "# gpu pwr ..." comes again every page; "# Idx W ..." has the units, as has "ID" of dcgmi. */
static enum lac_status dmon_line(struct lac_tables *tables, char *line, size_t size)
{
    struct lac_table_field text = lac_field_trimmed((struct lac_table_field){line, size});
    if (text.size == 0 || text.text[0] == '#' || lac_field_is(text, "ID")) {
        return LAC_OK;
    }
    size_t count =
        lac_table_split(line, size, LAC_TABLE_WORDS, tables->fields, LAC_TABLE_FIELDS_MAX);
    if (count != SIZE_MAX && count > 1 && lac_field_is(tables->fields[0], "GPU")) {
        count--; /* "GPU 0": one entity in two words */
        memmove(tables->fields, tables->fields + 1, count * sizeof(*tables->fields));
    }
    if (count == SIZE_MAX || count != tables->log->column_count) {
        lac_tables_drop(tables, "row_damaged", "Rows with another number of columns were dropped.");
        return LAC_OK;
    }
    tables->field_count = count;
    return on_values(tables);
}

/* ---- all dialects ---- */

enum lac_status lac_table_log_line(struct lac_tables *tables, char *line, size_t size)
{
    size_t count = 0;
    if (tables->log->kind == LAC_TABLE_DMON) {
        return dmon_line(tables, line, size);
    }
    if (tables->log->kind == LAC_TABLE_NMON) {
        return lac_nmon_line(tables, line, size);
    }
    count = lac_table_split(line, size, LAC_TABLE_CSV, tables->fields, LAC_TABLE_FIELDS_MAX);
    if (count == 0) {
        return LAC_OK;
    }
    if (count != tables->log->column_count) {
        lac_tables_drop(tables, "row_damaged", "Rows with another number of columns were dropped.");
        return LAC_OK;
    }
    tables->field_count = count;
    return on_values(tables);
}

enum lac_status lac_table_log_end(struct lac_tables *tables)
{
    const struct lac_table_log *log = tables->log;
    if (log == NULL) {
        return LAC_OK;
    }
    if (!log->has_now) {
        return lac_fail(tables->reterr, LAC_ERR_CORRUPT, 0,
                        "the log has no row with a time that could be read");
    }
    if (log->is_local) {
        lac_model_report(tables->model, LAC_REPORT_INFO, "times_without_zone", 1, 0,
                         "The log's times name no time zone: they are read as UTC.");
    }
    if (log->is_without_time) {
        lac_model_report(tables->model, LAC_REPORT_INFO, "rounds_without_time", 1, 0,
                         "The log has no times: its rounds are shown a second apart. nvidia-smi "
                         "dmon -o DT writes them.");
    }
    return LAC_OK;
}
