/*
 * Kinds of steps in numbers, and the phases of the whole recording: from its start to its end,
 * without holes. Stretches of other work (step_kinds.c) are phases of their own, in steps too. They are
 * what the host was at: steps count between its marks here.
 */

#include "analysis/diagnose/steps/steps.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_training(const struct lac_analysis *analysis)
{
    return analysis->workload == LAC_WORKLOAD_TRAINING ||
           analysis->workload == LAC_WORKLOAD_HOST_TRAINING ||
           analysis->workload == LAC_WORKLOAD_FEW_STEPS;
}

/* -- phases ------------------------------------------------------------------------------------ */

struct walk {
    struct lac_facts *facts;
    uint32_t capacity;
    uint32_t stretch; /* the first that has not ended */
    int64_t at_ns;    /* phases are written up to here */
    enum lac_phase_kind usual;
    enum lac_status status;
};

/** The phase of a stretch or of a step of that kind. */
static enum lac_phase_kind phase_of(enum lac_step_kind kind, enum lac_phase_kind usual)
{
    switch (kind) {
    case LAC_KIND_WARM_UP:
        return LAC_PHASE_WARM_UP;
    case LAC_KIND_VALIDATION:
        return LAC_PHASE_VALIDATION;
    case LAC_KIND_CHECKPOINT:
        return LAC_PHASE_CHECKPOINT;
    case LAC_KIND_EPOCH_END:
        return LAC_PHASE_EPOCH_END;
    case LAC_KIND_RECOMPILE:
        return LAC_PHASE_RECOMPILATION;
    case LAC_KIND_OTHER:
        return LAC_PHASE_OTHER;
    case LAC_KIND_TRAIN:
    case LAC_KIND_TRUNCATED:
    case LAC_KIND_COUNT_:
        break;
    }
    return usual;
}

static void add_phase(struct walk *walk, int64_t end_ns, enum lac_phase_kind kind)
{
    struct lac_analysis *analysis = walk->facts->analysis;
    struct lac_phase *last =
        analysis->phase_count > 0 ? &analysis->phases[analysis->phase_count - 1] : NULL;
    if (end_ns <= walk->at_ns || walk->status) {
        return;
    }
    if (last != NULL && last->kind == kind) {
        last->dur_ns = end_ns - last->start_ns;
        walk->at_ns = end_ns;
        return;
    }
    if (!LAC_RESERVE(analysis->phases, walk->capacity, analysis->phase_count, 1)) {
        walk->status = LAC_ERR_NOMEM;
        return;
    }
    analysis->phases[analysis->phase_count++] =
        (struct lac_phase){walk->at_ns, end_ns - walk->at_ns, 0, (uint8_t)kind};
    walk->at_ns = end_ns;
}

/** Up to `end_ns`: that phase, and the stretches in it. A step is counted in the first of `counted`
 *  kind. */
static void go_to(struct walk *walk, int64_t end_ns, enum lac_phase_kind kind,
                  enum lac_phase_kind counted, uint32_t *to_count)
{
    const struct lac_facts *facts = walk->facts;
    const struct lac_analysis *analysis = facts->analysis;
    end_ns = end_ns < analysis->duration_ns ? end_ns : analysis->duration_ns;
    while (walk->at_ns < end_ns && !walk->status) {
        const struct lac_stretch *next =
            walk->stretch < facts->stretch_count ? &facts->stretches[walk->stretch] : NULL;
        enum lac_phase_kind here = kind;
        if (next != NULL && next->end_ns <= walk->at_ns) {
            walk->stretch++;
            continue;
        }
        int64_t to_ns = end_ns;
        if (next != NULL && next->start_ns <= walk->at_ns) {
            here = phase_of((enum lac_step_kind)next->kind, walk->usual);
            to_ns = next->end_ns < end_ns ? next->end_ns : end_ns;
        } else if (next != NULL && next->start_ns < end_ns) {
            to_ns = next->start_ns;
        }
        add_phase(walk, to_ns, here);
        if (*to_count > 0 && here == counted && !walk->status) {
            analysis->phases[analysis->phase_count - 1].step_count += *to_count;
            *to_count = 0;
        }
    }
}

/** The phase of a step where no stretch of its own says more. */
static enum lac_phase_kind plain_phase(const struct lac_step *step, enum lac_phase_kind usual)
{
    bool is_plain = step->kind == LAC_KIND_WARM_UP || step->kind == LAC_KIND_OTHER;
    return is_plain ? phase_of((enum lac_step_kind)step->kind, usual) : usual;
}

