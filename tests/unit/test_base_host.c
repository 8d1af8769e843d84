/* collector/base: what asks the system, for files, limits and memory. */

#include "collector/base/cgroup.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"
#include "collector/base/reserve.h"
#include "tests/support/check_main.h"
#include "tests/support/made_file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void begin(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/test_base_host.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void end(void)
{
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Lay out one file of a machine. */
static void put(const char *path, const char *text)
{
    make_file(root, path, text);
}

/* -- control groups -----------------------------------------------------------------------------*/

START_TEST(the_least_limit_above_a_process_holds)
{
    int version = -1;

    put("/proc/self/cgroup", "0::/system.slice/lacuna.service\n");
    put("/sys/fs/cgroup/memory.max", "900000000000\n");
    put("/sys/fs/cgroup/system.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/system.slice/lacuna.service/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/system.slice/lacuna.service/cpu.max", "max 100000\n");
    ck_assert_uint_eq(lac_cgroup_memory_limit(root), (uint64_t)1 << 31);
    ck_assert_double_eq_tol(lac_cgroup_cpu_quota(root, &version), 1.5, 1e-9);
    ck_assert_int_eq(version, 2);
    put("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n"); /* less than its own */
    ck_assert_uint_eq(lac_cgroup_memory_limit(root), (uint64_t)1 << 30);
}
END_TEST

START_TEST(in_a_container_the_mount_is_the_group)
{
    int version = -1;

    put("/proc/self/cgroup", "0::/kubepods/pod1/abc\n"); /* the host's path, not visible here */
    put("/sys/fs/cgroup/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 10\nnr_throttled 3\n"
                                   "throttled_usec 7\n");
    struct lac_cgroup_throttling throttling;

    ck_assert_uint_eq(lac_cgroup_memory_limit(root), (uint64_t)1 << 32);
    ck_assert_double_eq_tol(lac_cgroup_cpu_quota(root, &version), 2, 1e-9);
    ck_assert(lac_cgroup_throttling(root, &throttling));
    ck_assert_uint_eq(throttling.periods, 10);
    ck_assert_uint_eq(throttling.throttled_periods, 3);
    ck_assert_uint_eq(throttling.throttled_ns, 7000);
}
END_TEST

START_TEST(version_1_has_a_hierarchy_for_each_controller)
{
    struct lac_cgroup_throttling throttling;
    int version = -1;

    put("/proc/self/cgroup", "9:name=systemd:/x\n5:memory:/docker/1\n4:cpuset:/none\n"
                             "3:cpu,cpuacct:/docker/1\n0::/y\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1000000\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/docker/1/cpu.stat", "nr_periods 2\nnr_throttled 1\nthrottled_time 9\n");
    put("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(lac_cgroup_memory_limit(root), 1000000);
    ck_assert_double_eq_tol(lac_cgroup_cpu_quota(root, &version), 0.5, 1e-9);
    ck_assert_int_eq(version, 1);
    ck_assert(lac_cgroup_throttling(root, &throttling));
    ck_assert_uint_eq(throttling.throttled_ns, 9);
}
END_TEST

START_TEST(what_is_not_there_limits_nothing)
{
    static const char *const texts[] = {
        "", "\n", "0", "0:", "0::", "0::\n", ":::\n", "0::/../..\n", "0::/a/../../../etc\n", "x"};
    struct lac_cgroup_throttling throttling;
    char long_path[9000];
    int version = -1;

    ck_assert_uint_eq(lac_cgroup_memory_limit(root), 0); /* no file at all */
    ck_assert_double_eq_tol(lac_cgroup_cpu_quota(root, &version), 0, 1e-9);
    ck_assert_int_eq(version, 0);
    ck_assert(!lac_cgroup_throttling(root, &throttling));
    put("/sys/fs/cgroup/memory.max", "not a number\n");
    put("/sys/fs/cgroup/cpu.max", "5\n");
    put("/sys/fs/memory.max", "17\n"); /* outside the mount */
    put("/etc/memory.max", "17\n");
    for (size_t i = 0; i < LAC_COUNT_OF(texts); i++) {
        put("/proc/self/cgroup", texts[i]);
        ck_assert_uint_eq(lac_cgroup_memory_limit(root), 0);
        ck_assert_double_eq_tol(lac_cgroup_cpu_quota(root, &version), 0, 1e-9);
        ck_assert(!lac_cgroup_throttling(root, &throttling));
    }
    memset(long_path, 'a', sizeof(long_path));
    memcpy(long_path, "0::/", 4);
    long_path[sizeof(long_path) - 1] = '\0';
    put("/proc/self/cgroup", long_path);
    ck_assert_uint_eq(lac_cgroup_memory_limit(root), 0);
}
END_TEST

/* -- reading and writing ------------------------------------------------------------------------*/

static void on_alarm(int number)
{
    (void)number;
}

/* A pipe gives a part at a time, and signals come between. */
START_TEST(all_of_it_is_read_and_written_whatever_comes_between)
{
    enum { BYTES = 3 << 20 };
    uint8_t *const bytes = malloc(BYTES);
    uint8_t *const read_back = malloc(BYTES + 1);
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART: EINTR */
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    int ends[2];
    pid_t child;
    int status = -1;

    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 4099);
    }
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    if (child == 0) {
        (void)close(ends[0]);
        _exit(lac_write_full(ends[1], bytes, BYTES) ? 0 : 1);
    }
    (void)close(ends[1]);
    ck_assert_int_eq(lac_read_full(ends[0], read_back, BYTES + 1), BYTES);
    (void)setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_mem_eq(bytes, read_back, BYTES);
    (void)close(ends[0]);
    free(bytes);
    free(read_back);
}
END_TEST

