#include "collector/launch/run.h"

#include "collector/launch/drain.h"
#include "collector/launch/install.h"
#include "collector/launch/job.h"
#include "collector/launch/output_folder.h"
#include "collector/launch/plan.h"
#include "collector/launch/push.h"
#include "collector/launch/run_options.h"
#include "collector/launch/sampler.h"
#include "collector/launch/spool_folder.h"
#include "collector/launch/status_line.h"
#include "collector/launch/terminal.h"
#include "collector/launch/why_empty.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 *   start -> RECORDING -> (first Ctrl-C) job goes on unrecorded -> (second) job is told to end
 *                |                                                   |
 *                +---------------- (CMD ended) ----------------------+-> gather, verdict, exit with
 * CMD's status
 */

enum {
    ROUND_MS = 50,
    STEP_ROUND_MS = 5,
    BUSY_ROUND_MS = 2,
    STEP_LOOK_MS = 2,
    BUSY_SEGMENTS = 8,
    ORPHANS_WAIT_MS = 5000
};

static struct lac_why_empty why_empty;
static volatile sig_atomic_t interrupts;
static volatile sig_atomic_t suspended; /* Ctrl-Z */
static volatile sig_atomic_t forward;   /* a signal to pass on, 0 none */

static void on_signal(int signal)
{
    if (signal == SIGINT) {
        interrupts++;
    } else if (signal == SIGTSTP) {
        suspended = 1;
    } else {
        forward = signal;
    }
}

