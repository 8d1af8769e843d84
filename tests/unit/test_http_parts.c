/* The pure parts of the HTTP core: guards, routes, replies, the key, compression,
 * peers, the log. */
#include "collector/base/count_of.h"
#include "server/base/log.h"
#include "server/http/guard.h"
#include "server/http/gzip.h"
#include "server/http/key.h"
#include "server/http/peers.h"
#include "server/http/request.h"
#include "server/json/json_out.h"
#include "tests/support/check_main.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- guards ------------------------------------------------------------------------------------ */

START_TEST(only_names_of_this_machine_are_our_host)
{
    const struct lac_guard none = {0};
    const struct lac_guard some = {.allow_host = {"gpu.example", "node7:8080"},
                                   .allow_host_count = 2};
    static const char *const ours[] = {"localhost",      "LocalHost:1", "127.0.0.1",
                                       "127.0.0.1:7070", "[::1]",       "[::1]:65535"};
    static const char *const foreign[] = {"",
                                          "evil",
                                          "localhost.evil",
                                          "127.0.0.1.evil",
                                          "127.0.0.2",
                                          "[::2]",
                                          "localhost:",
                                          "localhost:x",
                                          "localhost:123456",
                                          "a@localhost",
                                          "localhost/",
                                          "[::1",
                                          "localhost ",
                                          " localhost",
                                          "::1",
                                          "localhost,evil"};

    for (size_t i = 0; i < LAC_COUNT_OF(ours); i++) {
        ck_assert_msg(lac_guard_host_is_ours(&none, ours[i]), "refused: %s", ours[i]);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(foreign); i++) {
        if (strcmp(foreign[i], "localhost:") != 0) { /* an empty port is a port left out */
            ck_assert_msg(!lac_guard_host_is_ours(&none, foreign[i]), "accepted: %s", foreign[i]);
        }
    }
    ck_assert(!lac_guard_host_is_ours(&none, NULL));
    ck_assert(lac_guard_host_is_ours(&some, "GPU.example:99"));
    ck_assert(lac_guard_host_is_ours(&some, "node7:8080"));
    ck_assert(!lac_guard_host_is_ours(&some, "node7:8081"));
}
END_TEST

START_TEST(an_origin_must_be_the_host_that_was_asked)
{
    const struct lac_guard none = {0};
    const struct lac_guard proxy = {.allow_host = {"hub.example"}, .allow_host_count = 1};

    ck_assert(lac_guard_origin_is_ours(&none, "http://localhost:7070", "localhost:7070"));
    ck_assert(lac_guard_origin_is_ours(&none, "https://localhost:7070", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "http://localhost:7071", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "http://127.0.0.1:7070", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "null", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "file://", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "http://", "localhost:7070"));
    ck_assert(!lac_guard_origin_is_ours(&none, "http://localhost:7070/x", "localhost:7070"));
    ck_assert(lac_guard_origin_is_ours(&proxy, "https://hub.example", "127.0.0.1:7070"));
    ck_assert(!lac_guard_origin_is_ours(&proxy, "https://hub.example.evil", "127.0.0.1:7070"));
}
END_TEST

START_TEST(cookies_bearers_and_encodings_are_read_strictly)
{
    char value[8];

    ck_assert(lac_cookie_get("a=1; k=abc ; b=2", "k", value, sizeof(value)));
    ck_assert_str_eq(value, "abc");
    ck_assert(!lac_cookie_get("ak=1; kk=2", "k", value, sizeof(value)));
    ck_assert(!lac_cookie_get("k=12345678", "k", value, sizeof(value)));
    ck_assert(!lac_cookie_get(NULL, "k", value, sizeof(value)));
    ck_assert(lac_cookie_get("k=", "k", value, sizeof(value)) == false || value[0] == '\0');
    ck_assert_str_eq(lac_bearer_get("bearer  abc"), "abc");
    ck_assert_ptr_null(lac_bearer_get("Basic abc"));
    ck_assert_ptr_null(lac_bearer_get("Bearer"));
    ck_assert(lac_accepts_gzip("br;q=1.0, gzip;q=0.8, *;q=0.1"));
    ck_assert(lac_accepts_gzip("gzip"));
    ck_assert(!lac_accepts_gzip("gzip;q=0"));
    ck_assert(!lac_accepts_gzip("gzip; q=0.000"));
    ck_assert(!lac_accepts_gzip("identity"));
    ck_assert(!lac_accepts_gzip("notgzip"));
    ck_assert(!lac_accepts_gzip(NULL));
}
END_TEST

