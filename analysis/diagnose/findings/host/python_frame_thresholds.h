#ifndef LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAME_THRESHOLDS_H
#define LAC_ANALYSIS_DIAGNOSE_PYTHON_FRAME_THRESHOLDS_H

/* Of a wait of the device, in percent, what one function fills before it is named: then the wait is
 * mostly gone without it, and no other function is as large as twice that. */
#define PYTHON_FRAME_MIN_PCT 30.0
/* What is left of the function's time when a library does the same on the device, or in C: the best
 * case, the expected one, and the worst, in which it is only spread over fewer calls. */
#define PYTHON_FRAME_LEFT_MID   0.05
#define PYTHON_FRAME_LEFT_WORST 0.3

#endif
