#include "server/store/trace/flame/trace_flame.h"

#include "analysis/flame/flame.h"
#include "analysis/model/chunk.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/flame/flame_kept.h"
#include "server/store/trace/flame/flame_wanted.h"
#include "server/store/trace/flame/flame_windows.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 31 };

/** Of all slices, one in so many. An area below the first is always read alone: what is in memory as
 *  a whole takes longer to walk. Others are until they add up to the second: then the whole model,
 *  which stays in memory, is the cheaper one. */
enum { SMALL_AREA = 30, WHOLE_MODEL = 3 };

/** Slices from which on an area is made window by window. */
enum { LARGE_AREA = 1 << 21 };

/** Whether a part of the model, without tables, is enough. */
static bool can_be_part(const struct lac_flame_options *options)
{
    return options->metric <= LAC_FLAME_CPU || options->metric == LAC_FLAME_COPIES;
}

/** The part while it is put together. */
struct picking {
    const struct lac_flame_question *question;
    const struct lac_flame_wanted *wanted;
    uint64_t next; /**< of the single slices */
    struct lac_slices *slices;
    uint32_t *ids; /**< of each, in the file */
    uint64_t capacity;
};

static enum lac_status make_room(struct picking *picking, uint64_t more)
{
    const struct lac_array_ref columns[] = {LAC_ARRAY_REF(picking->slices->start_ns),
                                            LAC_ARRAY_REF(picking->slices->dur_ns),
                                            LAC_ARRAY_REF(picking->slices->name),
                                            LAC_ARRAY_REF(picking->slices->link),
                                            LAC_ARRAY_REF(picking->slices->lane),
                                            LAC_ARRAY_REF(picking->slices->kind),
                                            LAC_ARRAY_REF(picking->ids)};
    const uint64_t need = picking->slices->count + more;
    uint64_t grown = picking->capacity;

    if (need <= picking->capacity && picking->ids != NULL) {
        return LAC_OK;
    }
    for (size_t c = 0; c < LAC_COUNT_OF(columns); c++) {
        grown = picking->capacity;
        if (!lac_reserve(columns[c].array, &grown, sizeof(grown), need, columns[c].element_bytes)) {
            return LAC_ERR_NOMEM;
        }
    }
    picking->capacity = grown;
    return LAC_OK;
}

/** What slices of a track must reach into, of one that is not wanted as a whole: the area, or a span
 *  of its own. */
static struct lac_flame_span span_of(const struct picking *picking, uint32_t track)
{
    const struct lac_flame_options *options = picking->question->options;

    return picking->wanted->extent[track] == LAC_FLAME_SPAN
               ? picking->wanted->spans[track]
               : (struct lac_flame_span){options->t0_ns, options->t1_ns};
}

static bool has_span(enum lac_flame_extent extent)
{
    return extent == LAC_FLAME_AREA || extent == LAC_FLAME_SPAN;
}

/** Single slices of a track that were not passed yet: [picking->next, end). */
static uint64_t end_of_singles(const struct picking *picking, uint32_t track)
{
    const struct lac_track *of = &picking->question->file->head.tracks[track];
    const struct lac_flame_wanted *wanted = picking->wanted;
    uint64_t low = picking->next;

    LAC_BISECT(low, wanted->count, middle, wanted->ids[middle] < of->first + of->count);
    return low;
}

/** Whether something that ends then still encloses the next single slice. */
static bool encloses_next(const struct picking *picking, uint64_t end, int64_t end_ns)
{
    return picking->wanted->start_ns != NULL && picking->next < end &&
           end_ns > picking->wanted->start_ns[picking->next];
}

