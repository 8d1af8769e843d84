/* What was checked and is fine, what was not recorded, and what the trace is not good for. */

#include "analysis/diagnose/facts/program.h"
#include "analysis/diagnose/loading/loading.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/diagnose/wording/wording.h"
#include "collector/base/count_of.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static bool is_loading_told(const struct lac_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (lac_finding_type(analysis->findings[i].kind)->is_about_loading) {
            return true;
        }
    }
    return false;
}

static void fine(struct lac_facts *facts, enum lac_checked checked, double pct)
{
    static const struct {
        enum lac_words group;
        uint32_t value;
    } words[LAC_CHECKED_COUNT_] = {
        [LAC_CHECKED_DATA] = {LAC_WORDS_NEED, LAC_NEED_DATA},
        [LAC_CHECKED_LAYOUT] = {LAC_WORDS_FAMILY, LAC_FAMILY_LAYOUT},
        [LAC_CHECKED_COPIES] = {LAC_WORDS_PART, LAC_PART_EXPOSED_COPY},
        [LAC_CHECKED_SYNC] = {LAC_WORDS_CAUSE, LAC_CAUSE_SYNC},
        [LAC_CHECKED_LAUNCH] = {LAC_WORDS_CAUSE, LAC_CAUSE_LAUNCH},
        [LAC_CHECKED_ALLOCATOR] = {LAC_WORDS_CAUSE, LAC_CAUSE_ALLOCATOR},
        [LAC_CHECKED_MODULE_LOAD] = {LAC_WORDS_CAUSE, LAC_CAUSE_MODULE_LOAD},
        [LAC_CHECKED_PROFILER] = {LAC_WORDS_CAUSE, LAC_CAUSE_PROFILER},
        [LAC_CHECKED_COMM] = {LAC_WORDS_PART, LAC_PART_EXPOSED_COMM},
    };
    const struct lac_word *word = lac_word(words[checked].group, words[checked].value);
    const char *name = words[checked].group == LAC_WORDS_CAUSE ? word->brief : word->label;
    struct lac_analysis *analysis = facts->analysis;
    assert(analysis->checked_fine_count < LAC_CHECKED_COUNT_);
    analysis->checked_fine[analysis->checked_fine_count++] =
        lac_texts_add(&analysis->texts, "%s %s", name, lac_format_pct(pct).text);
}

/** Causes below these shares of the step are fine. */
static void check_causes(struct lac_facts *facts)
{
    static const struct {
        enum lac_cause cause;
        enum lac_checked checked;
        double limit_pct;
        enum lac_finding_kind findings[2]; /* not where one of these says more */
    } checks[] = {
        {LAC_CAUSE_SYNC,
         LAC_CHECKED_SYNC,
         FINE_SYNC_PCT,
         {LAC_FINDING_SYNC_STALL, LAC_FINDING_SYNC_PER_LAYER}},
        {LAC_CAUSE_LAUNCH,
         LAC_CHECKED_LAUNCH,
         FINE_LAUNCH_PCT,
         {LAC_FINDING_LAUNCH_BOUND, LAC_FINDING_SLOW_OPTIMIZER}},
        {LAC_CAUSE_ALLOCATOR,
         LAC_CHECKED_ALLOCATOR,
         FINE_ALLOCATOR_PCT,
         {LAC_FINDING_ALLOCATOR_THRASH, LAC_FINDING_ALLOCATOR_THRASH}},
        {LAC_CAUSE_MODULE_LOAD,
         LAC_CHECKED_MODULE_LOAD,
         FINE_MODULE_PCT,
         {LAC_FINDING_MODULE_LOAD, LAC_FINDING_MODULE_LOAD}},
        {LAC_CAUSE_PROFILER,
         LAC_CHECKED_PROFILER,
         FINE_PROFILER_PCT,
         {LAC_FINDING_PROFILER_OVERHEAD, LAC_FINDING_PROFILER_OVERHEAD}},
    };
    const struct lac_step_time *time = facts->time;
    for (size_t i = 0; i < LAC_COUNT_OF(checks); i++) {
        double pct = lac_pct_of_step(facts, time->idle_ns[checks[i].cause]);
        if (checks[i].cause == LAC_CAUSE_PROFILER && facts->profiler_count == 0) {
            continue; /* this recorder does not say what it costs */
        }
        bool is_told = lac_finding_of(facts->analysis, checks[i].findings[0]) != NULL ||
                       lac_finding_of(facts->analysis, checks[i].findings[1]) != NULL;
        if (pct < checks[i].limit_pct && !is_told) {
            fine(facts, checks[i].checked, pct);
        }
    }
}

