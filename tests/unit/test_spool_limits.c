/* More of a kind than the importer of spools keeps: what is over is counted and said. */
#include "analysis/import/import.h"
#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_external.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/import/spool/spool_sync.h"
#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXTERNALS_MAX = 1 << 20, WAITS_MAX = 1 << 18, EVENTS_MAX = 1 << 20, BATCH = 4096 };

static struct lac_builder *builder;
static struct lac_spool_process process;
static struct lac_spool_settings settings;
static uint32_t track;

static void setup(void)
{
    uint32_t id;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    settings = (struct lac_spool_settings){0};
    process = (struct lac_spool_process){.builder = builder, .settings = &settings};
    ck_assert_int_eq(lac_strings_intern(&lac_builder_model(builder)->strings, "1", 1, &id), LAC_OK);
    ck_assert_int_eq(lac_builder_process(builder, id, 1, &process.process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, LAC_TRACK_THREAD, process.process, id, 1, &track),
                     LAC_OK);
}

static void teardown(void)
{
    lac_spool_externals_destroy(process.externals);
    lac_spool_sync_destroy(process.syncs);
    lac_builder_destroy(builder);
}

static uint64_t reported(const struct lac_model *model, const char *code)
{
    for (uint32_t i = 0; i < model->report_count; i++) {
        if (strcmp(model->report[i].code, code) == 0) {
            return model->report[i].count;
        }
    }
    return 0;
}

/* ---- ids of the program */

static void add_externals(uint32_t first, uint32_t count)
{
    static struct lac_gpu_external records[BATCH];

    for (uint32_t done = 0; done < count; done += BATCH) {
        const uint32_t now = count - done < BATCH ? count - done : BATCH;

        for (uint32_t i = 0; i < now; i++) {
            records[i] = (struct lac_gpu_external){.head = {.correlation = first + done + i,
                                                            .units = sizeof(records[0]) / 16,
                                                            .type = LAC_GPU_EXTERNAL},
                                                   .id = (uint64_t)(first + done + i) * 2,
                                                   .kind = 3};
        }
        ck_assert_int_eq(lac_spool_externals_collect(&process, (const uint8_t *)records,
                                                     now * sizeof(records[0])),
                         LAC_OK);
    }
}

/* The arguments that a call of this correlation gets. */
static void check_call(uint32_t correlation, const char *expected)
{
    struct lac_slice_in slice = {.corr = correlation};
    const char *text;

    ck_assert_int_eq(lac_spool_external_store(&process, 0, &slice), LAC_OK);
    text = lac_strings_get(&lac_builder_model(builder)->strings, slice.args);
    ck_assert_str_eq(text, expected);
}

START_TEST(ids_up_to_the_limit_are_kept_and_those_beyond_are_counted)
{
    add_externals(1, EXTERNALS_MAX);
    lac_spool_externals_sort(&process);
    ck_assert_uint_eq(reported(lac_builder_model(builder), "external_ids_left_out"), 0);
    add_externals(EXTERNALS_MAX + 1, 1234);
    lac_spool_externals_sort(&process);
    ck_assert_uint_eq(reported(lac_builder_model(builder), "external_ids_left_out"), 1234);
    check_call(1, "{\"External id\":\x01}");
    check_call(EXTERNALS_MAX, "{\"External id\":\x01}");
    check_call(EXTERNALS_MAX + 1, "");
}
END_TEST

/* ---- waits for CUDA events */

static void add_waits(uint32_t first_correlation, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_spool_sync sync = {.slice = {.start_ns = i,
                                                      .track = track,
                                                      .corr = first_correlation + i,
                                                      .detail = LAC_NONE,
                                                      .kind = LAC_SLICE_RANGE},
                                            .context = 1,
                                            .stream = UINT32_MAX,
                                            .event = 5,
                                            .has_event = true};

        ck_assert_int_eq(lac_spool_sync_add(&process, &sync), LAC_OK);
    }
}

static void add_events(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_gpu_call event = {
            .head = {.correlation = i + 1, .context = 1, .stream = 7}, .number = 5};

        ck_assert_int_eq(lac_spool_sync_event(&process, &event), LAC_OK);
    }
}

/* How many slices tell what they wait for. */
static uint64_t finish(struct lac_model **ret_model)
{
    uint64_t resolved = 0;

    ck_assert_int_eq(lac_spool_sync_finish(&process), LAC_OK);
    ck_assert_int_eq(lac_builder_finish(builder, 0, ret_model), LAC_OK);
    builder = NULL;
    for (uint64_t i = 0; i < (*ret_model)->slices.count; i++) {
        resolved += (*ret_model)->slices.args[i] != 0;
    }
    return resolved;
}

START_TEST(waits_beyond_the_limit_are_kept_without_what_they_wait_for_and_counted)
{
    struct lac_model *model;

    add_events(10);
    add_waits(100, WAITS_MAX + 77);
    ck_assert_uint_eq(finish(&model), WAITS_MAX);
    ck_assert_uint_eq(model->slices.count, WAITS_MAX + 77);
    ck_assert_uint_eq(reported(model, "waits_not_resolved"), 77);
    ck_assert_uint_eq(reported(model, "cuda_events_left_out"), 0);
    lac_model_destroy(model);
}
END_TEST

