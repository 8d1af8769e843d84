#include "server/export/raster/canvas.h"

#include "analysis/model/status.h"
#include "server/export/raster/letters.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* of the size of letters: a unit of letters.h, across and down, and the pen */
static const double unit_x = 0.073;
static const double unit_y = 0.079;
static const double pen = 0.092;

enum lac_status lac_canvas_init(struct lac_canvas *canvas, double width, double height,
                                double scale, struct lac_color ground)
{
    const double width_px = ceil(width * scale);
    const double height_px = ceil(height * scale);

    *canvas = (struct lac_canvas){.scale = scale};
    if (!(width_px >= 1.0 && height_px >= 1.0) || width_px > LAC_CANVAS_SIDE_MAX ||
        height_px > LAC_CANVAS_SIDE_MAX || width_px * height_px > LAC_CANVAS_PIXELS_MAX) {
        return LAC_ERR_LIMIT;
    }
    const size_t count = (size_t)width_px * (size_t)height_px;

    canvas->rgb = malloc(count * 3);
    if (canvas->rgb == NULL) {
        return LAC_ERR_NOMEM;
    }
    canvas->width_px = (uint32_t)width_px;
    canvas->height_px = (uint32_t)height_px;
    for (size_t i = 0; i < count; i++) {
        memcpy(&canvas->rgb[3 * i], &ground, 3);
    }
    return LAC_OK;
}

void lac_canvas_done(struct lac_canvas *canvas)
{
    free(canvas->rgb);
    canvas->rgb = NULL;
}

/** A whole number of pixels within a side; NaN is 0. */
static uint32_t within(double px, uint32_t side_px)
{
    return px >= (double)side_px ? side_px : px > 0.0 ? (uint32_t)px : 0;
}

static void blend(struct lac_canvas *canvas, uint32_t x, uint32_t y, struct lac_color color,
                  double share)
{
    uint8_t *pixel = &canvas->rgb[3 * ((size_t)y * canvas->width_px + x)];
    const uint8_t parts[3] = {color.red, color.green, color.blue};

    for (int i = 0; i < 3; i++) {
        pixel[i] = (uint8_t)lround(pixel[i] + (parts[i] - pixel[i]) * share);
    }
}

/** How much of the pixel at `at` lies between two places. */
static double covered(uint32_t at, double from, double to)
{
    const double left = from > at ? from : at;
    const double right = to < at + 1.0 ? to : at + 1.0;

    return right > left ? right - left : 0.0;
}

void lac_canvas_fill(struct lac_canvas *canvas, double x, double y, double width, double height,
                     struct lac_color color)
{
    const double left = x * canvas->scale;
    const double right = (x + width) * canvas->scale;
    const double top = y * canvas->scale;
    const double bottom = (y + height) * canvas->scale;

    for (uint32_t row = within(top, canvas->height_px);
         row < within(ceil(bottom), canvas->height_px); row++) {
        const double share = covered(row, top, bottom);

        for (uint32_t column = within(left, canvas->width_px);
             column < within(ceil(right), canvas->width_px); column++) {
            blend(canvas, column, row, color, share * covered(column, left, right));
        }
    }
}

struct segment {
    double x0, y0, x1, y1; /* px */
};

static double distance_to(const struct segment *it, double x, double y)
{
    const double dx = it->x1 - it->x0;
    const double dy = it->y1 - it->y0;
    const double length2 = dx * dx + dy * dy;
    double at = length2 > 0.0 ? ((x - it->x0) * dx + (y - it->y0) * dy) / length2 : 0.0;

    at = at < 0.0 ? 0.0 : at > 1.0 ? 1.0 : at;
    return hypot(x - (it->x0 + at * dx), y - (it->y0 + at * dy));
}

