/*
 * Kinds of steps and stretches of other work: how they are put down, and those that ranges name.
 */

#include "analysis/diagnose/steps/step_kinds.h"

#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>

/* -- kinds and stretches ----------------------------------------------------------------------- */

void lac_step_kind_set(struct lac_facts *facts, uint32_t step, enum lac_step_kind kind,
                       const char *why)
{
    facts->analysis->steps[step].kind = (uint8_t)kind;
    if (facts->why_kind[kind] == NULL) {
        facts->why_kind[kind] = why;
    }
}

bool lac_step_kind_is_open(const struct lac_step *step)
{
    return step->kind == LAC_KIND_TRAIN || step->kind == LAC_KIND_OTHER;
}

enum lac_status lac_stretch_add(struct lac_facts *facts, int64_t start_ns, int64_t end_ns,
                                enum lac_step_kind kind)
{
    if (end_ns <= start_ns) {
        return LAC_OK;
    }
    if (!LAC_RESERVE(facts->stretches, facts->stretch_capacity, facts->stretch_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    facts->stretches[facts->stretch_count++] =
        (struct lac_stretch){start_ns, end_ns, (uint8_t)kind};
    return LAC_OK;
}

static int by_start(const void *a, const void *b)
{
    const struct lac_stretch *x = a;
    const struct lac_stretch *y = b;
    if (x->start_ns != y->start_ns) {
        return x->start_ns < y->start_ns ? -1 : 1;
    }
    if (x->end_ns != y->end_ns) {
        return x->end_ns > y->end_ns ? -1 : 1;
    }
    return (int)x->kind - (int)y->kind;
}

void lac_stretches_sort(struct lac_facts *facts)
{
    if (facts->stretch_count > 1) {
        qsort(facts->stretches, facts->stretch_count, sizeof(*facts->stretches), by_start);
    }
    uint32_t kept = 0;
    int64_t covered_ns = INT64_MIN;
    for (uint32_t i = 0; i < facts->stretch_count; i++) {
        struct lac_stretch at = facts->stretches[i];
        at.start_ns = at.start_ns > covered_ns ? at.start_ns : covered_ns;
        if (at.start_ns < at.end_ns) {
            covered_ns = at.end_ns;
            facts->stretches[kept++] = at;
        }
    }
    facts->stretch_count = kept;
}

/* -- by names ---------------------------------------------------------------------------------- */

/** Time of named ranges in one step. */
struct named {
    int64_t validation_ns, checkpoint_ns;
    uint32_t slice; /* the longest of them */
    bool is_covered;
};

static enum lac_step_kind kind_of_mark(const struct lac_facts *facts, const struct lac_mark *mark)
{
    uint32_t name = facts->model->slices.name[mark->slice];
    return (enum lac_step_kind)facts->other_work[name];
}

/** Ranges of threads that train, outermost: what another thread saves meanwhile stops nothing.
 *  They come by start. */
static void keep_outermost(struct lac_facts *facts)
{
    struct lac_marks *marks = &facts->other_work_marks;
    int64_t covered_ns = INT64_MIN;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        struct lac_mark mark = marks->at[i];
        uint8_t trains = LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS;
        int64_t end_ns = mark.start_ns + mark.dur_ns;
        bool is_beside = facts->host_count > 0 && !(facts->track_flags[mark.track] & trains);
        if (is_beside || end_ns <= covered_ns) {
            continue;
        }
        covered_ns = end_ns;
        marks->at[kept++] = mark;
    }
    marks->count = kept;
}

/** Put one range down in the steps that it fills a part of. */
static void put_mark(const struct lac_facts *facts, const struct lac_mark *mark,
                     struct named *named)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t end_ns = mark->start_ns + mark->dur_ns;
    uint32_t first = lac_step_at(analysis, mark->start_ns, 0);
    for (uint32_t s = first == LAC_NONE ? 0 : first;
         s < analysis->step_count && analysis->steps[s].start_ns < end_ns; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t step_end_ns = step->start_ns + step->dur_ns;
        int64_t from_ns = mark->start_ns > step->start_ns ? mark->start_ns : step->start_ns;
        int64_t inside_ns = (end_ns < step_end_ns ? end_ns : step_end_ns) - from_ns;
        bool starts_inside = mark->start_ns >= step->start_ns && mark->start_ns < step_end_ns &&
                             inside_ns >= step->dur_ns / 20;
        bool is_covered = inside_ns > 0 && inside_ns >= step->dur_ns - step->dur_ns / 10 &&
                          (mark->start_ns < step->start_ns || end_ns > step_end_ns);
        if (!starts_inside && !is_covered) {
            continue;
        }
        bool is_writing = kind_of_mark(facts, mark) == LAC_KIND_CHECKPOINT;
        int64_t *sum_ns = is_writing ? &named[s].checkpoint_ns : &named[s].validation_ns;
        *sum_ns = lac_sum_ns(*sum_ns, inside_ns > 0 ? inside_ns : 0);
        bool is_longest = named[s].slice == LAC_NONE ||
                          mark->dur_ns > facts->model->slices.dur_ns[named[s].slice];
        named[s].slice = is_longest ? mark->slice : named[s].slice;
        named[s].is_covered = named[s].is_covered || is_covered;
    }
}

