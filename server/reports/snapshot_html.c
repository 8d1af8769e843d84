/* A snapshot as HTML: facts, tables, and pictures drawn as SVG in the classes of the report's style
 * sheet. */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/reports/snapshot.h"
#include "server/reports/snapshot_private.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = LAC_SVG_WIDTH, ROW_HEIGHT = LAC_SVG_ROW_HEIGHT, BAR_HEIGHT = 24 };
enum { LANES_MAX = 64, LABEL_WIDTH_MAX = 400, WHOLE_BYTES = 14 };

enum group { GROUP_NONE = 0, GROUP_FACTS, GROUP_ITEMS, GROUP_TABLE, GROUP_PICTURE, GROUP_BARS };

struct page {
    struct lac_buffer *out;
    struct lac_redactor *redactor;
    const struct lac_snapshot_reader *reader;
    enum group group;
    struct lac_buffer body; /**< of a picture: its height is known at its end */
    double y, span, label_width;
    unsigned lanes; /**< of the track at y */
    char name[64];
    int64_t bar_max;
};

static void put(struct page *page, const char *before, const char *text, const char *after)
{
    lac_buffer_puts(page->out, before);
    lac_html_escape(page->out, text, strlen(text));
    lac_buffer_puts(page->out, after);
}

static const char *text_of(const struct page *page, unsigned index)
{
    return lac_snapshot_text(page->reader, index, page->redactor);
}

static void end_picture(struct page *page)
{
    const double height = page->y + (double)(page->lanes * ROW_HEIGHT) + 2.0;

    put(page, "<figure><svg role=\"img\" aria-label=\"", page->name, "\"");
    lac_buffer_printf(page->out, " viewBox=\"0 0 %d %.0f\">", WIDTH, height);
    if (page->body.size_bytes > 0) {
        lac_buffer_add(page->out, page->body.bytes, page->body.size_bytes);
    }
    if (page->body.status != LAC_OK && page->out->status == LAC_OK) {
        page->out->status = page->body.status;
    }
    lac_buffer_puts(page->out, "</svg></figure>\n");
    lac_buffer_done(&page->body);
}

/** End what the lines before were in, begin what these are in. */
static void enter(struct page *page, enum group group)
{
    static const char *const begin[] = {
        "", "<dl class=\"part-facts\">\n", "<ul>\n", "<table class=\"part-table\">\n", "", ""};
    static const char *const end[] = {"", "</dl>\n", "</ul>\n", "</table>\n", "", ""};

    if (page->group == group) {
        return;
    }
    if (page->group == GROUP_PICTURE || page->group == GROUP_BARS) {
        end_picture(page);
    }
    lac_buffer_puts(page->out, end[page->group]);
    page->group = group;
    lac_buffer_puts(page->out, begin[group]);
    if (group == GROUP_PICTURE || group == GROUP_BARS) {
        page->y = 0.0;
        page->lanes = 0;
    }
}

/** How a cell may break: a short number nowhere, short words between them, others anywhere. */
static const char *class_of(const char *text)
{
    size_t longest = 0;

    if (*text >= '0' && *text <= '9' && strlen(text) <= WHOLE_BYTES) {
        return " class=\"number\"";
    }
    for (const char *at = text; *at != '\0'; at += at[0] == ' ') {
        const size_t word = strcspn(at, " ");

        longest = word > longest ? word : longest;
        at += word;
    }
    return longest <= WHOLE_BYTES ? " class=\"whole\"" : "";
}

static void row(struct page *page, const char *cell)
{
    char begin[32];
    char end[8];

    enter(page, GROUP_TABLE);
    (void)snprintf(end, sizeof(end), "</%s>", cell);
    lac_buffer_puts(page->out, "<tr>");
    for (unsigned i = 1; i < page->reader->count; i++) {
        const char *text = text_of(page, i);

        (void)snprintf(begin, sizeof(begin), "<%s%s>", cell, i > 1 ? class_of(text) : "");
        put(page, begin, text, end);
    }
    lac_buffer_puts(page->out, "</tr>\n");
}

static void begin_picture(struct page *page)
{
    const int64_t span = lac_snapshot_number(page->reader, 1);
    const int64_t label_width = lac_snapshot_number(page->reader, 2);

    enter(page, GROUP_NONE);
    enter(page, GROUP_PICTURE);
    page->span = span > 0 ? (double)span : 1.0;
    page->label_width = (double)(label_width < LABEL_WIDTH_MAX ? label_width : LABEL_WIDTH_MAX);
    (void)snprintf(page->name, sizeof(page->name), "%s", page->reader->field[3]);
}

static void track(struct page *page)
{
    const int64_t lanes = lac_snapshot_number(page->reader, 2);
    char cut[24];

    page->y += (double)(page->lanes * ROW_HEIGHT);
    page->lanes = lanes < 1 ? 1 : lanes > LANES_MAX ? LANES_MAX : (unsigned)lanes;
    (void)snprintf(cut, sizeof(cut), "%.18s", text_of(page, 1));
    lac_buffer_puts(&page->body, "<g>"); /* no sibling of a box: those have letters of their own */
    lac_svg_text(&page->body, 0.0, page->y + 11.5, "name", cut);
    lac_buffer_puts(&page->body, "</g>");
}

