/*
 * A server's iterations: what the GPU waits for between them, and inside them. Between two of them
 * the host fetches the sampled tokens, hands them out and makes up the next batch; where it waits
 * for the tokens first, the GPU has nothing to do meanwhile. Inside, launching one kernel after
 * another may take longer than they run.
 *
 *   host   | make up | launch ...... | wait for the tokens | hand out | make up | launch
 *   GPU              | span ...............................|    gap             | span
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Means of an iteration, ns. */
struct iteration {
    double span_ns;  /**< of the device, first start to last end */
    double gap_ns;   /**< from there to the next one's first start */
    int64_t last_ns; /**< last end of the step before `next`, if that has operations */
    uint32_t next;   /**< index of the step */
    uint64_t gaps;
    uint64_t waits;    /**< iterations for whose last operation the host waits */
    double busy_ns;    /**< of it, busy */
    double launch_ns;  /**< of the host, from the first launch to the last */
    double call_ns;    /**< of that, in the calls that launch */
    double blocked_ns; /**< of the host, waiting for the device */
    double launches;   /**< calls that launched something */
    double graph_ops;  /**< operations that a graph launched */
    double ops, reads; /**< small copies to the host: sampled tokens */
    double tokens;     /**< that an iteration generates, by its name; 0 unknown */
    double prompt;     /**< tokens of prompts that it takes in, by its name; 0 unknown */
    uint64_t count;
};

/** One iteration while its operations pass. */
struct window {
    int64_t first_ns, last_ns, launch_first_ns, launch_last_ns;
    uint32_t call;
};

/** Requests that generate a token each: the number behind "generation_". */
static double tokens_of(const char *name)
{
    static const char word[] = "generation_";
    const char *at = strstr(name, word);
    long number = at != NULL ? strtol(at + sizeof(word) - 1, NULL, 10) : 0;
    return number > 0 ? (double)number : 0.0;
}

/** Tokens of prompts: the number in parentheses behind "context_", the count of requests, as vLLM writes
 *  "execute_context_1(888_788544)_generation_0(0)". */
static double prompt_of(const char *name)
{
    static const char word[] = "context_";
    const char *at = strstr(name, word);
    at = at != NULL ? strchr(at, '(') : NULL;
    long number = at != NULL ? strtol(at + 1, NULL, 10) : 0;
    return number > 0 ? (double)number : 0.0;
}

/** Whether all iterations take in prompts and none generates a token. */
static bool is_prefill(const struct iteration *mean)
{
    return mean->prompt > 0.0 && mean->tokens <= 0.0;
}

