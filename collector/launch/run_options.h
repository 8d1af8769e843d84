#ifndef LAC_COLLECTOR_LAUNCH_RUN_OPTIONS_H
#define LAC_COLLECTOR_LAUNCH_RUN_OPTIONS_H

/* What `run` is asked for: flags, then LACUNA_* variables decide. */

#include <stdbool.h>
#include <stdint.h>

enum { LAC_METRIC_BYTES = 4096 };

struct lac_run_options {
    const char *output; /**< NULL: a name made of the command and the time */
    bool quiet;
    bool strict;         /**< without a recording the job is not run either */
    bool all;            /**< record everything, no windows */
    bool no_hang;        /**< do not watch whether the job goes on */
    bool cost;           /**< measure first what recording costs */
    bool profiler_api;   /**< record from cudaProfilerStart to cudaProfilerStop */
    const char *metrics; /**< file for Prometheus; NULL: none */
    const char *range;   /**< record inside of ranges of this name; NULL: no such wish */
    char metric
        [LAC_METRIC_BYTES]; /**< regular expressions, '\n' between them: LACUNA_METRIC of the job */
    const char *python_stacks; /**< "auto", "on", "off" or "all": LACUNA_PYTHON_STACKS of the job */
    const char *step;          /**< function or range that is a step: LACUNA_STEP; NULL: no wish */
    bool on_demand;            /**< record only when `lacuna window` asks for it */
    uint64_t duration_ms;      /**< record that long, then no more; 0: no limit */
    uint64_t delay_ms;         /**< begin that long after the start */
    uint64_t step_first;       /**< record steps first..last, counted from 1; 0: no such wish */
    uint64_t step_last;
    uint64_t limit_bytes;   /**< of the recording */
    const char *server;     /**< NULL: the recording is not pushed */
    const char *token_file; /**< NULL: a variable has it */
    const char *project;
    char **command;
};

/** @return -1: go on; else the exit status (help was shown, or the usage was wrong) */
int lac_run_options_parse(int argc, char **argv, struct lac_run_options *ret);

#endif
