/* LACUNA_DEBUG: what is understood, what a line looks like, and whose files are left alone. */

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int saved_stderr;
static int read_end;

/* Standard error becomes a pipe that the test reads. */
static void begin(const char *wish, bool is_understood)
{
    int ends[2];

    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    read_end = ends[0];
    ck_assert_int_eq(fcntl(read_end, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    (void)close(ends[1]);
    ck_assert_int_eq(lac_debug_begin(wish), is_understood);
}

/* What was written since, and standard error as it was. */
static const char *written(void)
{
    static char text[8192];
    const ssize_t length = read(read_end, text, sizeof(text) - 1);

    (void)dup2(saved_stderr, STDERR_FILENO);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* The line's own words, behind time, process and area. */
static const char *words(const char *line, const char *area)
{
    char head[64];
    const char *at = strstr(line, "] ");

    ck_assert(strncmp(line, "lacuna: ", 8) == 0);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(head, sizeof(head), "] %s: ", area);
    ck_assert_msg(strncmp(at, head, strlen(head)) == 0, "%s", line);
    return at + strlen(head);
}

START_TEST(a_level_is_for_every_area)
{
    begin("2", true);
    for (int i = 0; i < LAC_DEBUG_AREA_COUNT_; i++) {
        ck_assert_uint_eq(lac_debug_levels[i], 2);
    }
    ck_assert(lac_debug_is_any());
    ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(areas_have_levels_of_their_own)
{
    begin("spool:3,cupti:1,push:0", true);
    for (int i = 0; i < LAC_DEBUG_AREA_COUNT_; i++) {
        ck_assert_uint_eq(lac_debug_levels[i], i == LAC_DEBUG_SPOOL   ? 3
                                               : i == LAC_DEBUG_CUPTI ? 1
                                                                      : 0);
    }
    ck_assert_str_eq(written(), "");
}
END_TEST

static const char *const nothing[] = {NULL, "", "0", "spool:0", "spool:0,push:0"};

START_TEST(nothing_is_shown_unless_asked_for)
{
    begin(nothing[_i], true);
    LAC_DEBUG(SPOOL, 1, "not wanted");
    ck_assert(!lac_debug_is_any());
    ck_assert_str_eq(written(), "");
}
END_TEST

static const struct {
    const char *value;
    const char *named;
} wrong[] = {
    {"4", "4"},
    {"-1", "-1"},
    {"yes", "yes"},
    {"22", "22"},
    {"spool", "spool"},
    {"spool:", "spool:"},
    {"spool:9", "spool:9"},
    {"spool:12", "spool:12"},
    {"spools:1", "spools:1"},
    {"spool:1,", ""},
    {",spool:1", ""},
    {"spool:1,gpu:2,push:1", "gpu:2"},
    {"spool:3\n\033[2Jforged", "spool:3\\x0a\\x1b[2Jforged"},
};

START_TEST(a_wrong_value_is_told_in_one_line_and_shows_nothing)
{
    char expected[120];
    const char *said;

    begin(wrong[_i].value, false);
    LAC_DEBUG(SPOOL, 1, "not wanted");
    said = written();
    (void)snprintf(expected, sizeof(expected), "lacuna: LACUNA_DEBUG: \"%s\" is neither ",
                   wrong[_i].named);
    ck_assert_msg(strncmp(said, expected, strlen(expected)) == 0, "%s", said);
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
    ck_assert_ptr_nonnull(strstr(said, "spool names hook"));
}
END_TEST

START_TEST(numbers_and_texts_are_written_as_printf_does)
{
    begin("3", true);
    errno = ENOSPC;
    LAC_DEBUG(SPOOL, 3, "%d %d %u %x %zu %lu %ld %llu %lld %.*s|%s %%", INT_MIN, 7, UINT_MAX,
              0xbeefu, (size_t)0, ULONG_MAX, LONG_MIN, ULLONG_MAX, LLONG_MIN, 3, "abcdef", "whole");
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_str_eq(words(written(), "spool"),
                     "-2147483648 7 4294967295 beef 0 18446744073709551615 -9223372036854775808 "
                     "18446744073709551615 -9223372036854775808 abc|whole %\n");
}
END_TEST

START_TEST(text_from_outside_stays_on_its_line)
{
    const char *volatile absent = NULL;

    begin("3", true);
    LAC_DEBUG(NAMES, 1, "%s, %s, %.*s", "a\nlacuna: forged\x1b[2J\x7f\xc3\xa4", absent, -5, "none");
    ck_assert_str_eq(words(written(), "names"),
                     "a\\x0alacuna: forged\\x1b[2J\\x7f\\xc3\\xa4, (none), \n");
}
END_TEST

START_TEST(a_long_line_is_cut_and_ends)
{
    char text[5000];
    const char *said;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    begin("3", true);
    LAC_DEBUG(NAMES, 1, "%s", text);
    said = written();
    ck_assert_uint_lt(strlen(said), 1000);
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
}
END_TEST

START_TEST(lines_go_to_the_first_stderr_even_when_the_program_has_another)
{
    int other[2];
    char byte;

    begin("1", true);
    ck_assert_int_eq(pipe(other), 0);
    ck_assert_int_eq(fcntl(other[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(other[1], STDERR_FILENO), 0);
    LAC_DEBUG(SPOOL, 1, "here");
    ck_assert_int_eq(read(other[0], &byte, 1), -1);
    ck_assert_str_eq(words(written(), "spool"), "here\n");
}
END_TEST

/* A program that closes every descriptor it does not know, and opens files of its own. */
START_TEST(nothing_is_written_into_a_file_that_took_the_descriptor)
{
    char byte;
    int files[2];
    int taken = 0;

    begin("1", true);
    ck_assert_int_eq(pipe(files), 0);
    for (int fd = 10; fd < 2048; fd++) {
        if (fd != saved_stderr && fd != read_end && fd != files[0] && fd != files[1] &&
            close(fd) == 0) {
            ck_assert_int_eq(dup2(files[1], fd), fd);
            taken++;
        }
    }
    ck_assert_int_ge(taken, 1); /* the one of lac_debug_begin() */
    ck_assert_int_eq(fcntl(files[0], F_SETFL, O_NONBLOCK), 0);
    LAC_DEBUG(SPOOL, 1, "lost");
    ck_assert_int_eq(read(files[0], &byte, 1), -1);
    ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(a_closed_stderr_is_no_trouble)
{
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_eq(close(STDERR_FILENO), 0);
    ck_assert(lac_debug_begin("3"));
    LAC_DEBUG(SPOOL, 1, "nowhere");
    ck_assert(!lac_debug_is_any());
    ck_assert(!lac_debug_begin("nonsense"));
    ck_assert_int_eq(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
}
END_TEST

START_TEST(a_pipe_that_nobody_reads_ends_nothing)
{
    begin("1", true);
    ck_assert_int_eq(close(read_end), 0);
    LAC_DEBUG(SPOOL, 1, "nobody"); /* SIGPIPE would end this process */
    ck_assert_int_eq(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("debug");
    TCase *const tcase = tcase_create("lines");

    tcase_add_test(tcase, a_level_is_for_every_area);
    tcase_add_test(tcase, areas_have_levels_of_their_own);
    tcase_add_loop_test(tcase, nothing_is_shown_unless_asked_for, 0, (int)LAC_COUNT_OF(nothing));
    tcase_add_loop_test(tcase, a_wrong_value_is_told_in_one_line_and_shows_nothing, 0,
                        (int)LAC_COUNT_OF(wrong));
    tcase_add_test(tcase, numbers_and_texts_are_written_as_printf_does);
    tcase_add_test(tcase, text_from_outside_stays_on_its_line);
    tcase_add_test(tcase, a_long_line_is_cut_and_ends);
    tcase_add_test(tcase, lines_go_to_the_first_stderr_even_when_the_program_has_another);
    tcase_add_test(tcase, nothing_is_written_into_a_file_that_took_the_descriptor);
    tcase_add_test(tcase, a_closed_stderr_is_no_trouble);
    tcase_add_test(tcase, a_pipe_that_nobody_reads_ends_nothing);
    suite_add_tcase(suite, tcase);
    return check_main_apart(suite);
}
