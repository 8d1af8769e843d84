/*
 * The same operator makes the host wait for the device several times a step, as a layer that asks
 * how many tokens went where does, or a block that copies its mask to the device. Each wait empties
 * the queue; what the device then lacks looks like launches or like the host's own work. What it
 * costs shows when the steps are played without the waits of that operator.
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <stdint.h>
#include <string.h>

enum { GROUPS_MAX = 16, CALLS_MAX = 20000, LOOK_BACK = 256, LABEL_BYTES = 80 };

/** Waits in one operator; outside of any, of one kind of call. */
struct group {
    const char *call;        /**< the one that waits longest */
    char label[LABEL_BYTES]; /**< the operator, "" outside of any */
    uint64_t count; /**< of those in which the device computes: others only copy what is there */
    uint64_t longest;
    int64_t ns, longest_ns;
    int64_t read_ns; /**< of ns: for copies to the host */
    bool is_meant;   /**< often enough to be that of layers */
};

struct groups {
    struct group at[GROUPS_MAX];
    uint32_t count;
};

/** The outermost operator of the framework around a call, without what an export adds to its name
 *  ("aten::to, op_id = 7"): "aten::to", not the aten::copy_ inside it. */
static void label_of(const struct lac_model *model, uint64_t call, char *out, size_t capacity_bytes)
{
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, call)];
    int64_t end_ns = slices->start_ns[call] + slices->dur_ns[call];
    out[0] = '\0';
    for (uint64_t back = 1; back <= LOOK_BACK && call >= track->first + back; back++) {
        uint64_t at = call - back;
        bool is_named = slices->kind[at] == LAC_SLICE_OP || slices->kind[at] == LAC_SLICE_RANGE;
        if (!is_named || slices->start_ns[at] + slices->dur_ns[at] < end_ns) {
            continue;
        }
        const char *name = lac_model_str(model, slices->name[at]);
        bool is_operator = strncmp(name, "aten::", 6) == 0;
        if (out[0] != '\0' && !is_operator) {
            return;
        }
        size_t length = strcspn(name, ",");
        length = length < capacity_bytes ? length : capacity_bytes - 1;
        memcpy(out, name, length);
        out[length] = '\0';
        if (!is_operator) {
            return;
        }
    }
}

static struct group *group_of(struct groups *groups, const char *call, const char *label)
{
    for (uint32_t g = 0; g < groups->count; g++) {
        bool is_same_call = label[0] != '\0' || strcmp(groups->at[g].call, call) == 0;
        if (is_same_call && strcmp(groups->at[g].label, label) == 0) {
            return &groups->at[g];
        }
    }
    if (groups->count == GROUPS_MAX) {
        return NULL;
    }
    struct group *group = &groups->at[groups->count++];
    *group = (struct group){.call = call};
    memcpy(group->label, label, LABEL_BYTES);
    return group;
}

static uint64_t wait_count(const struct lac_host *host)
{
    return host->blocking_count + host->copy_blocking_count;
}

/** The i-th call that waits, in no order: synchronizations, and copies to the device that last until
 *  they are done, because they begin when the device has done what was launched before. NULL where it
 *  waits for room in the queue. */
static const struct lac_blocking_call *wait_at(const struct lac_facts *facts, uint64_t i)
{
    const struct lac_host *host = &facts->hosts[facts->main_host];
    if (i < host->blocking_count) {
        return &host->blocking[i];
    }
    const struct lac_blocking_call *call = &host->copy_blocking[i - host->blocking_count];
    uint32_t name = facts->model->slices.name[call->slice];
    return lac_api_class_of(facts, name) == LAC_API_LAUNCH ? NULL : call;
}

/** Whether the call copies to the host, or waits for the copy that the call just before it made: from the
 *  device to pageable memory is both in PyTorch. */
static bool reads_value(const struct lac_model *model, uint64_t call)
{
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, call)];
    uint32_t work = slices->link[call];
    if (work == LAC_NONE && call > track->first && slices->kind[call - 1] == LAC_SLICE_API) {
        work = slices->link[call - 1];
    }
    if (work == LAC_NONE || slices->kind[work] != LAC_SLICE_COPY) {
        return false;
    }
    uint32_t row = slices->detail[work];
    return row < model->copy_count && model->copies[row].copy_kind == LAC_COPY_DTOH;
}

/** The calls of kept steps that wait, by where they are. */
static void collect(const struct lac_facts *facts, struct groups *groups)
{
    const struct lac_model *model = facts->model;
    const struct lac_host *host = &facts->hosts[facts->main_host];
    const struct lac_spans *kernels = &facts->device_sets[facts->analysis->main_device].kernels;
    uint64_t seen = 0;
    for (uint64_t i = 0; i < wait_count(host) && seen < CALLS_MAX; i++) {
        const struct lac_blocking_call *call = wait_at(facts, i);
        int64_t ns = call != NULL
                         ? lac_spans_length_inside(&facts->host_kept, call->start_ns, call->end_ns)
                         : 0;
        if (ns == 0) {
            continue;
        }
        char label[LABEL_BYTES] = "";
        label_of(model, call->slice, label, sizeof(label));
        struct group *group =
            group_of(groups, lac_model_str(model, model->slices.name[call->slice]), label);
        seen++;
        if (group == NULL) {
            continue;
        }
        int64_t kernels_ns = lac_spans_length_inside(kernels, call->start_ns, call->end_ns);
        group->count += kernels_ns >= LAYER_COMPUTES_MIN_NS;
        group->ns = lac_sum_ns(group->ns, ns);
        group->read_ns = lac_sum_ns(group->read_ns, reads_value(model, call->slice) ? ns : 0);
        if (ns > group->longest_ns) {
            group->longest_ns = ns;
            group->call = lac_model_str(model, model->slices.name[call->slice]);
            group->longest = call->slice;
        }
    }
}

