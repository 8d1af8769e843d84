#ifndef LAC_ANALYSIS_IMPORT_TABLES_TABLES_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_TABLES_TABLES_PRIVATE_H

/* What the readers of tables share. Only files of this folder include it. */

#include "analysis/import/tables/table_text.h" // IWYU pragma: export
#include "analysis/model/builder.h"            // IWYU pragma: export

/** What a column is (table_columns.def). */
enum lac_table_role {
    LAC_ROLE_NAME,
    LAC_ROLE_START,
    LAC_ROLE_END,
    LAC_ROLE_DURATION,
    LAC_ROLE_CORRELATION,
    LAC_ROLE_GRID,
    LAC_ROLE_GRID_X,
    LAC_ROLE_GRID_Y,
    LAC_ROLE_GRID_Z,
    LAC_ROLE_BLOCK,
    LAC_ROLE_BLOCK_X,
    LAC_ROLE_BLOCK_Y,
    LAC_ROLE_BLOCK_Z,
    LAC_ROLE_ITEMS_X,
    LAC_ROLE_ITEMS_Y,
    LAC_ROLE_ITEMS_Z,
    LAC_ROLE_REGISTERS,
    LAC_ROLE_SHARED,
    LAC_ROLE_DYNAMIC,
    LAC_ROLE_OCCUPANCY,
    LAC_ROLE_SIZE,
    LAC_ROLE_SOURCE,
    LAC_ROLE_TARGET,
    LAC_ROLE_DEVICE,
    LAC_ROLE_AGENT_FROM,
    LAC_ROLE_AGENT_TO,
    LAC_ROLE_CONTEXT,
    LAC_ROLE_STREAM,
    LAC_ROLE_QUEUE,
    LAC_ROLE_THREAD,
    LAC_ROLE_PROCESS,
    LAC_ROLE_TYPE,
    LAC_ROLE_STYLE,
    LAC_ROLE_SHARE,
    LAC_ROLE_TOTAL,
    LAC_ROLE_CALLS,
    LAC_ROLE_AVERAGE,
    LAC_ROLE_MINIMUM,
    LAC_ROLE_MAXIMUM,
    LAC_ROLE_RANGE_ID,
    LAC_ROLE_ID,
    LAC_ROLE_RESULT,
    LAC_ROLE_METRIC,
    LAC_ROLE_METRIC_UNIT,
    LAC_ROLE_METRIC_VALUE,
    LAC_ROLE_DISPATCH,
    LAC_ROLE_COUNTER,
    LAC_ROLE_COUNTER_VALUE,
    LAC_ROLE_SELF_HOST,
    LAC_ROLE_SELF_DEVICE,
    LAC_ROLE_COUNT_
};

/** What the rows below a heading are. */
enum lac_table_kind {
    LAC_TABLE_NONE,
    LAC_TABLE_TIMED,    /**< a row an operation or call, with its start */
    LAC_TABLE_SUMS,     /**< a row a name, with calls and total */
    LAC_TABLE_LAUNCHES, /**< Nsight Compute, a row a launch */
    LAC_TABLE_METRICS,  /**< Nsight Compute, a row a metric of a launch */
    LAC_TABLE_COUNTERS, /**< rocprofv3, a row a counter of a dispatch */
    LAC_TABLE_TORCH,    /**< PyTorch's table of operators */
    LAC_TABLE_LOG,      /**< counters with times */
    LAC_TABLE_DMON,     /**< nvidia-smi dmon, dcgmi dmon */
    LAC_TABLE_NMON,
};

/** A heading that was understood. Columns are counted from 0, -1: the table has none. */
struct lac_table_heading {
    enum lac_table_kind kind;
    enum lac_table_split split;
    enum lac_trace_format format;
    size_t column_count;
    int column_of[LAC_ROLE_COUNT_];
    char unit_of[LAC_ROLE_COUNT_][16];
    bool has_instances; /**< calls are called instances: of kernels or ranges, not of the host */
    bool has_calls_of_api;
    bool is_rocm_sum;
    bool is_ranges; /**< names are ranges of the program */
};

enum { LAC_TABLE_HEADINGS_BYTES = 64 };

struct lac_tables {
    struct lac_table_lines lines;
    struct lac_builder *builder;
    struct lac_model *model; /**< under construction */
    const struct lac_import_options *options;
    struct lac_error *reterr;
    struct lac_table_heading heading;
    struct lac_table_field fields[LAC_TABLE_FIELDS_MAX];
    size_t field_count;
    enum lac_slice_kind section; /**< of a summary's rows; LAC_SLICE_OTHER: by their names */
    bool is_first_row;           /**< below the heading: it may hold units */
    bool has_timed;
    bool has_sums;
    uint64_t slice_count;
    uint64_t merged_count; /**< rows of sums that are one slice for all their calls */
    uint64_t calls_left;   /**< slices that sums may still become */
    int64_t end_ns[4];     /**< where the next slice without a time goes: see table_sums.c */

