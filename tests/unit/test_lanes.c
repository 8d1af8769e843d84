#include "analysis/model/builder.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng_state = 7;

static uint64_t rng(uint64_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state % below;
}

struct interval {
    int64_t start_ns;
    int64_t dur_ns;
};

static struct lac_model *model_of(enum lac_track_kind kind, const struct interval *intervals,
                                  uint32_t count)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    uint32_t process = 0;
    uint32_t track = 0;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    ck_assert_int_eq(lac_builder_process(builder, 0, 1, &process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, kind, process, 0, 1, &track), LAC_OK);
    lac_builder_saw_time(builder, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct lac_slice_in slice = {.start_ns = intervals[i].start_ns,
                                     .dur_ns = intervals[i].dur_ns,
                                     .track = track,
                                     .detail = i,
                                     .kind = LAC_SLICE_OP};

        ck_assert_int_eq(lac_builder_slice(builder, &slice), LAC_OK);
    }
    ck_assert_int_eq(lac_builder_finish(builder, 0, &model), LAC_OK);
    ck_assert_uint_eq(model->slices.count, count);
    return model;
}

static void expect_lanes(enum lac_track_kind kind, const struct interval *intervals,
                         const uint16_t *lanes, uint32_t count)
{
    struct lac_model *model = model_of(kind, intervals, count);

    ck_assert(lac_model_is_valid(model));
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_msg(model->slices.lane[i] == lanes[i], "slice %u: lane %u, not %u", i,
                      model->slices.lane[i], lanes[i]);
    }
    lac_model_destroy(model);
}

START_TEST(nested_slices_go_one_deeper)
{
    static const struct interval in[] = {{0, 100}, {0, 50},  {10, 20}, {10, 0},
                                         {30, 20}, {60, 40}, {60, 40}, {100, 5}};
    static const uint16_t out[] = {0, 1, 2, 3, 2, 1, 2, 0};

    expect_lanes(LAC_TRACK_THREAD, in, out, 8);
}
END_TEST

START_TEST(what_overlaps_without_nesting_gets_a_free_lane)
{
    /* B starts inside A and outlives it; C lies in both, D only in B */
    static const struct interval in[] = {{0, 100}, {50, 100}, {60, 20}, {110, 10}};
    static const uint16_t thread[] = {0, 1, 2, 2};
    static const uint16_t stream[] = {0, 1, 2, 0};

    expect_lanes(LAC_TRACK_THREAD, in, thread, 4);
    expect_lanes(LAC_TRACK_STREAM, in, stream, 4);
}
END_TEST

START_TEST(zero_length_slices_lie_anywhere_and_block_nothing)
{
    static const struct interval in[] = {{10, 0}, {10, 0}, {10, 5}, {15, 0}, {15, 5}};
    /* sorted: the slice of length 5 first; at 15 the one of length 5 before the mark */
    static const uint16_t thread[] = {0, 1, 1, 0, 1};
    static const uint16_t stream[] = {0, 1, 1, 0, 1};

    expect_lanes(LAC_TRACK_THREAD, in, thread, 5);
    expect_lanes(LAC_TRACK_STREAM, in, stream, 5);
}
END_TEST

/* The rule as it is written: the first lane, greater than those of all that contain the slice, in
 * which nothing before it still runs. */
static uint32_t lane_by_definition(const struct lac_slices *s, uint64_t slice, bool nested)
{
    int64_t start = s->start_ns[slice];
    int64_t end = start + s->dur_ns[slice];
    uint32_t lane = 0;

    for (uint64_t i = 0; i < slice && nested; i++) {
        int64_t other_end = s->start_ns[i] + s->dur_ns[i];

        if (other_end >= end && other_end > start && s->lane[i] >= lane) {
            lane = s->lane[i] + 1u;
        }
    }
    for (;; lane++) {
        bool is_free = true;

        for (uint64_t i = 0; i < slice && is_free; i++) {
            is_free = s->lane[i] != lane || s->start_ns[i] + s->dur_ns[i] <= start;
        }
        if (is_free) {
            return lane;
        }
    }
}

START_TEST(lanes_follow_their_definition_for_any_slices)
{
    for (uint32_t round = 0; round < 200; round++) {
        enum { COUNT = 300 };
        struct interval in[COUNT];
        bool nested = round % 2 == 0;
        uint64_t span = 1 + rng(400);

        for (uint32_t i = 0; i < COUNT; i++) {
            in[i].start_ns = (int64_t)rng(span);
            in[i].dur_ns = (int64_t)rng(1 + rng(span));
        }
        struct lac_model *model = model_of(nested ? LAC_TRACK_THREAD : LAC_TRACK_STREAM, in, COUNT);
        ck_assert(lac_model_is_valid(model));
        uint32_t largest = 0;
        for (uint64_t i = 0; i < COUNT; i++) {
            uint32_t lane = model->slices.lane[i];

            ck_assert_uint_eq(lane, lane_by_definition(&model->slices, i, nested));
            largest = lane > largest ? lane : largest;
        }
        ck_assert_uint_eq(model->tracks[0].lane_count, largest + 1);
        lac_model_destroy(model);
    }
}
END_TEST

