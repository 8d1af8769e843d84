/*
 * Synchronizations that empty the queue. A call that waits lasts as long as the device has work;
 * that is not its cost. What it costs is the time the device then has none: from its return until
 * the host has launched again. Where the host has other work to do then (loading a batch,
 * allocating) that work is what the idle time looks like; that the wait is behind it shows when the
 * steps are played again without it.
 */

#include "analysis/diagnose/facts/recorded/python_frames.h"
#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/steps/steps.h"

#include <stdint.h>
#include <string.h>

enum { CULPRITS_MAX = 16 };

/** A kind of call: its name and the operator around it. */
struct culprit {
    const char *call, *around;
    uint64_t slice; /**< the first of them */
    int64_t exposed_ns;
    uint64_t count;
};

/** Of a name without the number at its end: "train#3" and "train#4" are one range. */
static size_t length_of_name(const char *name)
{
    size_t length = strlen(name);
    const size_t whole = length;
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') {
        length--;
    }
    while (length < whole && length > 0 && strchr("#_-: .", name[length - 1]) != NULL) {
        length--;
    }
    return length > 0 ? length : whole;
}

static void add_to(const struct lac_facts *facts, struct culprit *culprits, uint32_t *count,
                   uint64_t slice, const char *around, int64_t ns)
{
    const struct lac_model *model = facts->model;
    const char *call = lac_model_str(model, model->slices.name[slice]);
    const size_t length = length_of_name(around);
    uint32_t c = 0;
    while (c < *count && (strcmp(culprits[c].call, call) != 0 ||
                          strncmp(culprits[c].around, around, length) != 0 ||
                          length_of_name(culprits[c].around) != length)) {
        c++;
    }
    if (ns == 0 || c == CULPRITS_MAX) {
        return;
    }
    if (c == *count) {
        culprits[(*count)++] = (struct culprit){.call = call, .around = around, .slice = slice};
    }
    culprits[c].exposed_ns = lac_sum_ns(culprits[c].exposed_ns, ns);
    culprits[c].count++;
}

/** The one with the longest time; where its range has many numbers, without one. */
static bool worst_of(const struct lac_facts *facts, const struct culprit *culprits, uint32_t count,
                     struct culprit *ret_worst)
{
    for (uint32_t c = 0; c < count; c++) {
        if (c == 0 || culprits[c].exposed_ns > ret_worst->exposed_ns) {
            *ret_worst = culprits[c];
        }
    }
    if (count > 0 && ret_worst->count > 1) {
        ret_worst->around =
            lac_texts_add(&facts->analysis->texts, "%.*s", (int)length_of_name(ret_worst->around),
                          ret_worst->around);
    }
    return count > 0;
}

/** What of a gap in kept steps is the call's that opened it: not what the host did besides. */
static int64_t sync_inside(const struct lac_facts *facts, const struct lac_gap *gap)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t sum_ns = 0;
    for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
        int64_t start_ns = analysis->pieces[p].start_ns;
        if (analysis->pieces[p].cause == LAC_CAUSE_SYNC) {
            sum_ns += lac_spans_length_inside(&facts->kept, start_ns,
                                              start_ns + lac_gap_piece_dur_ns(analysis, p));
        }
    }
    return sum_ns;
}

/** The operator or range around a call; "" of the step itself, whose name has a number. */
static const char *part_around(const struct lac_facts *facts, uint64_t call)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_model *model = facts->model;
    const char *name = lac_enclosing_name(model, call);
    uint32_t step = lac_step_of_host_at(analysis, model->slices.start_ns[call], 0);
    bool is_step = lac_names_host_class(name, strlen(name)) == LAC_HOST_STEP ||
                   (step != LAC_NONE && analysis->steps[step].name != 0 &&
                    strcmp(name, lac_model_str(model, analysis->steps[step].name)) == 0);
    return is_step ? "" : name;
}

