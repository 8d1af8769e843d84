/* Who was late: the waits and fetches of a loader that tell, of an area. As in
 * analysis/flame/flame_worker.c, a gap asks for the last wait that began before it and for the next
 * one, and then for the last fetch that ended by the end of that wait. */

#include "analysis/flame/flame.h"
#include "analysis/flame/flame_worker.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/flame/flame_wanted.h"
#include "server/store/trace/trace_private.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    const struct lac_flame_question *question;
    struct lac_flame_wanted *wanted;
    uint8_t *has_wait;   /**< by track */
    int64_t last_end_ns; /**< of the waits that may be asked for */
};

static uint32_t find(const struct lac_model *head, const char *text)
{
    return lac_strings_find(&head->strings, text, strlen(text));
}

/** A run of chunks of one track, of those that hold a name. */
struct run {
    uint32_t name;
    uint32_t track;
    const uint32_t *chunks;
    uint32_t count;
};

typedef enum lac_status take_run_fn(struct loader *loader, const struct run *run);

/** The slices of a name on threads, by track; once for each kind that has the name. */
static enum lac_status each_run(struct loader *loader, uint32_t name, take_run_fn *take)
{
    struct lac_trace_file *file = loader->question->file;
    const struct lac_name_stat *stats = NULL;
    uint32_t stat_count = 0;
    enum lac_status status = lac_trace_stats(file, &stats, &stat_count, loader->question->reterr);

    for (uint32_t s = 0; s < stat_count && status == LAC_OK; s++) {
        uint32_t *chunks = NULL;
        uint32_t count = 0;

        if (stats[s].name != name) {
            continue;
        }
        status = lac_trace_postings(file, &stats[s], &chunks, &count, loader->question->reterr);
        for (uint32_t first = 0; status == LAC_OK && first < count;) {
            struct run run = {name, file->chunks[chunks[first]].track, &chunks[first], 0};

            while (first < count && file->chunks[chunks[first]].track == run.track) {
                run.count++;
                first++;
            }
            if (file->head.tracks[run.track].kind == LAC_TRACK_THREAD) {
                status = take(loader, &run);
            }
        }
        free(chunks);
    }
    return status;
}

/** Waits that began in (t0, t1), and the latest before (where several began at once, all). A thread
 *  without either still shows one, so that it is known to wait. */
static enum lac_status take_waits(struct loader *loader, const struct run *run)
{
    struct lac_trace_file *file = loader->question->file;
    const struct lac_flame_options *options = loader->question->options;
    bool has_any = false;
    bool has_before = false;
    int64_t before_ns = 0;
    enum lac_status status = LAC_OK;

    loader->has_wait[run->track] = 1;
    for (uint32_t r = run->count; r > 0 && status == LAC_OK; r--) {
        const struct lac_chunk_entry *chunk = &file->chunks[run->chunks[r - 1]];
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        if (chunk->start_first >= options->t1_ns && (r > 1 || has_any)) {
            continue;
        }
        if (has_before && chunk->start_last < before_ns) {
            break;
        }
        status = lac_trace_chunk(file, run->chunks[r - 1], LAC_COLUMNS_TILE, &columns, &pin,
                                 loader->question->reterr);
        for (uint64_t i = status == LAC_OK ? columns->at.count : 0; i > 0 && status == LAC_OK;
             i--) {
            const int64_t start_ns = columns->at.start_ns[i - 1];
            const int64_t end_ns = start_ns + columns->at.dur_ns[i - 1];
            const bool is_before = start_ns <= options->t0_ns;

            if (columns->at.name[i - 1] != run->name ||
                (is_before && has_before && start_ns != before_ns) ||
                (start_ns >= options->t1_ns && (r > 1 || has_any))) {
                continue;
            }
            has_any = true;
            has_before = has_before || is_before;
            before_ns = is_before ? start_ns : before_ns;
            if (start_ns < options->t1_ns && end_ns > loader->last_end_ns) {
                loader->last_end_ns = end_ns;
            }
            status = lac_flame_want(loader->wanted, chunk->first + i - 1);
        }
        lac_trace_unpin(file, pin);
    }
    return status;
}

/** Fetches that ended in the area or before the last wait's batch was handed over. */
static enum lac_status take_fetches(struct loader *loader, const struct run *run)
{
    struct lac_trace_file *file = loader->question->file;
    const int64_t t0_ns = loader->question->options->t0_ns;
    const int64_t until_ns = loader->last_end_ns + LAC_FLAME_HAND_OVER_NS;
    enum lac_status status = LAC_OK;

    for (uint32_t r = 0; r < run->count && status == LAC_OK && loader->has_wait[run->track] == 0;
         r++) {
        const struct lac_chunk_entry *chunk = &file->chunks[run->chunks[r]];
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;

        if (chunk->end_last <= t0_ns || chunk->start_first > until_ns) {
            continue;
        }
        status = lac_trace_chunk(file, run->chunks[r], LAC_COLUMNS_TILE, &columns, &pin,
                                 loader->question->reterr);
        for (uint64_t i = 0; status == LAC_OK && i < columns->at.count; i++) {
            const int64_t end_ns = columns->at.start_ns[i] + columns->at.dur_ns[i];

            if (columns->at.name[i] == run->name && end_ns > t0_ns && end_ns <= until_ns) {
                status = lac_flame_want(loader->wanted, chunk->first + i);
                if (loader->question->frame_kinds != 0) {
                    loader->wanted->extent[run->track] = LAC_FLAME_AREA;
                }
            }
        }
        lac_trace_unpin(file, pin);
    }
    return status;
}

enum lac_status lac_flame_want_loader(const struct lac_flame_question *question,
                                      struct lac_flame_wanted *wanted)
{
    const struct lac_model *head = &question->file->head;
    const uint32_t wait_name = find(head, LAC_FLAME_WAIT_NAME);
    const uint32_t fetch_name = find(head, LAC_FLAME_FETCH_NAME);
    struct loader loader = {.question = question, .wanted = wanted};
    enum lac_status status;

    if (wait_name == 0 || fetch_name == 0 || find(head, LAC_FLAME_CAUSE_NAME) == 0) {
        return LAC_OK;
    }
    loader.has_wait = calloc((size_t)head->track_count + 1, 1);
    status = loader.has_wait != NULL ? each_run(&loader, wait_name, take_waits) : LAC_ERR_NOMEM;
    if (status == LAC_OK) {
        status = each_run(&loader, fetch_name, take_fetches);
    }
    free(loader.has_wait);
    return status;
}
