#ifndef LAC_SERVER_STORE_TRACE_PIECES_PIECES_H
#define LAC_SERVER_STORE_TRACE_PIECES_PIECES_H

/*
 * Files of which only what was read is here: a sparse file, and somebody who can read any range of
 * the whole. The VFS (checked_file.h) asks for a range before it reads it, and checks each page that
 * carries a checksum, so that a range need not be compared with a hash of the whole.
 *
 *   SQLite --> checked_file.c --> lac_pieces_need() -- missing --> source --> sparse file
 *
 * Known by their paths, to all of the process; other processes see holes: complete it first.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_pieces_source {
    /** Read a range, all of which must be there. One call at a time for a file. */
    enum lac_status (*read)(void *context, uint64_t offset, void *out, size_t size_bytes,
                            struct lac_error *reterr);
    void (*done)(void *context); /**< nobody reads any more */
    void *context;
    uint64_t size_bytes;
};

/**
 * Make the file at `path`, which must not be there, and know it from now on.
 * @param source copied; on failure the caller's
 * @param first  what is known of its beginning: 0 or more whole pieces of LAC_PIECE_BYTES, or all
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NO_SPACE, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_pieces_make(const char *path,
                                             const struct lac_pieces_source *source,
                                             const void *first, size_t first_bytes,
                                             struct lac_error *reterr);

enum { LAC_PIECE_BYTES = 64 << 10 };

/** Have all of it. @return LAC_OK, also for a file that is no such; as the source fails */
LAC_MUST_USE enum lac_status lac_pieces_complete(const char *path, struct lac_error *reterr);

/** The file was removed, or its source ends: who has it open reads no more than what is there. */
void lac_pieces_forget(const char *path);

/* -- for the VFS ---------------------------------------------------------------------------------*/

struct lac_pieces;

/** @return NULL: the file is whole. Else to be given back. */
struct lac_pieces *lac_pieces_find(const char *path);
/** NULL is allowed. */
void lac_pieces_release(struct lac_pieces *pieces);

/** Have a range. @return false: lac_pieces_problem() says why */
bool lac_pieces_need(struct lac_pieces *pieces, uint64_t offset, uint64_t size_bytes);

/** Why a range could not be had last; "" it could. */
void lac_pieces_problem(struct lac_pieces *pieces, char *out, size_t capacity_bytes);

#endif