/** Mark the waits of the groups that are meant wherever they are in the replayed window. */
static struct lac_edits *edit(const struct lac_facts *facts, struct groups *groups,
                              enum lac_finding_kind kind)
{
    const struct lac_model *model = facts->model;
    const struct lac_host *host = &facts->hosts[facts->main_host];
    struct lac_edits *edits = lac_edits_begin(facts, kind);
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    lac_edits_window(facts, &start_ns, &end_ns);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < wait_count(host) && seen < CALLS_MAX; i++) {
        const struct lac_blocking_call *call = wait_at(facts, i);
        if (call == NULL || call->end_ns <= start_ns || call->start_ns >= end_ns) {
            continue;
        }
        seen++;
        char label[LABEL_BYTES] = "";
        label_of(model, call->slice, label, sizeof(label));
        const struct group *group =
            group_of(groups, lac_model_str(model, model->slices.name[call->slice]), label);
        if (group != NULL && group->is_meant) {
            lac_edits_no_wait(edits, call->slice);
        }
    }
    return edits;
}

/* -- in words ---------------------------------------------------------------------------------- */

struct advice {
    const char *brief, *change, *costs;
};

static const char errors_later[] = "Fixed sizes compute on padding; errors show up later.";

static bool has_any(const char *text, const char *const words[])
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/** Whether most of the time is for copies to the host. */
static bool is_read(const struct group *group)
{
    return 2.0 * (double)group->read_ns > (double)group->ns;
}

/** " (a copy to the host, in TorchRec's wait_sparse_data_dist)" of waits for values, else "". */
static const char *read_text(const struct lac_facts *facts, const struct group *group,
                             const char *range)
{
    if (!is_read(group)) {
        return "";
    }
    bool is_torchrec = strstr(range, LAC_TORCHREC_EXCHANGE) != NULL;
    return lac_texts_add(&facts->analysis->texts, " (a copy to the host%s%s%s)",
                         range[0] != '\0' ? ", in " : "", is_torchrec ? "TorchRec's " : "",
                         lac_bare_range(facts, range));
}

/** Values that are read: one batch later they have arrived. */
static struct advice advice_for_reads(const struct lac_facts *facts, const char *range)
{
    return (struct advice){"read values one batch later", lac_read_later_change(facts, range),
                           "The values are known one batch later; locked memory for them."};
}

/** What to write instead, by the operator that waits and what it waits for. */
static struct advice advice_for(const struct lac_facts *facts, const struct group *group,
                                const char *range)
{
    static const char *const reads[] = {
        "item", "_local_scalar_dense", "is_nonzero", "equal", "tolist", NULL};
    static const char *const sized[] = {"nonzero",           "masked",   "index", "unique", "where",
                                        "repeat_interleave", "bincount", NULL};
    static const char *const copies[] = {"aten::to",     "_to_copy",   "copy_",
                                         "aten::tensor", "lift_fresh", NULL};
    bool is_torchrec = strstr(range, LAC_TORCHREC_EXCHANGE) != NULL;
    if (is_read(group) && (is_torchrec || has_any(group->label, copies))) {
        return advice_for_reads(facts, range);
    }
    if (has_any(group->label, reads)) {
        return (struct advice){
            "keep the value on the GPU",
            "counts = torch.bincount(expert, minlength=n)   # stays on the GPU\n"
            "offsets = counts.cumsum(0)                     # for a grouped GEMM\n"
            "# no .item(), .tolist(), int(t) or `if t:` in forward()",
            errors_later};
    }
    if (has_any(group->label, sized)) {
        return (struct advice){"keep sizes fixed",
                               "x = torch.where(mask, x, zero)     # instead of x[mask]\n"
                               "y = x.repeat_interleave(n, output_size=total)",
                               errors_later};
    }
    if (has_any(group->label, copies)) {
        return (struct advice){
            "create the tensor on the GPU",
            "self.register_buffer('mask', mask)          # once, in __init__\n"
            "t = torch.arange(n, device=x.device)        # made where it is used\n"
            "t = host.pin_memory().to(device, non_blocking=True)",
            "GPU memory for what is kept there; errors show up later."};
    }
    return (struct advice){
        "do not wait after each kernel",
        "// no cudaDeviceSynchronize() after a launch: kernels of a stream run in order\n"
        "// wait once, before the host reads a result; check errors with cudaGetLastError()",
        "An error of a kernel shows up later, at the next wait."};
}

