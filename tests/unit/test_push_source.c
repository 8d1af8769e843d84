/* What a push sends: the same bytes each time, and every byte of what lies in the folder. */

#include "analysis/import/source/source.h"
#include "collector/base/count_of.h"
#include "collector/base/tar.h"
#include "collector/push/push_source.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENT_MAX = 8 << 20 };

static char folder[64];
static uint8_t *sent;
static size_t sent_bytes;

struct made_file {
    const char *name;
    size_t size_bytes;
    size_t zero_bytes; /* of it, at its end */
    uint8_t *bytes;
};

static void path_of(const char *name, char *out, size_t capacity)
{
    ck_assert_int_lt(snprintf(out, capacity, "%s/%s", folder, name), (int)capacity);
}

static void make_file(struct made_file *file)
{
    const struct lac_spool_header header = {.magic = LAC_SPOOL_MAGIC, .boot_id = {1, 2, 3}};
    char path[400];
    FILE *out;

    path_of(file->name, path, sizeof(path));
    file->bytes = calloc(1, file->size_bytes + 1);
    ck_assert_ptr_nonnull(file->bytes);
    for (size_t i = 0; i + file->zero_bytes < file->size_bytes; i++) {
        file->bytes[i] = (uint8_t)(i * 31 + i / 251 + 1);
    }
    if (strstr(file->name, ".spool") != NULL && file->size_bytes >= sizeof(header)) {
        memcpy(file->bytes, &header, sizeof(header));
    }
    out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(file->bytes, 1, file->size_bytes, out), file->size_bytes);
    ck_assert_int_eq(fclose(out), 0);
}

static void remove_file(struct made_file *file)
{
    char path[400];

    path_of(file->name, path, sizeof(path));
    ck_assert_int_eq(unlink(path), 0);
    free(file->bytes);
}

static void begin(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/test_push_source.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("LACUNA_LIBZSTD", "/nonexistent", 1), 0);
    sent = malloc(SENT_MAX);
    ck_assert_ptr_nonnull(sent);
}

