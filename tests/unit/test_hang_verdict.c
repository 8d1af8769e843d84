/* Whom a job waits for, from what its processes say; and answers that say anything. */

#include "collector/hang/hang_process.h"
#include "collector/hang/hang_verdict.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 4 };

static struct lac_hang_process processes[PROCESSES];
static struct lac_hang_verdict verdict;

static void clear(void)
{
    memset(processes, 0, sizeof(processes));
    for (int i = 0; i < PROCESSES; i++) {
        processes[i].pid = 100 + i;
        processes[i].rank = i;
        processes[i].is_rank = true;
        processes[i].steps = 50;
        processes[i].native.state = 'S';
        processes[i].native.call = "";
        processes[i].collective = "";
        processes[i].text = malloc(LAC_HANG_TEXT_BYTES);
        processes[i].thread_room = LAC_HANG_THREADS;
        processes[i].threads = calloc(LAC_HANG_THREADS, sizeof(*processes[i].threads));
        ck_assert_ptr_nonnull(processes[i].text);
        ck_assert_ptr_nonnull(processes[i].threads);
    }
}

static void done(void)
{
    for (int i = 0; i < PROCESSES; i++) {
        free(processes[i].text);
        free(processes[i].threads);
    }
}

#define C10D "\t/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\n"

/* What a process answers, behind the first line. */
static void answer(struct lac_hang_process *process, const char *text)
{
    (void)snprintf(process->text, LAC_HANG_TEXT_BYTES, "lacuna-stacks 1\n%s", text);
    lac_hang_process_parse(process);
    ck_assert(process->has_answered);
}

static void in_all_reduce(struct lac_hang_process *process)
{
    answer(process, "collective 60 60 1 all_reduce\nthread 100 training MainThread\n"
                    "frame 1500\tall_reduce" C10D "frame 40\tmain\t/home/a/train.py\n"
                    "source dist.all_reduce(loss)\n");
}

START_TEST(the_rank_in_another_collective_is_named_with_its_line)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        in_all_reduce(&processes[i]);
    }
    answer(&processes[2], "collective 60 1 1 barrier\nthread 102 training MainThread\n"
                          "frame 2900\tbarrier" C10D "frame 31\tsave\t/home/a/train.py\n"
                          "source dist.barrier()\nframe 50\tmain\t/home/a/train.py\n");
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, 2);
    ck_assert_str_eq(verdict.where, "/home/a/train.py:31");
    ck_assert_str_eq(verdict.source, "dist.barrier()");
    ck_assert_str_eq(verdict.doing, "rank 2 waits in barrier at train.py:31 (save)");
    ck_assert_ptr_nonnull(strstr(verdict.others, "rank 0 waits in all_reduce at train.py:40"));
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_BLOCKED);
    done();
}
END_TEST

START_TEST(a_rank_outside_of_collectives_is_waited_for)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        in_all_reduce(&processes[i]);
        processes[i].is_busy = true; /* waiting ranks may spin */
    }
    answer(&processes[3], "thread 103 training MainThread\nframe 7\tread\t/home/a/data.py\n"
                          "source file.read()\nframe 40\tmain\t/home/a/train.py\n");
    processes[3].is_busy = false;
    processes[3].native.call = "read";
    (void)snprintf(processes[3].native.file, sizeof(processes[3].native.file), "/data/pipe");
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, 3);
    ck_assert_ptr_nonnull(strstr(verdict.doing, "waits in read of /data/pipe at data.py:7"));
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_BLOCKED);
    /* the same rank computes: that may last */
    processes[3].is_busy = true;
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_BUSY);
    /* it compiles: longer */
    answer(&processes[3], "thread 103 training MainThread\n"
                          "frame 9\tload\t/x/site-packages/torch/_inductor/codecache.py\n"
                          "frame 40\tmain\t/home/a/train.py\n");
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_LONG);
    /* it is stopped, and cannot answer */
    processes[3].has_answered = false;
    processes[3].native.state = 'T';
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, 3);
    ck_assert_ptr_nonnull(strstr(verdict.doing, "is stopped"));
    ck_assert_str_eq(verdict.where, "");
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_BLOCKED);
    done();
}
END_TEST

