/* One slice with everything, and the slices of a window. */

#include "analysis/model/args.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_private.h"
#include "server/store/trace/trace_write_private.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_COLUMNS (LAC_COLUMNS_TILE | 1U << LAC_COLUMN_LINK)

/** A slice's place: its chunk, decoded. */
struct place {
    const struct lac_chunk_columns *columns;
    struct lac_cache_entry *pin;
    uint32_t chunk;
    uint32_t row; /**< in the chunk */
};

static void fill_row(const struct lac_trace_file *file, uint32_t chunk, const struct lac_slices *at,
                     uint32_t row, struct lac_slice_row *ret_row)
{
    *ret_row = (struct lac_slice_row){
        .slice = (uint32_t)(file->chunks[chunk].first + row),
        .track = file->chunks[chunk].track,
        .start_ns = at->start_ns[row],
        .dur_ns = at->dur_ns[row],
        .name = at->name[row],
        .corr = at->corr != NULL ? at->corr[row] : 0,
        .link = at->link != NULL ? at->link[row] : LAC_NONE,
        .detail = at->detail != NULL ? at->detail[row] : LAC_NONE,
        .lane = at->lane[row],
        .kind = at->kind[row],
    };
}

/** The arguments as text, through a model that has only this chunk. */
static enum lac_status format_args(const struct lac_trace_file *file, const struct place *place,
                                   char **ret_text)
{
    struct lac_model view = {.strings = file->head.strings,
                             .slices = place->columns->at,
                             .arg_numbers = place->columns->numbers,
                             .arg_number_count = place->columns->number_count};
    size_t length;
    char *text;

    if (view.slices.args[place->row] == 0) {
        return LAC_OK;
    }
    length = lac_args_format(&view, place->row, NULL, 0);
    if (length == 0) {
        return LAC_OK;
    }
    text = malloc(length + 1);
    if (text == NULL) {
        return LAC_ERR_NOMEM;
    }
    (void)lac_args_format(&view, place->row, text, length + 1);
    *ret_text = text;
    return LAC_OK;
}

