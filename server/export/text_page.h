#ifndef LAC_SERVER_EXPORT_TEXT_PAGE_H
#define LAC_SERVER_EXPORT_TEXT_PAGE_H

/*
 * What the commands print for people: a page of at most 32 lines of at most 80 columns; of a narrower
 * terminal as many more lines as it takes. Whatever
 * came from a trace is printed without control, hidden or direction characters.
 */

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAC_TEXT_LINES = 32, LAC_TEXT_COLUMNS = 80, LAC_TEXT_COLUMNS_MIN = 40 };

/** Emphasis of a line, on terminals. */
enum lac_text_style { LAC_TEXT_PLAIN, LAC_TEXT_BOLD, LAC_TEXT_DIM };

struct lac_text_page {
    struct lac_buffer *out; /**< lines are appended; failures stick there */
    int columns;            /**< LAC_TEXT_COLUMNS_MIN to LAC_TEXT_COLUMNS, which 0 means */
    int line_count;         /**< beyond lac_text_lines() nothing is printed */
    bool is_ascii;          /**< the locale is not UTF-8 */
    bool has_color;         /**< a terminal that shows it */
};

/** Columns and lines of a page. */
int lac_text_width(const struct lac_text_page *page);
int lac_text_lines(const struct lac_text_page *page);

/** One line without blanks at its end, cut at the last column; on a narrow page it goes on in the
 *  next line. */
void lac_text_line(struct lac_text_page *page, enum lac_text_style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** A text over at most `lines_max` lines (on a narrow page more, for as much text), broken at blanks, each after `indent` columns: the first
 * has the label there. What does not fit ends in " ...". */
void lac_text_paragraph(struct lac_text_page *page, enum lac_text_style style, const char *label,
                        const char *text, int indent, int lines_max);

/** The text with its first letter as a capital and a full stop at the end, cut at the capacity. */
void lac_text_sentence(char *out, size_t capacity_bytes, const char *text);

/** How many columns a text takes: one a character. */
int lac_text_columns(const char *text);

#endif
