#ifndef LAC_ANALYSIS_MODEL_MODEL_H
#define LAC_ANALYSIS_MODEL_MODEL_H

/*
 * A trace in memory: columns, one entry per slice, sorted so that each track is one contiguous run.
 *
 * The builder (builder.h) fills it, lac_builder_finish() sorts it; after that it is read only, but
 * for lac_model_add_track(), which appends derived tracks (steps, why idle).
 *
 * Invariants of a finished model, asserted by lac_model_is_valid():
 *  (1) slices [first, first + count) of tracks[t] belong to track t; tracks cover all slices in
 *      order without holes; so a slice's track is found by bisection (lac_model_track_of()).
 *      Counter tracks come after the other recorded tracks and before the derived ones; they cover
 *      all samples in order without holes.
 *  (2) inside a track start_ns ascends; on equal starts the longer slice comes first; on equal
 *      duration the one that came first in the input. The index of a slice is its id: the same
 *      input gives the same ids.
 *  (3) start_ns >= 0, dur_ns >= 0, start_ns + dur_ns <= LAC_TIME_MAX_NS.
 *  (4) two slices of one track with the same lane do not overlap (zero-length slices may touch
 *      anything). On CPU threads a slice nested in another has a larger lane. Lane LAC_LANE_MAX is
 *      exempt: it takes what finds no free lane, so that nothing is dropped.
 *  (5) link is symmetric where it is one to one: a kernel, copy or memset links to the API call
 *      that launched it; the call links to the first operation it launched.
 *
 * Times are int64_t nanoseconds since info.t0_ns.
 */

#include "analysis/model/setting_rows.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdbool.h>
#include <stdint.h>

#define LAC_NONE             UINT32_MAX               /**< "no such slice, row or entry" */
#define LAC_TIME_MAX_NS      (((int64_t)1 << 53) - 1) /**< latest time after t0 (104 days) */
#define LAC_SLICE_COUNT_MAX  ((uint64_t)1 << 31)
#define LAC_TRACK_COUNT_MAX  ((uint32_t)1000000)
#define LAC_LANE_MAX         ((uint32_t)UINT16_MAX) /**< takes what fits no free lane */
#define LAC_DEVICE_COUNT_MAX ((uint32_t)65536)

/** What a slice is. Values are stored in trace files: never renumber. */
enum lac_slice_kind {
    LAC_SLICE_OTHER = 0,  /**< an interval of no other kind */
    LAC_SLICE_KERNEL = 1, /**< GPU kernel, communication included, or a CUDA graph that was recorded
                             as a whole ("CUDA graph..."); detail -> kernels */
    LAC_SLICE_COPY = 2,   /**< GPU memory copy; detail -> copies */
    LAC_SLICE_MEMSET = 3, /**< GPU memory set; detail -> copies (bytes only) */
    LAC_SLICE_GPU_RANGE = 4, /**< a host range projected onto a stream, or onto the thread of its
                                backward pass: not GPU work */
    LAC_SLICE_API = 5,       /**< CUDA or HIP runtime or driver call; detail -> return value */
    LAC_SLICE_SYNC = 6,      /**< synchronization record (CUPTI), not the call */
    LAC_SLICE_OVERHEAD = 7,  /**< the profiler's own cost, lazy loading, full command buffer */
    LAC_SLICE_OP = 8,        /**< framework operator (aten::conv2d) */
    LAC_SLICE_RANGE = 9,     /**< user annotation or NVTX range, loader.* ranges included */
    LAC_SLICE_PYTHON = 10,   /**< Python function */
    LAC_SLICE_ALLOC = 11,    /**< allocation or release, zero length */
    LAC_SLICE_INSTANT = 12,  /**< a mark, zero length */
    LAC_SLICE_STEP = 13,     /**< derived: a detected training step */
    LAC_SLICE_GAP = 14,      /**< derived: a device's idle interval; its name is the cause */
    LAC_SLICE_KIND_COUNT_
};

/** What a track is. Values are stored in trace files: never renumber. */
enum lac_track_kind {
    LAC_TRACK_THREAD = 0,    /**< a host thread: lanes are nesting depth */
    LAC_TRACK_STREAM = 1,    /**< a GPU stream: lanes hold overlapping operations */
    LAC_TRACK_COUNTER = 2,   /**< samples instead of slices */
    LAC_TRACK_ASYNC = 3,     /**< async (b/e) intervals of one process */
    LAC_TRACK_MARKS = 4,     /**< instants and allocations of one thread */
    LAC_TRACK_GPU_RANGE = 5, /**< GPU_RANGE slices of one stream, kept off the stream's own row */
    LAC_TRACK_STEPS = 6,     /**< derived: steps */
    LAC_TRACK_GAPS = 7,      /**< derived: why a device was idle */
    LAC_TRACK_STACKS = 8,    /**< what a host thread was found in, sampled: nested Python slices */
    LAC_TRACK_PROFILE =
        9, /**< stacks of a profile without times that was joined, merged and side by
                                side: where a slice starts means nothing, and it is no row */
    LAC_TRACK_BACKWARD = 10, /**< derived: the modules whose backward pass a host thread runs */
    LAC_TRACK_KIND_COUNT_
};

