/* The one sentence a trace opens with. Its number is one part of the partition, or a sum of parts
 * that it names: what the first change removes, else the largest part that is not computing. */

#include "analysis/diagnose/loading/loading.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/diagnose/wording/wording.h"
#include "collector/base/count_of.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Parts that one kind of change removes together, and are said in one number. */
static const struct group {
    uint32_t parts[2]; /**< the same twice: one alone */
    enum lac_cause cause;
    const char *names[2]; /**< of the parts beside each other */
} groups[] = {
#define IDLE(cause) (LAC_PART_IDLE + (cause))
    {{IDLE(LAC_CAUSE_DATA_WAIT), IDLE(LAC_CAUSE_DATA_WAIT)}, LAC_CAUSE_DATA_WAIT, {"", ""}},
    {{IDLE(LAC_CAUSE_LAUNCH), IDLE(LAC_CAUSE_HOST)}, LAC_CAUSE_HOST, {"launches", "other work"}},
    {{IDLE(LAC_CAUSE_SYNC), IDLE(LAC_CAUSE_SYNC)}, LAC_CAUSE_SYNC, {"", ""}},
    {{LAC_PART_EXPOSED_COPY, IDLE(LAC_CAUSE_COPY_WAIT)},
     LAC_CAUSE_COPY_WAIT,
     {"copying", "waiting for copies"}},
    {{LAC_PART_EXPOSED_COMM, IDLE(LAC_CAUSE_COMM)},
     LAC_CAUSE_COMM,
     {"kernels", "waiting on the host"}},
    {{IDLE(LAC_CAUSE_ALLOCATOR), IDLE(LAC_CAUSE_ALLOCATOR)}, LAC_CAUSE_ALLOCATOR, {"", ""}},
    {{IDLE(LAC_CAUSE_MODULE_LOAD), IDLE(LAC_CAUSE_MODULE_LOAD)}, LAC_CAUSE_MODULE_LOAD, {"", ""}},
    {{IDLE(LAC_CAUSE_DEPENDENCY), IDLE(LAC_CAUSE_DEPENDENCY)}, LAC_CAUSE_DEPENDENCY, {"", ""}},
    {{IDLE(LAC_CAUSE_PROFILER), IDLE(LAC_CAUSE_PROFILER)}, LAC_CAUSE_PROFILER, {"", ""}},
    {{IDLE(LAC_CAUSE_UNATTRIBUTED), IDLE(LAC_CAUSE_UNATTRIBUTED)},
     LAC_CAUSE_UNATTRIBUTED,
     {"", ""}},
    {{LAC_PART_EXPOSED_MEMSET, LAC_PART_EXPOSED_MEMSET}, LAC_CAUSE_UNATTRIBUTED, {"", ""}},
#undef IDLE
};

static int64_t group_ns(const struct lac_time_partition *partition, const struct group *group)
{
    int64_t first_ns = partition->part_ns[group->parts[0]];
    return group->parts[0] == group->parts[1] ? first_ns
                                              : first_ns + partition->part_ns[group->parts[1]];
}

/** The largest group that is not computing; of equals the first. */
static const struct group *largest_group(const struct lac_time_partition *partition)
{
    const struct group *largest = &groups[0];
    for (size_t i = 1; i < LAC_COUNT_OF(groups); i++) {
        if (group_ns(partition, &groups[i]) > group_ns(partition, largest)) {
            largest = &groups[i];
        }
    }
    return largest;
}

/** The idle time of a group, without what its device does at work. */
static int64_t idle_ns_of(const struct lac_time_partition *partition, const struct group *group)
{
    int64_t first_ns = partition->part_ns[group->parts[0]];
    return group->parts[0] < LAC_PART_IDLE ? group_ns(partition, group) - first_ns
                                           : group_ns(partition, group);
}

/** The largest part of a recording as a whole that is not computing. Idle time is one part, of which
 *  the largest group is named: who waits for copies does not copy. */
