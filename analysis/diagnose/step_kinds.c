/*
 * What the steps did that are no training: by the names of ranges, else by what they hold. Leaves
 * out of the kept steps what is other work (a validation, a checkpoint); what returns inside the
 * training (the end of an epoch, a recompilation) gets its name and stays.
 */

#include "analysis/diagnose/step_kinds.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CHECKPOINT_MIN_BYTES = 16 << 20, /* copied to the host in one step */
    CHECKPOINT_MIN_FACTOR = 8,       /* of what other steps copy */
    FIRST_STEPS = 2,                 /* in which loading code is first use */
};

/* -- kinds and stretches ----------------------------------------------------------------------- */

void lac_step_kind_set(struct lac_diagnosis *diagnosis, uint32_t step, enum lac_step_kind kind,
                       const char *why)
{
    diagnosis->analysis->steps[step].kind = (uint8_t)kind;
    if (!diagnosis->why_kind[kind]) {
        diagnosis->why_kind[kind] = why;
    }
}

bool lac_step_kind_is_open(const struct lac_step *step)
{
    return step->kind == LAC_KIND_TRAIN || step->kind == LAC_KIND_OTHER;
}

enum lac_status lac_stretch_add(struct lac_diagnosis *diagnosis, int64_t start_ns, int64_t end_ns,
                                enum lac_step_kind kind)
{
    if (end_ns <= start_ns) {
        return LAC_OK;
    }
    if (diagnosis->stretch_count == diagnosis->stretch_capacity) {
        uint32_t capacity = diagnosis->stretch_capacity ? diagnosis->stretch_capacity * 2 : 16;
        struct lac_stretch *grown = realloc(diagnosis->stretches, capacity * sizeof *grown);
        if (!grown) {
            return LAC_ERR_NOMEM;
        }
        diagnosis->stretches = grown;
        diagnosis->stretch_capacity = capacity;
    }
    diagnosis->stretches[diagnosis->stretch_count++] =
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

void lac_stretches_sort(struct lac_diagnosis *diagnosis)
{
    if (diagnosis->stretch_count > 1) {
        qsort(diagnosis->stretches, diagnosis->stretch_count, sizeof *diagnosis->stretches,
              by_start);
    }
    uint32_t kept = 0;
    int64_t covered_ns = INT64_MIN;
    for (uint32_t i = 0; i < diagnosis->stretch_count; i++) {
        struct lac_stretch at = diagnosis->stretches[i];
        at.start_ns = at.start_ns > covered_ns ? at.start_ns : covered_ns;
        if (at.start_ns < at.end_ns) {
            covered_ns = at.end_ns;
            diagnosis->stretches[kept++] = at;
        }
    }
    diagnosis->stretch_count = kept;
}

/* -- by names ---------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/** Whether `word` stands in the text with no letter beside it. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strcasestr(text, word); at; at = strcasestr(at + 1, word)) {
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[length])) {
            return true;
        }
    }
    return false;
}

enum lac_step_kind lac_step_kind_of(const char *name)
{
    if (strcasestr(name, "checkpoint") || strcasestr(name, "save_") || has_word(name, "save")) {
        return LAC_KIND_CHECKPOINT;
    }
    bool is_validation = strcasestr(name, "validat") || strcasestr(name, "evaluat") ||
                         has_word(name, "eval") || has_word(name, "valid") || has_word(name, "val");
    return is_validation ? LAC_KIND_VALIDATION : LAC_KIND_TRAIN;
}

/** Time of named ranges in one step. */
struct named {
    int64_t validation_ns, checkpoint_ns;
    uint32_t slice; /* the longest of them */
    bool is_covered;
};

static enum lac_step_kind kind_of_mark(const struct lac_diagnosis *diagnosis,
                                       const struct lac_mark *mark)
{
    uint32_t name = diagnosis->model->slices.name[mark->slice];
    return (enum lac_step_kind)diagnosis->other_work[name];
}

/** Ranges of threads that train, outermost: what another thread saves meanwhile stops nothing.
 *  They come by start. */
static uint64_t keep_outermost(struct lac_diagnosis *diagnosis)
{
    struct lac_marks *marks = &diagnosis->other_work_marks;
    int64_t covered_ns = INT64_MIN;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < marks->count; i++) {
        struct lac_mark mark = marks->at[i];
        uint8_t trains = LAC_TRACK_LAUNCHES | LAC_TRACK_TRAINS;
        int64_t end_ns = mark.start_ns + mark.dur_ns;
        bool is_beside =
            diagnosis->host_count > 0 && !(diagnosis->track_flags[mark.track] & trains);
        if (is_beside || end_ns <= covered_ns) {
            continue;
        }
        covered_ns = end_ns;
        marks->at[kept++] = mark;
    }
    return kept;
}