enum lac_copy_kind { /* where a copy goes; LAC_COPY_UNKNOWN when the trace does not say */
                     LAC_COPY_UNKNOWN = 0,
                     LAC_COPY_HTOD = 1,
                     LAC_COPY_DTOH = 2,
                     LAC_COPY_DTOD = 3,
                     LAC_COPY_HTOH = 4,
                     LAC_COPY_PTOP = 5,
};

enum lac_memory_kind { /* what kind of memory an end of a copy is in */
                       LAC_MEMORY_UNKNOWN = 0,
                       LAC_MEMORY_PAGEABLE = 1,
                       LAC_MEMORY_PINNED = 2,
                       LAC_MEMORY_DEVICE = 3,
                       LAC_MEMORY_ARRAY = 4,
                       LAC_MEMORY_MANAGED = 5,
};

enum lac_trace_format {
#define LAC_TRACE_FORMAT(NAME, number, text) LAC_FORMAT_##NAME = (number),
#include "analysis/model/trace_formats.def"
#undef LAC_TRACE_FORMAT
};

/** LAC_TRACK_STACKS: what a sample stands for where none is late, and frames of a stack at most. */
enum { LAC_SAMPLED_EVERY_NS = 20000000, LAC_SAMPLED_DEPTH_MAX = 128 };

/** Columns, `count` entries each. 43 bytes a slice. */
struct lac_slices {
    uint64_t count;
    int64_t *start_ns;
    int64_t *dur_ns;
    uint32_t *name;    /**< string id */
    uint32_t *corr;    /**< correlation id as recorded, 0 when none */
    uint32_t *link;    /**< slice on the other side of a launch, or LAC_NONE */
    uint32_t *detail;  /**< entry of the table of its kind, or LAC_NONE */
    uint32_t *args;    /**< string id of the arguments template (args.h), 0 when none */
    uint32_t *arg_num; /**< index of its first number in arg_numbers */
    uint16_t *lane;
    uint8_t *kind; /**< enum lac_slice_kind */
};

struct lac_process {
    int64_t pid;        /**< -1 when the recorded id is not a number */
    uint32_t id_text;   /**< string id of the id as recorded */
    uint32_t name;      /**< string id, 0 unknown */
    uint32_t labels;    /**< string id, 0 none */
    int32_t sort_index; /**< as recorded, 0 when not */
    bool is_gpu;        /**< a row group for a device, not a process of the host */
};

struct lac_track {
    enum lac_track_kind kind;
    uint32_t process;   /**< index into processes, LAC_NONE for derived tracks */
    uint32_t name;      /**< string id, 0 unknown */
    uint32_t id_text;   /**< string id of the recorded thread id, stream or counter series */
    int64_t tid;        /**< thread id or stream number; -1 when not a number */
    int64_t device;     /**< device id (struct lac_device.id), -1 when not on a device */
    int32_t sort_index; /**< as recorded, 0 when not */
    uint32_t lane_count;
    uint64_t first; /**< first slice (or first sample, for counters) */
    uint64_t count; /**< slices (or samples) */
};

struct lac_device {
    int64_t id;
    uint32_t name;    /**< string id, 0 unknown */
    int32_t cc_major; /**< compute capability, 0 unknown */
    int32_t cc_minor;
    int32_t sm_count;     /**< multiprocessors, 0 unknown */
    int64_t memory_bytes; /**< 0 unknown */
};

/** Launch configuration of a kernel; interned, so most kernels of a loop share one row. */
struct lac_kernel_config {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t registers_per_thread;
    uint32_t shared_memory_bytes;
    float occupancy_pct; /**< estimated by the recorder; negative when not recorded */
    float blocks_per_sm; /**< negative when not recorded */
    uint64_t graph_node; /**< node of a CUDA graph, 0 when not launched from one. CUDA 12 and newer
                              have the number of the graph in the upper 32 bits (the "tools id") */
    uint32_t module;     /**< string id of the module that an annotated graph names, 0 none */
    uint32_t zero;       /**< rows are compared as bytes */
};

