#ifndef LAC_ANALYSIS_IMPORT_IMPORT_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_IMPORT_PRIVATE_H

/* What files of this folder share, and what tests may turn beside the public options. */

#include "analysis/import/import.h"
#include "analysis/import/source.h"

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

/**
 * Import a Chrome trace, packed or not, that is a part of something else: no archive or recording
 * inside it is looked into, and it counts against the budget of `source`.
 *
 * @return as lac_import_file()
 */
LAC_MUST_USE enum lac_status lac_import_part(struct lac_source *source,
                                             const struct lac_import_options *options,
                                             lac_import_sink sink, void *context,
                                             struct lac_error *reterr);

/** Name of a trace from a path or member name: no folder, no endings (.json .gz .tar ...).
 *  Always valid UTF-8. */
void lac_import_name(const char *path, char *name, size_t capacity_bytes);

#endif