static void write_checked(struct lac_facts *facts)
{
    const struct lac_analysis *analysis = facts->analysis;
    const struct lac_step_time *time = facts->time;
    double starved_pct = lac_pct_of_step(facts, time->starved_ns);
    if (analysis->loader.is_present && starved_pct < FINE_DATA_PCT && !is_loading_told(analysis)) {
        fine(facts, LAC_CHECKED_DATA, starved_pct);
    }
    double layout_pct = lac_pct_of_step(facts, time->class_ns[LAC_OP_LAYOUT]);
    if (analysis->has_kernels && lac_finding_of(analysis, LAC_FINDING_LAYOUT_CONVERSION) == NULL) {
        fine(facts, LAC_CHECKED_LAYOUT, layout_pct);
    }
    double copy_pct = lac_pct_of_step(facts, time->exposed_copy_ns);
    bool is_copy_fine = lac_finding_of(analysis, LAC_FINDING_PAGEABLE_COPY) == NULL &&
                        lac_finding_of(analysis, LAC_FINDING_BLOCKING_COPY) == NULL &&
                        copy_pct < FINE_COPIES_PCT;
    if (is_copy_fine) {
        fine(facts, LAC_CHECKED_COPIES, copy_pct);
    }
    /* without calls, or with much idle time that has no cause, none of them was checked */
    if (facts->has_api &&
        lac_pct_of_step(facts, time->idle_ns[LAC_CAUSE_UNATTRIBUTED]) < UNEXPLAINED_MAX_PCT) {
        check_causes(facts);
    }
    if (time->comm_ns > 0.0 && lac_pct_of_step(facts, time->exposed_comm_ns) < FINE_COMM_PCT &&
        lac_finding_of(analysis, LAC_FINDING_EXPOSED_COMMUNICATION) == NULL) {
        fine(facts, LAC_CHECKED_COMM, lac_pct_of_step(facts, time->exposed_comm_ns));
    }
}

const char *lac_records_gpu(const struct lac_model *model)
{
    enum lac_trace_format format = model->info.format;
    bool is_log = format == LAC_FORMAT_GPU_LOG || format == LAC_FORMAT_PERF_STAT ||
                  format == LAC_FORMAT_TENSORBOARD;
    if (is_log || format >= LAC_FORMAT_FOLDED || model->info.weight_unit != 0) {
        return NULL;
    }
    return format == LAC_FORMAT_NSYS ? "nsys profile --trace=cuda" : "profile with CUDA activities";
}

static void missing(struct lac_analysis *analysis, enum lac_missing what)
{
    assert(analysis->not_recorded_count < LAC_MISSING_COUNT_);
    analysis->not_recorded[analysis->not_recorded_count++] =
        lac_word(LAC_WORDS_MISSING, what)->label;
}

/** The same with the reason that the recorder gave. */
static void missing_since(struct lac_facts *facts, enum lac_missing what, const char *why)
{
    struct lac_analysis *analysis = facts->analysis;
    missing(analysis, what);
    analysis->not_recorded[analysis->not_recorded_count - 1] =
        lac_texts_add(&analysis->texts, "%s: %s", lac_word(LAC_WORDS_MISSING, what)->brief, why);
}

/** What our own recorder knows that it could not record of the GPU. */
static void write_missing_gpu(struct lac_facts *facts)
{
    const char *kernels = lac_why_no_kernels(facts);
    const char *end = kernels == NULL ? lac_why_gpu_ended(facts) : NULL;
    int64_t untimed = lac_gpu_untimed(facts);
    int64_t unread = lac_gpu_unread_buffers(facts);
    if (kernels != NULL) {
        missing_since(facts, LAC_MISSING_KERNELS, kernels);
    }
    if (end != NULL) {
        missing_since(facts, LAC_MISSING_GPU_END, end);
    }
    if (untimed > 0) {
        missing_since(facts, LAC_MISSING_UNTIMED,
                      lac_texts_add(&facts->analysis->texts,
                                    "%s had not ended when the recording did",
                                    lac_format_count(untimed, "operation").text));
    }
    if (unread > 0) {
        missing_since(facts, LAC_MISSING_GPU_BUFFERS,
                      lac_texts_add(&facts->analysis->texts,
                                    "CUPTI asked %s in vain: too many buffers were in use, or the "
                                    "job had no memory for another",
                                    lac_format_count(unread, "time").text));
    }
}

static void write_missing(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_trace_info *info = &facts->model->info;
    const char *cut_off = lac_why_cut_off(facts);
    if (cut_off != NULL) {
        missing_since(facts, LAC_MISSING_JOB_END, cut_off);
    }
    if (analysis->device_count == 0) {
        const char *nothing = lac_why_nothing(facts);
        const char *why = nothing != NULL ? nothing : lac_why_no_gpu(facts);
        why = why != NULL ? why : lac_records_gpu(facts->model);
        if (why != NULL) {
            missing_since(facts, LAC_MISSING_DEVICE, why);
        }
        return;
    }
    write_missing_gpu(facts);
    if (!facts->has_api) {
        missing(analysis, LAC_MISSING_CALLS);
    }
    if (!analysis->loader.is_present) {
        /* what is of no framework, a simulation of physics, has no loader to record */
        if (lac_framework_of(facts->model) != LAC_FRAMEWORK_UNKNOWN) {
            missing(analysis, LAC_MISSING_LOADER);
        }
    } else if (facts->fetch_count == 0) {
        missing(analysis, LAC_MISSING_WORKERS);
    }
    if (info->world_size > 1) {
        missing(analysis, LAC_MISSING_RANKS);
    }
    const struct lac_loading *loading = facts->loading;
    if (loading == NULL || !loading->samples.has_io) {
        missing(analysis, LAC_MISSING_STORAGE);
    }
    if (loading != NULL && loading->workers > 0 && !loading->samples.has_threads) {
        missing(analysis, LAC_MISSING_THREADS);
    }
    if (facts->kernel_row_count > analysis->kernel_name_count) {
        missing(analysis, LAC_MISSING_IN_GRAPHS);
    }
}

