/* collector/base: what turns bytes into other bytes. */

#include "collector/base/byte_size.h"
#include "collector/base/count_of.h"
#include "collector/base/encode.h"
#include "collector/base/sha.h"
#include "collector/base/tar.h"
#include "collector/base/utf8.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* FIPS 180-4's examples, and NIST's of the empty message. */
static const struct {
    const char *text;
    unsigned times;
    const char *sha1;
    const char *sha256;
} hash_cases[] = {
    {"", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d",
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static void check_hash(void (*init)(struct lac_sha *), size_t number, const char *expected)
{
    struct lac_sha hash;
    uint8_t digest[LAC_SHA256_SIZE];
    char hex[LAC_HEX_TEXT_BYTES(LAC_SHA256_SIZE)];

    init(&hash);
    for (unsigned k = 0; k < hash_cases[number].times; k++) {
        lac_sha_add(&hash, hash_cases[number].text, strlen(hash_cases[number].text));
    }
    lac_sha_end(&hash, digest);
    lac_hex_encode(digest, strlen(expected) / 2, hex);
    ck_assert_str_eq(hex, expected);
}

START_TEST(hashes_are_those_of_the_standard)
{
    for (size_t i = 0; i < LAC_COUNT_OF(hash_cases); i++) {
        check_hash(lac_sha1_init, i, hash_cases[i].sha1);
        check_hash(lac_sha256_init, i, hash_cases[i].sha256);
        check_hash(lac_sha256_init_portable, i, hash_cases[i].sha256);
    }
}
END_TEST

START_TEST(hashes_are_the_same_with_and_without_the_instructions)
{
    uint8_t bytes[700];
    uint32_t random = 1;

    for (size_t length = 0; length <= sizeof(bytes); length++) {
        struct lac_sha fast;
        struct lac_sha plain;
        struct lac_sha once;
        uint8_t digests[3][LAC_SHA256_SIZE];
        uint8_t *const copy = malloc(length + 1); /* its end is the end of what may be read */
        size_t at = 0;

        ck_assert_ptr_nonnull(copy);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (uint8_t)(i * 7 + length);
        }
        lac_sha256_init(&fast);
        lac_sha256_init_portable(&plain);
        while (at < length) {
            size_t part;

            random = random * 1664525U + 1013904223U;
            part = 1 + (random >> 8) % 150;
            part = part < length - at ? part : length - at;
            lac_sha_add(&fast, bytes + at, part);
            lac_sha_add(&plain, bytes + at, part);
            at += part;
        }
        memcpy(copy + 1, bytes, length);
        lac_sha256_init(&once);
        lac_sha_add(&once, copy + 1, length);
        lac_sha_end(&fast, digests[0]);
        lac_sha_end(&plain, digests[1]);
        lac_sha_end(&once, digests[2]);
        ck_assert_mem_eq(digests[0], digests[1], LAC_SHA256_SIZE);
        ck_assert_mem_eq(digests[0], digests[2], LAC_SHA256_SIZE);
        free(copy);
    }
}
END_TEST

START_TEST(a_hash_goes_on_from_a_copy)
{
    struct lac_sha first;
    struct lac_sha second;
    uint8_t a[LAC_SHA256_SIZE];
    uint8_t b[LAC_SHA256_SIZE];

    lac_sha256_init(&first);
    lac_sha_add(&first, "a", 1);
    second = first;
    lac_sha_add(&first, "bc", 2);
    lac_sha_end(&first, a);
    lac_sha_add(&second, "bc", 2);
    lac_sha_end(&second, b);
    ck_assert_mem_eq(a, b, sizeof(a));
}
END_TEST

/* RFC 4648, section 10; base32 is written in lower case and without padding. */
START_TEST(encodings_are_those_of_the_standard)
{
    static const struct {
        const char *bytes;
        const char *hex;
        const char *base32;
        const char *base64;
    } cases[] = {{"", "", "", ""},
                 {"f", "66", "my", "Zg=="},
                 {"fo", "666f", "mzxq", "Zm8="},
                 {"foo", "666f6f", "mzxw6", "Zm9v"},
                 {"foob", "666f6f62", "mzxw6yq", "Zm9vYg=="},
                 {"fooba", "666f6f6261", "mzxw6ytb", "Zm9vYmE="},
                 {"foobar", "666f6f626172", "mzxw6ytboi", "Zm9vYmFy"}};

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const size_t size = strlen(cases[i].bytes);
        /* exactly as large as promised: a sanitizer sees one byte more */
        char *const hex = malloc(LAC_HEX_TEXT_BYTES(size));
        char *const base32 = malloc(LAC_BASE32_TEXT_BYTES(size));
        char *const base64 = malloc(LAC_BASE64_TEXT_BYTES(size));

        lac_hex_encode(cases[i].bytes, size, hex);
        lac_base32_encode(cases[i].bytes, size, base32);
        lac_base64_encode(cases[i].bytes, size, base64);
        ck_assert_str_eq(hex, cases[i].hex);
        ck_assert_str_eq(base32, cases[i].base32);
        ck_assert_str_eq(base64, cases[i].base64);
        ck_assert_uint_eq(strlen(base32) + 1, LAC_BASE32_TEXT_BYTES(size));
        ck_assert_uint_eq(strspn(base32, LAC_BASE32_DIGITS), strlen(base32));
        free(hex);
        free(base32);
        free(base64);
    }
}
END_TEST

