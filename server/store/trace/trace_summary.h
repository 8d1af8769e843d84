#ifndef LAC_SERVER_STORE_TRACE_TRACE_SUMMARY_H
#define LAC_SERVER_STORE_TRACE_TRACE_SUMMARY_H

/* What of a trace stands in the catalog as well as in its file. */

#include <stdbool.h>
#include <stdint.h>

/* 128 random bits in base32; with the 0 */
enum { LAC_ID_LENGTH = 26, LAC_ID_SIZE = 27 };

/** What list rows say of a trace's diagnosis. Numbers that are not known are NaN (or INT64_MIN). */
struct lac_trace_summary {
    bool present;
    char cause[24]; /**< "data_wait", ..., "gpu", "unknown" */
    char letter;    /**< 'D', ...; 0 none */
    char text[512];
    int64_t step_mean_ns; /**< LAC_UNKNOWN_NS (INT64_MIN) when there are no steps */
    double throughput_per_s;
    char throughput_unit[16]; /**< "samples", "tokens", "steps"; "batches" or "iterations" of
                                 what does not train */
    double not_computing_pct;
    char next_change[128];
    double gain_low_pct, gain_mid_pct, gain_high_pct;
    char finding_id[40]; /**< "" none */
    char model[64];      /**< what is trained: "ResNet"; "" not known */
};

#endif
