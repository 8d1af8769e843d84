#ifndef LAC_COLLECTOR_BASE_TERMINAL_TEXT_H
#define LAC_COLLECTOR_BASE_TERMINAL_TEXT_H

/*
 * Text from outside (names in traces, file names, words of a job) for a terminal, on one line:
 * control characters (C0, DEL, and C1 as bytes or as U+0080 to U+009F), marks that reorder text
 * (bidirectional ones) and line separators appear as \x1b or \u202e, bytes that are no UTF-8 as
 * \xff. Everything else, a backslash too, stays as it is.
 */

#include <stddef.h>
#include <stdio.h>

/**
 * Write `length` bytes of text to `out` with what steers a terminal escaped. What does not fit is
 * left out, never half of a character or of an escape. Always ends with a 0 when `capacity` > 0.
 *
 * @return bytes written without the 0. Four times `length` + 1 bytes always suffice.
 */
size_t lac_terminal_text(const char *text, size_t length, char *out, size_t capacity);

/** The same for a whole string. @return `out`, so that it can be an argument of printf */
const char *lac_terminal_string(const char *text, char *out, size_t capacity);

/** The same into a stream, of any length. */
void lac_terminal_print(FILE *stream, const char *text, size_t length);

#endif
