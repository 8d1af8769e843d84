#include "analysis/diagnose/facts/prefetch_queue_depth.h"

#include "analysis/model/strings.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char counter_name[] = "batches ready";

/** A loader's range of one batch. */
struct moment {
    int64_t batch;
    int64_t end_ns;
    uint32_t track;
    bool is_taken; /**< of a fetch: a wait took the batch */
};

struct moments {
    struct moment *at;
    uint64_t count, capacity;
};

/** What became ready, and what was taken. */
struct queue {
    struct moments fetched, pinned, waited;
    uint32_t process; /**< of the waits; LAC_NONE before the first */
    bool has_many;    /**< several processes wait: whose batch it is the number does not tell */
};

/** One up or down of the counter. */
struct change {
    int64_t at_ns;
    int32_t by;
};

static enum lac_status add(struct moments *moments, struct moment moment)
{
    if (!LAC_RESERVE(moments->at, moments->capacity, moments->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    moments->at[moments->count++] = moment;
    return LAC_OK;
}

static int by_batch(const void *a, const void *b)
{
    const struct moment *x = a;
    const struct moment *y = b;
    int order = LAC_ORDER(x->batch, y->batch);
    order = order != 0 ? order : LAC_ORDER(x->end_ns, y->end_ns);
    return order != 0 ? order : LAC_ORDER(x->track, y->track);
}

static void sort(struct moments *moments)
{
    if (moments->count > 1) {
        qsort(moments->at, moments->count, sizeof(*moments->at), by_batch);
    }
}

static bool ended_by(const struct moment *it, int64_t batch, int64_t end_ns)
{
    return it->batch < batch || (it->batch == batch && it->end_ns <= end_ns);
}

/** The last moment of that batch that ended by `end_ns`, or NULL. */
static struct moment *last_of(const struct moments *moments, int64_t batch, int64_t end_ns)
{
    uint64_t low = 0;
    LAC_BISECT(low, moments->count, middle, ended_by(&moments->at[middle], batch, end_ns));
    return low > 0 && moments->at[low - 1].batch == batch ? &moments->at[low - 1] : NULL;
}

static enum lac_status collect(const struct lac_model *model, struct queue *queue)
{
    const struct lac_slices *slices = &model->slices;
    const uint32_t fetch = lac_strings_find(&model->strings, "loader.fetch", 12);
    const uint32_t pin = lac_strings_find(&model->strings, "loader.pin", 10);
    const uint32_t wait = lac_strings_find(&model->strings, "loader.wait", 11);
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_THREAD) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count && !status; i++) {
            uint32_t name = slices->name[i];
            if (name == 0 || slices->kind[i] != LAC_SLICE_RANGE || slices->detail[i] == LAC_NONE ||
                (name != fetch && name != pin && name != wait)) {
                continue;
            }
            int64_t batch = model->loader_infos[slices->detail[i]].batch;
            if (batch < 0) {
                continue;
            }
            struct moments *to = name == fetch ? &queue->fetched
                                 : name == pin ? &queue->pinned
                                               : &queue->waited;
            status = add(to, (struct moment){.batch = batch,
                                             .end_ns = slices->start_ns[i] + slices->dur_ns[i],
                                             .track = t});
            if (name == wait) {
                queue->has_many = queue->has_many ||
                                  (queue->waited.count > 1 && track->process != queue->process);
                queue->process = track->process;
            }
        }
    }
    return status;
}

static int by_end(const void *a, const void *b)
{
    const struct moment *x = a;
    const struct moment *y = b;
    return LAC_ORDER(x->end_ns, y->end_ns);
}

static int by_time(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    return LAC_ORDER(x->at_ns, y->at_ns);
}

/** When the batch lay ready: pinned after it was fetched and before `by_ns`, where that is done. */
static int64_t ready_ns(const struct queue *queue, const struct moment *fetched, int64_t by_ns)
{
    const struct moment *pinned = last_of(&queue->pinned, fetched->batch, by_ns);
    return pinned != NULL && pinned->end_ns >= fetched->end_ns ? pinned->end_ns : fetched->end_ns;
}

