/* What Nsight Compute measured of launches, put to the kernels of the trace: by name and order, as
 * the two runs of the job have no clock in common. */

#include "analysis/import/join/join_private.h"
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/order.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEMPLATE_BYTES_MAX = 65536,
    BASES_MAX = 10000000, /**< names that are looked at for those that no kernel has: 0.5 s */
};

/** A kernel under the name by which it is matched. */
struct kernel {
    uint32_t name;
    uint32_t slice;
    int64_t start_ns;
};

struct kernels {
    struct kernel *at;
    uint64_t count;
};

static int compare_kernels(const void *a, const void *b)
{
    const struct kernel *const x = a;
    const struct kernel *const y = b;
    if (x->name != y->name) {
        return x->name < y->name ? -1 : 1;
    }
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/** Whether the track's kernels are asked for. */
static bool is_wanted(const struct lac_track *track, enum lac_track_kind kind, uint64_t first)
{
    return track->kind == kind && track->count > 0 && track->first >= first;
}

/** Kernels of tracks of a kind from slice `first` on, by name, then by time.
 *  @return false: no memory */
static bool collect(const struct lac_model *model, enum lac_track_kind kind, uint64_t first,
                    struct kernels *ret_kernels)
{
    uint64_t most = 0;
    for (uint32_t t = 0; t < model->track_count; t++) {
        most += is_wanted(&model->tracks[t], kind, first) ? model->tracks[t].count : 0;
    }
    *ret_kernels = (struct kernels){.at = malloc((most + 1) * sizeof(struct kernel))};
    if (ret_kernels->at == NULL) {
        return false;
    }
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *const track = &model->tracks[t];
        for (uint64_t i = 0; is_wanted(track, kind, first) && i < track->count; i++) {
            const uint64_t slice = track->first + i;
            if (model->slices.kind[slice] == LAC_SLICE_KERNEL) {
                ret_kernels->at[ret_kernels->count++] = (struct kernel){
                    model->slices.name[slice], (uint32_t)slice, model->slices.start_ns[slice]};
            }
        }
    }
    qsort(ret_kernels->at, ret_kernels->count, sizeof(struct kernel), compare_kernels);
    return true;
}

/* ---- names ---- */

/** "void a::b<int>(float*)" without its return type, template and parameters: "a::b". */
static const char *base_of(const char *name, size_t *ret_length)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *at = strncmp(name, "void ", 5) == 0 ? name + 5 : name;
    const char *const base = at;
    while (*at != '\0' && *at != '<') {
        if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
            at += sizeof(anonymous) - 1;
        } else if (*at == '(') {
            break;
        } else {
            at++;
        }
    }
    *ret_length = (size_t)(at - base);
    return base;
}

static bool has_same_base(const char *a, const char *b)
{
    size_t a_length = 0;
    size_t b_length = 0;
    const char *const a_base = base_of(a, &a_length);
    const char *const b_base = base_of(b, &b_length);
    return a_length == b_length && a_length > 0 && memcmp(a_base, b_base, a_length) == 0;
}

/** The first kernel of a name, or the end. */
static uint64_t find(const struct kernels *kernels, uint32_t name)
{
    uint64_t low = 0;
    LAC_BISECT(low, kernels->count, middle, kernels->at[middle].name < name);
    return low;
}

/**
 * The first kernel of the trace that is called so; where none is, of the one name whose function is
 * the same: ncu may write names without templates and parameters.
 */
static uint64_t find_name(const struct lac_model *model, const struct kernels *kernels,
                          uint32_t name, uint64_t *bases)
{
    const char *const text = lac_model_str(model, name);
    uint64_t at = find(kernels, name);
    uint64_t found = kernels->count;
    if (at < kernels->count && kernels->at[at].name == name) {
        return at;
    }
    for (at = 0; at < kernels->count && *bases < BASES_MAX;
         at = find(kernels, kernels->at[at].name + 1)) {
        ++*bases;
        if (has_same_base(text, lac_model_str(model, kernels->at[at].name))) {
            if (found < kernels->count) {
                return kernels->count; /* two instances of a template: nobody knows which */
            }
            found = at;
        }
    }
    return found;
}

/* ---- arguments ---- */

/** `{"grid":...}` and `{"FLOP per second":...}` as one template; 0: it would be too long. */
static enum lac_status both(struct lac_model *model, uint32_t ours, uint32_t theirs,
                            uint32_t *ret_both)
{
    const char *const a = lac_model_str(model, ours);
    const char *const b = lac_model_str(model, theirs);
    const size_t a_length = strlen(a);
    const size_t b_length = strlen(b);
    enum lac_status status = LAC_ERR_NOMEM;
    *ret_both = a_length < 3 ? theirs : 0;
    if (a_length < 3 || a_length + b_length > TEMPLATE_BYTES_MAX) {
        return LAC_OK;
    }
    char *const text = malloc(a_length + b_length);
    if (text != NULL) {
        memcpy(text, a, a_length);
        text[a_length - 1] = ',';
        memcpy(text + a_length, b + 1, b_length - 1);
        status = lac_strings_intern(&model->strings, text, a_length + b_length - 1, ret_both);
    }
    free(text);
    return status;
}

