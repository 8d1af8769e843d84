#include "collector/base/count_of.h"
#include "server/http/framing.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lac_framing framing;

/* Take a text as the first bytes of a connection. */
static size_t take(const char *text)
{
    memset(&framing, 0, sizeof(framing));
    return lac_framing_take(&framing, (const uint8_t *)text, strlen(text));
}

START_TEST(a_request_ends_where_its_length_says)
{
    static const char *const whole[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nX:\r\nY: b c\td\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:5 \r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: "
        "a\r\ntransfer-encoding:Chunked\r\n\r\n05;a=b\r\nhello\r\n1\r\nx\r\n0\r\nT: "
        "y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(whole); i++) {
        char both[200];

        (void)snprintf(both, sizeof(both), "%sGET /next", whole[i]);
        ck_assert_uint_eq(take(both), strlen(whole[i]));
        ck_assert_int_eq(framing.verdict, LAC_FRAMING_END);
        ck_assert_uint_eq(framing.header_count, 1);
        ck_assert_uint_eq(lac_framing_take(&framing, (const uint8_t *)"GET /", 5), 5);
        ck_assert_int_eq(framing.verdict, LAC_FRAMING_MORE);
    }
}
END_TEST

START_TEST(what_could_be_read_in_two_ways_is_refused)
{
    static const struct {
        const char *text;
        unsigned http_status;
    } bad[] = {
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHosts: a\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000000000000000000000005\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / http/1.1\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTP/1.2\r\n\r\n", 505},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n folded\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: x\n\r\n", 400},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(bad); i++) {
        (void)take(bad[i].text);
        ck_assert_msg(framing.verdict == LAC_FRAMING_BAD, "accepted: %s", bad[i].text);
        ck_assert_uint_eq(framing.http_status, bad[i].http_status);
        ck_assert_uint_gt(strlen(framing.message), 10);
        ck_assert_uint_eq(lac_framing_take(&framing, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n", 18),
                          0);
    }
    memset(&framing, 0, sizeof(framing));
    (void)lac_framing_take(&framing, (const uint8_t *)"GET /\0 HTTP/1.1\r\n", 17);
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_BAD);
}
END_TEST

START_TEST(lengths_that_exclude_each_other_are_left_to_the_gate)
{
    static const char *const unclear[] = {
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
    };

    for (size_t i = 0; i < LAC_COUNT_OF(unclear); i++) {
        char text[300];

        (void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\n%s\r\nhello\nworld",
                       unclear[i]);
        ck_assert_uint_eq(take(text), strlen(text));
        ck_assert_msg(framing.verdict == LAC_FRAMING_UNCLEAR, "clear: %s", unclear[i]);
        ck_assert_uint_eq(lac_framing_take(&framing, (const uint8_t *)"\n\n", 2), 2);
    }
    (void)take("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_UNCLEAR);
}
END_TEST

/* A request with `count` bytes of x between two texts. */
static void take_long(const char *before, size_t count, const char *behind)
{
    const size_t size = strlen(before) + count + strlen(behind);
    char *text = malloc(size + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', size);
    memcpy(text, before, strlen(before));
    memcpy(text + strlen(before) + count, behind, strlen(behind) + 1);
    (void)take(text);
    free(text);
}

START_TEST(headers_and_chunk_lines_have_a_limit_that_has_a_name)
{
    take_long("GET /", 9000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_END);
    take_long("GET /", 21000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_BAD);
    ck_assert_uint_eq(framing.http_status, 414);
    take_long("GET / HTTP/1.1\r\nHost: a\r\nX: ", 20000, "\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_END);
    take_long("GET / HTTP/1.1\r\nHost: a\r\nX: ", 21000, "\r\n\r\n");
    ck_assert_uint_eq(framing.http_status, 431);
    take_long("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;", 1000,
              "\r\nhello\r\n0\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_END);
    take_long("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;", 1100,
              "\r\nhello\r\n0\r\n\r\n");
    ck_assert_int_eq(framing.verdict, LAC_FRAMING_BAD);
    take_long("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ", 21000,
              "\r\n\r\n");
    ck_assert_uint_eq(framing.http_status, 431);
}
END_TEST

START_TEST(pieces_of_any_size_read_the_same)
{
    static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n5;a\r\nhello\r\n0\r\nT: x\r\n\r\n"
                               "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world"
                               "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const size_t size = sizeof(text) - 1;

    for (size_t piece = 1; piece <= size; piece++) {
        unsigned ends = 0;
        size_t at = 0;

        memset(&framing, 0, sizeof(framing));
        while (at < size) {
            const size_t length = piece < size - at ? piece : size - at;
            const size_t taken = lac_framing_take(&framing, (const uint8_t *)text + at, length);

            at += taken;
            ends += framing.verdict == LAC_FRAMING_END ? 1 : 0;
            ck_assert(framing.verdict == LAC_FRAMING_END || taken == length);
        }
        ck_assert_uint_eq(ends, 3);
        ck_assert_int_eq(framing.verdict, LAC_FRAMING_END);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http_framing");
    TCase *tests = tcase_create("framing");

    tcase_add_test(tests, a_request_ends_where_its_length_says);
    tcase_add_test(tests, what_could_be_read_in_two_ways_is_refused);
    tcase_add_test(tests, lengths_that_exclude_each_other_are_left_to_the_gate);
    tcase_add_test(tests, headers_and_chunk_lines_have_a_limit_that_has_a_name);
    tcase_add_test(tests, pieces_of_any_size_read_the_same);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
