/*
 * Micro-steps: gradients of several batches are summed up before one update of the parameters. A
 * step that was found may be the micro-step (then only every n-th holds the optimizer's kernels) or
 * the update (then it holds n times the same kernels).
 */

#include "analysis/diagnose/steps/step_sequence.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    MICRO_MAX = 256,
    KERNELS_LOOKED_AT = 16384, /* of one step */
    UNIT_MIN = 8,              /* kernels of a micro-step */
    KINDS_MIN = 4,             /* different ones among them */
};

/* -- steps that are micro-steps ---------------------------------------------------------------- */

/** When a kernel of the sequence counts: where steps lie between the host's marks it belongs to the one
 *  that launched it, however late the device is. */
static int64_t time_of(const struct lac_facts *facts, const struct lac_sequence *sequence,
                       uint64_t slice)
{
    uint32_t call = sequence->slices->link[slice];
    bool by_launch = facts->has_api && !facts->has_device_steps && call != LAC_NONE;
    return sequence->slices->start_ns[by_launch ? call : slice];
}

/** Marks the steps that hold kernels of the optimizer. @return how many */
static uint32_t find_updates(const struct lac_facts *facts, struct lac_sequence sequence,
                             uint8_t *updates)
{
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t found = 0;
    uint32_t hint = 0;
    uint64_t slice = 0;
    while (lac_sequence_next(&sequence, &slice)) {
        if (lac_kernel_class_of(facts, slice)->family != LAC_FAMILY_OPTIMIZER) {
            continue;
        }
        int64_t at_ns = time_of(facts, &sequence, slice);
        uint32_t s = lac_step_at(analysis, at_ns, hint);
        if (s == LAC_NONE || updates[s] ||
            at_ns >= analysis->steps[s].start_ns + analysis->steps[s].dur_ns) {
            continue;
        }
        hint = s;
        updates[s] = 1;
        found++;
    }
    return found;
}

/** Steps from one update to the next where that is always the same; 0 where not. */
static uint32_t steps_between(const uint8_t *updates, uint32_t count)
{
    uint32_t last = LAC_NONE;
    uint32_t distance = 0;
    uint32_t same = 0;
    uint32_t all = 0;
    for (uint32_t s = 0; s < count; s++) {
        if (!updates[s]) {
            continue;
        }
        if (last != LAC_NONE) {
            distance = distance == 0 ? s - last : distance;
            same += s - last == distance;
            all++;
        }
        last = s;
    }
    return all >= 2 && same * 10 >= all * 9 && distance <= MICRO_MAX ? distance : 0;
}

/* -- steps that hold micro-steps --------------------------------------------------------------- */

/** The kernels of a step before the optimizer's first, or else those between the optimizer's first run
 *  in the step and its next one; 0 when it has none of those. */
static uint32_t read_stretch(const struct lac_facts *facts, struct lac_sequence sequence,
                             const struct lac_step *step, bool is_next, uint32_t *symbols)
{
    const int64_t dur_ns = is_next ? 2 * step->dur_ns : step->dur_ns;
    uint32_t count = 0;
    uint64_t slice = 0;
    bool is_inside = !is_next;
    while (lac_sequence_next(&sequence, &slice)) {
        int64_t at_ns = time_of(facts, &sequence, slice);
        if (at_ns - step->start_ns >= dur_ns || count == KERNELS_LOOKED_AT) {
            return 0;
        }
        if (at_ns < step->start_ns) {
            continue;
        }
        if (lac_kernel_class_of(facts, slice)->family == LAC_FAMILY_OPTIMIZER) {
            if (is_inside && count > 0) {
                return count;
            }
            is_inside = true;
        } else if (is_inside) {
            symbols[count++] = sequence.slices->name[slice];
        }
    }
    return 0;
}

/** The kernels of one update, before the optimizer's. A mark may lie inside of an update, and the
 *  device behind the host: then not all of them come before the first optimizer of the step. */
