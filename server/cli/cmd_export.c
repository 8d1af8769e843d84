/* lacuna export: the way out. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/flame/flame.h"
#include "analysis/model/status.h"
#include "collector/base/terminal_text.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/read_trace.h"
#include "server/cli/sql_source.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/sql/export_sqlite.h"
#include "server/store/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "lacuna export PATH --to chrome|perfetto|folded|speedscope|sqlite|html|markdown [-o FILE]\n"
    "\n"
    "html and markdown are reports to share: verdict, findings in full, settings, and in html\n"
    "pictures; one file, no scripts. chrome is JSON that other viewers open, and that imports\n"
    "again. perfetto is Perfetto's own format, with rows for why each GPU was idle. folded and\n"
    "speedscope are flame graphs. sqlite is plain tables: those that `lacuna sql --tables`\n"
    "describes.\n"
    "Identifying data in the file (host and user names, paths, command lines, names chosen by "
    "people)\n"
    "is listed on stderr; --redact removes it by category.\n";

static const struct lac_option options_table[] = {
    {.name = "to", .value = "FORM", .help = "what to write", .flag_only = true},
    LAC_OPTION_NAMES,
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .help = "output file (stdout)",
     .flag_only = true},
    {.name = "redact",
     .value = "KINDS",
     .help = "remove hosts,users,paths,argv,names",
     .flag_only = true},
    {.name = "data",
     .letter = 'd',
     .value = "DIR",
     .help = "the data folder, for a trace's id (sqlite)"},
    {.name = "metric",
     .value = "gpu|waiting|cpu",
     .help = "for folded stacks: gpu (cpu without a GPU)",
     .flag_only = true},
    {0},
};

enum form {
    FORM_CHROME = 0,
    FORM_PERFETTO,
    FORM_FOLDED,
    FORM_SPEEDSCOPE,
    FORM_SQLITE,
    FORM_HTML,
    FORM_MARKDOWN
};

struct export_job {
    enum form form;
    int metric; /**< enum lac_flame_metric, -1 not given */
    const char *path;
    const char *output; /**< NULL: stdout */
    const char *redact; /**< NULL: nothing */
    const struct lac_names *names;
    struct lac_trace_file *file; /**< of sqlite, which reads a trace file and no model */
};

/** Index of `text` in the list, or -1 with a line on stderr. */
static int choose(const char *what, const char *text, const char *const *words)
{
    for (int i = 0; text != NULL && words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            return i;
        }
    }
    (void)fprintf(stderr, "lacuna export: --%s must be one of:", what);
    for (int i = 0; words[i] != NULL; i++) {
        (void)fprintf(stderr, " %s", words[i]);
    }
    (void)fputc('\n', stderr);
    return -1;
}

/* -- what leaves ------------------------------------------------------------------------------ */

static void tell_what_leaves(const struct lac_redactor *redactor)
{
    bool has_any = false;
    for (int kind = 0; kind < LAC_REDACT_KIND_COUNT_; kind++) {
        if (redactor->met[kind].count == 0) {
            continue;
        }
        bool is_out = redactor->leave_out[kind];
        (void)fprintf(stderr, "%s %s (%s): ", is_out ? "removed:" : "in the file:",
                      lac_redact_words[kind].label, lac_redact_words[kind].id);
        for (unsigned i = 0; i < redactor->met[kind].item_count && i < 3; i++) {
            (void)fputs(i > 0 ? ", " : "", stderr);
            const char *item = redactor->met[kind].item[i];
            lac_terminal_print(stderr, item, strlen(item));
        }
        (void)fputs(redactor->met[kind].item_count > 3 ? ", ...\n" : "\n", stderr);
        has_any = has_any || !is_out;
    }
    if (has_any) {
        (void)fputs("remove with --redact hosts,users,paths,argv,names\n", stderr);
    }
}

/* -- writing ---------------------------------------------------------------------------------- */

