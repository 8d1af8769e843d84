#include "server/cli/commands.h"

#include "server/ingest/import_worker.h"
#include "server/sql/sql_child.h"

#include <stddef.h>
#include <string.h>

/* Apart from cmd_help.c, so that a test that wants a command's helpers does not link them all. */
static const struct lac_command commands[] = {
    {"run", "run a job under the collector: lacuna run -- CMD", lac_cmd_run},
    {"window", "record a window now, in a job that runs", lac_cmd_run},
    {"gather", "collect recordings made without lacuna run into one folder", lac_cmd_run},
    {"env", "environment variables for jobs started some other way", lac_cmd_run},
    {"show", "show the contents of a recording", lac_cmd_run},
    {"push", "send recordings and traces to a server: lacuna push PATH --server URL", lac_cmd_run},
    {"serve", "serve the data folder: the page and the API", lac_cmd_serve},
    {"import", "import traces into the data folder", lac_cmd_import},
    {"analyze", "show why the GPU was idle", lac_cmd_analyze},
    {"compare", "compare two traces, with a noise test", lac_cmd_compare},
    {"try", "whether a change helps: lacuna try workers=7 -- CMD", lac_cmd_try},
    {"export", "write a report, or another tool's format", lac_cmd_export},
    {"sql", "ask a trace in SQL: lacuna sql PATH 'SELECT ...'", lac_cmd_sql},
    {"explain", "what a finding means and how it is detected", lac_cmd_explain},
    {"schema", "the JSON Schema of a document: lacuna schema Analysis", lac_cmd_schema},
    {"mcp", "answer a coding agent (Model Context Protocol)", lac_cmd_mcp},
    {"skill", "teach a coding agent: record, analyze, change, compare", lac_cmd_skill},
    {"demo", "a simulated job, diagnosed and on the page; with DIR: its traces", lac_cmd_demo},
    {"admin", "verify or repair a data folder, remove what is old", lac_cmd_admin},
    {"doctor", "check this host", lac_cmd_doctor},
    {"version", "print the version", lac_cmd_version},
    {"help", "list the commands, or: lacuna help COMMAND", lac_cmd_help},
    {"import-worker", NULL, lac_cmd_import_worker},
    {"sql-worker", NULL, lac_cmd_sql_worker},
    {NULL, NULL, NULL},
};

const struct lac_command *lac_commands(void)
{
    return commands;
}

enum { NAME_BYTES_MAX = 32, SLIPS_MAX = 2 };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein's distance, a row of its table at a time. Both are shorter than NAME_BYTES_MAX. */
static unsigned slips_between(const char *typed, const char *name)
{
    const size_t length = strlen(name);
    unsigned row[NAME_BYTES_MAX + 1];

    for (size_t j = 0; j <= length; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 0; typed[i] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i + 1;
        for (size_t j = 1; j <= length; j++) {
            const unsigned above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (typed[i] != name[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const struct lac_command *lac_command_meant(const char *name)
{
    const struct lac_command *meant = NULL;
    unsigned fewest = SLIPS_MAX + 1;

    if (strlen(name) >= NAME_BYTES_MAX) {
        return NULL;
    }
    for (const struct lac_command *command = commands; command->name != NULL; command++) {
        const unsigned slips = slips_between(name, command->name);

        /* of a short name two slips leave nothing */
        if (command->help != NULL && slips < fewest && strlen(command->name) > 2 * (size_t)slips) {
            meant = command;
            fewest = slips;
        }
    }
    return meant;
}
