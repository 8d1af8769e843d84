/* Batches whose copies do not overlap with kernels: from pageable memory, or from pinned. */

#include "analysis/diagnose/findings/findings.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** The longest copy of the kind as evidence. */
static void add_evidence(const struct lac_facts *facts, struct lac_finding *finding,
                         enum lac_memory_kind src)
{
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->copy_count; i++) {
        const struct lac_copy_facts *copy = &analysis->copies[i];
        if (copy->kind != LAC_COPY_HTOD || copy->src != src) {
            continue;
        }
        const struct lac_slices *slices = &facts->model->slices;
        const char *text = lac_texts_add(&facts->analysis->texts,
                                         "%s, %s while no kernel ran; the longest took %s",
                                         lac_format_count((int64_t)copy->count, "copy").text,
                                         lac_format_ns(copy->exposed_ns).text,
                                         lac_format_ns(slices->dur_ns[copy->longest_slice]).text);
        lac_evidence_slice(facts, finding, copy->longest_slice, text);
        uint32_t call = slices->link[copy->longest_slice];
        if (call != LAC_NONE) {
            lac_evidence_slice(facts, finding, call, "the call that issued it");
        }
    }
}

static double gb_per_s(const struct lac_step_time *time, enum lac_op_class op_class)
{
    return time->class_total_ns[op_class] > 0.0
               ? time->class_bytes[op_class] / time->class_total_ns[op_class]
               : 0.0;
}

/** Whether the copies of that class are worth a finding; estimates it. */
static bool open_finding(const struct lac_facts *facts, struct lac_finding *finding,
                         enum lac_op_class op_class, const struct lac_what_if_changes *what_if)
{
    const struct lac_step_time *time = facts->time;
    const double total_ns = time->class_total_ns[op_class];
    /* one in line delays what follows it also where a collective covers it */
    const bool may_hide =
        lac_pct_of_step(facts, fmin(total_ns, time->exposed_comm_ns)) >= COST_MIN_PCT;
    return lac_finding_open_hidden(facts, finding, time->class_ns[op_class],
                                   may_hide ? total_ns : 0.0, COST_MIN_PCT, what_if);
}

/** What the step loses beside the copies: their call returns when the device is through with what was
 *  launched before, and until then the host launches nothing. At most what goes without that. */
static double stopped_ns(const struct lac_facts *facts, const struct lac_finding *finding)
{
    double gone_ns = facts->time->step_ns - (double)finding->step_low_ns;
    double stopped = gone_ns - facts->time->class_ns[LAC_OP_COPY_PAGEABLE];
    return stopped >= STOPPED_SAID_MIN * gone_ns ? stopped : 0.0;
}

/** "Copies from pageable memory block the kernels for 2.9 ms of every 121 ms step", and what else. */
static const char *pageable_title(const struct lac_facts *facts, const struct lac_finding *finding,
                                  double stopped)
{
    struct lac_text **texts = &facts->analysis->texts;
    struct lac_text32 step = lac_format_ns(facts->analysis->step_mean_ns);
    struct lac_text32 pct = lac_format_pct(finding->cost_pct);
    int64_t copies_ns = finding->cost_ns_per_step - lac_round(stopped);
    if (stopped <= 0.0) {
        return lac_texts_add(
            texts, "Copies from pageable memory block the kernels for %s of every %s step (%s)",
            lac_format_ns(copies_ns).text, step.text, pct.text);
    }
    return lac_texts_add(texts,
                         "Copies from pageable memory cost %s of every %s step (%s): they block "
                         "the kernels for %s and stop the host, for which the GPU waits another %s",
                         lac_format_ns(finding->cost_ns_per_step).text, step.text, pct.text,
                         lac_format_ns(copies_ns).text, lac_format_ns(lac_round(stopped)).text);
}

