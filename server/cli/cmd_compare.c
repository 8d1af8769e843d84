/* lacuna compare: before and after, with a noise test. */

#include "analysis/compare/compare.h"
#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/compare_text.h"
#include "server/cli/complain.h"
#include "server/cli/conditions.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/read_ranks.h"
#include "server/export/terminal_width.h"
#include "server/json/compare_json.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "lacuna compare A B [--json] [--fail-if 'step_time>+3%']\n\n"
    "Compares before and after: whether B is faster than A by more than noise, what was changed,\n"
    "where the time went, and whether the predictions of A's findings came true. A and B may be\n"
    "runs (a folder or an archive of ranks): their lowest ranks are compared, and their "
    "stragglers.\n\n"
    "--fail-if takes METRIC OPERATOR VALUE, several with commas, and exits 3 when one holds.\n"
    "  step_time, throughput   '>+3%' is a change from A to B, and must exceed the noise;\n"
    "                          'step_time>300ms' and 'throughput<900' look at B alone\n"
    "  idle not_computing compute exposed_comm exposed_copy, and causes of idle time such as\n"
    "  data_wait sync launch   shares of a step: 'idle>+2%' is points more than A, 'idle>20' B "
    "alone\n";

static const struct lac_option options_table[] = {
    {.name = "json", .help = "print lacuna.compare/1", .flag_only = true},
    LAC_OPTION_NAMES,
    {.name = "fail-if",
     .value = "CONDITION",
     .help = "exit 3 if true: 'step_time>+3%'",
     .flag_only = true},
    {0},
};

static int print(const struct lac_compare_side *sides, const struct lac_comparison *comparison,
                 const struct lac_compare_names *names, const struct lac_conditions *conditions,
                 bool is_json)
{
    struct lac_buffer out = {0};
    if (is_json) {
        lac_compare_write_json(&out, &sides[0], &sides[1], comparison, names, conditions->results,
                               conditions->count);
        lac_buffer_puts(&out, "\n");
    } else {
        bool is_ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
        lac_compare_text(&out, &sides[0], &sides[1], comparison, names, is_ascii,
                         lac_terminal_columns());
    }
    if (out.status) {
        lac_complain("lacuna compare", NULL, "%s", lac_status_text(out.status));
        lac_buffer_done(&out);
        return EXIT_FAILURE;
    }
    bool is_written = fwrite(out.bytes, 1, out.size_bytes, stdout) == out.size_bytes;
    is_written = fflush(stdout) == 0 && is_written;
    lac_buffer_done(&out);
    return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}

/** A side as it was read: one trace, or the ranks of a run. */
struct reading {
    struct lac_read_ranks ranks;
    struct lac_run *run; /**< NULL: one trace */
};

static enum lac_status read_side(char *const *path, const struct lac_names *names,
                                 struct reading *ret)
{
    const struct lac_diagnose_options diagnose = {.names = names, .wants_worker_steps = true};
    const struct lac_read_ranks_options options = {.command = "lacuna compare",
                                                   .paths = path,
                                                   .path_count = 1,
                                                   .diagnose = &diagnose,
                                                   .keeps_lowest = true};
    enum lac_status status = lac_read_ranks(&options, &ret->ranks);
    if (!status && ret->ranks.count > 1) {
        status = lac_read_ranks_join(&ret->ranks, &ret->run);
        if (status) {
            lac_complain(options.command, *path, "%s", lac_status_text(status));
        }
    }
    return status;
}

static int compare(const struct lac_options *options, struct lac_conditions *conditions)
{
    struct reading read[2] = {{.run = NULL}, {.run = NULL}};
    struct lac_comparison *comparison = NULL;
    int exit_status = EXIT_FAILURE;
    struct lac_own_names own = {NULL, NULL};
    enum lac_status status = lac_own_names_read("lacuna compare", options, &own);
    for (int i = 0; i < 2 && !status; i++) {
        status = read_side(&options->operands[i], own.names, &read[i]);
    }
    if (!status) {
        struct lac_compare_side sides[2];
        for (int i = 0; i < 2; i++) {
            sides[i] = (struct lac_compare_side){read[i].ranks.model, read[i].ranks.analysis, NULL};
        }
        const struct lac_compare_names names = {.run = {read[0].run, read[1].run}};
        status = lac_compare(&sides[0], &sides[1], &comparison);
        if (status) {
            lac_complain("lacuna compare", NULL, "%s", lac_status_text(status));
        } else {
            exit_status =
                lac_conditions_decide("lacuna compare", conditions, comparison, &sides[1], true);
            if (print(sides, comparison, &names, conditions,
                      lac_options_on(options, "json", false))) {
                exit_status = EXIT_FAILURE;
            }
        }
    }
    lac_comparison_destroy(comparison);
    lac_own_names_done(&own);
    for (int i = 0; i < 2; i++) {
        lac_run_destroy(read[i].run);
        lac_read_ranks_done(&read[i].ranks);
    }
    return exit_status;
}

int lac_cmd_compare(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    (void)setlocale(LC_CTYPE, "");
    struct lac_conditions conditions;
    if (options.operand_count != 2) {
        (void)fprintf(stderr, "lacuna compare: give two traces: lacuna compare A B\n");
        status = 2;
    } else if (!lac_conditions_read("lacuna compare", &options, &conditions)) {
        status = 2;
    } else {
        status = compare(&options, &conditions);
    }
    lac_options_done(&options);
    return status;
}
