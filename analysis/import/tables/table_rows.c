/* Rows of operations and calls: where they belong, and those that have their times. */

#include "analysis/import/tables/tables_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_tables_pass(struct lac_tables *tables, enum lac_status status)
{
    if (status == LAC_ERR_NOMEM) {
        return lac_fail(tables->reterr, status, 0, "out of memory");
    }
    if (status == LAC_ERR_LIMIT) {
        return lac_fail(tables->reterr, status, tables->lines.offset_bytes,
                        "more rows or names than a trace may have");
    }
    return status;
}

enum lac_status lac_tables_intern(struct lac_tables *tables, struct lac_table_field text,
                                  uint32_t *ret_id)
{
    if (text.size > tables->options->limits.name_bytes_max) {
        return lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                        "a name of %zu bytes (limit name_bytes_max is %u)", text.size,
                        tables->options->limits.name_bytes_max);
    }
    char *const clean = malloc(text.size * 3 + 1);
    size_t repaired_count = 0;
    if (clean == NULL) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    const size_t used =
        lac_utf8_repair(text.text, text.size, clean, text.size * 3, &repaired_count);
    const enum lac_status status = lac_strings_intern(&tables->model->strings, clean, used, ret_id);
    free(clean);
    if (repaired_count > 0) {
        lac_model_report(tables->model, LAC_REPORT_REPAIRED, "bad_utf8", 1,
                         tables->lines.offset_bytes,
                         "Bytes of names that are not UTF-8 were replaced.");
    }
    return lac_tables_pass(tables, status);
}

enum lac_status lac_tables_intern_own(struct lac_tables *tables, uint32_t *ret_id,
                                      const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t size = length < 0                      ? 0
                  : (size_t)length < sizeof(text) ? (size_t)length
                                                  : sizeof(text) - 1;
    return lac_tables_intern(tables, (struct lac_table_field){text, size}, ret_id);
}

void lac_tables_drop(struct lac_tables *tables, const char *code, const char *text)
{
    lac_model_report(tables->model, LAC_REPORT_DROPPED, code, 1, tables->lines.offset_bytes, text);
}

/* ---- rows of the model ---- */

static enum lac_status process_of(struct lac_tables *tables, uint32_t id_text, int64_t pid,
                                  bool is_gpu, uint32_t *ret_process)
{
    enum lac_status status =
        lac_tables_pass(tables, lac_builder_process(tables->builder, id_text, pid, ret_process));
    if (status == LAC_OK) {
        struct lac_process *process = lac_builder_process_at(tables->builder, *ret_process);
        process->is_gpu = is_gpu;
        process->labels = is_gpu ? id_text : 0;
    }
    return status;
}

enum lac_status lac_tables_stream(struct lac_tables *tables, int64_t device,
                                  struct lac_table_field stream, uint32_t *ret_track)
{
    char text[64];
    uint32_t process = 0;
    uint32_t id = 0;
    uint32_t name = 0;
    int64_t number = -1;
    lac_field_copy(stream, text, sizeof(text));
    if (!lac_field_integer(stream, &number) || number < 0) {
        number = -1;
    }
    enum lac_status status = lac_tables_intern_own(tables, &id, "GPU %" PRId64, device);
    if (status == LAC_OK) {
        status = process_of(tables, id, -1, true, &process);
    }
    if (status == LAC_OK) {
        status = lac_tables_intern_own(tables, &id, "%s", text);
    }
    if (status == LAC_OK) {
        status =
            lac_tables_intern_own(tables, &name, stream.size > 0 ? "stream %s" : "%sstreams", text);
    }
    if (status == LAC_OK) {
        status = lac_tables_pass(tables, lac_builder_track(tables->builder, LAC_TRACK_STREAM,
                                                           process, id, number, ret_track));
    }
    if (status == LAC_OK && lac_builder_device(tables->builder, device) == NULL) {
        status = lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    if (status == LAC_OK) {
        lac_builder_track_at(tables->builder, *ret_track)->device = device;
        lac_builder_track_at(tables->builder, *ret_track)->name = name;
    }
    return status;
}

enum lac_status lac_tables_thread(struct lac_tables *tables, struct lac_table_field process,
                                  struct lac_table_field thread, uint32_t *ret_track)
{
    int64_t pid = -1;
    int64_t tid = -1;
    uint32_t index = 0;
    uint32_t id = 0;
    enum lac_status status = process.size > 0 ? lac_tables_intern(tables, process, &id)
                                              : lac_tables_intern_own(tables, &id, "host");
    if (!lac_field_integer(process, &pid) || pid < 0) {
        pid = -1;
    }
    if (!lac_field_integer(thread, &tid) || tid < 0) {
        tid = -1;
    }
    if (status == LAC_OK) {
        status = process_of(tables, id, pid, false, &index);
    }
    if (status == LAC_OK) {
        status = thread.size > 0 ? lac_tables_intern(tables, thread, &id)
                                 : lac_tables_intern_own(tables, &id, "calls");
    }
    if (status == LAC_OK) {
        status = lac_tables_pass(tables, lac_builder_track(tables->builder, LAC_TRACK_THREAD, index,
                                                           id, tid, ret_track));
    }
    if (status == LAC_OK) {
        lac_builder_track_at(tables->builder, *ret_track)->device = -1;
    }
    return status;
}

enum lac_status lac_tables_add(struct lac_tables *tables, const struct lac_slice_in *slice)
{
    if (tables->slice_count >= tables->options->limits.slice_count_max) {
        return lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                        "more than %" PRIu64 " slices (limit slice_count_max)",
                        tables->options->limits.slice_count_max);
    }
    if (tables->model->track_count > tables->options->limits.track_count_max) {
        return lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                        "more than %u tracks (limit track_count_max)",
                        tables->options->limits.track_count_max);
    }
    tables->slice_count++;
    return lac_tables_pass(tables, lac_builder_slice(tables->builder, slice));
}

