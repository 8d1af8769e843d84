#ifndef LAC_ANALYSIS_DIAGNOSE_COLLECTIVES_H
#define LAC_ANALYSIS_DIAGNOSE_COLLECTIVES_H

/*
 * Private: the main device's communication in kept steps, in order of start: what it is, how many
 * bytes, and how much of it no computing hides. Sizes are what the recorder wrote beside the kernel
 * or beside the operator that launched it; without any, they are unknown.
 */

#include "analysis/diagnose/facts/step_operations.h" // IWYU pragma: export

enum lac_collective_kind {
    LAC_COLLECTIVE_OTHER = 0,
    LAC_COLLECTIVE_ALL_REDUCE,
    LAC_COLLECTIVE_ALL_GATHER,
    LAC_COLLECTIVE_REDUCE_SCATTER,
    LAC_COLLECTIVE_ALL_TO_ALL,
    LAC_COLLECTIVE_BROADCAST,
    LAC_COLLECTIVE_SEND,    /**< to one other rank */
    LAC_COLLECTIVE_RECEIVE, /**< from one other rank */
    LAC_COLLECTIVE_BETWEEN, /**< sent, received or both: the trace does not say */
    LAC_COLLECTIVE_KIND_COUNT_
};

struct lac_message {
    uint32_t at;   /**< its place in step_operations->ops */
    int32_t ranks; /**< that take part; -1 not recorded */
    int64_t bytes; /**< of this rank, the larger of what goes in and out; -1 not recorded */
    int64_t dur_ns;
    int64_t exposed_ns; /**< without computing beside it */
    int64_t host_ns;    /**< of the host in the operator that launched it; 0 not recorded */
    uint8_t kind;       /**< enum lac_collective_kind */
    bool is_in_line;    /**< on the stream that computes */
};

struct lac_collectives {
    struct lac_message *at;
    uint64_t count;
    double steps;            /**< kept steps that they cover */
    uint32_t compute_stream; /**< track on which most computing runs, or LAC_NONE */
};

/** "all-reduce", ... */
const char *lac_collective_name(enum lac_collective_kind kind);

/** By what is recorded with a kernel that communicates, and by its name. O(its arguments) */
enum lac_collective_kind lac_collective_kind_of(const struct lac_model *model, uint64_t slice);

/** After lac_step_operations_collect(). Empty where nothing is communicated. */
LAC_MUST_USE enum lac_status lac_collectives_collect(struct lac_facts *facts);
void lac_collectives_destroy(struct lac_collectives *collectives);

/** Bytes that have to cross this rank's link; -1 unknown. A group of unknown size counts as large. */
double lac_collective_wire_bytes(const struct lac_message *collective);

#endif
