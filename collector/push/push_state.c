#include "collector/push/push_state.h"

#include "collector/base/encode.h"
#include "collector/base/io_full.h"
#include "collector/base/sha.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_S = 30 * 24 * 3600 };

static bool folder_path(char *out, size_t capacity)
{
    const char *const state = getenv("XDG_STATE_HOME");
    const char *const home = getenv("HOME");
    int length = -1;

    if (state != NULL && state[0] == '/') { /* the specification has others ignored */
        length = snprintf(out, capacity, "%s/lacuna/push", state);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(out, capacity, "%s/.local/state/lacuna/push", home);
    }
    return length > 0 && (size_t)length < capacity;
}

/* The folder, made with those it lies in when `is_made`. @return a descriptor or -1 */
static int open_folder(bool is_made)
{
    char path[PATH_MAX];
    struct stat status;
    int fd;

    if (!folder_path(path, sizeof(path))) {
        return -1;
    }
    for (char *at = path + 1; is_made && *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0700);
            *at = '/';
        }
    }
    if (is_made) {
        (void)mkdir(path, 0700);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && (!lac_file_status(fd, &status) || status.st_uid != geteuid() ||
                    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static bool key_of(const char *path, const char *server, char *out)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    char *const whole = realpath(path, NULL);
    uint8_t bytes[LAC_SHA256_SIZE];
    struct lac_sha digest;
    struct stat status;
    const bool is_there = fd >= 0 && whole != NULL && lac_file_status(fd, &status);

    if (is_there) {
        const uint64_t numbers[] = {(uint64_t)status.st_dev, (uint64_t)status.st_ino,
                                    (uint64_t)status.st_size};

        lac_sha256_init(&digest);
        lac_sha_add(&digest, whole, strlen(whole) + 1);
        lac_sha_add(&digest, numbers, sizeof(numbers));
        lac_sha_add(&digest, server, strlen(server) + 1);
        lac_sha_end(&digest, bytes);
        lac_hex_encode(bytes, sizeof(bytes), out);
    }
    free(whole);
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_there;
}

/* Of uploads that nobody will go on with: their servers dropped them as well. */
static void remove_old(int folder)
{
    const int again = dup(folder);
    DIR *const entries = again >= 0 ? fdopendir(again) : NULL;
    const time_t oldest = time(NULL) - KEPT_S;

    if (entries == NULL) {
        if (again >= 0) {
            (void)close(again);
        }
        return;
    }
    for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        struct stat status;
        const int fd = entry->d_name[0] == '.'
                           ? -1
                           : openat(folder, entry->d_name, O_PATH | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0) {
            if (lac_file_status(fd, &status) && S_ISREG(status.st_mode) &&
                status.st_mtime < oldest) {
                (void)unlinkat(folder, entry->d_name, 0);
            }
            (void)close(fd);
        }
    }
    (void)closedir(entries);
}

ssize_t lac_push_state_read(const char *path, const char *server, char *text, size_t capacity)
{
    char key[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];
    const int folder = open_folder(false);
    ssize_t length = -1;

    if (folder >= 0 && key_of(path, server, key)) {
        const int fd = openat(folder, key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        if (fd >= 0) {
            length = read(fd, text, capacity);
            (void)close(fd);
        }
    }
    if (folder >= 0) {
        (void)close(folder);
    }
    return length;
}

bool lac_push_state_write(const char *path, const char *server, const char *text, size_t length)
{
    char key[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];
    char fresh[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE) + 4];
    const int folder = open_folder(true);
    bool is_written = false;

    if (folder >= 0 && key_of(path, server, key)) {
        remove_old(folder);
        (void)snprintf(fresh, sizeof(fresh), "%s.new", key);
        const int fd =
            openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd >= 0) {
            is_written = lac_write_full(fd, text, length);
            is_written = close(fd) == 0 && is_written && renameat(folder, fresh, folder, key) == 0;
            if (!is_written) {
                (void)unlinkat(folder, fresh, 0);
            }
        }
    }
    if (folder >= 0) {
        (void)close(folder);
    }
    return is_written;
}

void lac_push_state_remove(const char *path, const char *server)
{
    char key[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];
    const int folder = open_folder(false);

    if (folder >= 0 && key_of(path, server, key)) {
        (void)unlinkat(folder, key, 0);
    }
    if (folder >= 0) {
        (void)close(folder);
    }
}