static void caveat(struct lac_analysis *analysis, const char *text)
{
    assert(analysis->caveat_count < LAC_CAVEAT_COUNT_);
    analysis->caveats[analysis->caveat_count++] = text;
}

/** Rows that somebody left out: calls and operations carry one number, so that either tells of the
 *  other. */
static void write_thinned(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    double ops_pct =
        lac_pct((int64_t)facts->pairs.operations_alone, (int64_t)facts->pairs.operations);
    double launches_pct =
        lac_pct((int64_t)facts->pairs.launches_alone, (int64_t)facts->pairs.launches);
    if (facts->has_api && facts->pairs.launches_alone >= THINNED_MIN &&
        launches_pct >= THINNED_MIN_PCT) {
        caveat(analysis,
               lac_texts_add(&analysis->texts,
                             "%s of the launches have no operation: rows were left out, and the "
                             "GPU is less idle than shown",
                             lac_format_pct(launches_pct).text));
    } else if (facts->has_api && facts->pairs.operations_alone >= THINNED_MIN &&
               ops_pct >= THINNED_MIN_PCT) {
        caveat(analysis,
               lac_texts_add(&analysis->texts,
                             "%s of the GPU's operations have no call that launched them: calls "
                             "were left out, and some causes of idle time with them",
                             lac_format_pct(ops_pct).text));
    }
}

static void write_caveats(struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_trace_info *info = &facts->model->info;
    if (info->is_simulated) {
        caveat(analysis, "simulated, not real training");
    }
    if (facts->has_python || info->has_python_stacks) {
        caveat(analysis,
               "recorded with Python stacks: host times are inflated, launch costs are unreliable");
    }
    if (analysis->workload == LAC_WORKLOAD_TRAINING && facts->has_device_steps) {
        caveat(analysis, strcmp(analysis->step_method, "period") == 0
                             ? "steps are not marked: inferred from repeating kernels"
                             : "steps are not marked: inferred from the optimizer's kernels");
    }
    if (analysis->workload == LAC_WORKLOAD_TRAINING && analysis->micro_step_count > 1) {
        caveat(analysis, lac_texts_add(&analysis->texts,
                                       analysis->is_step_micro
                                           ? "a step is one of %u micro-steps of an update"
                                           : "a step is an update with %u micro-steps",
                                       (unsigned)analysis->micro_step_count));
    }
    if (analysis->workload == LAC_WORKLOAD_TRAINING && analysis->step_kept_count < 10) {
        caveat(analysis,
               lac_texts_add(&analysis->texts,
                             "%s: a change of less than %s cannot be told from noise",
                             lac_format_count(analysis->step_kept_count, "step").text,
                             lac_format_pct(fmax(1.0, analysis->step_uncertain_pct)).text));
    }
    write_thinned(facts);
    if (fabs(analysis->replay.error_pct) > REPLAY_ERROR_SAID_PCT) {
        bool is_rejected = lac_graph_trust(facts->time) == LAC_TRUST_NONE;
        caveat(analysis,
               lac_texts_add(&analysis->texts, "the replay of the unchanged steps is %s off: %s",
                             lac_format_pct(fabs(analysis->replay.error_pct)).text,
                             is_rejected ? "gains are computed from the GPU's operations alone"
                                         : "gains smaller than that cannot be predicted"));
    }
    for (uint32_t i = 0; i < facts->model->report_count; i++) {
        const struct lac_report_line *const line = &facts->model->report[i];

        bool is_told =
            line->severity == LAC_REPORT_DROPPED || strcmp(line->code, "times_moved") == 0;

        if (is_told && info->format == LAC_FORMAT_LACUNA) {
            caveat(analysis,
                   lac_texts_add(&analysis->texts, "%" PRIu64 " %s", line->count, line->text));
        }
    }
    if (info->dropped_count > 0 && info->format != LAC_FORMAT_LACUNA) {
        caveat(analysis,
               lac_texts_add(&analysis->texts, "%s dropped on import: see the import report",
                             lac_format_count((int64_t)info->dropped_count, "event").text));
    }
}

void lac_notes_write(struct lac_facts *facts)
{
    if (facts->time != NULL && facts->analysis->workload == LAC_WORKLOAD_TRAINING) {
        write_checked(facts);
    }
    write_missing(facts);
    lac_note_missing_samples(facts);
    write_caveats(facts);
}
