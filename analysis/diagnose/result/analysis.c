/* The analysis as an object: names of enums that are no words (vocabulary.c has those), its
 * invariants, its end. */

#include "analysis/diagnose/result/analysis.h"

#include "analysis/diagnose/result/texts.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lac_workload_kind_name(enum lac_workload_kind subject)
{
    static const char *const names[] = {"training",  "no_gpu",   "cold_start",   "inference",
                                        "few_steps", "no_steps", "host_training"};
    return subject <= LAC_WORKLOAD_HOST_TRAINING ? names[subject] : "no_steps";
}

const char *lac_time_part_name(uint32_t part)
{
    return part < LAC_PART_IDLE ? lac_partition_name((enum lac_partition)part)
                                : lac_cause_name((enum lac_cause)(part - LAC_PART_IDLE));
}

const char *lac_root_kind_name(enum lac_root_kind kind)
{
    static const char *const names[LAC_ROOT_COUNT_] = {"none", "sync", "late_batch", "launch"};
    return kind < LAC_ROOT_COUNT_ ? names[kind] : "none";
}

const char *lac_step_left_out_name(enum lac_step_left_out left_out)
{
    static const char *const names[LAC_STEP_LEFT_OUT_COUNT_] = {
        "kept", "warm_up", "truncated", "other_kind", "partial_cycle", "untimed"};
    return left_out < LAC_STEP_LEFT_OUT_COUNT_ ? names[left_out] : "kept";
}

int64_t lac_gap_piece_dur_ns(const struct lac_analysis *analysis, uint64_t piece)
{
    const struct lac_gap_piece *at = &analysis->pieces[piece];
    const struct lac_gap *gap = &analysis->gaps[at->gap];
    bool is_last = piece + 1 == gap->first_piece + gap->piece_count;
    int64_t end_ns = is_last ? gap->start_ns + gap->dur_ns : analysis->pieces[piece + 1].start_ns;
    return end_ns - at->start_ns;
}

bool lac_finding_is_to_do(const struct lac_finding *finding)
{
    assert(finding != NULL);
    const double WORTHWHILE_PCT = 1.0;
    return finding->brief[0] != '\0' && finding->gain_mid_pct >= WORTHWHILE_PCT;
}

const struct lac_finding *lac_analysis_first_to_do(const struct lac_analysis *analysis)
{
    assert(analysis != NULL);
    const struct lac_finding *findings = analysis->findings;
    if (analysis->finding_count == 0) {
        return NULL;
    }
    bool gains_after = analysis->finding_count > 1 && lac_finding_is_to_do(&findings[1]);
    return findings[0].kind == LAC_FINDING_GPU_BOUND && gains_after ? &findings[1] : &findings[0];
}

bool lac_plan_holds(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    static const struct {
        enum lac_finding_kind kind;
        const char *brief;
    } without_finding[] = {
        {LAC_FINDING_LAYOUT_CONVERSION, "channels-last"},
        {LAC_FINDING_PAGEABLE_COPY, "pin_memory=True"},
        {LAC_FINDING_BLOCKING_COPY, "copy one batch ahead"},
        {LAC_FINDING_TENSOR_CORES_UNUSED, "tensor cores"},
        {LAC_FINDING_SYNC_STALL, "synchronize less often"},
        {LAC_FINDING_ALLOCATOR_THRASH, "no allocation in the step"},
    };
    assert(analysis != NULL && finding != NULL);
    const char *brief = finding->brief;
    for (size_t i = 0; i < LAC_COUNT_OF(without_finding) && brief[0] == '\0'; i++) {
        brief = without_finding[i].kind == finding->kind ? without_finding[i].brief : brief;
    }
    for (uint32_t i = 0; i < analysis->plan_count && brief[0] != '\0'; i++) {
        if (strstr(analysis->plan[i].brief, brief) != NULL) {
            return true;
        }
    }
    return false;
}

uint32_t lac_analysis_other_phases(const struct lac_analysis *analysis, const char **ret_texts)
{
    assert(analysis != NULL && ret_texts != NULL);
    uint32_t count = 0;
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        const struct lac_step_kind_facts *kind_facts = &analysis->step_kinds[k];
        if (kind_facts->text[0] != '\0' && kind_facts->own_ns >= analysis->duration_ns / 100) {
            ret_texts[count++] = kind_facts->text;
        }
    }
    return count;
}

