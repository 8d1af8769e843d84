#ifndef LAC_ANALYSIS_IMPORT_SOURCE_TEMPORARY_H
#define LAC_ANALYSIS_IMPORT_SOURCE_TEMPORARY_H

/* Files without a name, for what has to be read more than once. */

#include "analysis/import/source/source.h"
#include "analysis/model/status.h"

/**
 * An empty file without a name, gone when it is closed.
 *
 * @param parent the folder; NULL: $TMPDIR, else /tmp
 * @return LAC_OK, LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_temporary_file(const char *parent, int *ret_fd,
                                                struct lac_error *reterr);

/** One with the rest of `source` in it. @return as lac_temporary_file(), lac_source_read() */
LAC_MUST_USE enum lac_status lac_temporary_copy(const char *parent, struct lac_source *source,
                                                int *ret_fd, struct lac_error *reterr);

#endif
