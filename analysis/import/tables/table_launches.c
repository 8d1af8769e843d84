/* Nsight Compute: a row a launch (--page raw) or a row a metric of a launch (--page details). */

#include "analysis/import/tables/tables_private.h"
#include "analysis/import/text/number_args.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum metric {
    NO_METRIC,
    DURATION,
    BYTES,          /* moved between the GPU and its memory */
    BYTES_PER_TIME, /* the same, per second */
    SM_PCT,
    MEMORY_PCT,
    OCCUPANCY_PCT,
    REGISTERS,
    CYCLES_PER_TIME,
    OPERATIONS, /* floating-point instructions of threads; a fused one is two operations */
    FUSED_OPERATIONS,
    OPERATIONS_PER_CYCLE,
    FUSED_PER_CYCLE,
};

static const struct {
    const char *name;
    enum metric metric;
} METRICS[] = {
    {"gpu__time_duration.sum", DURATION},
    {"gpu__time_duration.avg", DURATION},
    {"Duration", DURATION},
    {"dram__bytes.sum", BYTES},
    {"dram__bytes_read.sum", BYTES},
    {"dram__bytes_write.sum", BYTES},
    {"dram__bytes.sum.per_second", BYTES_PER_TIME},
    {"Memory Throughput", BYTES_PER_TIME},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", SM_PCT},
    {"Compute (SM) Throughput", SM_PCT},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", MEMORY_PCT},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", OCCUPANCY_PCT},
    {"Achieved Occupancy", OCCUPANCY_PCT},
    {"launch__registers_per_thread", REGISTERS},
    {"Registers Per Thread", REGISTERS},
    {"smsp__cycles_elapsed.avg.per_second", CYCLES_PER_TIME},
};

/** What is known of the launch that is being read, and which columns hold metrics. */
struct lac_table_launch {
    uint8_t metric_of[LAC_TABLE_FIELDS_MAX];
    char unit_of[LAC_TABLE_FIELDS_MAX][16];
    char id[32];
    bool is_open;
    struct lac_slice_in slice;
    double values[FUSED_PER_CYCLE + 1]; /* duration in ns, bytes, per second; NAN: not told */
};

static enum metric metric_of(struct lac_table_field name)
{
    for (size_t i = 0; i < LAC_COUNT_OF(METRICS); i++) {
        if (lac_field_is(name, METRICS[i].name)) {
            return METRICS[i].metric;
        }
    }
    const char *prefixes[] = {"smsp__sass_thread_inst_executed_op_",
                              "sm__sass_thread_inst_executed_op_"};
    for (size_t i = 0; i < LAC_COUNT_OF(prefixes); i++) {
        size_t size = strlen(prefixes[i]);
        if (!lac_field_begins(name, prefixes[i]) || name.size < size + 5) {
            continue;
        }
        struct lac_table_field op = {name.text + size, name.size - size};
        if (memchr("fdh", op.text[0], 3) == NULL) {
            return NO_METRIC;
        }
        bool is_fused = memcmp(op.text + 1, "fma_", 4) == 0;
        bool is_plain = memcmp(op.text + 1, "add_", 4) == 0 || memcmp(op.text + 1, "mul_", 4) == 0;
        struct lac_table_field rest = {op.text + 5, op.size - 5};
        if (!is_fused && !is_plain) {
            return NO_METRIC;
        }
        if (lac_field_is(rest, "pred_on.sum")) {
            return is_fused ? FUSED_OPERATIONS : OPERATIONS;
        }
        if (lac_field_is(rest, "pred_on.sum.per_cycle_elapsed")) {
            return is_fused ? FUSED_PER_CYCLE : OPERATIONS_PER_CYCLE;
        }
    }
    return NO_METRIC;
}

/* "Gbyte/second", "GB/s": bytes per second of one. 0: not such a unit. */
static double bytes_per_second(struct lac_table_field unit)
{
    const char *bar = memchr(unit.text, '/', unit.size);
    if (bar == NULL) {
        return 0;
    }
    struct lac_table_field time = {bar + 1, (size_t)(unit.text + unit.size - bar - 1)};
    int power = 0;
    double bytes = lac_unit_of_size((struct lac_table_field){unit.text, (size_t)(bar - unit.text)},
                                    LAC_SIZE_DECIMAL);
    return lac_unit_of_time(time, &power) ? bytes * pow(10, 9 - power) : 0;
}

