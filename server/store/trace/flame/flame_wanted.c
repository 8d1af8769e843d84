#include "server/store/trace/flame/flame_wanted.h"

#include "analysis/flame/flame.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_private.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** Most slices asked for one after another are on the same track. */
static uint32_t track_of(const struct lac_model *head, uint64_t slice,
                         struct lac_flame_wanted *wanted)
{
    struct lac_flame_latest *latest = &wanted->latest;

    if (slice < latest->first || slice >= latest->end) {
        latest->track = lac_model_track_of(head, slice);
        latest->first = head->tracks[latest->track].first;
        latest->end = latest->first + head->tracks[latest->track].count;
    }
    return latest->track;
}

enum lac_status lac_flame_want(struct lac_flame_wanted *wanted, uint64_t slice)
{
    if (!LAC_RESERVE(wanted->ids, wanted->capacity, wanted->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    wanted->ids[wanted->count++] = (uint32_t)slice;
    return LAC_OK;
}

static int by_id(const void *a, const void *b)
{
    return LAC_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/** Take those out that are there twice. */
static void keep_each_once(struct lac_flame_wanted *wanted)
{
    uint64_t kept = 0;

    for (uint64_t i = 0; i < wanted->count; i++) {
        if (kept == 0 || wanted->ids[kept - 1] != wanted->ids[i]) {
            wanted->ids[kept++] = wanted->ids[i];
        }
    }
    wanted->count = kept;
}

/** Many ids lie close together: a bit for each there could be sorts them in two passes. */
static enum lac_status sort_by_bits(struct lac_flame_wanted *wanted, uint32_t low, uint32_t high)
{
    const uint64_t word_count = ((uint64_t)high - low) / 64 + 1;
    uint64_t *words = calloc(word_count, sizeof(*words));

    if (words == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < wanted->count; i++) {
        words[(wanted->ids[i] - low) / 64] |= UINT64_C(1) << (wanted->ids[i] - low) % 64;
    }
    wanted->count = 0;
    for (uint64_t w = 0; w < word_count; w++) {
        for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
            wanted->ids[wanted->count++] =
                (uint32_t)(low + w * 64 + (uint64_t)__builtin_ctzll(rest));
        }
    }
    free(words);
    return LAC_OK;
}

/** Ascending, each once. Launches of one stream mostly are in order as they are. */
static enum lac_status put_in_order(struct lac_flame_wanted *wanted)
{
    bool is_sorted = true;
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;

    for (uint64_t i = 0; i < wanted->count; i++) {
        is_sorted = is_sorted && (i == 0 || wanted->ids[i - 1] <= wanted->ids[i]);
        low = wanted->ids[i] < low ? wanted->ids[i] : low;
        high = wanted->ids[i] > high ? wanted->ids[i] : high;
    }
    if (!is_sorted && (high - low) / 64 < wanted->count) {
        return sort_by_bits(wanted, low, high);
    }
    if (!is_sorted) {
        qsort(wanted->ids, wanted->count, sizeof(*wanted->ids), by_id);
    }
    keep_each_once(wanted);
    return LAC_OK;
}

/** Want what the slices of a track in the area link to. @param on_threads only slices of threads */
static enum lac_status want_links(const struct lac_flame_question *question, uint32_t track,
                                  bool on_threads, struct lac_flame_wanted *wanted)
{
    struct lac_trace_file *file = question->file;
    const int64_t t0_ns = question->options->t0_ns;
    const int64_t t1_ns = question->options->t1_ns;
    enum lac_status status = LAC_OK;

    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && status == LAC_OK; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        if (!lac_flame_may_be_inside(t0_ns, t1_ns, &file->chunks[c])) {
            continue;
        }
        status = lac_trace_chunk(file, c, LAC_FLAME_LINK_COLUMNS, &columns, &pin, question->reterr);
        for (uint64_t i = 0; status == LAC_OK && i < columns->at.count; i++) {
            const uint32_t link = columns->at.link[i];

            if (link != LAC_NONE && lac_flame_is_inside(t0_ns, t1_ns, &columns->at, i) &&
                (!on_threads ||
                 file->head.tracks[track_of(&file->head, link, wanted)].kind == LAC_TRACK_THREAD)) {
                status = lac_flame_want(wanted, link);
            }
        }
        lac_trace_unpin(file, pin);
    }
    return status;
}

/** What is done with each wanted slice, of the chunk that it is in. */
typedef enum lac_status visit_fn(const struct lac_flame_question *question,
                                 struct lac_flame_wanted *wanted, uint64_t number,
                                 const struct lac_slices *at, uint64_t i);

/** Visit the first `count` wanted slices, which are in order: each chunk is read once. */
static enum lac_status visit(const struct lac_flame_question *question,
                             struct lac_flame_wanted *wanted, uint64_t count,
                             unsigned wanted_columns, visit_fn *visitor)
{
    struct lac_trace_file *file = question->file;
    enum lac_status status = LAC_OK;

    for (uint64_t w = 0; w < count && status == LAC_OK;) {
        const uint32_t c = lac_trace_chunk_of(file, wanted->ids[w]);
        const uint64_t first = file->chunks[c].first;
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(file, c, wanted_columns, &columns, &pin, question->reterr);
        if (status == LAC_OK && wanted->ids[w] - first >= columns->at.count) {
            status = lac_trace_corrupt(file, question->reterr, "a chunk");
        }
        for (; status == LAC_OK && w < count && wanted->ids[w] - first < columns->at.count; w++) {
            status = visitor(question, wanted, w, &columns->at, wanted->ids[w] - first);
        }
        lac_trace_unpin(file, pin);
    }
    return status;
}

static enum lac_status note_start(const struct lac_flame_question *question,
                                  struct lac_flame_wanted *wanted, uint64_t number,
                                  const struct lac_slices *at, uint64_t i)
{
    (void)question;
    wanted->start_ns[number] = at->start_ns[i];
    return LAC_OK;
}

/** Modules whose backward pass launched something: from the first launch to the last, which the area
 *  may not reach. Wanted slices are in order, so those of a thread lie side by side. */
static enum lac_status want_backward_of_launches(const struct lac_model *head,
                                                 struct lac_flame_wanted *wanted)
{
    for (uint64_t w = 0; w < wanted->count;) {
        const uint32_t thread = track_of(head, wanted->ids[w], wanted);
        const uint64_t end = head->tracks[thread].first + head->tracks[thread].count;
        const uint32_t backward = lac_model_backward_of(head, thread);
        const int64_t first_ns = wanted->start_ns[w];

        while (w < wanted->count && wanted->ids[w] < end) {
            w++;
        }
        if (backward == LAC_NONE) {
            continue;
        }
        if (wanted->spans == NULL) {
            wanted->spans = calloc(head->track_count, sizeof(*wanted->spans));
        }
        if (wanted->spans == NULL) {
            return LAC_ERR_NOMEM;
        }
        wanted->extent[backward] = LAC_FLAME_SPAN;
        wanted->spans[backward] = (struct lac_flame_span){first_ns, wanted->start_ns[w - 1] + 1};
    }
    return LAC_OK;
}

/** Launches of what ran in the area, on their threads, with what they were in. */
static enum lac_status want_launches(const struct lac_flame_question *question,
                                     struct lac_flame_wanted *wanted)
{
    const struct lac_model *head = &question->file->head;
    enum lac_status status = LAC_OK;

