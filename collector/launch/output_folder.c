#include "collector/launch/output_folder.h"

#include "collector/base/folder.h"
#include "collector/gather/launcher_note.h"
#include "collector/launch/old_recordings.h"
#include "collector/launch/output_name.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES_MAX = 1000, SETTLE_MS = 2000, EMPTY_MS = 200, LOOK_MS = 10 };

/* ---- what is there already */

static bool is_of_recording(const void *of_ranks, const char *name)
{
    return lac_spool_is_name(name) || (*(const bool *)of_ranks && lac_output_name_is_rank(name));
}

static bool holds_recording(const char *path, bool of_ranks)
{
    return lac_folder_any(path, is_of_recording, &of_ranks);
}

enum lock { LOCK_OURS, LOCK_OF_ANOTHER, LOCK_UNKNOWN };

/* Until we end. File systems on a network may know no locks. */
static enum lock lock(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd < 0 ? LOCK_UNKNOWN : LOCK_OURS; /* the descriptor stays open on purpose */
    }
    const int problem = errno;

    (void)close(fd);
    return problem == EWOULDBLOCK ? LOCK_OF_ANOTHER : LOCK_UNKNOWN;
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

/* What a killed launcher left of the recording that is in PATH now. */
static void say_rest(const char *path)
{
    struct lac_launcher_note note;

    if (lac_launcher_note_read(path, &note) == LAC_LAUNCHER_DEAD && note.spools[0] != '\0' &&
        access(note.spools, F_OK) == 0) {
        (void)fprintf(stderr,
                      "lacuna: its launcher was killed; to keep the rest of it: lacuna gather %s\n",
                      path);
    }
}

/* The note there, if it is this launcher's. */
static void release(const char *path)
{
    struct lac_launcher_note note;

    if (lac_launcher_note_read(path, &note) == LAC_LAUNCHER_RUNS && note.pid == (int32_t)getpid()) {
        lac_launcher_note_remove(path);
    }
}

/* The recording in BASE/RANK to BASE.old/RANK. Numbers only grow, so that ranks stay together and
 * the newest one is the last. */
static int move_away(const char *base, const char *rank, const char *path)
{
    const unsigned last = lac_old_recordings_last(base);
    char folder[4096];
    char to[4096];

    for (unsigned i = rank[0] != '\0' && last > 0 ? last : last + 1; i < last + TRIES_MAX; i++) {
        char end[32] = ".old";

        if (i > 1) {
            (void)snprintf(end, sizeof(end), ".old%u", i);
        }
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
            say_rest(to);
            release(to);
            lac_old_recordings_trim(base);
            return 0;
        }
    }
    return EEXIST;
}

enum claim {
    CLAIM_OURS,
    CLAIM_OF_ANOTHER,
    CLAIM_OF_DEAD,    /* its launcher was killed, and nobody else can take it now */
    CLAIM_OF_NOTHING, /* it is not there, or not any more */
    CLAIM_FAILED
};

/* Takes the folder for this launcher. The note alone decides; a lock only tells that whoever made
 * a note is dead and that nobody else is about to find out. */
static enum claim claim(const char *path, int *ret_problem)
{
    const enum lock locked = lock(path);
    struct lac_launcher_note note;
    enum lac_launcher_state state;

    if (locked == LOCK_OF_ANOTHER) {
        return CLAIM_OF_ANOTHER;
    }
    *ret_problem = lac_launcher_note_make(path);
    if (*ret_problem != EEXIST) {
        return *ret_problem == 0 ? CLAIM_OURS : CLAIM_FAILED;
    }
    *ret_problem = 0;
    state = lac_launcher_note_read(path, &note);
    for (int ms = 0; state == LAC_LAUNCHER_NONE && ms < EMPTY_MS; ms += LOOK_MS) {
        (void)usleep(LOOK_MS * 1000); /* it is being written */
        state = lac_launcher_note_read(path, &note);
    }
    if ((state == LAC_LAUNCHER_DEAD || state == LAC_LAUNCHER_NONE) && locked == LOCK_OURS) {
        if (holds_recording(path, true)) {
            return CLAIM_OF_DEAD;
        }
        lac_launcher_note_remove(path);
        return lac_launcher_note_make(path) == 0 ? CLAIM_OURS : CLAIM_OF_ANOTHER;
    }
    if (state == LAC_LAUNCHER_ELSEWHERE || state == LAC_LAUNCHER_DEAD) {
        (void)fprintf(stderr,
                      "lacuna: a launcher on %s (process %d) records into %s, or was killed there; "
                      "this recording gets a folder of its own\n",
                      note.host, (int)note.pid, path);
    }
    return CLAIM_OF_ANOTHER;
}

/* A recording that is in BASE itself, moved away for those of ranks. One of them does it and the
 * others wait for that; a launcher that records there stays. @return whether BASE can be used */
