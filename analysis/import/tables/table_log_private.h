#ifndef LAC_ANALYSIS_IMPORT_TABLES_TABLE_LOG_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_TABLES_TABLE_LOG_PRIVATE_H

/* What the readers of logs share. */

#include "analysis/import/tables/tables_private.h" // IWYU pragma: export

enum { LAC_LOG_NAME_BYTES = 64, LAC_LOG_GPUS_MAX = 1024 };

struct lac_nmon;

struct lac_log_column {
    char name[LAC_LOG_NAME_BYTES]; /**< "" : no counter */
    double scale;
    bool is_memory_size; /**< of the GPU: a constant, which is told of the device */
};

struct lac_table_log {
    enum lac_table_kind kind; /**< LAC_TABLE_LOG, _DMON or _NMON */
    struct lac_log_column columns[LAC_TABLE_FIELDS_MAX];
    size_t column_count;
    int time_column;  /**< -1: none */
    int clock_column; /**< the time of day, where the date has a column of its own; -1: none */
    int gpu_column;
    bool gpu_is_number;
    uint32_t process;
    int64_t now_ns;
    bool has_now;
    int64_t first_gpu; /**< of a round without times: it begins when this one comes again */
    int64_t round;
    bool is_local;                   /**< times without a zone were seen */
    bool is_without_time;            /**< the tool wrote none: rounds are a second apart */
    uint32_t gpus[LAC_LOG_GPUS_MAX]; /**< string ids of what stands for a GPU's number */
    uint32_t gpu_count;
    struct lac_nmon *nmon; /**< of nmon's logs */
};

/** A value of the counter `name` at the log's time. @param gpu -1: not of a GPU */
LAC_MUST_USE enum lac_status lac_table_log_sample(struct lac_tables *tables, int64_t gpu,
                                                  const char *name, double value);
/** A number, or a mask in base 16 ("0x0000000000000004"). */
bool lac_table_log_value(struct lac_table_field field, double *ret_value);

LAC_MUST_USE enum lac_status lac_nmon_open(struct lac_tables *tables);
LAC_MUST_USE enum lac_status lac_nmon_line(struct lac_tables *tables, char *line, size_t size);
/** NULL is allowed. */
void lac_nmon_done(struct lac_nmon *nmon);

#endif
