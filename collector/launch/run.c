#include "collector/launch/run.h"

#include "collector/base/debug.h"
#include "collector/base/entry.h"
#include "collector/base/monotonic.h"
#include "collector/base/progress_line.h"
#include "collector/base/terminal_text.h"
#include "collector/gather/drain.h"
#include "collector/gather/launcher_note.h"
#include "collector/gather/spool_folder.h"
#include "collector/gather/spool_owner.h"
#include "collector/hang/hang_watch.h"
#include "collector/launch/empty_report.h"
#include "collector/launch/install.h"
#include "collector/launch/job.h"
#include "collector/launch/metrics_file.h"
#include "collector/launch/output_folder.h"
#include "collector/launch/output_name.h"
#include "collector/launch/plan.h"
#include "collector/launch/run_options.h"
#include "collector/launch/signals.h"
#include "collector/launch/status_line.h"
#include "collector/launch/terminal.h"
#include "collector/launch/window.h"
#include "collector/push/push.h"
#include "collector/sample/sampler.h"
#include "lacuna/spool.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 *   start -> RECORDING -> (first Ctrl-C) job goes on unrecorded -> (second) job is told to end
 *                |                                                   |
 *                +------------------ (CMD ended) --------------------+-> gather, verdict, exit
 *
 * The exit status is CMD's. If anything fails before the start, this process becomes CMD itself,
 * unrecorded (with --strict: an error).
 */

enum {
    ROUND_MS = 50,
    STEP_ROUND_MS = 5,
    BUSY_ROUND_MS = 2,
    STILL_ROUND_MS = 100, /* nothing was written for a second */
    STILL_ROUNDS = 20,
    PAUSED_ROUND_MS = 200, /* nothing is written */
    STEP_LOOK_MS = 2,
    IDLE_ROUND_MS = 500,
    REQUEST_LOOK_MS = 500,
    BUSY_SEGMENTS = 8,
    RECORDERS_WAIT_MS = 5000,
};

static const uint64_t CPU_RESERVE_NS = 2000000000;

static struct lac_empty_report empty_report;

struct recording {
    const struct lac_run_options *options;
    const struct lac_install *install;
    const char *spool_folder;
    struct lac_job *job;
    struct lac_drain *drain;
    struct lac_sampler *sampler;
    struct lac_hang_watch *hang;
    struct lac_plan plan;
    struct lac_terminal terminal;
    struct lac_metrics_file *metrics;
    struct lac_window_request window; /* the last one */
    uint64_t next_request_look_ms;
    bool is_window_open;
    uint64_t window_began_ns; /* since the start */
    uint64_t window_began_step;
    uint64_t start_ns;
    unsigned interrupts; /* Ctrl-C */
    bool goes_on;
    bool is_hurried;   /* somebody wants an end, and CMD has ended already */
    bool has_told_gpu; /* why it cannot be recorded */
    bool has_told_silence;
    uint64_t cpu_allowed_ns; /* UINT64_MAX: no limit */
    unsigned still_rounds;   /* in a row, in which nothing was written */
    bool is_out_of_cpu;      /* our own limit of CPU time is near: only the job is waited for */
};

/* ---- signals */

static bool wants_end(const struct lac_signal *signal)
{
    return (signal->number == SIGINT || signal->number == SIGQUIT || signal->number == SIGTERM ||
            signal->number == SIGHUP) &&
           !lac_entry_ignores(signal->number);
}

/* Nearly all of it is meant for the job. */
static void take_signal(struct recording *recording, const struct lac_signal *signal)
{
    const bool is_heard = !lac_entry_ignores(signal->number);

    if (lac_signal_is_of_child(signal)) {
        return;
    }
    LAC_DEBUG(LAUNCH, 2, "signal %d%s", signal->number,
              signal->is_from_terminal ? " from the terminal" : "");
    if (recording->job->ended) {
        recording->is_hurried = recording->is_hurried || wants_end(signal);
        if (signal->number == SIGTSTP && is_heard) {
            (void)kill(getpid(), SIGTSTP);
            lac_signals_let(SIGTSTP);
        }
        return;
    }
    if (signal->number == SIGINT && signal->is_from_terminal && is_heard) {
        recording->interrupts++;
        return;
    }
    lac_job_pass_on(recording->job, signal);
    if (signal->number == SIGTSTP || signal->number == SIGCONT) {
        recording->terminal.is_to_stop = signal->number == SIGTSTP && is_heard;
    }
}