/** Put one range down in the steps that it fills a part of. */
static void put_mark(const struct lac_diagnosis *diagnosis, const struct lac_mark *mark,
                     struct named *named)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
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
        bool is_writing = kind_of_mark(diagnosis, mark) == LAC_KIND_CHECKPOINT;
        int64_t *sum_ns = is_writing ? &named[s].checkpoint_ns : &named[s].validation_ns;
        *sum_ns = lac_sum_ns(*sum_ns, inside_ns > 0 ? inside_ns : 0);
        bool is_longest = named[s].slice == LAC_NONE ||
                          mark->dur_ns > diagnosis->model->slices.dur_ns[named[s].slice];
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

static void name_steps(struct lac_diagnosis *diagnosis, const struct named *named)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        if (named[s].slice == LAC_NONE || !lac_step_kind_is_open(step)) {
            continue;
        }
        bool is_writing = named[s].checkpoint_ns > named[s].validation_ns;
        enum lac_step_kind kind = is_writing ? LAC_KIND_CHECKPOINT : LAC_KIND_VALIDATION;
        const char *why = diagnosis->why_kind[kind];
        if (!why) {
            const struct lac_model *model = diagnosis->model;
            why = lac_texts_add(&analysis->texts, "a range is named \"%.60s\"",
                                lac_model_str(model, model->slices.name[named[s].slice]));
        }
        lac_step_kind_set(diagnosis, s, kind, why);
        step->left_out = LAC_STEP_OTHER_KIND;
    }
}

