/* Where waits for batches went: before the batch was fetched, after it, or to the start of an
 * epoch, when workers that are started anew have nothing ready. */

#include "analysis/diagnose/loading/loading.h"
#include "collector/base/order.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/** Part of [start, end) inside kept steps that the device felt: idle, or all of it without one. */
static double felt_ns(const struct lac_facts *facts, int64_t start_ns, int64_t end_ns)
{
    const struct lac_spans *kept = &facts->kept;
    uint32_t device = facts->analysis->main_device;
    if (end_ns <= start_ns) {
        return 0.0;
    }
    if (device == LAC_NONE) {
        return (double)lac_spans_length_inside(kept, start_ns, end_ns);
    }
    double sum_ns = 0.0;
    for (uint64_t k = lac_spans_first_after(kept, start_ns);
         k < kept->count && kept->at[k].start_ns < end_ns; k++) {
        int64_t from_ns = kept->at[k].start_ns > start_ns ? kept->at[k].start_ns : start_ns;
        int64_t to_ns = kept->at[k].end_ns < end_ns ? kept->at[k].end_ns : end_ns;
        const struct lac_spans *busy = &facts->device_sets[device].busy;
        sum_ns += (double)(to_ns - from_ns - lac_spans_length_inside(busy, from_ns, to_ns));
    }
    return sum_ns;
}

static int64_t batch_of(const struct lac_facts *facts, const struct lac_mark *wait)
{
    const struct lac_model *model = facts->model;
    uint32_t row = model->slices.detail[wait->slice];
    return row < model->loader_info_count ? model->loader_infos[row].batch : -1;
}

/** The last fetch of `batch` by a worker that began before `before_ns`, or NULL. */
static const struct lac_fetch *fetch_of(const struct lac_facts *facts, int64_t batch,
                                        int64_t before_ns)
{
    enum { BACK = 512 }; /* more batches are never under way at once */
    uint64_t low = 0;
    LAC_BISECT(low, facts->fetch_count, middle, facts->fetches[middle].start_ns < before_ns);
    for (uint64_t back = 1; back <= BACK && back <= low; back++) {
        const struct lac_fetch *fetch = &facts->fetches[low - back];
        if (fetch->batch == batch && fetch->worker >= 0) {
            return fetch;
        }
    }
    return NULL;
}

void lac_loading_late(const struct lac_facts *facts, double median_ns,
                      struct lac_late_batches *ret_late)
{
    *ret_late = (struct lac_late_batches){.longest_first = LAC_NONE, .longest_done = LAC_NONE};
    double longest_first = 0.0;
    double longest_done = 0.0;
    int64_t batch_before = -1;
    bool has_signs = facts->has_api && !facts->asks_in_rows && lac_loader_names_workers(facts);
    for (uint64_t i = 0; i < facts->wait_marks.count; i++) {
        const struct lac_mark *wait = &facts->wait_marks.at[i];
        int64_t batch = batch_of(facts, wait);
        int64_t end_ns = wait->start_ns + wait->dur_ns;
        double felt = felt_ns(facts, wait->start_ns, end_ns);
        bool is_first = batch == 0 && batch_before > 0;
        if (batch < 0 && has_signs && lac_wait_follows_at_once(facts, i)) {
            is_first = true; /* the one before it was in vain */
            ret_late->is_by_signs = true;
        }
        if (i == 0 && (batch == 0 || (batch < 0 && has_signs))) {
            ret_late->begin_ns = felt;
        }
        batch_before = batch;
        if (is_first && felt > 0.0) {
            ret_late->epochs++;
            ret_late->first_ns += felt;
            ret_late->first_saved_ns += fmax(0.0, felt - median_ns);
            if (felt > longest_first) {
                longest_first = felt;
                ret_late->longest_first = wait->slice;
            }
        }
        if (batch < 0 || felt <= 0.0 || is_first) {
            continue;
        }
        const struct lac_fetch *fetch = fetch_of(facts, batch, end_ns);
        if (fetch == NULL) {
            continue;
        }
        int64_t done_ns = fetch->start_ns + fetch->dur_ns;
        double done = felt_ns(facts, done_ns > wait->start_ns ? done_ns : wait->start_ns, end_ns);
        ret_late->matched_ns += felt;
        ret_late->matched_count++;
        ret_late->done_ns += done;
        if (done > longest_done) {
            longest_done = done;
            ret_late->longest_done = wait->slice;
        }
    }
    double steps = fmax(1.0, (double)facts->analysis->step_kept_count);
    ret_late->matched_ns /= steps;
    ret_late->done_ns /= steps;
    ret_late->first_ns /= steps;
    ret_late->first_saved_ns /= steps;
    ret_late->begin_ns /= steps;
}
