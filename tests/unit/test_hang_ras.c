/* collector/hang: what NCCL's RAS service says, in both of its forms, and a service that says anything. */

#include "collector/base/count_of.h"
#include "collector/base/monotonic.h"
#include "collector/hang/hang_ras.h"
#include "collector/hang/hang_ras_client.h"
#include "tests/support/check_main.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MANY_BYTES = 1 << 20 };

static struct lac_ras ras;
static char text[1024];

/* NCCL 2.24 to 2.27, as its documentation shows it, and what later ones write beside. */
static const char as_text[] =
    "NCCL version 2.26.2 compiled with CUDA 12.8\n"
    "CUDA runtime version 12080, driver version 12080\n\n"
    "Job summary\n===========\n\n"
    "  Nodes  Processes         GPUs  Processes     GPUs\n"
    "(total)   per node  per process    (total)  (total)\n"
    "      4          8            1         32       32\n\n"
    "Communicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n"
    "Errors\n======\n\n"
    "INCOMPLETE\n"
    "  Missing communicator data from 1 job process\n"
    "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
    "#0-0 (cf264af53edbe986) INCOMPLETE\n"
    "  Missing communicator data from 1 rank\n"
    "  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213\n\n"
    "Warnings\n========\n\n"
    "#0-0 (cf264af53edbe986) MISMATCH\n"
    "  Communicator ranks have different AllReduce operation counts\n"
    "  26 ranks have launched up to operation 6650\n"
    "  4 ranks have launched up to operation 6649\n"
    "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
    "  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210\n"
    "  Rank 4 -- GPU 4 (NVML 5) managed by process 483076 on node 172.16.64.210\n"
    "  Rank 7 -- [process information not found]\n"
    "  Rank 9 has launched up to operation 6640 -- GPU 1 managed by process 7 on node fe80::1\n\n"
    "  Communicator ranks have different Broadcast operation counts\n"
    "  30 ranks have launched up to operation 3\n"
    "  Rank 1 has not launched any operations -- GPU 1 managed by process 483073 on node a\n\n"
    "#1-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different collective operation counts\n"
    "  Rank 0 has launched up to operation 5 -- GPU 0 managed by process 483072 on node a\n"
    "  Rank 1 has launched up to operation 4 -- GPU 1 managed by process 483073 on node a\n\n";

START_TEST(the_text_of_older_nccl_names_who_is_behind)
{
    const struct lac_ras_communicator *world = &ras.communicators[0];
    const struct lac_ras_function *all_reduce = &world->functions[0];

    ck_assert(lac_ras_parse_text(as_text, sizeof(as_text) - 1, &ras));
    ck_assert_str_eq(ras.version, "2.26.2");
    ck_assert_uint_eq(ras.communicator_count, 2);
    ck_assert_str_eq(world->hash, "cf264af53edbe986");
    ck_assert_uint_eq(world->function_count, 2);
    ck_assert_str_eq(all_reduce->name, "AllReduce");
    ck_assert_uint_eq(all_reduce->most.operations, 6650);
    ck_assert_uint_eq(all_reduce->most.count, 26);
    ck_assert_uint_eq(all_reduce->least.operations, 6640);
    ck_assert_int_eq(all_reduce->least.named[0].rank, 9);
    ck_assert_int_eq(all_reduce->least.named[0].pid, 7);
    ck_assert_str_eq(all_reduce->least.named[0].host, "fe80::1");
    ck_assert(lac_ras_say_difference(all_reduce, text, sizeof(text)));
    ck_assert_str_eq(text, "AllReduce: rank 9 has launched 6640, 26 ranks 6650");
    ck_assert(lac_ras_say_difference(&world->functions[1], text, sizeof(text)));
    ck_assert_str_eq(text, "Broadcast: rank 1 has launched 0, 30 ranks 3");
    ck_assert(lac_ras_say_missing(world, text, sizeof(text)));
    ck_assert_str_eq(text, "rank 21 (process 3487984 on 172.16.64.213) does not answer NCCL");
    ck_assert(lac_ras_say_difference(&ras.communicators[1].functions[0], text, sizeof(text)));
    ck_assert_str_eq(text, "collectives: rank 1 has launched 4, rank 0 5");
}
END_TEST

