/* Outer lanes of a thread: frames that are open all the time, which a page folds. */
#include "analysis/import/import.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 1 << 20, SECOND_US = 1000000 };

static char text[TEXT_BYTES];
static size_t length;
static struct lac_model *model;

static void setup(void)
{
    length = 0;
    model = NULL;
}

static void put(const char *name, int start_us, int dur_us)
{
    length += (size_t)snprintf(text + length, sizeof(text) - length,
                               "%s{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"%s\","
                               "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d}",
                               length == 0 ? "[" : ",", name, start_us, dur_us);
    ck_assert_uint_lt(length, sizeof(text) - 2);
}

static enum lac_status keep(void *context, struct lac_model *imported, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    model = imported;
    return LAC_OK;
}

/** What is told of the one thread of what was put. */
static uint32_t outer_lanes(void)
{
    struct lac_import_options options = {0};
    struct lac_trace_write_options writing = {.generation = 1};
    struct lac_trace_file *file = NULL;
    struct lac_error error = {0};
    char folder[] = "/tmp/lacuna-test-XXXXXX";
    char path[sizeof(folder) + 16];
    uint32_t outer;

    text[length++] = ']';
    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(lac_import_bytes((const uint8_t *)text, length, &options, keep, NULL, &error),
                     LAC_OK);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
    writing.path = path;
    ck_assert_msg(lac_trace_write(model, &writing, &error) == LAC_OK, "%s", error.message);
    ck_assert_msg(lac_trace_file_open(path, 0, &file, &error) == LAC_OK, "%s", error.message);
    ck_assert_int_eq(model->tracks[0].kind, LAC_TRACK_THREAD);
    outer = lac_trace_file_outer_lanes(file, 0);
    lac_trace_file_close(file);
    lac_model_destroy(model);
    (void)unlink(path);
    (void)rmdir(folder);
    return outer;
}

/** Frames that are open for a second, each a little inside the one around it. */
static void put_outer(int count)
{
    for (int i = 0; i < count; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "outer %d", i);
        put(name, i, SECOND_US - 2 * i);
    }
}

/** Calls of 800 us each millisecond, in two lanes. */
static void put_calls(void)
{
    for (int i = 1; i < 999; i++) {
        put("call", i * 1000, 800);
        put("inside", i * 1000 + 100, 500);
    }
}

START_TEST(frames_that_are_always_open_are_outer)
{
    put_outer(6);
    put_calls();
    ck_assert_uint_eq(outer_lanes(), 6);
}
END_TEST

START_TEST(what_is_short_between_them_does_not_matter)
{
    put_outer(2);
    put("imports", 10, 5000);
    put("main", 6000, SECOND_US - 7000);
    put("train", 6001, SECOND_US - 7002);
    put_calls();
    /* "imports" shares a lane with "main" */
    ck_assert_uint_ge(outer_lanes(), 4);
}
END_TEST

START_TEST(fewer_than_four_stay)
{
    put_outer(3);
    put_calls();
    ck_assert_uint_eq(outer_lanes(), 0);
}
END_TEST

START_TEST(a_row_without_anything_always_open_keeps_all_its_lanes)
{
    /* each call has eight levels; all begin in the first cell of the coarsest level, 8^10 ns */
    for (int i = 0; i < 900; i++) {
        for (int level = 0; level < 8; level++) {
            put("level", i * 1192 + level, 900 - 2 * level);
        }
    }
    put("level", 1073000, 20000);
    ck_assert_uint_eq(outer_lanes(), 0);
}
END_TEST

START_TEST(work_ends_what_is_outer)
{
    put_outer(4);
    put("epoch 0", 10, SECOND_US / 2);
    put("epoch 1", SECOND_US / 2 + 20, SECOND_US / 2 - 100);
    put_calls();
    ck_assert_uint_eq(outer_lanes(), 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_outer");
    TCase *tcase = tcase_create("outer lanes");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, frames_that_are_always_open_are_outer);
    tcase_add_test(tcase, what_is_short_between_them_does_not_matter);
    tcase_add_test(tcase, fewer_than_four_stay);
    tcase_add_test(tcase, a_row_without_anything_always_open_keeps_all_its_lanes);
    tcase_add_test(tcase, work_ends_what_is_outer);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
