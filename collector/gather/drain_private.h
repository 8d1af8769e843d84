#ifndef LAC_COLLECTOR_GATHER_DRAIN_PRIVATE_H
#define LAC_COLLECTOR_GATHER_DRAIN_PRIVATE_H

/* What drain*.c share. */

#include "collector/gather/drain.h"
#include "collector/gather/shared_spool.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_DRAIN_BUCKETS = 1024, LAC_DRAIN_BUFFER_BYTES = 1 << 18 };

/* Where a segment of the spool goes in the output, and how much of it has gone there. */
struct lac_drain_place {
    int64_t output_index; /* NO_INDEX: nowhere yet; LOST_INDEX: it did not fit */
    uint64_t opened;   /* ticks when the segment that was moved there was: a reused one differs */
    uint64_t given_at; /* place in the ring, when handed back */
    bool moved;        /* whole; only a new life of the segment changes that */
    bool handed_back;  /* for reuse; else the ring was full */
    bool has_names;
    bool is_due; /* this round moves it */
};

/* A segment that the output held before this gathering. */
struct lac_drain_kept {
    uint64_t opened; /* which one it is: when it was opened, by which thread, as its how many-th */
    int32_t tid;
    uint32_t seq;
    uint32_t kind;
    uint64_t index; /* in the output */
};

/* The spool of one process. */
struct lac_drain_source {
    char name[128];
    char output_name[136];
    struct lac_shared_spool spool; /* open only during its turn where there are very many */
    int output_fd;                 /* -1 likewise */
    uint32_t segment_bytes;        /* as it was when the spool was first seen */
    int32_t pid;
    int32_t parent_pid;
    int32_t rank;     /* -1: its environment does not say */
    bool can_end;     /* it is in our pid namespace: we see when it ends */
    bool is_complete; /* moved by the last round, nothing failed */
    struct lac_drain_place *places;
    size_t place_count;
    struct lac_drain_kept *kept; /* sorted; only where a gathering adds to a recording */
    size_t kept_count;
    uint64_t output_segments;
    uint64_t ring_tail;
    uint64_t dropped;      /* as last seen */
    uint64_t dropped_else; /* of these: not for want of space */
    uint32_t gpu_buffers_out;
    uint64_t next_look_ns;
    uint64_t next_refresh_ns;
    uint64_t next_ask_ns;   /* whether it has ended */
    uint64_t seen_segments; /* what the process's header said at the last scan */
    uint64_t seen_free_head;
    uint64_t seen_dropped;
    bool is_quiet;                        /* two scans in a row found that, and nothing due */
    struct lac_drain_source *next;        /* all */
    struct lac_drain_source *next_bucket; /* of the same hash */
};

struct lac_drain {
    const char *spool_folder;
    const char *output_folder;
    uint64_t loader_wait_ns; /* of the process with the most steps, for batches */
    bool has_captured;       /* some process opened a range to capture */

    struct lac_drain_source *sources; /* of processes that may still write */
    struct lac_drain_source *buckets[LAC_DRAIN_BUCKETS];
    size_t source_count;
    size_t open_count;
    size_t open_max;
    char pid_namespace[32]; /* ours; "": not known */
    uint8_t *buffer;
    size_t buffer_bytes; /* at least LAC_DRAIN_BUFFER_BYTES, and a segment of each source */
    struct lac_drain_counts counts;
    enum lac_spool_stop wish;
    bool follows_captures; /* RECORD or WAIT, process by process; `wish` is that of the others */
    uint64_t limit_bytes;
    uint64_t others_bytes;  /* of files that others write */
    uint64_t lost_events;   /* in segments that did not fit */
    uint64_t ended_dropped; /* of processes that have ended */
    uint64_t ended_dropped_else;
    uint64_t looked_at_ns;     /* when the folder was read last */
    int64_t folder_changed_ns; /* its time of change then */
    int open_error;            /* why a spool could not be opened; 0: all could */
    struct lac_drain_gpu gpu;  /* of the first process that has trouble */
    bool looks_again;          /* something in the folder was not a spool yet */
    bool only_looks;           /* the processes are not ours to tell */
};

/** a + b, or the largest number. */
static inline uint64_t lac_drain_sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

/** What of a fresh source's header says who it is. */
void lac_drain_know(struct lac_drain_source *source, const struct lac_spool_header *header);

/** Room for the segment in the limit? Names may use what events may not. */
bool lac_drain_fits(const struct lac_drain *drain, const struct lac_drain_source *source,
                    enum lac_segment_kind kind);

/** The output's header, for a source that was just opened. @return false: it cannot be written */
bool lac_drain_begin(const struct lac_drain_source *source, const struct lac_spool_header *header);

/**
 * An output file that was there, whether it is of the same process: then its segments are noted in
 * `source->kept`, and what comes behind them is added. The file is not changed.
 */
bool lac_drain_resume(struct lac_drain *drain, struct lac_drain_source *source,
                      const struct lac_spool_header *header);

/** The segment of this head, if the output held it before. */
bool lac_drain_find_kept(const struct lac_drain_source *source,
                         const struct lac_segment_header *head, uint64_t *ret_index);

/** Whether the segment in the drain's buffer is as long as the one at `index` of the output. */
bool lac_drain_is_newer(const struct lac_drain *drain, const struct lac_drain_source *source,
                        uint64_t index);

/** Note why a process cannot record its GPU, if its header says so. */
void lac_drain_look_at_gpu(struct lac_drain *drain, const struct lac_drain_source *source,
                           const struct lac_shared_look *look);

/**
 * Move what is there, of an open source.
 *
 * @param final also what is not full: no process writes any more, or none of it will be moved later
 * @param refreshes also what is half filled, should we not live to the end
 * @return whether anything was moved
 */
bool lac_drain_move(struct lac_drain *drain, struct lac_drain_source *source, bool final,
                    bool refreshes);

#endif
