/* The job is pinned to fewer cores than its workers need, and than it was given. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

enum reason { NO_REASON = 0, SLURM_STEP, OWN_MASK, NARROW_MASK };

/** Cores that the launcher was allowed; the training process may have fewer. */
static int32_t launcher_cores(const struct lac_facts *facts)
{
    return lac_setting_cores(facts, "cores_allowed");
}

static int64_t slurm_cores(const struct lac_facts *facts)
{
    return lac_setting_count(facts, "host", "SLURM_CPUS_PER_TASK", 65536);
}

static enum reason reason_of(const struct lac_facts *facts)
{
    const struct lac_loading *loading = facts->loading;
    int32_t mask = loading->mask_cores;
    int32_t workers = facts->analysis->loader.num_workers;
    if (mask < 1 || workers < 2) {
        return NO_REASON;
    }
    if (slurm_cores(facts) > mask) {
        return SLURM_STEP;
    }
    if (launcher_cores(facts) > mask) {
        return OWN_MASK;
    }
    return 4 * mask <= workers && loading->online_cores > mask ? NARROW_MASK : NO_REASON;
}

/** Whether the workers want more cores than the mask has: they wait for one, or the CPU time of the
 *  batches says so. */
static bool wants_more(const struct lac_facts *facts)
{
    const struct lac_loading *loading = facts->loading;
    const struct lac_step_time *time = facts->time;
    int64_t cpu_ns = facts->analysis->loader.fetch_cpu_mean_ns;
    bool fills =
        cpu_ns > 0 && (double)cpu_ns / loading->mask_cores >= CORES_FULL_MIN * time->step_ns;
    return loading->samples.wait_for_cores || fills;
}

static void say_change(const struct lac_facts *facts, struct lac_finding *finding,
                       enum reason reason)
{
    struct lac_analysis *analysis = facts->analysis;
    int32_t cores = lac_cores_wanted(facts);
    if (reason == SLURM_STEP) {
        finding->brief = "srun with the task's cores";
        finding->change = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK   # before srun: since "
                          "Slurm 22.05 it does not inherit --cpus-per-task";
        finding->wrong_if = "taskset -cp inside the job step shows all cores of the task.";
        finding->check = "srun --cpus-per-task=$SLURM_CPUS_PER_TASK bash -c 'taskset -cp $$'";
        return;
    }
    finding->check = "taskset -cp PID of the training process and of one worker";
    if (reason == OWN_MASK) {
        finding->brief = "widen the CPU affinity";
        finding->change_kind = LAC_CHANGE_CODE;
        finding->effort = LAC_EFFORT_LINES;
        finding->change = lac_texts_add(&analysis->texts,
                                        "os.sched_setaffinity(0, range(os.cpu_count()))   # before "
                                        "creating the loader; narrowed by: taskset, numactl, "
                                        "KMP_AFFINITY, GOMP_CPU_AFFINITY or an imported library");
        finding->wrong_if =
            lac_texts_add(&analysis->texts, "workers run on more than %s.",
                          lac_format_count(facts->loading->mask_cores, "core").text);
        return;
    }
    finding->brief = lac_texts_add(&analysis->texts, "%d cores", (int)cores);
    finding->effort = LAC_EFFORT_HARDWARE;
    finding->change = lac_texts_add(&analysis->texts,
                                    "# start the job with %d cores:\n"
                                    "#SBATCH --cpus-per-task=%d          # Slurm, and export "
                                    "SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n"
                                    "docker run --cpuset-cpus=0-%d ...    # Docker\n"
                                    "taskset -c 0-%d python train.py     # elsewhere",
                                    (int)cores, (int)cores, (int)cores - 1, (int)cores - 1);
    finding->wrong_if = "the workers wait as long for a core with that many cores.";
}

bool lac_find_affinity(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_step_time *time = facts->time;
    enum reason reason = reason_of(facts);
    if (reason == NO_REASON || !wants_more(facts)) {
        return false;
    }
    lac_loading_open(facts, finding);
    int64_t cpu_ns = analysis->loader.fetch_cpu_mean_ns;
    int32_t workers = analysis->loader.num_workers;
    double best_ns =
        cpu_ns > 0 ? fmax(loading->free_ns, (double)cpu_ns / workers) : loading->free_ns;
    double mid_ns = cpu_ns > 0 ? best_ns : 0.5 * (best_ns + time->step_ns);
    lac_loading_estimate(facts, finding, best_ns, mid_ns, time->step_ns);
    const char *waits =
        loading->samples.has_threads
            ? lac_texts_add(&analysis->texts, " They wait %.0f %% of their time for a core.",
                            loading->samples.ready_pct)
            : "";
    const char *given = "";
    if (reason == SLURM_STEP) {
        given = lac_texts_add(&analysis->texts, "; the task was given %lld",
                              (long long)slurm_cores(facts));
    } else if (reason == OWN_MASK) {
        given =
            lac_texts_add(&analysis->texts, "; it was started with %d", (int)launcher_cores(facts));
    } else if (loading->online_cores > 0) {
        given = lac_texts_add(&analysis->texts, " of the host's %d", (int)loading->online_cores);
    }
    finding->why = lac_texts_add(&analysis->texts,
                                 "%s and the training process are pinned to %s%s.%s More workers "
                                 "won't help: they would share the same cores.%s",
                                 lac_format_count(workers, "worker").text,
                                 lac_format_count(loading->mask_cores, "core").text, given, waits,
                                 lac_fetch_breakdown_text(facts));
    say_change(facts, finding, reason);
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes one core per worker.",
                                    lac_finding_expect(facts, finding));
    finding->costs =
        reason == NARROW_MASK ? "More cores on the node." : "None: the cores belong to the job.";
    lac_loading_evidence(facts, finding);
    return true;
}