bool lac_find_pageable_copy(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.pinned = 1;
    if (!open_finding(facts, finding, LAC_OP_COPY_PAGEABLE, &what_if)) {
        return false;
    }
    double bytes = time->class_bytes[LAC_OP_COPY_PAGEABLE];
    double stopped = stopped_ns(facts, finding);
    lac_finding_cost(facts, finding, time->class_ns[LAC_OP_COPY_PAGEABLE] + stopped);
    finding->title = pageable_title(facts, finding, stopped);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s per step at %.1f GB/s while no kernel runs. From pinned memory: about %.0f GB/s "
        "(%s).%s",
        lac_format_bytes(lac_round(bytes)).text, gb_per_s(time, LAC_OP_COPY_PAGEABLE),
        time->pinned_gb_s, time->is_pinned_seen ? "seen in this trace" : "usual for this GPU",
        stopped > 0.0 ? " The call returns when the GPU is through with what was launched before, "
                        "and until then the host launches nothing."
                      : "");
    finding->brief = "pin_memory=True";
    finding->change = "DataLoader(..., pin_memory=True)\n"
                      "images = images.to(device, non_blocking=True)";
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_TENSORFLOW) {
        finding->brief = "prefetch to the device";
        finding->change = "dataset.apply(tf.data.experimental.prefetch_to_device('/gpu:0'))";
    }
    const char *own = lac_framework_advice(facts, LAC_SWITCH_PIN_MEMORY, "True");
    finding->change = own != NULL ? own : finding->change;
    finding->where = facts->settings.loader_at;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. On a stream of their own, the copies can also overlap with kernels.",
        lac_finding_expect(facts, finding));
    finding->costs = "Locked memory for the batches in flight (ulimit -l), and a pinning thread.";
    finding->wrong_if =
        lac_texts_add(&analysis->texts, "the copies still run below %.1f GB/s when pinned.",
                      PINNED_FASTER_MIN * gb_per_s(time, LAC_OP_COPY_PAGEABLE));
    finding->check =
        lac_texts_add(&analysis->texts, "record ten steps with pinned memory; expect %s per step",
                      lac_format_ns(finding->step_mid_ns).text);
    finding->confidence = time->is_pinned_seen ? 0.9 : 0.75;
    add_evidence(facts, finding, LAC_MEMORY_PAGEABLE);
    return true;
}

bool lac_find_blocking_copy(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.async_copies = 1;
    enum lac_op_class op_class = LAC_OP_COPY_PINNED;
    if (!open_finding(facts, finding, op_class, &what_if)) {
        /* from pageable memory at the rate of the link pinning by itself gains nothing */
        op_class = LAC_OP_COPY_PAGEABLE;
        what_if.pinned = 1;
        if (lac_framework_of(facts->model) != LAC_FRAMEWORK_PYTORCH ||
            lac_finding_of(analysis, LAC_FINDING_PAGEABLE_COPY) != NULL ||
            !open_finding(facts, finding, op_class, &what_if)) {
            return false;
        }
    }
    const bool is_pageable = op_class == LAC_OP_COPY_PAGEABLE;
    finding->title = lac_texts_add(
        &analysis->texts, "Kernels wait %s of every %s step for the batch to be copied (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "%s per step from %s memory at %.1f GB/s, on the compute stream or "
                      "synchronized with it. Copies and compute could overlap%s.",
                      lac_format_bytes(lac_round(time->class_bytes[op_class])).text,
                      is_pageable ? "pageable" : "pinned", gb_per_s(time, op_class),
                      is_pageable ? ", from pinned memory" : "");
    finding->brief = "copy one batch ahead";
    static const char ahead[] =
        "copies = torch.cuda.Stream()\n"
        "def ahead(loader):                      # for batch in ahead(loader): ...\n"
        "    before = None\n"
        "    for batch in loader:\n"
        "        with torch.cuda.stream(copies):\n"
        "            batch = [t.to(device, non_blocking=True) for t in batch]\n"
        "        if before is not None:\n"
        "            yield before\n"
        "        torch.cuda.current_stream().wait_stream(copies)\n"
        "        for t in batch:\n"
        "            t.record_stream(torch.cuda.current_stream())\n"
        "        before = batch\n"
        "    if before is not None:\n"
        "        yield before";
    finding->change =
        is_pageable ? lac_texts_add(&analysis->texts, "DataLoader(..., pin_memory=True)\n%s", ahead)
                    : ahead;
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. non_blocking=True on the compute stream alone frees only the host.",
        lac_finding_expect(facts, finding));
    finding->costs = lac_texts_add(&analysis->texts, "GPU memory for one more batch (%s).",
                                   lac_format_bytes(lac_round(time->class_bytes[op_class])).text);
    finding->wrong_if = "the copies still run while no kernel does: check the copy's stream.";
    finding->check = lac_texts_add(
        &analysis->texts, "record ten steps; expect %s per step, with copies overlapping kernels",
        lac_format_ns(finding->step_mid_ns).text);
    finding->confidence = 0.8;
    add_evidence(facts, finding, is_pageable ? LAC_MEMORY_PAGEABLE : LAC_MEMORY_PINNED);
    return true;
}
