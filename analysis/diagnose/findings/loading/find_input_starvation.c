/* The GPU waits for data. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* What a worker takes to hand a small batch over: its queue, its pipe, a thread that wakes. */
enum { HAND_OVER_NS = 700000 };

/** A value read from the device right before the wait drained its queue: then the device feels all
 *  of the wait. The call that did, and how much of the waits came behind one. */
static const char *drained_text(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    if (facts->main_host == LAC_NONE) {
        return "";
    }
    const struct lac_host *host = &facts->hosts[facts->main_host];
    int64_t behind_ns = 0;
    int64_t all_ns = 0;
    uint32_t example = LAC_NONE;
    uint64_t call = 0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        if (gap->cause != LAC_CAUSE_DATA_WAIT || gap->dur_ns < GAP_MIN_NS) {
            continue;
        }
        while (call < host->blocking_count && host->blocking[call].start_ns < gap->start_ns) {
            call++;
        }
        bool is_behind =
            call > 0 && host->blocking[call - 1].end_ns >= gap->start_ns - SYNC_RETURN_NS;
        all_ns += gap->dur_ns;
        behind_ns += is_behind ? gap->dur_ns : 0;
        example = is_behind ? host->blocking[call - 1].slice : example;
    }
    if (example == LAC_NONE || 2 * behind_ns < all_ns) {
        return "";
    }
    const char *name = lac_enclosing_name(facts->model, example);
    const char *api = lac_model_str(facts->model, facts->model->slices.name[example]);
    return lac_texts_add(&analysis->texts,
                         " The full wait is exposed: %.60s synchronizes just before it, so the GPU "
                         "queue is empty. Read such values one step later.",
                         name[0] != '\0' ? name : api);
}

static const char *why_in_process(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    if (analysis->main_device == LAC_NONE) {
        return lac_texts_add(
            &analysis->texts,
            "Loading in the training process (num_workers 0): each batch takes %s, and nothing "
            "trains in that time. Loading takes %.0f %% of the steps.%s",
            lac_format_ns(loader->fetch_mean_ns).text, loader->wait_pct_of_steps,
            lac_fetch_breakdown_text(facts));
    }
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    return lac_texts_add(&analysis->texts,
                         "Loading in the training process (num_workers 0): each batch takes %s, "
                         "and nothing is launched in that time. Loading takes %.0f %% of the steps "
                         "and accounts for %s of the %s of GPU idle time.%s%s",
                         lac_format_ns(loader->fetch_mean_ns).text, loader->wait_pct_of_steps,
                         lac_format_ns(loader->starved_ns).text,
                         lac_format_ns(device->idle_ns).text, lac_fetch_breakdown_text(facts),
                         drained_text(facts));
}

static const char *why_workers(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_step_time *time = facts->time;
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS) {
        return lac_texts_add(&analysis->texts,
                             "The loader delivers a batch every %s; everything else needs %s per "
                             "step. The time per batch was not recorded by stage.",
                             lac_format_ns(lac_round(time->step_ns)).text,
                             lac_format_ns(lac_round(time->s_ns)).text);
    }
    const char *load = "";
    const char *waits = "";
    double computes_pct = 100.0 * (double)loader->fetch_cpu_mean_ns / (double)loader->fetch_mean_ns;
    if (loader->fetch_cpu_mean_ns >= 0 && computes_pct < COMPUTES_PCT_MAX) {
        double ready_pct = facts->loading->samples.ready_pct;
        waits = ready_pct >= READY_PCT_TOLD
                    ? lac_texts_add(&analysis->texts,
                                    " A batch computes for %.0f %% of its time. The workers wait "
                                    "for a core %.0f %% of theirs; more workers can overlap the "
                                    "rest of the waiting (storage, network, a lock), not that.",
                                    computes_pct, ready_pct)
                    : lac_texts_add(&analysis->texts,
                                    " A batch computes for %.0f %% of its time and waits for the "
                                    "rest (storage, network, a lock): workers can overlap the "
                                    "waiting.",
                                    computes_pct);
    }
    if (!isnan(loader->worker_busy_pct)) {
        load = lac_texts_add(&analysis->texts, " The workers are busy %.0f %% of the time.",
                             loader->worker_busy_pct);
    }
    const char *ready =
        time->batches > 1.0
            ? lac_texts_add(&analysis->texts, "the %.0f batches of a step are ready", time->batches)
            : "one is ready";
    return lac_texts_add(
        &analysis->texts, "%s%d worker%s %s for each batch, so %s every %s; %s %s per step.%s%s%s",
        loader->are_workers_inferred
            ? "The waits for batches recur as they do with several workers: "
            : "",
        (int)loader->num_workers, loader->num_workers == 1 ? " needs" : "s need",
        lac_format_ns(loader->fetch_mean_ns).text, ready,
        lac_format_ns(lac_round(time->data_ns)).text,
        analysis->main_device == LAC_NONE ? "everything else takes"
                                          : "copying, computing and launching take",
        lac_format_ns(lac_round(time->s_ns)).text, load, waits, lac_fetch_breakdown_text(facts));
}

