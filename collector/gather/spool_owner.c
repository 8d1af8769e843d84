#include "collector/gather/spool_owner.h"

#include "collector/base/io_full.h"
#include "collector/gather/spool_folder.h"
#include "collector/sample/proc_files.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char lock_name[] = "launcher";

enum { PATH_BYTES = 4096, ENVIRON_BYTES = 1 << 18, SWEPT_MAX = 16 };

/* ---- one's own */

bool lac_spool_owner_take(const char *folder, const char *output)
{
    assert(folder != NULL);
    char *const whole = realpath(output, NULL);
    const char *const shown = whole != NULL ? whole : output;
    char fresh[PATH_BYTES];
    char path[PATH_BYTES];
    bool is_ours = false;
    int fd;

    (void)snprintf(fresh, sizeof(fresh), "%.4000s/%s.new", folder, lock_name);
    (void)snprintf(path, sizeof(path), "%.4000s/%s", folder, lock_name);
    fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* locked before it has its name: whoever finds it finds it locked */
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)lac_file_write_at(fd, shown, strlen(shown), 0);
        is_ours = rename(fresh, path) == 0;
    }
    if (fd >= 0 && !is_ours) {
        const int problem = errno;

        (void)close(fd);
        errno = problem;
    }
    free(whole);
    return is_ours; /* the descriptor stays open on purpose */
}

/* Its process by number and start, as the recorder names the file. */
static bool is_written(const char *name)
{
    char *end = NULL;
    const long pid = strtol(name, &end, 10);
    const uint64_t start = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;

    return lac_spool_is_name(name) && pid > 0 && pid <= INT32_MAX && start != 0 &&
           lac_proc_start_ticks((int32_t)pid) == start;
}

bool lac_spool_owner_is_recorded(const char *path)
{
    assert(path != NULL);
    DIR *const folder = opendir(path);
    bool found = false;

    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && !found;
         entry = readdir(folder)) {
        found = is_written(entry->d_name);
    }
    (void)closedir(folder);
    return found;
}

/* ---- those of others */

static bool is_own_file(int fd, bool is_folder)
{
    struct stat status = {0};

    return lac_file_status(fd, &status) && status.st_uid == geteuid() &&
           (is_folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
}

/* Its lock, which nobody holds any more; -1: somebody does, or it is no launcher's folder. */
static int lock_of_dead(int folder)
{
    const int fd = openat(folder, lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && (!is_own_file(fd, false) || flock(fd, LOCK_EX | LOCK_NB) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* A folder of a launcher that is dead. */
struct dead {
    char name[64];
    int lock;
    bool is_used; /* the environment of a process names it: something may be recorded there yet */
};

static void look_at_environment(int32_t pid, struct dead *all, unsigned count)
{
    static char text[ENVIRON_BYTES];
    char path[64];
    size_t length;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    length = lac_read_text(path, text, sizeof(text));
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        const char *const slash =
            strncmp(text + at, "LACUNA_SPOOL=", 13) == 0 ? strrchr(text + at, '/') : NULL;

        for (unsigned i = 0; i < count && slash != NULL; i++) {
            all[i].is_used = all[i].is_used || strcmp(slash + 1, all[i].name) == 0;
        }
    }
}

static void look_who_uses(struct dead *all, unsigned count)
{
    DIR *const folder = opendir("/proc");

    for (unsigned i = 0; i < count; i++) {
        all[i].is_used = folder == NULL; /* not to be told */
    }
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            look_at_environment((int32_t)strtol(entry->d_name, NULL, 10), all, count);
        }
    }
    (void)closedir(folder);
}

static unsigned count_spools(const char *path)
{
    DIR *const folder = opendir(path);
    unsigned count = 0;

    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += lac_spool_is_name(entry->d_name);
    }
    (void)closedir(folder);
    return count;
}

static void say_where(const char *path, unsigned spools, int lock)
{
    char output[PATH_BYTES];
    const ssize_t length = pread(lock, output, sizeof(output) - 1, 0);

    output[length > 0 ? length : 0] = '\0';
    for (char *at = output; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    }
    (void)fprintf(stderr,
                  "lacuna: a launcher that was killed left the last records of %u processes; to "
                  "keep them: lacuna gather %s -o %s-rest; to remove them: rm -r %s\n",
                  spools, path, output[0] != '\0' ? output : "DIR", path);
}

/* Those beside our own, up to SWEPT_MAX; their locks are ours then. */
static unsigned find_dead(DIR *folder, const char *own_name, struct dead *all)
{
    const int fd = dirfd(folder);
    char prefix[32];
    unsigned count = 0;

    (void)snprintf(prefix, sizeof(prefix), "lacuna-%u-", (unsigned)getuid());
    for (const struct dirent *entry = readdir(folder);
         fd >= 0 && entry != NULL && count < SWEPT_MAX; entry = readdir(folder)) {
        int one;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            strlen(entry->d_name) >= sizeof(all[0].name) || strcmp(entry->d_name, own_name) == 0) {
            continue;
        }
        one = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (one < 0) {
            continue;
        }
        all[count].lock = is_own_file(one, true) ? lock_of_dead(one) : -1;
        memcpy(all[count].name, entry->d_name, strlen(entry->d_name) + 1);
        count += all[count].lock >= 0;
        (void)close(one);
    }
    return count;
}

void lac_spool_owner_sweep(const char *own, bool is_quiet)
{
    assert(own != NULL);
    struct dead all[SWEPT_MAX];
    char base[PATH_BYTES];
    unsigned count;
    unsigned told = 0;
    DIR *folder;

    (void)snprintf(base, sizeof(base), "%.4000s", own);
    if (strrchr(base, '/') == NULL) {
        return;
    }
    *strrchr(base, '/') = '\0';
    folder = opendir(base[0] != '\0' ? base : "/");
    if (folder == NULL) {
        return;
    }
    count = find_dead(folder, own + strlen(base) + 1, all);
    (void)closedir(folder);
    if (count > 0) {
        look_who_uses(all, count);
    }
    for (unsigned i = 0; i < count; i++) {
        char path[PATH_BYTES + sizeof(all[0].name)];
        unsigned spools;

        (void)snprintf(path, sizeof(path), "%s/%s", base, all[i].name);
        spools = all[i].is_used ? 0 : count_spools(path);
        if (spools > 0 && !is_quiet && told++ == 0) {
            say_where(path, spools, all[i].lock);
        } else if (spools == 0 && !all[i].is_used) {
            (void)lac_spool_folder_remove(path);
        }
        (void)close(all[i].lock);
    }
    if (told > 1) {
        (void)fprintf(stderr, "lacuna: %u more are in %s\n", told - 1, base);
    }
}
