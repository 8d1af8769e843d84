/* finish(), first part: every column into the order of (track, start, -dur, input). */

#include "analysis/model/builder_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Instants are events, but none of the slices that `slice_count` counts. */
static bool is_counted(const struct lac_slices *slices, uint64_t slice)
{
    return slices->kind[slice] != LAC_SLICE_INSTANT && slices->kind[slice] != LAC_SLICE_ALLOC;
}

/* Times become relative; what is too far from t0 is removed from its track and counted. */
static uint64_t make_relative(struct lac_builder *builder, int64_t t0_ns)
{
    struct lac_slices *slices = &builder->model->slices;
    struct lac_trace_info *info = &builder->model->info;
    bool all_fit = slices->count == 0 ||
                   (uint64_t)builder->last_ns - (uint64_t)t0_ns <= (uint64_t)LAC_TIME_MAX_NS;
    uint64_t dropped = 0;

    if (t0_ns == 0 && all_fit) {
        return 0;
    }
    for (uint64_t i = 0; i < slices->count; i++) {
        uint64_t start = (uint64_t)slices->start_ns[i] - (uint64_t)t0_ns;

        slices->start_ns[i] = (int64_t)start;
        if (!all_fit && (start > (uint64_t)LAC_TIME_MAX_NS ||
                         start + (uint64_t)slices->dur_ns[i] > (uint64_t)LAC_TIME_MAX_NS)) {
            builder->track[i] = LAC_NONE;
            dropped++;
            info->slice_count -= info->slice_count > 0 && is_counted(slices, i);
        }
    }
    return dropped;
}

/* Set first and count of the tracks that have entries, return the number of kept entries. */
static uint64_t lay_tracks(struct lac_model *model, const uint32_t *track, uint64_t count,
                           bool counters)
{
    uint64_t first = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (track[i] != LAC_NONE) {
            model->tracks[track[i]].count++;
        }
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        if ((model->tracks[t].kind == LAC_TRACK_COUNTER) == counters) {
            model->tracks[t].first = first;
            first += model->tracks[t].count;
        }
    }
    return first;
}

/* Stable counting sort: entries by track, in the order of the input. */
static enum lac_status order_by_track(const struct lac_model *model, const uint32_t *track,
                                      uint64_t count, uint64_t kept, uint32_t **ret_order)
{
    const size_t order_bytes = (kept + 1) * sizeof(uint32_t);
    uint32_t *order = lac_huge_pages(malloc(order_bytes), order_bytes);
    uint64_t *place = malloc(((uint64_t)model->track_count + 1) * sizeof(*place));

    if (order == NULL || place == NULL) {
        free(order);
        free(place);
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        place[t] = model->tracks[t].first;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (track[i] != LAC_NONE) {
            order[place[track[i]]++] = (uint32_t)i;
        }
    }
    free(place);
    *ret_order = order;
    return LAC_OK;
}

/* Sort each track's stretch of `order` by time. */
static enum lac_status order_by_time(const struct lac_model *model, uint32_t *order)
{
    const struct lac_slices *slices = &model->slices;
    uint64_t largest = 0;
    uint32_t *scratch;

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER && track->count > largest) {
            largest = track->count;
        }
    }
    scratch = malloc((largest + 1) * sizeof(*scratch)); /* untouched pages cost nothing */
    if (scratch == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER) {
            lac_sort_by_time(order + track->first, scratch, track->count, slices->start_ns,
                             slices->dur_ns);
        }
    }
    free(scratch);
    return LAC_OK;
}

/* One loop per element size: the compiler then knows it. */
static void gather_1(uint8_t *to, const uint8_t *from, const uint32_t *order, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        to[i] = from[order[i]];
    }
}

static void gather_4(uint32_t *to, const uint32_t *from, const uint32_t *order, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        to[i] = from[order[i]];
    }
}

static void gather_8(uint64_t *to, const uint64_t *from, const uint32_t *order, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        to[i] = from[order[i]];
    }
}

/* What the previous column left behind is there already: new memory costs about as much as the
 * gathering, as the kernel clears it first. */
struct spare {
    void *memory; /* of the elements of a column */
    size_t element_bytes;
};

static void *take_spare(struct spare *spare, size_t element_bytes, uint64_t count)
{
    const size_t size_bytes = (count + 1) * element_bytes;
    void *const memory = spare->memory;

    if (memory != NULL && spare->element_bytes == element_bytes) {
        spare->memory = NULL;
        return memory;
    }
    return lac_huge_pages(malloc(size_bytes), size_bytes);
}

static void put_spare(struct spare *spare, void *memory, size_t element_bytes)
{
    free(spare->memory);
    *spare = (struct spare){memory, element_bytes};
}

