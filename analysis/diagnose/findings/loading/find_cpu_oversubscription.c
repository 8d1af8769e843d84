/* More threads want to run than there are cores: too many workers, or too many threads in each. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

int32_t lac_cores_wanted(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    int64_t cpu_ns = facts->analysis->loader.fetch_cpu_mean_ns;
    int32_t workers = facts->analysis->loader.num_workers;
    if (cpu_ns <= 0) {
        return (workers > 0 ? workers : 1) + 1;
    }
    double cores = ceil(CORES_MARGIN * (double)cpu_ns / fmax(time->s_ns, 1.0));
    return (int32_t)fmin(cores, 65535.0) + 1;
}

/** Whether the samples show workers that wait for a core because the job has too few. */
static bool waits_for_cores(const struct lac_facts *facts)
{
    const struct lac_loading_samples *samples = &facts->loading->samples;
    int32_t cores = facts->settings.allowed_cores;
    return samples->wait_for_cores && cores > 0 &&
           samples->job_cores + samples->job_ready >= CORES_MARGIN * cores;
}

/** Each worker runs several threads: fewer of them before more cores. */
static void propose_fewer_threads(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_loading_samples *samples = &loading->samples;
    const struct lac_step_time *time = facts->time;
    int32_t cores = facts->settings.allowed_cores;
    double cpu_ns = fmax(0.0, (double)analysis->loader.fetch_cpu_mean_ns);
    /* at best the other threads only wait for each other; at worst all they do is needed */
    double best_ns =
        fmax(loading->free_ns, fmax(cpu_ns / cores, cpu_ns / fmax(1.0, loading->workers)));
    best_ns = fmin(best_ns, time->step_ns);
    lac_loading_estimate(facts, finding, best_ns, 0.5 * (best_ns + time->step_ns), time->step_ns);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s run up to %u threads each on %s. Besides the fetching thread, each worker's threads "
        "keep %.1f cores busy and %.1f wait for one. Overall, %.1f cores are busy and %.1f threads "
        "wait; workers wait %.0f %% of their time for a core.%s",
        lac_format_count(loading->workers, "worker").text, (unsigned)samples->busy_threads,
        lac_format_count(cores, "core").text, samples->other_cores, samples->other_ready,
        samples->job_cores, samples->job_ready, samples->ready_pct,
        lac_fetch_breakdown_text(facts));
    finding->change =
        "def one_thread(worker):\n"
        "    torch.set_num_threads(1)      # and cv2.setNumThreads(0), where OpenCV is used\n"
        "DataLoader(..., worker_init_fn=one_thread)   # with OMP_NUM_THREADS=1 in the environment, "
        "and no set_num_threads in the dataset";
    finding->brief = "one thread per worker";
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. How much of the other threads' time is contention is unknown.",
        lac_finding_expect(facts, finding));
    finding->costs = "A single batch takes longer; overall throughput does not drop.";
    finding->wrong_if = "single-threaded workers take longer per batch than now.";
    finding->check = "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 lacuna run -- python train.py";
    finding->confidence -= 0.1;
}

static void propose_cores(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_loader_facts *loader = &analysis->loader;
    const struct lac_step_time *time = facts->time;
    int32_t cores = facts->settings.allowed_cores;
    const char *who =
        loader->num_workers > 0
            ? lac_texts_add(&analysis->texts, "%s share %s",
                            lac_format_count(loader->num_workers, "worker").text,
                            lac_format_count(cores, "allowed core").text)
            : lac_texts_add(&analysis->texts, "Loading in the training process has %s",
                            lac_format_count(cores, "allowed core").text);
    const char *waits =
        loading->samples.has_threads
            ? lac_texts_add(&analysis->texts, " and wait %.0f %% of their time for one",
                            loading->samples.ready_pct)
            : "";
    const char *needs = loader->fetch_cpu_mean_ns > 0
                            ? lac_texts_add(&analysis->texts,
                                            " A batch costs %s of CPU time: at best one is ready "
                                            "every %s, while everything else needs %s per step.",
                                            lac_format_ns(loader->fetch_cpu_mean_ns).text,
                                            lac_format_ns(lac_round(time->cores_ns)).text,
                                            lac_format_ns(lac_round(time->s_ns)).text)
                            : "";
    finding->why = lac_texts_add(&analysis->texts, "%s%s.%s%s", who, waits, needs,
                                 lac_fetch_breakdown_text(facts));
    lac_loading_estimate(facts, finding, loading->free_ns, loading->free_ns, time->step_ns);
    int32_t wanted = lac_cores_wanted(facts);
    finding->change =
        lac_texts_add(&analysis->texts,
                      "More workers won't help: they would share the same %s. Request more cores "
                      "(#SBATCH --cpus-per-task=%d), or reduce CPU time per batch (faster "
                      "decoding, smaller files, less work per sample).",
                      lac_format_count(cores, "core").text, (int)wanted);
    finding->brief =
        lac_texts_add(&analysis->texts, "%d cores, or less CPU per batch", (int)wanted);
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->effort = LAC_EFFORT_HARDWARE;
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes the requested cores%s.",
                                    lac_finding_expect(facts, finding),
                                    loader->num_workers < wanted - 1
                                        ? lac_texts_add(&analysis->texts, " and %s",
                                                        lac_format_count(wanted - 1, "worker").text)
                                        : "");
    finding->costs = "More cores on the node. Downscaled or re-encoded images may affect accuracy.";
    finding->wrong_if = "cores are idle while training waits (top: less than 90 % in use).";
    finding->check = lac_texts_add(
        &analysis->texts, "time one worker alone: a batch must take less than %s",
        lac_format_ns(lac_round(time->s_ns * fmax(1.0, loader->num_workers) / time->batches)).text);
}

bool lac_find_cpu_oversubscription(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_loading_samples *samples = &facts->loading->samples;
    bool is_waiting = waits_for_cores(facts);
    bool has_threads = is_waiting && samples->busy_threads >= 2 &&
                       samples->other_cores + samples->other_ready >= OTHER_THREADS_MIN;
    if (!is_waiting && !lac_is_short_of_cores(facts)) {
        return false;
    }
    lac_loading_open(facts, finding);
    if (has_threads) {
        propose_fewer_threads(facts, finding);
    } else {
        propose_cores(facts, finding);
    }
    lac_loading_evidence(facts, finding);
    return true;
}
