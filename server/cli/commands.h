#ifndef LAC_SERVER_CLI_COMMANDS_H
#define LAC_SERVER_CLI_COMMANDS_H

/*
 * The commands of the program, one function each.
 *
 * argv[0] is the command's own name, argv[argc] is NULL. The return value is the exit status:
 * 0 done, 1 it failed (one line on stderr says what and what to do), 2 wrong usage, 3 a condition
 * that was asked for does not hold. Every command answers --help on stdout with status 0.
 */

int lac_cmd_run(int argc, char **argv);
int lac_cmd_serve(int argc, char **argv);
int lac_cmd_import(int argc, char **argv);
int lac_cmd_analyze(int argc, char **argv);
int lac_cmd_compare(int argc, char **argv);
int lac_cmd_try(int argc, char **argv);
int lac_cmd_sql(int argc, char **argv);
int lac_cmd_export(int argc, char **argv);
int lac_cmd_explain(int argc, char **argv);
int lac_cmd_schema(int argc, char **argv);
int lac_cmd_mcp(int argc, char **argv);
int lac_cmd_skill(int argc, char **argv);
int lac_cmd_demo(int argc, char **argv);
int lac_cmd_admin(int argc, char **argv);
int lac_cmd_doctor(int argc, char **argv);
int lac_cmd_version(int argc, char **argv);
int lac_cmd_help(int argc, char **argv);

/** One row of the command table. */
struct lac_command {
    const char *name;
    const char *help; /**< one line; NULL: hidden */
    int (*run)(int argc, char **argv);
};

/** The table of main.c, ended by a row without name. Static storage. */
const struct lac_command *lac_commands(void);

/** The command that was meant by a name with a slip or two of the keyboard: a letter too many, too
 *  few, or another one. @return NULL: none */
const struct lac_command *lac_command_meant(const char *name);

#endif
