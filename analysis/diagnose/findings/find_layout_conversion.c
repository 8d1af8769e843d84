/* Kernels that a library inserts to turn NCHW into NHWC and back. */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>

static const char *change_text(const struct lac_facts *facts)
{
    if (lac_framework_of(facts->model) == LAC_FRAMEWORK_TENSORFLOW) {
        return "tf.keras.backend.set_image_data_format('channels_last')";
    }
    return "model = model.to(memory_format=torch.channels_last)\n"
           "images = images.to(memory_format=torch.channels_last)  # 4-D inputs only";
}

/** The longest conversions as evidence. */
static void add_evidence(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count && finding->evidence_count < 4;
         row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (kernel_facts->names.layout != LAC_LAYOUT_L && !kernel_facts->names.is_strict_layout) {
            continue;
        }
        char name[64];
        lac_kernel_short_name(lac_model_str(facts->model, kernel_facts->name),
                              lac_strings_length(&facts->model->strings, kernel_facts->name), name,
                              sizeof(name));
        const char *text =
            lac_texts_add(&facts->analysis->texts, "%s: %s, %s in total", name,
                          lac_format_count((int64_t)kernel_facts->count, "time").text,
                          lac_format_ns(kernel_facts->total_ns).text);
        lac_evidence_slice(facts, finding, kernel_facts->longest_slice, text);
    }
}

/** Half precision convolutions want NHWC; float32 on Volta and older has no such kernels. */
static bool is_float32_on_old_gpu(const struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    int64_t id = analysis->devices[analysis->main_device].id;
    uint32_t index = lac_model_device_index(facts->model, id);
    int32_t major = index == LAC_NONE ? 0 : facts->model->devices[index].cc_major;
    return major > 0 && major < 8 && analysis->tensor_eligible_ns > 0 &&
           analysis->tensor_used_ns * 10 < analysis->tensor_eligible_ns;
}

static void say_worth_it(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    finding->title = lac_texts_add(
        &analysis->texts, "Layout conversions take %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->brief = "channels-last";
    finding->change = change_text(facts);
    finding->expect = lac_texts_add(
        &analysis->texts, "%s. Assumes that 85 %% of the conversions disappear (50-100 %%).",
        lac_finding_expect(facts, finding));
    finding->costs = "Two lines of code; results differ in the last digits. Layers without an NHWC "
                     "kernel keep their conversions.";
    finding->wrong_if = lac_texts_add(
        &analysis->texts, "more than half of the %.0f conversion kernels per step remain.",
        time->class_count[LAC_OP_LAYOUT]);
    finding->check = "record again: the kernels table has no conversion kernels";
}

static void say_not_worth_it(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double idle_pct = lac_pct_of_step(facts, time->step_ns - time->busy_ns);
    finding->title = lac_texts_add(
        &analysis->texts,
        "Layout conversions take %s of the kernel time but removing them gains nothing now",
        lac_format_pct(analysis->layout_pct).text);
    finding->brief = "";
    finding->expect = lac_texts_add(
        &analysis->texts,
        "%s of the step: without them, the GPU only waits longer. They matter once that "
        "wait is fixed.",
        lac_format_band(finding->gain_low_pct, finding->gain_high_pct).text);
    finding->wrong_if = lac_texts_add(
        &analysis->texts, "the GPU is idle for less than %.0f %% of the step.", idle_pct / 2.0);
}

bool lac_find_layout_conversion(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double exposed_pct = lac_pct_of_step(facts, time->class_ns[LAC_OP_LAYOUT]);
    bool has_any = analysis->layout_by_class_count[LAC_LAYOUT_L] > 0;
    if (!has_any || (!(analysis->layout_pct >= NOTED_PCT) && exposed_pct < COST_MIN_PCT)) {
        return false;
    }
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.layout_nhwc = 1;
    lac_finding_estimate(facts, finding, &what_if);
    lac_finding_cost(facts, finding, time->class_ns[LAC_OP_LAYOUT]);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.7;
    double idle_pct = lac_pct_of_step(facts, time->step_ns - time->busy_ns);
    finding->why = lac_texts_add(&analysis->texts,
                                 "%s convert tensors between NCHW and NHWC: %s of the kernel time, "
                                 "%.0f per step. The GPU is idle for %.0f %% of the step.",
                                 lac_format_count((int64_t)analysis->layout_count, "kernel").text,
                                 lac_format_pct(analysis->layout_pct).text,
                                 time->class_count[LAC_OP_LAYOUT], idle_pct);
    if (finding->gain_mid_pct > GAIN_MIN_PCT) {
        say_worth_it(facts, finding);
        if (is_float32_on_old_gpu(facts)) {
            finding->costs = "On this GPU, NHWC helps only with half precision: enable autocast "
                             "too, or convolutions may get slower.";
            finding->confidence = 0.3;
        }
    } else {
        say_not_worth_it(facts, finding);
    }
    add_evidence(facts, finding);
    return true;
}
