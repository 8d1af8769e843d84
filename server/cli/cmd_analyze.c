/* lacuna analyze: diagnosis on the terminal. */

#include "analysis/compare/compare.h"
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/texts.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/conditions.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/read_ranks.h"
#include "server/cli/report_text.h"
#include "server/cli/sql_source.h"
#include "server/export/terminal_width.h"
#include "server/json/analysis_json.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "lacuna analyze PATH... [--json] [--what-if K=V,...] [--fail-if 'idle>20']\n"
    "\n"
    "Shows why the GPU was idle, what to change, and the expected gain. Several paths, an archive\n"
    "or a folder of traces are the ranks of one run: which rank is late, by how much, and why.\n"
    "--what-if replays the steps with changes: workers=N layout=nhwc pinned=1 async=1 sync=0\n"
    "allocator=0 module_load=0 launch=0 comm=X kernels=X (X a factor, such as 0.5). Of several\n"
    "ranks it says what the run would take, when all change alike.\n"
    "\n"
    "--fail-if takes METRIC OPERATOR VALUE, several with commas, and exits 3 when one holds:\n"
    "'step_time>300ms', 'throughput<900', and shares of a step in percent: 'idle>20',\n"
    "'not_computing>30', 'data_wait>10'. Of several ranks the lowest is looked at.\n"
    "\n"
    "--report prints one of the tables that users of nsys stats know, as text, CSV or JSON:\n"
    "cuda_gpu_kern_sum cuda_api_sum cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum nvtx_sum\n"
    "nvtx_gpu_proj_sum osrt_sum.\n";

static const struct lac_option options_table[] = {
    {.name = "json",
     .help = "print lacuna.analysis/1, or lacuna.run/1 for several",
     .flag_only = true},
    {.name = "what-if",
     .value = "K=V,...",
     .help = "replay the steps with changes",
     .flag_only = true},
    {.name = "fail-if",
     .value = "CONDITION",
     .help = "exit 3 if true: 'data_wait>10'",
     .flag_only = true},
    {.name = "report",
     .value = "NAME",
     .help = "a table as of nsys stats: cuda_gpu_kern_sum, ...",
     .flag_only = true},
    {.name = "csv", .help = "print CSV, of --report", .flag_only = true},
    LAC_OPTION_NAMES,
    {.name = "color", .help = "color (default: on a terminal)"},
    {0},
};

/** The report of one rank behind the run's: of the lowest, or of one that the others wait for. */
static enum lac_status add_rank(const struct lac_read_ranks *read,
                                const struct lac_report_options *report, char **text)
{
    const struct lac_analyzed_trace kept = {read->model, read->analysis};
    char name[80] = "The lowest rank alone";
    char *own = NULL, *both = NULL;
    enum lac_status status = lac_report_text(&kept, report, &own);
    if (strcmp(report->member, "rank") != 0) {
        (void)snprintf(name, sizeof(name), "%s",
                       read->is_waiting ? "The one that waits the most for data, alone"
                                        : "The first alone");
    } else if (read->is_waiting && read->kept_key[0] != INT32_MAX) {
        (void)snprintf(name, sizeof(name), "Rank %d alone, which waits the most for data",
                       (int)read->kept_key[0]);
    } else if (read->is_waiting) {
        (void)snprintf(name, sizeof(name), "The rank that waits the most for data, alone");
    }
    if (!status && asprintf(&both, "%s\n%s:\n\n%s", *text, name, own) < 0) {
        both = NULL;
        status = LAC_ERR_NOMEM;
    }
    free(own);
    free(*text);
    *text = both;
    return status;
}

/** What was read, of several ranks joined. */
struct answer {
    const struct lac_read_ranks *read;
    const struct lac_what_if_changes *changes; /**< NULL: nothing was asked */
    struct lac_run *run;                       /**< NULL of a single trace */
    struct lac_run_what_if what_if;            /**< of the run, when something was asked */
};

static enum lac_status make_run_json(const struct answer *answer, char **ret_text)
{
    const struct lac_read_ranks *read = answer->read;
    const struct lac_run_json_options json = {
        .is_pretty = true, .changes = answer->changes, .what_if = &answer->what_if};
    struct lac_run_member *members = calloc(read->count + 1, sizeof(*members));
    if (members == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t i = 0; i < read->count; i++) {
        members[i].document = read->ranks[i].document;
    }
    enum lac_status status = lac_run_json(answer->run, members, &json, ret_text, NULL);
    free(members);
    return status;
}

