#ifndef LAC_SERVER_OBJECTS_OBJECTS_H
#define LAC_SERVER_OBJECTS_OBJECTS_H

/*
 * Immutable objects by name, in a folder or in a bucket of S3-compatible storage. One handle may be
 * used from any number of threads.
 *
 * Names are up to 200 characters of A-Z a-z 0-9 / . _ - , relative, without "..". An object is
 * whole or absent. Calls wait for a store that is away for as long as the options say, then fail
 * with LAC_ERR_IO and a sentence that names the store.
 */

#include "analysis/model/status.h"
#include "collector/base/sha.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_objects;

enum { LAC_OBJECT_NAME_SIZE = 201 };

struct lac_objects_options {
    const char *url; /**< s3://BUCKET[/PREFIX], or a folder */
    /** of S3; NULL: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
     * AWS_SESSION_TOKEN of the environment */
    const char *endpoint, *region, *access_key, *secret_key, *session_token;
    unsigned read_patience_ms;  /**< until a read is given up; 0: 10 s */
    unsigned write_patience_ms; /**< the same of writes; 0: 90 s */
    uint64_t part_bytes;        /**< larger objects go up in parts of this; 0: 64 MiB, least 5 */
};

/** What has been done since the start. */
struct lac_objects_counts {
    uint64_t reads, writes, retries, failures;
    uint64_t read_bytes, written_bytes;
};

/**
 * Check what was given and load what is needed; talks to nobody.
 * @return LAC_OK, LAC_ERR_MISUSE (the URL, or a key is missing), LAC_ERR_IO (no libcurl, or no such
 *         folder and it cannot be made), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_objects_open(const struct lac_objects_options *options,
                                              struct lac_objects **ret_objects,
                                              struct lac_error *reterr);
void lac_objects_close(struct lac_objects *objects);

/** From now on nobody waits for a store that is away: the program ends. */
void lac_objects_stop_waiting(struct lac_objects *objects);

/** As it was given, for messages. */
const char *lac_objects_url(const struct lac_objects *objects);

void lac_objects_count(struct lac_objects *objects, struct lac_objects_counts *ret_counts);

/** The hash and size of a file. @return LAC_OK, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_objects_hash_file(const char *path, uint8_t *ret_sha256,
                                                   uint64_t *ret_bytes, struct lac_error *reterr);

/** Put a file whose hash is known; on durable storage when it returns. One that is there is
 *  replaced. @return LAC_OK, LAC_ERR_IO, LAC_ERR_CORRUPT (the file is not what the hash says) */
LAC_MUST_USE enum lac_status lac_objects_put(struct lac_objects *objects, const char *name,
                                             const char *path, const uint8_t *sha256,
                                             struct lac_error *reterr);

/** Write the object to a new file and sync it. `sha256` NULL: not compared. After a failure there
 *  is no file. @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_CORRUPT (another hash), LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_objects_get(struct lac_objects *objects, const char *name,
                                             const char *path, const uint8_t *sha256,
                                             struct lac_error *reterr);

/** Read all of an object for its hash. @return as lac_objects_get() */
LAC_MUST_USE enum lac_status lac_objects_hash(struct lac_objects *objects, const char *name,
                                              uint8_t *ret_sha256, uint64_t *ret_bytes,
                                              struct lac_error *reterr);

/** Read `size_bytes` from `offset`, all of which must be there.
 *  @return LAC_OK, LAC_ERR_NOT_FOUND, LAC_ERR_CORRUPT (shorter), LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_objects_get_range(struct lac_objects *objects, const char *name,
                                                   uint64_t offset, void *out, size_t size_bytes,
                                                   struct lac_error *reterr);

struct lac_object {
    const char *name;
    uint64_t bytes;
    int64_t changed_unix_ms;
};

/** Called for each object whose name begins with `prefix`, in order of names. @return LAC_OK or what
 *  `visit` returned, LAC_ERR_IO, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_objects_list(struct lac_objects *objects, const char *prefix,
                                              enum lac_status (*visit)(void *context,
                                                                       const struct lac_object *),
                                              void *context, struct lac_error *reterr);

/** One that is not there is removed too. @return LAC_OK, LAC_ERR_IO */
LAC_MUST_USE enum lac_status lac_objects_remove(struct lac_objects *objects, const char *name,
                                                struct lac_error *reterr);

#endif
