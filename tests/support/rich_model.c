#include "tests/support/rich_model.h"

#include "analysis/model/args.h"
#include "analysis/model/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum lac_status try_ = (call);                                                             \
        if (try_ != LAC_OK) {                                                                      \
            return try_;                                                                           \
        }                                                                                          \
    } while (0)

struct maker {
    struct lac_builder *builder;
    struct lac_model *model;
    uint64_t random;
    uint32_t thread, worker, stream, marks, counter, counter2;
    uint32_t names[40];
    uint32_t template_text;
};

static uint32_t pick(struct maker *maker, uint32_t below)
{
    maker->random ^= maker->random << 13;
    maker->random ^= maker->random >> 7;
    maker->random ^= maker->random << 17;
    return (uint32_t)(maker->random >> 11) % below;
}

static enum lac_status text(struct maker *maker, const char *bytes, uint32_t *ret_id)
{
    return lac_strings_intern(&maker->model->strings, bytes, strlen(bytes), ret_id);
}

static enum lac_status make_tracks(struct maker *maker)
{
    struct lac_builder *builder = maker->builder;
    uint32_t process = 0;
    uint32_t gpu = 0;
    uint32_t id = 0;
    struct lac_device *device;

    TRY(text(maker, "4711", &id));
    TRY(lac_builder_process(builder, id, 4711, &process));
    TRY(text(maker, "python <b>&amp;", &lac_builder_process_at(builder, process)->name));
    TRY(text(maker, "0", &id));
    TRY(lac_builder_process(builder, id, 0, &gpu));
    lac_builder_process_at(builder, gpu)->is_gpu = true;
    lac_builder_process_at(builder, gpu)->sort_index = 7;
    TRY(text(maker, "4711", &id));
    TRY(lac_builder_track(builder, LAC_TRACK_THREAD, process, id, 4711, &maker->thread));
    TRY(lac_builder_track(builder, LAC_TRACK_MARKS, process, id, 4711, &maker->marks));
    TRY(text(maker, "4712", &id));
    TRY(lac_builder_track(builder, LAC_TRACK_THREAD, process, id, 4712, &maker->worker));
    TRY(text(maker, "memory", &id));
    TRY(lac_builder_track(builder, LAC_TRACK_COUNTER, process, id, -1, &maker->counter));
    TRY(text(maker, "stream 7", &id));
    TRY(lac_builder_track(builder, LAC_TRACK_STREAM, gpu, id, 7, &maker->stream));
    lac_builder_track_at(builder, maker->stream)->device = 0;
    TRY(text(maker, "power", &id));
    TRY(lac_builder_track(builder, LAC_TRACK_COUNTER, gpu, id, -1, &maker->counter2));
    device = lac_builder_device(builder, 0);
    if (device == NULL) {
        return LAC_ERR_NOMEM;
    }
    device->cc_major = 8;
    device->sm_count = 108;
    device->memory_bytes = INT64_C(42949672960);
    TRY(text(maker, "A100 \xC3\xA9", &device->name));
    return LAC_OK;
}

static enum lac_status make_names(struct maker *maker)
{
    for (uint32_t i = 0; i < 40; i++) {
        char name[80];

        (void)snprintf(name, sizeof(name),
                       i < 20 ? "aten::op_%u"
                              : (i < 30 ? "void cudnn::kernel_%u<float, int>(float*, int)"
                                        : "cudaLaunchKernel%u"),
                       i);
        TRY(text(maker, name, &maker->names[i]));
    }
    return text(maker, "{\"External id\":\x01,\"grid\":[\x01,1,1],\"eff\":\x02}",
                &maker->template_text);
}

static enum lac_status args(struct maker *maker, struct lac_slice_in *slice, uint32_t number)
{
    double real = (double)number / 3.0;
    int64_t numbers[3] = {number, number % 100, 0};

    memcpy(&numbers[2], &real, sizeof(real));
    slice->args = maker->template_text;
    return lac_builder_arg_numbers(maker->builder, numbers, 3, &slice->arg_num);
}

