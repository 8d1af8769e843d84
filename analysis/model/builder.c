#include "analysis/model/builder.h"

#include "analysis/model/builder_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum lac_status lac_builder_create(struct lac_builder **ret_builder)
{
    assert(ret_builder != NULL);
    struct lac_builder *builder = calloc(1, sizeof(*builder));
    enum lac_status status;

    if (builder == NULL) {
        return LAC_ERR_NOMEM;
    }
    builder->first_ns = INT64_MAX;
    builder->last_ns = INT64_MIN;
    builder->saw_last_ns = INT64_MIN;
    builder->model = calloc(1, sizeof(*builder->model));
    if (builder->model == NULL) {
        free(builder);
        return LAC_ERR_NOMEM;
    }
    builder->model->info.rank = -1;
    builder->model->info.world_size = -1;
    status = lac_strings_init(&builder->model->strings);
    if (status != LAC_OK) {
        lac_builder_destroy(builder);
        return status;
    }
    *ret_builder = builder;
    return LAC_OK;
}

void lac_builder_use_crew(struct lac_builder *builder, struct lac_crew *crew)
{
    assert(builder != NULL);
    builder->crew = crew;
}

void lac_builder_destroy(struct lac_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    lac_model_destroy(builder->model);
    free(builder->track);
    free(builder->sample_track);
    free(builder->flow_ends);
    lac_index_done(&builder->process_index);
    lac_index_done(&builder->track_index);
    lac_index_done(&builder->config_index);
    free(builder);
}

void lac_builder_demangle(struct lac_builder *builder)
{
    builder->is_to_demangle = true;
}

struct lac_model *lac_builder_model(struct lac_builder *builder)
{
    return builder->model;
}

static inline void count_time(struct lac_builder *builder, int64_t ts_ns)
{
    const uint64_t from_lowest = (uint64_t)ts_ns ^ (UINT64_C(1) << 63);
    struct lac_time_part *part = &builder->time_parts[from_lowest >> LAC_CENSUS_PART_BITS];

    part->first_ns = part->count == 0 || ts_ns < part->first_ns ? ts_ns : part->first_ns;
    part->count++;
}

void lac_builder_count_time(struct lac_builder *builder, int64_t ts_ns)
{
    count_time(builder, ts_ns);
}

int64_t lac_builder_origin(struct lac_builder *builder)
{
    const struct lac_time_part *parts = builder->time_parts;
    uint64_t most = 0;

    if (builder->has_origin) {
        return builder->origin_ns;
    }
    builder->has_origin = true;
    builder->origin_ns = builder->has_time ? builder->first_ns : 0;
    for (uint32_t i = 0; i < LAC_CENSUS_PARTS; i++) {
        const uint64_t next = i + 1 < LAC_CENSUS_PARTS ? parts[i + 1].count : 0;

        if (parts[i].count + next > most) {
            most = parts[i].count + next;
            builder->origin_ns = parts[i].count > 0 ? parts[i].first_ns : parts[i + 1].first_ns;
        }
    }
    return builder->origin_ns;
}

/* Times of everything that a reader will see. They determine t0 and the duration. */
static inline void note_interval(struct lac_builder *builder, int64_t start_ns, int64_t dur_ns)
{
    int64_t end_ns;

    if (__builtin_add_overflow(start_ns, dur_ns, &end_ns)) {
        end_ns = INT64_MAX;
    }
    builder->has_time = true;
    builder->first_ns = start_ns < builder->first_ns ? start_ns : builder->first_ns;
    builder->last_ns = end_ns > builder->last_ns ? end_ns : builder->last_ns;
    count_time(builder, start_ns);
}

void lac_builder_saw_time(struct lac_builder *builder, int64_t ts_ns)
{
    builder->has_time = true;
    builder->first_ns = ts_ns < builder->first_ns ? ts_ns : builder->first_ns;
    builder->saw_last_ns = ts_ns > builder->saw_last_ns ? ts_ns : builder->saw_last_ns;
}

static enum lac_status grow_slices(struct lac_builder *builder)
{
    struct lac_slices *slices = &builder->model->slices;
    uint64_t need = slices->count + 1;
    uint64_t capacity = 0;
    const struct lac_array_ref columns[] = {
        LAC_ARRAY_REF(slices->start_ns), LAC_ARRAY_REF(slices->dur_ns),
        LAC_ARRAY_REF(slices->name),     LAC_ARRAY_REF(slices->corr),
        LAC_ARRAY_REF(slices->detail),   LAC_ARRAY_REF(slices->args),
        LAC_ARRAY_REF(slices->arg_num),  LAC_ARRAY_REF(slices->kind),
        LAC_ARRAY_REF(builder->track),
    };

