/* One event into the model. */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_scan.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_chrome_slice(struct lac_chrome *chrome, struct lac_slice_in *slice,
                                 const int64_t *numbers, uint32_t number_count)
{
    if (chrome->model->slices.count >= chrome->limits->slice_count_max) {
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "more than %llu slices (limit slice_count_max)",
                        (unsigned long long)chrome->limits->slice_count_max);
    }
    enum lac_status status = LAC_OK;
    if (number_count) {
        status = lac_builder_arg_numbers(chrome->builder, numbers, number_count, &slice->arg_num);
    }
    if (status == LAC_OK) {
        status = lac_builder_slice(chrome->builder, slice);
    }
    return lac_chrome_pass(chrome, status);
}

static enum lac_slice_kind kind_of(enum lac_event_class event_class)
{
    static const enum lac_slice_kind kinds[LAC_CLASS_COUNT_] = {
        [LAC_CLASS_OTHER] = LAC_SLICE_OTHER,   [LAC_CLASS_OP] = LAC_SLICE_OP,
        [LAC_CLASS_API] = LAC_SLICE_API,       [LAC_CLASS_RANGE] = LAC_SLICE_RANGE,
        [LAC_CLASS_PYTHON] = LAC_SLICE_PYTHON, [LAC_CLASS_OVERHEAD] = LAC_SLICE_OVERHEAD,
        [LAC_CLASS_KERNEL] = LAC_SLICE_KERNEL, [LAC_CLASS_COPY] = LAC_SLICE_COPY,
        [LAC_CLASS_MEMSET] = LAC_SLICE_MEMSET, [LAC_CLASS_GPU_RANGE] = LAC_SLICE_GPU_RANGE,
        [LAC_CLASS_SYNC] = LAC_SLICE_SYNC,
    };
    return kinds[event_class];
}

static bool is_gpu_class(enum lac_event_class event_class)
{
    return event_class >= LAC_CLASS_KERNEL && event_class <= LAC_CLASS_SYNC;
}

