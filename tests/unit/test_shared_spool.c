/* A spool in a real file that its process cuts off, replaces or damages. */
#include "collector/base/count_of.h"
#include "collector/gather/shared_spool.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"
#include "tests/support/made_spool.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];
static int fd;
static struct lac_shared_spool spool;
static struct lac_spool_header header;

static void setup(void)
{
    static char bytes[65536 * 2];
    const int made = lac_made_spool((const uint8_t *)"\1\1\0\0\0\0\0\0\0", 9);
    ssize_t got;

    (void)snprintf(path, sizeof(path), "/tmp/lacuna-spool-XXXXXX");
    fd = mkstemp(path);
    got = pread(made, bytes, sizeof(bytes), 0);
    ck_assert(fd >= 0 && got > (ssize_t)LAC_SPOOL_HEADER_BYTES &&
              write(fd, bytes, (size_t)got) == got);
    (void)close(made);
}

static void teardown(void)
{
    lac_shared_close(&spool);
    (void)close(fd);
    (void)unlink(path);
}

static void put(size_t offset, const void *bytes, size_t size)
{
    ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
}

static enum lac_shared_opening open_it(void)
{
    return lac_shared_open(&spool, path, true, &header);
}

START_TEST(what_changes_is_looked_at_and_told)
{
    const uint64_t steps = 12;
    uint32_t value = 0;

    ck_assert_int_eq(open_it(), LAC_SHARED_OPENED);
    put(offsetof(struct lac_spool_header, step_count), &steps, sizeof(steps));
    ck_assert_uint_eq(lac_shared_look(&spool).step_count, steps);
    lac_shared_tell(&spool, LAC_SPOOL_PAUSE);
    lac_shared_give(&spool, 65, 7);
    ck_assert_int_eq(pread(fd, &value, 4, offsetof(struct lac_spool_header, stop)), 4);
    ck_assert_uint_eq(value, LAC_SPOOL_PAUSE);
    ck_assert_int_eq(pread(fd, &value, 4, offsetof(struct lac_spool_header, free_ring) + 4), 4);
    ck_assert_uint_eq(value, 7);
    ck_assert_int_eq(pread(fd, &value, 4, offsetof(struct lac_spool_header, free_tail)), 4);
    ck_assert_uint_eq(value, 66);
}
END_TEST

START_TEST(a_file_that_is_cut_off_reads_as_empty)
{
    const uint64_t count = 3;
    char byte;

    put(offsetof(struct lac_spool_header, segment_count), &count, sizeof(count));
    ck_assert_int_eq(open_it(), LAC_SHARED_OPENED);
    ck_assert_uint_eq(lac_shared_look(&spool).segment_count, 3);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_uint_eq(lac_shared_look(&spool).segment_count, 0);
    lac_shared_tell(&spool, LAC_SPOOL_STOP);
    lac_shared_give(&spool, 0, 0);
    ck_assert_uint_eq(lac_shared_size(&spool), 0);
    ck_assert(!lac_shared_read(&spool, &byte, 1, 0));
}
END_TEST

static volatile sig_atomic_t heard;

static void on_bus(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    (void)context;
    heard = 1;
}

START_TEST(a_signal_of_others_goes_where_it_went_before)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};

    action.sa_sigaction = on_bus;
    ck_assert_int_eq(sigaction(SIGBUS, &action, NULL), 0);
    ck_assert_int_eq(open_it(), LAC_SHARED_OPENED);
    ck_assert_int_eq(raise(SIGBUS), 0);
    ck_assert_int_eq(heard, 1);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* which ends with a status of its own */
START_TEST(a_signal_that_ended_us_still_does)
{
    ck_assert_int_eq(open_it(), LAC_SHARED_OPENED);
    (void)unlink(path);
    (void)raise(SIGBUS);
}
END_TEST
#endif

START_TEST(what_is_no_spool_is_told_apart)
{
    const uint32_t sizes[] = {0, 1, 65535, (16 << 20) + 65536, UINT32_MAX};

    for (size_t i = 0; i < LAC_COUNT_OF(sizes); i++) {
        put(offsetof(struct lac_spool_header, segment_bytes), &sizes[i], 4);
        ck_assert_int_eq(open_it(), LAC_SHARED_NOT_OURS);
        ck_assert(spool.fd < 0 && spool.shared == NULL);
    }
    put(0, "\0\0\0\0\0\0\0\0", 8);
    ck_assert_int_eq(open_it(), LAC_SHARED_NOT_YET);
    ck_assert_int_eq(ftruncate(fd, 8191), 0);
    ck_assert_int_eq(open_it(), LAC_SHARED_NOT_YET);
    (void)unlink(path);
    ck_assert_int_eq(open_it(), LAC_SHARED_NO_ACCESS);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
    ck_assert_int_eq(open_it(), LAC_SHARED_NOT_OURS);
    (void)unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(open_it(), LAC_SHARED_NOT_OURS);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("shared_spool");
    TCase *const tcase = tcase_create("one file");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_changes_is_looked_at_and_told);
    tcase_add_test(tcase, a_file_that_is_cut_off_reads_as_empty);
    tcase_add_test(tcase, a_signal_of_others_goes_where_it_went_before);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test_raise_signal(tcase, a_signal_that_ended_us_still_does, SIGBUS);
#endif
    tcase_add_test(tcase, what_is_no_spool_is_told_apart);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