/** Idle time of kept steps by the call that opened it; the most costly in *ret_worst. */
static bool find_culprit(const struct lac_facts *facts, struct culprit *ret_worst)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct culprit culprits[CULPRITS_MAX];
    uint32_t count = 0;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        int64_t ns = gap->root_kind == LAC_ROOT_SYNC ? sync_inside(facts, gap) : 0;
        if (ns == 0) {
            continue;
        }
        add_to(facts, culprits, &count, gap->root, part_around(facts, gap->root), ns);
    }
    return worst_of(facts, culprits, count, ret_worst);
}

/** Calls of kept steps that wait, by how long they do; the longest kind in *ret_worst. */
static bool find_waiter(const struct lac_facts *facts, struct culprit *ret_worst)
{
    const struct lac_host *host = &facts->hosts[facts->main_host];
    struct culprit culprits[CULPRITS_MAX];
    uint32_t count = 0;
    for (uint64_t i = 0; i < host->blocking_count; i++) {
        const struct lac_blocking_call *call = &host->blocking[i];
        int64_t ns = lac_spans_length_inside(&facts->host_kept, call->start_ns, call->end_ns);
        add_to(facts, culprits, &count, call->slice, ns > 0 ? part_around(facts, call->slice) : "",
               ns);
    }
    return worst_of(facts, culprits, count, ret_worst);
}

/** Whether the wait is a loop that asks. */
static bool is_spin(const struct culprit *culprit)
{
    return strstr(culprit->call, "Query") != NULL;
}

/** Ask once, and go on. */
static const char *change_of_spin(const struct lac_facts *facts, const struct culprit *culprit)
{
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_UNKNOWN) {
        return lac_texts_add(&facts->analysis->texts,
                             "// ask once per step, for the step before, and go on:\n"
                             "if (%.*s(done) == %sSuccess) { ... }",
                             (int)strcspn(culprit->call, "_"), culprit->call,
                             strncmp(culprit->call, "hip", 3) == 0 ? "hip" : "cuda");
    }
    return "if event.query():               # once per step, of the step before; then go on\n"
           "    print(value.item())\n"
           "# no `while not event.query(): ...`: it waits, and keeps a core busy";
}

/** Whether there is about one of the calls for each kernel. */
static bool is_after_each_kernel(const struct lac_facts *facts, const struct culprit *culprit)
{
    const struct lac_analysis *analysis = facts->analysis;
    double kernels = (double)analysis->kernel_count * (double)analysis->step_kept_count /
                     (double)(analysis->step_count > 0 ? analysis->step_count : 1);
    return kernels > 0.0 && (double)culprit->count >= CALLS_PER_KERNEL_MIN * kernels;
}

/** Without a framework: the calls of the runtime are the program's own. */
static const char *change_of_runtime(const struct lac_facts *facts, const struct culprit *culprit)
{
    const char *prefix = strncmp(culprit->call, "hip", 3) == 0 ? "hip" : "cuda";
    int length = (int)strcspn(culprit->call, "_");
    if (is_after_each_kernel(facts, culprit)) {
        return lac_texts_add(
            &facts->analysis->texts,
            "// %.*s() after each kernel can go: kernels of a stream run in order.\n"
            "// Keep one where the host reads a result:\n"
            "%sStreamSynchronize(stream);",
            length, culprit->call, prefix);
    }
    return lac_texts_add(&facts->analysis->texts,
                         "// move %.*s() out of the loop, or wait only where the result is used:\n"
                         "%sEventRecord(done, stream);   // behind the last kernel of the step\n"
                         "%sEventSynchronize(done);      // before the host reads it, a step later",
                         length, culprit->call, prefix, prefix);
}

