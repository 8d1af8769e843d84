/*
 * Switches that are meant for looking for faults and left on: what they do to the host and the
 * device goes through the whole recording. Known from the job's settings alone; nothing is guessed
 * from the times.
 */

#include "analysis/diagnose/findings/findings.h"
#include "collector/base/count_of.h"

#include <stdint.h>
#include <string.h>

enum effect {
    EFFECT_DISTORTS, /**< times say little while it is on */
    EFFECT_SLOWS,    /**< costs something, how much is not in the trace */
};

static const struct {
    const char *key;
    const char *value;
    enum effect effect;
    const char *text; /**< what it does */
    const char *change;
} switches[] = {
    {"CUDA_LAUNCH_BLOCKING", "1", EFFECT_DISTORTS, "every launch waits for its kernel",
     "unset CUDA_LAUNCH_BLOCKING"},
    {"detect_anomaly", "true", EFFECT_DISTORTS,
     "every forward operator records a stack, and every gradient is checked",
     "torch.autograd.set_detect_anomaly(False)"},
    {"NCCL_DEBUG", "TRACE", EFFECT_DISTORTS, "every collective writes to the log",
     "export NCCL_DEBUG=WARN"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", EFFECT_DISTORTS,
     "every collective is checked against the other ranks first", "unset TORCH_DISTRIBUTED_DEBUG"},
    {"PYTHONMALLOC", "debug", EFFECT_DISTORTS, "Python checks every memory block that it frees",
     "unset PYTHONMALLOC"},
    {"NCCL_DEBUG", "INFO", EFFECT_SLOWS, "NCCL writes to the log", "export NCCL_DEBUG=WARN"},
    {"TORCH_DISTRIBUTED_DEBUG", "INFO", EFFECT_SLOWS, "DDP collects its own statistics",
     "unset TORCH_DISTRIBUTED_DEBUG"},
    {"deterministic_algorithms", "true", EFFECT_SLOWS, "deterministic kernels replace faster ones",
     "torch.use_deterministic_algorithms(False)"},
    {"cudnn_deterministic", "true", EFFECT_SLOWS, "deterministic convolutions replace faster ones",
     "torch.backends.cudnn.deterministic = False"},
    {"NVIDIA_TF32_OVERRIDE", "0", EFFECT_SLOWS, "TF32 is disabled", "unset NVIDIA_TF32_OVERRIDE"},
    {"TORCHDYNAMO_DISABLE", "1", EFFECT_SLOWS, "torch.compile does nothing",
     "unset TORCHDYNAMO_DISABLE"},
};
enum { SWITCH_COUNT = LAC_COUNT_OF(switches) };

/** Whether the setting has that value, as a truth, a number or text. */
static bool has_value(const struct lac_facts *facts, const char *key, const char *value)
{
    if (strcmp(value, "true") == 0) {
        return lac_setting_truth(facts, "settings", key) == 1;
    }
    bool is_number = value[0] >= '0' && value[0] <= '9';
    return is_number ? lac_setting_count(facts, "settings", key, 9) == value[0] - '0'
                     : lac_setting_is(facts, "settings", key, value);
}

bool lac_find_debug_switches(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text **texts = &analysis->texts;
    bool distorts = false;
    bool is_command = true;
    int count = 0;
    const char *which = "";
    const char *why = "";
    const char *change = "";
    for (int i = 0; i < SWITCH_COUNT; i++) {
        if (!has_value(facts, switches[i].key, switches[i].value)) {
            continue;
        }
        const char *comma = count > 0 ? ", " : "";
        which = lac_texts_add(texts, "%s%s%s=%s", which, comma, switches[i].key, switches[i].value);
        why = lac_texts_add(texts, "%s%s%s: %s.", why, count > 0 ? " " : "", switches[i].key,
                            switches[i].text);
        change = lac_texts_add(texts, "%s%s%s", change, count > 0 ? "\n" : "", switches[i].change);
        is_command = is_command && strncmp(switches[i].change, "torch.", 6) != 0;
        distorts = distorts || switches[i].effect == EFFECT_DISTORTS;
        count++;
    }
    if (count == 0) {
        return false;
    }
    lac_finding_open_fact(finding);
    finding->distorts = distorts;
    finding->severity = distorts ? LAC_SEVERITY_CRITICAL : LAC_SEVERITY_INFO;
    finding->confidence = 0.95;
    finding->title =
        lac_texts_add(texts, "%s left on: %s",
                      count == 1 ? "A debugging switch was" : "Debugging switches were", which);
    finding->why = distorts ? lac_texts_add(texts,
                                            "%s Timings recorded with it do not represent "
                                            "training, so nothing else is judged.",
                                            why)
                            : why;
    finding->brief = "debugging off";
    finding->change = change;
    finding->change_kind = is_command ? LAC_CHANGE_COMMAND : LAC_CHANGE_CODE;
    finding->costs = distorts ? "None, unless you are debugging."
                              : "Results may differ in the last digits from run to run.";
    finding->wrong_if = "it is on for debugging, or because results must be reproducible.";
    finding->check = "record ten steps without it";
    return true;
}
