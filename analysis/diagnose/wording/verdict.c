/* The one sentence a trace opens with, and what was checked, missing, or not to be asked of it. */

#include "analysis/diagnose/loading/loading.h"
#include "analysis/diagnose/wording/wording.h"

#include <stdint.h>
#include <string.h>

/** What takes time of the step without computing: the causes of idle
 *  time, copies, communication. */
struct part {
    double ns;
    enum lac_cause cause;
    const char *text; /**< continues "The GPU waits X of every Y step ..." or says it by itself */
    bool is_idle;
};

static struct part largest_part(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    struct part largest = {.cause = LAC_CAUSE_UNATTRIBUTED, .text = "", .ns = -1.0};
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        if (time->idle_ns[cause] > largest.ns) {
            largest = (struct part){time->idle_ns[cause], (enum lac_cause)cause,
                                    lac_waits_for((enum lac_cause)cause), true};
        }
    }
    if (time->exposed_comm_ns > largest.ns) {
        largest = (struct part){time->exposed_comm_ns, LAC_CAUSE_COMM,
                                "exposed (non-overlapped) communication", false};
    }
    double copy_ns = time->exposed_copy_ns + time->idle_ns[LAC_CAUSE_COPY_WAIT];
    if (copy_ns > largest.ns) {
        largest = (struct part){copy_ns, LAC_CAUSE_COPY_WAIT, "copies not overlapped with kernels",
                                false};
    }
    return largest;
}

static const char *say_part(struct lac_facts *facts, const struct part *part)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text32 step = lac_format_ns(analysis->step_mean_ns);
    struct lac_text32 ns = lac_format_ns(lac_round(part->ns));
    struct lac_text32 pct = lac_format_pct(lac_pct_of_step(facts, part->ns));
    if (part->is_idle) {
        return lac_texts_add(&analysis->texts, "the GPU waits %s of every %s step %s (%s)", ns.text,
                             step.text, part->text, pct.text);
    }
    return lac_texts_add(&analysis->texts, "%s %s of every %s step (%s)",
                         part->cause == LAC_CAUSE_COMM
                             ? "exposed (non-overlapped) communication takes"
                             : "copies not overlapped with kernels take",
                         ns.text, step.text, pct.text);
}

static bool is_first(const struct lac_analysis *analysis, enum lac_finding_kind kind)
{
    return analysis->finding_count > 0 && analysis->findings[0].kind == kind &&
           analysis->findings[0].gain_mid_pct >= GAIN_MIN_PCT;
}

/** Data is the longest part: what is lost to it, and what copies take beside it. */
static void say_starved(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    struct part part = {time->starved_ns, LAC_CAUSE_DATA_WAIT, lac_waits_for(LAC_CAUSE_DATA_WAIT),
                        true};
    analysis->verdict = (struct lac_verdict){"data_wait", 'D', say_part(facts, &part), ""};
    double copy_pct = lac_pct_of_step(facts, time->exposed_copy_ns);
    if (copy_pct >= SAID_BESIDE_PCT) {
        analysis->verdict.detail = lac_texts_add(
            &analysis->texts, "copies not overlapped with kernels take another %s (%s)",
            lac_format_ns(lac_round(time->exposed_copy_ns)).text, lac_format_pct(copy_pct).text);
    }
}