    struct lac_table_launch *launch;         /**< Nsight Compute's */
    struct lac_table_dispatches *dispatches; /**< rocprofv3's, with their counters */
    struct lac_table_log *log;               /**< of counters */
};

/* ---- table_heading.c ---- */

/** Understand a line as a heading, split in place. False: it is none. */
bool lac_table_heading_read(char *line, size_t size, struct lac_table_heading *ret_heading,
                            struct lac_table_field *fields, size_t *ret_count);
/** A row of units below a heading: taken over. False: it is a row of values. */
bool lac_table_units_read(struct lac_tables *tables);
/** The field of a role; empty when the table or the row has none. */
struct lac_table_field lac_table_get(const struct lac_tables *tables, enum lac_table_role role);
/** A column of time, in ns; false: not there or no time. */
bool lac_table_ns(const struct lac_tables *tables, enum lac_table_role role, int64_t *ret_ns);
bool lac_table_number(const struct lac_tables *tables, enum lac_table_role role,
                      int64_t *ret_value);

/* ---- table_rows.c ---- */

/** Status of the builder or of strings, with a sentence. */
LAC_MUST_USE enum lac_status lac_tables_pass(struct lac_tables *tables, enum lac_status status);
/** Intern bytes of the file: repaired to UTF-8 and counted, at most name_bytes_max. */
LAC_MUST_USE enum lac_status lac_tables_intern(struct lac_tables *tables,
                                               struct lac_table_field text, uint32_t *ret_id);
LAC_MUST_USE enum lac_status lac_tables_intern_own(struct lac_tables *tables, uint32_t *ret_id,
                                                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** A stream's row of a device. */
LAC_MUST_USE enum lac_status lac_tables_stream(struct lac_tables *tables, int64_t device,
                                               struct lac_table_field stream, uint32_t *ret_track);
/** A thread's row of the process of the host. */
LAC_MUST_USE enum lac_status lac_tables_thread(struct lac_tables *tables,
                                               struct lac_table_field process,
                                               struct lac_table_field thread, uint32_t *ret_track);
/** Append a slice; slice_count_max and track_count_max. */
LAC_MUST_USE enum lac_status lac_tables_add(struct lac_tables *tables,
                                            const struct lac_slice_in *slice);
/** A row that says nothing usable: counted with its place. */
void lac_tables_drop(struct lac_tables *tables, const char *code, const char *text);

/** The kind of slice that a name stands for. */
enum lac_slice_kind lac_table_kind_of_name(struct lac_table_field name);
/** What a GPU's row is: kind, detail and the name that it gets. */
LAC_MUST_USE enum lac_status lac_table_operation(struct lac_tables *tables,
                                                 struct lac_table_field name,
                                                 struct lac_slice_in *slice);

/* ---- the readers of rows ---- */

LAC_MUST_USE enum lac_status lac_table_timed_row(struct lac_tables *tables);
/** Its start, duration and correlation. False: the row says too little, which is counted. */
bool lac_table_timed_read(struct lac_tables *tables, struct lac_slice_in *slice);
/** Then, its kind known: track, name, detail. */
LAC_MUST_USE enum lac_status lac_table_timed_place(struct lac_tables *tables,
                                                   struct lac_slice_in *slice);
LAC_MUST_USE enum lac_status lac_table_sums_row(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_table_torch_row(struct lac_tables *tables);

/* table_launches.c: after the heading is read, for each row, after the last row. */
LAC_MUST_USE enum lac_status lac_table_launches_begin(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_table_launch_row(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_table_launch_end(struct lac_tables *tables);
void lac_table_launches_done(struct lac_tables *tables);

/* table_counters.c: after the heading is read, for each row, after the last row. */
LAC_MUST_USE enum lac_status lac_table_counters_begin(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_table_counters_row(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_table_counters_end(struct lac_tables *tables);
void lac_table_counters_done(struct lac_tables *tables);

/* table_log.c: logs of counters. */

/** Whether the line begins a log; its columns are then understood. */
LAC_MUST_USE enum lac_status lac_table_log_begin(struct lac_tables *tables, char *line, size_t size,
                                                 bool *ret_is_log);
LAC_MUST_USE enum lac_status lac_table_log_line(struct lac_tables *tables, char *line, size_t size);
LAC_MUST_USE enum lac_status lac_table_log_end(struct lac_tables *tables);
void lac_table_log_done(struct lac_tables *tables);
/** Whether a line of a file's beginning is a log's, without keeping anything. */
bool lac_table_log_is_heading(char *line, size_t size, struct lac_table_field *fields);

/** `calls` slices of one name, `total_ns` in all, laid end to end where no time is meant.
 *  @param least_ns, most_ns -1: not known */
struct lac_table_sum {
    struct lac_slice_in slice; /**< start and duration are set here */
    int64_t calls;
    int64_t total_ns;
    int64_t least_ns;
    int64_t most_ns;
};
LAC_MUST_USE enum lac_status lac_table_add_sum(struct lac_tables *tables,
                                               const struct lac_table_sum *sum);

#endif