START_TEST(a_worker_that_makes_a_batch_is_named_for_the_rank_that_waits)
{
    clear();
    answer(&processes[0], "thread 100 training MainThread\n"
                          "frame 1\tget\t/usr/lib/python3.11/queue.py\n"
                          "frame 1120\t_try_get_data\t/x/torch/utils/data/dataloader.py\n"
                          "frame 40\tmain\t/home/a/train.py\n");
    answer(&processes[1], "thread 101 other MainThread\nframe 1\tget\t/usr/lib/python3.11/q.py\n"
                          "frame 1\t_worker_loop\t/x/torch/utils/data/_utils/worker.py\n");
    answer(&processes[2], "thread 102 training MainThread\nframe 12\tdecode\t/home/a/data.py\n"
                          "source while True:\n"
                          "frame 51\tfetch\t/x/torch/utils/data/_utils/fetch.py\n"
                          "frame 1\t_worker_loop\t/x/torch/utils/data/_utils/worker.py\n");
    for (int i = 1; i < 3; i++) {
        processes[i].is_rank = false;
        processes[i].parent = 100;
        processes[i].rank = 0;
    }
    lac_hang_judge(processes, 3, NULL, &verdict);
    ck_assert_int_eq(verdict.pid, 102);
    ck_assert_str_eq(verdict.where, "/home/a/data.py:12");
    ck_assert_ptr_nonnull(strstr(verdict.doing, "rank 0 waits for a batch of its workers"));
    ck_assert_ptr_nonnull(strstr(verdict.doing, "at data.py:12 (decode)"));
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_LOADING);
    done();
}
END_TEST

START_TEST(nobody_trains_and_one_has_ended)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        processes[i].is_rank = false;
    }
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, -1);
    ck_assert_str_eq(verdict.doing, "");
    for (int i = 0; i < PROCESSES; i++) {
        processes[i].is_rank = true;
        in_all_reduce(&processes[i]);
    }
    processes[1].has_ended = true;
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_str_eq(verdict.doing, "rank 1 has ended");
    done();
}
END_TEST

/* An answer may be anything: cut anywhere, or with any byte changed. */
START_TEST(hostile_answers_are_bounded)
{
    static const char text[] =
        "lacuna-stacks 1\ncollective 60 1 1 barrier\nrank 1 4\nthread 100 training MainThread\n"
        "frame 2900\tbarrier\t/a/torch/distributed/distributed_c10d.py\nframe 31\tsave\t/a/t.py\n"
        "source dist.barrier()\n\x1b[31m\nthread x\nframe\nsource\nrank 9 3\nthread -1 other a b "
        "c\n";
    uint64_t random = 88172645463325252u;
    size_t at;

    clear();
    for (size_t length = 0; length < sizeof(text); length++) {
        memcpy(processes[0].text, text, length);
        processes[0].text[length] = '\0';
        lac_hang_process_parse(&processes[0]);
        lac_hang_judge(processes, 1, NULL, &verdict);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(processes[0].text, text, sizeof(text));
        for (int k = 0; k < 3; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            processes[0].text[random % (sizeof(text) - 1)] = (char)(random >> 32);
        }
        lac_hang_process_parse(&processes[0]);
        lac_hang_judge(processes, 1, NULL, &verdict);
        for (const char *c = verdict.doing; *c != '\0'; c++) {
            ck_assert((unsigned char)*c >= ' ');
        }
    }
    /* more threads and frames than are kept */
    at = (size_t)snprintf(processes[0].text, LAC_HANG_TEXT_BYTES, "lacuna-stacks 1\n");
    for (int i = 0; i < 200; i++) {
        at += (size_t)snprintf(processes[0].text + at, LAC_HANG_TEXT_BYTES - at,
                               "thread 5 training a\n");
        for (int k = 0; k < 60 && i == 0; k++) {
            at += (size_t)snprintf(processes[0].text + at, LAC_HANG_TEXT_BYTES - at,
                                   "frame 1\tf\tp\n");
        }
    }
    lac_hang_process_parse(&processes[0]);
    ck_assert_uint_eq(processes[0].thread_count, LAC_HANG_THREADS);
    ck_assert_uint_eq(processes[0].threads[0].frame_count, LAC_HANG_FRAMES);
    done();
}
END_TEST