/* ---- what a row is ---- */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

enum lac_slice_kind lac_table_kind_of_name(struct lac_table_field name)
{
    if (lac_field_begins(name, "[CUDA mem") || lac_field_begins(name, "[CUDA Mem") ||
        lac_field_begins(name, "[CUDA Unified") || lac_field_begins(name, "MEMORY_COPY")) {
        return lac_field_has(name, "emset") ? LAC_SLICE_MEMSET : LAC_SLICE_COPY;
    }
    /* a kernel that demangled has its parameters; what begins so and has none is a call */
    bool is_call = lac_field_begins(name, "cuda") || lac_field_begins(name, "hip") ||
                   lac_field_begins(name, "hsa_") || lac_field_begins(name, "roctx") ||
                   (lac_field_begins(name, "cu") && name.size > 2 && is_upper(name.text[2]));
    return is_call && memchr(name.text, '(', name.size) == NULL &&
                   memchr(name.text, '<', name.size) == NULL
               ? LAC_SLICE_API
               : LAC_SLICE_KERNEL;
}

static uint8_t memory_of(struct lac_table_field field)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } KINDS[] = {
        {"Pageable", LAC_MEMORY_PAGEABLE}, {"Pinned", LAC_MEMORY_PINNED},
        {"Device", LAC_MEMORY_DEVICE},     {"Array", LAC_MEMORY_ARRAY},
        {"Managed", LAC_MEMORY_MANAGED},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(KINDS); i++) {
        if (lac_field_is(field, KINDS[i].text)) {
            return KINDS[i].kind;
        }
    }
    return LAC_MEMORY_UNKNOWN;
}

static uint8_t direction_of(struct lac_table_field name)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } KINDS[] = {
        {"HtoD", LAC_COPY_HTOD},
        {"DtoH", LAC_COPY_DTOH},
        {"DtoD", LAC_COPY_DTOD},
        {"HtoH", LAC_COPY_HTOH},
        {"PtoP", LAC_COPY_PTOP},
        {"Host-to-Device", LAC_COPY_HTOD},
        {"Device-to-Host", LAC_COPY_DTOH},
        {"Device-to-Device", LAC_COPY_DTOD},
        {"Host-to-Host", LAC_COPY_HTOH},
        {"Peer-to-Peer", LAC_COPY_PTOP},
        {"HOST_TO_DEVICE", LAC_COPY_HTOD},
        {"DEVICE_TO_HOST", LAC_COPY_DTOH},
        {"DEVICE_TO_DEVICE", LAC_COPY_DTOD},
        {"HOST_TO_HOST", LAC_COPY_HTOH},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(KINDS); i++) {
        if (lac_field_has(name, KINDS[i].text)) {
            return KINDS[i].kind;
        }
    }
    return LAC_COPY_UNKNOWN;
}

static struct lac_table_field unit_of(const struct lac_tables *tables, enum lac_table_role role)
{
    const char *unit = tables->heading.unit_of[role];
    return (struct lac_table_field){unit, strlen(unit)};
}

