#include "analysis/import/source/source.h"

#include "analysis/import/source/source_private.h"
#include "analysis/model/status.h"
#include "collector/base/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Below this an expansion ratio says nothing: a small file of one repeated event is no attack. */
static const uint64_t ratio_free_bytes = (uint64_t)16 << 20;

struct file_source {
    struct lac_source base;
    int fd;
};

struct memory_source {
    struct lac_source base;
    const uint8_t *bytes;
    size_t size_bytes;
    size_t pos;
    size_t feed_bytes;
};

struct reader_source {
    struct lac_source base;
    lac_source_read_at read_at;
    const void *context;
    uint64_t offset;
};

static enum lac_status fail_read(struct lac_error *reterr, uint64_t offset, int code)
{
    enum lac_status status =
        lac_fail(reterr, LAC_ERR_IO, offset, "reading failed: %s", strerror(code));
    if (reterr != NULL) {
        reterr->sys_errno = code;
    }
    return status;
}

static enum lac_status file_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                 size_t *ret_size, struct lac_error *reterr)
{
    struct file_source *file = (struct file_source *)self;
    ssize_t got;
    do {
        got = read(file->fd, buffer, capacity);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return fail_read(reterr, self->budget->input_bytes, errno);
    }
    self->budget->input_bytes += (uint64_t)got;
    *ret_size = (size_t)got;
    return LAC_OK;
}

static void file_done(struct lac_source *self)
{
    close(((struct file_source *)self)->fd);
}

static enum lac_status fail_open(struct lac_error *reterr, const char *path, int code)
{
    enum lac_status status =
        lac_fail(reterr, LAC_ERR_IO, 0, "cannot open %.120s: %s", path, strerror(code));
    if (reterr != NULL) {
        reterr->sys_errno = code;
    }
    return status;
}

enum lac_status lac_source_open_file(const char *path, struct lac_source_budget *budget,
                                     struct lac_source **ret_source, struct lac_error *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return fail_open(reterr, path, errno);
    }
    struct stat info;
    if (fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
        int code = S_ISDIR(info.st_mode) ? EISDIR : errno;
        close(fd);
        return fail_open(reterr, path, code);
    }
    struct file_source *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        close(fd);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    budget->input_bytes_total = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    file->fd = fd;
    file->base.read = file_read;
    file->base.done = file_done;
    file->base.budget = budget;
    *ret_source = &file->base;
    return LAC_OK;
}

static enum lac_status memory_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                   size_t *ret_size, struct lac_error *reterr)
{
    (void)reterr;
    struct memory_source *memory = (struct memory_source *)self;
    size_t size = memory->size_bytes - memory->pos;
    if (size > capacity) {
        size = capacity;
    }
    if (memory->feed_bytes && size > memory->feed_bytes) {
        size = memory->feed_bytes;
    }
    if (size > 0) {
        memcpy(buffer, memory->bytes + memory->pos, size);
    }
    memory->pos += size;
    self->budget->input_bytes += size;
    *ret_size = size;
    return LAC_OK;
}

enum lac_status lac_source_open_memory(const uint8_t *bytes, size_t size_bytes, size_t feed_bytes,
                                       struct lac_source_budget *budget,
                                       struct lac_source **ret_source, struct lac_error *reterr)
{
    struct memory_source *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    budget->input_bytes_total = size_bytes;
    memory->bytes = bytes;
    memory->size_bytes = size_bytes;
    memory->feed_bytes = feed_bytes;
    memory->base.read = memory_read;
    memory->base.budget = budget;
    *ret_source = &memory->base;
    return LAC_OK;
}

static enum lac_status reader_read(struct lac_source *self, uint8_t *buffer, size_t capacity,
                                   size_t *ret_size, struct lac_error *reterr)
{
    struct reader_source *reader = (struct reader_source *)self;
    int64_t got = reader->read_at(reader->context, buffer, capacity, reader->offset);
    if (got < 0) {
        return fail_read(reterr, reader->offset, errno);
    }
    reader->offset += (uint64_t)got;
    *ret_size = (size_t)got;
    return LAC_OK;
}

