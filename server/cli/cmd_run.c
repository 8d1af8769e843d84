/*
 * `lacuna run`: hands over to lacuna-node, the small program that runs where people train. It is
 * beside this one where Lacuna is installed, and inside it everywhere else: then it is written once
 * to the user's cache folder, under a name that is the hash of its content, and used from there.
 */
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "server/cli/commands.h"
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

enum { CACHE_ROOTS = 4 };

/* The user's cache folder; where that cannot be used, a private one among temporary files. */
static bool cache_root(int which, char *out)
{
    static const char *const variables[CACHE_ROOTS] = {"XDG_CACHE_HOME", "HOME", "TMPDIR", NULL};
    const char *const base = variables[which] != NULL ? getenv(variables[which]) : "/tmp";
    char owned[32];

    (void)snprintf(owned, sizeof(owned), "lacuna-cache-%u", (unsigned)geteuid());
    if (base == NULL || base[0] != '/' ||
        !join(out, base,
              which == 0   ? "lacuna"
              : which == 1 ? ".cache"
                           : owned)) {
        return false;
    }
    if (which == 0) {
        (void)mkdir(base, 0700);
    } else if (which == 1) {
        (void)mkdir(out, 0700);
        (void)snprintf(out + strlen(out), PATH_BYTES - strlen(out), "/lacuna");
    }
    return make_private(out);
}

static bool write_file(const char *path, const struct lac_asset *asset)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);

    if (fd >= 0 && !lac_write_full(fd, asset->bytes, asset->size_bytes)) {
        (void)close(fd);
        return false;
    }
    return fd >= 0 && close(fd) == 0;
}

static void remove_half(const char *folder)
{
    char path[PATH_BYTES];

    for (unsigned i = 0; i < lac_collector_asset_count; i++) {
        if (join(path, folder, lac_collector_assets[i].path)) {
            (void)unlink(path);
        }
    }
    if (join(path, folder, "python")) {
        (void)rmdir(path);
    }
    (void)rmdir(folder);
}

static bool write_all(const char *folder)
{
    char path[PATH_BYTES];

    if (!join(path, folder, "python") || mkdir(path, 0700) != 0) {
        return false;
    }
    for (unsigned i = 0; i < lac_collector_asset_count; i++) {
        if (!join(path, folder, lac_collector_assets[i].path) ||
            !write_file(path, &lac_collector_assets[i])) {
            return false;
        }
    }
    return true;
}

/* All files into a fresh folder, which then takes its final name at once: half of it
 * is never seen. */
static bool unpack(const char *target)
{
    char fresh[PATH_BYTES];
    int error;

    if (access(target, F_OK) == 0) { /* there, and yet of no use: programs may not be executed */
        errno = EACCES;
        return false;
    }
    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.XXXXXX", target) >= sizeof(fresh) ||
        mkdtemp(fresh) == NULL) {
        return false;
    }
    if (write_all(fresh) && rename(fresh, target) == 0) {
        return true;
    }
    error = errno;
    remove_half(fresh);
    errno = error;
    return is_installed_in(target); /* somebody else may have been first, with the same content */
}

/* <cache>/<hash of all parts>, made if it is not there, in the first cache whose programs can be
 * executed. `folder` names the last one that was tried. */
static bool find_unpacked(char *folder)
{
    unsigned long long hash = 14695981039346656037u;

    for (unsigned i = 0; i < lac_collector_asset_count; i++) {
        for (const char *c = lac_collector_assets[i].etag; *c != '\0'; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        }
    }
    for (int which = 0; which < CACHE_ROOTS; which++) {
        if (cache_root(which, folder)) {
            (void)snprintf(folder + strlen(folder), PATH_BYTES - strlen(folder), "/%016llx", hash);
            if (is_installed_in(folder) || (unpack(folder) && is_installed_in(folder))) {
                return true;
            }
        }
    }
    return false;
}

/* CMD of `run [OPTION]... -- CMD`; NULL: there is none, or --strict wants no job without us. */
static char **command_of(int argc, char **argv)
{
    static const char *const alone[] = {"--quiet",        "--all",       "--cost",
                                        "--profiler-api", "--on-demand", "--no-hang"};
    static const char with_equals[] = "--python-stacks="; /* its value is in the same word */
    int i = 1;

    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
        bool has_value = strncmp(argv[i], with_equals, sizeof(with_equals) - 1) != 0;

        if (strcmp(argv[i], "--strict") == 0 || strcmp(argv[i], "--help") == 0 ||
            strcmp(argv[i], "-h") == 0) {
            return NULL;
        }
        for (size_t k = 0; k < LAC_COUNT_OF(alone); k++) {
            has_value = has_value && strcmp(argv[i], alone[k]) != 0;
        }
        if (has_value && i + 1 < argc && strcmp(argv[i + 1], "--") == 0) {
            return NULL; /* wrong usage */
        }
        i += has_value ? 2 : 1;
    }
    i += i < argc && strcmp(argv[i], "--") == 0;
    return i < argc ? &argv[i] : NULL;
}

/* Whatever fails in us, the job of `run` runs. */
static int give_way(int argc, char **argv, const char *what, const char *path)
{
    char **const command = strcmp(argv[0], "run") == 0 ? command_of(argc, argv) : NULL;
    int error = errno;

    if (command == NULL) {
        return fail(what, path);
    }
    (void)fprintf(stderr, "lacuna: %s %s: %s; the job runs unrecorded\n", what, path,
                  strerror(error));
    (void)unsetenv("LACUNA_TOKEN"); /* the job has no business with it */
    (void)unsetenv("LACUNA_PROGRAM");
    (void)execvp(command[0], command);
    error = errno;
    (void)fprintf(stderr, "lacuna: cannot run %s: %s\n", command[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

int lac_cmd_run(int argc, char **argv)
{
    char folder[PATH_BYTES];
    char program[PATH_BYTES];
    char node[PATH_BYTES];
    char **const arguments = calloc((size_t)argc + 2, sizeof(*arguments));

    if (arguments == NULL) {
        return give_way(argc, argv, "cannot start", "lacuna-node");
    }
    memcpy(&arguments[1], argv, (size_t)argc * sizeof(*argv));
    arguments[0] = node;
    if (!find_self(folder, program)) {
        free(arguments);
        return give_way(argc, argv, "cannot find", "this program");
    }
    if (!is_installed_in(folder) && !find_unpacked(folder)) {
        free(arguments);
        return give_way(argc, argv, "cannot unpack the collector to", folder);
    }
    (void)setenv("LACUNA_PROGRAM", program, 1);
    if (join(node, folder, "lacuna-node")) {
        (void)execv(node, arguments);
    }
    free(arguments);
    return give_way(argc, argv, "cannot start", node);
}
