#include "server/json/analysis_json.h"

#include "analysis/diagnose/result/vocabulary.h"

#include <inttypes.h>
#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <json-c/json_types.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * json-c reports a failed allocation as NULL, which reads as JSON null when it is added to an
 * object. Everything goes through put(), which remembers it, so that no number is lost silently.
 */
struct writer {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
    bool has_failed;
};

static void put(struct writer *writer, struct json_object *object, const char *key,
                struct json_object *value)
{
    if (!object || !value || json_object_object_add(object, key, value) != 0) {
        json_object_put(value);
        writer->has_failed = true;
    }
}

static void put_null(struct writer *writer, struct json_object *object, const char *key)
{
    if (!object || json_object_object_add(object, key, NULL) != 0) {
        writer->has_failed = true;
    }
}

static void push(struct writer *writer, struct json_object *array, struct json_object *value)
{
    if (!array || !value || json_object_array_add(array, value) != 0) {
        json_object_put(value);
        writer->has_failed = true;
    }
}

static void put_text(struct writer *writer, struct json_object *object, const char *key,
                     const char *text)
{
    put(writer, object, key, json_object_new_string(text));
}

/** NULL is null. */
static void put_word(struct writer *writer, struct json_object *object, const char *key,
                     const char *word)
{
    if (word == NULL) {
        put_null(writer, object, key);
    } else {
        put_text(writer, object, key, word);
    }
}

/** LAC_UNKNOWN_NS is null. */
static void put_ns(struct writer *writer, struct json_object *object, const char *key, int64_t ns)
{
    if (ns == LAC_UNKNOWN_NS) {
        put_null(writer, object, key);
    } else {
        put(writer, object, key, json_object_new_int64(ns));
    }
}

static void put_count(struct writer *writer, struct json_object *object, const char *key,
                      uint64_t count)
{
    put(writer, object, key, json_object_new_uint64(count));
}

/** Negative is null. */
static void put_optional(struct writer *writer, struct json_object *object, const char *key,
                         int64_t count)
{
    put_ns(writer, object, key, count < 0 ? LAC_UNKNOWN_NS : count);
}

/** Four decimals; NaN is null. */
static void put_real(struct writer *writer, struct json_object *object, const char *key,
                     double value)
{
    if (!isfinite(value)) {
        put_null(writer, object, key);
        return;
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%.4f", value);
    put(writer, object, key, json_object_new_double_s(strtod(text, NULL), text));
}

static void put_name(struct writer *writer, struct json_object *object, const char *key,
                     uint32_t id)
{
    put(writer, object, key,
        json_object_new_string_len(lac_model_str(writer->model, id),
                                   (int)lac_strings_length(&writer->model->strings, id)));
}

/* -- parts, in the order of the document ------------------------------------------------------- */

static struct json_object *trace_part(struct writer *writer)
{
    const struct lac_trace_info *info = &writer->model->info;
    struct json_object *part = json_object_new_object();
    put_name(writer, part, "name", info->name);
    put_text(writer, part, "format", lac_trace_format_name(info->format));
    put_count(writer, part, "event_count", info->event_count);
    put_count(writer, part, "slice_count", info->slice_count);
    put_count(writer, part, "dropped_count", info->dropped_count);
    put_count(writer, part, "repaired_count", info->repaired_count);
    char t0[32];
    (void)snprintf(t0, sizeof t0, "%" PRId64, info->t0_ns);
    put_text(writer, part, "t0_ns", t0);
    put_ns(writer, part, "duration_ns", info->duration_ns);
    put_optional(writer, part, "rank", info->rank);
    put_optional(writer, part, "world_size", info->world_size);
    put_name(writer, part, "host", info->host);
    put(writer, part, "simulated", json_object_new_boolean(info->is_simulated));
    put_text(writer, part, "subject", lac_workload_kind_name(writer->analysis->workload));
    return part;
}

static struct json_object *verdict_part(struct writer *writer)
{
    const struct lac_verdict *verdict = &writer->analysis->verdict;
    struct json_object *part = json_object_new_object();
    char letter[2] = {verdict->letter, '\0'};
    put_text(writer, part, "cause", verdict->cause);
    put_text(writer, part, "text", verdict->text);
    put_text(writer, part, "letter", letter);
    put_text(writer, part, "detail", verdict->detail);
    return part;
}

static struct json_object *throughput_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *part = json_object_new_object();
    put_text(writer, part, "unit", analysis->throughput_unit);
    put_real(writer, part, "per_s", analysis->throughput_per_s);
    put_ns(writer, part, "batch_size", analysis->batch_size);
    put_real(writer, part, "padding_pct", analysis->padding_pct);
    return part;
}

