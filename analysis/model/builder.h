#ifndef LAC_ANALYSIS_MODEL_BUILDER_H
#define LAC_ANALYSIS_MODEL_BUILDER_H

/*
 * Builds a model: importers append in any order, finish() sorts, lays lanes and binds launches.
 *
 *   create -> process/track/slice/... -> finish (model leaves)   or   destroy
 *
 * Every append is amortized O(1). Absolute times go in; finish() subtracts t0.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

struct lac_builder;

struct lac_crew;

/** One slice to append. Zero-initialize, then set; link is found by finish(). */
struct lac_slice_in {
    int64_t start_ns; /**< absolute */
    int64_t dur_ns;   /**< >= 0 */
    uint32_t track;   /**< from lac_builder_track() */
    uint32_t name;    /**< string id */
    uint32_t corr;    /**< 0 when none */
    uint32_t detail;  /**< row of the table of its kind, or LAC_NONE */
    uint32_t args;    /**< 0 when none */
    uint32_t arg_num; /**< index of its first number */
    enum lac_slice_kind kind;
};

/** @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_builder_create(struct lac_builder **ret_builder);

/** Have helpers for lac_builder_finish(), borrowed until it returns; what comes out is the same. */
void lac_builder_use_crew(struct lac_builder *builder, struct lac_crew *crew);

/** Free an unfinished builder. NULL is allowed. */
void lac_builder_destroy(struct lac_builder *builder);

/** The model under construction: strings to intern into, info to fill, report to add to.
 *  Borrowed until finish or destroy. Its columns are not valid yet. */
struct lac_model *lac_builder_model(struct lac_builder *builder);

/** finish() names slices as a programmer wrote them where they have a compiler's name
 *  (demangle.h): for recordings of what runs, in which a name is no text of a tool. */
void lac_builder_demangle(struct lac_builder *builder);

/** Index of the process with that recorded id, added if new. */
LAC_MUST_USE enum lac_status lac_builder_process(struct lac_builder *builder, uint32_t id_text,
                                                 int64_t pid, uint32_t *ret_process);

/** Borrowed, to set name, labels, sort_index, is_gpu; valid until
 *  the next lac_builder_process(). */
struct lac_process *lac_builder_process_at(struct lac_builder *builder, uint32_t process);

/**
 * Index of the track (kind, process, id_text), added if new. Importers cache the last one.
 * Up to LAC_TRACK_COUNT_MAX, then LAC_ERR_LIMIT.
 */
LAC_MUST_USE enum lac_status lac_builder_track(struct lac_builder *builder,
                                               enum lac_track_kind kind, uint32_t process,
                                               uint32_t id_text, int64_t tid, uint32_t *ret_track);

/** The existing process or track, or LAC_NONE. */
uint32_t lac_builder_find_process(const struct lac_builder *builder, uint32_t id_text);
uint32_t lac_builder_find_track(const struct lac_builder *builder, enum lac_track_kind kind,
                                uint32_t process, uint32_t id_text);

/** Borrowed, to set name, device, sort_index; valid until the next lac_builder_track(). */
struct lac_track *lac_builder_track_at(struct lac_builder *builder, uint32_t track);

/** The device with that id, added if new. Borrowed until the next call. NULL when out of memory. */
struct lac_device *lac_builder_device(struct lac_builder *builder, int64_t id);

/** Append a slice. dur_ns must be >= 0. LAC_ERR_LIMIT beyond LAC_SLICE_COUNT_MAX. */
LAC_MUST_USE enum lac_status lac_builder_slice(struct lac_builder *builder,
                                               const struct lac_slice_in *slice);

/** Append a counter sample to a LAC_TRACK_COUNTER track. */
LAC_MUST_USE enum lac_status lac_builder_sample(struct lac_builder *builder, uint32_t track,
                                                int64_t ts_ns, double value);

/** Append `count` argument numbers; the first gets index *ret_first. */
LAC_MUST_USE enum lac_status lac_builder_arg_numbers(struct lac_builder *builder,
                                                     const int64_t *numbers, uint32_t count,
                                                     uint32_t *ret_first);

/** Row for a launch configuration, equal ones shared. */
LAC_MUST_USE enum lac_status lac_builder_kernel_config(struct lac_builder *builder,
                                                       const struct lac_kernel_config *config,
                                                       uint32_t *ret_row);
/** New rows of the other detail tables (copies equal to the previous one are shared). */
LAC_MUST_USE enum lac_status lac_builder_copy(struct lac_builder *builder,
                                              const struct lac_copy *copy, uint32_t *ret_row);
LAC_MUST_USE enum lac_status lac_builder_loader_info(struct lac_builder *builder,
                                                     const struct lac_loader_info *info,
                                                     uint32_t *ret_row);
LAC_MUST_USE enum lac_status lac_builder_alloc(struct lac_builder *builder,
                                               const struct lac_alloc *alloc, uint32_t *ret_row);

/**
 * A recorded arrow end, matched by finish(): the innermost slice on `track` that encloses `ts_ns`
 * (step 's' starts the arrow `id` under `name`, 't' continues, 'f' ends it; with `bind_enclosing`
 * false an 'f' binds to the next slice that starts at or after ts_ns).
 */
LAC_MUST_USE enum lac_status lac_builder_flow(struct lac_builder *builder, char step, uint64_t id,
                                              uint32_t name, uint32_t track, int64_t ts_ns,
                                              bool bind_enclosing);

/** An event that is not appended yet: it counts for lac_builder_origin() as slices and samples do. */
void lac_builder_count_time(struct lac_builder *builder, int64_t ts_ns);

/**
 * The first time of the LAC_TIME_MAX_NS that hold the most events, of all that were appended or
 * counted. Recorders write a timestamp of 0 into events that have none: the trace is where the
 * others are. Without events the first time reported, or 0. The first answer stays. Cost: constant,
 * 8,192 reads.
 */
int64_t lac_builder_origin(struct lac_builder *builder);

/**
 * Sort, lay lanes, bind launches by correlation id, resolve flows, and give the model away. Chooses
 * t0: `base_ns` + the smallest timestamp of anything timed that was appended or reported with
 * lac_builder_saw_time(), or lac_builder_origin() where not all fit into LAC_TIME_MAX_NS after it.
 * Slices and samples before t0 or more than LAC_TIME_MAX_NS after it are dropped and counted in the
 * report. Counter tracks move after the others: track indices that were given before
 * are no longer valid.
 *
 * @param base_ns   added to t0_ns only (Kineto's baseTimeNanoseconds)
 * @param ret_model on LAC_OK the model, which the caller destroys; the builder is then gone
 * @return LAC_OK, LAC_ERR_NOMEM. On failure the caller still owns the builder: destroy it.
 *
 * Cost: O(n) when tracks come in order of time, O(n log n) otherwise; 13 bytes per slice in
 * addition to the columns while it runs.
 */
LAC_MUST_USE enum lac_status lac_builder_finish(struct lac_builder *builder, int64_t base_ns,
                                                struct lac_model **ret_model);

/** Report a timestamp that makes no slice (a flow end, a dropped mark), so that t0 takes it into
 *  account. */
void lac_builder_saw_time(struct lac_builder *builder, int64_t ts_ns);

#endif
