#include "collector/launch/empty_report.h"

#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/base/terminal_text.h"
#include "collector/launch/run_options.h"
#include "collector/sample/proc_files.h"
#include "collector/sample/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUICK_LOOKS = 20,
    QUICK_MS = 50,
    SLOW_MS = 1000,
    COST_FRACTION = 1000, /* of a core, once the first looks are done */
    GENERATIONS_MAX = 32,
    TEXT_BYTES = 1 << 18
};

/* What starts processes that are not below it, or with another environment, and what helps. */
static const struct {
    const char *name, *remedy;
} starters[] = {
    {"srun", "put `lacuna run` behind it: srun lacuna run -- CMD"},
    {"mpirun", "put `lacuna run` behind it: mpirun lacuna run -- CMD"},
    {"ssh", "put `lacuna run` behind it: ssh HOST lacuna run -- CMD"},
    {"sudo", "put `lacuna run` behind it: sudo lacuna run -- CMD"},
    {"docker", "add what `lacuna env --docker` prints, and use `lacuna gather` afterwards"},
    {"podman", "add what `lacuna env --docker` prints, and use `lacuna gather` afterwards"},
    {"apptainer", "add what `lacuna env --apptainer` prints, and use `lacuna gather` afterwards"},
    {"singularity", "add what `lacuna env --apptainer` prints, and use `lacuna gather` afterwards"},
    {"kubectl", "add what `lacuna env --k8s` prints to the pod"},
    {"ray", "set what `lacuna env` prints where Ray starts its workers (runtime_env), and use "
            "`lacuna gather` afterwards"},
};

static bool is_below_us(int32_t pid)
{
    const int32_t self = (int32_t)getpid();
    char name[17];

    for (int generation = 0; generation < GENERATIONS_MAX && pid > 1; generation++) {
        int32_t parent = 0;

        if (!lac_proc_parent(pid, &parent, name, sizeof(name))) {
            return false;
        }
        if (parent == self) {
            return true;
        }
        pid = parent;
    }
    return false;
}

/* python -I, -E or -S, also among other letters ("-Iu"), before the script. */
static bool is_isolated(const char *arguments, size_t length)
{
    bool is_first = true;

    for (size_t at = 0; at < length; at += strlen(arguments + at) + 1) {
        const char *const word = arguments + at;

        if (is_first) {
            is_first = false;
        } else if (word[0] != '-' || word[1] == '-' || word[1] == 'c' || word[1] == 'm') {
            return false;
        } else if (strpbrk(word, "IES") != NULL) {
            return true;
        }
    }
    return false;
}

static void note_process(struct lac_empty_report *why, int32_t pid)
{
    for (uint32_t i = 0; i < why->process_count; i++) {
        if (why->seen[i] == pid) {
            return;
        }
    }
    if (why->process_count < LAC_COUNT_OF(why->seen)) {
        why->seen[why->process_count++] = pid;
    }
}

/* What stands behind `start` in one of the NUL-terminated strings; NULL: none begins so. */
static const char *value_of(const char *text, size_t length, const char *start)
{
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        if (strncmp(text + at, start, strlen(start)) == 0) {
            return text + at + strlen(start);
        }
    }
    return NULL;
}

static void keep_name(char *place, const char *name)
{
    (void)lac_terminal_string(name, place,
                              LAC_EMPTY_REPORT_NAME_BYTES); /* a process names itself */
}

/* Its files of /proc are closed to us: it runs with rights of its own. */
static bool is_guarded(int32_t pid)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd < 0 && errno == EACCES;
}

static bool is_mapped_program(const char *maps)
{
    return strstr(maps, "/ld-linux") != NULL || strstr(maps, "/ld-2.") != NULL ||
           strstr(maps, "/ld-musl-") != NULL || strstr(maps, "/ld64.so") != NULL ||
           strstr(maps, "/ld.so") != NULL;
}