struct largest {
    const struct group *group;
    bool is_idle;
};

static struct largest largest_of_trace(const struct lac_time_partition *partition, int64_t idle_ns)
{
    const struct group *work = NULL;
    const struct group *idle = &groups[0];
    int64_t work_ns = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(groups); i++) {
        uint32_t part = groups[i].parts[0];
        if (part < LAC_PART_IDLE && partition->part_ns[part] > work_ns) {
            work = &groups[i];
            work_ns = partition->part_ns[part];
        }
        if (idle_ns_of(partition, &groups[i]) > idle_ns_of(partition, idle)) {
            idle = &groups[i];
        }
    }
    bool is_idle = work == NULL || idle_ns >= work_ns;
    return (struct largest){is_idle ? idle : work, is_idle};
}

/** The group that has most of what a finding claims; NULL: it claims computing, or nothing. */
static const struct group *group_of(const struct lac_finding *finding)
{
    uint32_t most = LAC_PART_COMPUTE;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        most = finding->part_ns[part] > finding->part_ns[most] ? part : most;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(groups); i++) {
        if (groups[i].parts[0] == most || groups[i].parts[1] == most) {
            return &groups[i];
        }
    }
    return NULL;
}

/** "the GPU", or which one of several. */
static const char *gpu_label(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    return analysis->device_count < 2
               ? "the GPU"
               : lac_texts_add(&analysis->texts, "GPU %lld",
                               (long long)analysis->devices[analysis->partition.device].id);
}

/** A number of the partition, in the words of a sentence. */
struct said {
    int64_t ns;
    struct lac_text32 part, whole, pct;
    const char *per;   /**< "step" */
    const char *every; /**< "every", "the" where there is one */
};

/** Say those parts in one number: it is the verdict's. */
static struct said take_parts(struct lac_facts *facts, uint32_t parts)
{
    const struct lac_time_partition *partition = &facts->analysis->partition;
    bool is_one = facts->analysis->step_kept_count == 1;
    struct said said = {.per = partition->per, .every = is_one ? "the" : "every"};
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        said.ns += (parts >> part & 1U) != 0 ? partition->part_ns[part] : 0;
    }
    facts->analysis->verdict.parts = parts;
    said.part = lac_format_ns(said.ns);
    said.whole = lac_format_ns(partition->total_ns);
    said.pct = lac_format_pct(lac_pct(said.ns, partition->total_ns));
    return said;
}

/** The parts of a group that are worth a word: beside the larger one a twentieth of both. */
static uint32_t parts_of(const struct lac_time_partition *partition, const struct group *group)
{
    uint32_t parts = 0;
    for (int i = 0; i < 2; i++) {
        bool is_worth_it = partition->part_ns[group->parts[i]] * 20 >= group_ns(partition, group);
        parts |= is_worth_it ? 1U << group->parts[i] : 0;
    }
    return parts;
}

/** The same of the largest part of a recording: of work that alone, of idle time what is idle. */
static uint32_t parts_of_largest(const struct lac_time_partition *partition, struct largest largest)
{
    uint32_t first = largest.group->parts[0];
    uint32_t second = largest.group->parts[1];
    if (!largest.is_idle) {
        return 1U << first;
    }
    return first < LAC_PART_IDLE ? 1U << second : parts_of(partition, largest.group);
}

/** ": launches 11 ms + other work 17 ms" of a group said in one number; "" of one part. */
static const char *say_sum(struct lac_facts *facts, const struct group *group, uint32_t parts)
{
    const int64_t *part_ns = facts->analysis->partition.part_ns;
    if (parts != (1U << group->parts[0] | 1U << group->parts[1]) ||
        group->parts[0] == group->parts[1]) {
        return "";
    }
    return lac_texts_add(&facts->analysis->texts, ": %s %s + %s %s", group->names[0],
                         lac_format_ns(part_ns[group->parts[0]]).text, group->names[1],
                         lac_format_ns(part_ns[group->parts[1]]).text);
}

