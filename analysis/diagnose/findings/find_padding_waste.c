/* Padding: positions of a batch that carry nothing. Only where the hook, or the
 * job, counted them. */

#include "analysis/diagnose/findings/findings.h"
#include "analysis/diagnose/loading/loading.h"

#include <stddef.h>
#include <stdint.h>

enum { COUNTED_FOR_ADVICE = 8 };

/** Why we think so, or NULL when too little was counted. */
static const char *say_why(const struct lac_facts *facts)
{
    struct lac_text **texts = &facts->analysis->texts;
    const char *cost = "GEMMs and elementwise kernels spend as much time on padding as on data.";
    struct lac_padding counted = lac_padding_count(facts);
    if (counted.batches == 0) {
        return lac_texts_add(texts, "Counted by the job itself. %s", cost);
    }
    if (counted.batches < COUNTED_FOR_ADVICE) {
        return NULL;
    }
    double positions = counted.positions / (double)counted.batches;
    return lac_texts_add(
        texts, "In %s, %.0f of %.0f positions on average are padding (by mask or lengths). %s",
        lac_format_count((int64_t)counted.batches, "batch").text,
        positions * facts->analysis->padding_pct / 100.0, positions, cost);
}

bool lac_find_padding_waste(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const char *why = analysis->padding_pct >= PADDING_PCT_MIN ? say_why(facts) : NULL;
    if (why == NULL) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->title = lac_texts_add(
        &analysis->texts, "%.0f %% of the computed positions are padding", analysis->padding_pct);
    finding->why = why;
    finding->brief = "bucket or pack";
    finding->change = "# group samples of similar length:\n"
                      "indices = sorted(range(len(data)), key=lambda i: len(data[i]))\n"
                      "# or pack several samples into one row, with a mask";
    finding->costs = "Bucketing changes the sample order: shuffle the buckets. Packing needs "
                     "attention with sequence boundaries.";
    finding->wrong_if = "variable-length kernels already skip the padding.";
    return true;
}
