#include "server/reports/snapshot.h"

#include "collector/base/utf8.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/reports/snapshot_private.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4000 };
#define NUMBER_MAX ((int64_t)1 << 53)

static void put_field(struct lac_buffer *out, const char *text)
{
    const size_t length = strlen(text);
    const size_t keep =
        length > TEXT_BYTES_MAX ? lac_utf8_cut(text, length, TEXT_BYTES_MAX) : length;

    for (size_t i = 0; i < keep; i++) {
        if (text[i] == '\t' || text[i] == '\n' || text[i] == '\\') {
            const char escaped[3] = {'\\', text[i] == '\t' ? 't' : text[i] == '\n' ? 'n' : '\\', 0};

            lac_buffer_add(out, escaped, 2);
        } else {
            lac_buffer_add(out, &text[i], 1);
        }
    }
}

void lac_snapshot_line(struct lac_buffer *out, const char *word, const char *format, ...)
{
    va_list fields;

    va_start(fields, format);
    lac_buffer_puts(out, word);
    for (; *format != '\0'; format++) {
        lac_buffer_puts(out, "\t");
        if (*format == 'i') {
            lac_buffer_int(out, va_arg(fields, int64_t));
        } else {
            lac_buffer_puts(out, *format == 't'   ? "="
                                 : *format == 'g' ? "~"
                                 : *format == 'a' ? "$"
                                                  : "");
            put_field(out, va_arg(fields, const char *));
        }
    }
    lac_buffer_puts(out, "\n");
    va_end(fields);
}