static bool names_iteration(const char *name)
{
    static const char *const words[] = {"execute_",  "decode",  "generation", "forward_step",
                                        "run_batch", "prefill", NULL};
    for (int i = 0; words[i] != NULL; i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void take_operation(const struct lac_facts *facts, const struct lac_step_operation *op,
                           struct window *window, struct iteration *sum)
{
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    int64_t start_ns = slices->start_ns[op->slice];
    int64_t end_ns = start_ns + slices->dur_ns[op->slice];
    uint32_t call = slices->link[op->slice];
    uint32_t detail = slices->detail[op->slice];
    window->first_ns = start_ns < window->first_ns ? start_ns : window->first_ns;
    window->last_ns = end_ns > window->last_ns ? end_ns : window->last_ns;
    sum->busy_ns += (double)op->exposed_ns;
    sum->ops += 1.0;
    if (slices->kind[op->slice] == LAC_SLICE_COPY && detail < model->copy_count) {
        const struct lac_copy *copy = &model->copies[detail];
        sum->reads += copy->copy_kind == LAC_COPY_DTOH && copy->bytes <= COPY_SMALL_BYTES;
        return; /* what a batch needs is copied with a graph, too */
    }
    bool is_kernel = slices->kind[op->slice] == LAC_SLICE_KERNEL;
    if (is_kernel && detail < model->kernel_config_count) {
        sum->graph_ops += model->kernel_configs[detail].graph_node != 0;
    }
    if (call == LAC_NONE || call == window->call) {
        return;
    }
    window->call = call;
    sum->launches += 1.0;
    sum->call_ns += (double)slices->dur_ns[call];
    int64_t begin_ns = slices->start_ns[call];
    int64_t done_ns = begin_ns + slices->dur_ns[call];
    window->launch_first_ns =
        begin_ns < window->launch_first_ns ? begin_ns : window->launch_first_ns;
    window->launch_last_ns = done_ns > window->launch_last_ns ? done_ns : window->launch_last_ns;
}

/** Add an iteration whose operations are [*at, ...) up to the first that was launched behind it. */
static void take_step(const struct lac_facts *facts, const struct lac_step *step, int64_t end_ns,
                      uint64_t *at, struct iteration *sum)
{
    const struct lac_step_operations *work = facts->step_operations;
    const struct lac_slices *slices = &facts->model->slices;
    const struct lac_host *host = &facts->hosts[facts->main_host];
    struct window window = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, LAC_NONE};
    for (; *at < work->count; (*at)++) {
        uint32_t call = slices->link[work->ops[*at].slice];
        int64_t launched_ns = slices->start_ns[call != LAC_NONE ? call : work->ops[*at].slice];
        if (launched_ns >= end_ns) {
            break;
        }
        if (launched_ns >= step->host_start_ns) {
            take_operation(facts, &work->ops[*at], &window, sum);
        }
    }
    if (window.last_ns < window.first_ns) {
        return;
    }
    uint32_t index = (uint32_t)(step - facts->analysis->steps);
    if (sum->count > 0 && sum->next == index) { /* a step that is left out is no gap */
        sum->gaps++;
        sum->gap_ns += fmax(0.0, (double)(window.first_ns - sum->last_ns));
    }
    sum->waits += lac_spans_length_inside(&host->blocked, window.last_ns,
                                          window.last_ns + SYNC_RETURN_NS) > 0;
    sum->next = index + 1;
    sum->last_ns = window.last_ns;
    sum->count++;
    sum->span_ns += (double)(window.last_ns - window.first_ns);
    if (window.launch_last_ns > window.launch_first_ns) {
        sum->launch_ns += (double)(window.launch_last_ns - window.launch_first_ns);
    }
    sum->blocked_ns += (double)lac_spans_length_inside(&host->blocked, step->host_start_ns, end_ns);
    sum->tokens += tokens_of(lac_model_str(facts->model, step->name));
    sum->prompt += prompt_of(lac_model_str(facts->model, step->name));
}

/** The mean iteration. @return whether what repeats is a server's iteration */
static bool measure(const struct lac_facts *facts, struct iteration *mean)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint64_t at = 0;
    bool is_named = true;
    *mean = (struct iteration){.count = 0};
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        /* of the last one the recording may hold a part */
        bool is_whole = s + 1 < analysis->step_count || mean->count == 0;
        if (step->left_out == LAC_STEP_KEPT && is_whole) {
            /* what is launched behind the range belongs to it, too: the tokens are fetched there */
            bool has_next = s + 1 < analysis->step_count;
            int64_t end_ns = has_next ? analysis->steps[s + 1].host_start_ns
                                      : step->host_start_ns + step->host_dur_ns;
            take_step(facts, step, end_ns, &at, mean);
            is_named = is_named && names_iteration(lac_model_str(facts->model, step->name));
        }
    }
    double count = (double)mean->count;
    if (mean->count == 0) {
        return false;
    }
    double now_ns = facts->time->step_ns;
    mean->span_ns /= count;
    if (mean->gaps > 0) {
        mean->gap_ns = fmin(mean->gap_ns / (double)mean->gaps, now_ns);
        mean->span_ns = now_ns - mean->gap_ns;
    }
    mean->busy_ns /= count;
    mean->launch_ns /= count;
    mean->call_ns /= count;
    mean->blocked_ns /= count;
    mean->launches /= count;
    mean->tokens /= count;
    mean->prompt /= count;
    bool is_decoding = mean->graph_ops >= DECODE_GRAPH_MIN * mean->ops && mean->reads >= count;
    return is_named || is_decoding;
}

/** Whether the host was slowed down by what was recorded of it. */
static bool has_stacks(const struct lac_facts *facts)
{
    return facts->has_python || facts->model->info.has_python_stacks;
}

/* -- what to do -------------------------------------------------------------------------------- */

/** Estimate with a step of `after_ns`, `best_ns` at best, of whose gain a share comes true in the
 *  worst case. */
