#include "collector/launch/why_empty.h"

#include "collector/launch/proc_files.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUICK_LOOKS = 20,
    QUICK_MS = 50,
    SLOW_MS = 1000,
    GENERATIONS_MAX = 32,
    TEXT_BYTES = 1 << 18
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

/* Whether one of the NUL-terminated strings in `text` begins with `start`. */
static bool has_string(const char *text, size_t length, const char *start)
{
    for (size_t at = 0; at < length; at += strlen(text + at) + 1) {
        if (strncmp(text + at, start, strlen(start)) == 0) {
            return true;
        }
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

static void note_process(struct lac_why_empty *why, int32_t pid)
{
    for (uint32_t i = 0; i < why->process_count; i++) {
        if (why->seen[i] == pid) {
            return;
        }
    }
    if (why->process_count < sizeof(why->seen) / sizeof(why->seen[0])) {
        why->seen[why->process_count++] = pid;
    }
}

static void look_at(struct lac_why_empty *why, int32_t pid)
{
    static const char *const starters[] = {"ssh",       "docker", "podman",  "srun", "sudo",
                                           "apptainer", "mpirun", "kubectl", "ray",  "singularity"};
    static char text[TEXT_BYTES];
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
    for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++) {
        if (strcmp(name, starters[i]) == 0) {
            (void)snprintf(why->starter, sizeof(why->starter), "%s", name);
        }
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    if (lac_proc_read(path, text, sizeof(text)) == 0) {
        return; /* it has ended, or is not ours to look at */
    }
    why->library_loaded = why->library_loaded || strstr(text, "/liblacuna.so") != NULL;
    why->is_musl = why->is_musl || strstr(text, "/ld-musl-") != NULL;
    why->cuda_loaded = why->cuda_loaded || strstr(text, "/libcuda.so") != NULL;
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    length = lac_proc_read(path, text, sizeof(text));
    if (!has_string(text, length, "LACUNA_SPOOL=")) {
        why->environment_lost = true;
        (void)snprintf(why->lost_name, sizeof(why->lost_name), "%s", name);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    length = lac_proc_read(path, text, sizeof(text));
    if (strncmp(name, "python", 6) == 0 && is_isolated(text, length)) {
        why->isolated_python = true;
    }
}

void lac_why_empty_look(struct lac_why_empty *why, uint64_t elapsed_ms)
{
    DIR *folder;

    if (elapsed_ms < why->next_look_ms) {
        return;
    }
    why->next_look_ms = elapsed_ms + (why->looks < QUICK_LOOKS ? QUICK_MS : SLOW_MS);
    why->looks++;
    folder = opendir("/proc");
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

static void say_reason(const struct lac_why_empty *why, int exit_status)
{
    if (why->is_musl) {
        (void)fprintf(stderr, "A process uses musl instead of glibc: the recorder cannot be loaded "
                              "there. Use an image with glibc 2.17 or later.\n");
    } else if (why->starter[0] != '\0') {
        (void)fprintf(stderr,
                      "The job starts its work through %s, which does not pass the environment "
                      "on: put `lacuna run` behind it,\nor add what `lacuna env --help` prints "
                      "for it and use `lacuna gather` afterwards.\n",
                      why->starter);
    } else if (why->environment_lost) {
        (void)fprintf(stderr,
                      "%s runs without the variables that bring the recorder in (env -i, srun "
                      "--export=NONE, apptainer --cleanenv\ndo that): pass the environment on, or "
                      "set there what `lacuna env` prints.\n",
                      why->lost_name);
    } else if (why->isolated_python) {
        (void)fprintf(stderr, "Python was started with -I, -E or -S and looks at no variables: the "
                              "DataLoader could not be seen. Start it without.\n");
    } else if (exit_status != 0) {
        (void)fprintf(stderr,
                      "The job ended with status %d: it may not have reached its first step.\n",
                      exit_status);
    } else if (why->library_loaded) {
        (void)fprintf(stderr,
                      "The recorder was loaded but no range was opened: the job used no "
                      "DataLoader, no optimizer and no NVTX range%s.\n",
                      why->cuda_loaded ? ", and no GPU activity came from CUPTI" : "");
    } else {
        (void)fprintf(stderr,
                      "No process used NVTX or CUDA, and none was Python with a DataLoader: "
                      "there was nothing to record.\n");
    }
}

void lac_why_empty_say(const struct lac_why_empty *why, int exit_status)
{
    (void)fprintf(stderr,
                  "lacuna: nothing was recorded. Processes seen: %u; with the recorder "
                  "loaded: %s; with CUDA: %s.\n",
                  why->process_count, why->library_loaded ? "yes" : "none",
                  why->cuda_loaded ? "yes" : "none");
    say_reason(why, exit_status);
}
