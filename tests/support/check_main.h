#ifndef LAC_TESTS_SUPPORT_CHECK_MAIN_H
#define LAC_TESTS_SUPPORT_CHECK_MAIN_H

#include "tests/support/check_marks.h"

#include <check.h>
#include <stdlib.h>

/** Run what the runner holds, which is used up. @return the exit status */
static inline int check_run_all(SRunner *runner)
{
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/** The end of a test program's main() where each test needs a process of its own: a test ends it, or changes what others use. */
static inline int check_main_apart(Suite *suite)
{
    return check_run_all(srunner_create(suite));
}

/**
 * Run the suite, which is used up: the end of a test program's main().
 * CK_VERBOSITY says how much is printed. @return the exit status
 *
 * With sanitizers all tests run in one process, unless CK_FORK says otherwise: a fork copies the
 * shadow memory and ends in a search for leaks of its own, three quarters of the time of most programs.
 */
static inline int check_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

#ifdef __SANITIZE_ADDRESS__
    if (getenv("CK_FORK") == NULL) {
        srunner_set_fork_status(runner, CK_NOFORK);
    }
#endif
    return check_run_all(runner);
}

#endif