/** What there is to say of `ns` of idle time that nothing recorded explains. */
static const char *why_unexplained(const struct lac_facts *facts, int64_t ns)
{
    double queued_ns = (double)lac_spans_intersection_length(&facts->queued, &facts->kept) /
                       (double)facts->analysis->step_kept_count;
    return !facts->has_api                ? ": the trace has no CUDA calls that would tell why"
           : queued_ns * 2.0 < (double)ns ? ", and the trace does not show why"
           : facts->launches_graphs
               ? " while work is queued: not all that CUDA graphs run was recorded"
               : " while work is queued, and the trace does not show why";
}

static const char *say_unexplained(struct lac_facts *facts, const struct said *said)
{
    return lac_texts_add(&facts->analysis->texts, "%s is idle for %s of %s %s %s (%s)%s",
                         gpu_label(facts), said->part.text, said->every, said->whole.text,
                         said->per, said->pct.text, why_unexplained(facts, said->ns));
}

/** More of the step than the verdict's part is idle, and nothing says why: that limits what is known. */
static void say_beside(struct lac_facts *facts, int64_t ns)
{
    struct lac_analysis *analysis = facts->analysis;
    analysis->verdict.detail = lac_texts_add(
        &analysis->texts, "%s is idle for another %s (%s)%s.", gpu_label(facts),
        lac_format_ns(ns).text, lac_format_pct(lac_pct(ns, analysis->partition.total_ns)).text,
        why_unexplained(facts, ns));
}

/** What a group takes of the step. */
static const char *say_group(struct lac_facts *facts, const struct group *group)
{
    struct lac_analysis *analysis = facts->analysis;
    uint32_t parts = parts_of(&analysis->partition, group);
    struct said said = take_parts(facts, parts);
    const char *sum = say_sum(facts, group, parts);
    if (group->parts[0] == lac_time_part_of(LAC_CAUSE_UNATTRIBUTED)) {
        return say_unexplained(facts, &said);
    }
    if (group->parts[0] < LAC_PART_IDLE && (parts >> group->parts[0] & 1U) != 0) {
        const char *copies = sum[0] != '\0'
                                 ? "copies not overlapped with kernels and waiting for them take"
                                 : "copies not overlapped with kernels take";
        const char *what =
            group->cause == LAC_CAUSE_COMM        ? "exposed (non-overlapped) communication takes"
            : group->cause == LAC_CAUSE_COPY_WAIT ? copies
                                                  : "memsets not overlapped with kernels take";
        return lac_texts_add(&analysis->texts, "%s %s of %s %s %s (%s)%s", what, said.part.text,
                             said.every, said.whole.text, said.per, said.pct.text, sum);
    }
    enum lac_cause cause = group->cause;
    if (parts == 1U << lac_time_part_of(LAC_CAUSE_LAUNCH)) {
        cause = LAC_CAUSE_LAUNCH;
    }
    return lac_texts_add(&analysis->texts, "%s waits %s of %s %s %s %s (%s)%s", gpu_label(facts),
                         said.part.text, said.every, said.whole.text, said.per,
                         lac_waits_for(cause), said.pct.text, sum);
}

/** The cause by which a group is known: of launches and other work the larger. */
static enum lac_cause cause_of_group(const struct lac_time_partition *partition,
                                     const struct group *group)
{
    bool is_launch =
        group->cause == LAC_CAUSE_HOST && partition->part_ns[lac_time_part_of(LAC_CAUSE_LAUNCH)] >
                                              partition->part_ns[lac_time_part_of(LAC_CAUSE_HOST)];
    return is_launch ? LAC_CAUSE_LAUNCH : group->cause;
}

static void set_cause(struct lac_verdict *verdict, enum lac_cause cause)
{
    verdict->cause = cause == LAC_CAUSE_UNATTRIBUTED ? "unknown" : lac_cause_name(cause);
    verdict->letter = lac_cause_letter(cause);
}

