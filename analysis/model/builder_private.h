#ifndef LAC_ANALYSIS_MODEL_BUILDER_PRIVATE_H
#define LAC_ANALYSIS_MODEL_BUILDER_PRIVATE_H

/* What builder.c collects and the finish_*.c files work on. Private to analysis/model. */

#include "analysis/crew/crew.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"

/** A flow end as recorded. */
struct lac_flow_end {
    uint64_t id;
    int64_t ts_ns;
    uint32_t name;
    uint32_t track;
    uint32_t slice; /**< found by finish, or LAC_NONE */
    uint32_t order; /**< place in the input */
    char step;      /**< 's', 't' or 'f' */
    bool bind_enclosing;
};

/** Two parts are LAC_TIME_MAX_NS together: a trace of 52 days or less is in two neighbors. */
#define LAC_CENSUS_PART_BITS 52
#define LAC_CENSUS_PARTS     (1U << (64 - LAC_CENSUS_PART_BITS))

struct lac_time_part {
    uint64_t count;
    int64_t first_ns; /**< of the `count` times */
};

struct lac_builder {
    struct lac_model *model;

    uint32_t *track; /**< of each slice */
    uint64_t slice_capacity;
    uint64_t arg_number_capacity;

    uint32_t *sample_track;
    uint64_t sample_capacity;

    struct lac_flow_end *flow_ends;
    uint64_t flow_end_count;
    uint64_t flow_end_capacity;

    uint64_t process_capacity;
    uint64_t track_capacity;
    uint64_t device_capacity;
    uint64_t config_capacity;
    uint64_t copy_capacity;
    uint64_t loader_capacity;
    uint64_t alloc_capacity;
    struct lac_index process_index;
    struct lac_index track_index;
    struct lac_index config_index;

    struct lac_crew *crew; /**< helps finish(), or NULL */
    bool is_to_demangle;
    bool has_time;
    int64_t first_ns;    /**< smallest time seen; INT64_MAX when none */
    int64_t last_ns;     /**< largest end seen; INT64_MAX also for sums that overflow */
    int64_t saw_last_ns; /**< largest time reported with lac_builder_saw_time() */
    bool has_origin;
    int64_t origin_ns;                                 /**< once asked for */
    struct lac_time_part time_parts[LAC_CENSUS_PARTS]; /**< in the order of time */
};

/** finish_order.c: sort the slices by (track, start, -dur, input) and drop what is out of range.
 *  Sets first and count of the tracks. Times are absolute before and relative after. */
LAC_MUST_USE enum lac_status lac_finish_order(struct lac_builder *builder, int64_t t0_ns);

/** finish_order.c: the same for counter samples. */
LAC_MUST_USE enum lac_status lac_finish_samples(struct lac_builder *builder, int64_t t0_ns);

/** finish_sort.c: stable sort of `order` by (start, -dur) of the slices it names. `scratch` has
 *  `count` entries. Linear on sorted input. */
void lac_sort_by_time(uint32_t *order, uint32_t *scratch, uint64_t count, const int64_t *start_ns,
                      const int64_t *dur_ns);

/** finish_sort.c: stable radix sort of keys in their upper 32 bits. `scratch`
 *  has `count` entries. */
void lac_sort_by_upper(uint64_t *keys, uint64_t *scratch, uint64_t count);

/** finish_bind.c: fill the link column from correlation ids. */
LAC_MUST_USE enum lac_status lac_finish_bind(struct lac_model *model);

/** finish_flows.c: match the recorded arrow ends. Ends hold absolute times. */
LAC_MUST_USE enum lac_status lac_finish_flows(struct lac_builder *builder, int64_t t0_ns);

#endif