START_TEST(order_follows_its_definition_for_any_slices)
{
    for (uint32_t round = 0; round < 100; round++) {
        enum { COUNT = 1000 };
        struct interval *in = calloc(COUNT, sizeof(*in));
        uint64_t span = 1 + rng(round < 50 ? 20 : 100000);

        ck_assert_ptr_nonnull(in);
        for (uint32_t i = 0; i < COUNT; i++) {
            in[i].start_ns = (int64_t)rng(span) + (round % 3 == 0 ? (int64_t)i * 50 : 0);
            in[i].dur_ns = (int64_t)rng(1 + rng(span));
        }
        struct lac_model *model = model_of(LAC_TRACK_STREAM, in, COUNT);
        const struct lac_slices *s = &model->slices;
        for (uint64_t i = 0; i < COUNT; i++) { /* detail is the place in the input */
            ck_assert_int_eq(s->start_ns[i], in[s->detail[i]].start_ns);
            ck_assert_int_eq(s->dur_ns[i], in[s->detail[i]].dur_ns);
            ck_assert(i == 0 || s->start_ns[i] > s->start_ns[i - 1] ||
                      (s->start_ns[i] == s->start_ns[i - 1] &&
                       (s->dur_ns[i] < s->dur_ns[i - 1] ||
                        (s->dur_ns[i] == s->dur_ns[i - 1] && s->detail[i] > s->detail[i - 1]))));
        }
        lac_model_destroy(model);
        free(in);
    }
}
END_TEST

START_TEST(more_overlaps_than_lanes_are_kept_and_reported)
{
    uint32_t count = 65536 + 500;
    struct interval *in = calloc(count, sizeof(*in));

    ck_assert_ptr_nonnull(in);
    for (uint32_t i = 0; i < count; i++) {
        in[i] = (struct interval){.start_ns = i, .dur_ns = 1000000};
    }
    for (int nested = 0; nested < 2; nested++) {
        struct lac_model *model = model_of(nested ? LAC_TRACK_THREAD : LAC_TRACK_STREAM, in, count);
        ck_assert(lac_model_is_valid(model));
        ck_assert_uint_eq(model->tracks[0].lane_count, 65536);
        ck_assert_uint_eq(model->slices.lane[65535], 65535);
        ck_assert_uint_eq(model->slices.lane[count - 1], 65535);
        ck_assert_uint_eq(model->report_count, 1);
        ck_assert_uint_eq(model->report[0].count, 500);
        ck_assert_uint_eq(model->info.dropped_count, 0);
        lac_model_destroy(model);
    }
    free(in);
}
END_TEST

START_TEST(validity_sees_each_kind_of_damage)
{
    static const struct interval in[] = {{0, 100}, {10, 20}, {40, 20}};
    struct lac_model *model = model_of(LAC_TRACK_THREAD, in, 3);
    struct lac_slices *s = &model->slices;

    ck_assert(lac_model_is_valid(model));
#define DAMAGE(field, bad)                                                                         \
    do {                                                                                           \
        __typeof__(field) good = (field);                                                          \
        (field) = (bad);                                                                           \
        ck_assert_msg(!lac_model_is_valid(model), "%s = %s went through", #field, #bad);           \
        (field) = good;                                                                            \
        ck_assert(lac_model_is_valid(model));                                                      \
    } while (0)
    DAMAGE(s->start_ns[1], 45);
    DAMAGE(s->start_ns[0], -1);
    DAMAGE(s->dur_ns[2], LAC_TIME_MAX_NS);
    DAMAGE(s->dur_ns[2], -5);
    DAMAGE(s->dur_ns[1], 31); /* would overlap its neighbor in the lane */
    DAMAGE(s->lane[1], 0);
    DAMAGE(s->lane[1], 7);
    DAMAGE(s->name[1], 99);
    DAMAGE(s->args[1], 99);
    DAMAGE(s->kind[1], LAC_SLICE_KIND_COUNT_);
    DAMAGE(s->kind[1], LAC_SLICE_KERNEL); /* its detail is no row */
    DAMAGE(s->link[1], 3);
    DAMAGE(s->arg_num[1], 1);
    DAMAGE(model->tracks[0].first, 1);
    DAMAGE(model->tracks[0].count, 2);
    DAMAGE(model->tracks[0].lane_count, 1);
    DAMAGE(model->tracks[0].process, 4);
    DAMAGE(model->tracks[0].kind, LAC_TRACK_COUNTER);
    DAMAGE(model->recorded_track_count, 2);
#undef DAMAGE
    lac_model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lanes");
    TCase *tests = tcase_create("lanes");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, nested_slices_go_one_deeper);
    tcase_add_test(tests, what_overlaps_without_nesting_gets_a_free_lane);
    tcase_add_test(tests, zero_length_slices_lie_anywhere_and_block_nothing);
    tcase_add_test(tests, lanes_follow_their_definition_for_any_slices);
    tcase_add_test(tests, order_follows_its_definition_for_any_slices);
    tcase_add_test(tests, more_overlaps_than_lanes_are_kept_and_reported);
    tcase_add_test(tests, validity_sees_each_kind_of_damage);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
