/* The AVX2 and the scalar parser on the same bytes, in windows of every size. */

#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"
#include "tests/support/real_traces.h"
#include "tests/support/rounds.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_same(const struct imported *a, const struct imported *b)
{
    ck_assert_int_eq(a->status, b->status);
    ck_assert_str_eq(a->error.message, b->error.message);
    ck_assert_uint_eq(a->count, b->count);
    for (size_t m = 0; m < a->count; m++) {
        const struct lac_model *x = a->models[m], *y = b->models[m];
        uint64_t count = x->slices.count;
        ck_assert_uint_eq(count, y->slices.count);
        ck_assert_uint_eq(x->strings.bytes_used, y->strings.bytes_used);
        ck_assert_mem_eq(x->strings.bytes, y->strings.bytes, x->strings.bytes_used);
        ck_assert_uint_eq(x->arg_number_count, y->arg_number_count);
        ck_assert_uint_eq(x->report_count, y->report_count);
        ck_assert_mem_eq(&x->info, &y->info, sizeof(x->info));
        if (count == 0)
            continue;
        ck_assert_mem_eq(x->slices.start_ns, y->slices.start_ns, count * sizeof(int64_t));
        ck_assert_mem_eq(x->slices.dur_ns, y->slices.dur_ns, count * sizeof(int64_t));
        ck_assert_mem_eq(x->slices.name, y->slices.name, count * sizeof(uint32_t));
        ck_assert_mem_eq(x->slices.args, y->slices.args, count * sizeof(uint32_t));
        ck_assert_mem_eq(x->slices.arg_num, y->slices.arg_num, count * sizeof(uint32_t));
        ck_assert_mem_eq(x->slices.corr, y->slices.corr, count * sizeof(uint32_t));
        if (x->arg_number_count)
            ck_assert_mem_eq(x->arg_numbers, y->arg_numbers, x->arg_number_count * sizeof(int64_t));
    }
}

static void expect_same_in_steps(const void *bytes, size_t size)
{
    static const struct {
        size_t window, feed;
        bool scalar;
    } ways[] = {
        {0, 0, true}, {100, 100, false}, {100, 100, true}, {64, 1, false}, {4096, 4095, true}};
    struct imported usual = import_sized(bytes, size);
    for (size_t i = 0; i < LAC_COUNT_OF(ways); i++) {
        struct imported other =
            import_tuned(bytes, size, NULL, ways[i].window, ways[i].feed, ways[i].scalar);
        expect_same(&usual, &other);
        imported_done(&other);
    }
    imported_done(&usual);
}

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % limit;
}

static const char *const pieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     "\\",
                                     "\\u0041",
                                     "\n    ",
                                     " ",
                                     "\t",
                                     "0",
                                     "17",
                                     "-1.5e3",
                                     "123456",
                                     "true",
                                     "null",
                                     "NaN",
                                     "\"ph\":\"X\",",
                                     "\"name\":\"",
                                     "\"ts\":12.5,",
                                     "\"dur\":3,",
                                     "\"args\":{",
                                     "\"pid\":1,",
                                     "\"tid\":\"stream 7\",",
                                     "\xc3\xa9",
                                     "\xff",
                                     "\x01",
                                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                     "{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1},",
                                     "\"correlation\": 42,",
                                     "[1, 2, [3]]",
                                     "                                   "};

START_TEST(random_text_reads_the_same)
{
    char text[4000];
    for (int round = 0; round < rounds_of(1500); round++) {
        size_t size = (size_t)snprintf(text, sizeof(text), "[%s",
                                       "{\"ph\":\"X\",\"name\":\"first\",\"ts\":1,\"dur\":1},");
        uint32_t count = random_below(60);
        for (uint32_t i = 0; i < count; i++) {
            const char *piece = pieces[random_below(LAC_COUNT_OF(pieces))];
            size_t length = strlen(piece);
            if (size + length < sizeof(text)) {
                memcpy(text + size, piece, length);
                size += length;
            }
        }
        expect_same_in_steps(text, size);
    }
}
END_TEST

START_TEST(strings_that_stop_at_every_place_of_a_vector_read_the_same)
{
    static const char *const stops[] = {"\"", "\\n", "\x1f", "\xc3\xa9", "\xff", "\\\"", "\\q"};
    char text[600];
    for (size_t length = 0; length < 100; length++)
        for (size_t i = 0; i < LAC_COUNT_OF(stops); i++) {
            int size = snprintf(
                text, sizeof(text),
                "[{\"ph\":\"X\",\"ts\":1,\"name\":\"%.*s%s\",\"args\":{\"k\":\"%.*s%sx\"}}]",
                (int)length, pieces[29], stops[i], (int)length, pieces[29], i == 0 ? "" : stops[i]);
            expect_same_in_steps(text, (size_t)size);
        }
}
END_TEST

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

START_TEST(real_traces_read_the_same)
{
    static const char *const folders[] = {"kineto", "tf", "sidnb13"};
    int found = 0;
    for (size_t f = 0; f < LAC_COUNT_OF(folders); f++) {
        struct dirent **entries = NULL;
        int count = scandir(real_trace(folders[f]), &entries, is_json, alphasort);
        for (int i = 0; i < count; i++) {
            char path[512];
            size_t size = 0;
            snprintf(path, sizeof(path), "%s/%s", real_trace(folders[f]), entries[i]->d_name);
            unsigned char *bytes = read_whole(path, &size);
            ck_assert_ptr_nonnull(bytes);
            expect_same_in_steps(bytes, size);
            free(bytes);
            free(entries[i]);
            found++;
        }
        if (count >= 0)
            free(entries);
    }
    if (found == 0)
        printf("skip: no real traces in %s (make traces)\n", real_traces());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_scan");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, random_text_reads_the_same);
    tcase_add_test(tcase, strings_that_stop_at_every_place_of_a_vector_read_the_same);
    tcase_add_test(tcase, real_traces_read_the_same);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
