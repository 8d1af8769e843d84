/* lacuna analyze: diagnosis on the terminal. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/import/import.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "server/api/analysis_json.h"
#include "server/commands.h"
#include "server/options.h"
#include "server/report_text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "lacuna analyze PATH... [--json] [--what-if K=V,...]\n\n"
    "Says why the GPU was idle, what to change and what that gains. Several paths (or an archive "
    "of\n"
    "ranks) are the ranks of one run.\n"
    "--what-if re-times the steps with changes: workers=N layout=nhwc pinned=1 async=1 sync=0\n"
    "allocator=0 module_load=0 launch=0 comm=X kernels=X (X a factor, such as 0.5).\n";

static const struct lac_option options_table[] = {
    {.name = "json",
     .help = "print lacuna.analysis/1, or lacuna.run/1 for several",
     .flag_only = true},
    {.name = "what-if",
     .value = "K=V,...",
     .help = "re-time the steps with changes",
     .flag_only = true},
    {.name = "color", .help = "colour (default: on a terminal)"},
    {0},
};

/** A trace with what was found in it; both owned. */
struct rank {
    struct lac_model *model;
    struct lac_analysis *analysis;
};

/** Traces read so far. */
struct analysis_run {
    struct rank *ranks;
    size_t count, capacity;
    struct lac_diagnose_options diagnose;
    const char *path;
    bool shows_progress;
    bool has_shown;
    struct timespec last_shown;
};

static void run_done(struct analysis_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        lac_analysis_destroy(run->ranks[i].analysis);
        lac_model_destroy(run->ranks[i].model);
    }
    free(run->ranks);
}

static bool show_progress(void *context, uint64_t done_bytes, uint64_t total_bytes,
                          uint64_t event_count)
{
    struct analysis_run *run = context;
    if (!run->shows_progress || total_bytes == 0) {
        return true;
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* NOLINT(misc-include-cleaner): time.h has it */
    double since_s = (double)(now.tv_sec - run->last_shown.tv_sec) +
                     (double)(now.tv_nsec - run->last_shown.tv_nsec) * 1e-9;
    if (since_s < 0.2) {
        return true;
    }
    run->last_shown = now;
    run->has_shown = true;
    (void)fprintf(stderr, "\r%.50s  %3.0f %%  %.1f M events", run->path,
                  100.0 * (double)done_bytes / (double)total_bytes, (double)event_count / 1e6);
    (void)fflush(stderr);
    return true;
}

static void clear_progress(struct analysis_run *run)
{
    if (run->has_shown) {
        (void)fprintf(stderr, "\r\033[K");
        run->has_shown = false;
    }
}

/** Diagnose a model as it comes from the importer. */
static enum lac_status take_model(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct analysis_run *run = context;
    struct lac_analysis *analysis = NULL;
    enum lac_status status = LAC_OK;
    if (run->count == run->capacity) {
        size_t capacity = run->capacity ? run->capacity * 2 : 8;
        struct rank *grown = realloc(run->ranks, capacity * sizeof *grown);
        if (grown) {
            run->ranks = grown;
            run->capacity = capacity;
        } else {
            status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
    }
    if (!status) {
        status = lac_diagnose(model, &run->diagnose, &analysis, reterr);
    }
    if (status) {
        lac_model_destroy(model);
        return status;
    }
    run->ranks[run->count++] = (struct rank){model, analysis};
    return LAC_OK;
}

static int by_rank(const void *a, const void *b)
{
    int32_t x = ((const struct rank *)a)->model->info.rank;
    int32_t y = ((const struct rank *)b)->model->info.rank;
    return x < y ? -1 : x > y;
}

/** Ranks in order when every trace knows its own. */
static void sort_ranks(struct analysis_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->ranks[i].model->info.rank < 0) {
            return;
        }
    }
    if (run->count > 1) {
        qsort(run->ranks, run->count, sizeof *run->ranks, by_rank);
    }
}

/** One line on stderr: the file, the place in it, what is wrong and what to do. */
static void complain(const char *path, const struct lac_error *error)
{
    if (error->offset_bytes > 0) {
        (void)fprintf(stderr, "lacuna analyze: %s: byte %llu: %s\n", path,
                      (unsigned long long)error->offset_bytes, error->message);
    } else {
        (void)fprintf(stderr, "lacuna analyze: %s: %s\n", path, error->message);
    }
}

