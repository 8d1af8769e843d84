/*
 * Times in a spool that cannot be: before the process began, after its recording ended, a month later.
 * Nothing of them stretches the trace, and all are counted and told.
 */
#include "analysis/diagnose/diagnose.h"
#include "analysis/diagnose/result/analysis.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"

#include <check.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define BEGUN_NS  (1000 * SECOND_NS) /* when the file was made */
#define ENDED_NS  (1010 * SECOND_NS)
#define MONTH_NS  (30ull * 86400 * SECOND_NS)

enum { EVENTS_MAX = 16, KERNELS_MAX = 8, SAMPLES_MAX = 8 };

struct events_segment {
    uint8_t head[4];
    uint32_t length;
    struct lac_event events[EVENTS_MAX];
};

struct gpu_segment {
    uint8_t head[4];
    uint32_t length;
    struct lac_gpu_kernel kernels[KERNELS_MAX];
};

static struct lac_model *model;

static enum lac_status keep(void *context, struct lac_model *ready, struct lac_error *reterr)
{
    (void)reterr;
    *(struct lac_model **)context = ready;
    return LAC_OK;
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

/* Whether a caveat of the analysis says so. */
static bool is_told(const char *text)
{
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    bool is_said = false;

    ck_assert_int_eq(lac_diagnose(model, NULL, &analysis, &error), LAC_OK);
    for (uint32_t i = 0; i < analysis->caveat_count; i++) {
        is_said = is_said || strstr(analysis->caveats[i], text) != NULL;
    }
    lac_analysis_destroy(analysis);
    return is_said;
}

static void write_field(int fd, size_t offset, uint64_t value)
{
    ck_assert_int_eq(pwrite(fd, &value, sizeof(value), (off_t)offset), (ssize_t)sizeof(value));
}

/* @param ended_ns 0: no drainer said when that was */
static void import(const void *segments, size_t size_bytes, uint64_t ended_ns)
{
    const struct lac_import_options options = {.name = "times"};
    struct lac_error error = {0};
    const int fd = lac_made_spool(segments, size_bytes);
    char path[64];

    write_field(fd, offsetof(struct lac_spool_header, first.monotonic_ns), BEGUN_NS);
    write_field(fd, offsetof(struct lac_spool_header, ended_ns), ended_ns);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(lac_spool_import(path, &options, keep, &model, &error), LAC_OK);
    (void)close(fd);
}

static void check_is_short(void)
{
    /* ten seconds and the margin on both sides */
    ck_assert_int_le(model->info.duration_ns, (int64_t)(131 * SECOND_NS));
}

/* What the GPU's records say; whether it can be is known from the end of the recording on. */
static const struct {
    uint64_t start_ns, end_ns;
    bool is_kept, is_kept_without_end;
} operations[] = {
    {BEGUN_NS + 1, BEGUN_NS + 1001, true, true},
    {ENDED_NS - 1000, ENDED_NS, true, true},
    {BEGUN_NS - 59 * SECOND_NS, BEGUN_NS - 59 * SECOND_NS + 1000, true, true}, /* the margin */
    {ENDED_NS + 58 * SECOND_NS, ENDED_NS + 59 * SECOND_NS, true, true},
    {1, 1001, false, false},
    {BEGUN_NS - 61 * SECOND_NS, BEGUN_NS, false, false},
    {BEGUN_NS, BEGUN_NS + MONTH_NS, false, true},
    {ENDED_NS + 61 * SECOND_NS, ENDED_NS + 62 * SECOND_NS, false, true},
};

static void import_operations(uint64_t ended_ns)
{
    static struct gpu_segment spool;

    spool = (struct gpu_segment){.head = {LAC_SEGMENT_GPU, LAC_GPU_CLOCK_MONOTONIC, 0, 0},
                                 .length = sizeof(spool.kernels)};
    _Static_assert(LAC_COUNT_OF(operations) == KERNELS_MAX, "all of them");
    for (size_t i = 0; i < LAC_COUNT_OF(operations); i++) {
        spool.kernels[i].head = (struct lac_gpu_record){.start_ns = operations[i].start_ns,
                                                        .end_ns = operations[i].end_ns,
                                                        .stream = (uint32_t)i,
                                                        .units = sizeof(spool.kernels[0]) / 16,
                                                        .type = LAC_GPU_KERNEL};
    }
    import(&spool, sizeof(spool), ended_ns);
}

START_TEST(operations_that_cannot_have_been_are_left_out_and_told)
{
    import_operations(ENDED_NS);
    ck_assert_uint_eq(model->slices.count, 4);
    ck_assert_uint_eq(reported("times_outside"), 4);
    ck_assert_uint_eq(model->info.dropped_count, 4);
    ck_assert(is_told("4 GPU operations and samples from before the process began or after its "
                      "recording ended, by their times: left out"));
    check_is_short();
    lac_model_destroy(model);
}
END_TEST

START_TEST(where_nobody_said_when_the_recording_ended_only_its_beginning_bounds_it)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < LAC_COUNT_OF(operations); i++) {
        kept += operations[i].is_kept_without_end;
    }
    import_operations(0);
    ck_assert_uint_eq(model->slices.count, kept);
    ck_assert_uint_eq(reported("times_outside"), LAC_COUNT_OF(operations) - kept);
    lac_model_destroy(model);
    /* an end before the beginning is none */
    import_operations(BEGUN_NS - 1);
    ck_assert_uint_eq(model->slices.count, kept);
    lac_model_destroy(model);
}
END_TEST

