#ifndef LAC_SERVER_BASE_OUTPUT_FILE_H
#define LAC_SERVER_BASE_OUTPUT_FILE_H

/*
 * A file that a person named for what a command writes. A regular file, and a name that is new, gets
 * its content at once: it is written beside and renamed, so that half of it is never seen. Links
 * are followed and stay. What is no file (a pipe, a device) is written as it is, never replaced.
 */

#include "analysis/model/status.h"

#include <limits.h>
#include <stdbool.h>

struct lac_output_file {
    char path[PATH_MAX];       /**< where it will be, links followed */
    char staged[PATH_MAX + 8]; /**< the file beside it; "" where it is written as it is */
};

/** Where `path` leads. Writes nothing. */
LAC_MUST_USE enum lac_status lac_output_file_find(struct lac_output_file *output, const char *path,
                                                  struct lac_error *reterr);

/** Open it for writing. Waits for the reader of a named pipe. @return -1, with `reterr` */
int lac_output_file_open(struct lac_output_file *output, struct lac_error *reterr);

/** After the descriptor is closed: all of it is written, and takes its name. */
LAC_MUST_USE enum lac_status lac_output_file_publish(struct lac_output_file *output,
                                                     struct lac_error *reterr);

/** Instead: what is beside goes away. Of a `struct lac_output_file`, for lac_ending_begin(). */
void lac_output_file_remove(void *output);

#endif