/** An operator on the thread, the call inside it, and what it launches. */
static enum lac_status make_launch(struct maker *maker, uint32_t i)
{
    int64_t at_ns = 1000000000 + (int64_t)i * 10000 + pick(maker, 500);
    bool is_copy = i % 11 == 3;
    struct lac_kernel_config config = {.grid = {1 + i % 50, 2, 1},
                                       .block = {256, 1, 1},
                                       .registers_per_thread = 32 + i % 3,
                                       .occupancy_pct = 12.5F,
                                       .blocks_per_sm = -1,
                                       .graph_node = i % 4 == 0 ? UINT64_C(9) << 32 | i % 40 : 0,
                                       .module = i % 4 == 0 ? maker->names[i % 5] : 0};
    struct lac_copy copy = {.bytes = 4096 * (int64_t)(i % 5),
                            .copy_kind = LAC_COPY_HTOD,
                            .src = LAC_MEMORY_PAGEABLE,
                            .dst = LAC_MEMORY_DEVICE,
                            .is_async = 1,
                            .graph_node = i % 3 == 0 ? UINT64_C(9) << 32 | i % 40 : 0,
                            .module = i % 3 == 0 ? maker->names[i % 5] : 0};
    struct lac_slice_in op = {.start_ns = at_ns,
                              .dur_ns = 3000 + pick(maker, 3000),
                              .track = maker->thread,
                              .name = maker->names[pick(maker, 20)],
                              .detail = LAC_NONE,
                              .kind = LAC_SLICE_OP};
    struct lac_slice_in call = {.start_ns = at_ns + 500,
                                .dur_ns = 1500,
                                .track = maker->thread,
                                .name = maker->names[30 + pick(maker, 10)],
                                .corr = i + 1,
                                .detail = i % 7 == 0 ? 0 : LAC_NONE,
                                .kind = LAC_SLICE_API};
    struct lac_slice_in work = {.start_ns = at_ns + 4000 + pick(maker, 9000),
                                .dur_ns = pick(maker, 20) == 0 ? 0 : 100 + pick(maker, 8000),
                                .track = maker->stream,
                                .name = maker->names[20 + pick(maker, 10)],
                                .corr = i + 1,
                                .kind = is_copy ? LAC_SLICE_COPY : LAC_SLICE_KERNEL};

    TRY(args(maker, &op, i));
    TRY(args(maker, &work, i + 1));
    if (is_copy) {
        TRY(lac_builder_copy(maker->builder, &copy, &work.detail));
    } else {
        TRY(lac_builder_kernel_config(maker->builder, &config, &work.detail));
    }
    TRY(lac_builder_slice(maker->builder, &op));
    TRY(lac_builder_slice(maker->builder, &call));
    return lac_builder_slice(maker->builder, &work);
}

/** What comes beside every tenth launch. */
static enum lac_status make_others(struct maker *maker, uint32_t i)
{
    int64_t at_ns = 1000000000 + (int64_t)i * 10000;
    struct lac_loader_info loader = {.batch = i, .cpu_ns = -1, .worker = (int32_t)(i % 2)};
    struct lac_alloc alloc = {
        .bytes = i % 20 == 0 ? 512 : -512, .total_allocated = -1, .device = 0};
    struct lac_slice_in fetch = {
        .start_ns = at_ns, .dur_ns = 90000, .track = maker->worker, .kind = LAC_SLICE_RANGE};
    struct lac_slice_in mark = {
        .start_ns = at_ns + 7, .track = maker->marks, .kind = LAC_SLICE_ALLOC};

    TRY(text(maker, "loader.fetch", &fetch.name));
    TRY(text(maker, "[memory]", &mark.name));
    TRY(lac_builder_loader_info(maker->builder, &loader, &fetch.detail));
    TRY(lac_builder_alloc(maker->builder, &alloc, &mark.detail));
    TRY(lac_builder_slice(maker->builder, &fetch));
    TRY(lac_builder_slice(maker->builder, &mark));
    TRY(lac_builder_sample(maker->builder, maker->counter, at_ns, (double)(i % 97) * 1.5));
    if (i % 40 == 0) {
        TRY(lac_builder_sample(maker->builder, maker->counter2, at_ns + 3, -(double)i));
        TRY(lac_builder_flow(maker->builder, 's', i, mark.name, maker->thread, at_ns + 600, true));
        TRY(lac_builder_flow(maker->builder, 'f', i, mark.name, maker->worker, at_ns + 700, true));
    }
    return LAC_OK;
}

static enum lac_status make_info(struct maker *maker)
{
    struct lac_trace_info *info = &maker->model->info;

