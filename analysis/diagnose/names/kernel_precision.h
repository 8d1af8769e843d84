#ifndef LAC_ANALYSIS_DIAGNOSE_KERNEL_PRECISION_H
#define LAC_ANALYSIS_DIAGNOSE_KERNEL_PRECISION_H

/* What a kernel computes in, as far as its name says. */

#include "analysis/diagnose/names/device_peaks.h" // IWYU pragma: export

/** LAC_PRECISION_UNKNOWN where the name does not say. Cost: about a microsecond; ask each distinct name
 *  once. */
enum lac_precision lac_kernel_precision(const char *name);

#endif
