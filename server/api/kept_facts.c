#include "server/api/kept_facts.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/app.h"
#include "server/http/request.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

/** Texts of an analysis take less. */
enum { TEXT_BYTES = 64 * 1024 };

static void facts_done(void *made)
{
    struct lac_kept_facts *facts = made;

    lac_analysis_destroy(facts->analysis);
    lac_compare_facts_destroy(facts->compare);
    free(facts);
}

/** What the import kept. @return LAC_ERR_NOT_FOUND when it has to be made */
static enum lac_status read_kept(struct lac_trace_file *file, struct lac_kept_facts *facts,
                                 struct lac_error *reterr)
{
    char *bytes = NULL;
    size_t size_bytes = 0;
    enum lac_status status = lac_trace_file_analysis(file, &facts->analysis, reterr);

    if (status == LAC_OK) {
        status = lac_trace_file_document(file, LAC_DOCUMENT_COMPARE, &bytes, &size_bytes, reterr);
    }
    if (status == LAC_OK) {
        status = lac_compare_facts_unpack((uint8_t *)bytes, size_bytes, &facts->compare);
        status = status == LAC_ERR_CORRUPT ? LAC_ERR_NOT_FOUND : status;
    }
    if (status != LAC_OK) {
        lac_analysis_destroy(facts->analysis);
        facts->analysis = NULL;
    }
    return status;
}

/** The gaps of an analysis take more than all the rest, and nobody asks for them again. */
static void drop_gaps(struct lac_analysis *analysis)
{
    free(analysis->gaps);
    free(analysis->pieces);
    free(analysis->signatures);
    analysis->gaps = NULL;
    analysis->pieces = NULL;
    analysis->signatures = NULL;
    analysis->gap_count = analysis->piece_count = 0;
    analysis->signature_count = 0;
    for (uint32_t d = 0; d < analysis->device_count; d++) {
        analysis->devices[d].first_gap = analysis->devices[d].gap_count = 0;
    }
}

/** Diagnose a trace that an older program imported. */
static enum lac_status make_anew(struct lac_trace_file *file, struct lac_kept_facts *facts,
                                 struct lac_error *reterr)
{
    const struct lac_diagnose_options options = {.wants_worker_steps = true};
    const struct lac_model *model = NULL;
    enum lac_status status = lac_trace_file_whole_model(file, &model, reterr);

    if (status == LAC_OK) {
        status = lac_diagnose(model, &options, &facts->analysis, reterr);
    }
    if (status == LAC_OK) {
        status = lac_compare_facts_create(model, facts->analysis, &facts->compare);
    }
    if (status == LAC_OK) {
        drop_gaps(facts->analysis);
    }
    lac_trace_file_release_model(file, model);
    return status;
}

static enum lac_status make(struct lac_trace_file *file, void **ret_made, uint64_t *ret_bytes,
                            struct lac_error *reterr)
{
    struct lac_kept_facts *facts = calloc(1, sizeof(*facts));
    enum lac_status status;

    if (facts == NULL) {
        return LAC_ERR_NOMEM;
    }
    status = read_kept(file, facts, reterr);
    if (status == LAC_ERR_NOT_FOUND) {
        status = make_anew(file, facts, reterr);
    }
    if (status != LAC_OK) {
        facts_done(facts);
        return status;
    }
    *ret_bytes = sizeof(*facts->analysis) + TEXT_BYTES +
                 malloc_usable_size(facts->analysis->packed) +
                 malloc_usable_size(facts->compare->packed) +
                 facts->analysis->device_count * sizeof(*facts->analysis->devices) +
                 facts->analysis->step_count * sizeof(*facts->analysis->steps) +
                 facts->analysis->phase_count * sizeof(*facts->analysis->phases) +
                 facts->analysis->kernel_name_count * sizeof(*facts->analysis->kernels) +
                 facts->compare->operator_count * sizeof(*facts->compare->operators);
    *ret_made = facts;
    return LAC_OK;
}

bool lac_kept_facts_open(struct lac_trace_file *file, struct lac_response *response,
                         struct lac_kept_facts *ret_facts)
{
    static const struct lac_trace_kept kind = {.make = make, .done = facts_done};
    struct lac_error error = {0};
    struct lac_cache_entry *entry = NULL;
    enum lac_status status = lac_trace_file_kept(file, &kind, &entry, &error);

    if (status == LAC_ERR_NOMEM) {
        lac_response_error(response, 503, "out_of_memory", "no memory to diagnose this trace");
    } else if (status != LAC_OK) {
        lac_api_fail(response, &error);
    } else {
        *ret_facts = *(const struct lac_kept_facts *)lac_cache_data(entry);
        ret_facts->pin = entry;
    }
    return status == LAC_OK;
}

void lac_kept_facts_close(struct lac_trace_file *file, struct lac_kept_facts *facts)
{
    if (facts->pin != NULL) {
        lac_trace_file_release_kept(file, facts->pin);
    }
    *facts = (struct lac_kept_facts){0};
}
