/* What the findings about communication share: rates of links, what was said, what to write. */

#include "analysis/diagnose/findings/communication/communication.h"

#include "collector/base/count_of.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lac_communication_advice lac_communication_advice(enum lac_collective_kind kind)
{
    static const struct lac_communication_advice all_to_all = {
        "exchange the next batch's inputs while this one computes",
        "pipeline = TrainPipelineSparseDist(model, optimizer, device)  # torchrec: the next "
        "batch's\n"
        "loss = pipeline.progress(batches)                              # exchange runs beside "
        "this one",
        "Memory for the inputs of one more batch; with experts, two micro-batches in turn."};
    static const struct lac_communication_advice gather = {
        "gather weights one layer earlier",
        "fully_shard(block)                     # FSDP2, for each block, then:\n"
        "block.set_modules_to_forward_prefetch([next_block])\n"
        "# FSDP1: forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE",
        "Memory for the weights of one more layer."};
    static const struct lac_communication_advice between = {
        "more micro-batches per step",
        "schedule = Schedule1F1B(stage, n_microbatches=2 * n)  # or ScheduleInterleaved1F1B",
        "Smaller micro-batches fill the GPU less; more of them keep more activations."};
    static const struct lac_communication_advice reduce = {
        "overlap gradient reduction with the backward pass",
        "model = DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True)",
        "Larger buckets start to reduce later."};
    switch (kind) {
    case LAC_COLLECTIVE_ALL_TO_ALL:
        return all_to_all;
    case LAC_COLLECTIVE_ALL_GATHER:
    case LAC_COLLECTIVE_REDUCE_SCATTER:
        return gather;
    case LAC_COLLECTIVE_SEND:
    case LAC_COLLECTIVE_RECEIVE:
    case LAC_COLLECTIVE_BETWEEN:
        return between;
    case LAC_COLLECTIVE_OTHER:
    case LAC_COLLECTIVE_ALL_REDUCE:
    case LAC_COLLECTIVE_BROADCAST:
    case LAC_COLLECTIVE_KIND_COUNT_:
        break;
    }
    return reduce;
}

struct lac_communication_advice lac_embedding_exchange_advice(void)
{
    return (struct lac_communication_advice){
        "exchange embeddings in 16 bits",
        "codecs = get_qcomm_codecs_registry(QCommsConfig(  # "
        "torchrec.distributed.fbgemm_qcomm_codec\n"
        "    forward_precision=CommType.FP16, backward_precision=CommType.BF16))\n"
        "sharder = EmbeddingBagCollectionSharder(qcomm_codecs_registry=codecs)  # half the bytes\n"
        "# or another sharding plan (EmbeddingShardingPlanner with constraints), or the bottom "
        "MLP\n"
        "# between the start of the exchange and its wait",
        "Embeddings and their gradients are rounded on the way: compare the loss curve."};
}

enum lac_collective_kind lac_most_exposed_kind(const struct lac_collectives *collectives)
{
    double ns[LAC_COLLECTIVE_KIND_COUNT_] = {0.0};
    for (uint64_t i = 0; i < collectives->count; i++) {
        ns[collectives->at[i].kind] += (double)collectives->at[i].exposed_ns;
    }
    int best = LAC_COLLECTIVE_OTHER;
    for (int kind = 0; kind < LAC_COLLECTIVE_KIND_COUNT_; kind++) {
        best = ns[kind] > ns[best] ? kind : best;
    }
    return (enum lac_collective_kind)best;
}

double lac_usual_link_gb_s(const struct lac_facts *facts, int32_t ranks)
{
    /* what all-reduces of large messages reach inside a machine of such devices, modestly: NVLink
     * or Infinity Fabric where the board has it, PCIe where it has not */
    static const struct {
        const char *word;
        double gb_s;
    } links[] = {
        {"PCIe", 10.0},  {"PCIE", 10.0},  {"B200", 500.0}, {"B300", 500.0}, {"H800", 150.0},
        {"H100", 300.0}, {"H200", 300.0}, {"A800", 150.0}, {"A100", 200.0}, {"V100", 60.0},
        {"MI25", 60.0},  {"MI30", 200.0}, {"MI32", 200.0}, {"MI35", 200.0},
    };
    const struct lac_device *device = lac_main_device(facts);
    const char *name = device != NULL ? lac_model_str(facts->model, device->name) : "";
    double gb_s = 8.0;
    for (size_t i = 0; i < LAC_COUNT_OF(links); i++) {
        if (strstr(name, links[i].word) != NULL) {
            gb_s = links[i].gb_s;
            break;
        }
    }
    return ranks > MACHINE_RANKS_MAX ? fmin(gb_s, NETWORK_GB_S) : gb_s;
}

