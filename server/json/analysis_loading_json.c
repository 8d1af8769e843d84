#include "analysis/diagnose/result/analysis.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"
#include "server/json/settings_json.h"

#include <stddef.h>
#include <stdint.h>

void lac_document_dataloader(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_loader_facts *loader = &document->analysis->loader;
    bool is_inferred = loader->are_workers_inferred;
    lac_json_open(json, "dataloader", '{');
    lac_json_ns(json, "wait_ns", loader->wait_ns);
    lac_json_ns(json, "starved_ns", loader->starved_ns);
    lac_json_decimals(json, "wait_pct_of_steps", loader->wait_pct_of_steps);
    lac_json_uint(json, "batch_count", loader->batch_count);
    lac_json_optional(json, "num_workers", is_inferred ? -1 : loader->num_workers);
    lac_json_optional(json, "num_workers_inferred", is_inferred ? loader->num_workers : -1);
    lac_json_optional(json, "recommended_num_workers", loader->recommended_num_workers);
    lac_json_uint(json, "fetch_count", loader->fetch_count);
    lac_json_ns(json, "fetch_mean_ns", is_inferred ? LAC_UNKNOWN_NS : loader->fetch_mean_ns);
    lac_json_ns(json, "fetch_ns_inferred", is_inferred ? loader->fetch_mean_ns : LAC_UNKNOWN_NS);
    lac_json_ns(json, "fetch_p95_ns", loader->fetch_p95_ns);
    lac_json_ns(json, "fetch_cpu_mean_ns", loader->fetch_cpu_mean_ns);
    lac_json_ns(json, "pin_mean_ns", loader->pin_mean_ns);
    lac_json_optional(json, "batches_per_step", loader->batches_per_step);
    lac_json_decimals(json, "worker_busy_pct", loader->worker_busy_pct);
    lac_json_close(json, '}');
}

/** Why batches come late, what they spend their time on, and where more workers end. */
void lac_document_loading(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_loading_facts *loading = &document->analysis->loading;
    lac_json_open(json, "loading", '{');
    lac_json_text(json, "verdict", loading->verdict);
    lac_json_uint(json, "batch_count", loading->batch_count);
    lac_json_open(json, "parts", '[');
    for (uint32_t i = 0; i < loading->part_count; i++) {
        const struct lac_loading_part *row = &loading->parts[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", row->name);
        lac_json_text(json, "stage", row->stage);
        lac_json_uint(json, "count", row->count);
        lac_json_ns(json, "own_ns", row->own_ns);
        lac_json_ns(json, "cpu_ns", row->cpu_ns);
        lac_json_ns(json, "bytes", row->bytes);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_optional(json, "allowed_cores", loading->allowed_cores);
    lac_json_decimals(json, "cores_busy", loading->cores_busy);
    lac_json_decimals(json, "waiting_for_core_pct", loading->ready_pct);
    lac_json_decimals(json, "storage_mb_s", loading->storage_mb_s);
    lac_json_ns(json, "batch_bytes", loading->batch_bytes);
    lac_json_ns(json, "shm_free_bytes", loading->shm_free_bytes);
    lac_json_ns(json, "memory_bytes", loading->memory_bytes);
    lac_json_optional(json, "workers_by_cores", loading->workers_by_cores);
    lac_json_optional(json, "workers_by_memory", loading->workers_by_memory);
    lac_json_close(json, '}');
}

void lac_document_settings(struct lac_analysis_out *document)
{
    lac_settings_write_json(&document->json, "settings", &document->model->settings);
}
