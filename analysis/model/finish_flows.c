/* finish(): recorded arrows. Ends are matched with slices, then with each other. */

#include "analysis/model/builder_private.h"
#include "analysis/model/lanes.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *left, const void *right)
{
    const struct lac_flow_end *a = left;
    const struct lac_flow_end *b = right;

    if (a->track != b->track) {
        return compare_u64(a->track, b->track);
    }
    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }
    return compare_u64(a->order, b->order);
}

static int step_rank(char step)
{
    return step == 's' ? 0 : step == 't' ? 1 : 2;
}

static int by_arrow(const void *left, const void *right)
{
    const struct lac_flow_end *a = left;
    const struct lac_flow_end *b = right;

    if (a->name != b->name) {
        return compare_u64(a->name, b->name);
    }
    if (a->id != b->id) {
        return compare_u64(a->id, b->id);
    }
    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }
    if (a->step != b->step) {
        return step_rank(a->step) - step_rank(b->step);
    }
    return compare_u64(a->order, b->order);
}

static int by_source(const void *left, const void *right)
{
    const struct lac_flow *a = left;
    const struct lac_flow *b = right;

    if (a->src != b->src) {
        return compare_u64(a->src, b->src);
    }
    if (a->dst != b->dst) {
        return compare_u64(a->dst, b->dst);
    }
    return compare_u64(a->name, b->name);
}

static uint32_t group_by_track(const void *row)
{
    return ((const struct lac_flow_end *)row)->track;
}

/* Equal for the ends of one arrow; others that share it only cost a comparison. */
static uint32_t group_by_arrow(const void *row)
{
    const struct lac_flow_end *end = row;
    uint64_t mixed = (end->id ^ (uint64_t)end->name << 40) * 0x9E3779B97F4A7C15u;

    return (uint32_t)(mixed >> 32);
}

static uint32_t group_by_source(const void *row)
{
    return ((const struct lac_flow *)row)->src;
}

/* Order in which equal groups are neighbors and each is sorted: groups by radix, as there are
 * many and most are small; inside by comparing, unless the input had them in order. */
static enum lac_status sort_in_groups(void *rows, uint64_t count, size_t row_bytes,
                                      uint32_t (*group_of)(const void *),
                                      int (*compare)(const void *, const void *))
{
    uint8_t *bytes = rows;
    uint64_t *keys = malloc(count * 2 * sizeof(*keys) + 1);
    uint8_t *copy = malloc(count * row_bytes + 1);

    if (keys == NULL || copy == NULL) {
        free(keys);
        free(copy);
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        keys[i] = (uint64_t)group_of(bytes + i * row_bytes) << 32 | i;
    }
    lac_sort_by_upper(keys, keys + count, count);
    memcpy(copy, bytes, count * row_bytes);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(bytes + i * row_bytes, copy + (keys[i] & UINT32_MAX) * row_bytes, row_bytes);
    }
    free(copy);
    for (uint64_t i = 0; i < count;) {
        uint64_t end = i + 1;
        bool is_sorted = true;

        for (; end < count && keys[end] >> 32 == keys[i] >> 32; end++) {
            is_sorted =
                is_sorted && compare(bytes + (end - 1) * row_bytes, bytes + end * row_bytes) <= 0;
        }
        if (!is_sorted) {
            qsort(bytes + i * row_bytes, end - i, row_bytes, compare);
        }
        i = end;
    }
    free(keys);
    return LAC_OK;
}

/* Sweep one track: the open slice of each lane is known, the deepest one that reaches the end's
 * time is innermost. */
static void find_slices(const struct lac_model *model, struct lac_flow_end *ends, uint64_t count,
                        struct lac_lane_set *lanes, uint32_t *open)
{
    const struct lac_track *track = &model->tracks[ends[0].track];
    const struct lac_slices *slices = &model->slices;
    uint64_t next = track->first;
    uint64_t end = track->first + track->count;

    if (track->kind == LAC_TRACK_COUNTER) {
        return;
    }
    lac_lane_set_clear(lanes);
    for (uint64_t i = 0; i < count; i++) {
        int32_t lane;

        if (!ends[i].bind_enclosing && ends[i].step == 'f') {
            uint64_t after = lac_model_lower_bound(model, ends[i].track, ends[i].ts_ns);

            ends[i].slice = after < end ? (uint32_t)after : LAC_NONE;
            continue;
        }
        for (; next < end && slices->start_ns[next] <= ends[i].ts_ns; next++) {
            open[slices->lane[next]] = (uint32_t)next;
            lac_lane_set_put(lanes, slices->lane[next],
                             slices->start_ns[next] + slices->dur_ns[next]);
        }
        lane = lac_lane_set_enclosing(lanes, ends[i].ts_ns);
        ends[i].slice = lane < 0 ? LAC_NONE : open[lane];
    }
}

