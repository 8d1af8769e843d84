#include "analysis/flame/flame.h"
#include "analysis/flame/flame_line.h"
#include "analysis/flame/flame_time.h"
#include "analysis/flame/flame_tree.h"
#include "analysis/flame/flame_walk.h"
#include "analysis/flame/flame_worker.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>

/* A piece of idle time and the thread that ended it, LAC_NONE when that was not recorded. */
struct waiting {
    uint32_t track;
    struct lac_flame_piece piece;
};

/* The track requested last: most gaps are ended by launches of the same thread. */
struct latest {
    uint64_t first, end;
    uint32_t track; /* LAC_NONE: not a thread */
};

/* gap -> the operation that ended it -> its launch -> the thread of that */
static uint32_t launching_track(const struct lac_model *model, uint64_t gap, struct latest *latest)
{
    const struct lac_slices *s = &model->slices;
    uint32_t op = s->link[gap];
    uint32_t launch = op < s->count ? s->link[op] : LAC_NONE;
    if (launch >= s->count) {
        return LAC_NONE;
    }
    if (launch < latest->first || launch >= latest->end) {
        uint32_t track = lac_model_track_of(model, launch);
        latest->first = model->tracks[track].first;
        latest->end = latest->first + model->tracks[track].count;
        latest->track = model->tracks[track].kind == LAC_TRACK_THREAD ? track : LAC_NONE;
    }
    return latest->track;
}

/* A wait for data continues in the worker that was late: its slices are what the GPU waited for. */
static enum lac_status follow_to_worker(struct lac_flame_walk *walk,
                                        const struct lac_flame_workers *workers,
                                        struct waiting *wait)
{
    uint32_t worker = lac_flame_late_worker(workers, wait->piece.start_ns, wait->piece.end_ns);
    if (worker == LAC_NONE || walk->frame_kinds == 0) {
        return LAC_OK;
    }
    wait->track = worker;
    return lac_flame_tree_child(walk->tree, wait->piece.base, workers->wait_name, LAC_SLICE_RANGE,
                                &wait->piece.base);
}

/* The pieces of one device in the area: its track's slices, each in as many as spans divide it. */
struct waits {
    struct waiting *at;
    uint64_t count, capacity;
};

static enum lac_status add_piece(struct lac_flame_walk *walk,
                                 const struct lac_flame_workers *workers, struct waiting wait,
                                 uint32_t cause, struct waits *waits)
{
    if (!LAC_RESERVE(waits->at, waits->capacity, waits->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    struct waiting *w = &waits->at[waits->count++];
    *w = wait;
    enum lac_status status =
        lac_flame_tree_child(walk->tree, 0, cause, LAC_SLICE_GAP, &w->piece.base);
    if (status == LAC_OK && cause == workers->data_wait) {
        status = follow_to_worker(walk, workers, w);
    }
    return status;
}

static enum lac_status gather(struct lac_flame_walk *walk, const struct lac_flame_workers *workers,
                              const struct lac_track *track, struct waits *waits)
{
    const struct lac_slices *s = &walk->model->slices;
    struct latest latest = {0};
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        int64_t end_ns = s->start_ns[i] + s->dur_ns[i];
        bool inside;
        if (s->kind[i] != LAC_SLICE_GAP ||
            lac_flame_clip(walk, s->start_ns[i], s->dur_ns[i], &inside) == 0) {
            continue;
        }
        struct waiting w = {.track = launching_track(walk->model, i, &latest)};
        if (walk->is_sampled && w.track != LAC_NONE) {
            w.track = lac_flame_stacks_of(walk->model, w.track);
        }
        w.piece.id = (uint32_t)i;
        walk->tree->frames[0].count++;
        for (uint32_t n = lac_flame_span_after(walk, s->start_ns[i]);
             n < walk->span_count && walk->spans[n].start_ns < end_ns; n++) {
            const struct lac_flame_span *span = &walk->spans[n];
            w.piece.start_ns = s->start_ns[i] > span->start_ns ? s->start_ns[i] : span->start_ns;
            w.piece.end_ns = end_ns < span->end_ns ? end_ns : span->end_ns;
            enum lac_status status = add_piece(walk, workers, w, s->name[i], waits);
            if (status != LAC_OK) {
                return status;
            }
        }
    }
    return LAC_OK;
}

/* Pieces of one gap on one thread are one: its other pieces, of other steps, may be on other threads,
 * before or after which other gaps come. */
static void number(struct lac_flame_walk *walk, struct lac_flame_piece *pieces, uint64_t count)
{
    uint32_t gap = LAC_NONE;
    for (uint64_t i = 0; i < count; i++) {
        walk->piece_count += pieces[i].id != gap ? 1 : 0;
        gap = pieces[i].id;
        pieces[i].id = walk->piece_count;
    }
}

/* Each thread once, with all the pieces that it ended, in order of time. There are millions of
 * pieces and few threads, hence a counting sort. */
static enum lac_status put_on_threads(struct lac_flame_walk *walk, const struct waiting *waits,
                                      struct lac_flame_piece *pieces, uint64_t count)
{
    const uint32_t nowhere = walk->model->track_count; /* place of LAC_NONE */
    uint64_t *end = calloc((size_t)nowhere + 2, sizeof(*end));
    enum lac_status status = end != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (status != LAC_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        end[(waits[i].track < nowhere ? waits[i].track : nowhere) + 1]++;
    }
    for (uint32_t t = 0; t < nowhere; t++) {
        end[t + 1] += end[t];
    }
    for (uint64_t i = 0; i < count; i++) {
        pieces[end[waits[i].track < nowhere ? waits[i].track : nowhere]++] = waits[i].piece;
    }
    for (uint32_t t = 0; t <= nowhere && status == LAC_OK; t++) {
        uint64_t first = t > 0 ? end[t - 1] : 0;
        if (end[t] > first) {
            number(walk, &pieces[first], end[t] - first);
            struct lac_flame_pieces group = {
                .at = &pieces[first], .count = end[t] - first, .keep_outside = true};
            status = lac_flame_time(walk, t < nowhere ? t : LAC_NONE, &group, false);
        }
    }
    free(end);
    return status;
}

enum lac_status lac_flame_walk_waiting(struct lac_flame_walk *walk)
{
    const struct lac_model *model = walk->model;
    struct lac_flame_workers workers;
    enum lac_status status = lac_flame_workers_init(model, &workers);
    for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_GAPS || track->count == 0 ||
            !lac_flame_counts(walk->options, model, t)) {
            continue;
        }
        struct waits waits = {0};
        lac_flame_line_next_group(walk->line);
        status = gather(walk, &workers, track, &waits);
        struct lac_flame_piece *pieces = malloc((waits.count + 1) * sizeof(*pieces));
        if (status == LAC_OK) {
            status = pieces != NULL ? put_on_threads(walk, waits.at, pieces, waits.count)
                                    : LAC_ERR_NOMEM;
        }
        free(waits.at);
        free(pieces);
    }
    lac_flame_workers_done(&workers);
    return status;
}