    for (uint32_t t = 0; t < head->recorded_track_count && status == LAC_OK; t++) {
        if (head->tracks[t].kind == LAC_TRACK_STREAM &&
            lac_flame_counts(question->options, head, t)) {
            wanted->extent[t] = LAC_FLAME_AREA;
            if (question->options->by != LAC_FLAME_BY_KERNEL) {
                const uint32_t modules = lac_model_graph_modules_of(head, t);

                if (modules != LAC_NONE) {
                    wanted->extent[modules] = LAC_FLAME_AREA;
                }
                status = want_links(question, t, true, wanted);
            }
        }
    }
    status = status == LAC_OK ? put_in_order(wanted) : status;
    if (status != LAC_OK) {
        return status;
    }
    wanted->start_ns = malloc((wanted->count + 1) * sizeof(*wanted->start_ns));
    status = wanted->start_ns != NULL
                 ? visit(question, wanted, wanted->count, LAC_COLUMNS_TILE, note_start)
                 : LAC_ERR_NOMEM;
    return status == LAC_OK && question->options->by == LAC_FLAME_BY_MODULE
               ? want_backward_of_launches(head, wanted)
               : status;
}

/** The operation that ended a gap tells the launch, and that the thread that was late. */
static enum lac_status want_launch_of(const struct lac_flame_question *question,
                                      struct lac_flame_wanted *wanted, uint64_t number,
                                      const struct lac_slices *at, uint64_t i)
{
    const struct lac_model *head = &question->file->head;
    uint32_t track;

    (void)number;
    if (at->link[i] == LAC_NONE) {
        return LAC_OK;
    }
    track = track_of(head, at->link[i], wanted);
    if (question->frame_kinds != 0 && head->tracks[track].kind == LAC_TRACK_THREAD) {
        track = question->is_sampled ? lac_flame_stacks_of(head, track) : track;
        if (track != LAC_NONE) {
            wanted->extent[track] = LAC_FLAME_AREA;
        }
    }
    return lac_flame_want(wanted, at->link[i]);
}

/** Idle time of the area, what ended it, and the threads that it is laid on. */
static enum lac_status want_waiting(const struct lac_flame_question *question,
                                    struct lac_flame_wanted *wanted)
{
    const struct lac_model *head = &question->file->head;
    enum lac_status status = LAC_OK;