/** The device's own work, and of it what the first finding is about. */
static void say_compute(struct lac_facts *facts, const struct lac_finding *first)
{
    static const struct {
        enum lac_finding_kind kind;
        const char *what;
    } works[] = {{LAC_FINDING_LAYOUT_CONVERSION, "layout conversions"},
                 {LAC_FINDING_TENSOR_CORES_UNUSED, "matrix work off the tensor cores"},
                 {LAC_FINDING_TENSOR_CORES_MISALIGNED, "matrix work of misaligned sizes"},
                 {LAC_FINDING_UNFUSED_ATTENTION, "attention in separate kernels"},
                 {LAC_FINDING_UNFUSED_ELEMENTWISE, "chains of elementwise kernels"},
                 {LAC_FINDING_RECOMPUTE, "recomputed activations"}};
    struct lac_analysis *analysis = facts->analysis;
    struct said said = take_parts(facts, 1U << LAC_PART_COMPUTE);
    const char *of_it = "";
    for (size_t i = 0; i < LAC_COUNT_OF(works) && first != NULL; i++) {
        if (works[i].kind == first->kind) {
            bool is_all = first->cost_ns_per_step >= said.ns - said.ns / 200;
            of_it = lac_texts_add(&analysis->texts, ", %s of it %s",
                                  is_all ? "all" : lac_format_ns(first->cost_ns_per_step).text,
                                  works[i].what);
        }
    }
    bool is_bound = lac_computing_pct(facts) >= GPU_BOUND_PCT;
    analysis->verdict.cause = "gpu";
    analysis->verdict.letter = 'G';
    analysis->verdict.text =
        lac_texts_add(&analysis->texts, "%scompute kernels run for %s of %s %s %s (%s)%s",
                      is_bound ? "GPU-bound: " : "", said.part.text, said.every, said.whole.text,
                      said.per, said.pct.text, of_it);
}

/** The finding that leads, where it proposes a change that gains. */
static const struct lac_finding *first_change(const struct lac_analysis *analysis)
{
    const struct lac_finding *first = &analysis->findings[0];
    return analysis->finding_count > 0 && first->gain_mid_pct >= GAIN_MIN_PCT ? first : NULL;
}

static void say_about_step(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_time_partition *partition = &analysis->partition;
    const struct lac_finding *first = first_change(analysis);
    const struct group *largest = largest_group(partition);
    const struct group *group = first != NULL ? group_of(first) : NULL;
    int64_t compute_ns = partition->part_ns[LAC_PART_COMPUTE];
    bool is_bound = lac_computing_pct(facts) >= GPU_BOUND_PCT;
    bool is_worth_it = first != NULL && first->gain_mid_pct >= WARNING_GAIN_PCT;
    bool is_compute = group == NULL && first != NULL && first->part_ns[LAC_PART_COMPUTE] > 0;
    is_compute = is_compute && compute_ns >= group_ns(partition, largest);
    if (is_compute || is_bound) {
        say_compute(facts, is_compute ? first : NULL);
        return;
    }
    if (group == NULL ||
        !(is_worth_it || group_ns(partition, group) * 2 >= group_ns(partition, largest))) {
        if (group_ns(partition, largest) * 1000 < partition->total_ns) {
            say_compute(facts, NULL);
            return;
        }
        group = largest;
    }
    set_cause(&analysis->verdict, cause_of_group(partition, group));
    analysis->verdict.text = say_group(facts, group);
    if (group != largest && largest->parts[0] == lac_time_part_of(LAC_CAUSE_UNATTRIBUTED)) {
        say_beside(facts, group_ns(partition, largest));
    }
}

