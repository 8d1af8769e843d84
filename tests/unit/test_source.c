/* Compression and archives on the way in: every layering, cut and damaged, names that are only
 * names. */

#include "analysis/import/source/source.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"
#include "tests/support/import_text.h"

#include <check.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

static const char trace[] =
    "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,"
    "\"dur\":2},{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":2}]}";

struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes gzipped(const void *data, size_t size)
{
    struct bytes out = {malloc(size + 4096), 0};
    struct isal_zstream stream;
    ck_assert_ptr_nonnull(out.at);
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = (uint8_t *)(uintptr_t)data;
    stream.avail_in = (uint32_t)size;
    stream.next_out = out.at;
    stream.avail_out = (uint32_t)size + 4096;
    ck_assert_int_eq(isal_deflate(&stream), COMP_OK);
    out.size = size + 4096 - stream.avail_out;
    return out;
}

static struct bytes zstd_packed(const void *data, size_t size)
{
    struct bytes out = {malloc(ZSTD_compressBound(size)), 0};
    ck_assert_ptr_nonnull(out.at);
    out.size = ZSTD_compress(out.at, ZSTD_compressBound(size), data, size, 3);
    return out;
}

static void put_member(struct bytes *tar, const char *name, char type, const void *data,
                       size_t size)
{
    size_t padded = (size + 511) / 512 * 512;
    tar->at = realloc(tar->at, tar->size + 512 + padded + 1024);
    ck_assert_ptr_nonnull(tar->at);
    char *header = (char *)tar->at + tar->size;
    memset(header, 0, 512 + padded + 1024);
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644\0000000000\0000000000", 24);
    snprintf(header + 124, 12, "%011o", (unsigned)size);
    memcpy(header + 136, "00000000000", 11);
    memset(header + 148, ' ', 8);
    header[156] = type;
    memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    memcpy(header + 512, data, size);
    tar->size += 512 + padded;
}

static void end_tar(struct bytes *tar)
{
    tar->size += 1024; /* put_member() left the room, zeroed */
}

static void expect_trace(struct bytes input, const char *name)
{
    struct imported imported = import_tuned(input.at, input.size, NULL, 0, 3, false);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.count, 1);
    ck_assert_uint_eq(imported.models[0]->slices.count, 2);
    ck_assert_uint_eq(imported.models[0]->info.expanded_bytes, sizeof(trace) - 1);
    ck_assert_uint_eq(imported.models[0]->info.input_bytes, input.size);
    ck_assert_uint_eq(imported.models[0]->report_count, 0);
    ck_assert_str_eq(lac_model_str(imported.models[0], imported.models[0]->info.name), name);
    imported_done(&imported);
}

START_TEST(every_layering_is_undone_by_content)
{
    struct bytes gz = gzipped(trace, sizeof(trace) - 1),
                 zst = zstd_packed(trace, sizeof(trace) - 1);
    struct bytes gz_gz = gzipped(gz.at, gz.size), tar = {0}, tar_of_gz = {0};
    expect_trace(gz, "test");
    expect_trace(zst, "test");
    expect_trace(gz_gz, "test");
    put_member(&tar, "run/rank0.pt.trace.json", '0', trace, sizeof(trace) - 1);
    end_tar(&tar);
    expect_trace(tar, "rank0");
    put_member(&tar_of_gz, "rank1.json.gz", '0', gz.at, gz.size);
    end_tar(&tar_of_gz);
    struct bytes all = gzipped(tar_of_gz.at, tar_of_gz.size);
    expect_trace(all, "rank1");
    struct bytes packed = zstd_packed(tar.at, tar.size);
    expect_trace(packed, "rank0");
    struct bytes deep = gzipped(gz_gz.at, gz_gz.size), deeper = gzipped(deep.at, deep.size);
    struct bytes deepest = gzipped(deeper.at, deeper.size);
    struct imported imported = import_sized(deepest.at, deepest.size);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    free(gz.at), free(zst.at), free(gz_gz.at), free(tar.at), free(tar_of_gz.at), free(all.at);
    free(packed.at), free(deep.at), free(deeper.at), free(deepest.at);
}
END_TEST

