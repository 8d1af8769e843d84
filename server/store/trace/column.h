#ifndef LAC_SERVER_STORE_TRACE_COLUMN_H
#define LAC_SERVER_STORE_TRACE_COLUMN_H

/*
 * Small tables as compressed columns of int64 ("Column block" in FORMAT.md): detail tables, flows,
 * gaps and counter samples. Slices have a codec of their own, analysis/model/chunk.h.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_COLUMN_BLOCK_ROWS = 65536, LAC_COLUMN_BLOCK_COLUMNS = 16 };

/** A growing byte buffer; zero-initialize, free with lac_bytes_done(). */
struct lac_bytes {
    uint8_t *data;
    size_t size_bytes;
    size_t capacity_bytes;
};

LAC_MUST_USE enum lac_status lac_bytes_append(struct lac_bytes *bytes, const void *data,
                                              size_t size_bytes);
/** Make room for `size_bytes` more. */
LAC_MUST_USE enum lac_status lac_bytes_reserve(struct lac_bytes *bytes, size_t size_bytes);
/** Append an unsigned number as LEB128. */
LAC_MUST_USE enum lac_status lac_bytes_append_leb(struct lac_bytes *bytes, uint64_t value);
void lac_bytes_done(struct lac_bytes *bytes);

/** Read a LEB128 number at *position. @return false at the end or when longer than 64 bits */
LAC_MUST_USE bool lac_leb_read(const uint8_t *bytes, size_t size_bytes, size_t *position,
                               uint64_t *ret_value);

/** zstd a buffer, replacing the contents of `out`. */
LAC_MUST_USE enum lac_status lac_zstd_pack(const void *data, size_t size_bytes, int level,
                                           struct lac_bytes *out);

/**
 * The inverse, for untrusted bytes.
 *
 * @param raw_size_bytes the size it must have
 * @param ret_data       the caller frees; one byte longer and NUL-terminated
 * @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_zstd_unpack(const void *data, size_t size_bytes,
                                             uint64_t raw_size_bytes, uint8_t **ret_data);

/** Size of the contents that a zstd frame says it has. @return LAC_OK or LAC_ERR_CORRUPT */
LAC_MUST_USE enum lac_status lac_zstd_size(const void *data, size_t size_bytes,
                                           uint64_t *ret_raw_size_bytes);

/**
 * Encode `columns[0..column_count)` of `row_count` values each, appended to `out`.
 *
 * @param row_count    at most LAC_COLUMN_BLOCK_ROWS (any number for shares of gaps)
 * @param column_count at most LAC_COLUMN_BLOCK_COLUMNS
 */
LAC_MUST_USE enum lac_status lac_columns_encode(const int64_t *const *columns,
                                                uint32_t column_count, uint32_t row_count,
                                                struct lac_bytes *out);

/**
 * Decode a block that must have `column_count` columns of `row_count` rows.
 *
 * @param columns where to, row_count values each; NULL: passed over
 * @return LAC_OK, LAC_ERR_CORRUPT, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_columns_decode(const uint8_t *bytes, size_t size_bytes,
                                                uint32_t column_count, uint32_t row_count,
                                                int64_t *const *columns);

#endif
