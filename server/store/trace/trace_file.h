#ifndef LAC_SERVER_STORE_TRACE_TRACE_FILE_H
#define LAC_SERVER_STORE_TRACE_TRACE_FILE_H

/*
 * Reading one trace file. A handle comes from lac_store_open_trace(), or, without a store, from
 * lac_trace_file_open(). Every function may be called from any thread at the same time.
 *
 * Small things (processes, tracks, devices, steps, report) are in memory from the start and are
 * borrowed: they live as long as the handle. Slices stay in the file; columns are decoded a chunk
 * at a time and kept in a byte-bounded cache.
 *
 * Times are ns since the trace's start. Trace files are read as hostile: a damaged one gives
 * LAC_ERR_CORRUPT. Besides what is named, every function may return LAC_ERR_CORRUPT, LAC_ERR_IO
 * and LAC_ERR_NOMEM.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/tile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_analysis;
struct lac_trace_file;

/** The version this program writes, and the newest it reads. */
enum {
    LAC_TRACE_FORMAT_VERSION = 7,
    LAC_TRACE_FORMAT_CHECKED = 2, /**< since this one every page carries a checksum */
    LAC_TRACE_FORMAT_ROOTS = 2,   /**< and gaps name the slices of their root causes */
    LAC_TRACE_FORMAT_ROWS = 3,    /**< since this one settings are rows */
    LAC_TRACE_FORMAT_TOTALS = 4,  /**< since this one chunks and blocks of gaps have totals */
    LAC_TRACE_FORMAT_MODULES = 5, /**< since this one launch configurations name a module */
    LAC_TRACE_FORMAT_COPIES = 6,  /**< and copies a node of a CUDA graph and its module */
};

/** Open without a store, for tests. @param cache_bytes 0: 64 MiB */
LAC_MUST_USE enum lac_status lac_trace_file_open(const char *path, uint64_t cache_bytes,
                                                 struct lac_trace_file **ret_file,
                                                 struct lac_error *reterr);
/** Only for handles of lac_trace_file_open(). NULL is allowed. */
void lac_trace_file_close(struct lac_trace_file *file);

/**
 * Everything of the trace but its slices: info, processes, tracks (first and count are valid),
 * devices, report; `slices.count` is the number of slices while its columns are NULL; the
 * detail tables, samples and flows are empty. Strings are complete: lac_model_str() works.
 * Borrowed.
 */
const struct lac_model *lac_trace_file_head(const struct lac_trace_file *file);

uint32_t lac_trace_file_generation(const struct lac_trace_file *file);
uint8_t lac_trace_file_level_max(const struct lac_trace_file *file);

/** What the thread is for: "main", "worker", "autograd", "pin", "gpu" or NULL. Static storage. */
const char *lac_trace_file_track_role(const struct lac_trace_file *file, uint32_t track);

/** The detected steps, in order. Borrowed. */
struct lac_trace_steps {
    uint32_t count;
    const int64_t *start_ns; /**< on the device where it sets the pace */
    const int64_t *dur_ns;
    const int64_t *host_start_ns; /**< between the host's marks */
    const int64_t *host_dur_ns;
    const uint32_t *name; /**< string ids */
};
void lac_trace_file_steps(const struct lac_trace_file *file, struct lac_trace_steps *ret_steps);

/** Documents kept with the trace. */
enum lac_trace_document {
    LAC_DOCUMENT_ANALYSIS = 0, /**< lacuna.analysis/1, JSON text */
    LAC_DOCUMENT_FLAME,        /**< and the two after it: flame graphs of the whole trace by
                                    operator, in the order of enum lac_flame_metric, JSON text */
    LAC_DOCUMENT_FLAME_WAITING,
    LAC_DOCUMENT_FLAME_CPU,
    LAC_DOCUMENT_RANK_TABLE,   /**< bytes of lac_rank_table_pack() */
    LAC_DOCUMENT_FACTS,        /**< bytes of lac_analysis_pack() */
    LAC_DOCUMENT_COMPARE,      /**< bytes of lac_compare_facts_pack() */
    LAC_DOCUMENT_FLAME_ROWS,   /**< of a large trace: bytes of lac_flame_pack(), for reports */
    LAC_DOCUMENT_FLAME_PYTHON, /**< and the two after it: the same graphs by Python */
    LAC_DOCUMENT_FLAME_WAITING_PYTHON,
    LAC_DOCUMENT_FLAME_CPU_PYTHON,
    LAC_DOCUMENT_COUNT_
};
/** @param ret_text NUL-terminated, the caller frees. LAC_ERR_NOT_FOUND when the trace has none. */
LAC_MUST_USE enum lac_status lac_trace_file_document(struct lac_trace_file *file,
                                                     enum lac_trace_document document,
                                                     char **ret_text, size_t *ret_length,
                                                     struct lac_error *reterr);