static uint32_t numbers_of(const struct lac_model *model, uint64_t slice)
{
    const char *const text = lac_model_str(model, model->slices.args[slice]);
    return lac_args_number_count(text, strlen(text));
}

static void take_numbers(struct lac_model *model, uint64_t slice)
{
    const uint32_t count = numbers_of(model, slice);
    if (count > 0) {
        memcpy(model->arg_numbers + model->arg_number_count,
               model->arg_numbers + model->slices.arg_num[slice], count * sizeof(int64_t));
    }
    model->arg_number_count += count;
}

/** The arguments of a launch behind those of the kernel. There is room for the numbers. */
static enum lac_status put(struct lac_model *model, uint64_t kernel, uint64_t launch)
{
    const uint64_t first = model->arg_number_count;
    uint32_t template = 0;
    enum lac_status status =
        both(model, model->slices.args[kernel], model->slices.args[launch], &template);
    if (status == LAC_OK && template != 0) {
        take_numbers(model, kernel);
        take_numbers(model, launch);
        model->slices.args[kernel] = template;
        model->slices.arg_num[kernel] = (uint32_t)first;
    }
    return status;
}

/* ---- the whole ---- */

/** Which kernel each launch is, at the launch's place; LAC_NONE where none is. */
static uint64_t match(const struct lac_model *model, const struct kernels *launches,
                      const struct kernels *kernels, uint32_t *matches)
{
    uint64_t matched = 0;
    uint64_t at = 0;
    uint64_t bases = 0;
    for (uint64_t i = 0; i < launches->count; i++) {
        const bool is_first = i == 0 || launches->at[i].name != launches->at[i - 1].name;
        if (is_first) {
            at = find_name(model, kernels, launches->at[i].name, &bases);
        } else if (at < kernels->count) {
            const uint32_t name = kernels->at[at].name;
            at = at + 1 < kernels->count && kernels->at[at + 1].name == name ? at + 1
                                                                             : kernels->count;
        }
        matches[i] = at < kernels->count ? kernels->at[at].slice : LAC_NONE;
        matched += matches[i] != LAC_NONE;
    }
    return matched;
}

static void tell(struct lac_model *model, uint64_t launches, uint64_t matched)
{
    if (matched > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "joined_measures", matched, 0,
                         "Kernels of the trace carry what Nsight Compute measured of the launch of "
                         "the same name, in order.");
    }
    if (matched < launches) {
        lac_model_report(model, LAC_REPORT_INFO, "measures_without_kernel", launches - matched, 0,
                         "Launches that Nsight Compute measured have no kernel of their name in "
                         "the trace, or the trace has fewer of it.");
    }
}

static enum lac_status put_all(struct lac_model *model, const struct kernels *launches,
                               const uint32_t *matches)
{
    uint64_t numbers = 0;
    for (uint64_t i = 0; i < launches->count; i++) {
        if (matches[i] != LAC_NONE) {
            numbers += numbers_of(model, matches[i]) + numbers_of(model, launches->at[i].slice);
        }
    }
    enum lac_status status = LAC_ERR_LIMIT;
    if (model->arg_number_count + numbers <= UINT32_MAX) {
        status = lac_join_widen((void *)&model->arg_numbers, model->arg_number_count, numbers,
                                sizeof(*model->arg_numbers));
    }
    for (uint64_t i = 0; i < launches->count && status == LAC_OK; i++) {
        if (matches[i] != LAC_NONE) {
            status = put(model, matches[i], launches->at[i].slice);
        }
    }
    return status;
}

enum lac_status lac_join_measures(struct lac_model *into, uint64_t first)
{
    struct kernels launches = {NULL, 0};
    struct kernels kernels = {NULL, 0};
    uint32_t *matches = NULL;
    enum lac_status status = LAC_ERR_NOMEM;

    if (collect(into, LAC_TRACK_STREAM, 0, &kernels) &&
        collect(into, LAC_TRACK_PROFILE, first, &launches)) {
        matches = malloc((launches.count + 1) * sizeof(*matches));
    }
    if (matches != NULL) {
        tell(into, launches.count, match(into, &launches, &kernels, matches));
        status = put_all(into, &launches, matches);
    }
    free(matches);
    free(launches.at);
    free(kernels.at);
    return status;
}
