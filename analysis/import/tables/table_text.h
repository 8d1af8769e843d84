#ifndef LAC_ANALYSIS_IMPORT_TABLES_TABLE_TEXT_H
#define LAC_ANALYSIS_IMPORT_TABLES_TABLE_TEXT_H

/*
 * A text file line by line, a line field by field, a field as a number, a duration or a date.
 *
 * A line is bounded by event_bytes_max, its fields by LAC_TABLE_FIELDS_MAX; more is an error that
 * names the limit. Memory is that of the longest line.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_TABLE_FIELDS_MAX = 4096 };

/** A piece of a line; not terminated. */
struct lac_table_field {
    const char *text;
    size_t size;
};

/** The lines of a source. Zero it, then set the first three. */
struct lac_table_lines {
    struct lac_source *source;
    const struct lac_import_options *options;
    struct lac_error *reterr;
    char *buffer;
    size_t capacity;
    size_t begin; /**< of what was read and not given out */
    size_t end;
    uint64_t offset_bytes; /**< of the line given out last, in the expanded input */
    uint64_t next_bytes;   /**< of the one after it */
    uint64_t row_count;    /**< rows counted by whoever reads them: for progress */
    bool is_at_end;
};

/**
 * The next line, without its end; may be changed in place, valid until the next call.
 *
 * @param ret_line NULL at the end of the input
 * @return LAC_OK, LAC_ERR_LIMIT, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_table_line(struct lac_table_lines *lines, char **ret_line,
                                            size_t *ret_size);
void lac_table_lines_done(struct lac_table_lines *lines);

/** How a line is split. */
enum lac_table_split {
    LAC_TABLE_CSV,    /**< at commas; a field may stand in double quotes, a quote in it doubled */
    LAC_TABLE_SPACED, /**< at two spaces or more: columns made for the eye */
    LAC_TABLE_WORDS,  /**< at any space or tab */
};

/**
 * Split a line in place: quotes are undone, spaces around a field left out. Of LAC_TABLE_SPACED
 * and LAC_TABLE_WORDS the last of `most` fields takes the rest of the line.
 *
 * @return number of fields, 0 for an empty line; SIZE_MAX: more than `most`, or a quote is open
 */
size_t lac_table_split(char *line, size_t size, enum lac_table_split how,
                       struct lac_table_field *fields, size_t most);

/** Whether the field is that text. */
bool lac_field_is(struct lac_table_field field, const char *text);
bool lac_field_begins(struct lac_table_field field, const char *text);
/** Whether `text` stands somewhere in the field. */
bool lac_field_has(struct lac_table_field field, const char *text);
struct lac_table_field lac_field_trimmed(struct lac_table_field field);
/** The field as a terminated text of at most capacity - 1 bytes, cut between characters. */
void lac_field_copy(struct lac_table_field field, char *out, size_t capacity);

/**
 * A number at the beginning of the field and what follows it, its unit ("12.5us", "30 %").
 * Thousands may be parted by commas. @return false where no number stands there
 */
bool lac_field_number(struct lac_table_field field, struct lac_table_field *ret_number,
                      struct lac_table_field *ret_unit);
/** A whole number and nothing else; "12.0" and "12.5e1" are whole, "12.5" is not. */
bool lac_field_integer(struct lac_table_field field, int64_t *ret_value);
/** A number as a double; its unit is left out. Finite. */
bool lac_field_real(struct lac_table_field field, double *ret_value);

/** What a unit says: powers of ten to nanoseconds. False: not a unit of time. */
bool lac_unit_of_time(struct lac_table_field unit, int *ret_power);
/** What a tool means by KB, MB and GB. KiB is 1024 in any case. */
enum lac_size_base { LAC_SIZE_DECIMAL, LAC_SIZE_BINARY };

/** Bytes of one of the unit ("KB", "KiB", "MB", ...); 0: not a unit of size. */
double lac_unit_of_size(struct lac_table_field unit, enum lac_size_base base);

/** A duration or time in ns; `unit` counts where the field brings none. */
bool lac_field_ns(struct lac_table_field field, struct lac_table_field unit, int64_t *ret_ns);
/** A size in bytes; the same rule. */
bool lac_field_bytes(struct lac_table_field field, struct lac_table_field unit,
                     enum lac_size_base base, int64_t *ret_bytes);

/** What a date says of its zone. */
enum lac_date_zone { LAC_DATE_LOCAL, LAC_DATE_UTC };

/**
 * A date and time ("2026/04/25 16:06:06.780", "2025-09-08T17:26:50+08:00", "Mon Sep 08 17:26:50
 * 2025", "20250908 17:26:50", or seconds since 1970) in ns since 1970, read as UTC where it
 * names no zone.
 *
 * @param ret_zone whether it named its zone; seconds since 1970 do
 */
bool lac_field_date(struct lac_table_field field, int64_t *ret_ns, enum lac_date_zone *ret_zone);

#endif
