/* Loading of data: how long the training waited, how long the device did, what a batch takes. */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 4096 };

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/**
 * Number of workers from the ids that fetches carry: the largest id that fetched, plus one. A recording of
 * less than a round lacks the last ones. Batch b is worker b mod n's: where that contradicts the largest
 * id, the one larger number that fits; 0 without ids.
 *
 * @return -1 where several larger numbers fit
 */
static int32_t workers_seen(const struct lac_facts *facts)
{
    int32_t most = -1;
    uint64_t rounds = 0; /* a multiple of their number; 0 in the first round */
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        if (fetch->worker < 0 || fetch->worker >= WORKERS_MAX) {
            continue;
        }
        most = fetch->worker > most ? fetch->worker : most;
        int64_t apart = fetch->batch < 0 ? 0 : fetch->batch - fetch->worker;
        rounds = greatest_common_divisor((uint64_t)llabs(apart), rounds);
    }
    uint64_t seen = (uint64_t)((int64_t)most + 1);
    if (seen == 0 || rounds % seen == 0) {
        return most + 1;
    }
    int32_t fit = 0;
    uint32_t fit_count = 0;
    for (uint64_t n = seen + 1; n <= rounds && n <= WORKERS_MAX; n++) {
        if (rounds % n == 0) {
            fit = (int32_t)n;
            fit_count++;
        }
    }
    /* none: batches do not go round, as with workers that end early */
    return fit_count == 0 ? most + 1 : fit_count == 1 ? fit : -1;
}

static bool is_in(const struct lac_spans *spans, int64_t t_ns)
{
    return lac_spans_length_inside(spans, t_ns, t_ns + 1) > 0;
}

/** Which iterator of PyTorch's a wait is for, by its name. */
enum iterator_kind { ITERATOR_UNKNOWN, ITERATOR_IN_PROCESS, ITERATOR_WITH_WORKERS };

static enum iterator_kind iterator_by_name(const struct lac_facts *facts, uint64_t slice)
{
    const struct lac_model *model = facts->model;
    const char *name = lac_model_str(model, model->slices.name[slice]);
    if (strstr(name, "#_SingleProcess") != NULL) {
        return ITERATOR_IN_PROCESS;
    }
    return strstr(name, "#_MultiProcess") != NULL ? ITERATOR_WITH_WORKERS : ITERATOR_UNKNOWN;
}

/** Its own name says so, or that of what it is in: of two ranges for one wait, the one that knows the
 *  batch may be the inner one. */
static enum iterator_kind iterator_of(const struct lac_facts *facts, const struct lac_mark *wait)
{
    enum { ENCLOSING_MAX = 4 };
    const struct lac_slices *slices = &facts->model->slices;
    const uint64_t first = facts->model->tracks[wait->track].first;
    enum iterator_kind kind = iterator_by_name(facts, wait->slice);
    for (uint64_t back = 1; back <= ENCLOSING_MAX && kind == ITERATOR_UNKNOWN; back++) {
        const uint64_t outer = wait->slice - back;
        if (wait->slice < first + back) {
            break;
        }
        if (slices->start_ns[outer] + slices->dur_ns[outer] >= wait->start_ns + wait->dur_ns) {
            kind = iterator_by_name(facts, outer);
        }
    }
    return kind;
}

/** The iterator that the training asks, where a validation asks another kind: the one that was asked
 *  last before most updates of the parameters; without these the one that is asked most. */
static enum iterator_kind training_iterator(const struct lac_facts *facts)
{
    const struct lac_marks *waits = &facts->wait_marks;
    const struct lac_marks *updates = &facts->optimizer_marks;
    uint64_t asked[] = {0, 0, 0};
    uint64_t trained[] = {0, 0, 0};
    enum iterator_kind last = ITERATOR_UNKNOWN;
    uint64_t update = 0;
    for (uint64_t i = 0; i < waits->count; i++) {
        for (; update < updates->count && updates->at[update].start_ns < waits->at[i].start_ns;
             update++) {
            trained[last]++;
        }
        last = iterator_of(facts, &waits->at[i]);
        asked[last]++;
    }
    trained[last] += updates->count - update;
    const uint64_t *by =
        trained[ITERATOR_IN_PROCESS] != trained[ITERATOR_WITH_WORKERS] ? trained : asked;
    if (by[ITERATOR_WITH_WORKERS] > by[ITERATOR_IN_PROCESS]) {
        return ITERATOR_WITH_WORKERS;
    }
    return by[ITERATOR_IN_PROCESS] > 0 ? ITERATOR_IN_PROCESS : ITERATOR_UNKNOWN;
}

bool lac_loader_names_workers(const struct lac_facts *facts)
{
    return training_iterator(facts) == ITERATOR_WITH_WORKERS;
}

