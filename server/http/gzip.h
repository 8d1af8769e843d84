#ifndef LAC_SERVER_HTTP_GZIP_H
#define LAC_SERVER_HTTP_GZIP_H

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stddef.h>

/** Bodies below this are sent as they are. */
enum { LAC_GZIP_BYTES_MIN = 1024 };

/**
 * Compress to the gzip format, for speed (about 400 MB/s).
 *
 * @param ret_out empty buffer of the caller
 * @return LAC_OK; LAC_ERR_LIMIT when it does not get smaller (send it plain); LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_gzip(const void *bytes, size_t size_bytes,
                                      struct lac_buffer *ret_out);

#endif