START_TEST(a_hexadecimal_digit_has_a_value)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    for (int c = 0; c < 256; c++) {
        const char *const at = c != 0 ? strchr(digits, c) : NULL;
        const int expected = at == NULL ? -1 : (int)(at - digits) - (at - digits < 16 ? 0 : 6);

        ck_assert_int_eq(lac_hex_digit((char)c), expected);
    }
}
END_TEST

START_TEST(base64_is_decoded_strictly)
{
    static const struct {
        const char *text;
        const char *bytes;
        int size;
    } cases[] = {{"", "", 0},          {"Zg==", "f", 1},          {"Zm8=", "fo", 2},
                 {"Zm9v", "foo", 3},   {"Zm9vYmFy", "foobar", 6}, {"Zg=", NULL, -1},
                 {"Zg", NULL, -1},     {"Z===", NULL, -1},        {"Zh==", NULL, -1},
                 {"====", NULL, -1},   {"Zm 9", NULL, -1},        {"Zg==Zg==", NULL, -1},
                 {"Zm9\xc3", NULL, -1}};
    uint8_t out[8];

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const int got = lac_base64_decode(cases[i].text, strlen(cases[i].text), out, sizeof(out));

        ck_assert_msg(got == cases[i].size, "%s: %d", cases[i].text, got);
        if (got > 0) {
            ck_assert_mem_eq(out, cases[i].bytes, (size_t)got);
        }
    }
    ck_assert_int_eq(lac_base64_decode("Zm9vYmFy", 8, out, 5), -1);
    ck_assert_int_eq(lac_base64_decode("Zm\0v", 4, out, sizeof(out)), -1);
}
END_TEST

START_TEST(a_tar_header_is_what_the_standard_says)
{
    uint8_t block[LAC_TAR_BLOCK_BYTES];
    uint64_t size = 0;

    lac_tar_header_make(block, "a.spool", '0', 1234567);
    ck_assert_str_eq((const char *)block, "a.spool");
    ck_assert_mem_eq(block + 100, "0000600", 8);      /* mode */
    ck_assert_mem_eq(block + 124, "00004553207", 12); /* size */
    ck_assert_mem_eq(block + 136, "00000000000", 12); /* time */
    ck_assert_mem_eq(block + 257, "ustar\00000", 8);
    ck_assert_uint_eq(block[156], '0');
    ck_assert(lac_tar_is_header(block, sizeof(block)));
    ck_assert(lac_tar_header_size(block, &size));
    ck_assert_uint_eq(size, 1234567);
    ck_assert(!lac_tar_is_header(block, sizeof(block) - 1));
    for (size_t i = 0; i < sizeof(block); i++) { /* any byte that changes is noticed */
        if (i < 148 || i >= 156) {
            block[i] ^= 1;
            ck_assert(!lac_tar_is_header(block, sizeof(block)));
            block[i] ^= 1;
        }
    }
}
END_TEST