double lac_best_link_gb_s(const struct lac_collectives *collectives, enum lac_collective_kind kind)
{
    double best = 0.0;
    for (uint64_t i = 0; i < collectives->count; i++) {
        const struct lac_message *at = &collectives->at[i];
        bool is_meant = kind == LAC_COLLECTIVE_KIND_COUNT_ || at->kind == kind;
        if (is_meant && at->bytes >= MESSAGE_LARGE_BYTES && at->dur_ns > 0) {
            best = fmax(best, lac_collective_wire_bytes(at) / (double)at->dur_ns);
        }
    }
    return best;
}

double lac_time_at_rate(const struct lac_message *collective, double gb_s)
{
    double bytes = lac_collective_wire_bytes(collective);
    double now_ns = (double)collective->dur_ns;
    return bytes < 0.0 || gb_s <= 0.0 ? now_ns : fmin(now_ns, MESSAGE_START_NS + bytes / gb_s);
}

bool lac_is_step(const struct lac_analysis *analysis)
{
    /* what repeats by its kernels alone may be a block of one pass; with gradients that was judged */
    bool is_unnamed = strcmp(analysis->step_method, "period") == 0;
    return analysis->workload != LAC_WORKLOAD_NO_STEPS &&
           !(analysis->workload == LAC_WORKLOAD_INFERENCE && is_unnamed);
}

/** Whether a range names a part of the job: no step, no operator, nothing that wraps a collective. */
static bool names_part(const struct lac_facts *facts, uint32_t name_id)
{
    const char *name = lac_model_str(facts->model, name_id);
    return lac_host_class_of(facts, name_id) != LAC_HOST_STEP && strncmp(name, "aten::", 6) != 0 &&
           strncmp(name, "nccl:", 5) != 0 && strcmp(name, "record_param_comms") != 0;
}

const char *lac_range_around(const struct lac_facts *facts, uint64_t slice, const char *wanted)
{
    enum { LOOK_BACK = 4096 };
    const struct lac_model *model = facts->model;
    const struct lac_slices *slices = &model->slices;
    const struct lac_track *track = &model->tracks[lac_model_track_of(model, slice)];
    int64_t end_ns = slices->start_ns[slice] + slices->dur_ns[slice];
    const char *innermost = "";
    for (uint64_t back = 1; back <= LOOK_BACK && slice >= track->first + back; back++) {
        uint64_t at = slice - back;
        if (slices->kind[at] != LAC_SLICE_RANGE ||
            slices->start_ns[at] + slices->dur_ns[at] < end_ns ||
            !names_part(facts, slices->name[at])) {
            continue;
        }
        const char *name = lac_model_str(model, slices->name[at]);
        if (strstr(name, wanted) != NULL) {
            return name;
        }
        innermost = innermost[0] == '\0' ? name : innermost;
    }
    return innermost;
}

const char *lac_bare_range(const struct lac_facts *facts, const char *name)
{
    size_t first = strspn(name, "# ");
    size_t length = strlen(name + first);
    while (length > 0 && strchr("# ", name[first + length - 1]) != NULL) {
        length--;
    }
    return lac_texts_add(&facts->analysis->texts, "%.*s", (int)(length < 60 ? length : 60),
                         name + first);
}

const char *lac_read_later_change(const struct lac_facts *facts, const char *range)
{
    static const char later[] =
        "host = torch.empty_like(value, device='cpu', pin_memory=True)  # once\n"
        "host.copy_(value, non_blocking=True); done.record()            # torch.cuda.Event()\n"
        "# one batch later: done.synchronize(); use(host)";
    return strstr(range, LAC_TORCHREC_EXCHANGE) == NULL
               ? later
               : lac_texts_add(&facts->analysis->texts,
                               "# TorchRec reads these in %s: try a newer version. In a pipeline "
                               "of your own:\n%s",
                               lac_bare_range(facts, range), later);
}

const char *lac_exchange_read_change(const struct lac_facts *facts, uint64_t call)
{
    const char *range = lac_range_around(facts, call, LAC_TORCHREC_EXCHANGE);
    return strstr(range, LAC_TORCHREC_EXCHANGE) != NULL ? lac_read_later_change(facts, range) : "";
}

double lac_communication_said_ns(const struct lac_facts *facts)
{
    double said_ns = 0.0;
    for (uint32_t i = 0; i < facts->analysis->finding_count; i++) {
        const struct lac_finding *finding = &facts->analysis->findings[i];
        if (finding->kind == LAC_FINDING_COLLECTIVE_EFFICIENCY ||
            finding->kind == LAC_FINDING_GATHER_EXPOSED ||
            finding->kind == LAC_FINDING_IMBALANCE_AND_BUBBLE) {
            said_ns += (double)finding->cost_ns_per_step;
        }
    }
    return said_ns;
}
