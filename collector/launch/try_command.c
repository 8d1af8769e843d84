#include "collector/launch/try_command.h"

#include "collector/launch/install.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int lac_try_command(char **argv)
{
    struct lac_install install;
    char name[] = "lacuna";

    (void)lac_install_find(&install); /* that program looks for the recorder itself */
    if (install.lacuna[0] == '\0') {
        (void)fputs("lacuna-node: lacuna try needs the program lacuna beside this one; without it, "
                    "record both with lacuna-node run, and push them to a server\n",
                    stderr);
        return 1;
    }
    argv[0] = name; /* argv[1] is "try" */
    (void)execv(install.lacuna, argv);
    (void)fprintf(stderr, "lacuna-node: cannot start %s: %s\n", install.lacuna, strerror(errno));
    return 1;
}
