#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "server/json/analysis_parts.h"
#include "server/json/json_out.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static void write_evidence(struct lac_json *json, const struct lac_finding *finding)
{
    lac_json_open(json, "evidence", '[');
    for (uint32_t i = 0; i < finding->evidence_count; i++) {
        const struct lac_evidence *evidence = &finding->evidence[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "track", evidence->track_name);
        lac_json_ns(json, "t0_ns", evidence->t0_ns);
        lac_json_ns(json, "t1_ns", evidence->t1_ns);
        lac_json_text(json, "text", evidence->text);
        lac_json_optional(json, "slice",
                          evidence->slice == LAC_NONE ? -1 : (int64_t)evidence->slice);
        lac_json_optional(json, "track_index",
                          evidence->track == LAC_NONE ? -1 : (int64_t)evidence->track);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

void lac_json_finding(struct lac_json *json, const struct lac_finding *finding)
{
    const bool has_change = finding->change[0] != '\0';
    const enum lac_cause cause = lac_finding_type(finding->kind)->cause;
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "id", finding->id);
    lac_json_text(json, "severity", lac_severity_name(finding->severity));
    lac_json_ns(json, "cost_ns_per_step", finding->cost_ns_per_step);
    lac_json_decimals(json, "cost_pct", finding->cost_pct);
    lac_json_open(json, "parts_ns", '{');
    for (uint32_t part = 0; part < LAC_TIME_PART_COUNT; part++) {
        if (finding->part_ns[part] > 0) {
            lac_json_int(json, lac_time_part_name(part), finding->part_ns[part]);
        }
    }
    lac_json_close(json, '}');
    lac_json_open(json, "gain_pct", '{');
    lac_json_decimals(json, "low", finding->gain_low_pct);
    lac_json_decimals(json, "mid", finding->gain_mid_pct);
    lac_json_decimals(json, "high", finding->gain_high_pct);
    lac_json_close(json, '}');
    lac_json_open(json, "step_ns", '{');
    lac_json_ns(json, "low", finding->step_low_ns);
    lac_json_ns(json, "mid", finding->step_mid_ns);
    lac_json_ns(json, "high", finding->step_high_ns);
    lac_json_close(json, '}');
    lac_json_decimals(json, "confidence", finding->confidence);
    lac_json_text(json, "title", finding->title);
    lac_json_text(json, "why", finding->why);
    lac_json_text(json, "cause", cause < LAC_CAUSE_COUNT_ ? lac_cause_name(cause) : "gpu");
    lac_json_text(json, "change", finding->change);
    lac_json_text(json, "change_kind",
                  has_change ? lac_change_kind_name(finding->change_kind) : NULL);
    lac_json_text(json, "effort", has_change ? lac_effort_name(finding->effort) : NULL);
    lac_json_text(json, "where", finding->where);
    lac_json_text(json, "brief", finding->brief);
    lac_json_text(json, "expect", finding->expect);
    lac_json_text(json, "costs", finding->costs);
    lac_json_text(json, "wrong_if", finding->wrong_if);
    lac_json_text(json, "check", finding->check);
    write_evidence(json, finding);
    lac_json_close(json, '}');
}

void lac_document_findings(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    lac_json_open(json, "findings", '[');
    for (uint32_t i = 0; i < document->analysis->finding_count; i++) {
        lac_json_finding(json, &document->analysis->findings[i]);
    }
    lac_json_close(json, ']');
}

void lac_document_plan(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    lac_json_open(json, "plan", '[');
    for (uint32_t i = 0; i < document->analysis->plan_count; i++) {
        const struct lac_plan_step *step = &document->analysis->plan[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "brief", step->brief);
        lac_json_ns(json, "step_ns", step->step_ns);
        lac_json_decimals(json, "gain_pct", step->gain_pct);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_changes(struct lac_json *json, const struct lac_what_if_changes *changes)
{
    const struct {
        const char *key;
        int8_t is_set;
        int value;
    } switches[] = {
        {"pinned", changes->pinned, 1},    {"async", changes->async_copies, 1},
        {"sync", changes->no_sync, 0},     {"allocator", changes->no_allocator, 0},
        {"launch", changes->no_launch, 0}, {"module_load", changes->no_module_load, 0},
    };
    lac_json_open(json, "changes", '{');
    if (changes->workers != LAC_WHAT_IF_UNSET) {
        lac_json_int(json, "workers", changes->workers);
    }
    if (changes->layout_nhwc == 1) {
        lac_json_text(json, "layout", "nhwc");
    }
    for (size_t i = 0; i < LAC_COUNT_OF(switches); i++) {
        if (switches[i].is_set == 1) {
            lac_json_int(json, switches[i].key, switches[i].value);
        }
    }
    if (changes->comm >= 0.0) {
        lac_json_decimals(json, "comm", changes->comm);
    }
    if (changes->kernels >= 0.0) {
        lac_json_decimals(json, "kernels", changes->kernels);
    }
    lac_json_close(json, '}');
}

static void write_step(struct lac_json *json, const struct lac_what_if_step *step)
{
    lac_json_ns(json, "step_mean_ns", step->mean_ns);
    lac_json_ns(json, "step_low_ns", step->low_ns);
    lac_json_ns(json, "step_high_ns", step->high_ns);
}

/** On what an answer stands, or why there is none. */
static void write_grounds(struct lac_json *json, const char *assumption, const char *why_not)
{
    lac_json_text(json, "assumption", assumption);
    if (why_not[0] != '\0') {
        lac_json_text(json, "why_not", why_not);
    } else {
        lac_json_null(json, "why_not");
    }
}

void lac_document_what_if(struct lac_analysis_out *document)
{
    struct lac_json *json = &document->json;
    const struct lac_analysis *analysis = document->analysis;
    if (!analysis->has_what_if) {
        return;
    }
    lac_json_open(json, "what_if", '{');
    write_changes(json, &analysis->what_if);
    write_step(json, &analysis->what_if_step);
    lac_json_ns(json, "step_median_ns", analysis->what_if_median_ns);
    write_grounds(json, analysis->what_if_assumption, analysis->what_if_why_not);
    lac_json_close(json, '}');
}

void lac_json_run_what_if(struct lac_json *json, const struct lac_what_if_changes *changes,
                          const struct lac_run_what_if *what_if)
{
    lac_json_open(json, "what_if", '{');
    write_changes(json, changes);
    lac_json_ns(json, "step_now_ns", what_if->now_ns);
    write_step(json, &what_if->step);
    write_grounds(json, what_if->assumption, what_if->why_not);
    lac_json_close(json, '}');
}