/** Copy what is wanted of a chunk. */
static void pick(struct picking *picking, const struct lac_chunk_entry *chunk,
                 const struct lac_slices *at, enum lac_flame_extent extent, uint64_t end)
{
    const enum lac_track_kind track = picking->question->file->head.tracks[chunk->track].kind;
    const struct lac_flame_span span = span_of(picking, chunk->track);
    /* slices of threads that are no frames hold no time */
    const uint32_t kinds = track == LAC_TRACK_THREAD || track == LAC_TRACK_STACKS
                               ? picking->question->frame_kinds
                               : UINT32_MAX;
    struct lac_slices *to = picking->slices;

    for (uint64_t i = 0; i < at->count; i++) {
        const uint64_t id = chunk->first + i;
        const bool is_single = picking->next < end && picking->wanted->ids[picking->next] == id;

        if (picking->next >= end && extent != LAC_FLAME_ALL &&
            (extent == LAC_FLAME_NOTHING || at->start_ns[i] >= span.end_ns)) {
            break; /* nothing that follows is wanted */
        }
        picking->next += is_single ? 1 : 0;
        if (!is_single && ((kinds >> at->kind[i]) & 1U) == 0) {
            continue;
        }
        if (is_single || extent == LAC_FLAME_ALL ||
            (has_span(extent) && lac_flame_is_inside(span.start_ns, span.end_ns, at, i)) ||
            encloses_next(picking, end, at->start_ns[i] + at->dur_ns[i])) {
            to->start_ns[to->count] = at->start_ns[i];
            to->dur_ns[to->count] = at->dur_ns[i];
            to->name[to->count] = at->name[i];
            to->link[to->count] = at->link != NULL ? at->link[i] : LAC_NONE;
            to->lane[to->count] = at->lane[i];
            to->kind[to->count] = at->kind[i];
            picking->ids[to->count++] = (uint32_t)id;
        }
    }
}

/** Whether a chunk holds something wanted. */
static bool is_wanted(const struct picking *picking, const struct lac_chunk_entry *chunk,
                      enum lac_flame_extent extent, uint64_t end)
{
    const struct lac_flame_span span = span_of(picking, chunk->track);

    return extent == LAC_FLAME_ALL ||
           (has_span(extent) && lac_flame_may_be_inside(span.start_ns, span.end_ns, chunk)) ||
           (picking->next < end &&
            picking->wanted->ids[picking->next] < chunk->first + chunk->count) ||
           encloses_next(picking, end, chunk->end_last);
}

static enum lac_status pick_track(struct picking *picking, uint32_t track)
{
    const struct lac_flame_question *question = picking->question;
    struct lac_trace_file *file = question->file;
    const enum lac_track_kind kind = file->head.tracks[track].kind;
    const unsigned columns = question->options->metric != LAC_FLAME_CPU &&
                                     (kind == LAC_TRACK_STREAM || kind == LAC_TRACK_GAPS)
                                 ? LAC_FLAME_LINK_COLUMNS
                                 : LAC_COLUMNS_TILE;
    const enum lac_flame_extent extent = picking->wanted->extent[track];
    const uint64_t end = end_of_singles(picking, track);
    enum lac_status status = LAC_OK;

    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && status == LAC_OK; c++) {
        const struct lac_chunk_entry *chunk = &file->chunks[c];
        const struct lac_chunk_columns *read = NULL;
        struct lac_cache_entry *pin = NULL;

        if (!is_wanted(picking, chunk, extent, end)) {
            continue;
        }
        status = lac_trace_chunk(file, c, columns, &read, &pin, question->reterr);
        if (status == LAC_OK) {
            status = make_room(picking, read->at.count);
        }
        if (status == LAC_OK) {
            pick(picking, chunk, &read->at, extent, end);
        }
        lac_trace_unpin(file, pin);
        if (status == LAC_OK && picking->slices->count > question->slices_max) {
            status = lac_fail(question->reterr, LAC_ERR_LIMIT, 0,
                              "this part of the trace takes more memory than the model cache has "
                              "(--model-cache)");
        }
    }
    picking->next = end;
    return status;
}

/** The number in the part of a slice of the file, LAC_NONE: it is not there. Those asked for one
 *  after another mostly lie side by side. */
static uint32_t number_of(const struct picking *picking, uint32_t id, uint64_t *near)
{
    const uint64_t count = picking->ids != NULL ? picking->slices->count : 0;
    uint64_t low = 0;

    for (uint64_t i = *near; i < count && i < *near + 8 && picking->ids[i] <= id; i++) {
        if (picking->ids[i] == id) {
            *near = i;
            return (uint32_t)i;
        }
    }
    LAC_BISECT(low, count, middle, picking->ids[middle] < id);
    *near = low;
    return low < count && picking->ids[low] == id ? (uint32_t)low : LAC_NONE;
}

static void number_links(const struct picking *picking)
{
    struct lac_slices *slices = picking->slices;
    uint64_t near = 0;

    for (uint64_t i = 0; i < slices->count; i++) {
        if (slices->link[i] != LAC_NONE) {
            slices->link[i] = number_of(picking, slices->link[i], &near);
        }
    }
}