/** The document or the report of what was read. */
static enum lac_status make_text(const struct answer *answer, const struct lac_options *options,
                                 char **ret_text)
{
    const struct lac_read_ranks *read = answer->read;
    const struct lac_run *run = answer->run;
    const struct lac_analyzed_trace only = {read->model, read->analysis};
    if (lac_options_on(options, "json", false)) {
        return run != NULL ? make_run_json(answer, ret_text)
                           : lac_analysis_json(&only, true, ret_text, NULL);
    }
    bool is_terminal = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
    struct lac_report_options report = {
        .is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
        .has_color = lac_options_on(options, "color", is_terminal),
        .columns = lac_terminal_columns(),
        .member = read->are_runs                                                 ? "run"
                  : read->has_rank || (run != NULL && run->collective_count > 0) ? "rank"
                                                                                 : "trace",
    };
    if (run == NULL) {
        return lac_report_text(&only, &report, ret_text);
    }
    /* where no rank stands out, what there is to change is in each of them */
    enum lac_status status = lac_report_run_text(run, &report, ret_text);
    return status || run->has_finding ? status : add_rank(read, &report, ret_text);
}

static enum lac_status print(const struct answer *answer, const struct lac_options *options)
{
    char *text = NULL;
    enum lac_status status = make_text(answer, options, &text);
    if (status) {
        lac_complain("lacuna analyze", NULL, "%s", lac_status_text(status));
        return status;
    }
    bool is_written = fputs(text, stdout) != EOF;
    if (text[0] != '\0' && text[strlen(text) - 1] != '\n') {
        is_written = fputs("\n", stdout) != EOF && is_written;
    }
    free(text);
    return fflush(stdout) == 0 && is_written ? LAC_OK : LAC_ERR_IO;
}

static void print_wrapped(const char *label, const char *text)
{
    lac_print_labeled(label, 12, text);
}

/** A step's time in three digits. */
static struct lac_text32 step_text(int64_t ns)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1.0, "ns"}};
    size_t at = 0;
    while (at + 1 < LAC_COUNT_OF(units) && (double)ns < 0.9995 * units[at].ns) {
        at++;
    }
    double value = (double)ns / units[at].ns;
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    struct lac_text32 text;
    (void)snprintf(text.text, sizeof(text.text), "%.*f %s", decimals, value, units[at].unit);
    return text;
}

/** An answer, or why there is none, behind a label of at most twelve columns. */
static void print_step(const char *label, const char *changes, const struct lac_what_if_step *step,
                       int64_t now_ns, const char *why_not)
{
    char text[256];
    if (why_not[0] != '\0') {
        char sentence[512];
        (void)snprintf(sentence, sizeof(sentence), "%s%snot known: %s", changes,
                       changes[0] != '\0' ? ": " : "", why_not);
        print_wrapped(label, sentence);
        return;
    }
    char band[80] = "exact";
    if (step->high_ns > step->low_ns) {
        (void)snprintf(band, sizeof(band), "%s to %s", step_text(step->low_ns).text,
                       step_text(step->high_ns).text);
    }
    (void)snprintf(text, sizeof(text), "%s%s%s per step (%s), now %s", changes,
                   changes[0] != '\0' ? ": " : "", step_text(step->mean_ns).text, band,
                   step_text(now_ns).text);
    print_wrapped(label, text);
}

static void print_what_if(const struct answer *answer, const struct lac_options *options)
{
    const char *changes = lac_options_text(options, "what-if", NULL);
    if (changes == NULL || lac_options_on(options, "json", false)) {
        return;
    }
    if (answer->run == NULL) {
        const struct lac_read_rank *only = &answer->read->ranks[0];
        print_step("what if", changes, &only->what_if.step, only->step_mean_ns,
                   only->what_if.why_not);
        print_wrapped("  given", only->what_if_assumption);
        return;
    }
    const struct lac_run_what_if *whole = &answer->what_if;
    print_step("what if", changes, &whole->step, whole->now_ns, whole->why_not);
    print_wrapped("  given", whole->assumption);
    for (size_t i = 0; i < answer->read->count && whole->why_not[0] != '\0'; i++) {
        const struct lac_read_rank *rank = &answer->read->ranks[i];
        char label[24];
        (void)snprintf(label, sizeof(label), "  rank %d", (int)answer->run->ranks[i].rank);
        print_step(label, "", &rank->what_if.step, rank->step_mean_ns, rank->what_if.why_not);
    }
}

