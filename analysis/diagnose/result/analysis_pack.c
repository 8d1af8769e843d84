/*
 * An analysis as bytes, kept with the trace: everything but its gaps, its steps (which are tables
 * of their own) and the answer to a what-if. One function a structure, which writes and reads.
 */

#include "analysis/diagnose/result/analysis_pack.h"

#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/pack.h"
#include "analysis/diagnose/result/saturate.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 7 };

struct packing {
    struct lac_pack pack;
    const struct lac_model *model; /**< bounds of ids */
};

static void ns(struct packing *p, int64_t *value)
{
    lac_pack_int(&p->pack, value, 0, LAC_NUMBER_MAX);
}

/** A time or another number of which LAC_UNKNOWN_NS says that it is not known: kept as -1, which
 *  takes one byte. */
static void known(struct packing *p, int64_t *value)
{
    int64_t stored = *value == LAC_UNKNOWN_NS ? -1 : *value;
    lac_pack_int(&p->pack, &stored, -1, LAC_NUMBER_MAX);
    if (p->pack.is_reading) {
        *value = stored == -1 ? LAC_UNKNOWN_NS : stored;
    }
}

static void real(struct packing *p, double *value)
{
    lac_pack_real(&p->pack, value);
}

static void text(struct packing *p, const char **value)
{
    lac_pack_text(&p->pack, value);
}

#define COUNT(p, field, most) LAC_PACK_INT(&(p)->pack, field, 0, most)
#define FLAG(p, field)        LAC_PACK_INT(&(p)->pack, field, 0, 1)
#define STRING(p, field)      LAC_PACK_INT(&(p)->pack, field, 0, (int64_t)(p)->model->strings.count - 1)

/** An id below `count`, or LAC_NONE. */
static void optional_id(struct packing *p, uint32_t *id, uint64_t count)
{
    int64_t stored = *id == LAC_NONE ? -1 : (int64_t)*id;
    lac_pack_int(&p->pack, &stored, -1, (int64_t)count - 1);
    if (p->pack.is_reading) {
        *id = stored < 0 ? LAC_NONE : (uint32_t)stored;
    }
}

static void slice_id(struct packing *p, uint32_t *id)
{
    optional_id(p, id, p->model->slices.count);
}

static void pack_device(struct packing *p, struct lac_device_facts *device)
{
    lac_pack_int(&p->pack, &device->id, INT64_MIN, INT64_MAX);
    STRING(p, device->name);
    ns(p, &device->first_ns);
    ns(p, &device->span_ns);
    ns(p, &device->busy_ns);
    ns(p, &device->idle_ns);
    real(p, &device->busy_pct);
    real(p, &device->not_computing_pct);
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        ns(p, &device->partition_ns[part]);
    }
    COUNT(p, device->gap_count_10us, INT64_MAX);
    ns(p, &device->gap_total_10us_ns);
    ns(p, &device->gap_longest_ns);
    ns(p, &device->gap_longest_at_ns);
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        ns(p, &device->idle_by_cause_ns[cause]);
    }
    COUNT(p, device->op_count, INT64_MAX);
}

static void pack_partition(struct packing *p, struct lac_time_partition *partition,
                           uint32_t device_count)
{
    COUNT(p, partition->of, LAC_OF_RECORDING);
    optional_id(p, &partition->device, device_count);
    text(p, &partition->per);
    ns(p, &partition->total_ns);
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        ns(p, &partition->part_ns[part]);
    }
}

static void pack_steps(struct packing *p, struct lac_analysis *analysis)
{
    COUNT(p, analysis->step_kept_count, UINT32_MAX);
    text(p, &analysis->step_method);
    COUNT(p, analysis->micro_step_count, UINT32_MAX);
    FLAG(p, analysis->is_step_micro);
    real(p, &analysis->step_confidence);
    known(p, &analysis->step_mean_ns);
    known(p, &analysis->step_median_ns);
    known(p, &analysis->step_p95_ns);
    real(p, &analysis->step_spread_pct);
    real(p, &analysis->step_uncertain_pct);
    FLAG(p, analysis->is_paced_by_device);
    known(p, &analysis->step_host_ns);
    known(p, &analysis->step_without_starvation_ns);
    pack_partition(p, &analysis->partition, analysis->device_count);
    COUNT(p, analysis->step_kind_count, LAC_KIND_COUNT_);
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        struct lac_step_kind_facts *kind = &analysis->step_kinds[k];
        COUNT(p, kind->kind, LAC_KIND_COUNT_ - 1);
        COUNT(p, kind->count, UINT32_MAX);
        COUNT(p, kind->every, UINT32_MAX);
        known(p, &kind->mean_ns);
        known(p, &kind->total_ns);
        known(p, &kind->own_ns);
        real(p, &kind->pct_of_steps);
        text(p, &kind->why);
        text(p, &kind->text);
    }
    analysis->phase_count = (uint32_t)lac_pack_array(
        &p->pack, analysis->phase_count, 4, (void *)&analysis->phases, sizeof(*analysis->phases));
    for (uint32_t i = 0; i < analysis->phase_count; i++) {
        struct lac_phase *phase = &analysis->phases[i];
        ns(p, &phase->start_ns);
        ns(p, &phase->dur_ns);
        COUNT(p, phase->step_count, UINT32_MAX);
        COUNT(p, phase->kind, LAC_PHASE_COUNT_ - 1);
    }
}

