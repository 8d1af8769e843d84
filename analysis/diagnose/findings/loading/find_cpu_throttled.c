/* The job's CPU quota stops its processes: more workers only use it up sooner. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>

bool lac_find_cpu_throttled(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const struct lac_loading_samples *samples = &loading->samples;
    const struct lac_step_time *time = facts->time;
    if (samples->throttled_periods < PERIODS_MIN && samples->throttled_pct < THROTTLED_MIN) {
        return false;
    }
    lac_loading_open(facts, finding);
    int64_t cpu_ns = analysis->loader.fetch_cpu_mean_ns;
    int32_t workers = analysis->loader.num_workers > 0 ? analysis->loader.num_workers : 1;
    double best_ns = loading->free_ns;
    if (cpu_ns > 0) { /* with cores enough a worker still has a batch to compute */
        best_ns = fmax(best_ns, (double)cpu_ns / workers);
    }
    lac_loading_estimate(facts, finding, best_ns,
                         cpu_ns > 0 ? best_ns : 0.5 * (best_ns + time->step_ns), time->step_ns);
    const char *quota =
        loading->quota_cores > 0.0
            ? lac_texts_add(&analysis->texts, "of %.3g cores ", loading->quota_cores)
            : "";
    const char *online =
        loading->online_cores > 0
            ? lac_texts_add(&analysis->texts, " (os.cpu_count() reports all %s of the host)",
                            lac_format_count(loading->online_cores, "core").text)
            : "";
    finding->why = lac_texts_add(
        &analysis->texts,
        "The job's CPU quota %sran out in %.1f of 10 periods per second: all its processes then "
        "stop until the next period%s. More workers won't help: they exhaust the quota sooner.%s",
        quota, fmin(10.0, samples->throttled_periods), online, lac_fetch_breakdown_text(facts));
    int32_t cores = lac_cores_wanted(facts);
    finding->change = lac_texts_add(
        &analysis->texts,
        "# raise the quota to %d cores where the job starts, or reduce CPU time per batch:\n"
        "resources: {limits: {cpu: \"%d\"}}   # Kubernetes\n"
        "docker run --cpus=%d ...            # Docker",
        (int)cores, (int)cores, (int)cores);
    finding->brief = lac_texts_add(&analysis->texts, "CPU quota of %d cores", (int)cores);
    finding->expect = lac_texts_add(&analysis->texts, "%s. Assumes that the quota is the limit.",
                                    lac_finding_expect(facts, finding));
    finding->costs = "More cores on the node.";
    finding->wrong_if = "nr_throttled in the cgroup's cpu.stat does not grow while training waits.";
    finding->check = "read /sys/fs/cgroup/cpu.stat before and after ten steps: nr_throttled grows";
    lac_loading_evidence(facts, finding);
    return true;
}
