#ifndef LAC_SERVER_STORE_VERIFY_H
#define LAC_SERVER_STORE_VERIFY_H

/*
 * Reading all of a data folder to say what is wrong with it, and repairing what can be. Both take
 * originals as somebody else's business: how they are packed is server/ingest's.
 */

#include "analysis/model/status.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stdint.h>

/** What is wrong with a file, as the end of a sentence that begins with its name. */
typedef void (*lac_verify_told)(void *context, const char *file, const char *problem);

struct lac_verify_options {
    const char *data_dir;
    lac_verify_told told;
    /** An original as it was uploaded: written to output_path (NULL: nowhere), its hash. */
    enum lac_status (*unpack)(const char *path, const char *output_path, uint8_t *ret_sha256,
                              uint64_t *ret_size_bytes, struct lac_error *reterr);
    void *context;
    bool is_served; /**< of a repair: a server runs, and takes over what is to be imported again */
};

struct lac_verify_counts {
    uint32_t traces, originals; /**< looked at, in the folder */
    uint32_t objects;           /**< in object storage */
    uint32_t unchecked;         /**< traces of version 1, which carry no checksums */
    uint64_t bytes;
    uint32_t problems;
};

/**
 * Read everything, change nothing. A server may run meanwhile.
 * @return LAC_OK also when something is wrong (problems); LAC_ERR_NOT_FOUND (no data folder),
 *         LAC_ERR_IO, LAC_ERR_NOMEM
 * Cost: the disk's speed; about 1 ns a byte of originals.
 */
LAC_MUST_USE enum lac_status lac_store_verify(const struct lac_verify_options *options,
                                              struct lac_verify_counts *ret_counts,
                                              struct lac_error *reterr);

/**
 * On a folder that was opened with `sweep`, which did what a start does: trace files with damaged
 * pages go to lost/, and their uploads are queued again where the original is whole (the next
 * server imports them under the same id); damaged facts are written again; damaged originals go to
 * lost/. With `is_served` on one that was opened without `sweep`, and that has no object storage.
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_store_repair(struct lac_store *store,
                                              const struct lac_verify_options *options,
                                              uint32_t *ret_count, struct lac_error *reterr);

#endif
