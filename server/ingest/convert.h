#ifndef LAC_SERVER_INGEST_CONVERT_H
#define LAC_SERVER_INGEST_CONVERT_H

/*
 * A file of any known format -> staged trace files: import, diagnose, write. What `lacuna import`
 * does in its own process and the server in a limited child.
 */

#include "analysis/crew/crew.h"
#include "analysis/diagnose/names/names.h"
#include "analysis/import/import.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>

/** Threads beside the one that imports; there is not enough to divide for more. */
enum { LAC_CONVERT_HELPERS = 3 };

struct lac_convert_options {
    const char *input_path;
    const char *output_dir; /**< existing; gets trace-0.db, trace-1.db, ...; "." is taken as such */
    const char *name;       /**< of the trace; NULL: from the path */
    struct lac_import_limits limits;
    const struct lac_names *names; /**< rows that come before the table's; may be NULL */
    struct lac_crew *crew;         /**< helps; may be NULL */
    lac_import_progress progress;  /**< may be NULL */
    void *progress_context;
};

struct lac_convert_result {
    uint32_t trace_count;
    uint64_t event_count;
    uint64_t slice_count;
};

/**
 * What an import does once it has the model: diagnose it, add the derived tracks, write the trace
 * file with all that is kept beside it.
 *
 * @param names rows that come before the table's; may be NULL
 * @param crew  helps; may be NULL. The file is the same, byte for byte.
 * @return LAC_OK, or what lac_diagnose() and lac_trace_write() return
 */
LAC_MUST_USE enum lac_status lac_convert_model(struct lac_model *model,
                                               const struct lac_names *names, const char *path,
                                               struct lac_crew *crew, struct lac_error *reterr);

/**
 * Convert. Each trace of a tar becomes a file of its own; one in memory at a time.
 *
 * @return LAC_OK with at least one trace; what lac_import_file() and lac_trace_write() return;
 *         LAC_ERR_CORRUPT when the file holds no trace. After a failure some files may be there.
 */
LAC_MUST_USE enum lac_status lac_convert(const struct lac_convert_options *options,
                                         struct lac_convert_result *ret_result,
                                         struct lac_error *reterr);

#endif
