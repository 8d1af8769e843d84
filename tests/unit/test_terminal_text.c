/* What a terminal is given of text from outside. */
#include "collector/base/count_of.h"
#include "collector/base/terminal_text.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char out[256];

#define SHOWN(text, expected)                                                                      \
    do {                                                                                           \
        (void)lac_terminal_text((text), sizeof(text) - 1, out, sizeof(out));                       \
        ck_assert_str_eq(out, (expected));                                                         \
    } while (0)

START_TEST(what_people_write_stays)
{
    SHOWN("", "");
    SHOWN("aten::conv2d <T> C:\\x ~", "aten::conv2d <T> C:\\x ~");
    SHOWN("\xc3\xa4 \xce\xbb \xe6\xa8\xa1 \xf0\x9f\x9a\x80 \xc2\xa0",
          "\xc3\xa4 \xce\xbb \xe6\xa8\xa1 \xf0\x9f\x9a\x80 \xc2\xa0");
}
END_TEST

START_TEST(what_steers_a_terminal_is_escaped)
{
    SHOWN("a\x1b[2Jb\r\n\t\x7f", "a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f");
    SHOWN("a\0b", "a\\x00b");
    SHOWN("\xc2\x9b"
          "2J \xc2\x80 \xc2\x9f",
          "\\x9b2J \\x80 \\x9f");
    SHOWN("\x9b"
          "2J\x80\xff",
          "\\x9b2J\\x80\\xff");
    SHOWN("x\xe2\x80\xaetxt.exe\xe2\x80\x8e\xd8\x9c\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\xa8",
          "x\\u202etxt.exe\\u200e\\u061c\\u2066\\u2069\\u2028");
}
END_TEST

START_TEST(what_is_no_utf8_is_escaped_byte_by_byte)
{
    SHOWN("\xc0\x9b", "\\xc0\\x9b");                                         /* overlong */
    SHOWN("\xe0\x82\x9b", "\\xe0\\x82\\x9b");                                /* overlong */
    SHOWN("\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b");                       /* overlong */
    SHOWN("\xed\xa0\x80", "\\xed\\xa0\\x80");                                /* surrogate */
    SHOWN("\xf4\x90\x80\x80\xf8", "\\xf4\\x90\\x80\\x80\\xf8");              /* beyond Unicode */
    SHOWN("\xc3 \xe2\x80 \xf0\x9f\x9a", "\\xc3 \\xe2\\x80 \\xf0\\x9f\\x9a"); /* cut short */
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_whole)
{
    static const char text[] = "ab\x1b\xe6\xa8\xa1z";
    static const size_t used[] = {0, 0, 1, 2, 2, 2, 2, 6, 6, 6, 9, 10};

    for (size_t capacity = 0; capacity < LAC_COUNT_OF(used); capacity++) {
        memset(out, '#', sizeof(out));
        ck_assert_uint_eq(lac_terminal_text(text, sizeof(text) - 1, out, capacity), used[capacity]);
        ck_assert_int_eq(out[capacity], '#');
        ck_assert(capacity == 0 || out[used[capacity]] == '\0');
    }
    ck_assert_ptr_eq(lac_terminal_string("a\x1b", out, sizeof(out)), out);
    ck_assert_str_eq(out, "a\\x1b");
}
END_TEST

/* Any bytes: nothing that steers is left, and the stream gets the same as the buffer. */
START_TEST(no_byte_steers)
{
    static char shown[4 * 64 + 1];
    static char streamed[4 * 64 + 1];
    uint64_t random = 1;

    for (int round = 0; round < 20000; round++) {
        char text[64];
        bool steers = false;
        size_t used;
        FILE *stream;

        for (size_t i = 0; i < sizeof(text); i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[i] = (char)(random >> 56);
            /* much of what is two or three bytes */
            text[i] = random >> 40 & 1 ? text[i] : "\xc2\xe2\x80\x9b\xae\x81"[(random >> 48) % 6];
        }
        used = lac_terminal_text(text, sizeof(text), shown, sizeof(shown));
        for (size_t i = 0; i < used && !steers; i++) {
            const unsigned char c = (unsigned char)shown[i];

            steers = c < 0x20 || c == 0x7f ||
                     (i > 0 && (unsigned char)shown[i - 1] == 0xc2 && c < 0xa0) ||
                     (i > 1 && memcmp(shown + i - 2, "\xe2\x80\xae", 3) == 0);
        }
        ck_assert(!steers);
        stream = fmemopen(streamed, sizeof(streamed), "w");
        ck_assert_ptr_nonnull(stream);
        lac_terminal_print(stream, text, sizeof(text));
        (void)fclose(stream);
        ck_assert_str_eq(streamed, shown);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("terminal_text");
    TCase *const tcase = tcase_create("text");

    tcase_add_test(tcase, what_people_write_stays);
    tcase_add_test(tcase, what_steers_a_terminal_is_escaped);
    tcase_add_test(tcase, what_is_no_utf8_is_escaped_byte_by_byte);
    tcase_add_test(tcase, what_does_not_fit_is_left_out_whole);
    tcase_add_test(tcase, no_byte_steers);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
