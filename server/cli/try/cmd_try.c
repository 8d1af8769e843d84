/* lacuna try: whether a change helps, measured without editing the script. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/setting_rows.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/options.h"
#include "server/cli/read_ranks.h"
#include "server/cli/try/try_changes.h"
#include "server/cli/try/try_job.h"
#include "server/json/json_out.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    RUNS_MAX = 3,
    PATH_BYTES = 4096,
    STEPS_DEFAULT = 60,
    STEPS_MIN = 10, /* fewer say nothing of the noise */
    STEPS_MAX = 100000,
    WARM_UP_STEPS = 5, /* beside those that are asked for */
    SECONDS_DEFAULT = 900,
    SECONDS_MAX = 7 * 86400,
    HELPS_NOT = 3
};

static const char usage[] =
    "lacuna try CHANGE[,CHANGE...] [--steps 60] -- CMD\n\n"
    "Runs CMD as it is, with the change, and as it is again, each for some training steps, and "
    "says\n"
    "whether the change makes a step shorter than the noise explains. The script is not edited: "
    "the\n"
    "change is made in Python, from outside.\n\n"
    "  workers=N     DataLoader workers            tf32=1             TF32 in products and cuDNN\n"
    "  prefetch=N    batches ahead of each worker  cudnn_benchmark=1  cuDNN tries its algorithms\n"
    "  persistent=1  workers stay between epochs   optimizer=foreach  or fused\n"
    "  pinned=1      batches in pinned memory      threads=N          PyTorch's threads\n"
    "  batch=cached  the same few batches again and again: the step with perfect data\n\n"
    "The job ends early, and what the script writes (checkpoints, logs) is written each time. It\n"
    "reads nothing; what it prints goes to stderr.\n\n"
    "Exit status: 0 the change helps beyond the noise, 3 it does not, 1 that cannot be told.\n";

static const struct lac_option options_table[] = {
    {.name = "steps", .value = "N", .help = "steps of each run (60)", .flag_only = true},
    {.name = "runs",
     .value = "N",
     .help = "3, or 2: without the second run as it is",
     .flag_only = true},
    {.name = "seconds",
     .value = "S",
     .help = "end a run after so long, steps or not (900)",
     .flag_only = true},
    {.name = "output",
     .letter = 'o',
     .value = "DIR",
     .help = "folder for the recordings (./try-TIME.lacuna)",
     .flag_only = true},
    {.name = "json", .help = "print lacuna.try/1", .flag_only = true},
    {0},
};

struct run {
    const char *name;    /* "as is" */
    const char *changes; /* NULL: none */
    char folder[PATH_BYTES];
    struct lac_try_end end;
    struct lac_read_ranks read;
};

struct trial {
    struct lac_try_changes changes;
    char **command; /* ended by NULL */
    char folder[PATH_BYTES];
    int steps, seconds;
    struct run runs[RUNS_MAX];
    int run_count;
    struct lac_comparison *comparison[2]; /* of the changed run with the first and the last */
};

enum { CHANGED = 1 };

/* -- the runs --------------------------------------------------------------------------------- */

static bool name_folders(struct trial *trial, const char *given)
{
    static const char *const names[RUNS_MAX] = {"1-as-is", "2-changed", "3-as-is"};
    const time_t now = time(NULL);
    struct tm parts;
    char made[40];
    (void)localtime_r(&now, &parts);
    (void)strftime(made, sizeof(made), "try-%Y%m%d-%H%M%S.lacuna", &parts);
    const char *folder = given != NULL ? given : made;
    if (strlen(folder) + 16 >= sizeof(trial->folder)) {
        lac_complain("lacuna try", NULL, "the name of the folder is too long");
        return false;
    }
    memcpy(trial->folder, folder, strlen(folder) + 1);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        lac_complain("lacuna try", folder, "cannot be made: %s", strerror(errno));
        return false;
    }
    for (int i = 0; i < RUNS_MAX; i++) {
        struct run *run = &trial->runs[i];
        (void)snprintf(run->folder, sizeof(run->folder), "%.4000s/%s", folder, names[i]);
        run->name = i == CHANGED ? "changed" : "as is";
        run->changes = i == CHANGED ? trial->changes.text : NULL;
    }
    return true;
}

