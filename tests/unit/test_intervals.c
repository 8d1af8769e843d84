/* Sets of time against a slow and obvious oracle: one bit a nanosecond. */

#include "analysis/diagnose/facts/intervals.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE = 96, ROUNDS = 3000 };

static uint64_t state = 88172645463325252U;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/** A random set twice: as spans and as bits. */
static void random_set(struct lac_spans *spans, bool bits[SPACE])
{
    memset(bits, 0, SPACE * sizeof(bits[0]));
    uint32_t count = draw(9);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = draw(SPACE);
        uint32_t end = start + draw(SPACE - start + 1);
        ck_assert_int_eq(lac_spans_add_unsorted(spans, start, end), LAC_OK);
        for (uint32_t t = start; t < end; t++) {
            bits[t] = true;
        }
    }
    lac_spans_normalize(spans, 0);
}

static void same(const struct lac_spans *spans, const bool bits[SPACE])
{
    ck_assert(lac_spans_is_valid(spans));
    bool drawn[SPACE] = {false};
    for (uint64_t i = 0; i < spans->count; i++) {
        for (int64_t t = spans->at[i].start_ns; t < spans->at[i].end_ns; t++) {
            drawn[t] = true;
        }
    }
    ck_assert_int_eq(memcmp(drawn, bits, sizeof(drawn)), 0);
}

static int64_t count_bits(const bool bits[SPACE], int64_t from, int64_t to)
{
    int64_t count = 0;
    for (int64_t t = from; t < to; t++) {
        count += bits[t];
    }
    return count;
}

START_TEST(set_operations_agree_with_bits)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct lac_spans a = {0};
        struct lac_spans b = {0};
        struct lac_spans both = {0};
        struct lac_spans either = {0};
        struct lac_spans only = {0};
        bool bits_a[SPACE], bits_b[SPACE], want[SPACE];
        random_set(&a, bits_a);
        random_set(&b, bits_b);
        same(&a, bits_a);
        ck_assert_int_eq(lac_spans_length(&a), count_bits(bits_a, 0, SPACE));
        ck_assert_int_eq(lac_spans_intersect(&a, &b, &both), LAC_OK);
        ck_assert_int_eq(lac_spans_unite(&a, &b, &either), LAC_OK);
        ck_assert_int_eq(lac_spans_subtract(&a, &b, &only), LAC_OK);
        for (int t = 0; t < SPACE; t++) {
            want[t] = bits_a[t] && bits_b[t];
        }
        same(&both, want);
        ck_assert_int_eq(lac_spans_intersection_length(&a, &b), count_bits(want, 0, SPACE));
        for (int t = 0; t < SPACE; t++) {
            want[t] = bits_a[t] || bits_b[t];
        }
        same(&either, want);
        for (int t = 0; t < SPACE; t++) {
            want[t] = bits_a[t] && !bits_b[t];
        }
        same(&only, want);
        lac_spans_done(&a);
        lac_spans_done(&b);
        lac_spans_done(&both);
        lac_spans_done(&either);
        lac_spans_done(&only);
    }
}
END_TEST

START_TEST(windows_agree_with_bits)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct lac_spans a = {0};
        bool bits[SPACE];
        random_set(&a, bits);
        int64_t from = draw(SPACE);
        int64_t to = from + draw((uint32_t)(SPACE - from + 1));
        int64_t *prefix = lac_spans_prefix(&a);
        ck_assert_ptr_nonnull(prefix);
        ck_assert_int_eq(lac_spans_length_inside(&a, from, to), count_bits(bits, from, to));
        ck_assert_int_eq(lac_spans_length_up_to(&a, prefix, to), count_bits(bits, 0, to));
        free(prefix);
        lac_spans_done(&a);
    }
}
END_TEST

START_TEST(bridges_close_short_holes_only)
{
    struct lac_spans spans = {0};
    ck_assert_int_eq(lac_spans_add_bridged(&spans, 0, 10, 5), LAC_OK);
    ck_assert_int_eq(lac_spans_add_bridged(&spans, 15, 20, 5), LAC_OK);
    ck_assert_int_eq(lac_spans_add_bridged(&spans, 26, 30, 5), LAC_OK);
    ck_assert_uint_eq(spans.count, 2);
    ck_assert_int_eq(spans.at[0].end_ns, 20);
    lac_spans_normalize(&spans, 6);
    ck_assert_uint_eq(spans.count, 1);
    ck_assert_int_eq(lac_spans_length(&spans), 30);
    lac_spans_done(&spans);
}
END_TEST

/** Short holes may be bridged as they come or in the end, also when other threads' times follow. */
START_TEST(bridging_while_adding_changes_nothing)
{
    struct lac_spans early = {0};
    struct lac_spans late = {0};
    uint32_t random = 12345;
    for (int thread = 0; thread < 3; thread++) {
        int64_t t_ns = thread * 40;
        for (int i = 0; i < 200; i++) {
            random = random * 1103515245U + 12345U;
            int64_t end_ns = t_ns + (random >> 16) % 9;
            ck_assert_int_eq(lac_spans_add_unsorted_bridged(&early, t_ns, end_ns, 5), LAC_OK);
            ck_assert_int_eq(lac_spans_add_unsorted(&late, t_ns, end_ns), LAC_OK);
            t_ns += (random >> 24) % 17;
        }
    }
    ck_assert_uint_lt(early.count, late.count); /* that is what it is for */
    lac_spans_normalize(&early, 5);
    lac_spans_normalize(&late, 5);
    ck_assert_uint_eq(early.count, late.count);
    ck_assert_mem_eq(early.at, late.at, early.count * sizeof(*early.at));
    lac_spans_done(&early);
    lac_spans_done(&late);
}
END_TEST

START_TEST(empty_intervals_add_nothing)
{
    struct lac_spans spans = {0};
    ck_assert_int_eq(lac_spans_add(&spans, 5, 5), LAC_OK);
    ck_assert_int_eq(lac_spans_add_unsorted(&spans, 7, 6), LAC_OK);
    ck_assert_uint_eq(spans.count, 0);
    ck_assert_uint_eq(lac_spans_first_after(&spans, 0), 0);
    lac_spans_done(&spans);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("intervals");
    TCase *tcase = tcase_create("intervals");
    tcase_add_test(tcase, set_operations_agree_with_bits);
    tcase_add_test(tcase, windows_agree_with_bits);
    tcase_add_test(tcase, bridges_close_short_holes_only);
    tcase_add_test(tcase, bridging_while_adding_changes_nothing);
    tcase_add_test(tcase, empty_intervals_add_nothing);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