static void say_about_step(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_verdict *verdict = &analysis->verdict;
    double computing_pct = lac_computing_pct(facts);
    if (analysis->finding_count > 0 &&
        lac_finding_type(analysis->findings[0].kind)->is_about_loading &&
        is_first(analysis, analysis->findings[0].kind)) {
        say_starved(facts);
        return;
    }
    const struct lac_finding *first = analysis->finding_count > 0 ? &analysis->findings[0] : NULL;
    if (is_first(analysis, LAC_FINDING_LAYOUT_CONVERSION)) {
        *verdict = (struct lac_verdict){
            "gpu", 'G',
            lac_texts_add(&analysis->texts, "layout conversions take %s of every %s step (%s)",
                          lac_format_ns(first->cost_ns_per_step).text,
                          lac_format_ns(analysis->step_mean_ns).text,
                          lac_format_pct(first->cost_pct).text),
            ""};
        return;
    }
    if (computing_pct >= GPU_BOUND_PCT) {
        *verdict = (struct lac_verdict){
            "gpu", 'G',
            lac_texts_add(&analysis->texts,
                          "GPU-bound: compute kernels run for %.0f %% of the %s step",
                          computing_pct, lac_format_ns(analysis->step_mean_ns).text),
            ""};
    } else {
        struct part part = largest_part(facts);
        *verdict = (struct lac_verdict){lac_cause_name(part.cause), lac_cause_letter(part.cause),
                                        say_part(facts, &part), ""};
        if (part.ns * 1000.0 < facts->time->step_ns) { /* memsets, or what is of no kind */
            *verdict = (struct lac_verdict){
                "unknown", '?',
                lac_texts_add(
                    &analysis->texts,
                    "the GPU computes for %.0f %% of the %s step; no single wait stands out",
                    computing_pct, lac_format_ns(analysis->step_mean_ns).text),
                ""};
        }
    }
    bool is_copy = is_first(analysis, LAC_FINDING_PAGEABLE_COPY) ||
                   is_first(analysis, LAC_FINDING_BLOCKING_COPY);
    bool says_it = is_copy && strcmp(verdict->cause, "copy_wait") == 0;
    if (first != NULL && first->gain_mid_pct >= GAIN_MIN_PCT && !says_it) {
        verdict->detail = first->title;
    }
}

/** What took most of the whole trace without computing; cause LAC_CAUSE_COUNT_
 *  where nothing did. */
static struct part largest_of_trace(const struct lac_analysis *analysis)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct part largest = {.cause = LAC_CAUSE_COUNT_, .text = ""};
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        double ns = (double)device->idle_by_cause_ns[cause];
        if (ns > largest.ns) {
            largest = (struct part){ns, (enum lac_cause)cause, lac_waits_for((enum lac_cause)cause),
                                    true};
        }
    }
    double comm_ns = (double)device->partition_ns[LAC_PART_EXPOSED_COMM];
    double copy_ns = (double)device->partition_ns[LAC_PART_EXPOSED_COPY];
    if (copy_ns > largest.ns) {
        largest = (struct part){copy_ns, LAC_CAUSE_COPY_WAIT, "copies not overlapped with kernels",
                                false};
    }
    if (comm_ns > 0.0 && comm_ns >= largest.ns) {
        largest =
            (struct part){comm_ns, LAC_CAUSE_COMM, "exposed (non-overlapped) communication", false};
    }
    return largest;
}

/** What the GPU did over the whole trace, for traces without steps to speak of. */
static const char *certain_facts(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct part part = largest_of_trace(analysis);
    struct lac_text32 idle = lac_format_ns(device->idle_ns);
    struct lac_text32 span = lac_format_ns(device->span_ns);
    struct lac_text32 most = lac_format_ns(lac_round(part.ns));
    struct lac_text32 pct = lac_format_pct(lac_pct(device->idle_ns, device->span_ns));
    if (part.ns * 100.0 <= (double)device->span_ns) { /* too little to name */
        return device->idle_ns == 0
                   ? lac_texts_add(&analysis->texts, "the GPU was busy for all of %s", span.text)
                   : lac_texts_add(&analysis->texts, "the GPU was busy for all but %s of %s",
                                   idle.text, span.text);
    }
    if (!part.is_idle && device->idle_ns * 100 <= device->span_ns) {
        return lac_texts_add(&analysis->texts, "of the GPU's %s, %s took %s (%s)", span.text,
                             part.text, most.text,
                             lac_format_pct(lac_pct(lac_round(part.ns), device->span_ns)).text);
    }
    if (!part.is_idle) {
        return lac_texts_add(&analysis->texts,
                             "the GPU was idle for %s of %s (%s), and %s took %s (%s)", idle.text,
                             span.text, pct.text, part.text, most.text,
                             lac_format_pct(lac_pct(lac_round(part.ns), device->span_ns)).text);
    }
    bool is_most = part.ns * 2.0 >= (double)device->idle_ns;
    return lac_texts_add(
        &analysis->texts, "the GPU was idle for %s of %s (%s), %s of it waiting %s (%s)", idle.text,
        span.text, pct.text, is_most ? "most" : "the largest part", part.text, most.text);
}