/** Name of a call without the version that an export adds: "cudaStreamSynchronize_v3020". */
static const char *call_name(const struct lac_facts *facts, const char *call)
{
    const char *version = strstr(call, "_v");
    bool has_version = version != NULL && strspn(version + 2, "0123456789") == strlen(version + 2);
    size_t length = has_version ? (size_t)(version - call) : strlen(call);
    return lac_texts_add(&facts->analysis->texts, "%.*s", (int)(length < 60 ? length : 60), call);
}

static void say(const struct lac_facts *facts, struct lac_finding *finding,
                const struct groups *groups, const struct group *worst)
{
    struct lac_analysis *analysis = facts->analysis;
    double steps = (double)analysis->step_kept_count;
    double count = 0.0;
    double ns = 0.0;
    const struct group *other = NULL;
    for (uint32_t g = 0; g < groups->count; g++) {
        const struct group *at = &groups->at[g];
        count += at->is_meant ? (double)at->count / steps : 0.0;
        ns += at->is_meant ? (double)at->ns / steps : 0.0;
        if (at->is_meant && at != worst && (other == NULL || at->ns > other->ns)) {
            other = at;
        }
    }
    const char *call = call_name(facts, worst->call);
    const char *where =
        worst->label[0] != '\0' ? lac_texts_add(&analysis->texts, "%s", worst->label) : call;
    const char *unit = lac_is_step(analysis) ? "step" : "repetition";
    const char *range = lac_range_around(facts, worst->longest, LAC_TORCHREC_EXCHANGE);
    struct advice advice = advice_for(facts, worst, range);
    bool is_once = count < WAITS_IN_GRAPH_MIN;
    finding->title = lac_texts_add(
        &analysis->texts, "%s%s%s %s the host %s per %s: %s of every %s", where,
        other != NULL ? " and " : "",
        other == NULL             ? ""
        : other->label[0] != '\0' ? other->label
                                  : call_name(facts, other->call),
        other != NULL ? "stop" : "stops",
        is_once ? "once" : lac_texts_add(&analysis->texts, "%s times", lac_format_rate(count).text),
        unit, lac_format_ns(finding->cost_ns_per_step).text,
        lac_format_ns(analysis->step_mean_ns).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "Each time, the host waits until the GPU has finished everything launched: %s in all per "
        "%s, most of it in %s%s. The queue is then empty, and the GPU waits for the host's next "
        "launch.",
        lac_format_ns(lac_round(ns)).text, unit, call, read_text(facts, worst, range));
    finding->brief = advice.brief;
    finding->change = advice.change;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. Less where the host needs the value at once (a size, a branch).",
        lac_finding_expect(facts, finding));
    finding->costs = advice.costs;
    finding->wrong_if = "another call then waits instead, and nothing gets shorter.";
    finding->check = lac_texts_add(&analysis->texts, "record again: no wait in %s, and %s per %s",
                                   where, lac_format_ns(finding->step_mid_ns).text, unit);
    lac_evidence_slice(
        facts, finding, worst->longest,
        lac_texts_add(&analysis->texts, "the longest: %s", lac_format_ns(worst->longest_ns).text));
}

/** Which groups are those of layers; the one that waits longest, or NULL. */
static const struct group *choose(const struct lac_analysis *analysis, struct groups *groups)
{
    const struct group *worst = NULL;
    /* what repeats may be the layer itself */
    double steps = (double)analysis->step_kept_count;
    double least = lac_is_step(analysis) ? LAYER_WAITS_MIN : REPETITION_WAITS_MIN;
    double all = 0.0;
    for (uint32_t g = 0; g < groups->count; g++) {
        struct group *at = &groups->at[g];
        at->is_meant = (double)at->count >= least * steps;
        all += at->is_meant ? (double)at->count : 0.0;
        if (at->is_meant && (worst == NULL || at->ns > worst->ns)) {
            worst = at;
        }
    }
    return lac_is_step(analysis) && all < LAYERS_MIN * steps ? NULL : worst;
}

bool lac_find_sync_per_layer(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    if (facts->time == NULL || facts->main_host == LAC_NONE || analysis->main_device == LAC_NONE ||
        lac_graph_trust(facts->time) == LAC_TRUST_NONE) {
        return false;
    }
    struct groups groups = {.count = 0};
    collect(facts, &groups);
    const struct group *worst = choose(analysis, &groups);
    if (worst == NULL) {
        return false;
    }
    struct lac_edits *edits = edit(facts, &groups, finding->kind);
    static const double share[LAC_CASE_COUNT_] = {1.0, LAYER_SYNC_SHARE_MID,
                                                  LAYER_SYNC_SHARE_WORST};
    double steps[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        lac_change_edit(&change, edits, share[which]);
        steps[which] = lac_what_if_replay(facts, &change);
    }
    lac_finding_estimate_steps(facts, finding, steps);
    lac_finding_cost(facts, finding, facts->time->step_ns - steps[LAC_CASE_BEST]);
    if (finding->gain_mid_pct < LAYER_SYNC_GAIN_PCT) {
        return false;
    }
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.7;
    say(facts, finding, &groups, worst);
    return true;
}
