/* Copies by direction and kind of memory, and how much of them no kernel hid. */

#include "analysis/diagnose/facts/facts.h"

#include <stdint.h>
#include <stdlib.h>

enum { GROUPS_MAX = 6 * 6 * 6 };

/** One row per (kind, source, destination), in that order; unused rows have count 0. */
struct groups {
    struct lac_copy_facts at[GROUPS_MAX];
};

static struct lac_copy_facts *group_of(struct groups *groups, const struct lac_copy *copy)
{
    uint32_t kind = copy->copy_kind < 6 ? copy->copy_kind : 0;
    uint32_t src = copy->src < 6 ? copy->src : 0;
    uint32_t dst = copy->dst < 6 ? copy->dst : 0;
    struct lac_copy_facts *copy_facts = &groups->at[(kind * 6 + src) * 6 + dst];
    copy_facts->kind = (enum lac_copy_kind)kind;
    copy_facts->src = (enum lac_memory_kind)src;
    copy_facts->dst = (enum lac_memory_kind)dst;
    return copy_facts;
}

/** Where kernels run, and the sums that say how much of any stretch they cover. */
struct cover {
    const struct lac_spans *spans;
    int64_t *prefix;
};

/** Length of [start, end) that no span covers. O(log spans): copies may be as long as the trace. */
static int64_t uncovered_ns(const struct cover *cover, int64_t start_ns, int64_t end_ns)
{
    return end_ns - start_ns - lac_spans_length_up_to(cover->spans, cover->prefix, end_ns) +
           lac_spans_length_up_to(cover->spans, cover->prefix, start_ns);
}

static void add_copy(struct groups *groups, const struct lac_slices *slices, uint64_t slice,
                     const struct lac_copy *copy, int64_t exposed_ns)
{
    struct lac_copy_facts *copy_facts = group_of(groups, copy);
    int64_t dur_ns = slices->dur_ns[slice];
    if (copy_facts->count == 0 || dur_ns > slices->dur_ns[copy_facts->longest_slice]) {
        copy_facts->longest_slice = (uint32_t)slice;
    }
    copy_facts->count++;
    copy_facts->total_ns = lac_sum_ns(copy_facts->total_ns, dur_ns);
    copy_facts->exposed_ns = exposed_ns == LAC_UNKNOWN_NS
                                 ? LAC_UNKNOWN_NS
                                 : lac_sum_ns(copy_facts->exposed_ns, exposed_ns);
    copy_facts->bytes = copy->bytes < 0 || copy_facts->bytes == LAC_UNKNOWN_NS
                            ? LAC_UNKNOWN_NS
                            : lac_sum_ns(copy_facts->bytes, copy->bytes);
}

/** @param kernels NULL: no times, what was exposed is not known */
static void measure_track(const struct lac_facts *facts, uint32_t track,
                          const struct cover *kernels, struct groups *groups)
{
    static const struct lac_copy unknown = {.bytes = -1};
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    for (uint64_t i = model->tracks[track].first; i < end; i++) {
        if (slices->kind[i] != LAC_SLICE_COPY) {
            continue;
        }
        uint32_t row = slices->detail[i];
        bool is_known = row != LAC_NONE && row < model->copy_count;
        int64_t start_ns = slices->start_ns[i];
        int64_t exposed_ns = kernels != NULL
                                 ? uncovered_ns(kernels, start_ns, start_ns + slices->dur_ns[i])
                                 : LAC_UNKNOWN_NS;
        add_copy(groups, slices, i, is_known ? &model->copies[row] : &unknown, exposed_ns);
    }
}

enum lac_status lac_copies_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct groups *groups = calloc(1, sizeof(*groups));
    if (groups == NULL) {
        return LAC_ERR_NOMEM;
    }
    struct cover *covers = calloc(analysis->device_count + 1, sizeof(*covers));
    enum lac_status status = covers != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t d = 0; d < analysis->device_count && !status; d++) {
        covers[d].spans = &facts->device_sets[d].kernels;
        covers[d].prefix = lac_spans_prefix(covers[d].spans);
        status = covers[d].prefix != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    for (uint32_t t = 0; t < facts->model->recorded_track_count && !status; t++) {
        if (!(facts->track_flags[t] & LAC_TRACK_HAS_GPU)) {
            continue;
        }
        uint32_t d = 0;
        while (d < analysis->device_count &&
               analysis->devices[d].id != facts->model->tracks[t].device) {
            d++;
        }
        measure_track(facts, t, d < analysis->device_count ? &covers[d] : NULL, groups);
    }
    for (uint32_t d = 0; covers != NULL && d < analysis->device_count; d++) {
        free(covers[d].prefix);
    }
    free(covers);
    uint32_t count = 0;
    for (int i = 0; i < GROUPS_MAX; i++) {
        count += groups->at[i].count > 0;
    }
    if (!status && count > 0) {
        analysis->copies = calloc(count, sizeof(*analysis->copies));
        status = analysis->copies != NULL ? LAC_OK : LAC_ERR_NOMEM;
    }
    for (int i = 0; i < GROUPS_MAX && !status; i++) {
        if (groups->at[i].count > 0) {
            analysis->copies[analysis->copy_count++] = groups->at[i];
        }
    }
    free(groups);
    return status;
}
