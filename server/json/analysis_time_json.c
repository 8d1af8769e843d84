#include "analysis/diagnose/result/analysis.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"

#include <stddef.h>
#include <stdint.h>

static void write_device(struct lac_analysis_out *document, const struct lac_device_facts *device)
{
    struct lac_json *json = &document->json;
    lac_json_open(json, NULL, '{');
    lac_json_int(json, "id", device->id);
    lac_document_name(document, "name", device->name);
    lac_json_ns(json, "first_ns", device->first_ns);
    lac_json_ns(json, "span_ns", device->span_ns);
    lac_json_ns(json, "busy_ns", device->busy_ns);
    lac_json_ns(json, "idle_ns", device->idle_ns);
    lac_json_decimals(json, "busy_pct", device->busy_pct);
    lac_json_decimals(json, "not_computing_pct", device->not_computing_pct);
    lac_json_open(json, "partition_ns", '{');
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        lac_json_ns(json, lac_partition_name((enum lac_partition)part), device->partition_ns[part]);
    }
    lac_json_close(json, '}');
    lac_json_open(json, "gaps", '{');
    lac_json_uint(json, "count_10us", device->gap_count_10us);
    lac_json_ns(json, "total_10us_ns", device->gap_total_10us_ns);
    lac_json_ns(json, "longest_ns", device->gap_longest_ns);
    lac_json_ns(json, "longest_at_ns", device->gap_longest_at_ns);
    lac_json_close(json, '}');
    lac_json_open(json, "idle_by_cause_ns", '{');
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        lac_json_ns(json, lac_cause_name((enum lac_cause)cause), device->idle_by_cause_ns[cause]);
    }
    lac_json_close(json, '}');
    lac_json_close(json, '}');
}

void lac_document_devices(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    lac_json_open(json, "devices", '[');
    for (uint32_t d = 0; d < document->analysis->device_count; d++) {
        write_device(document, &document->analysis->devices[d]);
    }
    lac_json_close(json, ']');
}

/** What the steps did, kind by kind. */
static void write_kinds(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "kinds", '[');
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        const struct lac_step_kind_facts *facts = &analysis->step_kinds[k];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "kind", lac_step_kind_name((enum lac_step_kind)facts->kind));
        lac_json_uint(json, "count", facts->count);
        lac_json_ns(json, "mean_ns", facts->mean_ns);
        lac_json_ns(json, "total_ns", facts->total_ns);
        lac_json_ns(json, "own_ns", facts->own_ns);
        lac_json_decimals(json, "pct_of_steps", facts->pct_of_steps);
        lac_json_ns(json, "every", facts->every > 0 ? facts->every : LAC_UNKNOWN_NS);
        lac_json_text(json, "why", facts->why);
        lac_json_text(json, "text", facts->text);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_outliers(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "outliers", '[');
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!step->is_outlier) {
            continue;
        }
        lac_json_open(json, NULL, '{');
        lac_json_uint(json, "index", s);
        lac_document_name(document, "name", step->name);
        lac_json_ns(json, "start_ns", step->start_ns);
        lac_json_ns(json, "dur_ns", step->dur_ns);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_left_out(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "left_out", '[');
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            continue;
        }
        lac_json_open(json, NULL, '{');
        lac_json_uint(json, "index", s);
        lac_json_text(json, "why", lac_step_left_out_name((enum lac_step_left_out)step->left_out));
        lac_json_text(json, "kind", lac_step_kind_name((enum lac_step_kind)step->kind));
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_parts(struct lac_json *json, const char *key,
                        const struct lac_time_partition *partition)
{
    lac_json_open(json, key, '{');
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        lac_json_ns(json, lac_time_part_name(part), partition->part_ns[part]);
    }
    lac_json_close(json, '}');
}

/** Where the time goes: of the mean step, else of the recording. */
void lac_document_partition(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_time_partition *partition = &document->analysis->partition;
    if (partition->of == LAC_OF_NOTHING) {
        lac_json_null(json, "partition");
        return;
    }
    lac_json_open(json, "partition", '{');
    lac_json_text(json, "per", partition->per);
    lac_json_int(json, "device", document->analysis->devices[partition->device].id);
    lac_json_ns(json, "total_ns", partition->total_ns);
    write_parts(json, "parts_ns", partition);
    lac_json_close(json, '}');
}

void lac_document_steps(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "steps", '{');
    lac_json_text(json, "method", analysis->step_method);
    lac_json_decimals(json, "confidence", analysis->step_confidence);
    lac_json_uint(json, "count", analysis->step_count);
    lac_json_uint(json, "kept_count", analysis->step_kept_count);
    lac_json_ns(json, "mean_ns", analysis->step_mean_ns);
    lac_json_ns(json, "median_ns", analysis->step_median_ns);
    lac_json_ns(json, "p95_ns", analysis->step_p95_ns);
    lac_json_ns(json, "without_starvation_ns", analysis->step_without_starvation_ns);
    lac_json_decimals(json, "spread_pct", analysis->step_spread_pct);
    lac_json_decimals(json, "uncertain_pct", analysis->step_uncertain_pct);
    /* of one step there is no distance: it lasts to the end of what it launched */
    lac_json_ns(json, "device_mean_ns",
                analysis->is_paced_by_device && analysis->step_count > 1 ? analysis->step_mean_ns
                                                                         : LAC_UNKNOWN_NS);
    lac_json_ns(json, "host_mean_ns", analysis->step_host_ns);
    if (analysis->partition.of == LAC_OF_STEP) {
        write_parts(json, "partition_ns", &analysis->partition);
    } else {
        lac_json_null(json, "partition_ns");
    }
    lac_json_ns(json, "micro_steps",
                analysis->micro_step_count > 0 ? analysis->micro_step_count : LAC_UNKNOWN_NS);
    lac_json_bool(json, "is_micro_step", analysis->is_step_micro);
    write_outliers(document);
    write_left_out(document);
    write_kinds(document);
    lac_json_close(json, '}');
}

/** The recording from its start to its end. */
void lac_document_phases(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    lac_json_open(json, "phases", '[');
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        const struct lac_phase *phase = &analysis->phases[p];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "name", lac_phase_name((enum lac_phase_kind)phase->kind));
        lac_json_ns(json, "start_ns", phase->start_ns);
        lac_json_ns(json, "dur_ns", phase->dur_ns);
        lac_json_decimals(json, "pct",
                          100.0 * (double)phase->dur_ns / (double)analysis->duration_ns);
        lac_json_uint(json, "step_count", phase->step_count);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}