static struct json_object *needs_part(struct writer *writer)
{
    const struct lac_needs *needs = &writer->analysis->needs;
    struct json_object *part = json_object_new_object();
    put_ns(writer, part, "data", needs->data_ns);
    put_ns(writer, part, "host", needs->host_ns);
    put_ns(writer, part, "copies", needs->copies_ns);
    put_ns(writer, part, "gpu", needs->gpu_ns);
    put_ns(writer, part, "comm", needs->comm_ns);
    return part;
}

static struct json_object *device_object(struct writer *writer,
                                         const struct lac_device_facts *device)
{
    struct json_object *object = json_object_new_object();
    put(writer, object, "id", json_object_new_int64(device->id));
    put_name(writer, object, "name", device->name);
    put_ns(writer, object, "first_ns", device->first_ns);
    put_ns(writer, object, "span_ns", device->span_ns);
    put_ns(writer, object, "busy_ns", device->busy_ns);
    put_ns(writer, object, "idle_ns", device->idle_ns);
    put_real(writer, object, "busy_pct", device->busy_pct);
    put_real(writer, object, "not_computing_pct", device->not_computing_pct);
    struct json_object *parts = json_object_new_object();
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        put_ns(writer, parts, lac_partition_name((enum lac_partition)part),
               device->partition_ns[part]);
    }
    put(writer, object, "partition_ns", parts);
    struct json_object *gaps = json_object_new_object();
    put_count(writer, gaps, "count_10us", device->gap_count_10us);
    put_ns(writer, gaps, "total_10us_ns", device->gap_total_10us_ns);
    put_ns(writer, gaps, "longest_ns", device->gap_longest_ns);
    put_ns(writer, gaps, "longest_at_ns", device->gap_longest_at_ns);
    put(writer, object, "gaps", gaps);
    struct json_object *causes = json_object_new_object();
    for (int cause = 0; cause < LAC_CAUSE_COUNT_; cause++) {
        put_ns(writer, causes, lac_cause_name((enum lac_cause)cause),
               device->idle_by_cause_ns[cause]);
    }
    put(writer, object, "idle_by_cause_ns", causes);
    return object;
}

static struct json_object *devices_part(struct writer *writer)
{
    struct json_object *part = json_object_new_array();
    for (uint32_t d = 0; d < writer->analysis->device_count; d++) {
        push(writer, part, device_object(writer, &writer->analysis->devices[d]));
    }
    return part;
}

/** What the steps did, kind by kind. */
static struct json_object *kinds_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *part = json_object_new_array();
    for (uint32_t k = 0; k < analysis->step_kind_count; k++) {
        const struct lac_step_kind_facts *facts = &analysis->step_kinds[k];
        struct json_object *kind = json_object_new_object();
        put_text(writer, kind, "kind", lac_step_kind_name((enum lac_step_kind)facts->kind));
        put_count(writer, kind, "count", facts->count);
        put_ns(writer, kind, "mean_ns", facts->mean_ns);
        put_ns(writer, kind, "total_ns", facts->total_ns);
        put_ns(writer, kind, "own_ns", facts->own_ns);
        put_real(writer, kind, "pct_of_steps", facts->pct_of_steps);
        put_ns(writer, kind, "every", facts->every > 0 ? facts->every : LAC_UNKNOWN_NS);
        put_text(writer, kind, "why", facts->why);
        put_text(writer, kind, "text", facts->text);
        push(writer, part, kind);
    }
    return part;
}

/** The recording from its start to its end. */
static struct json_object *phases_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *part = json_object_new_array();
    for (uint32_t p = 0; p < analysis->phase_count; p++) {
        const struct lac_phase *phase = &analysis->phases[p];
        struct json_object *object = json_object_new_object();
        put_text(writer, object, "name", lac_phase_name((enum lac_phase_kind)phase->kind));
        put_ns(writer, object, "start_ns", phase->start_ns);
        put_ns(writer, object, "dur_ns", phase->dur_ns);
        put_real(writer, object, "pct",
                 100.0 * (double)phase->dur_ns / (double)analysis->duration_ns);
        put_count(writer, object, "step_count", phase->step_count);
        push(writer, part, object);
    }
    return part;
}

