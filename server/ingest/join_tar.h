#ifndef LAC_SERVER_INGEST_JOIN_TAR_H
#define LAC_SERVER_INGEST_JOIN_TAR_H

/*
 * Several files as the one archive that the importer joins (analysis/import/import_join.h): a list,
 * then each file as it is.
 */

#include "analysis/import/import_join.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_upload;

/** A file to be joined. */
struct lac_join_file {
    const char *path;
    const char *name; /**< shown for it */
    bool has_offset;
    int64_t offset_ns;
};

/**
 * Write the archive; `path` must not exist.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_LIMIT (more files than LAC_JOIN_MEMBERS_MAX), LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_join_tar(const struct lac_join_file *files, uint32_t count,
                                          const char *path, struct lac_error *reterr);

/** A text as seconds with up to nine digits behind the point. @return whether it is one */
bool lac_join_seconds(const char *text, int64_t *ret_ns);

/* An upload that is joined to a trace of the store, in this order: begin, the upload's own bytes,
 * finish. */

/** The list and the header of what is uploaded. @param size_bytes of it */
LAC_MUST_USE enum lac_status lac_join_upload_begin(struct lac_upload *upload,
                                                   const struct lac_join_entry entries[2],
                                                   uint64_t size_bytes, struct lac_error *reterr);

/** The rest of the archive: a trace's kept original. @param size_bytes of the upload, as before
 *  @return as lac_upload_write(); LAC_ERR_NOT_FOUND: no original is kept */
LAC_MUST_USE enum lac_status lac_join_upload_finish(struct lac_upload *upload, uint64_t size_bytes,
                                                    const char *original_path,
                                                    struct lac_error *reterr);

#endif
