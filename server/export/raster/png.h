#ifndef LAC_SERVER_EXPORT_RASTER_PNG_H
#define LAC_SERVER_EXPORT_RASTER_PNG_H

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/export/raster/canvas.h"

/** Append the pixels as a PNG file (8 bits a part, without alpha). Same pixels, same bytes.
 *  @return LAC_OK or LAC_ERR_NOMEM. Cost: 5 ns a pixel */
LAC_MUST_USE enum lac_status lac_png_write(struct lac_buffer *out, const struct lac_canvas *canvas);

#endif
