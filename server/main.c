#include "server/cli/commands.h"
#include "server/cli/complain.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

/* What a command prints may be its whole answer: that it was not written is said here, for all of
 * them. @return the exit status */
static int finish(const struct lac_command *command, int exit_status)
{
    char name[64];

    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return exit_status;
    }
    (void)snprintf(name, sizeof(name), "lacuna %s", command->name);
    lac_complain(name, "stdout", "writing failed");
    return exit_status != EXIT_SUCCESS ? exit_status : EXIT_FAILURE;
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
        return finish(command, command->run(argc - 1, argv + 1));
    }
    (void)command->run(argc, argv);
    (void)fprintf(stderr, "lacuna: no command given\n");
    return 2;
}
