#include "analysis/diagnose/facts/program.h"

#include "analysis/diagnose/names/python_frame.h"
#include "analysis/model/setting_rows.h"
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/** A text among the settings of the job, or "". */
static const char *setting_text(const struct lac_model *model, const char *name)
{
    const struct lac_setting_rows *rows = &model->settings;
    uint32_t root = lac_settings_find(rows, LAC_NONE, "settings");
    uint32_t row = root == LAC_NONE ? LAC_NONE : lac_settings_find(rows, root, name);
    return row != LAC_NONE && rows->at[row].type == LAC_SETTING_TEXT ? lac_settings_value(rows, row)
                                                                     : "";
}

/** Whether the recorder named that framework. */
static bool is_named(const struct lac_model *model, const char *framework)
{
    return strcmp(setting_text(model, "framework"), framework) == 0;
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

/* -- what it trains ---------------------------------------------------------------------------- */

static void set_model(struct lac_analysis *analysis, const char *name, size_t length)
{
    const size_t kept = lac_utf8_cut(name, length, sizeof(analysis->trained_model) - 1);
    (void)snprintf(analysis->trained_model, sizeof(analysis->trained_model), "%.*s", (int)kept,
                   name);
}

/** Whether `option` begins the `length` bytes at `word`, alone or with "=VALUE". @return the value in
 *  the same word, "" if it is the next word, NULL if it is another option */
static const char *option_value(const char *word, size_t length, const char *option)
{
    const size_t option_length = strlen(option);
    if (length < option_length || memcmp(word, option, option_length) != 0) {
        return NULL;
    }
    if (length == option_length) {
        return "";
    }
    return word[option_length] == '=' ? word + option_length + 1 : NULL;
}

/** The model that a command line names, as training scripts call that option. @return its length */
static size_t model_of_command(const char *command, const char **ret_model)
{
    static const char *const options[] = {"--model", "--arch", "--model_name_or_path",
                                          "--model-name", "--model_name"};
    for (const char *word = command; *word != '\0';) {
        const size_t length = strcspn(word, " ");
        const char *next = word + length + strspn(word + length, " ");
        for (size_t i = 0; i < LAC_COUNT_OF(options); i++) {
            const char *value = option_value(word, length, options[i]);
            if (value != NULL) {
                *ret_model = value[0] != '\0' ? value : next;
                return strcspn(*ret_model, " ");
            }
        }
        word = next;
    }
    return 0;
}

/** Of our own recordings, whose processes are labeled with their command. */
static bool find_in_commands(const struct lac_model *model, struct lac_analysis *analysis)
{
    for (uint32_t p = 0; p < model->process_count && model->info.format == LAC_FORMAT_LACUNA; p++) {
        const char *name = NULL;
        const size_t length =
            model_of_command(lac_model_str(model, model->processes[p].labels), &name);
        if (length > 0 && name[0] != '-') {
            set_model(analysis, name, length);
            return true;
        }
    }
    return false;
}

/** The class of "nn.Module: ResNet_0". @return its length */
static size_t class_of(const char *name, const char **ret_class)
{
    static const char begin[] = "nn.Module: ";
    const char *from = name + sizeof(begin) - 1;
    const char *last = strrchr(from, '_');
    const bool is_numbered = last != NULL && last > from && last[1] != '\0' &&
                             last[1 + strspn(last + 1, "0123456789")] == '\0';
    *ret_class = from;
    return is_numbered ? (size_t)(last - from) : strlen(from);
}

/** Whether the module only holds the model. */
static bool is_wrapper(const char *name)
{
    static const char *const wrappers[] = {
        "DataParallel",    "DistributedDataParallel", "FullyShardedDataParallel",
        "OptimizedModule", "DeepSpeedEngine",         "Float16Module",
        "PipelineEngine"};
    const char *class = NULL;
    const size_t length = class_of(name, &class);
    for (size_t i = 0; i < LAC_COUNT_OF(wrappers); i++) {
        if (strlen(wrappers[i]) == length && memcmp(wrappers[i], class, length) == 0) {
            return true;
        }
    }
    return false;
}

/** The module in which most time is spent: no other is around it. */
static uint32_t outermost_module(const struct lac_model *model, const int64_t *total_ns)
{
    uint32_t outermost = 0;
    for (uint32_t id = 1; id < model->strings.count; id++) {
        const char *name = lac_model_str(model, id);
        if (total_ns[id] > total_ns[outermost] && lac_is_module_name(name) && !is_wrapper(name)) {
            outermost = id;
        }
    }
    return outermost;
}

enum lac_status lac_trained_model_find(struct lac_facts *facts)
{
    const struct lac_model *model = facts->model;
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_slices *slices = &model->slices;
    static const char *const of_modules[] = {"nn.Module: "};
    const char *told = setting_text(model, "model");
    set_model(analysis, told, strlen(told));
    if (told[0] != '\0' || find_in_commands(model, analysis) ||
        !has_name(model, of_modules, LAC_COUNT_OF(of_modules))) {
        return LAC_OK;
    }
    int64_t *total_ns = calloc((size_t)model->strings.count + 1, sizeof(*total_ns));
    if (total_ns == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < slices->count; i++) {
        if (slices->kind[i] == LAC_SLICE_PYTHON) {
            int64_t *total = &total_ns[slices->name[i]];
            *total = lac_sum_ns(*total, slices->dur_ns[i]);
        }
    }
    total_ns[0] = 0; /* slices without a name */
    const uint32_t outermost = outermost_module(model, total_ns);
    if (outermost != 0) {
        const char *class = NULL;
        const size_t length = class_of(lac_model_str(model, outermost), &class);
        set_model(analysis, class, length);
    }
    free(total_ns);
    return LAC_OK;
}
