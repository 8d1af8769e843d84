#include "server/ingest/convert.h"

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis_pack.h"
#include "analysis/import/import.h"
#include "server/base/buffer.h"
#include "server/json/analysis_json.h"
#include "server/json/flame_json.h"
#include "server/store/publish.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096 + 32 };

struct conversion {
    const struct lac_convert_options *options;
    struct lac_convert_result result;
};

/** Facts to keep with the trace, as bytes: what cannot be made is made when somebody asks. */
struct packed {
    uint8_t *bytes[LAC_DOCUMENT_COUNT_];
    size_t size_bytes[LAC_DOCUMENT_COUNT_];
};

/** What a comparison with other ranks needs of this one. */
static void pack_rank_table(const struct lac_model *model, const struct lac_analysis *analysis,
                            uint8_t **ret_bytes, size_t *ret_size_bytes)
{
    struct lac_rank_table *table = NULL;

    if (lac_rank_table_create(model, analysis, &table) == LAC_OK &&
        lac_rank_table_pack(table, ret_bytes, ret_size_bytes) != LAC_OK) {
        *ret_bytes = NULL;
    }
    lac_rank_table_destroy(table);
}

/** What a comparison with other traces needs. */
static void pack_compare(const struct lac_model *model, const struct lac_analysis *analysis,
                         uint8_t **ret_bytes, size_t *ret_size_bytes)
{
    struct lac_compare_facts *facts = NULL;

    if (lac_compare_facts_create(model, analysis, &facts) == LAC_OK &&
        lac_compare_facts_pack(facts, ret_bytes, ret_size_bytes) != LAC_OK) {
        *ret_bytes = NULL;
    }
    lac_compare_facts_destroy(facts);
}

/** With the derived tracks. */
static void pack_facts(const struct lac_model *model, const struct lac_analysis *analysis,
                       struct packed *packed)
{
    enum lac_trace_document facts = LAC_DOCUMENT_FACTS;
    enum lac_trace_document flame = LAC_DOCUMENT_FLAME_ROWS;

    pack_rank_table(model, analysis, &packed->bytes[LAC_DOCUMENT_RANK_TABLE],
                    &packed->size_bytes[LAC_DOCUMENT_RANK_TABLE]);
    pack_compare(model, analysis, &packed->bytes[LAC_DOCUMENT_COMPARE],
                 &packed->size_bytes[LAC_DOCUMENT_COMPARE]);
    if (lac_analysis_pack(analysis, model, &packed->bytes[facts], &packed->size_bytes[facts]) !=
        LAC_OK) {
        packed->bytes[facts] = NULL;
    }
    packed->bytes[flame] = lac_flame_report_rows(model, &packed->size_bytes[flame]);
}

/** Take what was packed to the documents. */
static void add_packed(const struct packed *packed, struct lac_trace_write_options *write)
{
    for (unsigned d = 0; d < LAC_DOCUMENT_COUNT_; d++) {
        if (packed->bytes[d] != NULL && packed->size_bytes[d] <= LAC_DOCUMENT_BYTES_MAX) {
            write->documents[d] =
                (struct lac_trace_text){(const char *)packed->bytes[d], packed->size_bytes[d]};
        }
    }
}

static void packed_done(struct packed *packed)
{
    for (unsigned d = 0; d < LAC_DOCUMENT_COUNT_; d++) {
        free(packed->bytes[d]);
    }
}

enum lac_status lac_convert_model(struct lac_model *model, const struct lac_names *names,
                                  const char *path, struct lac_error *reterr)
{
    assert(model != NULL && path != NULL);
    const struct lac_diagnose_options diagnose = {.names = names, .wants_worker_steps = true};
    struct lac_analysis *analysis = NULL;
    struct lac_buffer flames[LAC_FLAME_METRICS] = {{0}};
    struct packed packed = {{NULL}, {0}};
    char *json = NULL;
    size_t json_length = 0;
    struct lac_trace_write_options write = {.path = path, .generation = 1};
    enum lac_status status = lac_diagnose(model, &diagnose, &analysis, reterr);

    if (status == LAC_OK) {
        const struct lac_analysed analysed = {.model = model, .analysis = analysis};

        status = lac_analysis_json(&analysed, false, &json, &json_length);
    }
    if (status == LAC_OK) {
        status = lac_diagnose_add_tracks(analysis, model);
    }
    if (status == LAC_OK) {
        write.documents[LAC_DOCUMENT_ANALYSIS] = (struct lac_trace_text){json, json_length};
        lac_flame_documents(model, flames);
        for (unsigned metric = 0; metric < LAC_FLAME_METRICS; metric++) {
            write.documents[LAC_DOCUMENT_FLAME + metric] =
                (struct lac_trace_text){flames[metric].bytes, flames[metric].size_bytes};
        }
        pack_facts(model, analysis, &packed);
        add_packed(&packed, &write);
        write.analysis = analysis;
        status = lac_trace_write(model, &write, reterr);
    }
    for (unsigned metric = 0; metric < LAC_FLAME_METRICS; metric++) {
        lac_buffer_done(&flames[metric]);
    }
    packed_done(&packed);
    free(json);
    lac_analysis_destroy(analysis);
    return status;
}

static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct conversion *conversion = context;
    struct lac_convert_result *result = &conversion->result;
    char path[PATH_BYTES];
    enum lac_status status;

    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT,
                   conversion->options->output_dir, result->trace_count);
    status = lac_convert_model(model, conversion->options->names, path, reterr);
    if (status == LAC_OK) {
        result->trace_count++;
        result->event_count += model->info.event_count;
        result->slice_count += model->info.slice_count;
    } else if (status == LAC_ERR_NOMEM) {
        (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory while diagnosing the trace");
    }
    lac_model_destroy(model);
    return status;
}

enum lac_status lac_convert(const struct lac_convert_options *options,
                            struct lac_convert_result *ret_result, struct lac_error *reterr)
{
    assert(options != NULL && ret_result != NULL);
    struct conversion conversion = {.options = options};
    const struct lac_import_options import = {.limits = options->limits,
                                              .progress = options->progress,
                                              .progress_context = options->progress_context,
                                              .name = options->name,
                                              .temporary_dir = options->output_dir};
    enum lac_status status =
        lac_import_file(options->input_path, &import, take_model, &conversion, reterr);

    if (status == LAC_OK && conversion.result.trace_count == 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the file holds no trace");
    }
    *ret_result = conversion.result;
    return status;
}
