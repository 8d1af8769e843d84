/* The parts of resumable uploads that have no server around them: metadata, base64, SHA-1. */

#include "collector/base/count_of.h"
#include "server/ingest/sha1.h"
#include "server/ingest/upload_metadata.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static enum lac_status parse(const char *text, struct lac_upload_metadata *metadata)
{
    struct lac_error error = {0};
    const enum lac_status status = lac_upload_metadata_parse(text, metadata, &error);

    ck_assert(status == LAC_OK || error.message[0] != '\0');
    return status;
}

START_TEST(test_base64)
{
    static const struct {
        const char *text;
        const char *bytes;
        int size;
    } cases[] = {{"", "", 0},        {"Zg==", "f", 1},          {"Zm8=", "fo", 2},
                 {"Zm9v", "foo", 3}, {"Zm9vYmFy", "foobar", 6}, {"Zg=", NULL, -1},
                 {"Zg", NULL, -1},   {"Z===", NULL, -1},        {"Zh==", NULL, -1},
                 {"====", NULL, -1}, {"Zm 9", NULL, -1},        {"Zg==Zg==", NULL, -1}};
    uint8_t out[8];

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const int got = lac_base64_decode(cases[i].text, strlen(cases[i].text), out, sizeof out);

        ck_assert_msg(got == cases[i].size, "%s: %d", cases[i].text, got);
        if (got > 0) {
            ck_assert_mem_eq(out, cases[i].bytes, (size_t)got);
        }
    }
    ck_assert_int_eq(lac_base64_decode("Zm9vYmFy", 8, out, 5), -1);
}
END_TEST

START_TEST(test_metadata)
{
    struct lac_upload_metadata metadata;

    ck_assert_int_eq(parse(NULL, &metadata), LAC_OK);
    ck_assert_str_eq(metadata.name, "");
    /* a/b.json.gz; p; r */
    ck_assert_int_eq(
        parse("filename YS9iLmpzb24uZ3o=, project cA== ,run cg==,reuse MQ==", &metadata), LAC_OK);
    ck_assert_str_eq(metadata.name, "b");
    ck_assert_str_eq(metadata.project, "p");
    ck_assert_str_eq(metadata.run, "r");
    ck_assert(metadata.reuse_existing);
    ck_assert(!metadata.has_clock);
    ck_assert_int_eq(parse("filename YS5qc29u,name eA==", &metadata), LAC_OK);
    ck_assert_str_eq(metadata.name, "x"); /* a name that is given wins */
    /* -5, 12 */
    ck_assert_int_eq(parse("clock_offset_ns LTU=,clock_error_ns MTI=", &metadata), LAC_OK);
    ck_assert(metadata.has_clock);
    ck_assert_int_eq(metadata.clock_offset_ns, -5);
    ck_assert_int_eq(metadata.clock_error_ns, 12);
    ck_assert_int_eq(parse("clock_offset_ns LTU=", &metadata), LAC_OK);
    ck_assert(!metadata.has_clock); /* without its bound it says nothing */
}
END_TEST

START_TEST(test_metadata_that_is_refused)
{
    static const char *const texts[] = {
        ",",
        "name",
        "a b c",
        "name eA==,name eQ==",
        "name  eA==",
        "name /w==",
        "name wK8=",
        "name 7aCA",
        "name 9JCAgA==",
        "name CQ==",
        "name fw==",
        "name AA==",
        "name eA==,,project eA==",
    };
    struct lac_upload_metadata metadata;
    char text[6000];

    for (size_t i = 0; i < LAC_COUNT_OF(texts); i++) {
        if (strcmp(texts[i], "name") == 0) {
            ck_assert_int_eq(parse(texts[i], &metadata), LAC_OK); /* a key alone is allowed */
            continue;
        }
        ck_assert_msg(parse(texts[i], &metadata) == LAC_ERR_MISUSE, "%s", texts[i]);
    }
    memset(text, 'A', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "name ", 5);
    ck_assert_int_eq(parse(text, &metadata), LAC_ERR_LIMIT);
    text[5 + 688] = '\0'; /* 516 bytes */
    ck_assert_int_eq(parse(text, &metadata), LAC_ERR_MISUSE);
}
END_TEST

START_TEST(test_sha1)
{
    static const struct {
        const char *text;
        unsigned times;
        const char *hex;
    } cases[] = {
        {"", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        struct lac_sha1 hash;
        uint8_t digest[LAC_SHA1_SIZE];
        char hex[LAC_SHA1_SIZE * 2 + 1];

        lac_sha1_init(&hash);
        for (unsigned k = 0; k < cases[i].times; k++) {
            lac_sha1_add(&hash, cases[i].text, strlen(cases[i].text));
        }
        lac_sha1_end(&hash, digest);
        for (size_t k = 0; k < sizeof digest; k++) {
            (void)snprintf(hex + k * 2, 3, "%02x", digest[k]);
        }
        ck_assert_str_eq(hex, cases[i].hex);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upload_parts");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, test_base64);
    tcase_add_test(tcase, test_metadata);
    tcase_add_test(tcase, test_metadata_that_is_refused);
    tcase_add_test(tcase, test_sha1);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