/** Ranges that matter, as stretches: in steps only where the steps got their name from them. */
static enum lac_status add_named_stretches(struct lac_diagnosis *diagnosis, uint64_t mark_count,
                                           bool in_steps)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
    int64_t sum_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        sum_ns = lac_sum_ns(sum_ns, analysis->steps[s].dur_ns);
    }
    int64_t least_ns = sum_ns / analysis->step_count / 20;
    for (uint64_t i = 0; i < mark_count; i++) {
        const struct lac_mark *mark = &diagnosis->other_work_marks.at[i];
        uint32_t at = lac_step_at(analysis, mark->start_ns, 0);
        bool is_inside = at != LAC_NONE &&
                         mark->start_ns < analysis->steps[at].start_ns + analysis->steps[at].dur_ns;
        if (mark->dur_ns < least_ns || (is_inside && !in_steps)) {
            continue;
        }
        enum lac_status status =
            lac_stretch_add(diagnosis, mark->start_ns, mark->start_ns + mark->dur_ns,
                            kind_of_mark(diagnosis, mark));
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

enum lac_status lac_steps_name_kinds(struct lac_diagnosis *diagnosis)
{
    static const uint8_t of_left_out[] = {
        [LAC_STEP_KEPT] = LAC_KIND_TRAIN,          [LAC_STEP_WARM_UP] = LAC_KIND_WARM_UP,
        [LAC_STEP_TRUNCATED] = LAC_KIND_TRUNCATED, [LAC_STEP_OTHER_KIND] = LAC_KIND_OTHER,
        [LAC_STEP_PARTIAL_CYCLE] = LAC_KIND_TRAIN,
    };
    struct lac_analysis *analysis = diagnosis->analysis;
    struct named *named = malloc(analysis->step_count * sizeof *named);
    if (!named) {
        return LAC_ERR_NOMEM;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        analysis->steps[s].kind = of_left_out[analysis->steps[s].left_out];
        named[s] = (struct named){.slice = LAC_NONE};
    }
    uint64_t mark_count = keep_outermost(diagnosis);
    for (uint64_t i = 0; i < mark_count; i++) {
        put_mark(diagnosis, &diagnosis->other_work_marks.at[i], named);
    }
    bool has_kinds = !is_usual(named, analysis->step_count);
    if (has_kinds) {
        name_steps(diagnosis, named);
    }
    free(named);
    return add_named_stretches(diagnosis, mark_count, has_kinds);
}

/* -- validation, by what is missing ------------------------------------------------------------ */

/** Kernels, but nothing of a backward pass or an optimizer, where other steps have it. */
static bool lacks_training(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->diagnosis->analysis->steps[s];
    const struct lac_step_work *work = &search->works[s];
    bool has_work = step->op_count > 0 || search->usual.ops == 0;
    if (!lac_step_kind_is_open(step) || !has_work || work->backward > 0 || work->optimizer > 0) {
        return false;
    }
    if (search->usual.trains_by_host) {
        return work->operators > 0;
    }
    /* without operators: an update that was skipped lacks the optimizer's kernels as well */
    return search->usual.trains_by_kernels && (int64_t)step->op_count * 10 <= search->usual.ops * 6;
}

/** Whether its batch does not follow that of the step before: it comes from another loader. */
static bool has_loader_of_its_own(const struct lac_kind_search *search, uint32_t s)
{
    return s > 0 && search->works[s].first_batch >= 0 && search->works[s - 1].last_batch >= 0 &&
           search->works[s].first_batch != search->works[s - 1].last_batch + 1;
}

/** Steps of one run without training; 0 when step `s` begins none. */
static uint32_t run_without_training(const struct lac_kind_search *search, uint32_t s)
{
    uint32_t count = search->diagnosis->analysis->step_count;
    uint32_t length = 0;
    while (s + length < count && lacks_training(search, s + length)) {
        length++;
    }
    return length > 1 || (length == 1 && has_loader_of_its_own(search, s)) ? length : 0;
}

static enum lac_status find_validation_runs(struct lac_kind_search *search)
{
    struct lac_diagnosis *diagnosis = search->diagnosis;
    struct lac_analysis *analysis = diagnosis->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        uint32_t length = run_without_training(search, s);
        all += length;
        s += length > 0 ? length - 1 : 0;
    }
    if (all * 2 > analysis->step_count) {
        return LAC_OK;
    }
    const char *why =
        search->usual.trains_by_host
            ? "kernels without a backward pass or an optimizer, which other steps have"
            : "fewer kernels, none of the optimizer's, several steps in a row";
    enum lac_status status = LAC_OK;
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        uint32_t end = s + run_without_training(search, s);
        if (end == s) {
            continue;
        }
        int64_t from_ns = analysis->steps[s].start_ns;
        for (; s < end; s++) {
            lac_step_kind_set(diagnosis, s, LAC_KIND_VALIDATION, why);
            analysis->steps[s].left_out = LAC_STEP_OTHER_KIND;
        }
        const struct lac_step *last = &analysis->steps[end - 1];
        int64_t to_ns = last->start_ns + last->dur_ns;
        /* where a checkpoint follows, its step begins with what is left of the validation */
        const struct lac_step_work *next = end < analysis->step_count ? &search->works[end] : NULL;
        bool is_writing = next && next->writing.end_ns > next->writing.start_ns;
        if (is_writing && next->backward == 0 && next->optimizer == 0) {
            to_ns = next->writing.start_ns;
        }
        status = lac_stretch_add(diagnosis, from_ns, to_ns, LAC_KIND_VALIDATION);
        s = end - 1;
    }
    return status;
}

/* -- checkpoints, by what they copy ------------------------------------------------------------ */

