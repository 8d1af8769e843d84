#ifndef LAC_ANALYSIS_IMPORT_SPOOL_ARCHIVE_H
#define LAC_ANALYSIS_IMPORT_SPOOL_ARCHIVE_H

/*
 * A recording that travels as one file: the spools inside an archive (or one compressed spool) are
 * laid out in a folder of their own, imported as the one trace that they are, and removed.
 */

#include "analysis/import/import.h"
#include "analysis/import/source.h"

#include <stdbool.h>

enum { LAC_SPOOL_ARCHIVE_PATH_BYTES = 4096 + 32 };

struct lac_spool_archive {
    char folder[4096]; /**< "" until the first spool */
    unsigned count;
    bool is_cut; /**< a bundle ended in the middle of a part */
};

/** Whether the first bytes of a file are a spool's. */
bool lac_spool_archive_is_spool(const uint8_t *head, size_t size_bytes);

/**
 * Copy the rest of `source`, a spool, into the folder.
 *
 * @param parent where the folder is made; NULL: $TMPDIR, else /tmp
 * @return LAC_OK, LAC_ERR_IO (no space), or what reading the source returned
 */
LAC_MUST_USE enum lac_status lac_spool_archive_add(struct lac_spool_archive *archive,
                                                   const char *parent, struct lac_source *source,
                                                   struct lac_error *reterr);

/** Whether the first bytes of a file are a bundle's: parts of spools that were sent while a job
 * ran. */
bool lac_spool_archive_is_bundle(const uint8_t *head, size_t size_bytes);

/** Lay out the rest of `source`, a bundle. @return as lac_spool_archive_add(); LAC_ERR_CORRUPT,
 * LAC_ERR_LIMIT */
LAC_MUST_USE enum lac_status lac_spool_archive_add_bundle(struct lac_spool_archive *archive,
                                                          const char *parent,
                                                          struct lac_source *source,
                                                          struct lac_error *reterr);

/** Make an empty spool. @param ret_number for lac_spool_archive_path() @return LAC_OK, LAC_ERR_IO
 */
LAC_MUST_USE enum lac_status lac_spool_archive_new(struct lac_spool_archive *archive,
                                                   const char *parent, unsigned *ret_number,
                                                   struct lac_error *reterr);

/** Where it lies. */
void lac_spool_archive_path(const struct lac_spool_archive *archive, unsigned number, char *out);

/** Import all of it as one trace. @return as lac_spool_import() */
LAC_MUST_USE enum lac_status lac_spool_archive_import(const struct lac_spool_archive *archive,
                                                      const struct lac_import_options *options,
                                                      const char *name, lac_import_sink sink,
                                                      void *context, struct lac_error *reterr);

/** Remove the folder. An empty archive is allowed. */
void lac_spool_archive_done(struct lac_spool_archive *archive);

#endif