START_TEST(a_tar_header_holds_any_size_and_name)
{
    static const uint64_t sizes[] = {0, 511, ((uint64_t)1 << 33) - 1, (uint64_t)1 << 33,
                                     ((uint64_t)1 << 62) + 12345};
    uint8_t block[LAC_TAR_BLOCK_BYTES];
    char name[300];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (size_t i = 0; i < LAC_COUNT_OF(sizes); i++) {
        uint64_t size = 1;

        lac_tar_header_make(block, name, '0', sizes[i]);
        ck_assert(lac_tar_is_header(block, sizeof(block)));
        ck_assert(lac_tar_header_size(block, &size));
        ck_assert_uint_eq(size, sizes[i]);
        ck_assert_uint_eq((sizes[i] + lac_tar_padding(sizes[i])) % LAC_TAR_BLOCK_BYTES, 0);
        ck_assert_uint_lt(lac_tar_padding(sizes[i]), LAC_TAR_BLOCK_BYTES);
    }
    ck_assert_mem_eq(block, name, LAC_TAR_NAME_BYTES);
    ck_assert_uint_eq(block[LAC_TAR_NAME_BYTES], '0'); /* of the mode: nothing runs over */
}
END_TEST

START_TEST(a_tar_header_with_a_size_that_makes_no_sense_is_refused)
{
    static const struct {
        const char *field;
        bool is_good;
        uint64_t size;
    } cases[] = {{"00000000012\0", true, 10},
                 {"  12        ", true, 10},
                 {"777777777777", true, ((uint64_t)1 << 36) - 1},
                 {"\0\0\0\0\0\0\0\0\0\0\0\0", true, 0},
                 {"00000000x12\0", false, 0},
                 {"-1         \0", false, 0},
                 {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", false, 0},
                 {"\x80\0\0\0\x40\0\0\0\0\0\0\1", true, ((uint64_t)1 << 62) + 1},
                 {"\x80\0\0\1\0\0\0\0\0\0\0\1", false, 0}};
    uint8_t block[LAC_TAR_BLOCK_BYTES];

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        uint64_t size = 0;

        lac_tar_header_make(block, "a", '0', 0);
        memcpy(block + 124, cases[i].field, 12);
        ck_assert_msg(lac_tar_header_size(block, &size) == cases[i].is_good, "case %zu", i);
        ck_assert(!cases[i].is_good || size == cases[i].size);
    }
}
END_TEST

START_TEST(utf8_is_told_from_what_only_looks_like_it)
{
    static const struct {
        const char *bytes;
        uint32_t length;
    } cases[] = {{"a", 1},
                 {"\xc3\xa9", 2},
                 {"\xe2\x82\xac", 3},
                 {"\xf0\x9f\x98\x80", 4},
                 {"\xc0\x80", 0},
                 {"\xc1\xbf", 0},
                 {"\xe0\x80\x80", 0},
                 {"\xed\xa0\x80", 0},
                 {"\xf0\x80\x80\x80", 0},
                 {"\xf4\x90\x80\x80", 0},
                 {"\xf5\x80\x80\x80", 0},
                 {"\x80", 0},
                 {"\xff", 0},
                 {"\xc3", 0},
                 {"\xe2\x82", 0},
                 {"\xc3z", 0},
                 {"\xf4\x8f\xbf\xbf", 4},
                 {"\xed\x9f\xbf", 3},
                 {"\xef\xbf\xbf", 3}};
    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const uint8_t *p = (const uint8_t *)cases[i].bytes;
        ck_assert_uint_eq(lac_utf8_length(p, p + strlen(cases[i].bytes)), cases[i].length);
    }
}
END_TEST

