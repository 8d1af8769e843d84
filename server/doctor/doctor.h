#ifndef LAC_SERVER_DOCTOR_DOCTOR_H
#define LAC_SERVER_DOCTOR_DOCTOR_H

/*
 * What of this host makes training slow or recording impossible. Each check adds lines to a report;
 * it reads files of /proc and /sys (below `root`, so that tests can lay them out), the
 * environment and limits, and says "cannot see" rather than guess. All of it takes under 2 s.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lac_doctor_state {
    LAC_DOCTOR_OK = 0, /**< green */
    LAC_DOCTOR_AMBER,  /**< costs time or data; the line carries the fix */
    LAC_DOCTOR_UNSEEN, /**< cannot see */
};

struct lac_doctor_line {
    const char *id; /**< static: "cores", "shm", ... */
    enum lac_doctor_state state;
    char text[240];
    char fix[320]; /**< "" unless amber */
};

enum { LAC_DOCTOR_LINES_MAX = 64 };

struct lac_doctor {
    const char *root;     /**< "" or the folder in which proc/ and sys/ are looked for */
    const char *data_dir; /**< NULL: there is none (no home) */
    const char *server;   /**< "http://host:port" */
    struct lac_doctor_line line[LAC_DOCTOR_LINES_MAX];
    unsigned line_count;
    unsigned allowed_cores; /**< by mask; 0 until lac_doctor_cores() */
    unsigned gpu_count;     /**< 0 until lac_doctor_gpus() */
};

/** Add a line; `fix` NULL or "" when there is nothing to do. */
void lac_doctor_add(struct lac_doctor *doctor, const char *id, enum lac_doctor_state state,
                    const char *fix, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** First line of root + path, without its line feed. @return false when it cannot be read */
bool lac_doctor_read(const struct lac_doctor *doctor, const char *path, char *out,
                     size_t capacity_bytes);
/** The whole file, cut at the capacity. */
bool lac_doctor_read_all(const struct lac_doctor *doctor, const char *path, char *out,
                         size_t capacity_bytes);

/** "3.2 GiB". Static ring of buffers: use at most four in one expression. */
const char *lac_doctor_bytes(uint64_t bytes);

void lac_doctor_cores(struct lac_doctor *doctor);      /* mask, quota, throttling, Slurm */
void lac_doctor_memory(struct lac_doctor *doctor);     /* /dev/shm, memory limit, locked memory */
void lac_doctor_gpus(struct lac_doctor *doctor);       /* presence, driver, permission to profile */
void lac_doctor_ask_driver(struct lac_doctor *doctor); /* the part of it that NVML answers */
void lac_doctor_environment(struct lac_doctor *doctor); /* variables that slow or intrude */
void lac_doctor_system(struct lac_doctor *doctor);      /* clock source, governor, huge pages */
void lac_doctor_disk(struct lac_doctor *doctor);        /* the data folder */
void lac_doctor_sandbox(struct lac_doctor *doctor);     /* what imports are held in */
void lac_doctor_reach(struct lac_doctor *doctor);       /* the server */

/** All of them, in the order of the report. */
void lac_doctor_run(struct lac_doctor *doctor);

#endif