static float bits_float(int64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static enum lac_status fill_kernel(struct lac_trace_file *file, uint32_t detail,
                                   struct lac_slice_full *slice, struct lac_error *reterr)
{
    int64_t v[LAC_KERNEL_COLUMNS_MAX] = {0};
    enum lac_status status = lac_trace_detail_row(file, LAC_DETAIL_KERNEL_CONFIG, detail,
                                                  lac_kernel_column_count(file), v, reterr);

    if (status == LAC_OK) {
        slice->has_kernel = true;
        lac_kernel_config_from(file, v, &slice->kernel);
    }
    return status;
}

uint32_t lac_kernel_column_count(const struct lac_trace_file *file)
{
    return file->format_version >= LAC_TRACE_FORMAT_MODULES ? LAC_KERNEL_COLUMNS_MAX : 11;
}

void lac_kernel_config_from(const struct lac_trace_file *file, const int64_t *values,
                            struct lac_kernel_config *ret_config)
{
    const uint64_t module = (uint64_t)values[11];

    ret_config->zero = 0;
    for (unsigned d = 0; d < 3; d++) {
        ret_config->grid[d] = (uint32_t)values[d];
        ret_config->block[d] = (uint32_t)values[3 + d];
    }
    ret_config->registers_per_thread = (uint32_t)values[6];
    ret_config->shared_memory_bytes = (uint32_t)values[7];
    ret_config->occupancy_pct = bits_float(values[8]);
    ret_config->blocks_per_sm = bits_float(values[9]);
    ret_config->graph_node = (uint64_t)values[10];
    ret_config->module = module < file->head.strings.count ? (uint32_t)module : 0;
}

static uint8_t clamp_byte(int64_t value, int64_t max)
{
    return value < 0 || value > max ? 0 : (uint8_t)value;
}

uint32_t lac_copy_column_count(const struct lac_trace_file *file)
{
    return file->format_version >= LAC_TRACE_FORMAT_COPIES ? LAC_COPY_COLUMNS_MAX : 5;
}

void lac_copy_from(const struct lac_trace_file *file, const int64_t *values,
                   struct lac_copy *ret_copy)
{
    const uint64_t module = (uint64_t)values[6];

    *ret_copy =
        (struct lac_copy){.bytes = values[0],
                          .copy_kind = clamp_byte(values[1], LAC_COPY_PTOP),
                          .src = clamp_byte(values[2], LAC_MEMORY_MANAGED),
                          .dst = clamp_byte(values[3], LAC_MEMORY_MANAGED),
                          .is_async = clamp_byte(values[4], 2),
                          .graph_node = (uint64_t)values[5],
                          .module = module < file->head.strings.count ? (uint32_t)module : 0};
}

/** What the kind of the slice carries. */
static enum lac_status fill_detail(struct lac_trace_file *file, struct lac_slice_full *slice,
                                   struct lac_error *reterr)
{
    uint32_t detail = slice->row.detail;
    int64_t v[LAC_COPY_COLUMNS_MAX] = {0};
    enum lac_status status = LAC_OK;

    if (detail == LAC_NONE) {
        return LAC_OK;
    }
    switch (slice->row.kind) {
    case LAC_SLICE_KERNEL:
        return fill_kernel(file, detail, slice, reterr);
    case LAC_SLICE_COPY:
    case LAC_SLICE_MEMSET:
        status = lac_trace_detail_row(file, LAC_DETAIL_COPY, detail, lac_copy_column_count(file), v,
                                      reterr);
        if (status == LAC_OK) {
            slice->has_copy = true;
            lac_copy_from(file, v, &slice->copy);
        }
        return status;
    case LAC_SLICE_RANGE:
        status = lac_trace_detail_row(file, LAC_DETAIL_LOADER, detail, 3, v, reterr);
        if (status == LAC_OK) {
            slice->has_loader = true;
            slice->loader =
                (struct lac_loader_info){.batch = v[0], .cpu_ns = v[1], .worker = (int32_t)v[2]};
        }
        return status;
    case LAC_SLICE_ALLOC:
        status = lac_trace_detail_row(file, LAC_DETAIL_ALLOC, detail, 3, v, reterr);
        if (status == LAC_OK) {
            slice->has_alloc = true;
            slice->alloc =
                (struct lac_alloc){.bytes = v[0], .total_allocated = v[1], .device = v[2]};
        }
        return status;
    case LAC_SLICE_API:
        slice->has_return_value = true;
        slice->return_value = detail;
        return LAC_OK;
    default:
        return LAC_OK;
    }
}

/** Innermost slice around this one: walk back, skipping chunks that end before it does. */
static enum lac_status find_parent(struct lac_trace_file *file, const struct place *place,
                                   struct lac_slice_full *slice, struct lac_error *reterr)
{
    int64_t end_ns = slice->row.start_ns + slice->row.dur_ns;
    uint32_t first_chunk = file->track_chunk[slice->row.track];
    enum lac_status status = LAC_OK;

    slice->parent = LAC_NONE;
    if (slice->row.lane == 0 || file->head.tracks[slice->row.track].kind != LAC_TRACK_THREAD) {
        return LAC_OK;
    }
    for (uint32_t c = place->chunk + 1; c > first_chunk && slice->parent == LAC_NONE; c--) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        uint32_t row;

        if (file->chunks[c - 1].end_last < end_ns) {
            continue;
        }
        status = lac_trace_chunk(file, c - 1, LAC_COLUMNS_TILE, &columns, &pin, reterr);
        if (status != LAC_OK) {
            return status;
        }
        row = c - 1 == place->chunk ? place->row : (uint32_t)columns->at.count;
        while (row > 0 && slice->parent == LAC_NONE) {
            row--;
            if (columns->at.lane[row] < slice->row.lane &&
                columns->at.start_ns[row] + columns->at.dur_ns[row] >= end_ns) {
                slice->parent = (uint32_t)(file->chunks[c - 1].first + row);
            }
        }
        lac_cache_unpin(file->cache, pin);
    }
    return LAC_OK;
}

