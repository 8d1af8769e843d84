#include "server/export/raster/svg_png.h"

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/raster/canvas.h"
#include "server/export/raster/png.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCALE     2.0
#define FONT_SIZE 11.5

enum { CLASS_BYTES = 48, TEXT_BYTES = 1024 };

struct text_span {
    const char *at;
    const char *end;
};

struct painting {
    struct lac_canvas canvas;
    struct text_span light;  /**< the custom properties of :root */
    struct text_span colors; /**< those that count: light's, or the dark ones */
    struct text_span rules;  /**< the style sheet behind them */
    double dx, dy;           /**< where the drawing begins in the picture */
    char box[CLASS_BYTES];   /**< class of the last rectangle: a text beside it may go by it */
};

/** Where `word` begins; NULL: not in there. */
static const char *find(struct text_span in, const char *word)
{
    return in.at != NULL && in.at < in.end
               ? memmem(in.at, (size_t)(in.end - in.at), word, strlen(word))
               : NULL;
}

static struct text_span between(struct text_span in, const char *from, const char *to)
{
    const char *at = find(in, from);

    if (at == NULL) {
        return (struct text_span){in.end, in.end};
    }
    at += strlen(from);
    const char *end = find((struct text_span){at, in.end}, to);
    return (struct text_span){at, end != NULL ? end : in.end};
}

/* -- colors ------------------------------------------------------------------------------------ */

static unsigned nibble(char digit)
{
    return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)((digit | 0x20) - 'a' + 10);
}

/** "#rgb" or "#rrggbb" */
static struct lac_color color_of_hex(const char *text)
{
    const size_t digits = strspn(text + 1, "0123456789abcdefABCDEF");
    uint8_t part[3] = {0};

    for (int i = 0; i < 3 && digits >= 3; i++) {
        part[i] = (uint8_t)(digits >= 6 ? nibble(text[1 + 2 * i]) << 4 | nibble(text[2 + 2 * i])
                                        : nibble(text[1 + i]) * 17);
    }
    return (struct lac_color){part[0], part[1], part[2]};
}

/** The value of a property such as "--ink". */
static struct lac_color color_named(const struct painting *it, const char *name, size_t length)
{
    const struct text_span places[] = {it->colors, it->light};
    char key[CLASS_BYTES];

    (void)snprintf(key, sizeof(key), "%.*s:#", (int)length, name);
    for (size_t i = 0; i < LAC_COUNT_OF(places); i++) {
        const char *at = find(places[i], key);

        if (at != NULL) {
            return color_of_hex(at + strlen(key) - 1);
        }
    }
    return (struct lac_color){0, 0, 0};
}

/** A color as style sheets write it. @return false: none */
static bool color_of(const struct painting *it, const char *value, struct lac_color *ret_color)
{
    static const char var[] = "var(";

    if (value[0] == '#') {
        *ret_color = color_of_hex(value);
        return true;
    }
    if (strncmp(value, var, sizeof(var) - 1) == 0) {
        value += sizeof(var) - 1;
        *ret_color = color_named(it, value, strcspn(value, ")"));
        return true;
    }
    return false;
}

/** Whether a list of selectors has this one. */
static bool has_selector(const char *at, const char *end, const char *selector)
{
    const size_t length = strlen(selector);

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;

        if ((size_t)(stop - at) == length && memcmp(at, selector, length) == 0) {
            return true;
        }
        at = stop + 1;
    }
    return false;
}

/** What the last rule of a selector says of a property. @return NULL: nothing */
static const char *rule_of(const struct painting *it, const char *selector, const char *property)
{
    const char *found = NULL;
    const char *at = it->rules.at;

    while (at < it->rules.end) {
        const char *open = memchr(at, '{', (size_t)(it->rules.end - at));
        const char *close = open != NULL ? memchr(open, '}', (size_t)(it->rules.end - open)) : NULL;

        if (close == NULL) {
            break;
        }
        if (has_selector(at, open, selector)) {
            const char *said = find((struct text_span){open, close}, property);

            found = said != NULL ? said + strlen(property) : found;
        }
        at = close + 1;
    }
    return found;
}

