/* What the launcher's samples and the settings card would tell, where there are none. */

#include "analysis/diagnose/facts/gpu_memory.h"
#include "analysis/diagnose/wording/wording.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

void lac_note_missing_samples(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    if (analysis->device_count == 0) {
        return;
    }
    struct lac_gpu_memory_use memory;
    struct lac_gpu_series clock;
    lac_gpu_memory_measure(facts, &memory);
    const char *const parts[] = {
        lac_settings_are_recorded(facts) ? "" : "job settings",
        facts->kept.count > 0 && analysis->memory.event_count == 0 && memory.used < 0 ? "GPU memory"
                                                                                      : "",
        lac_gpu_series_find(facts, "SM clock (MHz)", &clock) ? "" : "clocks and energy",
    };
    const char *text = "";
    for (size_t i = 0; i < LAC_COUNT_OF(parts); i++) {
        if (parts[i][0] != '\0') {
            text = lac_texts_add(&analysis->texts, "%s%s%s", text, text[0] != '\0' ? ", " : "",
                                 parts[i]);
        }
    }
    if (text[0] != '\0') {
        assert(analysis->not_recorded_count < LAC_MISSING_COUNT_);
        analysis->not_recorded[analysis->not_recorded_count++] =
            lac_texts_add(&analysis->texts, "%s (recorded by lacuna run)", text);
    }
}
