/* lacuna export: the way out. */

#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/terminal_text.h"
#include "server/base/buffer.h"
#include "server/base/output_file.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/ending.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/read_trace.h"
#include "server/cli/sql_source.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/picture.h"
#include "server/export/raster/svg_png.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/sqlite_text.h"
#include "server/export/step_spans.h"
#include "server/json/flame_json.h"
#include "server/sql/export_sqlite.h"
#include "server/sql/result_text.h"
#include "server/sql/sql_query.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "lacuna export PATH|ID --to FORM [-o FILE]\n"
    "\n"
    "FORM is html, markdown, svg, png, csv, chrome, perfetto, folded, speedscope or sqlite.\n"
    "\n"
    "html and markdown are reports to share: verdict, findings in full, settings, and in html\n"
    "pictures; one file, no scripts. chrome is JSON that other viewers open, and that imports\n"
    "again. perfetto is Perfetto's own format, with rows for why each GPU was idle. sqlite is\n"
    "plain tables: those that `lacuna sql --tables` describes; csv is one of them. folded and\n"
    "speedscope are flame graphs of all time, or of the measured steps (--steps measured). svg\n"
    "and png are a picture: --view timeline of what the first finding is about, or from --from\n"
    "to --until; --view flame as above, or of that stretch.\n"
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
    {.name = "data", .letter = 'd', .value = "DIR", .help = "the data folder, for a trace's id"},
    {.name = "metric",
     .value = "gpu|waiting|cpu|copies|memory|profile",
     .help = "of folded and pictures: gpu (cpu without a GPU)",
     .flag_only = true},
    {.name = "view",
     .value = "timeline|flame",
     .help = "of a picture: what to draw",
     .flag_only = true},
    {.name = "from",
     .value = "TIME",
     .help = "of a picture: 1.5s, 20ms, 300us, 5ns",
     .flag_only = true},
    {.name = "until", .value = "TIME", .help = "of a picture", .flag_only = true},
    {.name = "steps",
     .value = "all|measured",
     .help = "of flame graphs: all time, or the steps that the verdict measures",
     .flag_only = true},
    {.name = "theme", .value = "light|dark", .help = "of png", .flag_only = true},
    {.name = "table",
     .value = "NAME",
     .help = "of csv: as in lacuna sql --tables",
     .flag_only = true},
    {0},
};

enum form {
    FORM_CHROME = LAC_EXPORT_CHROME,
    FORM_PERFETTO = LAC_EXPORT_PERFETTO,
    FORM_FOLDED = LAC_EXPORT_FOLDED,
    FORM_SPEEDSCOPE = LAC_EXPORT_SPEEDSCOPE,
    FORM_SQLITE,
    FORM_HTML,
    FORM_MARKDOWN,
    FORM_SVG,
    FORM_CSV,
    FORM_PNG
};

struct export_job {
    enum form form;
    int metric; /**< enum lac_flame_metric, -1 not given */
    bool is_flame;
    bool is_measured; /**< of a flame graph: the measured steps alone */
    bool is_dark;
    int64_t from_ns, until_ns; /**< of a picture; negative: not given */
    const char *table;         /**< of csv */
    const char *path;
    const char *output; /**< NULL: stdout */
    const char *redact; /**< NULL: nothing */
    const struct lac_names *names;
    struct lac_trace_file *file; /**< of sqlite, which reads a trace file and no model; of a trace
                                      of a data folder */
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

static enum lac_status write_table(const struct export_job *job,
                                   const struct lac_report_source *source, FILE *file,
                                   struct lac_error *reterr)
{
    const struct lac_export_sqlite tables = {job->file, lac_export_sqlite_text, source->redactor};
    struct lac_sql_result result = {.form = LAC_SQL_FORM_CSV, .file = file};
    const struct lac_sql_sink sink = lac_sql_result_sink(&result);
    enum lac_status status = lac_export_table(&tables, job->table, &sink, reterr);
    if (!status && lac_sql_result_finish(&result) != LAC_OK) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "writing failed");
    }
    lac_sql_result_done(&result);
    return status;
}

