/* collector/hang: what dumps of PyTorch's flight recorder and NVML say of a job that stands still. */

#include "collector/base/io_full.h"
#include "collector/hang/hang_dumps.h"
#include "collector/hang/hang_flight.h"
#include "collector/hang/hang_gpus.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char bytes[65536];
static char text[512];
static struct lac_flight flights[3];

/* The dump of a rank, as the files of the corpus have it. */
static void load(int32_t rank)
{
    char path[64];
    int fd;
    int64_t size;

    (void)snprintf(path, sizeof(path), "tests/fuzz/corpus/hang_pickle/flight-%d", (int)rank);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    size = lac_read_full(fd, bytes, sizeof(bytes));
    (void)close(fd);
    flights[rank].rank = rank;
    ck_assert(lac_flight_read(bytes, (size_t)size, &flights[rank]));
}

START_TEST(a_dump_says_in_which_collective_a_rank_waits)
{
    load(0);
    load(1);
    lac_flight_say(&flights[0], text, sizeof(text));
    ck_assert_str_eq(text, "rank 0 waits in nccl:all_reduce, number 61 of default_pg, [4096, 1024] "
                           "Float, started");
    lac_flight_say(&flights[1], text, sizeof(text));
    ck_assert_str_eq(text, "rank 1 called last nccl:all_reduce, number 60 of default_pg, [4096, "
                           "1024] Float, completed");
    ck_assert(lac_flight_compare(flights, 2, text, sizeof(text)));
    ck_assert_str_eq(text, "rank 1 has not called number 61 of default_pg (nccl:all_reduce), in "
                           "which rank 0 waits");
    ck_assert(!lac_flight_compare(flights, 1, text, sizeof(text)));
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(two_operations_under_one_number_are_told)
{
    load(0);
    load(2);
    flights[1] = flights[2];
    ck_assert(lac_flight_compare(flights, 2, text, sizeof(text)));
    ck_assert_str_eq(text, "number 61 of default_pg is nccl:all_reduce on rank 0 and "
                           "nccl:_all_gather_base on rank 2");
    flights[1] = flights[0];
    ck_assert(!lac_flight_compare(flights, 2, text, sizeof(text)));
}
END_TEST

START_TEST(a_file_that_is_no_dump_is_none)
{
    static const char list[] = "\x80\x02]."; /* a pickle of something else */

    ck_assert(!lac_flight_read("", 0, &flights[0]));
    ck_assert(!lac_flight_read(list, sizeof(list) - 1, &flights[0]));
    load(0);
    for (size_t cut = 0; cut < 1000; cut += 7) {
        ck_assert(!lac_flight_read(bytes, cut, &flights[0]));
    }
}
END_TEST

static void write_file(const char *path, const void *content, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, size), (ssize_t)size);
    (void)close(fd);
}

