#ifndef LAC_ANALYSIS_IMPORT_TEXT_MARSHAL_H
#define LAC_ANALYSIS_IMPORT_TEXT_MARSHAL_H

/*
 * What Python's marshal writes, versions 0 to 4, as plain values: numbers, texts, tuples, lists,
 * sets and dictionaries. Code objects are refused: nothing of a file is executed.
 */

#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

/**
 * The value that `bytes` begin with.
 *
 * @param bytes     borrowed: texts of the values point into them
 * @param heap      with limits; the caller ends it with lac_plain_done(), also after a failure
 * @param ret_value belongs to the heap
 * @return LAC_OK; LAC_ERR_CORRUPT with the offset; LAC_ERR_LIMIT (depth, memory); LAC_ERR_NOMEM
 * Cost: O(bytes); memory at most 64 bytes a byte, within the heap's limit.
 */
LAC_MUST_USE enum lac_status lac_marshal_read(const uint8_t *bytes, size_t size_bytes,
                                              struct lac_plain_heap *heap,
                                              struct lac_plain **ret_value,
                                              struct lac_error *reterr);

#endif