/** A model with the tracks of the head, and nothing in them. */
static struct lac_model *empty_model(const struct lac_model *head)
{
    struct lac_model *model = calloc(1, sizeof(*model));

    if (model == NULL) {
        return NULL;
    }
    *model = *head;
    model->slices = (struct lac_slices){0};
    model->arg_number_count = 0;
    lac_trace_forget_tables(model);
    model->tracks = calloc((size_t)head->track_count + 1, sizeof(*model->tracks));
    if (model->tracks == NULL) {
        free(model);
        return NULL;
    }
    memcpy(model->tracks, head->tracks, head->track_count * sizeof(*model->tracks));
    return model;
}

/** @param room is used up and given back, NULL: none is there */
static enum lac_status put_together(const struct lac_flame_question *question,
                                    const struct lac_flame_wanted *wanted, struct lac_model *model,
                                    struct lac_flame_room *room)
{
    struct picking picking = {.question = question, .wanted = wanted, .slices = &model->slices};
    if (room != NULL) {
        model->slices = room->columns;
        picking.ids = room->ids;
        picking.capacity = room->capacity;
    }
    /* one entry at least: a NULL column means that it is not there */
    enum lac_status status = make_room(&picking, 1);

    for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
        struct lac_track *track = &model->tracks[t];

        track->first = model->slices.count;
        if (track->kind != LAC_TRACK_COUNTER) {
            status = pick_track(&picking, t);
        }
        track->count = model->slices.count - track->first;
    }
    if (status == LAC_OK) {
        number_links(&picking);
    }
    if (room != NULL) {
        *room = (struct lac_flame_room){model->slices, picking.ids, picking.capacity};
        room->columns.count = 0;
    } else {
        free(picking.ids);
    }
    return status;
}

uint64_t lac_flame_part_slices_max(const struct lac_trace_file *file)
{
    return lac_cache_max_bytes(file->model_cache) / SLICE_BYTES;
}

enum lac_status lac_trace_flame_part(struct lac_trace_file *file,
                                     const struct lac_flame_options *options,
                                     struct lac_flame_part *ret_part, struct lac_error *reterr)
{
    assert(file != NULL);
    return lac_flame_part_below(file, options, lac_flame_part_slices_max(file), NULL, ret_part,
                                reterr);
}

enum lac_status lac_flame_part_below(struct lac_trace_file *file,
                                     const struct lac_flame_options *options, uint64_t slices_max,
                                     struct lac_flame_room *room, struct lac_flame_part *ret_part,
                                     struct lac_error *reterr)
{
    assert(file != NULL && options != NULL && ret_part != NULL);
    assert(options->t1_ns > options->t0_ns && can_be_part(options));
    struct lac_flame_part part = {.whole.is_sampled = lac_flame_is_sampled(&file->head),
                                  .room = room};
    const struct lac_flame_question question = {.file = file,
                                                .options = options,
                                                .whole = &part.whole,
                                                .is_sampled = options->by == LAC_FLAME_BY_PYTHON &&
                                                              part.whole.is_sampled,
                                                .frame_kinds = lac_flame_frame_kinds(options),
                                                .slices_max = slices_max,
                                                .reterr = reterr};
    struct lac_flame_wanted wanted = {0};
    enum lac_status status = options->metric == LAC_FLAME_CPU
                                 ? lac_flame_left_out(file, &part.whole.is_left_out, reterr)
                                 : LAC_OK;

    if (status == LAC_OK) {
        status = lac_flame_find_wanted(&question, &wanted);
    }
    if (status == LAC_OK) {
        part.model = empty_model(&file->head);
        status =
            part.model != NULL ? put_together(&question, &wanted, part.model, room) : LAC_ERR_NOMEM;
    }
    lac_flame_wanted_done(&wanted);
    if (status != LAC_OK) {
        lac_trace_flame_part_done(&part);
        return status;
    }
    *ret_part = part;
    return LAC_OK;
}

void lac_flame_room_done(struct lac_flame_room *room)
{
    struct lac_model owner = {.slices = room->columns};

    lac_model_free_columns(&owner);
    free(room->ids);
    *room = (struct lac_flame_room){.capacity = 0};
}

