#ifndef LAC_SERVER_DEMO_FILES_H
#define LAC_SERVER_DEMO_FILES_H

/* Folders and files of the simulations: a file is complete or absent. */

#include "analysis/model/status.h"

#include <stdio.h>

enum { LAC_DEMO_PATH_BYTES = 4096 };

/** Make a folder and those it lies in. @return LAC_OK, LAC_ERR_IO, LAC_ERR_MISUSE */
LAC_MUST_USE enum lac_status lac_demo_make_dir(const char *dir, struct lac_error *reterr);

/** Writes the contents of a file; what goes wrong on `out` may be left to ferror(). */
typedef enum lac_status lac_demo_write_fn(FILE *out, const void *what, struct lac_error *reterr);

/** Write beside its place, then rename. @return LAC_OK, LAC_ERR_IO, LAC_ERR_MISUSE or `write`'s */
LAC_MUST_USE enum lac_status lac_demo_write_file(const char *path, lac_demo_write_fn *write,
                                                 const void *what, struct lac_error *reterr);

#endif
