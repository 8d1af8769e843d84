#include "server/json/compare_json.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Four decimals: the same digits on every machine. */
static void put_real(struct lac_json *json, const char *key, double value)
{
    lac_json_real(json, key, isfinite(value) ? round(value * 1e4) / 1e4 : (double)NAN);
}

static void write_side(struct lac_json *json, const char *key, const struct lac_compare_side *side,
                       const char *id)
{
    const struct lac_model *model = side->model;
    const struct lac_analysis *analysis = side->analysis;
    const char letter[2] = {analysis->verdict.letter, '\0'};
    lac_json_open(json, key, '{');
    lac_json_text(json, "id", id);
    lac_json_text(json, "name", lac_model_str(model, model->info.name));
    lac_json_text(json, "format", lac_trace_format_name(model->info.format));
    lac_json_bool(json, "simulated", model->info.is_simulated);
    lac_json_text(json, "subject", lac_workload_kind_name(analysis->workload));
    lac_json_text(json, "cause", analysis->verdict.cause);
    lac_json_text(json, "letter", letter);
    lac_json_text(json, "text", analysis->verdict.text);
    lac_json_uint(json, "steps", analysis->step_count);
    lac_json_uint(json, "kept_steps", analysis->step_kept_count);
    lac_json_ns(json, "step_mean_ns", analysis->step_mean_ns);
    lac_json_ns(json, "step_median_ns", analysis->step_median_ns);
    put_real(json, "step_spread_pct", analysis->step_spread_pct);
    lac_json_ns(json, "batch_size", analysis->batch_size);
    put_real(json, "throughput_per_s", analysis->throughput_per_s);
    lac_json_text(json, "throughput_unit", analysis->throughput_unit);
    put_real(json, "not_computing_pct", lac_not_computing_pct(analysis));
    lac_json_close(json, '}');
}

static void write_change(struct lac_json *json, const struct lac_compare_change *change)
{
    put_real(json, "change_pct", change->pct);
    put_real(json, "low_pct", change->low_pct);
    put_real(json, "high_pct", change->high_pct);
}

static void write_step(struct lac_json *json, const struct lac_compare_side *a,
                       const struct lac_compare_side *b, const struct lac_comparison *it)
{
    int64_t a_ns = a->analysis->step_mean_ns;
    int64_t b_ns = b->analysis->step_mean_ns;
    bool is_known = a_ns != LAC_UNKNOWN_NS && b_ns != LAC_UNKNOWN_NS;
    lac_json_open(json, "step", '{');
    lac_json_text(json, "basis", it->basis == LAC_COMPARE_PER_SAMPLE ? "sample" : "step");
    lac_json_ns(json, "a_ns", a_ns);
    lac_json_ns(json, "b_ns", b_ns);
    is_known = is_known && it->refusal == LAC_COMPARE_COMPARABLE;
    lac_json_ns(json, "delta_ns", is_known ? b_ns - a_ns : LAC_UNKNOWN_NS);
    write_change(json, &it->step);
    put_real(json, "noise_floor_pct", it->noise_floor_pct);
    put_real(json, "rank_test_p", it->rank_test_p);
    if (it->steps_needed > 0) {
        lac_json_uint(json, "steps_for_2_pct", it->steps_needed);
    } else {
        lac_json_null(json, "steps_for_2_pct");
    }
    lac_json_close(json, '}');
    lac_json_open(json, "throughput", '{');
    lac_json_text(json, "unit", it->throughput_unit);
    put_real(json, "a_per_s", it->throughput_per_s[0]);
    put_real(json, "b_per_s", it->throughput_per_s[1]);
    write_change(json, &it->throughput);
    lac_json_close(json, '}');
}

static void write_changed(struct lac_json *json, const struct lac_comparison *it)
{
    lac_json_open(json, "changed", '{');
    lac_json_text(json, "text", it->changed);
    lac_json_uint(json, "count", it->change_count);
    lac_json_bool(json, "one_change", it->is_one_change);
    lac_json_open(json, "differences", '[');
    for (uint32_t i = 0; i < it->difference_count; i++) {
        const struct lac_compare_difference *difference = &it->differences[i];
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "key", difference->key);
        lac_json_text(json, "a", difference->a);
        lac_json_text(json, "b", difference->b);
        lac_json_text(json, "kind", difference->is_setting ? "setting" : "fact");
        lac_json_bool(json, "recorded", difference->is_known);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

static void write_row(struct lac_json *json, const char *name, int64_t a_ns, int64_t b_ns)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "name", name);
    lac_json_int(json, "a_ns", a_ns);
    lac_json_int(json, "b_ns", b_ns);
    lac_json_int(json, "delta_ns", b_ns - a_ns);
    lac_json_close(json, '}');
}

