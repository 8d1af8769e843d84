#ifndef LAC_SERVER_INGEST_ORIGINAL_H
#define LAC_SERVER_INGEST_ORIGINAL_H

/*
 * What was uploaded, kept as zstd frames of a MiB so that a better importer can run again; and the
 * hash of it, in the same pass.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_original_options {
    const char *input_path;
    const char *output_path; /**< NULL: hash only */
    uint8_t *ret_sha256;     /**< 32 bytes, or NULL: do not hash */
    int level;               /**< of zstd; 0: the default, chosen by what the file is */
};

/**
 * Read the file once. The output must not exist; it is synced when this returns.
 *
 * @param ret_size_bytes bytes read
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM. After a failure there is no output.
 * Cost: 0.5 to 0.8 ns a byte for the hash and 0.35 for zstd (Kineto JSON); 3 MiB of memory.
 */
LAC_MUST_USE enum lac_status lac_original_read(const struct lac_original_options *options,
                                               uint64_t *ret_size_bytes, struct lac_error *reterr);

/** The same beside the import, in a thread of its own. */
struct lac_original_task;

/** Called in that thread before it reads; false: it does not read, and fails. */
typedef bool (*lac_original_enter)(void *context);

/**
 * Begin. Where no thread can be had, the file is read before this returns, or by
 * lac_original_task_end() when there is something to `enter` first.
 *
 * @param options its paths and `ret_sha256` stay the caller's until the end
 * @param enter   may be NULL
 * @return LAC_OK or LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_original_task_begin(const struct lac_original_options *options,
                                                     lac_original_enter enter, void *context,
                                                     struct lac_original_task **ret_task,
                                                     struct lac_error *reterr);

/** Whether it has read all and the hash is known. Costs a load. */
bool lac_original_task_is_done(const struct lac_original_task *task);

/** Wait for it, and free it. @return as lac_original_read(); LAC_OK for NULL */
LAC_MUST_USE enum lac_status lac_original_task_end(struct lac_original_task *task,
                                                   uint64_t *ret_size_bytes,
                                                   struct lac_error *reterr);

/**
 * Read a kept original as it was uploaded.
 *
 * @param output_path what is written with it and synced; NULL: hash only
 * @param ret_sha256  32 bytes
 * @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_CORRUPT, LAC_ERR_IO, LAC_ERR_NOMEM; the message goes
 * on behind the file's name
 */
LAC_MUST_USE enum lac_status lac_original_unpack(const char *path, const char *output_path,
                                                 uint8_t *ret_sha256, uint64_t *ret_size_bytes,
                                                 struct lac_error *reterr);

#endif