START_TEST(listen_addresses_are_split)
{
    char host[32];
    unsigned port = 0;

    ck_assert(lac_listen_address_split("127.0.0.1:7070", host, sizeof(host), &port));
    ck_assert_str_eq(host, "127.0.0.1");
    ck_assert_uint_eq(port, 7070);
    ck_assert(lac_listen_address_split("[::1]:0", host, sizeof(host), &port));
    ck_assert_str_eq(host, "::1");
    ck_assert(lac_listen_address_split("8080", host, sizeof(host), &port));
    ck_assert_str_eq(host, "");
    ck_assert(!lac_listen_address_split("::1:80", host, sizeof(host), &port));
    ck_assert(!lac_listen_address_split("a:65536", host, sizeof(host), &port));
    ck_assert(!lac_listen_address_split("a:", host, sizeof(host), &port));
    ck_assert(!lac_listen_address_split("", host, sizeof(host), &port));
}
END_TEST

/* -- routes and replies ------------------------------------------------------------------------ */

static void nothing(void *app, const struct lac_request *request, struct lac_response *response)
{
    (void)app;
    (void)request;
    (void)response;
}

static const struct lac_route routes[] = {
    LAC_ROUTE(GET, "/t/{id}", KEY, LOOP, 0, nothing, NULL),
    LAC_ROUTE(DELETE, "/t/{id}", KEY, LOOP, 0, nothing, NULL),
    LAC_ROUTE(GET, "/t/{id}/g{n}/tiles/{level}/{first}-{last}", KEY, LOOP, 0, nothing, NULL),
};

static struct lac_route_match match;

static const struct lac_route *find(enum lac_method method, const char *path)
{
    return lac_route_find(routes, 3, method, path, &match);
}

START_TEST(routes_match_whole_paths_and_keep_their_pieces)
{
    ck_assert_ptr_eq(find(LAC_METHOD_GET, "/t/abc"), &routes[0]);
    ck_assert_str_eq(match.param[0], "abc");
    ck_assert_ptr_eq(find(LAC_METHOD_GET, "/t/x/g12/tiles/3/40-41"), &routes[2]);
    ck_assert_str_eq(match.param[1], "12");
    ck_assert_str_eq(match.param[2], "3");
    ck_assert_str_eq(match.param[3], "40");
    ck_assert_str_eq(match.param[4], "41");
    ck_assert_ptr_null(find(LAC_METHOD_POST, "/t/abc"));
    ck_assert_uint_eq(match.allowed, (1u << LAC_METHOD_GET) | (1u << LAC_METHOD_DELETE));
    static const char *const none[] = {
        "/t/", "/t", "/t/a/b", "/t/a/g/tiles/1/2-3", "/t/a/g1/tiles/1/2", "/t/a/g1/tiles/1/2-3/4"};
    for (size_t i = 0; i < LAC_COUNT_OF(none); i++) {
        ck_assert_ptr_null(find(LAC_METHOD_GET, none[i]));
        ck_assert_uint_eq(match.allowed, 0);
    }
    /* pieces that do not fit their storage do not match, and are not cut */
    char longer[1000] = "/t/";
    memset(longer + 3, 'a', sizeof(match.storage));
    ck_assert_ptr_null(find(LAC_METHOD_GET, longer));
}
END_TEST

START_TEST(tags_match_in_lists_and_by_star)
{
    ck_assert(lac_etag_matches("\"a\", \"b\"", "\"b\""));
    ck_assert(lac_etag_matches("W/\"b\"", "\"b\""));
    ck_assert(lac_etag_matches("*", "\"b\""));
    ck_assert(!lac_etag_matches("\"bb\"", "\"b\""));
    ck_assert(!lac_etag_matches("", "\"b\""));
    ck_assert(!lac_etag_matches(NULL, "\"b\""));
    ck_assert(!lac_etag_matches("*", ""));
}
END_TEST

