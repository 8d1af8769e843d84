#ifndef LAC_TESTS_STAND_IN_CUPTI_STAND_IN_H
#define LAC_TESTS_STAND_IN_CUPTI_STAND_IN_H

/* What the two halves of the stand-in for libcupti share. */

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

struct delivery {
    uint8_t *buffer;
    size_t size_bytes;
    size_t valid_bytes;
};

/** Ask the tool for a buffer; its address is NULL where the tool refuses, as it may from version 27
 * on: before, the process ends with 93. */
void stand_in_ask(struct delivery *delivery);
/** Return it, if there is one. */
void stand_in_give(const struct delivery *delivery);
/** Bytes of a record of that kind in a buffer, as long as CUDA 13 makes them; 0 for others. */
size_t stand_in_size_of(uint32_t kind);
/** Append a record; returns where the next one goes. At NULL it is dropped and counted. */
uint8_t *stand_in_add(uint8_t *at, const void *record, size_t size_bytes, uint32_t kind);
/** What the tool's clock says, less STAND_IN_AGO_MS; CLOCK_REALTIME where it registered none. */
uint64_t stand_in_now_ns(void);
EXPORT int stand_in_enabled(int kind);

/* ---- cupti_stand_in_gpu.c */

/** cuptiActivityFlushAll(), of what the GPU was given. */
void stand_in_gpu_flush(int is_forced);
/** The tool reads another record: it may be the one at which the process is to be killed. */
void stand_in_reads_record(void);

#endif
