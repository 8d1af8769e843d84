#include "server/ingest/convert.h"

#include "analysis/compare/compare.h"
#include "analysis/crew/crew.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis_pack.h"
#include "analysis/flame/flame.h"
#include "analysis/import/import.h"
#include "server/base/buffer.h"
#include "server/json/analysis_json.h"
#include "server/json/flame_json.h"
#include "server/store/publish.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096 + 32 };

struct conversion {
    const struct lac_convert_options *options;
    struct lac_convert_result result;
};

/** What is kept with the trace, as bytes: what cannot be made is made when somebody asks. */
struct kept {
    const struct lac_model *model; /**< with its derived tracks */
    const struct lac_analysis *analysis;
    struct lac_buffer flames[LAC_FLAME_METRICS];
    struct lac_buffer python_flames[LAC_FLAME_METRICS];
    struct lac_flame_rows rows;
    bool has_python; /**< else both are the same graphs */
    uint8_t *bytes[LAC_DOCUMENT_COUNT_];
    size_t size_bytes[LAC_DOCUMENT_COUNT_];
};

enum { FLAME_PARTS = 2 * LAC_FLAME_METRICS, KEPT_PARTS = FLAME_PARTS + 3 };

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

static void keep_flame(struct kept *kept, unsigned metric, bool is_by_python)
{
    struct lac_flame_document document = {.metric = (enum lac_flame_metric)metric};

    if (is_by_python && !kept->has_python) {
        return; /* made with the one by operator */
    }
    if (is_by_python) {
        document.by = LAC_FLAME_BY_PYTHON;
        document.text = &kept->python_flames[metric];
    } else {
        document.by = LAC_FLAME_BY_OP;
        document.text = &kept->flames[metric];
        document.text_python = kept->has_python ? NULL : &kept->python_flames[metric];
        document.rows = metric == LAC_FLAME_GPU ? &kept->rows : NULL;
    }
    lac_flame_document(kept->model, &document);
}

/** One of the things to keep, those that take longest first. */
static void keep_part(void *context, uint32_t part)
{
    struct kept *kept = context;
    enum lac_trace_document document = LAC_DOCUMENT_RANK_TABLE;

    if (part < FLAME_PARTS) {
        keep_flame(kept, part % LAC_FLAME_METRICS, part < LAC_FLAME_METRICS);
        return;
    }
    switch (part - FLAME_PARTS) {
    case 0:
        document = LAC_DOCUMENT_COMPARE;
        pack_compare(kept->model, kept->analysis, &kept->bytes[document],
                     &kept->size_bytes[document]);
        break;
    case 1:
        pack_rank_table(kept->model, kept->analysis, &kept->bytes[document],
                        &kept->size_bytes[document]);
        break;
    default:
        document = LAC_DOCUMENT_FACTS;
        if (lac_analysis_pack(kept->analysis, kept->model, &kept->bytes[document],
                              &kept->size_bytes[document]) != LAC_OK) {
            kept->bytes[document] = NULL;
        }
        break;
    }
}

/** As documents, beside the analysis. */
static void list_kept(const struct kept *kept, struct lac_trace_text *documents)
{
    for (unsigned d = 0; d < LAC_DOCUMENT_COUNT_; d++) {
        if (kept->bytes[d] != NULL && kept->size_bytes[d] <= LAC_DOCUMENT_BYTES_MAX) {
            documents[d] =
                (struct lac_trace_text){(const char *)kept->bytes[d], kept->size_bytes[d]};
        }
    }
    for (unsigned metric = 0; metric < LAC_FLAME_METRICS; metric++) {
        documents[LAC_DOCUMENT_FLAME + metric] =
            (struct lac_trace_text){kept->flames[metric].bytes, kept->flames[metric].size_bytes};
        documents[LAC_DOCUMENT_FLAME_PYTHON + metric] = (struct lac_trace_text){
            kept->python_flames[metric].bytes, kept->python_flames[metric].size_bytes};
    }
}

static void kept_done(struct kept *kept)
{
    for (unsigned metric = 0; metric < LAC_FLAME_METRICS; metric++) {
        lac_buffer_done(&kept->flames[metric]);
        lac_buffer_done(&kept->python_flames[metric]);
    }
    for (unsigned d = 0; d < LAC_DOCUMENT_COUNT_; d++) {
        free(kept->bytes[d]);
    }
}

/** The model is diagnosed and its recorded slices are written: the rest of the file. */
static enum lac_status write_rest(struct lac_trace_writer *writer, struct lac_model *model,
                                  const struct lac_analysis *analysis, struct lac_crew *crew,
                                  struct lac_error *reterr)
{
    const struct lac_analyzed_trace analyzed = {.model = model, .analysis = analysis};
    struct lac_trace_text documents[LAC_DOCUMENT_COUNT_] = {{NULL, 0}};
    struct kept kept = {.model = model, .analysis = analysis};
    struct lac_crew_job keeping;
    char *json = NULL;
    size_t json_length = 0;
    enum lac_status status = lac_analysis_json(&analyzed, false, &json, &json_length);

    if (status == LAC_OK) {
        status = lac_diagnose_add_tracks(analysis, model);
    }
    if (status == LAC_OK) {
        kept.has_python = lac_flame_has_python(model);
        lac_crew_begin(crew, &keeping, KEPT_PARTS, keep_part, &kept);
        status = lac_trace_writer_tables(writer, analysis);
        lac_crew_end(crew, &keeping);
        kept.bytes[LAC_DOCUMENT_FLAME_ROWS] = kept.rows.bytes;
        kept.size_bytes[LAC_DOCUMENT_FLAME_ROWS] = kept.rows.size_bytes;
        list_kept(&kept, documents);
        documents[LAC_DOCUMENT_ANALYSIS] = (struct lac_trace_text){json, json_length};
    }
    status = lac_trace_writer_end(writer, status, documents, reterr);
    kept_done(&kept);
    free(json);
    return status;
}

enum lac_status lac_convert_model(struct lac_model *model, const struct lac_names *names,
                                  const char *path, struct lac_crew *crew, struct lac_error *reterr)
{
    assert(model != NULL && path != NULL);
    const struct lac_diagnose_options diagnose = {
        .names = names, .wants_worker_steps = true, .crew = crew};
    struct lac_analysis *analysis = NULL;
    struct lac_trace_writer *writer = NULL;
    enum lac_status status = lac_trace_writer_begin(model, path, 1, crew, &writer, reterr);

    if (status != LAC_OK) {
        return status;
    }
    status = lac_diagnose(model, &diagnose, &analysis, reterr);
    if (status == LAC_OK) {
        status = lac_trace_writer_settle(writer);
    }
    status = status == LAC_OK ? write_rest(writer, model, analysis, crew, reterr)
                              : lac_trace_writer_end(writer, status, NULL, reterr);
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
    status = lac_convert_model(model, conversion->options->names, path, conversion->options->crew,
                               reterr);
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
                                              .crew = options->crew,
                                              .temporary_dir = options->output_dir};
    enum lac_status status =
        lac_import_file(options->input_path, &import, take_model, &conversion, reterr);

    if (status == LAC_OK && conversion.result.trace_count == 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the file holds no trace");
    }
    *ret_result = conversion.result;
    return status;
}
