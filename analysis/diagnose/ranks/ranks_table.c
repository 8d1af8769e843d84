/* A rank's collectives, and what its device did between them. */

#include "analysis/diagnose/ranks/ranks_private.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

static char *copy_text(const struct lac_model *model, uint32_t id)
{
    return strdup(id == 0 ? "" : lac_model_str(model, id));
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* -- facts ---------------------------------------------------------------------------------- */

static void take_kernels(struct lac_rank_table *table, const struct lac_model *model,
                         const struct lac_analysis *analysis)
{
    table->kernel_count = analysis->kernel_count;
    for (uint32_t row = 0; row < analysis->kernel_name_count; row++) {
        const struct lac_kernel_facts *kernel_facts = &analysis->kernels[row];
        if (!kernel_facts->names.is_comm && table->kernel_kept_count < LAC_RANK_KERNELS_MAX) {
            table->kernels[table->kernel_kept_count++] = (struct lac_rank_kernel){
                .name_hash = hash_text(lac_model_str(model, kernel_facts->name)),
                .count = kernel_facts->count,
                .total_ns = kernel_facts->total_ns};
        }
    }
}

static void take_device(struct lac_rank_table *table, const struct lac_analysis *analysis)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    table->has_device = true;
    table->device_id = device->id;
    table->first_ns = device->first_ns;
    table->span_ns = device->span_ns;
    table->idle_ns = device->idle_ns;
    memcpy(table->partition_ns, device->partition_ns, sizeof(table->partition_ns));
    table->idle_pct = 100.0 - device->busy_pct;
    if (device->span_ns > 0) {
        table->exposed_comm_pct =
            100.0 * (double)device->partition_ns[LAC_PART_EXPOSED_COMM] / (double)device->span_ns;
    }
    for (uint64_t g = device->first_gap; g < device->first_gap + device->gap_count; g++) {
        if (analysis->gaps[g].dur_ns > table->gap_ns) {
            table->gap_ns = analysis->gaps[g].dur_ns;
            table->gap_at_ns = analysis->gaps[g].start_ns;
            table->gap_cause = analysis->gaps[g].cause;
        }
    }
}

static enum lac_status take_facts(struct lac_rank_table *table, const struct lac_model *model,
                                  const struct lac_analysis *analysis)
{
    bool has_device = analysis->main_device != LAC_NONE;
    table->name = copy_text(model, model->info.name);
    table->host = copy_text(model, model->info.host);
    table->device =
        copy_text(model, has_device ? analysis->devices[analysis->main_device].name : 0);
    table->rank = model->info.rank;
    table->world_size = model->info.world_size;
    table->letter = analysis->verdict.letter;
    (void)snprintf(table->cause, sizeof(table->cause), "%s", analysis->verdict.cause);
    table->step_count = analysis->step_count;
    table->step_kept_count = analysis->step_kept_count;
    table->step_mean_ns = analysis->step_mean_ns;
    /* a loader of which only the waits are known is taken to deliver as fast as it is asked: that is the
     * step as it is, and no need */
    const bool has_loader =
        analysis->loader.fetch_mean_ns != LAC_UNKNOWN_NS && analysis->loader.num_workers >= 0;
    const int64_t needs_ns[] = {analysis->needs.gpu_ns,
                                has_loader ? analysis->needs.data_ns : LAC_UNKNOWN_NS,
                                analysis->needs.alone_ns};
    for (size_t i = 0; i < LAC_COUNT_OF(needs_ns); i++) {
        /* LAC_UNKNOWN_NS is less than any need */
        table->need_ns = later(table->need_ns, needs_ns[i]);
    }
    table->host_ns = analysis->needs.host_ns;
    table->idle_pct = table->exposed_comm_pct = (double)NAN;
    take_kernels(table, model, analysis);
    if (has_device) {
        take_device(table, analysis);
    }
    return table->name != NULL && table->host && table->device ? LAC_OK : LAC_ERR_NOMEM;
}

/* -- collectives ------------------------------------------------------------------------------ */

static enum lac_status add(struct lac_rank_table *table, struct lac_collective collective)
{
    if (!LAC_RESERVE(table->at, table->capacity, table->count, 1)) {
        return LAC_ERR_NOMEM;
    }
    table->at[table->count++] = collective;
    return LAC_OK;
}

/** What kernels of one name communicate, by their string's id. */
struct comm_names {
    bool *is_comm;
    uint8_t *kind; /**< enum lac_collective_kind: of those that were looked at */
    uint8_t *looked_at;
};

/** The first ones of a name say what it does; those that differ say only that something goes over. */
static void look_at(struct comm_names *names, const struct lac_model *model, uint64_t slice)
{
    enum { LOOKS_MAX = 32 };
    uint32_t name = model->slices.name[slice];
    if (names->looked_at[name] == LOOKS_MAX) {
        return;
    }
    uint8_t kind = (uint8_t)lac_collective_kind_of(model, slice);
    bool is_other = names->looked_at[name] > 0 && names->kind[name] != kind;
    names->kind[name] = is_other ? LAC_COLLECTIVE_BETWEEN : kind;
    names->looked_at[name]++;
}

