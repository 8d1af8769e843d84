#include "server/ingest/convert.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/import/import.h"
#include "server/base/buffer.h"
#include "server/json/analysis_json.h"
#include "server/json/flame_json.h"
#include "server/store/publish.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATH_BYTES = 4096 + 32 };

struct conversion {
    const struct lac_convert_options *options;
    struct lac_convert_result result;
};

/** What a comparison with other ranks needs of this one; the caller frees. @return NULL: none, and
 *  the comparison makes it from the trace */
static char *pack_rank_table(const struct lac_model *model, const struct lac_analysis *analysis,
                             size_t *ret_size_bytes)
{
    struct lac_rank_table *table = NULL;
    uint8_t *bytes = NULL;

    if (lac_rank_table_create(model, analysis, &table) == LAC_OK &&
        lac_rank_table_pack(table, &bytes, ret_size_bytes) == LAC_OK &&
        *ret_size_bytes > LAC_DOCUMENT_BYTES_MAX) {
        free(bytes);
        bytes = NULL;
    }
    lac_rank_table_destroy(table);
    return (char *)bytes;
}

static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct conversion *conversion = context;
    struct lac_analysis *analysis = NULL;
    struct lac_buffer flames[LAC_FLAME_METRICS] = {{0}};
    char *ranks = NULL;
    size_t ranks_bytes = 0;
    char *json = NULL;
    size_t json_length = 0;
    char path[PATH_BYTES];
    struct lac_trace_write_options write = {.path = path, .generation = 1};
    enum lac_status status = lac_diagnose(model, NULL, &analysis, reterr);

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
        ranks = pack_rank_table(model, analysis, &ranks_bytes);
        write.documents[LAC_DOCUMENT_RANK_TABLE] = (struct lac_trace_text){ranks, ranks_bytes};
        (void)snprintf(path, sizeof path, "%s/" LAC_STAGED_TRACE_FORMAT,
                       conversion->options->output_dir, conversion->result.trace_count);
        write.analysis = analysis;
        status = lac_trace_write(model, &write, reterr);
    }
    if (status == LAC_OK) {
        conversion->result.trace_count++;
        conversion->result.event_count += model->info.event_count;
        conversion->result.slice_count += model->info.slice_count;
    } else if (status == LAC_ERR_NOMEM) {
        (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory while diagnosing the trace");
    }
    for (unsigned metric = 0; metric < LAC_FLAME_METRICS; metric++) {
        lac_buffer_done(&flames[metric]);
    }
    free(ranks);
    free(json);
    lac_analysis_destroy(analysis);
    lac_model_destroy(model);
    return status;
}

enum lac_status lac_convert(const struct lac_convert_options *options,
                            struct lac_convert_result *ret_result, struct lac_error *reterr)
{
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
