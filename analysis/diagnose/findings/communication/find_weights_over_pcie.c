/*
 * Weights that are kept on the host: each layer's are copied to the device when it is reached, every
 * step again. The same sizes come back layer by layer, in passes of one kind: a loop over
 * micro-batches copies, too, but computes forward and backward between its copies.
 */

#include "analysis/diagnose/findings/communication/communication.h"

#include <math.h>
#include <stdint.h>

enum { SIZES_MAX = 32 };

struct weights {
    struct {
        int64_t bytes;
        uint64_t count;
    } sizes[SIZES_MAX];
    uint32_t size_count;
    uint64_t count, pairs, pairs_of_a_pass;
    double bytes, ns, exposed_ns;
    uint32_t longest;
    int64_t longest_ns;
};

/** Bytes of a large copy to the device, else -1. */
static int64_t copied_bytes(const struct lac_facts *facts, uint32_t slice)
{
    const struct lac_model *model = facts->model;
    uint32_t detail = model->slices.detail[slice];
    if (model->slices.kind[slice] != LAC_SLICE_COPY || detail >= model->copy_count) {
        return -1;
    }
    const struct lac_copy *copy = &model->copies[detail];
    return copy->copy_kind == LAC_COPY_HTOD && copy->bytes >= WEIGHTS_LEAST_BYTES ? copy->bytes
                                                                                  : -1;
}

/** How often the size comes, with this one. */
static void count_size(struct weights *weights, int64_t bytes)
{
    for (uint32_t s = 0; s < weights->size_count; s++) {
        if (weights->sizes[s].bytes == bytes) {
            weights->sizes[s].count++;
            return;
        }
    }
    if (weights->size_count < SIZES_MAX) {
        weights->sizes[weights->size_count].bytes = bytes;
        weights->sizes[weights->size_count++].count = 1;
    }
}

static bool is_of_layer(const struct weights *weights, int64_t bytes, double steps)
{
    for (uint32_t s = 0; s < weights->size_count; s++) {
        if (weights->sizes[s].bytes == bytes) {
            return (double)weights->sizes[s].count >= WEIGHTS_LAYERS_MIN * steps;
        }
    }
    return false;
}

/** Copies of sizes that come layer by layer, and between how many of them one kind of pass runs. */
static void collect(const struct lac_facts *facts, struct weights *weights)
{
    const struct lac_step_operations *work = facts->step_operations;
    const struct lac_slices *slices = &facts->model->slices;
    bool has_before = false;
    uint64_t forward = 0;
    uint64_t backward = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        const struct lac_step_operation *op = &work->ops[i];
        int64_t bytes = copied_bytes(facts, op->slice);
        if (bytes < 0 || !is_of_layer(weights, bytes, work->steps)) {
            bool is_backward = (op->context & LAC_OPERATION_IN_BACKWARD) != 0;
            bool is_kernel = slices->kind[op->slice] == LAC_SLICE_KERNEL;
            forward += is_kernel && !is_backward;
            backward += is_kernel && is_backward;
            continue;
        }
        weights->pairs += has_before;
        weights->pairs_of_a_pass +=
            has_before && forward + backward > 0 && (forward == 0 || backward == 0);
        has_before = true;
        forward = backward = 0;
        weights->count++;
        weights->bytes += (double)bytes;
        weights->ns += (double)slices->dur_ns[op->slice];
        weights->exposed_ns += (double)op->exposed_ns;
        if (slices->dur_ns[op->slice] > weights->longest_ns) {
            weights->longest_ns = slices->dur_ns[op->slice];
            weights->longest = op->slice;
        }
    }
}

bool lac_find_weights_over_pcie(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_operations *work = facts->step_operations;
    struct weights weights = {.size_count = 0};
    for (uint64_t i = 0; i < work->count; i++) {
        int64_t bytes = copied_bytes(facts, work->ops[i].slice);
        if (bytes >= 0) {
            count_size(&weights, bytes);
        }
    }
    if (weights.size_count == 0 || work->steps <= 0.0) {
        return false;
    }
    collect(facts, &weights);
    bool are_weights = weights.count > 0 && (double)weights.pairs_of_a_pass >=
                                                WEIGHTS_PASSES_MIN * (double)weights.pairs;
    double cost_ns = weights.exposed_ns / work->steps;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.async_copies = 1;
    if (!are_weights ||
        !lac_finding_open(facts, finding, cost_ns, COST_OF_WORK_MIN_PCT, &what_if)) {
        return false;
    }
    double copies_ns = weights.ns / work->steps;
    finding->confidence = 0.7;
    finding->title = lac_texts_add(
        &analysis->texts, "Weights come over PCIe in each layer: %s per step, %s of every %s (%s)",
        lac_format_bytes(lac_round(weights.bytes / work->steps)).text,
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        &analysis->texts,
        "%s copies of the same sizes per step, at %s GB/s, in the way of computing. Copied while "
        "the "
        "layer before computes, a step takes the longer of %s of copies and %s of computing.",
        lac_format_rate((double)weights.count / work->steps).text,
        lac_format_rate(weights.bytes / fmax(1.0, weights.ns)).text,
        lac_format_ns(lac_round(copies_ns)).text,
        lac_format_ns(lac_round(facts->time->compute_ns)).text);
    finding->brief = "copy the next layer's weights while this one computes";
    finding->change =
        "# diffusers: apply_group_offloading(model, offload_type=\"leaf_level\", use_stream=True)\n"
        "# DeepSpeed ZeRO-Infinity: \"stage3_prefetch_bucket_size\", \"pin_memory\": true\n"
        "with torch.cuda.stream(copies):             # own loop: one layer ahead, from pinned "
        "memory\n"
        "    layers[i + 1].to(device, non_blocking=True)\n"
        "torch.cuda.current_stream().wait_stream(copies)";
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. Weights that stay on the GPU cost nothing: %s per step at best.",
        lac_finding_expect(facts, finding),
        lac_format_ns(lac_round(fmax(facts->time->compute_ns, facts->time->step_ns - cost_ns)))
            .text);
    finding->costs = "Memory for the weights of one more layer; pinned memory on the host.";
    finding->wrong_if = "the copies already take longer than computing: then fewer bytes help, as "
                        "8-bit weights or a larger batch per copy.";
    finding->check = lac_texts_add(&analysis->texts,
                                   "record ten steps: copies beside kernels; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_slice(facts, finding, weights.longest, "nothing computes beside it");
    return true;
}