/* ---- the verdict */

/* Until it is there, the job has somebody who passes signals on. */
static void attend(struct recording *recording, pid_t verdict)
{
    while (waitpid(verdict, NULL, WNOHANG) == 0) {
        struct lac_signal signal;

        if (lac_signals_wait(&signal, ROUND_MS)) {
            take_signal(recording, &signal);
        }
        if (recording->is_hurried) {
            (void)kill(verdict, SIGTERM);
        }
        lac_job_poll(recording->job);
        lac_terminal_follow(&recording->terminal, recording->job, recording->options->quiet);
    }
}

/* The folder of all ranks, where `output` is that of one; its length, 0: it is not. */
static size_t ranks_folder(const char *output, const char *rank)
{
    const char *const slash = strrchr(output, '/');

    return slash != NULL && rank[0] != '\0' && strcmp(slash + 1, rank) == 0
               ? (size_t)(slash - output)
               : 0;
}

/* Launchers of other ranks are beside us. */
static void meet_others(struct recording *recording)
{
    const char *const output = recording->options->output;
    char rank[32];
    char base[4096];
    size_t length;

    lac_output_name_rank(rank, sizeof(rank));
    length = ranks_folder(output, rank);
    if (length > 0) {
        (void)snprintf(base, sizeof(base), "%.*s", (int)length, output);
        lac_hang_watch_meet(recording->hang, base, rank);
    }
}

static void show_verdict(struct recording *recording)
{
    const char *const program = recording->install->lacuna;
    const char *const output = recording->options->output;
    char rank[32];
    size_t of_all;
    pid_t pid;

    lac_output_name_rank(rank, sizeof(rank));
    of_all = ranks_folder(output, rank);
    if (rank[0] != '\0' && strcmp(strchr(rank, '-'), "-0") != 0) {
        (void)fprintf(stderr, "lacuna: recorded in %s; %.*s-0 shows its verdict\n", output,
                      (int)strcspn(rank, "-"), rank);
        return; /* one of a thousand ranks speaks */
    }
    if (program[0] == '\0') {
        (void)fprintf(stderr, "lacuna: recorded in %s; look at it with: lacuna analyze %s\n",
                      output, output);
        return;
    }
    pid = fork();
    if (pid == 0) {
        lac_entry_give_back();
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* the job's own output stays clean */
        (void)execl(program, "lacuna", "analyze", output, (char *)NULL);
        _exit(127);
    }
    if (pid > 0) {
        attend(recording, pid);
    }
    if (of_all > 0) {
        (void)fprintf(stderr, "lacuna: that was %s; all of them: lacuna analyze %.*s\n", rank,
                      (int)of_all, output);
    }
}

/* ---- recording */

static bool is_by_range(const struct lac_run_options *options)
{
    return options->range != NULL || options->profiler_api;
}

static void want(struct recording *recording, enum lac_spool_stop wish)
{
    bool is_on = wish == LAC_SPOOL_RECORD;

    /* a window on demand needs no range, and nobody may end it with one */
    if (is_on && is_by_range(recording->options) && recording->plan.asked_until_ms == 0) {
        is_on = lac_drain_follow_captures(recording->drain);
    } else {
        lac_drain_want(recording->drain, wish);
    }
    lac_sampler_recording(recording->sampler, is_on);
}

