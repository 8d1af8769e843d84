#ifndef LAC_ANALYSIS_IMPORT_JOIN_JOIN_MODELS_H
#define LAC_ANALYSIS_IMPORT_JOIN_JOIN_MODELS_H

/*
 * Several models of one job become one: a trace, logs of counters beside it, profiles.
 *
 * Slices of the trace keep their ids: what is joined comes behind them. Counters become counter
 * tracks, cut to the trace's time. A profile without times becomes tracks of kind
 * LAC_TRACK_PROFILE: a flame graph of its own, no rows of the timeline.
 *
 * Clocks: where both files tell the time of day, they are laid by it. Where a log names no time
 * zone and does not meet the trace, whole quarters of an hour are tried, and taken where only one
 * fits. Else the caller has to say how far they are apart.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_JOIN_MEMBERS_MAX = 64 };

/** A file that is joined. */
struct lac_join_member {
    struct lac_model *model; /**< owned by the caller until it is joined */
    const char *name;        /**< of the file, for what is told */
    bool has_offset;
    int64_t offset_ns; /**< added to its times; where the clocks differ in kind, from the start of
                          the trace to its start */
};

/**
 * Join all members to one of them: the first that holds work of a GPU, else the first with slices
 * and times, else the first.
 *
 * @param members   their models are used up (and set to NULL) on LAC_OK
 * @param ret_model the joined one
 * @return LAC_OK; LAC_ERR_MISUSE (clocks that nothing relates, times that do not meet, two traces
 *         of one GPU), LAC_ERR_LIMIT, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_join_models(struct lac_join_member *members, uint32_t count,
                                             struct lac_model **ret_model,
                                             struct lac_error *reterr);

#endif
