#ifndef LAC_SERVER_STORE_TRACE_TRACE_PRIVATE_H
#define LAC_SERVER_STORE_TRACE_TRACE_PRIVATE_H

/* What the parts of the trace reader share. */

#include "analysis/crew/crew.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "server/store/trace/cache.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_columns.h" // IWYU pragma: export
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_summary.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** Gaps, decoded. */
struct lac_gap_table {
    uint64_t count;
    int64_t *columns[12];  /**< as in FORMAT.md */
    uint32_t left_out;     /**< a bit for each column that is not decoded */
    uint64_t *share_first; /**< index of a gap's first share */
    uint64_t *text_first;  /**< offset of a gap's text */
    int64_t *share_cause, *share_ns;
    uint64_t share_count;
    char *texts;
    uint64_t text_bytes;
    uint64_t *by_dur; /**< gap indexes, longest first */
    double *per_step; /**< by signature */
    uint32_t signature_count;
};

/** Distinct kernels with what their names say. */
struct lac_kernel_table {
    struct lac_kernel_row *rows;
    uint32_t count;
    int64_t total_ns;
};

/** Loaded when first asked for; guarded by lac_trace_file.lazy_lock, fixed once set. */
struct lac_trace_lazy {
    struct lac_name_stat *stats; /**< ascending (kind, name) */
    uint32_t stat_count;
    uint8_t *postings; /**< of all stats, one after another */
    uint64_t posting_bytes;
    bool has_stats;
    struct lac_gap_table gaps; /**< all of them */
    bool has_gaps;
    struct lac_gap_table long_gaps; /**< those of 10 us and longer, which most ask for */
    bool has_long_gaps;
    struct lac_kernel_table kernels;
    bool has_kernels;
    int64_t *step_start_ns, *step_dur_ns;           /**< on the device where it sets the pace */
    int64_t *step_host_start_ns, *step_host_dur_ns; /**< between the host's marks */
    uint32_t *step_name;
    uint32_t step_count;
    uint8_t *is_left_out;     /**< by track: threads that flame graphs leave out */
    uint64_t read_for_flames; /**< slices, again and again, in place of the whole model */
};

struct lac_trace_file {
    pthread_mutex_t db_lock; /**< guards db and its statements */
    sqlite3 *db;
    sqlite3_stmt *get_blob;
    sqlite3_stmt *get_totals;        /**< prepared when first asked for */
    sqlite3_stmt *get_open;          /**< as well */
    bool lacks_open;                 /**< the file has no table for get_open */
    char label[LAC_SQL_LABEL_BYTES]; /**< what it is called in messages */

    struct lac_cache *cache;       /**< columns */
    struct lac_cache *model_cache; /**< whole models */
    bool owns_caches;
    uint64_t owner; /**< in both caches */

    struct lac_crew *crew; /**< helps to read many chunks, or NULL */

    struct lac_model head;
    const char **roles; /**< track_count entries, static strings or NULL */
    uint32_t format_version;
    uint32_t generation;
    uint8_t level_max;
    uint64_t file_bytes;
    struct lac_trace_summary summary;
    const struct lac_names *names; /**< rows that somebody added, or NULL; borrowed */

    struct lac_chunk_entry *chunks; /**< ascending first */
    uint32_t chunk_count;
    uint32_t *track_chunk; /**< track_count + 1: first chunk of a track */
    uint64_t *tile_keys;   /**< ascending */
    int64_t *tile_blobs;
    uint32_t tile_count;

    pthread_mutex_t lazy_lock;
    struct lac_trace_lazy lazy;

    /* the store's book-keeping, guarded by its lock */
    char id[LAC_ID_SIZE];
    uint32_t use_count;
    uint64_t last_use;
    bool is_deleted;
};

/** Open with caches of the store (borrowed). */
LAC_MUST_USE enum lac_status lac_trace_file_open_with(const char *path, struct lac_cache *cache,
                                                      struct lac_cache *model_cache,
                                                      struct lac_trace_file **ret_file,
                                                      struct lac_error *reterr);

