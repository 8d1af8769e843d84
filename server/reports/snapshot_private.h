#ifndef LAC_SERVER_REPORTS_SNAPSHOT_PRIVATE_H
#define LAC_SERVER_REPORTS_SNAPSHOT_PRIVATE_H

/* Reading a snapshot, line by line; private to snapshot*.c. */

#include "server/export/redact.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_SNAPSHOT_FIELDS_MAX = 12, LAC_SNAPSHOT_LINE_BYTES = 8192 };

struct lac_snapshot_reader {
    const char *at;
    unsigned count;
    const char *field[LAC_SNAPSHOT_FIELDS_MAX]; /**< field[0] is the line's word */
    char line[LAC_SNAPSHOT_LINE_BYTES];
};

/** The next line. @return false at the end */
bool lac_snapshot_next(struct lac_snapshot_reader *reader);
bool lac_snapshot_is(const struct lac_snapshot_reader *reader, const char *word, unsigned fields);

/** A text after redaction; borrowed until the next. "" where there is none. */
const char *lac_snapshot_text(const struct lac_snapshot_reader *reader, unsigned index,
                              struct lac_redactor *redactor);
/** A number from 0 to 2^53, else 0. */
int64_t lac_snapshot_number(const struct lac_snapshot_reader *reader, unsigned index);

#endif
