/* The GPU waits for data. */

#include "analysis/diagnose/findings.h"

#include <math.h>
#include <stdint.h>

/** Up to three of the longest gaps in which data was waited for, and what was late. */
static void add_evidence(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t below_ns = INT64_MAX;
    uint64_t last = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t best = UINT64_MAX;
        for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
            const struct lac_gap *gap = &analysis->gaps[g];
            bool is_next = gap->dur_ns < below_ns || (gap->dur_ns == below_ns && g > last);
            if (gap->cause != LAC_CAUSE_DATA_WAIT || !is_next) {
                continue;
            }
            if (best == UINT64_MAX || gap->dur_ns > analysis->gaps[best].dur_ns) {
                best = g;
            }
        }
        if (best == UINT64_MAX) {
            return;
        }
        const struct lac_gap *gap = &analysis->gaps[best];
        below_ns = gap->dur_ns;
        last = best;
        char root[160];
        lac_gap_root_text(analysis, diagnosis->model, gap, root, sizeof root);
        lac_evidence_gap(diagnosis, finding, best,
                         lac_texts_add(&diagnosis->analysis->texts, "idle %s: %s",
                                       lac_say_ns(gap->dur_ns).text, root));
        if (gap->root != LAC_NONE) {
            lac_evidence_slice(diagnosis, finding, gap->root,
                               lac_texts_add(&diagnosis->analysis->texts, "%s", root));
        }
    }
}

/** Without a device: up to three of the longest waits for a batch inside steps. */
static void add_wait_evidence(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    const struct lac_marks *marks = &diagnosis->wait_marks;
    uint64_t chosen[3];
    uint64_t count = 0;
    while (count < 3 && count < marks->count) {
        uint64_t best = UINT64_MAX;
        for (uint64_t i = 0; i < marks->count; i++) {
            const struct lac_mark *mark = &marks->at[i];
            bool is_taken = false;
            for (uint64_t c = 0; c < count; c++) {
                is_taken = is_taken || chosen[c] == i;
            }
            bool is_inside = lac_spans_length_inside(&diagnosis->kept, mark->start_ns,
                                                     mark->start_ns + mark->dur_ns) > 0;
            if (!is_taken && is_inside &&
                (best == UINT64_MAX || mark->dur_ns > marks->at[best].dur_ns)) {
                best = i;
            }
        }
        if (best == UINT64_MAX) {
            return;
        }
        chosen[count++] = best;
        lac_evidence_slice(diagnosis, finding, marks->at[best].slice,
                           lac_texts_add(&diagnosis->analysis->texts, "waited %s for a batch",
                                         lac_say_ns(marks->at[best].dur_ns).text));
    }
}

static const char *why_in_process(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    if (analysis->main_device == LAC_NONE) {
        return lac_texts_add(
            &analysis->texts,
            "Loading in the training process (num_workers 0): each batch takes %s, and meanwhile "
            "nothing is trained. The wait is %.1f %% of the steps.",
            lac_say_ns(loader->fetch_mean_ns).text, loader->wait_pct_of_steps);
    }
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    return lac_texts_add(
        &analysis->texts,
        "Loading in the training process (num_workers 0): each batch takes %s, and meanwhile "
        "nothing "
        "is launched. The wait is %.1f %% of the steps; %.1f of %.1f ms that the GPU is idle lie "
        "inside it.",
        lac_say_ns(loader->fetch_mean_ns).text, loader->wait_pct_of_steps,
        (double)loader->starved_ns / 1e6, (double)device->idle_ns / 1e6);
}

static const char *why_workers(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_step_time *time = diagnosis->time;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS) {
        return lac_texts_add(
            &analysis->texts,
            "The loader delivers a batch every %s; everything else needs %s a step. "
            "What a batch spends its time on was not recorded.",
            lac_say_ns(llround(time->step_ns)).text, lac_say_ns(llround(time->s_ns)).text);
    }
    const char *load = "";
    if (!isnan(loader->worker_busy_pct)) {
        load = lac_texts_add(&analysis->texts, " The workers are busy %.0f %% of the time.",
                             loader->worker_busy_pct);
    }
    return lac_texts_add(
        &analysis->texts,
        "%d worker%s %s for each batch, so one is ready every %s; %s %s a step.%s%s",
        (int)loader->num_workers, loader->num_workers == 1 ? " needs" : "s need",
        lac_say_ns(loader->fetch_mean_ns).text, lac_say_ns(llround(time->data_ns)).text,
        analysis->main_device == LAC_NONE ? "everything else takes"
                                          : "copying, computing and launching take",
        lac_say_ns(llround(time->s_ns)).text, load, lac_batch_parts_text(diagnosis));
}

/** Whether the CPU time of the batches alone keeps the allowed cores busy: no worker adds to that.
 */
static bool is_short_of_cores(const struct lac_diagnosis *diagnosis)
{
    const struct lac_step_time *time = diagnosis->time;
    return time->cores_ns >= 0.75 * time->step_ns;
}