static void end(void)
{
    free(sent);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* All of it, so much at a time. */
static size_t read_source(const char *path, uint8_t *out, size_t step)
{
    char problem[500] = "";
    struct lac_push_source *const source = lac_push_source_open(path, problem, sizeof(problem));
    size_t done = 0;
    int64_t got = (int64_t)step;

    ck_assert_msg(source != NULL, "%s", problem);
    while (got == (int64_t)step) {
        ck_assert_uint_le(done + step, SENT_MAX);
        got = lac_push_source_read(source, out + done, step);
        ck_assert_int_ge(got, 0);
        done += (size_t)got;
    }
    lac_push_source_close(source);
    return done;
}

/* The folder, read in pieces of several sizes. */
static void send_folder(void)
{
    static const size_t steps[] = {1 << 20, 777, (1 << 20) + 1};
    uint8_t *const again = malloc(SENT_MAX);

    ck_assert_ptr_nonnull(again);
    sent_bytes = read_source(folder, sent, 4096);
    for (size_t i = 0; i < LAC_COUNT_OF(steps); i++) {
        ck_assert_uint_eq(read_source(folder, again, steps[i]), sent_bytes);
        ck_assert_mem_eq(sent, again, sent_bytes);
    }
    free(again);
}

/* The next file of a bundle, put together. @return where the one after it begins */
static size_t check_bundled(size_t at, const struct made_file *file)
{
    uint8_t *const bytes = calloc(1, file->size_bytes + 1);
    size_t size_bytes = 0;

    ck_assert_ptr_nonnull(bytes);
    while (at < sent_bytes) {
        struct lac_bundle_part part;

        ck_assert_uint_le(at + sizeof(part), sent_bytes);
        memcpy(&part, sent + at, sizeof(part));
        ck_assert_uint_eq(part.magic, LAC_BUNDLE_PART_MAGIC);
        ck_assert_uint_le(at + sizeof(part) + part.name_bytes + part.data_bytes, sent_bytes);
        if (part.name_bytes != strlen(file->name) ||
            memcmp(sent + at + sizeof(part), file->name, part.name_bytes) != 0) {
            break;
        }
        ck_assert_uint_eq(part.offset, size_bytes); /* one after the other, without a hole */
        size_bytes += part.size_bytes;
        ck_assert_uint_le(size_bytes, file->size_bytes);
        memcpy(bytes + part.offset, sent + at + sizeof(part) + part.name_bytes, part.data_bytes);
        at += sizeof(part) + part.name_bytes + part.data_bytes;
    }
    ck_assert_uint_eq(size_bytes, file->size_bytes);
    ck_assert_mem_eq(bytes, file->bytes, file->size_bytes);
    free(bytes);
    return at;
}

START_TEST(a_recording_is_a_bundle_of_all_its_bytes)
{
    struct made_file files[] = {{"1-2-0.spool", 300000, 0, NULL},
                                {"1-3-1.spool", (1 << 20) + 70001, 70000, NULL}, /* cut */
                                {"node-host-1.spool", 3 << 20, 2 << 20, NULL},
                                {"torch-profiler-1-0.json", 5000, 0, NULL}};
    size_t at = sizeof(LAC_BUNDLE_MAGIC) - 1;

    begin();
    for (size_t i = LAC_COUNT_OF(files); i-- > 0;) {
        make_file(&files[i]);
    }
    send_folder();
    ck_assert_mem_eq(sent, LAC_BUNDLE_MAGIC, at);
    for (size_t i = 0; i < LAC_COUNT_OF(files); i++) {
        at = check_bundled(at, &files[i]);
        remove_file(&files[i]);
    }
    ck_assert_uint_eq(at, sent_bytes);
    ck_assert_uint_lt(sent_bytes, 3 << 20); /* zeros at the end of a piece stay here */
    end();
}
END_TEST

START_TEST(a_folder_with_other_files_is_an_archive)
{
    char longest[256];
    char over[102];
    struct made_file files[] = {{"1-2-0.spool", 9000, 0, NULL}, {"b.json", 0, 0, NULL},
                                {"c.json", 511, 0, NULL},       {"d.json", 512, 512, NULL},
                                {over, 513, 0, NULL},           {longest, 1, 0, NULL}};
    struct lac_source_budget budget = {.expanded_bytes_max = UINT64_MAX,
                                       .expansion_ratio_max = 1000};
    struct lac_error error = {0};
    struct lac_source *memory = NULL;
    struct lac_source *tar = NULL;
    char name[LAC_TAR_NAME_MAX];
    bool found = false;

    memset(over, 'e', sizeof(over) - 1);
    over[sizeof(over) - 1] = '\0';
    memset(longest, 'f', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    begin();
    for (size_t i = 0; i < LAC_COUNT_OF(files); i++) {
        make_file(&files[i]);
    }
    send_folder();
    ck_assert_uint_eq(sent_bytes % LAC_TAR_BLOCK_BYTES, 0);
    ck_assert_int_eq(lac_source_open_memory(sent, sent_bytes, sent_bytes, &budget, &memory, &error),
                     LAC_OK);
    ck_assert_int_eq(lac_source_open_tar(memory, &tar, &error), LAC_OK);
    for (size_t i = 0; i < LAC_COUNT_OF(files); i++) {
        uint8_t bytes[9001];
        size_t done = 0;
        size_t got = 1;

        ck_assert_int_eq(lac_tar_next(tar, name, &found, &error), LAC_OK);
        ck_assert(found);
        ck_assert_str_eq(name, files[i].name);
        while (got > 0) {
            ck_assert_int_eq(lac_source_read(tar, bytes + done, sizeof(bytes) - done, &got, &error),
                             LAC_OK);
            done += got;
        }
        ck_assert_uint_eq(done, files[i].size_bytes);
        ck_assert_mem_eq(bytes, files[i].bytes, done);
        remove_file(&files[i]);
    }
    ck_assert_int_eq(lac_tar_next(tar, name, &found, &error), LAC_OK);
    ck_assert(!found && lac_source_damage(tar) == NULL);
    lac_source_destroy(tar);
    lac_source_destroy(memory);
    end();
}
END_TEST

START_TEST(what_cannot_be_sent_says_why)
{
    char problem[500] = "";
    char path[100];

    begin();
    ck_assert_ptr_null(lac_push_source_open(folder, problem, sizeof(problem)));
    ck_assert_ptr_nonnull(strstr(problem, ": the folder holds no file; give"));
    path_of("absent", path, sizeof(path));
    ck_assert_ptr_null(lac_push_source_open(path, problem, sizeof(problem)));
    ck_assert_ptr_nonnull(strstr(problem, "/absent: No such file or directory"));
    end();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("push_source");
    TCase *const tcase = tcase_create("all");

    tcase_add_test(tcase, a_recording_is_a_bundle_of_all_its_bytes);
    tcase_add_test(tcase, a_folder_with_other_files_is_an_archive);
    tcase_add_test(tcase, what_cannot_be_sent_says_why);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