static void on_closed_pipe(int signal)
{
    (void)signal; /* who read our words is gone; the job goes on. Not SIG_IGN: the job inherits that
                   */
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction closed = {.sa_handler = on_closed_pipe};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    (void)sigaction(SIGQUIT, &action, NULL);
    (void)sigaction(SIGWINCH, &action, NULL);
    (void)sigaction(SIGTSTP, &action, NULL);
    (void)sigaction(SIGPIPE, &closed, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
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

struct recording {
    const struct lac_run_options *options;
    const struct lac_install *install;
    struct lac_job *job;
    struct lac_drain *drain;
    struct lac_sampler *sampler;
    struct lac_plan plan;
    uint64_t start_ns;
    bool goes_on;
};

static void want(struct recording *recording, enum lac_spool_stop wish)
{
    lac_drain_want(recording->drain, wish);
    lac_sampler_recording(recording->sampler, wish == LAC_SPOOL_RECORD);
}

/* What recording costs, for the line at the end and for whoever reads the trace. */
static void note_cost(struct recording *recording)
{
    char text[100];

    lac_plan_cost(&recording->plan, text, sizeof(text));
    lac_sampler_note(recording->sampler, "recorder_cost", text);
    if (recording->plan.was_measured && !recording->options->quiet) {
        lac_status_line_clear();
        (void)fprintf(stderr, "lacuna: recording costs %s\n", text);
    }
}

/* The recording is over: by plan, by size or because the user said so. */
static void end_recording(struct recording *recording, const char *why)
{
    recording->goes_on = false;
    want(recording, LAC_SPOOL_STOP);
    sleep_ms(BUSY_ROUND_MS); /* what is being written right now still comes */
    lac_drain_round(recording->drain, true);
    note_cost(recording);
    if (!recording->options->quiet) {
        lac_status_line_clear();
        (void)fprintf(stderr,
                      "\nlacuna: recording ended%s, the job goes on; Ctrl-C%s ends the job\n", why,
                      interrupts > 0 ? " again" : " twice");
        show_verdict(recording->install, recording->options->output);
    }
}

static uint64_t elapsed_ns(const struct recording *recording)
{
    return lac_status_now_ns() - recording->start_ns;
}

/* Sleeps; where steps are compared, looks at them all the while. */
static void rest(struct recording *recording, long ms)
{
    for (long slept_ms = 0; slept_ms < ms; slept_ms += STEP_LOOK_MS) {
        if (!recording->goes_on || !recording->plan.is_measuring) {
            sleep_ms(ms - slept_ms);
            return;
        }
        sleep_ms(STEP_LOOK_MS);
        want(recording, lac_plan_next(&recording->plan, elapsed_ns(recording),
                                      lac_drain_steps(recording->drain)));
    }
}

/* What the plan, the limit and the user say now. */
static void decide(struct recording *recording)
{
    const struct lac_drain_counts counts = lac_drain_counts(recording->drain);
    struct lac_plan *const plan = &recording->plan;

    if (interrupts > 0) {
        end_recording(recording, "");
        return;
    }
    if (counts.is_full) {
        end_recording(recording, ": its size limit is reached (--limit)");
        return;
    }
    if (lac_plan_next(plan, elapsed_ns(recording), counts.steps) != LAC_SPOOL_STOP) {
        want(recording, plan->wish);
    } else if (!recording->job->ended) {
        end_recording(recording, " as planned");
        return;
    }
    lac_status_show(plan, &counts, elapsed_ns(recording) / 1000000, recording->options);
}

/* Until CMD has ended and, for a while, what it left behind. */
static void follow(struct recording *recording)
{
    struct lac_job *const job = recording->job;
    struct lac_drain *const drain = recording->drain;
    const long round_ms = recording->options->step_first > 0 ? STEP_ROUND_MS : ROUND_MS;
    struct lac_terminal terminal;
    bool busy = false;
    bool is_suspended;
    int asked_to_end = 1;
    long waited_ms = 0;

    lac_terminal_open(&terminal);
    while (!job->ended || (job->orphans_left && waited_ms < ORPHANS_WAIT_MS)) {
        const uint64_t moved_before = lac_drain_counts(drain).segments;
        /* a job that writes fast gets its segments back fast */
        const long pause_ms = busy ? BUSY_ROUND_MS : round_ms;

        rest(recording, pause_ms);
        waited_ms += job->ended ? pause_ms : 0;
        lac_drain_round(drain, false);
        lac_sampler_round(recording->goes_on ? recording->sampler : NULL);
        lac_drain_others(drain, lac_sampler_bytes(recording->sampler));
        busy = lac_drain_counts(drain).segments - moved_before >= BUSY_SEGMENTS;
        lac_job_poll(job);
        is_suspended = suspended != 0;
        suspended = 0;
        lac_terminal_follow(&terminal, job, is_suspended, recording->options->quiet);
        if (lac_drain_counts(drain).processes == 0 && !job->ended) {
            lac_why_empty_look(&why_empty, elapsed_ns(recording) / 1000000);
        }
        if (forward != 0) {
            lac_job_signal(job, forward);
            forward = 0;
        }
        if (recording->goes_on) {
            decide(recording);
        }
        if (interrupts > asked_to_end) {
            asked_to_end = (int)interrupts;
            /* one that does not listen is told more plainly */
            lac_job_signal(job, interrupts <= 2 ? SIGINT : interrupts == 3 ? SIGTERM : SIGKILL);
        }
    }
    lac_terminal_close(&terminal);
}

static void begin_recording(struct recording *recording)
{
    recording->start_ns = lac_status_now_ns();
    recording->goes_on = true;
    lac_plan_begin(&recording->plan, recording->options);
    want(recording, recording->plan.wish);
    lac_drain_limit(recording->drain, recording->options->limit_bytes);
    lac_status_announce(&recording->plan, recording->options);
}

/* Steps were asked for that never came: the recording holds settings and samples at most. */
static void say_steps_missing(const struct lac_run_options *options, uint64_t steps)
{
    if (options->step_first == 0 || steps >= options->step_first) {
        return;
    }
    if (steps == 0) {
        (void)fprintf(
            stderr,
            "lacuna: no training step was seen, so --steps %llu:%llu recorded none; steps "
            "are those of PyTorch's optimizers: try --delay and --duration\n",
            (unsigned long long)options->step_first, (unsigned long long)options->step_last);
    } else {
        (void)fprintf(stderr,
                      "lacuna: the job had %llu steps, so --steps %llu:%llu recorded none\n",
                      (unsigned long long)steps, (unsigned long long)options->step_first,
                      (unsigned long long)options->step_last);
    }
}

static void conclude(const struct lac_drain *drain, const struct lac_install *install,
                     const struct lac_run_options *options, bool recording, int exit_status)
{
    const struct lac_drain_counts counts = lac_drain_counts(drain);

    lac_status_line_clear();
    if (counts.failed_writes > 0) {
        (void)fprintf(stderr, "lacuna: %s could not take all of the recording: %s\n",
                      options->output, strerror(errno));
    }
    if (counts.dropped > 0) {
        (void)fprintf(stderr,
                      "lacuna: %llu events were not recorded (no space, or the size limit)\n",
                      (unsigned long long)counts.dropped);
    }
    lac_drain_say_missing(drain, "lacuna");
    if (counts.processes > 0) {
        say_steps_missing(options, counts.steps);
    }
    if (options->quiet) {
        return;
    }
    if (counts.processes == 0) {
        lac_why_empty_say(&why_empty, exit_status);
        return;
    }
    if (recording) { /* else it was shown when the recording ended */
        show_verdict(install, options->output);
    }
}

static int record(const struct lac_install *install, const struct lac_run_options *options,
                  const struct lac_push_target *target)
{
    char spool_folder[4096];
    char text[1024];
    struct lac_drain *drain;
    struct lac_push_run *push;
    struct lac_job job;
    struct recording recording = {.options = options, .install = install, .job = &job};
    bool is_empty;

    if (!lac_spool_folder_make(spool_folder, sizeof(spool_folder), text, sizeof(text))) {
        (void)fprintf(stderr, "lacuna run: no place to record to: %s; set LACUNA_SPOOL_DIR\n",
                      text);
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
        (void)lac_spool_folder_remove(spool_folder);
        return 126;
    }
    push = target != NULL ? lac_push_run_begin(target, options->output) : NULL;
    recording.drain = drain;
    recording.sampler = lac_sampler_create(options->output);
    begin_recording(&recording);
    follow(&recording);
    if (recording.goes_on) {
        note_cost(&recording);
    }
    lac_sampler_destroy(recording.sampler);
    lac_drain_round(drain, true);
    lac_drain_exports(drain);
    conclude(drain, install, options, recording.goes_on, job.exit_status);
    is_empty = lac_drain_counts(drain).processes == 0;
    lac_drain_destroy(drain);
    (void)lac_spool_folder_remove(spool_folder);
    lac_push_run_end(push, !is_empty);
    return job.exit_status;
}

/* Where the recording goes afterwards. What a flag says wrong is told before the job begins; a
 * variable that is wrong only keeps the recording here. */
static bool find_server(const struct lac_run_options *options, struct lac_push_target *target)
{
    const char *const project = getenv("LACUNA_PROJECT");
    const char *const server = getenv("LACUNA_SERVER");
    const char *const run = getenv("LACUNA_RUN");
    static char job[100];
    char problem[700];
    bool is_found = true;

    *target = (struct lac_push_target){
        .is_quiet = options->quiet,
        .project = options->project != NULL ? options->project : project,
        .run = run != NULL || !lac_output_folder_job(job, sizeof(job)) ? run : job};
    if (options->server != NULL || (server != NULL && server[0] != '\0')) {
        is_found = lac_push_target_make(target, options->server, options->token_file, problem,
                                        sizeof(problem));
    }
    (void)unsetenv("LACUNA_TOKEN"); /* the job has no business with it */
    if (is_found) {
        return true;
    }
    target->server[0] = '\0';
    (void)fprintf(stderr, "lacuna run: %s%s\n", problem,
                  options->server != NULL ? "" : "; the recording will not be sent");
    return options->server == NULL;
}

int lac_run_command(int argc, char **argv)
{
    static struct lac_push_target target;
    struct lac_run_options options;
    struct lac_install install;
    static char output[4096];
    const int status = lac_run_options_parse(argc, argv, &options);

    const char *const disabled = getenv("LACUNA_DISABLE");

    if (status >= 0) {
        return status;
    }
    if (disabled != NULL && strcmp(disabled, "0") != 0 && disabled[0] != '\0') {
        (void)execvp(options.command[0], options.command);
        (void)fprintf(stderr, "lacuna: cannot run %s: %s\n", options.command[0], strerror(errno));
        return errno == ENOENT ? 127 : 126;
    }
    if (!lac_install_find(&install)) {
        (void)fprintf(
            stderr,
            "lacuna run: liblacuna.so is not beside this program; is the installation whole?\n");
        return 1;
    }
    if (!find_server(&options, &target)) {
        return 2;
    }
    if (!lac_output_folder_make(options.output, options.command[0], output, sizeof(output))) {
        return 1;
    }
    options.output = output;
    return record(&install, &options, target.server[0] != '\0' ? &target : NULL);
}
