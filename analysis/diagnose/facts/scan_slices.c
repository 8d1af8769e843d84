/* One pass over all slices: which names there are, the kernels' totals, who launches. */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/reserve.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_LOOKED_UP = 0xff };

enum lac_api_class lac_api_class_of(const struct lac_facts *facts, uint32_t id)
{
    uint8_t api_class = facts->api_class[id];
    if (api_class == NOT_LOOKED_UP) {
        const struct lac_strings *strings = &facts->model->strings;
        api_class = (uint8_t)lac_names_api_class_with(facts->names, lac_strings_get(strings, id),
                                                      lac_strings_length(strings, id));
        facts->api_class[id] = api_class;
    }
    return (enum lac_api_class)api_class;
}

enum lac_host_class lac_host_class_of(const struct lac_facts *facts, uint32_t id)
{
    uint8_t host_class = facts->host_class[id];
    if (host_class == NOT_LOOKED_UP) {
        const struct lac_strings *strings = &facts->model->strings;
        host_class = (uint8_t)lac_names_host_class_with(facts->names, lac_strings_get(strings, id),
                                                        lac_strings_length(strings, id));
        facts->host_class[id] = host_class;
    }
    return (enum lac_host_class)host_class;
}

const struct lac_name_class *lac_kernel_class_of(const struct lac_facts *facts, uint64_t slice)
{
    uint32_t row = facts->kernel_row[facts->model->slices.name[slice]];
    return &facts->analysis->kernels[row].names;
}