static struct json_object *steps_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *part = json_object_new_object();
    put_text(writer, part, "method", analysis->step_method);
    put_real(writer, part, "confidence", analysis->step_confidence);
    put_count(writer, part, "count", analysis->step_count);
    put_count(writer, part, "kept_count", analysis->step_kept_count);
    put_ns(writer, part, "mean_ns", analysis->step_mean_ns);
    put_ns(writer, part, "median_ns", analysis->step_median_ns);
    put_ns(writer, part, "p95_ns", analysis->step_p95_ns);
    put_ns(writer, part, "without_starvation_ns", analysis->step_without_starvation_ns);
    put_real(writer, part, "spread_pct", analysis->step_spread_pct);
    put_ns(writer, part, "device_mean_ns", analysis->step_device_ns);
    put_ns(writer, part, "micro_steps",
           analysis->micro_step_count > 0 ? analysis->micro_step_count : LAC_UNKNOWN_NS);
    put(writer, part, "is_micro_step", json_object_new_boolean(analysis->is_step_micro));
    struct json_object *outliers = json_object_new_array();
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (!step->is_outlier) {
            continue;
        }
        struct json_object *outlier = json_object_new_object();
        put_count(writer, outlier, "index", s);
        put_name(writer, outlier, "name", step->name);
        put_ns(writer, outlier, "start_ns", step->start_ns);
        put_ns(writer, outlier, "dur_ns", step->dur_ns);
        push(writer, outliers, outlier);
    }
    put(writer, part, "outliers", outliers);
    struct json_object *left_out = json_object_new_array();
    for (uint32_t s = 0; s < analysis->step_count; s++) {
        const struct lac_step *step = &analysis->steps[s];
        if (step->left_out == LAC_STEP_KEPT) {
            continue;
        }
        struct json_object *out = json_object_new_object();
        put_count(writer, out, "index", s);
        put_text(writer, out, "why",
                 lac_step_left_out_name((enum lac_step_left_out)step->left_out));
        put_text(writer, out, "kind", lac_step_kind_name((enum lac_step_kind)step->kind));
        push(writer, left_out, out);
    }
    put(writer, part, "left_out", left_out);
    put(writer, part, "kinds", kinds_part(writer));
    return part;
}

static struct json_object *kernels_part(struct writer *writer)
{
    enum { TOP_COUNT = 10 };
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *part = json_object_new_object();
    put_count(writer, part, "count", analysis->kernel_count);
    put_ns(writer, part, "total_ns",
           analysis->has_kernels ? analysis->kernel_total_ns : LAC_UNKNOWN_NS);
    struct json_object *top = json_object_new_array();
    for (uint32_t row = 0; row < analysis->kernel_name_count && row < TOP_COUNT; row++) {
        const struct lac_kernel_facts *facts = &analysis->kernels[row];
        struct json_object *kernel = json_object_new_object();
        put_name(writer, kernel, "name", facts->name);
        put_count(writer, kernel, "count", facts->count);
        put_ns(writer, kernel, "total_ns", facts->total_ns);
        char name[64];
        lac_kernel_short_name(lac_model_str(writer->model, facts->name),
                              lac_strings_length(&writer->model->strings, facts->name), name,
                              sizeof name);
        put_text(writer, kernel, "short", name);
        put_text(writer, kernel, "family", lac_word(LAC_WORDS_FAMILY, facts->names.family)->id);
        push(writer, top, kernel);
    }
    put(writer, part, "top", top);
    return part;
}

