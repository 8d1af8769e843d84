#ifndef LAC_SERVER_EXPORT_RASTER_SVG_PNG_H
#define LAC_SERVER_EXPORT_RASTER_SVG_PNG_H

#include "analysis/model/status.h"
#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/**
 * Paint a picture of server/export/picture.h as a PNG file, two pixels to a unit: for what shows no
 * SVG. It reads the SVG that Lacuna draws, no other: rectangles, lines and texts, colored by the
 * classes of the file's own style sheet.
 *
 * @param svg     with a NUL behind it, as buffers have
 * @param is_dark the colors for a dark ground
 * @return LAC_ERR_LIMIT: the picture is too high; LAC_ERR_NOMEM. Cost: 10 ms a megapixel
 */
LAC_MUST_USE enum lac_status lac_png_of_svg(const char *svg, size_t size_bytes, bool is_dark,
                                            struct lac_buffer *out, struct lac_error *reterr);

#endif
