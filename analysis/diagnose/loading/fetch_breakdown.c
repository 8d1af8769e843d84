/* What a batch spends its time on: computing or waiting, and which parts of it. */

#include "analysis/diagnose/loading/loading.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_SAID = 3, DEPTH_MAX = 64 };

/** Stage of a part by how its name goes on. */
static const char *stage_of(const char *name)
{
    static const struct {
        const char *name;
        const char *stage;
    } stages[] = {{"loader.read", "read"},           {"loader.decode", "decode"},
                  {"loader.transform", "transform"}, {"loader.collate", "collate"},
                  {"loader.put", "hand_over"},       {"loader.unpack", "hand_over"},
                  {"loader.pin", "hand_over"}};
    for (size_t i = 0; i < LAC_COUNT_OF(stages); i++) {
        if (strncmp(name, stages[i].name, strlen(stages[i].name)) == 0) {
            return stages[i].stage;
        }
    }
    return "other"; /* the rest of an item or of a batch */
}

/** A range that is open while those inside it are looked at. */
struct open_range {
    int64_t end_ns;
    int64_t inside_ns, inside_cpu_ns; /**< of ranges right inside it */
    int64_t dur_ns, cpu_ns;           /**< CPU time -1 not recorded */
    uint32_t slice;
    bool is_read;
};

struct walk {
    struct lac_facts *facts;
    struct lac_loading *loading;
    struct open_range open[DEPTH_MAX];
    int depth;
    uint64_t item_count;
    int64_t longest_read_ns;
    bool has_read_cpu;
};

/** The row of parts that a name belongs to; the last one takes what finds no room. */
static struct lac_loading_part *row_of(struct lac_analysis *analysis, const char *name)
{
    struct lac_loading_facts *loading_facts = &analysis->loading;
    uint32_t p = 0;
    while (p < loading_facts->part_count && strcmp(loading_facts->parts[p].name, name) != 0) {
        p++;
    }
    if (p == loading_facts->part_count && p < LAC_LOADING_PARTS_MAX) {
        bool is_last = p + 1 == LAC_LOADING_PARTS_MAX;
        loading_facts->parts[loading_facts->part_count++] = (struct lac_loading_part){
            .name = is_last ? "others" : lac_texts_add(&analysis->texts, "%s", name),
            .stage = is_last ? "other" : stage_of(name),
            .bytes = LAC_UNKNOWN_NS};
    }
    return &loading_facts->parts[p < LAC_LOADING_PARTS_MAX ? p : LAC_LOADING_PARTS_MAX - 1];
}

static void close_range(struct walk *walk)
{
    const struct lac_model *model = walk->facts->model;
    struct open_range *range = &walk->open[--walk->depth];
    struct lac_loading_part *part =
        row_of(walk->facts->analysis, lac_model_str(model, model->slices.name[range->slice]));
    int64_t own_ns = range->dur_ns > range->inside_ns ? range->dur_ns - range->inside_ns : 0;
    part->count++;
    part->own_ns = lac_sum_ns(part->own_ns, own_ns);
    if (range->cpu_ns < 0) {
        part->cpu_ns = LAC_UNKNOWN_NS;
    } else if (part->cpu_ns != LAC_UNKNOWN_NS && range->cpu_ns > range->inside_cpu_ns) {
        part->cpu_ns = lac_sum_ns(part->cpu_ns, range->cpu_ns - range->inside_cpu_ns);
    }
    int64_t bytes = range->is_read ? lac_range_number(model, range->slice) : -1;
    if (bytes >= 0) {
        part->bytes = lac_sum_ns(part->bytes == LAC_UNKNOWN_NS ? 0 : part->bytes, bytes);
    }
}

/** A read that is in no other one. */
static void count_read(struct walk *walk, const struct open_range *range)
{
    struct lac_batch_reads *reads = &walk->loading->reads;
    reads->count++;
    reads->opens += lac_range_number(walk->facts->model, range->slice) < 0;
    reads->ns += (double)range->dur_ns;
    reads->cpu_ns += (double)range->cpu_ns;
    walk->has_read_cpu = walk->has_read_cpu && range->cpu_ns >= 0;
    if (range->dur_ns >= walk->longest_read_ns) {
        walk->longest_read_ns = range->dur_ns;
        reads->longest = range->slice;
    }
}

