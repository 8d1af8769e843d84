/* A wait for data in a flame graph goes on in the worker that was late. */
#include "analysis/flame/flame.h"
#include "analysis/import/import.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct lac_model *model;

static enum lac_status keep(void *context, struct lac_model *imported, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    model = imported;
    return LAC_OK;
}

#define WHOLE_WAIT "\"ts\":0,\"dur\":100"

/* Worker 7 finishes the batch that the wait (`wait_us`) is for; worker 8 is at a later one.
 * `fetch_us` is how long the fetch of worker 7 takes from 5 us on. The GPU is idle for data in [20,
 * 100) us. */
static void make_model(const char *wait_us, const char *fetch_us)
{
    char json[2048];
    struct lac_import_options options = {0};
    struct lac_track track = {.kind = LAC_TRACK_GAPS, .process = LAC_NONE, .device = 0};
    struct lac_derived_slice gap = {
        .start_ns = 20000, .dur_ns = 80000, .kind = LAC_SLICE_GAP, .link = LAC_NONE};
    const int length =
        snprintf(json, sizeof(json),
                 "{\"schemaVersion\":1,\"traceEvents\":["
                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"loader.wait\",\"pid\":1,"
                 "\"tid\":5,%s},"
                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"loader.fetch\",\"pid\":2,"
                 "\"tid\":7,\"ts\":5,\"dur\":%s},"
                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"loader.decode\",\"pid\":2,"
                 "\"tid\":7,\"ts\":5,\"dur\":10},"
                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"loader.fetch\",\"pid\":3,"
                 "\"tid\":8,\"ts\":5,\"dur\":9000},"
                 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,"
                 "\"tid\":5,\"ts\":101,\"dur\":2,\"args\":{\"correlation\":4}},"
                 "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":100,"
                 "\"dur\":9,\"args\":{\"device\":0,\"stream\":7,\"correlation\":4}}"
                 "]}",
                 wait_us, fetch_us);

    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(
        lac_import_bytes((const uint8_t *)json, (size_t)length, &options, keep, NULL, NULL),
        LAC_OK);
    for (uint64_t i = 0; i < model->slices.count; i++) {
        if (model->slices.kind[i] == LAC_SLICE_KERNEL) {
            gap.link = (uint32_t)i;
        }
    }
    ck_assert_int_eq(lac_strings_intern(&model->strings, "data_wait", 9, &gap.name), LAC_OK);
    ck_assert_int_eq(lac_model_add_track(model, &track, &gap, 1), LAC_OK);
}

/* Time under the path of names, LAC_NONE-terminated by NULL. */
static int64_t time_under(const struct lac_flame *flame, const char *const *path)
{
    uint32_t at = 0;

    for (; *path != NULL; path++) {
        uint32_t next = LAC_NONE;

        for (uint32_t c = 0; c < flame->nodes[at].child_count; c++) {
            const uint32_t child = flame->nodes[at].first_child + c;

            if (flame->nodes[child].name != LAC_NONE &&
                strcmp(lac_model_str(model, flame->nodes[child].name), *path) == 0) {
                next = child;
            }
        }
        if (next == LAC_NONE) {
            return -1;
        }
        at = next;
    }
    return flame->nodes[at].value_ns;
}

static struct lac_flame *waiting(enum lac_flame_by by)
{
    const struct lac_flame_options options = {.metric = LAC_FLAME_WAITING, .by = by};
    struct lac_flame *flame = NULL;

    ck_assert_int_eq(lac_flame_create(model, &options, &flame), LAC_OK);
    ck_assert_int_eq(flame->nodes[0].value_ns, 80000);
    return flame;
}

START_TEST(the_wait_is_put_on_what_the_late_worker_did)
{
    static const char *const fetch[] = {"data_wait", "loader.wait", "loader.fetch", NULL};
    static const char *const decode[] = {"data_wait", "loader.wait", "loader.fetch",
                                         "loader.decode", NULL};
    struct lac_flame *flame;

    make_model(WHOLE_WAIT, "94");
    flame = waiting(LAC_FLAME_BY_RANGE);
    ck_assert_int_eq(time_under(flame, fetch), 79000); /* the last us went into the hand-over */
    ck_assert_int_eq(time_under(flame, decode), -1);   /* it decoded before the GPU waited */
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_worker_that_was_done_before_is_not_to_blame)
{
    static const char *const wait[] = {"data_wait", "loader.wait", NULL};
    static const char *const fetch[] = {"data_wait", "loader.wait", "loader.fetch", NULL};
    struct lac_flame *flame;

    make_model(WHOLE_WAIT, "12");
    flame = waiting(LAC_FLAME_BY_RANGE);
    ck_assert_int_eq(time_under(flame, wait), 80000);
    ck_assert_int_eq(time_under(flame, fetch), -1);
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(idle_time_that_begins_before_the_wait_or_ends_after_it_is_still_of_that_wait)
{
    static const char *const fetch[] = {"data_wait", "loader.wait", "loader.fetch", NULL};
    static const char *const waits_us[] = {"\"ts\":0,\"dur\":98", "\"ts\":30,\"dur\":70"};
    /* without an event at 0 the trace begins at 5 us, so the GPU is idle in [25, 105) us */
    static const int64_t fetch_ns[] = {76000, 71000};
    struct lac_flame *flame;

    for (int i = 0; i < 2; i++) {
        make_model(waits_us[i], "91");
        flame = waiting(LAC_FLAME_BY_RANGE);
        ck_assert_int_eq(time_under(flame, fetch), fetch_ns[i]);
        lac_flame_destroy(flame);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(idle_time_that_is_mostly_beside_a_wait_is_not_of_it)
{
    static const char *const fetch[] = {"data_wait", "loader.wait", "loader.fetch", NULL};
    struct lac_flame *flame;

    make_model("\"ts\":0,\"dur\":50", "44");
    flame = waiting(LAC_FLAME_BY_RANGE);
    ck_assert_int_eq(time_under(flame, fetch), -1);
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

START_TEST(by_kernel_the_cause_stands_alone)
{
    static const char *const cause[] = {"data_wait", NULL};
    static const char *const wait[] = {"data_wait", "loader.wait", NULL};
    struct lac_flame *flame;

    make_model(WHOLE_WAIT, "94");
    flame = waiting(LAC_FLAME_BY_KERNEL);
    ck_assert_int_eq(time_under(flame, cause), 80000);
    ck_assert_int_eq(time_under(flame, wait), -1);
    lac_flame_destroy(flame);
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("flame_worker");
    TCase *const tcase = tcase_create("waiting");

    tcase_add_test(tcase, the_wait_is_put_on_what_the_late_worker_did);
    tcase_add_test(tcase, a_worker_that_was_done_before_is_not_to_blame);
    tcase_add_test(tcase,
                   idle_time_that_begins_before_the_wait_or_ends_after_it_is_still_of_that_wait);
    tcase_add_test(tcase, idle_time_that_is_mostly_beside_a_wait_is_not_of_it);
    tcase_add_test(tcase, by_kernel_the_cause_stands_alone);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
