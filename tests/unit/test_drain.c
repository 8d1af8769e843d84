/* A spool whose process scribbles on it while it is drained (tests/support/changing_spool.h). */
#include "collector/base/monotonic.h"
#include "collector/gather/drain.h"
#include "lacuna/spool.h"
#include "tests/support/changing_spool.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT = 65536, CALLS = 40 };

static char spools[64];
static char output[64];
static struct lac_drain *drain;
static struct lac_drain_counts counts;

static void path_of(char path[128], const char *folder)
{
    (void)snprintf(path, 128, "%s/100-1-0.spool", folder);
}

static void setup(void)
{
    char path[128];
    int fd;

    (void)snprintf(spools, sizeof(spools), "/tmp/lacuna-spools-XXXXXX");
    (void)snprintf(output, sizeof(output), "/tmp/lacuna-output-XXXXXX");
    ck_assert(mkdtemp(spools) != NULL && mkdtemp(output) != NULL);
    path_of(path, spools);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    changing_reset(4);
}

static void teardown(void)
{
    char path[128];

    lac_drain_destroy(drain);
    drain = NULL;
    path_of(path, spools);
    (void)unlink(path);
    path_of(path, output);
    (void)unlink(path);
    (void)rmdir(spools);
    (void)rmdir(output);
}

static void again(void)
{
    teardown();
    setup();
}

static void change(uint32_t after, size_t offset, uint64_t value, uint32_t size_bytes)
{
    ck_assert_uint_lt(changing.change_count, CHANGES_MAX);
    changing.changes[changing.change_count++] =
        (struct change){after, (uint32_t)offset, size_bytes, value};
}

#define CHANGE(after, field, value)                                                                \
    change(after, offsetof(struct lac_spool_header, field), value,                                 \
           sizeof(((struct lac_spool_header *)0)->field))

static void drain_all(void)
{
    drain = lac_drain_create(spools, output);
    ck_assert_ptr_nonnull(drain);
    lac_drain_round(drain, false);
    lac_drain_round(drain, true);
    counts = lac_drain_counts(drain);
}

/* The recording holds whole segments that are some, and its header says how many. @return that */
static uint64_t check_output(void)
{
    static struct lac_spool_header header;
    struct lac_segment_header head;
    char path[128];
    int fd;
    off_t size;

    path_of(path, output);
    fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
    size = lseek(fd, 0, SEEK_END);
    ck_assert(lac_spool_header_check(&header));
    ck_assert_uint_eq(header.segment_bytes, SEGMENT);
    ck_assert_uint_eq(header.segment_count, counts.segments);
    ck_assert_int_eq(size, counts.segments == 0
                               ? (off_t)LAC_SPOOL_HEADER_BYTES
                               : (off_t)(LAC_SPOOL_SEGMENTS_OFFSET + counts.segments * SEGMENT));
    ck_assert_uint_eq(counts.bytes, (uint64_t)size);
    for (uint64_t i = 0; i < counts.segments; i++) {
        ck_assert_int_eq(
            pread(fd, &head, sizeof(head), (off_t)(LAC_SPOOL_SEGMENTS_OFFSET + i * SEGMENT)),
            sizeof(head));
        ck_assert_uint_eq(head.magic, LAC_SEGMENT_MAGIC);
    }
    (void)close(fd);
    return counts.segments;
}

START_TEST(an_honest_spool_is_moved_whole)
{
    drain_all();
    ck_assert_uint_eq(check_output(), 4);
    ck_assert_uint_eq(counts.processes, 1);
    ck_assert_uint_eq(counts.failed_writes + counts.dropped + counts.unopened + counts.damaged, 0);
    ck_assert_uint_eq(changing_header()->free_tail, 3); /* names stay */
}
END_TEST

static uint64_t ended_ns_of_output(void)
{
    struct lac_spool_header header;
    char path[128];
    int fd;

    path_of(path, output);
    fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
    (void)close(fd);
    return header.ended_ns;
}

