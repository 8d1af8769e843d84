#ifndef LAC_ANALYSIS_IMPORT_CHROME_CHROME_H
#define LAC_ANALYSIS_IMPORT_CHROME_CHROME_H

/*
 * Chrome trace JSON in all its dialects: one importer object per trace, fed by the document reader
 * (chrome.c), asked for tracks (chrome_tracks.c), argument templates (chrome_args.c), pairs
 * (chrome_pairs.c) and what the dialects mean (kineto.c, tensorflow.c). Private to
 * analysis/import.
 */

#include "analysis/import/chrome/chrome_args.h"
#include "analysis/import/chrome/chrome_parse.h"
#include "analysis/import/chrome/json_window.h"
#include "analysis/import/source/import_options.h"
#include "analysis/model/builder.h"

/** What an event is, by its category. */
enum lac_event_class {
    LAC_CLASS_OTHER = 0,
    LAC_CLASS_OP,
    LAC_CLASS_API,
    LAC_CLASS_RANGE,
    LAC_CLASS_PYTHON,
    LAC_CLASS_OVERHEAD,
    LAC_CLASS_KERNEL,
    LAC_CLASS_COPY,
    LAC_CLASS_MEMSET,
    LAC_CLASS_GPU_RANGE,
    LAC_CLASS_SYNC,
    LAC_CLASS_LAUNCH_ARROW, /**< arrows that repeat a correlation id */
    LAC_CLASS_GPU_WORD,     /**< "cuda", "gpu op": GPU work, where its row or arguments say so */
    LAC_CLASS_COUNT_
};

/** What a name says, found once for each distinct name. */
enum lac_name_flag {
    LAC_NAME_LOADER = 1, /**< loader.* */
    LAC_NAME_STEP = 2,   /**< a range that 2021's Kineto filed under operators */
    LAC_NAME_MEMORY = 4, /**< [memory] */
    LAC_NAME_LAUNCH = 8, /**< "launch", the arrows of 2021's Kineto */
};

struct lac_chrome_name {
    uint32_t id;
    uint8_t flags; /**< of enum lac_name_flag */
};

/** A row group: a recorded pid. It joins the model when it gets its first track. */
struct lac_chrome_process {
    uint32_t pid_text;
    uint32_t index; /**< in the model, or LAC_NONE */
    int64_t pid;    /**< -1: not a number */
    uint32_t name;
    uint32_t labels;
    int32_t sort_index;
    bool is_named;
    bool has_gpu_tracks;
    bool is_device_row;   /**< TensorFlow: the operations of one stream */
    bool has_device_rows; /**< its threads are streams ("GPU2" of rocprof) */
    int64_t device;       /**< of that row, or of those */
    int64_t stream;
};

enum lac_chrome_row { LAC_ROW_THREAD = 0, LAC_ROW_MARKS, LAC_ROW_COUNT_ };
enum lac_gpu_row {
    LAC_GPU_ROW_STREAM = 0,
    LAC_GPU_ROW_RANGES,
    LAC_GPU_ROW_SYNC,
    LAC_GPU_ROW_COUNT_
};

/** A recorded (pid, tid) and the tracks that grew from it. */
struct lac_chrome_thread {
    uint64_t key;     /**< pid_text << 32 | tid_text */
    uint32_t process; /**< index into processes below */
    uint32_t tid_text;
    int64_t tid; /**< a trailing number, -1: none */
    uint32_t name;
    int32_t sort_index;
    bool is_named;
    bool is_stream_row;             /**< named "Device 0" and "Stream 7" (device_rows.c) */
    bool is_range_row;              /**< what its device worked for, by XProf */
    uint32_t row_process, row_name; /**< the names that say so */
    int64_t row_device, row_stream;
    uint32_t track[LAC_ROW_COUNT_]; /**< or LAC_NONE */
    struct {
        uint32_t track; /**< or LAC_NONE */
        int64_t device;
        int64_t stream;
    } gpu[LAC_GPU_ROW_COUNT_]; /**< the last one used from here */
};

