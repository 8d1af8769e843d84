/*
 * Where no range names the optimizer, its updates do, when it makes them one by one: dozens of
 * operators in a row, outside of the backward pass, that scale and add tensors in place and do
 * nothing else. No layer looks like that. Found after the steps: these rows do not say where steps
 * end.
 */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <string.h>

enum { UPDATES_MIN = 50 };

/** What operators of an update do: in place, or on their way to it. */
enum update { UPDATE_NONE = 0, UPDATE_HELPS, UPDATE_IN_PLACE };

static enum update update_of(const char *name)
{
    static const char *const in_place[] = {"mul_",     "add_",     "sub_",  "div_",
                                           "addcmul_", "addcdiv_", "lerp_", "sqrt_"};
    static const char *const helping[] = {"mul", "add", "sub", "div", "sqrt", "maximum"};
    if (strncmp(name, "aten::", 6) != 0) {
        return UPDATE_NONE;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(in_place); i++) {
        if (strcmp(name + 6, in_place[i]) == 0) {
            return UPDATE_IN_PLACE;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(helping); i++) {
        if (strcmp(name + 6, helping[i]) == 0) {
            return UPDATE_HELPS;
        }
    }
    return UPDATE_NONE;
}

struct row {
    uint64_t first, count, in_place;
    int64_t end_ns;
};

static enum lac_status close_row(struct lac_facts *facts, uint32_t track, struct row *row)
{
    struct lac_marks *marks = &facts->optimizer_marks;
    struct row ended = *row;
    row->count = row->in_place = 0;
    if (ended.count < UPDATES_MIN || ended.in_place * 2 < ended.count) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(marks->at, marks->capacity, marks->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    int64_t start_ns = facts->model->slices.start_ns[ended.first];
    marks->at[marks->count++] =
        (struct lac_mark){start_ns, ended.end_ns - start_ns, (uint32_t)ended.first, track};
    return LAC_OK;
}

/** Rows of updates among the outermost operators of a thread. */
static enum lac_status find_rows(struct lac_facts *facts, uint32_t track)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    uint64_t end = model->tracks[track].first + model->tracks[track].count;
    struct row row = {.count = 0};
    int64_t outer_ns = INT64_MIN; /* the outermost operator ends then */
    enum lac_status status = LAC_OK;
    for (uint64_t i = model->tracks[track].first; i < end && !status; i++) {
        if (slices->kind[i] != LAC_SLICE_OP || slices->start_ns[i] < outer_ns) {
            continue;
        }
        outer_ns = slices->start_ns[i] + slices->dur_ns[i];
        enum update update = update_of(lac_model_str(model, slices->name[i]));
        if (update == UPDATE_NONE) {
            status = close_row(facts, track, &row);
            continue;
        }
        row.first = row.count == 0 ? i : row.first;
        row.end_ns = outer_ns;
        row.count++;
        row.in_place += update == UPDATE_IN_PLACE;
    }
    return status ? status : close_row(facts, track, &row);
}

enum lac_status lac_optimizer_infer(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    enum lac_status status = LAC_OK;
    if (facts->optimizer_marks.count > 0 || !facts->has_backward || !facts->has_operators) {
        return LAC_OK;
    }
    for (uint32_t t = 0; t < model->recorded_track_count && !status; t++) {
        bool launches = model->tracks[t].kind == LAC_TRACK_THREAD &&
                        (facts->track_flags[t] & LAC_TRACK_LAUNCHES) != 0;
        status = launches ? find_rows(facts, t) : LAC_OK;
    }
    facts->is_optimizer_inferred = facts->optimizer_marks.count > 0;
    lac_marks_sort(&facts->optimizer_marks);
    return status;
}

bool lac_in_inferred_optimizer(const struct lac_facts *facts, uint64_t slice)
{
    const struct lac_marks *marks = &facts->optimizer_marks;
    int64_t start_ns = facts->model->slices.start_ns[slice];
    uint64_t low = 0;
    LAC_BISECT(low, facts->is_optimizer_inferred ? marks->count : 0, middle,
               marks->at[middle].start_ns <= start_ns);
    const struct lac_mark *mark = low > 0 ? &marks->at[low - 1] : NULL;
    return mark != NULL && start_ns < mark->start_ns + mark->dur_ns &&
           lac_model_track_of(facts->model, slice) == mark->track;
}
