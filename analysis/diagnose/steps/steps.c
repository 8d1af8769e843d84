/*
 * Where the steps are. In this order: ranges that the user named, ranges named ProfilerStep, other
 * ranges whose name says step or whose arguments number one, from one wait for data to the next, from
 * one optimizer step to the next; without any of these by the optimizer's kernels (step_optimizer.c),
 * at last by what repeats (step_period.c).
 */

#include "analysis/diagnose/steps/steps.h"

#include "analysis/diagnose/steps/step_pace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/**
 * Steps whose marks contain each other: a range was pushed for each and never popped, so that all end
 * with the recording. Each begins a step; when the last one ended is not known, and it is counted.
 */
static void take_starts(struct lac_facts *facts, uint32_t first)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_step *steps = analysis->steps;
    uint32_t count = analysis->step_count;
    for (uint32_t i = first; i + 1 < count; i++) {
        bool contains =
            steps[i].start_ns < steps[i + 1].start_ns &&
            steps[i].start_ns + steps[i].dur_ns >= steps[i + 1].start_ns + steps[i + 1].dur_ns;
        bool is_beside = lac_model_track_of(facts->model, steps[i].slice) !=
                         lac_model_track_of(facts->model, steps[i + 1].slice);
        if (!contains || is_beside) {
            return;
        }
    }
    if (count < first + 3) { /* a step in another one is no sign */
        return;
    }
    for (uint32_t i = first; i + 1 < count; i++) {
        steps[i].dur_ns = steps[i + 1].start_ns - steps[i].start_ns;
    }
    steps[count - 1].left_out = LAC_STEP_UNTIMED;
}

static bool is_inside(const struct lac_facts *facts, const struct lac_step *inner,
                      const struct lac_step *outer)
{
    const struct lac_model *model = facts->model;
    return inner->start_ns >= outer->start_ns &&
           inner->start_ns + inner->dur_ns <= outer->start_ns + outer->dur_ns &&
           model->tracks[lac_model_track_of(model, inner->slice)].process ==
               model->tracks[lac_model_track_of(model, outer->slice)].process;
}

/** A step that people marked twice, one range around the other, is one. Ranges that hold several others
 *  are no steps, and stay what they are. */
static void join_pairs(struct lac_facts *facts, uint32_t first)
{
    struct lac_step *steps = facts->analysis->steps;
    const uint32_t count = facts->analysis->step_count;
    uint32_t kept = first;
    bool has_inner = false;
    for (uint32_t i = first + 1; i < count; i++) {
        const bool is_inner = is_inside(facts, &steps[i], &steps[i - 1 - has_inner]);
        if (is_inner && has_inner) {
            return;
        }
        has_inner = is_inner;
    }
    for (uint32_t i = first + 1; i < count; i++) {
        if (!is_inside(facts, &steps[i], &steps[kept])) {
            steps[++kept] = steps[i];
        }
    }
    facts->analysis->step_count = count > first ? kept + 1 : count;
}

/**
 * Marks that leave out the waiting for data (a loop body only) would hide it: where they leave holes,
 * a step lasts until the next one begins. How long the last one is, nothing tells then.
 */
static void close_holes(struct lac_analysis *analysis, uint32_t first)
{
    struct lac_step *steps = analysis->steps;
    const uint32_t count = analysis->step_count;
    int64_t hole_ns = INT64_MAX;
    for (uint32_t i = first; i + 1 < count; i++) {
        const int64_t to_next_ns = steps[i + 1].start_ns - steps[i].start_ns;
        const int64_t behind_ns = to_next_ns - steps[i].dur_ns;
        hole_ns = behind_ns < hole_ns ? behind_ns : hole_ns;
        if (behind_ns > 0) {
            steps[i].dur_ns = to_next_ns;
        }
    }
    const bool is_short =
        count >= first + 3 && steps[count - 1].dur_ns < steps[count - 2].dur_ns / 2;
    const bool has_no_hole =
        count > first + STEPS_MIN &&
        (double)hole_ns > MEANS_OFF_MAX / 4.0 * (double)steps[count - 2].dur_ns;
    if (is_short || has_no_hole) {
        steps[count - 1].left_out = LAC_STEP_UNTIMED;
    }
}