static void pack_kernels(struct packing *p, struct lac_analysis *analysis)
{
    FLAG(p, analysis->has_kernels);
    COUNT(p, analysis->kernel_count, INT64_MAX);
    ns(p, &analysis->kernel_total_ns);
    analysis->kernel_name_count =
        (uint32_t)lac_pack_array(&p->pack, analysis->kernel_name_count, 12,
                                 (void *)&analysis->kernels, sizeof(*analysis->kernels));
    for (uint32_t k = 0; k < analysis->kernel_name_count; k++) {
        struct lac_kernel_facts *kernel = &analysis->kernels[k];
        STRING(p, kernel->name);
        slice_id(p, &kernel->longest_slice);
        slice_id(p, &kernel->first_slice);
        COUNT(p, kernel->count, INT64_MAX);
        ns(p, &kernel->total_ns);
        ns(p, &kernel->min_ns);
        ns(p, &kernel->max_ns);
        COUNT(p, kernel->names.family, LAC_FAMILY_COUNT_ - 1);
        COUNT(p, kernel->names.layout, LAC_LAYOUT_CLASS_COUNT_ - 1);
        COUNT(p, kernel->names.tensor_core, INT8_MAX);
        FLAG(p, kernel->names.is_eligible);
        FLAG(p, kernel->names.is_comm);
        FLAG(p, kernel->names.is_strict_layout);
        ns(p, &kernel->flops);
        real(p, &kernel->pct_of_peak);
    }
    real(p, &analysis->unknown_kernels_pct);
    COUNT(p, analysis->layout_count, INT64_MAX);
    ns(p, &analysis->layout_total_ns);
    real(p, &analysis->layout_pct);
    ns(p, &analysis->layout_exposed_ns);
    for (int i = 0; i < LAC_LAYOUT_CLASS_COUNT_; i++) {
        ns(p, &analysis->layout_by_class_ns[i]);
        COUNT(p, analysis->layout_by_class_count[i], INT64_MAX);
    }
    ns(p, &analysis->tensor_eligible_ns);
    ns(p, &analysis->tensor_used_ns);
    ns(p, &analysis->tensor_unknown_ns);
    real(p, &analysis->tensor_used_pct);
}

static void pack_efficiency(struct packing *p, struct lac_efficiency *efficiency)
{
    text(p, &efficiency->basis);
    text(p, &efficiency->why_not);
    real(p, &efficiency->flops_per_step);
    real(p, &efficiency->model_flops_per_step);
    real(p, &efficiency->achieved_flops_per_s);
    real(p, &efficiency->peak_flops_per_s);
    COUNT(p, efficiency->precision, LAC_PRECISION_COUNT_ - 1);
    real(p, &efficiency->mfu_pct);
    real(p, &efficiency->hfu_pct);
    real(p, &efficiency->products_pct);
    real(p, &efficiency->counted_pct);
    ns(p, &efficiency->products_ns);
    FLAG(p, efficiency->is_causal_unknown);
    text(p, &efficiency->device);
    text(p, &efficiency->source);
    text(p, &efficiency->text);
}

static void pack_python_samples(struct packing *p, struct lac_python_samples *samples)
{
    COUNT(p, samples->sample_count, INT64_MAX);
    COUNT(p, samples->idle_sample_count, INT64_MAX);
    COUNT(p, samples->line_count, LAC_PYTHON_LINES_MAX);
    for (uint32_t i = 0; i < samples->line_count; i++) {
        struct lac_python_line *line = &samples->lines[i];
        text(p, &line->function);
        text(p, &line->place);
        COUNT(p, line->sample_count, INT64_MAX);
        COUNT(p, line->idle_sample_count, INT64_MAX);
        slice_id(p, &line->slice);
    }
    text(p, &samples->text);
}