static bool clear_base(const char *folder)
{
    for (int ms = 0; holds_recording(folder, false); ms += LOOK_MS) {
        struct lac_launcher_note note;
        int problem = 0;

        switch (claim(folder, &problem)) {
        case CLAIM_OURS:
        case CLAIM_OF_DEAD:
            if (holds_recording(folder, false)) {
                (void)move_away(folder, "", folder);
            } else {
                lac_launcher_note_remove(folder);
            }
            break;
        case CLAIM_OF_NOTHING:
        case CLAIM_FAILED:
            return true; /* the folder of the rank may do all the same */
        case CLAIM_OF_ANOTHER:
            if (ms >= SETTLE_MS || (lac_launcher_note_read(folder, &note) == LAC_LAUNCHER_RUNS &&
                                    note.spools[0] != '\0')) {
                return false;
            }
            (void)usleep(LOOK_MS * 1000);
            break;
        }
        if (make_folder(folder) != 0) {
            return true;
        }
    }
    return true;
}

static bool is_recorded_rank(const void *path, const char *name)
{
    struct lac_launcher_note note;
    enum lac_launcher_state state;
    char rank[4096 + 256];

    if (!lac_output_name_is_rank(name)) {
        return false;
    }
    (void)snprintf(rank, sizeof(rank), "%.4000s/%s", (const char *)path, name);
    state = lac_launcher_note_read(rank, &note);
    return state == LAC_LAUNCHER_RUNS || state == LAC_LAUNCHER_ELSEWHERE;
}

/* FOLDER, and OUT in it for a rank: made and claimed. Whoever moves FOLDER away meanwhile takes it
 * from under us. */
static enum claim make_and_claim(const char *folder, const char *rank, const char *out,
                                 int *ret_problem)
{
    enum claim claimed = CLAIM_FAILED;

    *ret_problem = make_folder(folder);
    if (*ret_problem == 0 && rank[0] != '\0') {
        if (!clear_base(folder)) {
            return CLAIM_OF_ANOTHER;
        }
        *ret_problem = make_folder(out);
    }
    if (*ret_problem == 0) {
        claimed = claim(out, ret_problem);
    }
    return claimed == CLAIM_FAILED && *ret_problem == ENOENT ? CLAIM_OF_NOTHING : claimed;
}

/* BASE/RANK, empty and ours: 0, or an errno. */
static int take(const char *base, const char *rank, char *out, size_t capacity)
{
    char end[32] = "";
    unsigned next = 2; /* BASE-2 comes after BASE */
    int problem = EEXIST;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        char folder[4096];
        enum claim claimed;

        if (!join(folder, sizeof(folder), base, end, "") || !join(out, capacity, base, end, rank)) {
            return ENAMETOOLONG;
        }
        claimed = make_and_claim(folder, rank, out, &problem);
        if (claimed == CLAIM_FAILED ||
            (claimed == CLAIM_OURS && !holds_recording(out, rank[0] == '\0'))) {
            return problem;
        }
        if (claimed == CLAIM_OURS && rank[0] == '\0' &&
            lac_folder_any(out, is_recorded_rank, out)) {
            release(out);
            claimed = CLAIM_OF_ANOTHER;
        }
        if (claimed == CLAIM_OURS || claimed == CLAIM_OF_DEAD) {
            problem = move_away(folder, rank, out); /* and again, with the same name */
            if (problem != 0 && problem != ENOENT) {
                return problem;
            }
        } else if (claimed == CLAIM_OF_ANOTHER) {
            (void)snprintf(end, sizeof(end), "-%u", next++);
        }
    }
    return problem != 0 ? problem : EEXIST;
}

void lac_output_folder_drop(const char *path)
{
    lac_launcher_note_remove(path);
    (void)rmdir(path);
}

/* ---- names */

static bool cannot_be_written(int problem)
{
    return problem == EACCES || problem == EROFS || problem == EPERM || problem == ENOSPC ||
           problem == EDQUOT;
}

/* The folders above that a pattern may stand for. */
static void make_parents(const char *path)
{
    char above[4096];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
        (void)mkdir(above, 0700);
    }
}

/* What -o says, without slashes at its end. @return false: too long */
static bool name_asked_for(const char *asked, char *base, size_t capacity, char *rank)
{
    bool tells_ranks_apart = false;
    size_t length;

    if (!lac_output_name_fill(asked, base, capacity, &tells_ranks_apart)) {
        return false;
    }
    if (tells_ranks_apart) {
        rank[0] = '\0';
    }
    length = strlen(base);
    while (length > 1 && base[length - 1] == '/') {
        base[--length] = '\0';
    }
    if (strchr(asked, '%') != NULL) {
        make_parents(base);
    }
    return true;
}

bool lac_output_folder_make(const char *asked, const char *command, char *out, size_t capacity,
                            char *problem, size_t problem_capacity)
{
    const char *const temporary = getenv("TMPDIR");
    char rank[32];
    char base[4096];
    char elsewhere[4096];
    int error = 0;

    lac_output_name_rank(rank, sizeof(rank));
    if (asked == NULL) {
        lac_output_name_default(command, base, sizeof(base));
    } else if (!name_asked_for(asked, base, sizeof(base), rank)) {
        error = ENAMETOOLONG;
    }
    error = error != 0 ? error : take(base, rank, out, capacity);
    if (asked == NULL && cannot_be_written(error)) {
        (void)snprintf(elsewhere, sizeof(elsewhere), "%.3900s/%.180s",
                       temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp", base);
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
                       asked != NULL && error == ENAMETOOLONG ? asked : base, strerror(error));
    }
    return error == 0;
}
