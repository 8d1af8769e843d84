#ifndef LAC_COLLECTOR_BASE_PROGRESS_LINE_H
#define LAC_COLLECTOR_BASE_PROGRESS_LINE_H

/* The one line on stderr that is written over and over. For one thread. */

/** Begin it anew; what is printed next, without a newline, is the line. */
void lac_progress_line_begin(void);

/** Take it away, if there is one, before something else is printed. */
void lac_progress_line_clear(void);

#endif