/** Per step: for the first batches of the recording and of epochs. */
static double start_waits_ns(const struct lac_facts *facts)
{
    return facts->loading->late.first_ns + facts->loading->late.begin_ns;
}

static bool is_mainly_for_start(const struct lac_facts *facts)
{
    return !facts->time->is_in_process &&
           start_waits_ns(facts) >= MAIN_PART_MIN * facts->time->starved_ns;
}

/** Slow batches among fast ones hold up the queue: workers until the loader, played again, keeps
 * up; as many as the mean asks for when it then does, or when the slow ones are workers' first. */
static int32_t workers_for_tail(const struct lac_facts *facts, int32_t wanted)
{
    enum { TIMES_MOST = 4 };
    const struct lac_step_time *time = facts->time;
    if (time->fetch_ns == NULL || wanted <= 0 || time->is_in_process ||
        is_mainly_for_start(facts)) {
        return wanted;
    }
    int32_t least = wanted;
    double enough_ns = KEEPS_UP_MAX * fmax(time->s_ns, time->cores_ns);
    while (wanted < TIMES_MOST * least &&
           lac_loader_step(time, time->s_ns, wanted, 1.0) > enough_ns) {
        wanted++;
    }
    return wanted;
}

/** What ends the number of workers. */
enum limit { NO_LIMIT = 0, BY_CORES, BY_MEMORY, BY_PROGRAM };

/** Workers wanted, as many as the allowed cores and the memory for their batches carry; -1 when
 *  their number is not known. */
static int32_t workers_wanted(const struct lac_facts *facts, enum limit *ret_limit)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    const struct lac_loading_facts *loading_facts = &facts->analysis->loading;
    int32_t wanted = workers_for_tail(facts, loader->recommended_num_workers);
    double free_ns = facts->loading->free_ns;
    if (loader->are_workers_inferred && wanted > 0 && free_ns > 0.0) { /* no queue was recorded */
        double keeps_up = ceil(WORKERS_MARGIN * lac_fetch_per_step_ns(facts) / free_ns);
        wanted = keeps_up > wanted ? (int32_t)fmin(keeps_up, INT16_MAX) : wanted;
    }
    *ret_limit = NO_LIMIT;
    if (loading_facts->workers_by_cores > 0 && loading_facts->workers_by_cores < wanted) {
        *ret_limit = BY_CORES;
        wanted = loading_facts->workers_by_cores;
    }
    if (loading_facts->workers_by_memory >= 0 && loading_facts->workers_by_memory < wanted) {
        *ret_limit = BY_MEMORY;
        wanted = loading_facts->workers_by_memory;
    }
    if (facts->loading->most_workers < wanted) {
        *ret_limit = BY_PROGRAM;
        wanted = facts->loading->most_workers;
    }
    return wanted;
}