/** In most steps it is what this job does, and no kind of its own. */
static bool is_usual(const struct named *named, uint32_t count)
{
    uint64_t all = 0;
    uint64_t inside = 0;
    for (uint32_t s = 0; s < count; s++) {
        all += named[s].slice != LAC_NONE;
        inside += named[s].slice != LAC_NONE && !named[s].is_covered;
    }
    return inside * 3 > count || all * 2 > count;
}

static void name_steps(struct lac_facts *facts, const struct named *named)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (named[s].slice == LAC_NONE || !lac_step_kind_is_open(step)) {
            continue;
        }
        bool is_writing = named[s].checkpoint_ns > named[s].validation_ns;
        enum lac_step_kind kind = is_writing ? LAC_KIND_CHECKPOINT : LAC_KIND_VALIDATION;
        const char *why = facts->why_kind[kind];
        if (why == NULL) {
            const struct lac_model *model = facts->model;
            why = lac_texts_add(&analysis->texts, "a range is named \"%.60s\"",
                                lac_model_str(model, model->slices.name[named[s].slice]));
        }
        lac_step_kind_set(facts, s, kind, why);
        step->left_out = LAC_STEP_OTHER_KIND;
    }
}

/** Ranges that matter, as stretches: in steps only where the steps got their name from them. */
static enum lac_status add_named_stretches(struct lac_facts *facts, bool in_steps)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t sum_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        sum_ns = lac_sum_ns(sum_ns, analysis->steps[s].dur_ns);
    }
    int64_t least_ns = sum_ns / (analysis->step_count > 0 ? analysis->step_count : 1) / 20;
    for (uint64_t i = 0; i < facts->other_work_marks.count; i++) {
        const struct lac_mark *mark = &facts->other_work_marks.at[i];
        uint32_t at = lac_step_at(analysis, mark->start_ns, 0);
        bool is_inside = at != LAC_NONE &&
                         mark->start_ns < analysis->steps[at].start_ns + analysis->steps[at].dur_ns;
        if (mark->dur_ns < least_ns || (is_inside && !in_steps)) {
            continue;
        }
        enum lac_status status = lac_stretch_add(
            facts, mark->start_ns, mark->start_ns + mark->dur_ns, kind_of_mark(facts, mark));
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

enum lac_status lac_steps_name_kinds(struct lac_facts *facts)
{
    static const uint8_t of_left_out[] = {
        [LAC_STEP_KEPT] = LAC_KIND_TRAIN,          [LAC_STEP_WARM_UP] = LAC_KIND_WARM_UP,
        [LAC_STEP_TRUNCATED] = LAC_KIND_TRUNCATED, [LAC_STEP_OTHER_KIND] = LAC_KIND_OTHER,
        [LAC_STEP_PARTIAL_CYCLE] = LAC_KIND_TRAIN, [LAC_STEP_UNTIMED] = LAC_KIND_TRAIN,
    };
    _Static_assert(LAC_COUNT_OF(of_left_out) == LAC_STEP_LEFT_OUT_COUNT_, "a kind for each reason");
    struct lac_analysis *analysis = facts->analysis;
    struct named *named = malloc(analysis->step_count * sizeof(*named));
    if (named == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        analysis->steps[s].kind = of_left_out[analysis->steps[s].left_out];
        named[s] = (struct named){.slice = LAC_NONE};
    }
    keep_outermost(facts);
    for (uint64_t i = 0; i < facts->other_work_marks.count; i++) {
        put_mark(facts, &facts->other_work_marks.at[i], named);
    }
    bool has_kinds = !is_usual(named, analysis->step_count);
    if (has_kinds) {
        name_steps(facts, named);
    }
    free(named);
    return add_named_stretches(facts, has_kinds);
}
