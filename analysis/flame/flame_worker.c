#include "analysis/flame/flame_worker.h"

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int by_end(const void *a, const void *b)
{
    const struct lac_flame_fetch *left = a;
    const struct lac_flame_fetch *right = b;
    const int order = LAC_ORDER(left->end_ns, right->end_ns);
    const int by_track = LAC_ORDER(left->track, right->track);
    return order != 0 ? order
                      : (by_track != 0 ? by_track : LAC_ORDER(left->start_ns, right->start_ns));
}

static int by_start(const void *a, const void *b)
{
    const struct lac_flame_fetch *left = a;
    const struct lac_flame_fetch *right = b;
    const int order = LAC_ORDER(left->start_ns, right->start_ns);
    const int by_track = LAC_ORDER(left->track, right->track);
    return order != 0 ? order : (by_track != 0 ? by_track : LAC_ORDER(left->end_ns, right->end_ns));
}

static uint32_t find(const struct lac_model *model, const char *text)
{
    return lac_strings_find(&model->strings, text, strlen(text));
}

/* How many slices of host threads have that name; written to `out` when it is not NULL. A thread
 * that has `other` too is skipped: without workers the training thread fetches inside its own
 * waits. */
static uint64_t gather(const struct lac_model *model, uint32_t name, uint32_t other,
                       struct lac_flame_fetch *out)
{
    uint64_t count = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        uint64_t before = count;
        bool has_other = false;
        for (uint64_t i = track->first;
             track->kind == LAC_TRACK_THREAD && i < track->first + track->count; i++) {
            has_other = has_other || (other != 0 && model->slices.name[i] == other);
            if (model->slices.name[i] != name) {
                continue;
            }
            if (out != NULL) {
                out[count] = (struct lac_flame_fetch){
                    .start_ns = model->slices.start_ns[i],
                    .end_ns = model->slices.start_ns[i] + model->slices.dur_ns[i],
                    .track = t,
                };
            }
            count++;
        }
        count = has_other ? before : count;
    }
    return count;
}

enum lac_status lac_flame_workers_init(const struct lac_model *model,
                                       struct lac_flame_workers *ret_workers)
{
    struct lac_flame_workers workers = {.wait_name = find(model, LAC_FLAME_WAIT_NAME),
                                        .data_wait = find(model, LAC_FLAME_CAUSE_NAME)};
    uint32_t fetch_name = find(model, LAC_FLAME_FETCH_NAME);
    *ret_workers = (struct lac_flame_workers){0};
    if (workers.wait_name == 0 || workers.data_wait == 0 || fetch_name == 0) {
        return LAC_OK;
    }
    /* `gather` writes before it knows that a thread is skipped: room for all of its slices */
    workers.fetches = malloc((gather(model, fetch_name, 0, NULL) + 1) * sizeof(*workers.fetches));
    workers.waits =
        malloc((gather(model, workers.wait_name, 0, NULL) + 1) * sizeof(*workers.waits));
    if (workers.fetches == NULL || workers.waits == NULL) {
        lac_flame_workers_done(&workers);
        return LAC_ERR_NOMEM;
    }
    workers.fetch_count = gather(model, fetch_name, workers.wait_name, workers.fetches);
    workers.wait_count = gather(model, workers.wait_name, 0, workers.waits);
    qsort(workers.fetches, workers.fetch_count, sizeof(*workers.fetches), by_end);
    qsort(workers.waits, workers.wait_count, sizeof(*workers.waits), by_start);
    *ret_workers = workers;
    return LAC_OK;
}

void lac_flame_workers_done(struct lac_flame_workers *workers)
{
    free(workers->fetches);
    free(workers->waits);
    *workers = (struct lac_flame_workers){0};
}

/** Part of the wait that lies in [start_ns, end_ns). */
static int64_t overlap_ns(const struct lac_flame_fetch *wait, int64_t start_ns, int64_t end_ns)
{
    int64_t from_ns = wait->start_ns > start_ns ? wait->start_ns : start_ns;
    int64_t to_ns = wait->end_ns < end_ns ? wait->end_ns : end_ns;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* The wait that holds most of the time, or NULL. The device goes idle, and begins again, some
 * microseconds before or after the ends of the wait. */
static const struct lac_flame_fetch *wait_of(const struct lac_flame_workers *workers,
                                             int64_t start_ns, int64_t end_ns)
{
    const struct lac_flame_fetch *most = NULL;
    int64_t most_ns = (end_ns - start_ns) / 2;
    uint64_t low = 0;
    /* the last wait that began by then */
    LAC_BISECT(low, workers->wait_count, middle, workers->waits[middle].start_ns <= start_ns);
    for (uint64_t w = low > 0 ? low - 1 : 0; w <= low && w < workers->wait_count; w++) {
        int64_t here_ns = overlap_ns(&workers->waits[w], start_ns, end_ns);
        if (here_ns > most_ns) {
            most = &workers->waits[w];
            most_ns = here_ns;
        }
    }
    return most;
}

uint32_t lac_flame_late_worker(const struct lac_flame_workers *workers, int64_t start_ns,
                               int64_t end_ns)
{
    const struct lac_flame_fetch *wait = wait_of(workers, start_ns, end_ns);
    uint64_t low = 0;
    int64_t until_ns;
    if (wait == NULL) {
        return LAC_NONE;
    }
    until_ns = wait->end_ns + LAC_FLAME_HAND_OVER_NS;
    /* the last fetch that ended by the hand-over */
    LAC_BISECT(low, workers->fetch_count, middle, workers->fetches[middle].end_ns <= until_ns);
    return low > 0 && workers->fetches[low - 1].end_ns > start_ns ? workers->fetches[low - 1].track
                                                                  : LAC_NONE;
}
