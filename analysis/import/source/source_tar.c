/* tar: ustar, pax and GNU long names. Members are read one after another,
 * never written anywhere. */

#include "analysis/import/source/source.h"
#include "analysis/import/source/source_private.h"
#include "analysis/model/status.h"
#include "collector/base/tar.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { META_BYTES_MAX = 64 * 1024 };

struct tar_source {
    struct lac_source base;
    uint64_t left;    /**< bytes of the current member not read yet */
    uint64_t padding; /**< after it, up to the next block */
    bool ended;
    char long_name[LAC_TAR_NAME_MAX]; /**< from a pax or GNU header, for the next member */
    bool has_long_name;
    uint64_t long_size; /**< from a pax header */
    bool has_long_size;
};

static void note_damage(struct tar_source *tar, const char *what)
{
    tar->ended = true;
    tar->left = 0;
    (void)snprintf(tar->base.damage, sizeof(tar->base.damage), "%s", what);
}

static enum lac_status tar_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                size_t *ret_size, struct lac_error *reterr)
{
    struct tar_source *tar = (struct tar_source *)self;
    *ret_size = 0;
    if (tar->left == 0) {
        return LAC_OK;
    }
    size_t wanted = tar->left < capacity ? (size_t)tar->left : capacity;
    enum lac_status status = lac_source_read(self->inner, buffer, wanted, ret_size, reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (*ret_size == 0) {
        note_damage(tar, "the tar archive ends inside a member");
    } else {
        tar->left -= *ret_size;
    }
    return LAC_OK;
}

/* Read exactly `size` bytes of the archive; *ret_short when it ends before. */
static enum lac_status read_exactly(struct tar_source *tar, uint8_t *buffer, size_t size,
                                    size_t *ret_got, struct lac_error *reterr)
{
    size_t got = 0;
    while (got < size) {
        size_t part = 0;
        enum lac_status status =
            lac_source_read(tar->base.inner, buffer + got, size - got, &part, reterr);
        if (status != LAC_OK) {
            return status;
        }
        if (part == 0) {
            break;
        }
        got += part;
    }
    *ret_got = got;
    return LAC_OK;
}

static enum lac_status skip(struct tar_source *tar, uint64_t size, struct lac_error *reterr)
{
    uint8_t buffer[16 * 1024];
    while (size > 0 && !tar->ended) {
        size_t got = 0;
        size_t wanted = size < sizeof(buffer) ? (size_t)size : sizeof(buffer);
        enum lac_status status = lac_source_read(tar->base.inner, buffer, wanted, &got, reterr);
        if (status != LAC_OK) {
            return status;
        }
        if (got == 0) {
            note_damage(tar, "the tar archive ends inside a member");
        }
        size -= got;
    }
    return LAC_OK;
}

/* Records of a pax header: "LENGTH KEY=VALUE\n". Only path and size matter here. */
static void parse_pax(struct tar_source *tar, const char *text, size_t size)
{
    size_t pos = 0;
    while (pos < size) {
        size_t length = 0, at = pos;
        while (at < size && text[at] >= '0' && text[at] <= '9' && length < META_BYTES_MAX) {
            length = length * 10 + (size_t)(text[at++] - '0');
        }
        if (at >= size || text[at] != ' ' || length < at - pos + 2 || length > size - pos) {
            return;
        }
        const char *record = text + at + 1;
        size_t record_size = length - (at + 1 - pos) - 1;
        if (record_size > 5 && memcmp(record, "path=", 5) == 0) {
            (void)snprintf(tar->long_name, sizeof(tar->long_name), "%.*s", (int)(record_size - 5),
                           record + 5);
            tar->has_long_name = true;
        } else if (record_size > 5 && record_size < 25 && memcmp(record, "size=", 5) == 0) {
            char digits[24];
            (void)snprintf(digits, sizeof(digits), "%.*s", (int)(record_size - 5), record + 5);
            tar->long_size = strtoull(digits, NULL, 10);
            tar->has_long_size = true;
        }
        pos += length;
    }
}

/* A pax ('x') or GNU long name ('L') header: it speaks of the member that follows. */
static enum lac_status read_meta(struct tar_source *tar, uint8_t type, uint64_t size,
                                 struct lac_error *reterr)
{
    if (size > META_BYTES_MAX || (type != 'x' && type != 'L')) {
        return skip(tar, size + lac_tar_padding(size), reterr);
    }
    char *text = malloc((size_t)size + 1);
    if (text == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    size_t got = 0;
    enum lac_status status = read_exactly(tar, (uint8_t *)text, (size_t)size, &got, reterr);
    text[got] = 0;
    if (status == LAC_OK && got < size) {
        note_damage(tar, "the tar archive ends inside a header");
    }
    if (status == LAC_OK && type == 'x') {
        parse_pax(tar, text, got);
    }
    if (status == LAC_OK && type == 'L') {
        (void)snprintf(tar->long_name, sizeof(tar->long_name), "%s", text);
        tar->has_long_name = true;
    }
    free(text);
    return status == LAC_OK ? skip(tar, lac_tar_padding(size), reterr) : status;
}

static void take_name(struct tar_source *tar, const uint8_t *block, char *name)
{
    if (tar->has_long_name) {
        (void)snprintf(name, LAC_TAR_NAME_MAX, "%s", tar->long_name);
    } else if (memcmp(block + LAC_TAR_MAGIC_AT, "ustar\0", 6) == 0 && block[LAC_TAR_PREFIX_AT]) {
        (void)snprintf(name, LAC_TAR_NAME_MAX, "%.*s/%.*s", LAC_TAR_PREFIX_BYTES,
                       (const char *)block + LAC_TAR_PREFIX_AT, LAC_TAR_NAME_BYTES,
                       (const char *)block + LAC_TAR_NAME_AT);
    } else {
        (void)snprintf(name, LAC_TAR_NAME_MAX, "%.*s", LAC_TAR_NAME_BYTES,
                       (const char *)block + LAC_TAR_NAME_AT);
    }
}

/* Size in the header, or the one a pax header gave; false when it makes no sense. */
static bool take_size(struct tar_source *tar, const uint8_t *block, uint64_t *ret_size)
{
    if (!lac_tar_header_size(block, ret_size)) {
        return false;
    }
    if (tar->has_long_size) {
        *ret_size = tar->long_size;
    }
    return *ret_size < (uint64_t)1 << 62;
}

enum lac_status lac_tar_next(struct lac_source *source, char name[LAC_TAR_NAME_MAX],
                             bool *ret_found, struct lac_error *reterr)
{
    struct tar_source *tar = (struct tar_source *)source;
    *ret_found = false;
    source->head_pos = source->head_size = 0;
    enum lac_status status = skip(tar, tar->left + tar->padding, reterr);
    tar->left = tar->padding = 0;
    while (status == LAC_OK && !tar->ended) {
        uint8_t block[LAC_TAR_BLOCK_BYTES];
        size_t got = 0;
        status = read_exactly(tar, block, sizeof(block), &got, reterr);
        if (status != LAC_OK) {
            break;
        }
        if (got == 0 || (got == LAC_TAR_BLOCK_BYTES && block[0] == 0)) {
            tar->ended = true;
            break;
        }
        uint64_t size = 0;
        if (!lac_tar_is_header(block, got) || !take_size(tar, block, &size)) {
            note_damage(tar, "the tar archive is damaged or ends too early");
            break;
        }
        uint8_t type = block[LAC_TAR_TYPE_AT];
        if (type == '0' || type == 0 || type == '7') {
            take_name(tar, block, name);
            tar->has_long_name = tar->has_long_size = false;
            tar->left = size;
            tar->padding = lac_tar_padding(size);
            *ret_found = true;
            return LAC_OK;
        }
        if (type == 'x' || type == 'L') {
            status = read_meta(tar, type, size, reterr);
            continue;
        }
        tar->has_long_name = tar->has_long_size = false;
        /* links, folders and devices have no data, whatever their size field says */
        bool has_data = !(type >= '1' && type <= '6');
        status = has_data ? skip(tar, size + lac_tar_padding(size), reterr) : LAC_OK;
    }
    return status;
}

enum lac_status lac_source_open_tar(struct lac_source *inner, struct lac_source **ret_source,
                                    struct lac_error *reterr)
{
    struct tar_source *tar = calloc(1, sizeof(*tar));
    if (tar == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    tar->base.read = tar_read;
    tar->base.holds_members = true;
    tar->base.inner = inner;
    tar->base.budget = inner->budget;
    *ret_source = &tar->base;
    return LAC_OK;
}
