#include "server/sql/slice_columns.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/model/args.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_columns.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>

static const unsigned column_needs[] = {
#define LAC_SLICE_COLUMN(KEY, name, type, words, needs, doc) (needs),
#include "server/sql/slice_columns.def"
};

unsigned lac_slice_column_needs(enum lac_slice_column column)
{
    return column_needs[column];
}

/* -- chunks ---------------------------------------------------------------------------------- */

void lac_sql_chunk_done(struct lac_sql_trace *trace, struct lac_sql_chunk *chunk)
{
    if (chunk->pin != NULL) {
        lac_trace_unpin(trace->file, chunk->pin);
    }
    *chunk = (struct lac_sql_chunk){0};
}

enum lac_status lac_sql_chunk_get(struct lac_sql_trace *trace, uint32_t number, unsigned columns,
                                  struct lac_sql_chunk *chunk, struct lac_error *reterr)
{
    if (chunk->pin != NULL && chunk->chunk == number) {
        return LAC_OK;
    }
    lac_sql_chunk_done(trace, chunk);
    enum lac_status status =
        lac_trace_chunk(trace->file, number, columns, &chunk->columns, &chunk->pin, reterr);
    chunk->chunk = number;
    return status;
}

/* -- groups of columns ----------------------------------------------------------------------- */

static void put_place(const struct lac_sql_slice *slice, enum lac_slice_column column,
                      sqlite3_context *out)
{
    const struct lac_model *head = slice->trace->head;
    uint32_t number = slice->trace->chunks[slice->at->chunk].track;
    const struct lac_track *track = &head->tracks[number];
    bool is_gpu = track->kind == LAC_TRACK_STREAM || track->kind == LAC_TRACK_GPU_RANGE;
    bool is_host = track->kind == LAC_TRACK_THREAD || track->kind == LAC_TRACK_MARKS;
    switch ((int)column) {
    case LAC_SLICE_TRACK_:
        sqlite3_result_int64(out, number);
        break;
    case LAC_SLICE_DEVICE_:
        lac_sql_put_optional(out, track->device);
        break;
    case LAC_SLICE_STREAM_:
        lac_sql_put_optional(out, is_gpu ? track->tid : -1);
        break;
    case LAC_SLICE_THREAD_ID_:
        lac_sql_put_optional(out, is_host ? track->tid : -1);
        break;
    default:
        lac_sql_put_optional(out, track->process < head->process_count &&
                                          !head->processes[track->process].is_gpu
                                      ? head->processes[track->process].pid
                                      : -1);
        break;
    }
}

static void put_class(const struct lac_sql_slice *slice, enum lac_slice_column column,
                      sqlite3_context *out)
{
    uint32_t name = slice->at->columns->at.name[slice->row];
    const struct lac_name_class *name_class = lac_sql_trace_class(slice->trace, name);
    if (name_class == NULL) {
        sqlite3_result_error_nomem(out);
        return;
    }
    switch ((int)column) {
    case LAC_SLICE_FAMILY_:
        lac_sql_put_text(out, lac_word(LAC_WORDS_FAMILY, name_class->family)->id);
        break;
    case LAC_SLICE_LAYOUT_:
        lac_sql_put_text(out, name_class->layout == LAC_LAYOUT_NONE
                                  ? NULL
                                  : lac_word(LAC_WORDS_LAYOUT, name_class->layout)->id);
        break;
    case LAC_SLICE_TENSOR_CORES_:
        lac_sql_put_text(out, lac_tensor_core_name(name_class->tensor_core));
        break;
    default:
        sqlite3_result_int(out, name_class->is_comm);
        break;
    }
}

static void put_short_name(const struct lac_sql_slice *slice, sqlite3_context *out)
{
    const struct lac_strings *strings = &slice->trace->head->strings;
    uint32_t name = slice->at->columns->at.name[slice->row];
    char text[96];
    size_t length = lac_kernel_short_name(lac_strings_get(strings, name),
                                          lac_strings_length(strings, name), text, sizeof(text));
    sqlite3_result_text(out, text, (int)length, SQLITE_TRANSIENT);
}

static void put_launch(const struct lac_sql_slice *slice, enum lac_slice_column column,
                       sqlite3_context *out)
{
    const unsigned columns = (1U << LAC_COLUMN_START) | (1U << LAC_COLUMN_DUR);
    const struct lac_slices *at = &slice->at->columns->at;
    uint32_t link = at->link[slice->row];
    struct lac_error error = {0};
    if (link == LAC_NONE) {
        sqlite3_result_null(out);
        return;
    }
    uint32_t number = lac_trace_chunk_of(slice->trace->file, link);
    if (lac_sql_chunk_get(slice->trace, number, columns, slice->launch, &error)) {
        sqlite3_result_error(out, error.message, -1);
        return;
    }
    const struct lac_slices *launch = &slice->launch->columns->at;
    uint64_t row = link - slice->trace->chunks[number].first;
    if (row >= launch->count) {
        sqlite3_result_null(out);
        return;
    }
    int64_t end_ns = launch->start_ns[row] + launch->dur_ns[row];
    sqlite3_result_int64(out, column == LAC_SLICE_LAUNCH_START_NS_ ? launch->start_ns[row]
                              : column == LAC_SLICE_LAUNCH_END_NS_
                                  ? end_ns
                                  : at->start_ns[slice->row] - end_ns);
}

