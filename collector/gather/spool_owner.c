#include "collector/gather/spool_owner.h"

#include "collector/base/folder.h"
#include "collector/base/io_full.h"
#include "collector/gather/launcher_note.h"
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
#include <time.h>
#include <unistd.h>

static const char lock_name[] = "launcher";

enum {
    PATH_BYTES = 4096,
    ENVIRON_BYTES = 1 << 18,
    LEFT_MAX = 64,
    KEEP_DAYS = 10, /* as long as systems keep temporary files */
    SECONDS_A_DAY = 24 * 3600,
};

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

bool lac_spool_owner_is_written(const char *name)
{
    char *end = NULL;
    const long pid = strtol(name, &end, 10);
    const uint64_t start = *end == '-' ? strtoull(end + 1, NULL, 10) : 0;

    return lac_spool_is_name(name) && pid > 0 && pid <= INT32_MAX && start != 0 &&
           lac_proc_start_ticks((int32_t)pid) == start;
}

static bool is_written(const void *context, const char *name)
{
    (void)context;
    return lac_spool_owner_is_written(name);
}

bool lac_spool_owner_is_recorded(const char *path)
{
    assert(path != NULL);
    return lac_folder_any(path, is_written, NULL);
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

/* A folder that no launcher holds. */
struct left {
    char name[64];
    int lock;     /* of a launcher that is dead; -1: there never was one (`lacuna env`) */
    bool is_used; /* the environment of a process names it: something may be recorded there yet */
    unsigned spools;
    uint64_t bytes;
    int64_t days; /* since somebody wrote there */
};

static void look_at_environment(int32_t pid, struct left *all, unsigned count)
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

static void look_who_uses(struct left *all, unsigned count)
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

bool lac_spool_owner_drop_left(const char *path)
{
    assert(path != NULL);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    const char *const slash = strrchr(path, '/');
    struct left one = {.lock = -1};
    char prefix[32];
    bool is_dropped = false;

    (void)snprintf(prefix, sizeof(prefix), "lacuna-%u-", (unsigned)getuid());
    (void)snprintf(one.name, sizeof(one.name), "%.63s", slash != NULL ? slash + 1 : path);
    if (fd >= 0 && is_own_file(fd, true) && strncmp(one.name, prefix, strlen(prefix)) == 0) {
        one.lock = lock_of_dead(fd);
    }
    if (one.lock >= 0) {
        look_who_uses(&one, 1);
        is_dropped = !one.is_used && !lac_spool_owner_is_recorded(path);
        (void)close(one.lock);
    }
    if (is_dropped) {
        lac_spool_folder_drop(path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_dropped;
}

/* What is in it, and how old that is. */
static void look_inside(const char *path, struct left *left)
{
    DIR *const folder = opendir(path);
    const int folder_fd = folder != NULL ? dirfd(folder) : -1;
    struct stat status = {0};
    int64_t newest = 0;

    if (folder == NULL) {
        return;
    }
    if (lac_file_status(folder_fd, &status)) {
        newest = status.st_mtime;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const int fd =
            folder_fd >= 0 && lac_spool_is_name(entry->d_name)
                ? openat(folder_fd, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                : -1;

        left->spools += lac_spool_is_name(entry->d_name);
        if (fd >= 0 && lac_file_status(fd, &status)) {
            left->bytes += (uint64_t)status.st_blocks * 512;
            newest = status.st_mtime > newest ? status.st_mtime : newest;
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    (void)closedir(folder);
    left->days = (time(NULL) - newest) / SECONDS_A_DAY;
}

/* Where its recording went, as its launcher noted it. */
static void read_output(int lock, char *output)
{
    const ssize_t length = lock >= 0 ? pread(lock, output, PATH_BYTES - 1, 0) : 0;

    output[length > 0 ? length : 0] = '\0';
    for (char *at = output; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    }
}

/* Whether `output` is still the recording whose rest is in `path`: another one may be there now. */
static bool is_recording_of(const char *output, const char *path)
{
    struct lac_launcher_note note;
    const char *const slash = strrchr(path, '/');

    if (output[0] == '\0' || lac_launcher_note_read(output, &note) != LAC_LAUNCHER_DEAD) {
        return false;
    }
    return strrchr(note.spools, '/') != NULL && slash != NULL &&
           strcmp(strrchr(note.spools, '/'), slash) == 0;
}

/* The command that keeps what is in `path`. */
static void say_gather(FILE *to, const char *path, const char *output)
{
    if (is_recording_of(output, path)) {
        (void)fprintf(to, "lacuna gather %s", output);
    } else {
        (void)fprintf(to, "lacuna gather %s%s%s%s", path, output[0] != '\0' ? " -o " : "", output,
                      output[0] != '\0' ? "-rest" : "");
    }
}

static void say_where(const char *path, const struct left *left)
{
    char output[PATH_BYTES];

    read_output(left->lock, output);
    (void)fprintf(stderr,
                  "lacuna: a launcher that was killed left the last records of %u processes; to "
                  "keep them: ",
                  left->spools);
    say_gather(stderr, path, output);
    (void)fprintf(stderr, "; to remove them: rm -r %s\n", path);
}

/* Those of this user in `base`, up to LEFT_MAX; locks of dead launchers are ours then. */
static unsigned find_left(const char *base, const char *own_name, struct left *all)
{
    DIR *const folder = opendir(base[0] != '\0' ? base : "/");
    const int fd = folder != NULL ? dirfd(folder) : -1;
    char prefix[32];
    unsigned count = 0;

    (void)snprintf(prefix, sizeof(prefix), "lacuna-%u-", (unsigned)getuid());
    for (const struct dirent *entry = fd >= 0 ? readdir(folder) : NULL;
         entry != NULL && count < LEFT_MAX; entry = readdir(folder)) {
        struct left *const left = &all[count];
        int one;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            strlen(entry->d_name) >= sizeof(left->name) || strcmp(entry->d_name, own_name) == 0) {
            continue;
        }
        one = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (one < 0) {
            continue;
        }
        *left = (struct left){.lock = -1};
        memcpy(left->name, entry->d_name, strlen(entry->d_name) + 1);
        if (is_own_file(one, true)) {
            left->lock = lock_of_dead(one);
            count += left->lock >= 0 || faccessat(one, lock_name, F_OK, 0) != 0;
        }
        (void)close(one);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    for (unsigned i = 0; i < count; i++) {
        char path[PATH_BYTES + sizeof(all[0].name)];

        (void)snprintf(path, sizeof(path), "%.4000s/%.63s", base, all[i].name);
        look_inside(path, &all[i]);
    }
    if (count > 0) {
        look_who_uses(all, count);
    }
    return count;
}

/* LACUNA_KEEP_DAYS; 0: for ever. */
static int64_t keep_days(void)
{
    const char *const asked = getenv("LACUNA_KEEP_DAYS");
    char *end = NULL;
    const long days = asked != NULL ? strtol(asked, &end, 10) : KEEP_DAYS;

    return asked == NULL || (end != asked && *end == '\0' && days >= 0 && days < 100000)
               ? days
               : KEEP_DAYS;
}

void lac_spool_owner_sweep(const char *own, bool is_quiet)
{
    assert(own != NULL);
    const int64_t most_days = keep_days();
    struct left all[LEFT_MAX];
    char base[PATH_BYTES];
    unsigned count;
    unsigned told = 0;

    (void)snprintf(base, sizeof(base), "%.4000s", own);
    if (strrchr(base, '/') == NULL) {
        return;
    }
    *strrchr(base, '/') = '\0';
    count = find_left(base, own + strlen(base) + 1, all);
    for (unsigned i = 0; i < count; i++) {
        const struct left *const left = &all[i];
        char path[PATH_BYTES + sizeof(left->name)];

        (void)snprintf(path, sizeof(path), "%.4000s/%.63s", base, left->name);
        if (left->is_used || lac_spool_owner_is_recorded(path)) {
            continue;
        }
        if (most_days > 0 && left->days >= most_days) {
            if (left->spools > 0) {
                (void)fprintf(stderr,
                              "lacuna: removed %s, %u spools (%.1f MB) that nobody gathered in %d "
                              "days (LACUNA_KEEP_DAYS)\n",
                              path, left->spools, (double)left->bytes / 1e6, (int)left->days);
            }
            lac_spool_folder_drop(path);
        } else if (left->lock >= 0 && left->spools > 0 && !is_quiet && told++ == 0) {
            say_where(path, left);
        } else if (left->lock >= 0 && left->spools == 0) {
            (void)lac_spool_folder_remove(path);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (all[i].lock >= 0) {
            (void)close(all[i].lock);
        }
    }
    if (told > 1) {
        (void)fprintf(stderr, "lacuna: %u more are in %s: lacuna gather lists them\n", told - 1,
                      base);
    }
}

/* One line for each. @return how many */
static unsigned list_in(const char *base)
{
    struct left all[LEFT_MAX];
    const unsigned count = find_left(base, "", all);
    unsigned listed = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct left *const left = &all[i];
        char output[PATH_BYTES];
        char path[PATH_BYTES + sizeof(left->name)];

        (void)snprintf(path, sizeof(path), "%.4000s/%.63s", base, left->name);
        read_output(left->lock, output);
        if (left->spools > 0) {
            const bool is_recorded = left->is_used || lac_spool_owner_is_recorded(path);

            (void)printf("%s  %u spools, %.1f MB, %s%s\n", path, left->spools,
                         (double)left->bytes / 1e6,
                         is_recorded       ? "still recorded to"
                         : left->lock >= 0 ? "its launcher was killed: the end of "
                                           : "recorded with the variables of lacuna env",
                         is_recorded ? "" : output);
            (void)fputs("  ", stdout);
            say_gather(stdout, path, output);
            (void)putchar('\n');
            listed++;
        }
        if (left->lock >= 0) {
            (void)close(left->lock);
        }
    }
    return listed;
}

unsigned lac_spool_owner_list(void)
{
    unsigned listed = 0;

    for (unsigned i = 0; i < LAC_SPOOL_FOLDER_PLACES; i++) {
        const char *const place = lac_spool_folder_place(i);
        bool is_new = place != NULL;

        for (unsigned k = 0; k < i && is_new; k++) {
            is_new =
                lac_spool_folder_place(k) == NULL || strcmp(lac_spool_folder_place(k), place) != 0;
        }
        listed += is_new ? list_in(place) : 0;
    }
    return listed;
}
