#ifndef LAC_ANALYSIS_DIAGNOSE_DEVICE_PEAKS_H
#define LAC_ANALYSIS_DIAGNOSE_DEVICE_PEAKS_H

/*
 * What a GPU can do at most, by precision: device_peaks.def, a row each with its source. A GPU that
 * is not in the table has no peak; none is guessed from a similar name.
 */

#include <stddef.h>
#include <stdint.h>

/** What a product computes in. Names are stable: they stand in the API. */
enum lac_precision {
    LAC_PRECISION_UNKNOWN = 0,
    LAC_PRECISION_FP64,
    LAC_PRECISION_FP32,
    LAC_PRECISION_TF32,
    LAC_PRECISION_FP16,
    LAC_PRECISION_BF16,
    LAC_PRECISION_FP8,
    LAC_PRECISION_INT8,
    LAC_PRECISION_COUNT_
};
/** "fp32", "bf16", ...; "unknown". */
const char *lac_precision_name(enum lac_precision precision);

struct lac_device_peak {
    const char *name;
    int32_t multiprocessors;
    double tflops[LAC_PRECISION_COUNT_]; /**< dense, 0 unknown */
    double memory_gb_s;                  /**< 0 unknown */
    const char *source;                  /**< where the figures are from */
};

/**
 * The row of a GPU by its recorded name and number of multiprocessors (0: not recorded), or NULL.
 *
 * @param name untrusted bytes of any length
 */
const struct lac_device_peak *lac_device_peak_of(const char *name, size_t length,
                                                 int32_t multiprocessors);

/** All rows. For tests. */
const struct lac_device_peak *lac_device_peaks(uint32_t *ret_count);

#endif