static void put_args(const struct lac_sql_slice *slice, sqlite3_context *out)
{
    const struct lac_chunk_columns *columns = slice->at->columns;
    const struct lac_model view = {.strings = slice->trace->head->strings,
                                   .slices = columns->at,
                                   .arg_numbers = columns->numbers,
                                   .arg_number_count = columns->number_count};
    size_t length =
        columns->at.args[slice->row] != 0 ? lac_args_format(&view, slice->row, NULL, 0) : 0;
    if (length == 0) {
        sqlite3_result_null(out);
        return;
    }
    char *text = sqlite3_malloc64(length + 1);
    if (text == NULL) {
        sqlite3_result_error_nomem(out);
        return;
    }
    (void)lac_args_format(&view, slice->row, text, length + 1);
    sqlite3_result_text64(out, text, length, sqlite3_free, SQLITE_UTF8);
}

/* -- what the kind of a slice carries ---------------------------------------------------------- */

/* All 64 bits: the upper 32 are the number of the graph. */
static void put_graph_node(uint64_t node, sqlite3_context *out)
{
    if (node == 0) {
        sqlite3_result_null(out);
    } else {
        sqlite3_result_int64(out, (int64_t)node);
    }
}

static void put_kernel(const struct lac_model *details, uint32_t row, enum lac_slice_column column,
                       sqlite3_context *out)
{
    const struct lac_kernel_config *const config = &details->kernel_configs[row];
    switch ((int)column) {
    case LAC_SLICE_GRID_X_:
    case LAC_SLICE_GRID_Y_:
    case LAC_SLICE_GRID_Z_:
        sqlite3_result_int64(out, config->grid[column - LAC_SLICE_GRID_X_]);
        break;
    case LAC_SLICE_BLOCK_X_:
    case LAC_SLICE_BLOCK_Y_:
    case LAC_SLICE_BLOCK_Z_:
        sqlite3_result_int64(out, config->block[column - LAC_SLICE_BLOCK_X_]);
        break;
    case LAC_SLICE_REGISTERS_:
        sqlite3_result_int64(out, config->registers_per_thread);
        break;
    case LAC_SLICE_SHARED_BYTES_:
        sqlite3_result_int64(out, config->shared_memory_bytes);
        break;
    case LAC_SLICE_OCCUPANCY_PCT_:
    case LAC_SLICE_BLOCKS_PER_SM_: {
        float value =
            column == LAC_SLICE_OCCUPANCY_PCT_ ? config->occupancy_pct : config->blocks_per_sm;
        lac_sql_put_real(out, value < 0 ? (double)__builtin_nanf("") : (double)value);
        break;
    }
    case LAC_SLICE_GRAPH_NODE_:
        put_graph_node(config->graph_node, out);
        break;
    case LAC_SLICE_MODULE_:
        lac_sql_put_text(out, config->module != 0 ? lac_model_str(details, config->module) : NULL);
        break;
    default:
        sqlite3_result_null(out);
    }
}

static void put_copy(const struct lac_model *details, uint32_t row, enum lac_slice_column column,
                     sqlite3_context *out)
{
    const struct lac_copy *const copy = &details->copies[row];
    switch ((int)column) {
    case LAC_SLICE_BYTES_:
        lac_sql_put_optional(out, copy->bytes);
        break;
    case LAC_SLICE_DIRECTION_:
        lac_sql_put_text(out, copy->copy_kind == LAC_COPY_UNKNOWN
                                  ? NULL
                                  : lac_copy_kind_name((enum lac_copy_kind)copy->copy_kind));
        break;
    case LAC_SLICE_SOURCE_:
    case LAC_SLICE_DESTINATION_: {
        uint8_t memory = column == LAC_SLICE_SOURCE_ ? copy->src : copy->dst;
        lac_sql_put_text(out, memory == LAC_MEMORY_UNKNOWN
                                  ? NULL
                                  : lac_memory_kind_name((enum lac_memory_kind)memory));
        break;
    }
    case LAC_SLICE_IS_ASYNC_:
        lac_sql_put_optional(out, copy->is_async > 1 ? -1 : copy->is_async);
        break;
    case LAC_SLICE_GRAPH_NODE_:
        put_graph_node(copy->graph_node, out);
        break;
    case LAC_SLICE_MODULE_:
        lac_sql_put_text(out, copy->module != 0 ? lac_model_str(details, copy->module) : NULL);
        break;
    default:
        sqlite3_result_null(out);
    }
}