static uint32_t read_step(const struct lac_facts *facts, struct lac_sequence sequence,
                          const struct lac_step *step, uint32_t *symbols)
{
    const uint32_t next = read_stretch(facts, sequence, step, true, symbols);
    const uint32_t here = read_stretch(facts, sequence, step, false, symbols);
    return next >= here + UNIT_MIN ? read_stretch(facts, sequence, step, true, symbols) : here;
}

/** Whether the kernels are those `distance` before them, all but two in a hundred. */
static bool repeats_after(const uint32_t *symbols, uint32_t count, uint32_t distance)
{
    uint32_t allowed = (count - distance) / 50;
    uint32_t others = 0;
    for (uint32_t i = distance; i < count; i++) {
        others += symbols[i] != symbols[i - distance];
        if (others > allowed) {
            return false;
        }
    }
    return true;
}

static bool is_varied(const uint32_t *symbols, uint32_t count)
{
    uint32_t kinds[KINDS_MIN];
    uint32_t kind_count = 0;
    for (uint32_t i = 0; i < count && kind_count < KINDS_MIN; i++) {
        uint32_t k = 0;
        while (k < kind_count && kinds[k] != symbols[i]) {
            k++;
        }
        if (k == kind_count) {
            kinds[kind_count++] = symbols[i];
        }
    }
    return kind_count == KINDS_MIN;
}

/** How often the same kernels come in one step; 1 when they do not. */
static uint32_t units_in(const uint32_t *symbols, uint32_t count)
{
    for (uint32_t distance = UNIT_MIN; distance <= count / 2; distance++) {
        if (repeats_after(symbols, count, distance) && is_varied(symbols, distance)) {
            uint32_t units = (count + distance / 2) / distance;
            return units <= MICRO_MAX ? units : 1;
        }
    }
    return 1;
}

/** A step from the middle of those kept. */
static const struct lac_step *usual_step(const struct lac_analysis *analysis)
{
    for (uint32_t s = analysis->step_count / 2; s < analysis->step_count; s++) {
        if (analysis->steps[s].left_out == LAC_STEP_KEPT) {
            return &analysis->steps[s];
        }
    }
    return NULL;
}

/** Whether the batches that the step takes, where they are known, are as many as the units: in a
 * step of one batch, what repeats are layers. */
static bool has_a_batch_each(const struct lac_facts *facts, const struct lac_step *step,
                             uint32_t units)
{
    const struct lac_marks *waits = &facts->wait_marks;
    uint32_t batches = 0;
    for (uint64_t i = 0; i < waits->count; i++) {
        int64_t since_ns = waits->at[i].start_ns - step->start_ns;
        batches += since_ns >= 0 && since_ns < step->dur_ns;
    }
    return batches == 0 || batches == units;
}

enum lac_status lac_steps_find_micro(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_sequence sequence;
    const struct lac_step *usual = usual_step(analysis);
    if (usual == NULL || !lac_sequence_begin(facts, &sequence)) {
        return LAC_OK;
    }
    uint8_t *updates = calloc(analysis->step_count, 1);
    uint32_t *symbols = malloc(KERNELS_LOOKED_AT * sizeof(*symbols));
    if (updates == NULL || symbols == NULL) {
        free(updates);
        free(symbols);
        return LAC_ERR_NOMEM;
    }
    uint32_t found = find_updates(facts, sequence, updates);
    uint32_t between =
        found * 3 <= analysis->step_count * 2 ? steps_between(updates, analysis->step_count) : 0;
    if (between >= 2) {
        analysis->micro_step_count = between;
        analysis->is_step_micro = true;
    } else if (found > 0) {
        uint32_t count = read_step(facts, sequence, usual, symbols);
        uint32_t units = count > 0 ? units_in(symbols, count) : 0;
        analysis->micro_step_count = units < 2 || has_a_batch_each(facts, usual, units) ? units : 1;
    }
    free(updates);
    free(symbols);
    return LAC_OK;
}