/* ---- what NCCL says beside */

static struct lac_ras ras;

/* A communicator of `size` ranks of which the one with `pid` has launched one operation fewer. */
static void one_is_behind(uint32_t size, int32_t rank, int32_t pid)
{
    char text[1024];

    (void)snprintf(
        text, sizeof(text),
        "NCCL version 2.27.1 x\n#0-0 (ab) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  %u ranks have launched up to operation 61\n"
        "  Rank 0 -- GPU 0 managed by process 100 on node 10.0.0.2\n"
        "  Rank %d has launched up to operation 60 -- GPU 0 managed by process %d on node "
        "10.0.0.9\n",
        (unsigned)size - 1, (int)rank, (int)pid);
    ck_assert(lac_ras_parse_text(text, strlen(text), &ras));
    ras.communicators[0].size = size;
}

static void waits_for_its_gpu(struct lac_hang_process *process)
{
    answer(process, "thread 100 training MainThread\nframe 44\tmain\t/home/a/train.py\n"
                    "source total += loss.item()\n");
    process->is_busy = true; /* CUDA spins */
    process->native.state = 'R';
}

START_TEST(a_rank_that_spins_on_its_gpu_waits_where_nccl_says_that_it_is_ahead)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        waits_for_its_gpu(&processes[i]);
    }
    answer(&processes[2], "thread 102 training MainThread\nframe 9\tread\t/home/a/data.py\n"
                          "source lock.acquire()\n");
    processes[2].is_busy = false;
    processes[2].native.state = 'S';
    processes[2].native.call = "futex";
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq((int)verdict.kind,
                     (int)LAC_HANG_BUSY); /* that may last, without NCCL's word */
    one_is_behind(PROCESSES, 2, processes[2].pid);
    ck_assert(lac_hang_note_nccl(processes, PROCESSES, &ras));
    lac_hang_judge(processes, PROCESSES, &ras, &verdict);
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_BLOCKED);
    ck_assert_int_eq(verdict.rank, 2);
    ck_assert_str_eq(verdict.nccl, "AllReduce: rank 2 has launched 60, 3 ranks 61");
    ck_assert_ptr_nonnull(strstr(verdict.others, "rank 0 waits in AllReduce at train.py:44"));
    /* the rank behind compiles: it may */
    answer(&processes[2], "thread 102 training MainThread\n"
                          "frame 9\tload\t/x/site-packages/torch/_inductor/codecache.py\n");
    lac_hang_judge(processes, PROCESSES, &ras, &verdict);
    ck_assert_int_eq((int)verdict.kind, (int)LAC_HANG_LONG);
    done();
}
END_TEST

START_TEST(of_ranks_that_all_wait_nccl_knows_who_is_behind)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        in_all_reduce(&processes[i]);
    }
    one_is_behind(PROCESSES, 1, processes[1].pid);
    ck_assert(lac_hang_note_nccl(processes, PROCESSES, &ras));
    lac_hang_judge(processes, PROCESSES, &ras, &verdict);
    ck_assert_int_eq(verdict.rank, 1);
    /* it is on another node */
    one_is_behind(32, 21, 3487984);
    ck_assert(lac_hang_note_nccl(processes, PROCESSES, &ras));
    lac_hang_judge(processes, PROCESSES, &ras, &verdict);
    ck_assert_int_eq(verdict.rank, 21);
    ck_assert_str_eq(verdict.doing,
                     "rank 21 on another node (process 3487984 on 10.0.0.9) does not follow");
    ck_assert_ptr_nonnull(strstr(verdict.others, "rank 0 waits in all_reduce"));
    ck_assert_str_eq(verdict.where, "");
    done();
}
END_TEST

