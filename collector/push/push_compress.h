#ifndef LAC_COLLECTOR_PUSH_PUSH_COMPRESS_H
#define LAC_COLLECTOR_PUSH_PUSH_COMPRESS_H

/* zstd by the library of the host, loaded when it is needed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_push_compress;

/** @return NULL: no libzstd of 1.4 or later here (or LACUNA_LIBZSTD names none) */
struct lac_push_compress *lac_push_compress_open(void);
/** NULL is allowed. */
void lac_push_compress_close(struct lac_push_compress *pack);

/**
 * Compress. What comes out depends on what went in alone, not on the sizes of the pieces.
 *
 * @param input   moved forward by what was taken
 * @param is_last no more comes behind this input; call until *ret_done
 * @return bytes written to `out`, or -1
 */
int64_t lac_push_compress_step(struct lac_push_compress *pack, const uint8_t **input,
                               size_t *input_bytes, bool is_last, void *out, size_t capacity,
                               bool *ret_done);

#endif