size_t lac_gap_root_text(const struct lac_analysis *analysis, const struct lac_model *model,
                         const struct lac_gap *gap, char *out, size_t capacity_bytes)
{
    assert(analysis != NULL && model != NULL && gap != NULL);
    assert(out != NULL);
    assert(capacity_bytes > 0);
    (void)analysis;
    if (gap->root == LAC_NONE || gap->root_kind == LAC_ROOT_NONE) {
        return (size_t)snprintf(out, capacity_bytes, "%s", "");
    }
    const char *name = lac_model_str(model, model->slices.name[gap->root]);
    struct lac_text32 length = lac_format_ns(model->slices.dur_ns[gap->root]);
    if (gap->root_kind == LAC_ROOT_SYNC) {
        return (size_t)snprintf(out, capacity_bytes,
                                "%.60s drained the queue: it waited %s for the GPU", name,
                                length.text);
    }
    if (gap->root_kind == LAC_ROOT_LAUNCH) {
        return (size_t)snprintf(out, capacity_bytes,
                                "the next operation was launched by %.60s (%s)", name, length.text);
    }
    uint32_t row = model->slices.detail[gap->root];
    bool has_info = row != LAC_NONE && row < model->loader_info_count &&
                    model->slices.kind[gap->root] == LAC_SLICE_RANGE;
    if (has_info && model->loader_infos[row].worker >= 0) {
        return (size_t)snprintf(out, capacity_bytes, "worker %d spent %s on batch %lld",
                                (int)model->loader_infos[row].worker, length.text,
                                (long long)model->loader_infos[row].batch);
    }
    if (has_info && model->loader_infos[row].batch >= 0) {
        return (size_t)snprintf(out, capacity_bytes, "waited %s for batch %lld", length.text,
                                (long long)model->loader_infos[row].batch);
    }
    return (size_t)snprintf(out, capacity_bytes, "waited %s for the next batch", length.text);
}

static bool device_is_valid(const struct lac_analysis *analysis, uint32_t index)
{
    const struct lac_device_facts *device = &analysis->devices[index];
    int64_t parts_ns = 0;
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        parts_ns += device->partition_ns[part];
    }
    int64_t causes_ns = 0;
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        causes_ns += device->idle_by_cause_ns[cause];
    }
    int64_t gaps_ns = 0;
    int64_t before_ns = device->first_ns;
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        const struct lac_gap *gap = &analysis->gaps[g];
        int64_t pieces_ns = 0;
        int64_t at_ns = gap->start_ns;
        for (uint64_t p = gap->first_piece; p < gap->first_piece + gap->piece_count; p++) {
            if (analysis->pieces[p].start_ns != at_ns || analysis->pieces[p].gap != g) {
                return false;
            }
            int64_t dur_ns = lac_gap_piece_dur_ns(analysis, p);
            pieces_ns += dur_ns;
            at_ns += dur_ns;
        }
        if (pieces_ns != gap->dur_ns || gap->start_ns < before_ns || gap->device != index) {
            return false;
        }
        before_ns = gap->start_ns + gap->dur_ns;
        gaps_ns += gap->dur_ns;
    }
    return device->busy_ns + device->idle_ns == device->span_ns && parts_ns == device->span_ns &&
           causes_ns == device->idle_ns && gaps_ns == device->idle_ns;
}

/** Kinds sum to the steps; phases to the recording, and each step is counted once. */
static bool phases_are_valid(const struct lac_analysis *analysis)
{
    uint32_t of_kinds = 0;
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        of_kinds += analysis->step_kinds[k].count;
    }
    int64_t at_ns = 0;
    uint32_t of_phases = 0;
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        const struct lac_phase *phase = &analysis->phases[p];
        if (phase->start_ns != at_ns || phase->dur_ns <= 0) {
            return false;
        }
        at_ns += phase->dur_ns;
        of_phases += phase->step_count;
    }
    return (analysis->step_kind_count == 0 || of_kinds == analysis->step_count) &&
           at_ns == analysis->duration_ns &&
           (analysis->phase_count == 0 || of_phases == analysis->step_count);
}

double lac_not_computing_pct(const struct lac_analysis *analysis)
{
    const struct lac_time_partition *partition = &analysis->partition;
    return partition->of == LAC_OF_NOTHING || partition->total_ns == 0
               ? (double)NAN
               : 100.0 * (double)(partition->total_ns - partition->part_ns[LAC_PART_COMPUTE]) /
                     (double)partition->total_ns;
}

