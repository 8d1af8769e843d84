#include "server/json/analysis_json.h"

#include "analysis/diagnose/names/names.h"
#include "server/base/buffer.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void lac_document_name(struct lac_analysis_out *document, const char *key, uint32_t id)
{
    lac_json_text_sized(&document->json, key, lac_model_str(document->model, id),
                        lac_strings_length(&document->model->strings, id));
}

static void write_trace(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_trace_info *info = &document->model->info;
    lac_json_open(json, "trace", '{');
    lac_document_name(document, "name", info->name);
    lac_json_text(json, "format", lac_trace_format_name(info->format));
    lac_json_uint(json, "event_count", info->event_count);
    lac_json_uint(json, "slice_count", info->slice_count);
    lac_json_uint(json, "dropped_count", info->dropped_count);
    lac_json_uint(json, "repaired_count", info->repaired_count);
    lac_json_int_text(json, "t0_ns", info->t0_ns);
    lac_json_ns(json, "duration_ns", info->duration_ns);
    lac_json_optional(json, "rank", info->rank);
    lac_json_optional(json, "world_size", info->world_size);
    lac_document_name(document, "host", info->host);
    lac_json_bool(json, "simulated", info->is_simulated);
    lac_json_bool(json, "timeline", !info->has_no_time);
    if (info->weight_unit != 0) {
        lac_document_name(document, "weight_unit", info->weight_unit);
        lac_json_int(json, "weight_scale", info->weight_scale);
    }
    lac_json_uint(json, "profiles", info->profile_count);
    lac_json_text(json, "subject", lac_workload_kind_name(document->analysis->workload));
    lac_json_close(json, '}');
}

static void write_verdict(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_verdict *verdict = &document->analysis->verdict;
    const char letter[2] = {verdict->letter, '\0'};
    lac_json_open(json, "verdict", '{');
    lac_json_text(json, "cause", verdict->cause);
    lac_json_text(json, "text", verdict->text);
    lac_json_text(json, "letter", letter);
    lac_json_text(json, "detail", verdict->detail);
    lac_json_ns(json, "part_ns", lac_verdict_ns(document->analysis));
    lac_json_open(json, "parts", '[');
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        if ((verdict->parts >> part & 1U) != 0) {
            lac_json_text(json, NULL, lac_time_part_name(part));
        }
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

static void write_throughput(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "throughput", '{');
    lac_json_text(json, "unit", analysis->throughput_unit);
    lac_json_decimals(json, "per_s", analysis->throughput_per_s);
    lac_json_ns(json, "batch_size", analysis->batch_size);
    lac_json_decimals(json, "padding_pct", analysis->padding_pct);
    lac_json_close(json, '}');
}

static void write_needs(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_needs *needs = &document->analysis->needs;
    lac_json_open(json, "needs_ns", '{');
    lac_json_ns(json, "data", needs->data_ns);
    lac_json_ns(json, "host", needs->host_ns);
    lac_json_ns(json, "copies", needs->copies_ns);
    lac_json_ns(json, "gpu", needs->gpu_ns);
    lac_json_ns(json, "comm", needs->comm_ns);
    lac_json_close(json, '}');
}

static void write_replay(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_replay_facts *replay = &document->analysis->replay;
    lac_json_open(json, "replay", '{');
    lac_json_text(json, "method", replay->method);
    lac_json_int(json, "steps", (int64_t)replay->step_count);
    lac_json_decimals(json, "error_pct", replay->error_pct);
    lac_json_close(json, '}');
}

static void write_texts(struct lac_json *json, const char *key, const char *const *texts,
                        uint32_t count)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_text(json, NULL, texts[i]);
    }
    lac_json_close(json, ']');
}

static void write_document(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "schema", "lacuna.analysis/1");
    write_trace(document);
    write_verdict(document);
    write_throughput(document);
    write_needs(document);
    lac_document_devices(document);
    lac_document_partition(document);
    lac_document_steps(document);
    lac_document_phases(document);
    lac_document_kernels(document);
    lac_document_layout(document);
    lac_document_tensor_core(document);
    lac_document_efficiency(document);
    lac_document_python_samples(document);
    lac_document_copies(document);
    lac_document_memory(document);
    lac_document_dataloader(document);
    lac_document_loading(document);
    lac_document_settings(document);
    write_replay(document);
    lac_document_what_if(document);
    lac_document_findings(document);
    lac_document_plan(document);
    write_texts(json, "checked_fine", analysis->checked_fine, analysis->checked_fine_count);
    write_texts(json, "not_recorded", analysis->not_recorded, analysis->not_recorded_count);
    write_texts(json, "caveats", analysis->caveats, analysis->caveat_count);
    lac_json_uint(json, "name_table_version", lac_names_version());
    lac_json_close(json, '}');
}

enum lac_status lac_json_give(struct lac_buffer *out, char **ret_text, size_t *ret_length)
{
    if (out->status != LAC_OK) {
        enum lac_status status = out->status;
        lac_buffer_done(out);
        return status;
    }
    *ret_text = out->bytes;
    if (ret_length != NULL) {
        *ret_length = out->size_bytes;
    }
    return LAC_OK;
}

enum lac_status lac_analysis_json(const struct lac_analyzed_trace *analyzed, bool is_pretty,
                                  char **ret_text, size_t *ret_length)
{
    struct lac_buffer out = {.size_bytes_max = LAC_JSON_DOCUMENT_BYTES_MAX};
    struct lac_analysis_out document = {.model = analyzed->model, .analysis = analyzed->analysis};
    lac_json_init_form(&document.json, &out, is_pretty ? LAC_JSON_INDENTED : LAC_JSON_DOCUMENT);
    write_document(&document);
    return lac_json_give(&out, ret_text, ret_length);
}