static struct json_object *layout_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    bool is_known = analysis->has_kernels;
    struct json_object *part = json_object_new_object();
    put_count(writer, part, "kernel_count", analysis->layout_count);
    put_ns(writer, part, "total_ns", is_known ? analysis->layout_total_ns : LAC_UNKNOWN_NS);
    put_real(writer, part, "pct_of_kernel_time", is_known ? analysis->layout_pct : (double)NAN);
    put_ns(writer, part, "exposed_ns", is_known ? analysis->layout_exposed_ns : LAC_UNKNOWN_NS);
    struct json_object *classes = json_object_new_object();
    struct json_object *counts = json_object_new_object();
    for (int class = LAC_LAYOUT_L; class < LAC_LAYOUT_CLASS_COUNT_; class ++) {
        const char *name = lac_word(LAC_WORDS_LAYOUT, (uint32_t) class)->id;
        put_ns(writer, classes, name,
               is_known ? analysis->layout_by_class_ns[class] : LAC_UNKNOWN_NS);
        put_count(writer, counts, name, analysis->layout_by_class_count[class]);
    }
    put(writer, part, "by_class", classes);
    put(writer, part, "by_class_count", counts);
    return part;
}

static struct json_object *tensor_core_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    bool is_known = analysis->has_kernels;
    struct json_object *part = json_object_new_object();
    put_ns(writer, part, "eligible_ns", is_known ? analysis->tensor_eligible_ns : LAC_UNKNOWN_NS);
    put_ns(writer, part, "used_ns", is_known ? analysis->tensor_used_ns : LAC_UNKNOWN_NS);
    put_ns(writer, part, "unknown_ns", is_known ? analysis->tensor_unknown_ns : LAC_UNKNOWN_NS);
    put_real(writer, part, "used_pct", analysis->tensor_used_pct);
    return part;
}

static struct json_object *copies_part(struct writer *writer)
{
    struct json_object *part = json_object_new_array();
    for (uint32_t i = 0; i < writer->analysis->copy_count; i++) {
        const struct lac_copy_facts *copy = &writer->analysis->copies[i];
        struct json_object *object = json_object_new_object();
        put_text(writer, object, "kind", lac_copy_kind_name(copy->kind));
        put_text(writer, object, "src", lac_memory_kind_name(copy->src));
        put_text(writer, object, "dst", lac_memory_kind_name(copy->dst));
        put_count(writer, object, "count", copy->count);
        put_ns(writer, object, "bytes", copy->bytes);
        put_ns(writer, object, "total_ns", copy->total_ns);
        put_ns(writer, object, "exposed_ns", copy->exposed_ns);
        push(writer, part, object);
    }
    return part;
}

static struct json_object *dataloader_part(struct writer *writer)
{
    const struct lac_loader_facts *loader = &writer->analysis->loader;
    struct json_object *part = json_object_new_object();
    put_ns(writer, part, "wait_ns", loader->wait_ns);
    put_ns(writer, part, "starved_ns", loader->starved_ns);
    put_real(writer, part, "wait_pct_of_steps", loader->wait_pct_of_steps);
    put_count(writer, part, "batch_count", loader->batch_count);
    put_optional(writer, part, "num_workers", loader->num_workers);
    put_optional(writer, part, "recommended_num_workers", loader->recommended_num_workers);
    put_count(writer, part, "fetch_count", loader->fetch_count);
    put_ns(writer, part, "fetch_mean_ns", loader->fetch_mean_ns);
    put_ns(writer, part, "fetch_p95_ns", loader->fetch_p95_ns);
    put_ns(writer, part, "fetch_cpu_mean_ns", loader->fetch_cpu_mean_ns);
    put_real(writer, part, "worker_busy_pct", loader->worker_busy_pct);
    return part;
}

/** Why batches come late, what they spend their time on, and where more workers end. */
static struct json_object *loading_part(struct writer *writer)
{
    const struct lac_loading_facts *loading = &writer->analysis->loading;
    struct json_object *part = json_object_new_object();
    put_text(writer, part, "verdict", loading->verdict);
    put_count(writer, part, "batch_count", loading->batch_count);
    struct json_object *parts = json_object_new_array();
    for (uint32_t i = 0; i < loading->part_count; i++) {
        const struct lac_loading_part *row = &loading->parts[i];
        struct json_object *object = json_object_new_object();
        put_text(writer, object, "name", row->name);
        put_text(writer, object, "stage", row->stage);
        put_count(writer, object, "count", row->count);
        put_ns(writer, object, "own_ns", row->own_ns);
        put_ns(writer, object, "cpu_ns", row->cpu_ns);
        put_ns(writer, object, "bytes", row->bytes);
        push(writer, parts, object);
    }
    put(writer, part, "parts", parts);
    put_optional(writer, part, "allowed_cores", loading->allowed_cores);
    put_real(writer, part, "cores_busy", loading->cores_busy);
    put_real(writer, part, "waiting_for_core_pct", loading->ready_pct);
    put_real(writer, part, "storage_mb_s", loading->storage_mb_s);
    put_ns(writer, part, "batch_bytes", loading->batch_bytes);
    put_ns(writer, part, "shm_free_bytes", loading->shm_free_bytes);
    put_ns(writer, part, "memory_bytes", loading->memory_bytes);
    put_optional(writer, part, "workers_by_cores", loading->workers_by_cores);
    put_optional(writer, part, "workers_by_memory", loading->workers_by_memory);
    return part;
}

