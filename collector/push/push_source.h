#ifndef LAC_COLLECTOR_PUSH_PUSH_SOURCE_H
#define LAC_COLLECTOR_PUSH_PUSH_SOURCE_H

/*
 * What is sent: a recording as a bundle, a folder of other files as a tar archive, or one file;
 * compressed where that helps. The same input gives the same bytes again, so a broken upload goes
 * on without a copy on disk.
 *
 *   files -> bundle or tar -> zstd (the host's library, if it has one) -> lac_push_source_read()
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lac_push_source;

/**
 * @param problem set on failure to one sentence with the path in it
 * @return NULL on failure
 */
struct lac_push_source *lac_push_source_open(const char *path, char *problem, size_t capacity);
void lac_push_source_close(struct lac_push_source *source);

/** Fill `buffer`. @return bytes, fewer than asked only at the end; -1: a file cannot be read */
int64_t lac_push_source_read(struct lac_push_source *source, void *buffer, size_t size_bytes);

/** The last part of a path, without slashes at its end. @return where it begins in `path` */
const char *lac_push_last_part(const char *path, size_t *ret_length);

/** What the file should be called on the way: "resnet.lacuna.zst". */
const char *lac_push_source_name(const struct lac_push_source *source);

/** Boot id of the host that wrote the recording, 16 bytes. @return false: no recording of ours */
bool lac_push_source_boot(const struct lac_push_source *source, uint8_t *ret_boot_id);

#endif