/** Count the slices directly inside: one lane below, within its time. */
static enum lac_status count_children(struct lac_trace_file *file, const struct place *place,
                                      struct lac_slice_full *slice, struct lac_error *reterr)
{
    int64_t end_ns = slice->row.start_ns + slice->row.dur_ns;
    uint32_t end_chunk = file->track_chunk[slice->row.track + 1];

    if (file->head.tracks[slice->row.track].kind != LAC_TRACK_THREAD || slice->row.dur_ns == 0) {
        return LAC_OK;
    }
    for (uint32_t c = place->chunk; c < end_chunk && file->chunks[c].start_first < end_ns; c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        enum lac_status status = lac_trace_chunk(file, c, LAC_COLUMNS_TILE, &columns, &pin, reterr);

        if (status != LAC_OK) {
            return status;
        }
        for (uint32_t row = c == place->chunk ? place->row + 1 : 0;
             row < columns->at.count && columns->at.start_ns[row] < end_ns; row++) {
            slice->child_count += columns->at.lane[row] == slice->row.lane + 1;
        }
        lac_cache_unpin(file->cache, pin);
    }
    return LAC_OK;
}

/** The neighbor of the same name and kind in one chunk, from `row` on in one direction. */
static uint32_t same_in_chunk(const struct lac_slices *at, const struct lac_slice_row *like,
                              int64_t row, int step)
{
    for (; row >= 0 && row < (int64_t)at->count; row += step) {
        if (at->name[row] == like->name && at->kind[row] == like->kind) {
            return (uint32_t)row;
        }
    }
    return LAC_NONE;
}

/** Chunks that hold a name. */
struct chunk_list {
    uint32_t *chunks;
    uint32_t count;
};

/** The next chunk of `list` after (step 1) or before (step -1) one, or LAC_NONE. */
static uint32_t neighbour_chunk(const struct chunk_list *list, uint32_t chunk, int step)
{
    uint32_t found = LAC_NONE;

    for (uint32_t i = 0; i < list->count; i++) {
        if (step > 0 ? list->chunks[i] > chunk && found == LAC_NONE : list->chunks[i] < chunk) {
            found = list->chunks[i];
        }
    }
    return found;
}

static enum lac_status find_same(struct lac_trace_file *file, const struct place *place,
                                 const struct lac_slice_row *like, const struct chunk_list *list,
                                 int step, uint32_t *ret_slice, struct lac_error *reterr)
{
    uint32_t row = same_in_chunk(&place->columns->at, like, (int64_t)place->row + step, step);
    const struct lac_chunk_columns *columns = NULL;
    struct lac_cache_entry *pin = NULL;
    uint32_t next;
    enum lac_status status;

    *ret_slice = LAC_NONE;
    if (row != LAC_NONE) {
        *ret_slice = (uint32_t)(file->chunks[place->chunk].first + row);
        return LAC_OK;
    }
    next = neighbour_chunk(list, place->chunk, step);
    if (next == LAC_NONE || file->chunks[next].track != like->track) {
        return LAC_OK;
    }
    status = lac_trace_chunk(file, next, LAC_COLUMNS_TILE, &columns, &pin, reterr);
    if (status == LAC_OK) {
        row =
            same_in_chunk(&columns->at, like, step > 0 ? 0 : (int64_t)columns->at.count - 1, step);
        if (row != LAC_NONE) {
            *ret_slice = (uint32_t)(file->chunks[next].first + row);
        }
        lac_cache_unpin(file->cache, pin);
    }
    return status;
}

