/* What a comparison needs of a trace beside its analysis: made of the model, kept as bytes. */

#include "analysis/compare/compare.h"
#include "analysis/compare/compare_private.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/diagnose/result/pack.h"
#include "analysis/diagnose/result/saturate.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, OPERATOR_PACKED_BYTES = 3 };

enum lac_status lac_compare_facts_create(const struct lac_model *model,
                                         const struct lac_analysis *analysis,
                                         struct lac_compare_facts **ret_facts)
{
    assert(model != NULL && analysis != NULL && ret_facts != NULL);
    struct lac_compare_facts *facts = calloc(1, sizeof(*facts));
    if (facts == NULL) {
        return LAC_ERR_NOMEM;
    }
    enum lac_status status = lac_compare_measure(model, analysis, &facts->steps);
    if (!status) {
        status = lac_compare_operators_measure(model, analysis, facts);
    }
    if (!status) {
        status = lac_compare_ends(model, facts->ends);
    }
    if (status) {
        lac_compare_facts_destroy(facts);
        return status;
    }
    *ret_facts = facts;
    return LAC_OK;
}

static void pack_ns(struct lac_pack *pack, int64_t *values, int count)
{
    for (int i = 0; i < count; i++) {
        lac_pack_int(pack, &values[i], -LAC_NUMBER_MAX, LAC_NUMBER_MAX);
    }
}

static void pack_all(struct lac_pack *pack, struct lac_compare_facts *facts)
{
    static const int64_t shape[] = {VERSION, LAC_PART_COUNT_, LAC_CAUSE_COUNT_, LAC_FAMILY_COUNT_,
                                    LAC_COMPARE_METRIC_COUNT};
    for (size_t i = 0; i < LAC_COUNT_OF(shape); i++) {
        lac_pack_exactly(pack, shape[i]);
    }
    LAC_PACK_INT(pack, facts->steps.is_known, 0, 1);
    pack_ns(pack, facts->steps.part_ns, LAC_PART_COUNT_);
    pack_ns(pack, facts->steps.cause_ns, LAC_CAUSE_COUNT_);
    pack_ns(pack, facts->steps.family_ns, LAC_FAMILY_COUNT_);
    facts->operator_count =
        (uint32_t)lac_pack_array(pack, facts->operator_count, OPERATOR_PACKED_BYTES,
                                 (void *)&facts->operators, sizeof(*facts->operators));
    for (uint32_t i = 0; i < facts->operator_count; i++) {
        struct lac_compare_part_of *it = &facts->operators[i];
        lac_pack_text(pack, &it->name);
        lac_pack_int(pack, &it->ns, 0, LAC_NUMBER_MAX);
        if (i > 0 && strcmp(it[-1].name, it->name) >= 0) {
            lac_pack_refuse(pack);
        }
    }
    for (int i = 0; i < LAC_COMPARE_METRIC_COUNT; i++) {
        LAC_PACK_INT(pack, facts->ends[i].count, 0, INT64_MAX);
        lac_pack_real(pack, &facts->ends[i].mean);
        lac_pack_real(pack, &facts->ends[i].spread);
    }
}

enum lac_status lac_compare_facts_pack(const struct lac_compare_facts *facts, uint8_t **ret_bytes,
                                       size_t *ret_size_bytes)
{
    assert(facts != NULL && ret_bytes != NULL && ret_size_bytes != NULL);
    struct lac_pack pack = {.is_reading = false};
    struct lac_compare_facts copy = *facts; /* the functions read as well as write */
    pack_all(&pack, &copy);
    if (pack.status) {
        free(pack.bytes);
        return pack.status;
    }
    *ret_bytes = pack.bytes;
    *ret_size_bytes = (size_t)pack.size_bytes;
    return LAC_OK;
}

enum lac_status lac_compare_facts_unpack(uint8_t *bytes, size_t size_bytes,
                                         struct lac_compare_facts **ret_facts)
{
    assert(ret_facts != NULL);
    assert(bytes != NULL || size_bytes == 0);
    struct lac_compare_facts *facts = calloc(1, sizeof(*facts));
    struct lac_pack pack;
    if (facts == NULL) {
        free(bytes);
        return LAC_ERR_NOMEM;
    }
    facts->packed = bytes;
    lac_pack_open(&pack, bytes, size_bytes);
    pack_all(&pack, facts);
    if (!lac_pack_is_at_end(&pack)) {
        lac_pack_refuse(&pack);
        lac_compare_facts_destroy(facts);
        return pack.status;
    }
    *ret_facts = facts;
    return LAC_OK;
}

void lac_compare_facts_destroy(struct lac_compare_facts *facts)
{
    if (facts != NULL) {
        free(facts->operators);
        free(facts->packed);
        free(facts);
    }
}