static bool is_class(const char *text)
{
    return *text != '\0' && strlen(text) < 32 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz_-")] == '\0';
}

static void box(struct page *page)
{
    const double scale = ((double)WIDTH - page->label_width) / page->span;
    const int64_t lane = lac_snapshot_number(page->reader, 1);
    const double x = page->label_width + scale * (double)lac_snapshot_number(page->reader, 2);
    double width = scale * (double)lac_snapshot_number(page->reader, 3);
    const char *css_class = page->reader->field[4];
    const char *text = text_of(page, 5);

    if (lane >= (int64_t)page->lanes || !is_class(css_class) || x > WIDTH) {
        return;
    }
    width = width > (double)WIDTH - x ? (double)WIDTH - x : width;
    const double y = page->y + (double)(lane * ROW_HEIGHT);

    lac_buffer_printf(&page->body,
                      "<g><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>",
                      x, y, width > 0.6 ? width - 0.2 : 0.6, ROW_HEIGHT - 3, css_class);
    if (*text != '\0') {
        lac_svg_text_inside(&page->body, x, y + 11.5, width, "in", text);
        lac_buffer_puts(&page->body, "<title>");
        lac_html_escape(&page->body, text, strlen(text));
        lac_buffer_puts(&page->body, "</title>");
    }
    lac_buffer_puts(&page->body, "</g>");
}

/** The largest value of the bars, from here to their end. */
static int64_t largest_bar(const struct lac_snapshot_reader *reader)
{
    struct lac_snapshot_reader ahead = *reader;
    int64_t most = 1;

    do {
        const int64_t value = lac_snapshot_number(&ahead, 2);

        most = value > most ? value : most;
    } while (lac_snapshot_next(&ahead) && lac_snapshot_is(&ahead, "bar", 3));
    return most;
}

static void bar(struct page *page)
{
    const double label = 250.0;
    const double room = (double)WIDTH - label - 170.0;

    if (page->group != GROUP_BARS) {
        enter(page, GROUP_BARS);
        page->bar_max = largest_bar(page->reader);
        (void)snprintf(page->name, sizeof(page->name), "chart");
    }
    const int64_t value = lac_snapshot_number(page->reader, 2);
    const double width = room * (double)value / (double)page->bar_max;
    char cut[48];

    (void)snprintf(cut, sizeof(cut), "%.36s", text_of(page, 1));
    lac_svg_text(&page->body, 0.0, page->y + 13.0, "name", cut);
    lac_buffer_printf(&page->body,
                      "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"bar\"/>",
                      label, page->y, width > 1.0 ? width : 1.0);
    lac_svg_text(&page->body, label + (width > 1.0 ? width : 1.0) + 8.0, page->y + 13.0, "note",
                 page->reader->field[3]);
    page->y += (double)BAR_HEIGHT;
}

static void line(struct page *page)
{
    const struct lac_snapshot_reader *reader = page->reader;

    if (lac_snapshot_is(reader, "title", 1)) {
        enter(page, GROUP_NONE);
        put(page, "<h3>", text_of(page, 1), "</h3>\n");
    } else if (lac_snapshot_is(reader, "text", 1)) {
        enter(page, GROUP_NONE);
        put(page, "<p>", text_of(page, 1), "</p>\n");
    } else if (lac_snapshot_is(reader, "item", 1)) {
        enter(page, GROUP_ITEMS);
        put(page, "<li>", text_of(page, 1), "</li>\n");
    } else if (lac_snapshot_is(reader, "fact", 2) || lac_snapshot_is(reader, "code", 2)) {
        const bool is_code = reader->field[0][0] == 'c';

        enter(page, GROUP_FACTS);
        put(page, "<dt>", reader->field[1], is_code ? "</dt><dd><pre>" : "</dt><dd>");
        put(page, "", text_of(page, 2), is_code ? "</pre></dd>\n" : "</dd>\n");
    } else if (lac_snapshot_is(reader, "columns", 1)) {
        row(page, "th");
    } else if (lac_snapshot_is(reader, "row", 1)) {
        row(page, "td");
    } else if (lac_snapshot_is(reader, "picture", 3)) {
        begin_picture(page);
    } else if (lac_snapshot_is(reader, "track", 2) && page->group == GROUP_PICTURE) {
        track(page);
    } else if (lac_snapshot_is(reader, "box", 5) && page->group == GROUP_PICTURE) {
        box(page);
    } else if (lac_snapshot_is(reader, "bar", 3)) {
        bar(page);
    }
}

void lac_snapshot_html(struct lac_buffer *out, const char *snapshot, struct lac_redactor *redactor)
{
    struct lac_snapshot_reader reader = {.at = snapshot};
    struct page page = {.out = out, .redactor = redactor, .reader = &reader};

    while (lac_snapshot_next(&reader) && out->status == LAC_OK) {
        line(&page);
    }
    enter(&page, GROUP_NONE);
    lac_buffer_done(&page.body);
}