static enum lac_status fill_same_name(struct lac_trace_file *file, const struct place *place,
                                      struct lac_slice_full *slice, struct lac_error *reterr)
{
    const struct lac_name_stat *stat = NULL;
    struct chunk_list list = {0};
    enum lac_status status =
        lac_trace_find_stat(file, slice->row.kind, slice->row.name, &stat, reterr);

    slice->prev_same_name = LAC_NONE;
    slice->next_same_name = LAC_NONE;
    if (status == LAC_OK && stat != NULL) {
        slice->same_name_count = stat->count;
        slice->same_name_total_ns = stat->total_ns;
        status = lac_trace_postings(file, stat, &list.chunks, &list.count, reterr);
    }
    if (status == LAC_OK) {
        status = find_same(file, place, &slice->row, &list, -1, &slice->prev_same_name, reterr);
    }
    if (status == LAC_OK) {
        status = find_same(file, place, &slice->row, &list, 1, &slice->next_same_name, reterr);
    }
    free(list.chunks);
    return status;
}

/** The step that a slice starts in: what a device does belongs to a step on it, what the host does to one
 *  between its marks. */
static uint32_t step_of(const struct lac_trace_file *file, uint32_t track, int64_t start_ns)
{
    const struct lac_trace_lazy *lazy = &file->lazy;
    bool is_on_device =
        file->head.tracks[track].device != -1 || file->head.tracks[track].kind == LAC_TRACK_STEPS;
    const int64_t *begins_ns = is_on_device ? lazy->step_start_ns : lazy->step_host_start_ns;
    const int64_t *lengths_ns = is_on_device ? lazy->step_dur_ns : lazy->step_host_dur_ns;
    uint32_t next;

    if (lazy->step_count == 0) {
        return LAC_NONE;
    }
    next = lac_lower_bound_ns(begins_ns, lazy->step_count, start_ns + 1);
    if (next == 0 || start_ns >= begins_ns[next - 1] + lengths_ns[next - 1]) {
        return LAC_NONE;
    }
    return next - 1;
}

enum lac_status lac_trace_file_slice(struct lac_trace_file *file, uint64_t slice,
                                     struct lac_slice_full *ret_slice, struct lac_error *reterr)
{
    assert(file != NULL && ret_slice != NULL);
    struct lac_slice_full full = {0};
    struct place place = {0};
    enum lac_status status;

    if (slice >= file->head.slices.count) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no slice %llu", (unsigned long long)slice);
    }
    place.chunk = lac_trace_chunk_of(file, slice);
    place.row = (uint32_t)(slice - file->chunks[place.chunk].first);
    status =
        lac_trace_chunk(file, place.chunk, LAC_COLUMNS_ALL, &place.columns, &place.pin, reterr);
    if (status != LAC_OK) {
        return status;
    }
    fill_row(file, place.chunk, &place.columns->at, place.row, &full.row);
    full.step = step_of(file, full.row.track, full.row.start_ns);
    status = format_args(file, &place, &full.args_json);
    if (status == LAC_OK) {
        status = fill_detail(file, &full, reterr);
    }
    if (status == LAC_OK) {
        status = find_parent(file, &place, &full, reterr);
    }
    if (status == LAC_OK) {
        status = count_children(file, &place, &full, reterr);
    }
    if (status == LAC_OK) {
        status = fill_same_name(file, &place, &full, reterr);
    }
    lac_cache_unpin(file->cache, place.pin);
    if (status != LAC_OK) {
        lac_slice_full_done(&full);
        return status;
    }
    *ret_slice = full;
    return LAC_OK;
}

enum lac_status lac_trace_file_slice_place(struct lac_trace_file *file, uint64_t slice,
                                           struct lac_slice_row *ret_row, uint32_t *ret_parent,
                                           struct lac_error *reterr)
{
    assert(file != NULL && ret_row != NULL && ret_parent != NULL);
    struct lac_slice_full full = {0};
    struct place place = {0};