START_TEST(a_character_and_its_code_go_both_ways)
{
    uint8_t bytes[LAC_UTF8_BYTES_MAX];

    for (uint32_t code = 0; code <= 0x10ffff; code += code < 0x3000 ? 1 : 97) {
        if (code < 0xd800 || code >= 0xe000) {
            const size_t length = lac_utf8_put(bytes, code);

            ck_assert_uint_eq(lac_utf8_length(bytes, bytes + length), length);
            ck_assert_uint_eq(lac_utf8_code(bytes, (uint32_t)length), code);
            for (size_t cut = 1; cut < length; cut++) {
                ck_assert_uint_eq(lac_utf8_length(bytes, bytes + cut), 0);
            }
        }
    }
}
END_TEST

START_TEST(a_text_is_repaired_byte_by_byte)
{
    static const struct {
        const char *text;
        size_t length;
        const char *repaired;
        size_t count;
    } cases[] = {
        {"", 0, "", 0},
        {"plain", 5, "plain", 0},
        {"\u00fc\u20ac\U0001f600", 9, "\u00fc\u20ac\U0001f600", 0},
        {"a\0b", 3, "a\ufffdb", 1},
        {"\xff", 1, "\ufffd", 1},
        {"a\xc3", 2, "a\ufffd", 1},                               /* cut */
        {"\xe2\x82", 2, "\ufffd\ufffd", 2},                       /* each byte of it */
        {"\xc0\xaf", 2, "\ufffd\ufffd", 2},                       /* overlong */
        {"\xed\xa0\x80", 3, "\ufffd\ufffd\ufffd", 3},             /* a surrogate */
        {"\xf4\x90\x80\x80x", 5, "\ufffd\ufffd\ufffd\ufffdx", 4}, /* above U+10FFFF */
    };

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        const size_t expected = strlen(cases[i].repaired);
        char *const in = malloc(cases[i].length + 1); /* what lies behind is not read */
        char out[64];
        size_t count = 99;

        memcpy(in + 1, cases[i].text, cases[i].length);
        ck_assert_uint_eq(
            lac_utf8_repair(in + 1, cases[i].length, out, cases[i].length * 3, &count), expected);
        ck_assert_mem_eq(out, cases[i].repaired, expected);
        ck_assert_uint_eq(count, cases[i].count);
        for (size_t room = 0; room < expected; room++) { /* cut between characters */
            const size_t used = lac_utf8_repair(in + 1, cases[i].length, out, room, NULL);

            ck_assert_uint_le(used, room);
            ck_assert_mem_eq(out, cases[i].repaired, used);
            ck_assert(((unsigned char)cases[i].repaired[used] & 0xc0) != 0x80);
        }
        free(in);
    }
}
END_TEST

START_TEST(a_clean_text_has_no_control_characters)
{
    static const struct {
        const char *text;
        bool is_clean;
    } cases[] = {{"", true},       {"a \u00fc", true},     {"\u00a0", true},    {"a\tb", false},
                 {"\x7f", false},  {"\xc2\x80", false},    {"\xc2\x9f", false}, {"\xff", false},
                 {"a\xc3", false}, {"\xed\xa0\x80", false}};

    for (size_t i = 0; i < LAC_COUNT_OF(cases); i++) {
        ck_assert_msg(lac_utf8_is_clean(cases[i].text, strlen(cases[i].text)) == cases[i].is_clean,
                      "case %zu", i);
    }
    ck_assert(!lac_utf8_is_clean("a\0b", 3));
}
END_TEST

START_TEST(a_text_is_cut_between_characters)
{
    static const char text[] = "a\u00fc\u20ac\U0001f600"; /* ends at 1, 3, 6, 10 */
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};

    for (size_t most = 0; most < LAC_COUNT_OF(ends); most++) {
        ck_assert_uint_eq(lac_utf8_cut(text, sizeof(text) - 1, most), ends[most]);
    }
}
END_TEST

