#ifndef LAC_COLLECTOR_HANG_WORDS_H
#define LAC_COLLECTOR_HANG_WORDS_H

#include <stddef.h>

/** Append to a text that ends in a NUL, as printf would; what does not fit is cut off.
 * @param capacity of all of `text`, more than its length */
void lac_hang_add(char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
