#ifndef LAC_COLLECTOR_LAUNCH_METRICS_FILE_H
#define LAC_COLLECTOR_LAUNCH_METRICS_FILE_H

/*
 * Figures of a job that runs, as a file in Prometheus's text format: for the textfile collector of
 * node_exporter, so that a node needs no further port. Written whole every ten seconds, readable
 * for all, and removed when the job ends; of a launcher that was killed it stays, and
 * lacuna_updated_timestamp_seconds shows it.
 */

#include <stdbool.h>
#include <stdint.h>

enum { LAC_METRICS_GPUS_MAX = 64 };

/** What the file says; the counters since the job's start. */
struct lac_job_figures {
    bool is_recording;
    uint64_t steps;
    uint64_t loader_wait_ns; /**< of the training process with the most steps */
    uint64_t processes;
    uint64_t recorded_bytes;
    uint64_t lost_events;
    uint64_t failed_writes;
    uint64_t launcher_cpu_ns;
    unsigned gpu_count;
    double gpu_busy[LAC_METRICS_GPUS_MAX]; /**< 0 to 1; NAN: not known */
};

struct lac_metrics_file;

/**
 * @param path    of the file, with the patterns of -o; a rank's number goes before its ending where
 *                no pattern tells ranks apart. NULL: there is none
 * @param output  folder of the recording, borrowed; a job without a number is called as it is
 * @return NULL: none is wanted, or it cannot be written, which is said once
 */
struct lac_metrics_file *lac_metrics_file_begin(const char *path, const char *output);

/** Whether it is time to write again. */
bool lac_metrics_file_is_due(const struct lac_metrics_file *file, uint64_t now_ns);

/** Write it anew. The step time is the mean since the last time. NULL is allowed. */
void lac_metrics_file_write(struct lac_metrics_file *file, const struct lac_job_figures *metrics,
                            uint64_t now_ns);

/** Remove it. NULL is allowed. */
void lac_metrics_file_end(struct lac_metrics_file *file);

#endif
