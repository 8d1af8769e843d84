/* Which tables of slices there are, and the columns of each. */

#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "server/sql/slice_columns.h" // IWYU pragma: keep
#include "server/sql/tables.h"

#include <stddef.h>
#include <stdint.h>

static const struct lac_sql_column all_columns[] = {
#define LAC_SLICE_COLUMN(KEY, name, type, words, needs, doc)                                       \
    {name, type, doc, LAC_SQL_WORDS_##words},
#include "server/sql/slice_columns.def"
};

const struct lac_sql_column *lac_sql_table_column(const struct lac_sql_table *table, unsigned index)
{
    return table->slice_columns != NULL ? &all_columns[table->slice_columns[index]]
                                        : &table->columns[index];
}

#define K(KEY) LAC_SLICE_##KEY##_

#define TIMED(X)    X(ID), X(TRACK), X(NAME), X(START_NS), X(DUR_NS), X(END_NS)
#define LAUNCHED(X) X(LAUNCH), X(LAUNCH_START_NS), X(LAUNCH_END_NS), X(LAUNCH_DELAY_NS)
#define ON_HOST(X)  X(DEPTH), X(THREAD_ID), X(PROCESS_ID)

#define SLICES(X)                                                                                  \
    TIMED(X), X(KIND), X(DEPTH), X(DEVICE), X(STREAM), X(THREAD_ID), X(PROCESS_ID),                \
        X(CORRELATION), X(LINK), X(ARGS)
#define KERNELS(X)                                                                                 \
    TIMED(X), X(DEVICE), X(STREAM), X(CORRELATION), X(SHORT_NAME), X(FAMILY), X(LAYOUT),           \
        X(TENSOR_CORES), X(IS_COMMUNICATION), X(GRID_X), X(GRID_Y), X(GRID_Z), X(BLOCK_X),         \
        X(BLOCK_Y), X(BLOCK_Z), X(REGISTERS), X(SHARED_BYTES), X(OCCUPANCY_PCT), X(BLOCKS_PER_SM), \
        X(GRAPH_NODE), X(MODULE), LAUNCHED(X), X(ARGS)
#define COPIES(X)                                                                                  \
    TIMED(X), X(KIND), X(DEVICE), X(STREAM), X(CORRELATION), X(BYTES), X(DIRECTION), X(SOURCE),    \
        X(DESTINATION), X(IS_ASYNC), X(GRAPH_NODE), X(MODULE), LAUNCHED(X), X(ARGS)
#define CALLS(X)     TIMED(X), ON_HOST(X), X(CORRELATION), X(LINK), X(RETURN_VALUE), X(ARGS)
#define RANGES(X)    TIMED(X), ON_HOST(X), X(BATCH), X(WORKER), X(CPU_NS), X(ARGS)
#define OPERATORS(X) TIMED(X), ON_HOST(X), X(CORRELATION), X(ARGS)
#define ALLOCATIONS(X)                                                                             \
    TIMED(X), X(THREAD_ID), X(PROCESS_ID), X(BYTES), X(TOTAL_BYTES), X(MEMORY_DEVICE), X(ARGS)
#define PROJECTED(X) TIMED(X), X(DEPTH), X(DEVICE), X(STREAM), X(ARGS)

#define TABLE(list) static const uint8_t list##_keys[] = {list(K)};
TABLE(SLICES)
TABLE(KERNELS)
TABLE(COPIES)
TABLE(CALLS)
TABLE(RANGES)
TABLE(OPERATORS)
TABLE(ALLOCATIONS)
TABLE(PROJECTED)

#define ROW(table_name, list, table_kinds, table_doc)                                              \
    {                                                                                              \
        .name = (table_name), .doc = (table_doc), .column_count = LAC_COUNT_OF(list##_keys),       \
        .kinds = (table_kinds), .slice_columns = list##_keys                                       \
    }
#define BIT(kind) (1U << LAC_SLICE_##kind)

const struct lac_sql_table lac_sql_slice_tables[] = {
    ROW("slices", SLICES, (1U << LAC_SLICE_KIND_COUNT_) - 1U,
        "every interval and mark of the trace, derived steps and gaps included"),
    ROW("kernels", KERNELS, BIT(KERNEL), "GPU kernels, communication included"),
    ROW("copies", COPIES, BIT(COPY) | BIT(MEMSET), "GPU memory copies and memory sets"),
    ROW("api_calls", CALLS, BIT(API), "calls of the CUDA or HIP runtime and driver"),
    ROW("operators", OPERATORS, BIT(OP), "framework operators: aten::conv2d, ..."),
    ROW("ranges", RANGES, BIT(RANGE), "user annotations and NVTX ranges, the loader's included"),
    ROW("gpu_ranges", PROJECTED, BIT(GPU_RANGE),
        "ranges and modules on a stream: the work that was launched inside them"),
    ROW("python_calls", OPERATORS, BIT(PYTHON), "Python functions, where the recorder had them"),
    ROW("syncs", PROJECTED, BIT(SYNC), "the recorder's synchronization records, not the calls"),
    ROW("overheads", CALLS, BIT(OVERHEAD), "the profiler's own cost, lazy loading, full buffers"),
    ROW("allocations", ALLOCATIONS, BIT(ALLOC), "memory allocated and released"),
};
const unsigned lac_sql_slice_table_count = LAC_COUNT_OF(lac_sql_slice_tables);
