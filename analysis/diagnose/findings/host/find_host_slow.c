/*
 * A host that takes many times as long as it should for everything: a debugger or a tracer that looks at
 * every call, a debug or instrumented build, a core that others use. Operators that only make a new
 * view of a tensor tell it: they compute nothing, and take a microsecond on any healthy host.
 */

#include "analysis/diagnose/findings/host/host_thresholds.h"
#include "analysis/diagnose/findings/host/host_walk.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_COUNT = 3, DURATIONS_MAX = 2048 };

static const struct view {
    const char *name;
    double usual_us, limit_us;
} views[VIEW_COUNT] = {{"aten::as_strided", AS_STRIDED_USUAL_US, AS_STRIDED_LIMIT_US},
                       {"aten::view", VIEW_USUAL_US, VIEW_LIMIT_US},
                       {"aten::detach", DETACH_USUAL_US, DETACH_LIMIT_US}};

struct durations {
    int64_t *ns[VIEW_COUNT];
    uint32_t count[VIEW_COUNT];
    uint32_t example; /**< a slice of the first view, or LAC_NONE */
};

static void note_duration(void *context, const struct lac_host_open *open, uint64_t slice)
{
    struct durations *durations = context;
    const struct lac_slices *slices = &open->facts->model->slices;
    if (slices->kind[slice] != LAC_SLICE_OP) {
        return;
    }
    const char *name = lac_host_name(open->facts, slice);
    for (size_t v = 0; v < LAC_COUNT_OF(views); v++) {
        if (strcmp(name, views[v].name) == 0 && durations->count[v] < DURATIONS_MAX &&
            !lac_host_is_loading(open)) { /* the loader may well be slow by itself */
            durations->ns[v][durations->count[v]++] = slices->dur_ns[slice];
            durations->example = (uint32_t)slice;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return LAC_ORDER(x, y);
}

/** How slow the host is, told by the view that tells most. */
struct slowness {
    const char *name;
    double median_ns;
    double factor;   /**< median by usual; 0: not slow */
    uint32_t others; /**< that say the same */
};

/** Slow when every view that has a median is above its limit. */
static struct slowness judge(struct durations *durations)
{
    struct slowness slow = {.name = ""};
    for (size_t v = 0; v < LAC_COUNT_OF(views); v++) {
        uint32_t count = durations->count[v];
        if (count < OPERATORS_MIN) {
            continue;
        }
        qsort(durations->ns[v], count, sizeof(*durations->ns[v]), by_value);
        const uint32_t middle = (count - 1) / 2;
        double median_ns = (double)durations->ns[v][middle];
        if (median_ns < 1e3 * views[v].limit_us) {
            return (struct slowness){.name = ""};
        }
        double factor = median_ns / (1e3 * views[v].usual_us);
        slow.others += slow.factor > 0.0;
        if (slow.factor <= 0.0) { /* the first is the simplest: it has no other inside */
            slow.name = views[v].name;
            slow.median_ns = median_ns;
            slow.factor = factor;
        }
    }
    return slow;
}

/** What the host does between calls of the driver and waits for batches, at its usual pace. */
struct stretches {
    struct lac_edits *edits;
    double factor;
    uint32_t track;
    int64_t from_ns; /**< end of what was left as it is */
};

static void speed_up(void *context, const struct lac_host_open *open, uint64_t slice)
{
    struct stretches *stretches = context;
    const struct lac_slices *slices = &open->facts->model->slices;
    uint32_t name = slices->name[slice];
    bool is_wait = slices->kind[slice] != LAC_SLICE_API &&
                   lac_host_class_of(open->facts, name) == LAC_HOST_LOADER_WAIT;
    int64_t start_ns = slices->start_ns[slice];
    if (stretches->track != open->track) {
        stretches->track = open->track;
        stretches->from_ns = start_ns;
    }
    if (slices->kind[slice] != LAC_SLICE_API && !is_wait) {
        return;
    }
    if (start_ns > stretches->from_ns) {
        lac_edits_host_time(stretches->edits, open->track, stretches->from_ns, start_ns,
                            stretches->factor);
    }
    int64_t end_ns = start_ns + slices->dur_ns[slice];
    stretches->from_ns = end_ns > stretches->from_ns ? end_ns : stretches->from_ns;
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct slowness *slow, uint32_t example)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text **texts = &analysis->texts;
    finding->title = lac_texts_add(
        texts, "The host itself is slow: it costs %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(
        texts,
        "%s takes %s (median)%s, where 0.2 to 2 us are usual: it computes nothing. A debugger or "
        "tracer, a debug build, or a core that others use slows every operator down.",
        slow->name, lac_format_ns(lac_round(slow->median_ns)).text,
        slow->others > 0 ? ", and the other operators of its kind are as slow" : "");
    finding->brief = "no debugger, release build, free cores";
    finding->change =
        "# a debugger, coverage or a tracer: run without it\n"
        "python -c \"import sys; print(sys.gettrace(), sys.getprofile(), sys.flags)\"\n"
        "env | grep -iE 'pydevd|debugpy|coverage|asan|ld_preload'\n"
        "# a debug or instrumented build of PyTorch: install a release\n"
        "python -c \"import torch; print(torch.version.debug, torch.__config__.show())\"\n"
        "# cores that others use, or that are clocked down\n"
        "nproc; uptime; cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs = "None, once the reason is known.";
    finding->wrong_if = "the same program on the same host is as slow without any of them; then "
                        "compare with another host.";
    finding->check =
        lac_texts_add(texts,
                      "python -m timeit -s 'import torch; x = torch.zeros(8)' 'x.view(2, 4)': "
                      "0.2 to 2 us; expect %s per step",
                      lac_format_ns(finding->step_mid_ns).text);
    if (example != LAC_NONE) {
        lac_evidence_slice(facts, finding, example, "computes nothing");
    }
}

bool lac_find_host_slow(const struct lac_facts *facts, struct lac_finding *finding)
{
    static const double share[LAC_CASE_COUNT_] = {1.0, HOST_CURED_MID, 0.6};
    /* what recording Python stacks adds cannot be told from what is wrong */
    if (facts->has_python || facts->model->info.has_python_stacks) {
        return false;
    }
    int64_t *room = calloc((size_t)VIEW_COUNT * DURATIONS_MAX, sizeof(*room));
    if (room == NULL) {
        return false;
    }
    struct durations durations = {.example = LAC_NONE};
    for (size_t v = 0; v < LAC_COUNT_OF(views); v++) {
        durations.ns[v] = &room[v * DURATIONS_MAX];
    }
    double steps = lac_host_walk(facts, note_duration, &durations);
    struct slowness slow = judge(&durations);
    free(room);
    if (steps <= 0.0 || slow.factor <= 0.0) {
        return false;
    }
    struct stretches stretches = {.edits = lac_edits_begin(facts, finding->kind),
                                  .factor = 1.0 / slow.factor,
                                  .track = LAC_NONE};
    lac_host_walk(facts, speed_up, &stretches);
    if (!lac_host_open_edited(facts, finding, stretches.edits, share)) {
        return false;
    }
    finding->confidence = slow.others > 0 ? 0.8 : 0.7;
    explain(facts, finding, &slow, durations.example);
    return true;
}
