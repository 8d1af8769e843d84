#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_METRICS_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_METRICS_H

/*
 * Results of the job (LAC_EVENT_METRIC): a counter each, and the setting "host.metric.NAME" with
 * the last value, the best and how many there are: "1.83 1.79 200". Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdint.h>

enum { LAC_SPOOL_METRICS_MAX = 64 };

/** A LAC_EVENT_METRIC of that time, and what follows it (may be NULL).
 *  @return LAC_OK or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_metric(struct lac_spool_process *process,
                                              const struct lac_event *event,
                                              const struct lac_event *next, int64_t now_ns);

/** The end of the process: give the settings where all went well, free the table.
 *  @return `status`, or LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_metrics_close(struct lac_spool_process *process,
                                                     enum lac_status status);

#endif
