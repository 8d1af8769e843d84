/* Why our own recording holds no GPU operation: what the recorder wrote down when it could not. */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/diagnose/wording/wording.h"

#include <string.h>

/* What such a text may hold; a trace can hold anything. */
static const char *const PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "
                                 ".,:;!?'()[]/_-+=%@#&*<>";

static const char *setting(const struct lac_facts *facts, const char *key)
{
    return lac_setting_text(facts, "settings", key, PLAIN);
}

/** No process initialized CUDA, or CUPTI was another's all the time. */
static const char *why_not_begun(const struct lac_facts *facts)
{
    const char *monitor = lac_setting_text(facts, "host", "gpu_monitor", PLAIN);
    if (setting(facts, "gpu_recording_waited_for")[0] != '\0') {
        return "the job's own profiler held CUPTI until the end";
    }
    if (strcmp(monitor, "nvml") == 0) {
        return "no process of the job initialized CUDA, although the node has a GPU";
    }
    return monitor[0] != '\0'
               ? lac_texts_add(
                     &facts->analysis->texts,
                     "no process of the job initialized CUDA, and the node shows no GPU (%s)",
                     monitor)
               : "no process of the job initialized CUDA";
}

/** It began, and nothing came. */
static const char *why_nothing_came(const struct lac_facts *facts)
{
    const char *yielded_to = setting(facts, "gpu_recording_yielded_to");
    if (lac_setting_count(facts, "settings", "gpu_recording_untimed", INT32_MAX) > 0) {
        return "the recording ended before any of them did";
    }
    if (yielded_to[0] != '\0') {
        return lac_texts_add(&facts->analysis->texts, "CUPTI was left to %s of the job",
                             yielded_to);
    }
    return "CUDA was initialized, but no operation ended while it was recorded";
}

const char *lac_why_no_gpu(const struct lac_facts *facts)
{
    if (facts->model->info.format != LAC_FORMAT_LACUNA) {
        return NULL;
    }
    const char *reached = setting(facts, "gpu_recording");
    const char *reason = setting(facts, "gpu_recording_reason");
    if (reached[0] == '\0') {
        return why_not_begun(facts);
    }
    return reason[0] != '\0' && strcmp(reached, "full") != 0 ? reason : why_nothing_came(facts);
}
