#ifndef LAC_ANALYSIS_IMPORT_NSYS_NSYS_PAGES_H
#define LAC_ANALYSIS_IMPORT_NSYS_NSYS_PAGES_H

/*
 * The rows of a table from the pages of its B-tree, in the order of their row numbers: what SQLite
 * gives for "SELECT columns FROM table", without a step of its machine for each value. The pages are
 * as hostile as all of the file: each number is checked before it is used, and at most twice the
 * pages are read that the file has.
 *
 * For ordinary tables with row numbers in a file whose text is UTF-8. What SQLite would compute (a
 * column that stands for the row number, a default, a generated column, REAL affinity) it computes:
 * the caller does not ask for such columns here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lac_nsys_pages;

/** A value, where it lies. */
struct lac_nsys_value {
    const uint8_t *bytes; /**< big endian; valid until the next row */
    uint32_t type;        /**< SQLite's serial type: 0 NULL, 1 to 6 integers, 7 a real one, 8 and 9
                               0 and 1, from 12 on even a blob and odd a text of (type - 12) / 2 */
};

enum lac_nsys_page_end {
    LAC_NSYS_PAGE_ROW = 0,
    LAC_NSYS_PAGE_DONE,    /**< no more rows */
    LAC_NSYS_PAGE_DAMAGED, /**< what SQLite calls malformed */
    LAC_NSYS_PAGE_CLAIMS,  /**< more pages than the file has */
    LAC_NSYS_PAGE_LARGE,   /**< a value beyond the limit */
    LAC_NSYS_PAGE_READ,    /**< reading failed: errno */
    LAC_NSYS_PAGE_NOMEM
};

/**
 * @param fd      of the file, duplicated
 * @param root    page of the table
 * @param stored  by column: which field of a row it is, ascending or not; UINT16_MAX: always NULL
 * @param value_bytes_max of one value
 * @return NULL when SQLite has to read that table, or there is no memory
 * Cost: a page for each level of the tree.
 */
struct lac_nsys_pages *lac_nsys_pages_open(int fd, uint32_t root, const uint16_t *stored,
                                           uint32_t column_count, uint64_t value_bytes_max);

/** The next row, into `values`, which has room for `column_count`. */
enum lac_nsys_page_end lac_nsys_pages_next(struct lac_nsys_pages *pages,
                                           struct lac_nsys_value *values);

/** NULL is allowed. */
void lac_nsys_pages_close(struct lac_nsys_pages *pages);

/** Whether it is an integer, and which. */
static inline bool lac_nsys_value_integer(const struct lac_nsys_value *value, int64_t *ret_value)
{
    static const uint8_t SIZE[] = {0, 1, 2, 3, 4, 6, 8};
    if (value->type == 0 || value->type > 9 || value->type == 7) {
        return false;
    }
    if (value->type > 6) {
        *ret_value = (int64_t)value->type - 8;
        return true;
    }
    uint64_t bits = (value->bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (unsigned i = 0; i < SIZE[value->type]; i++) {
        bits = bits << 8 | value->bytes[i];
    }
    *ret_value = (int64_t)bits;
    return true;
}

/** Whether it is a number, whole or real, and which; a real one may be no finite one. */
static inline bool lac_nsys_value_real(const struct lac_nsys_value *value, double *ret_value)
{
    int64_t bits = 0;
    if (value->type != 7) {
        const bool is_integer = lac_nsys_value_integer(value, &bits);
        *ret_value = (double)bits;
        return is_integer;
    }
    const struct lac_nsys_value as_integer = {value->bytes, 6};
    (void)lac_nsys_value_integer(&as_integer, &bits);
    memcpy(ret_value, &bits, sizeof(bits));
    return true;
}

/** The bytes of a text (or of a blob), any content, not ended by a NUL; NULL: it is none. */
static inline const uint8_t *lac_nsys_value_bytes(const struct lac_nsys_value *value, bool is_text,
                                                  size_t *ret_size)
{
    if (value->type < 12 || (value->type & 1) != (is_text ? 1U : 0U)) {
        return NULL;
    }
    *ret_size = (value->type - 12) / 2;
    return value->bytes;
}

#endif