static void pack_copies(struct packing *p, struct lac_analysis *analysis)
{
    analysis->copy_count = (uint32_t)lac_pack_array(
        &p->pack, analysis->copy_count, 8, (void *)&analysis->copies, sizeof(*analysis->copies));
    for (uint32_t c = 0; c < analysis->copy_count; c++) {
        struct lac_copy_facts *copy = &analysis->copies[c];
        COUNT(p, copy->kind, LAC_COPY_PTOP);
        COUNT(p, copy->src, LAC_MEMORY_MANAGED);
        COUNT(p, copy->dst, LAC_MEMORY_MANAGED);
        COUNT(p, copy->count, INT64_MAX);
        known(p, &copy->bytes);
        ns(p, &copy->total_ns);
        known(p, &copy->exposed_ns);
        slice_id(p, &copy->longest_slice);
    }
}

static void pack_memory(struct packing *p, struct lac_memory_facts *memory)
{
    COUNT(p, memory->event_count, INT64_MAX);
    lac_pack_int(&p->pack, &memory->device, INT64_MIN, INT64_MAX);
    FLAG(p, memory->is_relative);
    known(p, &memory->start_bytes);
    ns(p, &memory->peak_bytes);
    ns(p, &memory->peak_ns);
    known(p, &memory->reserved_bytes);
    known(p, &memory->device_bytes);
    slice_id(p, &memory->peak_slice);
    text(p, &memory->peak_in);
    COUNT(p, memory->holder_count, LAC_MEMORY_HOLDERS_MAX);
    for (uint32_t h = 0; h < memory->holder_count; h++) {
        text(p, &memory->holders[h].name);
        ns(p, &memory->holders[h].bytes);
    }
}

static void pack_loader(struct packing *p, struct lac_loader_facts *loader)
{
    FLAG(p, loader->is_present);
    known(p, &loader->wait_ns);
    known(p, &loader->starved_ns);
    real(p, &loader->wait_pct_of_steps);
    COUNT(p, loader->batch_count, INT64_MAX);
    LAC_PACK_INT(&p->pack, loader->num_workers, -1, INT32_MAX);
    LAC_PACK_INT(&p->pack, loader->recommended_num_workers, -1, INT32_MAX);
    COUNT(p, loader->fetch_count, INT64_MAX);
    known(p, &loader->fetch_mean_ns);
    known(p, &loader->fetch_p95_ns);
    known(p, &loader->fetch_cpu_mean_ns);
    known(p, &loader->pin_mean_ns);
    LAC_PACK_INT(&p->pack, loader->batches_per_step, -1, INT32_MAX);
    real(p, &loader->worker_busy_pct);
    FLAG(p, loader->is_fetch_from_wait);
    FLAG(p, loader->are_workers_inferred);
    real(p, &loader->fetch_spread);
}

static void pack_loading(struct packing *p, struct lac_loading_facts *loading)
{
    text(p, &loading->verdict);
    COUNT(p, loading->part_count, LAC_LOADING_PARTS_MAX);
    for (uint32_t i = 0; i < loading->part_count; i++) {
        struct lac_loading_part *part = &loading->parts[i];
        text(p, &part->name);
        text(p, &part->stage);
        COUNT(p, part->count, INT64_MAX);
        known(p, &part->own_ns);
        known(p, &part->cpu_ns);
        known(p, &part->bytes);
    }
    COUNT(p, loading->batch_count, INT64_MAX);
    LAC_PACK_INT(&p->pack, loading->allowed_cores, -1, INT32_MAX);
    real(p, &loading->cores_busy);
    real(p, &loading->ready_pct);
    real(p, &loading->storage_mb_s);
    known(p, &loading->batch_bytes);
    known(p, &loading->shm_free_bytes);
    known(p, &loading->memory_bytes);
    LAC_PACK_INT(&p->pack, loading->workers_by_cores, -1, INT32_MAX);
    LAC_PACK_INT(&p->pack, loading->workers_by_memory, -1, INT32_MAX);
}

/** Kinds are known by id: their order is the program's. */
static void pack_kind(struct packing *p, enum lac_finding_kind *ref_kind)
{
    const char *id = p->pack.is_reading ? "" : lac_finding_type(*ref_kind)->id;
    text(p, &id);
    if (!p->pack.is_reading) {
        return;
    }
    int kind = 0;
    while (kind < LAC_FINDING_COUNT_ &&
           strcmp(lac_finding_type((enum lac_finding_kind)kind)->id, id) != 0) {
        kind++;
    }
    if (kind == LAC_FINDING_COUNT_) {
        lac_pack_refuse(&p->pack);
        kind = 0;
    }
    *ref_kind = (enum lac_finding_kind)kind;
}

