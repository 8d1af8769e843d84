/* Findings gone, come and stayed, and whether what A's finding predicted came true. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/compare/compare_thresholds.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/saturate.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/result/vocabulary.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* numbers of workers that a job may have, where it is not known how many */
enum { ANY_WORKERS_MAX = 16 };

static void put(struct lac_comparison *comparison, struct lac_compare_finding *list,
                uint32_t *count, const struct lac_finding *finding)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i].kind == finding->kind) {
            return;
        }
    }
    list[(*count)++] = (struct lac_compare_finding){
        .kind = finding->kind,
        .id = lac_texts_add(&comparison->texts, "%s", finding->id),
        .title = lac_texts_add(&comparison->texts, "%s", finding->title),
        .brief = lac_texts_add(&comparison->texts, "%s", finding->brief),
    };
}

static void sort_findings(const struct lac_analysis *a, const struct lac_analysis *b,
                          struct lac_comparison *comparison)
{
    for (uint32_t i = 0; i < a->finding_count; i++) {
        if (lac_finding_of(b, a->findings[i].kind) == NULL) {
            put(comparison, comparison->gone, &comparison->gone_count, &a->findings[i]);
        }
    }
    for (uint32_t i = 0; i < b->finding_count; i++) {
        if (lac_finding_of(a, b->findings[i].kind) != NULL) {
            put(comparison, comparison->stayed, &comparison->stayed_count, &b->findings[i]);
        } else {
            put(comparison, comparison->come, &comparison->come_count, &b->findings[i]);
        }
    }
}

/* -- predicted against achieved --------------------------------------------------------------- */

/** "1 or more (how many is not recorded)": it differs, but its value is not known. */
static bool is_vague(const struct lac_compare_difference *difference)
{
    return strstr(difference->a, "not recorded") != NULL ||
           strstr(difference->b, "not recorded") != NULL;
}

/** A's finding whose advice changes a setting that differs. */
static const struct lac_finding *matched(const struct lac_analysis *a,
                                         const struct lac_comparison *comparison,
                                         const struct lac_compare_difference **ret_difference)
{
    for (uint32_t f = 0; f < a->finding_count; f++) {
        for (uint32_t d = 0; d < comparison->difference_count; d++) {
            const struct lac_compare_difference *difference = &comparison->differences[d];
            bool is_ours = difference->is_setting && difference->is_known &&
                           a->findings[f].step_mid_ns != LAC_UNKNOWN_NS &&
                           a->findings[f].brief[0] != '\0';
            if (is_ours && lac_finding_advises(a->findings[f].kind, difference->key)) {
                *ret_difference = difference;
                return &a->findings[f];
            }
        }
    }
    return NULL;
}

/** The prediction for any number of workers, where all make the same step. */
static bool retime_any(const struct lac_analysis *a, struct lac_comparison *comparison)
{
    struct lac_compare_prediction *prediction = &comparison->prediction;
    int64_t low_ns = INT64_MAX;
    int64_t high_ns = 0;
    int64_t shortest_ns = INT64_MAX;
    int64_t longest_ns = 0;
    for (uint32_t w = 0; w < a->worker_step_count; w++) {
        const struct lac_worker_step *step = &a->worker_steps[w];
        if (w >= ANY_WORKERS_MAX) {
            break;
        }
        if (step->mid_ns == LAC_UNKNOWN_NS) {
            return false;
        }
        low_ns = step->low_ns < low_ns ? step->low_ns : low_ns;
        high_ns = step->high_ns > high_ns ? step->high_ns : high_ns;
        shortest_ns = step->mid_ns < shortest_ns ? step->mid_ns : shortest_ns;
        longest_ns = step->mid_ns > longest_ns ? step->mid_ns : longest_ns;
    }
    bool are_alike = longest_ns > 0 &&
                     (double)(longest_ns - shortest_ns) <= WORKERS_ALIKE_MAX * (double)longest_ns;
    if (are_alike) {
        prediction->low_ns = low_ns;
        prediction->mid_ns = longest_ns;
        prediction->high_ns = high_ns;
        prediction->change = "num_workers=1 or more";
    }
    return are_alike;
}

/** The change as it was made, replayed on A: advice may name another value than what was set.
 *  @return false when it is not known what was set, and it matters */
static bool retime(const struct lac_analysis *a, const struct lac_compare_difference *difference,
                   struct lac_comparison *comparison)
{
    struct lac_compare_prediction *prediction = &comparison->prediction;
    if (is_vague(difference)) {
        return strcmp(difference->key, "num_workers") == 0 && retime_any(a, comparison);
    }
    long workers = strtol(difference->b, NULL, 10);
    if (strcmp(difference->key, "num_workers") != 0 || workers <= 0 ||
        workers > (long)a->worker_step_count || workers == a->loader.recommended_num_workers) {
        return true;
    }
    const struct lac_worker_step *step = &a->worker_steps[workers - 1];
    if (step->mid_ns != LAC_UNKNOWN_NS) {
        prediction->low_ns = step->low_ns;
        prediction->mid_ns = step->mid_ns;
        prediction->high_ns = step->high_ns;
        prediction->change = lac_texts_add(&comparison->texts, "num_workers=%ld", workers);
    }
    return true;
}