/* Replace the column that `column` (a pointer to a pointer) points to by its entries in `order`. */
static enum lac_status permute(void *column, size_t element_bytes, const uint32_t *order,
                               uint64_t count, struct spare *spare)
{
    void *from;
    void *to = take_spare(spare, element_bytes, count);

    if (to == NULL) {
        return LAC_ERR_NOMEM;
    }
    memcpy((void *)&from, column, sizeof(from));
    if (count == 0) {
        free(from);
        memcpy(column, (void *)&to, sizeof(to));
        return LAC_OK;
    }
    switch (element_bytes) {
    case 1:
        gather_1(to, from, order, count);
        break;
    case 4:
        gather_4(to, from, order, count);
        break;
    default:
        assert(element_bytes == 8);
        gather_8(to, from, order, count);
        break;
    }
    put_spare(spare, from, element_bytes);
    memcpy(column, (void *)&to, sizeof(to));
    return LAC_OK;
}

static bool is_identity(const uint32_t *order, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (order[i] != i) {
            return false;
        }
    }
    return true;
}

static enum lac_status permute_each(const struct lac_array_ref *columns, size_t column_count,
                                    const uint32_t *order, uint64_t kept, struct spare *spare)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < column_count && status == LAC_OK; i++) {
        status = permute(columns[i].array, columns[i].element_bytes, order, kept, spare);
    }
    return status;
}

/* @param track of each slice, no longer needed: room for a column, and in the end for that of links */
static enum lac_status permute_all(struct lac_slices *slices, const uint32_t *order, uint64_t kept,
                                   uint32_t *track)
{
    const struct lac_array_ref narrow[] = {
        LAC_ARRAY_REF(slices->name), LAC_ARRAY_REF(slices->corr),    LAC_ARRAY_REF(slices->detail),
        LAC_ARRAY_REF(slices->args), LAC_ARRAY_REF(slices->arg_num),
    };
    const struct lac_array_ref others[] = {
        LAC_ARRAY_REF(slices->start_ns),
        LAC_ARRAY_REF(slices->dur_ns),
        LAC_ARRAY_REF(slices->kind),
    };
    const bool is_ordered = kept == slices->count && kept != 0 && is_identity(order, kept);
    struct spare spare = {track, sizeof(*track)};
    enum lac_status status = LAC_OK;

    if (!is_ordered) {
        status = permute_each(narrow, LAC_COUNT_OF(narrow), order, kept, &spare);
    }
    slices->link = spare.memory;
    spare.memory = NULL;
    if (status == LAC_OK && !is_ordered) {
        status = permute_each(others, LAC_COUNT_OF(others), order, kept, &spare);
    }
    free(spare.memory);
    return status;
}

enum lac_status lac_finish_order(struct lac_builder *builder, int64_t t0_ns)
{
    struct lac_model *model = builder->model;
    uint64_t dropped = make_relative(builder, t0_ns);
    uint64_t kept = lay_tracks(model, builder->track, model->slices.count, false);
    uint32_t *order = NULL;
    enum lac_status status =
        order_by_track(model, builder->track, model->slices.count, kept, &order);

    if (status == LAC_OK) {
        status = order_by_time(model, order);
    }
    if (status == LAC_OK) {
        status = permute_all(&model->slices, order, kept, builder->track);
        builder->track = NULL;
    }
    free(order);
    if (status != LAC_OK) {
        return status;
    }
    model->slices.count = kept;
    if (dropped != 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "time_out_of_range", dropped, 0,
                         "Events more than 104 days after the first event were dropped.");
    }
    return LAC_OK;
}

enum lac_status lac_finish_samples(struct lac_builder *builder, int64_t t0_ns)
{
    struct lac_model *model = builder->model;
    uint64_t count = model->sample_count;
    uint64_t dropped = 0;
    uint64_t kept;
    uint32_t *order = NULL;
    uint32_t *scratch = NULL;
    struct spare spare = {NULL, 0};
    enum lac_status status;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t ts = (uint64_t)model->sample_ts_ns[i] - (uint64_t)t0_ns;

        model->sample_ts_ns[i] = (int64_t)ts;
        if (ts > (uint64_t)LAC_TIME_MAX_NS) {
            builder->sample_track[i] = LAC_NONE;
            dropped++;
        }
    }
    kept = lay_tracks(model, builder->sample_track, count, true);
    if (count == 0) {
        return LAC_OK;
    }
    status = order_by_track(model, builder->sample_track, count, kept, &order);
    if (status != LAC_OK) {
        return status;
    }
    scratch = malloc((kept + 1) * sizeof(*scratch));
    status = scratch == NULL ? LAC_ERR_NOMEM : LAC_OK;
    for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER) {
            lac_sort_by_time(order + model->tracks[t].first, scratch, model->tracks[t].count,
                             model->sample_ts_ns, NULL);
        }
    }
    free(scratch);
    if (status == LAC_OK) {
        status = permute((void *)&model->sample_ts_ns, sizeof(*model->sample_ts_ns), order, kept,
                         &spare);
    }
    if (status == LAC_OK) {
        status = permute((void *)&model->sample_value, sizeof(*model->sample_value), order, kept,
                         &spare);
    }
    free(spare.memory);
    free(order);
    if (status != LAC_OK) {
        return status;
    }
    model->sample_count = kept;
    if (dropped != 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "time_out_of_range", dropped, 0,
                         "Events more than 104 days after the first event were dropped.");
    }
    return LAC_OK;
}
