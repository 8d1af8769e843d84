#include "analysis/compare/compare.h"

#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/status.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lac_compare_verdict_name(enum lac_compare_verdict verdict)
{
    static const char *const names[] = {"unknown", "faster", "slower", "same", "too_few"};
    return names[verdict];
}

/** "12 %", "0.4 %": two digits and a sign of its own, for changes. */
static struct lac_text32 say_size(double pct)
{
    struct lac_text32 said;
    double size = fabs(pct);
    int decimals = size < 0.95 ? 2 : size < 9.5 ? 1 : 0;
    (void)snprintf(said.text, sizeof(said.text), "%.*f", decimals, size);
    return said;
}

static void say_same(struct lac_comparison *comparison, uint32_t kept)
{
    struct lac_text **texts = &comparison->texts;
    if (comparison->step.pct == 0.0 && comparison->noise_floor_pct <= 0.1) {
        comparison->headline = lac_texts_add(texts, "no difference: the steps take the same time");
    } else if (comparison->steps_needed > 0) {
        comparison->headline =
            lac_texts_add(texts,
                          "no measurable difference: %u steps resolve %s %% or more (%u steps "
                          "would resolve 2 %%)",
                          (unsigned)kept, say_size(comparison->noise_floor_pct).text,
                          (unsigned)comparison->steps_needed);
    } else {
        comparison->headline =
            lac_texts_add(texts, "no measurable difference: %u steps resolve %s %% or more",
                          (unsigned)kept, say_size(comparison->noise_floor_pct).text);
    }
}

static void say_headline(const struct lac_compare_side *a, const struct lac_compare_side *b,
                         struct lac_comparison *comparison)
{
    struct lac_text **texts = &comparison->texts;
    uint32_t kept_a = a->analysis->step_kept_count;
    uint32_t kept_b = b->analysis->step_kept_count;
    const struct lac_compare_change *change = &comparison->step;
    const char *what = comparison->basis == LAC_COMPARE_PER_SAMPLE ? "sample" : "step";
    bool is_faster = change->pct < 0.0;
    switch (comparison->verdict) {
    case LAC_COMPARE_UNKNOWN:
        comparison->headline = lac_texts_add(texts, "cannot be compared: %s", comparison->why_not);
        return;
    case LAC_COMPARE_TOO_FEW:
        comparison->headline =
            fabs(change->pct) < 0.05
                ? lac_texts_add(texts,
                                "B takes the same time per %s, but %u and %u steps are too few for "
                                "a noise test",
                                what, (unsigned)kept_a, (unsigned)kept_b)
                : lac_texts_add(texts,
                                "B takes %s %% %s time per %s, but %u and %u steps are too few for "
                                "a noise test",
                                say_size(change->pct).text, is_faster ? "less" : "more", what,
                                (unsigned)kept_a, (unsigned)kept_b);
        return;
    case LAC_COMPARE_SAME:
        say_same(comparison, kept_a < kept_b ? kept_a : kept_b);
        return;
    case LAC_COMPARE_FASTER:
    case LAC_COMPARE_SLOWER: {
        bool is_by_ranks = change->low_pct <= 0.0 && change->high_pct >= 0.0;
        double near_pct = is_faster ? change->high_pct : change->low_pct;
        double far_pct = is_faster ? change->low_pct : change->high_pct;
        char band[80] = "";
        if (!is_by_ranks && strcmp(say_size(near_pct).text, say_size(far_pct).text) != 0) {
            (void)snprintf(band, sizeof(band), "%s-%s %%, ", say_size(near_pct).text,
                           say_size(far_pct).text);
        }
        comparison->headline = lac_texts_add(
            texts, "B takes %s %% %s time per %s (%s%u and %u steps), more than noise%s",
            say_size(change->pct).text, is_faster ? "less" : "more", what, band, (unsigned)kept_a,
            (unsigned)kept_b, is_by_ranks ? " by the order of their steps" : "");
        return;
    }
    }
}

