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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** The style sheet of reports, without its tag. */
void lac_report_style(struct lac_buffer *out);

/** Append text as HTML: markup escaped; control, hidden and direction characters and what is no
 *  UTF-8 as U+FFFD. */
void lac_html_escape(struct lac_buffer *out, const char *text, size_t length);

/** Sizes of pictures in their own units; the page scales them. */
enum { LAC_SVG_WIDTH = 820, LAC_SVG_LABEL_WIDTH = 120, LAC_SVG_ROW_HEIGHT = 18 };

/** A text at a place, and one inside a box of that width: cut to fit, or left out where there is no
 *  room for a few letters. */
void lac_svg_text(struct lac_buffer *out, double x, double y, const char *css_class,
                  const char *text);
void lac_svg_text_inside(struct lac_buffer *out, double x, double y, double width,
                         const char *css_class, const char *text);

/** What both reports and others say of an analysis, in rows of `key` and `value`. */
struct lac_report_row {
    char key[64];
    char value[192];
};
enum { LAC_REPORT_ROWS_MAX = 96 };

/** Settings of the job, redacted. @return rows filled */
uint32_t lac_report_settings(const struct lac_report_source *source, struct lac_report_row *rows);

/** "28 steps, 750 ms a step (±1 %), 341 samples/s, batch 256". */
void lac_report_figures(const struct lac_analysis *analysis, char *out, size_t capacity_bytes);

/** What to change, in order, when there is more than one change or none of the findings is open.
 *  @return rows filled: key is the change, value the step and its gain */
uint32_t lac_report_plan(const struct lac_report_source *source, struct lac_report_row *rows);

/** Kernels of one short name together, by (-total, name). @return rows filled */
struct lac_report_kernel {
    char name[80];
    const char *family;
    uint64_t count;
    int64_t total_ns;
};
enum { LAC_REPORT_KERNELS_MAX = 10 };
uint32_t lac_report_kernels(const struct lac_report_source *source,
                            struct lac_report_kernel *kernels);

/** Evidence that says something which the one before it does not. */
bool lac_report_is_new_evidence(const struct lac_finding *finding, uint32_t index);

#endif
