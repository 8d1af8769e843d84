/* Matrix products and convolutions that tensor cores could do, on GPUs that have them. */

#include "analysis/diagnose/facts/gpu_counters.h"
#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>
#include <string.h>

enum { UNNAMED_PCT = 5 };

/** Major compute capability of an NVIDIA main device with tensor cores, 0 when not known. */
static int32_t nvidia_generation(const struct lac_facts *facts)
{
    const struct lac_device *device = lac_main_device(facts);
    if (device == NULL) {
        return 0;
    }
    const char *name = lac_model_str(facts->model, device->name);
    if (strstr(name, "GTX 16") != NULL) { /* 7.5, but made without them */
        return 0;
    }
    bool is_other = strstr(name, "AMD") != NULL || strstr(name, "Radeon") != NULL ||
                    strstr(name, "Instinct") != NULL;
    return is_other ? 0 : device->cc_major;
}

/** Whether TF32 is many times as fast as float32: on the large chips. On those of graphics cards it is
 *  about as fast. */
static bool has_fast_tf32(const struct lac_facts *facts)
{
    const struct lac_device *device = lac_main_device(facts);
    return device != NULL && (device->cc_major == 9 || device->cc_major == 10 ||
                              (device->cc_major == 8 && device->cc_minor == 0));
}

double lac_tensor_speedup(const struct lac_facts *facts, enum lac_case which)
{
    /* how much faster eligible kernels get: best, expected, worst */
    static const double of_large[LAC_CASE_COUNT_] = {6.0, 2.5, 1.5};
    static const double of_graphics[LAC_CASE_COUNT_] = {4.0, 2.0, 1.3};
    return nvidia_generation(facts) >= 8 && !has_fast_tf32(facts) ? of_graphics[which]
                                                                  : of_large[which];
}

/** Convolutions among the eligible time: from Ampere on they use TF32 by default,
 *  products do not. */
static double conv_share(const struct lac_analysis *analysis)
{
    double conv = 0.0;
    double all = 0.0;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (!kernel_facts->names.is_eligible ||
            kernel_facts->names.tensor_core != LAC_TENSOR_CORE_NO) {
            continue;
        }
        all += (double)kernel_facts->total_ns;
        conv +=
            kernel_facts->names.family == LAC_FAMILY_CONV ? (double)kernel_facts->total_ns : 0.0;
    }
    return all > 0.0 ? conv / all : 0.0;
}

/** The framework's own switch instead of autocast, which it turns on itself. */
static void propose_switch(const struct lac_facts *facts, struct lac_finding *finding,
                           enum lac_switch which)
{
    const char *own = lac_is_inference(facts) ? NULL : lac_framework_advice(facts, which, "");
    finding->change = own != NULL ? own : finding->change;
}

/** Training in float16, with the names that the trace's PyTorch has. */
static const char *change_of_float16(const struct lac_facts *facts)
{
    return lac_torch_is_before(facts, LAC_TORCH_2_3)
               ? "scaler = torch.cuda.amp.GradScaler()  # from PyTorch 2.3: "
                 "torch.amp.GradScaler('cuda')\n"
                 "with torch.cuda.amp.autocast():         # float16\n"
                 "    loss = criterion(model(images), labels)\n"
                 "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"
               : "scaler = torch.amp.GradScaler('cuda')\n"
                 "with torch.autocast('cuda', dtype=torch.float16):\n"
                 "    loss = criterion(model(images), labels)\n"
                 "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()";
}

static void propose(const struct lac_facts *facts, struct lac_finding *finding, int32_t generation)
{
    if (generation < 8) {
        finding->brief = "autocast float16";
        if (lac_is_inference(facts)) {
            finding->change =
                "with torch.inference_mode(), torch.autocast('cuda', dtype=torch.float16):\n"
                "    out = model(batch)";
            finding->costs =
                "Half precision changes results: compare them. This GPU's tensor cores "
                "support float16, not TF32 or bfloat16.";
            return;
        }
        finding->change = change_of_float16(facts);
        finding->costs =
            "Half precision changes results: compare the loss curve. This GPU's tensor cores "
            "support float16, not TF32 or bfloat16. Weights and optimizer state stay in float32.";
        propose_switch(facts, finding, LAC_SWITCH_FLOAT16);
        return;
    }
    if (has_fast_tf32(facts) && conv_share(facts->analysis) < MOSTLY_CONV_MIN) {
        finding->brief = "TF32 GEMMs";
        finding->change =
            "torch.set_float32_matmul_precision('high')   # before PyTorch 2.9\n"
            "torch.backends.cuda.matmul.fp32_precision = 'tf32'   # from 2.9 on; use one";
        finding->costs = "GEMMs use 10 bits of mantissa instead of 23: compare results.";
        propose_switch(facts, finding, LAC_SWITCH_TF32);
        return;
    }
    finding->brief = "autocast bfloat16";
    if (lac_is_inference(facts)) {
        finding->change =
            "with torch.inference_mode(), torch.autocast('cuda', dtype=torch.bfloat16):\n"
            "    out = model(batch)";
        finding->costs = "bfloat16 changes results: compare them.";
        return;
    }
    finding->change = "with torch.autocast('cuda', dtype=torch.bfloat16):\n"
                      "    loss = criterion(model(images), labels)";
    finding->costs = "bfloat16 changes results: compare the loss curve. Weights and optimizer "
                     "state stay in float32.";
    propose_switch(facts, finding, LAC_SWITCH_BFLOAT16);
}

