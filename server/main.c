#include "server/cli/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct lac_command *find(const char *name)
{
    for (const struct lac_command *command = lac_commands(); command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    const struct lac_command *command;

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        name = "version";
    }
    command = find(name);
    if (command == NULL) {
        const struct lac_command *const meant = lac_command_meant(name);

        (void)fprintf(stderr, "lacuna: no command '%s' (%s%s)\n", name,
                      meant != NULL ? "did you mean: lacuna " : "see lacuna help",
                      meant != NULL ? meant->name : "");
        return 2;
    }
    /* a reader that goes away (`lacuna help | head`) is an error of the write, not a death; but a
     * job of `run` would ignore what we ignore */
    if (command->run != lac_cmd_run) {
        (void)signal(SIGPIPE, SIG_IGN);
    }
    if (argc > 1) {
        return command->run(argc - 1, argv + 1);
    }
    (void)command->run(argc, argv);
    (void)fprintf(stderr, "lacuna: no command given\n");
    return 2;
}