struct lac_copy {
    int64_t bytes;       /**< -1 unknown */
    uint8_t copy_kind;   /**< enum lac_copy_kind */
    uint8_t src;         /**< enum lac_memory_kind */
    uint8_t dst;         /**< enum lac_memory_kind */
    uint8_t is_async;    /**< 1 yes, 0 no, 2 not recorded */
    uint32_t module;     /**< as that of a kernel, 0 none */
    uint64_t graph_node; /**< as that of a kernel, 0 none */
};

/** Arguments of loader.* ranges (the shared loader vocabulary). */
struct lac_loader_info {
    int64_t batch;  /**< -1 not recorded */
    int64_t cpu_ns; /**< CPU time of the interval, -1 not recorded */
    int32_t worker; /**< -1: the training process itself, or not recorded */
};

struct lac_alloc {
    int64_t bytes;           /**< negative: released */
    int64_t total_allocated; /**< after it; -1 not recorded */
    int64_t device;          /**< -1 host */
};

/** An arrow that the trace recorded itself (not launches: those are `link`). */
struct lac_flow {
    uint32_t src; /**< slice */
    uint32_t dst; /**< slice */
    uint32_t name;
};

enum lac_report_severity { LAC_REPORT_INFO = 0, LAC_REPORT_REPAIRED = 1, LAC_REPORT_DROPPED = 2 };

/** One line of the import report: what was read, repaired, dropped or not understood. */
struct lac_report_line {
    char code[40]; /**< "unclosed_array", "phase_not_understood", ... */
    enum lac_report_severity severity;
    uint64_t count;
    uint64_t first_offset_bytes; /**< place of the first one in the (expanded) input */
    char text[160];              /**< one sentence */
};

enum { LAC_REPORT_LINES_MAX = 64 };

struct lac_trace_info {
    uint32_t name; /**< string id: file name without folder and endings */
    enum lac_trace_format format;
    int64_t t0_ns;             /**< absolute time of time 0 */
    int64_t duration_ns;       /**< last end of anything timed, since t0 */
    uint64_t event_count;      /**< events read, all phases, before any repair */
    uint64_t slice_count;      /**< X, matched B/E, matched b/e (not instants, not derived) */
    uint64_t phase_count[128]; /**< events by phase letter */
    uint64_t dropped_count;
    uint64_t repaired_count;
    uint64_t input_bytes;    /**< as given */
    uint64_t expanded_bytes; /**< after decompression */
    int32_t rank;            /**< -1 unknown */
    int32_t world_size;      /**< -1 unknown */
    uint32_t backend;        /**< string id ("nccl"), 0 unknown */
    uint32_t host;           /**< string id, 0 unknown */
    uint32_t metadata; /**< string id: the remaining top-level members as one JSON object, 0 none */
    bool is_simulated;
    bool has_python_stacks; /**< recorded with Python functions: host times are inflated */
    bool has_shapes;
    bool has_no_time; /**< a profile without times: durations and counts are the file's, but where a
                         slice starts means nothing, and neither does a gap */
    uint32_t weight_unit;   /**< string id of what lengths count ("samples"); 0: they are times */
    int64_t weight_scale;   /**< length in ns of one weight_unit */
    uint32_t profile_count; /**< profiles without times that were joined: LAC_TRACK_PROFILE */
    uint32_t profile_unit;  /**< as weight_unit, of these */
    int64_t profile_scale;
};

struct lac_model {
    struct lac_trace_info info;
    struct lac_setting_rows settings; /**< of the job and its host */
    struct lac_strings strings;
    struct lac_slices slices;

    struct lac_process *processes;
    uint32_t process_count;
    struct lac_track *tracks;
    uint32_t track_count;
    uint32_t recorded_track_count; /**< tracks [recorded_track_count, track_count) are derived */
    struct lac_device *devices;    /**< ascending id */
    uint32_t device_count;

    struct lac_kernel_config *kernel_configs;
    uint32_t kernel_config_count;
    struct lac_copy *copies;
    uint32_t copy_count;
    struct lac_loader_info *loader_infos;
    uint32_t loader_info_count;
    struct lac_alloc *allocs;
    uint32_t alloc_count;
    int64_t *arg_numbers; /**< integers as such, reals as IEEE 754 bits; args.h says which */
    uint64_t arg_number_count;

    int64_t *sample_ts_ns; /**< counter samples, contiguous per counter track, ascending */
    double *sample_value;
    uint64_t sample_count;
    uint64_t sample_capacity; /**< for lac_model_add_counter(): room in both; 0: not known */

    struct lac_flow *flows; /**< ascending src */
    uint64_t flow_count;

    uint32_t *raw_names;     /**< by string id: what was recorded of a name that is shown demangled,
                                  0 of all others; NULL: there is none. Not stored */
    uint32_t raw_name_count; /**< ids that it has an entry for */