/** What grew, when the step came out longer than predicted. */
static const char *what_grew(const struct lac_comparison *comparison, int64_t *ret_grown_ns)
{
    const struct lac_compare_steps *a = &comparison->steps[0];
    const struct lac_compare_steps *b = &comparison->steps[1];
    uint32_t most = 0;
    *ret_grown_ns = 0;
    for (uint32_t part = 0; part < LAC_PART_COUNT_; part++) {
        int64_t grown_ns = b->part_ns[part] - a->part_ns[part];
        if (grown_ns > *ret_grown_ns) {
            *ret_grown_ns = grown_ns;
            most = part;
        }
    }
    return lac_word(LAC_WORDS_PART, most)->label;
}

/** "370 ms (370-378)": the band in the unit of its middle. */
static void say_band(const struct lac_compare_prediction *it, char *out, size_t capacity_bytes)
{
    struct lac_text32 mid = lac_format_ns(it->mid_ns);
    struct lac_text32 low = lac_format_ns(it->low_ns);
    struct lac_text32 high = lac_format_ns(it->high_ns);
    char *unit_low = strrchr(low.text, ' ');
    const char *unit_mid = strrchr(mid.text, ' ');
    const char *unit_high = strrchr(high.text, ' ');
    if (strcmp(low.text, high.text) == 0) {
        (void)snprintf(out, capacity_bytes, "%s", mid.text);
        return;
    }
    bool is_one_unit = unit_low != NULL && unit_mid != NULL && unit_high != NULL &&
                       strcmp(unit_low, unit_mid) == 0 && strcmp(unit_high, unit_mid) == 0;
    if (is_one_unit) {
        *unit_low = '\0';
        high.text[unit_high - high.text] = '\0';
    }
    (void)snprintf(out, capacity_bytes, "%s (%s-%s)", mid.text, low.text, high.text);
}

static const char *prediction_text(struct lac_comparison *comparison, int64_t achieved_ns)
{
    struct lac_compare_prediction *it = &comparison->prediction;
    char missed[160] = "";
    char band[128];
    if (!it->is_matched) {
        say_band(it, band, sizeof(band));
        return lac_texts_add(&comparison->texts,
                             "predicted %s for this change alone, achieved %s with %u changes",
                             band, lac_format_ns(achieved_ns).text, comparison->change_count);
    }
    int64_t grown_ns = 0;
    const char *grown = what_grew(comparison, &grown_ns);
    bool is_explained = comparison->steps[0].is_known && comparison->steps[1].is_known &&
                        achieved_ns > it->high_ns && grown_ns > achieved_ns / 50;
    if (!it->is_within && is_explained) {
        (void)snprintf(missed, sizeof(missed), ": %s grew by %s per step", grown,
                       lac_format_ns(grown_ns).text);
    }
    say_band(it, band, sizeof(band));
    return lac_texts_add(&comparison->texts, "predicted %s, achieved %s: %s%s", band,
                         lac_format_ns(achieved_ns).text,
                         it->is_within              ? "within the band, it came true"
                         : achieved_ns < it->low_ns ? "better than the band"
                                                    : "missed",
                         missed);
}

/** Whether that change of A's plan was made; the differences that it covers are marked. */
static bool is_made(const struct lac_plan_step *step, const struct lac_comparison *comparison,
                    bool *is_covered)
{
    bool found = false;
    for (uint32_t d = 0; d < comparison->difference_count; d++) {
        const struct lac_compare_difference *difference = &comparison->differences[d];
        bool is_too_few = strcmp(difference->key, "num_workers") == 0 &&
                          strtol(difference->b, NULL, 10) < step->workers;
        if (difference->is_setting && difference->is_known && !is_vague(difference) &&
            !is_too_few && lac_finding_advises(step->kind, difference->key)) {
            is_covered[d] = found = true;
        }
    }
    return found;
}

/** How many changes of A's plan were made, from its first on; 0 where anything else was changed
 *  too. */
static uint32_t planned(const struct lac_analysis *a, const struct lac_comparison *comparison)
{
    bool is_covered[LAC_COMPARE_DIFFERENCES_MAX] = {false};
    uint32_t made = 0;
    while (made < a->plan_count && is_made(&a->plan[made], comparison, is_covered)) {
        made++;
    }
    for (uint32_t d = 0; d < comparison->difference_count; d++) {
        if (comparison->differences[d].is_known && !is_covered[d]) {
            return 0;
        }
    }
    return comparison->differences_beyond == 0 ? made : 0;
}