/** ns per step; rows that are 0 on both sides are left out. */
static void write_where(struct lac_json *json, const struct lac_comparison *it)
{
    const struct lac_compare_steps *a = &it->steps[0];
    const struct lac_compare_steps *b = &it->steps[1];
    if (!a->is_known || !b->is_known) {
        lac_json_null(json, "where");
        return;
    }
    lac_json_open(json, "where", '{');
    lac_json_open(json, "partition", '[');
    for (int i = 0; i < LAC_PART_COUNT_; i++) {
        write_row(json, lac_partition_name((enum lac_partition)i), a->part_ns[i], b->part_ns[i]);
    }
    lac_json_close(json, ']');
    lac_json_open(json, "idle_by_cause", '[');
    for (int i = 0; i < LAC_CAUSE_COUNT_; i++) {
        if (a->cause_ns[i] != 0 || b->cause_ns[i] != 0) {
            write_row(json, lac_cause_name((enum lac_cause)i), a->cause_ns[i], b->cause_ns[i]);
        }
    }
    lac_json_close(json, ']');
    lac_json_open(json, "kernel_family", '[');
    for (int i = 0; i < LAC_FAMILY_COUNT_; i++) {
        if (a->family_ns[i] != 0 || b->family_ns[i] != 0) {
            write_row(json, lac_word(LAC_WORDS_FAMILY, (uint32_t)i)->id, a->family_ns[i],
                      b->family_ns[i]);
        }
    }
    lac_json_close(json, ']');
    lac_json_open(json, "operator", '[');
    for (uint32_t i = 0; i < it->operator_count; i++) {
        write_row(json, it->operators[i].name, it->operators[i].a_ns, it->operators[i].b_ns);
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

/** Steps by kind; kinds that neither has are left out. */
static void write_kinds(struct lac_json *json, const struct lac_comparison *it)
{
    lac_json_open(json, "kinds", '[');
    for (int kind = 0; kind < LAC_COMPARE_KIND_COUNT_; kind++) {
        const struct lac_compare_kind_facts *a = &it->kinds[0][kind];
        const struct lac_compare_kind_facts *b = &it->kinds[1][kind];
        if (a->count == 0 && b->count == 0) {
            continue;
        }
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "kind", lac_compare_kind_word((enum lac_compare_kind)kind)->id);
        lac_json_uint(json, "a_count", a->count);
        lac_json_uint(json, "b_count", b->count);
        lac_json_ns(json, "a_mean_ns", a->mean_ns);
        lac_json_ns(json, "b_mean_ns", b->mean_ns);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_result(struct lac_json *json, const struct lac_compare_result_metric *it)
{
    lac_json_open(json, "result", '{');
    lac_json_text(json, "metric", it->name);
    put_real(json, "a", it->value[0]);
    put_real(json, "b", it->value[1]);
    put_real(json, "spread", it->spread);
    if (it->is_known) {
        lac_json_bool(json, "same", it->is_same);
    } else {
        lac_json_null(json, "same");
    }
    lac_json_text(json, "text", it->text);
    lac_json_close(json, '}');
}

static void write_run(struct lac_json *json, const char *key, const struct lac_run *run)
{
    lac_json_open(json, key, '{');
    lac_json_uint(json, "count", run->rank_count);
    lac_json_uint(json, "collectives_matched", run->collective_count);
    if (run->late == LAC_NONE) {
        lac_json_null(json, "late_rank");
        lac_json_null(json, "late_ns_per_step");
    } else {
        lac_json_int(json, "late_rank", run->ranks[run->late].rank);
        lac_json_int(json, "late_ns_per_step", run->finding.cost_ns_per_step);
    }
    lac_json_text(json, "text", run->has_finding ? run->finding.title : run->note);
    lac_json_close(json, '}');
}

static const struct lac_rank_facts *find_rank(const struct lac_run *run, int32_t rank)
{
    for (uint32_t r = 0; r < run->rank_count; r++) {
        if (run->ranks[r].rank == rank) {
            return &run->ranks[r];
        }
    }
    return NULL;
}

/** Both runs, and the ranks that they share side by side; null unless both are runs. */
static void write_ranks(struct lac_json *json, const struct lac_compare_names *names)
{
    if (names == NULL || names->run[0] == NULL || names->run[1] == NULL) {
        lac_json_null(json, "ranks");
        return;
    }
    lac_json_open(json, "ranks", '{');
    write_run(json, "a", names->run[0]);
    write_run(json, "b", names->run[1]);
    lac_json_open(json, "shared", '[');
    for (uint32_t r = 0; r < names->run[0]->rank_count; r++) {
        const struct lac_rank_facts *a = &names->run[0]->ranks[r];
        const struct lac_rank_facts *b = find_rank(names->run[1], a->rank);
        if (b != NULL && find_rank(names->run[0], a->rank) == a) {
            lac_json_open(json, NULL, '{');
            lac_json_int(json, "rank", a->rank);
            lac_json_ns(json, "a_step_mean_ns", a->step_mean_ns);
            lac_json_ns(json, "b_step_mean_ns", b->step_mean_ns);
            lac_json_ns(json, "a_collective_wait_ns", a->wait_ns);
            lac_json_ns(json, "b_collective_wait_ns", b->wait_ns);
            lac_json_ns(json, "a_collective_wait_ns_per_step", lac_rank_wait_per_step_ns(a));
            lac_json_ns(json, "b_collective_wait_ns_per_step", lac_rank_wait_per_step_ns(b));
            lac_json_close(json, '}');
        }
    }
    lac_json_close(json, ']');
    lac_json_close(json, '}');
}

static void write_findings(struct lac_json *json, const char *key,
                           const struct lac_compare_finding *findings, uint32_t count)
{
    lac_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "id", findings[i].id);
        lac_json_text(json, "title", findings[i].title);
        lac_json_text(json, "brief", findings[i].brief);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

static void write_prediction(struct lac_json *json, const struct lac_comparison *it,
                             int64_t achieved_ns)
{
    const struct lac_compare_prediction *prediction = &it->prediction;
    if (prediction->finding == NULL) {
        lac_json_null(json, "predicted");
        return;
    }
    lac_json_open(json, "predicted", '{');
    lac_json_text(json, "finding_id", prediction->finding->id);
    lac_json_text(json, "change", prediction->change);
    lac_json_bool(json, "is_the_change", prediction->is_matched);
    lac_json_open(json, "step_ns", '{');
    lac_json_ns(json, "low", prediction->low_ns);
    lac_json_ns(json, "mid", prediction->mid_ns);
    lac_json_ns(json, "high", prediction->high_ns);
    lac_json_close(json, '}');
    lac_json_ns(json, "achieved_ns", achieved_ns);
    lac_json_bool(json, "within_band", prediction->is_within);
    lac_json_text(json, "text", prediction->text);
    lac_json_close(json, '}');
}

static void write_results(struct lac_json *json, const struct lac_compare_result *results,
                          uint32_t count)
{
    static const char *const names[] = {"no", "yes", "within_noise", "not_measured"};
    if (count == 0) {
        return;
    }
    lac_json_open(json, "conditions", '[');
    for (uint32_t i = 0; i < count; i++) {
        lac_json_open(json, NULL, '{');
        lac_json_text(json, "condition", results[i].condition->text);
        lac_json_text(json, "holds", names[results[i].holds]);
        lac_json_close(json, '}');
    }
    lac_json_close(json, ']');
}

void lac_compare_write_json(struct lac_buffer *out, const struct lac_compare_side *a,
                            const struct lac_compare_side *b,
                            const struct lac_comparison *comparison,
                            const struct lac_compare_names *names,
                            const struct lac_compare_result *results, uint32_t result_count)
{
    struct lac_json json;
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.compare/1");
    write_side(&json, "a", a, names != NULL ? names->id[0] : NULL);
    write_side(&json, "b", b, names != NULL ? names->id[1] : NULL);
    lac_json_text(&json, "verdict", lac_compare_verdict_name(comparison->verdict));
    lac_json_text(&json, "text", comparison->headline);
    lac_json_text(&json, "why_not", comparison->why_not);
    const char *refusal = lac_compare_refusal_name(comparison->refusal);
    if (refusal[0] != '\0') {
        lac_json_text(&json, "refusal", refusal);
    } else {
        lac_json_null(&json, "refusal");
    }
    lac_json_text(&json, "relation", lac_compare_relation_name(comparison->relation));
    lac_json_open(&json, "common", '{');
    put_real(&json, "kernels_pct", comparison->kernels_common_pct);
    put_real(&json, "operators_pct", comparison->operators_common_pct);
    lac_json_close(&json, '}');
    write_step(&json, a, b, comparison);
    write_changed(&json, comparison);
    write_prediction(&json, comparison, b->analysis->step_mean_ns);
    write_result(&json, &comparison->result);
    write_kinds(&json, comparison);
    write_ranks(&json, names);
    write_where(&json, comparison);
    lac_json_open(&json, "findings", '{');
    write_findings(&json, "gone", comparison->gone, comparison->gone_count);
    write_findings(&json, "come", comparison->come, comparison->come_count);
    write_findings(&json, "stayed", comparison->stayed, comparison->stayed_count);
    lac_json_close(&json, '}');
    write_results(&json, results, result_count);
    lac_json_close(&json, '}');
}
