#ifndef LAC_SERVER_EXPORT_REPORT_PRIVATE_H
#define LAC_SERVER_EXPORT_REPORT_PRIVATE_H

/* Private to the reports: text that is safe in HTML, the pictures, what both forms say alike. */

#include "server/export/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Append text as HTML: markup escaped; control, hidden and direction characters and what is no
 *  UTF-8 as U+FFFD. */
void lac_html_escape(struct lac_buffer *out, const char *text, size_t length);

/** The same after redaction, NUL-terminated. */
void lac_html_text(struct lac_buffer *out, const struct lac_report_source *source,
                   const char *text);

/** Without spaces at the end. */
void lac_report_trim(char *out, size_t capacity_bytes, const char *text);

/** Facts in words, both forms have them: title line, and rows of `key` and `value`. */
struct lac_report_row {
    char key[64];
    char value[192];
};
enum { LAC_REPORT_ROWS_MAX = 96 };

/** What each part needs for one step. @return rows filled: value is the bar's note */
struct lac_report_need {
    const char *name;
    int64_t ns;
    char note[80];
};
enum { LAC_REPORT_NEEDS_MAX = 5 };
uint32_t lac_report_needs(const struct lac_analysis *analysis, struct lac_report_need *needs);

/** Settings, then facts of host and devices, redacted. */
uint32_t lac_report_settings(const struct lac_report_source *source, struct lac_report_row *rows);
uint32_t lac_report_host(const struct lac_report_source *source, struct lac_report_row *rows);

/** How it was measured. */
uint32_t lac_report_method(const struct lac_report_source *source, struct lac_report_row *rows);

/** "28 steps, 750 ms a step (±1 %), 341 samples/s, batch 256". */
void lac_report_figures(const struct lac_analysis *analysis, char *out, size_t capacity_bytes);

/** Name of the trace, or what stands for it. Borrowed until the next redaction. */
const char *lac_report_name(const struct lac_report_source *source);

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

/** Words of the trade that this report uses: key and what it means. @return rows filled */
uint32_t lac_report_words(const struct lac_analysis *analysis, struct lac_report_row *rows);

/** Sizes of pictures in their own units; the page scales them. */
enum { LAC_SVG_WIDTH = 820, LAC_SVG_LABEL_WIDTH = 120, LAC_SVG_ROW_HEIGHT = 18 };

/** A text at a place, and one inside a box of that width: cut to fit, or left out where there is no
 *  room for a few letters. */
void lac_svg_text(struct lac_buffer *out, double x, double y, const char *class, const char *text);
void lac_svg_text_inside(struct lac_buffer *out, double x, double y, double width,
                         const char *class, const char *text);

/** A drawing, LAC_SVG_WIDTH wide: what an svg element has inside. */
struct lac_svg {
    struct lac_buffer body; /**< failures stick in it */
    double height;
    const char *label;
    char caption[256]; /**< what is seen */
};
void lac_svg_done(struct lac_svg *svg);

/** Append it as an element of a page. */
void lac_svg_put(struct lac_buffer *out, const struct lac_svg *svg);

/** A stretch of the timeline. @param model the slices of the view, with the tracks of the head.
 *  @return false: no device to draw */
bool lac_svg_window(struct lac_svg *svg, const struct lac_report_source *source,
                    const struct lac_view *view, const struct lac_model *model);

/** A flame graph. @return false: nothing to draw */
bool lac_svg_frames(struct lac_svg *svg, const struct lac_report_source *source,
                    const struct lac_flame *flame, enum lac_flame_metric metric);

/** The two of a report. @param index of the analysis' views */
bool lac_svg_timeline(struct lac_svg *svg, const struct lac_report_source *source, uint32_t index);
bool lac_svg_flame(struct lac_svg *svg, const struct lac_report_source *source);

/** Styles of drawings: colors in light and dark as properties of :root, then classes. */
void lac_svg_styles(struct lac_buffer *out);
/** Bars of the needs, the step's end marked. */
void lac_svg_needs(struct lac_buffer *out, const struct lac_report_source *source);

#endif
