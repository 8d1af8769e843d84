/* JSON of the server: what is written in each form, what is read and what is refused. */

#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/base/csv.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"
#include "server/json/json_read.h"
#include "server/json/rows_csv.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -- writing ----------------------------------------------------------------------------------- */

static void write_sample(struct lac_json *json)
{
    lac_json_open(json, NULL, '{');
    lac_json_text(json, "text", "<a>&\"\\\b\f\n\r\t\x01\x7f\xc3\xa9\xe2\x80\xa8");
    lac_json_text_sized(json, "with a NUL", "a\0b", 3);
    lac_json_text(json, "not UTF-8", "\xff\xc0\x80|\xed\xa0\x80|\xc3");
    lac_json_text(json, "none", NULL);
    lac_json_open(json, "numbers", '[');
    lac_json_int(json, NULL, INT64_MIN);
    lac_json_uint(json, NULL, UINT64_MAX);
    lac_json_real(json, NULL, 0.1);
    lac_json_real(json, NULL, (double)NAN);
    lac_json_decimals(json, NULL, 2.0 / 3.0);
    lac_json_decimals(json, NULL, 1e60);
    lac_json_decimals(json, NULL, (double)INFINITY);
    lac_json_optional(json, NULL, 0);
    lac_json_optional(json, NULL, -1);
    lac_json_ns(json, NULL, -1);
    lac_json_ns(json, NULL, INT64_MIN);
    lac_json_int_text(json, NULL, -5);
    lac_json_close(json, ']');
    lac_json_line(json);
    lac_json_open(json, "a \"key\"", '{');
    lac_json_line(json);
    lac_json_close(json, '}');
    lac_json_raw(json, "raw", "{\n  \"x\": 1\n}", 12);
    lac_json_bool(json, "is", true);
    lac_json_close(json, '}');
}

static void expect_form(enum lac_json_form form, const char *want)
{
    struct lac_buffer out = {0};
    struct lac_json json;

    lac_json_init_form(&json, &out, form);
    write_sample(&json);
    ck_assert_int_eq(out.status, LAC_OK);
    ck_assert_uint_eq(json.depth, 0);
    ck_assert_str_eq(out.bytes, want);
    lac_buffer_done(&out);
}

#define NUMBERS                                                                                    \
    "-9223372036854775808,18446744073709551615,0.1,null,0.6667,"                                   \
    "999999999999999949387135297074018866963645011013410073083904.0000,null,0,null,-1,null,\"-5\""
#define BROKEN "\"\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\""

START_TEST(a_reply_is_harmless_in_a_page)
{
    expect_form(
        LAC_JSON_REPLY,
        "{\"text\":\"\\u003ca\\u003e\\u0026\\\"\\\\\\u0008\\u000c\\n\\u000d\\t\\u0001\\u007f"
        "\xc3\xa9\\u2028\",\"with a NUL\":\"a\\u0000b\",\"not UTF-8\":" BROKEN
        ",\"none\":null,\"numbers\":[" NUMBERS "],\n\"a \\\"key\\\"\":{\n},"
        "\"raw\":{\n  \"x\": 1\n},\"is\":true}");
}
END_TEST

START_TEST(a_document_escapes_what_json_asks_for)
{
    expect_form(LAC_JSON_DOCUMENT,
                "{\"text\":\"<a>&\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7f\xc3\xa9\xe2\x80\xa8\","
                "\"with a NUL\":\"a\\u0000b\",\"not UTF-8\":" BROKEN
                ",\"none\":null,\"numbers\":[" NUMBERS "],\n\"a \\\"key\\\"\":{\n},"
                "\"raw\":{\n  \"x\": 1\n},\"is\":true}");
}
END_TEST

START_TEST(a_document_for_people_is_indented)
{
    struct lac_buffer out = {0};
    struct lac_json json;

    lac_json_init_form(&json, &out, LAC_JSON_INDENTED);
    lac_json_open(&json, NULL, '{');
    lac_json_open(&json, "none", '[');
    lac_json_close(&json, ']');
    lac_json_line(&json);
    lac_json_open(&json, "two", '[');
    lac_json_int(&json, NULL, 1);
    lac_json_raw(&json, NULL, "{\n  \"x\": 1\n}", 12);
    lac_json_close(&json, ']');
    lac_json_close(&json, '}');
    ck_assert_str_eq(out.bytes, "{\n  \"none\": [\n  ],\n  \"two\": [\n    1,\n    {\n"
                                "      \"x\": 1\n    }\n  ]\n}");
    lac_buffer_done(&out);
}
END_TEST