struct lac_chrome_pairs;
struct lac_chrome_waiting;

/** A category that is not known and may have meant GPU work. */
struct lac_open_category {
    char name[32];
    uint64_t count; /**< 0: free */
};

/** Direct-mapped memory of recent strings: most names of a loop are seen again soon. */
enum { LAC_NAME_CACHE_SLOTS = 4096, LAC_THREAD_CACHE_SLOTS = 256 };

struct lac_chrome {
    const struct lac_import_limits *limits;
    const struct lac_chrome_parser *parser;
    struct lac_json_window *window;
    struct lac_error *reterr;
    struct lac_builder *builder;
    struct lac_model *model; /**< the builder's */
    struct lac_chrome_scratch scratch;
    struct lac_args_cache args;
    struct lac_raw_event raw;
    uint64_t event_offset; /**< of the event in hand, for the report */

    uint8_t *decoded; /**< for strings that are not plain */
    size_t decoded_capacity;
    uint8_t *rewritten; /**< an event with its quotes mended */
    size_t rewritten_capacity;
    struct {
        uint64_t hash;
        struct lac_chrome_name name;
    } * names;

    struct lac_chrome_process *processes;
    uint64_t process_count, process_capacity;
    struct lac_chrome_thread *threads;
    uint64_t thread_count, thread_capacity;
    uint32_t *thread_slots; /**< open addressing: index + 1 */
    uint64_t thread_slot_count;
    uint32_t *process_slots;
    uint64_t process_slot_count;
    struct {
        uint64_t pid, tid;
        uint32_t thread; /**< index + 1 */
    } thread_cache[LAC_THREAD_CACHE_SLOTS];
    struct {
        uint64_t key[4];
        enum lac_event_class event_class;
    } category_cache[64];

    struct lac_chrome_pairs *pairs;
    struct lac_chrome_waiting *waiting;

    bool has_time;
    int64_t first_ns, last_ns; /**< of all timed events; last_ns: of starts */
    int64_t base_ns;           /**< baseTimeNanoseconds */
    bool has_kineto_marks;
    bool has_device_rows;
    bool has_lacuna_mark;
    uint64_t launch_arrow_count;
    uint64_t unknown_phase_count;
    struct lac_open_category open_categories[8];
    bool has_gpu_operations;
};

/** Report that memory ran out. */
enum lac_status lac_chrome_no_memory(struct lac_chrome *chrome);

/** Pass on a status of the builder: give it a message. */
enum lac_status lac_chrome_pass(struct lac_chrome *chrome, enum lac_status status);

/** Count something repaired or dropped in the import report, at the event in hand. */
void lac_chrome_note(struct lac_chrome *chrome, enum lac_report_severity severity, const char *code,
                     uint64_t count, const char *text);

/* --- chrome_event.c ----------------------------------------------------------------------------*/

/** Take the event in chrome->raw into the model. */
LAC_MUST_USE enum lac_status lac_chrome_event(struct lac_chrome *chrome);

/** Entry of the argument template in hand; NULL without arguments. */
LAC_MUST_USE enum lac_status lac_chrome_find_args(struct lac_chrome *chrome,
                                                  const struct lac_args **ret_args);

/** Append a slice, its argument numbers included. */
LAC_MUST_USE enum lac_status lac_chrome_slice(struct lac_chrome *chrome, struct lac_slice_in *slice,
                                              const int64_t *numbers, uint32_t number_count);

/** A finished interval of the host or of no known kind, from whatever phases it came. */
struct lac_interval {
    int64_t start_ns, dur_ns;
    uint32_t thread; /**< index into chrome->threads */
    uint32_t track;  /**< LAC_NONE: the row of the thread */
    struct lac_chrome_name name;
    enum lac_event_class event_class;
    const struct lac_args *args; /**< NULL: none */
    const int64_t *numbers;
};
LAC_MUST_USE enum lac_status lac_chrome_interval(struct lac_chrome *chrome,
                                                 const struct lac_interval *interval);