static uint32_t clamp_u32(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Correlation ids are 32 bits in CUPTI; anything else cannot be one. */
static uint32_t correlation_of(const struct lac_args_recipe *recipe, const int64_t *numbers)
{
    int64_t value = lac_args_field(recipe, numbers, LAC_FIELD_CORRELATION, 0);
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void prepare(const struct lac_interval *interval, struct lac_slice_in *slice)
{
    *slice = (struct lac_slice_in){
        .start_ns = interval->start_ns,
        .dur_ns = interval->dur_ns,
        .name = interval->name.id,
        .detail = LAC_NONE,
        .args = interval->args != NULL ? interval->args->template_id : 0,
        .kind = kind_of(interval->event_class),
    };
}

/* --- the GPU -----------------------------------------------------------------------------------*/

static enum lac_status kernel_row(struct lac_chrome *chrome, struct lac_args_recipe *recipe,
                                  const int64_t *numbers, uint32_t *ret_row)
{
    const uint32_t config_fields =
        (uint32_t)1 << LAC_FIELD_REGISTERS | (uint32_t)1 << LAC_FIELD_SHARED_MEMORY |
        (uint32_t)1 << LAC_FIELD_OCCUPANCY | (uint32_t)1 << LAC_FIELD_BLOCKS_PER_SM |
        (uint32_t)1 << LAC_FIELD_GRAPH_NODE | (uint32_t)0x3f << LAC_FIELD_GRID_X;
    if (recipe == NULL || !(recipe->has & config_fields)) {
        return LAC_OK;
    }
    if (recipe->config_row != LAC_NONE) {
        *ret_row = recipe->config_row;
        return LAC_OK;
    }
    struct lac_kernel_config config = {
        .registers_per_thread = clamp_u32(lac_args_field(recipe, numbers, LAC_FIELD_REGISTERS, 0)),
        .shared_memory_bytes =
            clamp_u32(lac_args_field(recipe, numbers, LAC_FIELD_SHARED_MEMORY, 0)),
        .occupancy_pct = (float)lac_args_field_real(recipe, numbers, LAC_FIELD_OCCUPANCY, -1),
        .blocks_per_sm = (float)lac_args_field_real(recipe, numbers, LAC_FIELD_BLOCKS_PER_SM, -1),
        .graph_node = (uint64_t)lac_args_field(recipe, numbers, LAC_FIELD_GRAPH_NODE, 0),
    };
    for (uint32_t i = 0; i < 3; i++) {
        config.grid[i] = clamp_u32(lac_args_field(recipe, numbers, LAC_FIELD_GRID_X + i, 0));
        config.block[i] = clamp_u32(lac_args_field(recipe, numbers, LAC_FIELD_BLOCK_X + i, 0));
    }
    config.module = config.graph_node != 0 ? recipe->module : 0;
    enum lac_status status = lac_builder_kernel_config(chrome->builder, &config, ret_row);
    if (status == LAC_OK && !(recipe->varies & config_fields)) {
        recipe->config_row = *ret_row;
    }
    return lac_chrome_pass(chrome, status);
}

static enum lac_status copy_row(struct lac_chrome *chrome, const struct lac_interval *interval,
                                const struct lac_args_recipe *recipe, uint32_t *ret_row)
{
    struct lac_copy copy = {
        .bytes = lac_args_field(recipe, interval->numbers, LAC_FIELD_BYTES, -1),
        .is_async = 2,
        .graph_node = (uint64_t)lac_args_field(recipe, interval->numbers, LAC_FIELD_GRAPH_NODE, 0),
    };
    copy.module = copy.graph_node != 0 ? recipe->module : 0;
    lac_kineto_copy_name(lac_model_str(chrome->model, interval->name.id), &copy);
    if (interval->event_class == LAC_CLASS_MEMSET) {
        copy.copy_kind = LAC_COPY_UNKNOWN;
    } else if (recipe != NULL && copy.copy_kind == LAC_COPY_UNKNOWN) {
        copy.copy_kind = recipe->copy_kind;
    }
    if (recipe != NULL && copy.src == LAC_MEMORY_UNKNOWN && copy.dst == LAC_MEMORY_UNKNOWN) {
        copy.src = recipe->src;
        copy.dst = recipe->dst;
    }
    if (copy.bytes < 0) {
        copy.bytes = -1;
    }
    return lac_chrome_pass(chrome, lac_builder_copy(chrome->builder, &copy, ret_row));
}

/* Device and stream of a GPU operation: its arguments know best, then its row. */
static void place_of(struct lac_chrome *chrome, const struct lac_interval *interval,
                     const struct lac_args_recipe *recipe, int64_t *ret_device, int64_t *ret_stream)
{
    const struct lac_chrome_thread *thread = &chrome->threads[interval->thread];
    const struct lac_chrome_process *process = &chrome->processes[thread->process];
    if (process->is_device_row) {
        *ret_device = process->device;
        *ret_stream = process->stream;
        return;
    }
    if (thread->is_stream_row || thread->is_range_row) {
        *ret_device = thread->row_device;
        *ret_stream = thread->row_stream;
        return;
    }
    *ret_device = lac_args_field(recipe, interval->numbers, LAC_FIELD_DEVICE,
                                 process->has_device_rows ? process->device : process->pid);
    if (*ret_device < 0 || *ret_device > UINT32_MAX) { /* no driver counts that far */
        int64_t trailing = lac_chrome_trailing_number(chrome, process->pid_text);
        *ret_device = trailing < 0 || trailing > UINT32_MAX ? 0 : trailing;
    }
    /* a stream that has a name and no number is told apart by its name */
    int64_t named =
        thread->tid >= 0 || lac_strings_length(&chrome->model->strings, thread->tid_text) == 0
            ? thread->tid
            : INT64_MIN + (int64_t)thread->tid_text;
    *ret_stream = lac_args_field(recipe, interval->numbers, LAC_FIELD_STREAM, named);
}

enum lac_status lac_chrome_gpu(struct lac_chrome *chrome, const struct lac_interval *interval)
{
    struct lac_args_recipe *recipe = lac_args_recipe_of(&chrome->args, interval->args);
    struct lac_slice_in slice;
    int64_t device = 0, stream = 0;
    prepare(interval, &slice);
    place_of(chrome, interval, recipe, &device, &stream);
    chrome->has_gpu_operations = true;
    enum lac_gpu_row row = interval->event_class == LAC_CLASS_GPU_RANGE ? LAC_GPU_ROW_RANGES
                           : interval->event_class == LAC_CLASS_SYNC    ? LAC_GPU_ROW_SYNC
                                                                        : LAC_GPU_ROW_STREAM;
    enum lac_status status =
        lac_chrome_gpu_track(chrome, interval->thread, row, device, stream, &slice.track);
    if (status == LAC_OK && interval->event_class == LAC_CLASS_KERNEL) {
        status = kernel_row(chrome, recipe, interval->numbers, &slice.detail);
    } else if (status == LAC_OK && row == LAC_GPU_ROW_STREAM) {
        status = copy_row(chrome, interval, recipe, &slice.detail);
    }
    if (status != LAC_OK) {
        return status;
    }
    slice.corr = correlation_of(recipe, interval->numbers);
    return lac_chrome_slice(chrome, &slice, interval->numbers,
                            interval->args != NULL ? interval->args->number_count : 0);
}

/* --- the host ----------------------------------------------------------------------------------*/

static enum lac_status loader_row(struct lac_chrome *chrome, const struct lac_interval *interval,
                                  uint32_t *ret_row)
{
    const struct lac_args_recipe *recipe = lac_args_recipe_of(&chrome->args, interval->args);
    int64_t worker = lac_args_field(recipe, interval->numbers, LAC_FIELD_WORKER, -1);
    struct lac_loader_info info = {
        .batch = lac_args_field(recipe, interval->numbers, LAC_FIELD_BATCH, -1),
        .cpu_ns = lac_args_field(recipe, interval->numbers, LAC_FIELD_CPU_NS, -1),
        .worker = worker < 0 || worker > INT32_MAX ? -1 : (int32_t)worker,
    };
    return lac_chrome_pass(chrome, lac_builder_loader_info(chrome->builder, &info, ret_row));
}

/* What an operation of a device's row is, by its name. */
static enum lac_event_class operation_class(const struct lac_chrome *chrome,
                                            const struct lac_interval *interval)
{
    const struct lac_chrome_thread *thread = &chrome->threads[interval->thread];
    const char *name = lac_model_str(chrome->model, interval->name.id);
    return chrome->processes[thread->process].is_device_row ? lac_tensorflow_class(name)
                                                            : lac_device_row_class(name);
}

enum lac_status lac_chrome_interval(struct lac_chrome *chrome, const struct lac_interval *interval)
{
    bool has_track = interval->track != LAC_NONE;
    if (is_gpu_class(interval->event_class) && !has_track) {
        return lac_chrome_gpu(chrome, interval);
    }
    lac_device_row_find(chrome, &chrome->threads[interval->thread]);
    if (!has_track && chrome->threads[interval->thread].is_range_row) {
        struct lac_interval range = *interval;
        range.event_class = LAC_CLASS_GPU_RANGE;
        return lac_chrome_gpu(chrome, &range);
    }
    if (!has_track && lac_is_gpu_operation(chrome, interval)) {
        struct lac_interval device = *interval;
        device.event_class = operation_class(chrome, interval);
        return lac_chrome_gpu(chrome, &device);
    }
    struct lac_slice_in slice;
    prepare(interval, &slice);
    slice.track = interval->track;
    if (is_gpu_class(interval->event_class)) {
        slice.kind = LAC_SLICE_OTHER; /* an async interval is not an operation of a stream */
    }
    enum lac_status status = LAC_OK;
    if (!has_track) {
        status = lac_chrome_track(chrome, interval->thread, LAC_ROW_THREAD, &slice.track);
    }
    if (status == LAC_OK && (interval->name.flags & LAC_NAME_LOADER)) {
        slice.kind = LAC_SLICE_RANGE;
        status = loader_row(chrome, interval, &slice.detail);
    } else if (interval->event_class == LAC_CLASS_OP && (interval->name.flags & LAC_NAME_STEP)) {
        slice.kind = LAC_SLICE_RANGE;
    } else if (interval->event_class == LAC_CLASS_API) {
        slice.corr =
            correlation_of(lac_args_recipe_of(&chrome->args, interval->args), interval->numbers);
    }
    if (status != LAC_OK) {
        return status;
    }
    return lac_chrome_slice(chrome, &slice, interval->numbers,
                            interval->args != NULL ? interval->args->number_count : 0);
}

/* The class of a category of at most 24 bytes, spelled as it is. */
static enum lac_event_class plain_category(struct lac_chrome *chrome,
                                           const struct lac_json_span *text)
{
    /* the text itself is the key, so a hit is exact; the window may be read beyond it */
    uint64_t key[4] = {text->size_bytes, 0, 0, 0};
    for (uint32_t i = 0; i * 8 < text->size_bytes; i++) {
        uint32_t left = text->size_bytes - i * 8;
        key[i + 1] =
            lac_load64(text->at + (size_t)i * 8) & (UINT64_MAX >> (left < 8 ? 64 - 8 * left : 0));
    }
    uint64_t hash = (key[0] ^ key[1] ^ key[2] << 1 ^ key[3] << 2) * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(hash >> 58);
    if (memcmp(chrome->category_cache[slot].key, key, sizeof(key)) != 0) {
        memcpy(chrome->category_cache[slot].key, key, sizeof(key));
        chrome->category_cache[slot].event_class = lac_kineto_class(text);
        if (chrome->category_cache[slot].event_class != LAC_CLASS_OTHER) {
            chrome->has_kineto_marks = true;
        } else {
            chrome->category_cache[slot].event_class = lac_device_category(text);
        }
    }
    return chrome->category_cache[slot].event_class;
}

/* The class of one that is not plain: JSON may spell "kernel" as "\\u006bernel". */
static enum lac_event_class escaped_category(struct lac_chrome *chrome,
                                             const struct lac_json_span *text)
{
    uint8_t decoded[LAC_UNESCAPED_ROOM] = {0};
    struct lac_json_repairs ignored = {0}; /* counted when the event was parsed */
    if (text->size_bytes > LAC_UNESCAPED_MAX) {
        return LAC_CLASS_OTHER;
    }
    const struct lac_json_span plain = {
        decoded, (uint32_t)lac_json_string_decode(text->at, text->size_bytes, decoded, &ignored),
        true};
    return plain.size_bytes > 24 ? LAC_CLASS_OTHER : plain_category(chrome, &plain);
}

enum lac_event_class lac_chrome_category(struct lac_chrome *chrome,
                                         const struct lac_json_span *text)
{
    if (text->at == NULL || (text->plain && text->size_bytes > 24)) {
        return LAC_CLASS_OTHER;
    }
    if (!text->plain) {
        return escaped_category(chrome, text);
    }
    return plain_category(chrome, text);
}

/* --- phases ------------------------------------------------------------------------------------*/

enum lac_status lac_chrome_find_args(struct lac_chrome *chrome, const struct lac_args **ret_args)
{
    const struct lac_raw_event *raw = &chrome->raw;
    *ret_args = NULL;
    if (raw->args_size == 0) {
        return LAC_OK;
    }
    enum lac_status status =
        lac_args_cache_find(&chrome->args, &chrome->model->strings, chrome->scratch.text,
                            raw->args_size, raw->args_hash, raw->number_count, ret_args);
    /* templates that hardly ever repeat cost more than numbers do */
    if (chrome->args.count > 4096 && !chrome->scratch.extract_all_integers &&
        chrome->args.count * 4 > chrome->model->info.slice_count) {
        chrome->scratch.extract_all_integers = true;
    }
    return lac_chrome_pass(chrome, status);
}

static enum lac_status on_complete(struct lac_chrome *chrome, struct lac_interval *interval)
{
    struct lac_raw_event *raw = &chrome->raw;
    if (raw->dur_state == LAC_TIME_BAD) {
        lac_chrome_note(
            chrome, LAC_REPORT_DROPPED, "duration_not_a_time", 1,
            "Events with a duration that is not a number or out of range were dropped.");
        return LAC_OK;
    }
    interval->dur_ns = raw->dur_ns;
    if (raw->dur_state == LAC_TIME_ABSENT) {
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "duration_missing", 1,
                        "Complete events without a duration were taken as 0 long.");
    }
    if (raw->dur_ns < 0) {
        interval->dur_ns = 0;
        lac_chrome_note(chrome, LAC_REPORT_REPAIRED, "duration_negative", 1,
                        "Complete events with a negative duration were taken as 0 long.");
    }
    chrome->model->info.slice_count++;
    const struct lac_chrome_thread *thread = &chrome->threads[interval->thread];
    const struct lac_chrome_process *process = &chrome->processes[thread->process];
    bool is_open =
        interval->event_class == LAC_CLASS_OTHER || interval->event_class == LAC_CLASS_GPU_WORD;
    if (is_open && !(process->is_named && thread->is_named)) {
        return lac_chrome_wait(chrome, interval);
    }
    return lac_chrome_interval(chrome, interval);
}

static enum lac_status memory_row(struct lac_chrome *chrome, const struct lac_interval *interval,
                                  uint32_t *ret_row)
{
    const struct lac_args_recipe *recipe = lac_args_recipe_of(&chrome->args, interval->args);
    const int64_t *numbers = interval->numbers;
    bool on_host = lac_args_field(recipe, numbers, LAC_FIELD_MEMORY_TYPE, 1) == 0;
    struct lac_alloc alloc = {
        .bytes = lac_args_field(recipe, numbers, LAC_FIELD_MEMORY_BYTES, 0),
        .total_allocated = lac_args_field(recipe, numbers, LAC_FIELD_MEMORY_TOTAL, -1),
        .device = on_host ? -1 : lac_args_field(recipe, numbers, LAC_FIELD_MEMORY_DEVICE, -1),
    };
    return lac_chrome_pass(chrome, lac_builder_alloc(chrome->builder, &alloc, ret_row));
}

static enum lac_status on_instant(struct lac_chrome *chrome, const struct lac_interval *interval)
{
    struct lac_slice_in slice;
    prepare(interval, &slice);
    slice.kind = LAC_SLICE_INSTANT;
    enum lac_status status =
        lac_chrome_track(chrome, interval->thread, LAC_ROW_MARKS, &slice.track);
    if (status == LAC_OK && (interval->name.flags & LAC_NAME_MEMORY)) {
        slice.kind = LAC_SLICE_ALLOC;
        status = memory_row(chrome, interval, &slice.detail);
    }
    if (status != LAC_OK) {
        return status;
    }
    return lac_chrome_slice(chrome, &slice, interval->numbers,
                            interval->args != NULL ? interval->args->number_count : 0);
}

static void note_unknown_phase(struct lac_chrome *chrome)
{
    chrome->unknown_phase_count++;
    lac_chrome_note(
        chrome, LAC_REPORT_INFO, "phase_not_understood", 1,
        "Events of phases that are only counted (samples, objects, memory dumps and others).");
}

/* A timed phase needs a time. */
static bool has_time(struct lac_chrome *chrome)
{
    const struct lac_raw_event *raw = &chrome->raw;
    if (raw->ts_state == LAC_TIME_OK) {
        if (!chrome->has_time || raw->ts_ns < chrome->first_ns) {
            chrome->first_ns = raw->ts_ns;
        }
        if (!chrome->has_time || raw->ts_ns > chrome->last_ns) {
            chrome->last_ns = raw->ts_ns;
        }
        chrome->has_time = true;
        return true;
    }
    lac_chrome_note(chrome, LAC_REPORT_DROPPED,
                    raw->ts_state == LAC_TIME_BAD ? "time_not_a_time" : "time_missing", 1,
                    raw->ts_state == LAC_TIME_BAD
                        ? "Events with a time that is not a number or out of range were dropped."
                        : "Events without a time were dropped.");
    return false;
}

static enum lac_status on_timed(struct lac_chrome *chrome)
{
    struct lac_raw_event *raw = &chrome->raw;
    struct lac_interval interval = {
        .start_ns = raw->ts_ns, .numbers = chrome->scratch.numbers, .track = LAC_NONE};
    interval.event_class = lac_chrome_category(chrome, &raw->cat);
    enum lac_status status = lac_chrome_thread(chrome, &raw->pid, &raw->tid, &interval.thread);
    if (status == LAC_OK) {
        status = lac_chrome_intern(chrome, &raw->name, &interval.name);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (raw->phase == 's' || raw->phase == 't' || raw->phase == 'f') {
        bool is_launch = interval.event_class == LAC_CLASS_LAUNCH_ARROW &&
                         (raw->cat.size_bytes == 4 || (interval.name.flags & LAC_NAME_LAUNCH));
        chrome->launch_arrow_count += is_launch;
        return is_launch ? LAC_OK : lac_chrome_arrow(chrome, interval.thread, interval.name);
    }
    if (raw->phase == 'C') {
        return lac_chrome_counter(chrome, interval.thread, interval.name);
    }
    if (interval.event_class == LAC_CLASS_LAUNCH_ARROW) {
        interval.event_class = LAC_CLASS_OTHER;
    }
    if (raw->phase == 'B' || raw->phase == 'E') {
        return lac_chrome_pair(chrome, interval.thread, interval.name, interval.event_class);
    }
    if (raw->phase == 'b' || raw->phase == 'n' || raw->phase == 'e') {
        return lac_chrome_async(chrome, interval.thread, interval.name, interval.event_class);
    }
    status = lac_chrome_find_args(chrome, &interval.args);
    if (status != LAC_OK) {
        return status;
    }
    if (interval.event_class == LAC_CLASS_GPU_WORD) {
        lac_device_rows_count(chrome);
    }
    if (interval.args != NULL && interval.args->has_shapes) {
        chrome->model->info.has_shapes = true;
    }
    if (interval.event_class == LAC_CLASS_PYTHON ||
        (interval.args != NULL && interval.args->has_stack)) {
        chrome->model->info.has_python_stacks = true;
    }
    return raw->phase == 'X' ? on_complete(chrome, &interval) : on_instant(chrome, &interval);
}

enum lac_status lac_chrome_event(struct lac_chrome *chrome)
{
    struct lac_raw_event *raw = &chrome->raw;
    struct lac_trace_info *info = &chrome->model->info;
    info->event_count++;
    info->phase_count[raw->phase & 0x7f]++;
    switch (raw->phase) {
    case 'M':
        return lac_chrome_meta(chrome);
    case 'X':
    case 'B':
    case 'E':
    case 'b':
    case 'n':
    case 'e':
    case 'i':
    case 'I':
    case 'R':
    case 'C':
    case 's':
    case 't':
    case 'f':
        return has_time(chrome) ? on_timed(chrome) : LAC_OK;
    case 0:
        lac_chrome_note(chrome, LAC_REPORT_DROPPED, "phase_missing", 1,
                        "Events without a phase were dropped.");
        return LAC_OK;
    default:
        if (raw->ts_state == LAC_TIME_OK) {
            (void)has_time(chrome);
        }
        note_unknown_phase(chrome);
        return LAC_OK;
    }
}
