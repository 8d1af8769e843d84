/* What launchers of one job tell each other: hostile texts, old ones, many of them. */

#include "collector/base/count_of.h"
#include "collector/hang/hang_peers.h"
#include "collector/hang/hang_process.h"
#include "collector/hang/hang_said.h"
#include "collector/hang/hang_verdict.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum { RANKS_MAX = 80 };

static char base[64];
static struct lac_hang_said said;
static char text[LAC_HANG_SAID_BYTES];
static struct lac_hang_thread threads[1];
static char answer_text[LAC_HANG_TEXT_BYTES];

static const char in_barrier[] =
    "lacuna-stacks 1\ncollective 60 1 1 barrier\nthread 102 training MainThread\n"
    "frame 2900\tbarrier\t/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\n"
    "frame 31\tsave\t/home/a/train.py\nsource dist.barrier()\nframe 50\tmain\t/home/a/train.py\n";

static struct lac_hang_process rank_in_barrier(int rank)
{
    struct lac_hang_process process = {.pid = 100 + rank,
                                       .parent = 1,
                                       .rank = rank,
                                       .tid = 100 + rank,
                                       .is_rank = true,
                                       .steps = 61,
                                       .native = {.state = 'S', .call = "futex"},
                                       .collective = "",
                                       .thread_room = 1,
                                       .threads = threads,
                                       .text = answer_text};

    (void)snprintf(answer_text, sizeof(answer_text), "%s", in_barrier);
    lac_hang_process_parse(&process);
    ck_assert(process.has_answered);
    return process;
}

static size_t write_rank(const struct lac_hang_report *report, int rank)
{
    const struct lac_hang_process process = rank_in_barrier(rank);
    const size_t size = lac_hang_said_write(report, &process, 1, text, sizeof(text));

    ck_assert_uint_gt(size, 0);
    return size;
}

static bool parse(const char *from, size_t size)
{
    memcpy(said.text, from, size);
    said.text[size] = '\0';
    return lac_hang_said_parse(&said, size);
}

static bool parse_text(const char *from)
{
    return parse(from, strlen(from));
}

START_TEST(what_is_told_is_what_is_heard)
{
    struct lac_hang_report report = {.number = 7,
                                     .quiet_ms = 4100,
                                     .alive_ms = 300,
                                     .has_asked = true,
                                     .host = "nid002",
                                     .has_verdict = true,
                                     .verdict_quiet_ms = 3900,
                                     .verdict = {.kind = LAC_HANG_BLOCKED, .rank = 3}};
    struct lac_hang_verdict verdict;

    (void)snprintf(report.verdict.doing, sizeof(report.verdict.doing), "rank 3 waits");
    ck_assert(parse(text, write_rank(&report, 3)));
    ck_assert_uint_eq(said.report.number, 7);
    ck_assert_uint_eq(said.report.quiet_ms, 4100);
    ck_assert_uint_eq(said.report.alive_ms, 300);
    ck_assert_uint_eq(said.report.verdict_quiet_ms, 3900);
    ck_assert(said.report.has_asked && said.report.has_verdict);
    ck_assert_str_eq(said.report.verdict.doing, "rank 3 waits");
    ck_assert_int_eq((int)said.report.verdict.kind, (int)LAC_HANG_BLOCKED);
    ck_assert_uint_eq(said.count, 1);
    lac_hang_judge(said.processes, said.count, NULL, &verdict);
    ck_assert_str_eq(verdict.doing, "rank 3 on nid002 waits in barrier at train.py:31 (save)");
    ck_assert_str_eq(verdict.where, "/home/a/train.py:31");
    ck_assert_str_eq(verdict.source, "dist.barrier()");
    ck_assert_uint_eq(said.processes[0].steps, 61);
    ck_assert_str_eq(said.processes[0].native.call, "futex");
}
END_TEST

START_TEST(a_text_that_is_cut_off_or_wrong_is_none)
{
    const struct lac_hang_report report = {.number = 1, .host = "a"};
    const size_t size = write_rank(&report, 0);
    static char other[LAC_HANG_SAID_BYTES];

    for (size_t length = 0; length < size; length++) {
        ck_assert(!parse(text, length));
    }
    memcpy(other, text, size);
    other[size / 2] = '\0'; /* a NUL in it */
    ck_assert(!parse(other, size));
    ck_assert(!parse_text("lacuna-hang 2\nlauncher 1 1 1\nend\n"));
    ck_assert(!parse_text("lacuna-hang 1\nlauncher 0 1 1\nend\n"));
    ck_assert(!parse_text("lacuna-hang 1\nlauncher 1 -1 1\nend\n"));
    ck_assert(!parse_text("lacuna-hang 1\nhost a\nend\n"));
}
END_TEST

