#ifndef LAC_SERVER_BASE_BUFFER_H
#define LAC_SERVER_BASE_BUFFER_H

/*
 * Growing bytes with a limit. Appends never fail in the middle of a formatter: the first failure
 * (memory, limit) sticks in `status`, later appends do nothing, and the caller looks once, at the
 * end. Zeroed is valid and empty, with the default limit.
 */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/** Largest reply body that a handler may build. */
#define LAC_BUFFER_BYTES_MAX ((size_t)256 << 20)

struct lac_buffer {
    char *bytes; /**< NUL-terminated whenever not NULL; the NUL is not counted */
    size_t size_bytes;
    size_t capacity_bytes;
    size_t size_bytes_max;  /**< 0: LAC_BUFFER_BYTES_MAX */
    enum lac_status status; /**< LAC_OK, LAC_ERR_NOMEM or LAC_ERR_LIMIT */
};

/** Free the contents; the struct is empty and usable again. */
void lac_buffer_done(struct lac_buffer *buffer);

/** Append bytes. */
void lac_buffer_add(struct lac_buffer *buffer, const void *bytes, size_t size_bytes);

/** Append a NUL-terminated string. */
void lac_buffer_puts(struct lac_buffer *buffer, const char *text);

/** Append formatted text. */
void lac_buffer_printf(struct lac_buffer *buffer, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Append a decimal number; much cheaper than printf. */
void lac_buffer_int(struct lac_buffer *buffer, int64_t value);

#endif