static void say_cold(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    int64_t first_use_ns = device->idle_by_cause_ns[LAC_CAUSE_MODULE_LOAD] +
                           device->idle_by_cause_ns[LAC_CAUSE_ALLOCATOR];
    const char *text = lac_texts_add(
        &analysis->texts,
        "cold start: %s of this trace is the first use of the GPU (loading modules, allocating), "
        "not training",
        lac_format_pct(lac_pct(first_use_ns, device->span_ns)).text);
    if (facts->first_use.name != 0) {
        int64_t ns = facts->first_use.dur_ns;
        text = lac_texts_add(&analysis->texts,
                             "cold start: the first %.60s took %s, %s of this trace; later ones "
                             "take next to nothing",
                             lac_model_str(facts->model, facts->first_use.name),
                             lac_format_ns(ns).text,
                             lac_format_pct(lac_pct(ns, device->span_ns)).text);
    }
    analysis->verdict =
        (struct lac_verdict){"module_load", '~', text, "Record ten steps after five of warm-up."};
}

/** The largest part of the whole trace, or "gpu" when the device computed nine tenths of it. */
static const char *cause_of_trace(const struct lac_analysis *analysis)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    if (device->span_ns > 0 && device->not_computing_pct <= NOT_COMPUTING_MAX_PCT) {
        return "gpu";
    }
    struct part part = largest_of_trace(analysis);
    return part.cause == LAC_CAUSE_COUNT_ ? "unknown" : lac_cause_name(part.cause);
}

/** One step, or some without a mean. */
static void say_few_steps(struct lac_analysis *analysis, const char *certain)
{
    struct lac_verdict *verdict = &analysis->verdict;
    uint32_t kept = analysis->step_kept_count;
    verdict->detail = "Record ten steps after five of warm-up.";
    verdict->text =
        lac_texts_add(&analysis->texts, "only %u step%s after warm-up, too few for a verdict; %s",
                      (unsigned)kept, kept == 1 ? "" : "s", certain);
}

static void say_about_trace(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_verdict *verdict = &analysis->verdict;
    const char *certain = certain_facts(facts);
    verdict->cause = cause_of_trace(analysis);
    if (analysis->workload == LAC_WORKLOAD_INFERENCE) {
        verdict->letter = 'i';
        verdict->text = lac_texts_add(&analysis->texts,
                                      "inference (no backward pass, no optimizer): %s", certain);
        verdict->detail = lac_unfused_attention_text(facts);
        return;
    }
    verdict->letter = '~';
    if (analysis->workload == LAC_WORKLOAD_FEW_STEPS) {
        say_few_steps(analysis, certain);
        return;
    }
    if (analysis->is_part_of_step) {
        const char *repeats =
            analysis->step_mean_ns == LAC_UNKNOWN_NS
                ? ""
                : lac_texts_add(&analysis->texts, " that repeats every %s (a layer?)",
                                lac_format_ns(analysis->step_mean_ns).text);
        verdict->text = lac_texts_add(
            &analysis->texts, "a part of a training step%s: %s; %s", repeats,
            facts->repeats_inside_pass ? "it does not hold both passes and an update"
                                       : "an autograd graph is built, but no backward pass "
                                         "was recorded",
            certain);
        verdict->detail = "Record ten steps after five of warm-up.";
        return;
    }
    if (analysis->step_mean_ns != LAC_UNKNOWN_NS) {
        verdict->text =
            lac_texts_add(&analysis->texts,
                          "no step marks; the kernels repeat every %s (an iteration, or a part of "
                          "one); %s",
                          lac_format_ns(analysis->step_mean_ns).text, certain);
    } else {
        verdict->text = lac_texts_add(&analysis->texts, "no steps found; %s", certain);
    }
    verdict->detail = facts->has_operators
                          ? "Record ten steps after five of warm-up."
                          : "Mark iterations with NVTX ranges named step to see what one takes.";
}