    if (slices->count >= LAC_SLICE_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(columns); i++) {
        capacity = builder->slice_capacity;
        if (!lac_reserve(columns[i].array, &capacity, sizeof(capacity), need,
                         columns[i].element_bytes)) {
            return LAC_ERR_NOMEM;
        }
    }
    builder->slice_capacity = capacity;
    return LAC_OK;
}

enum lac_status lac_builder_slice(struct lac_builder *builder, const struct lac_slice_in *slice)
{
    struct lac_slices *slices = &builder->model->slices;
    uint64_t i = slices->count;

    assert(slice->dur_ns >= 0);
    assert(slice->track < builder->model->track_count);
    assert(builder->model->tracks[slice->track].kind != LAC_TRACK_COUNTER);
    if (i >= builder->slice_capacity || i >= LAC_SLICE_COUNT_MAX) {
        enum lac_status status = grow_slices(builder);
        if (status != LAC_OK) {
            return status;
        }
    }
    slices->start_ns[i] = slice->start_ns;
    slices->dur_ns[i] = slice->dur_ns;
    slices->name[i] = slice->name;
    slices->corr[i] = slice->corr;
    slices->detail[i] = slice->detail;
    slices->args[i] = slice->args;
    slices->arg_num[i] = slice->arg_num;
    slices->kind[i] = (uint8_t)slice->kind;
    builder->track[i] = slice->track;
    slices->count = i + 1;
    note_interval(builder, slice->start_ns, slice->dur_ns);
    return LAC_OK;
}

enum lac_status lac_builder_sample(struct lac_builder *builder, uint32_t track, int64_t ts_ns,
                                   double value)
{
    struct lac_model *model = builder->model;
    uint64_t need = model->sample_count + 1;
    uint64_t capacity_ts = builder->sample_capacity;
    uint64_t capacity_value = builder->sample_capacity;
    uint64_t capacity_track = builder->sample_capacity;

    assert(track < model->track_count);
    assert(model->tracks[track].kind == LAC_TRACK_COUNTER);
    if (need > LAC_SLICE_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (LAC_GROW(model->sample_ts_ns, &capacity_ts, need) != LAC_OK ||
        LAC_GROW(model->sample_value, &capacity_value, need) != LAC_OK ||
        LAC_GROW(builder->sample_track, &capacity_track, need) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    builder->sample_capacity = capacity_track;
    model->sample_ts_ns[need - 1] = ts_ns;
    model->sample_value[need - 1] = value;
    builder->sample_track[need - 1] = track;
    model->sample_count = need;
    note_interval(builder, ts_ns, 0);
    return LAC_OK;
}

enum lac_status lac_builder_arg_numbers(struct lac_builder *builder, const int64_t *numbers,
                                        uint32_t count, uint32_t *ret_first)
{
    struct lac_model *model = builder->model;
    uint64_t need = model->arg_number_count + count;

    if (need > LAC_NONE) {
        return LAC_ERR_LIMIT;
    }
    if (LAC_GROW(model->arg_numbers, &builder->arg_number_capacity, need) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    if (count != 0) {
        memcpy(model->arg_numbers + model->arg_number_count, numbers, count * sizeof(*numbers));
    }
    *ret_first = (uint32_t)model->arg_number_count;
    model->arg_number_count = need;
    return LAC_OK;
}

enum lac_status lac_builder_flow(struct lac_builder *builder, char step, uint64_t id, uint32_t name,
                                 uint32_t track, int64_t ts_ns, bool bind_enclosing)
{
    uint64_t i = builder->flow_end_count;

    assert(step == 's' || step == 't' || step == 'f');
    assert(track < builder->model->track_count);
    if (i >= LAC_SLICE_COUNT_MAX) {
        return LAC_ERR_LIMIT;
    }
    if (LAC_GROW(builder->flow_ends, &builder->flow_end_capacity, i + 1) != LAC_OK) {
        return LAC_ERR_NOMEM;
    }
    builder->flow_ends[i] = (struct lac_flow_end){
        .id = id,
        .ts_ns = ts_ns,
        .name = name,
        .track = track,
        .slice = LAC_NONE,
        .order = (uint32_t)i,
        .step = step,
        .bind_enclosing = bind_enclosing,
    };
    builder->flow_end_count = i + 1;
    lac_builder_saw_time(builder, ts_ns);
    return LAC_OK;
}
