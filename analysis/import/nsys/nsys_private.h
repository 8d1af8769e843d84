#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_PRIVATE_H

/* What the parts of the Nsight Systems importer share. */

#include "analysis/import/nsys/nsys.h"
#include "analysis/import/nsys/nsys_db.h"
#include "analysis/model/builder.h"

/** Device numbers that are believed. */
enum { LAC_NSYS_DEVICES = 256 };

/** A map from a 64-bit key to a 32-bit value; key and value are stored as they come. */
struct lac_nsys_map {
    uint64_t *keys;
    uint32_t *values; /**< LAC_NONE: slot is free */
    uint64_t slot_count;
    uint64_t count;
    uint64_t seed; /**< of its hash: keys can be chosen to collide in one that is known */
};

/** Slot of a key, added with value LAC_NONE if new. NULL when out of memory. */
uint32_t *lac_nsys_map_at(struct lac_nsys_map *map, uint64_t key);
/** Its value, LAC_NONE when it has none. */
uint32_t lac_nsys_map_get(const struct lac_nsys_map *map, uint64_t key);
void lac_nsys_map_done(struct lac_nsys_map *map);

/** A string of the StringIds table. */
struct lac_nsys_string {
    uint64_t offset; /**< into `bytes` */
    uint32_t size;
    uint32_t interned; /**< string id of the model, LAC_NONE: not used yet */
};

/** A range that had not ended when the recording did. */
struct lac_nsys_open {
    struct lac_slice_in slice;
};

/** The row that was asked for last: the next one is mostly the same. */
struct lac_nsys_last {
    bool is_set;
    uint32_t kind;
    uint32_t track;
    int64_t global_id;
    int64_t device;
    int64_t stream;
};

struct lac_nsys_samples;

struct lac_nsys {
    struct lac_nsys_db db;
    struct lac_builder *builder;
    struct lac_model *model; /**< under construction */
    const struct lac_import_limits *limits;
    struct lac_crew *crew; /**< may be NULL */
    struct lac_error *reterr;

    struct lac_nsys_map string_of; /**< StringIds.id -> index */
    struct lac_nsys_string *strings;
    uint32_t string_count;
    uint32_t string_capacity;
    char *bytes;
    uint64_t bytes_used;
    uint64_t bytes_capacity;

    struct lac_nsys_map process_of; /**< global pid without thread bits -> process */
    struct lac_nsys_map pid_seen;   /**< process ids, whatever the machine */
    struct lac_nsys_map track_of;   /**< rows of threads */
    struct lac_nsys_map stream_of;  /**< rows of streams */
    struct lac_nsys_map domain_of;  /**< NVTX process and domain -> string id of its name */
    struct lac_nsys_map metric_of;  /**< counters of GPUs -> track plus 1 */
    struct lac_nsys_map gpu_pid_of; /**< process -> its ordinal among those that use a GPU */
    uint32_t gpu_pid_count;
    struct lac_nsys_last last_thread;
    struct lac_nsys_last last_stream;
    uint64_t corr_step; /**< added per ordinal: keeps the ids of several processes apart */

    struct lac_nsys_open *open;
    uint32_t open_count;
    uint32_t open_capacity;
    int64_t last_ns; /**< latest end seen */
    uint64_t slice_count;
    int64_t base_ns;                   /**< absolute time of the file's time 0 */
    uint16_t gpu_of[LAC_NSYS_DEVICES]; /**< by CUDA device number: GPU of the machine plus 1 */
    struct lac_nsys_map own_gpu_of;    /**< process id and its CUDA device number -> GPU plus 1 */
    bool has_own_gpus; /**< processes mean different GPUs by one number: devices are GPUs */
    char metadata[8192];
    size_t metadata_used;
    char unread[160];
    uint64_t unread_count;
    struct lac_nsys_samples *samples; /**< while nsys_samples.c reads */
    bool is_rocpd;                    /**< a database of ROCm */
    bool is_nvprof;                   /**< a database of nvprof or the Visual Profiler */
    int64_t own_process;              /**< its one process, as a global id; GPU rows name none */
    struct lac_nsys_map call_of;      /**< its calls by kind and number -> string id */
    struct lac_nsys_map marker_of;    /**< its ranges by their id -> index in `open` */
    uint8_t copy_kind_of[32];         /**< enum lac_copy_kind by the file's number */
    uint8_t memory_kind_of[32];
};

/* ---- nsys_names.c ---- */

/** Read StringIds. */
LAC_MUST_USE enum lac_status lac_nsys_read_strings(struct lac_nsys *nsys);
/** The same of a table of another name, with the columns of id and text. */
LAC_MUST_USE enum lac_status lac_nsys_read_string_table(struct lac_nsys *nsys, const char *table,
                                                        const char *const *columns);
/** Intern bytes of the file: repaired to UTF-8, counted, at most name_bytes_max. */
LAC_MUST_USE enum lac_status lac_nsys_intern(struct lac_nsys *nsys, const char *text, size_t size,
                                             uint32_t *ret_id);
/** The string that StringIds gives that number; the number itself where it has none. */
LAC_MUST_USE enum lac_status lac_nsys_string(struct lac_nsys *nsys, int64_t number,
                                             uint32_t *ret_id);
/** The text of column `text`, else the string of column `number`, else nothing (id 0). */
LAC_MUST_USE enum lac_status lac_nsys_column_name(struct lac_nsys *nsys,
                                                  const struct lac_nsys_rows *rows, int text,
                                                  int number, uint32_t *ret_id);
