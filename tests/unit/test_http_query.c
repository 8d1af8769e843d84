#include "collector/base/count_of.h"
#include "server/http/query.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_target target;
static struct lac_error error;

static enum lac_status parse(const char *raw)
{
    memset(&error, 0, sizeof(error));
    return lac_target_parse(raw, strlen(raw), &target, &error);
}

START_TEST(path_and_parameters_are_decoded_once)
{
    ck_assert_int_eq(parse("/a%20b/%E2%82%AC?q=x+y%2B&empty=&flag&%71r=%2541"), LAC_OK);
    ck_assert_str_eq(target.path, "/a b/\xe2\x82\xac");
    ck_assert_str_eq(lac_target_get(&target, "q"), "x y+");
    ck_assert_str_eq(lac_target_get(&target, "empty"), "");
    ck_assert_str_eq(lac_target_get(&target, "flag"), "");
    ck_assert_str_eq(lac_target_get(&target, "qr"), "%41");
    ck_assert_ptr_null(lac_target_get(&target, "none"));
}
END_TEST

START_TEST(a_name_with_markup_is_only_text)
{
    ck_assert_int_eq(parse("/t?name=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E"), LAC_OK);
    ck_assert_str_eq(lac_target_get(&target, "name"), "<img src=x onerror=alert(1)>");
}
END_TEST

START_TEST(hostile_targets_are_refused_with_a_sentence)
{
    static const char *const bad[] = {
        "",           "x",         "http://h/",   "*",          "/%",
        "/%0",        "/%zz",      "/%00",        "/?a=%00",    "/%01",
        "/\x01",      "/a\x7f",    "/%ff",        "/%c0%af",    "/../x",
        "/a/./b",     "/%2e%2e/x", "/a%2fb",      "//a",        "/a//b",
        "/#x",        "/?a&a",     "/?a=1&b&a=2", "/%ed%a0%80", "/%f4%90%80%80",
        "/?q=%0d%0a", "/%c2%85",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        ck_assert_msg(parse(bad[i]) == LAC_ERR_CORRUPT, "accepted: %s", bad[i]);
        ck_assert_uint_gt(strlen(error.message), 10);
    }
    ck_assert_int_eq(lac_target_parse("/a\0b", 4, &target, &error), LAC_ERR_CORRUPT);
}
END_TEST

START_TEST(length_and_number_of_parameters_are_limited)
{
    char *raw = malloc(LAC_TARGET_BYTES_MAX + 2);
    char many[400] = "/?";

    ck_assert_ptr_nonnull(raw);
    memset(raw, 'a', LAC_TARGET_BYTES_MAX + 1);
    raw[0] = '/';
    ck_assert_int_eq(lac_target_parse(raw, LAC_TARGET_BYTES_MAX, &target, &error), LAC_OK);
    ck_assert_int_eq(lac_target_parse(raw, LAC_TARGET_BYTES_MAX + 1, &target, &error),
                     LAC_ERR_LIMIT);
    free(raw);
    for (unsigned i = 0; i < LAC_QUERY_PAIRS_MAX; i++) {
        const size_t used = strlen(many);

        (void)snprintf(many + used, sizeof(many) - used, "p%u=1&", i);
    }
    ck_assert_int_eq(parse(many), LAC_OK);
    ck_assert_uint_eq(target.pair_count, LAC_QUERY_PAIRS_MAX);
    memcpy(many + strlen(many), "z=1", 4);
    ck_assert_int_eq(parse(many), LAC_ERR_LIMIT);
}
END_TEST

START_TEST(numbers_are_whole_and_in_bounds)
{
    int64_t value = 7;

    ck_assert(lac_parse_int("-9223372036854775807", &value));
    ck_assert(lac_parse_int("9223372036854775807", &value));
    ck_assert_int_eq(value, INT64_MAX);
    ck_assert(!lac_parse_int("9223372036854775808", &value));
    ck_assert(!lac_parse_int("", &value));
    ck_assert(!lac_parse_int("-", &value));
    ck_assert(!lac_parse_int("+1", &value));
    ck_assert(!lac_parse_int("1.0", &value));
    ck_assert(!lac_parse_int(" 1", &value));
    ck_assert(!lac_parse_int("0x10", &value));
    ck_assert_int_eq(parse("/?limit=11&t0=-5"), LAC_OK);
    ck_assert_int_eq(lac_target_int(&target, "limit", 1, 10, 3, &value, &error), LAC_ERR_MISUSE);
    ck_assert_ptr_nonnull(strstr(error.message, "limit must be a whole number from 1 to 10"));
    ck_assert_int_eq(lac_target_int(&target, "limit", 1, 11, 3, &value, &error), LAC_OK);
    ck_assert_int_eq(value, 11);
    ck_assert_int_eq(lac_target_int(&target, "none", 1, 10, 3, &value, &error), LAC_OK);
    ck_assert_int_eq(value, 3);
}
END_TEST

START_TEST(lists_of_ids_are_sorted_and_merged)
{
    struct lac_id_range ranges[4];
    unsigned count = 0;

    ck_assert_int_eq(lac_parse_ranges("7,1-3,4,2,9-9", 100, ranges, 5 - 1, &count, &error),
                     LAC_ERR_LIMIT);
    ck_assert_int_eq(lac_parse_ranges("7,1-3,4,2", 100, ranges, 4, &count, &error), LAC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(ranges[0].first, 1);
    ck_assert_uint_eq(ranges[0].last, 4);
    ck_assert_uint_eq(ranges[1].first, 7);
    ck_assert_uint_eq(ranges[1].last, 7);
    ck_assert_int_eq(lac_parse_ranges("0-4294967294", 100, ranges, 4, &count, &error),
                     LAC_ERR_LIMIT);
    ck_assert_int_eq(lac_parse_ranges("0-99", 100, ranges, 4, &count, &error), LAC_OK);
    static const char *const bad[] = {"",  ",",  "1,",         "-1",          "1-",   "3-2",
                                      "a", "1 ", "4294967295", "99999999999", "1--2", "1-2-3"};
    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        ck_assert_msg(lac_parse_ranges(bad[i], 100, ranges, 4, &count, &error) == LAC_ERR_MISUSE,
                      "accepted: %s", bad[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http_query");
    TCase *tests = tcase_create("query");

    tcase_add_test(tests, path_and_parameters_are_decoded_once);
    tcase_add_test(tests, a_name_with_markup_is_only_text);
    tcase_add_test(tests, hostile_targets_are_refused_with_a_sentence);
    tcase_add_test(tests, length_and_number_of_parameters_are_limited);
    tcase_add_test(tests, numbers_are_whole_and_in_bounds);
    tcase_add_test(tests, lists_of_ids_are_sorted_and_merged);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