/** The number at the end of "ProfilerStep#12". */
static uint64_t number_in(const char *name)
{
    const char *const at = strrchr(name, '#');
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

/** Whether a wait for data of that thread begins in [from, to). `at` goes through the waits. */
static bool has_wait_in(const struct lac_marks *waits, uint32_t track, int64_t from_ns,
                        int64_t to_ns, uint64_t *at)
{
    while (*at < waits->count && waits->at[*at].start_ns < from_ns) {
        ++*at;
    }
    for (uint64_t i = *at; i < waits->count && waits->at[i].start_ns < to_ns; i++) {
        if (waits->at[i].track == track) {
            return true;
        }
    }
    return false;
}

/** Whether PyTorch's marks were set by hand and leave out the wait before a step: its own follow each
 *  other without a hole. Most of them do, of one thread and numbered in a row. */
static bool leave_out_waits(const struct lac_facts *facts, const struct lac_marks *marks)
{
    const struct lac_model *model = facts->model;
    uint64_t holes = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i + 1 < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        const struct lac_mark *next = &marks->at[i + 1];
        const char *name = lac_model_str(model, model->slices.name[mark->slice]);
        const char *next_name = lac_model_str(model, model->slices.name[next->slice]);
        if (mark->track != next->track || number_in(next_name) != number_in(name) + 1) {
            return false;
        }
        holes += has_wait_in(&facts->wait_marks, mark->track, mark->start_ns + mark->dur_ns,
                             next->start_ns, &at);
    }
    return marks->count >= STEPS_MIN && 2 * holes >= marks->count;
}

static enum lac_status from_marks(struct lac_facts *facts, const struct lac_marks *marks)
{
    for (uint64_t i = 0; i < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        enum lac_status status = lac_steps_add(facts, mark->start_ns, mark->dur_ns,
                                               facts->model->slices.name[mark->slice], mark->slice);
        if (status) {
            return status;
        }
    }
    take_starts(facts, 0);
    if (leave_out_waits(facts, marks)) {
        close_holes(facts->analysis, 0);
    }
    return LAC_OK;
}

/** Hash of a name with its digits left out: "step 12" and "step 13" are one kind. */
static uint64_t kind_of_name(const char *name, size_t length)
{
    uint64_t hash = 1469598103934665603U;
    for (size_t i = 0; i < length; i++) {
        if (name[i] >= '0' && name[i] <= '9') {
            continue;
        }
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211U;
    }
    return hash;
}

/** A kind of range on one track. */
struct range_kind {
    uint64_t hash;
    uint32_t track;
    uint64_t count;
    int64_t total_ns;
};

static uint64_t kind_of_mark(const struct lac_facts *facts, const struct lac_mark *mark)
{
    const struct lac_strings *strings = &facts->model->strings;
    uint32_t name = facts->model->slices.name[mark->slice];
    return kind_of_name(lac_strings_get(strings, name), lac_strings_length(strings, name));
}

/** Whether one range alone is an iteration: it covers most of what the device did. */
static bool covers_device(const struct lac_facts *facts, int64_t total_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    return analysis->main_device != LAC_NONE &&
           (double)total_ns >=
               ITERATION_COVERS_MIN * (double)analysis->devices[analysis->main_device].span_ns;
}

/** Where the user said what a step is, nothing else is one. */
static bool may_be_step(const struct lac_facts *facts, const struct lac_mark *mark)
{
    return facts->named_step == 0 || facts->model->slices.name[mark->slice] == facts->named_step;
}

/** The kind of range that covers most of the trace, at least twice, or once and the device's work;
 *  count 0 when there is none. */
static struct range_kind widest_kind(const struct lac_facts *facts, const struct lac_marks *marks)
{
    enum { KINDS_MAX = 64 };
    struct range_kind kinds[KINDS_MAX];
    uint32_t kind_count = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        if (!may_be_step(facts, mark)) {
            continue;
        }
        uint64_t hash = kind_of_mark(facts, mark);
        uint32_t k = 0;
        while (k < kind_count && (kinds[k].hash != hash || kinds[k].track != mark->track)) {
            k++;
        }
        if (k == KINDS_MAX) {
            continue;
        }
        if (k == kind_count) {
            kinds[kind_count++] = (struct range_kind){.hash = hash, .track = mark->track};
        }
        kinds[k].count++;
        kinds[k].total_ns += mark->dur_ns;
    }
    struct range_kind widest = {0};
    for (uint32_t k = 0; k < kind_count; k++) {
        bool is_loop = kinds[k].count >= 2 || covers_device(facts, kinds[k].total_ns);
        if (is_loop && kinds[k].total_ns > widest.total_ns) {
            widest = kinds[k];
        }
    }
    return widest;
}

