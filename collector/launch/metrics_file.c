#include "collector/launch/metrics_file.h"

#include "collector/base/io_full.h"
#include "collector/base/progress_line.h"
#include "collector/launch/output_name.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 16384, LABELS_BYTES = 2048 };

static const uint64_t EVERY_NS = UINT64_C(10000000000);

struct lac_metrics_file {
    char path[PATH_BYTES];       /* links followed */
    char fresh[PATH_BYTES + 32]; /* beside it, with an ending that nobody collects */
    char labels[LABELS_BYTES];
    uint64_t written_ns; /* 0: not yet */
    uint64_t steps;      /* then */
    uint64_t loader_wait_ns;
    bool was_said;
};

/* ---- text */

struct text {
    char bytes[TEXT_BYTES];
    size_t used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length =
        vsnprintf(text->bytes + text->used, sizeof(text->bytes) - text->used, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof(text->bytes) - text->used) {
        text->used += (size_t)length;
    } else {
        text->bytes[text->used] = '\0'; /* a line that does not fit is left out whole */
    }
}

static void add_head(struct text *text, const char *name, const char *type, const char *help)
{
    add(text, "# HELP lacuna_%s %s\n# TYPE lacuna_%s %s\n", name, help, name, type);
}

static void add_value(struct text *text, const struct lac_metrics_file *file, const char *name,
                      const char *type, const char *help, double value)
{
    add_head(text, name, type, help);
    add(text, "lacuna_%s{%s} %.9g\n", name, file->labels, value);
}

/* A label's value: backslash, quote and line feed are escaped, and what is no text is replaced. */
static void add_label(char *labels, size_t capacity, const char *name, const char *value)
{
    size_t used = strlen(labels);

    used += (size_t)snprintf(labels + used, capacity - used, "%s%s=\"", used > 0 ? "," : "", name);
    for (; *value != '\0' && used + 8 < capacity; value++) {
        if (*value == '\\' || *value == '"') {
            labels[used++] = '\\';
        }
        labels[used++] = (unsigned char)*value < ' ' || (unsigned char)*value > '~' ? '_' : *value;
    }
    labels[used++] = '"';
    labels[used] = '\0';
}

/* ---- the file */

/* "NAME-rank-3.prom" of "NAME.prom" */
static bool tell_apart(char *path, size_t capacity, const char *rank)
{
    const char *const slash = strrchr(path, '/');
    char *const dot = strrchr(slash != NULL ? slash : path, '.');
    char end[256];

    (void)snprintf(end, sizeof(end), "%.200s", dot != NULL ? dot : "");
    if (dot != NULL && strlen(dot) >= 200) {
        return false;
    }
    if (dot != NULL) {
        *dot = '\0';
    }
    const size_t length = strlen(path);

    return (size_t)snprintf(path + length, capacity - length, "-%s%s", rank, end) <
           capacity - length;
}

/* @return NULL, or why the file cannot be written there */
static const char *find_place(struct lac_metrics_file *file, const char *path, const char *rank)
{
    char named[PATH_BYTES];
    bool tells_ranks_apart = false;
    bool is_in_place = false;

    if (!lac_output_name_fill(path, named, sizeof(named), &tells_ranks_apart)) {
        return "its name is too long";
    }
    /* before the rank's name: /dev/null-rank-0 is not what anybody meant */
    if (lac_path_to_write(named, file->path, sizeof(file->path), &is_in_place) && is_in_place) {
        return "it is no regular file, and would be replaced by one";
    }
    if (rank[0] != '\0' && !tells_ranks_apart && !tell_apart(named, sizeof(named), rank)) {
        return "its name is too long";
    }
    if (!lac_path_to_write(named, file->path, sizeof(file->path), &is_in_place)) {
        return strerror(errno);
    }
    if (is_in_place) {
        return "it is no regular file, and would be replaced by one";
    }
    return (size_t)snprintf(file->fresh, sizeof(file->fresh), "%s.%d.new", file->path,
                            (int)getpid()) < sizeof(file->fresh)
               ? NULL
               : "its name is too long";
}

struct lac_metrics_file *lac_metrics_file_begin(const char *path, const char *output)
{
    assert(output != NULL);
    struct lac_metrics_file *file;
    char job[256];
    char rank[32];
    const char *slash;

    if (path == NULL || path[0] == '\0') {
        return NULL;
    }
    file = calloc(1, sizeof(*file));
    lac_output_name_rank(rank, sizeof(rank));
    const char *const why = file != NULL ? find_place(file, path, rank) : "out of memory";

