#ifndef LAC_SERVER_REPORTS_DRAFT_H
#define LAC_SERVER_REPORTS_DRAFT_H

/* The first text of a report: what the analysis says, with the parts that show it. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/store/bookmarks.h"
#include "server/store/store.h"

/** Of one trace: verdict, first findings, a window around the evidence, where the time goes. */
void lac_draft_trace(struct lac_buffer *out, const char *trace, const struct lac_model *model,
                     const struct lac_analysis *analysis);

/** What one of its bookmarks says, and the window around it. @param model for its duration: one that
 *  begins after it adds nothing */
void lac_draft_bookmark(struct lac_buffer *out, const char *trace, const struct lac_model *model,
                        const struct lac_bookmark *bookmark);

/** Of two, before and after. */
void lac_draft_compare(struct lac_buffer *out, const char *const traces[2],
                       const struct lac_compare_side sides[2]);

/** Of several, in their order: a ladder of changes. */
void lac_draft_series(struct lac_buffer *out, const struct lac_trace_row *rows, unsigned count);

#endif
