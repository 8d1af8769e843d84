#include "collector/push/push_resume.h"

#include "collector/base/io_full.h"
#include "collector/push/push.h"
#include "collector/push/push_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 4096 };

static const char first_line[] = "lacuna push 1\n";

static bool is_folder(const char *path)
{
    const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/* "key value\n" at *at; *at moves behind it. @return false: something else, or too long */
static bool take_line(const char **at, const char *key, char *out, size_t capacity)
{
    const size_t key_length = strlen(key);
    const char *const value = *at + key_length + 1;
    const char *end;

    if (strncmp(*at, key, key_length) != 0 || (*at)[key_length] != ' ') {
        return false;
    }
    end = strchr(value, '\n');
    if (end == NULL || (size_t)(end - value) >= capacity) {
        return false;
    }
    (void)snprintf(out, capacity, "%.*s", (int)(end - value), value);
    *at = end + 1;
    return true;
}

void lac_push_resume_place(struct lac_push_resume *note, const struct lac_push_target *target)
{
    (void)snprintf(note->server, sizeof(note->server), "%s", target->server);
    (void)snprintf(note->project, sizeof(note->project), "%.512s",
                   target->project != NULL ? target->project : "");
}

uint64_t lac_push_folder_bytes(const char *path)
{
    DIR *const folder = opendir(path);
    const int folder_fd = folder != NULL ? dirfd(folder) : -1;
    uint64_t bytes = 0;

    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const int fd = entry->d_name[0] == '.' || folder_fd < 0
                           ? -1
                           : openat(folder_fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0) {
            const off_t size = lseek(fd, 0, SEEK_END); /* stat() itself is too new a symbol */

            bytes += size > 0 ? (uint64_t)size : 0;
            (void)close(fd);
        }
    }
    (void)closedir(folder);
    return bytes;
}

/* The beginning of a file. @return its length, -1: there is none */
static ssize_t read_file(const char *path, char *text, size_t capacity)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t length = fd >= 0 ? read(fd, text, capacity) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    return length;
}

/* What programs of before left beside a file: used once, then it lies where it belongs. */
static ssize_t take_from_beside(const char *path, const char *server, char *text, size_t capacity)
{
    char beside[PATH_BYTES];
    ssize_t length;

    if ((size_t)snprintf(beside, sizeof(beside), "%s.lacuna-push", path) >= sizeof(beside)) {
        return -1;
    }
    length = read_file(beside, text, capacity);
    if (length < (ssize_t)sizeof(first_line) ||
        memcmp(text, first_line, sizeof(first_line) - 1) != 0) {
        return -1; /* nothing of ours */
    }
    (void)lac_push_state_write(path, server, text, (size_t)length);
    (void)unlink(beside);
    return length;
}

static ssize_t read_text(const char *path, const char *server, char *text, size_t capacity)
{
    char file[PATH_BYTES];
    ssize_t length;

    if (!is_folder(path)) {
        length = lac_push_state_read(path, server, text, capacity);
        return length >= 0 ? length : take_from_beside(path, server, text, capacity);
    }
    return (size_t)snprintf(file, sizeof(file), "%s/.lacuna-push", path) < sizeof(file)
               ? read_file(file, text, capacity)
               : -1;
}

bool lac_push_resume_read(const char *path, const char *server, struct lac_push_resume *note)
{
    char text[TEXT_BYTES];
    char number[32];
    const char *at = text + sizeof(first_line) - 1;
    const ssize_t length = read_text(path, server, text, sizeof(text) - 1);

    memset(note, 0, sizeof(*note));
    if (length < (ssize_t)sizeof(first_line)) {
        return false;
    }
    text[length] = '\0';
    if (strncmp(text, first_line, sizeof(first_line) - 1) != 0 ||
        !take_line(&at, "server", note->server, sizeof(note->server)) ||
        !take_line(&at, "project", note->project, sizeof(note->project)) ||
        !take_line(&at, "sha256", note->digest, sizeof(note->digest)) ||
        !take_line(&at, "length", number, sizeof(number)) ||
        !take_line(&at, "upload", note->upload, sizeof(note->upload)) ||
        !take_line(&at, "trace", note->trace, sizeof(note->trace))) {
        return false;
    }
    note->length_bytes = strtoull(number, NULL, 10);
    return true;
}

static void write_in_folder(const char *path, const char *text, size_t length)
{
    char file[PATH_BYTES];
    char fresh[PATH_BYTES];
    int fd;

    if ((size_t)snprintf(file, sizeof(file), "%s/.lacuna-push", path) >= sizeof(file) ||
        (size_t)snprintf(fresh, sizeof(fresh), "%s.new", file) >= sizeof(fresh)) {
        return;
    }
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return;
    }
    const bool is_whole = lac_write_full(fd, text, length);
    if (close(fd) != 0 || !is_whole || rename(fresh, file) != 0) {
        (void)unlink(fresh);
    }
}

void lac_push_resume_write(const char *path, const struct lac_push_resume *note)
{
    char text[TEXT_BYTES];
    const int length = snprintf(
        text, sizeof(text),
        "%sserver %s\nproject %s\nsha256 %s\nlength %" PRIu64 "\nupload %s\ntrace %s\n", first_line,
        note->server, note->project, note->digest, note->length_bytes, note->upload, note->trace);

    if (length < 0 || (size_t)length >= sizeof(text)) {
        return;
    }
    if (is_folder(path)) {
        write_in_folder(path, text, (size_t)length);
    } else {
        (void)lac_push_state_write(path, note->server, text, (size_t)length);
    }
}

void lac_push_resume_done(const char *path, const struct lac_push_resume *note)
{
    if (is_folder(path)) {
        lac_push_resume_write(path, note);
    } else {
        lac_push_state_remove(path, note->server);
    }
}