/** A GPU operation, range or sync record on its stream. */
LAC_MUST_USE enum lac_status lac_chrome_gpu(struct lac_chrome *chrome,
                                            const struct lac_interval *interval);

/** Class of a category; the last ones seen are remembered. */
enum lac_event_class lac_chrome_category(struct lac_chrome *chrome,
                                         const struct lac_json_span *text);

/* --- chrome_tracks.c ---------------------------------------------------------------------------*/

/** Id of a text of the window, decoded and repaired. Absent text is the empty string. */
LAC_MUST_USE enum lac_status lac_chrome_intern(struct lac_chrome *chrome,
                                               const struct lac_json_span *text,
                                               struct lac_chrome_name *ret_name);

/** Index of the thread of the event in hand. */
LAC_MUST_USE enum lac_status lac_chrome_thread(struct lac_chrome *chrome,
                                               const struct lac_json_span *pid,
                                               const struct lac_json_span *tid,
                                               uint32_t *ret_thread);

/** The number that a recorded id is, or that it ends in ("stream 7"); -1 when there is none. */
int64_t lac_chrome_trailing_number(const struct lac_chrome *chrome, uint32_t text_id);

LAC_MUST_USE enum lac_status lac_chrome_find_process(struct lac_chrome *chrome, uint32_t pid_text,
                                                     int64_t pid, uint32_t *ret_process);

/** Make sure that the process is in the model. @return its index there */
LAC_MUST_USE enum lac_status lac_chrome_model_process(struct lac_chrome *chrome, uint32_t process,
                                                      uint32_t *ret_index);

LAC_MUST_USE enum lac_status lac_chrome_track(struct lac_chrome *chrome, uint32_t thread,
                                              enum lac_chrome_row row, uint32_t *ret_track);

LAC_MUST_USE enum lac_status lac_chrome_gpu_track(struct lac_chrome *chrome, uint32_t thread,
                                                  enum lac_gpu_row row, int64_t device,
                                                  int64_t stream, uint32_t *ret_track);

/** Write names, labels and order into processes and tracks of the model. */
LAC_MUST_USE enum lac_status lac_chrome_name_tracks(struct lac_chrome *chrome);

void lac_chrome_tracks_done(struct lac_chrome *chrome);

/* --- chrome_meta.c -----------------------------------------------------------------------------*/

/** A metadata event (phase M). */
LAC_MUST_USE enum lac_status lac_chrome_meta(struct lac_chrome *chrome);

/** A counter event (phase C): one track for each series of a counter, its arguments. */
LAC_MUST_USE enum lac_status lac_chrome_counter(struct lac_chrome *chrome, uint32_t thread,
                                                struct lac_chrome_name name);

/* --- chrome_pairs.c: intervals and arrows that come in pieces ----------------------------------*/

LAC_MUST_USE enum lac_status lac_chrome_pairs_create(struct lac_chrome *chrome);
void lac_chrome_pairs_destroy(struct lac_chrome_pairs *pairs);

/** B or E: kept until the end, as events need not come in order. */
LAC_MUST_USE enum lac_status lac_chrome_pair(struct lac_chrome *chrome, uint32_t thread,
                                             struct lac_chrome_name name,
                                             enum lac_event_class event_class);
/** b, n or e. */
LAC_MUST_USE enum lac_status lac_chrome_async(struct lac_chrome *chrome, uint32_t thread,
                                              struct lac_chrome_name name,
                                              enum lac_event_class event_class);
/** s, t or f. */
LAC_MUST_USE enum lac_status lac_chrome_arrow(struct lac_chrome *chrome, uint32_t thread,
                                              struct lac_chrome_name name);

/** Match what was kept. */
LAC_MUST_USE enum lac_status lac_chrome_pairs_finish(struct lac_chrome *chrome);