static void look_at_maps(struct lac_empty_report *why, const char *name, const char *maps)
{
    const char *const libc = strstr(maps, "/libc-2.");
    const unsigned minor = libc != NULL ? (unsigned)strtoul(libc + 8, NULL, 10) : 0;

    why->library_loaded = why->library_loaded || strstr(maps, "/liblacuna.so") != NULL;
    why->is_musl = why->is_musl || strstr(maps, "/ld-musl-") != NULL;
    why->cuda_loaded = why->cuda_loaded || strstr(maps, "/libcuda.so") != NULL;
    if (minor > 0 && minor < 17) {
        why->old_libc = minor;
    }
    if (!is_mapped_program(maps)) {
        keep_name(why->static_name, name);
    }
}

/* Whether a file is missing where the process looks for it. Of a process that has ended the root
 * itself is missing. */
static bool lacks(int32_t pid, const char *path)
{
    char root[32];
    char inside[4200];

    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    return (size_t)snprintf(inside, sizeof(inside), "%s%s", root, path) < sizeof(inside) &&
           access(inside, F_OK) != 0 && access(root, F_OK) == 0;
}

static void look_at_variables(struct lac_empty_report *why, int32_t pid, const char *name,
                              const char *text, size_t length)
{
    const char *const library = value_of(text, length, "LACUNA_LIBRARY=");
    const char *const disable = value_of(text, length, "LACUNA_DISABLE=");
    const char *const path = value_of(text, length, "PYTHONPATH=");
    const char *const own_path = getenv("PYTHONPATH"); /* ours, as the job got it */

    if (value_of(text, length, "LACUNA_SPOOL=") == NULL) {
        why->environment_lost = true;
        keep_name(why->lost_name, name);
        return;
    }
    if (library != NULL && lacks(pid, library)) {
        keep_name(why->blind_name, name);
        (void)lac_terminal_string(library, why->library, sizeof(why->library));
    }
    if (disable != NULL && disable[0] != '\0' && strcmp(disable, "0") != 0) {
        keep_name(why->disabled_name, name);
    }
    if (strncmp(name, "python", 6) == 0 && own_path != NULL) {
        const size_t hook_length = strcspn(own_path, ":"); /* it stands first */

        if (path == NULL || memmem(path, strlen(path), own_path, hook_length) == NULL) {
            keep_name(why->own_path_name, name);
        }
    }
}

/* Whether its memory is that of a program which runs: not within execve, where neither loader nor
 * variables are there yet, and not at its end, where they are gone. proc(5): field 50, env_start. */
static bool is_set_up(int32_t pid)
{
    enum { ENV_START = 50, STAT_BYTES = 1024 };
    char path[64];
    char text[STAT_BYTES];
    const char *at;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        return false;
    }
    at = strrchr(text, ')'); /* the end of field 2, in which anything may stand */
    for (int field = 2; field < ENV_START && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL || strtoull(at, NULL, 10) != 0; /* Linux before 3.5 does not tell */
}

static void look_at(struct lac_empty_report *why, int32_t pid)
{
    static char text[TEXT_BYTES];
    const bool was_set_up = is_set_up(pid);
    char path[64];
    char name[17] = "";
    int32_t parent;
    size_t length;

    if (!lac_proc_parent(pid, &parent, name, sizeof(name))) {
        return;
    }
    if (strcmp(name, "lacuna-node") == 0) {
        return; /* ourselves, about to become the job */
    }
    note_process(why, pid);
    for (size_t i = 0; i < LAC_COUNT_OF(starters); i++) {
        if (strcmp(name, starters[i].name) == 0) {
            (void)snprintf(why->starter, sizeof(why->starter), "%s", name);
        }
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    if (lac_read_text(path, text, sizeof(text)) == 0) {
        if (is_guarded(pid)) {
            keep_name(why->foreign_name, name);
        }
        return; /* it has ended, or is not ours to look at */
    }
    if (!was_set_up) {
        return;
    }
    look_at_maps(why, name, text);
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    length = lac_read_text(path, text, sizeof(text));
    if (length == 0 && !is_set_up(pid)) {
        return; /* it has ended meanwhile: that it had no variables cannot be said */
    }
    look_at_variables(why, pid, name, text, length);
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    length = lac_read_text(path, text, sizeof(text));
    if (strncmp(name, "python", 6) == 0 && is_isolated(text, length)) {
        why->isolated_python = true;
    }
}

static void look(struct lac_empty_report *why)
{
    DIR *const folder = opendir("/proc");

    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const int32_t pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9'
                                ? (int32_t)strtol(entry->d_name, NULL, 10)
                                : 0;

        if (pid > 0 && is_below_us(pid)) {
            look_at(why, pid);
        }
    }
    (void)closedir(folder);
}