/* Where PyTorch has been told to write; an old dump, a link or a folder in its place are none. */
START_TEST(dumps_are_found_where_pytorch_is_told_to_write_them)
{
    char folder[] = "/tmp/lacuna-test-XXXXXX";
    char prefix[64];
    char path[80];
    char other[80];
    char got[8];
    const int64_t now_s = (int64_t)time(NULL);
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(prefix, sizeof(prefix), "%s/rank_", folder);
    (void)snprintf(path, sizeof(path), "%s0", prefix);
    (void)snprintf(other, sizeof(other), "%s0.pipe", prefix);
    (void)unsetenv("TORCH_FR_DUMP_TEMP_FILE");
    (void)setenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", prefix, 1);
    load(0);
    write_file(path, bytes, 4096); /* what lies behind the pickle does not matter */
    ck_assert(lac_hang_dumps_read(0, now_s - 5, &flights[1]));
    lac_flight_say(&flights[1], text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "rank 0 waits in nccl:all_reduce"));
    ck_assert(!lac_hang_dumps_read(0, now_s + 3600, &flights[1])); /* of an earlier hang */
    write_file(path, bytes, 100);                                  /* while it is being written */
    ck_assert(!lac_hang_dumps_read(0, now_s - 5, &flights[1]));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!lac_hang_dumps_read(0, now_s - 5, &flights[1]));
    ck_assert_int_eq(symlink("tests/fuzz/corpus/hang_pickle/flight-0", path), 0);
    ck_assert(!lac_hang_dumps_read(0, 0, &flights[1]));
    ck_assert_int_eq(unlink(path), 0);
    /* the pipe: asked only where it is one, and somebody reads */
    (void)setenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", prefix, 1);
    ck_assert(!lac_hang_dumps_ask(0));
    write_file(other, "", 0);
    ck_assert(!lac_hang_dumps_ask(0));
    ck_assert_int_eq(unlink(other), 0);
    ck_assert_int_eq(mkfifo(other, 0600), 0);
    ck_assert(!lac_hang_dumps_ask(0));
    fd = open(other, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(lac_hang_dumps_ask(0));
    ck_assert_int_eq(read(fd, got, sizeof(got)), 2);
    (void)close(fd);
    ck_assert_int_eq(unlink(other), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* ---- GPUs */

static struct lac_gpu_now gpu(unsigned index, double busy, double memory)
{
    return (struct lac_gpu_now){.index = index,
                                .busy_pct = busy,
                                .memory_pct = memory,
                                .sm_mhz = 1980,
                                .power_w = 131.4,
                                .memory_used_mb = 71234,
                                .memory_total_mb = 85000,
                                .clocks_held = 0x1,
                                .processes = 2};
}

static const char *said_of(const struct lac_gpu_now *gpus, unsigned count)
{
    lac_hang_say_gpus(gpus, count, text, sizeof(text));
    return text;
}

START_TEST(a_gpu_that_spins_is_told_from_one_that_is_idle)
{
    struct lac_gpu_now gpus[4] = {gpu(0, 100, 0), gpu(1, 100, 1), gpu(2, 99, 2), gpu(3, 100, 0)};
    const struct lac_gpu_now unknown = {(unsigned)-1, (double)NAN, (double)NAN,
                                        (double)NAN,  (double)NAN, (double)NAN,
                                        (double)NAN,  (double)NAN, 0};

    ck_assert_str_eq(said_of(gpus, 4),
                     "all GPUs are busy, hardly with their memory: a kernel spins");
    ck_assert_str_eq(said_of(gpus, 1), "the GPU is busy, hardly with its memory: a kernel spins");
    gpus[2] = gpu(2, 0, 0);
    ck_assert_str_eq(said_of(gpus, 4), "GPU 2 is idle, 3 others are busy");
    gpus[3] = gpu(3, 0, 0);
    ck_assert_str_eq(said_of(gpus, 4), "2 GPUs are idle, 2 are busy");
    gpus[0] = gpus[1] = gpu(0, 1, 0);
    ck_assert_str_eq(said_of(gpus, 4), "all GPUs are idle");
    gpus[0] = gpu(0, 100, 40);
    ck_assert_str_eq(said_of(gpus, 1), "the GPU is busy");
    gpus[0] = gpu(0, 50, 40); /* neither */
    ck_assert_str_eq(said_of(gpus, 1), "");
    ck_assert_str_eq(said_of(&unknown, 1), "");
    ck_assert_str_eq(said_of(NULL, 0), "");
    lac_hang_say_gpu(&unknown, text, sizeof(text));
    ck_assert_str_eq(text, "");
    gpus[0] = gpu(0, 100, 0);
    lac_hang_say_gpu(&gpus[0], text, sizeof(text));
    ck_assert_str_eq(text, "100 % busy, memory 0 %, 1980 MHz, 131 W, 71.2 of 85.0 GB used, 2 "
                           "processes");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("hang_evidence");
    TCase *const tcase = tcase_create("all");

    tcase_add_test(tcase, a_dump_says_in_which_collective_a_rank_waits);
    tcase_add_test(tcase, two_operations_under_one_number_are_told);
    tcase_add_test(tcase, a_file_that_is_no_dump_is_none);
    tcase_add_test(tcase, dumps_are_found_where_pytorch_is_told_to_write_them);
    tcase_add_test(tcase, a_gpu_that_spins_is_told_from_one_that_is_idle);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
