#ifndef LAC_TESTS_SUPPORT_JSON_MUTATOR_H
#define LAC_TESTS_SUPPORT_JSON_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/**
 * Change JSON text where its structure is: repeat members and elements with other values, copy one
 * value over another, swap phases, nest, put numbers that nobody expects. What is no JSON is
 * changed as far as it can be read.
 *
 * @param random state of the random numbers, changed
 * @return bytes in `text` now, at most `capacity`; as before where nothing could be changed
 */
size_t lac_json_mutate(uint8_t *text, size_t size, size_t capacity, uint64_t *random);

/** The next random number below `count` (> 0). */
uint32_t lac_mutator_draw(uint64_t *random, uint32_t count);

#endif
