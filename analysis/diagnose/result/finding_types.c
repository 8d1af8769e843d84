/* The rows of finding_registry.def as data, and an empty finding of a kind. */

#include "analysis/diagnose/result/finding_types.h"

#include "analysis/diagnose/result/analysis.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum about { ABOUT_STEP, ABOUT_LOADING, ABOUT_FACT };

static const struct lac_finding_type types[LAC_FINDING_COUNT_] = {
#define LAC_FINDING(kind, id, cause, effort, change, place, about)                                 \
    [LAC_FINDING_##kind] = {id,                                                                    \
                            LAC_CAUSE_##cause,                                                     \
                            LAC_EFFORT_##effort,                                                   \
                            LAC_CHANGE_##change,                                                   \
                            LAC_PLACE_##place,                                                     \
                            ABOUT_##about == ABOUT_LOADING,                                        \
                            ABOUT_##about == ABOUT_FACT},
#include "analysis/diagnose/result/finding_registry.def"
};

const struct lac_finding_type *lac_finding_type(enum lac_finding_kind kind)
{
    assert(kind < LAC_FINDING_COUNT_);
    return &types[kind];
}

void lac_finding_init(struct lac_finding *finding, enum lac_finding_kind kind)
{
    const struct lac_finding_type *type = lac_finding_type(kind);
    *finding = (struct lac_finding){
        .kind = kind,
        .id = type->id,
        .effort = type->effort,
        .change_kind = type->change,
        .cost_ns_per_step = LAC_UNKNOWN_NS,
        .cost_pct = (double)NAN,
        .gain_low_pct = (double)NAN,
        .gain_mid_pct = (double)NAN,
        .gain_high_pct = (double)NAN,
        .step_low_ns = LAC_UNKNOWN_NS,
        .step_mid_ns = LAC_UNKNOWN_NS,
        .step_high_ns = LAC_UNKNOWN_NS,
        .workers = -1,
        .title = "",
        .why = "",
        .change = "",
        .where = "",
        .brief = "",
        .expect = "",
        .costs = "",
        .wrong_if = "",
        .check = "",
    };
}

const struct lac_finding *lac_finding_of(const struct lac_analysis *analysis,
                                         enum lac_finding_kind kind)
{
    assert(analysis != NULL);
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (analysis->findings[i].kind == kind) {
            return &analysis->findings[i];
        }
    }
    return NULL;
}

/** Which settings a finding's advice changes; matched anywhere in the setting's name. */
static const struct {
    enum lac_finding_kind finding;
    const char *settings[8];
} advised[] = {
    {LAC_FINDING_INPUT_STARVATION, {"workers", "prefetch", "persistent"}},
    {LAC_FINDING_STORAGE_LATENCY, {"workers"}},
    {LAC_FINDING_SMALL_FILES, {"workers"}},
    {LAC_FINDING_SLOW_SAMPLES, {"prefetch", "in_order"}},
    {LAC_FINDING_WORKER_RESPAWN, {"persistent"}},
    {LAC_FINDING_LAYOUT_CONVERSION, {"memory_format", "channels_last", "layout"}},
    {LAC_FINDING_TENSOR_CORES_UNUSED, {"precision", "autocast", "amp", "tf32", "dtype"}},
    {LAC_FINDING_PAGEABLE_COPY, {"pin"}},
    {LAC_FINDING_BLOCKING_COPY, {"non_blocking", "copy_stream", "async"}},
    {LAC_FINDING_LAUNCH_BOUND, {"compile", "graph", "foreach", "fused"}},
    {LAC_FINDING_SLOW_OPTIMIZER, {"optimizer", "foreach", "fused"}},
    {LAC_FINDING_CPU_OVERSUBSCRIPTION, {"workers", "threads"}},
    {LAC_FINDING_ALLOCATOR_THRASH, {"alloc"}},
};

bool lac_finding_advises(enum lac_finding_kind finding, const char *setting)
{
    for (size_t i = 0; i < LAC_COUNT_OF(advised); i++) {
        for (size_t j = 0; advised[i].finding == finding && j < 8; j++) {
            if (advised[i].settings[j] && strstr(setting, advised[i].settings[j]) != NULL) {
                return true;
            }
        }
    }
    return false;
}
