#ifndef LAC_COLLECTOR_BASE_IO_FULL_H
#define LAC_COLLECTOR_BASE_IO_FULL_H

/* All of a piece of a file at its place, whatever the system gives at a time; what a file is. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** @return false: the file ends before, or cannot be read */
bool lac_file_read_at(int fd, void *bytes, size_t size_bytes, uint64_t offset);

/** @return false: not all of it could be written */
bool lac_file_write_at(int fd, const void *bytes, size_t size_bytes, uint64_t offset);

/** Whether it is a file with content of its own: no folder, device or pipe. */
bool lac_file_is_regular(int fd);

/** Whether both files belong to one user. */
bool lac_file_same_owner(int fd, int other_fd);

/** When its content, or for a folder the names in it, changed last: ns since 1970; -1 unknown. */
int64_t lac_file_changed_ns(int fd);

#endif