START_TEST(wide_text_becomes_utf8)
{
    static const uint16_t utf16[] = {'a', 0xfc, 0x20ac, 0xd83d, 0xde00, 0};
    static const uint16_t halves[] = {0xd83d, 'x', 0xde00, 0xd83d};
    static const uint32_t utf32[] = {'a', 0x1f600, 0x110000, 0xd800, 0};
    uint8_t odd[sizeof(utf16) + 1];
    char out[64];
    size_t used = lac_utf8_from_units(utf16, 2, SIZE_MAX, out, sizeof(out));

    ck_assert_uint_eq(used, 10);
    ck_assert_mem_eq(out, "a\u00fc\u20ac\U0001f600", used);
    memcpy(odd + 1, utf16, sizeof(utf16));
    ck_assert_uint_eq(lac_utf8_from_units(odd + 1, 2, SIZE_MAX, out, sizeof(out)), used);
    ck_assert_uint_eq(lac_utf8_from_units(utf16, 2, 2, out, sizeof(out)), 3);
    ck_assert_uint_eq(lac_utf8_from_units(utf16, 2, SIZE_MAX, out, 6), 3);
    ck_assert_uint_eq(lac_utf8_from_units(utf16, 2, SIZE_MAX, out, 0), 0);
    used = lac_utf8_from_units(halves, 2, 4, out, sizeof(out));
    ck_assert_uint_eq(used, 10);
    ck_assert_mem_eq(out, "\ufffdx\ufffd\ufffd", used);
    used = lac_utf8_from_units(utf32, 4, SIZE_MAX, out, sizeof(out));
    ck_assert_uint_eq(used, 11);
    ck_assert_mem_eq(out, "a\U0001f600\ufffd\ufffd", used);
}
END_TEST

START_TEST(a_size_has_a_unit_or_none)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"0", 0},
        {"262144", 262144},
        {"64k", 64 << 10},
        {"500M", UINT64_C(500) << 20},
        {"4g", UINT64_C(4) << 30},
        {"16GiB", UINT64_C(16) << 30},
        {"16GB", UINT64_C(16) << 30},
        {"3Ti", UINT64_C(3) << 40},
        {"18446744073709551615", UINT64_MAX},
        {"17179869183g", UINT64_C(17179869183) << 30},
    };
    static const char *const bad[] = {"",
                                      " 1",
                                      "-1",
                                      "+1",
                                      "g",
                                      "1.5g",
                                      "1 g",
                                      "4gg",
                                      "4x",
                                      "1B",
                                      "1i",
                                      "4gBi",
                                      "4g ",
                                      "0x10",
                                      "18446744073709551616",
                                      "17179869184g",
                                      "99999999999999999999k"};

    for (size_t i = 0; i < LAC_COUNT_OF(good); i++) {
        uint64_t value = 7;

        ck_assert_msg(lac_byte_size_parse(good[i].text, &value), "%s", good[i].text);
        ck_assert_uint_eq(value, good[i].value);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        uint64_t value = 7;

        ck_assert_msg(!lac_byte_size_parse(bad[i], &value), "%s", bad[i]);
        ck_assert_uint_eq(value, 7);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("base_bytes");
    TCase *const tcase = tcase_create("all");

    tcase_add_test(tcase, hashes_are_those_of_the_standard);
    tcase_add_test(tcase, hashes_are_the_same_with_and_without_the_instructions);
    tcase_add_test(tcase, a_hash_goes_on_from_a_copy);
    tcase_add_test(tcase, encodings_are_those_of_the_standard);
    tcase_add_test(tcase, a_hexadecimal_digit_has_a_value);
    tcase_add_test(tcase, base64_is_decoded_strictly);
    tcase_add_test(tcase, a_tar_header_is_what_the_standard_says);
    tcase_add_test(tcase, a_tar_header_holds_any_size_and_name);
    tcase_add_test(tcase, a_tar_header_with_a_size_that_makes_no_sense_is_refused);
    tcase_add_test(tcase, utf8_is_told_from_what_only_looks_like_it);
    tcase_add_test(tcase, a_character_and_its_code_go_both_ways);
    tcase_add_test(tcase, a_text_is_repaired_byte_by_byte);
    tcase_add_test(tcase, a_clean_text_has_no_control_characters);
    tcase_add_test(tcase, a_text_is_cut_between_characters);
    tcase_add_test(tcase, wide_text_becomes_utf8);
    tcase_add_test(tcase, a_size_has_a_unit_or_none);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
