#ifndef LAC_ANALYSIS_DIAGNOSE_HOST_WALK_H
#define LAC_ANALYSIS_DIAGNOSE_HOST_WALK_H

/*
 * Private: the training process' operators, ranges and calls in the replayed steps, one thread after
 * the other, each with what is open around it. Steps repeat: what those show stands for all.
 */

#include "analysis/diagnose/findings/findings.h" // IWYU pragma: export

enum { LAC_HOST_DEPTH_MAX = 128 };

/** Operators and ranges that are under way, outermost first. */
struct lac_host_open {
    const struct lac_facts *facts;
    uint32_t track;
    uint32_t depth;
    uint32_t slice[LAC_HOST_DEPTH_MAX];
};

/** Name of a slice. */
const char *lac_host_name(const struct lac_facts *facts, uint64_t slice);

/** The outermost open slice whose name `is_wanted`, or LAC_NONE. */
uint32_t lac_host_around(const struct lac_host_open *open, bool (*is_wanted)(const char *name));

/** Whether it waits for a batch: what runs in there is the loader's. */
bool lac_host_is_loading(const struct lac_host_open *open);

/**
 * Tell `visit` of every operator, range and call that begins in the window of the replay; without one
 * in the first kept steps. O(slices of the window), two million at most.
 *
 * @param open without the slice itself
 * @return steps that the window holds; 0 when there are none, or too many slices
 */
double lac_host_walk(const struct lac_facts *facts,
                     void (*visit)(void *context, const struct lac_host_open *open, uint64_t slice),
                     void *context);

/** The operation that a call launched, or LAC_NONE. */
uint32_t lac_host_launched(const struct lac_facts *facts, uint64_t call);

/** Steps with all of the edits, that share of them, and at worst. Cost is what goes in the best
 *  case. @return whether it is worth saying (lac_finding_open_changes()) */
bool lac_host_open_edited(const struct lac_facts *facts, struct lac_finding *finding,
                          struct lac_edits *edits, const double share[LAC_CASE_COUNT_]);

#endif
