#include "analysis/diagnose/facts/gpu_counters.h"

#include "analysis/diagnose/facts/gpu_memory.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Mean over those samples that are (nine tenths) of kept steps; NaN when these are too few. */
static double mean_of(const struct lac_facts *facts, const char *what)
{
    const struct lac_spans *kept = &facts->kept;
    struct lac_gpu_series series;
    if (kept->count == 0 || !lac_gpu_series_find(facts, what, &series)) {
        return (double)NAN;
    }
    double sum = 0.0;
    double length_ns = 0.0;
    for (uint64_t i = 0; i + 1 < series.count; i++) {
        int64_t start_ns = series.ts_ns[i];
        int64_t end_ns = series.ts_ns[i + 1];
        if (end_ns - start_ns > COUNTER_MAX_NS || end_ns <= start_ns) {
            continue;
        }
        double all_ns = (double)(end_ns - start_ns);
        double inside_ns = (double)lac_spans_length_inside(kept, start_ns, end_ns);
        if (inside_ns >= COUNTER_INSIDE_MIN * all_ns) {
            sum += series.value[i] * inside_ns;
            length_ns += inside_ns;
        }
    }
    bool is_enough = length_ns >= COUNTERS_LEAST_NS &&
                     length_ns >= COUNTERS_COVER_MIN * (double)lac_spans_length(kept);
    return is_enough ? sum / length_ns : (double)NAN;
}

void lac_gpu_counters_measure(const struct lac_facts *facts, struct lac_gpu_counters *ret_counters)
{
    *ret_counters =
        (struct lac_gpu_counters){.sms_active = mean_of(facts, "SMs active (%)"),
                                  .tensor_active = mean_of(facts, "tensor cores active (%)"),
                                  .memory_bandwidth = mean_of(facts, "memory bandwidth (%)")};
}

const char *lac_gpu_counters_text(const struct lac_facts *facts,
                                  const struct lac_gpu_counters *counters)
{
    struct lac_text **texts = &facts->analysis->texts;
    const struct {
        double pct;
        const char *before;
        const char *behind;
    } parts[] = {
        {counters->sms_active, "", "of the SMs have work"},
        {counters->tensor_active, "tensor cores are active ", "of the time"},
        {counters->memory_bandwidth, "memory is at ", "of its bandwidth"},
    };
    const char *text = "";
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        if (!isnan(parts[i].pct)) {
            const char *joint =
                text[0] == '\0' ? " GPU counters, averaged over these steps: " : ", ";
            text = lac_texts_add(texts, "%s%s%s%s %s", text, joint, parts[i].before,
                                 parts[i].pct > 0.0 ? lac_format_pct(parts[i].pct).text : "0 %",
                                 parts[i].behind);
        }
    }
    return text[0] == '\0' ? "" : lac_texts_add(texts, "%s.", text);
}