/* -- reading ----------------------------------------------------------------------------------- */

static const struct lac_json_limits small = {.size_bytes_max = 200, .depth_max = 3};

static struct json_object *read_object(const char *text)
{
    struct json_object *object = NULL;
    struct lac_error error = {0};
    /* exactly as long as it is: the sanitizers see a read beyond its end */
    char *exact = malloc(strlen(text));

    ck_assert_ptr_nonnull(exact);
    memcpy(exact, text, strlen(text));
    ck_assert_msg(lac_json_read(exact, strlen(text), &small, &object, &error) == LAC_OK, "%s: %s",
                  text, error.message);
    free(exact);
    return object;
}

static void expect_refusal(const char *text, size_t size, enum lac_status status, const char *why)
{
    struct json_object *object = NULL;
    struct lac_error error = {0};

    ck_assert_msg(lac_json_read(text, size, &small, &object, &error) == status, "%s: %s", text,
                  error.message);
    ck_assert_msg(strstr(error.message, why) != NULL, "%s: %s", text, error.message);
    ck_assert_ptr_null(object);
}

START_TEST(what_is_no_json_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "it is empty"},
        {"  \n", "it is empty"},
        {"{", "no JSON at byte 1: it ends too early"},
        {"{\"a\":1", "no JSON at byte 6: it ends too early"},
        {"{\"a\":\"x", "it ends too early"},
        {"[1]", "not a JSON object"},
        {"7", "not a JSON object"},
        {"\"text\"", "not a JSON object"},
        {"null", "not a JSON object"},
        {"{\"a\":1} {}", "no JSON at byte 8"},
        {"{\"a\":1}x", "no JSON at byte 7"},
        {"{\"a\":1,}", "no JSON at byte 7"},
        {"{'a':1}", "no JSON at byte 1"},
        {"{\"a\":'b'}", "no JSON at byte 5"},
        {"{\"a\":NaN}", "no JSON at byte 5: unexpected character"},
        {"{\"a\":-Infinity}", "no JSON at byte 5: unexpected character"},
        {"{\"a\":007}", "no JSON at byte 5"},
        {"{\"a\":00}", "no JSON at byte 5"},
        {"{\"a\":-}", "no JSON at byte 5"},
        {"{\"a\":1.}", "no JSON at byte 5"},
        {"{\"a\":1e+}", "no JSON at byte 5"},
        {"{\"a\":+1}", "no JSON at byte 5"},
        {"{\"a\":.5}", "no JSON at byte 5"},
        {"{\"a\":1/*no*/}", "no JSON"},
        {"{\"a\":True}", "no JSON at byte"},
        {"{\"a\":\"two\nlines\"}", "no JSON at byte 5: unexpected character"},
        {"{\"a\":\"\xff\"}", "no JSON at byte 5"},
        {"{\"a\":\"\xc0\xaf\"}", "no JSON at byte 5"},
        {"{\"a\":\"\xed\xa0\x80\"}", "no JSON at byte 5"},
        {"{\"a\":\"\\x\"}", "no JSON"},
        {"{\"a\" 1}", "no JSON at byte 5"},
        {"{a:1}", "no JSON at byte 1"},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        expect_refusal(cases[i].text, strlen(cases[i].text), LAC_ERR_CORRUPT, cases[i].why);
    }
    expect_refusal("{\"a\":1}\0", 8, LAC_ERR_CORRUPT, "no JSON at byte 7");
}
END_TEST

START_TEST(what_is_too_deep_or_too_long_is_refused)
{
    char text[300] = "{\"a\":\"";

    lac_json_read_done(read_object("{\"a\":[{}]}"));
    expect_refusal("{\"a\":[{\"b\":[]}]}", 16, LAC_ERR_LIMIT, "nested deeper than 3");
    memset(text + 6, 'x', 192);
    memcpy(text + 198, "\"}", 3);
    lac_json_read_done(read_object(text));
    memcpy(text + 198, "x\"}", 4);
    expect_refusal(text, 201, LAC_ERR_LIMIT, "201 bytes of JSON, 200 at most");
}
END_TEST

