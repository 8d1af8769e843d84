#include "collector/launch/output_folder.h"

#include "collector/base/count_of.h"
#include "lacuna/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES_MAX = 1000, JOB_BYTES = 100 };

/* ---- which of several launchers of one job this is */

static const char *variable(const char *name)
{
    const char *const value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool lac_output_folder_job(char *out, size_t capacity)
{
    const char *const slurm = variable("SLURM_JOB_ID");
    const char *const step = variable("SLURM_STEP_ID");
    const char *const elastic = variable("TORCHELASTIC_RUN_ID");
    const char *const pbs = variable("PBS_JOBID");
    const char *const lsf = variable("LSB_JOBID");

    if (slurm != NULL) {
        (void)snprintf(out, capacity, "slurm-%.40s%s%.20s", slurm, step != NULL ? "." : "",
                       step != NULL ? step : "");
    } else if (pbs != NULL) {
        (void)snprintf(out, capacity, "pbs-%.60s", pbs);
    } else if (lsf != NULL) {
        (void)snprintf(out, capacity, "lsf-%.60s", lsf);
    } else if (elastic != NULL && strcmp(elastic, "none") != 0) {
        (void)snprintf(out, capacity, "torchrun-%.60s", elastic);
    } else {
        out[0] = '\0';
        return false;
    }
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    return true;
}

/* "rank-3", or "" for the only launcher. A task of the batch system may hold several ranks. */
static void name_of_rank(char *out, size_t capacity)
{
    static const struct {
        const char *number, *count, *word;
    } kinds[] = {
        {"RANK", "WORLD_SIZE", "rank"},
        {"SLURM_PROCID", "SLURM_NTASKS", "task"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "rank"},
        {"PMI_RANK", "PMI_SIZE", "rank"},
    };

    out[0] = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(kinds) && out[0] == '\0'; i++) {
        const char *const number = variable(kinds[i].number);
        const char *const count = variable(kinds[i].count);

        if (number != NULL && count != NULL && strtol(count, NULL, 10) > 1 &&
            strspn(number, "0123456789") == strlen(number)) {
            (void)snprintf(out, capacity, "%s-%.10s", kinds[i].word, number);
        }
    }
}

/* ---- what is there already */

static bool holds_recording(const char *path, bool of_ranks)
{
    DIR *const folder = opendir(path);
    bool found = false;

    if (folder == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && !found;
         entry = readdir(folder)) {
        found = lac_spool_is_name(entry->d_name) ||
                (of_ranks && (strncmp(entry->d_name, "rank-", 5) == 0 ||
                              strncmp(entry->d_name, "task-", 5) == 0));
    }
    (void)closedir(folder);
    return found;
}

/* Ours until we end; file systems that know no locks count as free. */
static bool lock(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        (void)close(fd);
        return false;
    }
    return true; /* the descriptor stays open on purpose */
}

/* 0, or an errno. A folder that is there is fine. */
static int make_folder(const char *path)
{
    int folder;

    if (mkdir(path, 0700) == 0) {
        return 0;
    }
    if (errno != EEXIST) {
        return errno;
    }
    folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); /* stat() is too new a symbol */
    if (folder < 0) {
        return errno;
    }
    (void)close(folder);
    return 0;
}

/* BASE/RANK, or BASE. */
static bool join(char *out, size_t capacity, const char *base, const char *end, const char *rank)
{
    const int length =
        snprintf(out, capacity, "%s%s%s%s", base, end, rank[0] != '\0' ? "/" : "", rank);

    return length > 0 && (size_t)length < capacity;
}