static const char *sqlite_text(void *context, enum lac_export_text what, const char *text)
{
    struct lac_redactor *redactor = context;
    const bool leaves_out_names = redactor->leave_out[LAC_REDACT_NAMES];
    const char *plain = what == LAC_EXPORT_TEXT_ARGV    ? lac_redact_argv(redactor, text)
                        : what == LAC_EXPORT_TEXT_GIVEN ? lac_redact_given(redactor, text, "range")
                                                        : lac_redact(redactor, text);
    if ((what == LAC_EXPORT_TEXT_SENTENCE && leaves_out_names) ||
        (what == LAC_EXPORT_TEXT_ARGS && (leaves_out_names || strcmp(plain, text) != 0))) {
        return ""; /* as in the other forms: left out whole */
    }
    return plain;
}

static enum lac_status write_form(const struct export_job *job,
                                  const struct lac_report_source *source, FILE *file)
{
    struct lac_export_out out = {.file = file};
    bool has_gpu = source->analysis != NULL && source->analysis->device_count > 0;
    int metric = job->metric >= 0 ? job->metric : has_gpu ? LAC_FLAME_GPU : LAC_FLAME_CPU;
    switch (job->form) {
    case FORM_CHROME:
        lac_export_chrome(&out, source);
        break;
    case FORM_PERFETTO:
        lac_export_perfetto(&out, source);
        break;
    case FORM_FOLDED:
        lac_export_folded(&out, source, (enum lac_flame_metric)metric);
        break;
    case FORM_SPEEDSCOPE:
        lac_export_speedscope(&out, source);
        break;
    case FORM_HTML:
        lac_report_html(&out.buffer, source);
        break;
    case FORM_MARKDOWN:
        lac_report_markdown(&out.buffer, source);
        break;
    case FORM_SQLITE:
        break; /* writes its file itself */
    }
    return lac_export_finish(&out);
}

static void remove_staged(void *path)
{
    (void)unlink(path);
}

/** Write to a file beside the final one, which appears when it is complete. */
static enum lac_status write_file(const struct export_job *job,
                                  const struct lac_report_source *source, struct lac_error *reterr)
{
    char staged[4200];
    int length = snprintf(staged, sizeof(staged), "%s.XXXXXX", job->output);
    if (length < 0 || (size_t)length >= sizeof(staged)) {
        return lac_fail(reterr, LAC_ERR_MISUSE, 0, "the path is too long");
    }
    struct lac_ending ending;
    lac_ending_begin(&ending, remove_staged, staged);
    int fd = mkostemp(staged, O_CLOEXEC);
    if (fd < 0) {
        lac_ending_over(&ending);
        return lac_fail(reterr, LAC_ERR_IO, 0, "cannot be written: %s", strerror(errno));
    }
    enum lac_status status = LAC_OK;
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    if (job->form == FORM_SQLITE) {
        const struct lac_export_sqlite sqlite = {job->file, sqlite_text, source->redactor};
        (void)close(fd);
        status = lac_export_sqlite(&sqlite, staged, reterr);
    } else {
        FILE *file = fdopen(fd, "w");
        status = file != NULL ? write_form(job, source, file) : LAC_ERR_IO;
        if (file != NULL ? fclose(file) != 0 : close(fd) != 0) {
            status = status ? status : LAC_ERR_IO;
        }
        if (status) {
            (void)lac_fail(reterr, status, 0,
                           status == LAC_ERR_NOMEM ? "out of memory" : "writing failed: %s",
                           strerror(errno));
        }
    }
    if (!status && rename(staged, job->output) != 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot be written: %s", strerror(errno));
    }
    if (status) {
        (void)unlink(staged);
    }
    lac_ending_over(&ending);
    return status;
}

static enum lac_status write_all(const struct export_job *job,
                                 const struct lac_report_source *source)
{
    struct lac_error error = {0};
    enum lac_status status =
        job->output != NULL ? write_file(job, source, &error) : write_form(job, source, stdout);
    if (status) {
        bool is_said = error.message[0] != '\0' || status == LAC_ERR_NOMEM;
        lac_complain("lacuna export", job->output != NULL ? job->output : "stdout", "%s",
                     is_said ? lac_error_text(&error, status) : "writing failed");
    }
    return status;
}

