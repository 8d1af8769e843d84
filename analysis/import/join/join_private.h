#ifndef LAC_ANALYSIS_IMPORT_JOIN_JOIN_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_JOIN_JOIN_PRIVATE_H

/* What the files of this folder share. */

#include "analysis/import/join/join_models.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a member's times become the trace's: both relative to the trace's t0. */
struct lac_join_clock {
    int64_t shift_ns;        /**< added to what is relative to the member's t0 */
    int64_t guessed_zone_ns; /**< that a log without a time zone was moved by, 0: not */
};

/** Whether the model has slices (rows of intervals), not only counters. */
bool lac_join_has_slices(const struct lac_model *model);
/** Whether it holds operations of a GPU. */
bool lac_join_has_gpu_work(const struct lac_model *model);

/** join_clock.c: the place of a member in the trace's time. */
LAC_MUST_USE enum lac_status lac_join_clock_of(const struct lac_model *trace,
                                               const char *trace_name,
                                               const struct lac_join_member *member,
                                               struct lac_join_clock *ret_clock,
                                               struct lac_error *reterr);

/** Cut the counters of a log to [from_ns, to_ns] of its own time; what stood at from_ns is kept
 *  there. @return samples left out */
uint64_t lac_join_cut_counters(struct lac_model *model, int64_t from_ns, int64_t to_ns);

/** join_append.c: put what `other` has behind what `into` has. Times of `other` move by shift_ns
 *  and are not below 0 then. `other` stays the caller's. After a failure `into` can only be
 *  destroyed. @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_join_append(struct lac_model *into, const struct lac_model *other,
                                             int64_t shift_ns);

/** join_append.c: room for `more` elements behind `count`. @param array where the pointer is; it
 *  stays valid when there is no room @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_join_widen(void *array, uint64_t count, uint64_t more,
                                            size_t element_bytes);

/** join_measures.c: give the kernels before slice `first` the arguments of those from it on, which
 *  Nsight Compute measured: by name, in their order.
 *  @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT. Cost: sorts the kernels */
LAC_MUST_USE enum lac_status lac_join_measures(struct lac_model *into, uint64_t first);

/** join_graph_notes.c: name the module of each kernel that is a node which `notes`
 *  (LAC_FORMAT_GRAPH_NOTES) annotate, and put the other members of its annotation behind its
 *  arguments; those that it has stay. @param name, notes_name of the files, for what is told
 *  @return LAC_OK, LAC_ERR_MISUSE (no kernel is such a node), LAC_ERR_LIMIT, LAC_ERR_NOMEM.
 *  Cost: sorts the nodes, and one pass over the kernels where there are other members */
LAC_MUST_USE enum lac_status lac_join_graph_notes(struct lac_model *into, const char *name,
                                                  const struct lac_model *notes,
                                                  const char *notes_name, struct lac_error *reterr);

/** Move all times of a model later: its t0 becomes earlier. */
void lac_join_move_start(struct lac_model *model, int64_t by_ns);

#endif
