#include "analysis/model/strings.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t intern(struct lac_strings *strings, const char *text, size_t length)
{
    uint32_t id = UINT32_MAX;

    ck_assert_int_eq(lac_strings_intern(strings, text, length, &id), LAC_OK);
    return id;
}

START_TEST(empty_string_is_id_0)
{
    struct lac_strings strings;

    ck_assert_int_eq(lac_strings_init(&strings), LAC_OK);
    ck_assert_uint_eq(strings.count, 1);
    ck_assert_uint_eq(intern(&strings, "", 0), 0);
    ck_assert_str_eq(lac_strings_get(&strings, 0), "");
    ck_assert_uint_eq(lac_strings_length(&strings, 0), 0);
    ck_assert_uint_eq(lac_strings_find(&strings, "", 0), 0);
    lac_strings_done(&strings);
}
END_TEST

START_TEST(ids_follow_first_appearance_and_equal_strings_share_one)
{
    struct lac_strings strings;

    ck_assert_int_eq(lac_strings_init(&strings), LAC_OK);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 100000; i++) {
            char text[32];
            int length = snprintf(text, sizeof(text), "kernel_%u", i * 7u);

            ck_assert_uint_eq(intern(&strings, text, (size_t)length), i + 1);
        }
    }
    ck_assert_uint_eq(strings.count, 100001);
    for (uint32_t i = 0; i < 100000; i++) {
        char text[32];
        int length = snprintf(text, sizeof(text), "kernel_%u", i * 7u);

        ck_assert_str_eq(lac_strings_get(&strings, i + 1), text);
        ck_assert_uint_eq(lac_strings_length(&strings, i + 1), (size_t)length);
        ck_assert_uint_eq(lac_strings_find(&strings, text, (size_t)length), i + 1);
    }
    ck_assert_uint_eq(lac_strings_find(&strings, "absent", 6), 0);
    ck_assert_uint_eq(strings.offset[strings.count], strings.bytes_used);
    lac_strings_done(&strings);
}
END_TEST

START_TEST(any_bytes_of_any_length_are_kept)
{
    struct lac_strings strings;
    char *text = malloc(300);
    uint32_t ids[301];

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(lac_strings_init(&strings), LAC_OK);
    memset(text, 0, 300); /* equal bytes: only the length tells the strings apart */
    for (size_t length = 0; length <= 300; length++) {
        ids[length] = intern(&strings, text, length);
        ck_assert_uint_eq(ids[length], (uint32_t)length);
    }
    for (size_t length = 0; length <= 300; length++) {
        ck_assert_uint_eq(lac_strings_length(&strings, ids[length]), length);
    }
    /* one bit anywhere makes another string */
    for (size_t i = 0; i < 300; i++) {
        text[i] ^= 1;
        ck_assert_uint_eq(intern(&strings, text, 300), 301 + (uint32_t)i);
        text[i] ^= 1;
    }
    ck_assert_uint_eq(intern(&strings, text, 300), 300);
    free(text);
    lac_strings_done(&strings);
}
END_TEST

START_TEST(more_bytes_than_the_limit_are_refused_without_a_change)
{
    struct lac_strings strings;
    uint32_t id = 77;

    ck_assert_int_eq(lac_strings_init(&strings), LAC_OK);
    (void)intern(&strings, "a", 1);
    strings.bytes_used = LAC_STRINGS_BYTES_MAX - 4; /* as if that much were there */
    ck_assert_int_eq(lac_strings_intern(&strings, "bcde", 4, &id), LAC_ERR_LIMIT);
    ck_assert_uint_eq(id, 77);
    ck_assert_uint_eq(strings.count, 2);
    strings.bytes_used = 3;
    lac_strings_done(&strings);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strings");
    TCase *tests = tcase_create("strings");

    tcase_add_test(tests, empty_string_is_id_0);
    tcase_add_test(tests, ids_follow_first_appearance_and_equal_strings_share_one);
    tcase_add_test(tests, any_bytes_of_any_length_are_kept);
    tcase_add_test(tests, more_bytes_than_the_limit_are_refused_without_a_change);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