/** The report or the document of one trace or of several. */
static enum lac_status make_text(const struct lac_analysed *ranks, size_t count,
                                 const struct lac_options *options, char **ret_text)
{
    if (lac_options_on(options, "json", false)) {
        return count == 1 ? lac_analysis_json(ranks, true, ret_text, NULL)
                          : lac_run_json(ranks, count, true, ret_text, NULL);
    }
    bool is_terminal = isatty(STDOUT_FILENO) == 1 && !getenv("NO_COLOR");
    struct lac_report_options report = {
        .is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
        .has_color = lac_options_on(options, "color", is_terminal),
    };
    return count == 1 ? lac_report_text(ranks, &report, ret_text)
                      : lac_report_run_text(ranks, count, &report, ret_text);
}

static enum lac_status print(const struct analysis_run *run, const struct lac_options *options)
{
    char *text = NULL;
    struct lac_analysed *ranks = calloc(run->count, sizeof *ranks);
    enum lac_status status = ranks ? LAC_OK : LAC_ERR_NOMEM;
    for (size_t i = 0; i < run->count && !status; i++) {
        ranks[i] = (struct lac_analysed){run->ranks[i].model, run->ranks[i].analysis};
    }
    if (!status) {
        status = make_text(ranks, run->count, options, &text);
    }
    free(ranks);
    if (status) {
        (void)fprintf(stderr, "lacuna analyze: out of memory\n");
        return status;
    }
    bool is_written = fputs(text, stdout) != EOF;
    if (text[0] != '\0' && text[strlen(text) - 1] != '\n') {
        is_written = fputs("\n", stdout) != EOF && is_written;
    }
    free(text);
    if (fflush(stdout) != 0 || !is_written) {
        (void)fprintf(stderr, "lacuna analyze: writing the report failed\n");
        return LAC_ERR_IO;
    }
    return LAC_OK;
}

/** A sentence in lines of the report's width, after a label of twelve columns. */
static void print_wrapped(const char *label, const char *text)
{
    enum { ROOM = LAC_REPORT_COLUMNS - 12 };
    while (*text != '\0') {
        size_t length = strlen(text);
        if (length > ROOM) {
            length = ROOM;
            while (length > 0 && text[length] != ' ') {
                length--;
            }
            length = length == 0 ? ROOM : length;
        }
        (void)printf("%-12s%.*s\n", label, (int)length, text);
        label = "";
        text += length;
        text += strspn(text, " ");
    }
}

static void print_what_if(const struct analysis_run *run, const struct lac_options *options)
{
    if (!run->diagnose.has_what_if || lac_options_on(options, "json", false)) {
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        const struct lac_analysis *analysis = run->ranks[i].analysis;
        if (analysis->what_if_mean_ns == LAC_UNKNOWN_NS) {
            (void)printf("what if     no steps to re-time in this trace\n");
            continue;
        }
        (void)printf("what if     %s: %.1f ms a step (%.1f-%.1f), now %.1f\n",
                     lac_options_text(options, "what-if", ""),
                     (double)analysis->what_if_mean_ns / 1e6,
                     (double)analysis->what_if_low_ns / 1e6,
                     (double)analysis->what_if_high_ns / 1e6, (double)analysis->step_mean_ns / 1e6);
        print_wrapped("  given     ", analysis->what_if_assumption);
    }
}

static int analyze(struct analysis_run *run, const struct lac_options *options)
{
    struct lac_import_options import = {.progress = show_progress, .progress_context = run};
    lac_import_limits_default(&import.limits);
    for (int i = 0; i < options->operand_count; i++) {
        struct lac_error error = {0};
        run->path = options->operands[i];
        size_t before = run->count;
        enum lac_status status = lac_import_file(run->path, &import, take_model, run, &error);
        clear_progress(run);
        if (!status && run->count == before) {
            status =
                lac_fail(&error, LAC_ERR_CORRUPT, 0,
                         "holds no trace; give a PyTorch profiler, TensorFlow or Chrome trace");
        }
        if (status) {
            complain(run->path, &error);
            return EXIT_FAILURE;
        }
    }
    sort_ranks(run);
    if (print(run, options)) {
        return EXIT_FAILURE;
    }
    print_what_if(run, options);
    return EXIT_SUCCESS;
}

int lac_cmd_analyze(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    (void)setlocale(LC_CTYPE, "");
    struct analysis_run run = {.shows_progress = isatty(STDERR_FILENO) == 1};
    const char *what_if = lac_options_text(&options, "what-if", NULL);
    if (options.operand_count == 0) {
        (void)fprintf(stderr, "lacuna analyze: which trace? lacuna analyze PATH...\n");
        status = 2;
    } else if (what_if) {
        struct lac_error error = {0};
        run.diagnose.has_what_if = true;
        if (lac_what_if_parse(what_if, &run.diagnose.what_if, &error)) {
            (void)fprintf(stderr, "lacuna analyze: %s\n", error.message);
            status = 2;
        }
    }
    if (status < 0) {
        status = analyze(&run, &options);
    }
    run_done(&run);
    lac_options_done(&options);
    return status;
}