/** The color that the rule of BEFORE.CLASS AFTER gives a property. @return false: none */
static bool color_by(const struct painting *it, const char *before, const char *css_class,
                     const char *after, const char *property, struct lac_color *ret_color)
{
    char selector[CLASS_BYTES + 24];

    (void)snprintf(selector, sizeof(selector), "%s.%s%s", before, css_class, after);
    const char *value = rule_of(it, selector, property);

    return value != NULL && color_of(it, value, ret_color);
}

static struct lac_color text_color(const struct painting *it, const char *css_class)
{
    struct lac_color color = color_named(it, "--ink", strlen("--ink"));

    if (strcmp(css_class, "in") == 0) {
        (void)color_by(it, "", it->box, "+text", "fill:", &color);
        (void)color_by(it, "svg ", it->box, "+text", "fill:", &color);
    } else {
        (void)color_by(it, "svg ", css_class, "", "fill:", &color);
    }
    return color;
}

/* -- elements ---------------------------------------------------------------------------------- */

/** The value of an attribute; "" without. @return its length */
static size_t attribute(const char *tag, const char *end, const char *name, const char **ret_value)
{
    const struct text_span value = between((struct text_span){tag, end}, name, "\"");

    *ret_value = value.at;
    return (size_t)(value.end - value.at);
}

static double number(const char *tag, const char *end, const char *name)
{
    const char *value;
    char digits[32];
    const size_t length = attribute(tag, end, name, &value);

    (void)snprintf(digits, sizeof(digits), "%.*s", (int)(length < 31 ? length : 31), value);
    return strtod(digits, NULL);
}

static void class_of(const char *tag, const char *end, char out[CLASS_BYTES])
{
    const char *value;
    const size_t length = attribute(tag, end, " class=\"", &value);

    (void)snprintf(out, CLASS_BYTES, "%.*s", (int)(length < CLASS_BYTES ? length : 0), value);
}

static void paint_rect(struct painting *it, const char *tag, const char *end)
{
    const char *style;
    const double x = it->dx + number(tag, end, " x=\"");
    const double y = it->dy + number(tag, end, " y=\"");
    const double width = number(tag, end, " width=\"");
    const double height = number(tag, end, " height=\"");
    struct lac_color color;

    class_of(tag, end, it->box);
    if (attribute(tag, end, " style=\"fill:", &style) > 0 && color_of(it, style, &color)) {
        lac_canvas_fill(&it->canvas, x, y, width, height, color);
        return;
    }
    if (color_by(it, "", it->box, "", "fill:", &color)) {
        lac_canvas_fill(&it->canvas, x, y, width, height, color);
    }
    if (color_by(it, "", it->box, "", "stroke:", &color)) {
        lac_canvas_fill(&it->canvas, x - 0.5, y - 0.5, width + 1.0, 1.0, color);
        lac_canvas_fill(&it->canvas, x - 0.5, y + height - 0.5, width + 1.0, 1.0, color);
        lac_canvas_fill(&it->canvas, x - 0.5, y + 0.5, 1.0, height - 1.0, color);
        lac_canvas_fill(&it->canvas, x + width - 0.5, y + 0.5, 1.0, height - 1.0, color);
    }
}

static void paint_line(struct painting *it, const char *tag, const char *end)
{
    char css_class[CLASS_BYTES];
    struct lac_color color;

    class_of(tag, end, css_class);
    if (color_by(it, "", css_class, "", "stroke:", &color)) {
        lac_canvas_line(&it->canvas, it->dx + number(tag, end, " x1=\""),
                        it->dy + number(tag, end, " y1=\""), it->dx + number(tag, end, " x2=\""),
                        it->dy + number(tag, end, " y2=\""), 1.0, color);
    }
}

