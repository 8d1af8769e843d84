#include "server/objects/objects.h"

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/objects/objects_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_PATIENCE_MS = 10000,
    WRITE_PATIENCE_MS = 90000,
    PART_BYTES = 64 << 20,
    PART_BYTES_LEAST = 5 << 20,
    BLOCK_BYTES = 1 << 18,
};

enum lac_status lac_objects_open(const struct lac_objects_options *options,
                                 struct lac_objects **ret_objects, struct lac_error *reterr)
{
    assert(options != NULL && options->url != NULL && ret_objects != NULL);
    const bool is_s3 = strncmp(options->url, "s3://", 5) == 0;
    struct lac_objects *objects = calloc(1, sizeof(*objects));
    enum lac_status status;

    if (objects != NULL) {
        objects->url = strdup(options->url);
    }
    if (objects == NULL || objects->url == NULL) {
        free(objects);
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    objects->read_patience_ms =
        options->read_patience_ms != 0 ? options->read_patience_ms : READ_PATIENCE_MS;
    objects->write_patience_ms =
        options->write_patience_ms != 0 ? options->write_patience_ms : WRITE_PATIENCE_MS;
    objects->part_bytes = options->part_bytes != 0 ? options->part_bytes : PART_BYTES;
    if (objects->part_bytes < PART_BYTES_LEAST) {
        objects->part_bytes = PART_BYTES_LEAST;
    }
    if (!is_s3 && strstr(options->url, "://") != NULL) {
        status =
            lac_fail(reterr, LAC_ERR_MISUSE, 0,
                     "%s: objects are kept in s3://BUCKET/PREFIX or in a folder", options->url);
    } else {
        objects->kind = is_s3 ? &lac_objects_s3 : &lac_objects_folder;
        status = is_s3 ? lac_objects_s3_open(objects, options, reterr)
                       : lac_objects_folder_open(objects, options->url, reterr);
    }
    if (status != LAC_OK) {
        free(objects->url);
        free(objects);
        return status;
    }
    *ret_objects = objects;
    return LAC_OK;
}

void lac_objects_close(struct lac_objects *objects)
{
    if (objects != NULL) {
        objects->kind->close(objects);
        free(objects->url);
        free(objects);
    }
}

void lac_objects_stop_waiting(struct lac_objects *objects)
{
    objects->is_stopping = true;
}

const char *lac_objects_url(const struct lac_objects *objects)
{
    return objects->url;
}

void lac_objects_count(struct lac_objects *objects, struct lac_objects_counts *ret_counts)
{
    *ret_counts = (struct lac_objects_counts){.reads = objects->reads,
                                              .writes = objects->writes,
                                              .retries = objects->retries,
                                              .failures = objects->failures,
                                              .read_bytes = objects->read_bytes,
                                              .written_bytes = objects->written_bytes};
}

static bool name_is_valid(const char *name)
{
    const size_t length = strlen(name);

    for (size_t i = 0; i < length; i++) {
        const char c = name[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr("/._-", c) != NULL)) {
            return false;
        }
    }
    return length > 0 && length < LAC_OBJECT_NAME_SIZE && name[0] != '/' &&
           strstr(name, "..") == NULL && strstr(name, "//") == NULL;
}

static enum lac_status check_name(const char *name, struct lac_error *reterr)
{
    return name_is_valid(name)
               ? LAC_OK
               : lac_fail(reterr, LAC_ERR_MISUSE, 0, "an object cannot have this name");
}

static enum lac_status count(struct lac_objects *objects, enum lac_status status)
{
    if (status != LAC_OK && status != LAC_ERR_NOT_FOUND) {
        objects->failures++;
    }
    return status;
}

enum lac_status lac_objects_hash_file(const char *path, uint8_t *ret_sha256, uint64_t *ret_bytes,
                                      struct lac_error *reterr)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct lac_sha hash;
    int64_t got = -1;

    *ret_bytes = 0;
    lac_sha256_init(&hash);
    while (block != NULL && fd >= 0 && (got = lac_read_full(fd, block, BLOCK_BYTES)) > 0) {
        lac_sha_add(&hash, block, (size_t)got);
        *ret_bytes += (uint64_t)got;
    }
    lac_sha_end(&hash, ret_sha256);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    free(block);
    return got == 0 ? LAC_OK
                    : lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path,
                               block == NULL ? "out of memory" : strerror(error));
}

