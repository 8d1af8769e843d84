/*
 * What the steps did that no range names, by what they hold. Leaves out of the kept steps what is
 * other work (a validation, a checkpoint); what returns inside the training (the end of an epoch, a
 * recompilation) gets its name and stays.
 */

#include "analysis/diagnose/steps/step_kinds.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    CHECKPOINT_MIN_BYTES = 16 << 20, /* copied to the host in one step */
    CHECKPOINT_MIN_FACTOR = 8,       /* of what other steps copy */
    FIRST_STEPS = 2,                 /* in which loading code is first use */
};

/* -- validation, by what is missing ------------------------------------------------------------ */

/** Kernels, but nothing of a backward pass or an optimizer, where other steps have it. */
static bool lacks_training(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->facts->analysis->steps[s];
    const struct lac_step_features *work = &search->works[s];
    if (!lac_step_kind_is_open(step) || lac_step_does_nothing(search, s) || work->backward > 0 ||
        work->optimizer > 0) {
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
    uint32_t count = search->facts->analysis->step_count;
    uint32_t length = 0;
    while (s + length < count && lacks_training(search, s + length)) {
        length++;
    }
    bool is_run = length > 1 || (length == 1 && has_loader_of_its_own(search, s));
    /* its loader is asked once more than it has batches */
    bool ends_in_vain = s + length < count && search->works[s + length].waits == 1 &&
                        lac_step_does_nothing(search, s + length);
    return is_run ? length + ends_in_vain : 0;
}

static enum lac_status find_validation_runs(struct lac_kind_search *search)
{
    struct lac_facts *facts = search->facts;
    struct lac_analysis *analysis = facts->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        uint32_t length = run_without_training(search, s);
        all += length;
        s += length > 0 ? length - 1 : 0;
    }
    if (all * 2 > analysis->step_count && !search->usual.validates_longer) {
        return LAC_OK;
    }
    const char *why = search->usual.trains_by_host
                          ? "kernels without a backward pass or optimizer, unlike other steps"
                          : "fewer kernels and no optimizer, several steps in a row";
    enum lac_status status = LAC_OK;
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        uint32_t end = s + run_without_training(search, s);
        if (end == s) {
            continue;
        }
        int64_t from_ns = analysis->steps[s].start_ns;
        for (; s < end; s++) {
            lac_step_kind_set(facts, s, LAC_KIND_VALIDATION, why);
            analysis->steps[s].left_out = LAC_STEP_OTHER_KIND;
        }
        const struct lac_step *last = &analysis->steps[end - 1];
        int64_t to_ns = last->start_ns + last->dur_ns;
        /* where a checkpoint follows, its step begins with what is left of the validation */
        const struct lac_step_features *next =
            end < analysis->step_count ? &search->works[end] : NULL;
        bool is_writing = next != NULL && next->writing.end_ns > next->writing.start_ns;
        if (is_writing && next->backward == 0 && next->optimizer == 0) {
            to_ns = next->writing.start_ns;
        }
        status = lac_stretch_add(facts, from_ns, to_ns, LAC_KIND_VALIDATION);
        s = end - 1;
    }
    return status;
}

/* -- checkpoints, by what they copy ------------------------------------------------------------ */

/** The longest time in a step in which its process launches nothing and waits for no data. */
static struct lac_span longest_hole(const struct lac_facts *facts, const struct lac_step *step)
{
    struct lac_span longest = {step->start_ns, step->start_ns};
    const struct lac_spans *launches = &facts->hosts[facts->main_host].sets[LAC_SET_LAUNCH];
    int64_t end_ns = step->start_ns + step->dur_ns;
    int64_t at_ns = step->start_ns;
    int64_t most_ns = 0;
    for (uint64_t i = lac_spans_first_after(launches, at_ns); at_ns < end_ns; i++) {
        bool is_last = i >= launches->count || launches->at[i].start_ns >= end_ns;
        int64_t to_ns = is_last ? end_ns : launches->at[i].start_ns;
        int64_t hole_ns = to_ns - at_ns - lac_spans_length_inside(&facts->waits, at_ns, to_ns);
        if (hole_ns > most_ns) {
            most_ns = hole_ns;
            longest = (struct lac_span){at_ns, to_ns};
        }
        at_ns = is_last ? end_ns : launches->at[i].end_ns;
    }
    return longest;
}

/** Where the copying in a hole begins: not before the device has done what it was given, and at a
 *  call that waits for it for a while, where one is. */