static int64_t bytes_of(const struct lac_tables *tables, enum lac_table_role role,
                        int64_t otherwise)
{
    int64_t bytes = 0;
    struct lac_table_field field = lac_table_get(tables, role);
    /* nvprof's throughput column tells: 112 B in 1.184 us are 90.2 of its MB/s */
    const enum lac_size_base base =
        tables->heading.format == LAC_FORMAT_NVPROF ? LAC_SIZE_BINARY : LAC_SIZE_DECIMAL;
    if (lac_field_bytes(field, unit_of(tables, role), base, &bytes)) {
        return bytes;
    }
    /* columns of ROCm count bytes and say no unit */
    return tables->heading.format == LAC_FORMAT_ROCPROF && lac_field_integer(field, &bytes) &&
                   bytes >= 0
               ? bytes
               : otherwise;
}

/* As the PyTorch profiler names copies, so that traces of all tools compare. */
static enum lac_status copy_of(struct lac_tables *tables, struct lac_table_field name,
                               struct lac_slice_in *slice)
{
    static const char *const MEMORY_NAMES[] = {"Unknown", "Pageable", "Pinned",
                                               "Device",  "Array",    "Managed"};
    struct lac_copy copy = {
        .bytes = bytes_of(tables, LAC_ROLE_SIZE, -1),
        .copy_kind = slice->kind == LAC_SLICE_COPY ? direction_of(name) : LAC_COPY_UNKNOWN,
        .src = memory_of(lac_table_get(tables, LAC_ROLE_SOURCE)),
        .dst = memory_of(lac_table_get(tables, LAC_ROLE_TARGET)),
        .is_async = 2,
    };
    enum lac_status status = LAC_OK;
    if (slice->kind == LAC_SLICE_MEMSET) {
        copy.dst = copy.dst == LAC_MEMORY_UNKNOWN ? copy.src : copy.dst;
        copy.src = LAC_MEMORY_UNKNOWN;
        status = lac_tables_intern_own(tables, &slice->name, "Memset (%s)", MEMORY_NAMES[copy.dst]);
    } else if (copy.copy_kind != LAC_COPY_UNKNOWN) {
        const char *kind = lac_copy_kind_name((enum lac_copy_kind)copy.copy_kind);
        status = copy.src == LAC_MEMORY_UNKNOWN && copy.dst == LAC_MEMORY_UNKNOWN
                     ? lac_tables_intern_own(tables, &slice->name, "Memcpy %s", kind)
                     : lac_tables_intern_own(tables, &slice->name, "Memcpy %s (%s -> %s)", kind,
                                             MEMORY_NAMES[copy.src], MEMORY_NAMES[copy.dst]);
    } else {
        status = lac_tables_intern(tables, name, &slice->name);
    }
    return status == LAC_OK
               ? lac_tables_pass(tables, lac_builder_copy(tables->builder, &copy, &slice->detail))
               : status;
}

/* "(32 1 1)" or "(256, 1, 1)": up to three whole numbers. */
static void triple(struct lac_table_field field, uint32_t out[3])
{
    size_t at = 0;
    for (size_t i = 0; i < field.size && at < 3; i++) {
        uint64_t value = 0;
        bool is_number = false;
        for (; i < field.size && field.text[i] >= '0' && field.text[i] <= '9'; i++) {
            value = value < UINT32_MAX ? value * 10 + (uint64_t)(field.text[i] - '0') : value;
            is_number = true;
        }
        if (is_number) {
            out[at++] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
        }
    }
}

static uint32_t count_of(const struct lac_tables *tables, enum lac_table_role role,
                         uint32_t otherwise)
{
    int64_t value = 0;
    return lac_table_number(tables, role, &value) && value >= 0 && value < UINT32_MAX
               ? (uint32_t)value
               : otherwise;
}