START_TEST(what_cannot_be_read_or_written_says_so)
{
    char path[100];
    char bytes[16] = "0123456789abcde";
    int fd;

    put("/file", "0123456789");
    (void)snprintf(path, sizeof(path), "%s/file", root);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(lac_read_full_at(fd, bytes, 4, 8), 2);
    ck_assert(lac_file_read_at(fd, bytes, 4, 6) && memcmp(bytes, "6789", 4) == 0);
    ck_assert(!lac_file_read_at(fd, bytes, 4, 7));
    ck_assert(lac_file_write_at(fd, "xyz", 3, 9));
    ck_assert_int_eq(lac_read_full_at(fd, bytes, sizeof(bytes), 9), 3);
    ck_assert_mem_eq(bytes, "xyz", 3);
    (void)close(fd);
    ck_assert_int_eq(lac_read_full(fd, bytes, 1), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert(!lac_write_full(fd, bytes, 1));
    ck_assert_int_eq(errno, EBADF);
    fd = open("/dev/full", O_WRONLY);
    if (fd >= 0) {
        ck_assert(!lac_write_full(fd, bytes, 1));
        ck_assert_int_eq(errno, ENOSPC);
        ck_assert(lac_write_full(fd, bytes, 0));
        (void)close(fd);
    }
}
END_TEST

START_TEST(a_small_file_is_text)
{
    char path[100];
    char text[8];

    put("/facts", "MemTotal:  12 kB\nMem 7\n\tx\nMemFree:\t5\nlast 9");
    (void)snprintf(path, sizeof(path), "%s/facts", root);
    ck_assert_uint_eq(lac_read_text(path, text, sizeof(text)), 7); /* cut, and ends in a NUL */
    ck_assert_str_eq(text, "MemTota");
    ck_assert_uint_eq(lac_read_text("/nonexistent", text, sizeof(text)), 0);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(lac_read_text(root, text, sizeof(text)), 0); /* a folder */
    char whole[100];

    ck_assert_uint_gt(lac_read_text(path, whole, sizeof(whole)), 7);
    ck_assert_uint_eq(lac_text_number(whole, "MemTotal", 1), 12);
    ck_assert_uint_eq(lac_text_number(whole, "Mem", 1), 7); /* a whole word */
    ck_assert_uint_eq(lac_text_number(whole, "MemFree", 1), 5);
    ck_assert_uint_eq(lac_text_number(whole, "last", 1), 9);
    ck_assert_uint_eq(lac_text_number(whole, "x", 1), 1); /* not at the start of its line */
}
END_TEST

/* -- arrays -------------------------------------------------------------------------------------*/

static void leads(const char *path, const char *expected, bool is_in_place)
{
    char from[256], to[256], out[256];
    bool is = !is_in_place;

    (void)snprintf(from, sizeof(from), "%s/%s", root, path);
    (void)snprintf(to, sizeof(to), "%s/%s", root, expected);
    ck_assert(lac_path_to_write(from, out, sizeof(out), &is));
    ck_assert_str_eq(out, to);
    ck_assert(is == is_in_place);
}

static void link_to(const char *target, const char *path)
{
    char full[256];

    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    ck_assert_int_eq(symlink(target, full), 0);
}

START_TEST(a_path_to_write_is_where_its_links_lead)
{
    char out[256];
    bool is_in_place;

    put("/file", "text");
    (void)snprintf(out, sizeof(out), "%s/pipe", root);
    ck_assert_int_eq(mkfifo(out, 0600), 0);
    link_to("file", "one");
    link_to("./one", "two");
    link_to("new", "to_nothing");
    link_to("pipe", "to_pipe");
    link_to("round", "round");
    leads("file", "file", false);
    leads("new", "new", false);
    leads("two", "./file", false);
    leads("to_nothing", "new", false);
    leads("pipe", "pipe", true);
    leads("to_pipe", "to_pipe", true);
    leads(".", ".", true);
    (void)snprintf(out, sizeof(out), "%s/to_absolute", root);
    ck_assert_int_eq(symlink("/dev/null", out), 0);
    leads("to_absolute", "to_absolute", true);
    (void)snprintf(out, sizeof(out), "%s/round", root);
    char small[8];
    ck_assert(!lac_path_to_write(out, small, sizeof(small), &is_in_place));
    char back[256];
    ck_assert(!lac_path_to_write(out, back, sizeof(back), &is_in_place));
    ck_assert_int_eq(errno, ELOOP);
    (void)snprintf(out, sizeof(out), "%s/file/below", root);
    ck_assert(!lac_path_to_write(out, back, sizeof(back), &is_in_place));
    ck_assert_int_eq(errno, ENOTDIR);
    (void)snprintf(out, sizeof(out), "%s/one", root);
    ck_assert(!lac_path_to_write(out, small, sizeof(small), &is_in_place));
    ck_assert_int_eq(errno, ENAMETOOLONG);
}
END_TEST

START_TEST(an_array_grows_and_keeps_what_it_has)
{
    uint64_t *wide = NULL;
    uint64_t wide_capacity = 0;
    uint8_t *narrow = NULL;
    uint32_t narrow_capacity = 0;

    for (uint64_t i = 0; i < 100000; i++) {
        ck_assert(LAC_RESERVE(wide, wide_capacity, i, 1));
        ck_assert(LAC_RESERVE(narrow, narrow_capacity, i, 1));
        ck_assert_uint_ge(wide_capacity, i + 1);
        ck_assert_uint_ge(narrow_capacity, i + 1);
        wide[i] = i * 3;
        narrow[i] = (uint8_t)(i * 5);
    }
    for (uint64_t i = 0; i < 100000; i++) {
        ck_assert_uint_eq(wide[i], i * 3);
        ck_assert_uint_eq(narrow[i], (uint8_t)(i * 5));
    }
    ck_assert_uint_le(wide_capacity, 200000); /* no more than twice */
    const uint64_t before = wide_capacity;
    ck_assert(LAC_RESERVE(wide, wide_capacity, 0, before)); /* enough is there */
    ck_assert_uint_eq(wide_capacity, before);
    ck_assert(LAC_RESERVE(wide, wide_capacity, before, 1000000));
    ck_assert_uint_ge(wide_capacity, before + 1000000);
    free(wide);
    free(narrow);
}
END_TEST

/* A mapping that was advised in part is moved by copying: each page of it would be faulted anew. */
START_TEST(a_large_array_still_moves_without_a_copy)
{
    enum { BYTES = 64 << 20 };
    uint8_t *bytes = NULL;
    uint64_t capacity = 0;
    struct rusage before;
    struct rusage after;

    ck_assert(LAC_RESERVE(bytes, capacity, 0, BYTES));
    memset(bytes, 7, BYTES);
    (void)getrusage(RUSAGE_SELF, &before);
    errno = EDOM;
    ck_assert(LAC_RESERVE(bytes, capacity, BYTES, 1));
    ck_assert_int_eq(errno, EDOM);
    (void)getrusage(RUSAGE_SELF, &after);
    ck_assert_uint_eq(bytes[0] + bytes[BYTES - 1], 14);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(after.ru_minflt - before.ru_minflt, 16);
#endif
    free(bytes);
    ck_assert_ptr_null(lac_huge_pages(NULL, BYTES));
}
END_TEST

START_TEST(an_array_that_cannot_grow_stays_as_it_was)
{
    uint64_t *array = NULL;
    uint64_t capacity = 0;
    uint32_t small = 0;
    volatile uint32_t most = UINT32_MAX;

    ck_assert(LAC_RESERVE(array, capacity, 0, 1));
    array[0] = 7;
    const uint64_t before = capacity;
    uint64_t *const place = array;

    ck_assert(!LAC_RESERVE(array, capacity, 1, UINT64_MAX / 4)); /* its bytes overflow */
    ck_assert(!LAC_RESERVE(array, small, most, 1));              /* cannot be counted */
    ck_assert(array == place && array[0] == 7 && capacity == before && small == 0);
    free(array);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("base_host");
    TCase *const tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, the_least_limit_above_a_process_holds);
    tcase_add_test(tcase, in_a_container_the_mount_is_the_group);
    tcase_add_test(tcase, version_1_has_a_hierarchy_for_each_controller);
    tcase_add_test(tcase, what_is_not_there_limits_nothing);
    tcase_add_test(tcase, all_of_it_is_read_and_written_whatever_comes_between);
    tcase_add_test(tcase, what_cannot_be_read_or_written_says_so);
    tcase_add_test(tcase, a_small_file_is_text);
    tcase_add_test(tcase, a_path_to_write_is_where_its_links_lead);
    tcase_add_test(tcase, an_array_grows_and_keeps_what_it_has);
    tcase_add_test(tcase, a_large_array_still_moves_without_a_copy);
    tcase_add_test(tcase, an_array_that_cannot_grow_stays_as_it_was);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