START_TEST(a_member_is_text_or_an_error_that_names_it)
{
    struct json_object *object = read_object(
        " {\"key\":\"first\", \"n\":7, \"key\":\"caf\\u00e9\", \"nul\":\"a\\u0000b\"}\n");
    struct lac_error error = {0};
    char text[6];

    ck_assert_int_eq(lac_json_read_text(object, "key", text, sizeof(text), &error), LAC_OK);
    ck_assert_str_eq(text, "caf\xc3\xa9"); /* the last of the same name */
    ck_assert_int_eq(lac_json_read_text(object, "key", text, 5, &error), LAC_ERR_CORRUPT);
    ck_assert_str_eq(error.message, "\"key\" is longer than 4 bytes");
    ck_assert_int_eq(lac_json_read_text(object, "none", text, 6, &error), LAC_ERR_CORRUPT);
    ck_assert_str_eq(error.message, "\"none\" is missing");
    ck_assert_int_eq(lac_json_read_text(object, "n", text, 6, &error), LAC_ERR_CORRUPT);
    ck_assert_str_eq(error.message, "\"n\" is not text");
    ck_assert_int_eq(lac_json_read_text(object, "nul", text, 6, &error), LAC_ERR_CORRUPT);
    ck_assert_str_eq(error.message, "\"nul\" holds a NUL");
    lac_json_read_done(object);
}
END_TEST

/* -- members ----------------------------------------------------------------------------------- */

static struct lac_json_members members_of(const char *text)
{
    return (struct lac_json_members){text, text + strlen(text)};
}

START_TEST(members_are_passed_on_as_written)
{
    static const char text[] =
        " { \"a\" : 12345678901234567890123 ,\"b\\\"}\":[{\"c\":\"]\"},1.50],\"a\":\"\\\\\" ,"
        "\"d\":{} , \"e\":tru\xc3\xa9 }";
    static const char *const wanted[][2] = {
        {"a", "12345678901234567890123"},
        {"b\\\"}", "[{\"c\":\"]\"},1.50]"},
        {"a", "\"\\\\\""},
        {"d", "{}"},
        {"e", "tru\xc3\xa9"},
    };
    struct lac_json_members left = members_of(text);
    struct lac_json_member member;

    for (size_t i = 0; i < LAC_COUNT_OF(wanted); i++) {
        ck_assert(lac_json_member_next(&left, &member));
        ck_assert_uint_eq(member.key_length, strlen(wanted[i][0]));
        ck_assert_mem_eq(member.key, wanted[i][0], member.key_length);
        ck_assert_uint_eq(member.value_length, strlen(wanted[i][1]));
        ck_assert_mem_eq(member.value, wanted[i][1], member.value_length);
    }
    ck_assert(!lac_json_member_next(&left, &member));
    ck_assert(lac_json_has(members_of(text), "d"));
    ck_assert(!lac_json_has(members_of(text), "c"));
    ck_assert(!lac_json_has(members_of("[]"), "c"));
}
END_TEST

START_TEST(an_object_that_is_cut_gives_whole_members_only)
{
    static const char text[] = "{\"a\":1,\"b\":[2,{\"c\":\"x\\\"\"}],\"d\":{\"e\":[]}}";

    for (size_t size = 0; size < sizeof(text); size++) {
        char *cut = malloc(size + 1);
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, text, size);
        struct lac_json_members left = {cut, cut + size};
        struct lac_json_member member;
        while (lac_json_member_next(&left, &member)) {
            ck_assert(member.key > cut && member.value > member.key);
            ck_assert(member.value_length > 0 && member.value + member.value_length <= cut + size);
            ck_assert(member.value[0] != '[' || member.value_length == 15);
            ck_assert(member.value[0] != '{' || member.value_length == 8);
        }
        free(cut);
    }
}
END_TEST

/* -- CSV --------------------------------------------------------------------------------------- */