/* What recording costs, for the line at the end and for whoever reads the trace. */
static void note_cost(struct recording *recording)
{
    char text[100];

    lac_plan_cost(&recording->plan, text, sizeof(text));
    lac_sampler_note(recording->sampler, "recorder_cost", text);
    if (recording->plan.was_measured && !recording->options->quiet) {
        lac_progress_line_clear();
        (void)fprintf(stderr, "lacuna: recording costs %s\n", text);
    }
}

/* The recording is over: by plan, by size or because the user said so. */
static void end_recording(struct recording *recording, const char *why)
{
    recording->goes_on = false;
    LAC_DEBUG(LAUNCH, 1, "the recording ends%s", why);
    want(recording, LAC_SPOOL_STOP);
    (void)usleep(BUSY_ROUND_MS * 1000); /* what is being written right now still comes */
    lac_drain_round(recording->drain, true);
    lac_launcher_note_ended(recording->options->output);
    note_cost(recording);
    if (!recording->options->quiet) {
        lac_progress_line_clear();
        (void)fprintf(stderr,
                      "\nlacuna: recording ended%s, the job goes on; Ctrl-C%s ends the job\n", why,
                      recording->interrupts > 0 ? " again" : " twice");
        show_verdict(recording);
    }
}

static uint64_t elapsed_ns(const struct recording *recording)
{
    return lac_monotonic_ns() - recording->start_ns;
}

/* Sleeps and takes signals; where steps are compared, looks at them all the while. What needs an
 * answer ends it early. */
static void rest(struct recording *recording, long ms)
{
    const uint64_t end_ns = lac_monotonic_ns() + (uint64_t)ms * 1000000u;

    for (uint64_t now_ns = 0; now_ns < end_ns; now_ns = lac_monotonic_ns()) {
        const bool is_measuring = recording->goes_on && recording->plan.is_measuring;
        const unsigned interrupts = recording->interrupts;
        struct lac_signal signal;

        if (lac_signals_wait(&signal, is_measuring && ms > STEP_LOOK_MS ? STEP_LOOK_MS : ms)) {
            take_signal(recording, &signal);
            if (lac_signal_is_of_child(&signal) || recording->interrupts > interrupts ||
                recording->is_hurried) {
                return;
            }
        }
        if (is_measuring) {
            want(recording, lac_plan_next(&recording->plan, elapsed_ns(recording),
                                          lac_drain_steps(recording->drain)));
        }
    }
}

/* Before the hard limit (ulimit -t), at which the kernel ends us. */
static uint64_t cpu_allowed_ns(void)
{
    struct rlimit limit;
    uint64_t most_ns;

    if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max > UINT64_MAX / 1000000000u) {
        return UINT64_MAX;
    }
    most_ns = (uint64_t)limit.rlim_max * 1000000000u;
    return most_ns - (most_ns / 2 < CPU_RESERVE_NS ? most_ns / 2 : CPU_RESERVE_NS);
}

