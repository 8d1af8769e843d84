/* Results of a job from a spool: counters and what the run keeps of them, however broken the spool is. */
#include "analysis/import/import.h"
#include "analysis/import/spool/spool_import.h"
#include "analysis/import/spool/spool_metrics.h"
#include "analysis/model/model.h"
#include "analysis/model/setting_rows.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS_MAX = 512, MS = 1000000, BYTES_MAX = 32768 };

static struct lac_event events[EVENTS_MAX];
static uint32_t event_count;
static uint8_t strings[8192];
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

static void put(uint64_t ts, uint32_t name, uint8_t type)
{
    ck_assert_uint_lt(event_count, EVENTS_MAX);
    events[event_count++] = (struct lac_event){.ts = ts, .name = name, .type = type};
}

static void metric(int64_t ms, uint32_t name, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    put((uint64_t)(ms * MS), name, LAC_EVENT_METRIC);
    put(bits, 0, LAC_EVENT_METRIC_VALUE);
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

static uint32_t count_counters(void)
{
    uint32_t count = 0;

    for (uint32_t t = 0; t < model->track_count; t++) {
        count += model->tracks[t].kind == LAC_TRACK_COUNTER;
    }
    return count;
}

/** "" when the run keeps nothing of it. */
static const char *kept(const char *name)
{
    const uint32_t host = lac_settings_find(&model->settings, UINT32_MAX, "host");
    char key[160];
    uint32_t row = UINT32_MAX;

    (void)snprintf(key, sizeof(key), "metric.%s", name);
    if (host != UINT32_MAX) {
        row = lac_settings_find(&model->settings, host, key);
    }
    return row != UINT32_MAX ? lac_settings_value(&model->settings, row) : "";
}

START_TEST(values_are_a_counter_and_the_run_keeps_the_last_and_the_best)
{
    const uint32_t loss = string("train loss");
    const uint32_t top1 = string("top1");

    metric(1, loss, 4);
    metric(2, top1, 30);
    metric(3, loss, 1.5);
    metric(4, loss, 2);
    metric(5, top1, 70.5);
    metric(6, top1, 70);
    import();
    ck_assert_uint_eq(count_counters(), 2);
    for (uint32_t t = 0; t < model->track_count; t++) {
        const struct lac_track *track = &model->tracks[t];

        if (strcmp(lac_model_str(model, track->name), "train loss") == 0) {
            ck_assert_uint_eq(track->count, 3);
            ck_assert_double_eq(model->sample_value[track->first + 1], 1.5);
            ck_assert_int_eq(
                model->sample_ts_ns[track->first + 1] - model->sample_ts_ns[track->first], 2 * MS);
        }
    }
    ck_assert_str_eq(kept("train loss"), "2 1.5 3");
    ck_assert_str_eq(kept("top1"), "70 70.5 3");
}
END_TEST

START_TEST(what_is_broken_is_left_out)
{
    const uint32_t name = string("loss");

    put(1 * MS, name, LAC_EVENT_METRIC); /* without a value */
    put(2 * MS, name, LAC_EVENT_MARK);
    put(3 * MS, 0, LAC_EVENT_METRIC_VALUE); /* of nothing */
    metric(4, 0, 1);                        /* without a name */
    metric(5, 99, 1);
    metric(6, name, (double)NAN);
    metric(7, name, -(double)INFINITY);
    metric(8, name, 3);
    metric(9, string("a=b"), 3);
    put(10 * MS, name, LAC_EVENT_METRIC); /* the last event */
    import();
    ck_assert_uint_eq(count_counters(), 2);
    ck_assert_str_eq(kept("loss"), "3 3 1");
    ck_assert_str_eq(kept("a"), "");
    ck_assert_str_eq(kept("a=b"), "");
}
END_TEST

START_TEST(there_are_so_many_names_at_most)
{
    for (int i = 0; i < LAC_SPOOL_METRICS_MAX + 20; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "metric %d", i);
        metric(i + 1, string(text), i);
    }
    import();
    ck_assert_uint_eq(count_counters(), LAC_SPOOL_METRICS_MAX);
    ck_assert_str_eq(kept("metric 0"), "0 0 1");
    ck_assert_str_eq(kept("metric 80"), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spool_metrics");
    TCase *cases = tcase_create("metrics");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, values_are_a_counter_and_the_run_keeps_the_last_and_the_best);
    tcase_add_test(cases, what_is_broken_is_left_out);
    tcase_add_test(cases, there_are_so_many_names_at_most);
    suite_add_tcase(suite, cases);
    return check_main(suite);
}