static int64_t begin_of_writing(const struct lac_facts *facts, struct lac_span hole)
{
    const struct lac_host *host = &facts->hosts[facts->main_host];
    int64_t begin_ns = hole.start_ns;
    if (facts->analysis->main_device != LAC_NONE) {
        const struct lac_spans *kernels = &facts->device_sets[facts->analysis->main_device].kernels;
        uint64_t after = lac_spans_first_after(kernels, hole.end_ns - 1);
        bool is_in_hole = after > 0 && kernels->at[after - 1].end_ns > begin_ns;
        begin_ns = is_in_hole ? kernels->at[after - 1].end_ns : begin_ns;
    }
    uint64_t low = 0;
    LAC_BISECT(low, host->blocking_count, middle, host->blocking[middle].start_ns < begin_ns);
    int64_t least_ns = (hole.end_ns - hole.start_ns) / 50; /* shorter ones end what was before */
    for (; low < host->blocking_count && host->blocking[low].start_ns < hole.end_ns; low++) {
        if (host->blocking[low].end_ns - host->blocking[low].start_ns >= least_ns) {
            return host->blocking[low].start_ns;
        }
    }
    return begin_ns;
}

/** The part of a step that writes a checkpoint; of no length when none does. */
static struct lac_span writing_inside(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_facts *facts = search->facts;
    const struct lac_step *step = &facts->analysis->steps[s];
    const struct lac_step_features *work = &search->works[s];
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
    if (!copies || !is_longer || validates || facts->main_host == LAC_NONE) {
        return none;
    }
    struct lac_span hole = longest_hole(facts, step);
    bool is_long = hole.end_ns - hole.start_ns > own_ns / 5;
    hole.start_ns = is_long ? begin_of_writing(facts, hole) : hole.start_ns;
    return is_long ? hole : none;
}

static enum lac_status find_checkpoints(struct lac_kind_search *search)
{
    struct lac_facts *facts = search->facts;
    struct lac_analysis *analysis = facts->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_span writing = writing_inside(search, s);
        search->works[s].writing = writing;
        all += writing.end_ns > writing.start_ns;
    }
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        struct lac_step_features *work = &search->works[s];
        if (all * 3 > analysis->step_count) { /* it is what this job does */
            work->writing = (struct lac_span){0, 0};
        }
        struct lac_span writing = work->writing;
        if (writing.end_ns <= writing.start_ns) {
            continue;
        }
        const char *why = facts->why_kind[LAC_KIND_CHECKPOINT];
        if (why == NULL) {
            why = work->saving_end_ns > 0
                      ? "a Python function saves state"
                      : lac_texts_add(&analysis->texts,
                                      "copies %s to the host, then launches nothing",
                                      lac_format_bytes(work->to_host_bytes).text);
        }
        lac_step_kind_set(facts, s, LAC_KIND_CHECKPOINT, why);
        analysis->steps[s].left_out = LAC_STEP_OTHER_KIND;
        enum lac_status status =
            lac_stretch_add(facts, writing.start_ns, writing.end_ns, LAC_KIND_CHECKPOINT);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/* -- validation outside of marks --------------------------------------------------------------- */

/** Where steps have marks and updates are recorded: several batches between two steps, or behind the
 *  last, without an update. */
static enum lac_status find_validation_between(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    bool has_marks = lac_steps_have_marks(analysis);
    enum lac_status status = LAC_OK;
    for (uint32_t s = 1; s <= analysis->step_count && has_marks && !status; s++) {
        const struct lac_step *before = &analysis->steps[s - 1];
        int64_t from_ns = before->host_start_ns + before->host_dur_ns;
        int64_t to_ns =
            s < analysis->step_count ? analysis->steps[s].host_start_ns : analysis->duration_ns + 1;
        uint64_t first = 0;
        if (to_ns > from_ns && facts->optimizer_marks.count > 0 &&
            lac_marks_between(&facts->wait_marks, from_ns, to_ns, &first) > 1 &&
            lac_marks_between(&facts->optimizer_marks, from_ns, to_ns, NULL) == 0) {
            int64_t first_ns = facts->wait_marks.at[first].start_ns;
            bool is_at_once = (first_ns - from_ns) * 20 < to_ns - from_ns;
            status =
                lac_stretch_add(facts, is_at_once ? from_ns : first_ns, to_ns, LAC_KIND_VALIDATION);
        }
    }
    return status;
}

/* -- validation inside a step ------------------------------------------------------------------ */

/** A validation between two updates, where steps are found by them: many batches, one backward
 *  pass. */
static bool holds_validation(const struct lac_kind_search *search, uint32_t s)
{
    const struct lac_step *step = &search->facts->analysis->steps[s];
    const struct lac_step_features *work = &search->works[s];
    const struct lac_step_usual *usual = &search->usual;
    bool may_be = lac_step_kind_is_open(step) || work->writing.end_ns > work->writing.start_ns;
    return may_be && usual->trains_by_host && work->backward > 0 &&
           work->waits >= usual->waits + 2 && (int64_t)step->op_count * 10 >= usual->ops * 13 &&
           (int64_t)work->backward * 5 <= usual->backward * 6;
}

