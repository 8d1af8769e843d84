#include "server/base/csv.h"

#include "server/base/buffer.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/** Whether the byte is one of `set`; a NUL is of none. */
static bool is_of(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

void lac_csv_text(struct lac_buffer *out, const char *text, size_t size_bytes)
{
    assert(text != NULL || size_bytes == 0);
    bool is_plain = true;
    for (size_t i = 0; i < size_bytes && is_plain; i++) {
        is_plain = !is_of(text[i], ",\"\r\n");
    }
    const char *mark = size_bytes > 0 && is_of(text[0], "=+-@\t\r") ? "'" : "";
    if (is_plain) {
        lac_buffer_puts(out, mark);
        lac_buffer_add(out, text, size_bytes);
        return;
    }
    lac_buffer_puts(out, "\"");
    lac_buffer_puts(out, mark);
    for (size_t i = 0; i < size_bytes; i++) {
        lac_buffer_add(out, text[i] == '"' ? "\"\"" : &text[i], text[i] == '"' ? 2 : 1);
    }
    lac_buffer_puts(out, "\"");
}