/** The three kernels that take most of it. */
static void add_evidence(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    for (uint32_t row = 0; row < analysis->kernel_name_count && finding->evidence_count < 3;
         row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (!kernel_facts->names.is_eligible ||
            kernel_facts->names.tensor_core != LAC_TENSOR_CORE_NO) {
            continue;
        }
        char name[64];
        lac_kernel_short_name(lac_model_str(facts->model, kernel_facts->name),
                              lac_strings_length(&facts->model->strings, kernel_facts->name), name,
                              sizeof(name));
        const char *text =
            lac_texts_add(&facts->analysis->texts, "%s: %s, %s in total, not on tensor cores", name,
                          lac_format_count((int64_t)kernel_facts->count, "time").text,
                          lac_format_ns(kernel_facts->total_ns).text);
        lac_evidence_slice(facts, finding, kernel_facts->longest_slice, text);
    }
}

bool lac_has_unused_tensor_cores(const struct lac_facts *facts)
{
    const struct lac_step_time *time = facts->time;
    if (nvidia_generation(facts) < 7 || !(time->busy_ns > 0.0) ||
        time->class_ns[LAC_OP_UNUSED_TENSOR] < UNUSED_TENSOR_MIN * time->busy_ns) {
        return false;
    }
    /* what is left of it in a loop of half precision is wide-precision's */
    enum lac_precision loop = lac_products_precision(facts);
    return loop != LAC_PRECISION_FP16 && loop != LAC_PRECISION_BF16 && loop != LAC_PRECISION_FP8;
}

/** What the GPU's own counters say of it; where they see work that no name tells of, the names are
 *  trusted less. */
static const char *counters_text(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_analysis *analysis = facts->analysis;
    struct lac_gpu_counters counters;
    lac_gpu_counters_measure(facts, &counters);
    const char *text = lac_gpu_counters_text(facts, &counters);
    bool is_named = analysis->tensor_used_ns > 0 || analysis->tensor_unknown_ns > 0;
    if (is_named || !(counters.tensor_active >= UNNAMED_PCT)) {
        return text;
    }
    finding->confidence = 0.3;
    return lac_texts_add(&facts->analysis->texts,
                         "%s The counters show tensor-core activity, although no kernel name does.",
                         text);
}

static const char wrong_if[] = "these kernels already reach the memory bandwidth.";
static const char check[] = "record again: the kernel names show tensor cores";

bool lac_find_tensor_cores_unused(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double unused_ns = time->class_ns[LAC_OP_UNUSED_TENSOR];
    if (!lac_has_unused_tensor_cores(facts)) {
        return false;
    }
    double steps[LAC_CASE_COUNT_];
    for (int which = 0; which < LAC_CASE_COUNT_; which++) {
        struct lac_change change;
        lac_change_clear(&change);
        change.factor[LAC_OP_UNUSED_TENSOR] = 1.0 / lac_tensor_speedup(facts, (enum lac_case)which);
        if (which == LAC_CASE_MID) {
            lac_finding_note(facts, LAC_FINDING_TENSOR_CORES_UNUSED, &change);
        }
        steps[which] = lac_what_if_replay(facts, &change);
    }
    lac_finding_estimate_steps(facts, finding, steps);
    lac_finding_cost(facts, finding, unused_ns);
    finding->severity = lac_severity_of_gain(finding->gain_mid_pct);
    finding->confidence = 0.6;
    finding->title = lac_texts_add(
        &analysis->texts, "Matrix work off the tensor cores takes %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    const char *unknown = analysis->tensor_unknown_ns == 0
                              ? "all kernels were recognized"
                              : lac_texts_add(&analysis->texts, "%s is in kernels of unknown type",
                                              lac_format_pct(lac_pct(analysis->tensor_unknown_ns,
                                                                     analysis->tensor_eligible_ns))
                                                  .text);
    finding->why =
        lac_texts_add(&analysis->texts,
                      "Tensor cores run %.0f %% of the GEMM, convolution and attention time; %s.%s",
                      analysis->tensor_used_pct, unknown, counters_text(facts, finding));
    if (finding->gain_mid_pct < GAIN_MIN_PCT) {
        finding->expect = "0-1 % of the step: another limit comes first.";
        finding->severity = LAC_SEVERITY_INFO;
    } else {
        propose(facts, finding, nvidia_generation(facts));
        finding->expect = lac_texts_add(
            &analysis->texts,
            "%s. Assumes that these kernels get %.1f to %.0f times faster; "
            "memory bandwidth may limit it.",
            lac_finding_expect(facts, finding), lac_tensor_speedup(facts, LAC_CASE_WORST),
            lac_tensor_speedup(facts, LAC_CASE_BEST));
        finding->wrong_if = wrong_if;
        finding->check = check;
    }
    add_evidence(facts, finding);
    return true;
}

const char *lac_tensor_cores_behind(const struct lac_facts *facts)
{
    const struct lac_finding *finding =
        lac_finding_of(facts->analysis, LAC_FINDING_TENSOR_CORES_UNUSED);
    /* one that few steps show expects nothing */
    if (finding == NULL || finding->change[0] != '\0' || finding->expect[0] == '\0') {
        return "";
    }
    struct lac_finding proposed = *finding;
    propose(facts, &proposed, nvidia_generation(facts));
    return proposed.brief;
}

void lac_tensor_cores_propose_behind(const struct lac_facts *facts, int64_t step_ns)
{
    struct lac_analysis *analysis = facts->analysis;
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        struct lac_finding *finding = &analysis->findings[i];
        if (finding->kind == LAC_FINDING_TENSOR_CORES_UNUSED) {
            propose(facts, finding, nvidia_generation(facts));
            finding->expect =
                lac_texts_add(&analysis->texts,
                              "0-1 %% of the step: another limit comes first. With the changes "
                              "before it in the plan: %s per step.",
                              lac_format_ns(step_ns).text);
            finding->wrong_if = wrong_if;
            finding->check = check;
        }
    }
}
