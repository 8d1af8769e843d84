/* lacuna-node: the part of Lacuna that runs where people train. Needs a C library
 * and nothing else. */
#include "collector/base/debug.h"
#include "collector/gather/gather.h"
#include "collector/launch/run.h"
#include "collector/launch/try_command.h"
#include "collector/launch/window.h"
#include "collector/push/push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "usage: lacuna-node COMMAND [ARG]...\n"
                           "\n"
                           "  run       run a job under the collector\n"
                           "  try       whether a change helps (needs the program lacuna)\n"
                           "  window    record a window now, in a job that runs\n"
                           "  env       environment variables for jobs started some other way\n"
                           "  gather    collect their recordings into one folder\n"
                           "  show      show the contents of a recording\n"
                           "  push      send recordings to a server\n"
                           "  version   print the version\n"
                           "\n"
                           "Every command answers --help. LACUNA_DEBUG=1, 2 or 3 prints what it\n"
                           "does.\n";

static int command(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "run") == 0) {
        return lac_run_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "try") == 0) {
        return lac_try_command(argv);
    }
    if (argc >= 2 && strcmp(argv[1], "gather") == 0) {
        return lac_gather_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "env") == 0) {
        return lac_env_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "window") == 0) {
        return lac_window_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "show") == 0) {
        return lac_show_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "push") == 0) {
        return lac_push_command(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "version") == 0) {
        (void)printf("lacuna-node %s\n", LAC_VERSION);
        return 0;
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        (void)fputs(help, stdout);
        return 0;
    }
    (void)fputs(argc >= 2 ? "lacuna-node: unknown command (lacuna-node --help)\n" : help, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    if (!lac_debug_begin(getenv("LACUNA_DEBUG"))) {
        (void)unsetenv("LACUNA_DEBUG"); /* told once, not by each process of a job again */
    }
    const int status = command(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    /* of `run` this is its help: the job writes by itself */
    (void)fprintf(stderr, "lacuna %s: stdout: writing failed\n", argv[1]);
    return status != 0 ? status : 1;
}
