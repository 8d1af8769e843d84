#ifndef LAC_SERVER_EXPORT_RASTER_LETTERS_H
#define LAC_SERVER_EXPORT_RASTER_LETTERS_H

/*
 * Letters as strokes of a pen, drawn for Lacuna. A stroke is a row of points, two digits each: x
 * (0 to 8) and y (0 to c in hexadecimal: 0 top of capitals, 3 top of small letters, 9 the line
 * they stand on, c the end of descenders). A blank ends a stroke; two equal points are a dot.
 */

#include <stdint.h>

enum { LAC_LETTER_CAP_UNITS = 9, LAC_LETTER_GAP_UNITS = 2, LAC_LETTER_SPACE_UNITS = 3 };

/** The strokes of a character; "" of a space, a box of what is not known. Static. */
const char *lac_letter(uint32_t code_point);

/** How wide it is, from 0 to its last point. */
unsigned lac_letter_width(const char *strokes);

#endif
