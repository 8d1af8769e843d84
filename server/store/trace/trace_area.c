/* What lies in an area of the timeline. */

#include "analysis/crew/crew.h"
#include "analysis/flame/flame_thread.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Key type of a chunk's totals in the cache; columns of chunks have smaller ones. */
#define TOTALS_TYPE (UINT32_C(1) << 31)

/** A query at work: of all rows, or of every so-manieth, beside others. */
struct counting {
    struct lac_trace_file *file;
    const struct lac_area_query *query;
    uint32_t first, stride; /**< of the rows that are asked for */
    struct lac_name_totals all;
    struct lac_name_totals of_track;
    struct lac_open_slice *open; /**< of the present track, if it is a thread */
    uint32_t open_capacity;
    struct lac_area *area;
    struct lac_error *reterr;
};

static bool has_nesting(const struct lac_trace_file *file, uint32_t track)
{
    return file->head.tracks[track].kind == LAC_TRACK_THREAD;
}

/** The slices that are open where a chunk begins. */
static enum lac_status open_before(struct counting *counting, uint32_t chunk)
{
    struct lac_trace_file *file = counting->file;
    const uint32_t lanes = file->head.tracks[file->chunks[chunk].track].lane_count;

    if (lanes > counting->open_capacity) {
        struct lac_open_slice *open = realloc(counting->open, (size_t)lanes * sizeof(*open));

        if (open == NULL) {
            return LAC_ERR_NOMEM;
        }
        counting->open = open;
        counting->open_capacity = lanes;
    }
    return lac_trace_open_before(file, chunk, counting->open, counting->reterr);
}

/** Count what of a chunk lies in [t0_ns, t1_ns) into `totals`. */
static enum lac_status count_chunk(struct counting *counting, uint32_t chunk, int64_t t0_ns,
                                   int64_t t1_ns, struct lac_name_totals *totals)
{
    struct lac_trace_file *file = counting->file;
    const bool is_nested = has_nesting(file, file->chunks[chunk].track);
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    enum lac_status status = is_nested ? open_before(counting, chunk) : LAC_OK;

    if (status == LAC_OK) {
        status = lac_trace_chunk(file, chunk, LAC_COLUMNS_TILE, &columns, &pin, counting->reterr);
    }
    if (status == LAC_OK) {
        const struct lac_totals_part part = {.at = &columns->at,
                                             .first = file->chunks[chunk].first,
                                             .t0_ns = t0_ns,
                                             .t1_ns = t1_ns,
                                             .open = is_nested ? counting->open : NULL};

        status = lac_name_totals_count(totals, &part) ? LAC_OK : LAC_ERR_NOMEM;
        lac_cache_unpin(file->cache, pin);
    }
    return status;
}

/** The rows of a chunk as a whole, as the cache keeps them. */
struct kept_totals {
    uint32_t count;
    struct lac_area_name rows[];
};

/** Of a chunk that lies in the area as a whole. */
static enum lac_status make_totals(struct counting *counting, uint32_t chunk,
                                   const struct lac_cache_key *key,
                                   struct lac_cache_entry **ret_entry)
{
    struct lac_name_totals totals = {0};
    struct kept_totals *kept = NULL;
    enum lac_status status = lac_trace_stored_totals(counting->file, &counting->file->chunks[chunk],
                                                     &totals, counting->reterr);

    if (status == LAC_ERR_NOT_FOUND) { /* an older file, or as many names as slices */
        status = count_chunk(counting, chunk, 0, INT64_MAX, &totals);
    }

    if (status == LAC_OK) {
        const size_t size_bytes =
            sizeof(*kept) + (size_t)totals.count * sizeof(struct lac_area_name);

        kept = malloc(size_bytes);
        if (kept != NULL) {
            kept->count = totals.count;
            memcpy(kept->rows, totals.rows, (size_t)totals.count * sizeof(*totals.rows));
            *ret_entry = lac_cache_put(counting->file->cache, key, kept, size_bytes, free);
        }
        status = kept != NULL && *ret_entry != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    lac_name_totals_done(&totals);
    return status;
}

static enum lac_status add_whole_chunk(struct counting *counting, uint32_t chunk)
{
    struct lac_trace_file *file = counting->file;
    const struct lac_cache_key key = {.owner = file->owner, .index = chunk, .type = TOTALS_TYPE};
    struct lac_cache_entry *entry = lac_cache_get(file->cache, &key);
    enum lac_status status = entry != NULL ? LAC_OK : make_totals(counting, chunk, &key, &entry);