    info->format = LAC_FORMAT_KINETO;
    info->event_count = 123;
    info->slice_count = 100;
    info->phase_count['X'] = 99;
    info->input_bytes = 1234567;
    info->expanded_bytes = 7654321;
    info->rank = 3;
    info->world_size = 8;
    info->is_simulated = true;
    info->has_shapes = true;
    TRY(text(maker, "rich", &info->name));
    info->weight_scale = 1000;
    TRY(text(maker, "samples", &info->weight_unit));
    TRY(text(maker, "nccl", &info->backend));
    TRY(text(maker, "node-17", &info->host));
    TRY(text(maker, "{\"schemaVersion\":1}", &info->metadata));
    lac_model_report(maker->model, LAC_REPORT_REPAIRED, "unclosed_array", 1, 99,
                     "the list of events had no end");
    return LAC_OK;
}

static enum lac_status make(struct maker *maker, uint32_t launches, struct lac_model **ret_model)
{
    TRY(make_names(maker));
    TRY(make_tracks(maker));
    for (uint32_t i = 0; i < launches; i++) {
        TRY(make_launch(maker, i));
        if (i % 10 == 0) {
            TRY(make_others(maker, i));
        }
    }
    TRY(make_info(maker));
    return lac_builder_finish(maker->builder, 5, ret_model);
}

enum lac_status rich_model_create(uint32_t seed, uint32_t launches, struct lac_model **ret_model)
{
    struct maker maker = {.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    enum lac_status status = lac_builder_create(&maker.builder);