void lac_empty_report_look(struct lac_empty_report *why, uint64_t elapsed_ms)
{
    uint64_t cost_ns;

    if (elapsed_ms < why->next_look_ms) {
        return;
    }
    cost_ns = lac_sampler_own_cpu_ns();
    look(why);
    cost_ns = lac_sampler_own_cpu_ns() - cost_ns;
    why->next_look_ms =
        elapsed_ms +
        (why->looks < QUICK_LOOKS ? QUICK_MS : SLOW_MS + cost_ns / 1000000 * COST_FRACTION);
    why->looks++;
}

static const char *remedy_of(const char *starter)
{
    for (size_t i = 0; i < LAC_COUNT_OF(starters); i++) {
        if (strcmp(starter, starters[i].name) == 0) {
            return starters[i].remedy;
        }
    }
    return "put `lacuna run` behind it";
}

/* A reason in the process itself. @return whether there was one */
static bool own_reason(const struct lac_empty_report *why, char *out, size_t capacity)
{
    if (why->is_musl) {
        (void)snprintf(out, capacity,
                       "a process uses musl instead of glibc, so the recorder cannot be loaded "
                       "there: use an image with glibc 2.17 or later");
    } else if (why->old_libc != 0) {
        (void)snprintf(out, capacity,
                       "a process uses glibc 2.%u: the recorder needs 2.17 or later, so use a "
                       "newer image or module",
                       why->old_libc);
    } else if (why->blind_name[0] != '\0') {
        (void)snprintf(out, capacity,
                       "%s runs where %s cannot be seen (in a container?): mount it there, as "
                       "`lacuna env --docker` or `lacuna env --apptainer` print it",
                       why->blind_name, why->library);
    } else if (why->disabled_name[0] != '\0') {
        (void)snprintf(out, capacity,
                       "%s runs with LACUNA_DISABLE, which switches the recorder off",
                       why->disabled_name);
    } else if (why->starter[0] != '\0') {
        (void)snprintf(out, capacity,
                       "the job starts its work through %s, and the recorder did not get there: %s",
                       why->starter, remedy_of(why->starter));
    } else if (why->environment_lost) {
        (void)snprintf(out, capacity,
                       "%s runs without the variables that load the recorder (env -i, srun "
                       "--export=NONE and apptainer --cleanenv remove them): pass the environment "
                       "on, or set there what `lacuna env` prints",
                       why->lost_name);
    } else if (why->foreign_name[0] != '\0') {
        (void)snprintf(out, capacity,
                       "%s runs with privileges of its own (sudo, setuid), so the recorder is not "
                       "loaded: start `lacuna run` behind it",
                       why->foreign_name);
    } else if (why->isolated_python) {
        (void)snprintf(out, capacity,
                       "Python was started with -I, -E or -S and ignores the environment, so the "
                       "DataLoader was not recorded: start it without these options");
    } else if (why->own_path_name[0] != '\0') {
        (void)snprintf(
            out, capacity,
            "%s runs with a PYTHONPATH of its own, without the hook: add to the one that "
            "is there instead of replacing it",
            why->own_path_name);
    } else {
        return false;
    }
    return true;
}

