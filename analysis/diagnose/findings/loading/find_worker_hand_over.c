/* Batches are ready, but reach the training process late: handing over and unpacking
 * is the wait. */

#include "analysis/diagnose/findings/loading/loading_findings.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MATCHED_MIN = 8, LARGE_BYTES = 4000000 };

/** Mean time of a part for one batch; 0 when it was not recorded. */
static double part_ns(const struct lac_facts *facts, const char *name)
{
    const struct lac_loading_facts *loading_facts = &facts->analysis->loading;
    for (uint32_t p = 0; p < loading_facts->part_count; p++) {
        if (strcmp(loading_facts->parts[p].name, name) == 0 && facts->fetch_count > 0) {
            return (double)loading_facts->parts[p].own_ns / (double)facts->fetch_count;
        }
    }
    return 0.0;
}

/** Whether batches are finished before they are waited for, and it matters. */
static bool is_handing_over(const struct lac_facts *facts)
{
    const struct lac_late_batches *late = &facts->loading->late;
    double busy_pct = facts->analysis->loader.worker_busy_pct;
    bool is_known = late->matched_count >= MATCHED_MIN && facts->loading->workers > 0 &&
                    late->matched_ns >= MAIN_PART_MIN * facts->time->starved_ns;
    return is_known && late->done_ns >= MAIN_PART_MIN * late->matched_ns &&
           lac_pct_of_step(facts, late->done_ns) >= COST_OF_WORK_MIN_PCT &&
           busy_pct <= BUSY_PCT_MAX;
}

/** What is known of the way of a batch from its worker into the loop; means, 0 not recorded. */
struct way {
    double put_ns;    /**< packing in the worker */
    double unpack_ns; /**< in the training process */
    double pin_ns;
};

static void say_why(const struct lac_facts *facts, struct lac_finding *finding,
                    const struct way *way)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading *loading = facts->loading;
    const char *put = way->put_ns > 0.0
                          ? lac_texts_add(&analysis->texts, " A worker packs a batch in %s.",
                                          lac_format_ns(lac_round(way->put_ns)).text)
                          : "";
    const char *unpack = way->unpack_ns > 0.0
                             ? lac_texts_add(&analysis->texts, " Unpacking it takes %s.",
                                             lac_format_ns(lac_round(way->unpack_ns)).text)
                             : "";
    const char *pin = way->pin_ns > 0.0 ? lac_texts_add(&analysis->texts, " Pinning it takes %s.",
                                                        lac_format_ns(lac_round(way->pin_ns)).text)
                                        : "";
    const char *bytes = loading->batch_bytes > 0
                            ? lac_texts_add(&analysis->texts, " A batch holds %s.",
                                            lac_format_bytes(loading->batch_bytes).text)
                            : "";
    finding->why = lac_texts_add(
        &analysis->texts,
        "The workers are busy only %.0f %% of the time, and the awaited batch is already fetched: "
        "%s of the %s wait per step comes after that.%s%s%s%s",
        analysis->loader.worker_busy_pct, lac_format_ns(lac_round(loading->late.done_ns)).text,
        lac_format_ns(lac_round(loading->late.matched_ns)).text, put, unpack, pin, bytes);
}

static void say_change(struct lac_finding *finding, bool is_pin, bool is_packing)
{
    finding->costs = "Work on the dataset and on collate_fn.";
    if (is_pin) {
        finding->brief = "smaller batches to pin";
        finding->costs = "The conversion moves to the GPU.";
        finding->change = "# More workers won't help: one thread pins all batches. Transfer the "
                          "compact form (uint8\n"
                          "# images, int32 ids) and convert it on the GPU:\n"
                          "images = images.to(device, non_blocking=True).float().div_(255)";
    } else if (is_packing) {
        finding->brief = "one tensor per batch";
        finding->change =
            "# More workers won't help: batches must be packed and unpacked. Return few large, "
            "compact\n"
            "# tensors, not lists, dicts of scalars or numpy objects:\n"
            "def collate(items):                       # in the worker\n"
            "    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])\n"
            "DataLoader(..., collate_fn=collate)";
    } else {
        finding->brief = "find the delay of ready batches";
        finding->change_kind = LAC_CHANGE_TEXT;
        finding->change = "More workers won't help: batches are finished before they are "
                          "requested. The later delay was not recorded: unpacking in the training "
                          "process, or an overloaded host. Test with a collate_fn that returns one "
                          "small tensor: if the wait disappears, batch contents are the cause.";
        finding->confidence = 0.4;
        finding->severity = LAC_SEVERITY_INFO;
    }
}

/** A step in which pinning takes that part of its time now, and workers take what they take. */
static double step_of_pinning(const struct lac_facts *facts, double part)
{
    const struct lac_step_time *time = facts->time;
    int32_t workers = facts->analysis->loader.num_workers;
    double fetch_ns = lac_fetch_per_step_ns(facts) / (workers > 0 ? workers : 1);
    double pin_ns = time->batches * part * time->pin_ns;
    return fmin(time->step_ns, fmax(fmax(facts->loading->free_ns, fetch_ns), pin_ns));
}

bool lac_find_worker_hand_over(const struct lac_facts *facts, struct lac_finding *finding)
{
    const struct lac_loading *loading = facts->loading;
    const struct lac_step_time *time = facts->time;
    if (!is_handing_over(facts)) {
        return false;
    }
    lac_loading_open(facts, finding);
    double done_ns = loading->late.done_ns;
    double best_ns = fmax(loading->free_ns, time->step_ns - done_ns);
    double mid_ns = 0.5 * (time->step_ns + best_ns);
    const struct way way = {.put_ns = part_ns(facts, "loader.put"),
                            .unpack_ns = part_ns(facts, "loader.unpack"),
                            .pin_ns = part_ns(facts, "loader.pin")};
    bool is_pin = way.pin_ns >= MAIN_PART_MIN * done_ns;
    if (is_pin && time->pin_ns > 0.0) { /* bytes are a quarter of floats; half of it is expected */
        best_ns = step_of_pinning(facts, 0.25);
        mid_ns = step_of_pinning(facts, 0.5);
    }
    lac_loading_estimate(facts, finding, best_ns, mid_ns, time->step_ns);
    say_why(facts, finding, &way);
    say_change(finding, is_pin,
               way.put_ns + way.unpack_ns >= PACKING_MIN * done_ns ||
                   loading->batch_bytes >= LARGE_BYTES);
    finding->expect = lac_texts_add(&facts->analysis->texts,
                                    "%s. Assumes that half of the transfer time disappears.",
                                    lac_finding_expect(facts, finding));
    finding->wrong_if =
        "a step takes as long when the dataset always returns the same small tensor.";
    finding->check = "record ten steps with a collate_fn that returns one small tensor";
    finding->where = facts->settings.loader_at;
    if (loading->late.longest_done != LAC_NONE) {
        lac_evidence_slice(facts, finding, loading->late.longest_done,
                           "waited for a batch that was already fetched");
    }
    lac_loading_evidence(facts, finding);
    return true;
}
