#include "collector/gather/launcher_note.h"

#include "collector/base/io_full.h"
#include "collector/sample/proc_files.h"
#include "lacuna/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char first_line[] = "lacuna-launcher 1\n";

enum { PATH_BYTES = 4096 + 64, TEXT_BYTES = 8192 };

static void path_of(char *path, const char *folder)
{
    (void)snprintf(path, PATH_BYTES, "%.4096s/%s", folder, LAC_SPOOL_NOTE);
}

/* This process, and the places that its number means something in. */
static void fill_own(struct lac_launcher_note *note)
{
    ssize_t length;

    memset(note, 0, sizeof(*note));
    (void)gethostname(note->host, sizeof(note->host) - 1);
    note->pid = (int32_t)getpid();
    note->start_ticks = lac_proc_start_ticks(note->pid);
    (void)lac_read_text("/proc/sys/kernel/random/boot_id", note->boot, sizeof(note->boot));
    note->boot[strcspn(note->boot, "\n")] = '\0';
    length = readlink("/proc/self/ns/pid", note->pid_space, sizeof(note->pid_space) - 1);
    note->pid_space[length > 0 ? length : 0] = '\0';
}

int lac_launcher_note_make(const char *folder)
{
    assert(folder != NULL);
    struct lac_launcher_note note;
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    int fd;

    path_of(path, folder);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno;
    }
    fill_own(&note);
    (void)snprintf(text, sizeof(text),
                   "%shost %s\npid %d\nstart %" PRIu64 "\nboot %s\npid_space %s\n", first_line,
                   note.host, (int)note.pid, note.start_ticks, note.boot, note.pid_space);
    /* where the disk is full it is empty, and keeps others away all the same */
    (void)lac_write_full(fd, text, strlen(text));
    (void)close(fd);
    return 0;
}

static void append(const char *folder, const char *line)
{
    char path[PATH_BYTES];
    int fd;

    path_of(path, folder);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        (void)lac_write_full(fd, line, strlen(line));
        (void)close(fd);
    }
}

void lac_launcher_note_spools(const char *folder, const char *spools)
{
    assert(folder != NULL && spools != NULL);
    char text[TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "spools %.4095s\n", spools);
    append(folder, text);
}

void lac_launcher_note_ended(const char *folder)
{
    assert(folder != NULL);
    append(folder, LAC_SPOOL_NOTE_ENDED);
}

void lac_launcher_note_remove(const char *folder)
{
    char path[PATH_BYTES];

    path_of(path, folder);
    (void)unlink(path);
}

/* The rest of the line that begins with `key` and a blank, fit to be shown. */
static void take(const char *text, const char *key, char *out, size_t capacity)
{
    const size_t key_length = strlen(key);

    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_length) == 0 && line[key_length] == ' ') {
            const char *const value = line + key_length + 1;

            (void)snprintf(out, capacity, "%.*s", (int)strcspn(value, "\n"), value);
        }
    }
    for (char *at = out; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    }
}

static bool read_note(const char *folder, struct lac_launcher_note *ret)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    char number[32] = "";
    int64_t length = -1;
    int fd;

    memset(ret, 0, sizeof(*ret));
    path_of(path, folder);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    if (lac_file_is_regular(fd)) {
        length = lac_read_full(fd, text, sizeof(text) - 1);
    }
    (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    if (strncmp(text, first_line, strlen(first_line)) != 0) {
        return false;
    }
    take(text, "host", ret->host, sizeof(ret->host));
    take(text, "boot", ret->boot, sizeof(ret->boot));
    take(text, "pid_space", ret->pid_space, sizeof(ret->pid_space));
    take(text, "spools", ret->spools, sizeof(ret->spools));
    take(text, "pid", number, sizeof(number));
    ret->pid = (int32_t)strtol(number, NULL, 10);
    take(text, "start", number, sizeof(number));
    ret->start_ticks = strtoull(number, NULL, 10);
    return ret->host[0] != '\0' && ret->pid > 0 && ret->start_ticks > 0;
}

enum lac_launcher_state lac_launcher_note_read(const char *folder, struct lac_launcher_note *ret)
{
    assert(folder != NULL && ret != NULL);
    struct lac_launcher_note own;

    if (!read_note(folder, ret)) {
        memset(ret, 0, sizeof(*ret));
        return LAC_LAUNCHER_NONE;
    }
    fill_own(&own);
    if (strcmp(own.host, ret->host) != 0) {
        return LAC_LAUNCHER_ELSEWHERE;
    }
    if (strcmp(own.boot, ret->boot) != 0) {
        return LAC_LAUNCHER_DEAD; /* the host has started again since */
    }
    if (strcmp(own.pid_space, ret->pid_space) != 0) {
        return LAC_LAUNCHER_ELSEWHERE;
    }
    return lac_proc_start_ticks(ret->pid) == ret->start_ticks ? LAC_LAUNCHER_RUNS
                                                              : LAC_LAUNCHER_DEAD;
}