/** What the GPU did: in a step of a loop that does not train, or of few steps; else as a whole. */
static const char *certain_facts(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_time_partition *partition = &analysis->partition;
    if (partition->of == LAC_OF_STEP) {
        say_about_step(facts);
        return analysis->verdict.text;
    }
    int64_t idle_ns = analysis->devices[partition->device].idle_ns;
    struct largest largest = largest_of_trace(partition, idle_ns);
    const struct group *group = largest.group;
    const char *gpu = gpu_label(facts);
    struct said said = take_parts(facts, parts_of_largest(partition, largest));
    struct lac_text32 idle = lac_format_ns(idle_ns);
    struct lac_text32 idle_pct = lac_format_pct(lac_pct(idle_ns, partition->total_ns));
    if (said.ns <= partition->total_ns / 100) { /* too little to name */
        return idle_ns == 0 ? lac_texts_add(&analysis->texts, "%s was busy for all of %s", gpu,
                                            said.whole.text)
                            : lac_texts_add(&analysis->texts, "%s was busy for all but %s of %s",
                                            gpu, idle.text, said.whole.text);
    }
    const char *work = group->cause == LAC_CAUSE_COMM ? "exposed (non-overlapped) communication"
                       : group->cause == LAC_CAUSE_COPY_WAIT ? "copies not overlapped with kernels"
                                                             : "memsets";
    if (!largest.is_idle) {
        return lac_texts_add(&analysis->texts, "of %s's %s, %s took %s (%s)", gpu, said.whole.text,
                             work, said.part.text, said.pct.text);
    }
    if (group->parts[0] == lac_time_part_of(LAC_CAUSE_UNATTRIBUTED)) {
        return lac_texts_add(&analysis->texts, "%s was idle for %s of %s (%s), and the trace %s",
                             gpu, idle.text, said.whole.text, idle_pct.text,
                             facts->has_api ? "does not show why"
                                            : "has no CUDA calls that would tell why");
    }
    return lac_texts_add(
        &analysis->texts, "%s was idle for %s of %s (%s), %s of it waiting %s (%s)", gpu, idle.text,
        said.whole.text, idle_pct.text, said.ns * 2 >= idle_ns ? "most" : "the largest part",
        lac_waits_for(analysis->verdict.parts == 1U << lac_time_part_of(LAC_CAUSE_LAUNCH)
                          ? LAC_CAUSE_LAUNCH
                          : group->cause),
        said.part.text);
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
    analysis->verdict = (struct lac_verdict){
        "module_load", '~', text, "Record ten steps after five of warm-up.",
        facts->first_use.name != 0 ? 0
                                   : 1U << lac_time_part_of(LAC_CAUSE_MODULE_LOAD) |
                                         1U << lac_time_part_of(LAC_CAUSE_ALLOCATOR)};
}

