/* Batches are ready, but reach the training process late: handing over and unpacking is the wait.
 */

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
        if (strcmp(loading_facts->parts[p].name, name) == 0 && loading_facts->batch_count > 0) {
            return (double)loading_facts->parts[p].own_ns / (double)loading_facts->batch_count;
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
                          ? lac_texts_add(&analysis->texts, " Packing a batch takes a worker %s.",
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
                            ? lac_texts_add(&analysis->texts, " A batch has %s.",
                                            lac_format_bytes(loading->batch_bytes).text)
                            : "";
    finding->why = lac_texts_add(
        &analysis->texts,
        "The workers are busy %.0f %% of the time, and the batch that is waited for is fetched "
        "already: %s of the wait of %s a step come after that.%s%s%s%s",
        analysis->loader.worker_busy_pct, lac_format_ns(lac_round(loading->late.done_ns)).text,
        lac_format_ns(lac_round(loading->late.matched_ns)).text, put, unpack, pin, bytes);
}

static void say_change(struct lac_finding *finding, bool is_pin, bool is_packing)
{
    finding->costs = "Work on the data set and on collate_fn.";
    if (is_pin) {
        finding->brief = "smaller batches to pin";
        finding->costs = "The conversion moves to the GPU.";
        finding->change = "# More workers won't help: one thread pins all batches. Hand over the "
                          "small form (uint8\n"
                          "# pictures, int32 ids) and widen it on the GPU:\n"
                          "images = images.to(device, non_blocking=True).float().div_(255)";
    } else if (is_packing) {
        finding->brief = "one tensor a batch";
        finding->change =
            "# More workers won't help: what they make has to be packed and unpacked. Few large\n"
            "# tensors, no lists, dicts of scalars or numpy objects, in their small form:\n"
            "def collate(items):                       # in the worker\n"
            "    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])\n"
            "DataLoader(..., collate_fn=collate)";
    } else {
        finding->brief = "find what delays finished batches";
        finding->change_kind = LAC_CHANGE_TEXT;
        finding->change =
            "More workers won't help: batches are finished before they are asked for. What delays "
            "them then was not recorded: unpacking in the training process, or a host with too "
            "much "
            "to do. A collate_fn that returns one small tensor tells: if the wait goes away with "
            "it, it is what the batches are made of.";
        finding->confidence = 0.4;
        finding->severity = LAC_SEVERITY_INFO;
    }
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
    lac_loading_estimate(facts, finding, best_ns, 0.5 * (time->step_ns + best_ns), time->step_ns);
    const struct way way = {.put_ns = part_ns(facts, "loader.put"),
                            .unpack_ns = part_ns(facts, "loader.unpack"),
                            .pin_ns = part_ns(facts, "loader.pin")};
    say_why(facts, finding, &way);
    say_change(finding, way.pin_ns >= MAIN_PART_MIN * done_ns,
               way.put_ns + way.unpack_ns >= PACKING_MIN * done_ns ||
                   loading->batch_bytes >= LARGE_BYTES);
    finding->expect =
        lac_texts_add(&facts->analysis->texts, "%s, if half of the handing over goes away.",
                      lac_finding_expect(facts, finding));
    finding->wrong_if =
        "a step takes as long when the data set returns the same small tensor again "
        "and again.";
    finding->check = "record ten steps with a collate_fn that returns one small tensor";
    finding->where = facts->settings.loader_at;
    if (loading->late.longest_done != LAC_NONE) {
        lac_evidence_slice(facts, finding, loading->late.longest_done,
                           "waited for a batch that was fetched already");
    }
    lac_loading_evidence(facts, finding);
    return true;
}
