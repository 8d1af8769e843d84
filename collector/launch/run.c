#include "collector/launch/run.h"

#include "collector/launch/drain.h"
#include "collector/launch/install.h"
#include "collector/launch/job.h"
#include "collector/launch/sampler.h"
#include "collector/launch/spool_folder.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 *   start -> RECORDING -> (first Ctrl-C) job goes on unrecorded -> (second) job is told to end
 *                |                                                   |
 *                +---------------- (CMD ended) ----------------------+-> gather, verdict, exit with
 * CMD's status
 */

enum { ROUND_MS = 50, BUSY_ROUND_MS = 2, BUSY_SEGMENTS = 8, ORPHANS_WAIT_MS = 5000 };

static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t forward; /* a signal to pass on, 0 none */

static const char help[] =
    "usage: lacuna run [-o DIR] [--quiet] -- CMD [ARG]...\n"
    "\n"
    "Runs CMD, unchanged, and records its whole process tree: NVTX ranges, and in Python\n"
    "the DataLoader with its workers. The exit status is CMD's.\n"
    "\n"
    "  -o DIR     where the recording goes (default: ./CMD-TIME.lacuna)\n"
    "  --quiet    say nothing unless something is wrong\n"
    "\n"
    "Ctrl-C once ends the recording and shows the verdict, the job goes on; twice ends the job.\n";

struct options {
    const char *output;
    bool quiet;
    char **command;
};

static int usage(const char *problem)
{
    (void)fprintf(stderr, "lacuna run: %s (lacuna run --help)\n", problem);
    return 2;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--") == 0) {
            options->command = &argv[i + 1];
            break;
        }
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            options->output = argv[++i];
        } else if (strcmp(argv[i], "--quiet") == 0) {
            options->quiet = true;
        } else if (argv[i][0] == '-') {
            (void)fprintf(stderr, "lacuna run: unknown option %s (lacuna run --help)\n", argv[i]);
            return 2;
        } else {
            options->command = &argv[i];
            break;
        }
    }
    return options->command == NULL || options->command[0] == NULL
               ? usage("no command to run after --")
               : -1;
}

static void on_signal(int signal)
{
    if (signal == SIGINT) {
        interrupts++;
    } else {
        forward = signal;
    }
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
}

