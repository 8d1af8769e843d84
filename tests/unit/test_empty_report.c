/* Whether a process sees the recorder's library, also when it ends while it is looked at. */
#include "collector/launch/empty_report.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPOOL "/nowhere/spool"

static pid_t job;
static bool ends_when_looked_at;

static void end_job(void)
{
    ck_assert_int_eq(kill(job, SIGKILL), 0);
    ck_assert_int_eq(waitpid(job, NULL, 0), job);
    job = 0;
}

/* In place of the C library's: the job's last moment is before its file system is looked at. */
int access(const char *path, int mode)
{
    if (job != 0 && ends_when_looked_at && strstr(path, "/root") != NULL) {
        end_job();
    }
    return faccessat(AT_FDCWD, path, mode, 0);
}

/* Whether the program that `job` became has got the variables. */
static bool has_variables(void)
{
    char path[64];
    char text[1 << 16];
    ssize_t length;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)job);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    length = read(fd, text, sizeof(text));
    ck_assert_int_ge(length, 0);
    ck_assert_int_eq(close(fd), 0);
    return memmem(text, (size_t)length, SPOOL, sizeof(SPOOL) - 1) != NULL;
}

/* Starts `sleep` as a job that is told the library's place, and waits until it runs. */
static void start_job(const char *library)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    job = fork();
    ck_assert_int_ge(job, 0);
    if (job == 0) {
        (void)setenv("LACUNA_SPOOL", SPOOL, 1);
        (void)setenv("LACUNA_LIBRARY", library, 1);
        (void)execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    while (!has_variables()) {
        (void)nanosleep(&moment, NULL);
    }
}

static void reason_of(const char *library, bool ends, char *out)
{
    static struct lac_empty_report why;

    memset(&why, 0, sizeof(why));
    start_job(library);
    ends_when_looked_at = ends;
    lac_empty_report_look(&why, 0);
    ck_assert_uint_eq(why.process_count, 1);
    ck_assert_int_eq(job == 0, ends);
    lac_empty_report_reason(&why, 0, out, LAC_EMPTY_REPORT_REASON_BYTES);
    if (job != 0) {
        end_job();
    }
}

START_TEST(a_library_that_is_not_there_is_the_reason)
{
    char reason[LAC_EMPTY_REPORT_REASON_BYTES];

    reason_of("/nowhere/liblacuna.so", false, reason);
    ck_assert_ptr_nonnull(strstr(reason, "sleep runs where /nowhere/liblacuna.so cannot be seen"));
    reason_of("/bin/sh", false, reason);
    ck_assert_ptr_null(strstr(reason, "cannot be seen"));
}
END_TEST

START_TEST(of_a_process_that_has_ended_nothing_is_said)
{
    char reason[LAC_EMPTY_REPORT_REASON_BYTES];

    reason_of("/bin/sh", true, reason);
    ck_assert_ptr_null(strstr(reason, "cannot be seen"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("empty report");
    TCase *const tests = tcase_create("a library that cannot be seen");

    tcase_add_test(tests, a_library_that_is_not_there_is_the_reason);
    tcase_add_test(tests, of_a_process_that_has_ended_nothing_is_said);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
