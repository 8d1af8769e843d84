/* What the job's own profiler wrote while we left the GPU to it. */

#include "collector/base/io_full.h"
#include "collector/base/terminal_text.h"
#include "collector/gather/drain.h"
#include "collector/gather/drain_private.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static const char prefix[] = LAC_SPOOL_PROFILER;
static const char ending[] = ".path";

/* "torch-profiler-4711-0.path" */
static bool is_note(const char *name)
{
    const size_t length = strlen(name);

    return length > sizeof(prefix) + sizeof(ending) && length < 120 &&
           strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
           strcmp(name + length - (sizeof(ending) - 1), ending) == 0;
}

/* The path in a note. @return the note, open; -1: it cannot be read */
static int read_note(int folder, const char *name, char *out)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t length = fd >= 0 ? read(fd, out, PATH_BYTES - 1) : -1;

    out[length > 0 ? length : 0] = '\0';
    if (length <= 0 && fd >= 0) {
        (void)close(fd);
    }
    return length > 0 ? fd : -1;
}

/* @return what is wrong, or NULL */
static const char *copy_file(struct lac_drain *drain, int from, int to)
{
    const off_t size = lseek(from, 0, SEEK_END);
    off_t done = 0;

    if (size < 0 || lseek(from, 0, SEEK_SET) != 0) {
        return strerror(errno);
    }
    if (drain->limit_bytes != 0 &&
        drain->counts.bytes + drain->others_bytes + (uint64_t)size > drain->limit_bytes) {
        return "it does not fit into the recording (--limit)";
    }
    while (done < size) {
        const int64_t got = lac_read_full(from, drain->buffer, drain->buffer_bytes);

        if (got <= 0 || !lac_write_full(to, drain->buffer, (size_t)got)) {
            return got == 0 ? "it became shorter" : strerror(errno);
        }
        done += got;
    }
    drain->counts.bytes += (uint64_t)size;
    return NULL;
}

/* Only a file of whoever left the note: we may be allowed to read more than the job is. */
static const char *add_export(struct lac_drain *drain, const char *note, int note_fd,
                              const char *path)
{
    const size_t length = strlen(path);
    const bool is_packed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    const char *wrong;
    char out[PATH_BYTES];
    int from;
    int to;

    (void)snprintf(out, sizeof(out), "%s/%.*s.json%s", drain->output_folder,
                   (int)(strlen(note) - (sizeof(ending) - 1)), note, is_packed ? ".gz" : "");
    from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from >= 0 && !(lac_file_is_regular(from) && lac_file_same_owner(from, note_fd))) {
        (void)close(from);
        return "it is not a file of the job's user";
    }
    to = from >= 0 ? open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    wrong = from < 0 || to < 0 ? strerror(errno) : copy_file(drain, from, to);
    if (to >= 0) {
        (void)close(to);
    }
    if (from >= 0) {
        (void)close(from);
    }
    if (wrong != NULL && to >= 0) {
        (void)unlink(out);
    }
    return wrong;
}

void lac_drain_exports(struct lac_drain *drain)
{
    assert(drain != NULL);
    DIR *const folder = opendir(drain->spool_folder);
    const int fd = folder != NULL ? dirfd(folder) : -1;

    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char path[PATH_BYTES];
        char shown[PATH_BYTES];
        const char *wrong;
        int note;

        if (fd < 0 || !is_note(entry->d_name)) {
            continue;
        }
        note = read_note(fd, entry->d_name, path);
        if (note < 0) {
            continue;
        }
        wrong = add_export(drain, entry->d_name, note, path);
        (void)close(note);
        if (wrong != NULL) {
            (void)fprintf(stderr,
                          "lacuna: the trace of torch.profiler, %s, is not in the recording: %s\n",
                          lac_terminal_string(path, shown, sizeof(shown)), wrong);
        }
    }
    (void)closedir(folder);
}
