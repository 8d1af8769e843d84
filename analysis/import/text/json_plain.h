#ifndef LAC_ANALYSIS_IMPORT_TEXT_JSON_PLAIN_H
#define LAC_ANALYSIS_IMPORT_TEXT_JSON_PLAIN_H

/* JSON documents of profilers, read whole, as plain values. Traces are read as they stream in:
 * analysis/import/chrome. */

#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * The value that `text` holds, with nothing but space behind it.
 *
 * Numbers without fraction and exponent that fit are INT, others REAL; null is NONE. NaN and
 * Infinity, which Python writes, are read as REAL. Texts are UTF-8.
 *
 * @param heap      with limits; the caller ends it with lac_plain_done(), also after a failure
 * @param ret_value belongs to the heap
 * @return LAC_OK; LAC_ERR_CORRUPT with the offset; LAC_ERR_LIMIT (depth, memory); LAC_ERR_NOMEM
 * Cost: O(bytes), about 40 bytes of memory a value.
 */
LAC_MUST_USE enum lac_status lac_json_plain_read(const uint8_t *text, size_t size_bytes,
                                                 struct lac_plain_heap *heap,
                                                 struct lac_plain **ret_value,
                                                 struct lac_error *reterr);

#endif
