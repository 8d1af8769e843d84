#ifndef LAC_ANALYSIS_IMPORT_TEXT_PICKLE_H
#define LAC_ANALYSIS_IMPORT_TEXT_PICKLE_H

/*
 * Python pickles, protocols 0 to 5, as plain values. A pickle is a program for a stack machine that
 * may call anything; this one calls nothing. Containers of the standard library (OrderedDict,
 * defaultdict, deque, set, frozenset, bytes as protocols 0 to 2 write them, the typed lists that
 * PyTorch's C++ code writes) become lists, dictionaries and texts; any other object stays an object.
 */

#include "analysis/import/text/plain.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether a pickle of protocol 2 or later may begin like this (0 and 1 have no mark). */
bool lac_pickle_begins(const uint8_t *head, size_t size_bytes);

/**
 * The value of the pickle that `bytes` begin with.
 *
 * @param bytes      borrowed: texts of the values point into them
 * @param heap       with limits; the caller ends it with lac_plain_done(), also after a failure
 * @param ret_value  belongs to the heap
 * @param ret_size   how many bytes the pickle takes; may be NULL
 * @return LAC_OK; LAC_ERR_CORRUPT (no pickle, or cut short, with the offset), LAC_ERR_LIMIT (memory),
 *         LAC_ERR_NOMEM
 * Cost: O(bytes); memory at most 64 bytes a byte, within the heap's limit.
 */
LAC_MUST_USE enum lac_status lac_pickle_read(const uint8_t *bytes, size_t size_bytes,
                                             struct lac_plain_heap *heap,
                                             struct lac_plain **ret_value, size_t *ret_size,
                                             struct lac_error *reterr);

#endif
