/* finish(), first part: every column into the order of (track, start, -dur, input). */

#include "analysis/crew/crew.h"
#include "analysis/model/builder_private.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
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
                   (t0_ns == builder->first_ns &&
                    (uint64_t)builder->last_ns - (uint64_t)t0_ns <= (uint64_t)LAC_TIME_MAX_NS);
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

/* Tracks are sorted side by side: each part takes the next one that nobody has. */
struct track_sort {
    const struct lac_model *model;
    uint32_t *order;
    uint64_t largest;
    atomic_uint next;
};

static void sort_tracks(void *context, uint32_t part)
{
    struct track_sort *const sort = context;
    const struct lac_slices *slices = &sort->model->slices;
    /* untouched pages cost nothing */
    uint32_t *scratch = malloc((sort->largest + 1) * sizeof(*scratch));

    (void)part;
    if (scratch == NULL) {
        return; /* the others take its tracks */
    }
    for (uint32_t t; (t = atomic_fetch_add(&sort->next, 1)) < sort->model->track_count;) {
        const struct lac_track *track = &sort->model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER) {
            lac_sort_by_time(sort->order + track->first, scratch, track->count, slices->start_ns,
                             slices->dur_ns);
        }
    }
    free(scratch);
}

/* Sort each track's stretch of `order` by time. */
static enum lac_status order_by_time(const struct lac_model *model, uint32_t *order,
                                     struct lac_crew *crew)
{
    struct track_sort sort = {.model = model, .order = order};

    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (track->kind != LAC_TRACK_COUNTER && track->count > sort.largest) {
            sort.largest = track->count;
        }
    }
    if (sort.largest == 0) {
        return LAC_OK;
    }
    lac_crew_run(crew, lac_crew_size(crew) + 1, sort_tracks, &sort);
    return atomic_load(&sort.next) < model->track_count ? LAC_ERR_NOMEM : LAC_OK;
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

/* Two halves of the columns, side by side. */
struct permutation {
    struct lac_slices *slices;
    const uint32_t *order;
    uint64_t kept;
    bool is_ordered; /* nothing moves */
    uint32_t *track; /* of each slice, no longer needed: room for a column, in the end of links */
    enum lac_status status[2];
};

static enum lac_status permute_each(const struct permutation *all,
                                    const struct lac_array_ref *columns, size_t column_count,
                                    struct spare *spare)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < column_count && status == LAC_OK && !all->is_ordered; i++) {
        status = permute(columns[i].array, columns[i].element_bytes, all->order, all->kept, spare);
    }
    return status;
}

static enum lac_status permute_ids(const struct permutation *all)
{
    struct lac_slices *const slices = all->slices;
    const struct lac_array_ref columns[] = {
        LAC_ARRAY_REF(slices->name), LAC_ARRAY_REF(slices->corr),    LAC_ARRAY_REF(slices->detail),
        LAC_ARRAY_REF(slices->args), LAC_ARRAY_REF(slices->arg_num),
    };
    struct spare spare = {all->track, sizeof(*all->track)};
    const enum lac_status status = permute_each(all, columns, LAC_COUNT_OF(columns), &spare);

    assert(spare.memory == NULL || spare.element_bytes == sizeof(*slices->link));
    slices->link = spare.memory;
    return status;
}

static enum lac_status permute_times_and_kinds(const struct permutation *all)
{
    struct lac_slices *const slices = all->slices;
    const struct lac_array_ref columns[] = {
        LAC_ARRAY_REF(slices->start_ns),
        LAC_ARRAY_REF(slices->dur_ns),
        LAC_ARRAY_REF(slices->kind),
    };
    struct spare spare = {NULL, 0};
    const enum lac_status status = permute_each(all, columns, LAC_COUNT_OF(columns), &spare);

    free(spare.memory);
    return status;
}

static void permute_part(void *context, uint32_t part)
{
    struct permutation *const all = context;

    all->status[part] = part == 0 ? permute_ids(all) : permute_times_and_kinds(all);
}

static enum lac_status permute_all(struct lac_builder *builder, const uint32_t *order,
                                   uint64_t kept)
{
    struct lac_slices *const slices = &builder->model->slices;
    struct permutation all = {
        .slices = slices,
        .order = order,
        .kept = kept,
        .is_ordered = kept == slices->count && kept != 0 && is_identity(order, kept),
        .track = builder->track,
    };

    builder->track = NULL;
    lac_crew_run(builder->crew, 2, permute_part, &all);
    return all.status[0] != LAC_OK ? all.status[0] : all.status[1];
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
        status = order_by_time(model, order, builder->crew);
    }
    if (status == LAC_OK) {
        status = permute_all(builder, order, kept);
    }
    free(order);
    if (status != LAC_OK) {
        return status;
    }
    model->slices.count = kept;
    if (dropped != 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "time_out_of_range", dropped, 0,
                         "Events more than 104 days from most others were dropped.");
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
                         "Events more than 104 days from most others were dropped.");
    }
    return LAC_OK;
}