static void open_slice(struct walk *walk, uint32_t slice)
{
    const struct lac_model *model = walk->facts->model;
    const char *name = lac_model_str(model, model->slices.name[slice]);
    uint32_t row = model->slices.detail[slice];
    int64_t start_ns = model->slices.start_ns[slice];
    while (walk->depth > 0 && walk->open[walk->depth - 1].end_ns <= start_ns) {
        close_range(walk);
    }
    if (walk->depth == DEPTH_MAX) {
        close_range(walk);
    }
    struct open_range range = {
        .end_ns = start_ns + model->slices.dur_ns[slice],
        .dur_ns = model->slices.dur_ns[slice],
        .cpu_ns = row < model->loader_info_count ? model->loader_infos[row].cpu_ns : -1,
        .slice = slice,
        .is_read = strcmp(stage_of(name), "read") == 0};
    bool is_in_read = false;
    for (int i = 0; i < walk->depth; i++) {
        is_in_read = is_in_read || walk->open[i].is_read;
    }
    if (walk->depth > 0) {
        struct open_range *around = &walk->open[walk->depth - 1];
        around->inside_ns = lac_sum_ns(around->inside_ns, range.dur_ns);
        around->inside_cpu_ns =
            lac_sum_ns(around->inside_cpu_ns, range.cpu_ns > 0 ? range.cpu_ns : 0);
    }
    if (range.is_read && !is_in_read) {
        count_read(walk, &range);
    }
    walk->item_count += strcmp(name, "loader.item") == 0;
    walk->open[walk->depth++] = range;
}

/** A range of the walk. */
struct piece {
    uint32_t slice;
    bool is_fetch;
    bool is_bare; /**< a fetch after the last part of its track, or in such a fetch */
};

static int by_slice(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    return LAC_ORDER(x->slice, y->slice);
}