/* The recording in BASE/RANK to BASE.old/RANK. */
static int move_away(const char *base, const char *rank, const char *path)
{
    char folder[4096];
    char to[4096];
    char end[32] = ".old";

    for (int i = 2; i < TRIES_MAX; i++) {
        if (!join(folder, sizeof(folder), base, end, "") ||
            !join(to, sizeof(to), base, end, rank)) {
            return ENAMETOOLONG;
        }
        if (access(to, F_OK) != 0) {
            const int problem = rank[0] != '\0' ? make_folder(folder) : 0;

            if (problem != 0 || rename(path, to) != 0) {
                return problem != 0 ? problem : errno;
            }
            (void)fprintf(stderr, "lacuna: the recording that was in %s is now in %s\n", path, to);
            return 0;
        }
        (void)snprintf(end, sizeof(end), ".old%d", i);
    }
    return EEXIST;
}

/* BASE/RANK, empty and ours: 0, or an errno. */
static int take(const char *base, const char *rank, char *out, size_t capacity)
{
    char end[32] = "";
    int problem = 0;

    for (int i = 2; i < TRIES_MAX && problem == 0; i++) {
        char folder[4096];

        if (!join(folder, sizeof(folder), base, end, "") || !join(out, capacity, base, end, rank)) {
            return ENAMETOOLONG;
        }
        problem = make_folder(folder);
        if (problem == 0 && rank[0] != '\0') {
            if (holds_recording(folder, false) && move_away(folder, "", folder) == 0) {
                problem = make_folder(folder);
            }
            problem = problem == 0 ? make_folder(out) : problem;
        }
        if (problem == 0 && lock(out)) {
            if (!holds_recording(out, rank[0] == '\0')) {
                return access(out, W_OK | X_OK) == 0 ? 0 : errno;
            }
            problem = move_away(folder, rank, out);
            i -= problem == 0; /* again, with the same name */
        } else if (problem == 0) {
            (void)snprintf(end, sizeof(end), "-%d", i);
        }
    }
    return problem != 0 ? problem : EEXIST;
}

/* ---- names */

static void default_name(const char *command, char *out, size_t capacity)
{
    const char *const slash = strrchr(command, '/');
    const char *const name = slash != NULL ? slash + 1 : command;
    const time_t now = time(NULL);
    struct tm parts;
    char stamp[JOB_BYTES];

    /* the ranks of a job find one name, whenever each of them starts */
    if (!lac_output_folder_job(stamp, sizeof(stamp))) {
        if (localtime_r(&now, &parts) == NULL ||
            strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts) == 0) {
            stamp[0] = '\0';
        }
    }
    (void)snprintf(out, capacity, "%.64s-%s.lacuna", name, stamp);
}

static bool cannot_be_written(int problem)
{
    return problem == EACCES || problem == EROFS || problem == EPERM || problem == ENOSPC ||
           problem == EDQUOT;
}

bool lac_output_folder_make(const char *asked, const char *command, char *out, size_t capacity,
                            char *problem, size_t problem_capacity)
{
    const char *const temporary = variable("TMPDIR");
    char rank[32];
    char base[4096];
    char elsewhere[4096];
    int error;

    name_of_rank(rank, sizeof(rank));
    if (asked != NULL) {
        size_t length = strlen(asked);

        while (length > 1 && asked[length - 1] == '/') {
            length--;
        }
        if (length >= sizeof(base)) {
            length = sizeof(base) - 1;
        }
        memcpy(base, asked, length);
        base[length] = '\0';
    } else {
        default_name(command, base, sizeof(base));
    }
    error = take(base, rank, out, capacity);
    if (asked == NULL && cannot_be_written(error)) {
        (void)snprintf(elsewhere, sizeof(elsewhere), "%.3900s/%.180s",
                       temporary != NULL ? temporary : "/tmp", base);
        error = take(elsewhere, rank, out, capacity);
        if (error == 0) {
            (void)fprintf(stderr,
                          "lacuna: the current folder cannot be written; the recording goes to "
                          "%s\n",
                          out);
        }
    }
    problem[0] = '\0';
    if (error != 0) {
        (void)snprintf(problem, problem_capacity, "cannot make %s: %s",
                       asked != NULL ? asked : base, strerror(error));
    }
    return error == 0;
}