#define RANK(N, PID, COUNT, ERROR)                                                                 \
    "{\"rank\": " #N ", \"host\": \"10.0.0.2\", \"pid\": " #PID                                    \
    ", \"cuda_dev\": 0, \"nvml_dev\": 0, \"status\": {\"init_state\": 0, \"async_error\": " #ERROR \
    ", \"finalize_called\": false, \"destroy_flag\": false, \"abort_flag\": false},"               \
    "\"collective_counts\": {\"Broadcast\": 2, \"AllReduce\": " #COUNT "}}"

static const char as_json[] =
    "{\n  \"nccl_version\": \"2.28.3\",\n  \"cuda_runtime_version\": 13000,\n"
    "  \"timestamp\": \"2026-01-01 00:00:00\",\n  \"communicators_count\": 1,\n"
    "  \"communicators\": [\n    {\"hash\": \"0x1f2e\", \"secondary_hash\": \"0x1:0x2\",\n"
    "      \"size\": 4, \"ranks_count\": 3, \"missing_ranks_count\": 1,\n"
    "      \"ranks\": [" RANK(0, 100, 61, 0) ",\n" RANK(1, 101, 60, 7) ",\n" RANK(
        2, 102, 61, 3) "],"
                       "      \"missing_ranks\": [{\"rank\": 3, \"host\": \"10.0.0.3\", \"pid\": "
                       "812, \"cuda_dev\": 1,"
                       "\"nvml_dev\": 1, \"status\": {\"unresponsive\": true, \"considered_dead\": "
                       "true}}]\n    }\n  ],"
                       "  \"ras\": {\"collection_time_sec\": 0.012, \"timeouts_count\": 0, \"x\": "
                       "[1, {\"y\": null}]}\n}\n";

START_TEST(the_json_of_newer_nccl_has_all_ranks)
{
    const struct lac_ras_communicator *world = &ras.communicators[0];

    ck_assert(lac_ras_parse_json(as_json, sizeof(as_json) - 1, &ras));
    ck_assert_str_eq(ras.version, "2.28.3");
    ck_assert_uint_eq(ras.communicator_count, 1);
    ck_assert_uint_eq(world->size, 4);
    ck_assert_uint_eq(ras.pid_count, 3);
    ck_assert_uint_eq(ras.error_count, 1); /* 7 is in progress */
    ck_assert_int_eq(ras.failed.rank, 2);
    lac_ras_say_communicator(world, text, sizeof(text));
    ck_assert_str_eq(text, "0x1f2e, 4 ranks: Broadcast 2; AllReduce: rank 1 has launched 60, ranks "
                           "0, 2 61; rank 3 (process 812 on 10.0.0.3) cannot be reached by NCCL");
}
END_TEST

/* However it is cut, or whatever is in it: nothing beyond its bytes is read. */
START_TEST(any_answer_is_read_within_its_bytes)
{
    static const struct {
        const char *text;
        size_t size;
    } whole[] = {{as_json, sizeof(as_json) - 1}, {as_text, sizeof(as_text) - 1}};

    for (size_t w = 0; w < LAC_COUNT_OF(whole); w++) {
        for (size_t size = 0; size < whole[w].size; size++) {
            char *const part = malloc(size > 0 ? size : 1);

            ck_assert_ptr_nonnull(part);
            memcpy(part, whole[w].text, size);
            ck_assert(!lac_ras_parse_json(part, size, &ras) || size + 2 > whole[0].size);
            (void)lac_ras_parse_text(part, size, &ras);
            free(part);
        }
    }
}
END_TEST

static const char *const nonsense[] = {
    "",
    "[]",
    "{}",
    "null",
    "{\"communicators\": 1}",
    "{\"communicators\": [",
    "{\"communicators\": [{}}",
    "{\"communicators\": [[]]}",
    "{\"communicators\": [{\"ranks\": [1]}]}",
    "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],"
    "\"communicators\":[]}",
    "{\"communicators\": [{\"ranks\": [{\"rank\": 1 \"pid\": 2}]}]}",
};

START_TEST(an_answer_that_is_no_answer_is_refused)
{
    ck_assert(!lac_ras_parse_json(nonsense[_i], strlen(nonsense[_i]), &ras));
    ck_assert(!lac_ras_parse_text(nonsense[_i], strlen(nonsense[_i]), &ras));
}
END_TEST

