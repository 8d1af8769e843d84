#ifndef LAC_COLLECTOR_PUSH_PUSH_PARTS_H
#define LAC_COLLECTOR_PUSH_PUSH_PARTS_H

/*
 * What is new in a recording's folder, as parts of a bundle (collector/FORMAT.md). Another thread
 * may write to the folder meanwhile:
 *
 *   event and GPU segments  once they are full; until then when there is more in them
 *   samples                 once, when the next segment is begun
 *   names                   when there are more of them, and all of them at the end
 *   headers                 at first sight, and at the end
 *   other files             at the end
 *
 * What is seen first when nobody writes any more is given as it is, file by file in the order of
 * their names: the same folder gives the same bundle.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_push_parts;

/** Bytes of a bundle that grow. */
struct lac_push_bytes {
    uint8_t *bytes;
    size_t size_bytes;
    size_t capacity_bytes;
};

/** Room for `more_bytes` behind what is there. @return false: out of memory */
bool lac_push_bytes_reserve(struct lac_push_bytes *bytes, size_t more_bytes);

/** @param folder borrowed @return NULL: out of memory */
struct lac_push_parts *lac_push_parts_create(const char *folder);
/** NULL is allowed. */
void lac_push_parts_destroy(struct lac_push_parts *parts);

/** From the beginning again. */
void lac_push_parts_restart(struct lac_push_parts *parts);

/**
 * Append what is new to `out`, until that has `enough_bytes` or more.
 *
 * @param is_final    nobody writes to the folder any more
 * @param ret_is_all  nothing new is left
 * @return false: a file cannot be read, or out of memory
 */
bool lac_push_parts_take(struct lac_push_parts *parts, size_t enough_bytes, bool is_final,
                         struct lac_push_bytes *out, bool *ret_is_all);

#endif