static struct json_object *settings_part(struct writer *writer)
{
    struct json_object *part = json_tokener_parse(writer->analysis->settings_json);
    if (part && json_object_is_type(part, json_type_object)) {
        return part;
    }
    json_object_put(part);
    (void)writer;
    return json_object_new_object();
}

static struct json_object *replay_part(struct writer *writer)
{
    const struct lac_replay_facts *replay = &writer->analysis->replay;
    struct json_object *part = json_object_new_object();
    put_text(writer, part, "method", replay->method);
    put(writer, part, "steps", json_object_new_int64((int64_t)replay->step_count));
    put_real(writer, part, "error_pct", replay->error_pct);
    return part;
}

static struct json_object *what_if_part(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    const struct lac_what_if_changes *changes = &analysis->what_if;
    struct json_object *set = json_object_new_object();
    if (changes->workers != LAC_WHAT_IF_UNSET) {
        put(writer, set, "workers", json_object_new_int(changes->workers));
    }
    if (changes->layout_nhwc == 1) {
        put_text(writer, set, "layout", "nhwc");
    }
    const struct {
        const char *key;
        int8_t is_set;
        int value;
    } switches[] = {
        {"pinned", changes->pinned, 1},    {"async", changes->async_copies, 1},
        {"sync", changes->no_sync, 0},     {"allocator", changes->no_allocator, 0},
        {"launch", changes->no_launch, 0}, {"module_load", changes->no_module_load, 0},
    };
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (switches[i].is_set == 1) {
            put(writer, set, switches[i].key, json_object_new_int(switches[i].value));
        }
    }
    if (changes->comm >= 0.0) {
        put_real(writer, set, "comm", changes->comm);
    }
    if (changes->kernels >= 0.0) {
        put_real(writer, set, "kernels", changes->kernels);
    }
    struct json_object *part = json_object_new_object();
    put(writer, part, "changes", set);
    put_ns(writer, part, "step_mean_ns", analysis->what_if_mean_ns);
    put_ns(writer, part, "step_low_ns", analysis->what_if_low_ns);
    put_ns(writer, part, "step_high_ns", analysis->what_if_high_ns);
    put_ns(writer, part, "step_median_ns", analysis->what_if_median_ns);
    put_text(writer, part, "assumption", analysis->what_if_assumption);
    return part;
}

static struct json_object *evidence_array(struct writer *writer, const struct lac_finding *finding)
{
    struct json_object *array = json_object_new_array();
    for (uint32_t i = 0; i < finding->evidence_count; i++) {
        const struct lac_evidence *evidence = &finding->evidence[i];
        struct json_object *object = json_object_new_object();
        put_text(writer, object, "track", evidence->track_name);
        put_ns(writer, object, "t0_ns", evidence->t0_ns);
        put_ns(writer, object, "t1_ns", evidence->t1_ns);
        put_text(writer, object, "text", evidence->text);
        put_optional(writer, object, "slice",
                     evidence->slice == LAC_NONE ? -1 : (int64_t)evidence->slice);
        put_optional(writer, object, "track_index",
                     evidence->track == LAC_NONE ? -1 : (int64_t)evidence->track);
        push(writer, array, object);
    }
    return array;
}