static int by_own_time(const void *a, const void *b)
{
    const struct lac_loading_part *x = a;
    const struct lac_loading_part *y = b;
    if (x->own_ns != y->own_ns) {
        return x->own_ns > y->own_ns ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static void walk_all(struct walk *walk, const struct piece *pieces, uint64_t count)
{
    const struct lac_model *model = walk->facts->model;
    int64_t bytes = 0;
    bool has_bytes = false;
    uint64_t track_end = 0;
    for (uint64_t i = 0; i < count; i++) { /* ids ascend: tracks one by one, outer before inner */
        if (pieces[i].slice >= track_end) {
            while (walk->depth > 0) {
                close_range(walk);
            }
            const struct lac_track *track =
                &model->tracks[lac_model_track_of(model, pieces[i].slice)];
            track_end = track->first + track->count;
        }
        open_slice(walk, pieces[i].slice);
    }
    while (walk->depth > 0) {
        close_range(walk);
    }
    struct lac_loading_facts *loading_facts = &walk->facts->analysis->loading;
    for (uint32_t p = 0; p < loading_facts->part_count; p++) {
        has_bytes = has_bytes || loading_facts->parts[p].bytes != LAC_UNKNOWN_NS;
        bytes = lac_sum_ns(bytes,
                           loading_facts->parts[p].bytes > 0 ? loading_facts->parts[p].bytes : 0);
    }
    walk->loading->reads.bytes = has_bytes ? (double)bytes : (double)NAN;
}

/** Whether a part is recorded where others are not any more: one a batch costs nothing. */
static bool is_always_recorded(const struct lac_model *model, uint32_t slice)
{
    const char *stage = stage_of(lac_model_str(model, model->slices.name[slice]));
    return strcmp(stage, "collate") == 0 || strcmp(stage, "hand_over") == 0;
}

/* A worker whose parts would cost more than they tell stops recording them for good: its fetches
 * from then on say nothing about parts. They go, unless all would. Returns how many pieces stay. */
static uint64_t drop_fetches_without_parts(const struct lac_model *model, struct piece *pieces,
                                           uint64_t count)
{
    uint64_t with_parts = 0; /* pieces up to the last part inside a fetch of its track */
    uint64_t used = 0;
    for (uint64_t first = 0, end = 0; first < count; first = end) {
        const struct lac_track *track =
            &model->tracks[lac_model_track_of(model, pieces[first].slice)];
        int64_t fetch_end_ns = INT64_MIN;
        uint64_t kept_until = first;
        for (end = first; end < count && pieces[end].slice < track->first + track->count; end++) {
            int64_t start_ns = model->slices.start_ns[pieces[end].slice];
            if (pieces[end].is_fetch) {
                fetch_end_ns = start_ns + model->slices.dur_ns[pieces[end].slice];
            } else if (start_ns < fetch_end_ns && !is_always_recorded(model, pieces[end].slice)) {
                kept_until = with_parts = end + 1;
            }
        }
        fetch_end_ns = INT64_MIN;
        for (uint64_t i = kept_until; i < end; i++) {
            int64_t start_ns = model->slices.start_ns[pieces[i].slice];
            if (pieces[i].is_fetch) {
                fetch_end_ns = start_ns + model->slices.dur_ns[pieces[i].slice];
            }
            pieces[i].is_bare = start_ns < fetch_end_ns;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!pieces[i].is_bare || with_parts == 0) {
            pieces[used++] = pieces[i];
        }
    }
    return used;
}

enum lac_status lac_fetch_breakdown(struct lac_facts *facts, struct lac_loading *loading)
{
    struct lac_loading_facts *loading_facts = &facts->analysis->loading;
    uint64_t count = facts->loader_parts.count + facts->fetch_count;
    loading->reads =
        (struct lac_batch_reads){.cpu_ns = (double)NAN, .bytes = (double)NAN, .longest = LAC_NONE};
    loading->items_per_batch = (double)NAN;
    loading->parts_of_ns = 0.0;
    if (facts->fetch_count == 0) {
        return LAC_OK; /* parts of what is not known */
    }
    struct piece *pieces = malloc(count * sizeof(*pieces));
    if (pieces == NULL) {
        return LAC_ERR_NOMEM;
    }
    uint64_t used = 0;
    for (uint64_t i = 0; i < facts->loader_parts.count; i++) {
        if (!lac_is_count_of_padding(facts->model, facts->loader_parts.at[i].slice)) {
            pieces[used++] = (struct piece){.slice = facts->loader_parts.at[i].slice};
        }
    }
    for (uint64_t i = 0; i < facts->fetch_count; i++) {
        pieces[used++] = (struct piece){.slice = facts->fetches[i].slice, .is_fetch = true};
    }
    qsort(pieces, used, sizeof(*pieces), by_slice);
    used = drop_fetches_without_parts(facts->model, pieces, used);
    for (uint64_t i = 0; i < used; i++) {
        loading_facts->batch_count += pieces[i].is_fetch;
        loading->parts_of_ns +=
            pieces[i].is_fetch ? (double)facts->model->slices.dur_ns[pieces[i].slice] : 0.0;
    }
    struct walk walk = {.facts = facts, .loading = loading, .has_read_cpu = true};
    loading->reads.cpu_ns = 0.0;
    walk_all(&walk, pieces, used);
    free(pieces);
    qsort(loading_facts->parts, loading_facts->part_count, sizeof(*loading_facts->parts),
          by_own_time);
    if (!walk.has_read_cpu || loading->reads.count == 0) {
        loading->reads.cpu_ns = (double)NAN;
    }
    if (walk.item_count > 0) {
        loading->items_per_batch = (double)walk.item_count / (double)loading_facts->batch_count;
    }
    return LAC_OK;
}

const char *lac_fetch_breakdown_text(const struct lac_facts *facts)
{
    struct lac_analysis *analysis = facts->analysis;
    const struct lac_loading_facts *loading_facts = &analysis->loading;
    const char *text = "";
    if (facts->fetch_count == 0 || facts->loading->parts_of_ns <= 0.0) {
        return text;
    }
    double fetch_ns = facts->loading->parts_of_ns;
    /* also parts of batches whose fetch the recording cut off */
    double all_ns = 0.0;
    for (uint32_t p = 0; p < loading_facts->part_count; p++) {
        bool is_of_batch = strcmp(loading_facts->parts[p].stage, "hand_over") != 0;
        all_ns += is_of_batch ? (double)loading_facts->parts[p].own_ns : 0.0;
    }
    int said = 0;
    for (uint32_t p = 0; p < loading_facts->part_count && said < PARTS_SAID; p++) {
        const struct lac_loading_part *part = &loading_facts->parts[p];
        double pct = 100.0 * (double)part->own_ns / fmax(fetch_ns, all_ns);
        if (strcmp(part->stage, "hand_over") == 0 || strcmp(part->name, "loader.fetch") == 0) {
            continue; /* behind the batch, and what is not known of it */
        }
        if (pct < PART_PCT_MIN || (double)part->own_ns > PARTS_OF_FETCH_MAX * fetch_ns) {
            break; /* parts outside fetches say nothing about them */
        }
        bool is_item = strcmp(part->name, "loader.item") == 0;
        if (is_item && pct >= ITEM_PCT_MAX) {
            break; /* tells nothing: the data set's own code is not taken apart */
        }
        text = lac_texts_add(&analysis->texts, "%s%s%.40s %.0f %%", text,
                             said == 0 ? " Of a batch: " : ", ",
                             is_item ? "other work per item" : part->name, pct);
        said++;
    }
    return said > 0 ? lac_texts_add(&analysis->texts, "%s.", text) : text;
}
