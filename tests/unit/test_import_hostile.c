/* Hostile input: each a clear error that names the limit, or a counted repair; nothing lost. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define EVENT(name) "{\"ph\":\"X\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"

/* A string of `count` times `piece` between `head` and `tail`. */
static char *repeated(const char *head, const char *piece, size_t count, const char *tail,
                      size_t *ret_size)
{
    size_t head_size = strlen(head), piece_size = strlen(piece), tail_size = strlen(tail);
    size_t size = head_size + piece_size * count + tail_size;
    char *text = malloc(size + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, head, head_size);
    for (size_t i = 0; i < count; i++)
        memcpy(text + head_size + i * piece_size, piece, piece_size);
    memcpy(text + head_size + count * piece_size, tail, tail_size + 1);
    *ret_size = size;
    return text;
}

static void expect_error(const void *bytes, size_t size, enum lac_status status, const char *part)
{
    struct imported imported = import_sized(bytes, size);
    ck_assert_msg(imported.status == status, "%s: %s", lac_status_name(imported.status),
                  imported.error.message);
    ck_assert_msg(strstr(imported.error.message, part) != NULL, "'%s' does not say '%s'",
                  imported.error.message, part);
    ck_assert_uint_eq(imported.count, 0);
}

START_TEST(five_million_nested_brackets_hit_the_limit)
{
    static const char *const heads[] = {"", "{\"a\":", "[",
                                        "[{\"ph\":\"X\",\"args\":", "{\"traceEvents\":[{\"name\":"};
    for (size_t i = 0; i < LAC_COUNT_OF(heads); i++) {
        size_t size = 0;
        char *text = repeated(heads[i], "[", 5000000, "", &size);
        expect_error(text, size, LAC_ERR_LIMIT, "depth_max");
        free(text);
        text = repeated(heads[i], "{\"a\":", 5000000, "", &size);
        struct imported imported = import_sized(text, size);
        ck_assert(imported.status == LAC_ERR_LIMIT || imported.status == LAC_ERR_CORRUPT);
        imported_done(&imported);
        free(text);
    }
}
END_TEST

START_TEST(a_string_of_50_mb_hits_the_limit_wherever_it_is)
{
    static const char *const heads[] = {"[{\"ph\":\"X\",\"name\":\"",
                                        "[{\"ph\":\"X\",\"args\":{\"a\":\"",
                                        "{\"a\":\"",
                                        "{\"",
                                        "[\"",
                                        "[{\"",
                                        "[{\"ph\":\"X\",\"pid\":\""};
    for (size_t i = 0; i < LAC_COUNT_OF(heads); i++) {
        size_t size = 0;
        char *text = repeated(heads[i], "abcdefghij", 5000000, "\"}]", &size);
        expect_error(text, size, LAC_ERR_LIMIT, "event_bytes_max");
        free(text);
    }
}
END_TEST

START_TEST(a_name_beyond_its_limit_is_an_error_that_names_it)
{
    size_t size = 0;
    char *text = repeated("[{\"ph\":\"X\",\"ts\":1,\"name\":\"", "x", 65537, "\"}]", &size);
    expect_error(text, size, LAC_ERR_LIMIT, "name_bytes_max");
    free(text);
    text = repeated("[{\"ph\":\"X\",\"ts\":1,\"name\":\"", "x", 65536, "\"}]", &size);
    struct imported imported = import_sized(text, size);
    ck_assert_int_eq(imported.status, LAC_OK);
    imported_done(&imported);
    free(text);
}
END_TEST

