#ifndef LAC_ANALYSIS_DIAGNOSE_OPERATIONS_H
#define LAC_ANALYSIS_DIAGNOSE_OPERATIONS_H

/*
 * Private: walk the operations (kernels, copies, memsets) of one device in order of start, over
 * all its streams, and tell how much of each counts where several run at a time. Equal starts: in
 * order of tracks.
 */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** A stream's next operation. */
struct lac_op_cursor {
    int64_t start_ns;
    uint64_t slice; /**< next one */
    uint64_t end;
    uint32_t order; /**< of the track */
};

/** By what time a slice has its place in a walk; LAC_UNKNOWN_NS: it is passed over. Within a track it
 *  should not fall: one that does comes as if it were of the time of the one before it. */
typedef int64_t lac_place_of(const struct lac_facts *facts, uint64_t slice);

struct lac_operations {
    const struct lac_facts *facts;
    lac_place_of *place_of;
    struct lac_op_cursor *heap; /**< smallest (start, order) first */
    uint32_t count;
};

/** Start at the first operation of device `device_id`. */
LAC_MUST_USE enum lac_status lac_operations_init(struct lac_operations *operations,
                                                 const struct lac_facts *facts, int64_t device_id);
/** The same over streams of all devices, by other times than their starts.
 *  @param is_walked whether each recorded track may hold an operation with a place; NULL: any may */
LAC_MUST_USE enum lac_status lac_operations_init_by(struct lac_operations *operations,
                                                    const struct lac_facts *facts,
                                                    lac_place_of *place_of, const bool *is_walked);
void lac_operations_done(struct lac_operations *operations);

/** Next operation, or false at the end. */
bool lac_operations_next(struct lac_operations *operations, uint64_t *ret_slice);

/** The part of a device's time that an operation is: compute before communication before copies
 *  before memsets. */
enum lac_partition lac_operation_part(const struct lac_facts *facts, uint64_t slice);

/**
 * How much of an operation's time counts as its own:
 *
 *   share   while nothing of a part before its own ran, shared among those of its part: over all
 *           operations of a part these sum up to the partition's
 *   sole    of its share, while no other of its part ran: with it gone its part is done by that much
 *           earlier
 *   alone   while nothing of another class ran, shared among those of its class: with all of the
 *           class gone the device is done by that much earlier
 */
struct lac_exposed {
    double share_ns, sole_ns, alone_ns;
};

enum { LAC_EXPOSURE_CLASSES = 8 };

struct lac_running_operation {
    int64_t end_ns;
    struct lac_exposed from; /**< what its part and class had when it began */
    uint32_t user;
    uint8_t part, op_class;
};

/** What is running at a point of the walk. Cost: log of how many do, for each operation. */
struct lac_exposure {
    struct lac_running_operation *running; /**< soonest end first: a heap */
    uint32_t count, capacity;
    uint32_t of_part[LAC_PART_IDLE], of_class[LAC_EXPOSURE_CLASSES]; /**< how many run */
    unsigned parts, classes;                                         /**< of which any do: bits */
    double share_ns[LAC_PART_IDLE], sole_ns[LAC_PART_IDLE];          /**< what each had until now */
    double alone_ns[LAC_EXPOSURE_CLASSES];
    int64_t now_ns;
    void (*ended)(void *context, const struct lac_running_operation *operation,
                  struct lac_exposed exposed);
    void *context;
};

/** The next operation begins, of a class below LAC_EXPOSURE_CLASSES: those that ended before it are
 *  told by ended(), with `user` and class as given. Zero, but for ended and context, before the first.
 *  @return LAC_OK, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_exposure_begin(struct lac_exposure *exposure,
                                                const struct lac_facts *facts, uint64_t slice,
                                                uint8_t op_class, uint32_t user);

/** The walk is at its end: tell those that still run, and free. */
void lac_exposure_end(struct lac_exposure *exposure);

#endif
