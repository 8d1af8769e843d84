#ifndef LAC_SERVER_EXPORT_REPORT_PRIVATE_H
#define LAC_SERVER_EXPORT_REPORT_PRIVATE_H

/* Private to the reports: text that is safe in HTML, the pictures, what both forms say alike. */

#include "server/export/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** lac_html_escape() after redaction, NUL-terminated. */
void lac_html_text(struct lac_buffer *out, const struct lac_report_source *source,
                   const char *text);

/** Without spaces at the end. */
void lac_report_trim(char *out, size_t capacity_bytes, const char *text);

/** What each part needs for one step. @return rows filled: value is the bar's note */
struct lac_report_need {
    const char *name;
    int64_t ns;
    char note[80];
};
enum { LAC_REPORT_NEEDS_MAX = 5 };
uint32_t lac_report_needs(const struct lac_analysis *analysis, struct lac_report_need *needs);

/** Facts of host and devices, redacted. */
uint32_t lac_report_host(const struct lac_report_source *source, struct lac_report_row *rows);

/** How it was measured. */
uint32_t lac_report_method(const struct lac_report_source *source, struct lac_report_row *rows);

/** Name of the trace, or what stands for it. Borrowed until the next redaction. */
const char *lac_report_name(const struct lac_report_source *source);

/** Words of the trade that this report uses: key and what it means. @return rows filled */
uint32_t lac_report_words(const struct lac_analysis *analysis, struct lac_report_row *rows);

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