static enum lac_status find_all_slices(struct lac_builder *builder)
{
    struct lac_flow_end *ends = builder->flow_ends;
    uint64_t count = builder->flow_end_count;
    struct lac_lane_set lanes;
    const uint32_t most = lac_lanes_most(builder->model);
    uint32_t *open = malloc(((size_t)most + 1) * sizeof(*open));
    enum lac_status status = lac_lane_set_init(&lanes, most);

    if (open == NULL || status != LAC_OK) {
        free(open);
        lac_lane_set_done(&lanes);
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < count;) {
        uint64_t end = i + 1;

        while (end < count && ends[end].track == ends[i].track) {
            end++;
        }
        find_slices(builder->model, ends + i, end - i, &lanes, open);
        i = end;
    }
    free(open);
    lac_lane_set_done(&lanes);
    return LAC_OK;
}

struct arrows {
    struct lac_flow *flows;
    uint64_t count;
};

static void draw(struct arrows *arrows, const struct lac_flow_end *from,
                 const struct lac_flow_end *to)
{
    if (from->slice != LAC_NONE && to->slice != LAC_NONE) {
        arrows->flows[arrows->count++] =
            (struct lac_flow){.src = from->slice, .dst = to->slice, .name = from->name};
    }
}

/* The ends of one (name, id), in order of time: s, then t, then f. A new s begins a new arrow. */
static void match_group(struct arrows *arrows, const struct lac_flow_end *ends, uint64_t count)
{
    const struct lac_flow_end *from = NULL;

    if (count == 2 && ends[0].step == 'f' && ends[1].step == 's') {
        draw(arrows, &ends[1], &ends[0]); /* two clocks: the end of the arrow seems to come first */
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (ends[i].step == 's') {
            from = &ends[i];
        } else if (from != NULL) {
            draw(arrows, from, &ends[i]);
            from = ends[i].step == 't' ? &ends[i] : NULL;
        }
    }
}

static void match_all(struct arrows *arrows, const struct lac_flow_end *ends, uint64_t count)
{
    for (uint64_t i = 0; i < count;) {
        uint64_t end = i + 1;

        while (end < count && ends[end].name == ends[i].name && ends[end].id == ends[i].id) {
            end++;
        }
        match_group(arrows, ends + i, end - i);
        i = end;
    }
}

enum lac_status lac_finish_flows(struct lac_builder *builder, int64_t t0_ns)
{
    struct lac_model *model = builder->model;
    struct lac_flow_end *ends = builder->flow_ends;
    uint64_t count = builder->flow_end_count;
    struct arrows arrows = {0};
    uint64_t unbound = 0;
    enum lac_status status;

    if (count == 0) {
        return LAC_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ts = (uint64_t)ends[i].ts_ns - (uint64_t)t0_ns;

        ends[i].ts_ns = ts > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)ts;
    }
    arrows.flows = malloc(count * sizeof(*arrows.flows));
    if (arrows.flows == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = sort_in_groups(ends, count, sizeof(*ends), group_by_track, by_place);
    if (status == LAC_OK) {
        status = find_all_slices(builder);
    }
    if (status == LAC_OK) {
        status = sort_in_groups(ends, count, sizeof(*ends), group_by_arrow, by_arrow);
    }
    if (status == LAC_OK) {
        match_all(&arrows, ends, count);
        status = sort_in_groups(arrows.flows, arrows.count, sizeof(*arrows.flows), group_by_source,
                                by_source);
    }
    if (status != LAC_OK) {
        free(arrows.flows);
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        unbound += ends[i].slice == LAC_NONE;
    }
    if (unbound != 0) {
        lac_model_report(model, LAC_REPORT_INFO, "arrow_without_slice", unbound, 0,
                         "Ends of recorded arrows lie on no slice; those arrows are not drawn.");
    }
    model->flows = arrows.flows;
    model->flow_count = arrows.count;
    return LAC_OK;
}
