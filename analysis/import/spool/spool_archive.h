#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_ARCHIVE_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_ARCHIVE_H

/*
 * A recording that travels as one file: the spools inside an archive or a bundle (or one compressed
 * spool) are laid out in a file without a name (spool_space.h), then imported as the one trace that
 * they are.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_space.h"

#include <stdbool.h>

/** Zeroed is empty. */
struct lac_spool_archive {
    struct lac_spool_space *space; /**< NULL until the first spool */
    uint64_t received_bytes;       /**< of bundles */
    uint64_t laid_out_bytes;       /**< of their spools, holes included */
    bool is_cut;                   /**< a bundle ended in the middle of a part */
};

/** Whether the first bytes of a file are a spool's. */
bool lac_spool_archive_is_spool(const uint8_t *head, size_t size_bytes);

/** Whether the first bytes of a file are a bundle's: parts of spools that were sent while a job
 * ran. */
bool lac_spool_archive_is_bundle(const uint8_t *head, size_t size_bytes);

/** Make room for spools. @param parent as lac_spool_space_create() @return as that */
LAC_MUST_USE enum lac_status lac_spool_archive_open(struct lac_spool_archive *archive,
                                                    const char *parent, struct lac_error *reterr);

/**
 * Take the rest of `source`, a spool; the archive is open.
 *
 * @return LAC_OK, LAC_ERR_IO (no space), LAC_ERR_LIMIT, or what reading the source returned
 */
LAC_MUST_USE enum lac_status lac_spool_archive_add(struct lac_spool_archive *archive,
                                                   struct lac_source *source,
                                                   struct lac_error *reterr);

/** Take the rest of `source`, a bundle. O(its bytes), however its parts lie.
 *  @return as lac_spool_archive_add(), LAC_ERR_CORRUPT */
LAC_MUST_USE enum lac_status lac_spool_archive_add_bundle(struct lac_spool_archive *archive,
                                                          struct lac_source *source,
                                                          struct lac_error *reterr);

/** Whether it holds a spool. */
bool lac_spool_archive_has_spools(const struct lac_spool_archive *archive);

/** Free what it holds. An empty archive is allowed. */
void lac_spool_archive_done(struct lac_spool_archive *archive);

#endif