    if (status == LAC_OK) {
        const struct kept_totals *kept = lac_cache_data(entry);

        for (uint32_t r = 0; r < kept->count && status == LAC_OK; r++) {
            status =
                lac_name_totals_add(&counting->of_track, &kept->rows[r]) ? LAC_OK : LAC_ERR_NOMEM;
        }
    }
    lac_cache_unpin(file->cache, entry);
    return status;
}

struct lac_area_device *lac_area_device_of(struct lac_area *area, int64_t id)
{
    uint32_t low = 0;

    LAC_BISECT(low, area->device_count, middle, area->devices[middle].id < id);
    return low < area->device_count && area->devices[low].id == id ? &area->devices[low] : NULL;
}

/** Only the profiler's own mark over what it recorded: it says nothing of the job, and would lead
 *  every list by time. */
static bool is_recorder(const struct counting *counting)
{
    const struct lac_model *head = &counting->file->head;
    bool is = counting->of_track.count > 0;

    for (uint32_t r = 0; r < counting->of_track.count && is; r++) {
        is = lac_flame_is_recorder(lac_model_str(head, counting->of_track.rows[r].name));
    }
    return is;
}

/** Add what was counted of a track to the whole. */
static enum lac_status add_track(struct counting *counting, uint32_t track)
{
    const struct lac_track *of = &counting->file->head.tracks[track];
    struct lac_area *area = counting->area;
    struct lac_area_device *device =
        of->kind == LAC_TRACK_STREAM ? lac_area_device_of(area, of->device) : NULL;
    struct lac_area_track sum = {.track = track};

    if (counting->query->tracks == NULL && is_recorder(counting)) {
        return LAC_OK;
    }
    for (uint32_t r = 0; r < counting->of_track.count; r++) {
        const struct lac_area_name *row = &counting->of_track.rows[r];

        sum.count += row->count;
        sum.total_ns += row->self_ns;
        if (device != NULL) {
            device->kind_count[row->kind] += row->count;
            device->kind_ns[row->kind] += row->total_ns;
        }
        if (!lac_name_totals_add(&counting->all, row)) {
            return LAC_ERR_NOMEM;
        }
    }
    if (sum.count > 0) {
        area->tracks[area->track_count++] = sum;
        area->slice_count += sum.count;
    }
    return LAC_OK;
}

static enum lac_status count_track(struct counting *counting, uint32_t track)
{
    const struct lac_trace_file *file = counting->file;
    const struct lac_area_query *query = counting->query;
    enum lac_status status = LAC_OK;

    lac_name_totals_clear(&counting->of_track);
    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && status == LAC_OK &&
         file->chunks[c].start_first < query->t1_ns;
         c++) {
        const struct lac_chunk_entry *chunk = &file->chunks[c];

        if (chunk->end_last < query->t0_ns) {
            continue;
        }
        /* a slice without length at t1 is outside */
        status = chunk->start_first >= query->t0_ns && chunk->end_last <= query->t1_ns &&
                         chunk->start_last < query->t1_ns
                     ? add_whole_chunk(counting, c)
                     : count_chunk(counting, c, query->t0_ns, query->t1_ns, &counting->of_track);
    }
    return status == LAC_OK ? add_track(counting, track) : status;
}

/** Devices with the part of the area that lies in their span. */
static enum lac_status find_devices(struct lac_trace_file *file, const struct lac_area_query *query,
                                    struct lac_area *area)
{
    const struct lac_model *head = &file->head;
    int64_t(*ends_ns)[2] = malloc(((size_t)head->device_count + 1) * sizeof(*ends_ns));