static void pack_plan(struct packing *p, struct lac_analysis *analysis)
{
    COUNT(p, analysis->plan_count, LAC_PLAN_MAX);
    for (uint32_t i = 0; i < analysis->plan_count; i++) {
        struct lac_plan_step *step = &analysis->plan[i];
        text(p, &step->brief);
        pack_kind(p, &step->kind);
        LAC_PACK_INT(&p->pack, step->workers, 0, INT32_MAX);
        known(p, &step->step_ns);
        real(p, &step->gain_pct);
    }
}

static void pack_finding(struct packing *p, struct lac_finding *finding)
{
    pack_kind(p, &finding->kind);
    finding->id = lac_finding_type(finding->kind)->id;
    COUNT(p, finding->severity, LAC_SEVERITY_CRITICAL);
    COUNT(p, finding->effort, LAC_EFFORT_HARDWARE);
    COUNT(p, finding->change_kind, LAC_CHANGE_TEXT);
    known(p, &finding->cost_ns_per_step);
    real(p, &finding->cost_pct);
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        ns(p, &finding->part_ns[part]);
    }
    real(p, &finding->gain_low_pct);
    real(p, &finding->gain_mid_pct);
    real(p, &finding->gain_high_pct);
    known(p, &finding->step_low_ns);
    known(p, &finding->step_mid_ns);
    known(p, &finding->step_high_ns);
    real(p, &finding->confidence);
    FLAG(p, finding->ends_at_loader);
    FLAG(p, finding->is_one_time_cost);
    FLAG(p, finding->distorts);
    LAC_PACK_INT(&p->pack, finding->workers, -1, INT32_MAX);
    FLAG(p, finding->excludes_workers);
    text(p, &finding->title);
    text(p, &finding->why);
    text(p, &finding->change);
    text(p, &finding->where);
    text(p, &finding->brief);
    text(p, &finding->expect);
    text(p, &finding->costs);
    text(p, &finding->wrong_if);
    text(p, &finding->check);
    COUNT(p, finding->evidence_count, LAC_EVIDENCE_MAX);
    for (uint32_t i = 0; i < finding->evidence_count; i++) {
        struct lac_evidence *evidence = &finding->evidence[i];
        optional_id(p, &evidence->track, p->model->track_count);
        slice_id(p, &evidence->slice);
        text(p, &evidence->track_name);
        lac_pack_int(&p->pack, &evidence->t0_ns, -LAC_NUMBER_MAX, LAC_NUMBER_MAX);
        lac_pack_int(&p->pack, &evidence->t1_ns, -LAC_NUMBER_MAX, LAC_NUMBER_MAX);
        text(p, &evidence->text);
    }
}

static void pack_notes(struct packing *p, const char **notes, uint32_t *count, uint32_t most)
{
    COUNT(p, *count, most);
    for (uint32_t i = 0; i < *count; i++) {
        text(p, &notes[i]);
    }
}

static void pack_view(struct packing *p, struct lac_view *view)
{
    FLAG(p, view->is_known);
    FLAG(p, view->has_mark);
    lac_pack_int(&p->pack, &view->t0_ns, 0, LAC_TIME_MAX_NS);
    lac_pack_int(&p->pack, &view->t1_ns, 0, LAC_TIME_MAX_NS);
    lac_pack_int(&p->pack, &view->mark_ns, 0, LAC_TIME_MAX_NS);
    lac_pack_int(&p->pack, &view->mark_end_ns, 0, LAC_TIME_MAX_NS);
    optional_id(p, &view->thread, p->model->recorded_track_count);
    if (view->is_known && view->t1_ns <= view->t0_ns) {
        lac_pack_refuse(&p->pack);
    }
}