/* A group that lists more ranks than it says it has. */
START_TEST(a_group_names_no_more_ranks_than_it_has)
{
    static const char answer[] = "NCCL version 2.26.2\n"
                                 "#0-0 (cf26) MISMATCH\n"
                                 "  Communicator ranks have different AllReduce operation counts\n"
                                 "  2 ranks have launched up to operation 7\n"
                                 "  1 ranks have launched up to operation 6\n"
                                 "  Rank 0 -- GPU 0 managed by process 10 on node a\n"
                                 "  Rank 1 -- GPU 1 managed by process 11 on node a\n";
    const struct lac_ras_function *all_reduce = &ras.communicators[0].functions[0];

    ck_assert(lac_ras_parse_text(answer, sizeof(answer) - 1, &ras));
    ck_assert_uint_eq(all_reduce->least.count, 1);
    ck_assert_uint_eq(all_reduce->least.named_count, 1);
    ck_assert_int_eq(all_reduce->least.named[0].rank, 0);
}
END_TEST

START_TEST(more_than_there_is_room_for_is_left_out)
{
    char *const many = malloc(MANY_BYTES);
    size_t used = 0;

    ck_assert_ptr_nonnull(many);
    used += (size_t)snprintf(many, MANY_BYTES, "{\"communicators\": [");
    for (int i = 0; i < 2 * LAC_RAS_COMMUNICATORS; i++) {
        used += (size_t)snprintf(many + used, MANY_BYTES - used,
                                 "%s{\"hash\": \"0x%d\", \"ranks\": [", i > 0 ? "," : "", i);
        for (int k = 0; k < 20; k++) {
            used += (size_t)snprintf(many + used, MANY_BYTES - used,
                                     "%s{\"rank\": %d, \"pid\": %d, \"collective_counts\": {",
                                     k > 0 ? "," : "", k, 1000 * i + k);
            for (int f = 0; f < 2 * LAC_RAS_FUNCTIONS && k == 0; f++) {
                used += (size_t)snprintf(many + used, MANY_BYTES - used, "%s\"F%d\": %d",
                                         f > 0 ? "," : "", f, k + f);
            }
            used += (size_t)snprintf(many + used, MANY_BYTES - used, "}}");
        }
        used += (size_t)snprintf(many + used, MANY_BYTES - used, "]}");
    }
    used += (size_t)snprintf(many + used, MANY_BYTES - used, "]}");
    ck_assert(lac_ras_parse_json(many, used, &ras));
    ck_assert_uint_eq(ras.communicator_count, LAC_RAS_COMMUNICATORS);
    ck_assert_uint_eq(ras.communicators[0].function_count, LAC_RAS_FUNCTIONS);
    ck_assert_uint_eq(ras.pid_count, LAC_RAS_PIDS);
    free(many);
}
END_TEST

/* ---- the conversation */

/* A service: for each line that comes, what it answers; NULL ends it, and "" says nothing. */
static const char *const *script;
static int listening;
static char asked[8][64];
static unsigned asked_count;

static void *serve(void *unused)
{
    const int fd = accept(listening, NULL, NULL);
    char line[64];
    size_t used = 0;

    (void)unused;
    asked_count = 0;
    while (fd >= 0 && script[asked_count] != NULL && recv(fd, line + used, 1, 0) == 1) {
        if (line[used++] != '\n') {
            ck_assert_uint_lt(used, sizeof(line));
            continue;
        }
        line[used - 1] = '\0';
        used = 0;
        (void)snprintf(asked[asked_count], sizeof(asked[0]), "%s", line);
        for (const char *at = script[asked_count++]; *at != '\0'; at++) { /* in small pieces */
            (void)send(fd, at, 1, MSG_NOSIGNAL);
        }
    }
    (void)close(fd);
    return NULL;
}

