/* What our own recorder could not record of the GPU, and why: it and its launcher write that down. */

#include "analysis/diagnose/facts/facts.h"
#include "analysis/diagnose/result/texts.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What such a text may hold; a trace can hold anything. */
static const char *const PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "
                                 ".,:;!?'`()[]/_-+=%@#&*<>";

static const char *setting(const struct lac_facts *facts, const char *key)
{
    return lac_setting_text(facts, "settings", key, PLAIN);
}

static bool is_ours(const struct lac_facts *facts)
{
    return facts->model->info.format == LAC_FORMAT_LACUNA;
}

/** Why the recorder could not record kernels or anything, without what it could not. */
static const char *reason_of(const struct lac_facts *facts)
{
    static const char *const prefixes[] = {"kernels cannot be recorded: ",
                                           "no GPU activity can be recorded: "};
    const char *reason = setting(facts, "gpu_recording_reason");
    for (size_t i = 0; i < LAC_COUNT_OF(prefixes); i++) {
        if (strncmp(reason, prefixes[i], strlen(prefixes[i])) == 0) {
            return reason + strlen(prefixes[i]);
        }
    }
    return reason;
}

/** No process initialized CUDA, or CUPTI was another's all the time. */
static const char *why_not_begun(const struct lac_facts *facts)
{
    const char *monitor = lac_setting_text(facts, "host", "gpu_monitor", PLAIN);
    if (setting(facts, "gpu_recording_waited_for")[0] != '\0') {
        return "the job's own profiler held CUPTI until the end";
    }
    if (strcmp(monitor, "nvml") == 0) {
        return lac_setting_truth(facts, "settings", "gpus_hidden") == 1
                   ? "no process of the job initialized CUDA, although the node has a GPU: "
                     "CUDA_VISIBLE_DEVICES of a process names none"
                   : "no process of the job initialized CUDA, although the node has a GPU";
    }
    return monitor[0] != '\0'
               ? lac_texts_add(
                     &facts->analysis->texts,
                     "no process of the job initialized CUDA, and the node shows it no GPU (%s)",
                     monitor)
               : "no process of the job initialized CUDA";
}

/** Why it did not go on behind another profiler of the job; NULL: it did, or there was none. */
static const char *why_not_back(const struct lac_facts *facts)
{
    const char *yielded_to = setting(facts, "gpu_recording_yielded_to");
    const char *after = setting(facts, "gpu_recording_after_yield");
    const char *reason = reason_of(facts);
    /* it was still subscribed when it had ended */
    bool is_kept = setting(facts, "gpu_recording_subscription")[0] != '\0';
    if (after[0] == '\0' || strcmp(after, "full") == 0) {
        return NULL;
    }
    yielded_to = yielded_to[0] != '\0' ? yielded_to : "another profiler";
    return lac_texts_add(&facts->analysis->texts,
                         is_kept ? "%s of the job did not give CUPTI back%s%s"
                                 : "CUPTI could not be used again after %s of the job%s%s",
                         yielded_to, reason[0] != '\0' ? ": " : "", reason);
}

/** It began, and nothing came. */
static const char *why_nothing_came(const struct lac_facts *facts)
{
    const char *yielded_to = setting(facts, "gpu_recording_yielded_to");
    if (lac_setting_count(facts, "settings", "gpu_recording_untimed", INT32_MAX) > 0) {
        return "the recording ended before any of them did";
    }
    if (lac_gpu_unread_buffers(facts) > 0) {
        return "CUPTI asked for buffers to record into, and there was no memory for one";
    }
    const char *not_back = why_not_back(facts);
    if (not_back != NULL) {
        return not_back;
    }
    if (yielded_to[0] != '\0') {
        return lac_texts_add(&facts->analysis->texts, "CUPTI was left to %s of the job",
                             yielded_to);
    }
    const char *unseen = setting(facts, "gpu_recording_unseen");
    return unseen[0] != '\0' ? unseen
                             : "CUDA was initialized, but no operation ended while it was recorded";
}

const char *lac_why_cut_off(const struct lac_facts *facts)
{
    bool is_cut_off = lac_setting_truth(facts, "settings", "recording_cut_off") == 1;
    return is_ours(facts) && is_cut_off
               ? "its launcher was killed, or it still records: `lacuna gather` with this folder "
                 "adds what a killed one left"
               : NULL;
}

const char *lac_why_nothing(const struct lac_facts *facts)
{
    const char *reason = is_ours(facts) ? setting(facts, "nothing_recorded") : "";
    return reason[0] != '\0' ? reason : NULL;
}

const char *lac_why_no_gpu(const struct lac_facts *facts)
{
    if (!is_ours(facts)) {
        return NULL;
    }
    const char *reached = setting(facts, "gpu_recording");
    const char *reason = reason_of(facts);
    if (reached[0] == '\0') {
        return why_not_begun(facts);
    }
    return reason[0] != '\0' && strcmp(reached, "full") != 0 ? reason : why_nothing_came(facts);
}

const char *lac_why_no_kernels(const struct lac_facts *facts)
{
    bool is_refused = is_ours(facts) && !facts->analysis->has_kernels &&
                      strcmp(setting(facts, "gpu_recording"), "without-kernels") == 0;
    return is_refused ? reason_of(facts) : NULL;
}

const char *lac_why_gpu_ended(const struct lac_facts *facts)
{
    const char *yielded_to = setting(facts, "gpu_recording_yielded_to");
    const char *after = setting(facts, "gpu_recording_after_yield");
    const char *silent = setting(facts, "gpu_recording_silent");
    if (!is_ours(facts)) {
        return NULL;
    }
    if (silent[0] != '\0') {
        return setting(facts, "gpu_recording_subscription")[0] != '\0'
                   ? lac_texts_add(&facts->analysis->texts,
                                   "%s; %s of the job did not give CUPTI back", silent, yielded_to)
                   : silent;
    }
    if (why_not_back(facts) != NULL) {
        return why_not_back(facts);
    }
    return yielded_to[0] != '\0' && after[0] == '\0'
               ? lac_texts_add(&facts->analysis->texts,
                               "CUPTI was left to %s of the job until the end", yielded_to)
               : NULL;
}

static int64_t count_of(const struct lac_facts *facts, const char *key)
{
    int64_t count = lac_setting_count(facts, "settings", key, INT32_MAX);
    return is_ours(facts) && count > 0 ? count : 0;
}

int64_t lac_gpu_untimed(const struct lac_facts *facts)
{
    return count_of(facts, "gpu_recording_untimed");
}

int64_t lac_gpu_unread_buffers(const struct lac_facts *facts)
{
    return count_of(facts, "gpu_recording_unread_buffers");
}
