#ifndef LAC_COLLECTOR_LAUNCH_FILE_AT_H
#define LAC_COLLECTOR_LAUNCH_FILE_AT_H

/* All of a piece of a file at its place, whatever the system gives at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** @return false: the file ends before, or cannot be read */
bool lac_file_read_at(int fd, void *bytes, size_t size_bytes, uint64_t offset);

/** @return false: not all of it could be written */
bool lac_file_write_at(int fd, const void *bytes, size_t size_bytes, uint64_t offset);

#endif
