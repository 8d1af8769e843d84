/*
 * Very many recorded processes. Each opens a range named by its number, closes it and ends.
 *
 * usage: short_processes row COUNT        one after the other, each executed anew
 *        short_processes fork COUNT       one after the other, forked alone
 *        short_processes together COUNT   all live at the same time
 *        short_processes limits           prints the soft and the hard limit of open files
 */
#include "kernels/ranges.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(unsigned number)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "process %u", number);
    range_open_library();
    range_push(name);
    range_pop();
}

static bool wait_for(pid_t pid)
{
    int status;

    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool in_a_row(const char *program, unsigned count, bool executes)
{
    for (unsigned i = 0; i < count; i++) {
        const pid_t pid = fork();

        if (pid == 0 && executes) {
            char number[16];

            (void)snprintf(number, sizeof(number), "%u", i);
            (void)execl(program, program, "one", number, (char *)NULL);
            _exit(1);
        }
        if (pid == 0) {
            record(i);
            _exit(0);
        }
        if (!wait_for(pid)) {
            return false;
        }
    }
    return true;
}

/* Each tells that it has recorded and then waits for the end of the pipe. */
static bool together(unsigned count)
{
    int told[2];
    int end[2];
    bool ok = pipe(told) == 0 && pipe(end) == 0;
    char byte = 0;
    int status = 0;

    for (unsigned i = 0; i < count && ok; i++) {
        const pid_t pid = fork();

        ok = pid >= 0;
        if (pid == 0) {
            (void)close(end[1]);
            record(i);
            ok = write(told[1], &byte, 1) == 1 && read(end[0], &byte, 1) == 0;
            _exit(ok ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < count && ok; i++) {
        ok = read(told[0], &byte, 1) == 1;
    }
    (void)close(end[1]);
    for (unsigned i = 0; i < count && ok; i++) {
        ok = wait(&status) > 0 && status == 0;
    }
    return ok;
}

int main(int argc, char **argv)
{
    const char *const mode = argc > 1 ? argv[1] : "";
    const unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    struct rlimit limit;
    bool ok = false;

    if (strcmp(mode, "one") == 0) {
        record(count);
        ok = true;
    } else if (strcmp(mode, "row") == 0 || strcmp(mode, "fork") == 0) {
        ok = in_a_row(argv[0], count, mode[0] == 'r');
    } else if (strcmp(mode, "together") == 0) {
        ok = together(count);
    } else if (strcmp(mode, "limits") == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        ok = printf("%llu %llu\n", (unsigned long long)limit.rlim_cur,
                    (unsigned long long)limit.rlim_max) > 0;
    }
    return ok ? 0 : 1;
}
