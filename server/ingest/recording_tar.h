#ifndef LAC_SERVER_INGEST_RECORDING_TAR_H
#define LAC_SERVER_INGEST_RECORDING_TAR_H

/* A recording is a folder of spools; as one file, to be hashed, kept and sent, it is
 * a tar archive. */

#include "analysis/model/status.h"

/**
 * Write the regular files directly in `folder` to `tar_path`, which must not exist, as a ustar
 * archive. Members ascend by name and carry neither owner nor time, so that equal folders give
 * equal archives.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_LIMIT (a file of 8 GiB or more, a name over 100 bytes),
 * LAC_ERR_NOMEM, LAC_ERR_NOT_FOUND when the folder holds no file
 */
LAC_MUST_USE enum lac_status lac_recording_tar(const char *folder, const char *tar_path,
                                               struct lac_error *reterr);

#endif