START_TEST(every_status_has_an_http_status)
{
    ck_assert_uint_eq(lac_http_status_of(LAC_ERR_NOT_FOUND, 0), 404);
    ck_assert_uint_eq(lac_http_status_of(LAC_ERR_LIMIT, 0), 413);
    ck_assert_uint_eq(lac_http_status_of(LAC_ERR_IO, 28 /* ENOSPC */), 507);
    for (unsigned i = 1; i < LAC_STATUS_COUNT_; i++) {
        ck_assert_uint_ge(lac_http_status_of((enum lac_status)i, 0), 400);
    }
}
END_TEST

START_TEST(json_strings_are_safe_whatever_they_hold)
{
    struct lac_buffer out = {0};
    struct lac_json json;
    static const char text[] = "<img src=x onerror=\"a\">\\\n\x01\xff\xc3\xa9\xe2\x80\xa8&";

    lac_json_init(&json, &out);
    lac_json_text(&json, NULL, text);
    ck_assert_int_eq(out.status, LAC_OK);
    ck_assert_str_eq(out.bytes,
                     "\"\\u003cimg src=x onerror=\\\"a\\\"\\u003e\\\\\\n\\u0001\\ufffd\xc3\xa9"
                     "\\u2028\\u0026\"");
    lac_buffer_done(&out);
}
END_TEST

START_TEST(a_full_buffer_says_so_once_and_takes_no_more)
{
    struct lac_buffer out = {.size_bytes_max = 10};

    lac_buffer_puts(&out, "12345678");
    lac_buffer_int(&out, INT64_MIN);
    ck_assert_int_eq(out.status, LAC_ERR_LIMIT);
    lac_buffer_puts(&out, "1");
    ck_assert_uint_eq(out.size_bytes, 8);
    lac_buffer_done(&out);
    lac_buffer_int(&out, -7);
    lac_buffer_int(&out, 0);
    ck_assert_str_eq(out.bytes, "-70");
    lac_buffer_done(&out);
}
END_TEST

START_TEST(gzip_gives_back_what_went_in)
{
    const size_t size = 300000;
    char *text = malloc(size);
    uint8_t *back = malloc(size);
    struct lac_buffer out = {0};
    struct inflate_state state;

    ck_assert(text != NULL && back != NULL);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('a' + (i * i / 7) % 11);
    }
    ck_assert_int_eq(lac_gzip(text, size, &out), LAC_OK);
    ck_assert_uint_lt(out.size_bytes, size);
    isal_inflate_init(&state);
    state.crc_flag = ISAL_GZIP;
    state.next_in = (uint8_t *)out.bytes;
    state.avail_in = (uint32_t)out.size_bytes;
    state.next_out = back;
    state.avail_out = (uint32_t)size;
    ck_assert_int_eq(isal_inflate(&state), ISAL_DECOMP_OK);
    ck_assert_uint_eq(state.total_out, size);
    ck_assert_mem_eq(back, text, size);
    lac_buffer_done(&out);
    ck_assert_int_eq(lac_gzip(text, 100, &out), LAC_ERR_LIMIT);
    free(text);
    free(back);
}
END_TEST

START_TEST(noise_is_not_compressed)
{
    struct lac_buffer out = {0};
    uint8_t noise[5000];
    uint64_t state = 88172645463325252u;

    for (size_t i = 0; i < sizeof(noise); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise[i] = (uint8_t)state;
    }
    ck_assert_int_eq(lac_gzip(noise, sizeof(noise), &out), LAC_ERR_LIMIT);
    ck_assert_ptr_null(out.bytes);
}
END_TEST

/* -- key --------------------------------------------------------------------------------------- */

