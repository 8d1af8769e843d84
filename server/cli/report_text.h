#ifndef LAC_SERVER_CLI_REPORT_TEXT_H
#define LAC_SERVER_CLI_REPORT_TEXT_H

/*
 * The report that `lacuna analyze` prints: one page (text_page.h).
 */

#include "analysis/diagnose/result/analysis.h" // IWYU pragma: export
#include "server/json/analysis_json.h"         // IWYU pragma: export

#include <stdbool.h>
#include <stddef.h>

struct lac_report_options {
    bool is_ascii;  /**< the locale is not UTF-8 */
    bool has_color; /**< a terminal that shows it */
    int columns;    /**< of the page (text_page.h); 0: as usual */
    /** What several traces are: "rank", of one run; "run", recorded one after another; or "trace",
     *  where nothing says that they belong together. */
    const char *member;
};

/** The report of one trace. @param ret_text the caller frees it. @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_report_text(const struct lac_analyzed_trace *analyzed,
                                             const struct lac_report_options *options,
                                             char **ret_text);

/** The report of a run: who is late and why, then a line a rank, the one that differs first. */
LAC_MUST_USE enum lac_status lac_report_run_text(const struct lac_run *run,
                                                 const struct lac_report_options *options,
                                                 char **ret_text);

#endif
