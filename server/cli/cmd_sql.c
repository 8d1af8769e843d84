/* lacuna sql: questions to a trace that no page answers. */

#include "analysis/model/status.h"
#include "server/base/buffer.h"
#include "server/cli/commands.h"
#include "server/cli/complain.h"
#include "server/cli/options.h"
#include "server/cli/own_names.h"
#include "server/cli/sql_source.h"
#include "server/sql/reference.h"
#include "server/sql/result_text.h"
#include "server/sql/sql_query.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "lacuna sql PATH... 'SELECT ...' [--json|--csv] [--limit N]\n"
    "lacuna sql PATH... --question ID\n"
    "lacuna sql --tables [TABLE]\n"
    "\n"
    "Answers a query over the tables of a trace: slices, kernels, copies, api_calls, ranges, "
    "steps,\n"
    "gaps, by_name(t0_ns, t1_ns) and others, in SQLite's language. PATH is a file that `lacuna\n"
    "analyze` reads, a trace file of the data folder, or a trace's id; - for the query reads it\n"
    "from standard input. Queries only read. Of several traces each table holds the rows of all,\n"
    "with a column `trace`: its name.\n";

enum { ROWS_SHOWN = 1000 };

static const struct lac_option options_table[] = {
    {.name = "json", .help = "print JSON", .flag_only = true},
    {.name = "csv", .help = "print CSV", .flag_only = true},
    {.name = "limit",
     .value = "ROWS",
     .help = "rows to print (1000 as a table, else all; 0: all)",
     .flag_only = true},
    {.name = "timeout",
     .value = "SECONDS",
     .help = "end a query that takes longer (300; 0: never)",
     .flag_only = true},
    {.name = "memory",
     .value = "BYTES",
     .help = "end a query that needs more (2G; 0: no limit)",
     .flag_only = true},
    {.name = "question",
     .value = "ID",
     .help = "answer one of those that --questions lists",
     .flag_only = true},
    {.name = "questions", .help = "list questions with their queries", .flag_only = true},
    {.name = "tables", .help = "list tables and their columns", .flag_only = true},
    {.name = "data", .letter = 'd', .value = "DIR", .help = "the data folder, for a trace's id"},
    LAC_OPTION_NAMES,
    {0},
};

static int print_buffer(struct lac_buffer *out)
{
    bool is_good = out->status == LAC_OK &&
                   fwrite(out->bytes, 1, out->size_bytes, stdout) == out->size_bytes &&
                   fflush(stdout) == 0;
    lac_buffer_done(out);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_tables(const struct lac_options *options)
{
    struct lac_buffer out = {0};
    if (options->operand_count > 1) {
        (void)fprintf(stderr, "lacuna sql: --tables takes one table at most\n");
        return 2;
    }
    if (lac_options_on(options, "json", false)) {
        lac_sql_reference_json(&out);
        lac_buffer_puts(&out, "\n");
    } else if (!lac_sql_reference_text(options->operand_count > 0 ? options->operands[0] : NULL,
                                       &out)) {
        lac_complain("lacuna sql", options->operands[0], "is no table: see lacuna sql --tables");
        lac_buffer_done(&out);
        return 2;
    }
    return print_buffer(&out);
}

/** The query from standard input. @return NULL, with a line on stderr */
static char *read_query(void)
{
    char *text = malloc(LAC_SQL_TEXT_BYTES_MAX + 2);
    size_t length = text != NULL ? fread(text, 1, (size_t)LAC_SQL_TEXT_BYTES_MAX + 1, stdin) : 0;
    if (text == NULL || length > LAC_SQL_TEXT_BYTES_MAX || memchr(text, '\0', length) != NULL) {
        (void)fprintf(stderr, "lacuna sql: a query has at most %d bytes of text\n",
                      LAC_SQL_TEXT_BYTES_MAX);
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

/** What is asked for. */
struct job {
    struct lac_sql_job sql;
    char *owned_query;
};

static bool read_numbers(const struct lac_options *options, struct job *job)
{
    uint64_t rows = 0;
    uint64_t seconds = 0;
    uint64_t rows_default = job->sql.result.form == LAC_SQL_FORM_TABLE ? ROWS_SHOWN : 0;
    if (!lac_options_number(options, "limit", 0, UINT32_MAX, rows_default, &rows) ||
        !lac_options_number(options, "timeout", 0, 1000000, 300, &seconds) ||
        !lac_options_number(options, "memory", 0, UINT64_C(1) << 40, UINT64_C(2) << 30,
                            &job->sql.limits.memory_bytes)) {
        return false;
    }
    job->sql.result.row_max = rows;
    job->sql.limits.seconds = (unsigned)seconds;
    return true;
}

/** @return -1 to go on, else the exit status */
static int read_job(const struct lac_options *options, struct job *job)
{
    const char *id = lac_options_text(options, "question", NULL);
    bool is_json = lac_options_on(options, "json", false);
    bool is_csv = lac_options_on(options, "csv", false);
    if (options->operand_count < (id != NULL ? 1 : 2) || (is_json && is_csv)) {
        (void)fprintf(stderr, is_json && is_csv ? "lacuna sql: give --json or --csv, not both\n"
                              : id != NULL
                                  ? "lacuna sql: give a trace: lacuna sql PATH --question ID\n"
                                  : "lacuna sql: give a trace and one query: lacuna sql PATH "
                                    "'SELECT ...'\n");
        return 2;
    }
    job->sql.paths = options->operands;
    job->sql.path_count = options->operand_count - (id != NULL ? 0 : 1);
    job->sql.result.form = is_json  ? LAC_SQL_FORM_JSON
                           : is_csv ? LAC_SQL_FORM_CSV
                                    : LAC_SQL_FORM_TABLE;
    if (id != NULL) {
        const struct lac_sql_question *question = lac_sql_question_of(id);
        if (question == NULL) {
            lac_complain("lacuna sql", id, "is no question: see lacuna sql --questions");
            return 2;
        }
        job->sql.query = question->sql;
    } else if (strcmp(options->operands[options->operand_count - 1], "-") == 0) {
        job->owned_query = read_query();
        job->sql.query = job->owned_query;
    } else {
        job->sql.query = options->operands[options->operand_count - 1];
    }
    return job->sql.query != NULL && read_numbers(options, job) ? -1 : 2;
}

static int run(const struct lac_options *options)
{
    struct job job = {.sql = {.command = "lacuna sql"}};
    struct lac_own_names own = {NULL, NULL};
    int status = read_job(options, &job);
    if (status < 0 && lac_own_names_read("lacuna sql", options, &own)) {
        status = EXIT_FAILURE;
    }
    if (status < 0) {
        job.sql.names = own.names;
        status = lac_sql_job_run(&job.sql, options);
    }
    lac_own_names_done(&own);
    free(job.owned_query);
    return status;
}

int lac_cmd_sql(int argc, char **argv)
{
    struct lac_options options;
    int status = lac_options_parse(&options, options_table, usage, argc, argv);
    if (status >= 0) {
        lac_options_done(&options);
        return status;
    }
    if (lac_options_on(&options, "tables", false)) {
        status = print_tables(&options);
    } else if (lac_options_on(&options, "questions", false)) {
        struct lac_buffer out = {0};
        lac_sql_questions_text(&out);
        status = print_buffer(&out);
    } else {
        status = run(&options);
    }
    lac_options_done(&options);
    return status;
}