/** Values that a loop of batches reads. */
static const char *change_of_batches(const struct culprit *culprit)
{
    return strstr(culprit->around, "item") != NULL ||
                   strstr(culprit->around, "_local_scalar") != NULL
               ? "total += correct.sum()          # stays on the GPU\n"
                 "print(total.item())             # once, after the loop"
               : "results.append(out.to('cpu', non_blocking=True))  # wait once, after the loop:\n"
                 "torch.cuda.synchronize()";
}

/** Whether the wait is a copy from pageable memory to the device, as .to(device) makes it. */
static bool is_copy_to_device(const struct lac_facts *facts, const struct culprit *culprit)
{
    bool is_copy =
        strstr(culprit->around, "copy_") != NULL || strstr(culprit->around, "aten::to") != NULL;
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->copy_count && is_copy; i++) {
        const struct lac_copy_facts *copy = &analysis->copies[i];
        if (copy->kind == LAC_COPY_HTOD && copy->src == LAC_MEMORY_PAGEABLE &&
            copy->count >= analysis->step_kept_count) {
            return true;
        }
    }
    return false;
}

/** What to write instead, by what waits. */
static const char *change_for(const struct lac_facts *facts, const struct culprit *culprit)
{
    enum lac_framework framework = lac_framework_of(facts->model);
    if (is_spin(culprit)) {
        return change_of_spin(facts, culprit);
    }
    if (framework == LAC_FRAMEWORK_UNKNOWN) {
        return change_of_runtime(facts, culprit);
    }
    if (framework == LAC_FRAMEWORK_TENSORFLOW) {
        return "# read values (metrics, .numpy()) every 50 steps instead of in each";
    }
    const char *exchange = lac_exchange_read_change(facts, culprit->slice);
    if (exchange[0] != '\0') {
        return exchange;
    }
    bool is_item = strstr(culprit->around, "item") != NULL ||
                   strstr(culprit->around, "_local_scalar_dense") != NULL;
    bool is_sized =
        strstr(culprit->around, "nonzero") != NULL || strstr(culprit->around, "index") != NULL ||
        strstr(culprit->around, "unique") != NULL || strstr(culprit->around, "masked") != NULL;
    const char *own = is_item && !lac_is_inference(facts)
                          ? lac_framework_advice(facts, LAC_SWITCH_READ_LESS, "")
                          : NULL;
    if (own != NULL) {
        return own;
    }
    if (is_item && !lac_is_inference(facts)) {
        return "total += loss.detach()          # stays on the GPU\n"
               "if step % 50 == 0:\n"
               "    print(total.item() / 50)    # one synchronization in 50 steps";
    }
    if (is_sized) {
        return "x = torch.where(mask, x, zero)  # instead of x[mask]: the size is known without a "
               "synchronization";
    }
    if (is_copy_to_device(facts, culprit)) {
        return "x = x.pin_memory().to(device, non_blocking=True)  # or make it on the GPU, once";
    }
    if (lac_is_inference(facts)) {
        return change_of_batches(culprit);
    }
    if (strstr(culprit->call, "Memcpy") != NULL) {
        return "value = value.to('cpu', non_blocking=True)  # read it one step later";
    }
    return "# move the synchronization out of the loop, or do it every 50 steps:\n"
           "if step % 50 == 0:\n"
           "    torch.cuda.synchronize()";
}

static void propose(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct culprit *worst)
{
    struct lac_analysis *analysis = facts->analysis;
    finding->brief = "synchronize less often";
    finding->change = change_for(facts, worst);
    finding->expect = lac_texts_add(&analysis->texts, "%s. The host's own work is the next limit.",
                                    lac_finding_expect(facts, finding));
    finding->costs =
        lac_is_inference(facts) ? "The values are known later."
        : lac_framework_of(facts->model) == LAC_FRAMEWORK_UNKNOWN
            ? "Keep those behind which the host reads what the GPU wrote."
            : "The value is known later. Keep synchronizations that are needed for "
              "correctness: timing, early stopping, overflow checks of a gradient scaler.";
    finding->wrong_if = "another call then synchronizes instead, and the step takes as long.";
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
}

