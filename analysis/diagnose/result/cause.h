#ifndef LAC_ANALYSIS_DIAGNOSE_RESULT_CAUSE_H
#define LAC_ANALYSIS_DIAGNOSE_RESULT_CAUSE_H

/* Why a device is idle, and how a time says that it is not known. */

#include <stdint.h> // IWYU pragma: export

#define LAC_UNKNOWN_NS INT64_MIN /**< printed as null */

/** Causes of idle time, in the order of idle_by_cause_ns. Names are part of the contract. */
enum lac_cause {
    LAC_CAUSE_DATA_WAIT = 0,
    LAC_CAUSE_SYNC,
    LAC_CAUSE_LAUNCH,
    LAC_CAUSE_COPY_WAIT,
    LAC_CAUSE_ALLOCATOR,
    LAC_CAUSE_MODULE_LOAD,
    LAC_CAUSE_COMM,
    LAC_CAUSE_DEPENDENCY,
    LAC_CAUSE_HOST,
    LAC_CAUSE_PROFILER,
    LAC_CAUSE_UNATTRIBUTED,
    LAC_CAUSE_COUNT_
};
/** "data_wait", "sync", ...; letters D S L C A M N W H P ?. */
const char *lac_cause_name(enum lac_cause cause);
char lac_cause_letter(enum lac_cause cause);
/** Continues "waits ...": "for data", "after synchronization". */
const char *lac_waits_for(enum lac_cause cause);

#endif