/** Cores by the CPU time of a batch where that is known: workers that wait for storage need few. */
static const char *workers_cost(const struct lac_facts *facts, int32_t all, double step_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    int32_t now = analysis->loader.num_workers;
    int32_t more = all - (now > 0 ? now : 0);
    int64_t ahead = facts->loading->prefetch;
    int64_t cpu_ns = analysis->loader.fetch_cpu_mean_ns;
    int32_t allowed = facts->settings.allowed_cores;
    const char *of = allowed > 0 ? lac_texts_add(&analysis->texts, " of %s allowed",
                                                 lac_format_count(allowed, "core").text)
                                 : "";
    if (cpu_ns != LAC_UNKNOWN_NS && step_ns > 0.0) {
        return lac_texts_add(&analysis->texts, "%s (%.1f cores busy%s), shared memory for %s.%s",
                             lac_format_count(more, "more process").text,
                             lac_batches_per_step(facts) * (double)cpu_ns / step_ns, of,
                             lac_format_count(ahead * (int64_t)more, "more batch").text,
                             lac_shm_budget_text(facts, all));
    }
    const char *unseen =
        allowed <= 0 && all > FEW_WORKERS
            ? lac_texts_add(&analysis->texts,
                            " The host's cores were not recorded: it needs %d for the workers.",
                            (int)all)
            : "";
    return lac_texts_add(&analysis->texts, "%s%s, shared memory for %s.%s%s",
                         lac_format_count(more, "more core").text, of,
                         lac_format_count(ahead * (int64_t)more, "more batch").text,
                         lac_shm_budget_text(facts, all), unseen);
}

/** That many workers, already estimated. */
static void propose_count(const struct lac_facts *facts, struct lac_finding *finding,
                          int32_t wanted, enum limit limit)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    int32_t now = loader->num_workers;
    finding->workers = wanted;
    const char *value = lac_texts_add(&analysis->texts, "%d", (int)wanted);
    finding->brief = lac_texts_add(&analysis->texts, "num_workers=%s", value);
    finding->change = lac_texts_add(
        &analysis->texts, "%s  # now %d%s%s", lac_loader_code(facts, "num_workers", value),
        (int)now, loader->are_workers_inferred ? ", by the waits" : "",
        limit == BY_CORES                  ? ", capped by the available CPU cores"
        : limit == BY_MEMORY               ? ", capped by memory for their batches"
        : limit == NO_LIMIT && wanted == 1 ? "; 1 is enough, 2 leave a reserve"
                                           : "");
    if (lac_is_inference(facts) && facts->settings.loader_at[0] == '\0') {
        finding->change = lac_texts_add(
            &analysis->texts, "%s\n# with Transformers: pipeline(..., num_workers=%d)%s",
            finding->change, (int)wanted,
            limit == BY_PROGRAM ? "; this one cuts its inputs into\n# chunks, and "
                                  "sets a larger number to 1 with a warning"
                                : "");
    }
    finding->where = facts->settings.loader_at;
    finding->expect =
        lac_texts_add(&analysis->texts, "%s. Assumes that a batch still takes %s with %s%s.",
                      lac_finding_expect(facts, finding), lac_format_ns(loader->fetch_mean_ns).text,
                      lac_format_count(wanted, "worker").text,
                      /* one worker has no other to make up for a slow batch */
                      wanted == 1 && limit == NO_LIMIT ? "; 2 leave reserve" : "");
    finding->costs = workers_cost(facts, wanted, (double)finding->step_mid_ns);
    finding->wrong_if = lac_texts_add(&analysis->texts, "a batch takes more than %s with %s.",
                                      lac_format_ns(lac_round((double)finding->step_mid_ns *
                                                              wanted / lac_batches_per_step(facts)))
                                          .text,
                                      lac_format_count(wanted, "worker").text);
    finding->check =
        lac_texts_add(&analysis->texts, "record ten steps with num_workers=%d; expect %s per step",
                      (int)wanted, lac_format_ns(finding->step_mid_ns).text);
}

/** As wide as --what-if answers: the replay may be off by itself. */
static void widen_band(const struct lac_facts *facts, struct lac_finding *finding)
{
    double error = lac_replay_error(facts->time);
    double mid_ns = (double)finding->step_mid_ns;
    const double steps[LAC_CASE_COUNT_] = {
        fmin((double)finding->step_low_ns, (1.0 - error) * mid_ns), mid_ns,
        fmax((double)finding->step_high_ns, (1.0 + error) * mid_ns)};
    lac_finding_estimate_steps(facts, finding, steps);
}