/** Slow batches among fast ones hold up the queue: workers until the loader, played again, keeps
 * up; as many as the mean asks for when it then does. */
static int32_t workers_for_tail(const struct lac_diagnosis *diagnosis, int32_t wanted)
{
    enum { TIMES_MOST = 4 };
    const struct lac_step_time *time = diagnosis->time;
    if (!time->fetch_ns || wanted <= 0 || time->is_in_process) {
        return wanted;
    }
    int32_t least = wanted;
    double enough_ns = 1.03 * fmax(time->s_ns, time->cores_ns);
    while (wanted < TIMES_MOST * least &&
           lac_loader_step(time, time->s_ns, wanted, 1.0) > enough_ns) {
        wanted++;
    }
    return wanted;
}

/** Workers wanted, as many as the allowed cores carry; -1 when more do not help. */
static int32_t workers_wanted(const struct lac_diagnosis *diagnosis)
{
    const struct lac_loader_facts *loader = &diagnosis->analysis->loader;
    int32_t wanted = workers_for_tail(diagnosis, loader->recommended_num_workers);
    int32_t cores = diagnosis->settings.allowed_cores;
    if (cores <= 0 || loader->fetch_cpu_mean_ns <= 0 || wanted <= 0) {
        return wanted;
    }
    double carried =
        0.9 * cores * (double)loader->fetch_mean_ns / (double)loader->fetch_cpu_mean_ns;
    return carried < wanted ? (int32_t)fmax(1.0, floor(carried)) : wanted;
}

/** Cores by the CPU time of a batch where that is known: workers that wait for storage need few. */
static const char *workers_cost(struct lac_diagnosis *diagnosis, int32_t more, double step_ns)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    int64_t cpu_ns = analysis->loader.fetch_cpu_mean_ns;
    int32_t allowed = diagnosis->settings.allowed_cores;
    const char *of = allowed > 0
                         ? lac_texts_add(&analysis->texts, " of the %s that the job may use",
                                         lac_say_count(allowed, "core").text)
                         : "";
    if (cpu_ns != LAC_UNKNOWN_NS && step_ns > 0.0) {
        return lac_texts_add(&analysis->texts,
                             "%s more; all workers together keep %.1f cores busy%s. Shared memory "
                             "for %s more.",
                             lac_say_count(more, "process").text, (double)cpu_ns / step_ns, of,
                             lac_say_count(2 * (int64_t)more, "batch").text);
    }
    return lac_texts_add(&analysis->texts, "%s more%s, and shared memory for %s more.",
                         lac_say_count(more, "core").text, of,
                         lac_say_count(2 * (int64_t)more, "batch").text);
}

/** More workers than there are: the change, what it needs and what would refute it. */
static void propose_workers(struct lac_diagnosis *diagnosis, struct lac_finding *finding,
                            int32_t wanted)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.workers = wanted;
    lac_finding_price(diagnosis, finding, &what_if);
    int32_t now = loader->num_workers;
    finding->brief = lac_texts_add(&analysis->texts, "num_workers=%d", (int)wanted);
    finding->change = lac_texts_add(&analysis->texts, "DataLoader(..., num_workers=%d)  # now %d",
                                    (int)wanted, (int)now);
    finding->where = diagnosis->settings.loader_at;
    finding->expect =
        lac_texts_add(&analysis->texts, "%s, if a batch still takes %s with %s.",
                      lac_finding_expect(diagnosis, finding),
                      lac_say_ns(loader->fetch_mean_ns).text, lac_say_count(wanted, "worker").text);
    finding->costs =
        workers_cost(diagnosis, wanted - (now > 0 ? now : 0), (double)finding->step_mid_ns);
    finding->wrong_if =
        lac_texts_add(&analysis->texts, "a batch takes more than %s with %s.",
                      lac_say_ns(llround((double)finding->step_mid_ns * wanted)).text,
                      lac_say_count(wanted, "worker").text);
    finding->check = lac_texts_add(
        &analysis->texts, "record ten steps with num_workers=%d and analyze them: %s a step",
        (int)wanted, lac_say_ns(finding->step_mid_ns).text);
}