/** The longest time in a step in which its process launches nothing and waits for no data. */
static struct lac_span longest_hole(const struct lac_diagnosis *diagnosis,
                                    const struct lac_step *step)
{
    struct lac_span longest = {step->start_ns, step->start_ns};
    const struct lac_spans *launches = &diagnosis->hosts[diagnosis->main_host].sets[LAC_SET_LAUNCH];
    int64_t end_ns = step->start_ns + step->dur_ns;
    int64_t at_ns = step->start_ns;
    int64_t most_ns = 0;
    for (uint64_t i = lac_spans_first_after(launches, at_ns); at_ns < end_ns; i++) {
        bool is_last = i >= launches->count || launches->at[i].start_ns >= end_ns;
        int64_t to_ns = is_last ? end_ns : launches->at[i].start_ns;
        int64_t hole_ns = to_ns - at_ns - lac_spans_length_inside(&diagnosis->waits, at_ns, to_ns);
        if (hole_ns > most_ns) {
            most_ns = hole_ns;
            longest = (struct lac_span){at_ns, to_ns};
        }
        at_ns = is_last ? end_ns : launches->at[i].end_ns;
    }
    return longest;
}

/** The part of a step that writes a checkpoint; of no length when none does. */
static struct lac_span writing_inside(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_diagnosis *diagnosis = search->diagnosis;
    const struct lac_step *step = &diagnosis->analysis->steps[s];
    const struct lac_step_work *work = &search->works[s];
    struct lac_span none = {0, 0};
    int64_t own_ns = lac_step_own_ns(step);
    if (!lac_step_kind_is_open(step)) {
        return none;
    }
    if (work->saving_end_ns - work->saving_start_ns > own_ns / 5) {
        return (struct lac_span){work->saving_start_ns, work->saving_end_ns};
    }
    bool copies = work->to_host_bytes >= CHECKPOINT_MIN_BYTES &&
                  work->to_host_bytes / CHECKPOINT_MIN_FACTOR >= search->usual.to_host_bytes;
    bool is_longer = own_ns > search->usual.own_ns + search->usual.own_ns / 5;
    /* a validation copies what it predicted: only what comes behind it may be a checkpoint */
    bool validates = lacks_training(search, s) && (int64_t)step->op_count * 4 > search->usual.ops;
    if (!copies || !is_longer || validates || diagnosis->main_host == LAC_NONE) {
        return none;
    }
    struct lac_span hole = longest_hole(diagnosis, step);
    bool is_long = hole.end_ns - hole.start_ns > own_ns / 5;
    if (is_long && diagnosis->analysis->main_device != LAC_NONE) {
        /* what the device still computes at its start is the step's */
        const struct lac_spans *compute =
            &diagnosis->device_sets[diagnosis->analysis->main_device].compute;
        uint64_t after = lac_spans_first_after(compute, hole.end_ns - 1);
        bool is_in_hole = after > 0 && compute->at[after - 1].end_ns > hole.start_ns;
        hole.start_ns = is_in_hole ? compute->at[after - 1].end_ns : hole.start_ns;
    }
    return is_long ? hole : none;
}