START_TEST(the_key_is_made_once_and_only_ours_to_read)
{
    char folder[] = "/tmp/lacuna-key-XXXXXX";
    char path[64];
    struct lac_key first;
    struct lac_key second;
    struct lac_error error = {0};
    struct stat info;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/local.token", folder);
    ck_assert_int_eq(lac_key_load(folder, &first, &error), LAC_OK);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(lac_key_load(folder, &second, &error), LAC_OK);
    ck_assert_str_eq(first.text, second.text);
    ck_assert_uint_eq(strlen(first.text), LAC_KEY_TEXT_LENGTH);
    ck_assert_str_ne(first.text, first.cookie);
    ck_assert(lac_key_matches(&first, second.text));
    ck_assert(lac_key_cookie_matches(&first, second.cookie));
    ck_assert(!lac_key_matches(&first, second.cookie));
    ck_assert(!lac_key_matches(&first, ""));
    second.text[51] ^= 1;
    ck_assert(!lac_key_matches(&first, second.text));

    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(lac_key_load(folder, &second, &error), LAC_ERR_MISUSE);
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(truncate(path, 20), 0);
    ck_assert_int_eq(lac_key_load(folder, &second, &error), LAC_ERR_CORRUPT);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    ck_assert_int_eq(lac_key_load(folder, &second, &error), LAC_ERR_IO);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(lac_key_load(folder, &second, &error), LAC_OK);
    ck_assert_str_ne(first.text, second.text);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* -- peers ------------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(uint32_t number)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(number)};
}

static enum lac_entry_answer enter(struct lac_peers *peers, const struct sockaddr_in *address)
{
    return lac_peers_enter(peers, (const struct sockaddr *)address);
}

START_TEST(each_address_has_its_own_limit)
{
    struct lac_peers *peers = NULL;
    const struct lac_peers_limits limits = {.all = 7, .loopback = 3, .address = 2};
    const struct sockaddr_in a = address_of(0x0a000001);
    const struct sockaddr_in b = address_of(0x0a000002);
    const struct sockaddr_in loopback = address_of(0x7f000005);
    const struct sockaddr_in other_loopback = address_of(0x7f000001);

    ck_assert_int_eq(lac_peers_create(&limits, &peers), LAC_OK);
    ck_assert_int_eq(enter(peers, &a), LAC_PEERS_ENTERED);
    ck_assert_int_eq(enter(peers, &a), LAC_PEERS_ENTERED);
    ck_assert_int_eq(enter(peers, &a), LAC_PEERS_ADDRESS_FULL);
    ck_assert_int_eq(enter(peers, &b), LAC_PEERS_ENTERED);
    lac_peers_leave(peers, (const struct sockaddr *)&a);
    ck_assert_int_eq(enter(peers, &a), LAC_PEERS_ENTERED);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(enter(peers, i == 0 ? &other_loopback : &loopback), LAC_PEERS_ENTERED);
    }
    ck_assert_int_eq(enter(peers, &loopback), LAC_PEERS_ADDRESS_FULL);
    ck_assert_int_eq(enter(peers, &b), LAC_PEERS_ENTERED);
    ck_assert_int_eq(enter(peers, &b), LAC_PEERS_FULL);
    lac_peers_leave(peers, (const struct sockaddr *)&loopback);
    ck_assert_int_eq(enter(peers, &loopback), LAC_PEERS_ENTERED);
    ck_assert(lac_peers_are_same((const struct sockaddr *)&loopback,
                                 (const struct sockaddr *)&other_loopback));
    ck_assert(!lac_peers_are_same((const struct sockaddr *)&a, (const struct sockaddr *)&b));
    ck_assert(!lac_peers_are_same((const struct sockaddr *)&a, (const struct sockaddr *)&loopback));
    lac_peers_destroy(peers);
}
END_TEST

struct crowd {
    struct lac_peers *peers;
    _Atomic unsigned entered;
};

static void *enter_often(void *context)
{
    struct crowd *crowd = context;
    const struct sockaddr_in loopback = address_of(0x7f000001);

    for (unsigned i = 0; i < 2000; i++) {
        if (enter(crowd->peers, &loopback) == LAC_PEERS_ENTERED) {
            atomic_fetch_add(&crowd->entered, 1);
        }
    }
    return NULL;
}

START_TEST(no_more_enter_than_there_are_places_however_many_ask_at_once)
{
    struct crowd crowd = {0};
    const struct lac_peers_limits limits = {.all = 5000, .loopback = 1000, .address = 2};
    pthread_t thread[4];

    ck_assert_int_eq(lac_peers_create(&limits, &crowd.peers), LAC_OK);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, enter_often, &crowd), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
    }
    ck_assert_uint_eq(atomic_load(&crowd.entered), 1000);
    lac_peers_destroy(crowd.peers);
}
END_TEST