/**
 * What the diagnosis found when the trace was imported, without gaps.
 *
 * @param ret_analysis the caller frees it with lac_analysis_destroy()
 * @return LAC_ERR_NOT_FOUND when it was not kept, or by a program that kept something else
 * Cost: O(steps, kernel names, findings)
 */
LAC_MUST_USE enum lac_status lac_trace_file_analysis(struct lac_trace_file *file,
                                                     struct lac_analysis **ret_analysis,
                                                     struct lac_error *reterr);

/** Largest document kept with a trace. */
#define LAC_DOCUMENT_BYTES_MAX ((size_t)256 << 20)

/* ---- tiles ---- */

/** Bounds of one request. */
enum { LAC_TILES_MAX = 64, LAC_TILE_TRACKS_MAX = 4096 };
#define LAC_TILE_BATCH_BYTES_MAX ((size_t)16 << 20)

/**
 * The tile batch (FORMAT.md) of tiles [first, last] of a level of some tracks, header included.
 *
 * @param tracks    ascending indexes; unknown ones and counters give no section
 * @param ret_bytes the caller frees
 * @return LAC_OK, LAC_ERR_LIMIT (too many tiles or tracks, or more than 16 MiB), LAC_ERR_MISUSE
 *         (last < first, level too large)
 * Cost: stored tiles are read; others are built from at most three chunks of the track each.
 */
LAC_MUST_USE enum lac_status lac_trace_file_tiles(struct lac_trace_file *file, uint8_t level,
                                                  uint32_t first, uint32_t last,
                                                  const uint32_t *tracks, uint32_t track_count,
                                                  uint8_t **ret_bytes, size_t *ret_size_bytes,
                                                  struct lac_error *reterr);

/**
 * How many of the outermost lanes of a host thread hold nothing but frames that are open nearly all
 * the time of the row, and what is too short to matter between them: a page may fold them.
 *
 * @return 0: fewer than four, or it cannot be told. Cost: one tile of the coarsest level
 */
uint32_t lac_trace_file_outer_lanes(struct lac_trace_file *file, uint32_t track);

/* ---- slices ---- */

/** A slice without its arguments. */
struct lac_slice_row {
    uint32_t slice;
    uint32_t track;
    int64_t start_ns;
    int64_t dur_ns;
    uint32_t name;
    uint32_t corr;
    uint32_t link; /**< LAC_NONE when none */
    uint32_t detail;
    uint16_t lane;
    uint8_t kind;
};

/** A slice with everything. args is owned: lac_slice_full_done(). */
struct lac_slice_full {
    struct lac_slice_row row;
    char *args_json; /**< JSON object text, NULL when it has no arguments */
    bool has_kernel;
    struct lac_kernel_config kernel;
    bool has_copy; /**< copies and memsets */
    struct lac_copy copy;
    bool has_loader;
    struct lac_loader_info loader;
    bool has_alloc;
    struct lac_alloc alloc;
    bool has_return_value; /**< of an API call */
    uint32_t return_value;
    uint32_t parent;      /**< innermost slice of the same track around it, LAC_NONE when none */
    uint32_t child_count; /**< slices directly inside it */
    uint32_t step;        /**< index into the steps, LAC_NONE when outside all */
    uint64_t same_name_count; /**< slices of the same name and kind in the trace */
    int64_t same_name_total_ns;
    uint32_t
        prev_same_name; /**< neighbor on the same track with the same name, LAC_NONE when none */
    uint32_t next_same_name;
};
/** Where a slice is and what it lies in, without what its kind carries, its arguments and its
 *  neighbors: correlation and detail of `ret_row` may be unset. @param ret_parent as
 *  lac_slice_full.parent @return LAC_OK, LAC_ERR_NOT_FOUND. Cost: a decoded chunk */