    if (status != LAC_OK) {
        return status;
    }
    maker.model = lac_builder_model(maker.builder);
    status = make(&maker, launches, ret_model);
    if (status != LAC_OK) {
        lac_builder_destroy(maker.builder);
    }
    return status;
}

static char difference[200];

#define DIFFER(...)                                                                                \
    do {                                                                                           \
        (void)snprintf(difference, sizeof(difference), __VA_ARGS__);                               \
        return difference;                                                                         \
    } while (0)

#define SAME_ARRAY(field, count)                                                                   \
    do {                                                                                           \
        if ((count) > 0 && memcmp(a->field, b->field, (size_t)(count) * sizeof(*a->field)) != 0) { \
            DIFFER("%s", #field);                                                                  \
        }                                                                                          \
    } while (0)

#define SAME_NUMBER(field)                                                                         \
    do {                                                                                           \
        if (a->field != b->field) {                                                                \
            DIFFER("%s: %lld and %lld", #field, (long long)a->field, (long long)b->field);         \
        }                                                                                          \
    } while (0)

static const char *args_differ(const struct lac_model *a, const struct lac_model *b)
{
    for (uint64_t i = 0; i < a->slices.count; i++) {
        char left[4096];
        char right[4096];

        if (a->slices.args[i] == 0 && b->slices.args[i] == 0) {
            continue;
        }
        (void)lac_args_format(a, i, left, sizeof(left));
        (void)lac_args_format(b, i, right, sizeof(right));
        if (strcmp(left, right) != 0) {
            DIFFER("arguments of slice %llu: %.60s and %.60s", (unsigned long long)i, left, right);
        }
    }
    return NULL;
}

static const char *info_differs(const struct lac_model *a, const struct lac_model *b)
{
    SAME_NUMBER(info.name);
    SAME_NUMBER(info.format);
    SAME_NUMBER(info.t0_ns);
    SAME_NUMBER(info.duration_ns);
    SAME_NUMBER(info.event_count);
    SAME_NUMBER(info.slice_count);
    SAME_NUMBER(info.dropped_count);
    SAME_NUMBER(info.repaired_count);
    SAME_NUMBER(info.input_bytes);
    SAME_NUMBER(info.expanded_bytes);
    SAME_NUMBER(info.rank);
    SAME_NUMBER(info.world_size);
    SAME_NUMBER(info.backend);
    SAME_NUMBER(info.host);
    SAME_NUMBER(info.metadata);
    SAME_NUMBER(info.is_simulated);
    SAME_NUMBER(info.has_python_stacks);
    SAME_NUMBER(info.has_shapes);
    SAME_NUMBER(info.has_no_time);
    SAME_NUMBER(info.weight_unit);
    SAME_NUMBER(info.weight_scale);
    SAME_ARRAY(info.phase_count, 128);
    SAME_NUMBER(report_count);
    for (uint32_t i = 0; i < a->report_count; i++) {
        SAME_NUMBER(report[i].count);
        SAME_NUMBER(report[i].severity);
        SAME_NUMBER(report[i].first_offset_bytes);
        if (strcmp(a->report[i].code, b->report[i].code) != 0 ||
            strcmp(a->report[i].text, b->report[i].text) != 0) {
            DIFFER("report line %u", i);
        }
    }
    return NULL;
}

static const char *tables_differ(const struct lac_model *a, const struct lac_model *b)
{
    SAME_NUMBER(kernel_config_count);
    SAME_NUMBER(copy_count);
    SAME_NUMBER(loader_info_count);
    SAME_NUMBER(alloc_count);
    SAME_NUMBER(sample_count);
    SAME_NUMBER(flow_count);
    SAME_ARRAY(kernel_configs, a->kernel_config_count);
    for (uint32_t i = 0; i < a->copy_count; i++) { /* padding */
        SAME_NUMBER(copies[i].bytes);
        SAME_NUMBER(copies[i].copy_kind);
        SAME_NUMBER(copies[i].src);
        SAME_NUMBER(copies[i].dst);
        SAME_NUMBER(copies[i].is_async);
        SAME_NUMBER(copies[i].graph_node);
        SAME_NUMBER(copies[i].module);
    }
    for (uint32_t i = 0; i < a->loader_info_count; i++) {
        SAME_NUMBER(loader_infos[i].batch);
        SAME_NUMBER(loader_infos[i].cpu_ns);
        SAME_NUMBER(loader_infos[i].worker);
    }
    SAME_ARRAY(allocs, a->alloc_count);
    SAME_ARRAY(sample_ts_ns, a->sample_count);
    SAME_ARRAY(sample_value, a->sample_count);
    SAME_ARRAY(flows, a->flow_count);
    return NULL;
}

static const char *rows_differ(const struct lac_model *a, const struct lac_model *b)
{
    SAME_NUMBER(strings.count);
    SAME_NUMBER(strings.bytes_used);
    SAME_ARRAY(strings.bytes, a->strings.bytes_used);
    SAME_NUMBER(process_count);
    SAME_NUMBER(track_count);
    SAME_NUMBER(recorded_track_count);
    SAME_NUMBER(device_count);
    for (uint32_t i = 0; i < a->process_count; i++) {
        SAME_NUMBER(processes[i].pid);
        SAME_NUMBER(processes[i].id_text);
        SAME_NUMBER(processes[i].name);
        SAME_NUMBER(processes[i].labels);
        SAME_NUMBER(processes[i].sort_index);
        SAME_NUMBER(processes[i].is_gpu);
    }
    for (uint32_t i = 0; i < a->track_count; i++) {
        SAME_NUMBER(tracks[i].kind);
        SAME_NUMBER(tracks[i].process);
        SAME_NUMBER(tracks[i].name);
        SAME_NUMBER(tracks[i].id_text);
        SAME_NUMBER(tracks[i].tid);
        SAME_NUMBER(tracks[i].device);
        SAME_NUMBER(tracks[i].sort_index);
        SAME_NUMBER(tracks[i].lane_count);
        SAME_NUMBER(tracks[i].first);
        SAME_NUMBER(tracks[i].count);
    }
    for (uint32_t i = 0; i < a->device_count; i++) {
        SAME_NUMBER(devices[i].id);
        SAME_NUMBER(devices[i].name);
        SAME_NUMBER(devices[i].cc_major);
        SAME_NUMBER(devices[i].cc_minor);
        SAME_NUMBER(devices[i].sm_count);
        SAME_NUMBER(devices[i].memory_bytes);
    }
    return NULL;
}

const char *models_differ(const struct lac_model *a, const struct lac_model *b)
{
    const char *what = info_differs(a, b);

    what = what != NULL ? what : rows_differ(a, b);
    what = what != NULL ? what : tables_differ(a, b);
    if (what != NULL) {
        return what;
    }
    SAME_NUMBER(slices.count);
    SAME_ARRAY(slices.start_ns, a->slices.count);
    SAME_ARRAY(slices.dur_ns, a->slices.count);
    SAME_ARRAY(slices.name, a->slices.count);
    SAME_ARRAY(slices.corr, a->slices.count);
    SAME_ARRAY(slices.link, a->slices.count);
    SAME_ARRAY(slices.detail, a->slices.count);
    SAME_ARRAY(slices.args, a->slices.count);
    SAME_ARRAY(slices.lane, a->slices.count);
    SAME_ARRAY(slices.kind, a->slices.count);
    return args_differ(a, b);
}