/** The longest call that waits, in kept steps. */
static void add_waiter_evidence(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_host *host = &facts->hosts[facts->main_host];
    uint64_t longest = UINT64_MAX;
    int64_t most_ns = 0;
    for (uint64_t i = 0; i < host->blocking_count; i++) {
        const struct lac_blocking_call *call = &host->blocking[i];
        int64_t ns = lac_spans_length_inside(&facts->host_kept, call->start_ns, call->end_ns);
        if (ns > most_ns) {
            most_ns = ns;
            longest = i;
        }
    }
    if (longest != UINT64_MAX) {
        lac_evidence_slice(facts, finding, host->blocking[longest].slice,
                           lac_texts_add(&facts->analysis->texts, "waited %s for the GPU",
                                         lac_format_ns(most_ns).text));
    }
}

/** Whether a finding that names the idle time itself gains as much. */
static bool is_said_already(const struct lac_analysis *analysis, double gain_pct)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        const struct lac_finding *finding = &analysis->findings[i];
        if (lac_finding_type(finding->kind)->cause != LAC_CAUSE_COUNT_ &&
            finding->gain_mid_pct >= gain_pct) {
            return true;
        }
    }
    return false;
}

/** The device's idle time has other names, but without the wait there is less of it. */
static bool find_behind(const struct lac_facts *facts, struct lac_finding *finding,
                        const struct lac_what_if_changes *what_if)
{
    struct lac_analysis *analysis = facts->analysis;
    struct culprit worst = {.call = "", .around = ""};
    if (lac_graph_trust(facts->time) != LAC_TRUST_ALL || facts->main_host == LAC_NONE ||
        !find_waiter(facts, &worst)) {
        return false;
    }
    double steps = (double)analysis->step_kept_count;
    bool is_of_every_step = (double)worst.count >= EVERY_STEP_MIN * steps && steps > 1.0;
    if (!is_of_every_step) {
        return false;
    }
    lac_finding_estimate(facts, finding, what_if);
    lac_finding_cost(facts, finding, (double)(analysis->step_mean_ns - finding->step_low_ns));
    if (finding->gain_mid_pct < BEHIND_GAIN_PCT ||
        is_said_already(analysis, SAID_ALREADY_MIN * finding->gain_mid_pct)) {
        return false;
    }
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->title = lac_texts_add(
        &analysis->texts,
        lac_finding_hides(finding)
            ? "The host and the GPU wait for each other: that costs %s of every %s step (%s)%s"
            : "The host and the GPU wait for each other: the GPU idles %s of every %s step (%s)%s",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text, lac_finding_parts(facts, finding));
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s times per step, %s%.60s%s%.60s %s the GPU (%s in all). Without it, the host would "
        "load, allocate and launch the next step in that time; now the GPU %s.",
        lac_format_rate((double)worst.count / steps).text,
        is_spin(&worst) ? "the host spins in " : "", worst.call,
        worst.around[0] != '\0' ? " in " : "", worst.around,
        is_spin(&worst) ? "and waits for" : "waits for",
        lac_format_ns(lac_round((double)worst.exposed_ns / steps)).text,
        lac_finding_hides(finding) ? "gets it late" : "is idle for it");
    finding->confidence = 0.4; /* what the host then does instead is not seen */
    propose(facts, finding, &worst);
    /* a size or a choice that the host needs cannot wait: then nothing is gained */
    finding->step_high_ns = analysis->step_mean_ns;
    finding->gain_low_pct = 0.0;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. No gain where the host needs the value at once (a size, a branch).",
        lac_finding_expect(facts, finding));
    add_waiter_evidence(facts, finding);
    return true;
}