/** Communication kernels of the device; `name` is the string's id until the rows are made. */
static enum lac_status gather(struct lac_rank_table *table, const struct lac_model *model,
                              struct comm_names *names)
{
    const struct lac_slices *slices = &model->slices;
    enum lac_status status = LAC_OK;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        if (track->kind != LAC_TRACK_STREAM || track->device != table->device_id) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count && !status; i++) {
            if (slices->kind[i] == LAC_SLICE_KERNEL && names->is_comm[slices->name[i]]) {
                look_at(names, model, i);
                status = add(table, (struct lac_collective){.start_ns = slices->start_ns[i],
                                                            .end_ns = slices->start_ns[i] +
                                                                      slices->dur_ns[i],
                                                            .name = slices->name[i]});
            }
        }
    }
    return status;
}

static int by_start(const void *a, const void *b)
{
    const struct lac_collective *x = a;
    const struct lac_collective *y = b;
    int order = LAC_ORDER(x->start_ns, y->start_ns);
    order = order != 0 ? order : LAC_ORDER(x->end_ns, y->end_ns);
    return order != 0 ? order : LAC_ORDER(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct lac_collective *x = a;
    const struct lac_collective *y = b;
    return x->name != y->name ? (x->name < y->name ? -1 : 1) : by_start(a, b);
}

/** A place in the pieces of a device's gaps, which ascend. */
struct piece_cursor {
    const struct lac_analysis *analysis;
    uint64_t piece, end;
};

/** Add idle time between two moments by cause; moments ascend from call to call. */
static void add_idle(struct piece_cursor *cursor, int64_t from_ns, int64_t to_ns, float *part_ns)
{
    const struct lac_analysis *analysis = cursor->analysis;
    for (; cursor->piece < cursor->end; cursor->piece++) {
        const struct lac_gap_piece *piece = &analysis->pieces[cursor->piece];
        int64_t end_ns = piece->start_ns + lac_gap_piece_dur_ns(analysis, cursor->piece);
        int64_t begin_ns = later(piece->start_ns, from_ns);
        int64_t clipped_ns = end_ns < to_ns ? end_ns : to_ns;
        if (begin_ns < clipped_ns) {
            part_ns[piece->cause] += (float)(clipped_ns - begin_ns);
        }
        if (end_ns > to_ns) {
            break;
        }
    }
}

/** What the streams did, by the collective that came next: `at` by start. */
static void add_work(struct lac_rank_table *table, const struct lac_model *model,
                     const bool *is_comm)
{
    const struct lac_slices *slices = &model->slices;
    for (uint32_t t = 0; t < model->recorded_track_count; t++) {
        const struct lac_track *track = &model->tracks[t];
        uint64_t next = 0;
        int64_t until_ns = INT64_MIN;
        if (track->kind != LAC_TRACK_STREAM || track->device != table->device_id) {
            continue;
        }
        for (uint64_t i = track->first; i < track->first + track->count; i++) {
            bool is_kernel = slices->kind[i] == LAC_SLICE_KERNEL;
            bool is_work = (is_kernel && !is_comm[slices->name[i]]) ||
                           slices->kind[i] == LAC_SLICE_COPY || slices->kind[i] == LAC_SLICE_MEMSET;
            int64_t from_ns = later(slices->start_ns[i], until_ns); /* one at a time */
            int64_t end_ns = slices->start_ns[i] + slices->dur_ns[i];
            while (next < table->count && table->at[next].start_ns <= from_ns) {
                next++;
            }
            until_ns = is_work ? later(until_ns, end_ns) : until_ns;
            for (uint64_t k = next; is_work && k < table->count && from_ns < end_ns; k++) {
                int64_t to_ns = table->at[k].start_ns < end_ns ? table->at[k].start_ns : end_ns;
                table->at[k].part_ns[LAC_RANK_WORK] += (float)(to_ns - from_ns);
                from_ns = to_ns;
            }
        }
    }
}

/** What the device was idle for from the end of one collective to the start of the next. */
static void fill_parts(struct lac_rank_table *table, const struct lac_analysis *analysis)
{
    const struct lac_device_facts *device = &analysis->devices[analysis->main_device];
    struct piece_cursor cursor = {.analysis = analysis};
    if (device->gap_count > 0) {
        cursor.piece = analysis->gaps[device->first_gap].first_piece;
        cursor.end = cursor.piece + device->gap_piece_count;
    }
    table->lead_ns = device->first_ns;
    if (analysis->step_count > 0 && table->count > 0 &&
        analysis->steps[0].start_ns <= table->at[0].start_ns) {
        table->lead_ns = analysis->steps[0].start_ns;
    }
    int64_t from_ns = device->first_ns; /* before its first operation a device has no gaps */
    for (uint64_t i = 0; i < table->count; i++) {
        struct lac_collective *it = &table->at[i];
        it->is_first = i == 0;
        if (it->start_ns > from_ns) {
            add_idle(&cursor, from_ns, it->start_ns, it->part_ns);
        }
        from_ns = later(from_ns, it->end_ns);
    }
}

static int row_by_name(const void *a, const void *b)
{
    return strcmp(((const struct lac_collective_row *)a)->name,
                  ((const struct lac_collective_row *)b)->name);
}

/** Order by name and cut into rows. */
static enum lac_status make_rows(struct lac_rank_table *table, const struct lac_model *model,
                                 const uint8_t *kinds)
{
    uint32_t names = 0;
    if (table->count == 0) {
        return LAC_OK;
    }
    qsort(table->at, table->count, sizeof(*table->at), by_name);
    for (uint64_t i = 0; i < table->count; i++) {
        names += i == 0 || table->at[i].name != table->at[i - 1].name;
    }
    table->rows = calloc(names, sizeof(*table->rows));
    if (table->rows == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < table->count; i++) {
        if (i == 0 || table->at[i].name != table->at[i - 1].name) {
            struct lac_collective_row *row = &table->rows[table->row_count];
            *row = (struct lac_collective_row){.name = copy_text(model, table->at[i].name),
                                               .first = i,
                                               .kind = kinds[table->at[i].name]};
            if (row->name == NULL) {
                return LAC_ERR_NOMEM;
            }
            table->row_count++;
        }
        table->rows[table->row_count - 1].count++;
    }
    qsort(table->rows, table->row_count, sizeof(*table->rows), row_by_name);
    return LAC_OK;
}

static enum lac_status take_collectives(struct lac_rank_table *table, const struct lac_model *model,
                                        const struct lac_analysis *analysis)
{
    size_t count = (size_t)model->strings.count + 1;
    struct comm_names names = {.is_comm = calloc(count, sizeof(*names.is_comm)),
                               .kind = calloc(count, sizeof(*names.kind)),
                               .looked_at = calloc(count, sizeof(*names.looked_at))};
    enum lac_status status = names.is_comm != NULL && names.kind != NULL && names.looked_at != NULL
                                 ? LAC_OK
                                 : LAC_ERR_NOMEM;
    for (uint32_t row = 0; row < analysis->kernel_name_count && !status; row++) {
        names.is_comm[analysis->kernels[row].name] = analysis->kernels[row].names.is_comm;
    }
    if (!status) {
        status = gather(table, model, &names);
    }
    if (!status && table->count > 0) {
        qsort(table->at, table->count, sizeof(*table->at), by_start);
        add_work(table, model, names.is_comm);
        fill_parts(table, analysis);
        status = make_rows(table, model, names.kind);
    }
    free(names.is_comm);
    free(names.kind);
    free(names.looked_at);
    return status;
}

enum lac_status lac_rank_table_create(const struct lac_model *model,
                                      const struct lac_analysis *analysis,
                                      struct lac_rank_table **ret_table)
{
    assert(model != NULL && analysis != NULL && ret_table != NULL);
    struct lac_rank_table *table = calloc(1, sizeof(*table));
    enum lac_status status = table != NULL ? take_facts(table, model, analysis) : LAC_ERR_NOMEM;
    if (!status && table->has_device) {
        status = take_collectives(table, model, analysis);
    }
    if (status) {
        lac_rank_table_destroy(table);
        return status;
    }
    *ret_table = table;
    return LAC_OK;
}

void lac_rank_table_destroy(struct lac_rank_table *table)
{
    if (table != NULL) {
        for (uint32_t row = 0; row < table->row_count; row++) {
            free(table->rows[row].name);
        }
        free(table->rows);
        free(table->at);
        free(table->name);
        free(table->host);
        free(table->device);
        free(table);
    }
}

void lac_rank_table_number(struct lac_rank_table *table, int32_t rank)
{
    table->rank = rank;
}

int32_t lac_rank_table_rank(const struct lac_rank_table *table)
{
    return table->rank;
}

bool lac_rank_table_device(const struct lac_rank_table *table, int64_t *ret_device,
                           int64_t *ret_first_ns, int64_t *ret_span_ns)
{
    *ret_device = table->has_device ? table->device_id : 0;
    *ret_first_ns = table->has_device ? table->first_ns : 0;
    *ret_span_ns = table->has_device ? table->span_ns : 0;
    return table->has_device;
}

uint64_t lac_rank_table_bytes(const struct lac_rank_table *table)
{
    return sizeof(*table) + table->capacity * sizeof(*table->at) +
           table->row_count * (sizeof(*table->rows) + 64);
}
