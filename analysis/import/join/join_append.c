/* Columns, tables and tracks of one model behind those of another. */

#include "analysis/import/join/join_private.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_join_widen(void *array, uint64_t count, uint64_t more, size_t element_bytes)
{
    void *old;
    memcpy((void *)&old, array, sizeof(old));
    void *grown = realloc(old, (count + more + 1) * element_bytes);
    if (grown == NULL) {
        return LAC_ERR_NOMEM;
    }
    memcpy(array, (void *)&grown, sizeof(grown));
    return LAC_OK;
}

#define WIDEN(array, count, more)                                                                  \
    (lac_join_widen((void *)&(array), (count), (more), sizeof(*(array))) == LAC_OK)

/* Ids of the other's strings in ours. NULL: status says why. */
static uint32_t *map_strings(struct lac_model *into, const struct lac_model *other,
                             enum lac_status *ret_status)
{
    uint32_t *ids = malloc(((size_t)other->strings.count + 1) * sizeof(*ids));
    *ret_status = ids != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t i = 0; i < other->strings.count && *ret_status == LAC_OK; i++) {
        *ret_status = lac_strings_intern(&into->strings, lac_strings_get(&other->strings, i),
                                         lac_strings_length(&other->strings, i), &ids[i]);
    }
    if (*ret_status != LAC_OK) {
        free(ids);
        return NULL;
    }
    return ids;
}

