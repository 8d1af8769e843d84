#ifndef LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_H
#define LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_H

/*
 * Model -> facts and findings: everything that `lacuna.analysis/1` carries. Pure: no I/O, no
 * clock, no randomness; same model, same analysis, byte for byte.
 */

#include "analysis/crew/crew.h"
#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_diagnose_options {
    bool has_what_if;
    struct lac_what_if_changes what_if;
    const struct lac_names *names; /**< rows that come before the table's; borrowed; may be NULL */
    struct lac_crew *crew;         /**< replays steps beside the caller; may be NULL */
    bool wants_worker_steps;       /**< fill analysis->worker_steps: it is going to be compared */
};

/**
 * Diagnose a finished model.
 *
 * @param options may be NULL
 * @return LAC_OK or LAC_ERR_NOMEM
 * Cost: O(n log n) at worst, about 0.1 s a million slices or less; 16 bytes a slice of working
 * memory.
 */
LAC_MUST_USE enum lac_status lac_diagnose(const struct lac_model *model,
                                          const struct lac_diagnose_options *options,
                                          struct lac_analysis **ret_analysis,
                                          struct lac_error *reterr);

/**
 * Append the derived tracks to the model: one LAC_TRACK_STEPS track with a LAC_SLICE_STEP per
 * detected step, and per device one LAC_TRACK_GAPS track with a LAC_SLICE_GAP per piece of idle
 * time, named by its cause, linked to the operation that ended the gap.
 */
LAC_MUST_USE enum lac_status lac_diagnose_add_tracks(const struct lac_analysis *analysis,
                                                     struct lac_model *model);

#endif