static void expect_cell(const char *text, size_t size_bytes, const char *want)
{
    struct lac_buffer out = {0};

    lac_csv_text(&out, text, size_bytes);
    ck_assert_str_eq(out.bytes != NULL ? out.bytes : "", want);
    lac_buffer_done(&out);
}

START_TEST(a_cell_is_quoted_and_no_formula)
{
    expect_cell("", 0, "");
    expect_cell("plain text", 10, "plain text");
    expect_cell("a,\"b\"\n", 6, "\"a,\"\"b\"\"\n\"");
    expect_cell("=1+1", 4, "'=1+1");
    expect_cell("@SUM(A1,A2)", 11, "\"'@SUM(A1,A2)\"");
    expect_cell("\t=1", 3, "'\t=1");
    expect_cell("\r=1", 3, "\"'\r=1\"");
    expect_cell("1=1", 3, "1=1");
}
END_TEST

static const char description[] =
    "{\"paths\":{\"/a\":{\"get\":{\"responses\":{\"200\":{\"content\":{"
    "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/List\"}},"
    "\"text/csv\":{\"x-rows\":\"items\"}}}}}}},"
    "\"components\":{\"schemas\":{\"Row\":{\"properties\":{\"id\":{\"type\":\"integer\"},"
    "\"in\":{\"type\":[\"object\",\"null\"],\"properties\":{\"x\":{\"type\":\"number\"},"
    "\"again\":{\"$ref\":\"#/components/schemas/Row\"}}}}},"
    "\"List\":{\"properties\":{\"items\":{\"items\":{\"$ref\":\"#/components/schemas/Row\"}}}}}}}";

static void expect_rows(const char *reply, enum lac_status want_status, const char *want)
{
    struct json_object *read = NULL;
    struct lac_rows_form form;
    struct lac_error error = {0};
    struct lac_buffer out = {0};
    char next[16];

    ck_assert_int_eq(lac_description_read(description, strlen(description), &read, &error), LAC_OK);
    ck_assert(!lac_rows_form_of(read, "/b", &form));
    ck_assert(lac_rows_form_of(read, "/a", &form));
    ck_assert_int_eq(lac_rows_csv(&form, reply, strlen(reply), &out, next, sizeof(next), &error),
                     want_status);
    if (want_status == LAC_OK) {
        ck_assert_ptr_nonnull(strstr(out.bytes, want));
    }
    lac_buffer_done(&out);
    lac_json_read_done(read);
}

START_TEST(rows_are_flat_and_keep_their_digits)
{
    /* a schema that refers to itself ends, and a row that does has its depth */
    expect_rows("{\"items\":[],\"next\":\"5\"}", LAC_OK, "id,in.x,in.again.id,in.again.in.x");
    expect_rows("{\"items\":[{\"id\":9007199254740993,\"in\":null,\"more\":[1,\"=2\"]},"
                "{\"id\":null,\"in\":{\"x\":0.1000}}]}",
                LAC_OK, "\r\n9007199254740993,,");
    expect_rows("{\"items\":[{\"in\":{\"x\":0.25},\"deep\":[{\"a\":[1]}]}]}", LAC_OK,
                "\"[{\"\"a\"\":[1]}]\"\r\n");
    expect_rows("{\"items\":[null,7,{\"id\":3}]}", LAC_OK, "\r\n3,");
    expect_rows("{\"items\":{}}", LAC_ERR_MISUSE, "");
    expect_rows("{\"items\":[", LAC_ERR_CORRUPT, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_documents");
    TCase *tests = tcase_create("json_documents");

    tcase_add_test(tests, a_reply_is_harmless_in_a_page);
    tcase_add_test(tests, a_document_escapes_what_json_asks_for);
    tcase_add_test(tests, a_document_for_people_is_indented);
    tcase_add_test(tests, what_is_no_json_is_refused_with_its_place);
    tcase_add_test(tests, what_is_too_deep_or_too_long_is_refused);
    tcase_add_test(tests, a_member_is_text_or_an_error_that_names_it);
    tcase_add_test(tests, members_are_passed_on_as_written);
    tcase_add_test(tests, an_object_that_is_cut_gives_whole_members_only);
    tcase_add_test(tests, a_cell_is_quoted_and_no_formula);
    tcase_add_test(tests, rows_are_flat_and_keep_their_digits);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