    if (why != NULL) {
        (void)fprintf(stderr, "lacuna: no metrics are written to %s: %s\n", path, why);
        free(file);
        return NULL;
    }
    slash = strrchr(output, '/');
    if (!lac_output_name_job(job, sizeof(job))) {
        (void)snprintf(job, sizeof(job), "%.255s", slash != NULL ? slash + 1 : output);
    }
    add_label(file->labels, sizeof(file->labels), "job", job);
    add_label(file->labels, sizeof(file->labels), "rank",
              rank[0] != '\0' ? strchr(rank, '-') + 1 : "0");
    return file;
}

bool lac_metrics_file_is_due(const struct lac_metrics_file *file, uint64_t now_ns)
{
    return file != NULL && (file->written_ns == 0 || now_ns - file->written_ns >= EVERY_NS);
}

static void fill(struct text *text, const struct lac_metrics_file *file,
                 const struct lac_job_figures *metrics, uint64_t now_ns)
{
    const uint64_t steps = metrics->steps > file->steps ? metrics->steps - file->steps : 0;
    const double passed_s = (double)(now_ns - file->written_ns) / 1e9;
    const double waited_s = metrics->loader_wait_ns > file->loader_wait_ns
                                ? (double)(metrics->loader_wait_ns - file->loader_wait_ns) / 1e9
                                : 0;

    add_value(text, file, "recording", "gauge", "Whether the job is being recorded now.",
              metrics->is_recording);
    if (file->written_ns > 0 && steps > 0) {
        add_value(text, file, "step_seconds", "gauge",
                  "Mean time of a step, since the last update.", passed_s / (double)steps);
    }
    if (file->written_ns > 0 && metrics->steps > 0) {
        add_value(text, file, "loader_wait_ratio", "gauge",
                  "Share of time that the training process waited for data, since the last update.",
                  waited_s < passed_s ? waited_s / passed_s : 1);
    }
    add_value(text, file, "steps_total", "counter", "Training steps that have ended.",
              (double)metrics->steps);
    add_value(text, file, "loader_wait_seconds_total", "counter",
              "Time that the training process waited for data.",
              (double)metrics->loader_wait_ns / 1e9);
    add_value(text, file, "recorded_processes_total", "counter", "Processes that were recorded.",
              (double)metrics->processes);
    add_value(text, file, "recorded_bytes", "gauge", "Size of the recording.",
              (double)metrics->recorded_bytes);
    add_value(text, file, "lost_events_total", "counter", "Events that could not be recorded.",
              (double)metrics->lost_events);
    add_value(text, file, "failed_writes_total", "counter",
              "Pieces of the recording that its folder could not take.",
              (double)metrics->failed_writes);
    add_value(text, file, "launcher_cpu_seconds_total", "counter",
              "CPU time of the launcher itself.", (double)metrics->launcher_cpu_ns / 1e9);
    add_value(text, file, "updated_timestamp_seconds", "gauge", "When this was written.",
              (double)time(NULL));
    if (metrics->gpu_count > 0) {
        add_head(text, "gpu_busy_ratio", "gauge", "Share of time that the GPU had work.");
    }
    for (unsigned i = 0; i < metrics->gpu_count; i++) {
        if (!isnan(metrics->gpu_busy[i])) {
            add(text, "lacuna_gpu_busy_ratio{%s,gpu=\"%u\"} %.4g\n", file->labels, i,
                metrics->gpu_busy[i]);
        }
    }
}

/* Whole or not at all. */
static bool replace(const struct lac_metrics_file *file, const struct text *text)
{
    const int fd =
        open(file->fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    bool is_written;

    if (fd < 0) {
        return false;
    }
    is_written = lac_write_full(fd, text->bytes, text->used) && fchmod(fd, 0644) == 0;
    is_written = close(fd) == 0 && is_written && rename(file->fresh, file->path) == 0;
    if (!is_written) {
        const int problem = errno;

        (void)unlink(file->fresh);
        errno = problem;
    }
    return is_written;
}

void lac_metrics_file_write(struct lac_metrics_file *file, const struct lac_job_figures *metrics,
                            uint64_t now_ns)
{
    static struct text text;

    if (file == NULL) {
        return;
    }
    text.used = 0;
    fill(&text, file, metrics, now_ns);
    if (!replace(file, &text) && !file->was_said) {
        file->was_said = true;
        lac_progress_line_clear();
        (void)fprintf(stderr, "lacuna: the metrics cannot be written to %s: %s\n", file->path,
                      strerror(errno));
    }
    file->written_ns = now_ns;
    file->steps = metrics->steps;
    file->loader_wait_ns = metrics->loader_wait_ns;
}

void lac_metrics_file_end(struct lac_metrics_file *file)
{
    if (file != NULL) {
        if (file->written_ns > 0 && !file->was_said) {
            (void)unlink(file->path);
        }
        free(file);
    }
}
