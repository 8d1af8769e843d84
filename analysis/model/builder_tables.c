/* The small tables of a builder: processes, tracks, devices and the details of slices. */

#include "analysis/model/builder_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct process_key {
    const struct lac_model *model;
    uint32_t id_text;
};

static int process_is(const void *context, uint32_t id)
{
    const struct process_key *key = context;

    return key->model->processes[id].id_text == key->id_text;
}

static uint32_t process_hash(const struct lac_model *model, uint32_t id_text)
{
    return (uint32_t)lac_hash_bytes(&id_text, sizeof(id_text), model->strings.seed);
}

uint32_t lac_builder_find_process(const struct lac_builder *builder, uint32_t id_text)
{
    const struct process_key key = {builder->model, id_text};

    return lac_index_find(&builder->process_index, process_hash(builder->model, id_text),
                          process_is, &key);
}

enum lac_status lac_builder_process(struct lac_builder *builder, uint32_t id_text, int64_t pid,
                                    uint32_t *ret_process)
{
    struct lac_model *model = builder->model;
    uint32_t hash = process_hash(model, id_text);
    uint32_t found = lac_builder_find_process(builder, id_text);
    enum lac_status status;

    if (found != UINT32_MAX) {
        *ret_process = found;
        return LAC_OK;
    }
    if (model->process_count >= LAC_TRACK_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    status = lac_index_reserve(&builder->process_index);
    if (status == LAC_OK) {
        status = LAC_GROW(model->processes, &builder->process_capacity,
                          (uint64_t)model->process_count + 1);
    }
    if (status != LAC_OK) {
        return status;
    }
    model->processes[model->process_count] = (struct lac_process){.pid = pid, .id_text = id_text};
    lac_index_add(&builder->process_index, hash, model->process_count);
    *ret_process = model->process_count++;
    return LAC_OK;
}

struct lac_process *lac_builder_process_at(struct lac_builder *builder, uint32_t process)
{
    assert(process < builder->model->process_count);
    return &builder->model->processes[process];
}

struct track_key {
    const struct lac_model *model;
    uint32_t parts[3]; /* kind, process, id_text */
};

static int track_is(const void *context, uint32_t id)
{
    const struct track_key *key = context;
    const struct lac_track *track = &key->model->tracks[id];

    return (uint32_t)track->kind == key->parts[0] && track->process == key->parts[1] &&
           track->id_text == key->parts[2];
}

static uint32_t track_hash(const struct track_key *key)
{
    return (uint32_t)lac_hash_bytes(key->parts, sizeof(key->parts), key->model->strings.seed);
}

uint32_t lac_builder_find_track(const struct lac_builder *builder, enum lac_track_kind kind,
                                uint32_t process, uint32_t id_text)
{
    const struct track_key key = {builder->model, {(uint32_t)kind, process, id_text}};

    return lac_index_find(&builder->track_index, track_hash(&key), track_is, &key);
}

enum lac_status lac_builder_track(struct lac_builder *builder, enum lac_track_kind kind,
                                  uint32_t process, uint32_t id_text, int64_t tid,
                                  uint32_t *ret_track)
{
    struct lac_model *model = builder->model;
    struct track_key key = {model, {(uint32_t)kind, process, id_text}};
    uint32_t hash = track_hash(&key);
    uint32_t found = lac_index_find(&builder->track_index, hash, track_is, &key);
    enum lac_status status;

    assert(process < model->process_count);
    if (found != UINT32_MAX) {
        *ret_track = found;
        return LAC_OK;
    }
    if (model->track_count >= LAC_TRACK_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    status = lac_index_reserve(&builder->track_index);
    if (status == LAC_OK) {
        status =
            LAC_GROW(model->tracks, &builder->track_capacity, (uint64_t)model->track_count + 1);
    }
    if (status != LAC_OK) {
        return status;
    }
    model->tracks[model->track_count] = (struct lac_track){
        .kind = kind, .process = process, .id_text = id_text, .tid = tid, .device = -1};
    lac_index_add(&builder->track_index, hash, model->track_count);
    *ret_track = model->track_count++;
    return LAC_OK;
}

struct lac_track *lac_builder_track_at(struct lac_builder *builder, uint32_t track)
{
    assert(track < builder->model->track_count);
    return &builder->model->tracks[track];
}

/* Kept in ascending order of id; machines have few devices, hostile files have sorted inserts. */
struct lac_device *lac_builder_device(struct lac_builder *builder, int64_t id)
{
    struct lac_model *model = builder->model;
    uint32_t low = 0;

    LAC_BISECT(low, model->device_count, middle, model->devices[middle].id < id);
    if (low < model->device_count && model->devices[low].id == id) {
        return &model->devices[low];
    }
    if (model->device_count >= LAC_DEVICE_COUNT_MAX ||
        LAC_GROW(model->devices, &builder->device_capacity, (uint64_t)model->device_count + 1) !=
            LAC_OK) {
        return NULL;
    }
    memmove(&model->devices[low + 1], &model->devices[low],
            (model->device_count - low) * sizeof(*model->devices));
    model->devices[low] = (struct lac_device){.id = id};
    model->device_count++;
    return &model->devices[low];
}

struct config_key {
    const struct lac_model *model;
    const struct lac_kernel_config *config;
};

static int config_is(const void *context, uint32_t id)
{
    const struct config_key *key = context;

    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the same bits are meant */
    return memcmp(&key->model->kernel_configs[id], key->config, sizeof(*key->config)) == 0;
}

_Static_assert(sizeof(struct lac_kernel_config) == 56, "compared as bytes: no padding");

enum lac_status lac_builder_kernel_config(struct lac_builder *builder,
                                          const struct lac_kernel_config *config, uint32_t *ret_row)
{
    struct lac_model *model = builder->model;
    struct config_key key = {model, config};
    uint32_t hash = (uint32_t)lac_hash_bytes(config, sizeof(*config), model->strings.seed);
    uint32_t found = lac_index_find(&builder->config_index, hash, config_is, &key);
    enum lac_status status;

    if (found != UINT32_MAX) {
        *ret_row = found;
        return LAC_OK;
    }
    status = lac_index_reserve(&builder->config_index);
    if (status == LAC_OK) {
        status = LAC_GROW(model->kernel_configs, &builder->config_capacity,
                          (uint64_t)model->kernel_config_count + 1);
    }
    if (status != LAC_OK) {
        return status;
    }
    model->kernel_configs[model->kernel_config_count] = *config;
    lac_index_add(&builder->config_index, hash, model->kernel_config_count);
    *ret_row = model->kernel_config_count++;
    return LAC_OK;
}

static bool copies_equal(const struct lac_copy *a, const struct lac_copy *b)
{
    return a->bytes == b->bytes && a->copy_kind == b->copy_kind && a->src == b->src &&
           a->dst == b->dst && a->is_async == b->is_async && a->module == b->module &&
           a->graph_node == b->graph_node;
}

enum lac_status lac_builder_copy(struct lac_builder *builder, const struct lac_copy *copy,
                                 uint32_t *ret_row)
{
    struct lac_model *model = builder->model;
    uint32_t count = model->copy_count;
    enum lac_status status;

    if (count != 0 && copies_equal(&model->copies[count - 1], copy)) {
        *ret_row = count - 1;
        return LAC_OK;
    }
    status = LAC_GROW(model->copies, &builder->copy_capacity, (uint64_t)count + 1);
    if (status != LAC_OK) {
        return status;
    }
    model->copies[count] = *copy;
    model->copy_count++;
    *ret_row = count;
    return LAC_OK;
}

enum lac_status lac_builder_loader_info(struct lac_builder *builder,
                                        const struct lac_loader_info *info, uint32_t *ret_row)
{
    struct lac_model *model = builder->model;
    uint32_t count = model->loader_info_count;
    enum lac_status status =
        LAC_GROW(model->loader_infos, &builder->loader_capacity, (uint64_t)count + 1);

    if (status != LAC_OK) {
        return status;
    }
    model->loader_infos[count] = *info;
    model->loader_info_count++;
    *ret_row = count;
    return LAC_OK;
}

enum lac_status lac_builder_alloc(struct lac_builder *builder, const struct lac_alloc *alloc,
                                  uint32_t *ret_row)
{
    struct lac_model *model = builder->model;
    uint32_t count = model->alloc_count;
    enum lac_status status = LAC_GROW(model->allocs, &builder->alloc_capacity, (uint64_t)count + 1);

    if (status != LAC_OK) {
        return status;
    }
    model->allocs[count] = *alloc;
    model->alloc_count++;
    *ret_row = count;
    return LAC_OK;
}
