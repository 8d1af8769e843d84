#include "server/export/text_page.h"

#include "collector/base/utf8.h"
#include "server/base/buffer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Bytes of the UTF-8 character at `text`; 1 for what is none. */
static size_t char_bytes(const unsigned char *text)
{
    const size_t length = lac_utf8_length(text, text + strnlen((const char *)text, 4));

    return length > 0 ? length : 1;
}

/** Whether a character may go to a terminal: no controls, no hidden or direction marks. */
static bool is_printable(const unsigned char *at, size_t length, bool is_ascii)
{
    if (length == 1) {
        return at[0] >= 0x20 && at[0] < 0x7F;
    }
    bool is_control = at[0] == 0xC2 && at[1] < 0xA0;
    bool is_hidden = length == 3 && at[0] == 0xE2 &&
                     ((at[1] == 0x80 && at[2] >= 0x8B) || (at[1] == 0x81 && at[2] >= 0xA0));
    return !is_ascii && !is_control && !is_hidden;
}

int lac_text_columns(const char *text)
{
    int columns = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at += char_bytes(at)) {
        columns++;
    }
    return columns;
}

void lac_text_sentence(char *out, size_t capacity_bytes, const char *text)
{
    (void)snprintf(out, capacity_bytes, "%s", text);
    out[0] = (char)toupper((unsigned char)out[0]);
    size_t length = strlen(out);
    if (length > 0 && length + 1 < capacity_bytes && out[length - 1] != '.') {
        memcpy(out + length, ".", 2);
    }
}

void lac_text_line(struct lac_text_page *page, enum lac_text_style style, const char *fmt, ...)
{
    if (page->line_count == LAC_TEXT_LINES) {
        return;
    }
    char text[2048];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == ' ') {
        text[--end] = '\0';
    }
    bool is_styled = page->has_color && style != LAC_TEXT_PLAIN && text[0] != '\0';
    if (is_styled) {
        lac_buffer_puts(page->out, style == LAC_TEXT_BOLD ? "\033[1m" : "\033[2m");
    }
    const unsigned char *at = (const unsigned char *)text;
    for (int column = 0; *at != '\0' && column < LAC_TEXT_COLUMNS; column++) {
        size_t length = char_bytes(at);
        if (is_printable(at, length, page->is_ascii)) {
            lac_buffer_add(page->out, at, length);
        } else {
            lac_buffer_puts(page->out, "?");
        }
        at += length;
    }
    lac_buffer_puts(page->out, is_styled ? "\033[0m\n" : "\n");
    page->line_count++;
}

void lac_text_paragraph(struct lac_text_page *page, enum lac_text_style style, const char *label,
                        const char *text, int indent, int lines_max)
{
    size_t room = (size_t)(LAC_TEXT_COLUMNS - indent);
    for (int i = 0; i < lines_max && *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ') {
                length--;
            }
            length = length == 0 ? room : length;
        }
        bool is_cut = i + 1 == lines_max && text[length] != '\0';
        if (is_cut && length > room - 4) {
            length = room - 4;
        }
        lac_text_line(page, style, "%-*s%.*s%s", indent, i == 0 ? label : "", (int)length, text,
                      is_cut ? " ..." : "");
        text += length;
        text += strspn(text, " \n");
    }
}
