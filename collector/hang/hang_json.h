#ifndef LAC_COLLECTOR_HANG_HANG_JSON_H
#define LAC_COLLECTOR_HANG_HANG_JSON_H

/* An alarm as a server takes it: the body of PUT /api/v1/uploads/{id}/hang. Pure. */

#include "collector/hang/hang_verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAC_HANG_JSON_BYTES = 8192 };

/** Valid JSON in one line, whatever the verdict's texts hold. @return false: there is no room */
bool lac_hang_json(const struct lac_hang_verdict *verdict, double quiet_s, uint64_t steps,
                   char out[LAC_HANG_JSON_BYTES]);

#endif
