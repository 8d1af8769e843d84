/* Gaps that look alike: same cause, same operation before and after. */

#include "analysis/diagnose/facts/facts.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Open-addressing table of signature indexes + 1. */
struct table {
    uint32_t *slot;
    uint32_t slot_count; /**< a power of two */
    uint32_t capacity;   /**< of analysis->signatures */
};

static uint64_t hash_of(uint32_t before, uint32_t after, uint8_t cause)
{
    uint64_t hash = ((uint64_t)before << 32 | after) ^ ((uint64_t)cause << 59);
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdU;
    hash ^= hash >> 29;
    return hash;
}

static uint32_t *find_slot(struct table *table, const struct lac_gap_signature *signatures,
                           uint32_t before, uint32_t after, uint8_t cause)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t at = (uint32_t)hash_of(before, after, cause) & mask;
    while (table->slot[at] != 0) {
        const struct lac_gap_signature *have = &signatures[table->slot[at] - 1];
        if (have->before == before && have->after == after && have->cause == cause) {
            break;
        }
        at = (at + 1) & mask;
    }
    return &table->slot[at];
}

static enum lac_status grow(struct table *table, struct lac_analysis *analysis)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : 256;
    void *grown = realloc(analysis->signatures, capacity * sizeof(*analysis->signatures));
    if (grown == NULL) {
        return LAC_ERR_NOMEM;
    }
    analysis->signatures = grown;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof(*slots));
    if (slots == NULL) {
        return LAC_ERR_NOMEM;
    }
    free(table->slot);
    table->slot = slots;
    table->slot_count = capacity * 2;
    table->capacity = capacity;
    for (uint32_t i = 0; i < analysis->signature_count; i++) {
        const struct lac_gap_signature *have = &analysis->signatures[i];
        *find_slot(table, analysis->signatures, have->before, have->after, have->cause) = i + 1;
    }
    return LAC_OK;
}

/** Rank of a signature, to put them in order and rewrite the gaps' indexes. */
struct ranked {
    const struct lac_gap_signature *signature;
    uint32_t index;
};

static int by_total(const void *a, const void *b)
{
    const struct lac_gap_signature *x = ((const struct ranked *)a)->signature;
    const struct lac_gap_signature *y = ((const struct ranked *)b)->signature;
    int order = LAC_ORDER(y->total_ns, x->total_ns);
    order = order != 0 ? order : LAC_ORDER(x->before, y->before);
    order = order != 0 ? order : LAC_ORDER(x->after, y->after);
    return order != 0 ? order : LAC_ORDER(x->cause, y->cause);
}

static enum lac_status sort_signatures(struct lac_analysis *analysis)
{
    uint32_t count = analysis->signature_count;
    struct ranked *ranked = malloc((count ? count : 1) * sizeof(*ranked));
    struct lac_gap_signature *sorted = malloc((count ? count : 1) * sizeof(*sorted));
    uint32_t *moved = malloc((count ? count : 1) * sizeof(*moved));
    enum lac_status status =
        ranked != NULL && sorted != NULL && moved != NULL ? LAC_OK : LAC_ERR_NOMEM;
    for (uint32_t i = 0; i < count && !status; i++) {
        ranked[i] = (struct ranked){&analysis->signatures[i], i};
    }
    if (!status && count > 0) {
        qsort(ranked, count, sizeof(*ranked), by_total);
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        sorted[i] = *ranked[i].signature;
        moved[ranked[i].index] = i;
    }
    for (uint64_t g = 0; g < analysis->gap_count && !status; g++) {
        analysis->gaps[g].signature = moved[analysis->gaps[g].signature];
    }
    if (!status && count > 0) {
        memcpy(analysis->signatures, sorted, count * sizeof(*sorted));
    }
    free(ranked);
    free(sorted);
    free(moved);
    return status;
}

enum lac_status lac_gaps_sign(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const uint32_t *names = facts->model->slices.name;
    struct table table = {0};
    enum lac_status status = grow(&table, analysis);
    for (uint64_t g = 0; g < analysis->gap_count && !status; g++) {
        struct lac_gap *gap = &analysis->gaps[g];
        uint32_t before = names[gap->opened_by];
        uint32_t after = names[gap->ended_by];
        uint32_t *slot = find_slot(&table, analysis->signatures, before, after, gap->cause);
        if (*slot == 0) {
            if (analysis->signature_count == table.capacity) {
                status = grow(&table, analysis);
                if (status) {
                    break;
                }
                slot = find_slot(&table, analysis->signatures, before, after, gap->cause);
            }
            analysis->signatures[analysis->signature_count++] =
                (struct lac_gap_signature){.before = before, .after = after, .cause = gap->cause};
            *slot = analysis->signature_count;
        }
        gap->signature = *slot - 1;
        struct lac_gap_signature *signature = &analysis->signatures[gap->signature];
        signature->count++;
        signature->total_ns += gap->dur_ns;
    }
    free(table.slot);
    for (uint32_t i = 0; i < analysis->signature_count; i++) {
        struct lac_gap_signature *signature = &analysis->signatures[i];
        signature->per_step = analysis->step_count == 0
                                  ? (double)NAN
                                  : (double)signature->count / (double)analysis->step_count;
    }
    return status ? status : sort_signatures(analysis);
}