/** Join what was read. */
static enum lac_status join(struct answer *answer)
{
    enum lac_status status =
        answer->read->count > 1 ? lac_read_ranks_join(answer->read, &answer->run) : LAC_OK;
    if (!status && answer->run != NULL && answer->changes != NULL) {
        status = lac_read_ranks_what_if(answer->read, answer->run, &answer->what_if);
    }
    if (status) {
        lac_complain("lacuna analyze", NULL, "%s", lac_status_text(status));
    }
    return status;
}

/** The exit status that the conditions ask for. A trace alone is compared with itself. */
static int decide(const struct lac_read_ranks *read, struct lac_conditions *conditions)
{
    const struct lac_compare_side side = {read->model, read->analysis, NULL};
    struct lac_comparison *comparison = NULL;
    if (conditions->count == 0) {
        return EXIT_SUCCESS;
    }
    enum lac_status status = lac_compare(&side, &side, &comparison);
    if (status) {
        lac_complain("lacuna analyze", NULL, "%s", lac_status_text(status));
        return EXIT_FAILURE;
    }
    int exit_status = lac_conditions_decide("lacuna analyze", conditions, comparison, &side, false);
    lac_comparison_destroy(comparison);
    return exit_status;
}

/** A change needs a trace before. @return false with a line on stderr */
static bool read_conditions(const struct lac_options *options, struct lac_conditions *conditions)
{
    if (!lac_conditions_read("lacuna analyze", options, conditions)) {
        return false;
    }
    for (uint32_t i = 0; i < conditions->count; i++) {
        if (conditions->at[i].is_change) {
            lac_complain(
                "lacuna analyze", NULL,
                "'%s' is a change: lacuna compare A B --fail-if takes it; here give a value",
                conditions->at[i].text);
            return false;
        }
    }
    return true;
}

static int analyze(const struct lac_diagnose_options *diagnose, const struct lac_options *options,
                   struct lac_conditions *conditions)
{
    const struct lac_read_ranks_options reading = {
        .command = "lacuna analyze",
        .paths = options->operands,
        .path_count = (size_t)options->operand_count,
        .diagnose = diagnose,
        .wants_documents = lac_options_on(options, "json", false),
        .keeps_lowest = !lac_options_on(options, "json", false) || conditions->count > 0,
        .keeps_waiting = conditions->count == 0,
        .tells_runs = !lac_options_on(options, "json", false),
    };
    struct lac_read_ranks read = {0};
    struct answer answer = {.read = &read,
                            .changes = diagnose->has_what_if ? &diagnose->what_if : NULL};
    int exit_status = EXIT_FAILURE;
    if (!lac_read_ranks(&reading, &read) && !join(&answer) && !print(&answer, options)) {
        print_what_if(&answer, options);
        exit_status = decide(&read, conditions);
    }
    lac_run_destroy(answer.run);
    lac_read_ranks_done(&read);
    return exit_status;
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
    struct lac_diagnose_options diagnose = {0};
    const char *what_if = lac_options_text(&options, "what-if", NULL);
    if (options.operand_count == 0) {
        (void)fprintf(stderr, "lacuna analyze: no trace given: lacuna analyze PATH...\n");
        status = 2;
    } else if (what_if != NULL) {
        struct lac_error error = {0};
        diagnose.has_what_if = true;
        if (lac_what_if_parse(what_if, &diagnose.what_if, &error)) {
            lac_complain("lacuna analyze", NULL, "%s", error.message);
            status = 2;
        }
    }
    struct lac_conditions conditions = {.count = 0};
    if (status < 0 && !read_conditions(&options, &conditions)) {
        status = 2;
    }
    struct lac_own_names own = {NULL, NULL};
    if (status < 0 && lac_own_names_read("lacuna analyze", &options, &own)) {
        status = EXIT_FAILURE;
    }
    const char *report = lac_options_text(&options, "report", NULL);
    if (status < 0 && report != NULL) {
        status = lac_sql_report_run(report, &options, own.names);
    } else if (status < 0) {
        diagnose.names = own.names;
        status = analyze(&diagnose, &options, &conditions);
    }
    lac_own_names_done(&own);
    lac_options_done(&options);
    return status;
}
