#ifndef LAC_SERVER_STORE_TRACE_CHECKED_FILE_H
#define LAC_SERVER_STORE_TRACE_CHECKED_FILE_H

/*
 * A SQLite VFS over the system's that keeps a checksum in every page, and hands SQLite no page
 * whose checksum is wrong: a flipped bit, a zeroed page and two swapped pages are errors and never
 * another answer. The checksum is 64 bits over the page and its number, in the last 8 bytes of the
 * page, which SQLite leaves alone (its "reserved bytes", byte 20 of the header says how many).
 *
 * A file whose header does not reserve 8 bytes is passed through as it is: catalogs and trace files
 * of older versions. Memory mapping and write-ahead logs are not offered. Paths are opened exactly
 * as they are given: the import child may not look at the folders above its own.
 */

#include "analysis/model/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Name of the VFS. Registered by lac_sql_init(). */
#define LAC_CHECKED_VFS "lac-checked"

enum { LAC_CHECKSUM_BYTES = 8, LAC_CHECKED_PROBLEM_BYTES = 400 };

/** Register it; any number of times, from any thread. @return false when SQLite could not start */
bool lac_checked_register(void);

/** 64-bit hash (XXH64) of bytes. Cost: about 0.1 ns a byte. */
uint64_t lac_hash64(const void *bytes, size_t size_bytes, uint64_t seed);

/** Make a new, empty database a checked one, before its first write. Its
 *  pages have `page_bytes`. */
LAC_MUST_USE enum lac_status lac_checked_begin(sqlite3 *db, unsigned page_bytes,
                                               struct lac_error *reterr);

/** Whether the open database carries checksums. It must have been read from. */
bool lac_checked_is_on(sqlite3 *db);

/** Where the last checksum was wrong. @return false when none was */
bool lac_checked_damage(sqlite3 *db, uint64_t *ret_offset_bytes);

/** Why a piece of a file that is not whole (pieces.h) could not be had; "" none. @param out
 *  LAC_CHECKED_PROBLEM_BYTES bytes */
void lac_checked_problem(sqlite3 *db, char *out);

/** Whether a file begins with a page that carries its checksum: then all of its pages do. */
bool lac_checked_begins(const void *bytes, size_t size_bytes);

/**
 * Read every page of the file and compare its checksum, also of pages that nothing refers to. The
 * caller holds a read transaction, or nobody writes.
 *
 * @param ret_bad_count  pages with a wrong checksum, and one when the file is cut
 * @param ret_bad_offset of the first of them
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_checked_scan(sqlite3 *db, uint64_t *ret_bad_count,
                                              uint64_t *ret_bad_offset, struct lac_error *reterr);

/** Where the pages of a SQLite file end. @return false, with errno, when it is none or cut */
bool lac_checked_end(int fd, uint64_t *ret_end_bytes);

/**
 * Set the checksums of a file that nobody has open, whose header reserves the bytes: how a copy
 * made by SQLite alone becomes a checked file. Syncs it.
 */
LAC_MUST_USE enum lac_status lac_checked_stamp(const char *path, struct lac_error *reterr);

#endif