/** Text as it was before it was escaped. @return its length */
static size_t unescape(const char *at, const char *end, char out[TEXT_BYTES])
{
    static const struct {
        const char *entity;
        char letter;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    size_t length = 0;

    while (at < end && length < TEXT_BYTES) {
        size_t used = 1;
        char letter = *at;

        for (size_t i = 0; *at == '&' && i < LAC_COUNT_OF(entities); i++) {
            const size_t size = strlen(entities[i].entity);

            if ((size_t)(end - at) >= size && memcmp(at, entities[i].entity, size) == 0) {
                letter = entities[i].letter;
                used = size;
                break;
            }
        }
        out[length++] = letter;
        at += used;
    }
    return length;
}

static void paint_text(struct painting *it, const char *tag, const char *end,
                       struct text_span inside)
{
    const char *anchor;
    char css_class[CLASS_BYTES];
    char text[TEXT_BYTES];
    const size_t length = unescape(inside.at, inside.end, text);
    double x = it->dx + number(tag, end, " x=\"");

    class_of(tag, end, css_class);
    if (attribute(tag, end, " text-anchor=\"", &anchor) > 0) {
        const double width = lac_canvas_text_width(text, length, FONT_SIZE);

        x -= anchor[0] == 'e' ? width : anchor[0] == 'm' ? width / 2.0 : 0.0;
    }
    lac_canvas_text(&it->canvas, x, it->dy + number(tag, end, " y=\""), FONT_SIZE, text, length,
                    text_color(it, css_class));
}

static bool is_tag(const char *at, const char *end, const char *name)
{
    const size_t length = strlen(name);

    return (size_t)(end - at) > length && memcmp(at, name, length) == 0;
}

static void paint_all(struct painting *it, struct text_span all)
{
    const char *at = all.at;

    while ((at = find((struct text_span){at, all.end}, "<")) != NULL) {
        const char *end = memchr(at, '>', (size_t)(all.end - at));

        if (end == NULL) {
            return;
        }
        if (is_tag(at, end, "<rect")) {
            paint_rect(it, at, end);
        } else if (is_tag(at, end, "<line")) {
            paint_line(it, at, end);
        } else if (is_tag(at, end, "<text")) {
            const char *close = find((struct text_span){end, all.end}, "</text>");

            paint_text(it, at, end, (struct text_span){end + 1, close != NULL ? close : all.end});
        } else if (is_tag(at, end, "<g transform")) {
            const char *value;

            if (attribute(at, end, "translate(", &value) > 0) {
                char *rest = NULL;

                it->dx = strtod(value, &rest);
                it->dy = strtod(rest, NULL);
            }
        }
        at = end + 1;
    }
}

enum lac_status lac_png_of_svg(const char *svg, size_t size_bytes, bool is_dark,
                               struct lac_buffer *out, struct lac_error *reterr)
{
    const struct text_span all = {svg, svg + size_bytes};
    const struct text_span style = between(all, "<style>", "</style>");
    const struct text_span light = between(style, ":root{", "}");
    const struct text_span dark = between((struct text_span){light.end, style.end}, ":root{", "}}");
    struct painting it = {
        .light = light,
        .colors = is_dark ? dark : light,
        .rules = {dark.end + 2 < style.end ? dark.end + 2 : style.end, style.end},
    };
    const char *head_end = find(all, ">");

    if (head_end == NULL) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "no picture");
    }
    enum lac_status status = lac_canvas_init(&it.canvas, number(svg, head_end, " width=\""),
                                             number(svg, head_end, " height=\""), SCALE,
                                             color_named(&it, "--ground", strlen("--ground")));

    if (status == LAC_OK) {
        paint_all(&it, (struct text_span){style.end, all.end});
        status = lac_png_write(out, &it.canvas);
    }
    lac_canvas_done(&it.canvas);
    return status == LAC_OK ? LAC_OK
                            : lac_fail(reterr, status, 0,
                                       status == LAC_ERR_LIMIT ? "too high for a picture of pixels"
                                                               : "no memory for this picture");
}
