#ifndef LAC_ANALYSIS_MODEL_CHUNK_H
#define LAC_ANALYSIS_MODEL_CHUNK_H

/*
 * Column chunks: up to LAC_CHUNK_SLICES consecutive slices of one track as compressed bytes.
 *
 * Each column is delta coded or predicted, split into byte planes, and each plane is one zstd-1
 * frame. A directory of the columns lets a reader inflate only those it wants (and those they are
 * predicted from). Layout: server/store/FORMAT.md.
 */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LAC_CHUNK_SLICES = 32768,
    LAC_CHUNK_NUMBERS_MAX = 1 << 24, /**< argument numbers of one chunk */
};

/** Columns of a chunk; a bit set of these says which to decode. */
enum lac_chunk_column {
    LAC_COLUMN_START = 0,
    LAC_COLUMN_DUR,
    LAC_COLUMN_NAME,
    LAC_COLUMN_LANE,
    LAC_COLUMN_KIND,
    LAC_COLUMN_CORR,
    LAC_COLUMN_LINK,
    LAC_COLUMN_DETAIL,
    LAC_COLUMN_ARGS,
    LAC_COLUMN_NUMBERS, /* the argument numbers of the chunk, in order, by template */
    LAC_COLUMN_COUNT_
};
#define LAC_COLUMNS_TILE                                                                           \
    ((1u << LAC_COLUMN_START) | (1u << LAC_COLUMN_DUR) | (1u << LAC_COLUMN_NAME) |                 \
     (1u << LAC_COLUMN_LANE) | (1u << LAC_COLUMN_KIND))
#define LAC_COLUMNS_ALL ((1u << LAC_COLUMN_COUNT_) - 1u)

/** Scratch memory and compression contexts, reused from chunk to chunk. One per thread. */
struct lac_chunk_codec;
LAC_MUST_USE enum lac_status lac_chunk_codec_create(struct lac_chunk_codec **ret_codec);
void lac_chunk_codec_destroy(struct lac_chunk_codec *codec);

/**
 * Encode slices [first, first + count) of a finished model, all of one track, count <=
 * LAC_CHUNK_SLICES.
 *
 * @param ret_bytes borrowed from the codec: valid until its next call
 * @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_LIMIT when the slices hold more than
 *         LAC_CHUNK_NUMBERS_MAX argument numbers: encode fewer of them
 */
LAC_MUST_USE enum lac_status lac_chunk_encode(struct lac_chunk_codec *codec,
                                              const struct lac_model *model, uint64_t first,
                                              uint32_t count, const uint8_t **ret_bytes,
                                              size_t *ret_size_bytes);

/**
 * Decode the columns in `columns` of a chunk of `count` slices whose first slice has id `first`
 * into the given arrays (struct lac_slices pointers that point at entry `first` of the caller's
 * columns; those of columns that are not requested may be NULL). With LAC_COLUMN_NUMBERS, numbers
 * are appended at *numbers (grown by realloc) and arg_num is filled.
 *
 * Untrusted bytes are safe: string ids >= string_count and detail rows are checked by the caller.
 * @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_NOMEM
 */
struct lac_chunk_out {
    struct lac_slices at;              /**< where to; `count` ignored */
    const struct lac_strings *strings; /**< needed for LAC_COLUMN_NUMBERS */
    int64_t **numbers;
    uint64_t *number_count;
    uint64_t *number_capacity;
};
LAC_MUST_USE enum lac_status lac_chunk_decode(struct lac_chunk_codec *codec, const uint8_t *bytes,
                                              size_t size_bytes, uint32_t count, uint64_t first,
                                              unsigned columns, const struct lac_chunk_out *out,
                                              struct lac_error *reterr);

#endif
