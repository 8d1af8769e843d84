#include "collector/hang/hang_words.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lac_hang_add(char *text, size_t capacity, const char *format, ...)
{
    assert(text != NULL && format != NULL);
    const size_t used = strlen(text);
    va_list arguments;

    assert(used < capacity);
    va_start(arguments, format);
    (void)vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}