static enum lac_status kernel_of(struct lac_tables *tables, struct lac_slice_in *slice)
{
    struct lac_kernel_config config = {
        .registers_per_thread = count_of(tables, LAC_ROLE_REGISTERS, 0),
        .occupancy_pct = -1.0F,
        .blocks_per_sm = -1.0F,
    };
    int64_t shared = bytes_of(tables, LAC_ROLE_SHARED, 0) + bytes_of(tables, LAC_ROLE_DYNAMIC, 0);
    config.shared_memory_bytes = shared < UINT32_MAX ? (uint32_t)shared : UINT32_MAX;
    triple(lac_table_get(tables, LAC_ROLE_GRID), config.grid);
    triple(lac_table_get(tables, LAC_ROLE_BLOCK), config.block);
    for (int i = 0; i < 3; i++) {
        config.grid[i] =
            count_of(tables, (enum lac_table_role)(LAC_ROLE_GRID_X + i), config.grid[i]);
        config.block[i] =
            count_of(tables, (enum lac_table_role)(LAC_ROLE_BLOCK_X + i), config.block[i]);
        const bool is_total = i == 0 && tables->heading.kind == LAC_TABLE_COUNTERS;
        uint32_t items = count_of(
            tables, is_total ? LAC_ROLE_GRID : (enum lac_table_role)(LAC_ROLE_ITEMS_X + i), 0);
        if (items > 0 && config.block[i] > 0) {
            config.grid[i] = (uint32_t)(((uint64_t)items + config.block[i] - 1) / config.block[i]);
        }
    }
    if (tables->heading.kind == LAC_TABLE_COUNTERS) {
        config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 1;
    }
    if (config.grid[0] == 0 && config.block[0] == 0 && config.registers_per_thread == 0 &&
        config.shared_memory_bytes == 0) {
        return LAC_OK; /* the table says nothing of launches */
    }
    return lac_tables_pass(tables,
                           lac_builder_kernel_config(tables->builder, &config, &slice->detail));
}

enum lac_status lac_table_operation(struct lac_tables *tables, struct lac_table_field name,
                                    struct lac_slice_in *slice)
{
    if (slice->kind == LAC_SLICE_COPY || slice->kind == LAC_SLICE_MEMSET) {
        return copy_of(tables, name, slice);
    }
    enum lac_status status = lac_tables_intern(tables, name, &slice->name);
    return status == LAC_OK && slice->kind == LAC_SLICE_KERNEL ? kernel_of(tables, slice) : status;
}

/* ---- rows with times ---- */

/* "NVIDIA A100 (3)", "Agent 2", "0": the last number; 0 when there is none. */
static int64_t device_of(struct lac_table_field field)
{
    size_t end = field.size;
    int64_t value = 0;
    while (end > 0 && !(field.text[end - 1] >= '0' && field.text[end - 1] <= '9')) {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && field.text[begin - 1] >= '0' && field.text[begin - 1] <= '9') {
        begin--;
    }
    bool is_number = begin == 0 || field.text[begin - 1] == '(' || field.text[begin - 1] == ' ';
    return is_number && end - begin <= 6 &&
                   lac_field_integer((struct lac_table_field){field.text + begin, end - begin},
                                     &value) &&
                   value < LAC_DEVICE_COUNT_MAX
               ? value
               : 0;
}

/* The device's name, where the column holds more than its number. */
static enum lac_status name_device(struct lac_tables *tables, int64_t id,
                                   struct lac_table_field field)
{
    const char *open = memrchr(field.text, '(', field.size);
    struct lac_table_field name = {field.text, open == NULL ? 0 : (size_t)(open - field.text)};
    name = lac_field_trimmed(name);
    struct lac_device *device = lac_builder_device(tables->builder, id);
    if (device == NULL) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    if (name.size == 0 || device->name != 0) {
        return LAC_OK;
    }
    uint32_t text = 0;
    enum lac_status status = lac_tables_intern(tables, name, &text);
    lac_builder_device(tables->builder, id)->name = text;
    return status;
}

static bool has(const struct lac_tables *tables, enum lac_table_role role)
{
    return tables->heading.column_of[role] >= 0;
}

/* What a row with times is: by its type where ROCm says it, else by its columns and name. */
static enum lac_slice_kind kind_of_row(const struct lac_tables *tables, struct lac_table_field name)
{
    struct lac_table_field type = lac_table_get(tables, LAC_ROLE_TYPE);
    if (lac_field_is(type, "KERNEL_DISPATCH") || lac_field_is(type, "CUDA_KERNEL")) {
        return LAC_SLICE_KERNEL;
    }
    if (lac_field_is(type, "MEMORY_COPY")) {
        return LAC_SLICE_COPY;
    }
    if (lac_field_begins(type, "MARKER") || tables->heading.is_ranges) {
        return LAC_SLICE_RANGE;
    }
    if (type.size > 0 && has(tables, LAC_ROLE_TYPE) &&
        (lac_field_has(type, "_API") || lac_field_is(type, "SCRATCH_MEMORY") ||
         lac_field_is(type, "MEMORY_ALLOCATION"))) {
        return LAC_SLICE_API;
    }
    if (has(tables, LAC_ROLE_STREAM) || has(tables, LAC_ROLE_QUEUE)) {
        enum lac_slice_kind kind = lac_table_kind_of_name(name);
        return kind == LAC_SLICE_API ? LAC_SLICE_KERNEL : kind;
    }
    return LAC_SLICE_API;
}

