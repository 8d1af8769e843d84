/*
 * The device waits for the host to launch. Not said of traces recorded with Python stacks (the host
 * is several times slower in them) beyond that it cannot be told, and not of launches that wait for
 * room in a full queue: those are not idle time of the device.
 */

#include "analysis/diagnose/findings/cuda_graph_advice.h"

#include <math.h>
#include <stdint.h>

/** How many of a hundred kernels are short: each by itself, whatever others of its name take. */
static double short_kernels_pct(const struct lac_analysis *analysis)
{
    uint64_t short_count = 0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        short_count += analysis->kernels[row].short_count;
    }
    return lac_pct((int64_t)short_count, (int64_t)analysis->kernel_count);
}

/** 4317 is "about 4300": no more digits than the estimate has. */
static double two_digits(double value)
{
    double unit = value >= 100.0 ? pow(10.0, floor(log10(value)) - 1.0) : 1.0;
    return nearbyint(value / unit) * unit;
}

/** After how many steps two minutes of compiling have paid. */
static const char *pays_after(const struct lac_facts *facts, const struct lac_finding *finding)
{
    enum { COMPILE_S = 120 };
    double saved_s = (facts->time->step_ns - (double)finding->step_mid_ns) / 1e9;
    if (saved_s <= 0.0) {
        return "";
    }
    return lac_texts_add(&facts->analysis->texts,
                         " Two minutes of compilation pay off after about %s steps.",
                         lac_format_rate(two_digits(COMPILE_S / saved_s)).text);
}

static void propose(const struct lac_facts *facts, const struct lac_cuda_graph_advice *capture,
                    struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    finding->brief = "fewer launches";
    finding->change = lac_cuda_graph_advice_change(facts, capture);
    finding->expect = lac_texts_add(
        &analysis->texts,
        "%s. Assumes that half of the waiting goes; at best none of it is left.%s",
        lac_finding_expect(facts, finding), lac_cuda_graph_advice_text(facts, capture));
    finding->costs = lac_texts_add(&analysis->texts,
                                   "Minutes of compilation at the start and for each new shape.%s",
                                   pays_after(facts, finding));
    finding->wrong_if =
        "the host's share of the step stays the same with fewer, larger operations.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
}

/** With Python stacks the host is several times slower than it is: first without them. */
static void propose_recording(const struct lac_facts *facts,
                              const struct lac_cuda_graph_advice *capture,
                              struct lac_finding *finding)
{
    bool is_server = lac_is_inference(facts) && capture->captured_pct < CAPTURED_MIN_PCT &&
                     lac_framework_of(facts->model) == LAC_FRAMEWORK_PYTORCH;
    finding->brief = is_server ? "CUDA graphs; record without stacks" : "record without stacks";
    finding->change =
        is_server
            ? "Record again without Python stacks and shapes: they slow the host. What then is "
              "left "
              "of the wait, CUDA graphs take away: no kernel is launched from one now. In vLLM, "
              "serve without --enforce-eager; elsewhere torch.compile(model, "
              "mode=\"reduce-overhead\")."
            : "Record again without Python stacks and shapes, then decide.";
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->effort = LAC_EFFORT_SETTING;
}

/**
 * Steps without the waiting for launches. Host work of any length that stands between launches goes
 * when nothing has to be launched one by one, so what is gained may be more than the idle time that
 * is launching by its contents; never more than all idle time. What it costs is what the step has of
 * launches and other work of the host, and no other wait.
 *
 * @return what the device waits for it, a step
 */