/* What a process says of it does not count, and neither does the clock of another host. */
START_TEST(when_the_recording_ended_is_said_by_who_copied_the_last_of_it)
{
    const uint64_t begun_ns = lac_monotonic_ns();
    struct timespec wall = {0};
    uint64_t wall_ns;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    changing_header()->ended_ns = 5;
    changing_header()->first =
        (struct lac_sync_point){.ticks = 1, .monotonic_ns = begun_ns, .realtime_ns = wall_ns};
    drain = lac_drain_create(spools, output);
    ck_assert_ptr_nonnull(drain);
    lac_drain_round(drain, false);
    ck_assert_uint_eq(ended_ns_of_output(), 0); /* it goes on */
    lac_drain_round(drain, true);
    ck_assert_uint_ge(ended_ns_of_output(), begun_ns);
    ck_assert_uint_le(ended_ns_of_output(), lac_monotonic_ns());
    again();
    changing_header()->ended_ns = 5;
    changing_header()->first = (struct lac_sync_point){
        .ticks = 1, .monotonic_ns = begun_ns, .realtime_ns = wall_ns - 3600 * 1000000000ull};
    drain_all();
    ck_assert_uint_eq(ended_ns_of_output(), 0);
}
END_TEST

/* Whenever it changes: what was checked once counts. */
START_TEST(sizes_of_segments_that_change_are_not_read_again)
{
    for (uint32_t after = 1; after < CALLS; after++) {
        changing_reset(4);
        CHANGE(after, segment_bytes, 64 << 20);
        drain_all();
        ck_assert_uint_eq(check_output(), 4);
        again();
    }
}
END_TEST

START_TEST(a_count_of_segments_is_bounded_by_the_file)
{
    for (uint32_t after = 1; after < CALLS; after++) {
        changing_reset(4);
        CHANGE(after, segment_count, (uint64_t)1 << 48);
        drain_all();
        ck_assert_uint_eq(check_output(), 4);
        ck_assert_uint_lt(changing.calls, 200);
        again();
    }
}
END_TEST

START_TEST(a_file_that_is_cut_off_gives_what_is_left)
{
    for (uint32_t after = 1; after < CALLS; after++) {
        changing_reset(4);
        change(after, CHANGING_CUT, after % 3 == 0 ? 0 : after * 7777u, 8);
        drain_all();
        ck_assert_uint_le(check_output(), 4);
        again();
    }
}
END_TEST

START_TEST(a_ring_that_lies_is_written_in_bounds)
{
    for (uint32_t after = 1; after < CALLS; after++) {
        changing_reset(4);
        CHANGE(after, free_head, UINT64_MAX - 5);
        CHANGE(after + 1, free_tail, (uint64_t)1 << 63);
        drain_all();
        ck_assert_uint_ge(check_output(), 4);
        again();
    }
}
END_TEST

/* Another life, another kind or no segment at all between the look at its head and the copy. */
START_TEST(a_segment_that_changes_is_copied_as_one_or_not_at_all)
{
    const size_t segment = LAC_SPOOL_SEGMENTS_OFFSET + 2 * SEGMENT;

    for (uint32_t after = 1; after < CALLS; after++) {
        for (unsigned what = 0; what < 3; what++) {
            changing_reset(4);
            if (what == 0) {
                change(after, segment + offsetof(struct lac_segment_header, magic), 0, 4);
            } else if (what == 1) {
                change(after, segment + offsetof(struct lac_segment_header, kind),
                       LAC_SEGMENT_STRINGS, 2);
            } else {
                change(after, segment + offsetof(struct lac_segment_header, sync), 77, 8);
            }
            drain_all();
            ck_assert_uint_ge(check_output(), 3);
            ck_assert_uint_le(counts.segments, 5);
            again();
        }
    }
}
END_TEST

START_TEST(counters_do_not_overflow)
{
    CHANGE(1, dropped_count, UINT64_MAX);
    changing_header()->dropped_count = UINT64_MAX - 1;
    drain_all();
    ck_assert_uint_eq(counts.dropped, UINT64_MAX);
}
END_TEST

