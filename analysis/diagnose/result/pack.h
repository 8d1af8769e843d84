#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_PACK_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_PACK_H

/*
 * Structures as bytes, written and read by the same functions: each says a field with its bounds
 * once, and what is read is refused where it is out of them, as bytes may be anybody's.
 *
 * A whole number is zigzag LEB128, a real one its 8 bytes little endian, a text its length as a
 * number, its bytes and a NUL. After the first failure nothing happens any more and what is read
 * is 0 or "".
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_pack {
    bool is_reading;
    uint8_t *bytes;      /**< what is written; the caller frees */
    const uint8_t *from; /**< what is read; borrowed */
    uint64_t size_bytes, capacity_bytes;
    uint64_t at;            /**< reading: where */
    enum lac_status status; /**< LAC_OK, LAC_ERR_NOMEM or LAC_ERR_CORRUPT */
};

/** Begin to read. To write, zero the structure. */
void lac_pack_open(struct lac_pack *pack, const uint8_t *bytes, size_t size_bytes);

/** What is read is wrong: nothing is read any more. */
void lac_pack_refuse(struct lac_pack *pack);

/** A whole number from `least` to `most`. */
void lac_pack_int(struct lac_pack *pack, int64_t *value, int64_t least, int64_t most);

/** A number that must be this one: a version, how many kinds of something there are. */
void lac_pack_exactly(struct lac_pack *pack, int64_t value);

/** A number that is finite, or NaN. */
void lac_pack_real(struct lac_pack *pack, double *value);

/** A text. What is read lies in the bytes, NUL-terminated. */
void lac_pack_text(struct lac_pack *pack, const char **text);

/**
 * How many elements an array has, and when reading the array, zeroed. A count of more than the bytes
 * that are left can hold is refused.
 *
 * @param packed_bytes an element takes at least that many bytes
 * @param array        the address of a pointer: set when reading, the caller frees it
 * @return elements to go through
 */
uint64_t lac_pack_array(struct lac_pack *pack, uint64_t count, size_t packed_bytes, void *array,
                        size_t element_bytes);

/** A field of any integer type, bool or enum. */
#define LAC_PACK_INT(pack, field, least, most)                                                     \
    do {                                                                                           \
        int64_t lac_pack_value_ = (int64_t)(field);                                                \
        lac_pack_int((pack), &lac_pack_value_, (int64_t)(least), (int64_t)(most));                 \
        if ((pack)->is_reading) {                                                                  \
            (field) = (__typeof__(field))lac_pack_value_;                                          \
        }                                                                                          \
    } while (0)

/** Whether everything was read, without a failure. */
bool lac_pack_is_at_end(const struct lac_pack *pack);

#endif
