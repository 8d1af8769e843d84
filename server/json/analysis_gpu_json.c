#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** How many operations a kernel's instances are, and how fast they run. */
static void write_speed(struct lac_json *json, const struct lac_kernel_facts *facts)
{
    lac_json_ns(json, "flops", facts->flops > 0 ? facts->flops : LAC_UNKNOWN_NS);
    lac_json_decimals(json, "pct_of_peak", facts->pct_of_peak);
}

void lac_document_kernels(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    enum { TOP_COUNT = 10 };
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "kernels", '{');
    lac_json_uint(json, "count", analysis->kernel_count);
    lac_json_ns(json, "total_ns",
                analysis->has_kernels ? analysis->kernel_total_ns : LAC_UNKNOWN_NS);
    lac_json_open(json, "top", '[');
    for (uint32_t row = 0; row < analysis->kernel_name_count && row < TOP_COUNT; row++) {
        const struct lac_kernel_facts *facts = &analysis->kernels[row];
        lac_json_open(json, NULL, '{');
        lac_document_name(document, "name", lac_model_raw_name(document->model, facts->name));
        lac_json_uint(json, "count", facts->count);
        lac_json_ns(json, "total_ns", facts->total_ns);
        char name[64];
        lac_kernel_short_name(lac_model_str(document->model, facts->name),
                              lac_strings_length(&document->model->strings, facts->name), name,
                              sizeof(name));
        lac_json_text(json, "short", name);
        lac_json_text(json, "family", lac_word(LAC_WORDS_FAMILY, facts->names.family)->id);
        write_speed(json, facts);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_decimals(json, "unknown_pct", analysis->unknown_kernels_pct);
    lac_json_close(json, '}');
}