START_TEST(times_that_no_number_holds_are_dropped_and_counted)
{
    struct imported imported = import_text("[" EVENT(
        "good") ",{\"ph\":\"X\",\"name\":\"a\",\"ts\":1e400,\"dur\":1},"
                "{\"ph\":\"X\",\"name\":\"b\",\"ts\":1,\"dur\":1e400},"
                "{\"ph\":\"X\",\"name\":\"c\",\"ts\":99999999999999999999999999,\"dur\":1},"
                "{\"ph\":\"X\",\"name\":\"d\",\"ts\":1,\"dur\":12345678901234567890123456},"
                "{\"ph\":\"X\",\"name\":\"e\",\"ts\":\"soon\"},{\"ph\":\"X\",\"name\":\"f\",\"ts\":"
                "null},"
                "{\"ph\":\"X\",\"name\":\"g\"},{\"ph\":\"X\",\"name\":\"h\",\"ts\":1,\"dur\":-5},"
                "{\"ph\":\"X\",\"name\":\"i\",\"ts\":1e18,\"dur\":0},"
                "{\"ph\":\"X\",\"name\":\"j\",\"ts\":NaN,\"dur\":0},"
                "{\"ph\":\"X\",\"name\":\"k\",\"ts\":0,\"dur\":9223372036854775}]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(model->info.event_count, 12);
    ck_assert_uint_eq(report_count(model, "time_not_a_time"), 6);
    ck_assert_uint_eq(report_count(model, "duration_not_a_time"), 2);
    ck_assert_uint_eq(report_count(model, "time_missing"), 1);
    ck_assert_uint_eq(report_count(model, "duration_negative"), 1);
    ck_assert_uint_eq(report_count(model, "time_out_of_range"), 1);
    ck_assert_uint_eq(model->info.dropped_count, 10);
    ck_assert_uint_eq(model->slices.count, 2);
    ck_assert(lac_model_is_valid(model));
    imported_done(&imported);
}
END_TEST

START_TEST(a_duration_of_null_is_none)
{
    struct imported imported =
        import_text("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":null},"
                    "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"dur\":7,\"dur\": null }]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(model->info.dropped_count, 0);
    ck_assert_uint_eq(report_count(model, "duration_missing"), 2);
    ck_assert_uint_eq(model->slices.count, 2);
    ck_assert_int_eq(model->slices.dur_ns[0], 0);
    ck_assert_int_eq(model->slices.dur_ns[1], 0);
    imported_done(&imported);
}
END_TEST

static void check_that_the_others_stay(const char *text, uint64_t kept)
{
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(report_count(model, "time_out_of_range"), 1);
    ck_assert_uint_eq(model->slices.count, kept);
    ck_assert_uint_eq(find_slice(model, "stray"), UINT64_MAX);
    ck_assert_int_eq(model->info.t0_ns, INT64_C(1700000000000000000));
    ck_assert_int_eq(model->slices.start_ns[find_slice(model, "one")], 0);
    ck_assert_int_eq(model->info.duration_ns, 5000);
    ck_assert(lac_model_is_valid(model));
    imported_done(&imported);
}

/* Recorders write a timestamp of 0 into events that have none: the trace is where the others are. */
START_TEST(a_time_of_zero_takes_no_other_event_with_it)
{
    check_that_the_others_stay(
        "[{\"ph\":\"X\",\"name\":\"stray\",\"ts\":0,\"dur\":1,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"name\":\"one\",\"ts\":1700000000000000,\"dur\":2,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"name\":\"two\",\"ts\":1700000000000003,\"dur\":2,\"pid\":1,\"tid\":1}]",
        2);
    /* the same of pairs, which become intervals only at the end */
    check_that_the_others_stay(
        "[{\"ph\":\"X\",\"name\":\"stray\",\"ts\":0,\"dur\":1,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"B\",\"name\":\"one\",\"ts\":1700000000000000,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"E\",\"ts\":1700000000000002,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"B\",\"name\":\"open\",\"ts\":1700000000000003,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"i\",\"name\":\"last\",\"ts\":1700000000000005,\"pid\":1,\"tid\":1}]",
        3);
    /* and of counters */
    struct imported imported = import_text(
        "[{\"ph\":\"C\",\"name\":\"c\",\"ts\":0,\"pid\":1,\"args\":{\"v\":1}},"
        "{\"ph\":\"C\",\"name\":\"c\",\"ts\":1700000000000000,\"pid\":1,\"args\":{\"v\":2}},"
        "{\"ph\":\"X\",\"name\":\"one\",\"ts\":1700000000000000,\"dur\":2,\"pid\":1,\"tid\":1}]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(report_count(imported.models[0], "time_out_of_range"), 1);
    ck_assert_uint_eq(imported.models[0]->sample_count, 1);
    ck_assert_uint_eq(imported.models[0]->slices.count, 1);
    imported_done(&imported);
}
END_TEST

/* What is too far from the begin is dropped, and takes nothing with it. */
START_TEST(an_event_of_another_century_takes_no_open_interval_with_it)
{
    struct imported imported = import_text(
        "[" EVENT("first") ",{\"ph\":\"B\",\"name\":\"open\",\"ts\":2,\"pid\":1,\"tid\":1},"
                           "{\"ph\":\"b\",\"name\":\"async\",\"ts\":3,\"id\":1,\"cat\":\"c\"},"
                           "{\"ph\":\"X\",\"name\":\"last\",\"ts\":50,\"dur\":1},"
                           "{\"ph\":\"X\",\"name\":\"far\",\"ts\":9007199254741000,\"dur\":1},"
                           "{\"ph\":\"i\",\"name\":\"mark\",\"ts\":9007199254741000},"
                           "{\"ph\":\"B\",\"name\":\"far\",\"ts\":9007199254741000}]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(report_count(model, "time_out_of_range"), 3);
    ck_assert_uint_eq(model->info.dropped_count, 3);
    ck_assert_uint_eq(report_count(model, "begin_without_end"), 2);
    ck_assert_uint_eq(model->info.slice_count, 2); /* what was dropped is none of them */
    const struct lac_slices *slices = &model->slices;
    uint64_t open = find_slice(model, "open"), async = find_slice(model, "async");
    ck_assert_uint_ne(open, UINT64_MAX);
    ck_assert_uint_ne(async, UINT64_MAX);
    ck_assert_int_eq(slices->start_ns[open] + slices->dur_ns[open], 49000);
    ck_assert_int_eq(slices->start_ns[async] + slices->dur_ns[async], 49000);
    ck_assert_uint_eq(find_slice(model, "far"), UINT64_MAX);
    ck_assert(lac_model_is_valid(model));
    imported_done(&imported);
}
END_TEST

/* JSON may spell any character of any string as an escape, also of keys, phases and categories. */
START_TEST(escapes_mean_the_same_everywhere)
{
    struct imported imported = import_text(
        "[{\"\\u0070h\":\"\\u0058\",\"n\\u0061me\":\"\\u006b1\",\"\\u0063\\u0061\\u0074\":"
        "\"gpu\\u005fm\\u0065mcpy\",\"t\\u0073\":1,\"\\u0064ur\":2,\"pid\":0,\"tid\":7},"
        "{\"ph\":\"X\",\"name\":\"k2\",\"cat\":\"\\u006Bernel\",\"ts\":5,\"dur\":2,\"pid\":0,"
        "\"tid\":7},"
        "{\"ph\":\"\\u0058\\u0058\",\"name\":\"none\",\"ts\":6},"
        "{\"ph\":\"b\",\"name\":\"wait\",\"ts\":6,\"id\":\"id\\u0033\",\"cat\":\"c\"},"
        "{\"ph\":\"e\",\"name\":\"wa\\u0069t\",\"ts\":7,\"id\":\"id3\",\"cat\":\"\\u0063\"},"
        "{\"ph\":\"X\",\"name\":\"k3\",\"cat\":"
        "\"\\u0067\\u0070\\u0075\\u0020\\u0067\\u0070\\u0075\\u0020"
        "\\u0067\\u0070\\u0075\",\"ts\":7,\"dur\":1,\"pid\":0,\"tid\":7}]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(model->info.dropped_count, 0);
    ck_assert_uint_eq(model->info.repaired_count, 0);
    ck_assert_uint_eq(model->info.slice_count, 4);
    uint64_t copy = find_slice(model, "k1"), kernel = find_slice(model, "k2");
    ck_assert_uint_ne(copy, UINT64_MAX);
    ck_assert_uint_eq(model->slices.kind[copy], LAC_SLICE_COPY);
    ck_assert_int_eq(model->slices.dur_ns[copy], 2000);
    ck_assert_uint_ne(kernel, UINT64_MAX);
    ck_assert_uint_eq(model->slices.kind[kernel], LAC_SLICE_KERNEL);
    imported_done(&imported);
}
END_TEST

START_TEST(huge_and_odd_numbers_in_arguments_keep_their_text)
{
    static const char args[] =
        "{\"a\":123456789012345678901234567890,\"b\":-9223372036854775808,\"c\":1e400,"
        "\"d\":0.1000,\"e\":9223372036854775807,\"f\":-0,\"g\":1E5,\"h\":12345.678,"
        "\"correlation\":99999999999,\"device\":5000000000}";
    char text[1000];
    snprintf(text, sizeof(text),
             "[{\"ph\":\"X\",\"name\":\"n\",\"cat\":\"kernel\",\"pid\":0,"
             "\"ts\":1,\"dur\":1,\"args\":%s}]",
             args);
    struct imported imported = import_text(text);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_str_eq(args_of(imported.models[0], 0), args);
    ck_assert_uint_eq(imported.models[0]->slices.corr[0], 0);
    imported_done(&imported);
}
END_TEST

START_TEST(duplicate_keys_take_the_last_as_json_readers_do)
{
    struct imported imported = import_text(
        "[{\"ph\":\"B\",\"ph\":\"X\",\"name\":\"old\",\"name\":\"new\",\"ts\":1,\"ts\":7,"
        "\"dur\":3,\"args\":{\"correlation\":1},"
        "\"args\":{\"correlation\":2,\"correlation\":3},\"cat\":\"Runtime\"}]");
    const struct lac_model *model = imported.models[0];
    ck_assert_int_eq(imported.status, LAC_OK);
    ck_assert_uint_eq(find_slice(model, "new"), 0);
    ck_assert_int_eq(model->info.t0_ns, 7000);
    ck_assert_uint_eq(model->slices.corr[0], 3);
    ck_assert_str_eq(args_of(model, 0), "{\"correlation\":2,\"correlation\":3}");
    imported_done(&imported);
}
END_TEST

/** What lacks a quote, a comma or a colon is repaired within itself, or dropped and counted. */
START_TEST(a_repair_takes_no_other_event_in)
{
    static const char *const damaged[] = {
        "{\"ph\":\"X\",\"name\":\"c\" \"pid\":0,\"ts\":1,\"dur\":1}",
        "{\"ph\":\"X\",\"name\":\"c\",\"ts\":1,\"dur\" 1,\"pid\":0}",
        "{\"ph\":\"X\",\"name\":\"c,\"ts\":1,\"dur\":1,\"pid\":0}",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(damaged); i++) {
        char text[1024];
        (void)snprintf(text, sizeof(text), "[%s,%s,%s,%s]", EVENT("a"), EVENT("b"), damaged[i],
                       EVENT("d"));
        struct imported imported = import_text(text);
        ck_assert_int_eq(imported.status, LAC_OK);
        ck_assert_uint_eq(imported.models[0]->slices.count + imported.models[0]->info.dropped_count,
                          4);
        ck_assert_uint_ge(imported.models[0]->slices.count, 3);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(repairs_are_made_and_counted)
{
    struct imported imported = import_text("\xef\xbb\xbf{\"traceEvents\":[" EVENT("a") EVENT(
        "b") ",," EVENT("c") ","
                             "{\"ph\":\"X\",\"name\":\"raw\ttab\",\"ts\":1,\"dur\":1,\"args\":{"
                             "\"s\":\"x\ny\",}},"
                             "{\"ph\":\"X\",\"name\":\"bad\xff "
                             "utf8\xc3\",\"ts\":1,\"dur\":1,\"args\":{\"s\":\"\xed\xa0\x80\"}},"
                             "{\"ph\":\"X\",\"name\":\"nan\",\"ts\":1,\"dur\":1,\"args\":{\"v\":"
                             "NaN,\"w\":[-inf,007],}},"
                             "{\"ph\":\"X\",\"name\":\"C:\\Users\",\"ts\":1,\"dur\":1,},17,null,"
                             "\"text\",],}trailing");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(model->info.event_count, 7);
    ck_assert_uint_eq(model->slices.count, 7);
    ck_assert_uint_eq(report_count(model, "missing_comma"), 1);
    ck_assert_uint_eq(report_count(model, "extra_comma"), 1);
    ck_assert_uint_eq(report_count(model, "trailing_comma"), 5);
    ck_assert_uint_eq(report_count(model, "control_character"), 2);
    ck_assert_uint_eq(report_count(model, "bad_utf8"), 5);
    ck_assert_uint_eq(report_count(model, "odd_literal"), 3);
    ck_assert_uint_eq(report_count(model, "bad_escape"), 1);
    ck_assert_uint_eq(report_count(model, "event_not_an_object"), 3);
    ck_assert_uint_eq(report_count(model, "stray_bytes"), 8);
    ck_assert_str_eq(args_of(model, find_slice(model, "raw\ttab")), "{\"s\":\"x\\u000ay\"}");
    ck_assert_str_eq(args_of(model, find_slice(model, "bad\xef\xbf\xbd utf8\xef\xbf\xbd")),
                     "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}");
    ck_assert_str_eq(args_of(model, find_slice(model, "nan")),
                     "{\"v\":\"NaN\",\"w\":[\"-inf\",\"007\"]}");
    ck_assert_uint_ne(find_slice(model, "C:\\Users"), UINT64_MAX);
    imported_done(&imported);
}
END_TEST

START_TEST(unescaped_quotes_are_mended)
{
    struct imported imported = import_text(
        "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{\"Call stack\":\"f(\"x\", 1); "
        "g\"}},"
        "{\"ph\":\"X\",\"name\":\"say \"hi\" now\",\"ts\":1,\"dur\":1}," EVENT("after") "]");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_eq(report_count(model, "unescaped_quote"), 2);
    ck_assert_uint_eq(model->info.dropped_count, 0);
    ck_assert_uint_eq(model->slices.count, 3);
    ck_assert_uint_ne(find_slice(model, "say \"hi\" now"), UINT64_MAX);
    ck_assert_str_eq(args_of(model, find_slice(model, "a")),
                     "{\"Call stack\":\"f(\\\"x\\\", 1); g\"}");
    imported_done(&imported);
}
END_TEST

START_TEST(damage_costs_the_damaged_events_and_no_more)
{
    struct imported imported = import_text(
        "{\"traceEvents\":[" EVENT("a") ",{\"ph\":\"X\",\"name\":%%%,\"args\":{\"x\":1}}," EVENT(
            "b") ",{\"ph\" \"X\"}," EVENT("c") ",{]," EVENT("d") "]}");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.models[0]->slices.count, 4);
    ck_assert_uint_eq(report_count(imported.models[0], "event_damaged"), 3);
    imported_done(&imported);
}
END_TEST

START_TEST(endless_damage_ends_in_an_error_soon)
{
    size_t size = 0;
    char *text = repeated("[" EVENT("a") ",", "{\"a\":[{\"b\"", 2000000, "", &size);
    struct imported imported = import_sized(text, size);
    ck_assert(imported.status == LAC_OK || imported.status == LAC_ERR_CORRUPT);
    imported_done(&imported);
    free(text);
    text = repeated("[" EVENT("a") ",{%,", "{\"a\":[1,2,3", 2000000, "", &size);
    imported = import_sized(text, size);
    ck_assert(imported.status == LAC_OK || imported.status == LAC_ERR_CORRUPT);
    imported_done(&imported);
    free(text);
}
END_TEST

START_TEST(what_is_no_trace_is_called_so)
{
    static const char *const texts[] = {"",
                                        " \n",
                                        "\xef\xbb\xbf",
                                        "hello",
                                        "[1,2,3]",
                                        "{\"a\":1}",
                                        "{\"traceEvents\":5}",
                                        "{\"traceEvents\":null}",
                                        "[{\"a\":1},{\"b\":2}]",
                                        "<html></html>",
                                        "{",
                                        "{\"traceEvents\"",
                                        "{\"traceEvents\":",
                                        "{\"traceEvents\":[",
                                        "[",
                                        "[{",
                                        "[{\"ph\":\"X\"",
                                        "\"traceEvents\"",
                                        "}"};
    for (size_t i = 0; i < LAC_COUNT_OF(texts); i++) {
        struct imported imported = import_text(texts[i]);
        ck_assert_msg(imported.status == LAC_ERR_CORRUPT, "'%s': %s", texts[i],
                      lac_status_name(imported.status));
        ck_assert_uint_gt(strlen(imported.error.message), 10);
        imported_done(&imported);
    }
    static const char *const empty[] = {"[]", "{\"traceEvents\":[]}",
                                        "{\"traceEvents\":[],\"a\":[{}]}"};
    for (size_t i = 0; i < LAC_COUNT_OF(empty); i++) {
        struct imported imported = import_text(empty[i]);
        ck_assert_int_eq(imported.status, LAC_OK);
        ck_assert_uint_eq(imported.models[0]->info.event_count, 0);
        imported_done(&imported);
    }
}
END_TEST

START_TEST(what_was_packed_some_other_way_says_how_to_unpack_it)
{
    expect_error("\xfd"
                 "7zXZ\0\0\4",
                 8, LAC_ERR_CORRUPT, "xz -d");
    expect_error("BZh91AY&SY", 10, LAC_ERR_CORRUPT, "bzip2 -d");
    expect_error("PK\x03\x04\0\0\0\0", 8, LAC_ERR_CORRUPT, "unzip");
    expect_error("\xff\xfe{\0}\0", 6, LAC_ERR_CORRUPT, "UTF-8");
    expect_error("P", 1, LAC_ERR_CORRUPT, "nsys export --type=sqlite");
    expect_error(" ", 1, LAC_ERR_CORRUPT, "the input is empty");
}
END_TEST

START_TEST(junk_before_the_events_is_stepped_over)
{
    struct imported imported =
        import_text("{\"traceName\": \"a \"quoted\" name\", \"traceEvents\": [" EVENT("a") "]}");
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.models[0]->slices.count, 1);
    ck_assert_uint_gt(report_count(imported.models[0], "stray_bytes"), 0);
    imported_done(&imported);
}
END_TEST

START_TEST(names_are_only_text)
{
    struct imported imported = import_text(
        "[{\"ph\":\"X\",\"name\":\"<img src=x onerror=alert(1)>\",\"ts\":1,\"dur\":1},"
        "{\"ph\":\"X\",\"name\":\"nul\\u0000here \\ud800 \\ud83d\\ude00\",\"ts\":1,\"dur\":1}]");
    const struct lac_model *model = imported.models[0];
    ck_assert_uint_ne(find_slice(model, "<img src=x onerror=alert(1)>"), UINT64_MAX);
    ck_assert_uint_ne(find_slice(model, "nul\xef\xbf\xbdhere \xef\xbf\xbd \xf0\x9f\x98\x80"),
                      UINT64_MAX);
    ck_assert_uint_eq(report_count(model, "bad_utf8"), 2);
    imported_done(&imported);
}
END_TEST

/* --- bombs -------------------------------------------------------------------------------------*/

/* A gzip stream of `size` spaces. */
static uint8_t *gzip_of_spaces(size_t size, size_t *ret_size)
{
    size_t capacity = size / 64 + 65536;
    uint8_t *out = malloc(capacity), *level = malloc(ISAL_DEF_LVL1_DEFAULT);
    uint8_t *spaces = malloc(1 << 20);
    struct isal_zstream stream;
    ck_assert(out != NULL && level && spaces != NULL);
    memset(spaces, ' ', 1 << 20);
    isal_deflate_init(&stream);
    stream.level = 1;
    stream.level_buf = level;
    stream.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    stream.gzip_flag = IGZIP_GZIP;
    stream.next_out = out;
    stream.avail_out = (uint32_t)capacity;
    for (size_t done = 0; done < size; done += 1 << 20) {
        stream.next_in = spaces;
        stream.avail_in = 1 << 20;
        stream.end_of_stream = done + (1 << 20) >= size;
        ck_assert_int_eq(isal_deflate(&stream), COMP_OK);
    }
    *ret_size = capacity - stream.avail_out;
    free(level);
    free(spaces);
    return out;
}

START_TEST(a_gzip_bomb_hits_the_ratio)
{
    size_t size = 0;
    uint8_t *bomb = gzip_of_spaces((size_t)256 << 20, &size);
    expect_error(bomb, size, LAC_ERR_LIMIT, "expansion_ratio_max");
    struct lac_import_limits limits;
    lac_import_limits_default(&limits);
    limits.expansion_ratio_max = 0;
    limits.expanded_bytes_max = 1 << 20;
    struct imported imported = import_tuned(bomb, size, &limits, 0, 0, false);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "expanded_bytes_max"));
    free(bomb);
}
END_TEST

START_TEST(a_zstd_bomb_hits_the_ratio)
{
    size_t size = (size_t)64 << 20, capacity = ZSTD_compressBound(size);
    uint8_t *spaces = malloc(size), *bomb = malloc(capacity);
    ck_assert(spaces != NULL && bomb);
    memset(spaces, ' ', size);
    size_t packed = ZSTD_compress(bomb, capacity, spaces, size, 1);
    expect_error(bomb, packed, LAC_ERR_LIMIT, "expansion_ratio_max");
    free(spaces);
    free(bomb);
}
END_TEST

START_TEST(every_limit_is_an_error_that_names_it)
{
    static const char many[] = "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1},{"
                               "\"ph\":\"X\",\"name\":\"a\",\"pid\":1,"
                               "\"tid\":2,\"ts\":1},{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":"
                               "3,\"ts\":1,\"args\":{\"a\":[[1]]}}]";
    struct lac_import_limits limits;
    for (int i = 0; i < 4; i++) {
        lac_import_limits_default(&limits);
        if (i == 0)
            limits.slice_count_max = 2;
        if (i == 1)
            limits.track_count_max = 2;
        if (i == 2)
            limits.depth_max = 2;
        if (i == 3)
            limits.event_bytes_max = 40;
        static const char *const names[] = {"slice_count_max", "track_count_max", "depth_max",
                                            "event_bytes_max"};
        struct imported imported = import_tuned(many, sizeof(many) - 1, &limits, 0, 0, false);
        ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
        ck_assert_msg(strstr(imported.error.message, names[i]) != NULL, "%s",
                      imported.error.message);
        imported_done(&imported);
    }
}
END_TEST

static bool stop_at_once(void *context, uint64_t read, uint64_t total, uint64_t events)
{
    (void)read;
    (void)total;
    (void)events;
    ++*(int *)context;
    return false;
}

static enum lac_status refuse(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)context;
    lac_model_destroy(model);
    return lac_fail(reterr, LAC_ERR_IO, 0, "the sink refused");
}

START_TEST(progress_can_cancel_and_a_sink_can_refuse)
{
    int calls = 0;
    static const char text[] = "[" EVENT("a") "]";
    struct lac_import_options options = {.progress = stop_at_once, .progress_context = &calls};
    struct lac_error error = {0};
    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(
        lac_import_bytes((const uint8_t *)text, sizeof(text) - 1, &options, refuse, NULL, &error),
        LAC_ERR_IO);
    ck_assert_int_eq(calls, 1);
    ck_assert_ptr_nonnull(strstr(error.message, "canceled"));
    options.progress = NULL;
    ck_assert_int_eq(
        lac_import_bytes((const uint8_t *)text, sizeof(text) - 1, &options, refuse, NULL, &error),
        LAC_ERR_IO);
    ck_assert_str_eq(error.message, "the sink refused");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_hostile");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, five_million_nested_brackets_hit_the_limit);
    tcase_add_test(tcase, a_string_of_50_mb_hits_the_limit_wherever_it_is);
    tcase_add_test(tcase, a_name_beyond_its_limit_is_an_error_that_names_it);
    tcase_add_test(tcase, times_that_no_number_holds_are_dropped_and_counted);
    tcase_add_test(tcase, a_duration_of_null_is_none);
    tcase_add_test(tcase, an_event_of_another_century_takes_no_open_interval_with_it);
    tcase_add_test(tcase, a_time_of_zero_takes_no_other_event_with_it);
    tcase_add_test(tcase, escapes_mean_the_same_everywhere);
    tcase_add_test(tcase, huge_and_odd_numbers_in_arguments_keep_their_text);
    tcase_add_test(tcase, duplicate_keys_take_the_last_as_json_readers_do);
    tcase_add_test(tcase, repairs_are_made_and_counted);
    tcase_add_test(tcase, a_repair_takes_no_other_event_in);
    tcase_add_test(tcase, unescaped_quotes_are_mended);
    tcase_add_test(tcase, damage_costs_the_damaged_events_and_no_more);
    tcase_add_test(tcase, endless_damage_ends_in_an_error_soon);
    tcase_add_test(tcase, what_is_no_trace_is_called_so);
    tcase_add_test(tcase, what_was_packed_some_other_way_says_how_to_unpack_it);
    tcase_add_test(tcase, junk_before_the_events_is_stepped_over);
    tcase_add_test(tcase, names_are_only_text);
    tcase_add_test(tcase, a_gzip_bomb_hits_the_ratio);
    tcase_add_test(tcase, a_zstd_bomb_hits_the_ratio);
    tcase_add_test(tcase, every_limit_is_an_error_that_names_it);
    tcase_add_test(tcase, progress_can_cancel_and_a_sink_can_refuse);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
