#ifndef LAC_SERVER_STORE_TRACE_FLAME_TRACE_FLAME_H
#define LAC_SERVER_STORE_TRACE_FLAME_TRACE_FLAME_H

/*
 * What a flame graph of an area needs of a stored trace, without the rest of it.
 */

#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/trace_file.h"

/** A part of a trace: lac_flame_create() with `whole` gives the graph that the whole model gives,
 *  number by number. */
struct lac_flame_room;

struct lac_flame_part {
    struct lac_model *model; /**< tracks and strings are the head's, slices have other ids; columns
                                  corr, detail, args and arg_num are NULL, as are all tables */
    struct lac_flame_whole whole; /**< for lac_flame_options.whole; borrowed from the file */
    struct lac_flame_room *room;  /**< whose columns they are, or NULL */
};

/**
 * The slices that a flame graph of the area of `options` is made of: those that reach into it, and
 * from outside it the launches of what ran in it with the slices around them, or the launches that
 * ended idle time and the fetches and waits of a loader.
 *
 * @param options  with an area (t1 > t0), any metric but LAC_FLAME_PROFILE, which has none
 * @param ret_part the caller gives it to lac_trace_flame_part_done(), before the file is closed
 * @return LAC_OK, LAC_ERR_LIMIT when it is larger than the model cache allows, LAC_ERR_NOMEM,
 *         LAC_ERR_CORRUPT, LAC_ERR_IO
 * Cost: the chunks that hold such slices; once for a file, those of threads that may only wait.
 */
LAC_MUST_USE enum lac_status lac_trace_flame_part(struct lac_trace_file *file,
                                                  const struct lac_flame_options *options,
                                                  struct lac_flame_part *ret_part,
                                                  struct lac_error *reterr);

/** Memory that one part after another is made in. All zero is empty. */
struct lac_flame_room {
    struct lac_slices columns;
    uint32_t *ids;
    uint64_t capacity;
};
void lac_flame_room_done(struct lac_flame_room *room);

/** As lac_trace_flame_part(), but LAC_ERR_LIMIT from so many slices on, and made in `room`, which
 *  has one part at a time. */
LAC_MUST_USE enum lac_status lac_flame_part_below(struct lac_trace_file *file,
                                                  const struct lac_flame_options *options,
                                                  uint64_t slices_max, struct lac_flame_room *room,
                                                  struct lac_flame_part *ret_part,
                                                  struct lac_error *reterr);

/** Slices of a part that the model cache allows. */
uint64_t lac_flame_part_slices_max(const struct lac_trace_file *file);

void lac_trace_flame_part_done(struct lac_flame_part *part);

/**
 * The flame graph of a stored trace. Of an area of more than two million slices it is made in windows
 * (flame_windows.h), unless the whole model is in memory; of a smaller one of a part of the trace, of
 * less than a thirtieth of the slices, of more until what was read for them adds up to a third, and
 * of any where the model cache has no room for the whole model; else of that. What takes long is kept
 * in the cache of columns.
 *
 * @param options   `whole` is not read
 * @param ret_flame its names are of lac_trace_file_head(); lac_flame_destroy()
 * @return as lac_trace_flame_part() and lac_trace_file_model()
 */
LAC_MUST_USE enum lac_status lac_trace_flame(struct lac_trace_file *file,
                                             const struct lac_flame_options *options,
                                             struct lac_flame **ret_flame,
                                             struct lac_error *reterr);

#endif