static struct json_object *finding_object(struct writer *writer, const struct lac_finding *finding)
{
    struct json_object *object = json_object_new_object();
    put_text(writer, object, "id", finding->id);
    put_text(writer, object, "severity", lac_severity_name(finding->severity));
    put_ns(writer, object, "cost_ns_per_step", finding->cost_ns_per_step);
    put_real(writer, object, "cost_pct", finding->cost_pct);
    struct json_object *gain = json_object_new_object();
    put_real(writer, gain, "low", finding->gain_low_pct);
    put_real(writer, gain, "mid", finding->gain_mid_pct);
    put_real(writer, gain, "high", finding->gain_high_pct);
    put(writer, object, "gain_pct", gain);
    struct json_object *step = json_object_new_object();
    put_ns(writer, step, "low", finding->step_low_ns);
    put_ns(writer, step, "mid", finding->step_mid_ns);
    put_ns(writer, step, "high", finding->step_high_ns);
    put(writer, object, "step_ns", step);
    put_real(writer, object, "confidence", finding->confidence);
    put_text(writer, object, "title", finding->title);
    put_text(writer, object, "why", finding->why);
    bool has_change = finding->change[0] != '\0';
    enum lac_cause cause = lac_finding_type(finding->kind)->cause;
    put_text(writer, object, "cause", cause < LAC_CAUSE_COUNT_ ? lac_cause_name(cause) : "gpu");
    put_text(writer, object, "change", finding->change);
    put_word(writer, object, "change_kind",
             has_change ? lac_change_kind_name(finding->change_kind) : NULL);
    put_word(writer, object, "effort", has_change ? lac_effort_name(finding->effort) : NULL);
    put_text(writer, object, "where", finding->where);
    put_text(writer, object, "brief", finding->brief);
    put_text(writer, object, "expect", finding->expect);
    put_text(writer, object, "costs", finding->costs);
    put_text(writer, object, "wrong_if", finding->wrong_if);
    put_text(writer, object, "check", finding->check);
    put(writer, object, "evidence", evidence_array(writer, finding));
    return object;
}

static struct json_object *plan_array(struct writer *writer)
{
    struct json_object *array = json_object_new_array();
    for (uint32_t i = 0; i < writer->analysis->plan_count; i++) {
        const struct lac_plan_step *step = &writer->analysis->plan[i];
        struct json_object *object = json_object_new_object();
        put_text(writer, object, "brief", step->brief);
        put_ns(writer, object, "step_ns", step->step_ns);
        put_real(writer, object, "gain_pct", step->gain_pct);
        push(writer, array, object);
    }
    return array;
}

static struct json_object *texts_array(struct writer *writer, const char *const *texts,
                                       uint32_t count)
{
    struct json_object *array = json_object_new_array();
    for (uint32_t i = 0; i < count; i++) {
        push(writer, array, json_object_new_string(texts[i]));
    }
    return array;
}

static struct json_object *analysis_object(struct writer *writer)
{
    const struct lac_analysis *analysis = writer->analysis;
    struct json_object *object = json_object_new_object();
    put_text(writer, object, "schema", "lacuna.analysis/1");
    put(writer, object, "trace", trace_part(writer));
    put(writer, object, "verdict", verdict_part(writer));
    put(writer, object, "throughput", throughput_part(writer));
    put(writer, object, "needs_ns", needs_part(writer));
    put(writer, object, "devices", devices_part(writer));
    put(writer, object, "steps", steps_part(writer));
    put(writer, object, "phases", phases_part(writer));
    put(writer, object, "kernels", kernels_part(writer));
    put(writer, object, "layout", layout_part(writer));
    put(writer, object, "tensor_core", tensor_core_part(writer));
    put(writer, object, "copies", copies_part(writer));
    put(writer, object, "dataloader", dataloader_part(writer));
    put(writer, object, "loading", loading_part(writer));
    put(writer, object, "settings", settings_part(writer));
    put(writer, object, "replay", replay_part(writer));
    if (analysis->has_what_if) {
        put(writer, object, "what_if", what_if_part(writer));
    }
    struct json_object *findings = json_object_new_array();
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        push(writer, findings, finding_object(writer, &analysis->findings[i]));
    }
    put(writer, object, "findings", findings);
    put(writer, object, "plan", plan_array(writer));
    put(writer, object, "checked_fine",
        texts_array(writer, analysis->checked_fine, analysis->checked_fine_count));
    put(writer, object, "not_recorded",
        texts_array(writer, analysis->not_recorded, analysis->not_recorded_count));
    put(writer, object, "caveats", texts_array(writer, analysis->caveats, analysis->caveat_count));
    put_count(writer, object, "name_table_version", lac_names_version());
    return object;
}

