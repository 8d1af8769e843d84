#ifndef LAC_ANALYSIS_MODEL_SETTING_ROWS_H
#define LAC_ANALYSIS_MODEL_SETTING_ROWS_H

/*
 * What a recorder saw of the job's settings and of its host, as typed rows. There are two roots,
 * the objects "settings" and "host"; each is followed by its members in the order in which they
 * were recorded, depth first. Text is UTF-8 without NUL.
 *
 * Importers fill the rows (analysis/import/text/settings_text.h), the store keeps and reads them;
 * nobody reads the JSON text again.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Values are stored in trace files: never renumber. */
enum lac_setting_type {
    LAC_SETTING_NULL = 0,
    LAC_SETTING_FALSE = 1,
    LAC_SETTING_TRUE = 2,
    LAC_SETTING_INTEGER = 3, /**< its value is the number as written, as of a real one */
    LAC_SETTING_REAL = 4,
    LAC_SETTING_TEXT = 5,
    LAC_SETTING_LIST = 6,   /**< its items are rows without a name */
    LAC_SETTING_OBJECT = 7, /**< its members are rows of different names */
    LAC_SETTING_TYPE_COUNT_
};

/** What one trace may have. */
enum {
    LAC_SETTINGS_MAX = 4096,
    LAC_SETTINGS_DEPTH_MAX = 16,         /**< roots are at depth 0 */
    LAC_SETTINGS_BYTES_MAX = 1024 * 1024 /**< all names and values */
};

struct lac_setting {
    uint32_t parent; /**< row; UINT32_MAX of a root */
    uint32_t end;    /**< the first row that is no member of it, nor of its members */
    uint32_t name;   /**< where in `texts`; "" of an item of a list */
    uint32_t value;  /**< where in `texts`; "" unless it is a number or a text */
    uint8_t type;    /**< enum lac_setting_type */
};

/** Zeroed: none recorded. */
struct lac_setting_rows {
    struct lac_setting *at;
    uint64_t count, capacity;
    char *texts;
    uint64_t text_bytes, text_capacity;
};

static inline const char *lac_settings_name(const struct lac_setting_rows *rows, uint64_t row)
{
    return rows->texts + rows->at[row].name;
}

static inline const char *lac_settings_value(const struct lac_setting_rows *rows, uint64_t row)
{
    return rows->texts + rows->at[row].value;
}

/**
 * Append a row: a root, or a member of the last row or of one that the last row is inside.
 *
 * @param parent UINT32_MAX for a root, which is an object @param name NULL is "" @param value too
 * @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT (too many, too deep, too long), LAC_ERR_MISUSE (not
 *         a row that can have members, a name that an object has already, a value that is not of
 *         the type)
 * Cost: O(members of the parent)
 */
LAC_MUST_USE enum lac_status lac_settings_add(struct lac_setting_rows *rows, uint32_t parent,
                                              enum lac_setting_type type, const char *name,
                                              const char *value);

/** Give a row that is a text another one. @return LAC_OK, LAC_ERR_NOMEM, LAC_ERR_LIMIT, or
 *  LAC_ERR_MISUSE (no such row, or no text) */
LAC_MUST_USE enum lac_status lac_settings_change(struct lac_setting_rows *rows, uint64_t row,
                                                 const char *value);

/** The member of `parent` with that name, UINT32_MAX when there is none; of roots where `parent` is
 *  UINT32_MAX. O(members of the parent). */
uint32_t lac_settings_find(const struct lac_setting_rows *rows, uint32_t parent, const char *name);

void lac_settings_done(struct lac_setting_rows *rows);

#endif