static void pack_all(struct packing *p, struct lac_analysis *analysis)
{
    static const int64_t shape[] = {
        VERSION,          LAC_PART_COUNT_,   LAC_CAUSE_COUNT_,        LAC_KIND_COUNT_,
        LAC_PHASE_COUNT_, LAC_FAMILY_COUNT_, LAC_LAYOUT_CLASS_COUNT_, LAC_VIEW_COUNT};
    for (size_t i = 0; i < LAC_COUNT_OF(shape); i++) {
        lac_pack_exactly(&p->pack, shape[i]);
    }
    COUNT(p, analysis->workload, LAC_WORKLOAD_HOST_TRAINING);
    FLAG(p, analysis->is_part_of_step);
    text(p, &analysis->verdict.cause);
    LAC_PACK_INT(&p->pack, analysis->verdict.letter, ' ', '~');
    text(p, &analysis->verdict.text);
    text(p, &analysis->verdict.detail);
    COUNT(p, analysis->verdict.parts, (1 << LAC_TIME_PART_COUNT) - 1);
    text(p, &analysis->throughput_unit);
    real(p, &analysis->throughput_per_s);
    known(p, &analysis->batch_size);
    real(p, &analysis->padding_pct);
    known(p, &analysis->needs.data_ns);
    known(p, &analysis->needs.host_ns);
    known(p, &analysis->needs.copies_ns);
    known(p, &analysis->needs.gpu_ns);
    known(p, &analysis->needs.comm_ns);
    known(p, &analysis->needs.alone_ns);
    analysis->device_count =
        (uint32_t)lac_pack_array(&p->pack, analysis->device_count, 44, (void *)&analysis->devices,
                                 sizeof(*analysis->devices));
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        pack_device(p, &analysis->devices[d]);
    }
    optional_id(p, &analysis->main_device, analysis->device_count);
    if (p->pack.is_reading &&
        (analysis->main_device == LAC_NONE) != (analysis->device_count == 0)) {
        lac_pack_refuse(&p->pack);
    }
    ns(p, &analysis->duration_ns);
    pack_steps(p, analysis);
    pack_kernels(p, analysis);
    pack_efficiency(p, &analysis->efficiency);
    pack_python_samples(p, &analysis->python_samples);
    pack_copies(p, analysis);
    pack_memory(p, &analysis->memory);
    pack_loader(p, &analysis->loader);
    pack_loading(p, &analysis->loading);
    text(p, &analysis->replay.method);
    COUNT(p, analysis->replay.step_count, UINT32_MAX);
    real(p, &analysis->replay.error_pct);
    COUNT(p, analysis->worker_step_count, LAC_WORKER_STEPS_MAX);
    for (uint32_t i = 0; i < analysis->worker_step_count; i++) {
        known(p, &analysis->worker_steps[i].low_ns);
        known(p, &analysis->worker_steps[i].mid_ns);
        known(p, &analysis->worker_steps[i].high_ns);
    }
    COUNT(p, analysis->finding_count, LAC_FINDINGS_MAX);
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        pack_finding(p, &analysis->findings[i]);
    }
    pack_plan(p, analysis);
    pack_notes(p, analysis->checked_fine, &analysis->checked_fine_count, LAC_CHECKED_COUNT_);
    pack_notes(p, analysis->not_recorded, &analysis->not_recorded_count, LAC_MISSING_COUNT_);
    pack_notes(p, analysis->caveats, &analysis->caveat_count, LAC_CAVEAT_COUNT_);
    for (int i = 0; i < LAC_VIEW_COUNT; i++) {
        pack_view(p, &analysis->views[i]);
    }
}

enum lac_status lac_analysis_pack(const struct lac_analysis *analysis,
                                  const struct lac_model *model, uint8_t **ret_bytes,
                                  size_t *ret_size_bytes)
{
    assert(analysis != NULL && model != NULL && ret_bytes != NULL);
    assert(ret_size_bytes != NULL);
    struct packing p = {.model = model};
    struct lac_analysis copy = *analysis; /* the functions read as well as write */
    pack_all(&p, &copy);
    if (p.pack.status) {
        free(p.pack.bytes);
        return p.pack.status;
    }
    *ret_bytes = p.pack.bytes;
    *ret_size_bytes = (size_t)p.pack.size_bytes;
    return LAC_OK;
}

enum lac_status lac_analysis_unpack(uint8_t *bytes, size_t size_bytes,
                                    const struct lac_model *model,
                                    struct lac_analysis **ret_analysis)
{
    assert(model != NULL && ret_analysis != NULL);
    assert(bytes != NULL || size_bytes == 0);
    struct packing p = {.model = model};
    struct lac_analysis *analysis = calloc(1, sizeof(*analysis));
    if (analysis == NULL) {
        free(bytes);
        return LAC_ERR_NOMEM;
    }
    analysis->packed = bytes;
    lac_pack_open(&p.pack, bytes, size_bytes);
    pack_all(&p, analysis);
    if (!lac_pack_is_at_end(&p.pack) || !lac_analysis_is_sane(analysis)) {
        lac_pack_refuse(&p.pack);
    }
    if (p.pack.status) {
        lac_analysis_destroy(analysis);
        return p.pack.status;
    }
    *ret_analysis = analysis;
    return LAC_OK;
}
