#ifndef LAC_ANALYSIS_DIAGNOSE_EDITS_H
#define LAC_ANALYSIS_DIAGNOSE_EDITS_H

/*
 * Private: a change of chosen slices. A finder that knows which calls, operators, Python rows,
 * kernels or copies its change touches marks them here and plays the steps with it:
 *
 *     struct lac_edits *edits = lac_edits_begin(facts, finding->kind);
 *     for each call:  lac_edits_no_wait(edits, call);
 *     lac_change_clear(&change);
 *     lac_change_edit(&change, edits, 1.0);       // 0.5 in the worst case: half of the effect
 *     step_ns = lac_what_if_replay(facts, &change);
 *
 * The edits belong to the finding's kind and live as long as the facts, so that the plan can make
 * the same change with others: lac_edits_of(). Marks outside the replayed window are not kept; mark
 * all that the trace holds, or those in lac_edits_window(). A slice may be marked more than once:
 * the smaller factor holds. Out of memory: nothing is changed.
 *
 * Cost: 24 bytes a mark in the window; n log n once a set, then n log n a replay.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

struct lac_edits;

/** Empty edits of that kind of finding; NULL (which all functions here allow) without memory, or
 *  without steps. */
struct lac_edits *lac_edits_begin(const struct lac_facts *facts, enum lac_finding_kind kind);
/** The edits of that finding, or NULL. */
struct lac_edits *lac_edits_of(const struct lac_facts *facts, enum lac_finding_kind kind);

/** Where marks count: the replayed window, else all. */
void lac_edits_window(const struct lac_facts *facts, int64_t *ret_start_ns, int64_t *ret_end_ns);

/* -- the host -- */

/** The host's own work inside a slice (call, operator, range, Python row) takes `factor` of its
 *  time, launching included; waiting for the device or for workers does not. */
void lac_edits_host(struct lac_edits *edits, uint64_t slice, double factor);
/** The same for a stretch of a thread: the self time of a row, say. */
void lac_edits_host_time(struct lac_edits *edits, uint32_t track, int64_t start_ns, int64_t end_ns,
                         double factor);
/** A call does not wait for the device; what is done with the value after it remains. */
void lac_edits_no_wait(struct lac_edits *edits, uint64_t call);

/* -- the device -- */

/** An operation (kernel, copy, memset, collective) takes `factor` of its time, which may be above
 *  1; 0: it is not there. Its launch remains. */
void lac_edits_operation(struct lac_edits *edits, uint64_t operation, double factor);
/** An operation is launched where the `earlier` one is, on its own stream: prefetched. */
void lac_edits_launched_with(struct lac_edits *edits, uint64_t operation, uint64_t earlier);

/* -- both -- */

/** A call is not made: no work, no wait; `operation`, which it launched, is not there (LAC_NONE:
 *  it launched none). */
void lac_edits_drop(struct lac_edits *edits, uint64_t call, uint64_t operation);

/* -- ready made -- */

/** Copies to the device from pageable memory, whose calls wait until they are done: pinned and not
 *  blocking, they do not (pinned_copies.c). Of that kind of finding, chosen once; NULL where there
 *  are none. What `pinned=1` and the finding pageable-copy play, too. */
struct lac_edits *lac_pinned_copies(const struct lac_facts *facts, enum lac_finding_kind kind);

#endif
