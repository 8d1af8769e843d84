#ifndef LAC_SERVER_REPORTS_DOCUMENT_H
#define LAC_SERVER_REPORTS_DOCUMENT_H

/*
 * A report that people wrote, as a document: HTML for the page's frame, one self-contained HTML file
 * without scripts (also what a link shows), or Markdown with the evidence in words. Every text in it
 * passes the redactor.
 */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/reports/part.h"

#include <stddef.h>
#include <stdint.h>

/** Gives the evidence of a part. @param line as lac_part_line() writes it @param ret_why why there is
 *  none, for a reader @return a snapshot that the caller frees, or NULL */
typedef char *lac_document_evidence_fn(void *context, const struct lac_report_part *part,
                                       const char *line, char *ret_why, size_t why_capacity);

struct lac_document {
    const char *title, *markdown;
    int64_t version;         /**< 0: not saved yet */
    int64_t updated_unix_ms; /**< 0 unknown */
    const char *base_path;   /**< of the server, for links to its pages; NULL: none, it leaves */
    lac_document_evidence_fn *evidence;
    void *context;
    struct lac_redactor *redactor;
};

/** The style sheet of all of them. */
void lac_document_style(struct lac_buffer *out);

/** @param is_file with its style sheet and policy inside; else its style sheet is `report.css` of the
 *         base path @return LAC_OK, LAC_ERR_LIMIT (too much markup) */
LAC_MUST_USE enum lac_status lac_document_html(struct lac_buffer *out,
                                               const struct lac_document *document, bool is_file,
                                               struct lac_error *reterr);
void lac_document_markdown(struct lac_buffer *out, const struct lac_document *document);

/** A page around one snapshot: a view that somebody shares. */
void lac_document_of_view(struct lac_buffer *out, const char *title, const char *snapshot,
                          struct lac_redactor *redactor);

/** The lines of parts in a Markdown text, each once, as the document would show them. */
typedef void lac_document_part_fn(void *context, const struct lac_report_part *part,
                                  const char *line);
LAC_MUST_USE enum lac_status lac_document_parts(const char *markdown, lac_document_part_fn *visit,
                                                void *context, struct lac_error *reterr);

#endif