/* "Ghz", "cycle/nsecond": cycles per second of one. */
static double cycles_per_second(struct lac_table_field unit)
{
    static const struct {
        const char *name;
        double hz;
    } UNITS[] = {{"hz", 1},
                 {"Hz", 1},
                 {"Khz", 1e3},
                 {"KHz", 1e3},
                 {"Mhz", 1e6},
                 {"MHz", 1e6},
                 {"Ghz", 1e9},
                 {"GHz", 1e9},
                 {"cycle/nsecond", 1e9},
                 {"cycle/usecond", 1e6},
                 {"cycle/second", 1}};
    for (size_t i = 0; i < LAC_COUNT_OF(UNITS); i++) {
        if (lac_field_is(unit, UNITS[i].name)) {
            return UNITS[i].hz;
        }
    }
    return 0;
}

static void apply(struct lac_table_launch *launch, enum metric metric, struct lac_table_field value,
                  struct lac_table_field unit)
{
    double number = 0;
    double scale = 1;
    int64_t ns = 0;
    if (metric == NO_METRIC || !lac_field_real(value, &number) || number < 0) {
        return;
    }
    if (metric == DURATION) {
        if (lac_field_ns(value, unit, &ns)) {
            launch->values[DURATION] = (double)ns;
        }
        return;
    }
    if (metric == BYTES) {
        scale = unit.size == 0 ? 1 : lac_unit_of_size(unit, LAC_SIZE_DECIMAL);
    } else if (metric == BYTES_PER_TIME) {
        scale = bytes_per_second(unit);
    } else if (metric == CYCLES_PER_TIME) {
        scale = cycles_per_second(unit);
    }
    if (scale <= 0) {
        return; /* "Memory Throughput" is also the name of a share */
    }
    bool adds = metric == BYTES || metric == OPERATIONS || metric == FUSED_OPERATIONS ||
                metric == OPERATIONS_PER_CYCLE || metric == FUSED_PER_CYCLE;
    double before = adds && !isnan(launch->values[metric]) ? launch->values[metric] : 0;
    launch->values[metric] = before + number * scale;
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static void add_arg(struct lac_number_args *args, const char *name, double value)
{
    if (value >= 0.5 && value < 9e18) {
        lac_number_args_add(args, name, (int64_t)(value + 0.5));
    }
}

/* What the metrics say of the launch, in plain units. */
static void measure(const struct lac_table_launch *launch, struct lac_number_args *args)
{
    const double *values = launch->values;
    double seconds = values[DURATION] / 1e9;
    double bytes_per_s = values[BYTES_PER_TIME];
    double flop = or_zero(values[OPERATIONS]) + 2 * or_zero(values[FUSED_OPERATIONS]);
    double flop_per_s = seconds > 0 ? flop / seconds : 0;
    if (flop == 0) {
        flop_per_s =
            (or_zero(values[OPERATIONS_PER_CYCLE]) + 2 * or_zero(values[FUSED_PER_CYCLE])) *
            or_zero(values[CYCLES_PER_TIME]);
    }
    if (isnan(bytes_per_s)) {
        bytes_per_s = seconds > 0 ? or_zero(values[BYTES]) / seconds : 0;
    }
    add_arg(args, "FLOP per second", flop_per_s);
    add_arg(args, "memory bytes per second", bytes_per_s);
    add_arg(args, "compute percent of peak", or_zero(values[SM_PCT]));
    add_arg(args, "memory percent of peak", or_zero(values[MEMORY_PCT]));
    add_arg(args, "achieved occupancy percent", or_zero(values[OCCUPANCY_PCT]));
}

/* The launch is complete: its slice, if it has a duration. */
enum lac_status lac_table_launch_end(struct lac_tables *tables)
{
    struct lac_table_launch *launch = tables->launch;
    struct lac_number_args args = {.used = 0};
    if (launch == NULL || !launch->is_open) {
        return LAC_OK;
    }
    launch->is_open = false;
    if (isnan(launch->values[DURATION])) {
        lac_tables_drop(tables, "launch_without_duration",
                        "Launches without gpu__time_duration.sum were dropped: record with ncu "
                        "--set basic or --metrics gpu__time_duration.sum");
        return LAC_OK;
    }
    measure(launch, &args);
    struct lac_table_sum sum = {.slice = launch->slice,
                                .calls = 1,
                                .total_ns = (int64_t)launch->values[DURATION],
                                .least_ns = -1,
                                .most_ns = -1};
    enum lac_status status =
        lac_tables_pass(tables, lac_number_args_store(&args, tables->builder, &sum.slice));
    return status == LAC_OK ? lac_table_add_sum(tables, &sum) : status;
}

void lac_table_launches_done(struct lac_tables *tables)
{
    free(tables->launch);
    tables->launch = NULL;
}

enum lac_status lac_table_launches_begin(struct lac_tables *tables)
{
    if (tables->launch == NULL) {
        tables->launch = calloc(1, sizeof(*tables->launch));
    }
    if (tables->launch == NULL) {
        return lac_tables_pass(tables, LAC_ERR_NOMEM);
    }
    *tables->launch = (struct lac_table_launch){.is_open = false};
    for (size_t i = 0; i < tables->field_count; i++) {
        tables->launch->metric_of[i] = (uint8_t)metric_of(tables->fields[i]);
    }
    return LAC_OK;
}

/* The row below the headings of --page raw: units. False: a row of values. */
static bool take_units(struct lac_tables *tables)
{
    if (lac_table_get(tables, LAC_ROLE_ID).size > 0) {
        return false;
    }
    for (size_t i = 0; i < tables->field_count; i++) {
        lac_field_copy(tables->fields[i], tables->launch->unit_of[i],
                       sizeof(tables->launch->unit_of[i]));
    }
    return true;
}

static enum lac_status begin_launch(struct lac_tables *tables)
{
    struct lac_table_launch *launch = tables->launch;
    struct lac_table_field name = lac_table_get(tables, LAC_ROLE_NAME);
    lac_field_copy(lac_table_get(tables, LAC_ROLE_ID), launch->id, sizeof(launch->id));
    launch->slice = (struct lac_slice_in){.kind = LAC_SLICE_KERNEL, .detail = LAC_NONE};
    for (size_t i = 0; i < LAC_COUNT_OF(launch->values); i++) {
        launch->values[i] = (double)NAN;
    }
    launch->is_open = true;
    return lac_table_operation(tables, name, &launch->slice);
}

enum lac_status lac_table_launch_row(struct lac_tables *tables)
{
    struct lac_table_launch *launch = tables->launch;
    char id[32];
    if (take_units(tables)) {
        return LAC_OK;
    }
    if (lac_table_get(tables, LAC_ROLE_NAME).size == 0) {
        lac_tables_drop(tables, "row_without_name", "Rows without a kernel's name were dropped.");
        return LAC_OK;
    }
    lac_field_copy(lac_table_get(tables, LAC_ROLE_ID), id, sizeof(id));
    bool is_raw = tables->heading.kind == LAC_TABLE_LAUNCHES;
    enum lac_status status = LAC_OK;
    if (is_raw || !launch->is_open || strcmp(id, launch->id) != 0) {
        status = lac_table_launch_end(tables);
        status = status == LAC_OK ? begin_launch(tables) : status;
    }
    if (!is_raw) {
        apply(launch, metric_of(lac_table_get(tables, LAC_ROLE_METRIC)),
              lac_table_get(tables, LAC_ROLE_METRIC_VALUE),
              lac_table_get(tables, LAC_ROLE_METRIC_UNIT));
        return status;
    }
    for (size_t i = 0; i < tables->field_count; i++) {
        const char *unit = launch->unit_of[i];
        apply(launch, (enum metric)launch->metric_of[i], tables->fields[i],
              (struct lac_table_field){unit, strlen(unit)});
    }
    return status == LAC_OK ? lac_table_launch_end(tables) : status;
}
