#ifndef LAC_KERNELS_LOADER_H
#define LAC_KERNELS_LOADER_H

/*
 * A data loader like PyTorch's: forked worker processes with an index queue each, finished batches
 * in shared memory, handed to the training process in order, two batches ahead for each worker.
 */

#include <stddef.h>
#include <stdint.h>

struct loader;

struct loader_options {
    int workers; /**< 0: batches are made in the training process */
    int batches; /**< in total */
    size_t batch_floats;
    int fetch_ms; /**< CPU time that making a batch takes, at least */
};

/** @return NULL when memory or processes cannot be had (errno) */
struct loader *loader_open(const struct loader_options *options);

/** The next batch, in order: valid until the call after the next `2 * workers` calls. NULL after
 * the last. */
const float *loader_next(struct loader *loader);

/** All memory that batches come in, for page-locking; NULL without workers. */
void *loader_memory(struct loader *loader, size_t *ret_size_bytes);

void loader_close(struct loader *loader);

#endif