    for (uint32_t t = 0; t < head->track_count && status == LAC_OK; t++) {
        if (head->tracks[t].kind == LAC_TRACK_GAPS &&
            lac_flame_counts(question->options, head, t)) {
            wanted->extent[t] = LAC_FLAME_AREA;
            status = want_links(question, t, false, wanted);
        }
    }
    status = status == LAC_OK ? put_in_order(wanted) : status;
    if (status == LAC_OK) {
        status = visit(question, wanted, wanted->count, LAC_FLAME_LINK_COLUMNS, want_launch_of);
    }
    if (status == LAC_OK) {
        status = lac_flame_want_loader(question, wanted);
    }
    return status == LAC_OK ? put_in_order(wanted) : status;
}

/** Threads, or the samples of their stacks, that have time of their own. */
static void want_threads(const struct lac_flame_question *question, struct lac_flame_wanted *wanted)
{
    const struct lac_model *head = &question->file->head;
    const enum lac_track_kind kind = question->is_sampled ? LAC_TRACK_STACKS : LAC_TRACK_THREAD;

    for (uint32_t t = 0; t < head->recorded_track_count; t++) {
        if (head->tracks[t].kind == kind && question->whole->is_left_out[t] == 0 &&
            lac_flame_counts(question->options, head, t)) {
            wanted->extent[t] = LAC_FLAME_AREA;
        }
    }
}

/** Modules whose backward pass is a part of the time on a wanted thread. */
static void want_backward_of_threads(const struct lac_model *head, struct lac_flame_wanted *wanted)
{
    for (uint32_t t = 0; t < head->recorded_track_count; t++) {
        if (head->tracks[t].kind == LAC_TRACK_THREAD && wanted->extent[t] == LAC_FLAME_AREA) {
            const uint32_t backward = lac_model_backward_of(head, t);

            if (backward != LAC_NONE) {
                wanted->extent[backward] = LAC_FLAME_AREA;
            }
        }
    }
}

enum lac_status lac_flame_find_wanted(const struct lac_flame_question *question,
                                      struct lac_flame_wanted *ret_wanted)
{
    const struct lac_model *head = &question->file->head;
    enum lac_status status = LAC_OK;

    assert(question->options->metric <= LAC_FLAME_CPU ||
           question->options->metric == LAC_FLAME_COPIES);
    *ret_wanted = (struct lac_flame_wanted){.extent = calloc((size_t)head->track_count + 1, 1)};
    if (ret_wanted->extent == NULL) {
        return LAC_ERR_NOMEM;
    }
    if (lac_flame_is_of_streams(question->options->metric)) {
        status = want_launches(question, ret_wanted);
    } else if (question->options->metric == LAC_FLAME_WAITING) {
        status = want_waiting(question, ret_wanted);
    } else {
        want_threads(question, ret_wanted);
    }
    if (question->options->by == LAC_FLAME_BY_MODULE) {
        want_backward_of_threads(head, ret_wanted);
    }
    for (uint32_t t = 0; t < head->track_count; t++) {
        if (head->tracks[t].kind == LAC_TRACK_STEPS) {
            ret_wanted->extent[t] = LAC_FLAME_ALL; /* the name of any step is no frame */
        }
    }
    return status;
}

void lac_flame_wanted_done(struct lac_flame_wanted *wanted)
{
    free(wanted->extent);
    free(wanted->ids);
    free(wanted->start_ns);
    free(wanted->spans);
    *wanted = (struct lac_flame_wanted){0};
}
