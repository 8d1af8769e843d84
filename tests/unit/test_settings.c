/* Settings of a job as rows: from the text of a trace's metadata, and their limits. */

#include "analysis/compare/settings_flat.h"
#include "analysis/import/text/settings_text.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "collector/base/count_of.h"
#include "server/json/settings_json.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_model model;

static void begin(void)
{
    model = (struct lac_model){0};
    ck_assert_int_eq(lac_strings_init(&model.strings), LAC_OK);
}

static void end(void)
{
    lac_settings_done(&model.settings);
    lac_strings_done(&model.strings);
}

static void read_text(const char *metadata)
{
    ck_assert_int_eq(
        lac_strings_intern(&model.strings, metadata, strlen(metadata), &model.info.metadata),
        LAC_OK);
    ck_assert_int_eq(lac_settings_read_text(&model), LAC_OK);
}

/** The settings as the API answers them. */
static const char *as_json(void)
{
    static char text[512];
    struct lac_buffer out = {0};
    struct lac_json json;
    lac_json_init(&json, &out);
    lac_settings_write_json(&json, NULL, &model.settings);
    ck_assert_int_eq(out.status, LAC_OK);
    (void)snprintf(text, sizeof(text), "%s", out.bytes);
    lac_buffer_done(&out);
    return text;
}

static void add_line(void *context, const char *key, const char *value)
{
    char *lines = context;
    size_t used = strlen(lines);
    (void)snprintf(lines + used, 1024 - used, "%s=%s\n", key, value);
}

START_TEST(values_keep_their_type_and_their_digits)
{
    read_text(
        "{\"other\":[{\"lacuna\":{\"settings\":{\"no\":1}}}],\"lacuna\": {\"version\":1, "
        "\"host\":{\"cores\":\"0-3\"}, \"settings\": {\"n\": 7, \"r\":0.10, \"e\":-1e-3, "
        "\"big\":123456789012345678901, \"t\":\"a\\\"\\u00e9\\n\", \"on\":true,\"off\":false, "
        "\"none\":null,\"deep\":{\"x\":{\"y\":1},\"z\":[]},\"l\":[1, \"b\",{\"k\":true}]}}}");
    const struct lac_setting_rows *rows = &model.settings;
    uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");
    uint32_t host = lac_settings_find(rows, UINT32_MAX, "host");
    ck_assert_uint_ne(root, UINT32_MAX);
    ck_assert_uint_eq(lac_settings_find(rows, root, "no"), UINT32_MAX);
    ck_assert_int_eq(rows->at[lac_settings_find(rows, root, "n")].type, LAC_SETTING_INTEGER);
    ck_assert_int_eq(rows->at[lac_settings_find(rows, root, "r")].type, LAC_SETTING_REAL);
    ck_assert_int_eq(rows->at[lac_settings_find(rows, root, "big")].type, LAC_SETTING_REAL);
    ck_assert_int_eq(rows->at[lac_settings_find(rows, root, "on")].type, LAC_SETTING_TRUE);
    ck_assert_str_eq(lac_settings_value(rows, lac_settings_find(rows, root, "t")), "a\"\u00e9\n");
    ck_assert_str_eq(lac_settings_value(rows, lac_settings_find(rows, host, "cores")), "0-3");
    ck_assert_str_eq(as_json(),
                     "{\"n\":7,\"r\":0.10,\"e\":-1e-3,\"big\":123456789012345678901,"
                     "\"t\":\"a\\\"\u00e9\\n\",\"on\":true,\"off\":false,\"none\":null,"
                     "\"deep\":{\"x\":{\"y\":1},\"z\":[]},\"l\":[1,\"b\",{\"k\":true}]}");
    char lines[1024] = "";
    lac_settings_each(rows, add_line, lines);
    ck_assert_str_eq(lines,
                     "n=7\nr=0.10\ne=-1e-3\nbig=123456789012345678901\nt=a\"\u00e9\n\non=on\n"
                     "off=off\ndeep.x.y=1\ndeep.z=[]\nl=[1,\"b\",{\"k\":true}]\n");
}
END_TEST

START_TEST(text_that_is_no_json_gives_no_rows)
{
    static const char *const odd[] = {
        "",
        "[1]",
        "{\"lacuna\":{\"settings\":{\"a\":1",
        "{\"lacuna\":{\"settings\":{\"a\":1}}",
        "{\"lacuna\":{\"settings\":{\"a\" 1}}}",
        "{\"lacuna\":{\"settings\":{\"a\":}}}",
        "{\"lacuna\":{\"settings\":{\"a\":\"x}}}",
        "{\"lacuna\":{\"settings\":{\"a\":[1,]}}}",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(odd); i++) {
        read_text(odd[i]);
        ck_assert_msg(model.settings.count == 0, "%s", odd[i]);
        ck_assert_uint_eq(model.report_count, 0);
    }
    ck_assert_str_eq(as_json(), "{}");
}
END_TEST

