#ifndef LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_H
#define LAC_ANALYSIS_DIAGNOSE_DIAGNOSE_H

/*
 * Model -> facts and findings: everything that `lacuna.analysis/1` carries. Pure: no I/O, no
 * clock, no randomness; same model, same analysis, byte for byte.
 *
 * A number that cannot be known is LAC_UNKNOWN_NS (or NaN), shown as null, never 0.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

#define LAC_UNKNOWN_NS INT64_MIN /**< printed as null */

/** Causes of idle time, in the order of idle_by_cause_ns. Names are part of the contract. */
enum lac_cause {
    LAC_CAUSE_DATA_WAIT = 0,
    LAC_CAUSE_SYNC,
    LAC_CAUSE_LAUNCH,
    LAC_CAUSE_COPY_WAIT,
    LAC_CAUSE_ALLOCATOR,
    LAC_CAUSE_MODULE_LOAD,
    LAC_CAUSE_COMM,
    LAC_CAUSE_DEPENDENCY,
    LAC_CAUSE_HOST,
    LAC_CAUSE_PROFILER,
    LAC_CAUSE_UNATTRIBUTED,
    LAC_CAUSE_COUNT_
};
/** "data_wait", "sync", ...; letters D S L C A M N W H P ? (research: ux 1.10). */
const char *lac_cause_name(enum lac_cause cause);
char lac_cause_letter(enum lac_cause cause);

/** A change to try on the re-timed steps (--what-if K=V,...). Unset fields are LAC_WHAT_IF_UNSET.
 */
#define LAC_WHAT_IF_UNSET (-1)
struct lac_what_if_changes {
    int32_t workers;                                         /**< number of loader workers */
    int8_t layout_nhwc;                                      /**< 1: no layout conversions */
    int8_t pinned;                                           /**< 1: copies from pinned memory */
    int8_t async_copies;                                     /**< 1: own stream, one batch ahead */
    int8_t no_sync, no_allocator, no_module_load, no_launch; /**< 1: without that cause */
    double comm;    /**< factor on exposed communication, negative unset */
    double kernels; /**< factor on computing kernels, negative unset */
};
void lac_what_if_clear(struct lac_what_if_changes *changes);

/** Parse "workers=4,pinned=1". @return LAC_OK or LAC_ERR_MISUSE with a sentence that names the key.
 */
LAC_MUST_USE enum lac_status lac_what_if_parse(const char *text,
                                               struct lac_what_if_changes *ret_changes,
                                               struct lac_error *reterr);

struct lac_diagnose_options {
    bool has_what_if;
    struct lac_what_if_changes what_if;
};

/** Everything found. Defined in analysis.h; read only; all memory owned by it. */
struct lac_analysis;

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

/** NULL is allowed. */
void lac_analysis_destroy(struct lac_analysis *analysis);

/**
 * Append the derived tracks to the model: one LAC_TRACK_STEPS track with a LAC_SLICE_STEP per
 * detected step, and per device one LAC_TRACK_GAPS track with a LAC_SLICE_GAP per piece of idle
 * time, named by its cause, linked to the operation that ended the gap.
 */
LAC_MUST_USE enum lac_status lac_diagnose_add_tracks(const struct lac_analysis *analysis,
                                                     struct lac_model *model);

#endif