/** Paint segments as one shape: where two meet nothing is painted twice. */
static void paint(struct lac_canvas *canvas, const struct segment *segments, unsigned count,
                  double half_px, struct lac_color color)
{
    double left = INFINITY;
    double right = -INFINITY;
    double top = INFINITY;
    double bottom = -INFINITY;

    for (unsigned i = 0; i < count; i++) {
        left = fmin(left, fmin(segments[i].x0, segments[i].x1));
        right = fmax(right, fmax(segments[i].x0, segments[i].x1));
        top = fmin(top, fmin(segments[i].y0, segments[i].y1));
        bottom = fmax(bottom, fmax(segments[i].y0, segments[i].y1));
    }
    const uint32_t row_end = within(ceil(bottom + half_px + 1.0), canvas->height_px);
    const uint32_t column_end = within(ceil(right + half_px + 1.0), canvas->width_px);

    for (uint32_t row = within(top - half_px - 1.0, canvas->height_px); row < row_end; row++) {
        for (uint32_t column = within(left - half_px - 1.0, canvas->width_px); column < column_end;
             column++) {
            double nearest = INFINITY;

            for (unsigned i = 0; i < count; i++) {
                nearest = fmin(nearest, distance_to(&segments[i], column + 0.5, row + 0.5));
            }
            const double share = half_px + 0.5 - nearest;

            if (share > 0.0) {
                blend(canvas, column, row, color, share < 1.0 ? share : 1.0);
            }
        }
    }
}

void lac_canvas_line(struct lac_canvas *canvas, double x0, double y0, double x1, double y1,
                     double thickness, struct lac_color color)
{
    const struct segment segment = {x0 * canvas->scale, y0 * canvas->scale, x1 * canvas->scale,
                                    y1 * canvas->scale};

    paint(canvas, &segment, 1, thickness * canvas->scale / 2.0, color);
}

/* -- letters ----------------------------------------------------------------------------------- */

/** The next character; a byte that is not UTF-8 counts as one. */
static uint32_t next_character(const unsigned char *text, size_t size_bytes, size_t *at)
{
    const unsigned char first = text[(*at)++];
    const unsigned more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint32_t code_point = more == 0 ? first : first & (0x3fu >> more);

    for (unsigned i = 0; i < more && *at < size_bytes && (text[*at] & 0xc0) == 0x80; i++) {
        code_point = code_point << 6 | (text[(*at)++] & 0x3f);
    }
    return code_point;
}

static double advance_of(const char *strokes, double size)
{
    const unsigned units = strokes[0] == '\0' ? LAC_LETTER_SPACE_UNITS
                                              : lac_letter_width(strokes) + LAC_LETTER_GAP_UNITS;

    return units * unit_x * size;
}

double lac_canvas_text_width(const char *text, size_t size_bytes, double size)
{
    double width = 0.0;

    for (size_t at = 0; at < size_bytes;) {
        width += advance_of(
            lac_letter(next_character((const unsigned char *)text, size_bytes, &at)), size);
    }
    return width;
}

static double hex_of(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

static void paint_letter(struct lac_canvas *canvas, const char *strokes, double x, double y,
                         double size, struct lac_color color)
{
    enum { SEGMENTS_MAX = 40 };
    struct segment segments[SEGMENTS_MAX];
    unsigned count = 0;

    for (const char *at = strokes; *at != '\0' && count < SEGMENTS_MAX; at += 2) {
        if (at[2] == ' ' || at[2] == '\0') { /* the last point of its stroke */
            at += at[2] == ' ' ? 1 : 0;
            continue;
        }
        segments[count++] = (struct segment){
            (x + (at[0] - '0') * unit_x * size) * canvas->scale,
            (y + (hex_of(at[1]) - LAC_LETTER_CAP_UNITS) * unit_y * size) * canvas->scale,
            (x + (at[2] - '0') * unit_x * size) * canvas->scale,
            (y + (hex_of(at[3]) - LAC_LETTER_CAP_UNITS) * unit_y * size) * canvas->scale};
    }
    if (count > 0) {
        paint(canvas, segments, count, pen * size * canvas->scale / 2.0, color);
    }
}

void lac_canvas_text(struct lac_canvas *canvas, double x, double y, double size, const char *text,
                     size_t size_bytes, struct lac_color color)
{
    for (size_t at = 0; at < size_bytes && x * canvas->scale < canvas->width_px;) {
        const char *strokes =
            lac_letter(next_character((const unsigned char *)text, size_bytes, &at));

        paint_letter(canvas, strokes, x, y, size, color);
        x += advance_of(strokes, size);
    }
}