START_TEST(what_goes_beyond_the_limits_is_left_out_and_counted)
{
    size_t capacity = 1 << 20;
    char *text = malloc(capacity);
    ck_assert_ptr_nonnull(text);
    size_t used = (size_t)snprintf(text, capacity,
                                   "{\"lacuna\":{\"settings\":{\"a\":1,\"a\":2,"
                                   "\"bad\":007,\"deep\":");
    for (int i = 0; i < 40; i++) {
        text[used++] = '[';
    }
    for (int i = 0; i < 40; i++) {
        text[used++] = ']';
    }
    for (int i = 0; i < 2 * LAC_SETTINGS_MAX; i++) {
        used += (size_t)snprintf(text + used, capacity - used, ",\"k%d\":%d", i, i);
    }
    (void)snprintf(text + used, capacity - used, "}}}");
    read_text(text);
    free(text);
    const struct lac_setting_rows *rows = &model.settings;
    uint32_t root = lac_settings_find(rows, UINT32_MAX, "settings");
    ck_assert_uint_eq(rows->count, LAC_SETTINGS_MAX);
    ck_assert_str_eq(lac_settings_value(rows, lac_settings_find(rows, root, "a")), "1");
    ck_assert_uint_eq(lac_settings_find(rows, root, "bad"), UINT32_MAX);
    /* the root, "a" and the lists are the other rows; the first list that is too deep takes all
     * inside it along */
    uint64_t lists = LAC_SETTINGS_DEPTH_MAX;
    ck_assert_uint_eq(model.report_count, 1);
    ck_assert_str_eq(model.report[0].code, "settings_left_out");
    ck_assert_uint_eq(model.report[0].count,
                      2 + 1 + 2 * LAC_SETTINGS_MAX - (LAC_SETTINGS_MAX - 2 - lists));
}
END_TEST

START_TEST(rows_that_cannot_be_are_refused)
{
    struct lac_setting_rows *rows = &model.settings;
    static const struct {
        uint32_t parent;
        enum lac_setting_type type;
        const char *name, *value;
    } wrong[] = {
        {UINT32_MAX, LAC_SETTING_TEXT, "settings", "a"},    /* a root is an object */
        {UINT32_MAX, LAC_SETTING_OBJECT, "settings", NULL}, /* twice */
        {9, LAC_SETTING_TEXT, "a", "a"},                    /* no such row */
        {1, LAC_SETTING_TEXT, "a", "a"},                    /* no object */
        {0, LAC_SETTING_INTEGER, "a", "1.5"},
        {0, LAC_SETTING_REAL, "a", "1,\"x\":2"},
        {0, LAC_SETTING_TRUE, "a", "true"},
        {0, LAC_SETTING_TYPE_COUNT_, "a", ""},
        {0, LAC_SETTING_TEXT, "n", "1"}, /* the name is there */
        {2, LAC_SETTING_TEXT, "a", "1"}, /* items have no name */
    };
    ck_assert_int_eq(lac_settings_add(rows, UINT32_MAX, LAC_SETTING_OBJECT, "settings", NULL),
                     LAC_OK);
    ck_assert_int_eq(lac_settings_add(rows, 0, LAC_SETTING_INTEGER, "n", "1"), LAC_OK);
    ck_assert_int_eq(lac_settings_add(rows, 0, LAC_SETTING_LIST, "l", NULL), LAC_OK);
    for (size_t i = 0; i < LAC_COUNT_OF(wrong); i++) {
        ck_assert_int_eq(
            lac_settings_add(rows, wrong[i].parent, wrong[i].type, wrong[i].name, wrong[i].value),
            LAC_ERR_MISUSE);
    }
    /* a member of a list that is over */
    ck_assert_int_eq(lac_settings_add(rows, 0, LAC_SETTING_NULL, "m", NULL), LAC_OK);
    ck_assert_int_eq(lac_settings_add(rows, 2, LAC_SETTING_NULL, NULL, NULL), LAC_ERR_MISUSE);
    ck_assert_uint_eq(rows->count, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settings");
    TCase *cases = tcase_create("settings");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_test(cases, values_keep_their_type_and_their_digits);
    tcase_add_test(cases, text_that_is_no_json_gives_no_rows);
    tcase_add_test(cases, what_goes_beyond_the_limits_is_left_out_and_counted);
    tcase_add_test(cases, rows_that_cannot_be_are_refused);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