LAC_MUST_USE enum lac_status lac_trace_file_slice_place(struct lac_trace_file *file, uint64_t slice,
                                                        struct lac_slice_row *ret_row,
                                                        uint32_t *ret_parent,
                                                        struct lac_error *reterr);

/** @return LAC_OK, LAC_ERR_NOT_FOUND (no such slice) */
LAC_MUST_USE enum lac_status lac_trace_file_slice(struct lac_trace_file *file, uint64_t slice,
                                                  struct lac_slice_full *ret_slice,
                                                  struct lac_error *reterr);
void lac_slice_full_done(struct lac_slice_full *slice);

/**
 * Slices of a track that overlap [t0_ns, t1_ns), ascending, from slice id `after` + 1 on.
 *
 * @param after LAC_NONE: from the first
 * @param rows  room for `limit`
 */
LAC_MUST_USE enum lac_status lac_trace_file_window(struct lac_trace_file *file, uint32_t track,
                                                   int64_t t0_ns, int64_t t1_ns, uint32_t after,
                                                   uint32_t limit, struct lac_slice_row *rows,
                                                   uint32_t *ret_count, bool *ret_has_more,
                                                   struct lac_error *reterr);

/* ---- search ---- */

enum { LAC_SEARCH_BINS_MAX = 2000 };

struct lac_search_query {
    const char *text;  /**< case-insensitive (ASCII) substring; or "id:N", "corr:N", "batch:N",
                            "track:N" */
    int kind;          /**< enum lac_slice_kind, or -1 for all */
    const char *after; /**< cursor, NULL from the start */
    uint32_t limit;    /**< 1..1000 */
    /** Count all hits by their start, in so many equal parts of the trace; 0: do not. Then all
     *  chunks that hold hits are read. */
    uint32_t bin_count;
    /** Longest first, over all hits: then all chunks that hold hits are read, and `limit` of their
     *  slices are kept. False: in order of time. */
    bool longest_first;
};
struct lac_search_hits {
    struct lac_slice_row *rows; /**< by (start, slice), or (longest, start, slice) */
    uint32_t count;
    uint64_t total;
    uint32_t *bins; /**< bin_count of them, or NULL */
    bool has_more;
    char next[64];
};
LAC_MUST_USE enum lac_status lac_trace_file_search(struct lac_trace_file *file,
                                                   const struct lac_search_query *query,
                                                   struct lac_search_hits *ret_hits,
                                                   struct lac_error *reterr);
void lac_search_hits_done(struct lac_search_hits *hits);

/* ---- kernels ---- */

enum lac_kernel_sort {
    LAC_KERNEL_SORT_TOTAL = 0,
    LAC_KERNEL_SORT_COUNT,
    LAC_KERNEL_SORT_MEAN,
    LAC_KERNEL_SORT_MIN,
    LAC_KERNEL_SORT_MAX,
    LAC_KERNEL_SORT_NAME,
    LAC_KERNEL_SORT_FAMILY,
};
struct lac_kernel_query {
    enum lac_kernel_sort sort;
    bool descending;
    const char *text;  /**< case-insensitive substring of the name, NULL all */
    const char *after; /**< cursor, NULL from the first */
    uint32_t limit;    /**< 1..10000 */
};
struct lac_kernel_row {
    uint32_t name;
    uint64_t count;
    int64_t total_ns, mean_ns, min_ns, max_ns;
    double pct_of_kernel_time;
    int64_t per_step_ns; /**< total over the detected steps; INT64_MIN when there are none */
    uint32_t longest_slice;
    char short_name[96];
    char family[32];      /**< "gemm", "conv", "nccl", ...; "" unknown */
    char layout_class[8]; /**< "L", "Pd", "U", "K" or "" */
    int8_t tensor_core;   /**< 1 uses them, 0 could and does not, -1 neither */
};
struct lac_kernel_page {
    struct lac_kernel_row *rows;
    uint32_t count;
    uint64_t total; /**< rows that match */
    bool has_more;
    char next[48];
};
LAC_MUST_USE enum lac_status lac_trace_file_kernels(struct lac_trace_file *file,
                                                    const struct lac_kernel_query *query,
                                                    struct lac_kernel_page *ret_page,
                                                    struct lac_error *reterr);
