/* Objects by name: signatures against published examples, and the folder behind the interface. */

#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "server/base/hmac.h"
#include "server/objects/objects.h"
#include "server/objects/s3_request.h"
#include "server/objects/sigv4.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void expect_signature(const struct lac_sigv4_key *key,
                             const struct lac_sigv4_request *request, const char *signature)
{
    char out[LAC_SIGV4_AUTHORIZATION_SIZE];

    ck_assert(lac_sigv4_sign(key, request, out));
    const char *at = strstr(out, "Signature=");
    ck_assert_ptr_nonnull(at);
    ck_assert_str_eq(at + strlen("Signature="), signature);
}

/* The examples of the S3 documentation. */
START_TEST(signs_the_published_examples)
{
    const struct lac_sigv4_key key = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                                      .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                      .region = "us-east-1",
                                      .service = "s3"};
    const struct lac_sigv4_header plain[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                             {"x-amz-content-sha256", NOTHING},
                                             {"x-amz-date", "20130524T000000Z"}};
    const struct lac_sigv4_header ranged[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                              {"range", "bytes=0-9"},
                                              {"x-amz-content-sha256", NOTHING},
                                              {"x-amz-date", "20130524T000000Z"}};
    const char *const welcome = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct lac_sigv4_header written[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                               {"host", "examplebucket.s3.amazonaws.com"},
                                               {"x-amz-content-sha256", welcome},
                                               {"x-amz-date", "20130524T000000Z"},
                                               {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    struct lac_sigv4_request request = {.method = "GET",
                                        .path = "/test.txt",
                                        .query = "",
                                        .time = "20130524T000000Z",
                                        .payload_sha256 = NOTHING,
                                        .headers = ranged,
                                        .header_count = 4};

    expect_signature(&key, &request,
                     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    request.headers = plain;
    request.header_count = 3;
    request.path = "/";
    request.query = "lifecycle=";
    expect_signature(&key, &request,
                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    request.query = "max-keys=2&prefix=J";
    expect_signature(&key, &request,
                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    request.method = "PUT";
    request.path = "/test%24file.text";
    request.query = "";
    request.headers = written;
    request.header_count = 5;
    request.payload_sha256 = welcome;
    expect_signature(&key, &request,
                     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}
END_TEST

/* The first request of the published test suite, of another service. */
START_TEST(signs_for_any_service)
{
    const struct lac_sigv4_key key = {.access_key = "AKIDEXAMPLE",
                                      .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                      .region = "us-east-1",
                                      .service = "service"};
    const struct lac_sigv4_header headers[] = {{"host", "example.amazonaws.com"},
                                               {"x-amz-date", "20150830T123600Z"}};
    const struct lac_sigv4_request request = {.method = "GET",
                                              .path = "/",
                                              .query = "",
                                              .time = "20150830T123600Z",
                                              .payload_sha256 = NOTHING,
                                              .headers = headers,
                                              .header_count = 2};

    expect_signature(&key, &request,
                     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}
END_TEST

/* RFC 4231, cases 2 and 6 (a key longer than a block). */
START_TEST(hmac_is_that_of_the_rfc)
{
    uint8_t mac[LAC_SHA256_SIZE];
    uint8_t long_key[131];
    char hex[LAC_SHA256_HEX_SIZE];
    const char *const text = "Test Using Larger Than Block-Size Key - Hash Key First";

    lac_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
    lac_hex_encode(mac, sizeof(mac), hex);
    ck_assert_str_eq(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(long_key, 0xAA, sizeof(long_key));
    lac_hmac_sha256(long_key, sizeof(long_key), text, strlen(text), mac);
    lac_hex_encode(mac, sizeof(mac), hex);
    ck_assert_str_eq(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
END_TEST

START_TEST(encodes_and_reads_elements)
{
    char out[64];
    const char *at = "<a><Key>x&amp;y&lt;&gt;&quot;&apos;&unknown;</Key><Key>2</Key></a>";

    ck_assert(lac_uri_encode("a b/c~$", true, out, sizeof(out)));
    ck_assert_str_eq(out, "a%20b/c~%24");
    ck_assert(lac_uri_encode("\xC3\xA4/", false, out, sizeof(out)));
    ck_assert_str_eq(out, "%C3%A4%2F");
    ck_assert(!lac_uri_encode("too long", false, out, 8));
    ck_assert(lac_s3_element(&at, "Key", out, sizeof(out)));
    ck_assert_str_eq(out, "x&y<>\"'&unknown;");
    ck_assert(lac_s3_element(&at, "Key", out, sizeof(out)));
    ck_assert_str_eq(out, "2");
    ck_assert(!lac_s3_element(&at, "Key", out, sizeof(out)));
    at = "<Key>never ends";
    ck_assert(!lac_s3_element(&at, "Key", out, sizeof(out)));
    at = "<Key>more than there is room for</Key>";
    ck_assert(!lac_s3_element(&at, "Key", out, 4));
}
END_TEST

/* -- the folder ---------------------------------------------------------------------------------*/

static char folder[] = "/tmp/lacuna-objects-XXXXXX";
static char file[64];

static void setup(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-objects-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file, sizeof(file), "%s/file", folder);
}

static void teardown(void)
{
    char command[96];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *path, size_t size_bytes)
{
    FILE *out = fopen(path, "we");

    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < size_bytes; i++) {
        (void)fputc((int)(i * 31 % 251), out);
    }
    ck_assert_int_eq(fclose(out), 0);
}

static struct lac_objects *open_folder(void)
{
    char url[64];
    struct lac_objects *objects = NULL;
    struct lac_error error = {0};

    (void)snprintf(url, sizeof(url), "%s/objects", folder);
    const struct lac_objects_options options = {.url = url};
    ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_OK);
    return objects;
}

static enum lac_status add_name(void *context, const struct lac_object *object)
{
    char *names = context;

    (void)snprintf(names + strlen(names), 200 - strlen(names), "%s:%llu ", object->name,
                   (unsigned long long)object->bytes);
    ck_assert_int_gt(object->changed_unix_ms, 0);
    return LAC_OK;
}

START_TEST(a_folder_keeps_objects)
{
    struct lac_objects *objects = open_folder();
    struct lac_error error = {0};
    uint8_t sha256[LAC_SHA256_SIZE];
    uint8_t other[LAC_SHA256_SIZE];
    uint8_t range[5];
    char names[200] = "";
    char copy[64];
    uint64_t bytes = 0;

    (void)snprintf(copy, sizeof(copy), "%s/copy", folder);
    write_file(file, 300000);
    ck_assert_int_eq(lac_objects_hash_file(file, sha256, &bytes, &error), LAC_OK);
    ck_assert_uint_eq(bytes, 300000);
    ck_assert_int_eq(lac_objects_put(objects, "a/b/one", file, sha256, &error), LAC_OK);
    ck_assert_int_eq(lac_objects_put(objects, "a/b/one", file, sha256, &error), LAC_OK);
    ck_assert_int_eq(lac_objects_put(objects, "a/two", file, sha256, &error), LAC_OK);
    ck_assert_int_eq(lac_objects_hash(objects, "a/two", other, &bytes, &error), LAC_OK);
    ck_assert_mem_eq(sha256, other, sizeof(other));
    ck_assert_int_eq(lac_objects_get(objects, "a/b/one", copy, sha256, &error), LAC_OK);
    ck_assert_int_eq(lac_objects_hash_file(copy, other, &bytes, &error), LAC_OK);
    ck_assert_mem_eq(sha256, other, sizeof(other));
    ck_assert_int_eq(lac_objects_get_range(objects, "a/two", 251000, range, 5, &error), LAC_OK);
    for (size_t i = 0; i < sizeof(range); i++) {
        ck_assert_uint_eq(range[i], (251000 + i) * 31 % 251);
    }
    ck_assert_int_eq(lac_objects_get_range(objects, "a/two", 299998, range, 5, &error),
                     LAC_ERR_CORRUPT);
    ck_assert_int_eq(lac_objects_list(objects, "", add_name, names, &error), LAC_OK);
    ck_assert_str_eq(names, "a/b/one:300000 a/two:300000 ");
    names[0] = '\0';
    ck_assert_int_eq(lac_objects_list(objects, "a/t", add_name, names, &error), LAC_OK);
    ck_assert_str_eq(names, "a/two:300000 ");
    ck_assert_int_eq(lac_objects_remove(objects, "a/two", &error), LAC_OK);
    ck_assert_int_eq(lac_objects_remove(objects, "a/two", &error), LAC_OK);
    ck_assert_int_eq(lac_objects_get_range(objects, "a/two", 0, range, 1, &error),
                     LAC_ERR_NOT_FOUND);
    lac_objects_close(objects);
}
END_TEST

START_TEST(damage_and_hostile_names_are_refused)
{
    static const char *const names[] = {"", "/a", "../a", "a/../b", "a//b", "a b", "a?b", "a\nb"};
    struct lac_objects *objects = open_folder();
    struct lac_error error = {0};
    uint8_t sha256[LAC_SHA256_SIZE];
    uint64_t bytes = 0;
    char path[96];
    struct stat info;

    write_file(file, 1000);
    ck_assert_int_eq(lac_objects_hash_file(file, sha256, &bytes, &error), LAC_OK);
    for (size_t i = 0; i < LAC_COUNT_OF(names); i++) {
        ck_assert_int_eq(lac_objects_put(objects, names[i], file, sha256, &error), LAC_ERR_MISUSE);
    }
    ck_assert_int_eq(lac_objects_put(objects, "one", file, sha256, &error), LAC_OK);
    sha256[0] ^= 1;
    ck_assert_int_eq(lac_objects_put(objects, "two", file, sha256, &error), LAC_ERR_CORRUPT);
    ck_assert_int_eq(lac_objects_hash(objects, "two", sha256, &bytes, &error), LAC_ERR_NOT_FOUND);
    (void)snprintf(path, sizeof(path), "%s/copy", folder);
    ck_assert_int_eq(lac_objects_get(objects, "one", path, sha256, &error), LAC_ERR_CORRUPT);
    ck_assert_int_ne(stat(path, &info), 0); /* nothing half right is left */
    ck_assert_int_eq(lac_objects_get(objects, "three", path, NULL, &error), LAC_ERR_NOT_FOUND);
    ck_assert_int_ne(stat(path, &info), 0);
    lac_objects_close(objects);
}
END_TEST

START_TEST(what_was_given_is_checked)
{
    static const char *const urls[] = {"s3://", "s3://ab", "s3://UPPER/x", "s3://bucket/a b",
                                       "ftp://bucket/x"};
    struct lac_objects *objects = NULL;
    struct lac_error error = {0};
    struct lac_objects_options options = {.access_key = "key", .secret_key = "secret"};

    for (size_t i = 0; i < LAC_COUNT_OF(urls); i++) {
        options.url = urls[i];
        ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_ERR_MISUSE);
    }
    options.url = "s3://bucket/prefix/";
    options.endpoint = "localhost:9000";
    ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_ERR_MISUSE);
    options.endpoint = "http://user@localhost";
    ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_ERR_MISUSE);
    options.endpoint = "http://127.0.0.1:1";
    options.secret_key = "";
    ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_ERR_MISUSE);
    ck_assert_ptr_nonnull(strstr(error.message, "AWS_SECRET_ACCESS_KEY"));
    (void)setenv("LACUNA_LIBCURL", "/nonexistent/libcurl.so.4", 1);
    options.secret_key = "secret";
    ck_assert_int_eq(lac_objects_open(&options, &objects, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "libcurl"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("objects");
    TCase *signatures = tcase_create("signatures");
    TCase *folders = tcase_create("folder");
    SRunner *runner;
    int failed;

    tcase_add_test(signatures, signs_the_published_examples);
    tcase_add_test(signatures, signs_for_any_service);
    tcase_add_test(signatures, hmac_is_that_of_the_rfc);
    tcase_add_test(signatures, encodes_and_reads_elements);
    suite_add_tcase(suite, signatures);
    tcase_add_checked_fixture(folders, setup, teardown);
    tcase_add_test(folders, a_folder_keeps_objects);
    tcase_add_test(folders, damage_and_hostile_names_are_refused);
    tcase_add_test(folders, what_was_given_is_checked);
    suite_add_tcase(suite, folders);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