static enum lac_status find_checkpoints(struct lac_kind_search *search)
{
    struct lac_diagnosis *diagnosis = search->diagnosis;
    struct lac_analysis *analysis = diagnosis->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_span writing = writing_inside(search, s);
        search->works[s].writing = writing;
        all += writing.end_ns > writing.start_ns;
    }
    for (uint32_t s = 0; s < analysis->step_count && all * 3 <= analysis->step_count; s++) {
        struct lac_span writing = search->works[s].writing;
        if (writing.end_ns <= writing.start_ns) {
            continue;
        }
        const struct lac_step_work *work = &search->works[s];
        const char *why =
            work->saving_end_ns > 0
                ? "Python is in a function that saves a state"
                : lac_texts_add(&analysis->texts, "copies %s to the host, then launches nothing",
                                lac_say_bytes(work->to_host_bytes).text);
        lac_step_kind_set(diagnosis, s, LAC_KIND_CHECKPOINT, why);
        analysis->steps[s].left_out = LAC_STEP_OTHER_KIND;
        enum lac_status status =
            lac_stretch_add(diagnosis, writing.start_ns, writing.end_ns, LAC_KIND_CHECKPOINT);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/* -- validation inside a step ------------------------------------------------------------------ */

/** A validation between two updates, where steps are found by them: many batches, one backward
 *  pass. */
static bool holds_validation(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->diagnosis->analysis->steps[s];
    const struct lac_step_work *work = &search->works[s];
    const struct lac_step_usual *usual = &search->usual;
    bool may_be = lac_step_kind_is_open(step) || work->writing.end_ns > work->writing.start_ns;
    return may_be && usual->trains_by_host && work->backward > 0 &&
           work->waits >= usual->waits + 2 && (int64_t)step->op_count * 10 >= usual->ops * 13 &&
           (int64_t)work->backward * 5 <= usual->backward * 6;
}

static enum lac_status find_validation_inside(struct lac_kind_search *search)
{
    struct lac_diagnosis *diagnosis = search->diagnosis;
    struct lac_analysis *analysis = diagnosis->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        all += holds_validation(search, s);
    }
    for (uint32_t s = 0; s < analysis->step_count && all * 3 <= analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        const struct lac_step_work *work = &search->works[s];
        if (!holds_validation(search, s)) {
            continue;
        }
        const char *why = lac_texts_add(
            &analysis->texts, "takes %u batches for one backward pass, where other steps take %lld",
            (unsigned)work->waits, (long long)search->usual.waits);
        /* before the training of the step, or behind it, up to a checkpoint */
        const struct lac_span *writing = &work->writing;
        bool is_before = work->first_backward_ns >= work->last_wait_ns;
        int64_t from_ns = is_before ? step->start_ns : work->wait_after_backward_ns;
        int64_t to_ns = is_before ? work->last_wait_ns : step->start_ns + step->dur_ns;
        if (writing->end_ns > writing->start_ns && writing->start_ns > from_ns) {
            to_ns = writing->start_ns < to_ns ? writing->start_ns : to_ns;
        }
        if (to_ns - from_ns > writing->end_ns - writing->start_ns) {
            lac_step_kind_set(diagnosis, s, LAC_KIND_VALIDATION, why);
        }
        step->left_out = LAC_STEP_OTHER_KIND;
        enum lac_status status = lac_stretch_add(diagnosis, from_ns, to_ns, LAC_KIND_VALIDATION);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/* -- recompilation ----------------------------------------------------------------------------- */

/** Loads of a step as stretches: those of a fiftieth of it, or from the first to the last. */
static enum lac_status add_loads(struct lac_diagnosis *diagnosis, const struct lac_spans *modules,
                                 const struct lac_step *step)
{
    int64_t end_ns = step->start_ns + step->dur_ns;
    int64_t hull_start_ns = end_ns;
    int64_t hull_end_ns = step->start_ns;
    uint32_t added = 0;
    for (uint64_t i = lac_spans_first_after(modules, step->start_ns);
         i < modules->count && modules->at[i].start_ns < end_ns; i++) {
        int64_t from_ns =
            modules->at[i].start_ns > step->start_ns ? modules->at[i].start_ns : step->start_ns;
        int64_t to_ns = modules->at[i].end_ns < end_ns ? modules->at[i].end_ns : end_ns;
        hull_start_ns = from_ns < hull_start_ns ? from_ns : hull_start_ns;
        hull_end_ns = to_ns > hull_end_ns ? to_ns : hull_end_ns;
        if (to_ns - from_ns < step->dur_ns / 50) {
            continue;
        }
        enum lac_status status = lac_stretch_add(diagnosis, from_ns, to_ns, LAC_KIND_RECOMPILE);
        if (status) {
            return status;
        }
        added++;
    }
    return added > 0 ? LAC_OK
                     : lac_stretch_add(diagnosis, hull_start_ns, hull_end_ns, LAC_KIND_RECOMPILE);
}

/** Whether a step loads for a tenth of its own time; one that did other work, of a usual step's. */
static bool loads_much(const struct lac_kind_search *search, const struct lac_step *step,
                       int64_t loading_ns)
{
    int64_t whole_ns = lac_step_kind_is_open(step) ? lac_step_own_ns(step) : search->usual.own_ns;
    bool is_whole = step->kind != LAC_KIND_WARM_UP && step->kind != LAC_KIND_TRUNCATED;
    return is_whole && loading_ns > 0 && loading_ns >= whole_ns / 10;
}

static enum lac_status find_recompiles(struct lac_kind_search *search)
{
    struct lac_diagnosis *diagnosis = search->diagnosis;
    struct lac_analysis *analysis = diagnosis->analysis;
    if (diagnosis->main_host == LAC_NONE) {
        return LAC_OK;
    }
    const struct lac_spans *modules = &diagnosis->hosts[diagnosis->main_host].sets[LAC_SET_MODULE];
    for (uint32_t s = FIRST_STEPS; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t loading_ns =
            lac_spans_length_inside(modules, step->start_ns, step->start_ns + step->dur_ns);
        if (!loads_much(search, step, loading_ns)) {
            continue;
        }
        const char *why = diagnosis->why_kind[LAC_KIND_RECOMPILE];
        if (!why) {
            why =
                lac_texts_add(&analysis->texts,
                              "code is loaded or compiled for %s of a step of %s, after the first",
                              lac_say_ns(loading_ns).text, lac_say_ns(step->dur_ns).text);
        }
        if (lac_step_kind_is_open(step)) {
            lac_step_kind_set(diagnosis, s, LAC_KIND_RECOMPILE, why);
        }
        enum lac_status status = add_loads(diagnosis, modules, step);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/* -- others ------------------------------------------------------------------------------------ */

/** Launches a fifth more or fewer operations than others do. */
static bool is_unlike(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->diagnosis->analysis->steps[s];
    int64_t apart = llabs((int64_t)step->op_count - search->usual.ops);
    return step->kind == LAC_KIND_TRAIN && step->left_out == LAC_STEP_KEPT &&
           apart > search->usual.ops / 5 + 3;
}

/** A few steps, alike among themselves, that do other work than most: an update after micro-steps
 *  is none of them, and where all steps differ, nothing is said. */
static void find_others(struct lac_kind_search *search)
{
    struct lac_diagnosis *diagnosis = search->diagnosis;
    struct lac_analysis *analysis = diagnosis->analysis;
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    uint32_t count = 0;
    uint32_t updates = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        if (is_unlike(search, s)) {
            uint32_t ops = (uint32_t)analysis->steps[s].op_count;
            least = ops < least ? ops : least;
            most = ops > most ? ops : most;
            updates += search->works[s].optimizer > 0;
            count++;
        }
    }
    bool is_boundary =
        analysis->is_step_micro || (updates == count && !search->usual.trains_by_kernels);
    bool is_cluster = count >= 2 && most - least <= most / 10;
    const char *why = lac_texts_add(
        &analysis->texts, "launches %u operations, other steps %lld; nothing says what they do",
        (unsigned)most, (long long)search->usual.ops);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        bool is_other =
            is_cluster && !is_boundary && search->usual.are_alike && is_unlike(search, s);
        if (is_other || analysis->steps[s].kind == LAC_KIND_OTHER) {
            lac_step_kind_set(diagnosis, s, LAC_KIND_OTHER,
                              is_other ? why
                                       : "launches half or twice as many operations as others");
        }
    }
}

enum lac_status lac_steps_find_kinds(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    struct lac_kind_search search = {.diagnosis = diagnosis};
    search.works = malloc(analysis->step_count * sizeof *search.works);
    search.scratch = malloc(analysis->step_count * sizeof *search.scratch);
    enum lac_status status = search.works && search.scratch ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        status = lac_step_works_collect(&search);
    }
    if (!status) {
        status = find_checkpoints(&search);
    }
    if (!status) {
        status = find_validation_runs(&search);
    }
    if (!status) {
        status = find_validation_inside(&search);
    }
    lac_stretches_sort(diagnosis);
    if (!status && !diagnosis->has_device_steps) {
        status = lac_steps_find_epochs(&search);
    }
    if (!status) {
        status = find_recompiles(&search);
    }
    if (!status) {
        find_others(&search);
    }
    lac_stretches_sort(diagnosis);
    free(search.works);
    free(search.scratch);
    return status;
}