bool lac_wait_follows_at_once(const struct lac_facts *facts, uint64_t wait)
{
    const struct lac_mark *at = &facts->wait_marks.at[wait];
    if (wait == 0 || at->track != at[-1].track || facts->main_host == LAC_NONE) {
        return false;
    }
    const struct lac_spans *launches = &facts->hosts[facts->main_host].sets[LAC_SET_LAUNCH];
    return lac_spans_length_inside(launches, at[-1].start_ns + at[-1].dur_ns, at->start_ns) == 0;
}

/** A loader that is asked once more than it has batches makes a row now and then, too: that is a step in
 *  which nothing is done. */
static bool asks_in_rows(const struct lac_facts *facts)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < facts->wait_marks.count && facts->has_api; i++) {
        count += lac_wait_follows_at_once(facts, i);
    }
    return (double)count > ROWS_OF_WAITS_MIN * (double)facts->wait_marks.count;
}

void lac_loader_count_workers(struct lac_facts *facts)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    loader->is_present = facts->wait_marks.count > 0 || facts->fetch_count > 0;
    if (!loader->is_present) {
        return;
    }
    facts->asks_in_rows = asks_in_rows(facts);
    int32_t seen = workers_seen(facts);
    enum iterator_kind kind = training_iterator(facts);
    if (facts->settings.num_workers >= 0) {
        loader->num_workers = facts->settings.num_workers;
    } else if (seen != 0) {
        loader->num_workers = seen;
    } else if (kind == ITERATOR_IN_PROCESS ||
               (kind == ITERATOR_UNKNOWN && facts->fetch_count > 0)) {
        loader->num_workers = 0; /* whoever fetches also waits: there are no workers */
    }
    lac_loader_infer_workers(facts);
}

int lac_fetch_by_batch(const void *a, const void *b)
{
    const struct lac_fetch *x = a;
    const struct lac_fetch *y = b;
    const int order = LAC_ORDER(x->batch, y->batch);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

static int by_duration(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

/* -- batches of the training, and of a validation beside it ------------------------------------ */

bool lac_steps_have_marks(const struct lac_analysis *analysis)
{
    return strcmp(analysis->step_method, "profiler_step") == 0 ||
           strcmp(analysis->step_method, "nvtx") == 0;
}

/** A stretch outside of the marked steps is no training when it takes batches: more than the one that
 *  a mark may leave out. */
static enum lac_status add_unmarked(const struct lac_facts *facts, int64_t start_ns, int64_t end_ns,
                                    struct lac_spans *others)
{
    return lac_marks_between(&facts->wait_marks, start_ns, end_ns, NULL) > 1
               ? lac_spans_add_unsorted(others, start_ns, end_ns)
               : LAC_OK;
}

/** What the host did beside training: stretches and steps of other work, and where marks say what a
 *  step is, batches between them, before the first and after the last. */
static enum lac_status collect_others(const struct lac_facts *facts, bool has_names,
                                      struct lac_spans *others)
{
    const struct lac_analysis *analysis = facts->analysis;
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < facts->stretch_count && !status; i++) {
        const struct lac_stretch *at = &facts->stretches[i];
        if (at->kind == LAC_KIND_VALIDATION || at->kind == LAC_KIND_OTHER) {
            status = lac_spans_add_unsorted(others, at->start_ns, at->end_ns);
        }
    }
    int64_t end_ns = 0;
    for (uint32_t s = 0; s < analysis->step_count && !status; s++) {
        const struct lac_step *step = &analysis->steps[s];
        int64_t start_ns = step->host_start_ns;
        if (has_names && start_ns > end_ns) {
            status = add_unmarked(facts, end_ns, start_ns, others);
        }
        end_ns = start_ns + step->host_dur_ns;
        if (!status && step->left_out == LAC_STEP_OTHER_KIND) {
            status = lac_spans_add_unsorted(others, start_ns, end_ns);
        }
    }
    if (!status && has_names) {
        status = add_unmarked(facts, end_ns, analysis->duration_ns + 1, others);
    }
    lac_spans_normalize(others, 0);
    return status;
}

/** Forgets the fetches of a validation's batches: the time and the number of workers are those of the
 *  training's. Where all are, nothing is known of a training. */
static void leave_out_fetches(struct lac_facts *facts, const struct lac_spans *others)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        kept += !is_in(others, fetch->start_ns + fetch->dur_ns / 2);
    }
    if (kept == 0 || kept == facts->fetch_count) {
        return;
    }
    kept = 0;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch fetch = facts->fetches[i];
        if (!is_in(others, fetch.start_ns + fetch.dur_ns / 2)) {
            facts->fetches[kept++] = fetch;
        }
    }
    facts->fetch_count = kept;
    int32_t seen = workers_seen(facts);
    if (facts->settings.num_workers < 0 && seen != 0) {
        loader->num_workers = seen;
    }
}

