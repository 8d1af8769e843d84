#ifndef LAC_SERVER_JSON_ANALYSIS_JSON_H
#define LAC_SERVER_JSON_ANALYSIS_JSON_H

/*
 * An analysis as JSON text: `lacuna.analysis/1`, `lacuna.run/1` for several, and the summary that a
 * row of the list of traces carries. Numbers that are not known are null; percentages have four
 * decimals. Same analysis, same bytes.
 */

#include "analysis/diagnose/ranks/ranks.h"     // IWYU pragma: export
#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export
#include "analysis/model/model.h"              // IWYU pragma: export
#include "analysis/model/status.h"             // IWYU pragma: export

#include <stddef.h> // IWYU pragma: export
#include <stdint.h> // IWYU pragma: export

/** A trace with its analysis. Both borrowed. */
struct lac_analyzed_trace {
    const struct lac_model *model;
    const struct lac_analysis *analysis;
};

/**
 * `lacuna.analysis/1`.
 *
 * @param is_pretty   indented for people, else on one line
 * @param ret_text    NUL-terminated, the caller frees it
 * @param ret_length  without the NUL; may be NULL
 * @return LAC_OK, LAC_ERR_NOMEM, or LAC_ERR_LIMIT above 2 GiB
 */
LAC_MUST_USE enum lac_status lac_analysis_json(const struct lac_analyzed_trace *analyzed,
                                               bool is_pretty, char **ret_text, size_t *ret_length);

/** A rank of a run, in the order of its ranks. Borrowed. */
struct lac_run_member {
    const char *trace_id; /**< NULL: none to tell */
    const char *document; /**< its `lacuna.analysis/1`; NULL: left out */
};

struct lac_run_json_options {
    bool is_pretty;
    bool is_brief;                             /**< without the analyses of the ranks */
    const struct lac_what_if_changes *changes; /**< NULL: nothing was asked */
    const struct lac_run_what_if *what_if;     /**< the answer */
};

/** `lacuna.run/1`; `members` has as many entries as the run has ranks. As lac_analysis_json(). */
LAC_MUST_USE enum lac_status lac_run_json(const struct lac_run *run,
                                          const struct lac_run_member *members,
                                          const struct lac_run_json_options *options,
                                          char **ret_text, size_t *ret_length);

#endif