/** No number can be given: the workers' time was not recorded, or more of them do not help. */
static void propose_measuring(struct lac_diagnosis *diagnosis, struct lac_finding *finding)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_step_time *time = diagnosis->time;
    double best_ns = time->s_ns;
    bool is_unknown = loader->fetch_mean_ns == LAC_UNKNOWN_NS;
    bool is_known_way = is_unknown || is_short_of_cores(diagnosis);
    double steps[LAC_CASE_COUNT_] = {
        best_ns, is_known_way ? best_ns : 0.5 * (best_ns + time->step_ns), time->step_ns};
    if (is_unknown && analysis->main_device != LAC_NONE) { /* the host may get all its wait back */
        double wait_ns =
            (double)lac_spans_intersection_length(&diagnosis->waits, &diagnosis->kept) /
            (double)analysis->step_kept_count;
        steps[LAC_CASE_BEST] = fmin(best_ns, fmax(time->busy_ns, time->step_ns - wait_ns));
    }
    lac_finding_price_steps(diagnosis, finding, steps);
    if (is_unknown) {
        finding->brief = "record the loader";
        finding->expect = lac_texts_add(&analysis->texts, "%s, if the loader keeps up.",
                                        lac_finding_expect(diagnosis, finding));
        finding->costs = "A recording of some minutes; the change itself depends on what it shows.";
        finding->wrong_if = "the wait is as long with the same batch again and again.";
        finding->check = "lacuna run -- python train.py, then lacuna analyze what it recorded";
        finding->change =
            "Record the workers (lacuna run -- python train.py): what a batch spends its "
            "time on decides between more workers, a faster decoder and smaller files.";
        return;
    }
    finding->brief =
        is_short_of_cores(diagnosis) ? "more cores, or a cheaper batch" : "a cheaper batch";
    finding->costs = "Work on the pipeline; pictures stored smaller or decoded differently change "
                     "what the model sees a little.";
    finding->check =
        lac_texts_add(&analysis->texts, "time one worker alone: a batch has to take less than %s",
                      lac_say_ns(llround(best_ns * fmax(1.0, loader->num_workers))).text);
    finding->expect =
        lac_texts_add(&analysis->texts,
                      "%s if a batch gets half as expensive as it has to; %s a step "
                      "is what everything else needs.",
                      lac_finding_expect(diagnosis, finding), lac_say_ns(llround(best_ns)).text);
    if (is_short_of_cores(diagnosis)) {
        int32_t cores = diagnosis->settings.allowed_cores;
        finding->change = lac_texts_add(
            &analysis->texts,
            "More workers won't help: a batch costs %s of CPU time and the job may use %s, so one "
            "is ready every %s at best. Ask for more cores (#SBATCH --cpus-per-task=%d), or make a "
            "batch cheaper (faster decoding, smaller stored files, less work a sample).",
            lac_say_ns(loader->fetch_cpu_mean_ns).text, lac_say_count(cores, "core").text,
            lac_say_ns(llround(time->cores_ns)).text,
            (int)ceil(1.1 * (double)loader->fetch_cpu_mean_ns / fmax(best_ns, 1.0)) + 1);
        finding->expect = lac_texts_add(&analysis->texts, "%s with that many cores.",
                                        lac_finding_expect(diagnosis, finding));
        finding->wrong_if = "cores are idle while the training waits (top: less than 90 % in use).";
        return;
    }
    finding->change =
        "More workers won't help: make a batch cheaper (faster decoding, smaller stored "
        "files, less work a sample) or allow the job more cores.";
    finding->wrong_if = "a run with twice the workers is faster.";
}

void lac_find_input_starvation(struct lac_diagnosis *diagnosis)
{
    struct lac_analysis *analysis = diagnosis->analysis;
    const struct lac_step_time *time = diagnosis->time;
    double starved_pct = lac_pct_of_step(diagnosis, time->starved_ns);
    if (starved_pct < 5.0 || !analysis->loader.is_present) {
        return;
    }
    struct lac_finding *finding = lac_finding_new(diagnosis, "input-starvation");
    if (!finding) {
        return;
    }
    lac_finding_cost(diagnosis, finding, time->starved_ns);
    finding->title =
        lac_texts_add(&analysis->texts, "%s waits %s of every %s step for data (%s)",
                      analysis->main_device == LAC_NONE ? "The training process" : "The GPU",
                      lac_say_ns(llround(time->starved_ns)).text,
                      lac_say_ns(analysis->step_mean_ns).text, lac_say_pct(starved_pct).text);
    finding->why = time->is_in_process ? why_in_process(diagnosis) : why_workers(diagnosis);
    int32_t wanted = is_short_of_cores(diagnosis) ? -1 : workers_wanted(diagnosis);
    analysis->loader.recommended_num_workers = wanted > analysis->loader.num_workers ? wanted : -1;
    if (wanted > 0 && wanted > analysis->loader.num_workers) {
        propose_workers(diagnosis, finding, wanted);
    } else {
        propose_measuring(diagnosis, finding);
    }
    finding->severity = starved_pct >= 20.0   ? LAC_SEVERITY_CRITICAL
                        : starved_pct >= 10.0 ? LAC_SEVERITY_WARNING
                                              : LAC_SEVERITY_INFO;
    finding->confidence = analysis->step_kept_count >= 2 * STEPS_MIN ? 0.9 : 0.7;
    if (time->is_in_process || analysis->loader.fetch_count == 0) {
        finding->confidence -= 0.2;
    }
    if (analysis->main_device == LAC_NONE) {
        add_wait_evidence(diagnosis, finding);
    } else {
        add_evidence(diagnosis, finding);
    }
}