    area->devices = calloc((size_t)head->device_count + 1, sizeof(*area->devices));
    if (area->devices == NULL || ends_ns == NULL) {
        free(ends_ns);
        return LAC_ERR_NOMEM;
    }
    area->device_count = head->device_count;
    for (uint32_t d = 0; d < head->device_count; d++) {
        area->devices[d].id = head->devices[d].id;
        ends_ns[d][0] = INT64_MAX;
        ends_ns[d][1] = 0;
    }
    for (uint32_t c = 0; c < file->chunk_count; c++) {
        const struct lac_chunk_entry *chunk = &file->chunks[c];
        const struct lac_track *track = &head->tracks[chunk->track];
        const struct lac_area_device *device =
            track->kind == LAC_TRACK_STREAM ? lac_area_device_of(area, track->device) : NULL;

        if (device != NULL) {
            int64_t *ends = ends_ns[device - area->devices];

            ends[0] = chunk->start_first < ends[0] ? chunk->start_first : ends[0];
            ends[1] = chunk->end_last > ends[1] ? chunk->end_last : ends[1];
        }
    }
    for (uint32_t d = 0; d < head->device_count; d++) {
        const int64_t from_ns = ends_ns[d][0] > query->t0_ns ? ends_ns[d][0] : query->t0_ns;
        const int64_t to_ns = ends_ns[d][1] < query->t1_ns ? ends_ns[d][1] : query->t1_ns;

        area->devices[d].span_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    }
    free(ends_ns);
    return LAC_OK;
}

static enum lac_status count_tracks(struct counting *counting)
{
    /* rows by turns: those of one kind, which lie together, take about as long as each other */
    const struct lac_model *head = &counting->file->head;
    const struct lac_area_query *query = counting->query;
    enum lac_status status = LAC_OK;

    for (uint64_t i = counting->first;
         i < (query->tracks != NULL ? query->track_count : head->track_count) && status == LAC_OK;
         i += counting->stride) {
        const uint32_t track = query->tracks != NULL ? query->tracks[i] : (uint32_t)i;
        const bool is_derived = head->tracks[track].kind == LAC_TRACK_STEPS ||
                                head->tracks[track].kind == LAC_TRACK_GAPS;

        if (head->tracks[track].kind != LAC_TRACK_COUNTER &&
            (query->tracks != NULL || !is_derived)) {
            status = count_track(counting, track);
        }
    }
    return status;
}

static bool is_asked_well(const struct lac_trace_file *file, const struct lac_area_query *query)
{
    bool is_well = query->t0_ns >= 0 && query->t0_ns <= query->t1_ns;

    for (uint32_t i = 0; query->tracks != NULL && i < query->track_count; i++) {
        is_well = is_well && query->tracks[i] < file->head.track_count &&
                  (i == 0 || query->tracks[i - 1] < query->tracks[i]);
    }
    return is_well;
}

/** Rows that are counted on one thread. */
struct part {
    struct counting counting;
    struct lac_area area;
    struct lac_error error;
    enum lac_status status;
};

enum { PARTS_MAX = 4 };

static enum lac_status prepare_area(struct lac_trace_file *file, const struct lac_area_query *query,
                                    struct lac_area *area)
{
    area->tracks = malloc(((size_t)file->head.track_count + 1) * sizeof(*area->tracks));
    return area->tracks != NULL ? find_devices(file, query, area) : LAC_ERR_NOMEM;
}

static void count_part(void *context, uint32_t which)
{
    struct part *part = (struct part *)context + which;

    part->counting.area = &part->area;
    part->counting.reterr = &part->error;
    part->status = prepare_area(part->counting.file, part->counting.query, &part->area);
    if (part->status == LAC_OK) {
        part->status = count_tracks(&part->counting);
    }
}

static int by_track(const void *left, const void *right)
{
    return LAC_ORDER(((const struct lac_area_track *)left)->track,
                     ((const struct lac_area_track *)right)->track);
}

/** Add what a part counted. */
static enum lac_status add_part(struct part *into, const struct part *part)
{
    struct lac_area *area = &into->area;
    const struct lac_area *more = &part->area;

    memcpy(area->tracks + area->track_count, more->tracks,
           more->track_count * sizeof(*more->tracks));
    area->track_count += more->track_count;
    area->slice_count += more->slice_count;
    for (uint32_t d = 0; d < area->device_count; d++) {
        for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_; kind++) {
            area->devices[d].kind_count[kind] += more->devices[d].kind_count[kind];
            area->devices[d].kind_ns[kind] += more->devices[d].kind_ns[kind];
        }
    }
    for (uint32_t r = 0; r < part->counting.all.count; r++) {
        if (!lac_name_totals_add(&into->counting.all, &part->counting.all.rows[r])) {
            return LAC_ERR_NOMEM;
        }
    }
    return LAC_OK;
}