static bool estimate(const struct lac_facts *facts, struct lac_finding *finding, double best_ns,
                     double after_ns, double worst_share)
{
    double now_ns = facts->time->step_ns;
    double gain_ns = fmax(0.0, now_ns - after_ns);
    const double steps[LAC_CASE_COUNT_] = {fmin(best_ns, after_ns),
                                           now_ns - ITERATION_SHARE_MID * gain_ns,
                                           now_ns - worst_share * gain_ns};
    lac_finding_estimate_steps(facts, finding, steps);
    return finding->gain_mid_pct >= ITERATION_GAIN_PCT;
}

static void finish(const struct lac_facts *facts, struct lac_finding *finding,
                   const struct iteration *mean, double cost_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    lac_finding_cost(facts, finding, cost_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = has_stacks(facts) ? 0.5 : 0.7;
    finding->expect = lac_finding_expect(facts, finding);
    if (mean->tokens > 0.0) {
        finding->expect =
            lac_texts_add(&analysis->texts, "%s; %s tokens/s instead of %s", finding->expect,
                          lac_format_rate(1e9 * mean->tokens / (double)finding->step_mid_ns).text,
                          lac_format_rate(1e9 * mean->tokens / facts->time->step_ns).text);
    }
    finding->check = lac_texts_add(&analysis->texts,
                                   "record again without Python stacks; expect %s per iteration",
                                   lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_gaps(facts, finding, LAC_CAUSE_HOST, 2);
    lac_evidence_gaps(facts, finding, LAC_CAUSE_SYNC, 1);
}

/** "The host takes 83 ms for 768 launches: 5.84 ms in the calls, 77 ms in its other work between them ..." */
static const char *launches_text(const struct lac_facts *facts, const struct iteration *mean)
{
    double idle_ns = facts->time->step_ns - mean->busy_ns;
    return lac_texts_add(
        &facts->analysis->texts,
        "The host takes %s for %s launches: %s in the calls, %s in Python and dispatch between "
        "them. The GPU is idle for %s (%s) of an iteration.",
        lac_format_ns(lac_round(mean->launch_ns)).text, lac_format_rate(mean->launches).text,
        lac_format_ns(lac_round(mean->call_ns)).text,
        lac_format_ns(lac_round(fmax(0.0, mean->launch_ns - mean->call_ns))).text,
        lac_format_ns(lac_round(idle_ns)).text,
        lac_format_pct(lac_pct_of_step(facts, idle_ns)).text);
}

/** A recording of prompts alone: graphs of decoding are not what it lacks, and what the host's work
 *  between the launches takes without the recorder is not known. */
static void say_prefill(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct iteration *mean)
{
    struct lac_analysis *analysis = facts->analysis;
    finding->title = lac_texts_add(
        &analysis->texts, "A prefill of %s tokens takes %s for %s of GPU time",
        lac_format_rate(mean->prompt).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_ns(lac_round(mean->busy_ns)).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s Nothing was generated while this was recorded: CUDA graphs of decoding do not launch "
        "a prefill, so that they would gain nothing here.%s",
        launches_text(facts, mean),
        has_stacks(facts) ? " Python stacks were recorded, which slows the host." : "");
    finding->brief = "record decode iterations";
    finding->change_kind = LAC_CHANGE_TEXT;
    finding->change = lac_texts_add(
        &analysis->texts,
        "Record again%s while tokens are generated: decode iterations are most of a server's time. "
        "vLLM without --enforce-eager compiles the model, which saves launches in a prefill, too.",
        has_stacks(facts) ? ", without Python stacks," : "");
    finding->costs = "A recording of a few seconds. The fix depends on what it shows.";
    finding->wrong_if = "the server is there for prompts alone, as one that only prefills.";
    finding->check = "the names of iterations show generation_ with a number above 0";
    lac_finding_cost(facts, finding, facts->time->step_ns - mean->busy_ns);
    lac_finding_forget_gain(finding);
    finding->severity = LAC_SEVERITY_INFO;
    finding->confidence = 0.7;
    lac_evidence_gaps(facts, finding, LAC_CAUSE_HOST, 2);
}

static void say_eager(const struct lac_facts *facts, struct lac_finding *finding,
                      const struct iteration *mean)
{
    struct lac_analysis *analysis = facts->analysis;
    double idle_ns = facts->time->step_ns - mean->busy_ns;
    finding->effort = LAC_EFFORT_SETTING;
    finding->title = lac_texts_add(
        &analysis->texts,
        "An iteration takes %s for %s of GPU time: kernels are launched one by one",
        lac_format_ns(analysis->step_mean_ns).text, lac_format_ns(lac_round(mean->busy_ns)).text);
    finding->why = lac_texts_add(
        &analysis->texts, "%s A CUDA graph launches all of them at once, without that work.%s",
        launches_text(facts, mean),
        has_stacks(facts) ? " Python stacks were recorded, which slows the host." : "");
    finding->brief = "CUDA graphs instead of eager mode";
    finding->change =
        "vllm serve MODEL                # without --enforce-eager: decodes as CUDA graphs\n"
        "# SGLang: without --disable-cuda-graph; TensorRT-LLM: cuda_graph_config\n"
        "# own loop: torch.compile(model, mode=\"reduce-overhead\")";
    finding->costs = "Memory for the graphs, and seconds at the start; batch sizes beyond those "
                     "captured run eagerly.";
    finding->wrong_if = "these iterations have shapes that are not captured, as long prompts have.";
    finish(facts, finding, mean, idle_ns);
}

static void say_gap(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct iteration *mean, double gap_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    finding->effort = LAC_EFFORT_SETTING;
    finding->title = lac_texts_add(
        &analysis->texts, "The GPU waits %s between iterations of %s (%s)",
        lac_format_ns(lac_round(gap_ns)).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(lac_pct_of_step(facts, gap_ns)).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "The host waits for an iteration's tokens (%s) before it hands them out and makes up the "
        "next batch (%s of its own work). Prepared meanwhile, the next iteration starts at once: "
        "an "
        "iteration then takes the longer of the two, %s of GPU or %s of host.",
        lac_format_ns(lac_round(mean->blocked_ns)).text,
        lac_format_ns(lac_round(facts->time->step_ns - mean->blocked_ns)).text,
        lac_format_ns(lac_round(mean->span_ns)).text,
        lac_format_ns(lac_round(facts->time->step_ns - mean->blocked_ns)).text);
    finding->brief = "schedule the next iteration while this one runs";
    finding->change =
        "vllm serve MODEL --async-scheduling\n"
        "# SGLang: without --disable-overlap-schedule; TensorRT-LLM: the overlap scheduler\n"
        "# own loop: read the tokens of iteration i after launching i + 1";
    finding->costs = "A request that ends is noticed one iteration later.";
    finding->wrong_if = "what runs next depends on the token: guided decoding, some speculation.";
    finish(facts, finding, mean, gap_ns);
}

bool lac_find_iteration_gap(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct iteration mean;
    if (facts->time == NULL || facts->main_host == LAC_NONE || analysis->main_device == LAC_NONE ||
        analysis->workload != LAC_WORKLOAD_INFERENCE || analysis->loader.is_present ||
        !measure(facts, &mean)) {
        return false;
    }
    double now_ns = facts->time->step_ns;
    double host_ns = now_ns - mean.blocked_ns;
    /* idle time between iterations, as far as it was seen: a graph may hide what it runs */
    double gap_ns = fmax(0.0, fmin(now_ns - mean.span_ns, now_ns - mean.busy_ns));
    double ahead_ns = fmax(now_ns - gap_ns, host_ns);
    double outside_ns = fmax(0.0, host_ns - mean.launch_ns);
    double busy_ns = GRAPH_SLOWER * mean.busy_ns + GRAPH_LAUNCH_NS;
    bool is_eager = mean.launches >= EAGER_LAUNCHES_MIN;
    /* a host that does not wait for its own iteration is already ahead of the device */
    double best_ns = fmax(outside_ns, busy_ns);
    double after_ns = 2 * mean.waits > mean.count ? outside_ns + busy_ns : best_ns;
    if (is_eager && after_ns < ahead_ns) {
        double worst = has_stacks(facts) ? ITERATION_WORST_STACKS : ITERATION_WORST;
        if (estimate(facts, finding, best_ns, after_ns, worst)) {
            if (is_prefill(&mean)) {
                say_prefill(facts, finding, &mean);
            } else {
                say_eager(facts, finding, &mean);
            }
            return true;
        }
    }
    if (mean.blocked_ns <= 0.0 || !estimate(facts, finding, ahead_ns, ahead_ns, ITERATION_WORST)) {
        return false;
    }
    say_gap(facts, finding, &mean, gap_ns);
    return true;
}