/* @return EXIT_SUCCESS when there is something to read */
static int run_once(struct trial *trial, struct run *run)
{
    const struct lac_try_job job = {.command = trial->command,
                                    .folder = run->folder,
                                    .changes = run->changes,
                                    .steps = trial->steps + WARM_UP_STEPS,
                                    .seconds_max = trial->seconds,
                                    .threads =
                                        run->changes != NULL ? (long)trial->changes.threads : 0};
    const int number = (int)(run - trial->runs) + 1;
    (void)fprintf(stderr, "lacuna try: run %d of %d, %s%s%s\n", number, trial->run_count, run->name,
                  run->changes != NULL ? ": " : "", run->changes != NULL ? run->changes : "");
    run->end = lac_try_job_run(&job);
    if (run->end.interrupted != 0) {
        (void)raise(run->end.interrupted);
        return 128 + run->end.interrupted; /* where that signal is blocked */
    }
    if (run->end.status < 0) {
        lac_complain("lacuna try", NULL, "the job cannot be started: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    /* a job that does not let itself be ended from inside ends by SIGTERM, as one that is late */
    if (run->end.status != 0 && run->end.status != 128 + SIGTERM && !run->end.is_late) {
        lac_complain("lacuna try", run->folder,
                     "the job ended with status %d in run %d (%s): see what it printed",
                     run->end.status, number, run->name);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* -- what they show --------------------------------------------------------------------------- */

static enum lac_status read_run(struct trial *trial, struct run *run)
{
    struct lac_diagnose_options diagnose = {.wants_worker_steps = true};
    char *path = run->folder;
    const struct lac_read_ranks_options options = {.command = "lacuna try",
                                                   .paths = &path,
                                                   .path_count = 1,
                                                   .diagnose = &diagnose,
                                                   .keeps_lowest = true};
    struct lac_error error = {0};
    if (run == &trial->runs[0] && trial->changes.what_if[0] != '\0') {
        diagnose.has_what_if = true;
        enum lac_status status =
            lac_what_if_parse(trial->changes.what_if, &diagnose.what_if, &error);
        if (status) { /* the keys of both are the same: a mistake of ours */
            lac_complain_error("lacuna try", NULL, &error);
            return status;
        }
    }
    return lac_read_ranks(&options, &run->read);
}

/* The hook tells each change that it made; one that it did not make was not measured. */
static bool was_made(const struct trial *trial)
{
    const struct lac_setting_rows *rows = &trial->runs[CHANGED].read.model->settings;
    const uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");
    for (uint32_t i = 0; i < trial->changes.count; i++) {
        const char *key = trial->changes.key[i];
        char name[64];
        (void)snprintf(name, sizeof(name), "tried_%s", key);
        if (root == UINT32_MAX || lac_settings_find(rows, root, name) == UINT32_MAX) {
            lac_complain("lacuna try", NULL, "%s was not changed: %s; nothing is measured of it",
                         key,
                         strcmp(key, "optimizer") == 0
                             ? "the job made no optimizer of PyTorch that has this form"
                         : strcmp(key, "prefetch") == 0 || strcmp(key, "persistent") == 0
                             ? "the job made no DataLoader with workers"
                             : "the job made no DataLoader, or does not run PyTorch");
            return false;
        }
    }
    return true;
}

static enum lac_status compare_all(struct trial *trial)
{
    enum lac_status status = LAC_OK;
    const struct run *changed = &trial->runs[CHANGED];
    const struct lac_compare_side b = {changed->read.model, changed->read.analysis, NULL};
    for (int i = 0; i < trial->run_count && !status; i++) {
        const struct run *run = &trial->runs[i];
        const struct lac_compare_side a = {run->read.model, run->read.analysis, NULL};
        if (i != CHANGED) {
            status = lac_compare(&a, &b, &trial->comparison[i > CHANGED]);
        }
    }
    return status;
}

static bool is_known(const struct trial *trial)
{
    for (int i = 0; i < trial->run_count - 1; i++) {
        const struct lac_comparison *comparison = trial->comparison[i];
        if (comparison->verdict == LAC_COMPARE_UNKNOWN ||
            comparison->verdict == LAC_COMPARE_TOO_FEW || isnan(comparison->step.pct)) {
            const bool has_why =
                comparison->verdict != LAC_COMPARE_TOO_FEW && comparison->why_not[0] != '\0';
            const char *why = has_why ? comparison->why_not : comparison->headline;
            lac_complain("lacuna try", trial->folder, "it cannot be told whether it helps: %s",
                         why);
            return false;
        }
    }
    return true;
}

/* Beyond the noise against each run as it is: what the first one alone shows may be a cold cache. */
static bool helps(const struct trial *trial)
{
    bool is_faster = true;
    for (int i = 0; i < trial->run_count - 1; i++) {
        is_faster = is_faster && trial->comparison[i]->verdict == LAC_COMPARE_FASTER;
    }
    return is_faster;
}

static struct lac_compare_change change_of(const struct trial *trial)
{
    struct lac_compare_change change = trial->comparison[0]->step;
    if (trial->run_count > 2) {
        const struct lac_compare_change *last = &trial->comparison[1]->step;
        change.pct = (change.pct + last->pct) / 2.0;
        change.low_pct = fmin(change.low_pct, last->low_pct);
        change.high_pct = fmax(change.high_pct, last->high_pct);
    }
    return change;
}

static double noise_floor(const struct trial *trial)
{
    double floor_pct = trial->comparison[0]->noise_floor_pct;
    return trial->run_count > 2 ? fmax(floor_pct, trial->comparison[1]->noise_floor_pct)
                                : floor_pct;
}

/* -- saying it -------------------------------------------------------------------------------- */

static void print_text(const struct trial *trial)
{
    const struct lac_analysis *before = trial->runs[0].read.analysis;
    const struct lac_compare_change change = change_of(trial);
    (void)printf("lacuna try %s\n\n", trial->changes.text);
    for (int i = 0; i < trial->run_count; i++) {
        const struct lac_analysis *analysis = trial->runs[i].read.analysis;
        (void)printf("  %-9s %10s per step, %llu steps\n", trial->runs[i].name,
                     lac_format_ns(analysis->step_mean_ns).text,
                     (unsigned long long)analysis->step_kept_count);
    }
    if (before->has_what_if && before->what_if_step.mean_ns != LAC_UNKNOWN_NS) {
        (void)printf("  predicted %10s per step (%s to %s)\n",
                     lac_format_ns(before->what_if_step.mean_ns).text,
                     lac_format_ns(before->what_if_step.low_ns).text,
                     lac_format_ns(before->what_if_step.high_ns).text);
    }
    if (helps(trial)) {
        (void)printf("\nThe change helps: %.3g %% less time per step (%.3g to %.3g %%), more than "
                     "noise.\n",
                     -change.pct, -change.high_pct, -change.low_pct);
    } else {
        (void)printf("\nNo gain beyond the noise: %+.3g %% time per step (%+.3g to %+.3g %%).",
                     change.pct, change.low_pct, change.high_pct);
        if (!isnan(noise_floor(trial))) {
            (void)printf(" These steps can show\na difference of %.2g %%.", noise_floor(trial));
        }
        (void)printf("\n");
    }
    (void)printf("More: lacuna compare %s %s\n", trial->runs[0].folder,
                 trial->runs[CHANGED].folder);
}

static void write_run(struct lac_json *json, const struct run *run)
{
    const struct lac_analysis *analysis = run->read.analysis;
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "name", run->name);
    lac_json_text(json, "path", run->folder);
    lac_json_bool(json, "changed", run->changes != NULL);
    lac_json_int(json, "exit_status", run->end.status);
    lac_json_uint(json, "step_count", analysis->step_kept_count);
    lac_json_ns(json, "step_mean_ns", analysis->step_mean_ns);
    lac_json_close(json, '}');
}

static void write_json(struct lac_buffer *out, const struct trial *trial)
{
    const struct lac_analysis *before = trial->runs[0].read.analysis;
    const struct lac_compare_change change = change_of(trial);
    struct lac_json json;
    lac_json_init(&json, out);
    lac_json_open(&json, NULL, '{');
    lac_json_text(&json, "schema", "lacuna.try/1");
    lac_json_text(&json, "changes", trial->changes.text);
    lac_json_bool(&json, "helps", helps(trial));
    lac_json_open(&json, "step_change_pct", '{');
    lac_json_decimals(&json, "mid", change.pct);
    lac_json_decimals(&json, "low", change.low_pct);
    lac_json_decimals(&json, "high", change.high_pct);
    lac_json_close(&json, '}');
    lac_json_decimals(&json, "noise_floor_pct", noise_floor(trial));
    lac_json_open(&json, "predicted", '{');
    const bool is_predicted = before->has_what_if;
    lac_json_ns(&json, "step_mean_ns",
                is_predicted ? before->what_if_step.mean_ns : LAC_UNKNOWN_NS);
    lac_json_ns(&json, "step_low_ns", is_predicted ? before->what_if_step.low_ns : LAC_UNKNOWN_NS);
    lac_json_ns(&json, "step_high_ns",
                is_predicted ? before->what_if_step.high_ns : LAC_UNKNOWN_NS);
    lac_json_text(&json, "why_not",
                  is_predicted ? before->what_if_why_not : "no replay answers for this change");
    lac_json_close(&json, '}');
    lac_json_open(&json, "runs", '[');
    for (int i = 0; i < trial->run_count; i++) {
        write_run(&json, &trial->runs[i]);
    }
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    lac_buffer_puts(out, "\n");
}

static bool say(const struct trial *trial, bool is_json)
{
    struct lac_buffer out = {0};
    enum lac_status status = LAC_OK;
    if (is_json) {
        write_json(&out, trial);
        status = out.status;
        (void)fwrite(out.bytes, 1, out.size_bytes, stdout);
    } else {
        print_text(trial);
    }
    lac_buffer_done(&out);
    if (status) {
        lac_complain("lacuna try", NULL, "%s", lac_status_text(status));
    }
    return fflush(stdout) == 0 && !ferror(stdout) && status == LAC_OK;
}

/* -- the command ------------------------------------------------------------------------------ */

static int measure(struct trial *trial, bool is_json)
{
    int exit_status = EXIT_SUCCESS;
    (void)fprintf(
        stderr,
        "lacuna try: the job runs %d times and ends early, after %d steps; what it writes, "
        "such as checkpoints, is written each time\n",
        trial->run_count, trial->steps + WARM_UP_STEPS);
    for (int i = 0; i < trial->run_count && exit_status == EXIT_SUCCESS; i++) {
        exit_status = run_once(trial, &trial->runs[i]);
    }
    for (int i = 0; i < trial->run_count && exit_status == EXIT_SUCCESS; i++) {
        exit_status = read_run(trial, &trial->runs[i]) ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    if (exit_status != EXIT_SUCCESS) {
        return exit_status;
    }
    const enum lac_status status = compare_all(trial);
    if (status) {
        lac_complain("lacuna try", NULL, "%s", lac_status_text(status));
        return EXIT_FAILURE;
    }
    if (!was_made(trial) || !is_known(trial) || !say(trial, is_json)) {
        return EXIT_FAILURE;
    }
    return helps(trial) ? EXIT_SUCCESS : HELPS_NOT;
}

static bool read_numbers(const struct lac_options *options, struct trial *trial)
{
    uint64_t steps = 0, runs = 0, seconds = 0;
    if (!lac_options_number(options, "steps", STEPS_MIN, STEPS_MAX, STEPS_DEFAULT, &steps) ||
        !lac_options_number(options, "runs", 2, RUNS_MAX, RUNS_MAX, &runs) ||
        !lac_options_number(options, "seconds", 1, SECONDS_MAX, SECONDS_DEFAULT, &seconds)) {
        return false;
    }
    trial->steps = (int)steps;
    trial->run_count = (int)runs;
    trial->seconds = (int)seconds;
    return true;
}

static int try_all(const struct lac_options *options, struct trial *trial)
{
    struct lac_error error = {0};
    if (options->operand_count < 2) {
        lac_complain("lacuna try", NULL,
                     "give a change and a command: lacuna try workers=7 -- python train.py");
        return 2;
    }
    if (lac_try_changes_parse(options->operands[0], &trial->changes, &error)) {
        lac_complain("lacuna try", NULL, "%s", error.message);
        return 2;
    }
    if (!read_numbers(options, trial)) {
        return 2;
    }
    trial->command = calloc((size_t)options->operand_count, sizeof(*trial->command));
    if (trial->command == NULL) {
        lac_complain("lacuna try", NULL, "%s", lac_status_text(LAC_ERR_NOMEM));
        return EXIT_FAILURE;
    }
    memcpy(trial->command, options->operands + 1,
           (size_t)(options->operand_count - 1) * sizeof(*trial->command));
    if (!name_folders(trial, lac_options_text(options, "output", NULL))) {
        return EXIT_FAILURE;
    }
    return measure(trial, lac_options_on(options, "json", false));
}

int lac_cmd_try(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    (void)setlocale(LC_CTYPE, "");
    struct trial *trial = calloc(1, sizeof(*trial));
    if (trial == NULL) {
        lac_complain("lacuna try", NULL, "%s", lac_status_text(LAC_ERR_NOMEM));
        lac_options_done(&options);
        return EXIT_FAILURE;
    }
    status = try_all(&options, trial);
    for (int i = 0; i < RUNS_MAX; i++) {
        lac_read_ranks_done(&trial->runs[i].read);
    }
    lac_comparison_destroy(trial->comparison[0]);
    lac_comparison_destroy(trial->comparison[1]);
    free(trial->command);
    free(trial);
    lac_options_done(&options);
    return status;
}