static enum lac_status kernel_row_add(struct lac_facts *facts, uint32_t name, uint32_t *ret_row)
{
    struct lac_analysis *analysis = facts->analysis;
    if (!LAC_RESERVE(analysis->kernels, facts->kernel_capacity, analysis->kernel_name_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    uint32_t row = analysis->kernel_name_count++;
    struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
    *kernel_facts = (struct lac_kernel_facts){.name = name,
                                              .longest_slice = LAC_NONE,
                                              .first_slice = LAC_NONE,
                                              .min_ns = INT64_MAX,
                                              .pct_of_peak = (double)NAN};
    const struct lac_strings *strings = &facts->model->strings;
    lac_names_classify_with(facts->names, lac_strings_get(strings, name),
                            lac_strings_length(strings, name), &kernel_facts->names);
    const uint32_t raw_name = lac_model_raw_name(facts->model, name);
    kernel_facts->names.is_strict_layout = lac_names_is_strict_layout(
        lac_strings_get(strings, raw_name), lac_strings_length(strings, raw_name));
    facts->kernel_row[name] = row;
    *ret_row = row;
    return LAC_OK;
}

static enum lac_status count_kernel(struct lac_facts *facts, uint64_t slice)
{
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t row = facts->kernel_row[slices->name[slice]];
    if (row == LAC_NONE) {
        enum lac_status status = kernel_row_add(facts, slices->name[slice], &row);
        if (status) {
            return status;
        }
    }
    struct lac_kernel_facts *kernel_facts = &facts->analysis->kernels[row];
    int64_t dur_ns = slices->dur_ns[slice];
    if (kernel_facts->first_slice == LAC_NONE ||
        slices->start_ns[slice] < slices->start_ns[kernel_facts->first_slice]) {
        kernel_facts->first_slice = (uint32_t)slice;
    }
    kernel_facts->count++;
    kernel_facts->short_count += dur_ns < KERNEL_SHORT_NS;
    kernel_facts->total_ns = lac_sum_ns(kernel_facts->total_ns, dur_ns);
    if (dur_ns < kernel_facts->min_ns) {
        kernel_facts->min_ns = dur_ns;
    }
    if (kernel_facts->longest_slice == LAC_NONE || dur_ns > kernel_facts->max_ns) {
        kernel_facts->max_ns = dur_ns;
        kernel_facts->longest_slice = (uint32_t)slice;
    }
    return LAC_OK;
}

/** Launches without their operation and operations without their launch, between those that have both:
 *  at the ends of a recording the other one lies outside. */
struct pairing {
    uint64_t alone; /**< launches since the last that has its operation */
    bool has_pair;
};

static void count_pair(struct lac_facts *facts, uint64_t slice, struct pairing *pairing)
{
    const struct lac_slices *slices = &facts->model->slices;
    bool has_pair = slices->link[slice] != LAC_NONE;
    if (slices->corr == NULL || slices->corr[slice] == 0) {
        return;
    }
    if (slices->kind[slice] != LAC_SLICE_API) {
        facts->pairs.operations++;
        facts->pairs.operations_alone += !has_pair && pairing->has_pair;
    } else if (lac_api_class_of(facts, slices->name[slice]) == LAC_API_LAUNCH &&
               strstr(lac_model_str(facts->model, slices->name[slice]), "Graph") == NULL) {
        facts->pairs.launches++;
        facts->pairs.launches_alone += has_pair ? pairing->alone : 0;
        pairing->alone = has_pair ? 0 : pairing->alone + 1;
    }
    pairing->has_pair = pairing->has_pair || has_pair;
}

/** What the slices of one track make it: a stream with work, a thread that launches or trains. */
static enum lac_status scan_track(struct lac_facts *facts, uint32_t track)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    uint8_t flags = 0;
    struct pairing pairing = {.has_pair = false};
    for (uint64_t i = model->tracks[track].first; i < end; i++) {
        uint8_t kind = slices->kind[i];
        if (kind == LAC_SLICE_API || lac_is_gpu_work(kind)) {
            count_pair(facts, i, &pairing);
        }
        if (kind == LAC_SLICE_KERNEL) {
            enum lac_status status = count_kernel(facts, i);
            if (status) {
                return status;
            }
            flags |= LAC_TRACK_HAS_GPU;
        } else if (kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) {
            flags |= LAC_TRACK_HAS_GPU;
        } else if (kind == LAC_SLICE_API) {
            facts->has_api = true;
            const uint32_t work = slices->link[i];
            if (work != LAC_NONE) {
                flags |= slices->kind[work] == LAC_SLICE_KERNEL
                             ? LAC_TRACK_LAUNCHES | LAC_TRACK_COMPUTES
                             : LAC_TRACK_LAUNCHES;
            }
        } else if (kind == LAC_SLICE_PYTHON) {
            facts->has_python = true;
        } else if (kind == LAC_SLICE_OP || kind == LAC_SLICE_RANGE || kind == LAC_SLICE_OTHER) {
            facts->has_operators = facts->has_operators || kind == LAC_SLICE_OP;
            enum lac_host_class host_class = lac_host_class_of(facts, slices->name[i]);
            if (host_class == LAC_HOST_LOADER_WAIT || host_class == LAC_HOST_STEP) {
                flags |= LAC_TRACK_TRAINS;
            }
            if (host_class == LAC_HOST_BACKWARD || host_class == LAC_HOST_OPTIMIZER) {
                facts->has_backward = true;
            }
        }
    }
    facts->track_flags[track] = flags;
    return LAC_OK;
}

/** The string of the ranges that `lacuna run --step` says are the steps, or 0. */
static uint32_t named_step(const struct lac_facts *facts)
{
    const char *name = lac_setting_line(facts, "settings", "step_named");
    return lac_strings_find(&facts->model->strings, name, strlen(name));
}

enum lac_status lac_scan_slices(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    size_t name_count = model->strings.count ? model->strings.count : 1;
    size_t track_count = model->track_count ? model->track_count : 1;
    facts->api_class = malloc(name_count);
    facts->host_class = malloc(name_count);
    facts->other_work = malloc(name_count);
    facts->step_numbers = calloc(name_count, 1);
    facts->kernel_row = malloc(name_count * sizeof(*facts->kernel_row));
    facts->track_flags = calloc(track_count, 1);
    if (facts->api_class == NULL || facts->host_class == NULL || facts->other_work == NULL ||
        facts->step_numbers == NULL || facts->kernel_row == NULL || facts->track_flags == NULL) {
        return LAC_ERR_NOMEM;
    }
    memset(facts->api_class, NOT_LOOKED_UP, name_count);
    memset(facts->host_class, NOT_LOOKED_UP, name_count);
    memset(facts->other_work, NOT_LOOKED_UP, name_count);
    memset(facts->kernel_row, 0xff, name_count * sizeof(*facts->kernel_row));
    facts->named_step = named_step(facts);
    facts->host_class[facts->named_step] =
        facts->named_step != 0 ? LAC_HOST_STEP_LIKE : NOT_LOOKED_UP;
    for (uint32_t track = 0; track < model->recorded_track_count; track++) {
        if (model->tracks[track].kind == LAC_TRACK_COUNTER ||
            model->tracks[track].kind == LAC_TRACK_STACKS ||  /* what was sampled costs next to
                                                                nothing, and is no call */
            model->tracks[track].kind == LAC_TRACK_PROFILE) { /* and this has no times */
            continue;
        }
        enum lac_status status = scan_track(facts, track);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}
