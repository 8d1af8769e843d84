#include "collector/gather/gather.h"

#include "collector/gather/drain.h"
#include "collector/gather/launcher_note.h"
#include "collector/gather/spool_owner.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char help[] = "usage: lacuna gather [DIR [-o OUT]]\n"
                           "\n"
                           "Collects the spools in DIR into the recording OUT (default: "
                           "./gathered-TIME.lacuna). Such spools\n"
                           "come from processes that had the variables of `lacuna env` but were "
                           "not started by `lacuna run`.\n"
                           "Processes may still be running: gather again later for the rest. What "
                           "OUT holds of these\n"
                           "processes stays, and is added to.\n"
                           "\n"
                           "DIR may also be a recording whose launcher was killed: the rest of it "
                           "is added, and DIR is whole.\n"
                           "Without DIR: lists what was left on this host and how to collect it. "
                           "After 10 days\n"
                           "(LACUNA_KEEP_DAYS; 0: never) the next `lacuna run` removes it.\n";

static int usage(const char *problem)
{
    (void)fprintf(stderr, "lacuna gather: %s (lacuna gather --help)\n", problem);
    return 2;
}

static bool is_folder(const char *path)
{
    DIR *const folder = opendir(path);

    return folder != NULL && closedir(folder) == 0;
}

static void default_output(char *out, size_t capacity)
{
    const time_t now = time(NULL);
    struct tm parts;
    char stamp[32] = "";

    if (localtime_r(&now, &parts) != NULL) {
        (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
    }
    (void)snprintf(out, capacity, "gathered-%s.lacuna", stamp);
}

static int gather(const char *from, const char *to)
{
    struct lac_drain *const drain = lac_drain_create(from, to);
    struct lac_drain_counts counts;

    if (drain == NULL) {
        (void)fprintf(stderr, "lacuna gather: no memory\n");
        return 1;
    }
    lac_drain_gather(drain);
    lac_drain_exports(drain);
    counts = lac_drain_counts(drain);
    lac_drain_say_missing(drain, "lacuna gather", "the limit LACUNA_SPOOL_LIMIT");
    lac_drain_destroy(drain);
    if (counts.failed_writes > 0) {
        (void)fprintf(stderr, "lacuna gather: %s could not be written completely: %s\n", to,
                      strerror(errno));
        return 1;
    }
    if (counts.processes == 0) {
        (void)fprintf(stderr,
                      "lacuna gather: no spool in %s: did LACUNA_SPOOL name this folder inside "
                      "the job, and was it mounted there?\n",
                      from);
        return 1;
    }
    (void)printf("%s: %llu processes, %.1f MB\n", to, (unsigned long long)counts.processes,
                 (double)counts.bytes / 1e6);
    return 0;
}

/* The recording TO of a killed launcher has all of FROM now: what it left goes, unless a process may
 * still write there. */
static void finish(const char *from, const char *to)
{
    struct lac_launcher_note note;
    char rest[4096 + 8];

    if (lac_launcher_note_read(to, &note) != LAC_LAUNCHER_DEAD) {
        return;
    }
    if (strcmp(note.spools, from) != 0) {
        (void)snprintf(rest, sizeof(rest), "%.4000s-rest", to);
        if (strcmp(rest, from) == 0 && note.spools[0] != '\0' && !is_folder(note.spools)) {
            lac_launcher_note_remove(to); /* what an earlier gathering had put there was all */
        }
        return;
    }
    if (lac_spool_owner_drop_left(from)) {
        lac_launcher_note_remove(to);
        (void)printf("%s is whole now\n", to);
    } else {
        (void)printf("processes of the job may still write: gather again when they have ended\n");
    }
}

/* Of a recording that was not completed: the spools, which are elsewhere. @return false: they
 * cannot be had, which was said */
static bool find_rest(const char **from, const char **to)
{
    static struct lac_launcher_note note;
    const enum lac_launcher_state state = lac_launcher_note_read(*from, &note);
    static char recording[4096];
    const char *problem = NULL;

    if (state == LAC_LAUNCHER_NONE) {
        return true;
    }
    if (state == LAC_LAUNCHER_RUNS) {
        problem = "it is still being recorded";
    } else if (note.spools[0] == '\0') {
        problem = "its launcher was killed before it recorded anything";
    } else if (!is_folder(note.spools)) {
        problem = "the rest of it is gone, or on another host";
    }
    if (problem != NULL) {
        (void)fprintf(stderr, "lacuna gather: %s: %s (launcher on %s, process %d, spools in %s)\n",
                      *from, problem, note.host, (int)note.pid, note.spools);
        return false;
    }
    if (*to == NULL) {
        (void)snprintf(recording, sizeof(recording), "%s", *from);
        for (size_t end = strlen(recording); end > 1 && recording[end - 1] == '/'; end--) {
            recording[end - 1] = '\0';
        }
        *to = recording;
    }
    *from = note.spools;
    return true;
}

int lac_gather_command(int argc, char **argv)
{
    const char *from = NULL;
    const char *to = NULL;
    char *first;
    char *second;
    char output[256];
    bool same;
    int status;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            to = argv[++i];
        } else if (argv[i][0] == '-' || from != NULL) {
            return usage(from != NULL ? "give one folder" : "unknown option");
        } else {
            from = argv[i];
        }
    }
    if (from == NULL && to == NULL) {
        if (lac_spool_owner_list() == 0) {
            (void)puts("nothing was left on this host by killed launchers or lacuna env");
        }
        return 0;
    }
    if (from == NULL) {
        return usage("give the folder with the spools");
    }
    if (!is_folder(from)) {
        (void)fprintf(stderr, "lacuna gather: %s is not a folder\n", from);
        return 1;
    }
    if (!find_rest(&from, &to)) {
        return 1;
    }
    if (to == NULL) {
        default_output(output, sizeof(output));
        to = output;
    }
    if (mkdir(to, 0700) != 0 && errno != EEXIST) {
        (void)fprintf(stderr, "lacuna gather: cannot make %s: %s\n", to, strerror(errno));
        return 1;
    }
    first = realpath(from, NULL);
    second = realpath(to, NULL);
    same = first != NULL && second != NULL && strcmp(first, second) == 0;
    free(first);
    free(second);
    if (same) {
        return usage("the folder cannot be gathered into itself");
    }
    status = gather(from, to);
    if (status == 0) {
        finish(from, to);
    }
    return status;
}