const char *lac_loop_unit(const struct lac_analysis *analysis)
{
    bool repeats = analysis->partition.of == LAC_OF_STEP && analysis->partition.per != NULL;
    return repeats ? analysis->partition.per : "step";
}

uint32_t lac_step_batches(const struct lac_analysis *analysis)
{
    return analysis->is_step_micro ? 1 : analysis->micro_step_count;
}

double lac_step_samples(const struct lac_analysis *analysis)
{
    const double summed_up = lac_step_batches(analysis);
    const double waited_for = fmax(1.0, analysis->loader.batches_per_step);
    return analysis->batch_size > 0
               ? (double)analysis->batch_size * (summed_up > 0.0 ? summed_up : waited_for)
               : (double)NAN;
}

const char *lac_rate_unit(const struct lac_analysis *analysis)
{
    if (strcmp(analysis->throughput_unit, "steps") != 0) {
        return analysis->throughput_unit;
    }
    const char *one = lac_loop_unit(analysis);
    return strcmp(one, "batch") == 0       ? "batches"
           : strcmp(one, "iteration") == 0 ? "iterations"
                                           : "steps";
}

int64_t lac_verdict_ns(const struct lac_analysis *analysis)
{
    if (analysis->verdict.parts == 0) {
        return LAC_UNKNOWN_NS;
    }
    int64_t sum_ns = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        bool is_said = (analysis->verdict.parts >> part & 1U) != 0;
        sum_ns += is_said ? analysis->partition.part_ns[part] : 0;
    }
    return sum_ns;
}

/** What it claims of the partition is there, and sums to its cost. */
static bool claims_are_valid(const struct lac_analysis *analysis, const struct lac_finding *finding)
{
    int64_t sum_ns = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        if (finding->part_ns[part] < 0 ||
            finding->part_ns[part] > analysis->partition.part_ns[part]) {
            return false;
        }
        sum_ns += finding->part_ns[part];
    }
    return sum_ns == 0 || sum_ns == finding->cost_ns_per_step;
}

/** Its parts are none below zero and sum to what it is of. */
static bool partition_is_valid(const struct lac_analysis *analysis)
{
    const struct lac_time_partition *partition = &analysis->partition;
    if (partition->of == LAC_OF_NOTHING) {
        return partition->device == LAC_NONE;
    }
    int64_t sum_ns = 0;
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        if (partition->part_ns[part] < 0 || partition->part_ns[part] > partition->total_ns) {
            return false;
        }
        sum_ns += partition->part_ns[part];
    }
    int64_t whole_ns = partition->of == LAC_OF_STEP ? analysis->step_mean_ns
                                                    : analysis->devices[partition->device].span_ns;
    return partition->device < analysis->device_count && sum_ns == partition->total_ns &&
           partition->total_ns == whole_ns;
}

bool lac_analysis_adds_up(const struct lac_analysis *analysis)
{
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        if (!device_is_valid(analysis, d)) {
            return false;
        }
        if (d > 0 && analysis->devices[d].id <= analysis->devices[d - 1].id) {
            return false;
        }
    }
    if (!phases_are_valid(analysis) || !partition_is_valid(analysis)) {
        return false;
    }
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (!claims_are_valid(analysis, &analysis->findings[i])) {
            return false;
        }
    }
    for (uint32_t row = 1; row < analysis->kernel_name_count; row++) {
        if (analysis->kernels[row].total_ns > analysis->kernels[row - 1].total_ns) {
            return false;
        }
    }
    return true;
}

bool lac_analysis_is_valid(const struct lac_analysis *analysis)
{
    return lac_analysis_adds_up(analysis) && lac_analysis_is_sane(analysis);
}

void lac_analysis_destroy(struct lac_analysis *analysis)
{
    if (analysis == NULL) {
        return;
    }
    free(analysis->devices);
    free(analysis->gaps);
    free(analysis->pieces);
    free(analysis->exposed);
    free(analysis->signatures);
    free(analysis->steps);
    free(analysis->phases);
    free(analysis->kernels);
    free(analysis->copies);
    lac_texts_destroy(analysis->texts);
    free(analysis->packed);
    free(analysis);
}