/* What the plan, the limit and the user say now. */
static void decide(struct recording *recording)
{
    const struct lac_drain_counts counts = lac_drain_counts(recording->drain);
    struct lac_plan *const plan = &recording->plan;

    if (recording->interrupts > 0) {
        end_recording(recording, "");
        return;
    }
    if (recording->cpu_allowed_ns != UINT64_MAX &&
        lac_sampler_own_cpu_ns() >= recording->cpu_allowed_ns) {
        recording->is_out_of_cpu = true;
        end_recording(recording, ": the launcher's own CPU time is used up (ulimit -t)");
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

/* Once, and at once: who waits for a recording of the GPU need not wait for the end to learn that
 * there will be none. */
static void say_gpu_trouble(struct recording *recording)
{
    const struct lac_drain_gpu *const gpu = lac_drain_gpu(recording->drain);
    char reason[sizeof(gpu->reason) * 4];

    if (gpu->state == LAC_GPU_STATE_NONE || recording->has_told_gpu) {
        return;
    }
    recording->has_told_gpu = true;
    lac_progress_line_clear();
    (void)fprintf(stderr, "lacuna: %s%s\n",
                  gpu->state == LAC_GPU_STATE_NO_KERNELS || gpu->state == LAC_GPU_STATE_UNSEEN ? ""
                  : gpu->state == LAC_GPU_STATE_REFUSED ? "the GPU is not recorded: "
                                                        : "the GPU is no longer recorded: ",
                  gpu->reason[0] != '\0' ? lac_terminal_string(gpu->reason, reason, sizeof(reason))
                                         : "kernels cannot be recorded");
}

/* One round beside the job. @return whether it writes fast: then it gets its segments back fast */
static bool work(struct recording *recording)
{
    struct lac_drain *const drain = recording->drain;
    const uint64_t moved_before = lac_drain_counts(drain).segments;
    uint64_t moved;

    lac_drain_round(drain, false);
    say_gpu_trouble(recording);
    lac_sampler_processes(recording->sampler, lac_drain_counts(recording->drain).processes);
    lac_sampler_round(recording->goes_on ? recording->sampler : NULL);
    if (!recording->job->ended) {
        lac_hang_watch_round(recording->hang, drain, recording->sampler);
    }
    lac_drain_others(drain, lac_sampler_bytes(recording->sampler));
    moved = lac_drain_counts(drain).segments - moved_before;
    recording->still_rounds = moved == 0 ? recording->still_rounds + 1 : 0;
    return moved >= BUSY_SEGMENTS;
}

/* ---- figures for Prometheus */

static void write_metrics(struct recording *recording)
{
    static struct lac_job_figures metrics;
    const uint64_t now_ns = lac_monotonic_ns();
    struct lac_drain_counts counts;

    if (!lac_metrics_file_is_due(recording->metrics, now_ns)) {
        return;
    }
    counts = lac_drain_counts(recording->drain);
    metrics = (struct lac_job_figures){
        .is_recording = recording->goes_on && recording->plan.wish == LAC_SPOOL_RECORD,
        .steps = counts.steps,
        .loader_wait_ns = lac_drain_loader_wait_ns(recording->drain),
        .processes = counts.processes,
        .recorded_bytes = counts.bytes + lac_sampler_bytes(recording->sampler),
        .lost_events = counts.dropped,
        .failed_writes = counts.failed_writes,
        .launcher_cpu_ns = lac_sampler_own_cpu_ns()};
    metrics.gpu_count =
        lac_sampler_gpu_busy(recording->sampler, metrics.gpu_busy, LAC_METRICS_GPUS_MAX);
    lac_metrics_file_write(recording->metrics, &metrics, now_ns);
}

/* ---- windows on demand */

/* Why none can be had; NULL: it can. */
static const char *why_no_window(const struct recording *recording)
{
    return recording->is_out_of_cpu ? "the launcher's CPU time is used up (ulimit -t)"
           : lac_drain_counts(recording->drain).is_full
               ? "the size limit of the recording is reached (--limit)"
           : recording->goes_on        ? NULL
           : recording->interrupts > 0 ? "Ctrl-C has ended the recording"
                                       : "the recording has ended as planned and has let go of the "
                                         "job: lacuna run --on-demand keeps it ready for windows";
}

static void open_window(struct recording *recording)
{
    const struct lac_drain_counts counts = lac_drain_counts(recording->drain);
    const char *const obstacle = why_no_window(recording);
    char words[LAC_WINDOW_WORDS_BYTES];

    recording->is_window_open = obstacle == NULL;
    recording->window_began_ns = elapsed_ns(recording);
    recording->window_began_step = counts.steps;
    if (obstacle == NULL) {
        lac_plan_open_window(&recording->plan, elapsed_ns(recording), counts.steps,
                             recording->window.duration_ms, recording->window.steps, words,
                             sizeof(words));
        recording->goes_on = true;
        decide(recording);
    } else {
        (void)snprintf(words, sizeof(words), "%s", obstacle);
    }
    LAC_DEBUG(LAUNCH, 1, "a window was asked for: %s", words);
    (void)lac_window_answer(recording->options->output, recording->window.id,
                            obstacle == NULL ? LAC_WINDOW_RECORDING : LAC_WINDOW_REFUSED, words);
    if (obstacle == NULL && !recording->options->quiet) {
        lac_progress_line_clear();
        (void)fprintf(stderr, "lacuna: %s, as lacuna window asked\n", words);
    }
}

static void close_window(struct recording *recording)
{
    const uint64_t steps = lac_drain_counts(recording->drain).steps - recording->window_began_step;
    char words[LAC_WINDOW_WORDS_BYTES];
    const int length = snprintf(words, sizeof(words), "the window has ended: %.1f s",
                                (double)(elapsed_ns(recording) - recording->window_began_ns) / 1e9);

    if (steps > 0) {
        (void)snprintf(words + length, sizeof(words) - (size_t)length, ", %llu steps",
                       (unsigned long long)steps);
    }
    recording->is_window_open = false;
    (void)lac_window_answer(recording->options->output, recording->window.id, LAC_WINDOW_DONE,
                            words);
}

/* Whether somebody asks for a window, or the one that was asked for is over. */
static void look_for_request(struct recording *recording)
{
    const uint64_t now_ms = elapsed_ns(recording) / 1000000;
    const char *const output = recording->options->output;

    if (recording->is_window_open && (recording->plan.asked_until_ms == 0 || !recording->goes_on)) {
        close_window(recording);
    }
    if (now_ms >= recording->next_request_look_ms) {
        struct lac_window_request request;

        recording->next_request_look_ms = now_ms + REQUEST_LOOK_MS;
        if (lac_window_take(output, recording->window.id, &request)) {
            recording->window = request;
            open_window(recording);
        }
    }
}

static long round_ms(const struct recording *recording, bool is_busy)
{
    if (recording->is_out_of_cpu) {
        return IDLE_ROUND_MS;
    }
    if (is_busy) {
        return BUSY_ROUND_MS;
    }
    if (recording->options->step_first > 0 || is_by_range(recording->options)) {
        return STEP_ROUND_MS;
    }
    return !recording->goes_on || recording->plan.wish != LAC_SPOOL_RECORD ? PAUSED_ROUND_MS
           : recording->still_rounds >= STILL_ROUNDS                       ? STILL_ROUND_MS
                                                                           : ROUND_MS;
}

/* Who waits for a recording learns after a while that there is none so far, and why. */
static void say_silence(struct recording *recording)
{
    if (recording->has_told_silence || !recording->goes_on || recording->options->quiet ||
        recording->plan.wish != LAC_SPOOL_RECORD || is_by_range(recording->options) ||
        elapsed_ns(recording) < LAC_EMPTY_REPORT_SILENT_MS * UINT64_C(1000000)) {
        return;
    }
    recording->has_told_silence = true;
    lac_progress_line_clear();
    lac_empty_report_say_early(&empty_report);
}

/* Until CMD has ended. */
static void follow(struct recording *recording)
{
    struct lac_job *const job = recording->job;
    bool is_busy = false;
    unsigned asked_to_end = 1;

    while (!job->ended) {
        rest(recording, round_ms(recording, is_busy));
        is_busy = !recording->is_out_of_cpu && work(recording);
        lac_job_poll(job);
        lac_terminal_follow(&recording->terminal, job, recording->options->quiet);
        if (lac_drain_counts(recording->drain).processes == 0 && !job->ended) {
            lac_empty_report_look(&empty_report, elapsed_ns(recording) / 1000000);
            say_silence(recording);
        }
        if (recording->goes_on) {
            decide(recording);
        }
        look_for_request(recording);
        write_metrics(recording);
        if (recording->interrupts > asked_to_end) {
            asked_to_end = recording->interrupts;
            /* one that does not listen is told more plainly */
            lac_job_signal_group(job, asked_to_end <= 2   ? SIGINT
                                      : asked_to_end == 3 ? SIGTERM
                                                          : SIGKILL);
        }
    }
}

/* What CMD left behind may still be recorded: for a while that is waited for. */
static void follow_rest(struct recording *recording)
{
    const uint64_t end_ns = lac_monotonic_ns() + RECORDERS_WAIT_MS * UINT64_C(1000000);
    bool is_recorded = lac_spool_owner_is_recorded(recording->spool_folder);

    while (is_recorded && !recording->is_hurried && lac_monotonic_ns() < end_ns) {
        rest(recording, ROUND_MS);
        (void)work(recording);
        is_recorded = lac_spool_owner_is_recorded(recording->spool_folder);
    }
    if (is_recorded) {
        want(recording, LAC_SPOOL_STOP); /* nobody drains them any more: they are to cost nothing */
    }
    if (is_recorded && !recording->options->quiet) {
        lac_progress_line_clear();
        (void)fputs(
            "lacuna: processes that the job left behind continue; they are no longer recorded\n",
            stderr);
    }
}

/* For whoever reads the trace: it has no process in it that could tell. */
static void note_nothing(struct recording *recording)
{
    char reason[LAC_EMPTY_REPORT_REASON_BYTES];

    if (lac_drain_counts(recording->drain).processes == 0) {
        lac_empty_report_reason(&empty_report, recording->job->exit_status, reason, sizeof(reason));
        lac_sampler_note(recording->sampler, "nothing_recorded", reason);
    }
    if (recording->options->step != NULL && lac_drain_counts(recording->drain).steps == 0) {
        lac_sampler_note(recording->sampler, "step_unseen", recording->options->step);
    }
}

static void begin_recording(struct recording *recording)
{
    recording->start_ns = lac_monotonic_ns();
    recording->goes_on = true;
    lac_plan_begin(&recording->plan, recording->options);
    want(recording, recording->plan.wish);
    lac_drain_limit(recording->drain, recording->options->limit_bytes);
    lac_status_announce(&recording->plan, recording->options);
}

static void conclude(struct recording *recording)
{
    const struct lac_run_options *const options = recording->options;
    const struct lac_drain_counts counts = lac_drain_counts(recording->drain);

    lac_progress_line_clear();
    if (counts.failed_writes > 0) {
        (void)fprintf(stderr,
                      "lacuna: %s could not take all of the recording, some of it is lost: is the "
                      "disk full, or the size of files limited (ulimit -f)?\n",
                      options->output);
    }
    lac_drain_say_missing(recording->drain, "lacuna", "the size limit");
    if (counts.processes > 0 || options->step != NULL) {
        lac_empty_report_say_asked(options, counts.steps, lac_drain_has_captured(recording->drain));
    }
    if (options->quiet) {
        return;
    }
    if (counts.processes == 0) {
        lac_empty_report_say(&empty_report, recording->job->exit_status);
        return;
    }
    if (recording->goes_on && !recording->is_hurried) { /* else it was shown, or is not wanted */
        show_verdict(recording);
    }
}

/* Behind the job: who wants an end now ends the sending, which can go on later. */
static void send_rest(struct lac_push_run *push, const struct lac_run_options *options,
                      const struct lac_job *job, bool is_empty)
{
    static char words[5000];

    if (push == NULL) {
        return;
    }
    (void)snprintf(words, sizeof(words),
                   "lacuna: not all was sent; the recording stays in %s, and lacuna push goes on\n",
                   options->output);
    lac_signals_end_with(job->exit_status, words);
    lac_push_run_end(push, !is_empty);
    lac_entry_hold(lac_entry_held());
}

/* The job has started: until its end, and what is to do then. */
static int record(struct recording *recording, const struct lac_push_target *target)
{
    const struct lac_run_options *const options = recording->options;
    struct lac_push_run *const push =
        target != NULL ? lac_push_run_begin(target, options->output) : NULL;
    bool is_empty;

    recording->cpu_allowed_ns = cpu_allowed_ns();
    recording->metrics = lac_metrics_file_begin(options->metrics, options->output);
    lac_terminal_open(&recording->terminal);
    recording->sampler = lac_sampler_create(options->output);
    if (!options->no_hang) {
        recording->hang = lac_hang_watch_create(recording->spool_folder, options->quiet);
        meet_others(recording);
        lac_hang_watch_tell(recording->hang, lac_push_run_hang, push);
    }
    begin_recording(recording);
    follow(recording);
    lac_window_clear(options->output);
    lac_metrics_file_end(recording->metrics);
    lac_terminal_close(&recording->terminal);
    follow_rest(recording);
    if (recording->goes_on) {
        note_cost(recording);
    }
    lac_hang_watch_destroy(recording->hang);
    lac_drain_round(recording->drain, true);
    say_gpu_trouble(recording);
    note_nothing(recording);
    lac_sampler_destroy(recording->sampler);
    lac_drain_exports(recording->drain);
    lac_launcher_note_ended(options->output);
    lac_spool_owner_sweep(recording->spool_folder, options->quiet || !lac_output_name_is_first());
    conclude(recording);
    is_empty = lac_drain_counts(recording->drain).processes == 0;
    lac_drain_destroy(recording->drain);
    if (lac_spool_folder_remove(recording->spool_folder) == 0) {
        lac_launcher_note_remove(options->output);
    }
    send_rest(push, options, recording->job, is_empty);
    return lac_job_exit_status(recording->job);
}

/* ---- before the job */

/* Whatever fails in us: CMD runs, and takes the place of this process. */
static int run_unrecorded(const struct lac_run_options *options, const char *why)
{
    (void)unsetenv("LACUNA_PROGRAM");
    LAC_DEBUG(LAUNCH, 1, "not recorded: %s", why);
    if (options->strict) {
        (void)fprintf(stderr, "lacuna run: %s\n", why);
        return 1;
    }
    (void)fprintf(stderr, "lacuna: %s; the job runs unrecorded\n", why);
    return lac_job_become(options->command);
}

/* The places of a recording: the processes' spools, then what is kept. */
static bool make_folders(struct lac_run_options *options, char *spools, char *output,
                         size_t path_bytes, char *why, size_t why_capacity)
{
    char reason[1024];

    if (!lac_spool_folder_make(spools, path_bytes, reason, sizeof(reason))) {
        (void)snprintf(why, why_capacity, "no folder to record to: %s; set LACUNA_SPOOL_DIR",
                       reason);
        return false;
    }
    if (!lac_output_folder_make(options->output, options->command[0], output, path_bytes, why,
                                why_capacity)) {
        (void)lac_spool_folder_remove(spools);
        return false;
    }
    options->output = output;
    if (!lac_spool_owner_take(spools, output)) {
        (void)snprintf(why, why_capacity, "cannot lock %s: %s", spools, strerror(errno));
        (void)lac_spool_folder_remove(spools);
        lac_output_folder_drop(output);
        return false;
    }
    lac_launcher_note_spools(output, spools);
    return true;
}

/* The pointers of the environment, to go back to. NULL: no memory */
static char **copy_environment(void)
{
    size_t count = 0;
    char **copy;

    while (environ[count] != NULL) {
        count++;
    }
    copy = malloc((count + 1) * sizeof(*copy));
    if (copy != NULL) {
        memcpy(copy, environ, (count + 1) * sizeof(*copy));
    }
    return copy;
}

static void say_displaced(const struct lac_displaced *displaced)
{
    if (displaced->nvtx[0] != '\0') {
        (void)fprintf(stderr, "lacuna: replaces the NVTX tool %s for this run\n", displaced->nvtx);
    }
    if (displaced->cuda[0] != '\0') {
        (void)fprintf(stderr,
                      "lacuna: CUDA_INJECTION64_PATH names %s: it is loaded first, and if it takes "
                      "CUPTI, the GPU is not recorded\n",
                      displaced->cuda);
    }
}

/* What the job's processes look for themselves. */
static void set_captures(const struct lac_run_options *options)
{
    if (strcmp(options->python_stacks, "off") == 0) {
        (void)unsetenv("LACUNA_PYTHON_STACKS");
    } else {
        (void)setenv("LACUNA_PYTHON_STACKS", options->python_stacks, 1);
    }
    if (options->metric[0] != '\0') {
        (void)setenv("LACUNA_METRIC", options->metric, 1);
    }
    if (options->range != NULL) {
        (void)setenv("LACUNA_RANGE", options->range, 1);
    }
    if (options->step != NULL) {
        (void)setenv("LACUNA_STEP", options->step, 1);
    }
    if (options->profiler_api) {
        (void)setenv("LACUNA_PROFILER_API", "1", 1);
    }
    if (options->on_demand ||
        (is_by_range(options) && (options->delay_ms > 0 || options->step_first > 1))) {
        /* not even in a range, or until the launcher looks, before its time */
        (void)setenv("LACUNA_ON_DEMAND", "1", 1);
    }
}

static int run(const struct lac_install *install, struct lac_run_options *options,
               const struct lac_push_target *target)
{
    static char spools[4096];
    static char output[4096];
    static char text[5000];
    static struct lac_displaced displaced;
    char **const environment = copy_environment();
    struct lac_job job = {0};
    struct recording recording = {
        .options = options, .install = install, .spool_folder = spools, .job = &job};
    bool has_started;

    if (environment == NULL) {
        return run_unrecorded(options, "no memory to record with");
    }
    if (!make_folders(options, spools, output, sizeof(spools), text, sizeof(text))) {
        free(environment);
        return run_unrecorded(options, text);
    }
    LAC_DEBUG(LAUNCH, 1, "from %s into %s", spools, output);
    recording.drain = lac_drain_create(spools, output);
    lac_install_environment(install, spools, &displaced);
    if (options->no_hang) {
        (void)setenv("LACUNA_HANG", "0", 1);
    }
    say_displaced(&displaced);
    set_captures(options);
    errno = ENOMEM;
    has_started = recording.drain != NULL && lac_job_start(&job, options->command);
    if (!has_started) {
        (void)snprintf(text, sizeof(text), "cannot start a process next to the job: %s",
                       strerror(errno));
        lac_drain_destroy(recording.drain);
        (void)lac_spool_folder_remove(spools);
        lac_output_folder_drop(output);
        environ = environment;
        return run_unrecorded(options, text);
    }
    free(environment);
    return record(&recording, target);
}

/* Where the recording goes afterwards. What a flag says wrong is told before the job begins; a
 * variable that is wrong only keeps the recording here. */
static bool find_server(const struct lac_run_options *options, struct lac_push_target *target)
{
    const char *const project = getenv("LACUNA_PROJECT");
    const char *const server = getenv("LACUNA_SERVER");
    const char *const run = getenv("LACUNA_RUN");
    static char job[256];
    char problem[700];
    bool is_found = true;

    *target = (struct lac_push_target){
        .is_quiet = options->quiet,
        .project = options->project != NULL ? options->project : project,
        .run = run != NULL || !lac_output_name_job(job, sizeof(job)) ? run : job};
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
    static struct lac_install install;
    struct lac_run_options options;
    const int status = lac_run_options_parse(argc, argv, &options);
    const char *const disabled = getenv("LACUNA_DISABLE");

    if (status >= 0) {
        return status;
    }
    if (disabled != NULL && strcmp(disabled, "0") != 0 && disabled[0] != '\0') {
        (void)unsetenv("LACUNA_TOKEN"); /* the job has no business with it */
        (void)unsetenv("LACUNA_PROGRAM");
        return lac_job_become(options.command);
    }
    if (!find_server(&options, &target)) {
        return 2;
    }
    lac_entry_take();
    if (!lac_job_is_there(options.command[0])) { /* before anything is moved or made for it */
        (void)unsetenv("LACUNA_PROGRAM");
        return lac_job_become(options.command);
    }
    if (!lac_install_find(&install)) {
        return run_unrecorded(
            &options, "liblacuna.so is not next to this program; is the installation complete?");
    }
    return run(&install, &options, target.server[0] != '\0' ? &target : NULL);
}
