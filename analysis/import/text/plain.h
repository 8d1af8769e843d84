#ifndef LAC_ANALYSIS_IMPORT_TEXT_PLAIN_H
#define LAC_ANALYSIS_IMPORT_TEXT_PLAIN_H

/*
 * Plain values out of a file that holds objects: pickle.h, marshal.h and json_plain.h make them.
 *
 * Nothing of the file is executed and no class is looked up: an object of a class that is not a
 * plain container stays a LAC_PLAIN_OBJECT with its name, arguments and state.
 *
 * Values may share others, and a hostile file makes lists that contain themselves: whoever walks
 * them goes to a fixed depth and counts its visits.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_plain_kind {
    LAC_PLAIN_NONE = 0,
    LAC_PLAIN_BOOL,   /**< integer is 0 or 1 */
    LAC_PLAIN_INT,    /**< what does not fit 64 bits is a REAL */
    LAC_PLAIN_REAL,   /**< may be infinite or no number */
    LAC_PLAIN_TEXT,   /**< text or bytes, count of them; not NUL-terminated, UTF-8 not checked */
    LAC_PLAIN_LIST,   /**< lists, tuples and sets */
    LAC_PLAIN_DICT,   /**< items are key, value, key, value; count is even */
    LAC_PLAIN_OBJECT, /**< item 0: "module name" as text, 1: arguments, 2: state; the latter may be
                           NONE */
};

struct lac_plain {
    enum lac_plain_kind kind;
    uint32_t count; /**< bytes of a text, items of a container */
    uint32_t capacity;
    union {
        int64_t integer;
        double real;
        const char *text;
        struct lac_plain **items;
    };
};

/** What reading may take. */
struct lac_plain_limits {
    uint64_t
        memory_bytes_max; /**< of the values, their texts not counted where they are borrowed */
    uint32_t depth_max;   /**< of nested brackets, where the format nests */
};

/** 1 GiB, 64 levels. */
void lac_plain_limits_default(struct lac_plain_limits *limits);

/** Owns values and what they hold. Zeroed, with limits, it is empty. */
struct lac_plain_heap {
    struct lac_plain_limits limits;
    struct lac_plain_block *blocks;
    struct lac_plain_copy *copies;
    uint64_t memory_bytes;
};

/** Free all values. A heap that is zeroed is allowed. */
void lac_plain_done(struct lac_plain_heap *heap);

/** A new value of that kind. @return NULL: out of memory, or over the limit, as `heap` can tell */
struct lac_plain *lac_plain_new(struct lac_plain_heap *heap, enum lac_plain_kind kind);

/** Append to a container. @return LAC_OK, LAC_ERR_NOMEM or LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_plain_append(struct lac_plain_heap *heap, struct lac_plain *list,
                                              struct lac_plain *item);

/** Room for `size_bytes` that lives as long as the heap. @return NULL as lac_plain_new() */
char *lac_plain_room(struct lac_plain_heap *heap, size_t size_bytes);

/** Why lac_plain_new() or lac_plain_room() gave nothing: fills `reterr`.
 *  @return LAC_ERR_LIMIT or LAC_ERR_NOMEM */
enum lac_status lac_plain_failed(const struct lac_plain_heap *heap, uint64_t offset_bytes,
                                 struct lac_error *reterr);

/* --- looking; NULL in, nothing out ------------------------------------------------------------ */

/** Keys of a dictionary that lac_plain_get() looks at: a record has fewer. */
enum { LAC_PLAIN_KEYS_MAX = 256 };

bool lac_plain_is(const struct lac_plain *value, enum lac_plain_kind kind);

/** Whether it is that text. */
bool lac_plain_equals(const struct lac_plain *value, const char *text);

/** Item of a list, or NULL. */
const struct lac_plain *lac_plain_at(const struct lac_plain *list, uint32_t index);

/** Value of the last of the equal keys among the first LAC_PLAIN_KEYS_MAX, or NULL; also of the
 *  state of an object, where that is a dictionary. */
const struct lac_plain *lac_plain_get(const struct lac_plain *dict, const char *key);

/** A whole number: INT, BOOL, or a REAL without a fraction that fits. */
bool lac_plain_integer(const struct lac_plain *value, int64_t *ret_integer);

/** A finite number. */
bool lac_plain_number(const struct lac_plain *value, double *ret_number);

#endif