static void estimate_workers(const struct lac_facts *facts, struct lac_finding *finding,
                             int32_t workers)
{
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.workers = workers;
    lac_finding_estimate(facts, finding, &what_if);
    /* nothing is ready when an epoch begins, however many there are */
    double first_ns = facts->loading != NULL ? facts->loading->late.first_ns : 0.0;
    if (first_ns > 0.0 && finding->step_mid_ns != LAC_UNKNOWN_NS) {
        lac_loading_estimate(facts, finding, (double)finding->step_low_ns,
                             (double)finding->step_mid_ns + first_ns,
                             (double)finding->step_high_ns + first_ns);
    }
    if (finding->step_mid_ns != LAC_UNKNOWN_NS) {
        widen_band(facts, finding);
    }
}

bool lac_propose_workers(const struct lac_facts *facts, struct lac_finding *finding)
{
    enum limit limit;
    int32_t wanted = workers_wanted(facts, &limit);
    if (wanted < 1 || wanted <= facts->analysis->loader.num_workers) {
        return false;
    }
    estimate_workers(facts, finding, wanted);
    propose_count(facts, finding, wanted, limit);
    return true;
}

/** By the mean there are enough; a wait that returns may be one of batches that differ: one worker more,
 *  played, tells. */
static bool propose_one_more(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_loading_facts *loading_facts = &facts->analysis->loading;
    int32_t wanted = facts->analysis->loader.num_workers + 1;
    bool is_full =
        facts->loading->most_workers < wanted ||
        (loading_facts->workers_by_cores > 0 && loading_facts->workers_by_cores < wanted) ||
        (loading_facts->workers_by_memory >= 0 && loading_facts->workers_by_memory < wanted);
    if (wanted < 2 || is_full || facts->time->fetch_ns == NULL) {
        return false;
    }
    struct lac_finding more = *finding;
    estimate_workers(facts, &more, wanted);
    if (!(more.gain_mid_pct >= GAIN_MIN_PCT)) {
        return false;
    }
    *finding = more;
    propose_count(facts, finding, wanted, NO_LIMIT);
    return true;
}

/** Shared memory or the memory limit holds no more batches: room first, then workers. */
static bool propose_room(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_loader_facts *loader = &analysis->loader;
    int32_t most = analysis->loading.workers_by_memory;
    int32_t wanted = workers_for_tail(facts, loader->recommended_num_workers);
    if (most < 0 || most > loader->num_workers || wanted <= loader->num_workers ||
        loading->most_workers < wanted) {
        return false;
    }
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.workers = wanted;
    lac_finding_estimate(facts, finding, &what_if);
    double bytes = (double)wanted * (double)loading->prefetch * (double)loading->batch_bytes;
    long long gigabytes = (long long)ceil(fmin(ROOM_MARGIN * bytes / 1e9, 1e9));
    finding->brief =
        lac_texts_add(&analysis->texts, "shared memory, then num_workers=%d", (int)wanted);
    finding->change = lac_texts_add(
        &analysis->texts,
        "# More workers won't help until shared memory holds their batches:%s\n"
        "# Enlarge it, then num_workers=%d:\n"
        "docker run --shm-size=%lldg ...                                # Docker; or --ipc=host\n"
        "volumes: [{name: shm, emptyDir: {medium: Memory}}]           # Kubernetes, mounted at "
        "/dev/shm",
        lac_shm_budget_text(facts, wanted), (int)wanted, gigabytes);
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes both changes.",
                                    lac_finding_expect(facts, finding));
    finding->costs = workers_cost(facts, wanted, (double)finding->step_mid_ns);
    finding->wrong_if =
        lac_texts_add(&analysis->texts, "df /dev/shm shows %s free while the training runs.",
                      lac_format_bytes(lac_round(fmin(bytes, 9e18))).text);
    finding->check = "df -h /dev/shm while the training runs";
    return true;
}

/** How many workers there are is unknown, but not how many times as many it takes: the loader is the
 *  limit, so that it delivers once a step, and the rest of a step is known. */