/* -- text -------------------------------------------------------------------------------------- */

/** Serialise and free `object`. */
static enum lac_status to_text(struct writer *writer, struct json_object *object, bool is_pretty,
                               char **ret_text, size_t *ret_length)
{
    int flags = JSON_C_TO_STRING_NOSLASHESCAPE |
                (is_pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0);
    size_t length = 0;
    const char *text = object ? json_object_to_json_string_length(object, flags, &length) : NULL;
    char *copy = text && !writer->has_failed ? malloc(length + 1) : NULL;
    if (copy) {
        memcpy(copy, text, length + 1);
    }
    json_object_put(object);
    if (!copy) {
        return LAC_ERR_NOMEM;
    }
    *ret_text = copy;
    if (ret_length) {
        *ret_length = length;
    }
    return LAC_OK;
}

enum lac_status lac_analysis_json(const struct lac_analysed *analysed, bool is_pretty,
                                  char **ret_text, size_t *ret_length)
{
    struct writer writer = {.model = analysed->model, .analysis = analysed->analysis};
    struct json_object *object = analysis_object(&writer);
    return to_text(&writer, object, is_pretty, ret_text, ret_length);
}

/** Text that is JSON already, indented as deep as it stands. */
static int write_raw(struct json_object *object, struct printbuf *out, int level, int flags)
{
    const char *text = json_object_get_userdata(object);
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        length += at[length] == '\n';
        (void)printbuf_memappend(out, at, (int)length);
        at += length;
        for (int i = 0; at[-1] == '\n' && (flags & JSON_C_TO_STRING_PRETTY) && i < level; i++) {
            (void)printbuf_memappend(out, "  ", 2);
        }
    }
    return 0;
}

static struct json_object *raw_object(const char *text)
{
    struct json_object *object = json_object_new_object();
    char *copy = strdup(text);
    if (!object || !copy) {
        json_object_put(object);
        free(copy);
        return NULL;
    }
    json_object_set_serializer(object, write_raw, copy, json_object_free_userdata);
    return object;
}

static struct json_object *rank_object(struct writer *writer, const struct lac_run *run,
                                       const struct lac_run_member *member, uint32_t index,
                                       bool has_analysis)
{
    const struct lac_rank_facts *facts = &run->ranks[index];
    struct json_object *rank = json_object_new_object();
    put(writer, rank, "rank", json_object_new_int64(facts->rank));
    put_text(writer, rank, "host", facts->host);
    if (member->trace_id) {
        put_text(writer, rank, "trace", member->trace_id);
    }
    if (run->collective_count > 0) {
        put_ns(writer, rank, "collective_wait_ns", facts->wait_ns);
        put_ns(writer, rank, "collective_wait_ns_per_step", lac_rank_wait_per_step_ns(facts));
        put_ns(writer, rank, "collective_transfer_ns", facts->transfer_ns);
        put_count(writer, rank, "collectives_entered_last", facts->last_count);
    }
    if (has_analysis && member->document) {
        put(writer, rank, "analysis", raw_object(member->document));
    }
    return rank;
}

enum lac_status lac_run_json(const struct lac_run *run, const struct lac_run_member *members,
                             const struct lac_run_json_options *options, char **ret_text,
                             size_t *ret_length)
{
    struct writer writer = {0};
    struct json_object *object = json_object_new_object();
    struct json_object *array = json_object_new_array();
    put_text(&writer, object, "schema", "lacuna.run/1");
    for (uint32_t i = 0; i < run->rank_count; i++) {
        push(&writer, array, rank_object(&writer, run, &members[i], i, !options->is_brief));
    }
    put(&writer, object, "ranks", array);
    put_count(&writer, object, "collectives_matched", run->collective_count);
    if (run->late != LAC_NONE) {
        put(&writer, object, "late_rank", json_object_new_int64(run->ranks[run->late].rank));
    } else {
        put_null(&writer, object, "late_rank");
    }
    struct json_object *findings = json_object_new_array();
    if (run->has_finding) {
        push(&writer, findings, finding_object(&writer, &run->finding));
    }
    put(&writer, object, "findings", findings);
    put_text(&writer, object, "note", run->note);
    return to_text(&writer, object, options->is_pretty, ret_text, ret_length);
}
