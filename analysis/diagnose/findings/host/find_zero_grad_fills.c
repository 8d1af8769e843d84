/*
 * Gradients that are filled with zeros before each step and added to in the backward pass, one parameter
 * at a time. Set to None, the first gradient of a step takes the place of the sum: neither the fill nor
 * the addition is needed. Additions beyond the first after a fill are accumulation over micro-batches.
 */

#include "analysis/diagnose/findings/host/host_thresholds.h"
#include "analysis/diagnose/findings/host/host_walk.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A fill of a gradient, or an addition to one; its calls are calls[first_call, + call_count]. */
struct touch {
    int64_t at_ns;
    uint32_t slice;
    uint32_t first_call, call_count;
    bool is_fill;
    bool is_spared; /**< an addition that is not there when the gradient was None */
};

struct touches {
    struct touch *at;
    uint64_t count, capacity;
    uint32_t *calls;
    uint64_t call_count, call_capacity;
    uint32_t *ranges; /**< of zero_grad() */
    uint64_t range_count, range_capacity;
    bool is_lost; /**< out of memory: nothing is said */
};

static bool is_zero_grad(const char *name)
{
    return strstr(name, "zero_grad") != NULL;
}

static bool is_accumulation(const char *name)
{
    return strstr(name, "AccumulateGrad") != NULL;
}

/** Whether nothing but ranges is around: the training loop itself calls it. */
static bool is_called_by_loop(const struct lac_host_open *open)
{
    for (uint32_t d = 0; d < open->depth; d++) {
        uint32_t slice = open->slice[d];
        uint32_t name = open->facts->model->slices.name[slice];
        enum lac_host_class host_class = lac_host_class_of(open->facts, name);
        if (open->facts->model->slices.kind[slice] == LAC_SLICE_OP ||
            host_class == LAC_HOST_OPTIMIZER || host_class == LAC_HOST_BACKWARD) {
            return false;
        }
    }
    return true;
}

static void add_touch(struct touches *touches, const struct lac_host_open *open, uint64_t slice,
                      bool is_fill)
{
    if (!LAC_RESERVE(touches->at, touches->capacity, touches->count, 1)) {
        touches->is_lost = true;
        return;
    }
    touches->at[touches->count++] =
        (struct touch){.at_ns = open->facts->model->slices.start_ns[slice],
                       .slice = (uint32_t)slice,
                       .first_call = (uint32_t)touches->call_count,
                       .is_fill = is_fill};
}

/** A call inside the touch that was seen last. */
static void add_call(struct touches *touches, const struct lac_host_open *open, uint64_t call)
{
    struct touch *last = &touches->at[touches->count - 1];
    bool is_inside = false;
    for (uint32_t d = 0; d < open->depth; d++) {
        is_inside = is_inside || open->slice[d] == last->slice;
    }
    if (!is_inside) {
        return;
    }
    if (!LAC_RESERVE(touches->calls, touches->call_capacity, touches->call_count, 1)) {
        touches->is_lost = true;
        return;
    }
    touches->calls[touches->call_count++] = (uint32_t)call;
    last->call_count++;
}

/** The addition in a node of the graph. Rows of the same time may be nested either way: LAC_NONE when
 *  it is none. */
static uint32_t addition_in(const struct lac_host_open *open, uint64_t slice, const char *name)
{
    const struct lac_slices *slices = &open->facts->model->slices;
    if (strcmp(name, "aten::add_") == 0) {
        return lac_host_around(open, is_accumulation) != LAC_NONE ? (uint32_t)slice : LAC_NONE;
    }
    if (open->depth == 0 || !is_accumulation(name)) {
        return LAC_NONE;
    }
    uint32_t around = open->slice[open->depth - 1];
    bool is_same_time = slices->start_ns[around] == slices->start_ns[slice] &&
                        slices->dur_ns[around] == slices->dur_ns[slice];
    bool is_addition = strcmp(lac_host_name(open->facts, around), "aten::add_") == 0;
    return is_same_time && is_addition ? around : LAC_NONE;
}

