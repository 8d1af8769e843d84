#include "analysis/diagnose/documents.h"
#include "analysis/diagnose/result/finding_types.h"
#include "server/cli/commands.h"
#include "server/cli/options.h"
#include "server/export/terminal_width.h"

#include <stdio.h>

static const struct lac_option TABLE[] = {{0}};

static const char USAGE[] =
    "lacuna explain [ID]\n"
    "Prints what a finding means: how it is detected and with which thresholds, how its gain is\n"
    "computed, what to change, when it is wrong, and sources. Without ID: the list of findings.";

static int list(void)
{
    for (int kind = 0; kind < LAC_FINDING_COUNT_; kind++) {
        char label[40];

        (void)snprintf(label, sizeof(label), "%-28s ",
                       lac_finding_type((enum lac_finding_kind)kind)->id);
        lac_print_row(label, 29, lac_finding_documents[kind].title);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int explain(const char *id)
{
    enum lac_finding_kind kind = lac_finding_kind_of(id);

    if (kind == LAC_FINDING_COUNT_) {
        (void)fprintf(stderr,
                      "lacuna explain: no finding has the id '%.64s'; lacuna explain lists them\n",
                      id);
        return 2;
    }
    (void)fputs(lac_finding_documents[kind].markdown, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}

int lac_cmd_explain(int argc, char **argv)
{
    struct lac_options options;
    int exit_status = lac_options_parse(&options, TABLE, USAGE, argc, argv);

    if (exit_status >= 0) {
        lac_options_done(&options);
        return exit_status;
    }
    exit_status = 2;
    if (options.operand_count > 1) {
        (void)fputs("lacuna explain: name one finding; see lacuna explain --help\n", stderr);
    } else {
        exit_status = options.operand_count == 0 ? list() : explain(options.operands[0]);
    }
    lac_options_done(&options);
    return exit_status;
}