void lac_kernel_page_done(struct lac_kernel_page *page);

/* ---- gaps ---- */

enum {
    LAC_GAP_CAUSES = 11,      /* LAC_CAUSE_COUNT_ of diagnose.h */
    LAC_GAP_TEXT_BYTES = 256, /* of a sentence, its end included */
};
struct lac_gap_row {
    int64_t start_ns;
    int64_t dur_ns;
    int64_t device;
    uint8_t cause; /**< enum lac_cause with the largest share */
    int64_t cause_ns[LAC_GAP_CAUSES];
    const char *root_cause; /**< one sentence, "" none; borrowed from the page */
    int8_t root_kind;       /**< enum lac_root_kind; -1 not stored: a short gap, an older file */
    uint32_t root_slice;    /**< LAC_NONE none, or not stored; as are the next two */
    uint32_t wait_slice;    /**< of a late batch: the wait for it */
    uint32_t batch_slice;   /**< of a late batch: what a worker did for it during the wait */
    uint32_t ended_by;      /**< slice, LAC_NONE at the end */
    uint32_t signature;     /**< gaps of the same signature are of one kind */
    double per_step;        /**< gaps of this signature in a step, NaN when not known */
};
enum lac_gap_sort { LAC_GAP_SORT_DUR = 0 /* longest first */, LAC_GAP_SORT_START };
struct lac_gap_query {
    int64_t device; /**< id, or -1 for all */
    int64_t min_ns;
    enum lac_gap_sort sort;
    const char *after;
    uint32_t limit; /**< 1..10000 */
};
struct lac_gap_page {
    struct lac_gap_row *rows;
    char *texts; /**< owner of the sentences */
    uint32_t count;
    uint64_t total;
    bool has_more;
    char next[48];
};
LAC_MUST_USE enum lac_status lac_trace_file_gaps(struct lac_trace_file *file,
                                                 const struct lac_gap_query *query,
                                                 struct lac_gap_page *ret_page,
                                                 struct lac_error *reterr);
void lac_gap_page_done(struct lac_gap_page *page);

/** Takes a gap; its sentence is lost when it returns. @return whether to go on */
typedef bool lac_take_gap_fn(void *context, const struct lac_gap_row *gap);

/** All gaps of a query, in its order; `after` and `limit` are not read. Cost: what is loaded of the
 *  gaps stays with the file (100 bytes a gap of `min_ns` and longer; 10 us and more: few). */
LAC_MUST_USE enum lac_status lac_trace_file_each_gap(struct lac_trace_file *file,
                                                     const struct lac_gap_query *query,
                                                     lac_take_gap_fn *take, void *context,
                                                     struct lac_error *reterr);

/** What of a gap is read. */
enum lac_gap_part {
    LAC_GAP_PART_START = 1 << 0,
    LAC_GAP_PART_DUR = 1 << 1,
    LAC_GAP_PART_DEVICE = 1 << 2,
    LAC_GAP_PART_CAUSE = 1 << 3,
    LAC_GAP_PART_SHARES = 1 << 4, /**< cause_ns */
    LAC_GAP_PART_ENDED_BY = 1 << 5,
    LAC_GAP_PART_ROOT = 1 << 6, /**< root_kind and the three slices */
    LAC_GAP_PART_SIGNATURE = 1 << 7,
    LAC_GAP_PART_PER_STEP = 1 << 8,
    LAC_GAP_PART_TEXT = 1 << 9, /**< root_cause */
};

/** Which gaps are read. All bounds are included. */
struct lac_gap_wish {
    int64_t device; /**< id, or -1 for all */
    int64_t min_ns;
    int64_t start_min_ns, start_max_ns, end_min_ns, end_max_ns;
    int cause;      /**< enum lac_cause, or -1 for all */
    unsigned parts; /**< of enum lac_gap_part */
};

/** Gaps in the order of the file, by device and start, a block at a time: nothing is kept. A block
 *  that cannot hold a wanted gap is passed over. For one thread at a time. */
struct lac_gap_reader;

