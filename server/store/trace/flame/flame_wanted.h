#ifndef LAC_SERVER_STORE_TRACE_FLAME_FLAME_WANTED_H
#define LAC_SERVER_STORE_TRACE_FLAME_FLAME_WANTED_H

/* Which slices of a trace file a flame graph of an area is made of. */

#include "analysis/flame/flame.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_private.h"

#include <stdbool.h>
#include <stdint.h>

/** Columns of tracks whose slices link to what a graph follows: streams and gaps. */
#define LAC_FLAME_LINK_COLUMNS (LAC_COLUMNS_TILE | 1U << LAC_COLUMN_LINK)

/** What is asked. */
struct lac_flame_question {
    struct lac_trace_file *file;
    const struct lac_flame_options *options;
    const struct lac_flame_whole *whole;
    bool is_sampled;      /**< frames of Python come from samples */
    uint32_t frame_kinds; /**< lac_flame_frame_kinds() */
    uint64_t slices_max;  /**< a part with more is LAC_ERR_LIMIT */
    struct lac_error *reterr;
};

/** How much of a track is wanted beside single slices. */
enum lac_flame_extent {
    LAC_FLAME_NOTHING = 0,
    LAC_FLAME_AREA, /**< the slices that reach into the area */
    LAC_FLAME_SPAN, /**< those that reach into a span of the track's own */
    LAC_FLAME_ALL,
};

/** The track of the slice that was looked for last. */
struct lac_flame_latest {
    uint64_t first, end;
    uint32_t track;
};

struct lac_flame_wanted {
    uint8_t *extent;   /**< by track: enum lac_flame_extent */
    uint32_t *ids;     /**< single slices, ascending, each once */
    int64_t *start_ns; /**< of each, and what encloses one is wanted, too; NULL: it is not */
    struct lac_flame_span *spans; /**< by track, where one is LAC_FLAME_SPAN; else NULL */
    uint64_t count, capacity;
    struct lac_flame_latest latest;
};

/** @param ret_wanted the caller gives it to lac_flame_wanted_done(), also after a failure */
LAC_MUST_USE enum lac_status lac_flame_find_wanted(const struct lac_flame_question *question,
                                                   struct lac_flame_wanted *ret_wanted);
void lac_flame_wanted_done(struct lac_flame_wanted *wanted);

/** flame_loader.c: the waits for batches and the fetches that say which worker was late, and
 *  their threads. */
LAC_MUST_USE enum lac_status lac_flame_want_loader(const struct lac_flame_question *question,
                                                   struct lac_flame_wanted *wanted);

/** Add a slice to those wanted, in any order. */
LAC_MUST_USE enum lac_status lac_flame_want(struct lac_flame_wanted *wanted, uint64_t slice);

/** flame_threads.c: which threads have no time of their own; kept with the file. */
LAC_MUST_USE enum lac_status lac_flame_left_out(struct lac_trace_file *file,
                                                const uint8_t **ret_is_left_out,
                                                struct lac_error *reterr);

/** Whether a slice reaches into [t0, t1), or has no length and lies in it. */
static inline bool lac_flame_is_inside(int64_t t0_ns, int64_t t1_ns, const struct lac_slices *at,
                                       uint64_t i)
{
    return at->start_ns[i] < t1_ns &&
           (at->start_ns[i] >= t0_ns || at->start_ns[i] + at->dur_ns[i] > t0_ns);
}

/** Whether slices of a chunk may. */
static inline bool lac_flame_may_be_inside(int64_t t0_ns, int64_t t1_ns,
                                           const struct lac_chunk_entry *chunk)
{
    return chunk->start_first < t1_ns && chunk->end_last >= t0_ns;
}

#endif