/** Undo the escapes of a field, in place. */
static void unescape(char *field)
{
    char *to = field;

    for (const char *from = field; *from != '\0'; from++) {
        if (*from == '\\' && from[1] != '\0') {
            from++;
            *to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

bool lac_snapshot_next(struct lac_snapshot_reader *reader)
{
    size_t length = strcspn(reader->at, "\n");
    char *at = reader->line;

    if (*reader->at == '\0') {
        return false;
    }
    const char *line = reader->at;

    reader->at += length + (reader->at[length] == '\n');
    length = length < sizeof(reader->line) ? length : sizeof(reader->line) - 1;
    memcpy(reader->line, line, length);
    reader->line[length] = '\0';
    reader->count = 0;
    while (at != NULL && reader->count < LAC_SNAPSHOT_FIELDS_MAX) {
        char *tab = strchr(at, '\t');

        if (tab != NULL) {
            *tab = '\0';
        }
        unescape(at);
        reader->field[reader->count++] = at;
        at = tab != NULL ? tab + 1 : NULL;
    }
    return true;
}

bool lac_snapshot_is(const struct lac_snapshot_reader *reader, const char *word, unsigned fields)
{
    return reader->count >= fields + 1 && strcmp(reader->field[0], word) == 0;
}

const char *lac_snapshot_text(const struct lac_snapshot_reader *reader, unsigned index,
                              struct lac_redactor *redactor)
{
    const char *text = index < reader->count ? reader->field[index] : "";

    switch (*text) {
    case '\0':
        return "";
    case '$':
        return lac_redact_argv(redactor, text + 1);
    case '~':
        return lac_redact_given(redactor, text + 1, "(name)");
    default:
        return lac_redact(redactor, text + 1);
    }
}

int64_t lac_snapshot_number(const struct lac_snapshot_reader *reader, unsigned index)
{
    char *end = NULL;
    int64_t number;

    if (index >= reader->count) {
        return 0;
    }
    number = strtoll(reader->field[index], &end, 10);
    return *end != '\0' || number < 0 || number > NUMBER_MAX ? 0 : number;
}

void lac_snapshot_hosts(const char *snapshot, struct lac_buffer *out)
{
    struct lac_snapshot_reader reader = {.at = snapshot};

    while (lac_snapshot_next(&reader)) {
        if (lac_snapshot_is(&reader, "host", 1) && reader.field[1][0] != '\0') {
            lac_buffer_puts(out, reader.field[1]);
            lac_buffer_puts(out, "\n");
        }
    }
}

/* ---- Markdown ---- */

/** One line of text that no Markdown reader takes for markup. */
static void put_plain(struct lac_buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*_{}[]<>()#+-!|~&", *text) != NULL) {
            lac_buffer_add(out, "\\", 1);
        }
        lac_buffer_add(out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

/** A fence longer than any in the text. */
static void put_code(struct lac_buffer *out, const char *text)
{
    size_t longest = 2;
    char fence[72];

    for (const char *at = text; *at != '\0';) {
        const size_t ticks = strspn(at, "`");

        longest = ticks > longest ? ticks : longest;
        at += ticks > 0 ? ticks : 1;
    }
    longest = longest + 1 < sizeof(fence) ? longest + 1 : sizeof(fence) - 1;
    memset(fence, '`', longest);
    fence[longest] = '\0';
    lac_buffer_printf(out, "\n%s\n%s\n%s\n\n", fence, text, fence);
}

/** A block that another may not follow without an empty line. */
enum run { RUN_NONE = 0, RUN_LIST, RUN_TABLE };

static void enter(struct lac_buffer *out, enum run *run, enum run next)
{
    if (*run != RUN_NONE && *run != next) {
        lac_buffer_puts(out, "\n");
    }
    *run = next;
}

static void row_markdown(struct lac_buffer *out, const struct lac_snapshot_reader *reader,
                         struct lac_redactor *redactor, bool is_head)
{
    lac_buffer_puts(out, "|");
    for (unsigned i = 1; i < reader->count; i++) {
        lac_buffer_puts(out, " ");
        put_plain(out, lac_snapshot_text(reader, i, redactor));
        lac_buffer_puts(out, " |");
    }
    lac_buffer_puts(out, "\n");
    if (is_head) {
        lac_buffer_puts(out, "|");
        for (unsigned i = 1; i < reader->count; i++) {
            lac_buffer_puts(out, " --- |");
        }
        lac_buffer_puts(out, "\n");
    }
}

static void line_markdown(struct lac_buffer *out, const struct lac_snapshot_reader *reader,
                          struct lac_redactor *redactor, enum run *run)
{
    if (lac_snapshot_is(reader, "title", 1)) {
        enter(out, run, RUN_NONE);
        lac_buffer_puts(out, "**");
        put_plain(out, lac_snapshot_text(reader, 1, redactor));
        lac_buffer_puts(out, "**\n\n");
    } else if (lac_snapshot_is(reader, "text", 1)) {
        enter(out, run, RUN_NONE);
        put_plain(out, lac_snapshot_text(reader, 1, redactor));
        lac_buffer_puts(out, "\n\n");
    } else if (lac_snapshot_is(reader, "item", 1)) {
        enter(out, run, RUN_LIST);
        lac_buffer_puts(out, "- ");
        put_plain(out, lac_snapshot_text(reader, 1, redactor));
        lac_buffer_puts(out, "\n");
    } else if (lac_snapshot_is(reader, "fact", 2)) {
        enter(out, run, RUN_LIST);
        lac_buffer_printf(out, "- %s: ", reader->field[1]);
        put_plain(out, lac_snapshot_text(reader, 2, redactor));
        lac_buffer_puts(out, "\n");
    } else if (lac_snapshot_is(reader, "code", 2)) {
        enter(out, run, RUN_NONE);
        lac_buffer_printf(out, "%s:\n", reader->field[1]);
        put_code(out, lac_snapshot_text(reader, 2, redactor));
    } else if (lac_snapshot_is(reader, "columns", 1) || lac_snapshot_is(reader, "row", 1)) {
        enter(out, run, RUN_TABLE);
        row_markdown(out, reader, redactor, reader->field[0][0] == 'c');
    } else if (lac_snapshot_is(reader, "picture", 3)) {
        enter(out, run, RUN_NONE);
        lac_buffer_printf(out, "*(picture: %s; the HTML form of this report shows it)*\n\n",
                          reader->field[3]);
    } else if (lac_snapshot_is(reader, "bar", 3)) {
        enter(out, run, RUN_LIST);
        lac_buffer_puts(out, "- ");
        put_plain(out, lac_snapshot_text(reader, 1, redactor));
        lac_buffer_printf(out, ": %s\n", reader->field[3]);
    }
}

void lac_snapshot_markdown(struct lac_buffer *out, const char *snapshot,
                           struct lac_redactor *redactor)
{
    struct lac_snapshot_reader reader = {.at = snapshot};
    enum run run = RUN_NONE;

    while (lac_snapshot_next(&reader)) {
        line_markdown(out, &reader, redactor, &run);
    }
    enter(out, &run, RUN_NONE);
}
