/* Conditions for scripts: "step_time>+3%". */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Shares of a step come after these two: first the parts, then the causes. */
enum { METRIC_STEP_TIME = 0, METRIC_THROUGHPUT, METRIC_NOT_COMPUTING, METRIC_PARTS };
enum { METRIC_CAUSES = METRIC_PARTS + LAC_PART_COUNT_ };
enum { METRIC_COUNT = METRIC_CAUSES + LAC_CAUSE_COUNT_ };

static const char *metric_name(int metric)
{
    static const char *const own[] = {"step_time", "throughput", "not_computing"};
    return metric < METRIC_PARTS ? own[metric]
           : metric < METRIC_CAUSES
               ? lac_partition_name((enum lac_partition)(metric - METRIC_PARTS))
               : lac_cause_name((enum lac_cause)(metric - METRIC_CAUSES));
}

static enum lac_status parse_metric(const char *text, size_t length,
                                    struct lac_compare_condition *condition,
                                    struct lac_error *reterr)
{
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const char *name = metric_name(metric);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            condition->metric = metric;
            return LAC_OK;
        }
    }
    return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                    "'%.*s' is not a metric; use step_time, throughput, idle, not_computing, "
                    "compute, exposed_comm, exposed_copy, or a cause such as data_wait",
                    (int)(length < 40 ? length : 40), text);
}

/** A time in ns from its unit, or NaN. */
static double time_ns(double value, const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    for (size_t i = 0; i < LAC_COUNT_OF(units); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            return value * units[i].ns;
        }
    }
    return (double)NAN;
}

static enum lac_status parse_value(const char *text, struct lac_compare_condition *condition,
                                   struct lac_error *reterr)
{
    char *end = NULL;
    condition->value = strtod(text, &end);
    bool is_number = end != text && isfinite(condition->value) &&
                     strspn(text, "+-.0123456789eE") >= (size_t)(end - text);
    condition->is_change = strcmp(end, "%") == 0;
    if (is_number && condition->metric == METRIC_STEP_TIME && !condition->is_change) {
        condition->value = time_ns(condition->value, end);
        if (!isfinite(condition->value)) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                            "'%.40s': a step time needs a unit (300ms) or is a change (+3%%)",
                            condition->text);
        }
        return LAC_OK;
    }
    if (!is_number || (*end != '\0' && !condition->is_change)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "'%.40s': '%.20s' is not a value; give one such as +3%% or 300ms",
                        condition->text, text);
    }
    return LAC_OK;
}

static enum lac_status parse_one(const char *text, size_t length,
                                 struct lac_compare_condition *condition, struct lac_error *reterr)
{
    *condition = (struct lac_compare_condition){0};
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') {
            continue;
        }
        if (used + 1 == sizeof(condition->text)) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "a condition has at most %zu characters",
                            sizeof(condition->text) - 1);
        }
        condition->text[used++] = text[i];
    }
    size_t name = strcspn(condition->text, "<>");
    if (name == 0 || condition->text[name] == '\0') {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "'%.40s' is not a condition; give METRIC, then > >= < or <=, then a value: "
                        "step_time>+3%%",
                        condition->text);
    }
    const char *at = condition->text + name;
    condition->is_greater = *at++ == '>';
    condition->has_equal = *at == '=';
    at += condition->has_equal;
    enum lac_status status = parse_metric(condition->text, name, condition, reterr);
    return status ? status : parse_value(at, condition, reterr);
}

enum lac_status lac_compare_conditions_parse(const char *text,
                                             struct lac_compare_condition *conditions,
                                             uint32_t *ret_count, struct lac_error *reterr)
{
    assert(text != NULL && conditions != NULL && ret_count != NULL);
    uint32_t count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (count == LAC_COMPARE_CONDITIONS_MAX) {
            return lac_fail(reterr, LAC_ERR_MISUSE, 0, "at most %d conditions",
                            LAC_COMPARE_CONDITIONS_MAX);
        }
        enum lac_status status = parse_one(at, length, &conditions[count], reterr);
        if (status) {
            return status;
        }
        count++;
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    *ret_count = count;
    return LAC_OK;
}

/** Share of the step in percent. */
static double share_pct(int metric, const struct lac_compare_steps *steps)
{
    int64_t sum_ns = 0;
    for (int part = 0; part < LAC_PART_COUNT_; part++) {
        sum_ns += steps->part_ns[part];
    }
    if (!steps->is_known || sum_ns <= 0) {
        return (double)NAN;
    }
    int64_t ns = metric == METRIC_NOT_COMPUTING ? sum_ns - steps->part_ns[LAC_PART_COMPUTE]
                 : metric < METRIC_CAUSES       ? steps->part_ns[metric - METRIC_PARTS]
                                                : steps->cause_ns[metric - METRIC_CAUSES];
    return 100.0 * (double)ns / (double)sum_ns;
}

static double value_of(const struct lac_compare_condition *condition,
                       const struct lac_comparison *comparison, const struct lac_analysis *b)
{
    switch (condition->metric) {
    case METRIC_STEP_TIME:
        return condition->is_change                ? comparison->step.pct
               : b->step_mean_ns == LAC_UNKNOWN_NS ? (double)NAN
                                                   : (double)b->step_mean_ns;
    case METRIC_THROUGHPUT:
        return condition->is_change ? comparison->throughput.pct : comparison->throughput_per_s[1];
    default: {
        double pct = share_pct(condition->metric, &comparison->steps[1]);
        return condition->is_change ? pct - share_pct(condition->metric, &comparison->steps[0])
                                    : pct;
    }
    }
}

enum lac_compare_holds lac_compare_condition_holds(const struct lac_compare_condition *condition,
                                                   const struct lac_comparison *comparison,
                                                   const struct lac_compare_side *b)
{
    assert(condition != NULL && comparison != NULL && b != NULL);
    double value = value_of(condition, comparison, b->analysis);
    if (!isfinite(value)) {
        return LAC_COMPARE_HOLDS_UNKNOWN;
    }
    bool holds = condition->is_greater ? value > condition->value : value < condition->value;
    holds = holds || (condition->has_equal && value == condition->value);
    bool is_tested = condition->is_change && condition->metric <= METRIC_THROUGHPUT;
    if (holds && is_tested && comparison->verdict != LAC_COMPARE_FASTER &&
        comparison->verdict != LAC_COMPARE_SLOWER) {
        /* "no worse than" holds by being equal too: only a claimed difference needs to be real */
        bool claims_difference =
            condition->is_greater ? condition->value >= 0.0 : condition->value <= 0.0;
        return claims_difference ? LAC_COMPARE_HOLDS_IN_NOISE : LAC_COMPARE_HOLDS;
    }
    return holds ? LAC_COMPARE_HOLDS : LAC_COMPARE_HOLDS_NOT;
}
