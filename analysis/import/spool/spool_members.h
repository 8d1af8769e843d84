#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_MEMBERS_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_MEMBERS_H

/*
 * Arguments made of payloads, written piece by piece: text in the form of a template, and its
 * numbers. What would not fit any more is cut between values. Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_MEMBERS_TEXT_MAX = 8192, LAC_MEMBERS_NUMBERS_MAX = 256 };

/** Arguments made of one or more payloads: `"name":value,...` as a template, and its numbers. */
struct lac_spool_members {
    char *text;
    size_t length;
    int64_t *numbers;
    uint32_t number_count;
    uint32_t color; /**< of the event, where has_color */
    uint32_t category;
    bool has_color;
    bool has_category;
};

/** Free it and what it owns. NULL is allowed. */
void lac_spool_members_destroy(struct lac_spool_members *members);

struct lac_members_writer {
    struct lac_strings *strings;
    char text[LAC_MEMBERS_TEXT_MAX];
    size_t used;
    int64_t numbers[LAC_MEMBERS_NUMBERS_MAX];
    uint32_t number_count;
    enum lac_status status;
};

/** Go on from `members`, or begin when it is NULL. */
void lac_members_begin(struct lac_members_writer *writer, struct lac_strings *strings,
                       const struct lac_spool_members *members);
/** What was written, as *members again. */
LAC_MUST_USE enum lac_status lac_members_store(const struct lac_members_writer *writer,
                                               struct lac_spool_members **members);

/** Whether `size_bytes` more of text, and a number, have room. */
bool lac_members_room(const struct lac_members_writer *writer, size_t size_bytes);

void lac_members_char(struct lac_members_writer *writer, char c);
/** A JSON string of UTF-8 text. */
void lac_members_quoted(struct lac_members_writer *writer, const char *text);
/** The same of `count` units of 1 (any encoding), 2 (UTF-16) or 4 (UTF-32) bytes, or
 *  to their zero. */
void lac_members_text(struct lac_members_writer *writer, const uint8_t *units, uint32_t unit_bytes,
                      uint64_t count);
/** Bytes in hexadecimal digits. */
void lac_members_hex(struct lac_members_writer *writer, const uint8_t *bytes, uint64_t count);
/** One value of a type that has a size (enum lac_member_type); `bytes` holds all of it. */
void lac_members_value(struct lac_members_writer *writer, uint64_t type, const uint8_t *bytes);
/** An integer: a number, or its digits as text where int64_t does not reach. */
void lac_members_integer(struct lac_members_writer *writer, uint64_t value, bool is_signed);

#endif