START_TEST(with_more_events_than_are_kept_no_wait_is_resolved_and_all_are_counted)
{
    struct lac_model *model;

    add_events(EVENTS_MAX + 5);
    add_waits(EVENTS_MAX + 100, 40);
    ck_assert_uint_eq(finish(&model), 0);
    ck_assert_uint_eq(model->slices.count, 40);
    ck_assert_uint_eq(reported(model, "waits_not_resolved"), 40);
    ck_assert_uint_eq(reported(model, "cuda_events_left_out"), 5);
    lac_model_destroy(model);
}
END_TEST

/* ---- points where both clocks are known */

static enum lac_status keep(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = model;
    return LAC_OK;
}

/* A thread that says so little that one segment lasts for thousands of seconds, while the clock of
 * the spool changes its rate. */
START_TEST(more_points_of_time_than_are_kept_still_tell_the_rate_everywhere)
{
    enum { PAIRS = 1900 };
    static struct made_segment {
        uint8_t head[4];
        uint32_t length;
        struct lac_event events[2 * PAIRS + 2];
        uint8_t odd; /* for a clock that counts ticks */
    } spool = {.head = {LAC_SEGMENT_EVENTS, 1, 0, 0}, .length = sizeof(spool.events)};
    struct lac_event *next = spool.events;
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    const struct lac_import_options options = {.name = "clock"};
    uint64_t ticks = 1000;
    uint64_t ns = 2000;
    char path[64];
    int fd;

    for (uint32_t i = 0; i < PAIRS; i++) {
        ticks += 1000000;
        ns += i < PAIRS / 2 ? 1000000 : 500000;
        *next++ = (struct lac_event){.ts = ticks, .type = LAC_EVENT_SYNC};
        *next++ = (struct lac_event){.ts = ns, .type = LAC_EVENT_SYNC_NS};
    }
    *next++ = (struct lac_event){.ts = ticks - 4000000, .type = LAC_EVENT_PUSH};
    *next++ = (struct lac_event){.ts = ticks - 2000000, .type = LAC_EVENT_POP};
    fd = lac_made_spool((const uint8_t *)&spool, offsetof(struct made_segment, odd) + 1);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(lac_spool_import(path, &options, keep, &model, &error), LAC_OK);
    ck_assert_uint_eq(model->slices.count, 1);
    ck_assert_int_ge(model->slices.dur_ns[0], 999990);
    ck_assert_int_le(model->slices.dur_ns[0], 1000010);
    lac_model_destroy(model);
    (void)close(fd);
}
END_TEST

/* As recorders of before wrote down what was in progress at the end. */
START_TEST(operations_without_times_are_counted_and_do_not_stretch_the_trace)
{
    static const struct {
        uint64_t start_ns, end_ns;
    } times[] = {{2000, 2500}, {0, 2600}, {0, 0}, {2700, 2699}};
    static struct gpu_segment {
        uint8_t head[4];
        uint32_t length;
        struct lac_gpu_kernel kernels[4];
    } spool = {.head = {LAC_SEGMENT_GPU, LAC_GPU_CLOCK_MONOTONIC, 0, 0},
               .length = sizeof(spool.kernels)};
    struct lac_model *model = NULL;
    struct lac_error error = {0};
    const struct lac_import_options options = {.name = "untimed"};
    char path[64];
    int fd;

    for (uint32_t i = 0; i < 4; i++) {
        spool.kernels[i].head = (struct lac_gpu_record){.start_ns = times[i].start_ns,
                                                        .end_ns = times[i].end_ns,
                                                        .units = sizeof(spool.kernels[0]) / 16,
                                                        .type = LAC_GPU_KERNEL};
    }
    fd = lac_made_spool((const uint8_t *)&spool, sizeof(spool));
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(lac_spool_import(path, &options, keep, &model, &error), LAC_OK);
    ck_assert_uint_eq(model->slices.count, 1);
    ck_assert_int_eq(model->slices.dur_ns[0], 500);
    ck_assert_int_le(model->info.duration_ns, 1000000);
    ck_assert_uint_eq(reported(model, "gpu_records_without_times"), 3);
    lac_model_destroy(model);
    (void)close(fd);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("spool_limits");
    TCase *const kept = tcase_create("kept");
    TCase *const time = tcase_create("time");

    tcase_set_timeout(kept, 60);
    tcase_add_checked_fixture(kept, setup, teardown);
    tcase_add_test(kept, ids_up_to_the_limit_are_kept_and_those_beyond_are_counted);
    tcase_add_test(kept, waits_beyond_the_limit_are_kept_without_what_they_wait_for_and_counted);
    tcase_add_test(kept, with_more_events_than_are_kept_no_wait_is_resolved_and_all_are_counted);
    tcase_add_test(time, more_points_of_time_than_are_kept_still_tell_the_rate_everywhere);
    tcase_add_test(time, operations_without_times_are_counted_and_do_not_stretch_the_trace);
    suite_add_tcase(suite, kept);
    suite_add_tcase(suite, time);
    return check_main(suite);
}
