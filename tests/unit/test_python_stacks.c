/* Samples of Python's stacks from a spool: rows of stretches, however broken the spool is, and the
 * flame graph that they give. */
#include "analysis/flame/flame.h"
#include "analysis/import/import.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/model/model.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS_MAX = 512, MS = 1000000, BYTES_MAX = 32768, MAIN = 42 };

static struct lac_event events[EVENTS_MAX];
static uint32_t event_count;
static uint8_t strings[4096];
static uint32_t string_bytes, string_count;
static struct lac_model *model;

static void setup(void)
{
    event_count = string_bytes = string_count = 0;
    memset(events, 0, sizeof(events));
    memset(strings, 0, sizeof(strings));
    model = NULL;
}

static void teardown(void)
{
    lac_model_destroy(model);
}

static uint32_t string(const char *text)
{
    const uint32_t length = (uint32_t)strlen(text);
    const uint32_t head[] = {++string_count, length};

    memcpy(strings + string_bytes, head, sizeof(head));
    memcpy(strings + string_bytes + sizeof(head), text, length);
    string_bytes += (uint32_t)sizeof(head) + (length + 7) / 8 * 8;
    ck_assert_uint_lt(string_bytes, sizeof(strings));
    return string_count;
}

static void frame(uint16_t number, uint32_t caller, uint32_t line, uint32_t name)
{
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    events[event_count++] = (struct lac_event){.ts = (uint64_t)caller << 32 | line,
                                               .name = name,
                                               .domain = number,
                                               .type = LAC_EVENT_STACK_FRAME};
}

static void sample(int64_t ms, uint32_t tid, uint16_t number, uint8_t periods)
{
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    events[event_count++] = (struct lac_event){.ts = (uint64_t)(ms * MS),
                                               .name = tid,
                                               .domain = number,
                                               .flags = periods,
                                               .type = LAC_EVENT_STACK_SAMPLE};
}

static void put_segment(uint8_t *bytes, uint32_t *used, uint8_t kind, const void *records,
                        uint32_t size)
{
    const uint8_t head[] = {kind, 0, 7, 0};

    memcpy(bytes + *used, head, sizeof(head));
    memcpy(bytes + *used + 4, &size, sizeof(size));
    memcpy(bytes + *used + 8, records, size);
    *used += 8 + size;
}

static enum lac_status take(void *context, struct lac_model *imported, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    model = imported;
    return LAC_OK;
}

static void import(void)
{
    static uint8_t bytes[BYTES_MAX];
    uint32_t used = 0;
    char path[64];
    const struct lac_import_options options = {.name = "made"};
    struct lac_error error = {0};
    int fd;

    put_segment(bytes, &used, LAC_SEGMENT_STRINGS, strings, string_bytes);
    put_segment(bytes, &used, LAC_SEGMENT_EVENTS, events,
                event_count * (uint32_t)sizeof(events[0]));
    fd = lac_made_spool(bytes, used);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(lac_spool_import(path, &options, take, NULL, &error), LAC_OK);
    (void)close(fd);
    ck_assert(lac_model_is_valid(model));
}

static const struct lac_track *row_of(int64_t tid)
{
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_STACKS && model->tracks[t].tid == tid) {
            return &model->tracks[t];
        }
    }
    return NULL;
}

static uint64_t reported(const char *code)
{
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strcmp(model->report[i].code, code) == 0) {
            return model->report[i].count;
        }
    }
    return 0;
}

/* Milliseconds of all slices of that name on the row. */
static int64_t length_of(const struct lac_track *row, const char *name)
{
    int64_t sum_ns = 0;

    ck_assert_ptr_nonnull(row);
    for (uint64_t i = row->first; i < row->first + row->count; i++) {
        if (strcmp(lac_model_str(model, model->slices.name[i]), name) == 0) {
            ck_assert_int_eq(model->slices.kind[i], LAC_SLICE_PYTHON);
            sum_ns += model->slices.dur_ns[i];
        }
    }
    return sum_ns / MS;
}

/* A loop that calls two functions. */
static void define_loop(void)
{
    const uint32_t loop = string("job.py(1): <module>");
    const uint32_t busy = string("job.py(4): busy");

    frame(1, 0, 20, loop);
    frame(2, 1, 7, busy);
    frame(3, 0, 21, loop);
    frame(4, 2, 3, string("<string>"));
}

START_TEST(samples_that_agree_are_one_stretch_with_the_line_that_ran)
{
    define_loop();
    sample(1000, MAIN, 2, 1);
    sample(1020, MAIN, 2, 1);
    sample(1040, MAIN, 3, 1);
    sample(1060, MAIN, 4, 1);
    sample(1000, 77, 3, 1);
    import();
    const struct lac_track *row = row_of(MAIN);
    ck_assert_int_eq(length_of(row, "job.py(20): <module>"), 60);
    ck_assert_int_eq(length_of(row, "job.py(7): busy"), 60);
    ck_assert_int_eq(length_of(row, "job.py(21): <module>"), 20);
    ck_assert_int_eq(length_of(row, "<string>"), 20);
    ck_assert_uint_eq(row->count,
                      6); /* twice the loop and busy, once the other line, once inside */
    ck_assert_int_eq(length_of(row_of(77), "job.py(21): <module>"), 20);
    ck_assert_uint_eq(reported("stacks_lost") + reported("events_not_understood"), 0);
}
END_TEST