/** How many batches the thread that waits for them takes in a kept step: gradients of several are
 *  summed up, or two loaders take turns. */
static void count_batches_per_step(const struct lac_facts *facts)
{
    const struct lac_marks *waits = &facts->wait_marks;
    uint32_t track = lac_marks_majority_track(waits);
    uint64_t count = 0;
    for (uint64_t i = 0; i < waits->count; i++) {
        const struct lac_mark *wait = &waits->at[i];
        count += wait->track == track && is_in(&facts->host_kept, wait->start_ns);
    }
    if (count > 0) {
        double per_step = (double)count / facts->analysis->step_kept_count;
        facts->analysis->loader.batches_per_step = (int32_t)fmax(1.0, floor(per_step + 0.5));
    }
}

double lac_batches_per_step(const struct lac_facts *facts)
{
    return fmax(1.0, facts->analysis->loader.batches_per_step);
}

bool lac_part_is_pin(const struct lac_facts *facts, const struct lac_mark *part)
{
    const struct lac_model *model = facts->model;
    return strcmp(lac_model_str(model, model->slices.name[part->slice]), "loader.pin") == 0;
}

/** Mean time to pin a batch, where one thread does it for all workers: they go through it one by one. */
static void measure_pinning(const struct lac_facts *facts, const struct lac_spans *others)
{
    const struct lac_marks *parts = &facts->loader_parts;
    uint32_t waits = lac_marks_majority_track(&facts->wait_marks);
    uint32_t track = LAC_NONE;
    double sum_ns = 0.0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < parts->count && facts->analysis->loader.num_workers > 0; i++) {
        const struct lac_mark *part = &parts->at[i];
        if (part->track == waits || !lac_part_is_pin(facts, part) ||
            is_in(others, part->start_ns)) {
            continue;
        }
        if (track != LAC_NONE && track != part->track) {
            return; /* loaders pin side by side */
        }
        track = part->track;
        sum_ns += (double)part->dur_ns;
        count++;
    }
    if (count > 0) {
        facts->analysis->loader.pin_mean_ns = lac_round(sum_ns / (double)count);
    }
}

double lac_fetch_per_step_ns(const struct lac_facts *facts)
{
    return (double)facts->analysis->loader.fetch_mean_ns * lac_batches_per_step(facts);
}

/** Mean, 95th percentile and CPU time of a fetch. */
static enum lac_status measure_fetches(struct lac_facts *facts)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    uint64_t count = facts->fetch_count;
    if (count == 0) {
        return LAC_OK;
    }
    int64_t *durations = malloc(count * sizeof(*durations));
    if (durations == NULL) {
        return LAC_ERR_NOMEM;
    }
    double sum = 0.0;
    double cpu_sum = 0.0;
    bool has_cpu = true;
    for (uint64_t i = 0; i < count; i++) {
        durations[i] = facts->fetches[i].dur_ns;
        sum += (double)durations[i];
        has_cpu = has_cpu && facts->fetches[i].cpu_ns >= 0;
        cpu_sum += (double)facts->fetches[i].cpu_ns;
    }
    qsort(durations, count, sizeof(*durations), by_duration);
    loader->fetch_count = count;
    loader->fetch_mean_ns = lac_round(sum / (double)count);
    loader->fetch_p95_ns = durations[(count * 95 + 99) / 100 - 1];
    if (has_cpu) {
        loader->fetch_cpu_mean_ns = lac_round(cpu_sum / (double)count);
    }
    free(durations);
    return LAC_OK;
}

/** Share of the time from the first fetch's start to the last one's end that workers fetched. */
static void measure_worker_load(struct lac_facts *facts)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    if (facts->fetch_count < 2 || loader->num_workers < 1) {
        return;
    }
    int64_t first_ns = facts->fetches[0].start_ns;
    int64_t last_ns = first_ns;
    double sum = 0.0;
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        const struct lac_fetch *fetch = &facts->fetches[i];
        sum += (double)fetch->dur_ns;
        int64_t end_ns = fetch->start_ns + fetch->dur_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    double room = (double)(last_ns - first_ns) * loader->num_workers;
    loader->worker_busy_pct = room > 0.0 ? fmin(100.0, 100.0 * sum / room) : (double)NAN;
}