/** The queue is empty when synchronizations return. @return whether that is worth saying */
static bool find_after(const struct lac_facts *facts, struct lac_finding *finding,
                       const struct lac_what_if_changes *what_if)
{
    struct lac_analysis *analysis = facts->analysis;
    struct culprit worst = {.call = "", .around = ""};
    double cost_ns = facts->time->idle_ns[LAC_CAUSE_SYNC];
    if (!find_culprit(facts, &worst)) {
        return false;
    }
    double per_step = (double)worst.count / (double)analysis->step_kept_count;
    if (analysis->step_kept_count == 1 && per_step < WAITS_MANY_MIN) {
        return false; /* of a single step it is where the recording ends */
    }
    if (!lac_finding_open(facts, finding, cost_ns,
                          per_step >= WAITS_MANY_MIN ? COST_MIN_PCT : COST_OF_WORK_MIN_PCT,
                          what_if)) {
        return false;
    }
    finding->title = lac_texts_add(
        &analysis->texts,
        lac_finding_hides(finding)
            ? "Host-device synchronization costs %s of every %s step (%s)%s"
            : "The GPU idles %s of every %s step after host-device synchronization (%s)%s",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text,
        lac_finding_hides(finding) ? lac_finding_parts(facts, finding) : "");
    struct lac_text32 idles =
        lac_format_ns(worst.exposed_ns / (int64_t)(worst.count ? worst.count : 1));
    finding->why = lac_texts_add(
        &analysis->texts,
        is_spin(&worst)
            ? "The host spins in %.60s%s%.60s, %s times per step, until the GPU is done: the queue "
              "is empty then, and the GPU idles %s until the next launch. The wait costs nothing."
            : "The most costly call is %.60s%s%.60s, %s times per step: the queue is empty when it "
              "returns, and the GPU idles %s until the next launch. The wait inside the call costs "
              "nothing.",
        worst.call, worst.around[0] != '\0' ? " in " : "", worst.around,
        lac_format_rate(per_step).text, idles.text);
    propose(facts, finding, &worst);
    lac_evidence_gaps(facts, finding, LAC_CAUSE_SYNC, 3);
    return true;
}

bool lac_sync_stall_behind(const struct lac_facts *facts, struct lac_finding *finding,
                           int64_t step_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    struct culprit worst = {.call = "", .around = ""};
    double steps = (double)analysis->step_kept_count;
    if (facts->main_host == LAC_NONE || !find_waiter(facts, &worst) ||
        (double)worst.count < EVERY_STEP_MIN * steps) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->title = lac_texts_add(&analysis->texts, "%.60s%s%.60s waits for the GPU, %s per step",
                                   worst.call, worst.around[0] != '\0' ? " in " : "", worst.around,
                                   lac_format_ns(lac_round((double)worst.exposed_ns / steps)).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "It does so %s times per step, which costs nothing while something else is the limit. With "
        "the changes before it in the plan, the GPU would wait for what the host does after it.",
        lac_format_rate((double)worst.count / steps).text);
    propose(facts, finding, &worst);
    finding->confidence = 0.5; /* what the host then does instead is not seen */
    finding->expect = lac_texts_add(&analysis->texts,
                                    "Nothing now: another limit comes first. With the changes "
                                    "before it in the plan: %s per step.",
                                    lac_format_ns(step_ns).text);
    finding->check = lac_texts_add(&analysis->texts,
                                   "record ten steps with all changes before it; expect %s per "
                                   "step",
                                   lac_format_ns(step_ns).text);
    lac_finding_forget_gain(finding);
    add_waiter_evidence(facts, finding);
    return true;
}

bool lac_find_sync_stall(const struct lac_facts *facts, struct lac_finding *finding)
{
    /* what follows the results of a batch is the next one's preparation, not a wait for a value */
    if (lac_is_inference(facts) && lac_python_idle_pct(facts) >= PYTHON_FILLS_MIN_PCT) {
        return false;
    }
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_sync = 1;
    return find_after(facts, finding, &what_if) || find_behind(facts, finding, &what_if);
}