static void put_alloc(const struct lac_alloc *alloc, enum lac_slice_column column,
                      sqlite3_context *out)
{
    switch ((int)column) {
    case LAC_SLICE_BYTES_:
        sqlite3_result_int64(out, alloc->bytes);
        break;
    case LAC_SLICE_TOTAL_BYTES_:
        lac_sql_put_optional(out, alloc->total_allocated);
        break;
    case LAC_SLICE_MEMORY_DEVICE_:
        lac_sql_put_optional(out, alloc->device);
        break;
    default:
        sqlite3_result_null(out);
    }
}

static void put_loader(const struct lac_loader_info *info, enum lac_slice_column column,
                       sqlite3_context *out)
{
    lac_sql_put_optional(out, column == LAC_SLICE_BATCH_    ? info->batch
                              : column == LAC_SLICE_WORKER_ ? info->worker
                              : column == LAC_SLICE_CPU_NS_ ? info->cpu_ns
                                                            : -1);
}

static void put_told(const struct lac_sql_slice *slice, enum lac_slice_column column,
                     sqlite3_context *out)
{
    const struct lac_slices *at = &slice->at->columns->at;
    uint32_t detail = at->detail[slice->row];
    uint8_t kind = at->kind[slice->row];
    const struct lac_model *details = NULL;
    struct lac_error error = {0};
    if (detail == LAC_NONE) {
        sqlite3_result_null(out);
        return;
    }
    if (lac_sql_trace_details(slice->trace, &details, &error)) {
        sqlite3_result_error(out, error.message, -1);
        return;
    }
    if (kind == LAC_SLICE_KERNEL && detail < details->kernel_config_count) {
        put_kernel(details, detail, column, out);
    } else if ((kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET) &&
               detail < details->copy_count) {
        put_copy(details, detail, column, out);
    } else if (kind == LAC_SLICE_RANGE && detail < details->loader_info_count) {
        put_loader(&details->loader_infos[detail], column, out);
    } else if (kind == LAC_SLICE_ALLOC && detail < details->alloc_count) {
        put_alloc(&details->allocs[detail], column, out);
    } else if (kind == LAC_SLICE_API && column == LAC_SLICE_RETURN_VALUE_) {
        sqlite3_result_int64(out, (int32_t)detail);
    } else {
        sqlite3_result_null(out);
    }
}

/* -- one column -------------------------------------------------------------------------------- */

void lac_slice_column_put(const struct lac_sql_slice *slice, enum lac_slice_column column,
                          sqlite3_context *out)
{
    const struct lac_slices *at = &slice->at->columns->at;
    const struct lac_strings *strings = &slice->trace->head->strings;
    uint32_t row = slice->row;
    switch ((int)column) {
    case LAC_SLICE_ID_:
        sqlite3_result_int64(out, (int64_t)(slice->trace->chunks[slice->at->chunk].first + row));
        break;
    case LAC_SLICE_KIND_:
        sqlite3_result_text(out, lac_slice_kind_name((enum lac_slice_kind)at->kind[row]), -1,
                            SQLITE_STATIC);
        break;
    case LAC_SLICE_NAME_:
        sqlite3_result_text(out, lac_strings_get(strings, at->name[row]),
                            (int)lac_strings_length(strings, at->name[row]), SQLITE_STATIC);
        break;
    case LAC_SLICE_START_NS_:
        sqlite3_result_int64(out, at->start_ns[row]);
        break;
    case LAC_SLICE_DUR_NS_:
        sqlite3_result_int64(out, at->dur_ns[row]);
        break;
    case LAC_SLICE_END_NS_:
        sqlite3_result_int64(out, at->start_ns[row] + at->dur_ns[row]);
        break;
    case LAC_SLICE_DEPTH_:
        sqlite3_result_int(out, at->lane[row]);
        break;
    case LAC_SLICE_CORRELATION_:
        lac_sql_put_optional(out, at->corr[row] == 0 ? -1 : (int64_t)at->corr[row]);
        break;
    case LAC_SLICE_LINK_:
    case LAC_SLICE_LAUNCH_:
        lac_sql_put_id(out, at->link[row]);
        break;
    case LAC_SLICE_ARGS_:
        put_args(slice, out);
        break;
    case LAC_SLICE_SHORT_NAME_:
        put_short_name(slice, out);
        break;
    case LAC_SLICE_TRACK_:
    case LAC_SLICE_DEVICE_:
    case LAC_SLICE_STREAM_:
    case LAC_SLICE_THREAD_ID_:
    case LAC_SLICE_PROCESS_ID_:
        put_place(slice, column, out);
        break;
    case LAC_SLICE_FAMILY_:
    case LAC_SLICE_LAYOUT_:
    case LAC_SLICE_TENSOR_CORES_:
    case LAC_SLICE_IS_COMMUNICATION_:
        put_class(slice, column, out);
        break;
    case LAC_SLICE_LAUNCH_START_NS_:
    case LAC_SLICE_LAUNCH_END_NS_:
    case LAC_SLICE_LAUNCH_DELAY_NS_:
        put_launch(slice, column, out);
        break;
    default:
        put_told(slice, column, out);
        break;
    }
}
