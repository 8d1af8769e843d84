/* The job runs on the other socket than its GPU: copies, and launches, cross the link between. */

#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stdint.h>

/** What copies keep of their time on the near socket: how much they lose across depends on the
 * host.
 */
static const double copies_left[LAC_CASE_COUNT_] = {0.6, 0.8, 1.0};

/** The recorded list of cores beside the GPUs, for a command line; "" when it
 *  has odd characters. */
static const char *gpu_cores(const struct lac_facts *facts)
{
    return lac_setting_text(facts, "host", "gpu_local_cores", "0123456789-,");
}

bool lac_find_numa_remote(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    if (!lac_setting_cores_apart(facts, "cores_allowed", "gpu_local_cores")) {
        return false;
    }
    double copies_ns = time->class_ns[LAC_OP_COPY_PAGEABLE] + time->class_ns[LAC_OP_COPY_PINNED];
    if (lac_pct_of_step(facts, copies_ns) < COST_OF_WORK_MIN_PCT) {
        return false; /* nothing that crosses is waited for */
    }
    double step_ns[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        change.factor[LAC_OP_COPY_PAGEABLE] = copies_left[which];
        change.factor[LAC_OP_COPY_PINNED] = copies_left[which];
        if (which == LAC_CASE_MID) {
            lac_finding_note(facts, LAC_FINDING_NUMA_REMOTE, &change);
        }
        step_ns[which] = lac_what_if_replay(facts, &change);
    }
    lac_finding_estimate_steps(facts, finding, step_ns);
    if (finding->gain_mid_pct < GAIN_MIN_PCT) { /* nothing that crosses is waited for */
        return false;
    }
    lac_finding_cost(facts, finding, copies_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.5;
    double bytes = time->class_bytes[LAC_OP_COPY_PAGEABLE] + time->class_bytes[LAC_OP_COPY_PINNED];
    double total_ns =
        time->class_total_ns[LAC_OP_COPY_PAGEABLE] + time->class_total_ns[LAC_OP_COPY_PINNED];
    finding->title = lac_texts_add(&analysis->texts,
                                   "The job runs on another socket than its GPU: copies cross the "
                                   "link between sockets (%s of a %s step)",
                                   lac_format_ns(finding->cost_ns_per_step).text,
                                   lac_format_ns(analysis->step_mean_ns).text);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "None of the job's cores is on the GPU's socket (cores %s). Copies to the "
                      "GPU run at %s GB/s.",
                      gpu_cores(facts), lac_format_rate(bytes / fmax(total_ns, 1.0)).text);
    finding->change = lac_texts_add(
        &analysis->texts,
        "numactl --physcpubind=%s --localalloc python train.py   # or, with Slurm: srun "
        "--gpu-bind=closest --cpu-bind=cores",
        gpu_cores(facts));
    finding->brief = "run on the GPU's socket";
    finding->expect =
        lac_texts_add(&analysis->texts, "%s. The cost of crossing depends on the host.",
                      lac_finding_expect(facts, finding));
    finding->costs = "Only the cores of one socket.";
    finding->wrong_if = "copies are just as slow from the GPU's socket.";
    finding->check = "nvidia-smi topo -m shows the GPU's CPU affinity";
    lac_evidence_gaps(facts, finding, LAC_CAUSE_COPY_WAIT, 2);
    return true;
}