/* Processes whose line is wrong are left out, and what they answer with them. */
/* A launcher that does not tell it is one of before; nothing is alive for longer than it is quiet. */
START_TEST(life_that_is_not_told_or_wrong_is_progress)
{
    static const char *const lines[] = {"", "alive\n", "alive -1\n", "alive x\n", "alive 9000\n"};

    for (size_t i = 0; i < LAC_COUNT_OF(lines); i++) {
        (void)snprintf(text, sizeof(text), "lacuna-hang 1\nlauncher 3 5000 1\nhost a\n%send\n",
                       lines[i]);
        ck_assert(parse_text(text));
        ck_assert_uint_eq(said.report.alive_ms, 5000);
    }
}
END_TEST

START_TEST(wrong_lines_make_no_process)
{
    static const char *const wrong[] = {"process",
                                        "process 0 1 0 0 5 1 1 0 0 S 0 0 0",
                                        "process 5 1 0 0 5 2 1 0 0 S 0 0 0",
                                        "process 5 1 -2 0 5 1 1 0 0 S 0 0 0",
                                        "process 99999999999 1 0 0 5 1 1 0 0 S 0 0 0",
                                        "process 5 1 0 0 5 1 1 0 0",
                                        "process 5 1 0 0 5 1 -1 0 0 S 0 0 0"};

    for (size_t i = 0; i < LAC_COUNT_OF(wrong); i++) {
        const int length = snprintf(
            text, sizeof(text), "lacuna-hang 1\nlauncher 1 1 1\n%s\n%send\n", wrong[i], in_barrier);

        ck_assert(parse(text, (size_t)length));
        ck_assert_uint_eq(said.count, 0);
    }
}
END_TEST

/* A second thread has no room; control characters do not reach a terminal. */
START_TEST(more_than_there_is_room_for_and_control_characters)
{
    size_t used =
        (size_t)snprintf(text, sizeof(text), "lacuna-hang 1\nlauncher 1 1 1\nhost a\033[2J\n");

    for (int i = 0; i < 2 * LAC_HANG_SAID_PROCESSES; i++) {
        used += (size_t)snprintf(
            text + used, sizeof(text) - used,
            "process %d 1 %d 0 5 1 1 0 0 S 0 0 0\nfile /\033]0;x\007\nlacuna-stacks 1\n"
            "thread 5 training a\nframe 1\tf\t/a\033.py\nthread 6 training b\n"
            "frame 2\tg\t/b.py\n",
            i + 1, i);
    }
    used += (size_t)snprintf(text + used, sizeof(text) - used, "end\n");
    ck_assert(parse(text, used));
    ck_assert_uint_eq(said.count, LAC_HANG_SAID_PROCESSES);
    ck_assert_str_eq(said.report.host, "a [2J");
    ck_assert_str_eq(said.processes[0].native.file, "/ ]0;x ");
    ck_assert_uint_eq(said.processes[0].thread_count, 1);
    ck_assert_str_eq(said.processes[0].threads[0].frames[0].path, "/a .py");
}
END_TEST

/* What does not fit is left out whole, workers before ranks. */
START_TEST(ranks_are_told_before_workers)
{
    static struct lac_hang_process many[100];
    const struct lac_hang_report report = {.number = 1, .host = "a"};
    size_t size;

    for (int i = 0; i < 100; i++) {
        many[i] = rank_in_barrier(i);
        many[i].is_rank = i >= 60;
    }
    size = lac_hang_said_write(&report, many, 100, text, sizeof(text));
    ck_assert(parse(text, size));
    ck_assert_uint_eq(said.count, LAC_HANG_SAID_PROCESSES);
    ck_assert(said.processes[39].is_rank && said.processes[39].rank == 99);
    ck_assert(!said.processes[40].is_rank);
    size = lac_hang_said_write(&report, many, 100, text, 1000);
    ck_assert(parse(text, size));
    ck_assert_uint_lt(said.count, 4);
    ck_assert_uint_eq(lac_hang_said_write(&report, many, 100, text, 20), 0);
}
END_TEST

/* ---- in a folder */

static void make_base(int ranks)
{
    char path[128];

    (void)snprintf(base, sizeof(base), "/tmp/lacuna-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    for (int i = 0; i < ranks; i++) {
        (void)snprintf(path, sizeof(path), "%s/task-%d", base, i);
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
}

static void remove_base(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
}

static struct lac_hang_peers *launcher(int number)
{
    char name[32];
    struct lac_hang_peers *peers;

    (void)snprintf(name, sizeof(name), "task-%d", number);
    peers = lac_hang_peers_create(base, name, 1);
    ck_assert_ptr_nonnull(peers);
    return peers;
}

static void tell(struct lac_hang_peers *peers, uint64_t now_ns, bool is_asking, int rank)
{
    const struct lac_hang_process process = rank_in_barrier(rank);
    struct lac_hang_report report = {
        .quiet_ms = 4000, .has_asked = true, .has_verdict = lac_hang_peers_judges_all(peers)};

    lac_hang_peers_tell(peers, now_ns, is_asking, &report, &process, 1);
}

static bool is_folder_there(void)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang", base);
    return access(path, F_OK) == 0;
}

