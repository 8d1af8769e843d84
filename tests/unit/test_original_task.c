/* The original is kept beside the import: what comes of both is what comes of one after the other. */

#include "analysis/import/import.h"
#include "collector/base/sha.h"
#include "server/ingest/convert.h"
#include "server/ingest/original.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char input[96];

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-original-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(input, sizeof(input), "%s/trace.json", folder);
    FILE *out = fopen(input, "w");
    ck_assert_ptr_nonnull(out);
    (void)fputs("{\"traceEvents\":[", out);
    for (int i = 0; i < 30000; i++) { /* more than a block of what is compressed */
        (void)fprintf(out,
                      "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"pid\":0,\"tid\":7,"
                      "\"ts\":%d,\"dur\":%d,\"args\":{\"device\":0,\"stream\":7}}\n",
                      i > 0 ? "," : "", i % 13, i * 10, 3 + i % 6);
    }
    (void)fputs("]}\n", out);
    ck_assert_int_eq(fclose(out), 0);
}

static void teardown(void)
{
    char command[96];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/** The whole of a file in the folder. */
static char *read_whole(const char *name, size_t *ret_size)
{
    char path[160];
    struct stat info;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fstat(fileno(file), &info), 0);
    char *bytes = malloc((size_t)info.st_size + 1);
    ck_assert_ptr_nonnull(bytes);
    *ret_size = fread(bytes, 1, (size_t)info.st_size, file);
    ck_assert_uint_eq(*ret_size, (size_t)info.st_size);
    (void)fclose(file);
    return bytes;
}

static void same(const char *left, const char *right)
{
    size_t left_size, right_size;
    char *a = read_whole(left, &left_size);
    char *b = read_whole(right, &right_size);

    ck_assert_uint_eq(left_size, right_size);
    ck_assert_int_eq(memcmp(a, b, left_size), 0);
    free(a);
    free(b);
}

static void make_folder(char path[96], const char *name)
{
    (void)snprintf(path, 96, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void import_into(const char *path)
{
    struct lac_convert_options convert = {
        .input_path = input, .output_dir = path, .name = "the same"};
    struct lac_convert_result result;
    struct lac_error error = {0};

    lac_import_limits_default(&convert.limits);
    ck_assert_msg(lac_convert(&convert, &result, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(result.event_count, 30000);
}

START_TEST(beside_the_import_it_is_the_same_byte_for_byte)
{
    char one[96], two[96], kept_one[128], kept_two[128];
    uint8_t sha_one[LAC_SHA256_SIZE], sha_two[LAC_SHA256_SIZE];
    uint64_t size_one = 0, size_two = 0;
    struct lac_original_task *task = NULL;
    struct lac_error error = {0};

    make_folder(one, "one");
    make_folder(two, "two");
    (void)snprintf(kept_one, sizeof(kept_one), "%s/original.zst", one);
    (void)snprintf(kept_two, sizeof(kept_two), "%s/original.zst", two);
    const struct lac_original_options first = {
        .input_path = input, .output_path = kept_one, .ret_sha256 = sha_one};
    const struct lac_original_options second = {
        .input_path = input, .output_path = kept_two, .ret_sha256 = sha_two};
    ck_assert_int_eq(lac_original_read(&first, &size_one, &error), LAC_OK);
    import_into(one);
    ck_assert_int_eq(lac_original_task_begin(&second, NULL, NULL, &task, &error), LAC_OK);
    import_into(two);
    ck_assert_int_eq(lac_original_task_end(task, &size_two, &error), LAC_OK);
    ck_assert_uint_eq(size_one, size_two);
    ck_assert_uint_gt(size_one, 2 << 20);
    ck_assert_mem_eq(sha_one, sha_two, sizeof(sha_one));
    same("one/original.zst", "two/original.zst");
    same("one/trace-0.db", "two/trace-0.db");
}
END_TEST

START_TEST(what_goes_wrong_in_the_thread_is_told_at_its_end)
{
    uint8_t sha[LAC_SHA256_SIZE];
    uint64_t size = 0;
    struct lac_original_task *task = NULL;
    struct lac_error error = {0};
    const struct lac_original_options options = {.input_path = "/nowhere/at/all",
                                                 .ret_sha256 = sha};

    ck_assert_int_eq(lac_original_task_begin(&options, NULL, NULL, &task, &error), LAC_OK);
    ck_assert_int_eq(lac_original_task_end(task, &size, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/at/all"));
    ck_assert_int_eq(lac_original_task_end(NULL, &size, &error), LAC_OK);
}
END_TEST

static bool wait_and_answer(void *context)
{
    void **both = context;

    while (sem_wait(both[0]) != 0) {
    }
    return *(const bool *)both[1];
}

START_TEST(it_reads_nothing_before_it_may)
{
    uint8_t sha[LAC_SHA256_SIZE];
    const struct lac_original_options options = {.input_path = input, .ret_sha256 = sha};

    for (int may = 0; may < 2; may++) {
        bool answer = may == 1;
        uint64_t size = 0;
        struct lac_original_task *task = NULL;
        struct lac_error error = {0};
        sem_t go;
        void *both[] = {&go, &answer};

        ck_assert_int_eq(sem_init(&go, 0, 0), 0);
        ck_assert_int_eq(lac_original_task_begin(&options, wait_and_answer, both, &task, &error),
                         LAC_OK);
        ck_assert(!lac_original_task_is_done(task));
        ck_assert_int_eq(sem_post(&go), 0);
        ck_assert_int_eq(lac_original_task_end(task, &size, &error), answer ? LAC_OK : LAC_ERR_IO);
        ck_assert_int_eq(size > 0, answer);
        (void)sem_destroy(&go);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("original_task");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, beside_the_import_it_is_the_same_byte_for_byte);
    tcase_add_test(tcase, what_goes_wrong_in_the_thread_is_told_at_its_end);
    tcase_add_test(tcase, it_reads_nothing_before_it_may);
    Suite *suite = suite_create("original_task");
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
