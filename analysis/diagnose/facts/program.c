#include "analysis/diagnose/facts/program.h"

#include "analysis/diagnose/names/python_frame.h"
#include "analysis/model/setting_rows.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Whether a name of the trace contains one of them. */
static bool has_name(const struct lac_model *model, const char *const *parts, size_t count)
{
    for (uint32_t id = 1; id < model->strings.count; id++) {
        const char *name = lac_model_str(model, id);
        for (size_t i = 0; i < count; i++) {
            if (strstr(name, parts[i]) != NULL) {
                return true;
            }
        }
    }
    return false;
}

/** Whether the recorder named that framework. */
static bool is_named(const struct lac_model *model, const char *framework)
{
    const struct lac_setting_rows *rows = &model->settings;
    uint32_t root = lac_settings_find(rows, LAC_NONE, "settings");
    uint32_t row = root == LAC_NONE ? LAC_NONE : lac_settings_find(rows, root, "framework");
    return row != LAC_NONE && rows->at[row].type == LAC_SETTING_TEXT &&
           strcmp(lac_settings_value(rows, row), framework) == 0;
}

enum lac_framework lac_framework_of(const struct lac_model *model)
{
    static const char *const of_pytorch[] = {"at::native::", "aten::", "torch::autograd"};
    enum lac_trace_format format = model->info.format;
    if (format == LAC_FORMAT_LACUNA && is_named(model, "JAX")) {
        return LAC_FRAMEWORK_UNKNOWN;
    }
    if (format == LAC_FORMAT_LACUNA &&
        (is_named(model, "Keras") || is_named(model, "TensorFlow"))) {
        return LAC_FRAMEWORK_TENSORFLOW;
    }
    if (format == LAC_FORMAT_KINETO || format == LAC_FORMAT_LACUNA) {
        return LAC_FRAMEWORK_PYTORCH;
    }
    if (format == LAC_FORMAT_TENSORFLOW) {
        return LAC_FRAMEWORK_TENSORFLOW;
    }
    return has_name(model, of_pytorch, LAC_COUNT_OF(of_pytorch)) ? LAC_FRAMEWORK_PYTORCH
                                                                 : LAC_FRAMEWORK_UNKNOWN;
}

bool lac_has_torchrec_pipeline(const struct lac_model *model)
{
    /* the wait is a range of its own only where something lies between the exchange and it */
    static const char *const of_pipeline[] = {"wait_" LAC_TORCHREC_EXCHANGE};
    return has_name(model, of_pipeline, LAC_COUNT_OF(of_pipeline));
}

bool lac_has_chunk_pipeline(const struct lac_model *model)
{
    /* pt_utils.py has three iterators; a pipeline that does not cut uses one of them alone, and frames
     * tell classes apart by their lines */
    static const char file[] = "pipelines/pt_utils.py";
    int64_t first_line = -1;
    for (uint32_t id = 1; id < model->strings.count; id++) {
        struct lac_frame frame;
        if (!lac_frame_parse(lac_model_str(model, id), lac_strings_length(&model->strings, id),
                             &frame) ||
            memmem(frame.path, frame.path_length, file, sizeof(file) - 1) == NULL ||
            frame.function_length != strlen("__next__") ||
            memcmp(frame.function, "__next__", frame.function_length) != 0) {
            continue;
        }
        if (first_line >= 0 && frame.line != first_line) {
            return true;
        }
        first_line = frame.line;
    }
    return false;
}

enum lac_compiled lac_compiled_of(const struct lac_facts *facts)
{
    static const char *const of_compiler[] = {"CompiledFunction", "Torch-Compiled Region",
                                              "CompiledFxGraph"};
    const struct lac_analysis *analysis = facts->analysis;
    double all_ns = 0.0;
    double made_ns = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel = &analysis->kernels[row];
        if (!kernel->names.is_comm) {
            all_ns += (double)kernel->total_ns;
            made_ns += kernel->names.family == LAC_FAMILY_TRITON ? (double)kernel->total_ns : 0.0;
        }
    }
    if (made_ns > COMPILED_MIN * all_ns) {
        return LAC_COMPILED;
    }
    bool is_told = lac_setting_truth(facts, "settings", "compile") == 1 ||
                   has_name(facts->model, of_compiler, LAC_COUNT_OF(of_compiler));
    return is_told ? LAC_COMPILED_UNFUSED : LAC_COMPILED_NOT;
}