static enum lac_status find_validation_inside(struct lac_kind_search *search)
{
    struct lac_facts *facts = search->facts;
    struct lac_analysis *analysis = facts->analysis;
    uint64_t all = 0;
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        all += holds_validation(search, s);
    }
    for (uint32_t s = 0; s < analysis->step_count && all * 3 <= analysis->step_count; s++) {
        struct lac_step *step = &analysis->steps[s];
        const struct lac_step_features *work = &search->works[s];
        if (!holds_validation(search, s)) {
            continue;
        }
        const char *why = facts->why_kind[LAC_KIND_VALIDATION];
        if (why == NULL) {
            why = lac_texts_add(&analysis->texts,
                                "takes %u batches per backward pass, other steps take %lld",
                                (unsigned)work->waits, (long long)search->usual.waits);
        }
        /* before the training of the step, or behind it, up to a checkpoint */
        const struct lac_span *writing = &work->writing;
        bool is_before = work->first_backward_ns >= work->last_wait_ns;
        int64_t from_ns = is_before ? step->start_ns : work->wait_after_backward_ns;
        int64_t to_ns = is_before ? work->last_wait_ns : step->start_ns + step->dur_ns;
        if (writing->end_ns > writing->start_ns && writing->start_ns > from_ns) {
            to_ns = writing->start_ns < to_ns ? writing->start_ns : to_ns;
        }
        if (to_ns - from_ns > writing->end_ns - writing->start_ns) {
            lac_step_kind_set(facts, s, LAC_KIND_VALIDATION, why);
        }
        step->left_out = LAC_STEP_OTHER_KIND;
        enum lac_status status = lac_stretch_add(facts, from_ns, to_ns, LAC_KIND_VALIDATION);
        if (status) {
            return status;
        }
    }
    return LAC_OK;
}

/* -- recompilation ----------------------------------------------------------------------------- */

/** Loads of a step as stretches: those of a fiftieth of it, or from the first to the last. */
static enum lac_status add_loads(struct lac_facts *facts, const struct lac_spans *modules,
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
        enum lac_status status = lac_stretch_add(facts, from_ns, to_ns, LAC_KIND_RECOMPILE);
        if (status) {
            return status;
        }
        added++;
    }
    return added > 0 ? LAC_OK
                     : lac_stretch_add(facts, hull_start_ns, hull_end_ns, LAC_KIND_RECOMPILE);
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
    struct lac_facts *facts = search->facts;
    struct lac_analysis *analysis = facts->analysis;
    if (facts->main_host == LAC_NONE) {
        return LAC_OK;
    }
    const struct lac_spans *modules = &facts->hosts[facts->main_host].sets[LAC_SET_MODULE];
    for (uint32_t s = FIRST_STEPS; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t loading_ns =
            lac_spans_length_inside(modules, step->start_ns, step->start_ns + step->dur_ns);
        if (!loads_much(search, step, loading_ns)) {
            continue;
        }
        const char *why = facts->why_kind[LAC_KIND_RECOMPILE];
        if (why == NULL) {
            why = lac_texts_add(
                &analysis->texts,
                "code is loaded or compiled for %s of a %s step, after the first steps",
                lac_format_ns(loading_ns).text, lac_format_ns(step->dur_ns).text);
        }
        if (lac_step_kind_is_open(step)) {
            lac_step_kind_set(facts, s, LAC_KIND_RECOMPILE, why);
        }
        enum lac_status status = add_loads(facts, modules, step);
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
    const struct lac_step *step = &search->facts->analysis->steps[s];
    int64_t apart = llabs((int64_t)step->op_count - search->usual.ops);
    return step->kind == LAC_KIND_TRAIN && step->left_out == LAC_STEP_KEPT &&
           apart > search->usual.ops / 5 + 3;
}

/** A few steps, alike among themselves, that do other work than most: an update after micro-steps
 *  is none of them, and where all steps differ, nothing is said. */
static void find_others(struct lac_kind_search *search)
{
    struct lac_facts *facts = search->facts;
    struct lac_analysis *analysis = facts->analysis;
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
        &analysis->texts, "launches %u operations, other steps %lld; the trace does not say why",
        (unsigned)most, (long long)search->usual.ops);
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        bool is_other =
            is_cluster && !is_boundary && search->usual.are_alike && is_unlike(search, s);
        if (is_other || analysis->steps[s].kind == LAC_KIND_OTHER) {
            lac_step_kind_set(
                facts, s, LAC_KIND_OTHER,
                is_other ? why : "launches half or twice as many operations as other steps");
        }
    }
}

enum lac_status lac_steps_classify(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_kind_search search = {.facts = facts};
    search.works = malloc(analysis->step_count * sizeof(*search.works));
    search.scratch = malloc(analysis->step_count * sizeof(*search.scratch));
    enum lac_status status =
        search.works != NULL && search.scratch != NULL ? LAC_OK : LAC_ERR_NOMEM;
    if (!status) {
        status = lac_step_features_collect(&search);
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
    if (!status) {
        status = find_validation_between(facts);
    }
    lac_stretches_sort(facts);
    if (!status && !facts->has_device_steps) {
        status = lac_steps_find_epochs(&search);
    }
    if (!status) {
        status = find_recompiles(&search);
    }
    if (!status) {
        find_others(&search);
    }
    lac_stretches_sort(facts);
    free(search.works);
    free(search.scratch);
    return status;
}