/** The bytes it would intern, any content; NULL: none. Valid until the next row. */
const char *lac_nsys_column_bytes(const struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                  int text, int number, size_t *ret_size);
/** Intern a text of our own. */
LAC_MUST_USE enum lac_status lac_nsys_intern_own(struct lac_nsys *nsys, uint32_t *ret_id,
                                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- nsys_target.c ---- */

/** Find out whether processes that use a GPU mean different ones by the same number, as they do
 *  where each sees only its own (CUDA_VISIBLE_DEVICES). Once gpu_pid_of is filled. */
LAC_MUST_USE enum lac_status lac_nsys_find_own_gpus(struct lac_nsys *nsys);
/** The device of a row: the number that its process gave it, or that of the machine. */
int64_t lac_nsys_device(const struct lac_nsys *nsys, int64_t global_id, int64_t device);

/* ---- nsys_rows.c ---- */

/** Process and track rows; ids of threads and processes are the file's global ones. */
LAC_MUST_USE enum lac_status lac_nsys_process(struct lac_nsys *nsys, int64_t global_id,
                                              uint32_t *ret_process);
LAC_MUST_USE enum lac_status lac_nsys_thread(struct lac_nsys *nsys, enum lac_track_kind kind,
                                             int64_t global_tid, uint32_t *ret_track);
/** The key of a thread's row in track_of: 24 bits of thread id and fewer than 16 kinds, so no two
 * rows share one. */
static inline uint64_t lac_nsys_thread_key(uint32_t process, int64_t global_tid,
                                           enum lac_track_kind kind)
{
    return (uint64_t)process << 32 | ((uint64_t)global_tid & 0xffffff) << 4 | (uint64_t)kind;
}
/** Async intervals of a process under the name `group`. */
LAC_MUST_USE enum lac_status lac_nsys_async(struct lac_nsys *nsys, int64_t global_id,
                                            const char *group, uint32_t *ret_track);
/** The rows of a stream: its work, and what is shown next to it. */
enum lac_nsys_row { LAC_NSYS_ROW_STREAM = 0, LAC_NSYS_ROW_SYNC };
/** A row of a stream of a process. device < LAC_NSYS_DEVICES, stream fits 32 bits. */
LAC_MUST_USE enum lac_status lac_nsys_stream(struct lac_nsys *nsys, enum lac_nsys_row row,
                                             int64_t device, int64_t global_pid, int64_t stream,
                                             uint32_t *ret_track);
/** 2^61 ns are 73 years: no sum or difference of two such times overflows. */
static inline bool lac_nsys_is_time(int64_t ns)
{
    return ns > -(INT64_C(1) << 61) && ns < INT64_C(1) << 61;
}
/** The slice's interval from columns 0 (start) and 1 (end) of a row. */
LAC_MUST_USE enum lac_status lac_nsys_interval(struct lac_nsys *nsys,
                                               const struct lac_nsys_rows *rows,
                                               struct lac_slice_in *slice, bool *ret_is_good);
/** Append a slice; limits and last_ns. */
LAC_MUST_USE enum lac_status lac_nsys_add(struct lac_nsys *nsys, const struct lac_slice_in *slice);
/** A correlation id, apart from those of other processes. */
uint32_t lac_nsys_correlation(const struct lac_nsys *nsys, int64_t global_id, uint32_t recorded);
/** The process uses a GPU: give it its share of correlation ids. */
LAC_MUST_USE enum lac_status lac_nsys_gpu_process(struct lac_nsys *nsys, int64_t global_pid);

/* ---- the tables ---- */

/** Give each row of a table to `on_row`. */
LAC_MUST_USE enum lac_status
lac_nsys_each(struct lac_nsys *nsys, const char *table, const char *const *columns, bool is_event,
              enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows));

LAC_MUST_USE enum lac_status lac_nsys_read_enums(struct lac_nsys *nsys);
LAC_MUST_USE enum lac_status lac_nsys_read_gpu(struct lac_nsys *nsys);
LAC_MUST_USE enum lac_status lac_nsys_read_calls(struct lac_nsys *nsys);
LAC_MUST_USE enum lac_status lac_nsys_read_nvtx(struct lac_nsys *nsys);
/** nsys_metrics.c: what was sampled of GPUs, as counters. */
LAC_MUST_USE enum lac_status lac_nsys_read_metrics(struct lac_nsys *nsys);
/** nsys_samples.c: stacks of threads that were sampled, as a profile beside the trace. */
LAC_MUST_USE enum lac_status lac_nsys_read_samples(struct lac_nsys *nsys);
/** The GPU tables of nvprof: they differ in names of tables and columns. */
LAC_MUST_USE enum lac_status lac_nsys_read_nvprof_gpu(struct lac_nsys *nsys);
/** nsys_nvprof.c: all that nvprof records. */
LAC_MUST_USE enum lac_status lac_nsys_read_nvprof(struct lac_nsys *nsys);
/** nsys_rocpd.c: databases of ROCm. */
bool lac_nsys_is_rocpd(struct lac_nsys *nsys);
LAC_MUST_USE enum lac_status lac_nsys_read_rocpd(struct lac_nsys *nsys);
/** Names, devices, host, versions; after the events, for what they use. */
LAC_MUST_USE enum lac_status lac_nsys_read_target(struct lac_nsys *nsys, int64_t *ret_base_ns);

/** Status of a builder or string call, with a sentence. */
LAC_MUST_USE enum lac_status lac_nsys_pass(struct lac_nsys *nsys, enum lac_status status);

#endif