    if (slice >= file->head.slices.count) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no slice %llu", (unsigned long long)slice);
    }
    place.chunk = lac_trace_chunk_of(file, slice);
    place.row = (uint32_t)(slice - file->chunks[place.chunk].first);
    enum lac_status status =
        lac_trace_chunk(file, place.chunk, PLACE_COLUMNS, &place.columns, &place.pin, reterr);
    if (status != LAC_OK) {
        return status;
    }
    fill_row(file, place.chunk, &place.columns->at, place.row, &full.row);
    status = find_parent(file, &place, &full, reterr);
    lac_cache_unpin(file->cache, place.pin);
    *ret_row = full.row;
    *ret_parent = full.parent;
    return status;
}

void lac_slice_full_done(struct lac_slice_full *slice)
{
    free(slice->args_json);
    *slice = (struct lac_slice_full){0};
}

/** A window being filled. */
struct window {
    int64_t t0_ns, t1_ns;
    uint64_t from; /**< first slice id */
    uint32_t limit;
    struct lac_slice_row *rows;
    uint32_t count;
    bool has_more;
};

/** Rows of one chunk that overlap the window. */
static void window_rows(const struct lac_trace_file *file, uint32_t chunk,
                        const struct lac_slices *at, struct window *window)
{
    uint64_t first = file->chunks[chunk].first;

    for (uint32_t row = window->from > first ? (uint32_t)(window->from - first) : 0;
         row < at->count && at->start_ns[row] < window->t1_ns; row++) {
        if (at->start_ns[row] + at->dur_ns[row] <= window->t0_ns &&
            at->start_ns[row] < window->t0_ns) {
            continue;
        }
        if (window->count == window->limit) {
            window->has_more = true;
            return;
        }
        fill_row(file, chunk, at, row, &window->rows[window->count++]);
    }
}

/* NOLINTNEXTLINE(readability-function-size): a window is a track, two times and a page */
enum lac_status lac_trace_file_window(struct lac_trace_file *file, uint32_t track, int64_t t0_ns,
                                      int64_t t1_ns, uint32_t after, uint32_t limit,
                                      struct lac_slice_row *rows, uint32_t *ret_count,
                                      bool *ret_has_more, struct lac_error *reterr)
{
    assert(file != NULL && ret_count != NULL && ret_has_more != NULL);
    assert(rows != NULL || limit == 0);
    const unsigned wanted =
        LAC_COLUMNS_TILE | 1U << LAC_COLUMN_CORR | 1U << LAC_COLUMN_LINK | 1U << LAC_COLUMN_DETAIL;
    struct window window = {.t0_ns = t0_ns,
                            .t1_ns = t1_ns,
                            .from = after == LAC_NONE ? 0 : (uint64_t)after + 1,
                            .limit = limit,
                            .rows = rows};

    if (track >= file->head.track_count || file->head.tracks[track].kind == LAC_TRACK_COUNTER) {
        return lac_fail(reterr, LAC_ERR_NOT_FOUND, 0, "no track of slices %u", track);
    }
    for (uint32_t c = file->track_chunk[track];
         c < file->track_chunk[track + 1] && !window.has_more &&
         file->chunks[c].start_first < t1_ns;
         c++) {
        const struct lac_chunk_columns *columns = NULL;
        struct lac_cache_entry *pin = NULL;
        enum lac_status status;

        if (file->chunks[c].end_last < t0_ns ||
            file->chunks[c].first + file->chunks[c].count <= window.from) {
            continue;
        }
        status = lac_trace_chunk(file, c, wanted, &columns, &pin, reterr);
        if (status != LAC_OK) {
            return status;
        }
        window_rows(file, c, &columns->at, &window);
        lac_cache_unpin(file->cache, pin);
    }
    *ret_count = window.count;
    *ret_has_more = window.has_more;
    return LAC_OK;
}
