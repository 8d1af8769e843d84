#ifndef LAC_TESTS_SUPPORT_DEMO_ROWS_H
#define LAC_TESTS_SUPPORT_DEMO_ROWS_H

#include "server/demo/pipeline.h"

#include <stdint.h>

/** On a stream nothing overlaps; on a thread an interval lies inside another or beside it. */
void check_demo_rows(const struct lac_demo_event *events, uint64_t count);

#endif