/** Every wait with the batch that it took. @return changes, two a batch; the caller frees */
static struct change *match(struct queue *queue, uint64_t *ret_count)
{
    struct change *changes =
        malloc((2 * queue->waited.count + queue->fetched.count + 1) * sizeof(*changes));
    uint64_t count = 0;
    for (uint64_t w = 0; changes != NULL && w < queue->waited.count; w++) {
        const struct moment *wait = &queue->waited.at[w];
        struct moment *fetched = last_of(&queue->fetched, wait->batch, wait->end_ns);
        if (fetched == NULL || fetched->is_taken || fetched->track == wait->track) {
            continue; /* made before the recording began, or by the waiting thread itself */
        }
        fetched->is_taken = true;
        changes[count++] = (struct change){ready_ns(queue, fetched, wait->end_ns), 1};
        changes[count++] = (struct change){wait->end_ns, -1};
    }
    *ret_count = count;
    return changes;
}

/** Batches made in the last epoch and not yet taken when the recording ended. What was made before
 *  the numbers began again was thrown away. @return how many changes there are now */
static uint64_t add_untaken(struct queue *queue, struct change *changes, uint64_t count)
{
    int64_t began_ns = -1;
    struct moments *waited = &queue->waited;
    qsort(waited->at, waited->count, sizeof(*waited->at), by_end);
    for (uint64_t w = 1; w < waited->count; w++) {
        began_ns =
            waited->at[w].batch <= waited->at[w - 1].batch ? waited->at[w - 1].end_ns : began_ns;
    }
    const int64_t last = waited->at[waited->count - 1].batch;
    for (uint64_t f = 0; f < queue->fetched.count; f++) {
        const struct moment *it = &queue->fetched.at[f];
        if (!it->is_taken && it->batch > last && it->end_ns > began_ns) {
            changes[count++] = (struct change){ready_ns(queue, it, INT64_MAX), 1};
        }
    }
    return count;
}

/** Changes as samples: how many lie ready after each. @return how many samples */
static uint64_t sum_up(struct change *changes, uint64_t count, int64_t *ts_ns, double *values)
{
    uint64_t sample_count = 0;
    int64_t ready = 0;
    qsort(changes, count, sizeof(*changes), by_time);
    for (uint64_t i = 0; i < count; i++) {
        ready += changes[i].by;
        if (i + 1 < count && changes[i + 1].at_ns == changes[i].at_ns) {
            continue;
        }
        ts_ns[sample_count] = changes[i].at_ns;
        values[sample_count++] = (double)ready;
    }
    return sample_count;
}

static enum lac_status append(struct lac_model *model, const struct queue *queue,
                              struct change *changes, uint64_t count)
{
    struct lac_track track = {.process = queue->process, .sort_index = -998};
    int64_t *ts_ns = malloc((count + 1) * sizeof(*ts_ns));
    double *values = malloc((count + 1) * sizeof(*values));
    enum lac_status status = ts_ns != NULL && values != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        status = lac_strings_intern(&model->strings, counter_name, sizeof(counter_name) - 1,
                                    &track.name);
    }
    if (!status) {
        /* the queue is empty until the first batch lies in it */
        ts_ns[0] = 0;
        values[0] = 0.0;
        uint64_t samples = 1 + sum_up(changes, count, ts_ns + 1, values + 1);
        bool is_doubled = samples > 1 && ts_ns[1] == 0;
        status = lac_model_add_counter(model, &track, ts_ns + is_doubled, values + is_doubled,
                                       samples - is_doubled);
    }
    free(ts_ns);
    free(values);
    return status;
}

static bool has_counter(const struct lac_model *model)
{
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER &&
            strcmp(lac_model_str(model, model->tracks[t].name), counter_name) == 0) {
            return true;
        }
    }
    return false;
}

enum lac_status lac_prefetch_queue_depth_add(struct lac_model *model)
{
    if (model->loader_info_count == 0 || has_counter(model)) {
        return LAC_OK;
    }
    struct queue queue = {.process = LAC_NONE};
    uint64_t count = 0;
    struct change *changes = NULL;
    enum lac_status status = collect(model, &queue);
    if (!status && !queue.has_many && queue.process != LAC_NONE) {
        sort(&queue.fetched);
        sort(&queue.pinned);
        sort(&queue.waited);
        changes = match(&queue, &count);
        status = changes != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    if (!status && count > 0) {
        count = add_untaken(&queue, changes, count);
        status = append(model, &queue, changes, count);
    }
    free(changes);
    free(queue.fetched.at);
    free(queue.pinned.at);
    free(queue.waited.at);
    return status;
}
