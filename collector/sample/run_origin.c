#include "collector/sample/run_origin.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, REFERENCE_BYTES = 1024, PACKED_BYTES_MAX = 16 << 20, PIECE_BYTES = 65536 };

static const char hex[] = "0123456789abcdef";

const char *lac_run_person(void)
{
    static const char *const names[] = {"LACUNA_PERSON", "SLURM_JOB_USER", "USER", "LOGNAME"};

    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        const char *person = getenv(names[i]);

        if (person != NULL && person[0] != '\0' && (i == 0 || strcmp(person, "root") != 0)) {
            return person;
        }
    }
    return "";
}

/** @return whether the text begins with a commit and nothing but white space follows in its line */
static bool take_commit(const char *text, char out[LAC_COMMIT_BYTES])
{
    const size_t digits = strspn(text, hex);

    if ((digits != 40 && digits != 64) || strchr(" \t\r\n", text[digits]) == NULL) {
        return false;
    }
    memcpy(out, text, digits);
    out[digits] = '\0';
    return true;
}

static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = '\0';
}

/** @return false: the path is too long */
static bool join(char *out, const char *folder, const char *name)
{
    return snprintf(out, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/** The line of packed-refs that ends with the reference. */
static bool find_packed(const char *git, const char *reference, char out[LAC_COMMIT_BYTES])
{
    char path[PATH_MAX];
    static char text[PIECE_BYTES];
    size_t kept = 0;
    uint64_t read_bytes = 0;
    bool is_found = false;
    const int fd =
        join(path, git, "packed-refs") ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    while (fd >= 0 && !is_found && read_bytes < PACKED_BYTES_MAX) {
        const int64_t got = lac_read_full(fd, text + kept, sizeof(text) - 1 - kept);
        char *line = text;

        if (got <= 0 && kept == 0) {
            break;
        }
        const size_t size = kept + (got > 0 ? (size_t)got : 0);

        read_bytes += got > 0 ? (uint64_t)got : 0;
        text[size] = '\0';
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            const char *name = line + strspn(line, hex);

            *end = '\0';
            if (name[0] == ' ' && strcmp(name + 1, reference) == 0 && take_commit(line, out)) {
                is_found = true;
                break;
            }
        }
        kept = is_found ? 0 : strlen(line);
        if (kept == sizeof(text) - 1 || got <= 0) { /* a line longer than any is, or the end */
            break;
        }
        memmove(text, line, kept);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_found;
}

/** @param git the folder that has HEAD */
static bool commit_in(const char *git, char out[LAC_COMMIT_BYTES])
{
    char path[PATH_MAX];
    char head[REFERENCE_BYTES];
    char common[PATH_MAX];
    char text[REFERENCE_BYTES];
    const char *reference = head + strlen("ref: ");

    if (!join(path, git, "HEAD") || lac_read_text(path, head, sizeof(head)) == 0) {
        return false;
    }
    if (strncmp(head, "ref: ", strlen("ref: ")) != 0) {
        return take_commit(head, out);
    }
    cut_line(head);
    if (strncmp(reference, "refs/", 5) != 0 || strstr(reference, "..") != NULL) {
        return false;
    }
    if (join(path, git, reference) && lac_read_text(path, text, sizeof(text)) > 0 &&
        take_commit(text, out)) {
        return true;
    }
    /* a worktree has its HEAD alone, and says where the rest is */
    (void)snprintf(common, sizeof(common), "%s", git);
    if (join(path, git, "commondir") && lac_read_text(path, text, sizeof(text)) > 0) {
        cut_line(text);
        if (text[0] == '/') {
            (void)snprintf(common, sizeof(common), "%s", text);
        } else if (!join(common, git, text)) {
            return false;
        }
        if (join(path, common, reference) && lac_read_text(path, text, sizeof(text)) > 0 &&
            take_commit(text, out)) {
            return true;
        }
    }
    return find_packed(common, reference, out);
}

/**
 * `.git` in that folder: a folder, or a file that says where it is. `out` is "" where it names no
 * commit.
 *
 * @return whether the folder is a repository's: one around it is not what runs
 */
static bool commit_at(const char *folder, char out[LAC_COMMIT_BYTES])
{
    static const char prefix[] = "gitdir: ";
    char git[PATH_MAX];
    char path[PATH_MAX];
    char text[REFERENCE_BYTES];

    if (!join(git, folder, ".git")) {
        return false;
    }
    if (lac_read_text(git, text, sizeof(text)) == 0) {
        (void)commit_in(git, out);
        return join(path, git, "HEAD") && access(path, F_OK) == 0;
    }
    cut_line(text);
    if (strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
        const char *where = text + sizeof(prefix) - 1;

        if (where[0] == '/') {
            (void)commit_in(where, out);
        } else if (join(path, folder, where)) {
            (void)commit_in(path, out);
        }
    }
    return true;
}

bool lac_run_commit_of(const char *folder, char out[LAC_COMMIT_BYTES])
{
    char path[PATH_MAX];

    assert(folder != NULL);
    out[0] = '\0';
    if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path)) {
        return false;
    }
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        char *slash = strrchr(path, '/');

        if (commit_at(path, out)) {
            return out[0] != '\0';
        }
        if (slash == NULL || path[0] == '\0') {
            return false;
        }
        *slash = '\0';
    }
    return false;
}

bool lac_run_commit(char out[LAC_COMMIT_BYTES])
{
    static const char *const told[] = {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT"};
    char folder[PATH_MAX];
    const char *own = getenv("LACUNA_COMMIT");

    if (own != NULL && take_commit(own, out)) {
        return true;
    }
    if (getcwd(folder, sizeof(folder)) != NULL && lac_run_commit_of(folder, out)) {
        return true;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(told); i++) {
        const char *commit = getenv(told[i]);

        if (commit != NULL && take_commit(commit, out)) {
            return true;
        }
    }
    out[0] = '\0';
    return false;
}
