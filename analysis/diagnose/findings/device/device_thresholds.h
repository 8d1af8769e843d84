#ifndef LAC_ANALYSIS_DIAGNOSE_DEVICE_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_DEVICE_THRESHOLDS_H

/*
 * Thresholds of the findings about the device's own work, each with its unit and why. "Percent" is
 * of the mean kept step where nothing else is said.
 */

/* -- work in a wider type -- */

/* Of the time of matrix work, the part in one type that makes it the type of the loop. */
#define LOOP_PRECISION_MIN 0.5

/* -- products against the peak -- */

/* Products are spoken of from this part of the step on: below it their speed decides little. */
#define PRODUCTS_MIN_PCT 20.0
/* ... and below this part of what their shapes allow. A good library reaches 60 to 80 % with large
 * shapes, so that above it there is nothing to say. */
#define PRODUCTS_SLOW_MAX 0.5
/* What a product is expected to reach of what its shape allows, once it is large and aligned. */
#define PRODUCTS_REACH 0.7
/* Of a change: best, expected, worst. */
#define PRODUCTS_REACH_MID   0.5
#define PRODUCTS_REACH_WORST 0.35
/* A product is small when its output has fewer tiles of this many rows and columns than the GPU has
 * multiprocessors, and a call takes less than this: launching it and filling the GPU take as long. */
#define TILE_ROWS     128
#define SMALL_CALL_NS 20000.0
/* Small or misaligned products are the reason when this part of what is lost is theirs. */
#define LOST_SHARE_MIN 0.5

#endif