/** What lies between steps, from `start_ns` to `end_ns`. Long holes are not the loop's own. */
static enum lac_phase_kind phase_of_hole(const struct lac_facts *facts, int64_t start_ns,
                                         int64_t end_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t busy_ns = analysis->main_device == LAC_NONE
                          ? 0
                          : lac_spans_length_inside(&facts->device_sets[analysis->main_device].busy,
                                                    start_ns, end_ns);
    return busy_ns <= (end_ns - start_ns) / 10 ? LAC_PHASE_IDLE : LAC_PHASE_OTHER;
}

static enum lac_status find_phases(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct walk walk = {.facts = facts,
                        .usual = is_training(analysis) ? LAC_PHASE_TRAINING : LAC_PHASE_STEPS};
    int64_t sum_ns = 0;
    uint32_t to_count = 0; /* steps that no phase has counted yet */
    uint32_t none = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        sum_ns = lac_sum_ns(sum_ns, analysis->steps[s].host_dur_ns);
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t hole_ns = step->host_start_ns - walk.at_ns;
        if (hole_ns > 0) {
            bool is_long = hole_ns >= sum_ns / analysis->step_count / 5;
            enum lac_phase_kind hole = s == 0 ? LAC_PHASE_START_UP
                                       : is_long
                                           ? phase_of_hole(facts, walk.at_ns, step->host_start_ns)
                                           : plain_phase(step - 1, walk.usual);
            go_to(&walk, step->host_start_ns, hole, hole, &none);
        }
        to_count++;
        go_to(&walk, step->host_start_ns + step->host_dur_ns, plain_phase(step, walk.usual),
              phase_of((enum lac_step_kind)step->kind, walk.usual), &to_count);
        if (to_count > 0 && analysis->phase_count > 0) { /* its own phase is not in it */
            analysis->phases[analysis->phase_count - 1].step_count += to_count;
            to_count = 0;
        }
    }
    go_to(&walk, analysis->duration_ns, analysis->step_count > 0 ? LAC_PHASE_END : LAC_PHASE_OTHER,
          LAC_PHASE_END, &to_count);
    if (to_count > 0 && analysis->phase_count > 0) {
        analysis->phases[analysis->phase_count - 1].step_count += to_count;
    }
    return walk.status;
}

/* -- kinds in numbers -------------------------------------------------------------------------- */

/** Runs of steps of one kind. */
struct runs {
    uint32_t count, every;
};

/** Every n-th step, or every n steps a run of them: the same distance nine times of ten, and twice
 *  at least. */
static struct runs runs_of(const struct lac_analysis *analysis, uint8_t kind)
{
    struct runs runs = {0};
    uint32_t last = LAC_NONE;
    uint32_t same = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        bool begins =
            analysis->steps[s].kind == kind && (s == 0 || analysis->steps[s - 1].kind != kind);
        if (!begins) {
            continue;
        }
        if (last != LAC_NONE) {
            runs.every = runs.every == 0 ? s - last : runs.every;
            same += s - last == runs.every;
        }
        last = s;
        runs.count++;
    }
    bool is_even = runs.count >= 3 && same * 10 >= (runs.count - 1) * 9;
    runs.every = is_even ? runs.every : 0;
    return runs;
}

