#include "server/export/terminal_width.h"

#include "collector/base/terminal_text.h"
#include "server/export/text_page.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int lac_terminal_columns(void)
{
    const char *told = getenv("COLUMNS");
    struct winsize size = {0};
    long columns = 0;

    if (isatty(STDOUT_FILENO) != 1) {
        return LAC_TEXT_COLUMNS; /* what a file or another program gets does not depend on it */
    }
    if (told != NULL) {
        columns = strtol(told, NULL, 10);
    }
    if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        columns = size.ws_col;
    }
    if (columns <= 0 || columns > LAC_TEXT_COLUMNS) {
        return LAC_TEXT_COLUMNS;
    }
    return columns < LAC_TEXT_COLUMNS_MIN ? LAC_TEXT_COLUMNS_MIN : (int)columns;
}

/** Bytes of the text's beginning that fit `room` columns, up to a blank where there is one. */
static size_t fitting(const char *text, size_t length, size_t room)
{
    size_t end = room;

    if (length <= room) {
        return length;
    }
    while (end > 0 && text[end] != ' ') {
        end--;
    }
    return end > 0 ? end : room;
}

static void print_broken(const char *label, int indent, const char *text, size_t length,
                         int columns)
{
    const size_t room = (size_t)(columns - indent);

    do {
        const size_t part = fitting(text, length, room);

        (void)printf("%-*s", indent, label);
        lac_terminal_print(stdout, text, part);
        (void)printf("\n");
        label = "";
        text += part;
        length -= part;
        while (length > 0 && *text == ' ') {
            text++;
            length--;
        }
    } while (length > 0);
}

void lac_print_labeled(const char *label, int indent, const char *text)
{
    const int columns = lac_terminal_columns();

    if (indent > columns / 2) { /* nothing would be left for the text */
        size_t length = strlen(label);

        while (length > 0 && label[length - 1] == ' ') {
            length--;
        }
        (void)printf("%.*s\n", (int)length, label);
        label = "";
        indent = 6;
    }
    print_broken(label, indent, text, strlen(text), columns);
}

void lac_print_row(const char *label, int indent, const char *text)
{
    if (lac_terminal_columns() == LAC_TEXT_COLUMNS) {
        (void)printf("%-*s%s\n", indent, label, text);
    } else {
        lac_print_labeled(label, indent, text);
    }
}

/** Lines of one paragraph, joined by blanks. @return their length; 0: they do not fit `out` */
static size_t join_lines(const char *text, size_t capacity_bytes, char *out, const char **ret_rest)
{
    size_t used = 0;

    while (*text != '\0' && *text != '\n' && *text != ' ') {
        const size_t length = strcspn(text, "\n");

        if (used + length + 1 >= capacity_bytes) {
            return 0;
        }
        if (used > 0) {
            out[used++] = ' ';
        }
        memcpy(out + used, text, length);
        used += length;
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    *ret_rest = text;
    return used;
}

void lac_print_text(const char *text)
{
    const int columns = lac_terminal_columns();
    bool is_first = true;

    if (columns == LAC_TEXT_COLUMNS) {
        (void)fputs(text, stdout);
        return;
    }
    while (*text != '\0') {
        char paragraph[4096];
        const char *rest = text;
        const size_t joined = is_first || *text == ' ' || *text == '\n'
                                  ? 0
                                  : join_lines(text, sizeof(paragraph), paragraph, &rest);

        if (joined > 0) {
            print_broken("", 0, paragraph, joined, columns);
            text = rest;
            continue;
        }
        const size_t length = strcspn(text, "\n");
        const size_t blanks = strspn(text, " ");

        is_first = is_first && length > 0;
        if (length > (size_t)columns && blanks < (size_t)columns / 2) {
            print_broken("", (int)blanks, text + blanks, length - blanks, columns);
        } else {
            (void)printf("%.*s\n", (int)length, text);
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}