/** Begin, for gaps of a device (-1: all) and length with all their parts. */
LAC_MUST_USE enum lac_status lac_gap_reader_open(struct lac_trace_file *file, int64_t device,
                                                 int64_t min_ns, struct lac_gap_reader **ret_reader,
                                                 struct lac_error *reterr);

/** @param ret_row its sentence is borrowed until the next call. @return LAC_OK, LAC_ERR_NOT_FOUND at
 *  the end, LAC_ERR_CORRUPT, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_gap_reader_next(struct lac_gap_reader *reader,
                                                 struct lac_gap_row *ret_row,
                                                 struct lac_error *reterr);

/** Begin, for some parts of some gaps. `file` stays open until after lac_gap_reader_close(). */
LAC_MUST_USE enum lac_status lac_gap_reader_open_for(struct lac_trace_file *file,
                                                     const struct lac_gap_wish *wish,
                                                     struct lac_gap_reader **ret_reader,
                                                     struct lac_error *reterr);

/** Begin again, with gaps of another cause (-1: all). */
void lac_gap_reader_rewind(struct lac_gap_reader *reader, int cause);

/** Read the next block, which may turn out to have no wanted gap.
 *  @return LAC_OK, LAC_ERR_NOT_FOUND: there is none */
LAC_MUST_USE enum lac_status lac_gap_reader_block(struct lac_gap_reader *reader,
                                                  struct lac_error *reterr);

/** The next wanted gap of the block. Parts that were not asked for are undefined, its text lives
 *  until the next gap. @param ret_index its number among all gaps @return false: no more */
bool lac_gap_reader_row(struct lac_gap_reader *reader, struct lac_gap_row *row,
                        uint64_t *ret_index);

/** NULL is allowed. */
void lac_gap_reader_close(struct lac_gap_reader *reader);

/* ---- an area ---- */

enum lac_area_sort {
    LAC_AREA_SORT_TOTAL = 0,
    LAC_AREA_SORT_SELF,
    LAC_AREA_SORT_COUNT,
    LAC_AREA_SORT_MEAN,
    LAC_AREA_SORT_MAX,
    LAC_AREA_SORT_NAME,
};
struct lac_area_query {
    int64_t t0_ns, t1_ns;   /**< t0 <= t1 */
    const uint32_t *tracks; /**< ascending indexes; NULL: all */
    uint32_t track_count;
};
/** Slices of one name and kind; times are those inside the area. */
struct lac_area_name {
    uint32_t name;
    uint8_t kind;
    uint64_t count;
    int64_t total_ns;
    int64_t self_ns; /**< without what lies inside other slices of the same thread */
    int64_t max_ns;
    uint32_t longest; /**< slice */
};
struct lac_area_track {
    uint32_t track;
    uint64_t count;
    int64_t total_ns; /**< self time: of nested slices each nanosecond once */
};
struct lac_area_device {
    int64_t id;
    int64_t span_ns; /**< of the area, between the device's first and last operation */
    int64_t idle_ns;
    int64_t exposed_ns; /**< works, but runs no computing kernel; -1 not known: an older file */
    /** Of a gap that is cut by the area's edge, in proportion. Sums to idle_ns. */
    int64_t cause_ns[LAC_GAP_CAUSES];
    uint64_t kind_count[LAC_SLICE_KIND_COUNT_];
    int64_t kind_ns[LAC_SLICE_KIND_COUNT_]; /**< summed over streams, which may overlap */
};
struct lac_area {
    struct lac_area_name *names; /**< longest total first */
    uint32_t name_count;
    struct lac_area_track *tracks; /**< those with slices in it, ascending */
    uint32_t track_count;
    struct lac_area_device *devices; /**< all that were recorded, whatever tracks were asked for */
    uint32_t device_count;
    uint64_t slice_count;
};

/**
 * What lies in an area: by name, by track, by device. Steps and gaps, which are derived, and the
 * profiler's own mark over its recording are counted if their tracks are asked for by number.
 *
 * @param ret_area the caller gives it to lac_area_done()
 * @return LAC_OK, LAC_ERR_MISUSE (no such track, t1 before t0), LAC_ERR_NOMEM, LAC_ERR_CORRUPT
 * Cost: chunks that lie inside as a whole are added up once and kept in the cache; the others, two
 * a track or so, are counted slice by slice. All gaps are read.
 */
