#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SPACE_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SPACE_H

/*
 * Spools that came inside an archive or a bundle, laid out in one file without a name: nothing is
 * left behind however the program ends, and ten thousand spools are one descriptor. Blocks of a
 * spool take room when they are written; what was never written reads as zeros.
 */

#include "analysis/model/status.h"

#include <stddef.h>
#include <stdint.h>

struct lac_spool_space;

enum { LAC_SPOOL_SPACE_MAX = 65536 /**< spools in it */ };

/**
 * @param parent folder whose file system has the room; NULL: $TMPDIR, else /tmp
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_spool_space_create(const char *parent,
                                                    struct lac_spool_space **ret_space,
                                                    struct lac_error *reterr);
/** NULL is allowed. */
void lac_spool_space_destroy(struct lac_spool_space *space);

uint32_t lac_spool_space_count(const struct lac_spool_space *space);

/** An empty spool, numbered in order from 0. @return LAC_OK, LAC_ERR_LIMIT, LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_space_add(struct lac_spool_space *space,
                                                 uint32_t *ret_number, struct lac_error *reterr);

/** Put bytes at `offset`, below 2^45, of a spool, over what was there. O(size_bytes).
 *  @return LAC_OK, LAC_ERR_IO (no space), LAC_ERR_NOMEM */
LAC_MUST_USE enum lac_status lac_spool_space_write(struct lac_spool_space *space, uint32_t number,
                                                   uint64_t offset, const uint8_t *bytes,
                                                   size_t size_bytes, struct lac_error *reterr);

/** Make a spool at least so long; takes no room. */
void lac_spool_space_extend(struct lac_spool_space *space, uint32_t number, uint64_t size_bytes);

uint64_t lac_spool_space_size(const struct lac_spool_space *space, uint32_t number);

/** One spool: a file that is open, or one of a space (then `fd` is not looked at). */
struct lac_spool_bytes {
    const struct lac_spool_space *space; /**< NULL: a file */
    uint32_t number;
    int fd;
};

/** As pread(2): bytes read, fewer only at the end or for large reads; -1 and errno. */
int64_t lac_spool_bytes_read(const struct lac_spool_bytes *bytes, void *out, size_t size_bytes,
                             uint64_t offset);

/** @return -1: not known */
int64_t lac_spool_bytes_size(const struct lac_spool_bytes *bytes);

#endif
