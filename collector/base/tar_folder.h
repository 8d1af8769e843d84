#ifndef LAC_COLLECTOR_BASE_TAR_FOLDER_H
#define LAC_COLLECTOR_BASE_TAR_FOLDER_H

/*
 * The files directly in a folder as one tar archive, made while it is read. Members ascend by the
 * bytes of their names and carry neither owner nor time: equal folders give equal archives. Names
 * that begin with '.' are left out, as is whatever is no file.
 */

#include <stddef.h>
#include <stdint.h>

struct lac_tar_folder;

/**
 * @return NULL: errno says why (ENODATA: there is no file in it). Else lac_tar_folder_close() it.
 */
struct lac_tar_folder *lac_tar_folder_open(const char *path);

/** Read on. @return bytes, fewer than asked only at the end; -1: a file cannot be read (errno), or
 *  is shorter than it was (errno 0) */
int64_t lac_tar_folder_read(struct lac_tar_folder *tar, void *out, size_t size_bytes);

/** NULL is allowed. */
void lac_tar_folder_close(struct lac_tar_folder *tar);

#endif