/** Steps from ranges that users named. */
static enum lac_status from_step_like(struct lac_facts *facts)
{
    const struct lac_marks *marks = &facts->step_like_marks;
    struct range_kind widest = widest_kind(facts, marks);
    uint32_t first = facts->analysis->step_count;
    for (uint64_t i = 0; i < marks->count && widest.count > 0; i++) {
        const struct lac_mark *mark = &marks->at[i];
        if (mark->track != widest.track || kind_of_mark(facts, mark) != widest.hash ||
            !may_be_step(facts, mark)) {
            continue;
        }
        enum lac_status status = lac_steps_add(facts, mark->start_ns, mark->dur_ns,
                                               facts->model->slices.name[mark->slice], mark->slice);
        if (status) {
            return status;
        }
    }
    take_starts(facts, first);
    join_pairs(facts, first);
    close_holes(facts->analysis, first);
    return LAC_OK;
}

/** From each mark's start (or end) to the next one's, on the track with most of them. */
static enum lac_status between_marks(struct lac_facts *facts, const struct lac_marks *marks,
                                     bool uses_end)
{
    uint32_t track = lac_marks_majority_track(marks);
    const struct lac_mark *before = NULL;
    for (uint64_t i = 0; i < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        if (mark->track != track) {
            continue;
        }
        int64_t at_ns = mark->start_ns + (uses_end ? mark->dur_ns : 0);
        if (before != NULL) {
            int64_t from_ns = before->start_ns + (uses_end ? before->dur_ns : 0);
            if (at_ns < from_ns) {
                continue;
            }
            enum lac_status status = lac_steps_add(facts, from_ns, at_ns - from_ns, 0, LAC_NONE);
            if (status) {
                return status;
            }
        }
        before = mark;
    }
    return LAC_OK;
}

/** Steps from one wait for a batch to the next; from the first of each row to that of the next where a
 *  step asks several loaders. */
static enum lac_status between_waits(struct lac_facts *facts)
{
    const struct lac_marks *waits = &facts->wait_marks;
    if (!facts->asks_in_rows) {
        return between_marks(facts, waits, false);
    }
    struct lac_marks firsts = {.at = malloc(waits->count * sizeof(*firsts.at))};
    if (firsts.at == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < waits->count; i++) {
        if (!lac_wait_follows_at_once(facts, i)) {
            firsts.at[firsts.count++] = waits->at[i];
        }
    }
    enum lac_status status = between_marks(facts, &firsts, false);
    free(firsts.at);
    return status;
}

/** Whether what repeats takes as different a time as parts of one pass do: prompts, masks, blocks. */
static enum lac_status differ_like_parts(const struct lac_analysis *analysis, bool *ret_differ)
{
    double sum_ns = 0.0;
    double squares = 0.0;
    uint32_t first = analysis->step_count > STEPS_MIN ? 1 : 0; /* which may be first use */
    uint32_t count = analysis->step_count - first;
    int64_t *lengths_ns = malloc((size_t)count * sizeof(*lengths_ns));
    if (lengths_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < count; s++) {
        lengths_ns[s] = analysis->steps[first + s].dur_ns;
        sum_ns += (double)lengths_ns[s];
        squares += (double)lengths_ns[s] * (double)lengths_ns[s];
    }
    double mean_ns = sum_ns / count;
    double variance = squares / count - mean_ns * mean_ns;
    qsort(lengths_ns, count, sizeof(*lengths_ns), lac_by_int64);
    int64_t median_ns = lengths_ns[(count - 1) / 2];
    *ret_differ = variance > REPEATS_DEVIATE_MAX * REPEATS_DEVIATE_MAX * mean_ns * mean_ns ||
                  mean_ns > REPEATS_MEAN_MAX * (double)median_ns;
    free(lengths_ns);
    return LAC_OK;
}

/** Steps without a name, by what repeats. */
static enum lac_status from_repetition(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    bool differ = false;
    analysis->step_method = "period";
    analysis->step_confidence = 0.5;
    enum lac_status status = lac_steps_by_period(facts);
    if (!status && analysis->step_count > 0) {
        status = differ_like_parts(analysis, &differ);
    }
    analysis->step_count = differ ? 0 : analysis->step_count;
    return status ? status : lac_steps_judge_repetition(facts);
}

