/* The table of GPUs and how a recorded name finds its row. */

#include "analysis/diagnose/names/device_peaks.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const struct lac_device_peak peaks[] = {
#define LAC_DEVICE_PEAK(name, multiprocessors, fp64, fp32, tf32, fp16, bf16, fp8, int8, memory,    \
                        source)                                                                    \
    {(name), (multiprocessors), {0, fp64, fp32, tf32, fp16, bf16, fp8, int8}, (memory), (source)},
#include "analysis/diagnose/names/device_peaks.def"
#undef LAC_DEVICE_PEAK
};

const char *lac_precision_name(enum lac_precision precision)
{
    static const char *const names[LAC_PRECISION_COUNT_] = {"unknown", "fp64", "fp32", "tf32",
                                                            "fp16",    "bf16", "fp8",  "int8"};
    assert(precision < LAC_PRECISION_COUNT_);
    return names[precision];
}

const struct lac_device_peak *lac_device_peak_of(const char *name, size_t length,
                                                 int32_t multiprocessors)
{
    static const char *const makers[] = {"NVIDIA ", "AMD "};
    assert(name != NULL || length == 0);
    for (size_t i = 0; i < LAC_COUNT_OF(makers); i++) {
        size_t maker = strlen(makers[i]);
        if (length > maker && memcmp(name, makers[i], maker) == 0) {
            name += maker;
            length -= maker;
            break;
        }
    }
    for (size_t i = 0; i < LAC_COUNT_OF(peaks); i++) {
        bool is_named = strlen(peaks[i].name) == length &&
                        (length == 0 || memcmp(peaks[i].name, name, length) == 0);
        if (is_named && (multiprocessors == 0 || multiprocessors == peaks[i].multiprocessors)) {
            return &peaks[i];
        }
    }
    return NULL;
}

const struct lac_device_peak *lac_device_peaks(uint32_t *ret_count)
{
    *ret_count = LAC_COUNT_OF(peaks);
    return peaks;
}
