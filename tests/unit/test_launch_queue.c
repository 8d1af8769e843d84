/* Work that was launched and has not begun: the counter against pairs counted one by one. */

#include "analysis/diagnose/facts/recorded/launch_queue.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS = 400, TEXT_BYTES = PAIRS * 512 };

static struct lac_model *model_of(const char *text)
{
    char *whole = malloc(TEXT_BYTES + 64);
    ck_assert_ptr_nonnull(whole);
    (void)snprintf(whole, TEXT_BYTES + 64, "{\"traceEvents\":[%s]}", text);
    struct imported imported = import_text(whole);
    free(whole);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    return imported.models[0];
}

static const struct lac_track *counter_of(const struct lac_model *model)
{
    const struct lac_track *found = NULL;
    for (uint32_t t = 0; t < model->track_count; t++) {
        if (model->tracks[t].kind == LAC_TRACK_COUNTER) {
            ck_assert_ptr_null(found);
            found = &model->tracks[t];
        }
    }
    return found;
}

static size_t add_pair(char *text, size_t at, unsigned i, unsigned call_us, unsigned begin_us)
{
    return at + (size_t)snprintf(
                    text + at, TEXT_BYTES - at,
                    "%s{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
                    "\"pid\":1,\"tid\":%u,\"ts\":%u,\"dur\":0.5,\"args\":{\"correlation\":%u}},"
                    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":%u,"
                    "\"ts\":%u,\"dur\":1,\"args\":{\"device\":0,\"stream\":%u,\"correlation\":%u}}",
                    i > 0 ? "," : "", 1 + i % 2, call_us, i + 1, 7 + i % 3, begin_us, 7 + i % 3,
                    i + 1);
}

/** What a pair by itself says: launched at or before t, not begun at t. */
static int64_t depth_at(const struct lac_model *model, int64_t t_ns)
{
    int64_t depth = 0;
    for (uint64_t s = 0; s < model->slices.count; s++) {
        const uint32_t link = model->slices.link[s];
        if (model->slices.kind[s] == LAC_SLICE_KERNEL && link != LAC_NONE &&
            model->slices.start_ns[link] <= model->slices.start_ns[s]) {
            depth += model->slices.start_ns[link] <= t_ns && model->slices.start_ns[s] > t_ns;
        }
    }
    return depth;
}

/** Pairs at random places; one in sixteen begins before its call: such clocks are not counted. */
static struct lac_model *random_model(void)
{
    char *text = malloc(TEXT_BYTES);
    size_t at = 0;
    ck_assert_ptr_nonnull(text);
    srand(7);
    for (unsigned i = 0; i < PAIRS; i++) {
        const unsigned call_us = 400 + (unsigned)rand() % 5000;
        const unsigned wait_us = (unsigned)rand() % 300;
        at = add_pair(text, at, i, call_us, i % 16 == 5 ? call_us - wait_us : call_us + wait_us);
    }
    struct lac_model *model = model_of(text);
    free(text);
    return model;
}

START_TEST(each_sample_is_what_the_pairs_say)
{
    struct lac_model *model = random_model();
    ck_assert_int_eq(lac_launch_queue_add(model), LAC_OK);
    ck_assert(lac_model_is_valid(model));
    const struct lac_track *track = counter_of(model);
    ck_assert_ptr_nonnull(track);
    ck_assert_str_eq(lac_model_str(model, track->name), "GPU 0: work launched, not begun");
    ck_assert_uint_gt(track->count, PAIRS);
    double most = 0;
    for (uint64_t i = track->first; i < track->first + track->count; i++) {
        const double value = model->sample_value[i];
        ck_assert_double_eq(value, (double)depth_at(model, model->sample_ts_ns[i]));
        most = value > most ? value : most;
    }
    ck_assert_double_gt(most, 5);
    ck_assert_double_eq(model->sample_value[track->first + track->count - 1], 0);
    /* and once more adds nothing */
    ck_assert_int_eq(lac_launch_queue_add(model), LAC_OK);
    ck_assert_ptr_eq(counter_of(model), track);
    lac_model_destroy(model);
}
END_TEST

START_TEST(a_coarse_one_keeps_what_is_largest_and_last)
{
    enum { WITHIN = 40 };
    struct lac_model *exact = random_model();
    struct lac_model *coarse = random_model();
    ck_assert_int_eq(lac_launch_queue_add(exact), LAC_OK);
    ck_assert_int_eq(lac_launch_queue_add_within(coarse, WITHIN), LAC_OK);
    ck_assert(lac_model_is_valid(coarse));
    const struct lac_track *all = counter_of(exact);
    const struct lac_track *few = counter_of(coarse);
    ck_assert_uint_le(few->count, WITHIN + 3);
    const int64_t part_ns = exact->sample_ts_ns[all->first + all->count - 1] / (WITHIN / 2) + 1;
    for (uint64_t i = few->first; i < few->first + few->count; i++) {
        const double value = coarse->sample_value[i];
        ck_assert_double_eq(value, (double)depth_at(coarse, coarse->sample_ts_ns[i]));
    }
    for (uint64_t a = all->first; a < all->first + all->count; a++) {
        const int64_t part = exact->sample_ts_ns[a] / part_ns;
        double most = -1;
        for (uint64_t i = few->first; i < few->first + few->count; i++) {
            const bool is_of_part = coarse->sample_ts_ns[i] / part_ns == part;
            most = is_of_part && coarse->sample_value[i] > most ? coarse->sample_value[i] : most;
        }
        ck_assert_double_ge(most, exact->sample_value[a]);
    }
    lac_model_destroy(exact);
    lac_model_destroy(coarse);
}
END_TEST

START_TEST(work_without_calls_has_none)
{
    struct lac_model *model = model_of(
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":90,"
        "\"args\":{\"device\":0,\"stream\":7}}");
    ck_assert_int_eq(lac_launch_queue_add(model), LAC_OK);
    ck_assert_ptr_null(counter_of(model));
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_queue");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, each_sample_is_what_the_pairs_say);
    tcase_add_test(tcase, a_coarse_one_keeps_what_is_largest_and_last);
    tcase_add_test(tcase, work_without_calls_has_none);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
