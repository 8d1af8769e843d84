#include "analysis/import/spool/spool_archive.h"

#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_BYTES = 256 * 1024 };

bool lac_spool_archive_is_spool(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 8 && memcmp(head, LAC_SPOOL_MAGIC, 8) == 0;
}

enum lac_status lac_spool_archive_open(struct lac_spool_archive *archive, const char *parent,
                                       struct lac_error *reterr)
{
    return archive->space == NULL ? lac_spool_space_create(parent, &archive->space, reterr)
                                  : LAC_OK;
}

/* Spools are numbered: names in an archive are a stranger's, and may stand twice. */
enum lac_status lac_spool_archive_add(struct lac_spool_archive *archive, struct lac_source *source,
                                      struct lac_error *reterr)
{
    uint8_t *const buffer = malloc(COPY_BYTES);
    uint32_t number = 0;
    uint64_t offset = 0;
    size_t got = 1;
    enum lac_status status = buffer != NULL ? lac_spool_space_add(archive->space, &number, reterr)
                                            : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    while (status == LAC_OK && got > 0) {
        status = lac_source_read(source, buffer, COPY_BYTES, &got, reterr);
        if (status == LAC_OK) {
            status = lac_spool_space_write(archive->space, number, offset, buffer, got, reterr);
            offset += got;
        }
    }
    free(buffer);
    return status;
}

bool lac_spool_archive_has_spools(const struct lac_spool_archive *archive)
{
    return archive->space != NULL && lac_spool_space_count(archive->space) > 0;
}

void lac_spool_archive_done(struct lac_spool_archive *archive)
{
    lac_spool_space_destroy(archive->space);
    *archive = (struct lac_spool_archive){0};
}