enum lac_status lac_objects_put(struct lac_objects *objects, const char *name, const char *path,
                                const uint8_t *sha256, struct lac_error *reterr)
{
    assert(objects != NULL && path != NULL && sha256 != NULL);
    struct stat info = {0};
    int fd;
    enum lac_status status = check_name(name, reterr);

    if (status != LAC_OK) {
        return status;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path, strerror(errno));
    }
    if (status == LAC_OK) {
        objects->writes++;
        status = count(
            objects, objects->kind->put(objects, name, fd, (uint64_t)info.st_size, sha256, reterr));
    }
    if (status == LAC_OK) {
        objects->written_bytes += (uint64_t)info.st_size;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

/* -- reading ------------------------------------------------------------------------------------*/

struct reading {
    int fd; /**< -1: only hashed */
    struct lac_sha hash;
    uint64_t bytes;
    uint8_t *out; /**< of a range; NULL */
    size_t capacity;
    int error;
};

static bool take(void *context, const void *bytes, size_t size_bytes)
{
    struct reading *reading = context;

    if (reading->out != NULL) {
        if (size_bytes > reading->capacity - reading->bytes) {
            return false;
        }
        memcpy(reading->out + reading->bytes, bytes, size_bytes);
    } else {
        lac_sha_add(&reading->hash, bytes, size_bytes);
    }
    if (reading->fd >= 0 && !lac_write_full(reading->fd, bytes, size_bytes)) {
        reading->error = errno;
        return false;
    }
    reading->bytes += size_bytes;
    return true;
}

static bool restart(void *context)
{
    struct reading *reading = context;

    lac_sha256_init(&reading->hash);
    reading->bytes = 0;
    return reading->fd < 0 ||
           (ftruncate(reading->fd, 0) == 0 && lseek(reading->fd, 0, SEEK_SET) == 0);
}

static enum lac_status read_all(struct lac_objects *objects, const char *name,
                                struct reading *reading, uint8_t *ret_sha256,
                                struct lac_error *reterr)
{
    const struct lac_object_sink sink = {.take = take, .restart = restart, .context = reading};
    enum lac_status status = check_name(name, reterr);

    lac_sha256_init(&reading->hash);
    if (status == LAC_OK) {
        objects->reads++;
        status = count(objects, objects->kind->read(objects, name, 0, UINT64_MAX, &sink, reterr));
    }
    if (reading->error != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot keep a copy of %s: %s", name,
                          strerror(reading->error));
    }
    objects->read_bytes += reading->bytes;
    lac_sha_end(&reading->hash, ret_sha256);
    return status;
}

enum lac_status lac_objects_get(struct lac_objects *objects, const char *name, const char *path,
                                const uint8_t *sha256, struct lac_error *reterr)
{
    assert(objects != NULL && path != NULL);
    uint8_t digest[LAC_SHA256_SIZE];
    struct reading reading = {.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    enum lac_status status;

    if (reading.fd < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path, strerror(errno));
    }
    status = read_all(objects, name, &reading, digest, reterr);
    if (status == LAC_OK && sha256 != NULL && memcmp(sha256, digest, sizeof(digest)) != 0) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0, "%s of %s is not what was put there", name,
                          objects->url);
    }
    if (status == LAC_OK && fsync(reading.fd) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", path, strerror(errno));
    }
    (void)close(reading.fd);
    if (status != LAC_OK) {
        (void)unlink(path);
    }
    return status;
}

enum lac_status lac_objects_hash(struct lac_objects *objects, const char *name, uint8_t *ret_sha256,
                                 uint64_t *ret_bytes, struct lac_error *reterr)
{
    struct reading reading = {.fd = -1};
    enum lac_status status = read_all(objects, name, &reading, ret_sha256, reterr);

    *ret_bytes = reading.bytes;
    return status;
}

enum lac_status lac_objects_get_range(struct lac_objects *objects, const char *name,
                                      uint64_t offset, void *out, size_t size_bytes,
                                      struct lac_error *reterr)
{
    struct reading reading = {.fd = -1, .out = out, .capacity = size_bytes};
    const struct lac_object_sink sink = {.take = take, .restart = restart, .context = &reading};
    enum lac_status status = check_name(name, reterr);

    if (status != LAC_OK || size_bytes == 0) {
        return status;
    }
    objects->reads++;
    status = objects->kind->read(objects, name, offset, size_bytes, &sink, reterr);
    if (status == LAC_OK && reading.bytes != size_bytes) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, offset + reading.bytes,
                          "%s of %s is shorter than it was", name, objects->url);
    }
    objects->read_bytes += reading.bytes;
    return count(objects, status);
}

enum lac_status lac_objects_list(struct lac_objects *objects, const char *prefix,
                                 enum lac_status (*visit)(void *, const struct lac_object *),
                                 void *context, struct lac_error *reterr)
{
    return count(objects, objects->kind->list(objects, prefix, visit, context, reterr));
}

enum lac_status lac_objects_remove(struct lac_objects *objects, const char *name,
                                   struct lac_error *reterr)
{
    enum lac_status status = check_name(name, reterr);

    return status == LAC_OK ? count(objects, objects->kind->remove(objects, name, reterr)) : status;
}
