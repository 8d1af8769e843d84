#ifndef LAC_COLLECTOR_BASE_IO_FULL_H
#define LAC_COLLECTOR_BASE_IO_FULL_H

/*
 * All of a piece of a file, whatever the system gives at a time and whatever signals come between;
 * what a file is. On failure errno says why (ENOSPC where a write took nothing).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/** Read on. @return bytes, fewer than asked only at the end; -1 */
int64_t lac_read_full(int fd, void *out, size_t size_bytes);

/** The same at a place of a file. */
int64_t lac_read_full_at(int fd, void *out, size_t size_bytes, uint64_t offset);

/** @return false: the file ends before, or cannot be read */
bool lac_file_read_at(int fd, void *bytes, size_t size_bytes, uint64_t offset);

/** The beginning of a file as text, as of /proc. @param out always ends in a NUL @param capacity at
 *  least 1 @return bytes, 0: there is none, or it cannot be read */
size_t lac_read_text(const char *path, char *out, size_t capacity);

/** The number behind `key` and blanks or a colon at the start of a line of such a text; `otherwise`
 *  when there is none. */
uint64_t lac_text_number(const char *text, const char *key, uint64_t otherwise);

/** @return false: not all of it could be written */
bool lac_write_full(int fd, const void *bytes, size_t size_bytes);

/** The same at a place of a file. */
bool lac_file_write_at(int fd, const void *bytes, size_t size_bytes, uint64_t offset);

/** fstat(), whose symbol is too new for old systems. */
bool lac_file_status(int fd, struct stat *ret);

/** Bytes of a file. -1: not known */
int64_t lac_file_size(int fd);

/** Whether it is a file with content of its own: no folder, device or pipe. */
bool lac_file_is_regular(int fd);

/** Whether both files belong to one user. */
bool lac_file_same_owner(int fd, int other_fd);

/** When its content, or for a folder the names in it, changed last: ns since 1970; -1 unknown. */
int64_t lac_file_changed_ns(int fd);

/** The same by its path, followed. */
int64_t lac_path_changed_ns(const char *path);

/**
 * What a path that somebody named leads to, for writing: links are followed, also to where nothing
 * is yet.
 *
 * @param ret_in_place whether no fresh file may be renamed over it: a device, a pipe, a folder
 * @return false: it leads nowhere (ELOOP, ENAMETOOLONG, ENOTDIR, ...)
 */
bool lac_path_to_write(const char *path, char *out, size_t capacity, bool *ret_in_place);

#endif
