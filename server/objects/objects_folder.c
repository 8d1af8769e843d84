/* Objects as files below a folder. */

#include "analysis/model/status.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"
#include "server/objects/objects.h"
#include "server/objects/objects_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 18 };

/** In the name of a file that is being written. */
#define UNDER_WAY ".part-"

static bool path_of(const struct lac_objects *objects, const char *name, char *out)
{
    const int length = snprintf(out, PATH_MAX, "%s/%s", (const char *)objects->own, name);

    return length > 0 && length < PATH_MAX - 64;
}

static enum lac_status fail_at(const struct lac_objects *objects, const char *name,
                               struct lac_error *reterr)
{
    const int error = errno;

    return lac_fail(reterr, error == ENOENT ? LAC_ERR_NOT_FOUND : LAC_ERR_IO, 0, "%s/%s: %s",
                    objects->url, name, strerror(error));
}

/** The folders above a path; what is made is synced into its own folder with the file. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

static bool sync_folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    int fd;
    bool done;

    *slash = '\0';
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    *slash = '/';
    return done;
}

/** Copy, hashing. @return false with errno; EBADMSG: another hash */
static bool copy(int from, int to, const uint8_t *sha256)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    uint8_t digest[LAC_SHA256_SIZE];
    struct lac_sha hash;
    int64_t got = -1;

    if (block == NULL) {
        errno = ENOMEM;
        return false;
    }
    lac_sha256_init(&hash);
    while ((got = lac_read_full(from, block, BLOCK_BYTES)) > 0) {
        lac_sha_add(&hash, block, (size_t)got);
        if (!lac_write_full(to, block, (size_t)got)) {
            got = -1;
            break;
        }
    }
    free(block);
    lac_sha_end(&hash, digest);
    if (got == 0 && memcmp(digest, sha256, sizeof(digest)) != 0) {
        errno = EBADMSG;
        return false;
    }
    return got == 0 && fsync(to) == 0;
}

static enum lac_status put(struct lac_objects *objects, const char *name, int fd, uint64_t bytes,
                           const uint8_t *sha256, struct lac_error *reterr)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    int out;
    bool done;
    (void)bytes;

    if (!path_of(objects, name, path)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: the path is too long", objects->url);
    }
    (void)snprintf(fresh, sizeof(fresh), "%.*s" UNDER_WAY "XXXXXX", PATH_MAX - 32, path);
    make_folders(path);
    out = mkostemp(fresh, O_CLOEXEC);
    if (out < 0) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: %s", objects->url, strerror(errno));
    }
    done = copy(fd, out, sha256) && rename(fresh, path) == 0 && sync_folder_of(path);
    const int error = errno;
    (void)close(out);
    if (!done) {
        (void)unlink(fresh);
        return lac_fail(reterr, error == EBADMSG ? LAC_ERR_CORRUPT : LAC_ERR_IO, 0, "%s/%s: %s",
                        objects->url, name,
                        error == EBADMSG ? "the file changed while it was read" : strerror(error));
    }
    return LAC_OK;
}

static enum lac_status read_object(struct lac_objects *objects, const char *name, uint64_t offset,
                                   uint64_t size_bytes, const struct lac_object_sink *sink,
                                   struct lac_error *reterr)
{
    char path[PATH_MAX];
    uint8_t *block = malloc(BLOCK_BYTES);
    int fd = -1;
    int64_t got = 0;
    bool taken = true;

    if (block != NULL && path_of(objects, name, path)) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0) {
        got = -1;
    }
    while (got >= 0 && taken && size_bytes > 0) {
        got = lac_read_full(fd, block, size_bytes < BLOCK_BYTES ? (size_t)size_bytes : BLOCK_BYTES);
        if (got <= 0) {
            break;
        }
        size_bytes -= size_bytes == UINT64_MAX ? 0 : (uint64_t)got;
        taken = sink->take(sink->context, block, (size_t)got);
    }
    const enum lac_status status =
        got < 0  ? fail_at(objects, name, reterr)
        : !taken ? lac_fail(reterr, LAC_ERR_IO, 0, "%s/%s: cannot be kept", objects->url, name)
                 : LAC_OK;
    if (fd >= 0) {
        (void)close(fd);
    }
    free(block);
    return status;
}

