/*
 * Devices: span, busy time as the length of a union over all streams, the partition, and the gaps.
 *
 * One walk over the operations in order of start keeps the running end of nested unions (computing
 * kernels, + communication, + copies, + memsets). The length of what a class adds to the unions
 * above it is the time it was exposed, so that the partition sums to the span by construction.
 */

#include "analysis/diagnose/facts/operations.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { DEVICES_MAX = 1024 };

double lac_pct(int64_t part, int64_t whole)
{
    return whole == 0 ? (double)NAN : 100.0 * (double)part / (double)whole;
}

/** A union of intervals that come in order of start, kept as its length and its last end. */
struct running_union {
    int64_t end_ns;
    int64_t length_ns;
};

static inline void extend(struct running_union *set, int64_t start_ns, int64_t end_ns)
{
    if (end_ns <= set->end_ns) {
        return;
    }
    set->length_ns += end_ns - (start_ns > set->end_ns ? start_ns : set->end_ns);
    set->end_ns = end_ns;
}

/** The walk over one device. */
struct walk {
    struct lac_facts *facts;
    struct lac_device_facts *device_facts;
    struct lac_device_sets *sets;
    struct running_union nested[LAC_PART_IDLE];  /**< unions, each with all classes before it */
    struct running_union not_layout, not_strict; /**< everything but those kernels */
    int64_t last_end_ns;
    uint64_t last_slice; /**< the one that ends last so far */
    uint64_t gap_capacity;
    bool is_started;
};

