#include "collector/launch/push_note.h"

#include "collector/launch/push.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 4096 };

static const char first_line[] = "lacuna push 1\n";

static bool note_path(const char *path, char *out)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *const ending = folder >= 0 ? "/.lacuna-push" : ".lacuna-push";

    if (folder >= 0) {
        (void)close(folder);
    }
    return (size_t)snprintf(out, PATH_BYTES, "%s%s", path, ending) < PATH_BYTES;
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

void lac_push_note_place(struct lac_push_note *note, const struct lac_push_target *target)
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

bool lac_push_note_read(const char *path, struct lac_push_note *note)
{
    char file[PATH_BYTES];
    char text[TEXT_BYTES];
    char number[32];
    const char *at = text + sizeof(first_line) - 1;
    ssize_t length;
    int fd;

    memset(note, 0, sizeof(*note));
    if (!note_path(path, file)) {
        return false;
    }
    fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
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

void lac_push_note_write(const char *path, const struct lac_push_note *note)
{
    char file[PATH_BYTES];
    char fresh[PATH_BYTES];
    char text[TEXT_BYTES];
    const int length = snprintf(
        text, sizeof(text),
        "%sserver %s\nproject %s\nsha256 %s\nlength %" PRIu64 "\nupload %s\ntrace %s\n", first_line,
        note->server, note->project, note->digest, note->length_bytes, note->upload, note->trace);
    int fd;

    if (length < 0 || (size_t)length >= sizeof(text) || !note_path(path, file) ||
        (size_t)snprintf(fresh, sizeof(fresh), "%s.new", file) >= sizeof(fresh)) {
        return;
    }
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return;
    }
    const bool is_whole = write(fd, text, (size_t)length) == length;
    if (close(fd) != 0 || !is_whole || rename(fresh, file) != 0) {
        (void)unlink(fresh);
    }
}
