#ifndef LAC_SERVER_DEMO_TRACE_JSON_H
#define LAC_SERVER_DEMO_TRACE_JSON_H

/*
 * Writes a simulated run as Chrome trace JSON in the shape that the PyTorch profiler uses today,
 * with worker processes beside it. Says in its name and at its top level that it is simulated.
 */

#include "server/demo/pipeline.h"

#include <stdio.h>

/**
 * @param name the trace's name; " (simulated)" is put behind it
 * @return LAC_OK, LAC_ERR_IO or LAC_ERR_NOMEM
 * Cost: a sort of the events; output is the same for the same run.
 */
LAC_MUST_USE enum lac_status lac_demo_write_trace(FILE *out, const char *name,
                                                  const struct lac_demo_pipeline *pipeline,
                                                  const struct lac_demo_run *run,
                                                  struct lac_error *reterr);

/** As fprintf(); what goes wrong is left to ferror(). */
void lac_demo_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Write `text` as a JSON string with its quotes. */
void lac_demo_write_string(FILE *out, const char *text);

/** Write the settings object of a pipeline, as the training script would name them. */
void lac_demo_write_settings(FILE *out, const struct lac_demo_pipeline *pipeline);

#endif