void lac_trace_flame_part_done(struct lac_flame_part *part)
{
    if (part->model != NULL) {
        if (part->room == NULL) {
            lac_model_free_columns(part->model);
        }
        free(part->model->tracks);
        free(part->model);
    }
    *part = (struct lac_flame_part){0};
}

/** Slices of the chunks that an area touches. */
static uint64_t count_in_area(const struct lac_trace_file *file,
                              const struct lac_flame_options *options)
{
    uint64_t count = 0;

    for (uint32_t c = 0; c < file->chunk_count; c++) {
        const struct lac_chunk_entry *chunk = &file->chunks[c];

        count += lac_flame_may_be_inside(options->t0_ns, options->t1_ns, chunk) ? chunk->count : 0;
    }
    return count;
}

/** Whether an area takes more memory than one request should, and none of it is there yet. */
static bool is_large(struct lac_trace_file *file, const struct lac_flame_options *options)
{
    const bool is_whole = options->t1_ns <= options->t0_ns;

    return can_be_part(options) && options->order == LAC_FLAME_ORDER_VALUE &&
           (is_whole ? file->head.slices.count : count_in_area(file, options)) > LARGE_AREA &&
           !lac_trace_model_is_loaded(file);
}

static bool is_part_cheaper(struct lac_trace_file *file, const struct lac_flame_options *options)
{
    const uint64_t all = file->head.slices.count;
    bool is_cheaper;
    uint64_t count;

    if (!can_be_part(options) || options->t1_ns <= options->t0_ns) {
        return false;
    }
    count = count_in_area(file, options);
    if (count < all / SMALL_AREA || !lac_trace_model_fits(file)) {
        return true;
    }
    if (lac_trace_model_is_loaded(file)) {
        return false;
    }
    (void)pthread_mutex_lock(&file->lazy_lock);
    is_cheaper = file->lazy.read_for_flames + count < all / WHOLE_MODEL;
    file->lazy.read_for_flames += is_cheaper ? count : 0;
    (void)pthread_mutex_unlock(&file->lazy_lock);
    return is_cheaper;
}

static enum lac_status create(const struct lac_model *model,
                              const struct lac_flame_options *options, struct lac_flame **ret_flame,
                              struct lac_error *reterr)
{
    const enum lac_status status = lac_flame_create(model, options, ret_flame);

    return status != LAC_ERR_LIMIT
               ? status
               : lac_fail(reterr, status, 0,
                          "in the order of time this graph has more than %d pieces: choose an "
                          "area, steps or rows",
                          LAC_FLAME_PIECES_MAX);
}

static enum lac_status make_large(struct lac_trace_file *file,
                                  const struct lac_flame_options *options,
                                  struct lac_flame **ret_flame, struct lac_error *reterr)
{
    struct lac_flame *kept = lac_flame_kept_get(file, options);
    enum lac_status status = LAC_OK;

    if (kept != NULL) {
        *ret_flame = kept;
        return LAC_OK;
    }
    status = lac_flame_in_windows(file, options, LAC_FLAME_WINDOW_SLICES, ret_flame, reterr);
    if (status == LAC_OK) {
        lac_flame_kept_put(file, options, *ret_flame);
    }
    return status;
}

enum lac_status lac_trace_flame(struct lac_trace_file *file,
                                const struct lac_flame_options *options,
                                struct lac_flame **ret_flame, struct lac_error *reterr)
{
    assert(file != NULL && options != NULL && ret_flame != NULL);
    struct lac_flame_options asked = *options;
    struct lac_flame_part part = {0};
    const struct lac_model *model = NULL;
    enum lac_status status;

    asked.whole = NULL;
    asked.counted_from_ns = 0;
    if (is_large(file, options)) {
        return make_large(file, &asked, ret_flame, reterr);
    }
    if (is_part_cheaper(file, options)) {
        status = lac_trace_flame_part(file, options, &part, reterr);
        asked.whole = &part.whole;
        status = status == LAC_OK ? create(part.model, &asked, ret_flame, reterr) : status;
        lac_trace_flame_part_done(&part);
        return status;
    }
    status = options->metric == LAC_FLAME_MEMORY ? lac_trace_file_whole_model(file, &model, reterr)
                                                 : lac_trace_file_model(file, &model, reterr);
    status = status == LAC_OK ? create(model, &asked, ret_flame, reterr) : status;
    lac_trace_file_release_model(file, model);
    return status;
}
