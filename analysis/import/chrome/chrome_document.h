#ifndef LAC_ANALYSIS_IMPORT_CHROME_CHROME_DOCUMENT_H
#define LAC_ANALYSIS_IMPORT_CHROME_CHROME_DOCUMENT_H

/* The document while it is read: chrome.c reads the object around the events, chrome_array.c the
 * events. Private to those two. */

#include "analysis/import/chrome/chrome.h"

struct lac_chrome_document {
    struct lac_chrome chrome;
    struct lac_json_window window;
    char *metadata; /**< JSON object under construction, without its closing brace */
    uint64_t metadata_size, metadata_capacity;
    const struct lac_import_options *options;
    uint64_t resync_bytes;
    bool resynced;   /**< the window was moved to the next event after damage */
    bool has_events; /**< a traceEvents array, or the bare array, was seen */
    bool truncated;
};

/** Read more of the input, and tell how far it got. */
LAC_MUST_USE enum lac_status lac_document_more(struct lac_chrome_document *document);

/** Skip white space; *ret_byte is 0 at the end of the input. */
LAC_MUST_USE enum lac_status lac_document_next(struct lac_chrome_document *document,
                                               uint8_t *ret_byte);

bool lac_document_at_end(const struct lac_chrome_document *document);

/** Offset of the window's first byte in the expanded input. */
uint64_t lac_document_here(const struct lac_chrome_document *document);

enum lac_status lac_document_fail_depth(struct lac_chrome_document *document);

/** Count repairs in the import report. */
void lac_document_note_repairs(struct lac_chrome_document *document,
                               const struct lac_json_repairs *repairs);

/** Skip a value of any size, token by token. Brackets are matched. */
LAC_MUST_USE enum lac_status lac_document_skip(struct lac_chrome_document *document);

/** The array of events; the window is at its '['. */
LAC_MUST_USE enum lac_status lac_document_read_events(struct lac_chrome_document *document);

#endif