START_TEST(addresses_that_come_and_go_do_not_fill_the_table)
{
    struct lac_peers *peers = NULL;
    const struct lac_peers_limits limits = {.all = 5, .loopback = 3, .address = 1};
    const struct sockaddr_in staying = address_of(0x0a000001);

    ck_assert_int_eq(lac_peers_create(&limits, &peers), LAC_OK);
    ck_assert_int_eq(enter(peers, &staying), LAC_PEERS_ENTERED);
    for (uint32_t i = 0; i < 100000; i++) {
        const struct sockaddr_in passing = address_of(0x0b000000 + i);

        ck_assert_int_eq(enter(peers, &passing), LAC_PEERS_ENTERED);
        lac_peers_leave(peers, (const struct sockaddr *)&passing);
    }
    ck_assert_int_eq(enter(peers, &staying), LAC_PEERS_ADDRESS_FULL);
    lac_peers_destroy(peers);
}
END_TEST

/* -- log --------------------------------------------------------------------------------------- */

START_TEST(a_log_line_cannot_be_forged)
{
    int ends[2];
    char text[4096];
    ssize_t length;
    const int saved = dup(STDERR_FILENO);

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    ck_assert_int_eq(lac_log_start(), LAC_OK);
    LAC_LOG(LAC_LOG_INFO, "request", lac_log_text("path", "/a\nlevel=error msg=\"x\""),
            lac_log_int("status", 200), lac_log_real("ms", 1.5));
    LAC_LOG(LAC_LOG_DEBUG, "not shown", lac_log_int("n", 1));
    lac_log_stop();
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    length = read(ends[0], text, sizeof(text) - 1);
    ck_assert_int_gt(length, 0);
    text[length] = '\0';
    ck_assert_ptr_nonnull(strstr(text, " level=info msg=request path=\"/a\\x0alevel=error "
                                       "msg=\\\"x\\\"\" status=200 ms=1.500\n"));
    ck_assert_ptr_eq(strchr(text, '\n'), text + length - 1);
}
END_TEST

START_TEST(a_reader_that_stalls_does_not_stop_the_log)
{
    int ends[2];
    const int nowhere = open("/dev/null", O_WRONLY); /* where the stuck rest goes in the end */

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    ck_assert_int_eq(lac_log_start(), LAC_OK);
    for (int i = 0; i < 40000; i++) {
        LAC_LOG(LAC_LOG_INFO, "filling the pipe and the ring with lines", lac_log_int("i", i));
    }
    ck_assert_uint_gt(lac_log_dropped(), 0);
    lac_log_stop();
    ck_assert_int_ge(dup2(nowhere, STDERR_FILENO), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http_parts");
    TCase *tests = tcase_create("parts");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, only_names_of_this_machine_are_our_host);
    tcase_add_test(tests, an_origin_must_be_the_host_that_was_asked);
    tcase_add_test(tests, cookies_bearers_and_encodings_are_read_strictly);
    tcase_add_test(tests, listen_addresses_are_split);
    tcase_add_test(tests, routes_match_whole_paths_and_keep_their_pieces);
    tcase_add_test(tests, tags_match_in_lists_and_by_star);
    tcase_add_test(tests, every_status_has_an_http_status);
    tcase_add_test(tests, json_strings_are_safe_whatever_they_hold);
    tcase_add_test(tests, a_full_buffer_says_so_once_and_takes_no_more);
    tcase_add_test(tests, gzip_gives_back_what_went_in);
    tcase_add_test(tests, noise_is_not_compressed);
    tcase_add_test(tests, the_key_is_made_once_and_only_ours_to_read);
    tcase_add_test(tests, each_address_has_its_own_limit);
    tcase_add_test(tests, no_more_enter_than_there_are_places_however_many_ask_at_once);
    tcase_add_test(tests, addresses_that_come_and_go_do_not_fill_the_table);
    tcase_add_test(tests, a_log_line_cannot_be_forged);
    tcase_add_test(tests, a_reader_that_stalls_does_not_stop_the_log);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
