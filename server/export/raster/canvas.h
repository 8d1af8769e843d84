#ifndef LAC_SERVER_EXPORT_RASTER_CANVAS_H
#define LAC_SERVER_EXPORT_RASTER_CANVAS_H

/*
 * Pixels, and shapes painted on them with smooth edges. Lengths are in the drawing's own units, of
 * which a pixel is 1/scale. What lies outside is cut off. Same calls, same pixels.
 */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

struct lac_color {
    uint8_t red, green, blue;
};

struct lac_canvas {
    uint32_t width_px, height_px;
    double scale;
    uint8_t *rgb; /**< rows from the top, three bytes a pixel */
};

enum { LAC_CANVAS_SIDE_MAX = 16384, LAC_CANVAS_PIXELS_MAX = 1 << 26 };

/** @return LAC_ERR_LIMIT: larger than the limits above, or empty; LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_canvas_init(struct lac_canvas *canvas, double width, double height,
                                             double scale, struct lac_color ground);
void lac_canvas_done(struct lac_canvas *canvas);

void lac_canvas_fill(struct lac_canvas *canvas, double x, double y, double width, double height,
                     struct lac_color color);

/** A straight line of that thickness, with round ends. */
void lac_canvas_line(struct lac_canvas *canvas, double x0, double y0, double x1, double y1,
                     double thickness, struct lac_color color);

/** How wide a text is, in letters of `size` as CSS means it. */
double lac_canvas_text_width(const char *text, size_t size_bytes, double size);

/** Write UTF-8; `y` is the line that letters stand on. Other than ASCII and a few signs are boxes. */
void lac_canvas_text(struct lac_canvas *canvas, double x, double y, double size, const char *text,
                     size_t size_bytes, struct lac_color color);

#endif