static enum lac_ras_progress ask(const char *const *answers, struct lac_ras_client **ret_client)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    const struct timespec pause = {.tv_nsec = 1000000};
    enum lac_ras_progress progress = LAC_RAS_WAITS;
    char where[32];
    pthread_t thread;

    script = answers;
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&address, &length), 0);
    (void)snprintf(where, sizeof(where), "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    *ret_client = lac_ras_client_create(where);
    ck_assert_ptr_nonnull(*ret_client);
    lac_ras_client_begin(*ret_client, lac_monotonic_ns());
    while (progress == LAC_RAS_WAITS) { /* the client has a limit of its own */
        progress = lac_ras_client_go_on(*ret_client, lac_monotonic_ns());
        (void)nanosleep(&pause, NULL);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(listening);
    return progress;
}

START_TEST(newer_nccl_is_asked_for_json)
{
    const char *const answers[] = {"SERVER PROTOCOL 2\n", "OK\n", "OK\n", as_json, NULL};
    struct lac_ras_client *client;

    ck_assert_int_eq((int)ask(answers, &client), (int)LAC_RAS_DONE);
    ck_assert_str_eq(asked[0], "CLIENT PROTOCOL 2");
    ck_assert_str_eq(asked[1], "TIMEOUT 2");
    ck_assert_str_eq(asked[2], "SET FORMAT json");
    ck_assert_str_eq(asked[3], "VERBOSE STATUS");
    ck_assert(lac_ras_client_parse(client, &ras));
    ck_assert_str_eq(ras.version, "2.28.3");
    lac_ras_client_destroy(client);
}
END_TEST

START_TEST(older_nccl_answers_in_text)
{
    const char *const answers[] = {"SERVER PROTOCOL 2\n", "OK\n",
                                   "ERROR: Unknown command SET FORMAT json\n", as_text, NULL};
    struct lac_ras_client *client;

    ck_assert_int_eq((int)ask(answers, &client), (int)LAC_RAS_DONE);
    ck_assert(lac_ras_client_parse(client, &ras));
    ck_assert_str_eq(ras.version, "2.26.2");
    lac_ras_client_destroy(client);
}
END_TEST

static const char *const others[][6] = {
    {"HTTP/1.1 400 Bad Request\r\n\r\n", NULL},
    {"SERVER PROTOCOL 2\n", NULL},
    {"SERVER PROTOCOL 2\n", "OK\n", "OK\n", "", NULL},
    {NULL},
};

START_TEST(another_service_is_no_answer)
{
    struct lac_ras_client *client;

    ck_assert_int_eq((int)ask(others[_i], &client), (int)LAC_RAS_FAILED);
    ck_assert_str_ne(lac_ras_client_why(client), "");
    ck_assert(!lac_ras_client_parse(client, &ras));
    lac_ras_client_destroy(client);
}
END_TEST

/* Addresses that name no place, one where nobody listens; and one that never answers. */
START_TEST(where_nobody_listens_nothing_is_waited_for)
{
    static const char *const nowhere[] = {
        "no.such.host:28028", "127.0.0.1:0", "[::1",   "127.0.0.1:99999",
        "127.0.0.1:1",        "localhost:1", "[::1]:1"};

    for (size_t i = 0; i < LAC_COUNT_OF(nowhere); i++) {
        struct lac_ras_client *const client = lac_ras_client_create(nowhere[i]);
        enum lac_ras_progress progress = LAC_RAS_WAITS;

        ck_assert_int_eq((int)lac_ras_client_go_on(client, 0), (int)LAC_RAS_FAILED);
        lac_ras_client_begin(client, 1);
        for (unsigned k = 0; k < 100000 && progress == LAC_RAS_WAITS; k++) {
            progress = lac_ras_client_go_on(client, 1);
        }
        ck_assert_int_eq((int)progress, (int)LAC_RAS_FAILED);
        lac_ras_client_destroy(client);
    }
}
END_TEST

START_TEST(a_service_that_says_nothing_is_left_after_ten_seconds)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    const uint64_t second = UINT64_C(1000000000);
    struct lac_ras_client *client;
    char where[32];

    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&address, &length), 0);
    (void)snprintf(where, sizeof(where), "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    client = lac_ras_client_create(where);
    lac_ras_client_begin(client, second);
    ck_assert_int_eq((int)lac_ras_client_go_on(client, 11 * second), (int)LAC_RAS_WAITS);
    ck_assert_int_eq((int)lac_ras_client_go_on(client, 12 * second), (int)LAC_RAS_FAILED);
    lac_ras_client_destroy(client);
    (void)close(listening);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_ras");
    TCase *const tcase = tcase_create("all");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_text_of_older_nccl_names_who_is_behind);
    tcase_add_test(tcase, the_json_of_newer_nccl_has_all_ranks);
    tcase_add_test(tcase, any_answer_is_read_within_its_bytes);
    tcase_add_loop_test(tcase, an_answer_that_is_no_answer_is_refused, 0, LAC_COUNT_OF(nonsense));
    tcase_add_test(tcase, a_group_names_no_more_ranks_than_it_has);
    tcase_add_test(tcase, more_than_there_is_room_for_is_left_out);
    tcase_add_test(tcase, newer_nccl_is_asked_for_json);
    tcase_add_test(tcase, older_nccl_answers_in_text);
    tcase_add_loop_test(tcase, another_service_is_no_answer, 0, LAC_COUNT_OF(others));
    tcase_add_test(tcase, where_nobody_listens_nothing_is_waited_for);
    tcase_add_test(tcase, a_service_that_says_nothing_is_left_after_ten_seconds);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