static const char *ordinal_end(uint32_t n)
{
    uint32_t tens = n % 100;
    if (tens >= 11 && tens <= 13) {
        return "th";
    }
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/** "every 50th step writes a checkpoint: 2.1 s, 3 % of the run" */
static const char *text_of(struct lac_analysis *analysis,
                           const struct lac_step_kind_facts *kind_facts, const struct runs *runs)
{
    static const char *const does[LAC_KIND_COUNT_][2] = {
        [LAC_KIND_VALIDATION] = {"validates", "validate"},
        [LAC_KIND_CHECKPOINT] = {"writes a checkpoint", "write a checkpoint"},
        [LAC_KIND_EPOCH_END] = {"waits for a new epoch", "wait for a new epoch"},
        [LAC_KIND_RECOMPILE] = {"loads or compiles code", "load or compile code"},
        [LAC_KIND_OTHER] = {"does other work", "do other work"},
    };
    if (!does[kind_facts->kind][0] || runs->count == 0) {
        return "";
    }
    /* a wait in vain and the next one may be steps of their own: they are one end of an epoch */
    unsigned length = kind_facts->kind == LAC_KIND_EPOCH_END
                          ? 1
                          : (kind_facts->count + runs->count / 2) / runs->count;
    const char *run =
        length > 1 ? lac_texts_add(&analysis->texts, " a run of %u steps", length) : "";
    const char *which;
    if (runs->every > 0) {
        which = length > 1 ? lac_texts_add(&analysis->texts, "every %u steps%s",
                                           (unsigned)runs->every, run)
                           : lac_texts_add(&analysis->texts, "every %u%s step",
                                           (unsigned)runs->every, ordinal_end(runs->every));
    } else if (runs->count == 1) {
        which =
            length > 1 ? lac_texts_add(&analysis->texts, "a run of %u steps", length) : "one step";
    } else {
        which = length > 1 ? lac_texts_add(&analysis->texts, "%u runs of %u steps",
                                           (unsigned)runs->count, length)
                           : lac_texts_add(&analysis->texts, "%u steps", (unsigned)runs->count);
    }
    bool are_many = runs->every == 0 && runs->count > 1;
    return lac_texts_add(
        &analysis->texts, "%s %s: %s%s, %s of the run", which, does[kind_facts->kind][are_many],
        lac_format_ns(kind_facts->own_ns / runs->count).text, runs->count > 1 ? " each" : "",
        lac_format_pct(lac_pct(kind_facts->own_ns, analysis->duration_ns)).text);
}

static const char *why_of(const struct lac_facts *facts, enum lac_step_kind kind)
{
    if (kind == LAC_KIND_TRAIN) {
        return "no other kind of work is visible";
    }
    if (kind == LAC_KIND_WARM_UP) {
        return "first steps, unlike those at the end";
    }
    if (kind == LAC_KIND_TRUNCATED) {
        return "the recording began, ended or paused during it";
    }
    return facts->why_kind[kind] != NULL ? facts->why_kind[kind] : "";
}

/** What the kind itself takes of its steps: the stretches of its name in them; of kinds without
 * such, the steps. */
static int64_t own_ns(const struct lac_facts *facts, enum lac_step_kind kind, int64_t total_ns)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t sum_ns = 0;
    bool has_stretches = false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < facts->stretch_count; i++) {
        const struct lac_stretch *stretch = &facts->stretches[i];
        uint32_t s = lac_step_of_host_at(analysis, stretch->start_ns, at);
        at = s == LAC_NONE ? at : s;
        if (stretch->kind == kind && s != LAC_NONE && analysis->steps[s].kind == kind) {
            sum_ns = lac_sum_ns(sum_ns, stretch->end_ns - stretch->start_ns);
            has_stretches = true;
        }
    }
    return has_stretches ? sum_ns : total_ns;
}

static void measure_kinds(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t counts[LAC_KIND_COUNT_] = {0};
    int64_t totals_ns[LAC_KIND_COUNT_] = {0};
    int64_t all_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t dur_ns = step->left_out == LAC_STEP_UNTIMED ? step->host_dur_ns : step->dur_ns;
        counts[step->kind]++;
        totals_ns[step->kind] = lac_sum_ns(totals_ns[step->kind], dur_ns);
        all_ns = lac_sum_ns(all_ns, dur_ns);
    }
    for (int kind = 0; kind < LAC_KIND_COUNT_; kind++) {
        if (counts[kind] == 0) {
            continue;
        }
        struct runs runs = runs_of(analysis, (uint8_t)kind);
        struct lac_step_kind_facts *kind_facts = &analysis->step_kinds[analysis->step_kind_count++];
        *kind_facts = (struct lac_step_kind_facts){
            .kind = (uint8_t)kind,
            .count = counts[kind],
            .every = kind == LAC_KIND_TRAIN ? 0 : runs.every,
            .mean_ns = totals_ns[kind] / counts[kind],
            .total_ns = totals_ns[kind],
            .own_ns = own_ns(facts, (enum lac_step_kind)kind, totals_ns[kind]),
            .pct_of_steps = lac_pct(totals_ns[kind], all_ns),
            .why = why_of(facts, (enum lac_step_kind)kind)};
        kind_facts->text = text_of(analysis, kind_facts, &runs);
    }
}

enum lac_status lac_phases_measure(struct lac_facts *facts)
{
    enum lac_status status = find_phases(facts);
    if (!status && is_training(facts->analysis)) {
        measure_kinds(facts);
    }
    return status;
}