START_TEST(what_nccl_says_of_another_job_is_not_taken)
{
    clear();
    one_is_behind(4, 2, 7);
    for (uint32_t i = 0; i < ras.pid_count; i++) {
        ras.pids[i] += 1000;
    }
    ck_assert(!lac_hang_note_nccl(processes, PROCESSES, &ras));
    for (int i = 0; i < PROCESSES; i++) {
        ck_assert_int_eq((int)processes[i].nccl, (int)LAC_HANG_NCCL_UNKNOWN);
    }
    done();
}
END_TEST

/* Processes of another launcher: its numbers are those of its own host. */
START_TEST(numbers_of_processes_mean_nothing_on_another_host)
{
    clear();
    for (int i = 0; i < PROCESSES; i++) {
        in_all_reduce(&processes[i]);
        processes[i].host = "nid001";
    }
    answer(&processes[2],
           "thread 102 training MainThread\n"
           "frame 9\t_try_get_data\t/x/site-packages/torch/utils/data/dataloader.py\n"
           "frame 40\tmain\t/home/a/train.py\n");
    processes[2].launcher = 3;
    processes[2].host = "nid002";
    processes[3].is_rank = false;
    processes[3].parent = processes[2].pid; /* a worker of somebody on nid001 */
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, 2);
    ck_assert_str_eq(verdict.doing,
                     "rank 2 on nid002 waits for a batch of its workers at train.py:40 (main)");
    processes[3].launcher = 3;
    lac_hang_judge(processes, PROCESSES, NULL, &verdict);
    ck_assert_ptr_nonnull(strstr(verdict.doing, "of which process 103 "));
    done();
}
END_TEST

/* A thousand ranks, as all launchers of a large job have together. */
START_TEST(a_thousand_ranks_are_judged_in_no_time)
{
    enum { MANY = 1024 };
    struct lac_hang_process *const many = calloc(MANY, sizeof(*many));

    ck_assert_ptr_nonnull(many);
    clear();
    in_all_reduce(&processes[0]);
    answer(&processes[1], "collective 60 1 1 barrier\nthread 102 training MainThread\n"
                          "frame 2900\tbarrier" C10D "frame 31\tsave\t/home/a/train.py\n");
    for (int i = 0; i < MANY; i++) {
        many[i] = processes[i == 700];
        many[i].rank = i;
        many[i].launcher = (uint32_t)i;
    }
    lac_hang_judge(many, MANY, NULL, &verdict);
    ck_assert_int_eq(verdict.rank, 700);
    ck_assert_ptr_nonnull(strstr(verdict.others, " and 1020 more"));
    free(many);
    done();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_verdict");
    TCase *const tests = tcase_create("hang_verdict");

    tcase_add_test(tests, the_rank_in_another_collective_is_named_with_its_line);
    tcase_add_test(tests, a_rank_outside_of_collectives_is_waited_for);
    tcase_add_test(tests, a_worker_that_makes_a_batch_is_named_for_the_rank_that_waits);
    tcase_add_test(tests, nobody_trains_and_one_has_ended);
    tcase_add_test(tests, hostile_answers_are_bounded);
    tcase_add_test(tests, a_rank_that_spins_on_its_gpu_waits_where_nccl_says_that_it_is_ahead);
    tcase_add_test(tests, of_ranks_that_all_wait_nccl_knows_who_is_behind);
    tcase_add_test(tests, what_nccl_says_of_another_job_is_not_taken);
    tcase_add_test(tests, numbers_of_processes_mean_nothing_on_another_host);
    tcase_add_test(tests, a_thousand_ranks_are_judged_in_no_time);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
