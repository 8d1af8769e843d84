#ifndef LAC_ANALYSIS_IMPORT_IMPORT_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_IMPORT_PRIVATE_H

/* What files of this folder share, and settings for tests in addition to the public options. */

#include "analysis/import/import.h"
#include "analysis/import/source/source.h"

struct lac_import_tuning {
    size_t window_bytes; /**< first size of the JSON window; 0: the usual */
    size_t feed_bytes;   /**< most bytes a read from memory gives; 0: no limit */
};

/** lac_import_bytes() in small steps, for tests and fuzzers. */
LAC_MUST_USE enum lac_status lac_import_bytes_tuned(const uint8_t *bytes, size_t size_bytes,
                                                    const struct lac_import_options *options,
                                                    const struct lac_import_tuning *tuning,
                                                    lac_import_sink sink, void *context,
                                                    struct lac_error *reterr);

#endif