static void default_output(const char *command, char *out, size_t capacity)
{
    const char *const slash = strrchr(command, '/');
    const time_t now = time(NULL);
    struct tm parts;
    char stamp[32] = "";

    if (localtime_r(&now, &parts) != NULL) {
        (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
    }
    (void)snprintf(out, capacity, "%.64s-%s.lacuna", slash != NULL ? slash + 1 : command, stamp);
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static void show_verdict(const struct lac_install *install, const char *output)
{
    pid_t pid;

    if (install->lacuna[0] == '\0') {
        (void)fprintf(stderr, "lacuna: recorded in %s; look at it with: lacuna analyze %s\n",
                      output, output);
        return;
    }
    pid = fork();
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* the job's own output stays clean */
        (void)execl(install->lacuna, "lacuna", "analyze", output, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

/* Until CMD has ended and, for a while, what it left behind. */
static void follow(struct lac_job *job, struct lac_drain *drain, struct lac_sampler *sampler,
                   const struct lac_install *install, const struct options *options)
{
    bool recording = true;
    bool busy = false;
    int asked_to_end = 1;
    long waited_ms = 0;

    while (!job->ended || (job->orphans_left && waited_ms < ORPHANS_WAIT_MS)) {
        const uint64_t moved_before = lac_drain_counts(drain).segments;

        /* a job that writes fast gets its segments back fast */
        sleep_ms(busy ? BUSY_ROUND_MS : ROUND_MS);
        waited_ms += job->ended ? (busy ? BUSY_ROUND_MS : ROUND_MS) : 0;
        lac_drain_round(drain, false);
        lac_sampler_round(recording ? sampler : NULL);
        busy = lac_drain_counts(drain).segments - moved_before >= BUSY_SEGMENTS;
        lac_job_poll(job);
        if (forward != 0) {
            lac_job_signal(job, forward);
            forward = 0;
        }
        if (interrupts > 0 && recording) {
            recording = false;
            lac_drain_stop(drain);
            lac_drain_round(drain, true);
            if (!options->quiet) {
                (void)fprintf(
                    stderr,
                    "\nlacuna: recording ended, the job goes on; Ctrl-C again ends the job\n");
                show_verdict(install, options->output);
            }
        }
        if (interrupts > asked_to_end) {
            asked_to_end = (int)interrupts;
            lac_job_signal(job, SIGINT);
        }
    }
}

static void conclude(const struct lac_drain *drain, const struct lac_install *install,
                     const struct options *options)
{
    const struct lac_drain_counts counts = lac_drain_counts(drain);

    if (counts.failed_writes > 0) {
        (void)fprintf(stderr, "lacuna: %s could not take all of the recording: %s\n",
                      options->output, strerror(errno));
    }
    if (counts.dropped > 0) {
        (void)fprintf(stderr,
                      "lacuna: %llu events were not recorded (no space, or the size limit)\n",
                      (unsigned long long)counts.dropped);
    }
    if (options->quiet) {
        return;
    }
    if (counts.processes == 0) {
        (void)fprintf(stderr, "lacuna: nothing was recorded: no process of this job used NVTX, and "
                              "none was Python with a\n"
                              "DataLoader that the hook could see. Does the job start its work "
                              "through ssh, docker, mpirun,\n"
                              "sudo or srun --export=NONE? They do not pass the environment on.\n");
        return;
    }
    show_verdict(install, options->output);
}

static int record(const struct lac_install *install, const struct options *options)
{
    char spool_folder[4096];
    char text[1024];
    struct lac_drain *drain;
    struct lac_sampler *sampler;
    struct lac_job job;

    if (!lac_spool_folder_make(spool_folder, sizeof(spool_folder), text, sizeof(text))) {
        (void)fprintf(stderr, "lacuna run: no place to record to: %s; set LACUNA_SPOOL_DIR\n",
                      text);
        return 1;
    }
    if (mkdir(options->output, 0700) != 0 && errno != EEXIST) {
        (void)fprintf(stderr, "lacuna run: cannot make %s: %s\n", options->output, strerror(errno));
        lac_spool_folder_remove(spool_folder);
        return 1;
    }
    lac_install_environment(install, spool_folder, text, sizeof(text));
    if (text[0] != '\0') {
        (void)fprintf(stderr, "lacuna: takes the place of the NVTX tool %s for this run\n", text);
    }
    drain = lac_drain_create(spool_folder, options->output);
    catch_signals();
    if (drain == NULL || !lac_job_start(&job, options->command)) {
        (void)fprintf(stderr, "lacuna run: cannot start a process: %s\n", strerror(errno));
        lac_drain_destroy(drain);
        lac_spool_folder_remove(spool_folder);
        return 126;
    }
    sampler = lac_sampler_create(options->output);
    follow(&job, drain, sampler, install, options);
    lac_sampler_destroy(sampler);
    lac_drain_round(drain, true);
    conclude(drain, install, options);
    lac_drain_destroy(drain);
    lac_spool_folder_remove(spool_folder);
    return job.exit_status;
}

int lac_run_command(int argc, char **argv)
{
    struct options options = {0};
    struct lac_install install;
    char output[256];
    const int status = parse(argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    if (options.output == NULL) {
        default_output(options.command[0], output, sizeof(output));
        options.output = output;
    }
    if (!lac_install_find(&install)) {
        (void)fprintf(
            stderr,
            "lacuna run: liblacuna.so is not beside this program; is the installation whole?\n");
        return 1;
    }
    return record(&install, &options);
}