/** Whether both are marks of one step, which recorders write twice: as an annotation and as an operator,
 *  that begin and end nearly together. */
static bool is_double(const struct lac_model *model, const struct lac_mark *a,
                      const struct lac_mark *b)
{
    const int64_t from_ns = a->start_ns > b->start_ns ? a->start_ns : b->start_ns;
    const int64_t a_end_ns = a->start_ns + a->dur_ns;
    const int64_t b_end_ns = b->start_ns + b->dur_ns;
    const int64_t to_ns = a_end_ns < b_end_ns ? a_end_ns : b_end_ns;
    const int64_t longer_ns = a->dur_ns > b->dur_ns ? a->dur_ns : b->dur_ns;
    return model->slices.name[a->slice] == model->slices.name[b->slice] &&
           model->slices.kind[a->slice] != model->slices.kind[b->slice] &&
           model->tracks[a->track].process == model->tracks[b->track].process &&
           (double)(to_ns - from_ns) >= DOUBLE_MARK_MIN * (double)longer_ns;
}

/** Of two marks of one step the first stays, as long as the longer one. */
static void join_doubles(const struct lac_facts *facts, struct lac_marks *marks)
{
    uint64_t kept = 0;
    for (uint64_t i = 1; i < marks->count; i++) {
        const struct lac_mark *mark = &marks->at[i];
        struct lac_mark *last = &marks->at[kept];
        const int64_t until_ns = mark->start_ns + mark->dur_ns;
        if (!is_double(facts->model, last, mark)) {
            marks->at[++kept] = *mark;
        } else if (until_ns > last->start_ns + last->dur_ns) {
            last->dur_ns = until_ns - last->start_ns;
        }
    }
    marks->count = marks->count > 0 ? kept + 1 : 0;
}

/** Whether the one marked step is a whole loop over batches without training: a step is a batch then. */
static bool is_loop_of_batches(const struct lac_facts *facts)
{
    if (facts->step_marks.count != 1 || facts->has_backward) {
        return false;
    }
    const struct lac_mark *step = &facts->step_marks.at[0];
    uint64_t inside = 0;
    for (uint64_t i = 0; i < facts->wait_marks.count; i++) {
        int64_t since_ns = facts->wait_marks.at[i].start_ns - step->start_ns;
        inside += since_ns >= 0 && since_ns <= step->dur_ns;
    }
    return inside > STEPS_MIN;
}

enum lac_status lac_steps_detect(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (facts->model->info.weight_unit != 0 || facts->model->info.has_no_time) {
        return LAC_OK; /* samples of a profiler: what repeats in them is no step */
    }
    enum lac_status status;
    join_doubles(facts, &facts->step_marks);
    if (facts->named_step != 0) {
        status = from_step_like(facts);
        if (status || analysis->step_count > 0) {
            analysis->step_method = "nvtx";
            analysis->step_confidence = 1.0;
            return status;
        }
        facts->named_step = 0; /* there is but one, say */
    }
    if (facts->step_marks.count > 0 && !is_loop_of_batches(facts)) {
        analysis->step_method = "profiler_step";
        analysis->step_confidence = 1.0;
        return from_marks(facts, &facts->step_marks);
    }
    status = from_step_like(facts);
    if (status || analysis->step_count > 0) {
        analysis->step_method = "nvtx";
        analysis->step_confidence = 0.9;
        return status;
    }
    if (facts->wait_marks.count >= STEPS_MIN) {
        analysis->step_method = "dataloader";
        analysis->step_confidence = 0.8;
        return between_waits(facts);
    }
    if (facts->optimizer_marks.count > 1) {
        analysis->step_method = "optimizer";
        analysis->step_confidence = facts->optimizer_marks.count > 2 ? 0.8 : 0.7;
        return between_marks(facts, &facts->optimizer_marks, true);
    }
    facts->has_device_steps = true;
    analysis->step_method = "optimizer_kernels";
    analysis->step_confidence = 0.7;
    status = lac_steps_by_optimizer_kernels(facts);
    if (!status && analysis->step_count == 0) {
        status = from_repetition(facts);
    }
    if (analysis->step_count == 0) {
        analysis->step_method = "none";
        analysis->step_confidence = 0.0;
    }
    return status;
}