/** No GPU in the trace: only what the training process waits for is known. */
static void say_about_host(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_verdict *verdict = &analysis->verdict;
    const struct lac_step_time *time = facts->time;
    double waits_pct = lac_pct_of_step(facts, time->starved_ns);
    const char *step =
        lac_texts_add(&analysis->texts, "%s", lac_format_ns(analysis->step_mean_ns).text);
    verdict->detail = "No GPU operation was recorded. This is about the training process only.";
    if (!analysis->loader.is_present) {
        *verdict = (struct lac_verdict){
            "unknown", '?',
            lac_texts_add(&analysis->texts,
                          "steps take %s; neither GPU operations nor data loading were recorded",
                          step),
            "Record with CUDA activities to see what the GPU did."};
        return;
    }
    bool is_starved = waits_pct >= HOST_STARVES_PCT;
    verdict->cause = is_starved ? "data_wait" : "host";
    verdict->letter = is_starved ? 'D' : 'H';
    verdict->text =
        is_starved
            ? lac_texts_add(&analysis->texts,
                            "the training process waits %s of every %s step for data (%s)",
                            lac_format_ns(lac_round(time->starved_ns)).text, step,
                            lac_format_pct(waits_pct).text)
            : lac_texts_add(
                  &analysis->texts,
                  "data loading keeps up: the training process waits for it %s of every %s step",
                  lac_format_ns(lac_round(time->starved_ns)).text, step);
}

/** Marks of steps that say nothing of the device's pace. */
static void say_what_to_mind(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->is_paced_by_device &&
        (double)analysis->step_host_ns * HOST_AHEAD_MIN <= (double)analysis->step_mean_ns) {
        analysis->verdict.detail = lac_texts_add(
            &analysis->texts,
            "The host runs ahead: it marks a step every %s, but the GPU takes %s per step.",
            lac_format_ns(analysis->step_host_ns).text, lac_format_ns(analysis->step_mean_ns).text);
    }
}

/** The line of the import report with that code, or NULL. */
static const struct lac_report_line *report_line(const struct lac_model *model, const char *code)
{
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strcmp(model->report[i].code, code) == 0) {
            return &model->report[i];
        }
    }
    return NULL;
}

/** Calls that give the device work. O(slices): where there is no device. */
static int64_t count_launches(const struct lac_facts *facts)
{
    const struct lac_slices *slices = &facts->model->slices;
    int64_t count = 0;
    for (uint64_t i = 0; i < slices->count && facts->has_api; i++) {
        count += slices->kind[i] == LAC_SLICE_API &&
                 lac_api_class_of(facts, slices->name[i]) == LAC_API_LAUNCH;
    }
    return count;
}

/** No GPU operation: whether there was none, or none was recorded. */
static void say_no_gpu(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_report_line *ranges = report_line(facts->model, "profiler_ranges");
    const struct lac_report_line *unknown = report_line(facts->model, "category_not_known");
    int64_t launches = count_launches(facts);
    analysis->verdict = (struct lac_verdict){
        "unknown", '?', "no GPU operation and no CUDA call in this trace: the host alone",
        "Record with CUDA activities to see what the GPU did."};
    if (ranges != NULL) {
        analysis->verdict.text = lac_texts_add(
            &analysis->texts, "counters of %s, no times: CUPTI's range profiler was on",
            lac_format_count((int64_t)ranges->count, "kernel").text);
        analysis->verdict.detail = "It runs each kernel by itself, several times over, so that the "
                                   "host's times say nothing either. Record without it for times.";
    } else if (unknown != NULL) {
        analysis->verdict.text = unknown->text;
        analysis->verdict.detail =
            "Kernels are known by Kineto's categories, and by rows named Device 0 and Stream 7.";
    } else if (launches > 0) {
        analysis->verdict.text = lac_texts_add(
            &analysis->texts, "%s, but no GPU operation: what the GPU did was not recorded",
            lac_format_count(launches, "launch").text);
    }
}

void lac_verdict_say(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->finding_count > 0 && lac_finding_says_it_all(&analysis->findings[0])) {
        const struct lac_finding *first = &analysis->findings[0];
        analysis->verdict = (struct lac_verdict){"unknown", '?', first->title, first->why};
        return;
    }
    switch (analysis->workload) {
    case LAC_WORKLOAD_HOST_TRAINING:
        say_about_host(facts);
        return;
    case LAC_WORKLOAD_NO_GPU:
        say_no_gpu(facts);
        return;
    case LAC_WORKLOAD_COLD_START:
        say_cold(facts);
        return;
    case LAC_WORKLOAD_TRAINING:
        say_about_step(facts);
        say_what_to_mind(facts);
        return;
    case LAC_WORKLOAD_INFERENCE:
    case LAC_WORKLOAD_FEW_STEPS:
    case LAC_WORKLOAD_NO_STEPS:
        say_about_trace(facts);
        return;
    }
}
