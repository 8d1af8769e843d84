/*
 * `lacuna run`: hands over to lacuna-node, the small program that runs where people train. It is
 * beside this one where Lacuna is installed, and inside it everywhere else: then it is written once
 * to the user's cache folder, under a name that is the hash of its content, and used from there.
 */
#include "server/commands.h"
#include "server/http/assets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static int fail(const char *what, const char *path)
{
    (void)fprintf(stderr, "lacuna run: %s %s: %s\n", what, path, strerror(errno));
    return 1;
}

static bool join(char *out, const char *folder, const char *name)
{
    return (size_t)snprintf(out, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

/* The folder of this program and the program itself. */
static bool find_self(char *folder, char *program)
{
    const ssize_t length = readlink("/proc/self/exe", program, PATH_BYTES - 1);

    if (length <= 0) {
        return false;
    }
    program[length] = '\0';
    memcpy(folder, program, (size_t)length + 1);
    *strrchr(folder, '/') = '\0';
    return true;
}

static bool is_installed_in(const char *folder)
{
    char path[PATH_BYTES];

    return join(path, folder, "lacuna-node") && access(path, X_OK) == 0 &&
           join(path, folder, "liblacuna.so") && access(path, R_OK) == 0;
}

/* Ours alone, or somebody else could put a library there that our jobs then load. */
static bool make_private(const char *path)
{
    struct stat status;

    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    if (lstat(path, &status) != 0) {
        return false;
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
        errno = EPERM;
        return false;
    }
    return true;
}

static bool cache_root(char *out)
{
    const char *const cache = getenv("XDG_CACHE_HOME");
    const char *const home = getenv("HOME");

    if (cache != NULL && cache[0] == '/' && join(out, cache, "lacuna")) {
        (void)mkdir(cache, 0700);
    } else if (home != NULL && home[0] == '/' && join(out, home, ".cache")) {
        (void)mkdir(out, 0700);
        (void)snprintf(out + strlen(out), PATH_BYTES - strlen(out), "/lacuna");
    } else {
        (void)snprintf(out, PATH_BYTES, "/tmp/lacuna-cache-%u", (unsigned)geteuid());
    }
    return make_private(out);
}

static bool write_file(const char *path, const struct lac_asset *asset)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
    size_t done = 0;

    while (fd >= 0 && done < asset->size_bytes) {
        const ssize_t written = write(fd, asset->bytes + done, asset->size_bytes - done);

        if (written < 0 && errno != EINTR) {
            (void)close(fd);
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return fd >= 0 && close(fd) == 0;
}

/* All files into a fresh folder, which then takes its final name at once: half of it is never seen.
 */
static bool unpack(const char *target)
{
    char fresh[PATH_BYTES];
    char path[PATH_BYTES];

    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.XXXXXX", target) >= sizeof(fresh) ||
        mkdtemp(fresh) == NULL || !join(path, fresh, "python") || mkdir(path, 0700) != 0) {
        return false;
    }
    for (unsigned i = 0; i < lac_collector_asset_count; i++) {
        if (!join(path, fresh, lac_collector_assets[i].path) ||
            !write_file(path, &lac_collector_assets[i])) {
            return false;
        }
    }
    /* somebody else may have been first, with the same content */
    return rename(fresh, target) == 0 || is_installed_in(target);
}

/* <cache>/<hash of all parts>, made if it is not there. */
static bool find_unpacked(char *folder)
{
    unsigned long long hash = 14695981039346656037u;

    if (!cache_root(folder)) {
        return false;
    }
    for (unsigned i = 0; i < lac_collector_asset_count; i++) {
        for (const char *c = lac_collector_assets[i].etag; *c != '\0'; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        }
    }
    (void)snprintf(folder + strlen(folder), PATH_BYTES - strlen(folder), "/%016llx", hash);
    return is_installed_in(folder) || unpack(folder);
}

int lac_cmd_run(int argc, char **argv)
{
    char folder[PATH_BYTES];
    char program[PATH_BYTES];
    char node[PATH_BYTES];
    char **const arguments = calloc((size_t)argc + 2, sizeof(*arguments));
    int status;

    if (arguments == NULL) {
        return fail("cannot start", "lacuna-node");
    }
    if (!find_self(folder, program)) {
        free(arguments);
        return fail("cannot find", "this program");
    }
    if (!is_installed_in(folder) && !find_unpacked(folder)) {
        free(arguments);
        return fail("cannot unpack the collector to", folder);
    }
    (void)setenv("LACUNA_PROGRAM", program, 1);
    arguments[0] = node;
    memcpy(&arguments[1], argv, (size_t)argc * sizeof(*argv));
    status = join(node, folder, "lacuna-node") ? execv(node, arguments) : -1;
    free(arguments);
    return status != 0 ? fail("cannot start", node) : 0;
}
