#ifndef LAC_COLLECTOR_HANG_HANG_PICKLE_H
#define LAC_COLLECTOR_HANG_HANG_PICKLE_H

/*
 * What a pickle of protocol 2 to 5 holds, where that is plain values: enough for what PyTorch's
 * flight recorder writes. Nothing is imported, called or built; a pickle that holds objects is
 * refused. (Files of people's own, of any protocol, are read by analysis/import/text/.)
 *
 * The bytes may be anything. A value may be in several places, and inside of itself: who walks must
 * bound the depth.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_hang_value_kind {
    LAC_HANG_VALUE_NONE,
    LAC_HANG_VALUE_BOOL, /**< in `integer` */
    LAC_HANG_VALUE_INTEGER,
    LAC_HANG_VALUE_REAL, /**< an integer that does not fit is one, too */
    LAC_HANG_VALUE_TEXT, /**< UTF-8 is not checked */
    LAC_HANG_VALUE_BYTES,
    LAC_HANG_VALUE_LIST,
    LAC_HANG_VALUE_TUPLE,
    LAC_HANG_VALUE_SET,
    LAC_HANG_VALUE_DICT,
};

struct lac_hang_value;

struct lac_hang_item {
    const struct lac_hang_value *key; /**< NULL: not in a dict */
    const struct lac_hang_value *value;
    const struct lac_hang_item *next;
};

struct lac_hang_value {
    enum lac_hang_value_kind kind;
    uint32_t item_count;
    union {
        int64_t integer;
        double real;
        struct {
            const char *at; /**< in the bytes that were read; no NUL at the end */
            size_t size;
        } text;
    };
    const struct lac_hang_item *items; /**< in order */
    struct lac_hang_item *last;
};

struct lac_hang_pickle;

/** Read one pickle.
 * @param bytes borrowed until lac_hang_pickle_free()
 * @param values_max most values and items, each about 50 bytes of memory
 * @param ret_why what is wrong; may be NULL
 * @param ret_at the byte after the pickle, or where it is wrong; may be NULL
 * @return NULL: the bytes are no whole pickle, hold more values, or memory is out */
struct lac_hang_pickle *lac_hang_pickle_read(const void *bytes, size_t size, uint32_t values_max,
                                             const char **ret_why, size_t *ret_at);
/** NULL is allowed. */
void lac_hang_pickle_free(struct lac_hang_pickle *pickle);

const struct lac_hang_value *lac_hang_pickle_root(const struct lac_hang_pickle *pickle);

/** What stands under a key of a dict; the last one, as in Python. @param dict may be NULL or anything @return NULL: there is none */
const struct lac_hang_value *lac_hang_value_get(const struct lac_hang_value *dict, const char *key);

/** An integer or boolean; `otherwise` for anything else, NULL included. */
int64_t lac_hang_value_integer(const struct lac_hang_value *value, int64_t otherwise);

/** Whether it is this text. @param value may be NULL */
bool lac_hang_value_is_text(const struct lac_hang_value *value, const char *text);

#endif
