/* The part of resumable uploads that has no server around it: metadata. */

#include "collector/base/count_of.h"
#include "server/ingest/upload_metadata.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <string.h>

static enum lac_status parse(const char *text, struct lac_upload_metadata *metadata)
{
    struct lac_error error = {0};
    const enum lac_status status = lac_upload_metadata_parse(text, metadata, &error);

    ck_assert(status == LAC_OK || error.message[0] != '\0');
    return status;
}

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
    memset(text, 'A', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    memcpy(text, "name ", 5);
    ck_assert_int_eq(parse(text, &metadata), LAC_ERR_LIMIT);
    text[5 + 688] = '\0'; /* 516 bytes */
    ck_assert_int_eq(parse(text, &metadata), LAC_ERR_MISUSE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upload_parts");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, test_metadata);
    tcase_add_test(tcase, test_metadata_that_is_refused);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