static enum lac_status write_picture(const struct export_job *job,
                                     const struct lac_report_source *source,
                                     enum lac_flame_metric metric, struct lac_buffer *out,
                                     struct lac_error *reterr)
{
    struct lac_view view;
    struct lac_step_spans steps = {0};
    struct lac_flame *flame = NULL;
    enum lac_status status = lac_picture_view(source->analysis, source->model->info.duration_ns,
                                              job->from_ns, job->until_ns, &view, reterr);
    if (!status && !job->is_flame) {
        return lac_picture_timeline(out, source, &view, source->model, reterr);
    }
    if (!status && job->is_measured && metric != LAC_FLAME_PROFILE) {
        status = lac_step_spans_measured(source->analysis, lac_flame_is_of_threads(metric), &steps);
    }
    if (!status) {
        status = lac_picture_make_flame(source->model, metric, job->from_ns, job->until_ns, &steps,
                                        &flame);
    }
    if (status == LAC_ERR_NOMEM) {
        (void)lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    if (!status) {
        status = lac_picture_flame(out, source, flame, metric, reterr);
    }
    lac_flame_destroy(flame);
    lac_step_spans_done(&steps);
    return status;
}

/** The same painted. */
static enum lac_status write_png(const struct export_job *job,
                                 const struct lac_report_source *source,
                                 enum lac_flame_metric metric, struct lac_buffer *out,
                                 struct lac_error *reterr)
{
    struct lac_buffer svg = {0};
    enum lac_status status = write_picture(job, source, metric, &svg, reterr);
    if (!status) {
        status = lac_png_of_svg(svg.bytes, svg.size_bytes, job->is_dark, out, reterr);
    }
    lac_buffer_done(&svg);
    return status;
}

static enum lac_status write_form(const struct export_job *job,
                                  const struct lac_report_source *source, FILE *file,
                                  struct lac_error *reterr)
{
    struct lac_export_out out = {.file = file};
    enum lac_status status = LAC_OK;
    enum lac_flame_metric metric =
        job->metric >= 0 ? (enum lac_flame_metric)job->metric : lac_export_metric(source->model);
    switch (job->form) {
    case FORM_CHROME:
    case FORM_PERFETTO:
    case FORM_FOLDED:
    case FORM_SPEEDSCOPE:
        lac_export_form((enum lac_export_form)job->form,
                        &(struct lac_export_flame){metric, job->is_measured}, &out, source);
        break;
    case FORM_HTML:
        lac_report_html(&out.buffer, source);
        break;
    case FORM_MARKDOWN:
        lac_report_markdown(&out.buffer, source);
        break;
    case FORM_SVG:
        status = write_picture(job, source, metric, &out.buffer, reterr);
        break;
    case FORM_PNG:
        status = write_png(job, source, metric, &out.buffer, reterr);
        break;
    case FORM_CSV:
        status = write_table(job, source, file, reterr);
        break;
    case FORM_SQLITE:
        break; /* writes its file itself */
    }
    if (status) {
        lac_buffer_done(&out.buffer);
        return status;
    }
    return lac_export_finish(&out);
}

/** Write to `fd`, or by name what SQLite insists on opening itself. */
static enum lac_status write_opened(const struct export_job *job,
                                    const struct lac_report_source *source, int fd,
                                    const char *staged, struct lac_error *reterr)
{
    if (job->form == FORM_SQLITE) {
        const struct lac_export_sqlite sqlite = {job->file, lac_export_sqlite_text,
                                                 source->redactor};
        (void)close(fd);
        return staged[0] != '\0'
                   ? lac_export_sqlite(&sqlite, staged, reterr)
                   : lac_fail(reterr, LAC_ERR_IO, 0, "is no regular file, which --to sqlite needs");
    }
    FILE *file = fdopen(fd, "w");
    enum lac_status status = file != NULL ? write_form(job, source, file, reterr) : LAC_ERR_IO;
    if (file != NULL ? fclose(file) != 0 : close(fd) != 0) {
        status = status ? status : LAC_ERR_IO;
    }
    if (status && reterr->message[0] == '\0') {
        (void)lac_fail(reterr, status, 0,
                       status == LAC_ERR_NOMEM ? "out of memory" : "writing failed: %s",
                       strerror(errno));
    }
    return status;
}

static enum lac_status write_file(const struct export_job *job,
                                  const struct lac_report_source *source, struct lac_error *reterr)
{
    struct lac_output_file output;
    enum lac_status status = lac_output_file_find(&output, job->output, reterr);
    if (status) {
        return status;
    }
    struct lac_ending ending;
    lac_ending_begin(&ending, lac_output_file_remove, &output);
    int fd = lac_output_file_open(&output, reterr);
    status = fd >= 0 ? write_opened(job, source, fd, output.staged, reterr) : LAC_ERR_IO;
    if (!status) {
        status = lac_output_file_publish(&output, reterr);
    } else {
        lac_output_file_remove(&output);
    }
    lac_ending_over(&ending);
    return status;
}

static enum lac_status write_all(const struct export_job *job,
                                 const struct lac_report_source *source)
{
    struct lac_error error = {0};
    enum lac_status status = job->output != NULL ? write_file(job, source, &error)
                                                 : write_form(job, source, stdout, &error);
    if (status && (job->output != NULL || !ferror(stdout))) {
        bool is_said = error.message[0] != '\0' || status == LAC_ERR_NOMEM;
        bool is_ours = status == LAC_ERR_NOT_FOUND || status == LAC_ERR_MISUSE;
        lac_complain("lacuna export",
                     is_ours               ? job->path
                     : job->output != NULL ? job->output
                                           : "stdout",
                     "%s", is_said ? lac_error_text(&error, status) : "writing failed");
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

/** A trace of a data folder, also one that several files were joined to: all is in its file. */
static int export_stored(struct export_job *job, const char *path)
{
    const uint64_t cache_bytes = UINT64_MAX / 4; /* the model alone, as large as it is */
    const struct lac_model *model = NULL;
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    int exit_status = EXIT_FAILURE;
    enum lac_status status = access(path, F_OK) == 0
                                 ? lac_trace_file_open(path, cache_bytes, &job->file, &error)
                                 : lac_fail(&error, LAC_ERR_NOT_FOUND, 0,
                                            "is no file, and no trace of the data folder (--data)");
    if (!status) {
        status = lac_trace_file_whole_model(job->file, &model, &error);
    }
    if (!status) {
        const struct lac_diagnose_options options = {.names = job->names};
        status = lac_diagnose(model, &options, &analysis, &error);
    }
    if (status) {
        lac_complain("lacuna export", job->path, "%s", lac_error_text(&error, status));
    } else {
        exit_status = export_source(job, model, analysis);
    }
    lac_analysis_destroy(analysis);
    lac_trace_file_release_model(job->file, model);
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

/** A time of the trace, in ns; with a unit or without. @return false: it is none */
static bool read_time(const struct lac_options *options, const char *name, int64_t *ret_ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1.0}, {"", 1.0}};
    const char *text = lac_options_text(options, name, NULL);
    *ret_ns = -1;
    if (text == NULL) {
        return true;
    }
    char *end = NULL;
    double value = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1.0;
    for (size_t i = 0; end != NULL && i < LAC_COUNT_OF(units); i++) {
        if (strcmp(end, units[i].unit) == 0 && value * units[i].ns <= (double)LAC_TIME_MAX_NS) {
            *ret_ns = (int64_t)(value * units[i].ns);
            return true;
        }
    }
    (void)fprintf(stderr, "lacuna export: --%s takes a time from the trace's beginning: 1.5s\n",
                  name);
    return false;
}

/** What belongs to pictures and csv alone. @return false: a line on stderr says what is wrong */
static bool read_picture(const struct lac_options *options, struct export_job *job)
{
    static const char *const views[] = {"timeline", "flame", NULL};
    static const char *const themes[] = {"light", "dark", NULL};
    static const char *const steps_words[] = {"all", "measured", NULL};
    static const char *const of_picture[] = {"view", "from", "until", "theme"};
    const bool is_picture = job->form == FORM_SVG || job->form == FORM_PNG;
    const char *theme = lac_options_text(options, "theme", NULL);
    const char *view = lac_options_text(options, "view", NULL);
    const char *steps = lac_options_text(options, "steps", NULL);
    job->table = lac_options_text(options, "table", NULL);
    for (size_t i = 0; i < LAC_COUNT_OF(of_picture); i++) {
        if (!is_picture && lac_options_text(options, of_picture[i], NULL) != NULL) {
            (void)fprintf(stderr, "lacuna export: --%s goes with --to svg or png\n", of_picture[i]);
            return false;
        }
    }
    if ((job->form == FORM_CSV) != (job->table != NULL)) {
        (void)fprintf(stderr, job->table != NULL
                                  ? "lacuna export: --table goes with --to csv\n"
                                  : "lacuna export: csv needs --table NAME: lacuna sql --tables\n");
        return false;
    }
    if (job->table != NULL && lac_sql_table_named(job->table) == NULL) {
        (void)fprintf(stderr, "lacuna export: no such table; lacuna sql --tables lists them\n");
        return false;
    }
    int which = view != NULL ? choose("view", view, views) : 0;
    const int chosen = theme != NULL ? choose("theme", theme, themes) : 0;
    const int counted = steps != NULL ? choose("steps", steps, steps_words) : 0;
    job->is_flame = which == 1;
    job->is_measured = counted == 1;
    const bool is_stacks = job->form == FORM_FOLDED || job->form == FORM_SPEEDSCOPE;
    const bool is_stretch = lac_options_text(options, "from", NULL) != NULL ||
                            lac_options_text(options, "until", NULL) != NULL;
    const bool is_of_steps = is_stacks || (is_picture && !job->is_measured) ||
                             (is_picture && job->is_flame && !is_stretch);
    if (steps != NULL && !is_of_steps) {
        (void)fprintf(stderr, "lacuna export: --steps goes with folded, speedscope and --view "
                              "flame, without --from and --until\n");
        return false;
    }
    job->is_dark = chosen == 1;
    if (theme != NULL && job->form == FORM_SVG) {
        (void)fprintf(stderr, "lacuna export: --theme goes with --to png: svg has both\n");
        return false;
    }
    return which >= 0 && chosen >= 0 && counted >= 0 && read_time(options, "from", &job->from_ns) &&
           read_time(options, "until", &job->until_ns);
}

/** @return -1 to go on, else the exit status */
static int read_job(const struct lac_options *options, struct export_job *job)
{
    static const char *const forms[] = {"chrome", "perfetto", "folded",   "speedscope",
                                        "sqlite", "html",     "markdown", "svg",
                                        "csv",    "png",      NULL};
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
        job->metric = choose("metric", metric, lac_flame_metrics);
        if (job->metric < 0) {
            return 2;
        }
    }
    if (!read_picture(options, job)) {
        return 2;
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
    char stored[PATH_MAX + 64];
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
        status = job.form == FORM_SQLITE || job.form == FORM_CSV ? export_tables(&job, &options)
                 : lac_sql_source_is_stored(job.path, &options, stored, sizeof(stored))
                     ? export_stored(&job, stored)
                     : export_trace(&job);
    }
    lac_options_done(&options);
    return status;
}