void lac_document_efficiency(struct lac_analysis_out *document)
{
    enum { KERNELS_MAX = 100 };
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    const struct lac_efficiency *efficiency = &analysis->efficiency;
    lac_json_open(json, "efficiency", '{');
    lac_json_text(json, "basis", efficiency->basis);
    lac_json_real(json, "flops_per_step", efficiency->flops_per_step);
    lac_json_real(json, "model_flops_per_step", efficiency->model_flops_per_step);
    lac_json_real(json, "achieved_flops_per_s", efficiency->achieved_flops_per_s);
    lac_json_real(json, "peak_flops_per_s", efficiency->peak_flops_per_s);
    bool is_known = efficiency->precision != LAC_PRECISION_UNKNOWN;
    if (is_known) {
        lac_json_text(json, "peak_precision", lac_precision_name(efficiency->precision));
    } else {
        lac_json_null(json, "peak_precision");
    }
    lac_json_decimals(json, "mfu_pct", efficiency->mfu_pct);
    lac_json_decimals(json, "hfu_pct", efficiency->hfu_pct);
    lac_json_decimals(json, "products_pct", efficiency->products_pct);
    lac_json_decimals(json, "counted_pct", efficiency->counted_pct);
    lac_json_ns(json, "products_ns", is_known ? efficiency->products_ns : LAC_UNKNOWN_NS);
    lac_json_bool(json, "is_causal_unknown", efficiency->is_causal_unknown);
    lac_json_text(json, "device", efficiency->device);
    lac_json_text(json, "source", efficiency->source);
    lac_json_text(json, "why_not", efficiency->why_not);
    lac_json_text(json, "text", efficiency->text);
    lac_json_open(json, "kernels", '[');
    uint32_t written = 0;
    for (uint32_t row = 0; row < analysis->kernel_name_count && written < KERNELS_MAX; row++) {
        if (analysis->kernels[row].flops > 0) {
            lac_json_open(json, NULL, '{');
            lac_document_name(document, "name", analysis->kernels[row].name);
            write_speed(json, &analysis->kernels[row]);
            lac_json_close(json, '}');
            written++;
        }
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

void lac_document_python_samples(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_python_samples *samples = &document->analysis->python_samples;
    if (samples->sample_count == 0) {
        lac_json_null(json, "python_samples");
        return;
    }
    lac_json_open(json, "python_samples", '{');
    lac_json_uint(json, "hz", 1000000000 / LAC_SAMPLED_EVERY_NS);
    lac_json_uint(json, "samples", samples->sample_count);
    lac_json_uint(json, "idle_samples", samples->idle_sample_count);
    lac_json_text(json, "text", samples->text);
    lac_json_open(json, "lines", '[');
    for (uint32_t i = 0; i < samples->line_count; i++) {
        const struct lac_python_line *line = &samples->lines[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "function", line->function);
        lac_json_text(json, "place", line->place);
        lac_json_uint(json, "samples", line->sample_count);
        lac_json_uint(json, "idle_samples", line->idle_sample_count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

void lac_document_layout(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    bool is_known = analysis->has_kernels;
    lac_json_open(json, "layout", '{');
    lac_json_uint(json, "kernel_count", analysis->layout_count);
    lac_json_ns(json, "total_ns", is_known ? analysis->layout_total_ns : LAC_UNKNOWN_NS);
    lac_json_decimals(json, "pct_of_kernel_time", is_known ? analysis->layout_pct : (double)NAN);
    lac_json_ns(json, "exposed_ns", is_known ? analysis->layout_exposed_ns : LAC_UNKNOWN_NS);
    lac_json_open(json, "by_class", '{');
    for (int kind = LAC_LAYOUT_L; kind < LAC_LAYOUT_CLASS_COUNT_; kind++) {
        lac_json_ns(json, lac_word(LAC_WORDS_LAYOUT, (uint32_t)kind)->id,
                    is_known ? analysis->layout_by_class_ns[kind] : LAC_UNKNOWN_NS);
    }
    lac_json_close(json, '}');
    lac_json_open(json, "by_class_count", '{');
    for (int kind = LAC_LAYOUT_L; kind < LAC_LAYOUT_CLASS_COUNT_; kind++) {
        lac_json_uint(json, lac_word(LAC_WORDS_LAYOUT, (uint32_t)kind)->id,
                      analysis->layout_by_class_count[kind]);
    }
    lac_json_close(json, '}');
    lac_json_close(json, '}');
}

void lac_document_tensor_core(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    bool is_known = analysis->has_kernels;
    lac_json_open(json, "tensor_core", '{');
    lac_json_ns(json, "eligible_ns", is_known ? analysis->tensor_eligible_ns : LAC_UNKNOWN_NS);
    lac_json_ns(json, "used_ns", is_known ? analysis->tensor_used_ns : LAC_UNKNOWN_NS);
    lac_json_ns(json, "unknown_ns", is_known ? analysis->tensor_unknown_ns : LAC_UNKNOWN_NS);
    lac_json_decimals(json, "used_pct", analysis->tensor_used_pct);
    lac_json_close(json, '}');
}

void lac_document_copies(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    lac_json_open(json, "copies", '[');
    for (uint32_t i = 0; i < document->analysis->copy_count; i++) {
        const struct lac_copy_facts *copy = &document->analysis->copies[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "kind", lac_copy_kind_name(copy->kind));
        lac_json_text(json, "src", lac_memory_kind_name(copy->src));
        lac_json_text(json, "dst", lac_memory_kind_name(copy->dst));
        lac_json_uint(json, "count", copy->count);
        lac_json_ns(json, "bytes", copy->bytes);
        lac_json_ns(json, "total_ns", copy->total_ns);
        lac_json_ns(json, "exposed_ns", copy->exposed_ns);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

void lac_document_memory(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_memory_facts *memory = &document->analysis->memory;
    if (memory->event_count == 0) {
        lac_json_null(json, "memory");
        return;
    }
    lac_json_open(json, "memory", '{');
    lac_json_int(json, "device", memory->device);
    lac_json_uint(json, "event_count", memory->event_count);
    lac_json_bool(json, "is_relative", memory->is_relative);
    lac_json_ns(json, "start_bytes", memory->start_bytes);
    lac_json_ns(json, "peak_bytes", memory->peak_bytes);
    lac_json_ns(json, "peak_ns", memory->peak_ns);
    lac_json_ns(json, "reserved_bytes", memory->reserved_bytes);
    lac_json_ns(json, "device_bytes", memory->device_bytes);
    lac_json_text(json, "peak_in", memory->peak_in);
    lac_json_open(json, "held", '[');
    for (uint32_t h = 0; h < memory->holder_count; h++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", memory->holders[h].name);
        lac_json_ns(json, "bytes", memory->holders[h].bytes);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}