/** Count the rows, side by side where there is a crew, into the first part. */
static enum lac_status count_parts(struct part *parts, uint32_t count, struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;

    lac_crew_run(parts[0].counting.file->crew, count, count_part, parts);
    for (uint32_t p = 0; p < count && status == LAC_OK; p++) {
        status = parts[p].status;
        if (status != LAC_OK && reterr != NULL && parts[p].error.status == status) {
            *reterr = parts[p].error;
        }
    }
    for (uint32_t p = 1; p < count && status == LAC_OK; p++) {
        status = add_part(&parts[0], &parts[p]);
    }
    if (status == LAC_OK && parts[0].area.track_count > 1) {
        qsort(parts[0].area.tracks, parts[0].area.track_count, sizeof(*parts[0].area.tracks),
              by_track);
    }
    return status;
}

static void counting_done(struct counting *counting)
{
    lac_name_totals_done(&counting->all);
    lac_name_totals_done(&counting->of_track);
    free(counting->open);
}

enum lac_status lac_trace_file_area(struct lac_trace_file *file, const struct lac_area_query *query,
                                    struct lac_area *ret_area, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && ret_area != NULL);
    struct part parts[PARTS_MAX] = {0};
    struct lac_area *area = &parts[0].area;
    const uint32_t count = lac_crew_size(file->crew) > 0 ? PARTS_MAX : 1;
    enum lac_status status;

    if (!is_asked_well(file, query)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "area: t0 is not after t1, and tracks exist and ascend");
    }
    for (uint32_t p = 0; p < count; p++) {
        parts[p].counting =
            (struct counting){.file = file, .query = query, .first = p, .stride = count};
    }
    status = count_parts(parts, count, reterr);
    if (status == LAC_OK) {
        status = lac_trace_area_gaps(file, query, area, reterr);
    }
    if (status == LAC_OK) {
        status = lac_trace_area_exposed(file, query, area, reterr);
    }
    area->names = parts[0].counting.all.rows;
    area->name_count = parts[0].counting.all.count;
    parts[0].counting.all.rows = NULL;
    for (uint32_t p = 0; p < count; p++) {
        counting_done(&parts[p].counting);
        if (p > 0 || status != LAC_OK) {
            lac_area_done(&parts[p].area);
        }
    }
    if (status != LAC_OK) {
        return status;
    }
    lac_area_sort(area, &file->head, LAC_AREA_SORT_TOTAL, true);
    *ret_area = *area;
    return LAC_OK;
}

struct order {
    const struct lac_model *head;
    enum lac_area_sort sort;
    int sign;
};

static int three_way(int64_t a, int64_t b)
{
    return a < b ? -1 : (a > b ? 1 : 0);
}

static double mean_ns(const struct lac_area_name *name)
{
    return name->count > 0 ? (double)name->total_ns / (double)name->count : 0;
}

static int by_order(const void *left, const void *right, void *context)
{
    const struct lac_area_name *a = left;
    const struct lac_area_name *b = right;
    const struct order *order = context;
    int result = 0;

    switch (order->sort) {
    case LAC_AREA_SORT_TOTAL:
        result = three_way(a->total_ns, b->total_ns);
        break;
    case LAC_AREA_SORT_SELF:
        result = three_way(a->self_ns, b->self_ns);
        break;
    case LAC_AREA_SORT_COUNT:
        result = three_way((int64_t)a->count, (int64_t)b->count);
        break;
    case LAC_AREA_SORT_MEAN:
        result = (mean_ns(a) > mean_ns(b)) - (mean_ns(a) < mean_ns(b));
        break;
    case LAC_AREA_SORT_MAX:
        result = three_way(a->max_ns, b->max_ns);
        break;
    case LAC_AREA_SORT_NAME:
        result = strcmp(lac_model_str(order->head, a->name), lac_model_str(order->head, b->name));
        break;
    }
    if (result != 0) {
        return order->sign * result;
    }
    result = three_way(b->total_ns, a->total_ns);
    if (result == 0) {
        result = three_way(a->name, b->name);
    }
    return result != 0 ? result : three_way(a->kind, b->kind);
}

void lac_area_sort(struct lac_area *area, const struct lac_model *head, enum lac_area_sort sort,
                   bool descending)
{
    struct order order = {head, sort, descending ? -1 : 1};

    if (area->name_count > 1) {
        qsort_r(area->names, area->name_count, sizeof(*area->names), by_order, &order);
    }
}

void lac_area_done(struct lac_area *area)
{
    free(area->names);
    free(area->tracks);
    free(area->devices);
    *area = (struct lac_area){0};
}
