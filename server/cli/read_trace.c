#include "server/cli/read_trace.h"

#include "analysis/diagnose/diagnose.h"
#include "analysis/import/import.h"
#include "collector/base/terminal_text.h"
#include "server/cli/complain.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/** Traces that came out of one path: the first is kept, the others counted. */
struct reading {
    const char *path;
    struct lac_read_trace *trace;
    const struct lac_names *names;
    uint32_t count;
    bool shows_progress;
    bool has_shown;
    struct timespec last_shown;
};

static bool show_progress(void *context, uint64_t done_bytes, uint64_t total_bytes,
                          uint64_t event_count)
{
    struct reading *reading = context;
    if (!reading->shows_progress || total_bytes == 0) {
        return true;
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    double since_s = (double)(now.tv_sec - reading->last_shown.tv_sec) +
                     (double)(now.tv_nsec - reading->last_shown.tv_nsec) * 1e-9;
    if (since_s < 0.2) {
        return true;
    }
    reading->last_shown = now;
    reading->has_shown = true;
    char path[60];
    (void)fprintf(stderr, "\r%s  %3.0f %%  %.1f M events",
                  lac_terminal_string(reading->path, path, sizeof(path)),
                  100.0 * (double)done_bytes / (double)total_bytes, (double)event_count / 1e6);
    (void)fflush(stderr);
    return true;
}

static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct reading *reading = context;
    if (reading->count++ > 0) {
        lac_model_destroy(model);
        return LAC_OK;
    }
    reading->trace->model = model;
    const struct lac_diagnose_options options = {.names = reading->names};
    enum lac_status status = lac_diagnose(model, &options, &reading->trace->analysis, reterr);
    return status == LAC_ERR_NOMEM ? lac_fail(reterr, status, 0, "out of memory") : status;
}

enum lac_status lac_read_trace(const char *command, const char *path, const struct lac_names *names,
                               struct lac_read_trace *ret_trace)
{
    struct lac_read_trace trace = {0};
    struct reading reading = {.path = path,
                              .names = names,
                              .trace = &trace,
                              .shows_progress = isatty(STDERR_FILENO) == 1};
    struct lac_import_options import = {.progress = show_progress, .progress_context = &reading};
    struct lac_error error = {0};
    lac_import_limits_default(&import.limits);
    enum lac_status status = lac_import_file(path, &import, take_model, &reading, &error);
    if (reading.has_shown) {
        (void)fprintf(stderr, "\r\033[K");
    }
    if (!status && reading.count != 1) {
        status = reading.count == 0 ? lac_fail(&error, LAC_ERR_CORRUPT, 0, "contains no trace")
                                    : lac_fail(&error, LAC_ERR_MISUSE, 0,
                                               "contains %u traces; unpack it and give one of them",
                                               (unsigned)reading.count);
    }
    if (status) {
        lac_read_trace_done(&trace);
        lac_complain_error(command, path, &error);
        return status;
    }
    *ret_trace = trace;
    return LAC_OK;
}

void lac_read_trace_done(struct lac_read_trace *trace)
{
    lac_analysis_destroy(trace->analysis);
    lac_model_destroy(trace->model);
    *trace = (struct lac_read_trace){0};
}