    struct lac_report_line report[LAC_REPORT_LINES_MAX];
    uint32_t report_count;
};

/** Free the columns of slices and everything that belongs to them; the fields are not cleared.
 *  For models that share the rest with another one. */
void lac_model_free_columns(struct lac_model *model);

/** Free the model and all it owns. NULL is allowed. */
void lac_model_destroy(struct lac_model *model);

/** Whether all invariants hold; false also when out of memory. O(n): for tests, fuzzers and asserts
 * of debug builds. */
bool lac_model_is_valid(const struct lac_model *model);

/** Track of a slice, by bisection. */
uint32_t lac_model_track_of(const struct lac_model *model, uint64_t slice);

/** How the derived LAC_TRACK_GPU_RANGE tracks are called that show the modules of annotated CUDA
 *  graphs: this, a space and the stream, with which they share the device and its numbers. */
#define LAC_GRAPH_MODULES "graph modules"

/** That of a stream, or LAC_NONE. O(derived tracks). */
uint32_t lac_model_graph_modules_of(const struct lac_model *model, uint32_t stream);

/** Whether a Python slice of that name is the forward pass of a module: "nn.Module: Linear_0". */
bool lac_is_module_name(const char *name);

/** The recorded LAC_TRACK_THREAD of the thread whose marks or samples a track has, or LAC_NONE.
 *  O(tracks). */
uint32_t lac_model_thread_of(const struct lac_model *model, uint32_t track);

/** The derived LAC_TRACK_BACKWARD track of a thread, or LAC_NONE. O(derived tracks). */
uint32_t lac_model_backward_of(const struct lac_model *model, uint32_t thread);

/** First slice of `track` that starts at or after `t_ns` (track end if none). */
uint64_t lac_model_lower_bound(const struct lac_model *model, uint32_t track, int64_t t_ns);

/** The string with `id`. Borrowed from the model. */
static inline const char *lac_model_str(const struct lac_model *model, uint32_t id)
{
    return lac_strings_get(&model->strings, id);
}

/** The name as it was recorded: that of the compiler, where `id` is shown demangled. */
static inline uint32_t lac_model_raw_name(const struct lac_model *model, uint32_t id)
{
    return id < model->raw_name_count && model->raw_names[id] != 0 ? model->raw_names[id] : id;
}

/** Entry of `devices` with that id, or LAC_NONE. */
uint32_t lac_model_device_index(const struct lac_model *model, int64_t device_id);

/** A slice to append with lac_model_add_track(). */
struct lac_derived_slice {
    int64_t start_ns;
    int64_t dur_ns;
    uint32_t name; /**< string id */
    uint32_t link; /**< a slice it points to (evidence), or LAC_NONE */
    enum lac_slice_kind kind;
};

/** Their order in a track, for qsort(): by start, the longer one first, then by what they link to,
 *  so that of a range and one inside it with the same times the outer one comes first. */
int lac_derived_slice_order(const void *a, const void *b);

/**
 * Append a derived track with slices in ascending start order. Ids of recorded slices stay.
 *
 * @param track kind, name, ids, device, sort_index are taken, and of a LAC_TRACK_BACKWARD the
 *        process; the rest is computed
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT, or LAC_ERR_MISUSE when the slices are unsorted
 */
LAC_MUST_USE enum lac_status lac_model_add_track(struct lac_model *model,
                                                 const struct lac_track *track,
                                                 const struct lac_derived_slice *slices,
                                                 uint64_t slice_count);

/**
 * Append a counter track with samples in ascending order. It comes after the recorded counters, so
 * it comes before any derived track is added.
 *
 * @param track process, name and sort_index are taken; process is an index into processes
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT, or LAC_ERR_MISUSE when the samples are unsorted or
 *         a derived track is there
 */
LAC_MUST_USE enum lac_status lac_model_add_counter(struct lac_model *model,
                                                   const struct lac_track *track,
                                                   const int64_t *ts_ns, const double *values,
                                                   uint64_t sample_count);

/** Add to the import report: same code adds to its count. Never fails; the 64th and later distinct
 *  codes are summed in the last line. Updates dropped_count or repaired_count by `count`. */
void lac_model_report(struct lac_model *model, enum lac_report_severity severity, const char *code,
                      uint64_t count, uint64_t offset_bytes, const char *text);

/** Stable short names for JSON and storage: "kernel", "copy", "thread", "HtoD", "pageable", ... */
const char *lac_slice_kind_name(enum lac_slice_kind kind);
const char *lac_track_kind_name(enum lac_track_kind kind);
const char *lac_copy_kind_name(enum lac_copy_kind kind);
const char *lac_memory_kind_name(enum lac_memory_kind kind);
const char *lac_trace_format_name(enum lac_trace_format format);

#endif