/* nvprof's text has the correlation id behind the name: "kernel(int) [117]". */
static struct lac_table_field without_correlation(struct lac_table_field name,
                                                  int64_t *ret_correlation)
{
    const char *open = memrchr(name.text, '[', name.size);
    if (open == NULL || open == name.text || name.text[name.size - 1] != ']') {
        return name;
    }
    struct lac_table_field number = {open + 1, (size_t)(name.text + name.size - 1 - (open + 1))};
    if (!lac_field_integer(number, ret_correlation) || *ret_correlation < 0) {
        return name;
    }
    return lac_field_trimmed((struct lac_table_field){name.text, (size_t)(open - name.text)});
}

static enum lac_status place(struct lac_tables *tables, struct lac_slice_in *slice)
{
    bool is_gpu = slice->kind == LAC_SLICE_KERNEL || slice->kind == LAC_SLICE_COPY ||
                  slice->kind == LAC_SLICE_MEMSET;
    if (!is_gpu) {
        return lac_tables_thread(tables, lac_table_get(tables, LAC_ROLE_PROCESS),
                                 lac_table_get(tables, LAC_ROLE_THREAD), &slice->track);
    }
    enum lac_table_role role =
        has(tables, LAC_ROLE_AGENT_FROM)
            ? (direction_of(lac_table_get(tables, LAC_ROLE_NAME)) == LAC_COPY_HTOD
                   ? LAC_ROLE_AGENT_TO
                   : LAC_ROLE_AGENT_FROM)
            : LAC_ROLE_DEVICE;
    struct lac_table_field device = lac_table_get(tables, role);
    struct lac_table_field stream = lac_table_get(tables, LAC_ROLE_STREAM);
    int64_t id = device_of(device);
    if (stream.size == 0) {
        stream = lac_table_get(tables, LAC_ROLE_QUEUE);
    }
    if (stream.size == 0 && slice->kind == LAC_SLICE_COPY) {
        stream = (struct lac_table_field){"copies", 6};
    }
    enum lac_status status = lac_tables_stream(tables, id, stream, &slice->track);
    return status == LAC_OK ? name_device(tables, id, device) : status;
}

bool lac_table_timed_read(struct lac_tables *tables, struct lac_slice_in *slice)
{
    const struct lac_table_field name = lac_table_get(tables, LAC_ROLE_NAME);
    int64_t end_ns = 0;
    int64_t correlation = 0;
    const bool has_duration = lac_table_ns(tables, LAC_ROLE_DURATION, &slice->dur_ns);
    if (name.size == 0 || !lac_table_ns(tables, LAC_ROLE_START, &slice->start_ns) ||
        (!has_duration && !lac_table_ns(tables, LAC_ROLE_END, &end_ns))) {
        lac_tables_drop(tables, "row_without_times",
                        "Rows without a name, a start or a duration were dropped.");
        return false;
    }
    slice->dur_ns = has_duration ? slice->dur_ns : end_ns - slice->start_ns;
    if (slice->dur_ns < 0) {
        lac_model_report(tables->model, LAC_REPORT_REPAIRED, "negative_duration", 1,
                         tables->lines.offset_bytes,
                         "Intervals that end before they start were given no duration.");
        slice->dur_ns = 0;
    }
    (void)without_correlation(name, &correlation);
    if (has(tables, LAC_ROLE_CORRELATION)) {
        (void)lac_table_number(tables, LAC_ROLE_CORRELATION, &correlation);
    }
    slice->corr = correlation > 0 && correlation < UINT32_MAX ? (uint32_t)correlation : 0;
    tables->has_timed = true;
    return true;
}

enum lac_status lac_table_timed_place(struct lac_tables *tables, struct lac_slice_in *slice)
{
    int64_t correlation = 0;
    const struct lac_table_field name =
        without_correlation(lac_table_get(tables, LAC_ROLE_NAME), &correlation);
    const enum lac_status status = place(tables, slice);
    return status == LAC_OK ? lac_table_operation(tables, name, slice) : status;
}

enum lac_status lac_table_timed_row(struct lac_tables *tables)
{
    struct lac_slice_in slice = {.detail = LAC_NONE};
    int64_t correlation = 0;
    if (!lac_table_timed_read(tables, &slice)) {
        return LAC_OK;
    }
    slice.kind = kind_of_row(
        tables, without_correlation(lac_table_get(tables, LAC_ROLE_NAME), &correlation));
    const enum lac_status status = lac_table_timed_place(tables, &slice);
    return status == LAC_OK ? lac_tables_add(tables, &slice) : status;
}