static enum lac_status add_gap(struct walk *walk, uint64_t slice, int64_t start_ns)
{
    struct lac_analysis *analysis = walk->facts->analysis;
    if (!LAC_RESERVE(analysis->gaps, walk->gap_capacity, analysis->gap_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    struct lac_gap *gap = &analysis->gaps[analysis->gap_count++];
    *gap = (struct lac_gap){
        .start_ns = walk->last_end_ns,
        .dur_ns = start_ns - walk->last_end_ns,
        .ended_by = (uint32_t)slice,
        .opened_by = (uint32_t)walk->last_slice,
        .root = LAC_NONE,
        .wait = LAC_NONE,
        .batch = LAC_NONE,
        .signature = LAC_NONE,
        .device = (uint16_t)(walk->device_facts - analysis->devices),
        .cause = LAC_CAUSE_UNATTRIBUTED,
    };
    if (gap->dur_ns >= GAP_MIN_NS) {
        walk->device_facts->gap_count_10us++;
        walk->device_facts->gap_total_10us_ns += gap->dur_ns;
        if (gap->dur_ns >= walk->device_facts->gap_longest_ns) {
            walk->device_facts->gap_longest_ns = gap->dur_ns;
            walk->device_facts->gap_longest_at_ns = gap->start_ns;
        }
    }
    return LAC_OK;
}

/** Extend the unions and sets that a kernel, copy or memset belongs to. */
static enum lac_status add_work(struct walk *walk, uint64_t slice, int64_t start_ns, int64_t end_ns)
{
    struct lac_device_sets *sets = walk->sets;
    uint8_t kind = walk->facts->model->slices.kind[slice];
    const enum lac_partition partition = lac_operation_part(walk->facts, slice);
    bool is_layout = false;
    bool is_strict = false;
    enum lac_status status = LAC_OK;
    if (kind == LAC_SLICE_KERNEL) {
        const struct lac_name_class *names = lac_kernel_class_of(walk->facts, slice);
        is_layout = names->layout == LAC_LAYOUT_L;
        is_strict = names->is_strict_layout;
        status = lac_spans_add(names->is_comm ? &sets->comm : &sets->compute, start_ns, end_ns);
        if (!status) {
            status = lac_spans_add(&sets->kernels, start_ns, end_ns);
        }
    } else if (kind == LAC_SLICE_COPY) {
        status = lac_spans_add(&sets->copies, start_ns, end_ns);
    }
    for (int part = (int)partition; part < LAC_PART_IDLE; part++) {
        extend(&walk->nested[part], start_ns, end_ns);
    }
    if (!is_layout) {
        extend(&walk->not_layout, start_ns, end_ns);
    }
    if (!is_strict) {
        extend(&walk->not_strict, start_ns, end_ns);
    }
    return status ? status : lac_spans_add(&sets->busy, start_ns, end_ns);
}

static enum lac_status add_operation(struct walk *walk, uint64_t slice)
{
    const struct lac_slices *slices = &walk->facts->model->slices;
    int64_t start_ns = slices->start_ns[slice];
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    enum lac_status status = LAC_OK;
    if (!walk->is_started) {
        walk->is_started = true;
        walk->device_facts->first_ns = start_ns;
        walk->sets->first = (uint32_t)slice;
        walk->last_end_ns = start_ns;
        walk->last_slice = slice;
        for (int part = 0; part < LAC_PART_IDLE; part++) {
            walk->nested[part].end_ns = start_ns;
        }
        walk->not_layout.end_ns = start_ns;
        walk->not_strict.end_ns = start_ns;
    } else if (start_ns > walk->last_end_ns) {
        status = add_gap(walk, slice, start_ns);
    }
    if (!status) {
        status = add_work(walk, slice, start_ns, end_ns);
    }
    if (end_ns >= walk->last_end_ns) {
        walk->last_end_ns = end_ns;
        walk->last_slice = slice;
    }
    walk->device_facts->op_count++;
    return status;
}

static void finish_facts(struct walk *walk)
{
    struct lac_device_facts *device_facts = walk->device_facts;
    device_facts->span_ns = walk->last_end_ns - device_facts->first_ns;
    device_facts->busy_ns = walk->nested[LAC_PART_EXPOSED_MEMSET].length_ns;
    device_facts->idle_ns = device_facts->span_ns - device_facts->busy_ns;
    device_facts->busy_pct = lac_pct(device_facts->busy_ns, device_facts->span_ns);
    int64_t before_ns = 0;
    for (int part = 0; part < LAC_PART_IDLE; part++) {
        device_facts->partition_ns[part] = walk->nested[part].length_ns - before_ns;
        before_ns = walk->nested[part].length_ns;
    }
    device_facts->partition_ns[LAC_PART_IDLE] = device_facts->idle_ns;
    device_facts->not_computing_pct =
        lac_pct(device_facts->span_ns - device_facts->partition_ns[LAC_PART_COMPUTE],
                device_facts->span_ns);
    walk->sets->last = (uint32_t)walk->last_slice;
    walk->sets->layout_exposed_ns = device_facts->busy_ns - walk->not_layout.length_ns;
    walk->sets->strict_exposed_ns = device_facts->busy_ns - walk->not_strict.length_ns;
}

/** Append when the device executes something, but no computing kernel. */
static enum lac_status add_exposed(struct lac_facts *facts, uint32_t index,
                                   uint64_t *exposed_capacity)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_sets *sets = &facts->device_sets[index];
    struct lac_spans exposed = {0};
    uint64_t capacity = *exposed_capacity;
    enum lac_status status = lac_spans_subtract(&sets->busy, &sets->compute, &exposed);
    if (!status &&
        !LAC_RESERVE(analysis->exposed, capacity, analysis->exposed_count, exposed.count)) {
        status = LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < exposed.count && !status; i++) {
        analysis->exposed[analysis->exposed_count++] = (struct lac_exposed_span){
            exposed.at[i].start_ns, exposed.at[i].end_ns, (uint16_t)index};
    }
    *exposed_capacity = capacity;
    lac_spans_done(&exposed);
    return status;
}

static enum lac_status measure_device(struct lac_facts *facts, uint32_t index,
                                      uint64_t *gap_capacity)
{
    struct lac_analysis *analysis = facts->analysis;
    struct walk walk = {.facts = facts,
                        .device_facts = &analysis->devices[index],
                        .sets = &facts->device_sets[index],
                        .gap_capacity = *gap_capacity};
    walk.device_facts->first_gap = analysis->gap_count;
    struct lac_operations operations;
    enum lac_status status = lac_operations_init(&operations, facts, walk.device_facts->id);
    uint64_t slice = 0;
    while (!status && lac_operations_next(&operations, &slice)) {
        status = add_operation(&walk, slice);
    }
    lac_operations_done(&operations);
    *gap_capacity = walk.gap_capacity;
    if (status) {
        return status;
    }
    finish_facts(&walk);
    walk.device_facts->gap_count = analysis->gap_count - walk.device_facts->first_gap;
    for (uint64_t g = walk.device_facts->first_gap; g < analysis->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        status = lac_spans_add(&walk.sets->idle, gap->start_ns, gap->start_ns + gap->dur_ns);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct lac_device_facts *x = a;
    const struct lac_device_facts *y = b;
    return LAC_ORDER(x->id, y->id);
}

/** The distinct devices of tracks with GPU work. */
static enum lac_status list_devices(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    struct lac_analysis *analysis = facts->analysis;
    uint32_t capacity = 0;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        if (!(facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        int64_t id = model->tracks[t].device;
        uint32_t d = 0;
        while (d < analysis->device_count && analysis->devices[d].id != id) {
            d++;
        }
        if (d < analysis->device_count) {
            continue;
        }
        if (analysis->device_count == DEVICES_MAX) {
            return LAC_ERR_LIMIT;
        }
        if (!LAC_RESERVE(analysis->devices, capacity, analysis->device_count, 1)) {
            return LAC_ERR_NOMEM;
        }
        struct lac_device_facts device_facts = {.id = id};
        uint32_t known = lac_model_device_index(model, id);
        device_facts.name = known == LAC_NONE ? 0 : model->devices[known].name;
        analysis->devices[analysis->device_count++] = device_facts;
    }
    if (analysis->device_count > 1) {
        qsort(analysis->devices, analysis->device_count, sizeof(*analysis->devices), by_id);
    }
    return LAC_OK;
}

enum lac_status lac_devices_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    analysis->main_device = LAC_NONE;
    enum lac_status status = list_devices(facts);
    if (status) {
        return status == LAC_ERR_LIMIT
                   ? lac_fail(facts->reterr, status, 0,
                              "more than %d devices in one trace: split it by device", DEVICES_MAX)
                   : status;
    }
    uint32_t count = analysis->device_count;
    facts->device_sets = calloc(count ? count : 1, sizeof(*facts->device_sets));
    if (facts->device_sets == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t gap_capacity = 0;
    uint64_t exposed_capacity = 0;
    int64_t most_ns = -1;
    for (uint32_t d = 0; d < count; d++) {
        status = measure_device(facts, d, &gap_capacity);
        status = status ? status : add_exposed(facts, d, &exposed_capacity);
        if (status) {
            return status;
        }
        if (analysis->devices[d].partition_ns[LAC_PART_COMPUTE] > most_ns) {
            most_ns = analysis->devices[d].partition_ns[LAC_PART_COMPUTE];
            analysis->main_device = d;
        }
    }
    return LAC_OK;
}
