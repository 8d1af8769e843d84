#ifndef LAC_ANALYSIS_IMPORT_SOURCE_IMPORT_OPTIONS_H
#define LAC_ANALYSIS_IMPORT_SOURCE_IMPORT_OPTIONS_H

/* What every importer is told: limits, whom to tell of progress, whom to give the models. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Limits; lac_import_limits_default() fills the defaults. */
struct lac_import_limits {
    uint64_t expanded_bytes_max;  /**< after decompression, 0 = no absolute limit */
    uint32_t expansion_ratio_max; /**< 200; checked once the output exceeds 16 MiB */
    uint64_t slice_count_max;     /**< 2^31 */
    uint32_t track_count_max;     /**< 1,000,000 */
    uint32_t depth_max;           /**< 64 nested brackets */
    uint32_t event_bytes_max;     /**< 4 MiB a JSON event */
    uint32_t name_bytes_max;      /**< 64 KiB a name */
    uint32_t member_count_max;    /**< 4096 members of a tar */
};

void lac_import_limits_default(struct lac_import_limits *limits);

/** Told now and then while reading; return false to stop (the import fails with LAC_ERR_IO
 * "canceled"). */
typedef bool (*lac_import_progress)(void *context, uint64_t input_bytes_read,
                                    uint64_t input_bytes_total, uint64_t event_count);

/** Given each model in turn (a tar of ranks has several). Takes ownership of `model`. */
typedef enum lac_status (*lac_import_sink)(void *context, struct lac_model *model,
                                           struct lac_error *reterr);

struct lac_crew;

struct lac_import_options {
    struct lac_import_limits limits;
    lac_import_progress progress; /**< may be NULL */
    void *progress_context;
    const char *name;          /**< trace name; NULL: from the path */
    bool force_scalar;         /**< tests: no SIMD */
    struct lac_crew *crew;     /**< helps to order what was read; may be NULL */
    const char *temporary_dir; /**< for spools inside archives; NULL: $TMPDIR, else /tmp */
};

/** Name of a trace from a path or member name: no folder, no endings (.json .gz .tar ...).
 *  Always valid UTF-8. */
void lac_import_name(const char *path, char *name, size_t capacity_bytes);

#endif
