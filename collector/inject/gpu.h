#ifndef LAC_COLLECTOR_INJECT_GPU_H
#define LAC_COLLECTOR_INJECT_GPU_H

/*
 * GPU activity through CUPTI, only in processes that use CUDA:
 *
 *   libcuda's cuInit -> InitializeInjection (cupti_session.c) -> find libcupti (cupti_library.c)
 *     -> subscribe, enable what is allowed: the ladder full > without kernels > ranges only
 *   CUPTI fills buffers (cupti_buffers.c) -> records (cupti_decode.c) -> spool (gpu_spool.c)
 *
 * Lock order: no lock that a callback of CUPTI takes is held while calling CUPTI, because it calls
 * us back with locks of its own held.
 */

#include "collector/inject/cupti_abi.h"
#include "collector/inject/cupti_graphs.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- cupti_library.c */

/**
 * Find libcupti and its functions: the copy that the process has loaded, else the one that belongs
 * to its CUDA runtime, else the toolkit's; of each place first what fits the driver.
 *
 * @param skip so many that would do are passed over: they were found not to work
 * @param ret_path where it was found; static storage
 * @return false when there is none, or it lacks a function that we cannot do without
 */
bool lac_cupti_find(unsigned skip, struct cupti_functions *functions, const char **ret_path);

/* ---- cupti_kinds.c: what is recorded */

/** Keep the names of all calls, for lac_cupti_call_name(). Once, before anything is enabled. */
void lac_cupti_names_load(const struct cupti_functions *functions);
/** NULL for one that CUPTI did not name. Takes no lock and does not call CUPTI. */
const char *lac_cupti_call_name(enum cupti_domain domain, uint32_t number);
/** Enable all that is wanted and allowed. @return the rung of the ladder, told as a setting */
const char *lac_cupti_enable(const struct cupti_functions *functions, bool whole_graphs);
void lac_cupti_disable(const struct cupti_functions *functions);
/** Tell why something is not recorded: "what: CUPTI's text (result)". */
void lac_cupti_note_result(const struct cupti_functions *functions, const char *what, int result);

/* ---- cupti_session.c: begin, pause, leave to another profiler, end */

/** Leave CUPTI to another profiler, given by name, and resume when it is done. Any thread. */
void lac_gpu_yield(bool yield, const char *to);
void lac_gpu_session_forget(void); /**< in a forked child: locks that the parent's threads held */

/**
 * The number that GPU records give a stream (CUstream, cudaStream_t), and the device that the
 * calling thread uses.
 *
 * @return false while nothing of the GPU is recorded, or CUPTI does not know it
 */
bool lac_gpu_stream_number(const void *stream, uint32_t *ret_device, uint32_t *ret_number);

/* ---- cuda_injection.c */

/** Load the library that LACUNA_CUDA_INJECTION names and have it begin, as libcuda would. Once a
 * process; without a lock of ours held, since it may do what it likes. */
void lac_cuda_injection_chain(void);

/* ---- cupti_buffers.c */

/** Give CUPTI our callbacks. @return CUPTI's result, or that there is no memory */
int lac_cupti_buffers_register(const struct cupti_functions *functions, uint32_t version);
/** Have CUPTI return its buffers; not from one of its callbacks. The CPU time is counted.
 * @param flag 1: also those with operations in progress, whose records then have no times */
void lac_cupti_flush(uint32_t flag);
/** Wait up to that long for operations in progress, then take what there is. */
void lac_cupti_flush_patiently(unsigned wait_ms);
/** How many buffers CUPTI has. */
unsigned lac_cupti_buffers_out(void);
/** How often it asked and got none to be read: there was no memory, or 512 were out. */
uint64_t lac_cupti_buffers_unread(void);
/** Their memory to the system, of those that CUPTI does not have; they can be used again. */
void lac_cupti_buffers_give_back(void);
/** How many buffers with records came back so far. */
uint64_t lac_cupti_buffers_completed(void);
void lac_cupti_buffers_forget(void); /**< in a forked child */

enum { LAC_CUPTI_WAIT_MS = 10 /* between two looks */ };

/* ---- cupti_dump.c */

/**
 * LACUNA_CUPTI_DUMP=DIR: keep the buffer as CUPTI returned it, with what its pointers point to, for
 * tests (FORMAT.md). At most 16 MiB in all; nothing without DIR.
 */
void lac_cupti_dump(const struct cupti_functions *functions, uint32_t version, uint8_t *buffer,
                    size_t valid_bytes);

/* ---- cupti_decode.c */

struct lac_gpu_writer;

/** Append what `record` says to the spool. Kinds that we did not request are skipped. */
void lac_cupti_decode(struct lac_gpu_writer *writer, uint32_t version,
                      const struct cupti_activity *record);

/* ---- gpu_spool.c: GPU records into segments of the spool; one writer at a time */

struct lac_gpu_writer *lac_gpu_writer_take(void);
void lac_gpu_writer_give(struct lac_gpu_writer *taken);
/** Graphs and their cost, of this process: the taker's to use. */
struct lac_graphs *lac_gpu_graphs(struct lac_gpu_writer *taken);
/** Id of a name, through a cache of the writer. NULL is 0. */
uint32_t lac_gpu_writer_name(struct lac_gpu_writer *taken, const char *name);
/**
 * Append a record of from->units * 16 bytes; its type is stored last. Drops and counts when there
 * is no room, and what has no times or such that cannot be: CUPTI returns operations that are still
 * in progress with zeros. Drops what began while recording paused.
 */
void lac_gpu_writer_put(struct lac_gpu_writer *taken, const struct lac_gpu_record *from);
/** Clock of all times from now on. */
void lac_gpu_writer_clock(enum lac_gpu_clock clock);
void lac_gpu_writer_forget(void); /**< in a forked child */
/** How many records were dropped since they had no times that can be. */
uint64_t lac_gpu_writer_untimed(void);

/* ---- gpu_pauses.c: the launcher's pauses. CUPTI returns its records late */

/** Note when a pause begins and ends. Any thread.
 * @return what the launcher wants now */
enum lac_spool_stop lac_gpu_watch_pause(void);
/** Whether what began at that time of CLOCK_MONOTONIC is to be recorded. */
bool lac_gpu_was_recording(uint64_t monotonic_ns);
void lac_gpu_pauses_forget(void); /**< in a forked child */

/** Let the launcher see how far the recording came; after the settings that say why. */
void lac_gpu_tell_state(enum lac_gpu_state state);
/** Record "key=value" from any thread. */
void lac_setting(const char *key, const char *value);

#endif