/** What is to be written, and what to leave out of it. @return the exit status */
static int export_source(const struct export_job *job, const struct lac_model *model,
                         const struct lac_analysis *analysis)
{
    struct lac_redactor redactor = {0};
    struct lac_error error = {0};
    int exit_status = 2;
    if (lac_redactor_init(&redactor, job->redact, model, &error)) {
        lac_complain("lacuna export", NULL, "%s", error.message);
    } else {
        const struct lac_report_source source = {
            .model = model, .analysis = analysis, .redactor = &redactor};
        exit_status = write_all(job, &source) ? EXIT_FAILURE : EXIT_SUCCESS;
        if (exit_status == EXIT_SUCCESS) {
            tell_what_leaves(&redactor);
        }
    }
    lac_redactor_done(&redactor);
    return exit_status;
}

static int export_tables(struct export_job *job, const struct lac_options *options)
{
    if (lac_sql_source_open("lacuna export", job->path, options, job->names, &job->file)) {
        return EXIT_FAILURE;
    }
    int exit_status = export_source(job, lac_trace_file_head(job->file), NULL);
    lac_trace_file_close(job->file);
    return exit_status;
}

static int export_trace(const struct export_job *job)
{
    struct lac_read_trace trace = {0};
    struct lac_error error = {0};
    if (lac_read_trace("lacuna export", job->path, job->names, &trace)) {
        return EXIT_FAILURE;
    }
    int exit_status = EXIT_FAILURE;
    enum lac_status status = lac_diagnose_add_tracks(trace.analysis, trace.model);
    if (status) {
        lac_complain("lacuna export", job->path, "%s", lac_error_text(&error, status));
    } else {
        exit_status = export_source(job, trace.model, trace.analysis);
    }
    lac_read_trace_done(&trace);
    return exit_status;
}

/** @return -1 to go on, else the exit status */
static int read_job(const struct lac_options *options, struct export_job *job)
{
    static const char *const forms[] = {"chrome", "perfetto", "folded",   "speedscope",
                                        "sqlite", "html",     "markdown", NULL};
    static const char *const metrics[] = {"gpu", "waiting", "cpu", NULL};
    const char *metric = lac_options_text(options, "metric", NULL);
    if (options->operand_count != 1) {
        (void)fprintf(stderr, "lacuna export: give one trace: lacuna export PATH --to html\n");
        return 2;
    }
    int form = choose("to", lac_options_text(options, "to", NULL), forms);
    if (form < 0) {
        return 2;
    }
    *job = (struct export_job){.form = (enum form)form,
                               .metric = -1,
                               .path = options->operands[0],
                               .output = lac_options_text(options, "output", NULL),
                               .redact = lac_options_text(options, "redact", NULL)};
    if (metric != NULL) {
        job->metric = choose("metric", metric, metrics);
        if (job->metric < 0) {
            return 2;
        }
    }
    if (job->output != NULL && strcmp(job->output, "-") == 0) {
        job->output = NULL;
    }
    if (job->form == FORM_SQLITE && job->output == NULL) {
        (void)fprintf(stderr, "lacuna export: sqlite needs a file: -o FILE\n");
        return 2;
    }
    return -1;
}

int lac_cmd_export(int argc, char **argv)
{
    struct lac_options options;
    struct export_job job;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status < 0) {
        status = read_job(&options, &job);
    }
    struct lac_own_names own = {NULL, NULL};
    if (status < 0 && lac_own_names_read("lacuna export", &options, &own)) {
        status = EXIT_FAILURE;
    }
    if (status < 0) {
        job.names = own.names;
        status = job.form == FORM_SQLITE ? export_tables(&job, &options) : export_trace(&job);
    }
    lac_options_done(&options);
    return status;
}
