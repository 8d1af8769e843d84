#ifndef LAC_SERVER_JSON_ANALYSIS_PARTS_H
#define LAC_SERVER_JSON_ANALYSIS_PARTS_H

/*
 * The members of `lacuna.analysis/1`, written by subject: analysis_json.c puts them in their order.
 * Private to this folder.
 */

#include "analysis/diagnose/ranks/ranks.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/json/json_out.h"

#include <stddef.h>
#include <stdint.h>

/** Of one document: hundreds of ranks with the longest analyses. */
#define LAC_JSON_DOCUMENT_BYTES_MAX ((size_t)2 << 30)

/** What is written, and where to. */
struct lac_analysis_out {
    struct lac_json json;
    const struct lac_model *model;
    const struct lac_analysis *analysis;
};

/** A text of the model. */
void lac_document_name(struct lac_analysis_out *document, const char *key, uint32_t id);

/** Hand the text to a caller, who frees it; without success the buffer is emptied. */
LAC_MUST_USE enum lac_status lac_json_give(struct lac_buffer *out, char **ret_text,
                                           size_t *ret_length);

/* analysis_time_json.c */
void lac_document_devices(struct lac_analysis_out *document);
void lac_document_partition(struct lac_analysis_out *document);
void lac_document_steps(struct lac_analysis_out *document);
void lac_document_phases(struct lac_analysis_out *document);

/* analysis_gpu_json.c */
void lac_document_kernels(struct lac_analysis_out *document);
void lac_document_layout(struct lac_analysis_out *document);
void lac_document_tensor_core(struct lac_analysis_out *document);
void lac_document_efficiency(struct lac_analysis_out *document);
void lac_document_python_samples(struct lac_analysis_out *document);
void lac_document_memory(struct lac_analysis_out *document);
void lac_document_copies(struct lac_analysis_out *document);

/* analysis_loading_json.c */
void lac_document_dataloader(struct lac_analysis_out *document);
void lac_document_loading(struct lac_analysis_out *document);
void lac_document_settings(struct lac_analysis_out *document);

/* analysis_findings_json.c */
void lac_json_finding(struct lac_json *json, const struct lac_finding *finding);
void lac_document_findings(struct lac_analysis_out *document);
void lac_document_plan(struct lac_analysis_out *document);
/** Nothing without a question. */
void lac_document_what_if(struct lac_analysis_out *document);
/** "what_if" of a run. */
void lac_json_run_what_if(struct lac_json *json, const struct lac_what_if_changes *changes,
                          const struct lac_run_what_if *what_if);

#endif
