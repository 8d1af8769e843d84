#ifndef LAC_SERVER_STORE_TRACE_TRACE_WRITE_PRIVATE_H
#define LAC_SERVER_STORE_TRACE_TRACE_WRITE_PRIVATE_H

/* What the parts of the trace writer share. */

#include "analysis/crew/crew.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "server/store/trace/column.h"
#include "server/store/trace/sql.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"

#include <stdbool.h>
#include <stdint.h>

/** Tiles over more slices than this are stored, others are built from chunks when asked for. A
 *  chunk decodes in about 0.3 ms, so this bounds a tile to about 1 ms. */
enum { LAC_TILE_MIN_SLICES = 8192, LAC_STRING_BLOCK_BYTES = 1 << 18 };

enum lac_detail_table {
    LAC_DETAIL_KERNEL_CONFIG = 0,
    LAC_DETAIL_COPY,
    LAC_DETAIL_LOADER,
    LAC_DETAIL_ALLOC,
    LAC_DETAIL_COUNT_
};

/** Names of the documents in the table. */
extern const char *const lac_trace_document_names[LAC_DOCUMENT_COUNT_];

struct lac_trace_writer {
    sqlite3 *db;
    const struct lac_model *model;
    const char *path;
    uint32_t generation;
    const struct lac_analysis *analysis;
    const struct lac_trace_text *documents;
    struct lac_error *reterr; /**< `error` */
    struct lac_error error;
    struct lac_slice_writer *slices;
    bool exists; /**< the file, which a failure removes */

    struct lac_crew *crew;
    struct lac_crew_job recorded; /**< the recorded slices, until settled */
    enum lac_status recorded_status;
    bool is_settled;

    sqlite3_stmt *insert_blob;
    int64_t next_blob;
    struct lac_bytes scratch;  /**< zstd output, encoded sections */
    struct lac_bytes scratch2; /**< what is packed */
};

/** Insert into `blob`. */
LAC_MUST_USE enum lac_status lac_trace_write_blob(struct lac_trace_writer *writer, const void *data,
                                                  size_t size_bytes, int64_t *ret_id);

/** Table setting (trace_settings.c). */
LAC_MUST_USE enum lac_status lac_trace_write_settings(struct lac_trace_writer *writer);

/** Table step, and the count of its rows in meta (trace_steps.c). */
LAC_MUST_USE enum lac_status lac_trace_write_steps(struct lac_trace_writer *writer);

/** Tables chunk, tile, name_stat (trace_write_slices.c): begin, then tracks [first, end) in order, then
 *  the totals by name. Tracks and names may be added to the model meanwhile. */
struct lac_slice_writer;
LAC_MUST_USE enum lac_status lac_slice_writer_create(struct lac_trace_writer *writer,
                                                     struct lac_slice_writer **ret_slices);
LAC_MUST_USE enum lac_status lac_slice_writer_tracks(struct lac_slice_writer *slices,
                                                     uint32_t first, uint32_t end);
LAC_MUST_USE enum lac_status lac_slice_writer_names(struct lac_slice_writer *slices);
/** NULL is allowed. */
void lac_slice_writer_destroy(struct lac_slice_writer *slices);

/** Table total (trace_totals.c): begin, then each track with its chunks in order. */
struct lac_totals_writer;
LAC_MUST_USE enum lac_status lac_totals_writer_create(struct lac_trace_writer *writer,
                                                      struct lac_totals_writer **ret_totals);
LAC_MUST_USE enum lac_status lac_totals_writer_track(struct lac_totals_writer *totals,
                                                     const struct lac_track *track);
LAC_MUST_USE enum lac_status lac_totals_writer_add(struct lac_totals_writer *totals, uint64_t first,
                                                   uint32_t count);
/** NULL is allowed. */
void lac_totals_writer_destroy(struct lac_totals_writer *totals);

/** A row of table open_before (open_before.c): which of `open`, the last slice of each lane, reach
 *  the chunk that begins with slice `first`. */
struct lac_open_slice;
LAC_MUST_USE enum lac_status lac_trace_write_open(struct lac_trace_writer *writer, uint64_t first,
                                                  const struct lac_open_slice *open,
                                                  uint32_t lane_count);

/** Rows of a block of gaps, shares one after another. */
struct lac_gap_rows {
    const int64_t *start_ns, *dur_ns, *device, *cause, *shares; /**< `shares`: how many */
    const int64_t *share_cause, *share_ns;
};

/** A row of table gap_total (trace_totals.c). */
LAC_MUST_USE enum lac_status lac_trace_write_gap_totals(struct lac_trace_writer *writer,
                                                        uint64_t first,
                                                        const struct lac_gap_rows *rows,
                                                        uint32_t count);

/** Table exposed (gaps/trace_exposed.c). */
LAC_MUST_USE enum lac_status lac_trace_write_exposed(struct lac_trace_writer *writer);

/** Tables string, detail, sample, flow (trace_write_tables.c). */
LAC_MUST_USE enum lac_status lac_trace_write_strings(struct lac_trace_writer *writer);
LAC_MUST_USE enum lac_status lac_trace_write_details(struct lac_trace_writer *writer);
LAC_MUST_USE enum lac_status lac_trace_write_samples(struct lac_trace_writer *writer);
LAC_MUST_USE enum lac_status lac_trace_write_flows(struct lac_trace_writer *writer);

/** Tables gap, gap_signature, finding, and summary_... of meta (trace_write_analysis.c). */
LAC_MUST_USE enum lac_status lac_trace_write_analysis(struct lac_trace_writer *writer);

/** Insert one number or text into meta. */
LAC_MUST_USE enum lac_status lac_trace_write_meta_i64(struct lac_trace_writer *writer,
                                                      const char *key, int64_t value);
LAC_MUST_USE enum lac_status lac_trace_write_meta_f64(struct lac_trace_writer *writer,
                                                      const char *key, double value);
LAC_MUST_USE enum lac_status lac_trace_write_meta_text(struct lac_trace_writer *writer,
                                                       const char *key, const char *text);

/** Role of a host thread ("main", ...) or a stream ("collectives", "copies"), or NULL (track_role.c).
 *  `roles` has track_count entries. */
LAC_MUST_USE enum lac_status lac_track_roles(const struct lac_model *model, const char **roles);

#endif