static bool propose_times_as_many(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double free_ns = facts->loading->free_ns;
    double times = free_ns > 0.0 ? WORKERS_MARGIN * time->step_ns / free_ns : 0.0;
    if (analysis->loader.num_workers != -1 || analysis->main_device == LAC_NONE ||
        facts->loading->most_workers != INT32_MAX || !(times <= WORKERS_TIMES_MAX)) {
        return false;
    }
    times = ceil(10.0 * times) / 10.0;
    /* at worst the cores carry half of the added workers */
    double worst_ns = time->step_ns / (1.0 + 0.5 * (times - 1.0));
    lac_loading_estimate(facts, finding, free_ns, free_ns, fmax(free_ns, worst_ns));
    finding->brief = lac_texts_add(&analysis->texts, "num_workers x %.1f", times);
    finding->change = lac_texts_add(&analysis->texts, "%s  # N: %.1f times as many as now",
                                    lac_loader_code(facts, "num_workers", "N"), times);
    finding->expect =
        lac_texts_add(&analysis->texts, "%s. Assumes that a batch takes a worker as long as now.",
                      lac_finding_expect(facts, finding));
    finding->costs = "Each worker takes a core and memory for two batches.";
    finding->wrong_if = "the job has no more cores, or all workers wait for one disk or lock.";
    finding->check =
        lac_texts_add(&analysis->texts,
                      "record ten steps with the new number; expect %s per step. lacuna run "
                      "records what a batch takes a worker, and how many there are.",
                      lac_format_ns(finding->step_mid_ns).text);
    return true;
}

/** A loader of the job's own that our recorder found where the training waits: a generator, or one
 *  that has no workers which it knows. */
static bool is_own_loader(const struct lac_facts *facts)
{
    return facts->model->info.format == LAC_FORMAT_LACUNA &&
           lac_setting_is(facts, "settings", "loader_found", "by position");
}

/** It was recorded: to record it would show nothing new. */
static void propose_loading_ahead(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double free_ns = facts->loading->free_ns;
    double ahead_ns = fmax(free_ns, time->step_ns - free_ns);
    const char *at = facts->settings.loader_at;
    const char *name = lac_setting_text(facts, "settings", "loader",
                                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_.");
    name = name[0] != '\0' ? name : "the loader";
    lac_loading_estimate(facts, finding, free_ns, 0.5 * (free_ns + ahead_ns), ahead_ns);
    finding->brief = "load ahead of the step";
    finding->effort = LAC_EFFORT_LINES;
    finding->where = at;
    finding->change = lac_texts_add(
        &analysis->texts,
        "# The training process waits in %s%s%s. Where it makes each batch itself, nothing else\n"
        "# runs meanwhile: let workers make the next ones during a step, each a share of them\n"
        "# (torch.utils.data.get_worker_info()):\n"
        "DataLoader(IterableDataset around %s, batch_size=None, num_workers=2)\n"
        "# One that has threads or workers of its own needs more of them.",
        name, at[0] != '\0' ? ", " : "", at, name);
    finding->expect = lac_texts_add(
        &analysis->texts,
        "%s. Between one worker, which loads a batch while a step runs, and as many as keep up.",
        lac_finding_expect(facts, finding));
    finding->costs = "A process a worker, and memory for the batches that wait.";
    finding->wrong_if = "the wait persists when the same cached batch is reused.";
    finding->check = lac_texts_add(&analysis->texts,
                                   "time next() of %s alone: it takes what a step waits now", name);
}

/** The workers' time was not recorded: no number can be given. */
static void propose_recording(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double free_ns = facts->loading->free_ns;
    double best_ns = free_ns;
    if (analysis->main_device != LAC_NONE) { /* the host may get all its wait back */
        double wait_ns = (double)lac_spans_intersection_length(&facts->waits, &facts->host_kept) /
                         (double)analysis->step_kept_count;
        best_ns = fmin(best_ns, fmax(time->busy_ns, time->step_ns - wait_ns));
    }
    lac_loading_estimate(facts, finding, best_ns, free_ns, time->step_ns);
    finding->brief = "record the loader";
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes that the loader keeps up.",
                                    lac_finding_expect(facts, finding));
    finding->costs = "A recording of a few minutes. The fix depends on what it shows.";
    finding->wrong_if = "the wait persists when the same cached batch is reused.";
    finding->check = "lacuna run -- python train.py, then lacuna analyze the recording";
    finding->change = "Record the workers (lacuna run -- python train.py). The time per batch "
                      "decides between more workers, a faster decoder and smaller files.";
}