static void put_file(const char *name, const char *content)
{
    char path[160];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang", base);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang/%s", base, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(content, file);
    (void)fclose(file);
}

START_TEST(a_question_is_answered_and_nothing_is_left)
{
    struct lac_hang_peers *asks;
    struct lac_hang_peers *answers;

    make_base(2);
    asks = launcher(0);
    answers = launcher(1);
    lac_hang_peers_look(answers, SECOND, false);
    ck_assert(!lac_hang_peers_is_asked(answers));
    tell(answers, SECOND, false, 1); /* who is not asked says nothing */
    ck_assert(!is_folder_there());
    for (uint64_t t = 2; t < 5; t++) {
        tell(asks, t * SECOND, true, 0);
        lac_hang_peers_look(answers, t * SECOND + 1, false);
        ck_assert(lac_hang_peers_is_asked(answers));
        tell(answers, t * SECOND + 2, false, 1);
        lac_hang_peers_look(asks, t * SECOND + 3, true);
        ck_assert(!lac_hang_peers_is_asked(asks));
        /* what is there at first may be of another time */
        ck_assert((lac_hang_peers_at(asks, 0) != NULL) == (t > 2));
    }
    ck_assert_int_eq(lac_hang_peers_at(asks, 0)->processes[0].rank, 1);
    ck_assert_uint_eq(lac_hang_peers_at(asks, 0)->processes[0].launcher, 2);
    ck_assert_ptr_null(lac_hang_peers_at(asks, 1));
    ck_assert_uint_eq(lac_hang_peers_progress_ns(asks),
                      0); /* 5 s before the clock's begin: as early */
    ck_assert_uint_eq(lac_hang_peers_life_ns(asks), 3 * SECOND + 3); /* now, told a second ago */
    /* it writes no more: after 5 s it is as if it had never spoken */
    lac_hang_peers_look(asks, 8 * SECOND, true);
    ck_assert_ptr_nonnull(lac_hang_peers_at(asks, 0));
    lac_hang_peers_look(asks, 10 * SECOND, true);
    ck_assert_ptr_null(lac_hang_peers_at(asks, 0));
    /* a question that nobody repeats ends */
    lac_hang_peers_look(answers, 13 * SECOND, false);
    ck_assert(lac_hang_peers_is_asked(answers));
    lac_hang_peers_look(answers, 15 * SECOND, false);
    ck_assert(!lac_hang_peers_is_asked(answers));
    lac_hang_peers_leave(answers);
    ck_assert(is_folder_there());
    lac_hang_peers_destroy(asks);
    ck_assert(!is_folder_there());
    lac_hang_peers_destroy(answers);
    remove_base();
}
END_TEST

START_TEST(files_that_are_anything)
{
    char path[160];
    char target[160];
    struct lac_hang_peers *peers;

    make_base(2);
    peers = launcher(0);
    put_file("ask-task-1", "lacuna-hang 1\nlauncher 1 1 1\nhost a\nend\n");
    put_file("ask-task-01", "x");
    put_file("ask-task-99999999999999999999", "x");
    put_file("ask-rank-3", "x");
    put_file("say-", "x");
    put_file("say-task-4", "\1\2\3");
    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang/say-task-5", base);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang/say-task-6", base);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang/say-task-7", base);
    (void)snprintf(target, sizeof(target), "%s/seven", base);
    ck_assert_int_eq(symlink(target, path), 0);
    for (int i = 1; i < 4; i++) {
        char content[128];
        FILE *const file = fopen(target, "w");

        (void)snprintf(content, sizeof(content), "lacuna-hang 1\nlauncher %d 1 1\nend\n", i);
        ck_assert_ptr_nonnull(file);
        (void)fputs(content, file);
        (void)fclose(file);
        lac_hang_peers_look(peers, (uint64_t)i * SECOND, true);
        ck_assert_ptr_null(lac_hang_peers_at(peers, 0)); /* never a second number, or no file */
    }
    put_file("ask-task-1", "lacuna-hang 1\nlauncher 2 1 1\nhost a\nend\n");
    lac_hang_peers_look(peers, 4 * SECOND, true);
    ck_assert_ptr_nonnull(lac_hang_peers_at(peers, 0));
    ck_assert_ptr_null(lac_hang_peers_at(peers, 1));
    /* no number takes us by surprise */
    put_file("ask-task-1", "lacuna-hang 1\nlauncher 3 9223372036854 1\nhost a\nend\n");
    lac_hang_peers_look(peers, 5 * SECOND, true);
    ck_assert_uint_eq(lac_hang_peers_progress_ns(peers), 0);
    lac_hang_peers_destroy(peers);
    remove_base();
}
END_TEST

