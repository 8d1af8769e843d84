#ifndef LAC_ANALYSIS_DIAGNOSE_FACTS_PROGRAM_H
#define LAC_ANALYSIS_DIAGNOSE_FACTS_PROGRAM_H

/* What the program is made of, as far as advice has to know: what is there already is not proposed. */

#include "analysis/diagnose/facts/facts.h" // IWYU pragma: export

/** Which framework's code to show. */
enum lac_framework { LAC_FRAMEWORK_PYTORCH = 0, LAC_FRAMEWORK_TENSORFLOW, LAC_FRAMEWORK_UNKNOWN };
/** By what the recorder named and the format of the trace, else by the names of its kernels and ranges. O(names). */
enum lac_framework lac_framework_of(const struct lac_model *model);

/** What TorchRec calls the exchange of a batch's inputs: the part of a name that its pipeline's ranges share. */
#define LAC_TORCHREC_EXCHANGE "sparse_data_dist"
/** Whether TorchRec's pipeline is in use, which exchanges the inputs of the next batch beside this one:
 *  its ranges are there. O(names). */
bool lac_has_torchrec_pipeline(const struct lac_model *model);

/** Whether Transformers' pipeline that cuts its inputs into chunks makes the batches: it takes one worker at
 *  most. Told by Python frames. O(names). */
bool lac_has_chunk_pipeline(const struct lac_model *model);

/** Whether a model is compiled, and whether the compiler makes its kernels. */
enum lac_compiled {
    LAC_COMPILED_NOT = 0,
    LAC_COMPILED_UNFUSED, /**< captured, but its kernels are the framework's own */
    LAC_COMPILED,
};
/** O(names). */
enum lac_compiled lac_compiled_of(const struct lac_facts *facts);

/** Set analysis->trained_model: what the job's settings or command say, else the outermost module of the Python
 *  stacks ("nn.Module: ResNet_0"), wrappers of parallel training left out. O(names), O(slices) with modules. */
LAC_MUST_USE enum lac_status lac_trained_model_find(struct lac_facts *facts);

#endif
