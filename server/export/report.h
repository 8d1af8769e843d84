#ifndef LAC_SERVER_EXPORT_REPORT_H
#define LAC_SERVER_EXPORT_REPORT_H

/*
 * The report to hand on: one file with the verdict, every finding in full, evidence as pictures,
 * what was checked, settings and how it was measured. HTML is self-contained, has no scripts, opens
 * from disk and prints. Same trace, same bytes.
 */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"

/** What a report is made of. Borrowed. */
struct lac_report_source {
    /** Whole, with the derived tracks (lac_diagnose_add_tracks); or a head, with all that follows */
    const struct lac_model *model;
    const struct lac_analysis *analysis; /**< gaps are not needed */
    struct lac_redactor *redactor;
    /** With the slices of a view at least, and the tracks of the head; NULL: of the model */
    const struct lac_model *views[LAC_VIEW_COUNT];
    const struct lac_flame *flame; /**< by lac_report_flame_options(); NULL: of the model */
};

/** Append the report. Failures stick in the buffer. Cost: O(slices), twice. */
void lac_report_html(struct lac_buffer *out, const struct lac_report_source *source);
void lac_report_markdown(struct lac_buffer *out, const struct lac_report_source *source);

#endif
