#include "server/mcp/mcp_files.h"

#include "analysis/model/status.h"
#include "server/mcp/mcp.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** What is being looked at, and what it is called. */
struct place {
    const char *path;
    const char *name;
    int depth;
};

static int64_t changed_ns(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * INT64_C(1000000000) + status->st_mtim.tv_nsec;
}

static bool is_taken(const struct lac_mcp_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/** @return its index, or SIZE_MAX without memory or room */
static size_t add(struct lac_mcp_files *files, const struct place *place, const struct stat *status)
{
    if (files->count == LAC_MCP_FILES_MAX) {
        files->is_cut = true;
        return SIZE_MAX;
    }
    if (files->count == files->capacity) {
        const size_t capacity = files->capacity == 0 ? 64 : 2 * files->capacity;
        void *more = realloc(files->files, capacity * sizeof(*files->files));
        if (more == NULL) {
            return SIZE_MAX;
        }
        files->files = more;
        files->capacity = capacity;
    }
    struct lac_mcp_file *file = &files->files[files->count];
    *file = (struct lac_mcp_file){.name = strdup(place->name),
                                  .path = strdup(place->path),
                                  .is_folder = S_ISDIR(status->st_mode),
                                  .size_bytes =
                                      S_ISDIR(status->st_mode) ? 0 : (uint64_t)status->st_size,
                                  .changed_ns = changed_ns(status)};
    if (file->name == NULL || file->path == NULL) {
        free(file->name);
        free(file->path);
        return SIZE_MAX;
    }
    return files->count++;
}

static enum lac_status add_place(struct lac_mcp_files *files, const struct place *place,
                                 int folder_fd);

/** What is in a folder that is listed at `index`. */
static enum lac_status add_members(struct lac_mcp_files *files, const struct place *place,
                                   size_t index, int folder_fd)
{
    DIR *folder = fdopendir(folder_fd);
    if (folder == NULL) {
        (void)close(folder_fd);
        return LAC_OK; /* not for us: it is listed without content */
    }
    assert(folder_fd >= 0);
    enum lac_status result = LAC_OK;
    const struct dirent *entry = NULL;
    while (!result && !files->is_cut && (entry = readdir(folder)) != NULL) {
        struct stat status;
        if (entry->d_name[0] == '.' ||
            fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        char *path = NULL, *name = NULL;
        if (asprintf(&path, "%s/%s", place->path, entry->d_name) < 0) {
            path = NULL;
        }
        if (path != NULL && asprintf(&name, "%s/%s", place->name, entry->d_name) < 0) {
            name = NULL;
        }
        const struct place inside = {path, name, place->depth + 1};
        if (name == NULL) {
            result = LAC_ERR_NOMEM;
        } else if (S_ISREG(status.st_mode) && status.st_size > 0) {
            files->files[index].size_bytes += (uint64_t)status.st_size;
            result =
                add(files, &inside, &status) == SIZE_MAX && !files->is_cut ? LAC_ERR_NOMEM : LAC_OK;
        } else if (S_ISDIR(status.st_mode) && inside.depth < LAC_MCP_DEPTH_MAX) {
            int fd = openat(folder_fd, entry->d_name,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
            result = fd >= 0 ? add_place(files, &inside, fd) : LAC_OK;
        }
        free(path);
        free(name);
    }
    (void)closedir(folder);
    return result;
}

/** A folder with what is in it, or what was given itself. @param folder_fd is closed */
static enum lac_status add_place(struct lac_mcp_files *files, const struct place *place,
                                 int folder_fd)
{
    struct stat status;
    if (fstat(folder_fd, &status) != 0 || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) {
        (void)close(folder_fd);
        return LAC_OK;
    }
    const size_t index = add(files, place, &status);
    if (index != SIZE_MAX && S_ISDIR(status.st_mode)) {
        return add_members(files, place, index, folder_fd);
    }
    (void)close(folder_fd);
    return index == SIZE_MAX && !files->is_cut ? LAC_ERR_NOMEM : LAC_OK;
}

/** Its last name; of two alike the second becomes NAME~2. */
static char *name_of_given(const struct lac_mcp_files *files, const char *path)
{
    char *real = realpath(path, NULL);
    const char *last = real != NULL ? strrchr(real, '/') : NULL;
    const char *base = last != NULL && last[1] != '\0' ? last + 1 : path;
    char *name = strdup(base);
    for (unsigned n = 2; name != NULL && is_taken(files, name); n++) {
        free(name);
        if (asprintf(&name, "%s~%u", base, n) < 0) {
            name = NULL;
        }
    }
    free(real);
    return name;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct lac_mcp_file *)a)->name, ((const struct lac_mcp_file *)b)->name);
}

enum lac_status lac_mcp_files_list(const struct lac_mcp_options *options,
                                   struct lac_mcp_files *ret_files)
{
    enum lac_status result = LAC_OK;
    for (size_t i = 0; i < options->path_count && !result; i++) {
        int fd = open(options->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) {
            continue; /* not there now; it may come back */
        }
        char *name = name_of_given(ret_files, options->paths[i]);
        const struct place place = {options->paths[i], name, 0};
        if (name == NULL) {
            (void)close(fd);
            result = LAC_ERR_NOMEM;
        } else {
            result = add_place(ret_files, &place, fd);
        }
        free(name);
    }
    if (ret_files->count > 0) {
        qsort(ret_files->files, ret_files->count, sizeof(*ret_files->files), by_name);
    }
    return result;
}

void lac_mcp_files_done(struct lac_mcp_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->files[i].name);
        free(files->files[i].path);
    }
    free(files->files);
    *files = (struct lac_mcp_files){0};
}

const struct lac_mcp_file *lac_mcp_file_named(const struct lac_mcp_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->files[i].name, name) == 0) {
            return &files->files[i];
        }
    }
    return NULL;
}