/** More workers are not known to help: the cores carry no more, or there are enough of them. */
static void propose_cheaper_batch(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_step_time *time = facts->time;
    double best_ns = lac_step_without_waiting(facts);
    lac_loading_estimate(facts, finding, best_ns, 0.5 * (best_ns + time->step_ns), time->step_ns);
    finding->brief = "less CPU per batch";
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->effort = LAC_EFFORT_REWRITE;
    finding->costs = "Work on the pipeline. Downscaled or re-encoded images may affect accuracy.";
    finding->check = lac_texts_add(
        &analysis->texts, "time one worker alone: a batch must take less than %s",
        lac_format_ns(lac_round(best_ns * fmax(1.0, loader->num_workers) / time->batches)).text);
    finding->expect =
        lac_texts_add(&analysis->texts,
                      "%s. Assumes that per-batch CPU time falls halfway to the target; everything "
                      "else needs %s per step.",
                      lac_finding_expect(facts, finding), lac_format_ns(lac_round(best_ns)).text);
    finding->change = "More workers won't help: reduce CPU time per batch (faster decoding, "
                      "smaller files, less work per sample) or allow the job more cores.";
    finding->wrong_if = "a run with twice the workers is faster.";
}

/** Loading in the training process what is in memory already: a worker would take as long to hand a
 *  batch over as the batch takes to make. */
static bool is_in_memory(const struct lac_facts *facts)
{
    const struct lac_loader_facts *loader = &facts->analysis->loader;
    const struct lac_loading *loading = facts->loading;
    bool is_computing =
        loader->fetch_cpu_mean_ns >= 0 &&
        (double)loader->fetch_cpu_mean_ns >= IN_MEMORY_CPU_MIN * (double)loader->fetch_mean_ns;
    return facts->time->is_in_process && !loader->is_fetch_from_wait && is_computing &&
           loader->fetch_mean_ns <= HAND_OVER_NS && loading->reads.count == 0;
}

static void propose_whole_batches(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double free_ns = facts->loading->free_ns;
    lac_loading_estimate(facts, finding, free_ns, 0.5 * (free_ns + time->step_ns), time->step_ns);
    finding->brief = "fetch whole batches";
    finding->effort = LAC_EFFORT_LINES;
    finding->change =
        "# More workers won't help: the data is in memory, and transferring a batch from a\n"
        "# worker takes about as long as making it. Fetch whole batches instead of items:\n"
        "sampler = BatchSampler(RandomSampler(dataset), batch_size, drop_last=True)\n"
        "DataLoader(dataset, sampler=sampler, batch_size=None)   # dataset[list of indices]\n"
        "# or keep the tensors on the GPU and index them there";
    finding->expect =
        lac_texts_add(&analysis->texts, "%s. Assumes that making a batch takes half as long.",
                      lac_finding_expect(facts, finding));
    finding->costs = "The dataset must accept a list of indices.";
    finding->wrong_if = "a run with num_workers=2 is faster.";
    finding->check = "record ten steps with num_workers=2 and compare";
}

/** The waiting is for workers that have just started, and what else there is starves no step: more
 *  workers start no faster. */
static bool is_for_start(const struct lac_facts *facts)
{
    double others_ns = facts->time->starved_ns - start_waits_ns(facts);
    return facts->loading->late.epochs > 0 && is_mainly_for_start(facts) &&
           lac_pct_of_step(facts, others_ns) < STARVED_PCT;
}

bool lac_find_input_starvation(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    const struct lac_loader_facts *loader = &analysis->loader;
    if (is_for_start(facts)) {
        return false;
    }
    lac_loading_open(facts, finding);
    finding->why = time->is_in_process ? why_in_process(facts) : why_workers(facts);
    if (loader->fetch_mean_ns == LAC_UNKNOWN_NS) {
        if (is_own_loader(facts)) {
            propose_loading_ahead(facts, finding);
        } else if (!propose_times_as_many(facts, finding)) {
            propose_recording(facts, finding);
        }
    } else if (is_in_memory(facts)) {
        propose_whole_batches(facts, finding);
        finding->excludes_workers = true;
    } else if (!propose_room(facts, finding) && !lac_propose_workers(facts, finding) &&
               !propose_one_more(facts, finding)) {
        propose_cheaper_batch(facts, finding);
    }
    if (time->is_in_process || loader->fetch_count == 0) {
        finding->confidence -= 0.2;
    }
    lac_loading_evidence(facts, finding);
    return true;
}
