#ifndef LAC_SERVER_INGEST_UPLOAD_METADATA_H
#define LAC_SERVER_INGEST_UPLOAD_METADATA_H

/* The metadata of a resumable upload: "key base64, key base64, ..."
 * (tus 1.0.0, Upload-Metadata). */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LAC_METADATA_BYTES_MAX = 4096, /**< of the whole text */
    LAC_METADATA_VALUE_MAX = 512,  /**< of a decoded value */
};

/** What is understood of it. Values are valid UTF-8 without control characters; "" when absent. */
struct lac_upload_metadata {
    char name[LAC_METADATA_VALUE_MAX + 1]; /**< else the file's name without folder and endings */
    char project[LAC_METADATA_VALUE_MAX + 1];
    char run[LAC_METADATA_VALUE_MAX + 1];
    bool reuse_existing; /**< key reuse, value 1 */
    bool has_clock;      /**< keys clock_offset_ns and clock_error_ns */
    int64_t clock_offset_ns;
    int64_t clock_error_ns;
};

/**
 * Check and decode. Keys that are not understood are checked too, and passed over.
 *
 * @param text may be "" or NULL: nothing given
 * @return LAC_OK; LAC_ERR_MISUSE (malformed, a key twice, no UTF-8), LAC_ERR_LIMIT (too long)
 */
LAC_MUST_USE enum lac_status lac_upload_metadata_parse(const char *text,
                                                       struct lac_upload_metadata *ret_metadata,
                                                       struct lac_error *reterr);

#endif
