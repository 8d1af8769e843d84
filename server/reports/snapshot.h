#ifndef LAC_SERVER_REPORTS_SNAPSHOT_H
#define LAC_SERVER_REPORTS_SNAPSHOT_H

/*
 * The evidence of a part as it was when somebody saved it: a small document of lines, that outlives
 * its trace. What may be left out of a link is marked in it, so that one snapshot serves all.
 *
 *   word TAB field TAB field ...         a TAB, line end or backslash in a field is \t \n \\
 *
 * host N | title T | text T | item T | fact LABEL T | code LABEL T | columns T... | row T...
 * picture SPAN LABELWIDTH NAME, then any of: track T LANES | box LANE START DUR CLASS T
 * bar T VALUE SHOWN (a chart of them: all of one scale)
 *
 * A text T begins with what it is: `=` plain, `~` a name that a person gave, `$` a command line.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"

#include <stddef.h>
#include <stdint.h>

enum { LAC_SNAPSHOT_BYTES_MAX = 256 << 10, LAC_SNAPSHOT_BOXES_MAX = 1500 };

/**
 * Append a line. @param format a letter a field: `w` a word of ours, `i` an int64_t, `t` a plain
 * text, `g` a name that a person gave, `a` a command line; texts are cut at 4000 bytes. Failures
 * stick in the buffer, whose limit the caller sets.
 */
void lac_snapshot_line(struct lac_buffer *out, const char *word, const char *format, ...);

/** Names of the hosts in it, '\n' after each, appended. */
void lac_snapshot_hosts(const char *snapshot, struct lac_buffer *out);

/** Append it as HTML, as Markdown. A line that is none of ours is left out. */
void lac_snapshot_html(struct lac_buffer *out, const char *snapshot, struct lac_redactor *redactor);
void lac_snapshot_markdown(struct lac_buffer *out, const char *snapshot,
                           struct lac_redactor *redactor);

#endif
