#ifndef LAC_TESTS_SUPPORT_CHECK_MARKS_H
#define LAC_TESTS_SUPPORT_CHECK_MARKS_H

#include <check.h>

/**
 * libcheck writes the place of each assertion that holds to a file, by a system call, to say "after
 * this point" of a test that crashes. Loops over events assert a million times: after the first
 * 1,000 of a test it is every 1,024th place.
 */
static inline void check_mark(const char *file, int line)
{
    enum { ALL_UNTIL = 1000, THEN_EVERY = 1024 };
    static unsigned count;

    if (count < ALL_UNTIL || count % THEN_EVERY == 0) {
        _mark_point(file, line);
    }
    count++;
}

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr) ? check_mark(__FILE__, __LINE__)                                                       \
            : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", __VA_ARGS__))

#endif