static enum lac_status remove_object(struct lac_objects *objects, const char *name,
                                     struct lac_error *reterr)
{
    char path[PATH_MAX];

    if (!path_of(objects, name, path) || (unlink(path) != 0 && errno != ENOENT)) {
        return fail_at(objects, name, reterr);
    }
    return LAC_OK;
}

/* -- list ---------------------------------------------------------------------------------------*/

struct walk {
    const struct lac_objects *objects;
    const char *prefix;
    enum lac_status (*visit)(void *context, const struct lac_object *object);
    void *context;
    struct lac_error *reterr;
};

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strstr(entry->d_name, UNDER_WAY) == NULL;
}

static enum lac_status visit_one(const struct walk *walk, const char *name, int depth);

/** @param folder name of the folder, "" for all */
static enum lac_status walk_folder(const struct walk *walk, const char *folder, int depth)
{
    char path[PATH_MAX];
    char name[LAC_OBJECT_NAME_SIZE];
    struct dirent **entries = NULL;
    enum lac_status status = LAC_OK;
    const int entry_count =
        path_of(walk->objects, folder, path) ? scandir(path, &entries, no_dots, alphasort) : -1;

    if (entry_count < 0) {
        return errno == ENOENT ? LAC_OK : fail_at(walk->objects, folder, walk->reterr);
    }
    for (int i = 0; i < entry_count; i++) {
        const int length = snprintf(name, sizeof(name), "%s%s%s", folder,
                                    folder[0] != '\0' ? "/" : "", entries[i]->d_name);

        if (status == LAC_OK && length > 0 && (size_t)length < sizeof(name)) {
            status = visit_one(walk, name, depth);
        }
        free(entries[i]);
    }
    free((void *)entries);
    return status;
}

static enum lac_status visit_one(const struct walk *walk, const char *name, int depth)
{
    char path[PATH_MAX];
    struct stat info;

    if (!path_of(walk->objects, name, path) || lstat(path, &info) != 0) {
        return LAC_OK; /* removed meanwhile */
    }
    if (S_ISDIR(info.st_mode)) {
        return depth > 0 ? walk_folder(walk, name, depth - 1) : LAC_OK;
    }
    if (!S_ISREG(info.st_mode) || strncmp(name, walk->prefix, strlen(walk->prefix)) != 0) {
        return LAC_OK;
    }
    const struct lac_object object = {.name = name,
                                      .bytes = (uint64_t)info.st_size,
                                      .changed_unix_ms = (int64_t)info.st_mtime * 1000};
    return walk->visit(walk->context, &object);
}

static enum lac_status list(struct lac_objects *objects, const char *prefix,
                            enum lac_status (*visit)(void *, const struct lac_object *),
                            void *context, struct lac_error *reterr)
{
    const struct walk walk = {
        .objects = objects, .prefix = prefix, .visit = visit, .context = context, .reterr = reterr};

    return walk_folder(&walk, "", 4);
}

static void close_folder(struct lac_objects *objects)
{
    free(objects->own);
}

const struct lac_objects_kind lac_objects_folder = {
    .put = put, .read = read_object, .list = list, .remove = remove_object, .close = close_folder};

enum lac_status lac_objects_folder_open(struct lac_objects *objects, const char *folder,
                                        struct lac_error *reterr)
{
    char path[PATH_MAX];
    struct stat info;
    const int length = snprintf(path, sizeof(path), "%s/", folder);

    if (folder[0] == '\0' || length < 0 || (size_t)length >= sizeof(path) - 512) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0,
                        "the folder of objects: the path is empty or "
                        "too long");
    }
    make_folders(path);
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "%s: is not a folder that can be made or read",
                        folder);
    }
    objects->own = strdup(folder);
    return objects->own != NULL ? LAC_OK : lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
}
