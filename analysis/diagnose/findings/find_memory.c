/*
 * Memory of the GPU: how much of it tensors need, and whether it ran out. A full cache is no
 * finding: the allocator keeps what it got.
 */

#include "analysis/diagnose/facts/gpu_memory.h"
#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>
#include <string.h>

static void say_allocated(const struct lac_facts *facts, struct lac_finding *finding,
                          const struct lac_gpu_memory_use *memory)
{
    struct lac_analysis *analysis = facts->analysis;
    lac_finding_open_fact(finding);
    int64_t free_bytes = memory->device > memory->peak ? memory->device - memory->peak : 0;
    bool is_scarce = free_bytes < memory->device / 10;
    finding->title = lac_texts_add(
        &analysis->texts, "Tensors need at most %s of the GPU's %s: %s left",
        lac_format_bytes(memory->peak).text, lac_format_bytes(memory->device).text,
        is_scarce ? "little is"
                  : lac_texts_add(&analysis->texts, "%s are", lac_format_bytes(free_bytes).text));
    finding->why = lac_texts_add(
        &analysis->texts,
        lac_is_inference(facts)
            ? "%s persist across steps (weights, kept results); a step adds %s at its peak "
              "(activations, scratch). The allocator caches the rest."
            : "%s persist across steps (weights, optimizer state, kept gradients); a step adds %s "
              "at its peak (activations, gradients, scratch). The allocator caches the rest.",
        lac_format_bytes(memory->floor).text, lac_format_bytes(memory->peak - memory->floor).text);
    if (is_scarce) {
        finding->change =
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py\n"
            "# against fragmentation; to lower the peak: autocast, or checkpoint some blocks";
        finding->costs = "None for the first; checkpointing computes the blocks' forward pass "
                         "twice.";
    }
    finding->wrong_if = "the recording missed the step with the highest peak.";
    if (memory->peak_slice != LAC_NONE) {
        lac_evidence_slice(facts, finding, memory->peak_slice, "the peak");
    }
}

/** Only what the driver counts is known: what is free there is free at least. */
static bool say_used(const struct lac_facts *facts, struct lac_finding *finding,
                     const struct lac_gpu_memory_use *memory)
{
    struct lac_analysis *analysis = facts->analysis;
    int64_t free_bytes = memory->device - memory->used;
    if (free_bytes < memory->device / 2) {
        return false; /* a full cache looks the same as a need */
    }
    lac_finding_open_fact(finding);
    finding->title =
        lac_texts_add(&analysis->texts, "At least %s of the GPU's %s are free",
                      lac_format_bytes(free_bytes).text, lac_format_bytes(memory->device).text);
    finding->why = lac_texts_add(&analysis->texts,
                                 "The driver reports at most %s in use, including the allocator's "
                                 "cache and other processes. Tensor memory was not recorded.",
                                 lac_format_bytes(memory->used).text);
    finding->wrong_if = "the recording missed the step with the highest peak.";
    return true;
}

bool lac_find_memory_headroom(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_gpu_memory_use memory;
    lac_gpu_memory_measure(facts, &memory);
    if (memory.device <= 0) {
        return false;
    }
    if (memory.peak > 0) {
        say_allocated(facts, finding, &memory);
        return true;
    }
    return memory.used > 0 && memory.used <= memory.device && say_used(facts, finding, &memory);
}

/** The last operation of any device. */
static int64_t last_operation_ns(const struct lac_analysis *analysis)
{
    int64_t last_ns = 0;
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        int64_t end_ns = analysis->devices[d].first_ns + analysis->devices[d].span_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    return last_ns;
}

bool lac_find_out_of_memory(const struct lac_facts *facts, struct lac_finding *finding)
{
    enum { OUT_OF_MEMORY = 2 };
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_slices *slices = &facts->model->slices;
    uint32_t failed = LAC_NONE;
    uint64_t count = 0;
    for (uint64_t i = 0; i < facts->alloc_marks.count; i++) {
        const struct lac_mark *mark = &facts->alloc_marks.at[i];
        const char *name = lac_model_str(facts->model, slices->name[mark->slice]);
        bool is_allocation =
            (strcasestr(name, "alloc") != NULL || strstr(name, "Create") != NULL) &&
            strstr(name, "Host") == NULL;
        if (is_allocation && slices->detail[mark->slice] == OUT_OF_MEMORY) {
            failed = mark->slice;
            count++;
        } else if (is_allocation && slices->detail[mark->slice] == 0) {
            failed = LAC_NONE; /* it tried again and got it: short of memory, not out of it */
        }
    }
    if (failed == LAC_NONE ||
        last_operation_ns(analysis) > slices->start_ns[failed] + slices->dur_ns[failed]) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->severity = LAC_SEVERITY_CRITICAL;
    finding->confidence = 0.9;
    finding->title = "Out of GPU memory: nothing runs after the last, failed allocation";
    finding->why = lac_texts_add(
        &analysis->texts, "%s failed with out-of-memory; no retry succeeded after the last one.",
        lac_format_count((int64_t)count, "allocation").text);
    finding->brief = "lower peak memory";
    finding->change =
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py   # less fragmentation\n"
        "with torch.no_grad():                                              # in the evaluation\n"
        "loss = criterion(model(part), target) / parts; loss.backward()     # micro-batches, one "
        "optimizer step for all";
    finding->costs = "Micro-batches take longer than one batch; training is the same except for "
                     "batch normalization.";
    finding->wrong_if = "the script caught the error and continued without the GPU.";
    finding->check = "the same command with half the batch size runs past this point";
    lac_evidence_slice(facts, finding, failed, "the allocation that failed");
    return true;
}
