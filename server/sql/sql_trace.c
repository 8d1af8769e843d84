#include "server/sql/sql_trace.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

void lac_sql_trace_init(struct lac_sql_trace *trace, struct lac_trace_file *file)
{
    assert(trace != NULL && file != NULL);
    *trace = (struct lac_sql_trace){.file = file, .head = lac_trace_file_head(file)};
    trace->chunks = lac_trace_file_chunks(file, &trace->chunk_count);
}

void lac_sql_trace_done(struct lac_sql_trace *trace)
{
    lac_trace_details_destroy(trace->details);
    lac_analysis_destroy(trace->analysis);
    for (unsigned kind = 0; kind < LAC_SLICE_KIND_COUNT_; kind++) {
        free(trace->kind_chunks[kind]);
    }
    free(trace->classes);
    free(trace->is_classified);
    *trace = (struct lac_sql_trace){0};
}

bool lac_sql_trace_is_late(const struct lac_sql_trace *trace)
{
    struct timespec now;
    if (trace->late_ns == 0) {
        return false;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec >= trace->late_ns;
}

enum lac_status lac_sql_trace_details(struct lac_sql_trace *trace,
                                      const struct lac_model **ret_details,
                                      struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    if (trace->details == NULL) {
        status = lac_trace_file_details(trace->file, &trace->details, reterr);
    }
    *ret_details = trace->details;
    return status;
}

enum lac_status lac_sql_trace_analysis(struct lac_sql_trace *trace,
                                       const struct lac_analysis **ret_analysis,
                                       struct lac_error *reterr)
{
    enum lac_status status = LAC_OK;
    if (!trace->has_analysis) {
        status = lac_trace_file_analysis(trace->file, &trace->analysis, reterr);
        status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
        trace->has_analysis = status == LAC_OK;
    }
    *ret_analysis = trace->analysis;
    return status;
}

uint64_t *lac_sql_trace_bits(const struct lac_sql_trace *trace)
{
    return calloc((size_t)trace->chunk_count / 64 + 1, sizeof(uint64_t));
}

enum lac_status lac_sql_trace_add_chunks(struct lac_sql_trace *trace,
                                         const struct lac_name_stat *stat, uint64_t *bits,
                                         struct lac_error *reterr)
{
    uint32_t *chunks = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_trace_postings(trace->file, stat, &chunks, &count, reterr);
    for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
        if (chunks[i] < trace->chunk_count) {
            bits[chunks[i] / 64] |= UINT64_C(1) << chunks[i] % 64;
        }
    }
    free(chunks);
    return status;
}

enum lac_status lac_sql_trace_kind_chunks(struct lac_sql_trace *trace, unsigned kind,
                                          const uint64_t **ret_bits, struct lac_error *reterr)
{
    assert(kind < LAC_SLICE_KIND_COUNT_);
    enum lac_status status = LAC_OK;
    if (trace->kind_chunks[kind] == NULL) {
        const struct lac_name_stat *stats = NULL;
        uint32_t count = 0;
        uint64_t *bits = lac_sql_trace_bits(trace);
        status = bits != NULL ? lac_trace_stats(trace->file, &stats, &count, reterr)
                              : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        for (uint32_t i = 0; i < count && status == LAC_OK; i++) {
            if (stats[i].kind == kind) {
                status = lac_sql_trace_add_chunks(trace, &stats[i], bits, reterr);
            }
        }
        if (status) {
            free(bits);
            return status;
        }
        trace->kind_chunks[kind] = bits;
    }
    *ret_bits = trace->kind_chunks[kind];
    return status;
}

const struct lac_name_class *lac_sql_trace_class(struct lac_sql_trace *trace, uint32_t name)
{
    const struct lac_strings *strings = &trace->head->strings;
    assert(name < strings->count);
    if (trace->classes == NULL) {
        trace->classes = calloc(strings->count, sizeof(*trace->classes));
    }
    if (trace->is_classified == NULL) {
        trace->is_classified = calloc(strings->count, 1);
    }
    if (trace->classes == NULL || trace->is_classified == NULL) {
        return NULL;
    }
    if (!trace->is_classified[name]) {
        lac_names_classify(lac_strings_get(strings, name), lac_strings_length(strings, name),
                           &trace->classes[name]);
        trace->is_classified[name] = 1;
    }
    return &trace->classes[name];
}
