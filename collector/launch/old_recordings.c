#include "collector/launch/old_recordings.h"

#include "collector/base/byte_size.h"
#include "collector/base/io_full.h"
#include "collector/base/order.h"
#include "collector/launch/output_name.h"
#include "lacuna/spool.h"

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

enum { PATH_BYTES = 4096, OLD_MAX = 8, FOUND_MAX = 1024, NUMBER_MAX = 1000000 };

static const uint64_t OLD_BYTES = UINT64_C(16) << 30;

struct old {
    char name[256]; /* beside the others */
    int64_t changed_ns;
    uint64_t bytes;
};

/* A number, also as 500m or 16g; what cannot be understood is the default. */
static uint64_t limit_of(const char *variable, uint64_t otherwise)
{
    const char *const text = getenv(variable);

    if (text != NULL) {
        (void)lac_byte_size_parse(text, &otherwise);
    }
    return otherwise;
}

static bool is_ours(const char *name)
{
    return lac_spool_is_name(name) || strncmp(name, ".lacuna-", 8) == 0 ||
           strncmp(name, LAC_SPOOL_PROFILER, strlen(LAC_SPOOL_PROFILER)) == 0;
}

/* Bytes of a recording, of its ranks too. @return false: something else is in it as well */
static bool measure(int parent, const char *name, unsigned depth, uint64_t *bytes)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *const folder = fd >= 0 ? fdopendir(fd) : NULL;
    bool is_recording = folder != NULL;

    for (const struct dirent *entry = is_recording ? readdir(folder) : NULL;
         entry != NULL && is_recording; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (lac_output_name_is_rank(entry->d_name) && depth == 0) {
            is_recording = measure(fd, entry->d_name, depth + 1, bytes);
        } else if (is_ours(entry->d_name)) {
            const int file =
                openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
            const int64_t size = file >= 0 && lac_file_is_regular(file) ? lac_file_size(file) : -1;

            is_recording = size >= 0;
            *bytes += size > 0 ? (uint64_t)size : 0;
            if (file >= 0) {
                (void)close(file);
            }
        } else {
            is_recording = false;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return is_recording;
}

static void remove_recording(int parent, const char *name, unsigned depth)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *const folder = fd >= 0 ? fdopendir(fd) : NULL;

    for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        if (lac_output_name_is_rank(entry->d_name) && depth == 0) {
            remove_recording(fd, entry->d_name, depth + 1);
        } else if (is_ours(entry->d_name)) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* NAME.old or NAME.oldN */
static bool is_old_name(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    const char *const end = entry + length;

    return strncmp(entry, name, length) == 0 && strncmp(end, ".old", 4) == 0 &&
           strspn(end + 4, "0123456789") == strlen(end + 4);
}

static int newest_first(const void *left, const void *right)
{
    const struct old *const a = left;
    const struct old *const b = right;

    return LAC_ORDER(b->changed_ns, a->changed_ns);
}

static size_t find(DIR *folder, const char *name, struct old *all)
{
    const int fd = dirfd(folder);
    size_t count = 0;

    for (const struct dirent *entry = fd >= 0 ? readdir(folder) : NULL;
         entry != NULL && count < FOUND_MAX; entry = readdir(folder)) {
        struct old *const old = &all[count];
        int one;

        if (!is_old_name(entry->d_name, name) || strlen(entry->d_name) >= sizeof(old->name)) {
            continue;
        }
        *old = (struct old){.bytes = 0};
        memcpy(old->name, entry->d_name, strlen(entry->d_name) + 1);
        one = openat(fd, old->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (one >= 0) {
            old->changed_ns = lac_file_changed_ns(one);
            (void)close(one);
            count += measure(fd, old->name, 0, &old->bytes);
        }
    }
    qsort(all, count, sizeof(*all), newest_first);
    return count;
}

/* The folder that BASE is in, and the name in it. */
static DIR *open_parent(const char *base, const char **ret_name)
{
    const char *const slash = strrchr(base, '/');
    char path[PATH_BYTES];

    *ret_name = slash != NULL ? slash + 1 : base;
    (void)snprintf(path, sizeof(path), "%.*s",
                   slash == NULL || slash == base ? 1 : (int)(slash - base),
                   slash == NULL ? "." : base);
    return opendir(path);
}

unsigned lac_old_recordings_last(const char *base)
{
    assert(base != NULL);
    const char *name;
    DIR *const folder = open_parent(base, &name);
    unsigned long last = 0;

    for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        if (is_old_name(entry->d_name, name)) {
            const char *const digits = entry->d_name + strlen(name) + 4;
            const unsigned long number = *digits != '\0' ? strtoul(digits, NULL, 10) : 1;

            last = number > last && number < NUMBER_MAX ? number : last;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return (unsigned)last;
}

void lac_old_recordings_trim(const char *base)
{
    assert(base != NULL);
    const uint64_t most = limit_of("LACUNA_OLD_MAX", OLD_MAX);
    const uint64_t most_bytes = limit_of("LACUNA_OLD_BYTES", OLD_BYTES);
    struct old *const all = malloc(FOUND_MAX * sizeof(*all));
    const char *name;
    DIR *const folder = open_parent(base, &name);
    uint64_t kept_bytes = 0;
    size_t count;
    int fd;

    if (all == NULL || folder == NULL) {
        free(all);
        if (folder != NULL) {
            (void)closedir(folder);
        }
        return;
    }
    fd = dirfd(folder);
    count = find(folder, name, all);
    for (size_t i = 0; i < count; i++) {
        const bool is_too_much =
            (most > 0 && i >= most) || (most_bytes > 0 && kept_bytes + all[i].bytes > most_bytes);

        if (fd >= 0 && i > 0 && is_too_much) {
            remove_recording(fd, all[i].name, 0);
            (void)fprintf(stderr, "lacuna: removed the old recording %s (%.1f MB): %s\n",
                          all[i].name, (double)all[i].bytes / 1e6,
                          most > 0 && i >= most ? "more are there than LACUNA_OLD_MAX"
                                                : "they take more than LACUNA_OLD_BYTES");
        } else {
            kept_bytes += all[i].bytes;
        }
    }
    (void)closedir(folder);
    free(all);
}