START_TEST(several_members_and_frames_read_as_one)
{
    struct bytes parts[3], whole = {malloc(20000), 0};
    size_t third = (sizeof(trace) - 1) / 3;
    for (size_t kind = 0; kind < 2; kind++) {
        whole.size = 0;
        for (size_t i = 0; i < 3; i++) {
            size_t size = i == 2 ? sizeof(trace) - 1 - 2 * third : third;
            parts[i] =
                kind ? zstd_packed(trace + i * third, size) : gzipped(trace + i * third, size);
            memcpy(whole.at + whole.size, parts[i].at, parts[i].size);
            whole.size += parts[i].size;
            free(parts[i].at);
        }
        for (size_t feed = 1; feed < 40; feed++) {
            struct imported imported = import_tuned(whole.at, whole.size, NULL, 64, feed, false);
            ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
            ck_assert_uint_eq(imported.models[0]->slices.count, 2);
            ck_assert_uint_eq(imported.models[0]->report_count, 0);
            imported_done(&imported);
        }
    }
    free(whole.at);
}
END_TEST

START_TEST(compressed_input_cut_at_every_byte_is_an_error_or_counted)
{
    for (int kind = 0; kind < 2; kind++) {
        struct bytes packed =
            kind ? zstd_packed(trace, sizeof(trace) - 1) : gzipped(trace, sizeof(trace) - 1);
        for (size_t cut = 0; cut < packed.size; cut++) {
            struct imported imported = import_tuned(packed.at, cut, NULL, 0, 0, false);
            if (imported.status == LAC_OK)
                ck_assert_uint_gt(report_count(imported.models[0], "input_damaged"), 0);
            else
                ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
            imported_done(&imported);
        }
        packed.at[packed.size - 6] ^= 0x40; /* the checksum, or the last of the data */
        struct imported imported = import_sized(packed.at, packed.size);
        ck_assert(imported.status == LAC_ERR_CORRUPT ||
                  report_count(imported.models[0], "input_damaged") == 1);
        imported_done(&imported);
        free(packed.at);
    }
}
END_TEST

START_TEST(names_in_an_archive_are_never_places)
{
    static const char *const names[] = {"../../../../tmp/lacuna-escape.json",
                                        "/tmp/lacuna-escape.json", "a/../../lacuna-escape.json"};
    struct bytes tar = {0};
    for (size_t i = 0; i < 3; i++)
        put_member(&tar, names[i], '0', trace, sizeof(trace) - 1);
    put_member(&tar, "link", '2', "", 0);
    put_member(&tar, "folder/", '5', "", 0);
    end_tar(&tar);
    struct imported imported = import_sized(tar.at, tar.size);
    ck_assert_int_eq(imported.status, LAC_OK);
    ck_assert_uint_eq(imported.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(lac_model_str(imported.models[i], imported.models[i]->info.name),
                         "lacuna-escape");
    ck_assert_int_ne(access("/tmp/lacuna-escape.json", F_OK), 0);
    ck_assert_int_ne(access("../lacuna-escape.json", F_OK), 0);
    imported_done(&imported);
    free(tar.at);
}
END_TEST

START_TEST(members_that_are_no_traces_are_counted)
{
    struct bytes tar = {0};
    put_member(&tar, "README", '0', "hello", 5);
    put_member(&tar, "rank0.json", '0', trace, sizeof(trace) - 1);
    put_member(&tar, "config.json", '0', "{\"a\":1}", 7);
    put_member(&tar, "empty.json", '0', "", 0);
    end_tar(&tar);
    struct imported imported = import_sized(tar.at, tar.size);
    ck_assert_msg(imported.status == LAC_OK, "%s", imported.error.message);
    ck_assert_uint_eq(imported.count, 1);
    ck_assert_uint_eq(report_count(imported.models[0], "member_skipped"), 3);
    imported_done(&imported);
    imported = import_sized(tar.at, 1024); /* the README alone */
    ck_assert_int_eq(imported.status, LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "README"));
    free(tar.at);
}
END_TEST

START_TEST(an_archive_cut_at_every_block_keeps_what_was_whole)
{
    struct bytes tar = {0};
    for (int i = 0; i < 3; i++)
        put_member(&tar, "rank.json", '0', trace, sizeof(trace) - 1);
    end_tar(&tar);
    for (size_t cut = 0; cut <= tar.size; cut += 64) {
        struct imported imported = import_sized(tar.at, cut);
        size_t whole = 0;
        while (whole < 3 && cut >= whole * 1024 + 512 + sizeof(trace) - 1)
            whole++;
        ck_assert_msg(imported.count >= whole, "cut %zu: %zu of %zu", cut, imported.count, whole);
        ck_assert(imported.status == LAC_OK || imported.status == LAC_ERR_CORRUPT);
        uint64_t events = 0, reports = 0;
        for (size_t i = 0; i < imported.count; i++) {
            events += imported.models[i]->info.event_count;
            reports += imported.models[i]->report_count;
        }
        ck_assert_uint_ge(events, whole * 2);
        if (imported.status == LAC_OK && cut % 1024 != 0 && cut < 3 * 1024)
            ck_assert_uint_gt(reports, 0);
        imported_done(&imported);
    }
    free(tar.at);
}
END_TEST