/** Union of waits, inside steps when they have names; starved while the main device was idle. */
static enum lac_status measure_waits(struct lac_facts *facts, bool has_names)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_loader_facts *loader = &analysis->loader;
    struct lac_spans inside = {0};
    enum lac_status status = LAC_OK;
    if (has_names) {
        status = lac_spans_intersect(&facts->waits, &facts->steps, &inside);
    }
    const struct lac_spans *waits = has_names ? &inside : &facts->waits;
    if (!status) {
        loader->wait_ns = lac_spans_length(waits);
        loader->wait_pct_of_steps = lac_pct(lac_spans_intersection_length(waits, &facts->steps),
                                            lac_spans_length(&facts->steps));
        loader->starved_ns = analysis->main_device == LAC_NONE
                                 ? LAC_UNKNOWN_NS
                                 : lac_spans_intersection_length(
                                       waits, &facts->device_sets[analysis->main_device].idle);
    }
    lac_spans_done(&inside);
    return status;
}

/** Whether the last time that the training process asked its loader it got no batch: it loads by
 *  itself, and that takes longer. */
static bool asks_in_vain(const struct lac_facts *facts)
{
    const struct lac_marks *waits = &facts->wait_marks;
    if (facts->analysis->loader.num_workers != 0 || facts->fetch_count > 0 || waits->count < 2) {
        return false;
    }
    int64_t shortest_ns = INT64_MAX;
    for (uint64_t i = 0; i + 1 < waits->count; i++) {
        shortest_ns = waits->at[i].dur_ns < shortest_ns ? waits->at[i].dur_ns : shortest_ns;
    }
    return (double)waits->at[waits->count - 1].dur_ns < ASKED_IN_VAIN_MAX * (double)shortest_ns;
}

/** A single process loads inside its waits: what they take is what a batch takes. */
static void fetch_from_waits(struct lac_facts *facts, const struct lac_spans *others)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    if (loader->fetch_count > 0 || loader->num_workers != 0 || loader->batch_count == 0) {
        return;
    }
    int64_t longest_ns = 0;
    double sum = 0.0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < loader->batch_count; i++) {
        const struct lac_mark *wait = &facts->wait_marks.at[i];
        if (!is_in(others, wait->start_ns) && iterator_of(facts, wait) != ITERATOR_WITH_WORKERS) {
            sum += (double)wait->dur_ns;
            longest_ns = wait->dur_ns > longest_ns ? wait->dur_ns : longest_ns;
            count++;
        }
    }
    if (count > 0) {
        loader->fetch_mean_ns = lac_round(sum / (double)count);
        loader->fetch_p95_ns = longest_ns;
        loader->is_fetch_from_wait = true;
    }
}

/** Workers that nobody recorded: as their waits say. */
static void take_inferred(struct lac_facts *facts)
{
    struct lac_loader_facts *loader = &facts->analysis->loader;
    const struct lac_inferred_loader *inferred = &facts->inferred_loader;
    if (inferred->workers > 0) {
        loader->num_workers = inferred->workers;
        loader->are_workers_inferred = true;
        loader->is_fetch_from_wait = true;
        loader->fetch_mean_ns = lac_round(inferred->fetch_ns);
        loader->fetch_spread = inferred->spread;
    }
}

/** ceil(1.15 f / s): enough workers that a batch is ready every s, and a seventh to spare. */
static void recommend(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_loader_facts *loader = &analysis->loader;
    int64_t s_ns = analysis->step_without_starvation_ns;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS || s_ns == LAC_UNKNOWN_NS || s_ns <= 0) {
        return;
    }
    double starved = (double)(analysis->step_mean_ns - s_ns) / (double)analysis->step_mean_ns;
    if (starved < STARVING_MIN) {
        return;
    }
    double wanted = ceil(WORKERS_MARGIN * lac_fetch_per_step_ns(facts) / (double)s_ns);
    if (wanted >= 1.0 && wanted <= WORKERS_MAX) {
        loader->recommended_num_workers = (int32_t)wanted;
    }
}

enum lac_status lac_loader_measure(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_loader_facts *loader = &analysis->loader;
    if (!loader->is_present) {
        return LAC_OK;
    }
    bool has_names = lac_steps_have_marks(analysis);
    struct lac_spans others = {0};
    loader->batch_count =
        facts->wait_marks.count > 0 ? facts->wait_marks.count : facts->fetch_count;
    loader->batch_count -= asks_in_vain(facts);
    enum lac_status status = collect_others(facts, has_names, &others);
    if (!status) {
        leave_out_fetches(facts, &others);
        count_batches_per_step(facts);
        measure_pinning(facts, &others);
        status = measure_waits(facts, has_names);
    }
    if (!status) {
        status = measure_fetches(facts);
    }
    if (!status) {
        measure_worker_load(facts);
        take_inferred(facts);
        fetch_from_waits(facts, &others);
        recommend(facts);
    }
    lac_spans_done(&others);
    return status;
}