/** Everything small (trace_open_tables.c); head.strings first. */
LAC_MUST_USE enum lac_status lac_trace_read_meta(struct lac_trace_file *file,
                                                 struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_trace_read_strings(struct lac_trace_file *file,
                                                    struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_trace_read_settings(struct lac_trace_file *file,
                                                     struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_trace_read_rows(struct lac_trace_file *file,
                                                 struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_trace_read_index(struct lac_trace_file *file,
                                                  struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_trace_read_steps(struct lac_trace_file *file,
                                                  struct lac_error *reterr);
/** trace_steps.c: the same between the host's marks; as they are, where the table does not say. */
void lac_trace_read_marks(struct lac_trace_file *file);

/** A row of a table of column blocks: where it begins, how many entries, which bytes. */
struct lac_block {
    int64_t first;
    uint32_t count;
    const void *data;
    size_t size_bytes;
};

/** A table of column blocks: entries number `total`, with ids from `base` on. */
struct lac_block_table {
    const char *sql; /**< first id, count and bytes, in order */
    int64_t base;
    uint64_t total;
    uint32_t column_count;
    /** Takes the entries of a block. @return LAC_OK or LAC_ERR_CORRUPT */
    enum lac_status (*reader)(void *target, const struct lac_block *block, int64_t *const *columns);
};

/** Read all blocks of a table, in order (trace_model.c). */
LAC_MUST_USE enum lac_status lac_trace_read_blocks(struct lac_trace_file *file,
                                                   const struct lac_block_table *table,
                                                   void *target, struct lac_error *reterr);

/** Of a copy of the head whose tables, samples and flows are not read: none are there
 *  (trace_model.c). */
void lac_trace_forget_tables(struct lac_model *model);

/** Whether lac_trace_file_model() has it in memory, and whether it could (trace_model.c). */
bool lac_trace_model_is_loaded(struct lac_trace_file *file);
bool lac_trace_model_fits(const struct lac_trace_file *file);

/** Allocate and fill model->loader_infos (trace_model.c). */
LAC_MUST_USE enum lac_status lac_trace_read_loader_infos(struct lac_trace_file *file,
                                                         struct lac_model *model,
                                                         struct lac_error *reterr);

/** "traces/<id>.db is damaged (what)" */
enum lac_status lac_trace_corrupt(const struct lac_trace_file *file, struct lac_error *reterr,
                                  const char *what);

/** Bytes of a blob row; the caller frees. */
LAC_MUST_USE enum lac_status lac_trace_read_blob(struct lac_trace_file *file, int64_t id,
                                                 uint8_t **ret_bytes, size_t *ret_size_bytes,
                                                 struct lac_error *reterr);

/** Check decoded columns of a chunk against the head. @return false when damaged */
bool lac_trace_chunk_is_sane(const struct lac_trace_file *file, const struct lac_chunk_entry *chunk,
                             const struct lac_slices *at, unsigned columns);

/** Index of the first start >= t_ns among `count` ascending starts. */
uint32_t lac_lower_bound_ns(const int64_t *start_ns, uint32_t count, int64_t t_ns);

/** Row `row` of a detail table, `column_count` values. */
LAC_MUST_USE enum lac_status lac_trace_detail_row(struct lac_trace_file *file, unsigned table,
                                                  uint32_t row, uint32_t column_count,
                                                  int64_t *values, struct lac_error *reterr);

/** Batch of every row of the loader's details, -1 where none was recorded; the caller frees. */
LAC_MUST_USE enum lac_status lac_trace_loader_batches(struct lac_trace_file *file,
                                                      int64_t **ret_batches,
                                                      struct lac_error *reterr);

enum { LAC_KERNEL_COLUMNS_MAX = 12, LAC_COPY_COLUMNS_MAX = 7 };
/** Columns of a launch configuration in this file. */
uint32_t lac_kernel_column_count(const struct lac_trace_file *file);
/** The same of a copy. */
uint32_t lac_copy_column_count(const struct lac_trace_file *file);
/** Values of a detail row as what they are. Those that the file lacks are 0; a
 *  module that is no string of the trace is none. */
void lac_kernel_config_from(const struct lac_trace_file *file, const int64_t *values,
                            struct lac_kernel_config *ret_config);
void lac_copy_from(const struct lac_trace_file *file, const int64_t *values,
                   struct lac_copy *ret_copy);

/** Statistics of (kind, name); *ret_stat is NULL when there are none. */
LAC_MUST_USE enum lac_status lac_trace_find_stat(struct lac_trace_file *file, uint8_t kind,
                                                 uint32_t name,
                                                 const struct lac_name_stat **ret_stat,
                                                 struct lac_error *reterr);

void lac_gap_table_done(struct lac_gap_table *table);

/** NULL: the area has no such device. */
struct lac_area_device *lac_area_device_of(struct lac_area *area, int64_t id);

/** With db_lock held. @return LAC_OK, LAC_ERR_NOT_FOUND where the file has no such table */
LAC_MUST_USE enum lac_status lac_trace_has_table(const struct lac_trace_file *file,
                                                 const char *name, struct lac_error *reterr);

/** Blocks of gaps by the first of each; the caller frees `first`. */
struct lac_gap_blocks {
    int64_t *first;
    size_t count;
};

/** With db_lock held: add the idle time of all blocks inside an area; says which cross its edges
 *  and are to be read (trace_totals.c). `ret_edges` is all zero before.
 *  @return LAC_ERR_NOT_FOUND where the file has no such totals: all blocks are to be read */
LAC_MUST_USE enum lac_status lac_trace_area_gap_totals(struct lac_trace_file *file,
                                                       const struct lac_area_query *query,
                                                       struct lac_area *area,
                                                       struct lac_gap_blocks *ret_edges,
                                                       struct lac_error *reterr);

/** Add the idle time inside [t0_ns, t1_ns) to the devices of an area (trace_gaps.c). */
LAC_MUST_USE enum lac_status lac_trace_area_gaps(struct lac_trace_file *file,
                                                 const struct lac_area_query *query,
                                                 struct lac_area *area, struct lac_error *reterr);

/** Set how long the devices of an area work inside [t0_ns, t1_ns) without computing, -1 where the file
 *  does not say it (gaps/trace_exposed.c). */
LAC_MUST_USE enum lac_status lac_trace_area_exposed(struct lac_trace_file *file,
                                                    const struct lac_area_query *query,
                                                    struct lac_area *area,
                                                    struct lac_error *reterr);

/** Case-insensitive (ASCII) search. @return whether `word` (lower case) is in text */
bool lac_text_contains(const char *text, size_t length, const char *word, size_t word_length);

/** A lower-case (ASCII) copy; the caller frees. NULL when out of memory. */
char *lac_text_lower(const char *text, size_t *ret_length);

void lac_offset_cursor_write(uint64_t offset, char *out, size_t capacity_bytes);

/** Parse a cursor that is an offset ("o123"); NULL is 0. @return false when it is none */
bool lac_offset_cursor(const char *cursor, uint64_t *ret_offset);

/* -- name_totals.c ----------------------------------------------------------------------------- */

/*
 * Totals of slices by name and kind, inside an interval: what an area of the timeline holds.
 *
 * A slice counts if it overlaps the interval, or if it has no length and starts in it; its times
 * are those inside the interval. Its self time is what its children leave of that. Totals of parts
 * add up: a child takes its time from its parent's row wherever the parent was counted, so the row
 * of a part alone may have a negative self time.
 */

/** A table by (name, kind). All zero is an empty one. */
struct lac_name_totals {
    struct lac_area_name *rows; /**< in order of first appearance; owned */
    uint32_t count, capacity;
    uint32_t *slots; /**< row + 1, 0 free; a power of two of them */
    uint32_t slot_count;
};

void lac_name_totals_done(struct lac_name_totals *totals);

/** Empty, but keep the memory. */
void lac_name_totals_clear(struct lac_name_totals *totals);

/** Add what `row` says to the row of its name and kind. @return false when out of memory */
LAC_MUST_USE bool lac_name_totals_add(struct lac_name_totals *totals,
                                      const struct lac_area_name *row);

/** The last slice of a lane, which may be the parent of what follows. */
struct lac_open_slice {
    int64_t end_ns; /**< -1: none yet */
    uint32_t name;
    uint8_t kind;
};

/** Slices [0, at->count) of one track, in order of their starts. */
struct lac_totals_part {
    const struct lac_slices *at; /**< columns start, dur, name, kind; lane if `open` */
    uint64_t first;              /**< id of the first one */
    int64_t t0_ns, t1_ns;
    /** By lane: what came before; brought up to date. NULL where lanes are not nested, so that all
     *  time is self time. */
    struct lac_open_slice *open;
};

/**
 * What the file says of a whole chunk (trace_totals.c); zero-initialized before.
 *
 * @param ret_totals rows, without slots: to be read, not added to
 * @return LAC_OK, LAC_ERR_NOT_FOUND where it says nothing, LAC_ERR_CORRUPT, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_trace_stored_totals(struct lac_trace_file *file,
                                                     const struct lac_chunk_entry *chunk,
                                                     struct lac_name_totals *ret_totals,
                                                     struct lac_error *reterr);

/**
 * Which slices of a thread are open where a chunk begins (open_before.c): a row of the file, or of
 * one that does not say so by decoding the chunks before.
 *
 * @param open out, by lane: as many as the track has
 * @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_NOMEM, LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_trace_open_before(struct lac_trace_file *file, uint32_t chunk,
                                                   struct lac_open_slice *open,
                                                   struct lac_error *reterr);

/** Add the slices of a part. @return false when out of memory */
LAC_MUST_USE bool lac_name_totals_count(struct lac_name_totals *totals,
                                        const struct lac_totals_part *part);

#endif