static void visit(void *context, const struct lac_host_open *open, uint64_t slice)
{
    struct touches *touches = context;
    const char *name = lac_host_name(open->facts, slice);
    if (touches->is_lost) {
        return;
    }
    if (open->facts->model->slices.kind[slice] == LAC_SLICE_API) {
        if (touches->count > 0) {
            add_call(touches, open, slice);
        }
    } else if (strcmp(name, "aten::zero_") == 0) {
        if (lac_host_around(open, is_zero_grad) != LAC_NONE || is_called_by_loop(open)) {
            add_touch(touches, open, slice, true);
        }
    } else if (addition_in(open, slice, name) != LAC_NONE) {
        add_touch(touches, open, addition_in(open, slice, name), false);
    } else if (strncmp(name, "Optimizer.zero_grad", 19) == 0) {
        if (!LAC_RESERVE(touches->ranges, touches->range_capacity, touches->range_count, 1)) {
            touches->is_lost = true;
            return;
        }
        touches->ranges[touches->range_count++] = (uint32_t)slice;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct touch *x = a;
    const struct touch *y = b;
    const int order = LAC_ORDER(x->at_ns, y->at_ns);
    return order != 0 ? order : LAC_ORDER(x->slice, y->slice);
}

struct counts {
    uint64_t fills, spared;
    double fill_ns, add_ns; /**< on the host */
    uint32_t longest;       /**< slice of the longest fill, or LAC_NONE */
};

/** As many additions as there were fills before them are spared: one a gradient. */
static struct counts match(const struct lac_facts *facts, struct touches *touches)
{
    const int64_t *dur_ns = facts->model->slices.dur_ns;
    struct counts counts = {.longest = LAC_NONE};
    uint64_t filled = 0;
    if (touches->count > 1) {
        qsort(touches->at, touches->count, sizeof(*touches->at), by_time);
    }
    for (uint64_t i = 0; i < touches->count; i++) {
        struct touch *touch = &touches->at[i];
        if (touch->is_fill) {
            filled = i > 0 && !touches->at[i - 1].is_fill ? 1 : filled + 1;
            counts.fills++;
            counts.fill_ns += (double)dur_ns[touch->slice];
            if (counts.longest == LAC_NONE || dur_ns[touch->slice] > dur_ns[counts.longest]) {
                counts.longest = touch->slice;
            }
        } else if (filled > 0) {
            filled--;
            touch->is_spared = true;
            counts.spared++;
            counts.add_ns += (double)dur_ns[touch->slice];
        }
    }
    return counts;
}

/** The steps without the fills and what is spared. */
static struct lac_edits *edit(const struct lac_facts *facts, const struct lac_finding *finding,
                              const struct touches *touches)
{
    struct lac_edits *edits = lac_edits_begin(facts, finding->kind);
    for (uint64_t i = 0; i < touches->count; i++) {
        const struct touch *touch = &touches->at[i];
        if (!touch->is_fill && !touch->is_spared) {
            continue;
        }
        lac_edits_host(edits, touch->slice, 0.0);
        for (uint32_t c = touch->first_call; c < touch->first_call + touch->call_count; c++) {
            uint32_t call = touches->calls[c];
            lac_edits_drop(edits, call, lac_host_launched(facts, call));
        }
    }
    for (uint64_t i = 0; i < touches->range_count; i++) {
        lac_edits_host(edits, touches->ranges[i], ZERO_GRAD_LEFT);
    }
    return edits;
}

static void explain(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct counts *counts, double steps)
{
    struct lac_analysis *analysis = facts->analysis;
    struct lac_text **texts = &analysis->texts;
    finding->title = lac_texts_add(
        texts, "Gradients are filled with zeros and added to: %s of every %s step (%s)",
        lac_format_ns(finding->cost_ns_per_step).text, lac_format_ns(analysis->step_mean_ns).text,
        lac_format_pct(finding->cost_pct).text);
    finding->why = lac_texts_add(texts,
                                 "%s gradients are filled per step, one by one, which takes the "
                                 "host %s; %s are then added to "
                                 "in the backward pass, another %s. A gradient that is None takes "
                                 "the first result as it is.",
                                 lac_format_rate((double)counts->fills / steps).text,
                                 lac_format_ns(lac_round(counts->fill_ns / steps)).text,
                                 lac_format_rate((double)counts->spared / steps).text,
                                 lac_format_ns(lac_round(counts->add_ns / steps)).text);
    finding->brief = "zero_grad(set_to_none=True)";
    finding->change = "optimizer.zero_grad(set_to_none=True)   # the default from PyTorch 2.0 on\n"
                      "# the same for model.zero_grad(), and for loops with p.grad.zero_()";
    finding->expect = lac_finding_expect(facts, finding);
    finding->costs =
        "None. A parameter that gets no gradient in a step is skipped by the optimizer "
        "instead of being updated with zeros.";
    finding->wrong_if = "code between zero_grad() and backward() reads p.grad, or writes into it.";
    finding->check = lac_texts_add(texts, "record ten steps; expect %s per step",
                                   lac_format_ns(finding->step_mid_ns).text);
    if (counts->longest != LAC_NONE) {
        lac_evidence_slice(facts, finding, counts->longest, "the longest fill");
    }
}

static bool find(const struct lac_facts *facts, struct lac_finding *finding,
                 struct touches *touches)
{
    static const double share[LAC_CASE_COUNT_] = {1.0, FILLS_SPARED_MID, 0.5};
    double steps = lac_host_walk(facts, visit, touches);
    if (touches->is_lost || steps <= 0.0) {
        return false;
    }
    struct counts counts = match(facts, touches);
    if ((double)counts.fills < FILLS_MIN * steps ||
        (double)counts.spared < FILLS_ADDED_MIN * (double)counts.fills) {
        return false;
    }
    if (!lac_host_open_edited(facts, finding, edit(facts, finding, touches), share)) {
        return false;
    }
    /* Python stacks make the host slower than it is */
    finding->confidence = facts->has_python || facts->model->info.has_python_stacks ? 0.5 : 0.8;
    explain(facts, finding, &counts, steps);
    return true;
}

bool lac_find_zero_grad_fills(const struct lac_facts *facts, struct lac_finding *finding)
{
    struct touches touches = {0};
    bool is_found = find(facts, finding, &touches);
    free(touches.at);
    free(touches.calls);
    free(touches.ranges);
    return is_found;
}