LAC_MUST_USE enum lac_status lac_trace_file_area(struct lac_trace_file *file,
                                                 const struct lac_area_query *query,
                                                 struct lac_area *ret_area,
                                                 struct lac_error *reterr);
/** Order `names`; ties by total, then by name id. */
void lac_area_sort(struct lac_area *area, const struct lac_model *head, enum lac_area_sort sort,
                   bool descending);
void lac_area_done(struct lac_area *area);

/* ---- counters ---- */

/** A counter seen through at most `points` equal bins of time; bins without samples
 *  are left out. */
struct lac_counter_points {
    int64_t *ts_ns; /**< of the bin's last sample */
    double *min, *max, *last;
    uint32_t count;
    /** Over time, from the first sample in the window to its end: each value holds until the next
     *  one. Only where there is a sample. */
    double mean;
};
/** @param points 1..8192. LAC_ERR_NOT_FOUND when the track is no counter. */
LAC_MUST_USE enum lac_status lac_trace_file_counter(struct lac_trace_file *file, uint32_t track,
                                                    int64_t t0_ns, int64_t t1_ns, uint32_t points,
                                                    struct lac_counter_points *ret_points,
                                                    struct lac_error *reterr);
void lac_counter_points_done(struct lac_counter_points *points);

/* ---- the model again ---- */

/**
 * The model as flame graphs want it, read from the file: all but what only one slice's details
 * tell. Columns corr, detail, args and arg_num are NULL; detail tables, flows and samples are
 * empty. Kept in a byte-bounded cache: the same model is given to everyone who asks meanwhile.
 *
 * @param ret_model read only; give back with lac_trace_file_release_model()
 * @return LAC_ERR_LIMIT when it alone is larger than the cache allows
 * Cost: about 30 ns and 27 bytes a slice the first time.
 */
LAC_MUST_USE enum lac_status lac_trace_file_model(struct lac_trace_file *file,
                                                  const struct lac_model **ret_model,
                                                  struct lac_error *reterr);

/** The same with everything, for exports: about 90 ns and 43 bytes a slice and its arguments. It is
 *  checked with lac_model_is_valid(). */
LAC_MUST_USE enum lac_status lac_trace_file_whole_model(struct lac_trace_file *file,
                                                        const struct lac_model **ret_model,
                                                        struct lac_error *reterr);

/** Give back what either of them gave. NULL is allowed. */
void lac_trace_file_release_model(struct lac_trace_file *file, const struct lac_model *model);

/**
 * The slices that overlap [t0_ns, t1_ns), as a model with the tracks of the head: slices have other
 * ids, columns corr, link, args and arg_num are NULL; loader infos are there, other details and
 * samples are not.
 *
 * @param ret_model the caller gives it to lac_trace_stretch_destroy(), before the file is closed
 * @return LAC_ERR_LIMIT when it is larger than the model cache allows
 * Cost: the chunks that overlap it.
 */
LAC_MUST_USE enum lac_status lac_trace_file_stretch(struct lac_trace_file *file, int64_t t0_ns,
                                                    int64_t t1_ns, struct lac_model **ret_model,
                                                    struct lac_error *reterr);
/** NULL is allowed. */
void lac_trace_stretch_destroy(struct lac_model *model);

/* ---- what others make of a trace ---- */

struct lac_cache_entry;

/** How a user of the file makes what it wants kept beside the models; one kind for all. */
struct lac_trace_kept {
    enum lac_status (*make)(struct lac_trace_file *file, void **ret_made, uint64_t *ret_bytes,
                            struct lac_error *reterr);
    void (*done)(void *made);
};

/** What was made before, or now. @param ret_entry lac_cache_data(); give it back with
 *  lac_trace_file_release_kept() */
LAC_MUST_USE enum lac_status lac_trace_file_kept(struct lac_trace_file *file,
                                                 const struct lac_trace_kept *kept,
                                                 struct lac_cache_entry **ret_entry,
                                                 struct lac_error *reterr);
void lac_trace_file_release_kept(struct lac_trace_file *file, struct lac_cache_entry *entry);

#endif