/* A range keeps its end, and a recording its length. */
START_TEST(events_that_cannot_have_been_are_put_at_the_nearer_end_and_told)
{
    static const struct lac_event events[] = {
        {.ts = 5, .type = LAC_EVENT_PUSH}, /* long before */
        {.ts = BEGUN_NS + SECOND_NS, .type = LAC_EVENT_POP},
        {.ts = BEGUN_NS + 2 * SECOND_NS, .type = LAC_EVENT_PUSH},
        {.ts = BEGUN_NS + 3 * SECOND_NS, .type = LAC_EVENT_PUSH},
        {.ts = BEGUN_NS + 4 * SECOND_NS, .type = LAC_EVENT_POP},
        {.ts = BEGUN_NS + MONTH_NS, .type = LAC_EVENT_MARK},
        {.ts = BEGUN_NS + 3 * MONTH_NS, .type = LAC_EVENT_POP},
        {.ts = UINT64_MAX - 1, .type = LAC_EVENT_MARK},
    };
    static struct events_segment spool;

    spool = (struct events_segment){.head = {LAC_SEGMENT_EVENTS, 0, 0, 0},
                                    .length = sizeof(spool.events)};
    memcpy(spool.events, events, sizeof(events));
    import(&spool, sizeof(spool), ENDED_NS);
    ck_assert_uint_eq(model->slices.count, 3 + 2); /* marks are slices without a length */
    ck_assert_uint_eq(reported("times_moved"), 4);
    ck_assert_uint_eq(model->info.dropped_count, 0);
    ck_assert(is_told("4 events from before the process began or after its recording ended, by "
                      "their times: put at the nearer end"));
    check_is_short();
    lac_model_destroy(model);
}
END_TEST

START_TEST(samples_that_cannot_have_been_are_left_out_and_told)
{
    static const uint64_t times_ns[] = {BEGUN_NS + SECOND_NS, 7, BEGUN_NS + 2 * SECOND_NS,
                                        ENDED_NS + MONTH_NS};
    static struct {
        uint8_t strings_head[4];
        uint32_t strings_length;
        struct lac_string_record name;
        char text[24];
        uint8_t head[4];
        uint32_t length;
        struct lac_sample samples[SAMPLES_MAX];
    } spool;

    memset(&spool, 0, sizeof(spool));
    spool.strings_head[0] = LAC_SEGMENT_STRINGS;
    spool.strings_length = sizeof(spool.name) + sizeof(spool.text);
    spool.name.id = 1;
    spool.name.length = (uint32_t)snprintf(spool.text, sizeof(spool.text),
                                           "7\x1fpython\x1f\x1f\x1f"
                                           "CPU\x1f%%");
    spool.head[0] = LAC_SEGMENT_SAMPLES;
    spool.length = sizeof(spool.samples);
    for (size_t i = 0; i < LAC_COUNT_OF(times_ns); i++) {
        const double value = (double)i;

        spool.samples[2 * i] = (struct lac_sample){.bits = times_ns[i], .type = LAC_SAMPLE_TIME};
        spool.samples[2 * i + 1] = (struct lac_sample){.series = 1, .type = LAC_SAMPLE_VALUE};
        memcpy(&spool.samples[2 * i + 1].bits, &value, sizeof(value));
    }
    import(&spool, sizeof(spool), ENDED_NS);
    ck_assert_uint_eq(model->sample_count, 2);
    ck_assert_uint_eq(reported("times_outside"), 2);
    ck_assert(is_told("2 GPU operations and samples from before"));
    check_is_short();
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("spool_times");
    TCase *const tcase = tcase_create("times");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, operations_that_cannot_have_been_are_left_out_and_told);
    tcase_add_test(tcase, where_nobody_said_when_the_recording_ended_only_its_beginning_bounds_it);
    tcase_add_test(tcase, events_that_cannot_have_been_are_put_at_the_nearer_end_and_told);
    tcase_add_test(tcase, samples_that_cannot_have_been_are_left_out_and_told);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
