/* The list of steps: adding one, finding one by its time. */

#include "analysis/diagnose/steps/steps.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>

enum lac_status lac_steps_add(struct lac_facts *facts, int64_t start_ns, int64_t dur_ns,
                              uint32_t name, uint32_t slice)
{
    struct lac_analysis *analysis = facts->analysis;
    if (!LAC_RESERVE(analysis->steps, facts->step_capacity, analysis->step_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    analysis->steps[analysis->step_count++] =
        (struct lac_step){.start_ns = start_ns, .dur_ns = dur_ns, .name = name, .slice = slice};
    return LAC_OK;
}

static int64_t begin_of(const struct lac_step *step, bool by_host)
{
    return by_host ? step->host_start_ns : step->start_ns;
}

static uint32_t find(const struct lac_analysis *analysis, int64_t t_ns, uint32_t hint, bool by_host)
{
    const struct lac_step *steps = analysis->steps;
    uint32_t count = analysis->step_count;
    bool is_near = hint < count && begin_of(&steps[hint], by_host) <= t_ns &&
                   (hint + 1 == count || begin_of(&steps[hint + 1], by_host) > t_ns);
    if (is_near) {
        return hint;
    }
    uint32_t low = 0;
    LAC_BISECT(low, count, middle, begin_of(&steps[middle], by_host) <= t_ns);
    return low == 0 ? LAC_NONE : low - 1;
}

uint32_t lac_step_at(const struct lac_analysis *analysis, int64_t t_ns, uint32_t hint)
{
    return find(analysis, t_ns, hint, false);
}

uint32_t lac_step_of_host_at(const struct lac_analysis *analysis, int64_t t_ns, uint32_t hint)
{
    return find(analysis, t_ns, hint, true);
}