static enum lac_status append_processes(struct lac_model *into, const struct lac_model *other,
                                        const uint32_t *ids)
{
    if (!WIDEN(into->processes, into->process_count, other->process_count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < other->process_count; i++) {
        struct lac_process process = other->processes[i];
        process.id_text = ids[process.id_text];
        process.name = ids[process.name];
        process.labels = ids[process.labels];
        into->processes[into->process_count + i] = process;
    }
    return LAC_OK; /* counted by append_tracks(), which needs the old number */
}

static uint32_t slice_tracks_of(const struct lac_model *model)
{
    uint32_t count = 0;
    while (count < model->track_count && model->tracks[count].kind != LAC_TRACK_COUNTER) {
        count++;
    }
    return count;
}

static struct lac_track taken(const struct lac_model *into, const struct lac_model *other,
                              uint32_t track, const uint32_t *ids)
{
    struct lac_track out = other->tracks[track];
    out.name = ids[out.name];
    out.id_text = ids[out.id_text];
    out.process = out.process == LAC_NONE ? LAC_NONE : out.process + into->process_count;
    if (out.kind == LAC_TRACK_COUNTER) {
        out.first += into->sample_count;
        return out;
    }
    out.first += into->slices.count;
    if (other->info.has_no_time) {
        out.kind = LAC_TRACK_PROFILE;
    }
    return out;
}

/* Rows of slices of both, then counters of both. */
static enum lac_status append_tracks(struct lac_model *into, const struct lac_model *other,
                                     const uint32_t *ids)
{
    const uint32_t ours = slice_tracks_of(into);
    const uint32_t theirs = slice_tracks_of(other);
    if ((uint64_t)into->track_count + other->track_count > LAC_TRACK_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!WIDEN(into->tracks, into->track_count, other->track_count)) {
        return LAC_ERR_NOMEM;
    }
    memmove(into->tracks + ours + theirs, into->tracks + ours,
            (into->track_count - ours) * sizeof(*into->tracks));
    for (uint32_t i = 0; i < theirs; i++) {
        into->tracks[ours + i] = taken(into, other, i, ids);
    }
    for (uint32_t i = theirs; i < other->track_count; i++) {
        into->tracks[into->track_count + i] = taken(into, other, i, ids);
    }
    into->track_count += other->track_count;
    into->recorded_track_count = into->track_count;
    into->process_count += other->process_count;
    return LAC_OK;
}

/* ---- slices ---- */

static uint32_t moved_detail(const struct lac_model *into, const struct lac_model *other,
                             uint64_t slice)
{
    const uint32_t detail = other->slices.detail[slice];
    if (detail == LAC_NONE) {
        return LAC_NONE;
    }
    switch (other->slices.kind[slice]) {
    case LAC_SLICE_KERNEL:
        return detail + into->kernel_config_count;
    case LAC_SLICE_COPY:
    case LAC_SLICE_MEMSET:
        return detail + into->copy_count;
    case LAC_SLICE_ALLOC:
        return detail + into->alloc_count;
    case LAC_SLICE_RANGE:
        return detail + into->loader_info_count;
    default:
        return detail; /* a value, no row */
    }
}

static bool widen_slices(struct lac_slices *s, uint64_t more)
{
    return WIDEN(s->start_ns, s->count, more) && WIDEN(s->dur_ns, s->count, more) &&
           WIDEN(s->name, s->count, more) && WIDEN(s->corr, s->count, more) &&
           WIDEN(s->link, s->count, more) && WIDEN(s->detail, s->count, more) &&
           WIDEN(s->args, s->count, more) && WIDEN(s->arg_num, s->count, more) &&
           WIDEN(s->lane, s->count, more) && WIDEN(s->kind, s->count, more);
}

static enum lac_status append_slices(struct lac_model *into, const struct lac_model *other,
                                     const uint32_t *ids, int64_t shift_ns)
{
    struct lac_slices *s = &into->slices;
    const struct lac_slices *from = &other->slices;
    if (s->count + from->count > LAC_SLICE_COUNT_MAX ||
        into->arg_number_count + other->arg_number_count > UINT32_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (!widen_slices(s, from->count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < from->count; i++) {
        const uint64_t to = s->count + i;
        if (from->start_ns[i] > LAC_TIME_MAX_NS - from->dur_ns[i] - shift_ns) {
            return LAC_ERR_LIMIT;
        }
        s->start_ns[to] = from->start_ns[i] + shift_ns;
        s->dur_ns[to] = from->dur_ns[i];
        s->name[to] = ids[from->name[i]];
        s->corr[to] = from->corr[i];
        s->link[to] = from->link[i] == LAC_NONE ? LAC_NONE : from->link[i] + (uint32_t)s->count;
        s->detail[to] = moved_detail(into, other, i);
        s->args[to] = ids[from->args[i]];
        s->arg_num[to] = from->arg_num[i] + (uint32_t)into->arg_number_count;
        s->lane[to] = from->lane[i];
        s->kind[to] = from->kind[i];
    }
    return LAC_OK; /* counted last: flows need the old number */
}

/* Flows ascend by their source, and all of ours come before. */
static enum lac_status append_flows(struct lac_model *into, const struct lac_model *other,
                                    const uint32_t *ids)
{
    if (!WIDEN(into->flows, into->flow_count, other->flow_count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < other->flow_count; i++) {
        into->flows[into->flow_count + i] =
            (struct lac_flow){.src = other->flows[i].src + (uint32_t)into->slices.count,
                              .dst = other->flows[i].dst + (uint32_t)into->slices.count,
                              .name = ids[other->flows[i].name]};
    }
    into->flow_count += other->flow_count;
    return LAC_OK;
}

/* ---- tables and samples ---- */

#define APPEND(array, count, from, more)                                                           \
    (WIDEN(array, count, more) &&                                                                  \
     ((more) == 0 || memcpy((array) + (count), (from), (more) * sizeof(*(array))) != NULL))

static enum lac_status append_tables(struct lac_model *into, const struct lac_model *other,
                                     const uint32_t *ids)
{
    if (!APPEND(into->kernel_configs, into->kernel_config_count, other->kernel_configs,
                other->kernel_config_count) ||
        !APPEND(into->copies, into->copy_count, other->copies, other->copy_count) ||
        !APPEND(into->loader_infos, into->loader_info_count, other->loader_infos,
                other->loader_info_count) ||
        !APPEND(into->allocs, into->alloc_count, other->allocs, other->alloc_count) ||
        !APPEND(into->arg_numbers, into->arg_number_count, other->arg_numbers,
                other->arg_number_count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < other->kernel_config_count; i++) {
        struct lac_kernel_config *const config =
            &into->kernel_configs[into->kernel_config_count + i];
        config->module = ids[config->module];
    }
    for (uint32_t i = 0; i < other->copy_count; i++) {
        struct lac_copy *const copy = &into->copies[into->copy_count + i];
        copy->module = ids[copy->module];
    }
    into->kernel_config_count += other->kernel_config_count;
    into->copy_count += other->copy_count;
    into->loader_info_count += other->loader_info_count;
    into->alloc_count += other->alloc_count;
    into->arg_number_count += other->arg_number_count;
    return LAC_OK;
}

static enum lac_status append_samples(struct lac_model *into, const struct lac_model *other,
                                      int64_t shift_ns)
{
    if (!WIDEN(into->sample_ts_ns, into->sample_count, other->sample_count) ||
        !APPEND(into->sample_value, into->sample_count, other->sample_value, other->sample_count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < other->sample_count; i++) {
        if (other->sample_ts_ns[i] > LAC_TIME_MAX_NS - shift_ns) {
            return LAC_ERR_LIMIT;
        }
        into->sample_ts_ns[into->sample_count + i] = other->sample_ts_ns[i] + shift_ns;
    }
    into->sample_count += other->sample_count;
    return LAC_OK;
}

/* Devices ascend by their id. One that both know is told once; what the trace says of it stays. */
static enum lac_status append_devices(struct lac_model *into, const struct lac_model *other,
                                      const uint32_t *ids)
{
    if (!WIDEN(into->devices, into->device_count, other->device_count)) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < other->device_count; i++) {
        struct lac_device device = other->devices[i];
        uint32_t at = lac_model_device_index(into, device.id);
        device.name = ids[device.name];
        if (at != LAC_NONE) {
            if (into->devices[at].memory_bytes == 0) {
                into->devices[at].memory_bytes = device.memory_bytes;
            }
            if (into->devices[at].name == 0) {
                into->devices[at].name = device.name;
            } else if (device.name != 0 && device.name != into->devices[at].name) {
                lac_model_report(into, LAC_REPORT_INFO, "joined_device_names", 1, 0,
                                 "Joined files call a GPU of the same number by different names: "
                                 "the trace's is shown.");
            }
            continue;
        }
        at = into->device_count++;
        for (; at > 0 && into->devices[at - 1].id > device.id; at--) {
            into->devices[at] = into->devices[at - 1];
        }
        into->devices[at] = device;
    }
    return LAC_OK;
}

enum lac_status lac_join_append(struct lac_model *into, const struct lac_model *other,
                                int64_t shift_ns)
{
    enum lac_status status = LAC_OK;
    uint32_t *ids = map_strings(into, other, &status);
    if (status == LAC_OK) {
        status = append_processes(into, other, ids);
    }
    if (status == LAC_OK) {
        status = append_tracks(into, other, ids);
    }
    if (status == LAC_OK) {
        status = append_slices(into, other, ids, shift_ns);
    }
    if (status == LAC_OK) {
        status = append_flows(into, other, ids);
    }
    if (status == LAC_OK) {
        into->slices.count += other->slices.count;
        status = append_tables(into, other, ids);
    }
    if (status == LAC_OK) {
        status = append_samples(into, other, shift_ns);
    }
    if (status == LAC_OK) {
        status = append_devices(into, other, ids);
    }
    free(ids);
    return status;
}

void lac_join_move_start(struct lac_model *model, int64_t by_ns)
{
    for (uint64_t i = 0; i < model->slices.count; i++) {
        model->slices.start_ns[i] += by_ns;
    }
    for (uint64_t i = 0; i < model->sample_count; i++) {
        model->sample_ts_ns[i] += by_ns;
    }
    model->info.t0_ns -= by_ns;
    model->info.duration_ns += by_ns;
}