START_TEST(long_names_and_sizes_of_pax_and_gnu_are_read)
{
    char long_name[300], pax[400];
    struct bytes tar = {0};
    memset(long_name, 'n', 200);
    snprintf(long_name + 200, 20, ".json");
    int body = snprintf(pax, sizeof(pax), "path=x/%s\n", long_name);
    int size = snprintf(pax, sizeof(pax), "%d path=x/%s\n", body + 4, long_name);
    put_member(&tar, "pax", 'x', pax, (size_t)size);
    put_member(&tar, "short.json", '0', trace, sizeof(trace) - 1);
    put_member(&tar, "gnu", 'L', long_name, strlen(long_name) + 1);
    put_member(&tar, "short.json", '0', trace, sizeof(trace) - 1);
    put_member(&tar, "short.json", '0', trace, sizeof(trace) - 1);
    end_tar(&tar);
    struct imported imported = import_sized(tar.at, tar.size);
    ck_assert_int_eq(imported.status, LAC_OK);
    ck_assert_uint_eq(imported.count, 3);
    long_name[152] = 0;
    for (size_t i = 0; i < 2; i++)
        ck_assert(strncmp(lac_model_str(imported.models[i], imported.models[i]->info.name),
                          long_name, 152) == 0);
    ck_assert_str_eq(lac_model_str(imported.models[2], imported.models[2]->info.name), "short");
    imported_done(&imported);
    free(tar.at);
}
END_TEST

START_TEST(the_number_of_members_is_limited)
{
    struct bytes tar = {0};
    for (int i = 0; i < 5; i++)
        put_member(&tar, "f", '0', "x", 1);
    end_tar(&tar);
    struct lac_import_limits limits;
    lac_import_limits_default(&limits);
    limits.member_count_max = 4;
    struct imported imported = import_tuned(tar.at, tar.size, &limits, 0, 0, false);
    ck_assert_int_eq(imported.status, LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "member_count_max"));
    free(tar.at);
}
END_TEST

START_TEST(files_that_cannot_be_read_say_why)
{
    struct imported imported = import_path("/nonexistent/trace.json");
    ck_assert_int_eq(imported.status, LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(imported.error.message, "/nonexistent/trace.json"));
    ck_assert_int_ne(imported.error.sys_errno, 0);
}
END_TEST

START_TEST(names_lose_folder_and_endings)
{
    static const char *const pairs[][2] = {
        {"a/b/rank0.pt.trace.json.gz", "rank0"},
        {"x.tar.gz", "x"},
        {".json", ".json"},
        {"resnet.worker0.123.pt.trace.json", "resnet.worker0.123"},
        {"plain", "plain"},
        {"dir/", ""},
        {"bad\xff.json", "bad\xef\xbf\xbd"},
        {"UP.JSON", "UP"}};
    for (size_t i = 0; i < LAC_COUNT_OF(pairs); i++) {
        char name[512];
        lac_import_name(pairs[i][0], name, sizeof(name));
        ck_assert_str_eq(name, pairs[i][1]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("source");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_layering_is_undone_by_content);
    tcase_add_test(tcase, several_members_and_frames_read_as_one);
    tcase_add_test(tcase, compressed_input_cut_at_every_byte_is_an_error_or_counted);
    tcase_add_test(tcase, names_in_an_archive_are_never_places);
    tcase_add_test(tcase, members_that_are_no_traces_are_counted);
    tcase_add_test(tcase, an_archive_cut_at_every_block_keeps_what_was_whole);
    tcase_add_test(tcase, long_names_and_sizes_of_pax_and_gnu_are_read);
    tcase_add_test(tcase, the_number_of_members_is_limited);
    tcase_add_test(tcase, files_that_cannot_be_read_say_why);
    tcase_add_test(tcase, names_lose_folder_and_endings);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
