#ifndef LAC_SERVER_DEMO_TRACE_JSON_H
#define LAC_SERVER_DEMO_TRACE_JSON_H

/*
 * Writes a simulated run as Chrome trace JSON in the shape that the PyTorch profiler uses today,
 * with worker processes beside it. Says in its name and at its top level that it is simulated.
 */

#include "server/demo/pipeline.h"

#include <stdio.h>

/** The GPU that a trace says it is of. */
struct lac_demo_device {
    const char *name;
    int64_t memory_bytes;
    int major, minor; /**< compute capability */
    int sm_count;
    int shared_bytes; /**< of a multiprocessor */
};

/** What stands around the events of a trace. */
struct lac_demo_sheet {
    const char *name;     /**< " (simulated)" is put behind it */
    const char *settings; /**< JSON object */
    const struct lac_demo_device *device;
    int32_t workers;
    int32_t rank;
    int32_t ranks;
    bool has_thread_workers; /**< workers are threads of the training process */
    bool has_pin_thread;
    bool has_copy_stream;
    bool has_comm_stream;
};

/**
 * Write events under a sheet.
 *
 * @return LAC_OK, LAC_ERR_IO or LAC_ERR_NOMEM
 * Cost: a sort of the events; output is the same for the same events.
 */
LAC_MUST_USE enum lac_status lac_demo_write_events(FILE *out, const struct lac_demo_sheet *sheet,
                                                   const struct lac_demo_event *events,
                                                   uint64_t count, struct lac_error *reterr);

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