START_TEST(what_cannot_be_opened_is_counted)
{
    changing.cannot_open = true;
    drain_all();
    ck_assert_uint_eq(counts.unopened, 1);
    ck_assert_uint_eq(counts.processes, 0);
    changing.cannot_open = false; /* it is tried again */
    lac_drain_round(drain, true);
    counts = lac_drain_counts(drain);
    ck_assert_uint_eq(counts.unopened, 0);
    ck_assert_uint_eq(check_output(), 4);
}
END_TEST

/* The last round moved all of it: its spool is not needed any more. One that failed stays. */
START_TEST(only_spools_that_were_moved_are_removed)
{
    char path[128];

    path_of(path, spools);
    drain_all();
    lac_drain_destroy(drain);
    drain = NULL;
    ck_assert_int_ne(access(path, F_OK), 0);
    again();
    path_of(path, spools);
    drain = lac_drain_create(spools, "/proc/self/no such folder");
    lac_drain_round(drain, true);
    ck_assert_uint_eq(lac_drain_counts(drain).unopened, 1);
    lac_drain_destroy(drain);
    drain = NULL;
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_range_to_capture_that_opened_before_its_spool_was_found_is_recorded)
{
    struct lac_spool_header *const header = changing_header();

    header->captures_begun = 1;
    header->captures_open = 1;
    header->stop = LAC_SPOOL_RECORD;
    drain = lac_drain_create(spools, output);
    ck_assert_ptr_nonnull(drain);
    ck_assert(!lac_drain_follow_captures(drain)); /* of no process yet */
    lac_drain_round(drain, false);
    ck_assert_uint_eq(header->stop, LAC_SPOOL_RECORD);
    ck_assert(lac_drain_follow_captures(drain));
    header->captures_open = 0;
    header->stop = LAC_SPOOL_WAIT;
    lac_drain_want(drain, LAC_SPOOL_RECORD); /* a window that somebody asks for */
    ck_assert_uint_eq(header->stop, LAC_SPOOL_RECORD);
    ck_assert(!lac_drain_follow_captures(drain));
    ck_assert_uint_eq(header->stop, LAC_SPOOL_WAIT);
}
END_TEST

/** A process that recorded beside others opens a range of its own, at any moment. */
START_TEST(a_range_to_capture_that_opens_while_others_end_is_recorded)
{
    for (uint32_t after = 1; after < CALLS; after++) {
        struct lac_spool_header *const header = changing_header();

        drain = lac_drain_create(spools, output);
        lac_drain_round(drain, false);
        header->stop = LAC_SPOOL_RECORD;
        CHANGE(changing.calls + after, captures_begun, 1);
        CHANGE(changing.calls + after, captures_open, 1);
        CHANGE(changing.calls + after, stop, LAC_SPOOL_RECORD); /* where it found WAIT */
        for (int round = 0; round < CALLS && header->captures_open == 0; round++) {
            header->stop = LAC_SPOOL_RECORD;
            (void)lac_drain_follow_captures(drain);
        }
        ck_assert_uint_eq(header->captures_open, 1);
        ck_assert_uint_eq(header->stop, LAC_SPOOL_RECORD);
        again();
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("drain");
    TCase *const tcase = tcase_create("hostile spools");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, an_honest_spool_is_moved_whole);
    tcase_add_test(tcase, when_the_recording_ended_is_said_by_who_copied_the_last_of_it);
    tcase_add_test(tcase, sizes_of_segments_that_change_are_not_read_again);
    tcase_add_test(tcase, a_count_of_segments_is_bounded_by_the_file);
    tcase_add_test(tcase, a_file_that_is_cut_off_gives_what_is_left);
    tcase_add_test(tcase, a_ring_that_lies_is_written_in_bounds);
    tcase_add_test(tcase, a_segment_that_changes_is_copied_as_one_or_not_at_all);
    tcase_add_test(tcase, counters_do_not_overflow);
    tcase_add_test(tcase, what_cannot_be_opened_is_counted);
    tcase_add_test(tcase, only_spools_that_were_moved_are_removed);
    tcase_add_test(tcase, a_range_to_capture_that_opened_before_its_spool_was_found_is_recorded);
    tcase_add_test(tcase, a_range_to_capture_that_opens_while_others_end_is_recorded);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