enum lac_status lac_source_open_reader(lac_source_read_at read_at, const void *context,
                                       struct lac_source_budget *budget,
                                       struct lac_source **ret_source, struct lac_error *reterr)
{
    struct reader_source *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    reader->read_at = read_at;
    reader->context = context;
    reader->base.read = reader_read;
    reader->base.budget = budget;
    *ret_source = &reader->base;
    return LAC_OK;
}

void lac_source_destroy(struct lac_source *source)
{
    if (source == NULL) {
        return;
    }
    if (source->done != NULL) {
        source->done(source);
    }
    free(source);
}

enum lac_status lac_source_read(struct lac_source *source, uint8_t *buffer, size_t capacity,
                                size_t *ret_size, struct lac_error *reterr)
{
    size_t ready = source->head_size - source->head_pos;
    if (ready == 0) {
        return source->read(source, buffer, capacity, ret_size, reterr);
    }
    if (ready > capacity) {
        ready = capacity;
    }
    memcpy(buffer, source->head + source->head_pos, ready);
    source->head_pos += ready;
    *ret_size = ready;
    return LAC_OK;
}

enum lac_status lac_source_peek(struct lac_source *source, size_t want, const uint8_t **ret_bytes,
                                size_t *ret_size, struct lac_error *reterr)
{
    size_t ready = source->head_size - source->head_pos;
    if (source->head_pos > 0 && ready < want) {
        memmove(source->head, source->head + source->head_pos, ready);
        source->head_pos = 0;
        source->head_size = ready;
    }
    while (ready < want) {
        size_t got = 0;
        enum lac_status status =
            source->read(source, source->head + source->head_size,
                         LAC_SOURCE_PEEK_MAX - source->head_size, &got, reterr);
        if (status != LAC_OK) {
            return status;
        }
        if (got == 0) {
            break;
        }
        source->head_size += got;
        ready += got;
    }
    *ret_bytes = source->head + source->head_pos;
    *ret_size = ready < want ? ready : want;
    return LAC_OK;
}

/** A frame, or a skippable frame first, as pzstd writes it. */
static bool is_zstd(const uint8_t bytes[4])
{
    return memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0 ||
           ((bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0);
}

enum lac_status lac_source_detect(struct lac_source *source, enum lac_source_kind *ret_kind,
                                  struct lac_error *reterr)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    enum lac_status status = lac_source_peek(source, 512, &bytes, &size, reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8) {
        *ret_kind = LAC_SOURCE_GZIP;
    } else if (size >= 4 && is_zstd(bytes)) {
        *ret_kind = LAC_SOURCE_ZSTD;
    } else if (lac_tar_is_header(bytes, size)) {
        *ret_kind = LAC_SOURCE_TAR;
    } else {
        *ret_kind = LAC_SOURCE_PLAIN;
    }
    return LAC_OK;
}

const char *lac_source_damage(const struct lac_source *source)
{
    for (; source != NULL; source = source->holds_members ? NULL : source->inner) {
        if (source->damage[0]) {
            return source->damage;
        }
    }
    return NULL;
}

struct lac_source_budget *lac_source_get_budget(struct lac_source *source)
{
    return source->budget;
}

enum lac_status lac_source_count_expanded(struct lac_source *self, size_t size_bytes,
                                          struct lac_error *reterr)
{
    struct lac_source_budget *budget = self->budget;
    budget->expanded_bytes += size_bytes;
    if (budget->expanded_bytes_max && budget->expanded_bytes > budget->expanded_bytes_max) {
        return lac_fail(reterr, LAC_ERR_LIMIT, budget->input_bytes,
                        "the input expands to more than %" PRIu64
                        " bytes (limit expanded_bytes_max)",
                        budget->expanded_bytes_max);
    }
    uint64_t input = budget->input_bytes_total ? budget->input_bytes_total : budget->input_bytes;
    if (budget->expansion_ratio_max && budget->expanded_bytes > ratio_free_bytes &&
        budget->expanded_bytes / budget->expansion_ratio_max >= input) {
        return lac_fail(reterr, LAC_ERR_LIMIT, budget->input_bytes,
                        "the input expands to more than %u times its size (limit "
                        "expansion_ratio_max)",
                        budget->expansion_ratio_max);
    }
    return LAC_OK;
}