START_TEST(a_folder_that_is_a_link_is_not_ours)
{
    char path[160];
    struct lac_hang_peers *peers;

    make_base(2);
    (void)snprintf(path, sizeof(path), "%s/.lacuna-hang", base);
    ck_assert_int_eq(symlink("/tmp", path), 0);
    peers = launcher(0);
    tell(peers, SECOND, true, 0);
    ck_assert_int_ne(access("/tmp/ask-task-0", F_OK), 0);
    lac_hang_peers_destroy(peers);
    remove_base();
}
END_TEST

START_TEST(who_is_silent_is_told)
{
    char words[200];
    char path[160];
    FILE *note;
    struct lac_hang_peers *peers;

    make_base(1);
    peers = launcher(0); /* began before the others end */
    (void)usleep(20000);
    for (int i = 1; i < 7; i++) {
        (void)snprintf(path, sizeof(path), "%s/task-%d", base, i);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        if (i > 1) {
            (void)snprintf(path, sizeof(path), "%s/task-%d/.lacuna-launcher", base, i);
            note = fopen(path, "w");
            ck_assert_ptr_nonnull(note);
            (void)fputs("lacuna-launcher 1\nhost elsewhere\npid 1\nstart 1\nboot b\npid_space p\n",
                        note);
            (void)fclose(note);
        }
    }
    put_file("say-task-2", "lacuna-hang 1\nlauncher 1 1 1\nend\n");
    lac_hang_peers_look(peers, SECOND, true);
    put_file("say-task-2", "lacuna-hang 1\nlauncher 2 1 1\nend\n");
    lac_hang_peers_look(peers, 2 * SECOND, true);
    lac_hang_peers_say_unknown(peers, words, sizeof(words));
    ck_assert_ptr_nonnull(strstr(words, "nothing is heard of task-"));
    ck_assert_ptr_nonnull(strstr(words, " and 1 more; the launcher of task-1 has ended"));
    ck_assert_ptr_null(strstr(words, "task-2"));
    lac_hang_peers_say_unknown(peers, words, 20);
    ck_assert_uint_lt(strlen(words), 20);
    lac_hang_peers_destroy(peers);
    remove_base();
}
END_TEST

/* Each would read all: the first one does, and the others hear it. */
START_TEST(one_of_many_launchers_judges)
{
    static struct lac_hang_peers *all[RANKS_MAX];
    uint32_t heard = 0;

    make_base(RANKS_MAX);
    for (int i = 0; i < RANKS_MAX; i++) {
        all[i] = launcher(i);
    }
    for (uint64_t t = 1; t < 5; t++) {
        for (int i = 0; i < RANKS_MAX; i++) {
            tell(all[i], t * SECOND, true, i);
        }
        for (int i = 0; i < RANKS_MAX; i++) {
            lac_hang_peers_look(all[i], t * SECOND + 1, true);
        }
    }
    while (lac_hang_peers_at(all[0], heard) != NULL) {
        heard++;
    }
    ck_assert_uint_eq(heard, RANKS_MAX - 1);
    ck_assert(lac_hang_peers_judges_all(all[0]));
    ck_assert_ptr_null(lac_hang_peers_judge(all[0]));
    for (int i = 1; i < RANKS_MAX; i++) {
        ck_assert_ptr_nonnull(lac_hang_peers_judge(all[i]));
        ck_assert_ptr_null(lac_hang_peers_at(all[i], 1)); /* it has read one */
    }
    for (int i = 0; i < RANKS_MAX; i++) {
        lac_hang_peers_destroy(all[i]);
    }
    ck_assert(!is_folder_there());
    remove_base();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_peers");
    TCase *const tests = tcase_create("hang_peers");

    tcase_add_test(tests, what_is_told_is_what_is_heard);
    tcase_add_test(tests, a_text_that_is_cut_off_or_wrong_is_none);
    tcase_add_test(tests, life_that_is_not_told_or_wrong_is_progress);
    tcase_add_test(tests, wrong_lines_make_no_process);
    tcase_add_test(tests, more_than_there_is_room_for_and_control_characters);
    tcase_add_test(tests, ranks_are_told_before_workers);
    tcase_add_test(tests, a_question_is_answered_and_nothing_is_left);
    tcase_add_test(tests, files_that_are_anything);
    tcase_add_test(tests, a_folder_that_is_a_link_is_not_ours);
    tcase_add_test(tests, who_is_silent_is_told);
    tcase_add_test(tests, one_of_many_launchers_judges);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
