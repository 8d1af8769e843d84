#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t bits_of(double value)
{
    int64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* A model of one slice with that template and those numbers. */
static struct lac_model *model_of(const char *text, const int64_t *numbers, uint32_t count)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    struct lac_slice_in slice = {.detail = LAC_NONE};
    uint32_t process = 0;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    ck_assert_int_eq(lac_builder_process(builder, 0, 1, &process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, LAC_TRACK_THREAD, process, 0, 1, &slice.track),
                     LAC_OK);
    ck_assert_int_eq(
        lac_strings_intern(&lac_builder_model(builder)->strings, text, strlen(text), &slice.args),
        LAC_OK);
    ck_assert_int_eq(lac_builder_arg_numbers(builder, numbers, count, &slice.arg_num), LAC_OK);
    ck_assert_int_eq(lac_builder_slice(builder, &slice), LAC_OK);
    ck_assert_int_eq(lac_builder_finish(builder, 0, &model), LAC_OK);
    return model;
}

START_TEST(numbers_go_back_into_their_places)
{
    int64_t numbers[] = {537, INT64_MIN, bits_of(0.1), INT64_MAX};
    struct lac_model *model =
        model_of("{\"External id\":\x01,\"a\":[\x01,\x02],\"b\":\"x\",\"c\":\x01}", numbers, 4);
    char text[200];
    size_t length = lac_args_format(model, 0, text, sizeof(text));

    ck_assert_str_eq(text, "{\"External id\":537,\"a\":[-9223372036854775808,0.1],\"b\":\"x\","
                           "\"c\":9223372036854775807}");
    ck_assert_uint_eq(length, strlen(text));
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_short_buffer_gets_a_prefix_and_the_whole_length)
{
    int64_t numbers[] = {123456};
    struct lac_model *model = model_of("{\"n\":\x01}", numbers, 1);

    for (size_t capacity = 0; capacity < 20; capacity++) {
        char text[20];

        memset(text, 'x', sizeof(text));
        ck_assert_uint_eq(lac_args_format(model, 0, text, capacity), 12);
        if (capacity > 0) {
            size_t kept = capacity - 1 < 12 ? capacity - 1 : 12;

            ck_assert_uint_eq(strlen(text), kept);
            ck_assert_mem_eq(text, "{\"n\":123456}", kept);
        }
        for (size_t i = capacity; i < sizeof(text); i++) {
            ck_assert_int_eq(text[i], 'x');
        }
    }
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_slice_without_arguments_has_no_text)
{
    struct lac_model *model = model_of("", NULL, 0);
    char text[4] = "abc";

    ck_assert_uint_eq(lac_args_format(model, 0, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "");
    lac_model_destroy(model);
}
END_TEST

START_TEST(reals_are_as_short_as_they_can_be_and_read_back_the_same)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.5, "0.5"},
                 {-0.0, "-0"},
                 {1e22, "1e+22"},
                 {156.8, "156.8"},
                 {0.30000000000000004, "0.30000000000000004"},
                 {5e-324, "5e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"}};

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        int64_t bits = bits_of(cases[i].value);
        struct lac_model *model = model_of("\x02", &bits, 1);
        char text[40];

        (void)lac_args_format(model, 0, text, sizeof(text));
        ck_assert_str_eq(text, cases[i].text);
        ck_assert_int_eq(bits_of(strtod(text, NULL)), bits);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(what_json_has_no_number_for_is_a_word)
{
    int64_t numbers[] = {bits_of((double)NAN), bits_of((double)INFINITY),
                         bits_of(-(double)INFINITY)};
    struct lac_model *model = model_of("{\"a\":\x02,\"b\":[\x02,\x02]}", numbers, 3);
    char text[80];

    (void)lac_args_format(model, 0, text, sizeof(text));
    ck_assert_str_eq(text, "{\"a\":\"NaN\",\"b\":[\"Infinity\",\"-Infinity\"]}");
    lac_model_destroy(model);
}
END_TEST

START_TEST(missing_numbers_read_as_zero)
{
    struct lac_model *model = model_of("[\x01,\x01,\x02]", NULL, 0);
    char text[40];

    (void)lac_args_format(model, 0, text, sizeof(text));
    ck_assert_str_eq(text, "[0,0,0]");
    lac_model_destroy(model);
}
END_TEST

START_TEST(placeholders_are_counted_wherever_they_are)
{
    ck_assert_uint_eq(lac_args_number_count("", 0), 0);
    ck_assert_uint_eq(lac_args_number_count("{\"a\":\x01,\"b\":[\x02,\x01]}", 17), 3);
    ck_assert_uint_eq(lac_args_number_count("{\"a\x01", 4), 1); /* a template that is none */
    ck_assert_uint_eq(lac_args_number_count("\"\\\x01\"", 4), 1);
}
END_TEST

START_TEST(formatting_and_counting_agree_on_any_bytes)
{
    static const char alphabet[] = "\x01\x02\"\\:{}a,";
    uint32_t state = 12345;

    for (int round = 0; round < 3000; round++) {
        char text[13] = {0};
        char out[400];
        int64_t numbers[12];
        size_t ones = 0;

        for (size_t i = 0; i < 12; i++) {
            state = state * 1664525u + 1013904223u;
            text[i] = alphabet[(state >> 16) % (sizeof(alphabet) - 1)];
            numbers[i] = 7;
        }
        struct lac_model *model = model_of(text, numbers, 12);
        (void)lac_args_format(model, 0, out, sizeof(out));
        for (const char *p = out; *p != '\0'; p++) { /* a real of these bits prints as 3.5e-323 */
            ones += *p == '7' || (p[0] == 'e' && p[1] == '-');
        }
        ck_assert_uint_eq(ones, lac_args_number_count(text, 12));
        lac_model_destroy(model);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("args");
    TCase *tests = tcase_create("args");

    tcase_add_test(tests, numbers_go_back_into_their_places);
    tcase_add_test(tests, a_short_buffer_gets_a_prefix_and_the_whole_length);
    tcase_add_test(tests, a_slice_without_arguments_has_no_text);
    tcase_add_test(tests, reals_are_as_short_as_they_can_be_and_read_back_the_same);
    tcase_add_test(tests, what_json_has_no_number_for_is_a_word);
    tcase_add_test(tests, missing_numbers_read_as_zero);
    tcase_add_test(tests, placeholders_are_counted_wherever_they_are);
    tcase_add_test(tests, formatting_and_counting_agree_on_any_bytes);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
