/* Positions of a batch that carry nothing. Only where the hook, or the job, counted them. */

#include "analysis/diagnose/loading/loading.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { COUNTED_MIN = 4 };

static bool is_named(const struct lac_model *model, uint32_t slice, const char *name)
{
    return strcmp(lac_model_str(model, model->slices.name[slice]), name) == 0;
}

bool lac_is_count_of_padding(const struct lac_model *model, uint32_t slice)
{
    return is_named(model, slice, "loader.tokens") || is_named(model, slice, "loader.padding");
}

/** Each loader.padding stands inside a loader.tokens: the slice before it. */
struct lac_padding lac_padding_count(const struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    struct lac_padding counted = {0, 0.0, 0.0};
    for (uint64_t i = 0; i < facts->loader_parts.count; i++) {
        uint32_t slice = facts->loader_parts.at[i].slice;
        if (slice == 0 || !is_named(model, slice, "loader.padding") ||
            !is_named(model, slice - 1, "loader.tokens") ||
            lac_model_track_of(model, slice) != lac_model_track_of(model, slice - 1)) {
            continue;
        }
        int64_t positions = lac_range_number(model, slice - 1);
        int64_t padding = lac_range_number(model, slice);
        if (positions > 0 && padding >= 0 && padding <= positions) {
            counted.batches++;
            counted.positions += (double)positions;
            counted.padding += (double)padding;
        }
    }
    return counted;
}

/** Batches that the training took in a step; 0 when that is no whole number. */
static double batches_a_step(const struct lac_facts *facts)
{
    uint64_t taken = 0;
    for (uint64_t i = 0; i < facts->wait_marks.count; i++) {
        const struct lac_mark *wait = &facts->wait_marks.at[i];
        int64_t end_ns = wait->start_ns + wait->dur_ns;
        taken += lac_spans_length_inside(&facts->host_kept, end_ns - 1, end_ns) > 0;
    }
    double mean = (double)taken / (double)facts->analysis->step_kept_count;
    return fabs(mean - round(mean)) <= WHOLE_MAX * round(mean) ? round(mean) : 0.0;
}

void lac_padding_measure(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_padding counted = lac_padding_count(facts);
    if (counted.batches < COUNTED_MIN) {
        return;
    }
    analysis->padding_pct = 100.0 * counted.padding / counted.positions;
    double batches = batches_a_step(facts);
    double tokens = (counted.positions - counted.padding) / (double)counted.batches;
    if (isfinite(analysis->throughput_per_s) && batches > 0.0 && tokens > 0.0) {
        analysis->throughput_unit = "tokens";
        analysis->throughput_per_s = batches * tokens * 1e9 / (double)analysis->step_mean_ns;
    }
}

void lac_padding_take_setting(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    double said_pct = lac_setting_real(facts, "settings", "padding_pct");
    if (isnan(analysis->padding_pct) && said_pct >= 0.0 && said_pct <= 100.0) {
        analysis->padding_pct = said_pct;
    }
}
