/* Which threads have no time of their own. All of a thread's slices tell, but few threads need a
 * look: only one that holds a name of the recorder, or a long wait of Python, can be left out. */

#include "analysis/flame/flame_thread.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/flame/flame_wanted.h"
#include "server/store/trace/trace_private.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** What the names on a thread say of it, at most. */
struct suspicion {
    bool may_record;
    int64_t waited_max_ns; /**< in functions that wait */
};

static enum lac_status suspect(struct lac_trace_file *file, const struct lac_name_stat *stat,
                               bool is_recorder, struct suspicion *of_tracks,
                               struct lac_error *reterr)
{
    uint32_t *chunks = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_trace_postings(file, stat, &chunks, &count, reterr);
    uint32_t before = LAC_NONE;

    for (uint32_t i = 0; status == LAC_OK && i < count; i++) {
        const uint32_t track = file->chunks[chunks[i]].track;
        struct suspicion *of = &of_tracks[track];

        if (track != before && is_recorder) {
            of->may_record = true;
        } else if (track != before &&
                   __builtin_add_overflow(of->waited_max_ns, stat->total_ns, &of->waited_max_ns)) {
            of->waited_max_ns = INT64_MAX;
        }
        before = track;
    }
    free(chunks);
    return status;
}

static enum lac_status suspect_by_names(struct lac_trace_file *file, struct suspicion *of_tracks,
                                        struct lac_error *reterr)
{
    const struct lac_name_stat *stats = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_trace_stats(file, &stats, &count, reterr);

    for (uint32_t s = 0; s < count && status == LAC_OK; s++) {
        const char *name = lac_model_str(&file->head, stats[s].name);
        const bool is_long =
            stats[s].kind == LAC_SLICE_PYTHON && stats[s].max_ns >= LAC_FLAME_LONG_WAIT_NS;

        if (lac_flame_is_recorder(name)) {
            status = suspect(file, &stats[s], true, of_tracks, reterr);
        }
        if (status == LAC_OK && is_long && lac_flame_is_waiting(name)) {
            status = suspect(file, &stats[s], false, of_tracks, reterr);
        }
    }
    return status;
}

/** Look at a thread's slices until it is clear. */
static enum lac_status judge(struct lac_trace_file *file, uint32_t track,
                             const struct suspicion *of, bool *ret_is_left_out,
                             struct lac_error *reterr)
{
    struct lac_flame_thread thread = {0};
    enum lac_status status = LAC_OK;
    bool may_be = of->may_record || of->waited_max_ns > 0;

    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && status == LAC_OK && may_be; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &pin, reterr);
        if (status == LAC_OK) {
            lac_flame_thread_add(&thread, &file->head, &columns->at, 0, columns->at.count);
            /* the more of it is known, the less waiting can fill it */
            may_be = (of->may_record && thread.recorder_count == thread.count) ||
                     lac_flame_is_mostly_waiting(of->waited_max_ns, thread.covered_ns);
        }
        lac_trace_unpin(file, pin);
    }
    *ret_is_left_out = may_be && lac_flame_thread_is_left_out(&thread);
    return status;
}

static enum lac_status find_left_out(struct lac_trace_file *file, uint8_t *is_left_out,
                                     struct lac_error *reterr)
{
    const struct lac_model *head = &file->head;
    struct suspicion *of_tracks = calloc((size_t)head->track_count + 1, sizeof(*of_tracks));
    enum lac_status status =
        of_tracks != NULL ? suspect_by_names(file, of_tracks, reterr) : LAC_ERR_NOMEM;

    for (uint32_t t = 0; t < head->recorded_track_count && status == LAC_OK; t++) {
        bool is = false;

        if (head->tracks[t].kind == LAC_TRACK_THREAD || head->tracks[t].kind == LAC_TRACK_STACKS) {
            status = judge(file, t, &of_tracks[t], &is, reterr);
        }
        is_left_out[t] = is ? 1 : 0;
    }
    free(of_tracks);
    return status;
}

enum lac_status lac_flame_left_out(struct lac_trace_file *file, const uint8_t **ret_is_left_out,
                                   struct lac_error *reterr)
{
    uint8_t *made = NULL;
    enum lac_status status = LAC_OK;

    (void)pthread_mutex_lock(&file->lazy_lock);
    *ret_is_left_out = file->lazy.is_left_out;
    (void)pthread_mutex_unlock(&file->lazy_lock);
    if (*ret_is_left_out != NULL) {
        return LAC_OK;
    }
    made = calloc((size_t)file->head.track_count + 1, 1);
    status = made != NULL ? find_left_out(file, made, reterr) : LAC_ERR_NOMEM;
    if (status == LAC_OK) {
        (void)pthread_mutex_lock(&file->lazy_lock);
        if (file->lazy.is_left_out == NULL) { /* else somebody else was faster */
            file->lazy.is_left_out = made;
            made = NULL;
        }
        *ret_is_left_out = file->lazy.is_left_out;
        (void)pthread_mutex_unlock(&file->lazy_lock);
    }
    free(made);
    return status;
}
