/*
 * The text of a report: any bytes as Markdown with live parts, and each line as a part. A part that
 * is read is written in one way, which reads as the same part; the HTML made of a text has no tag
 * that the renderer does not write, no handler and no scheme but the allowed ones.
 */
#include "server/base/buffer.h"
#include "server/reports/document.h"
#include "server/reports/markdown.h"
#include "server/reports/part.h"
#include "server/store/reports/report_store.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const char *line)
{
    struct lac_report_part part = {0};
    struct lac_report_part again = {0};
    struct lac_error error = {0};
    char written[LAC_REPORT_PART_BYTES];
    char twice[LAC_REPORT_PART_BYTES];

    if (lac_part_read(line, &part, &error) != LAC_OK) {
        assert(error.message[0] != '\0');
        return;
    }
    assert((unsigned)part.kind < LAC_PART_KIND_COUNT_);
    assert(part.trace_count >= 1 && part.trace_count <= LAC_PART_TRACES_MAX);
    for (unsigned i = 0; i < part.trace_count; i++) {
        assert(lac_store_id_is_valid(part.trace[i]));
    }
    lac_part_line(&part, written, sizeof(written));
    assert(lac_part_read(written, &again, &error) == LAC_OK);
    lac_part_line(&again, twice, sizeof(twice));
    assert(strcmp(written, twice) == 0);
}

static void visit(void *context, const struct lac_report_part *part, const char *line)
{
    (void)part;
    *(unsigned *)context += 1;
    check_part(line);
}

static void put_part(void *context, struct lac_buffer *out, const char *line)
{
    (void)context;
    assert(strchr(line, '\n') == NULL);
    lac_buffer_puts(out, "<div>part</div>");
}

static bool is_known_tag(const char *name, size_t length)
{
    static const char known[] =
        " a blockquote br caption code del div em h1 h2 h3 h4 h5 h6 hr input li ol p pre s span "
        "strong sup section table tbody td th thead tr ul ";
    char word[16];

    if (length == 0 || length + 3 > sizeof(word)) {
        return false;
    }
    word[0] = ' ';
    memcpy(word + 1, name, length);
    word[length + 1] = ' ';
    word[length + 2] = '\0';
    return strstr(known, word) != NULL;
}

/** Every < begins a tag that we write, and every address has a scheme that is allowed. */
static void check_html(const char *html)
{
    for (const char *at = strchr(html, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *name = at + 1 + (at[1] == '/');
        const char *end = strchr(name, '>');
        const char *address;

        assert(end != NULL && is_known_tag(name, strspn(name, "abcdefghijklmnopqrstuvwxyz123456")));
        for (const char *c = name; c + 3 < end; c++) { /* attributes: no on... */
            assert(!(c[0] == ' ' && tolower((unsigned char)c[1]) == 'o' &&
                     tolower((unsigned char)c[2]) == 'n'));
            if (*c == '"') { /* what is quoted is text */
                c = strchr(c + 1, '"');
                assert(c != NULL && c < end);
            }
        }
        address = strstr(name, "href=\"");
        if (address != NULL && address < end) {
            address += 6;
            assert(strncasecmp(address, "http://", 7) == 0 ||
                   strncasecmp(address, "https://", 8) == 0 ||
                   strncasecmp(address, "mailto:", 7) == 0 || *address == '#');
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lac_buffer html = {0};
    struct lac_error error = {0};
    unsigned count = 0;
    char *text;
    char *line;
    char *rest = NULL;

    if (size > 65536) {
        return 0;
    }
    text = malloc(size + 1);
    assert(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (lac_markdown_html(&html, text, strlen(text), put_part, NULL, &error) == LAC_OK &&
        html.size_bytes > 0) {
        check_html(html.bytes);
    }
    enum lac_status status = lac_document_parts(text, visit, &count, &error);
    assert(status == LAC_OK || error.message[0] != '\0');
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        check_part(line);
    }
    lac_buffer_done(&html);
    free(text);
    return 0;
}