static double estimate(const struct lac_facts *facts, double host_ns, double steps[LAC_CASE_COUNT_])
{
    static const double left[LAC_CASE_COUNT_] = {0.0, LAUNCH_LEFT_MID, 0.75};
    const struct lac_step_time *time = facts->time;
    bool is_played = lac_graph_trust(time) != LAC_TRUST_NONE; /* it holds them among launches */
    double all_idle_ns = 0.0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        all_idle_ns += time->idle_ns[cause];
    }
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        change.idle_factor[LAC_CAUSE_LAUNCH] = left[which];
        if (host_ns > 0.0 && !is_played) {
            double share = fmin(1.0, host_ns / time->idle_ns[LAC_CAUSE_HOST]);
            change.idle_factor[LAC_CAUSE_HOST] = 1.0 - share * (1.0 - left[which]);
        }
        if (which == LAC_CASE_MID) {
            lac_finding_note(facts, LAC_FINDING_LAUNCH_BOUND, &change);
        }
        double least_ns = time->step_ns - (1.0 - left[which]) * all_idle_ns;
        steps[which] = fmax(lac_what_if_replay(facts, &change), least_ns);
    }
    double gone_ns = time->step_ns - steps[LAC_CASE_BEST];
    return fmin(time->idle_ns[LAC_CAUSE_LAUNCH] + time->idle_ns[LAC_CAUSE_HOST],
                fmax(time->idle_ns[LAC_CAUSE_LAUNCH] + host_ns, gone_ns));
}

bool lac_find_launch_bound(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    if (analysis->kernel_count == 0) { /* none were recorded: what waits for them is unknown */
        return false;
    }
    /* short stretches of operators between two launches are what a launch costs, too */
    double host_ns = lac_idle_in_short_pieces(facts, LAC_CAUSE_HOST, LAUNCH_BRIDGE_NS);
    if (lac_pct_of_step(facts, time->idle_ns[LAC_CAUSE_LAUNCH] + host_ns) < COST_NOTED_MIN_PCT) {
        return false;
    }
    struct lac_cuda_graph_advice capture;
    lac_cuda_graph_advice_measure(facts, &capture);
    if (capture.captured_pct >=
        CAPTURED_MOST_PCT) { /* between kernels of a graph no host is waited for */
        return false;
    }
    double steps[LAC_CASE_COUNT_];
    double cost_ns = estimate(facts, host_ns, steps);
    lac_finding_estimate_steps(facts, finding, steps);
    lac_finding_cost(facts, finding, cost_ns);
    if (finding->gain_mid_pct < GAIN_MIN_PCT) { /* something longer hides it: nothing to propose */
        return false;
    }
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.75;
    bool is_inflated = facts->has_python;
    finding->title = lac_texts_add(
        &analysis->texts, "The GPU waits %s of every %s step for the host to launch (%s)%s",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text, lac_finding_parts(facts, finding));
    double per_step = (double)analysis->kernel_count / (double)analysis->step_count;
    finding->why = lac_texts_add(&analysis->texts,
                                 "About %s kernels per step, %.0f %% of them shorter than 10 us: "
                                 "the queue runs empty between them.%s",
                                 lac_format_rate(per_step).text, short_kernels_pct(analysis),
                                 is_inflated ? " Python stacks were recorded, which slows the host "
                                               "severalfold: without them the wait may disappear."
                                 : facts->model->info.has_python_stacks
                                     ? " Call stacks were recorded, which slows the host somewhat."
                                 : facts->model->info.has_shapes
                                     ? " Shapes were recorded, which slows the host somewhat."
                                     : "");
    if (is_inflated) {
        finding->severity = LAC_SEVERITY_INFO;
        finding->confidence = 0.2;
        finding->gain_low_pct = finding->gain_mid_pct = finding->gain_high_pct = (double)NAN;
        finding->step_low_ns = finding->step_mid_ns = finding->step_high_ns = LAC_UNKNOWN_NS;
        propose_recording(facts, &capture, finding);
    } else {
        propose(facts, &capture, finding);
    }
    lac_evidence_gaps(facts, finding,
                      host_ns > time->idle_ns[LAC_CAUSE_LAUNCH] ? LAC_CAUSE_HOST : LAC_CAUSE_LAUNCH,
                      3);
    return true;
}
