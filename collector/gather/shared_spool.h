#ifndef LAC_COLLECTOR_GATHER_SHARED_SPOOL_H
#define LAC_COLLECTOR_GATHER_SHARED_SPOOL_H

/*
 * The spool of a process that may still write to it, or do worse: its header can change between two
 * looks and its file can become shorter under our mapping. So nobody outside this file reads the
 * shared page: what is needed of it is copied once, by lac_shared_open() and lac_shared_look(), and
 * everything else is read() into memory of ours.
 */

#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lac_shared_spool {
    int fd;                          /**< -1: not open */
    struct lac_spool_header *shared; /**< the process's own page; NULL: not open */
    bool is_writable;
};

enum lac_shared_opening {
    LAC_SHARED_OPENED,
    LAC_SHARED_NOT_YET,   /**< too short, or without its magic: it may become one */
    LAC_SHARED_NOT_OURS,  /**< not a file, another version, or a header that contradicts itself */
    LAC_SHARED_NO_ACCESS, /**< errno says why */
};

/** What of the header changes while a process writes. */
struct lac_shared_look {
    uint64_t segment_count;
    uint64_t dropped_count;
    uint64_t dropped_disk_count; /**< of these */
    uint32_t gpu_buffers_out;    /**< of CUPTI, which it has not given back */
    uint64_t step_count;
    uint64_t free_head;
    uint32_t gpu_state; /**< whatever number stands there */
    uint64_t loader_wait_ns;
    uint32_t captures_begun;
    uint32_t captures_open;
    uint32_t stop; /**< anything: the process may have stored it */
    uint64_t progress_count;
    int32_t training_tid;
};

/**
 * Open a spool and copy its header once. Only what passes lac_spool_header_check() is opened;
 * the copy's segment_bytes is what counts from then on.
 *
 * @param is_writable the process is ours to tell something
 * @param ret_header  a copy, sound and with text_bytes within bounds when LAC_SHARED_OPENED
 */
enum lac_shared_opening lac_shared_open(struct lac_shared_spool *spool, const char *path,
                                        bool is_writable, struct lac_spool_header *ret_header);
/** More than once is allowed. */
void lac_shared_close(struct lac_shared_spool *spool);

/** A copy of what changes; all 0 when the file has become shorter than its header. */
struct lac_shared_look lac_shared_look(const struct lac_shared_spool *spool);

/** Bytes of the file now. */
uint64_t lac_shared_size(const struct lac_shared_spool *spool);

/** @return false: the file ends before, or cannot be read */
bool lac_shared_read(const struct lac_shared_spool *spool, void *bytes, size_t size_bytes,
                     uint64_t offset);

/** Tell the process what to do. */
void lac_shared_tell(const struct lac_shared_spool *spool, enum lac_spool_stop wish);

/** The same, unless it is told another thing than `from` by now. @return whether it was told */
bool lac_shared_replace(const struct lac_shared_spool *spool, uint32_t from,
                        enum lac_spool_stop wish);

/** Ask it for the stacks of its threads, and wake who waits for that. */
void lac_shared_ask(const struct lac_shared_spool *spool);

/** Put a segment at place `tail` of the ring of emptied ones and store tail + 1. The caller is the
 * only one who does, keeps count of `tail` and has seen that there is room. */
void lac_shared_give(const struct lac_shared_spool *spool, uint64_t tail, uint32_t index);

#endif
