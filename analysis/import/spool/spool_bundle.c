/* A bundle (collector/FORMAT.md): parts of spools, as a running job sent them, laid
 * out as spools. */

#include "analysis/import/source/source.h"
#include "analysis/import/spool/spool_archive.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/grow.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/bundle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What the files may have in all: parts leave zeros out, which then take no disk, but
 * time to read. */
static const uint64_t HOLES_FREE_BYTES = (uint64_t)1 << 30;
static const uint64_t HOLES_RATIO = 256;

struct bundle {
    struct lac_spool_archive *archive;
    struct lac_source *source;
    struct lac_error *reterr;
    struct lac_strings names;
    uint32_t *number_of; /* by string id: the spool of that name, plus 1; 0: none yet */
    uint64_t number_capacity;
    uint64_t received_bytes;
    uint8_t *data; /* of a part */
    uint64_t data_capacity;
};

bool lac_spool_archive_is_bundle(const uint8_t *head, size_t size_bytes)
{
    return size_bytes >= 8 && memcmp(head, LAC_BUNDLE_MAGIC, 8) == 0;
}

/* Exactly so many bytes. *ret_whole false: the bundle ended before. */
static enum lac_status read_whole(struct bundle *bundle, void *out, size_t size_bytes,
                                  bool *ret_whole)
{
    size_t done = 0;

    while (done < size_bytes) {
        size_t got = 0;
        const enum lac_status status = lac_source_read(bundle->source, (uint8_t *)out + done,
                                                       size_bytes - done, &got, bundle->reterr);

        if (status != LAC_OK) {
            return status;
        }
        if (got == 0) {
            break;
        }
        done += got;
    }
    bundle->received_bytes += done;
    bundle->archive->received_bytes += done;
    *ret_whole = done == size_bytes;
    return LAC_OK;
}

/* The spool of that name: names are compared, and never used as places. */
static enum lac_status find_file(struct bundle *bundle, const char *name, size_t length,
                                 uint32_t *ret_number)
{
    const uint64_t before = bundle->number_capacity;
    uint32_t id = 0;
    enum lac_status status = lac_strings_intern(&bundle->names, name, length, &id);

    if (status == LAC_OK) {
        status = LAC_GROW(bundle->number_of, &bundle->number_capacity, (uint64_t)id + 1);
    }
    if (status != LAC_OK) {
        return lac_fail(bundle->reterr, status, 0, "out of memory");
    }
    if (bundle->number_capacity > before) {
        memset(bundle->number_of + before, 0,
               (size_t)(bundle->number_capacity - before) * sizeof(*bundle->number_of));
    }
    if (bundle->number_of[id] == 0) {
        status = lac_spool_space_add(bundle->archive->space, ret_number, bundle->reterr);
        bundle->number_of[id] = status == LAC_OK ? *ret_number + 1 : 0;
        return status;
    }
    *ret_number = bundle->number_of[id] - 1;
    return LAC_OK;
}

static enum lac_status lay_out(struct bundle *bundle, uint32_t number,
                               const struct lac_bundle_part *part)
{
    struct lac_spool_archive *const archive = bundle->archive;
    const uint64_t size_bytes = lac_spool_space_size(archive->space, number);
    const uint64_t end = part->offset + part->size_bytes;
    const uint64_t most = HOLES_FREE_BYTES + HOLES_RATIO * archive->received_bytes;
    enum lac_status status;

    archive->laid_out_bytes += end > size_bytes ? end - size_bytes : 0;
    if (archive->laid_out_bytes > most) {
        return lac_fail(bundle->reterr, LAC_ERR_LIMIT, 0,
                        "the recording is nearly all holes: more than %llu bytes from %llu that "
                        "were sent",
                        (unsigned long long)most, (unsigned long long)archive->received_bytes);
    }
    status = lac_spool_space_write(archive->space, number, part->offset, bundle->data,
                                   part->data_bytes, bundle->reterr);
    lac_spool_space_extend(archive->space, number, end);
    return status;
}

static bool is_sound(const struct lac_bundle_part *part)
{
    return part->magic == LAC_BUNDLE_PART_MAGIC && part->name_bytes >= 1 &&
           part->name_bytes <= LAC_BUNDLE_NAME_BYTES && part->size_bytes <= LAC_BUNDLE_DATA_BYTES &&
           part->data_bytes <= part->size_bytes && part->offset <= LAC_BUNDLE_OFFSET_MAX;
}

static enum lac_status read_part(struct bundle *bundle, const struct lac_bundle_part *part,
                                 bool *ret_whole)
{
    char name[LAC_BUNDLE_NAME_BYTES];
    uint32_t number = 0;
    enum lac_status status = read_whole(bundle, name, part->name_bytes, ret_whole);

    if (status == LAC_OK && *ret_whole) {
        status =
            LAC_GROW(bundle->data, &bundle->data_capacity, (uint64_t)part->data_bytes + 1) == LAC_OK
                ? read_whole(bundle, bundle->data, part->data_bytes, ret_whole)
                : lac_fail(bundle->reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (status == LAC_OK && *ret_whole) {
        status = find_file(bundle, name, strnlen(name, part->name_bytes), &number);
    }
    return status == LAC_OK && *ret_whole ? lay_out(bundle, number, part) : status;
}

static enum lac_status read_parts(struct bundle *bundle)
{
    uint8_t magic[8];
    bool is_whole = false;
    enum lac_status status = read_whole(bundle, magic, sizeof(magic), &is_whole);

    while (status == LAC_OK) {
        const uint64_t before = bundle->received_bytes;
        struct lac_bundle_part part;

        status = read_whole(bundle, &part, sizeof(part), &is_whole);
        if (status != LAC_OK || bundle->received_bytes == before) {
            return status; /* the end, where one may be */
        }
        if (is_whole && !is_sound(&part)) {
            return lac_fail(bundle->reterr, LAC_ERR_CORRUPT, 0,
                            "a part of the recording is damaged (at byte %llu of it)",
                            (unsigned long long)before);
        }
        if (is_whole) {
            status = read_part(bundle, &part, &is_whole);
        }
        if (status == LAC_OK && !is_whole) {
            bundle->archive->is_cut = true;
            return LAC_OK;
        }
    }
    return status;
}

enum lac_status lac_spool_archive_add_bundle(struct lac_spool_archive *archive,
                                             struct lac_source *source, struct lac_error *reterr)
{
    struct bundle bundle = {.archive = archive, .source = source, .reterr = reterr};
    enum lac_status status = lac_strings_init(&bundle.names) == LAC_OK
                                 ? read_parts(&bundle)
                                 : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");

    if (status == LAC_OK && !lac_spool_archive_has_spools(archive)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "the recording has no file");
    }
    lac_strings_done(&bundle.names);
    free(bundle.number_of);
    free(bundle.data);
    return status;
}
