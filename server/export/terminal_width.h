#ifndef LAC_SERVER_EXPORT_TERMINAL_WIDTH_H
#define LAC_SERVER_EXPORT_TERMINAL_WIDTH_H

/* Texts for people in a terminal that is narrower than they are written for. */

/** Columns to write in: 80, or fewer (40 at least) where stdout is a narrower terminal, by COLUMNS or
 *  as it says itself. */
int lac_terminal_columns(void);

/** A text in lines of that width, broken at blanks, each after `indent` columns, the first of which
 *  has the label there; a label that is too wide for them has a line of its own. */
void lac_print_labeled(const char *label, int indent, const char *text);

/** A row of a list: one line, but in a narrow terminal as above. */
void lac_print_row(const char *label, int indent, const char *text);

/**
 * A text whose lines were broken for 80 columns: as it is where they fit, else its paragraphs are
 * broken anew. Lines that begin with a blank, and those of the first paragraph, which are commands,
 * stay apart from the others.
 */
void lac_print_text(const char *text);

#endif