/* --- kineto.c ----------------------------------------------------------------------------------*/

enum lac_event_class lac_kineto_class(const struct lac_json_span *category);

/** Where a copy goes and from what memory, from "Memcpy HtoD (Pinned -> Device)". */
void lac_kineto_copy_name(const char *name, struct lac_copy *copy);

/** A top-level member other than traceEvents, as valid JSON without white space. */
LAC_MUST_USE enum lac_status lac_kineto_member(struct lac_chrome *chrome, const char *key,
                                               size_t key_size, const char *json, size_t json_size);

/* --- tensorflow.c ------------------------------------------------------------------------------*/

/** Learn from the name of a process whether it is a device row. */
void lac_tensorflow_process_name(struct lac_chrome *chrome, uint32_t process);

/* --- chrome_wait.c -----------------------------------------------------------------------------*/

/** Keep an interval until all names are known. */
LAC_MUST_USE enum lac_status lac_chrome_wait(struct lac_chrome *chrome,
                                             const struct lac_interval *interval);

/** Append what waited: after the last event. */
LAC_MUST_USE enum lac_status lac_chrome_wait_finish(struct lac_chrome *chrome);

/** NULL is allowed. */
void lac_chrome_wait_destroy(struct lac_chrome_waiting *waiting);

/* --- device_rows.c -----------------------------------------------------------------------------*/

/** What the row of a thread is by its process's name and its own, as they are now: a stream of a
 *  device, or what a device worked for, as XProf derives it: modules, steps, scopes. The latter is
 *  shown beside the device's work and is none. */
void lac_device_row_find(const struct lac_chrome *chrome, struct lac_chrome_thread *thread);

/** Whether the threads of a process of that name are streams of a device. */
bool lac_device_rows_of_process(const char *name, int64_t *ret_device);

/** Class of an operation on such a row, by its name. */
enum lac_event_class lac_device_row_class(const char *name);

/** What an operation of a row of TensorFlow's is: MEMCPY and MEMSET begin the names of those. */
enum lac_event_class lac_tensorflow_class(const char *name);

/** Whether an interval of no known kind is an operation of a GPU. */
bool lac_is_gpu_operation(struct lac_chrome *chrome, const struct lac_interval *interval);

/** Class of a category that Kineto does not write. */
enum lac_event_class lac_device_category(const struct lac_json_span *category);

/** Count the category of the event in hand, of LAC_CLASS_GPU_WORD; at the end, name the most frequent
 *  one where no GPU operation was found. */
void lac_device_rows_count(struct lac_chrome *chrome);
void lac_device_rows_report(struct lac_chrome *chrome);

/* --- chrome_repair.c ---------------------------------------------------------------------------*/

/**
 * Rewrite the event at p into chrome->rewritten, with stray quotes inside strings escaped.
 *
 * @param ret_size 0 when that does not help @param ret_next past the event in the old text
 */
LAC_MUST_USE enum lac_status lac_chrome_rewrite(struct lac_chrome *chrome, const uint8_t *p,
                                                const uint8_t *end, size_t *ret_size,
                                                const uint8_t **ret_next);

/* --- chrome.c ----------------------------------------------------------------------------------*/

/* The usual window: it fits into the L2 cache together with what the parser writes. */
enum { LAC_CHROME_WINDOW_BYTES = 256 * 1024 };

/**
 * Read one trace from `source`.
 *
 * @param window_bytes  first size of the window on the text
 * @param ret_model on LAC_OK the model, the caller's
 * @return as lac_import_file(); LAC_ERR_CORRUPT also when it is not a trace at all
 */
LAC_MUST_USE enum lac_status lac_chrome_import(struct lac_source *source,
                                               const struct lac_import_options *options,
                                               size_t window_bytes, const char *name,
                                               struct lac_model **ret_model,
                                               struct lac_error *reterr);

#endif
