#ifndef LAC_SERVER_BASE_CSV_H
#define LAC_SERVER_BASE_CSV_H

/*
 * Cells of CSV (RFC 4180). Text that a spreadsheet would take for a formula gets a quote (') before
 * it, as the page's copies do: names in traces are other people's.
 */

#include "server/base/buffer.h"

#include <stddef.h>

/** Append a text as one cell, quoted where it has to be. */
void lac_csv_text(struct lac_buffer *out, const char *text, size_t size_bytes);

#endif
