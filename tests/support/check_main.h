#ifndef LAC_TESTS_SUPPORT_CHECK_MAIN_H
#define LAC_TESTS_SUPPORT_CHECK_MAIN_H

#include "tests/support/check_marks.h"

#include <check.h>

/**
 * Run the suite, which is used up: the end of a test program's main().
 * CK_VERBOSITY says how much is printed. @return the exit status
 */
static inline int check_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
