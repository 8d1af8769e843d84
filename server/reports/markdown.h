#ifndef LAC_SERVER_REPORTS_MARKDOWN_H
#define LAC_SERVER_REPORTS_MARKDOWN_H

/*
 * Markdown (CommonMark with tables and strikethrough, read by cmark-gfm) as HTML that is safe to
 * show to anybody. HTML in the text is shown as text; links lead to http, https, mailto or a place
 * in this document, else they are text; pictures are links to them, nothing is fetched. All text
 * passes lac_html_escape().
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stddef.h>

/** Called for each line of a fenced block `lacuna`: appends what stands for that part. */
typedef void lac_markdown_part_fn(void *context, struct lac_buffer *out, const char *line);

/**
 * Append the text as HTML. Without `part` such blocks are code.
 *
 * @param out  NULL: only call `part`
 * @return LAC_OK; LAC_ERR_LIMIT when the markup needs more than 64 MiB of memory. Failures of `out`
 *         stick there.
 * Cost: about 20 ns a byte; some nestings of brackets cost its square.
 */
LAC_MUST_USE enum lac_status lac_markdown_html(struct lac_buffer *out, const char *text,
                                               size_t size_bytes, lac_markdown_part_fn *part,
                                               void *context, struct lac_error *reterr);

#endif