/** Whether none of the first `count` changes of the plan behind that one is of the same finding. */
static bool is_last_of_kind(const struct lac_analysis *a, uint32_t step, uint32_t count)
{
    for (uint32_t i = step + 1; i < count; i++) {
        if (a->plan[i].kind == a->plan[step].kind) {
            return false;
        }
    }
    return true;
}

/** The step with the first `count` changes of the plan, of several of one finding the last:
 *  "channels-last, num_workers=7". Its band is as wide as those of their findings together. */
static void retime_plan(const struct lac_analysis *a, uint32_t count,
                        struct lac_comparison *comparison)
{
    struct lac_compare_prediction *it = &comparison->prediction;
    const char *changes = "";
    double low = (double)a->plan[count - 1].step_ns;
    double high = low;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_last_of_kind(a, i, count)) {
            continue;
        }
        changes = lac_texts_add(&comparison->texts, "%s%s%s", changes,
                                changes[0] != '\0' ? ", " : "", a->plan[i].brief);
        const struct lac_finding *finding = lac_finding_of(a, a->plan[i].kind);
        if (finding != NULL && finding->step_mid_ns != LAC_UNKNOWN_NS && finding->step_mid_ns > 0) {
            low *= (double)finding->step_low_ns / (double)finding->step_mid_ns;
            high *= (double)finding->step_high_ns / (double)finding->step_mid_ns;
        }
    }
    it->change = changes;
    it->low_ns = lac_round(low);
    it->mid_ns = a->plan[count - 1].step_ns;
    it->high_ns = lac_round(high);
}

/** Whether all that differs is what the finding advised. */
static bool is_one_piece(const struct lac_finding *finding, const struct lac_comparison *comparison)
{
    if (comparison->relation != LAC_COMPARE_RUNS) {
        return false; /* nobody changed anything */
    }
    for (uint32_t d = 0; d < comparison->difference_count; d++) {
        const struct lac_compare_difference *difference = &comparison->differences[d];
        if (difference->is_setting && (!difference->is_known || is_vague(difference))) {
            return false; /* a side is not recorded: it may be more than one */
        }
    }
    if (comparison->change_count <= 1) {
        return comparison->change_count == 1;
    }
    for (uint32_t d = 0; d < comparison->difference_count; d++) {
        const struct lac_compare_difference *difference = &comparison->differences[d];
        bool is_advised = finding != NULL && difference->is_setting &&
                          lac_finding_advises(finding->kind, difference->key);
        if (difference->is_known && !is_advised) {
            return false;
        }
    }
    return comparison->differences_beyond == 0;
}

static void predict(const struct lac_compare_side *a, const struct lac_compare_side *b,
                    struct lac_comparison *comparison)
{
    struct lac_compare_prediction *it = &comparison->prediction;
    const struct lac_compare_difference *difference = NULL;
    int64_t achieved_ns = b->analysis->step_mean_ns;
    *it = (struct lac_compare_prediction){.low_ns = LAC_UNKNOWN_NS,
                                          .mid_ns = LAC_UNKNOWN_NS,
                                          .high_ns = LAC_UNKNOWN_NS,
                                          .text = "",
                                          .change = ""};
    bool can_tell = comparison->verdict != LAC_COMPARE_UNKNOWN &&
                    comparison->verdict != LAC_COMPARE_TOO_FEW && comparison->why_not[0] == '\0' &&
                    comparison->basis == LAC_COMPARE_PER_STEP && achieved_ns != LAC_UNKNOWN_NS;
    comparison->is_one_change = is_one_piece(NULL, comparison);
    if (!can_tell) {
        return;
    }
    const struct lac_finding *finding = matched(a->analysis, comparison, &difference);
    comparison->is_one_change = is_one_piece(finding, comparison);
    if (finding == NULL || comparison->relation != LAC_COMPARE_RUNS) {
        return; /* a prediction is judged only where its change was made */
    }
    it->change = lac_texts_add(&comparison->texts, "%s", finding->brief);
    it->low_ns = finding->step_low_ns;
    it->mid_ns = finding->step_mid_ns;
    it->high_ns = finding->step_high_ns;
    if (!retime(a->analysis, difference, comparison)) {
        return;
    }
    bool is_several = !comparison->is_one_change && comparison->change_count > 1;
    uint32_t made = is_several ? planned(a->analysis, comparison) : 0;
    if (made > 0) {
        retime_plan(a->analysis, made, comparison);
    }
    double achieved = (double)achieved_ns;
    it->finding = finding;
    it->is_matched = !is_several || made > 0;
    it->is_within = achieved >= 0.99 * (double)it->low_ns && achieved <= 1.01 * (double)it->high_ns;
    it->text = prediction_text(comparison, achieved_ns);
}

void lac_compare_findings(const struct lac_compare_side *a, const struct lac_compare_side *b,
                          struct lac_comparison *comparison)
{
    sort_findings(a->analysis, b->analysis, comparison);
    predict(a, b, comparison);
}