void lac_empty_report_reason(const struct lac_empty_report *why, int exit_status, char *out,
                             size_t capacity)
{
    if (own_reason(why, out, capacity)) {
        return;
    }
    if (exit_status != 0) {
        (void)snprintf(out, capacity,
                       "the job ended with status %d: it may not have reached its first step",
                       exit_status);
    } else if (why->library_loaded) {
        (void)snprintf(out, capacity,
                       "the recorder was loaded but no range was opened: the job used no "
                       "DataLoader, no optimizer and no NVTX range%s",
                       why->cuda_loaded ? ", and no GPU activity came from CUPTI" : "");
    } else if (why->static_name[0] != '\0') {
        (void)snprintf(out, capacity,
                       "%s is statically linked, so the recorder cannot be loaded into it: link it "
                       "dynamically",
                       why->static_name);
    } else {
        (void)snprintf(out, capacity,
                       "no process used NVTX or CUDA, and none was Python with a DataLoader: "
                       "there was nothing to record");
    }
}

void lac_empty_report_say_early(const struct lac_empty_report *why)
{
    char reason[LAC_EMPTY_REPORT_REASON_BYTES];

    if (!own_reason(why, reason, sizeof(reason))) {
        (void)snprintf(reason, sizeof(reason), "%s; recording begins with the first of these",
                       why->library_loaded
                           ? "the recorder is loaded, and no DataLoader, optimizer, NVTX range or "
                             "GPU operation has come yet"
                           : "no process has used NVTX or CUDA yet, and none is Python with a "
                             "DataLoader");
    }
    (void)fprintf(stderr, "lacuna: nothing is recorded after %d s: %s\n",
                  LAC_EMPTY_REPORT_SILENT_MS / 1000, reason);
}

void lac_empty_report_say(const struct lac_empty_report *why, int exit_status)
{
    char reason[LAC_EMPTY_REPORT_REASON_BYTES];

    lac_empty_report_reason(why, exit_status, reason, sizeof(reason));
    (void)fprintf(stderr,
                  "lacuna: nothing was recorded: %s.\nProcesses seen: %u; with the recorder "
                  "loaded: %s; with CUDA: %s.\n",
                  reason, why->process_count, why->library_loaded ? "yes" : "none",
                  why->cuda_loaded ? "yes" : "none");
}

/* The recording holds settings and samples at most. */
static void say_steps_missing(const struct lac_run_options *options, uint64_t steps)
{
    if (options->step_first == 0 || steps >= options->step_first) {
        return;
    }
    if (steps == 0) {
        (void)fprintf(
            stderr,
            "lacuna: no training step was seen, so --steps %llu:%llu recorded none; steps "
            "are those of PyTorch's optimizers: say with --step what a step is, or try --delay "
            "and --duration\n",
            (unsigned long long)options->step_first, (unsigned long long)options->step_last);
    } else {
        (void)fprintf(stderr,
                      "lacuna: the job had %llu steps, so --steps %llu:%llu recorded none\n",
                      (unsigned long long)steps, (unsigned long long)options->step_first,
                      (unsigned long long)options->step_last);
    }
}

static void say_step_unseen(const struct lac_run_options *options)
{
    char name[LAC_EMPTY_REPORT_NAME_BYTES * 16];

    (void)lac_terminal_string(options->step, name, sizeof(name));
    (void)fprintf(
        stderr,
        "lacuna: no range named \"%s\" has ended, and no Python function of that name was "
        "called, so no step was counted%s (see --step in lacuna run --help)\n",
        name, options->step_first > 0 ? " and --steps recorded none" : "");
}

void lac_empty_report_say_asked(const struct lac_run_options *options, uint64_t steps,
                                bool has_captured)
{
    if (options->step != NULL && steps == 0) {
        say_step_unseen(options);
    } else {
        say_steps_missing(options, steps);
    }
    if (options->range != NULL && !has_captured) {
        (void)fprintf(stderr,
                      "lacuna: no range named \"%s\" was opened, so --range recorded none\n",
                      options->range);
    }
    if (options->profiler_api && !has_captured) {
        (void)fputs("lacuna: no call of cudaProfilerStart was seen, so --profiler-api recorded "
                    "none; it is seen where CUPTI is there (lacuna doctor)\n",
                    stderr);
    }
}
