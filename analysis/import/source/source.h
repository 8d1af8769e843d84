#ifndef LAC_ANALYSIS_IMPORT_SOURCE_SOURCE_H
#define LAC_ANALYSIS_IMPORT_SOURCE_SOURCE_H

/*
 * Streaming byte sources. A source is a stack of layers, each reading from the one below:
 *
 *   file or memory  ->  gzip | zstd  ->  tar member  ->  gzip | zstd
 *
 * A layer whose input is cut short or damaged gives what it could decode, then ends like a file and
 * says so in lac_source_damage(): the importer decides whether that can be repaired.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_source;

/** Counts and limits shared by all layers of one input. */
struct lac_source_budget {
    uint64_t input_bytes;         /**< read from the file or memory so far */
    uint64_t input_bytes_total;   /**< size of the file, 0 when not known (a pipe) */
    uint64_t expanded_bytes;      /**< written by decompressors so far */
    uint64_t expanded_bytes_max;  /**< 0: no absolute limit */
    uint32_t expansion_ratio_max; /**< 0: no limit; only checked beyond 16 MiB */
};

enum lac_source_kind {
    LAC_SOURCE_PLAIN = 0,
    LAC_SOURCE_GZIP,
    LAC_SOURCE_ZSTD,
    LAC_SOURCE_TAR,
};

enum { LAC_SOURCE_PEEK_MAX = 8192 };

/** Open a file for reading. Read with read(2), never mapped. @return LAC_OK, _IO or _NOMEM */
LAC_MUST_USE enum lac_status lac_source_open_file(const char *path,
                                                  struct lac_source_budget *budget,
                                                  struct lac_source **ret_source,
                                                  struct lac_error *reterr);

/** For lac_import_bytes(): read from memory (borrowed until destroyed), at most `feed_bytes` a read
 * (0: no limit). */
LAC_MUST_USE enum lac_status lac_source_open_memory(const uint8_t *bytes, size_t size_bytes,
                                                    size_t feed_bytes,
                                                    struct lac_source_budget *budget,
                                                    struct lac_source **ret_source,
                                                    struct lac_error *reterr);

/** As pread(2): bytes read, 0 at the end, -1 and errno. */
typedef int64_t (*lac_source_read_at)(const void *context, void *out, size_t size_bytes,
                                      uint64_t offset);

/** Read what `read_at` gives, a part of an input: it does not count as input. */
LAC_MUST_USE enum lac_status lac_source_open_reader(lac_source_read_at read_at, const void *context,
                                                    struct lac_source_budget *budget,
                                                    struct lac_source **ret_source,
                                                    struct lac_error *reterr);

/** Decompress `inner`, which stays the caller's and must outlive the layer. */
LAC_MUST_USE enum lac_status lac_source_open_gzip(struct lac_source *inner,
                                                  struct lac_source **ret_source,
                                                  struct lac_error *reterr);
LAC_MUST_USE enum lac_status lac_source_open_zstd(struct lac_source *inner,
                                                  struct lac_source **ret_source,
                                                  struct lac_error *reterr);

/** NULL is allowed. Does not destroy the layer below. */
void lac_source_destroy(struct lac_source *source);

/**
 * Read up to `capacity` bytes; 0 bytes means the end.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_LIMIT (expansion) or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_source_read(struct lac_source *source, uint8_t *buffer,
                                             size_t capacity, size_t *ret_size,
                                             struct lac_error *reterr);

/** Look at the next bytes without taking them: up to `want` (at most LAC_SOURCE_PEEK_MAX), fewer
 *  only at the end. The pointer is valid until the next call. */
LAC_MUST_USE enum lac_status lac_source_peek(struct lac_source *source, size_t want,
                                             const uint8_t **ret_bytes, size_t *ret_size,
                                             struct lac_error *reterr);

/** What the bytes ahead are, by their content: a layer to open, or plain. */
LAC_MUST_USE enum lac_status lac_source_detect(struct lac_source *source,
                                               enum lac_source_kind *ret_kind,
                                               struct lac_error *reterr);

/** One sentence about damage found so far in this layer or below, or NULL. In a tar only what cut
 *  a member short: damage below it may lie anywhere ahead. */
const char *lac_source_damage(const struct lac_source *source);

struct lac_source_budget *lac_source_get_budget(struct lac_source *source);

/* --- tar -------------------------------------------------------------------------------------- */

enum { LAC_TAR_NAME_MAX = 4096 };

/** Read the members of a tar in `inner` (borrowed). The source reads the current member. */
LAC_MUST_USE enum lac_status lac_source_open_tar(struct lac_source *inner,
                                                 struct lac_source **ret_source,
                                                 struct lac_error *reterr);

/**
 * Go to the next regular file, skipping what is left of the current one.
 *
 * @param name receives its recorded name: only ever a name, never a place to write to
 * @param ret_found false at the end of the archive
 */
LAC_MUST_USE enum lac_status lac_tar_next(struct lac_source *tar, char name[LAC_TAR_NAME_MAX],
                                          bool *ret_found, struct lac_error *reterr);

#endif