static void compare_throughput(const struct lac_analysis *a, const struct lac_analysis *b,
                               struct lac_comparison *comparison)
{
    bool is_same_unit = strcmp(a->throughput_unit, b->throughput_unit) == 0;
    comparison->throughput_unit =
        lac_texts_add(&comparison->texts, "%s", is_same_unit ? a->throughput_unit : "steps");
    const struct lac_analysis *sides[] = {a, b};
    for (int i = 0; i < 2; i++) {
        bool has_steps = sides[i]->step_mean_ns != LAC_UNKNOWN_NS && sides[i]->step_mean_ns > 0 &&
                         isfinite(sides[i]->throughput_per_s);
        const double steps_per_s = has_steps ? 1e9 / (double)sides[i]->step_mean_ns : (double)NAN;
        const bool is_samples = strcmp(comparison->throughput_unit, "samples") == 0;
        comparison->throughput_per_s[i] =
            is_samples     ? steps_per_s * lac_compare_samples(sides[i], sides[1 - i])
            : is_same_unit ? sides[i]->throughput_per_s
                           : steps_per_s;
    }
}

static enum lac_status compare(const struct lac_compare_side *a, const struct lac_compare_side *b,
                               struct lac_comparison *comparison)
{
    const struct lac_compare_side sides[] = {*a, *b};
    comparison->headline = comparison->changed = comparison->prediction.text = "";
    enum lac_status status = lac_compare_programs(sides, comparison);
    if (status) {
        return status;
    }
    lac_compare_relate(sides, comparison);
    compare_throughput(a->analysis, b->analysis, comparison);
    status = lac_compare_noise(a, b, comparison);
    bool is_comparable = comparison->refusal == LAC_COMPARE_COMPARABLE;
    for (int i = 0; i < 2 && is_comparable; i++) {
        comparison->steps[i] = sides[i].facts->steps;
        lac_compare_kinds(&sides[i], comparison->kinds[i]);
    }
    if (!status && is_comparable) {
        status = lac_compare_operators(a->facts, b->facts, comparison);
    }
    lac_compare_outcome(a->facts, b->facts, comparison);
    if (comparison->refusal == LAC_COMPARE_DIFFERENT_PROGRAMS) { /* nothing beyond that is meant */
        comparison->changed = "another program";
        say_headline(a, b, comparison);
        return status ? status : lac_texts_failed(comparison->texts) ? LAC_ERR_NOMEM : LAC_OK;
    }
    if (!status) {
        status = lac_compare_differences(a, b, comparison);
    }
    if (!status) {
        lac_compare_findings(a, b, comparison);
        lac_compare_say_changed(comparison);
        say_headline(a, b, comparison);
        status = lac_texts_failed(comparison->texts) ? LAC_ERR_NOMEM : LAC_OK;
    }
    return status;
}

enum lac_status lac_compare(const struct lac_compare_side *a, const struct lac_compare_side *b,
                            struct lac_comparison **ret_comparison)
{
    assert(a != NULL && b != NULL && ret_comparison != NULL);
    struct lac_compare_side sides[] = {*a, *b};
    struct lac_compare_facts *made[2] = {NULL, NULL};
    struct lac_comparison *comparison = calloc(1, sizeof(*comparison));
    enum lac_status status = comparison != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (int i = 0; i < 2 && !status; i++) {
        if (sides[i].facts == NULL) {
            status = lac_compare_facts_create(sides[i].model, sides[i].analysis, &made[i]);
            sides[i].facts = made[i];
        }
    }
    if (!status) {
        status = compare(&sides[0], &sides[1], comparison);
    }
    lac_compare_facts_destroy(made[0]);
    lac_compare_facts_destroy(made[1]);
    if (status) {
        lac_comparison_destroy(comparison);
        return status;
    }
    *ret_comparison = comparison;
    return LAC_OK;
}

void lac_comparison_destroy(struct lac_comparison *comparison)
{
    if (comparison != NULL) {
        lac_texts_destroy(comparison->texts);
        free(comparison);
    }
}
