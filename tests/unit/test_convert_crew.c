/* What an import makes with helpers is what it makes alone, byte for byte. */

#include "analysis/crew/crew.h"
#include "collector/base/count_of.h"
#include "server/ingest/convert.h"
#include "tests/support/check_main.h"
#include "tests/support/real_traces.h"
#include "tests/support/rounds.h"
#include "tests/support/training_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-crew-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char command[96];
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static unsigned char *read_and_remove(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*ret_size + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *ret_size, file), *ret_size);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(unlink(path), 0);
    return bytes;
}

/** The trace file that comes of it with so many helpers. */
static unsigned char *convert(const char *input, unsigned helpers, size_t *ret_size)
{
    struct lac_convert_options options = {
        .input_path = input, .output_dir = folder, .name = "trace"};
    struct lac_convert_result result = {0};
    struct lac_error error = {0};
    char stored[160];
    lac_import_limits_default(&options.limits);
    ck_assert(lac_crew_create(helpers, NULL, NULL, &options.crew));
    ck_assert_msg(lac_convert(&options, &result, &error) == LAC_OK, "%s", error.message);
    ck_assert_uint_eq(result.trace_count, 1);
    lac_crew_destroy(options.crew);
    (void)snprintf(stored, sizeof(stored), "%s/trace-0.db", folder);
    return read_and_remove(stored, ret_size);
}

static void check_same(const char *input)
{
    size_t alone_bytes = 0;
    unsigned char *alone = convert(input, 0, &alone_bytes);
    ck_assert_uint_gt(alone_bytes, 0);
    for (unsigned helpers = rounds_are_sanitized() ? LAC_CONVERT_HELPERS : 1;
         helpers <= LAC_CONVERT_HELPERS; helpers++) {
        size_t size_bytes = 0;
        unsigned char *bytes = convert(input, helpers, &size_bytes);
        ck_assert_uint_eq(size_bytes, alone_bytes);
        ck_assert_msg(memcmp(bytes, alone, alone_bytes) == 0, "%s with %u helpers", input, helpers);
        free(bytes);
    }
    free(alone);
}

START_TEST(a_training_with_stored_tiles_and_graphs)
{
    char path[96];
    uint64_t count = 0;
    (void)snprintf(path, sizeof(path), "%s/training.json", folder);
    ck_assert_int_eq(training_text_write(path, 3, 400000, &count), LAC_OK);
    ck_assert_uint_ge(count, 400000);
    check_same(path);
}
END_TEST

/** Recordings whose findings are played: loading, copies, an optimizer, edits of chosen slices. */
START_TEST(recordings_whose_findings_are_played)
{
    static const char *const names[] = {
        "kineto/resnet50_num_workers_0.worker0.1623143089861.pt.trace.json.gz",
        "kineto/resnet50_num_workers_4.worker0.1623212756351.pt.trace.json.gz",
    };
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        const char *path = real_trace(names[i]);
        if (access(path, R_OK) != 0) {
            printf("skip: no %s\n", names[i]);
            continue;
        }
        check_same(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert_crew");
    TCase *all = tcase_create("all");
    tcase_add_unchecked_fixture(all, setup, teardown);
    tcase_set_timeout(all, 60);
    tcase_add_test(all, a_training_with_stored_tiles_and_graphs);
    tcase_add_test(all, recordings_whose_findings_are_played);
    suite_add_tcase(suite, all);
    return check_main(suite);
}
