/*
 * Device memory allocated and released inside steps. A caching allocator does that once; when it
 * goes on, memory is short (a failed allocation, then a burst of releases), the sizes change, or
 * caching is off: then what is allocated are tensors, about as many as there are kernels.
 */

#include "analysis/diagnose/findings/findings.h"

#include <stdint.h>
#include <string.h>

struct allocations {
    uint64_t count, release_count, failed_count;
    uint32_t steps_with; /**< kept steps that allocate or release */
    uint32_t longest;    /**< slice */
    uint64_t hip_count;  /**< allocations by AMD's runtime */
};

static void count_calls(const struct lac_facts *facts, struct allocations *counts)
{
    enum { OUT_OF_MEMORY = 2 };
    const struct lac_slices *slices = &facts->model->slices;
    const struct lac_spans *kept = &facts->host_kept;
    const struct lac_analysis *analysis = facts->analysis;
    uint32_t step = 0;
    uint32_t last_step = LAC_NONE;
    counts->longest = LAC_NONE;
    for (uint64_t i = 0; i < facts->alloc_marks.count; i++) {
        const struct lac_mark *mark = &facts->alloc_marks.at[i];
        while (step + 1 < analysis->step_count &&
               analysis->steps[step + 1].host_start_ns <= mark->start_ns) {
            step++;
        }
        if (lac_spans_length_inside(kept, mark->start_ns, mark->start_ns + 1) == 0) {
            continue;
        }
        const char *name = lac_model_str(facts->model, slices->name[mark->slice]);
        bool is_release = strstr(name, "Free") != NULL || strstr(name, "Release") != NULL ||
                          strstr(name, "Unmap") != NULL;
        counts->count += !is_release;
        counts->hip_count += !is_release && strncmp(name, "hip", 3) == 0;
        counts->release_count += is_release;
        counts->failed_count += !is_release && slices->detail[mark->slice] == OUT_OF_MEMORY;
        counts->steps_with += step != last_step;
        last_step = step;
        if (counts->longest == LAC_NONE || mark->dur_ns > slices->dur_ns[counts->longest]) {
            counts->longest = mark->slice;
        }
    }
}

static double kernels_per_step(const struct lac_facts *facts)
{
    const struct lac_step_operations *work = facts->step_operations;
    uint64_t count = 0;
    for (uint64_t i = 0; i < work->count; i++) {
        count += lac_step_operation_kernel(facts, &work->ops[i]) != NULL;
    }
    return work->steps > 0.0 ? (double)count / work->steps : 0.0;
}

/** Whether every tensor is asked of the driver, and given back to it. */
static bool is_caching_off(const struct lac_facts *facts, const struct allocations *counts)
{
    double per_step = (double)counts->count / (double)facts->analysis->step_kept_count;
    return counts->failed_count == 0 && per_step >= UNCACHED_LEAST &&
           per_step >= UNCACHED_PER_KERNEL_MIN * kernels_per_step(facts) &&
           (double)counts->release_count >= UNCACHED_RELEASED_MIN * (double)counts->count &&
           lac_framework_of(facts->model) == LAC_FRAMEWORK_PYTORCH;
}

static void explain_caching_off(const struct lac_facts *facts, struct lac_finding *finding,
                                const struct allocations *counts)
{
    struct lac_text **texts = &facts->analysis->texts;
    double kept = (double)facts->analysis->step_kept_count;
    bool is_hip = 2 * counts->hip_count > counts->count;
    finding->why = lac_texts_add(
        texts,
        "%s allocations and %s releases per step for %s kernels: every tensor is allocated by the "
        "driver, so the caching allocator is off. Each release synchronizes with the GPU.",
        lac_format_rate((double)counts->count / kept).text,
        lac_format_rate((double)counts->release_count / kept).text,
        lac_format_rate(kernels_per_step(facts)).text);
    finding->brief = "turn the caching allocator on";
    finding->change = lac_texts_add(
        texts,
        "unset PYTORCH_NO_CUDA_MEMORY_CACHING%s\n"
        "# and remove torch.cuda.memory.change_current_allocator() from the program, if present",
        is_hip ? " PYTORCH_NO_HIP_MEMORY_CACHING" : "");
    finding->costs = "The process holds its memory between steps. Tools that check memory "
                     "(compute-sanitizer) see less with the cache on.";
    finding->wrong_if = "neither is set where the job runs; then the calls come from a library "
                        "outside the framework.";
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct allocations *counts)
{
    struct lac_analysis *analysis = facts->analysis;
    double kept = (double)analysis->step_kept_count;
    struct lac_text32 allocations = lac_format_rate((double)counts->count / kept);
    struct lac_text32 releases = lac_format_rate((double)counts->release_count / kept);
    bool is_retry = counts->failed_count > 0;
    finding->why =
        is_retry
            ? lac_texts_add(
                  &analysis->texts,
                  "%s failed with out-of-memory inside steps; the allocator then empties its cache "
                  "(%s releases per step) and retries. GPU memory is exhausted or fragmented.",
                  lac_format_count((int64_t)counts->failed_count, "allocation").text, releases.text)
            : lac_texts_add(
                  &analysis->texts,
                  "%s allocations and %s releases per step, in %s; a caching allocator needs none "
                  "after the first steps. Each release synchronizes with the GPU.",
                  allocations.text, releases.text,
                  lac_format_count(counts->steps_with, "step").text);
    finding->brief = is_retry ? "expandable segments" : "keep allocated memory";
    bool is_pytorch = lac_framework_of(facts->model) == LAC_FRAMEWORK_PYTORCH;
    if (!is_pytorch) {
        finding->change_kind = LAC_CHANGE_CODE;
        finding->effort = LAC_EFFORT_LINES;
    }
    finding->change =
        is_pytorch
            ? "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py\n"
              "# and remove torch.cuda.empty_cache() from the loop, if present"
            : "cudaMallocAsync(&pointer, size, stream);  // from a pool that retains its memory:\n"
              "cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &no_limit);";
    finding->costs = is_retry ? "None. If it still fails: activation checkpointing, or a smaller "
                                "batch (which changes training)."
                              : "The process holds its memory between steps.";
}

bool lac_find_allocator_thrash(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct lac_analysis *analysis = facts->analysis;
    struct allocations counts = {0};
    count_calls(facts, &counts);
    bool is_steady = counts.steps_with >= STEPS_MIN || counts.failed_count > 0 ||
                     counts.steps_with == analysis->step_kept_count;
    struct lac_what_if_changes what_if;
    lac_what_if_clear(&what_if);
    what_if.no_allocator = 1;
    double cost_ns = facts->time->idle_ns[LAC_CAUSE_ALLOCATOR];
    if (!is_steady || !lac_finding_open(facts, finding, cost_ns, COST_MIN_PCT, &what_if)) {
        return false;
    }
    finding->title = lac_texts_add(
        &analysis->texts,
        lac_finding_hides(finding)
            ? "Allocating and releasing memory costs %s of every %s step (%s)"
            : "The GPU waits %s of every %s step for memory to be allocated and released (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->wrong_if = "the calls come from a library outside the framework.";
    if (is_caching_off(facts, &counts)) {
        explain_caching_off(facts, finding, &counts);
    } else {
        explain(facts, finding, &counts);
    }
    finding->expect = lac_finding_expect(facts, finding);
    finding->check = lac_texts_add(&analysis->texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    lac_evidence_gaps(facts, finding, LAC_CAUSE_ALLOCATOR, 3);
    if (counts.longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, counts.longest, "the longest call");
    }
    return true;
}