START_TEST(a_thread_that_only_samples_has_no_row)
{
    define_loop();
    sample(1000, MAIN, 2, 1);
    import();
    for (uint32_t t = 0; t < model->track_count; t++) {
        ck_assert_int_ne(model->tracks[t].kind, LAC_TRACK_THREAD);
    }
}
END_TEST

START_TEST(a_late_look_stands_for_the_time_that_it_came_late_and_a_pause_for_nothing)
{
    define_loop();
    sample(1000, MAIN, 2, 1);
    sample(1163, MAIN, 2, 8); /* a thread kept the lock */
    sample(9000, MAIN, 2, 1); /* the next window */
    sample(9020, MAIN, 2, 0); /* at least one */
    import();
    const struct lac_track *row = row_of(MAIN);
    ck_assert_int_eq(length_of(row, "job.py(7): busy"), 20 + 163 + 20 + 20);
    ck_assert_uint_eq(row->count, 4);
}
END_TEST

START_TEST(what_is_broken_is_counted_and_the_rest_is_there)
{
    define_loop();
    frame(0, 0, 1, 1);   /* no number */
    frame(2, 0, 1, 1);   /* told of already */
    frame(9, 9, 1, 1);   /* calls itself */
    frame(10, 11, 1, 1); /* called by one that comes later */
    frame(15, 14, 5, 2); /* called by one that another thread defined: read later */
    frame(14, 1, 5, 2);
    frame(12, 8, 1, 1);     /* by one that is not there */
    frame(13, 1, 1, 77777); /* no name */
    for (uint16_t depth = 0; depth < LAC_STACK_DEPTH_MAX + 3; depth++) {
        frame((uint16_t)(100 + depth), depth > 0 ? 99u + depth : 0, 5, 2);
    }
    sample(1000, MAIN, 2, 1);
    sample(1020, 78, 15, 1);
    sample(1020, MAIN, 0, 1);     /* lost */
    sample(1020, MAIN, 60000, 1); /* unknown */
    sample(1040, MAIN, (uint16_t)(100 + LAC_STACK_DEPTH_MAX - 1), 255);
    sample(1040, MAIN, (uint16_t)(100 + LAC_STACK_DEPTH_MAX), 255); /* too deep */
    sample(10, UINT32_MAX, 2, 255);                                 /* before the process began */
    import();
    ck_assert_uint_eq(reported("stacks_lost"), 3);
    ck_assert_uint_eq(reported("events_not_understood"), 6 + 3);
    ck_assert_uint_eq(reported("names_missing"), 1);
    const struct lac_track *row = row_of(MAIN);
    ck_assert_uint_eq(row->count, 2 + LAC_STACK_DEPTH_MAX);
    ck_assert_uint_eq(row_of(78)->count, 3);
    ck_assert_ptr_nonnull(row_of(UINT32_MAX));
}
END_TEST

START_TEST(the_flame_graph_by_python_is_made_of_them)
{
    struct lac_flame_options options = {.metric = LAC_FLAME_CPU, .by = LAC_FLAME_BY_PYTHON};
    struct lac_flame *flame = NULL;
    int64_t busy_ns = 0;

    define_loop();
    for (int i = 0; i < 50; i++) {
        sample(1000 + 20 * i, MAIN, i % 10 == 9 ? 3 : 2, 1);
    }
    import();
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(flame->nodes[0].value_ns, (int64_t)1000 * MS);
    for (uint32_t i = 0; i < flame->node_count; i++) {
        if (strcmp(lac_model_str(model, flame->nodes[i].name), "job.py(7): busy") == 0) {
            busy_ns += flame->nodes[i].self_ns;
        }
    }
    ck_assert_int_eq(busy_ns, (int64_t)900 * MS);
    lac_flame_destroy(flame);
    options.by = LAC_FLAME_BY_OP; /* what was sampled is no operator */
    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(flame->nodes[0].value_ns, 0);
    lac_flame_destroy(flame);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("python_stacks");
    TCase *const tests = tcase_create("import");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, samples_that_agree_are_one_stretch_with_the_line_that_ran);
    tcase_add_test(tests, a_thread_that_only_samples_has_no_row);
    tcase_add_test(tests,
                   a_late_look_stands_for_the_time_that_it_came_late_and_a_pause_for_nothing);
    tcase_add_test(tests, what_is_broken_is_counted_and_the_rest_is_there);
    tcase_add_test(tests, the_flame_graph_by_python_is_made_of_them);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
