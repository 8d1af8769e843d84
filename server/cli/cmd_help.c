#include "server/cli/commands.h"
#include "server/export/terminal_width.h"

#include <stdio.h>
#include <string.h>

int lac_cmd_version(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("usage: lacuna version\n");
        return 0;
    }
    if (argc > 1) {
        (void)fprintf(stderr, "lacuna version: takes no argument\n");
        return 2;
    }
    printf("lacuna %s\n", LAC_VERSION);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int help_for(const char *name)
{
    for (const struct lac_command *command = lac_commands(); command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0 && strcmp(name, "help") != 0) {
            char word[32];
            char flag[] = "--help";
            char *argv[] = {word, flag, NULL};

            (void)snprintf(word, sizeof(word), "%s", name);
            return command->run(2, argv);
        }
    }
    (void)fprintf(stderr, "lacuna help: no command '%s'\n", name);
    return 2;
}

int lac_cmd_help(int argc, char **argv)
{
    if (argc > 2) {
        (void)fprintf(stderr, "lacuna help: takes one command at most\n");
        return 2;
    }
    if (argc == 2 && strcmp(argv[0], "help") == 0 && strcmp(argv[1], "--help") != 0) {
        return help_for(argv[1]);
    }
    lac_print_text(
        "Lacuna finds the gaps in a GPU's timeline and shows the cause of each, what to change,\n"
        "and the expected gain.\n"
        "\n"
        "usage: lacuna COMMAND [ARGUMENTS]\n"
        "\n");
    for (const struct lac_command *command = lac_commands(); command->name != NULL; command++) {
        if (command->help != NULL) {
            char label[32];

            (void)snprintf(label, sizeof(label), "  %-10s ", command->name);
            lac_print_row(label, 13, command->help);
        }
    }
    printf("\n");
    lac_print_text(
        "Every command answers --help. Precedence: flag, LACUNA_* variable of the same name,\n"
        "~/.config/lacuna/config (key = value).\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