/** The largest part of the whole trace, or "gpu" when the device computed nine tenths of it. */
static const char *cause_of_trace(const struct lac_analysis *analysis)
{
    const struct lac_time_partition *partition = &analysis->partition;
    int64_t idle_ns = analysis->devices[partition->device].idle_ns;
    const struct group *group = largest_of_trace(partition, idle_ns).group;
    if (partition->total_ns > 0 &&
        analysis->devices[partition->device].not_computing_pct <= NOT_COMPUTING_MAX_PCT) {
        return "gpu";
    }
    enum lac_cause cause = cause_of_group(partition, group);
    return cause == LAC_CAUSE_UNATTRIBUTED || group_ns(partition, group) == 0
               ? "unknown"
               : lac_cause_name(cause);
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
    if (analysis->partition.of != LAC_OF_STEP) {
        verdict->cause = cause_of_trace(analysis);
    }
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

/** "no kernel was recorded: " and why, where our own recorder says that; NULL for other traces. */
static const char *why_no_gpu(struct lac_facts *facts)
{
    const char *nothing = lac_why_nothing(facts);
    const char *kernels = lac_why_no_kernels(facts);
    const char *why = lac_why_no_gpu(facts);
    const char *what = nothing != NULL   ? "nothing"
                       : kernels != NULL ? "no kernel"
                                         : "no GPU operation";
    why = nothing != NULL ? nothing : kernels != NULL ? kernels : why;
    return why != NULL ? lac_texts_add(&facts->analysis->texts, "%s was recorded: %s", what, why)
                       : NULL;
}

/** How to see what the GPU did. */
static const char *record_gpu_text(const struct lac_facts *facts)
{
    return facts->model->info.format == LAC_FORMAT_NSYS
               ? "Record with nsys profile --trace=cuda to see what the GPU did."
               : "Record with CUDA activities to see what the GPU did.";
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
    const char *why = why_no_gpu(facts);
    verdict->detail =
        why != NULL
            ? lac_texts_add(&analysis->texts, "%c%s. This is about the training process only.",
                            toupper((unsigned char)why[0]), why + 1)
            : "No GPU operation was recorded. This is about the training process only.";
    if (!analysis->loader.is_present) {
        *verdict = (struct lac_verdict){
            "unknown", '?',
            lac_texts_add(&analysis->texts,
                          "steps take %s; neither GPU operations nor data loading were recorded",
                          step),
            why != NULL ? verdict->detail : record_gpu_text(facts), 0};
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

/** Whether these are stacks of a profiler: in units of their own, or in time. */
static bool is_profile(const struct lac_model *model)
{
    return model->info.weight_unit != 0 ||
           (model->info.has_no_time && model->info.format >= LAC_FORMAT_FOLDED);
}

/** Stacks of a profiler: samples, or sums. */
static void say_profile(struct lac_facts *facts)
{
    const char *top = lac_profile_top(facts);
    const char *separator = top != NULL && top[0] != '\0' ? ". " : "";
    facts->analysis->verdict.text =
        "a profile of the host: which functions it was in, nothing of the GPU";
    facts->analysis->verdict.detail = lac_texts_add(
        &facts->analysis->texts,
        "%s%s%sRecord the job with lacuna run to see what the GPU waits for.",
        top != NULL ? top : "", separator,
        facts->model->info.has_no_time ? "It holds sums without times: a flame graph, no timeline. "
                                       : "");
}

/** What says nothing of the GPU by itself, and belongs to the trace of the same job. */
static const struct {
    enum lac_trace_format format;
    const char *text;
    const char *detail;
} beside_a_trace[] = {
    {LAC_FORMAT_GRAPH_NOTES,
     "annotations of CUDA graphs: which module each node belongs to, no times",
     "With --join the kernels of the trace of the same job carry them."},
    {LAC_FORMAT_PERF_STAT, "counts of the host's CPUs, as perf stat took them, nothing of the GPU",
     "With --join they lie beside the trace of the same job."},
    {LAC_FORMAT_TENSORBOARD, "scalars of a training, as TensorBoard shows them, nothing of the GPU",
     "With --join they lie beside the trace of the same job."},
};

/** What PyTorch kept of its own state, and counts alone; false: this is something else. */
static bool say_state(struct lac_facts *facts)
{
    struct lac_verdict *verdict = &facts->analysis->verdict;
    if (facts->model->info.format == LAC_FORMAT_TORCH_MEMORY) {
        const struct lac_report_line *oom = report_line(facts->model, "out_of_memory");
        verdict->text = "a snapshot of PyTorch's memory: which code holds what, nothing of when "
                        "the GPU worked";
        verdict->detail = oom != NULL ? oom->text : "";
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(beside_a_trace); i++) {
        if (facts->model->info.format == beside_a_trace[i].format) {
            verdict->text = beside_a_trace[i].text;
            verdict->detail = beside_a_trace[i].detail;
            return true;
        }
    }
    if (facts->model->info.format == LAC_FORMAT_GPU_LOG && facts->model->slices.count == 0) {
        lac_log_say(facts);
        return true;
    }
    if (facts->model->info.format == LAC_FORMAT_FLIGHT_RECORDER) {
        const struct lac_report_line *line = report_line(facts->model, "all_completed");
        for (uint32_t i = 0; i < facts->model->report_count && line == NULL; i++) {
            const struct lac_report_line *each = &facts->model->report[i];
            line = strncmp(each->code, "not_completed_", 14) == 0 ? each : NULL;
        }
        verdict->text = "the last collectives of one rank, as the host saw them";
        verdict->detail = line != NULL ? line->text : "";
        return true;
    }
    return false;
}

/** No GPU operation: whether there was none, or none was recorded. */
static void say_no_gpu(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_report_line *ranges = report_line(facts->model, "profiler_ranges");
    const struct lac_report_line *unknown = report_line(facts->model, "category_not_known");
    const char *why = why_no_gpu(facts);
    int64_t launches = count_launches(facts);
    analysis->verdict = (struct lac_verdict){
        "unknown", '?', "no GPU operation and no CUDA call in this trace: the host alone",
        record_gpu_text(facts), 0};
    if (say_state(facts)) {
        return;
    }
    if (is_profile(facts->model)) {
        say_profile(facts);
    } else if (why != NULL) {
        analysis->verdict.text = why;
        analysis->verdict.detail = "";
    } else if (ranges != NULL) {
        analysis->verdict.text = lac_texts_add(
            &analysis->texts, "counters of %s, no times: CUPTI's range profiler was on",
            lac_format_count((int64_t)ranges->count, "kernel").text);
        analysis->verdict.detail =
            "It replays each kernel several times, so host times would not be "
            "meaningful either. Record without it for times.";
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
        analysis->verdict = (struct lac_verdict){"unknown", '?', first->title, first->why, 0};
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

/** "2 copies (4 ms) and 3 memsets (6 us)" of a file without times, or "". */
static const char *say_sums_beside(const struct lac_facts *facts)
{
    const struct lac_slices *slices = &facts->model->slices;
    static const struct {
        enum lac_slice_kind kind;
        const char *word;
    } kinds[] = {{LAC_SLICE_COPY, "copy"}, {LAC_SLICE_MEMSET, "memset"}};
    const char *text = "";
    for (size_t k = 0; k < LAC_COUNT_OF(kinds); k++) {
        int64_t count = 0;
        int64_t sum_ns = 0;
        for (uint64_t i = 0; i < slices->count; i++) {
            count += slices->kind[i] == kinds[k].kind;
            sum_ns =
                slices->kind[i] == kinds[k].kind ? lac_sum_ns(sum_ns, slices->dur_ns[i]) : sum_ns;
        }
        if (count > 0) {
            text = lac_texts_add(
                &facts->analysis->texts, "%s%s%s took %s", text, text[0] != '\0' ? ", " : "",
                lac_format_count(count, kinds[k].word).text, lac_format_ns(sum_ns).text);
        }
    }
    return text;
}

void lac_verdict_without_time(struct lac_facts *facts)
{
    if (is_profile(facts->model)) {
        say_profile(facts);
        return;
    }
    struct lac_analysis *analysis = facts->analysis;
    const char *text = "a profile without times: nothing ran on a GPU";
    const char *beside = say_sums_beside(facts);
    if (analysis->kernel_name_count == 0 && beside[0] != '\0') {
        text = lac_texts_add(&analysis->texts, "a profile without times: %s, no kernel", beside);
    }
    if (analysis->kernel_name_count > 0) {
        const struct lac_kernel_facts *first = &analysis->kernels[0];
        text = lac_texts_add(
            &analysis->texts, "a profile without times: %s took %s, most of it %.80s (%s)",
            lac_format_count((int64_t)analysis->kernel_count, "kernel").text,
            lac_format_ns(analysis->kernel_total_ns).text, lac_model_str(facts->model, first->name),
            lac_format_pct(100.0 * (double)first->total_ns /
                           fmax(1.0, (double)analysis->kernel_total_ns))
                .text);
    }
    analysis->verdict = (struct lac_verdict){
        "unknown", '?', text,
        "What the GPU waited for needs a recording with times: lacuna run, the PyTorch profiler or "
        "Nsight Systems.",
        0};
    analysis->not_recorded[analysis->not_recorded_count++] =
        lac_word(LAC_WORDS_MISSING, LAC_MISSING_TIMES)->label;
}
