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

int lac_text_width(const struct lac_text_page *page)
{
    return page->columns > 0 ? page->columns : LAC_TEXT_COLUMNS;
}

/** Lines of a narrow page for what takes so many of a usual one. */
static int lines_for(const struct lac_text_page *page, int lines)
{
    const int width = lac_text_width(page);

    return width == LAC_TEXT_COLUMNS ? lines : (lines * (LAC_TEXT_COLUMNS + width) + width) / width;
}

int lac_text_lines(const struct lac_text_page *page)
{
    return lines_for(page, LAC_TEXT_LINES);
}

static void put_line(struct lac_text_page *page, enum lac_text_style style, const char *text,
                     size_t size_bytes)
{
    const bool is_styled = page->has_color && style != LAC_TEXT_PLAIN && size_bytes > 0;
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + size_bytes;
    const int width = lac_text_width(page);

    if (is_styled) {
        lac_buffer_puts(page->out, style == LAC_TEXT_BOLD ? "\033[1m" : "\033[2m");
    }
    for (int column = 0; at < end && column < width; column++) {
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

/** Bytes of the first `columns` columns of a text. */
static size_t bytes_of_columns(const char *text, int columns)
{
    const unsigned char *at = (const unsigned char *)text;

    for (; *at != '\0' && columns > 0; columns--) {
        at += char_bytes(at);
    }
    return (size_t)(at - (const unsigned char *)text);
}

void lac_text_line(struct lac_text_page *page, enum lac_text_style style, const char *fmt, ...)
{
    enum { HANGING = 4 }; /* columns that the rest of a line stands in */
    char text[2048];
    const char *at = text;
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == ' ') {
        text[--end] = '\0';
    }
    const int width = lac_text_width(page);
    while (page->line_count < lac_text_lines(page)) {
        const bool goes_on = width < LAC_TEXT_COLUMNS && lac_text_columns(at) > width;
        size_t size = goes_on ? bytes_of_columns(at, width) : strlen(at);
        if (goes_on && at[size] != ' ') {
            size_t blank = size;
            while (blank > HANGING && at[blank - 1] != ' ') {
                blank--;
            }
            size = blank > HANGING ? blank : size;
        }
        size_t shown = size;
        while (shown > 0 && at[shown - 1] == ' ') {
            shown--;
        }
        put_line(page, style, at, shown);
        at += size;
        at += strspn(at, " ");
        if (!goes_on || *at == '\0') {
            return;
        }
        if (at - text >= HANGING) { /* over what was printed */
            at -= HANGING;
            memset(text + (at - text), ' ', HANGING);
        }
    }
}

void lac_text_paragraph(struct lac_text_page *page, enum lac_text_style style, const char *label,
                        const char *text, int indent, int lines_max)
{
    size_t room = (size_t)(lac_text_width(page) - indent);
    lines_max = lines_for(page, lines_max);
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
