/* Strings and decimals of JSON, exactly. */

#include "analysis/import/text/json_text.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int64_t ns_of(const char *text)
{
    int64_t value = -12345;
    ck_assert_msg(lac_decimal_scaled((const uint8_t *)text, strlen(text), 3, &value), "%s", text);
    return value;
}

static bool is_time(const char *text)
{
    int64_t value;
    return lac_decimal_scaled((const uint8_t *)text, strlen(text), 3, &value);
}

START_TEST(microseconds_become_nanoseconds_exactly)
{
    ck_assert_int_eq(ns_of("0"), 0);
    ck_assert_int_eq(ns_of("-0.0"), 0);
    ck_assert_int_eq(ns_of("1"), 1000);
    ck_assert_int_eq(ns_of("4808593490886.558"), 4808593490886558);
    ck_assert_int_eq(ns_of("1712867402348256"), 1712867402348256000);
    ck_assert_int_eq(ns_of("1712867402348256.123"), 1712867402348256123);
    ck_assert_int_eq(ns_of("-17.25"), -17250);
    ck_assert_int_eq(ns_of("1e3"), 1000000);
    ck_assert_int_eq(ns_of("1.5E+2"), 150000);
    ck_assert_int_eq(ns_of("15000e-4"), 1500);
    ck_assert_int_eq(ns_of("0.00000000000000000000000000001e29"), 1000);
    ck_assert_int_eq(ns_of("9223372036854775.807"), INT64_MAX);
    ck_assert_int_eq(ns_of("0e999999999999999999999"), 0);
    ck_assert_int_eq(ns_of("1e-400"), 0);
}
END_TEST

START_TEST(halves_go_to_the_even_neighbour)
{
    ck_assert_int_eq(ns_of("0.0005"), 0);
    ck_assert_int_eq(ns_of("0.0015"), 2);
    ck_assert_int_eq(ns_of("0.0025"), 2);
    ck_assert_int_eq(ns_of("-0.0015"), -2);
    ck_assert_int_eq(ns_of("0.00050000000000000000000000001"), 1);
    ck_assert_int_eq(ns_of("0.00049999999999999999999999999"), 0);
    ck_assert_int_eq(ns_of("1712867402348256.1235"), 1712867402348256124);
    ck_assert_int_eq(ns_of("1712867402348256.1225"), 1712867402348256122);
}
END_TEST

START_TEST(what_no_time_holds_is_refused)
{
    static const char *const texts[] = {"1e400",  "9223372036854775.808",
                                        "-1e300", "",
                                        "-",      ".",
                                        "e5",     "1e",
                                        "1e+",    "1.2.3",
                                        "12a",    " 1",
                                        "0x10",   "NaN",
                                        "inf",    "99999999999999999999"};
    for (size_t i = 0; i < LAC_COUNT_OF(texts); i++)
        ck_assert_msg(!is_time(texts[i]), "%s", texts[i]);
}
END_TEST

/* Any double printed with any number of digits: only the shortest form may be taken out. */
START_TEST(only_the_shortest_form_of_a_real_is_one)
{
    static const struct {
        const char *text;
        bool shortest;
    } cases[] = {{"0.625", true},
                 {"5.0", false},
                 {"0.1", true},
                 {"0.10", false},
                 {"0.01025312399871836", true},
                 {"9.927016204653041", true},
                 {"0.001", true},
                 {"0.0001", true},
                 {"0.00001", false},
                 {"1e-05", true},
                 {"1E-05", false},
                 {"88.88888888888889", true},
                 {"88.888888888888889", false},
                 {"123456789012345678.5", false},
                 {"1268.4387096774194", true},
                 {"00.5", false},
                 {"-0.5", true},
                 {"1.", false},
                 {"0.3", true},
                 {"0.30000000000000004", true},
                 {"1e400", false}};
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        double value = 0;
        size_t size = strlen(cases[i].text);
        bool shortest = lac_decimal_is_shortest((const uint8_t *)cases[i].text, size, &value);
        ck_assert_msg(shortest == cases[i].shortest, "%s", cases[i].text);
        if (shortest)
            ck_assert(value == strtod(cases[i].text, NULL)); /* NOLINT: exact by intent */
    }
}
END_TEST

START_TEST(integers_fit_or_are_refused)
{
    static const struct {
        const char *text;
        bool fits;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"-1", true, -1},
                 {"9223372036854775807", true, INT64_MAX},
                 {"9223372036854775808", false, 0},
                 {"", false, 0},
                 {"-", false, 0},
                 {"1.0", false, 0},
                 {"1 ", false, 0},
                 {"00000000000000000001", false, 0}};
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        int64_t value = 0;
        bool fits =
            lac_decimal_integer((const uint8_t *)cases[i].text, strlen(cases[i].text), &value);
        ck_assert_msg(fits == cases[i].fits && (!fits || value == cases[i].value), "%s",
                      cases[i].text);
    }
}
END_TEST

static void expect_decoded(const char *raw, const char *text, uint32_t bad_utf8,
                           uint32_t bad_escape)
{
    uint8_t out[200];
    struct lac_json_repairs repairs = {0};
    size_t size = lac_json_string_decode((const uint8_t *)raw, strlen(raw), out, &repairs);
    out[size] = 0;
    ck_assert_str_eq((const char *)out, text);
    ck_assert_uint_eq(repairs.bad_utf8, bad_utf8);
    ck_assert_uint_eq(repairs.bad_escape, bad_escape);
}

START_TEST(strings_are_decoded_and_repaired)
{
    expect_decoded("plain", "plain", 0, 0);
    expect_decoded("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 0, 0);
    expect_decoded("\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac", 0, 0);
    expect_decoded("\\ud83d\\ude00", "\xf0\x9f\x98\x80", 0, 0);
    expect_decoded("\\ud83d", "\xef\xbf\xbd", 1, 0);
    expect_decoded("\\ude00x", "\xef\xbf\xbdx", 1, 0);
    expect_decoded("\\ud83d\\u0041",
                   "\xef\xbf\xbd"
                   "A",
                   1, 0);
    expect_decoded("a\\u0000b",
                   "a\xef\xbf\xbd"
                   "b",
                   1, 0);
    expect_decoded("C:\\Users\\x", "C:\\Users\\x", 0, 2);
    expect_decoded("\\u12", "\\u12", 0, 1);
    expect_decoded("\\", "\\", 0, 1);
    expect_decoded("\xff\xc3\xa9\xc3", "\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd", 2, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_text");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, microseconds_become_nanoseconds_exactly);
    tcase_add_test(tcase, halves_go_to_the_even_neighbour);
    tcase_add_test(tcase, what_no_time_holds_is_refused);
    tcase_add_test(tcase, only_the_shortest_form_of_a_real_is_one);
    tcase_add_test(tcase, integers_fit_or_are_refused);
    tcase_add_test(tcase, strings_are_decoded_and_repaired);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
