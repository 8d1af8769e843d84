#ifndef LAC_ANALYSIS_DIAGNOSE_STEP_KINDS_H
#define LAC_ANALYSIS_DIAGNOSE_STEP_KINDS_H

/* Private to step_*.c: what each step holds, and how a kind is put down. */

#include "analysis/diagnose/facts/intervals.h"
#include "analysis/diagnose/steps/steps.h" // IWYU pragma: export

/** What the host did in one step. */
struct lac_step_features {
    uint32_t operators, backward, optimizer;     /**< recorded; the last by ranges or its kernels */
    uint32_t waits;                              /**< for batches */
    int64_t first_backward_ns, last_backward_ns; /**< starts */
    int64_t to_host_bytes;
    int64_t saving_start_ns, saving_end_ns; /**< in functions that write a checkpoint; 0, 0 none */
    int64_t first_batch, last_batch;        /**< -1 not recorded */
    int64_t last_wait_ns, last_wait_end_ns;
    int64_t wait_after_backward_ns; /**< start of the first one behind it; 0 none */
    struct lac_span writing;        /**< the part that writes a checkpoint; of no length: none */
    bool makes_loader;              /**< an iterator of a loader */
};

/** What a training step usually holds: medians of those kept. */
struct lac_step_usual {
    int64_t ops, operators, own_ns, backward, waits, wait_ns, to_host_bytes;
    bool trains_by_host, trains_by_kernels; /**< what shows that half of the steps train */
    bool validates_longer; /**< most steps are a validation's: the others are what is usual */
    bool are_alike;        /**< two thirds launch as many operations, within 5 % */
};

struct lac_kind_search {
    struct lac_facts *facts;
    struct lac_step_features *works; /**< by step */
    struct lac_step_usual usual;
    int64_t *scratch; /**< room for a number a step */
};

/* step_features.c: fill `works` and `usual`. One pass over the training processes' threads. */
LAC_MUST_USE enum lac_status lac_step_features_collect(struct lac_kind_search *search);

/** Next to nothing is done in a step: on a trace of the host, by its operators. */
bool lac_step_does_nothing(const struct lac_kind_search *search, uint32_t step);

/* step_epochs.c: steps in which the training loader begins anew */
LAC_MUST_USE enum lac_status lac_steps_find_epochs(struct lac_kind_search *search);

/** The step is of that kind, and (of the first one) what shows it: a text of the
 *  pool, or constant. */
void lac_step_kind_set(struct lac_facts *facts, uint32_t step, enum lac_step_kind kind,
                       const char *why);
/** Whether nothing says yet what it did. */
bool lac_step_kind_is_open(const struct lac_step *step);

/** A stretch of another kind; in any order, until lac_stretches_sort(). */
LAC_MUST_USE enum lac_status lac_stretch_add(struct lac_facts *facts, int64_t start_ns,
                                             int64_t end_ns, enum lac_step_kind kind);
/** By start, disjoint: what began first keeps its time. */
void lac_stretches_sort(struct lac_facts *facts);

/** Time of a step that is not waiting for data. */
static inline int64_t lac_step_own_ns(const struct lac_step *step)
{
    return step->dur_ns - step->wait_ns;
}

#endif
