/* Files that fill from a source as they are read. */

#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/store/trace/pieces/pieces.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = LAC_PIECE_BYTES };

struct origin {
    uint8_t *bytes;
    uint64_t size;
    unsigned reads, done;
    uint64_t read_bytes;
    bool is_away;
};

static char folder[64];
static char path[96];

static enum lac_status read_origin(void *context, uint64_t offset, void *out, size_t size,
                                   struct lac_error *reterr)
{
    struct origin *const origin = context;

    origin->reads++;
    if (origin->is_away) {
        return lac_fail(reterr, LAC_ERR_IO, 0, "the storage is away");
    }
    ck_assert_uint_gt(size, 0);
    ck_assert_uint_le(offset + size, origin->size);
    origin->read_bytes += size;
    memcpy(out, origin->bytes + offset, size);
    return LAC_OK;
}

static void origin_done(void *context)
{
    ((struct origin *)context)->done++;
}

static void begin(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lacuna-pieces-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/trace.db", folder);
}

static void end(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static struct origin origin_of(uint64_t size)
{
    struct origin origin = {.bytes = malloc(size), .size = size};
    uint32_t state = 7;

    ck_assert_ptr_nonnull(origin.bytes);
    for (uint64_t i = 0; i < size; i++) {
        state = state * 1664525U + 1013904223U;
        origin.bytes[i] = (uint8_t)(state >> 24);
    }
    return origin;
}

static struct lac_pieces *open_pieces(struct origin *origin, size_t first)
{
    const struct lac_pieces_source source = {
        .read = read_origin, .done = origin_done, .context = origin, .size_bytes = origin->size};
    struct lac_error error = {0};
    struct lac_pieces *pieces;

    ck_assert_int_eq(lac_pieces_make(path, &source, origin->bytes, first, &error), LAC_OK);
    pieces = lac_pieces_find(path);
    ck_assert_ptr_nonnull(pieces);
    return pieces;
}

/** Nobody asks the origin any more, which is about to go. */
static void close_pieces(struct lac_pieces *pieces)
{
    lac_pieces_release(pieces);
    lac_pieces_forget(path);
}

static void is_there(const struct origin *origin, uint64_t offset, size_t size)
{
    uint8_t *const got = malloc(size);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_ptr_nonnull(got);
    ck_assert_int_eq(pread(fd, got, size, (off_t)offset), (ssize_t)size);
    ck_assert_mem_eq(got, origin->bytes + offset, size);
    (void)close(fd);
    free(got);
}

START_TEST(what_is_read_is_there_and_little_else)
{
    struct origin origin = origin_of(200 * (uint64_t)PIECE + 123);
    struct lac_pieces *pieces = open_pieces(&origin, 2 * PIECE);
    struct stat info;

    ck_assert(lac_pieces_need(pieces, 100, 1000)); /* known from the start */
    ck_assert_uint_eq(origin.reads, 0);
    ck_assert(lac_pieces_need(pieces, 150 * (uint64_t)PIECE + 5, 4096));
    ck_assert_uint_eq(origin.reads, 1);
    ck_assert_uint_eq(origin.read_bytes, 4 * (uint64_t)PIECE);
    is_there(&origin, 150 * (uint64_t)PIECE + 5, 4096);
    is_there(&origin, 0, 2 * PIECE);
    ck_assert(lac_pieces_need(pieces, 153 * (uint64_t)PIECE, PIECE)); /* came with it */
    ck_assert_uint_eq(origin.reads, 1);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, (off_t)origin.size);
    ck_assert_int_lt(info.st_blocks * 512, 16 * PIECE);
    /* over the edge of what is there, and over the end of the file */
    ck_assert(lac_pieces_need(pieces, 2 * (uint64_t)PIECE - 10, 20));
    is_there(&origin, 2 * (uint64_t)PIECE - 10, 20);
    ck_assert(lac_pieces_need(pieces, origin.size - 5, 4096));
    is_there(&origin, origin.size - 5, 5);
    ck_assert(lac_pieces_need(pieces, origin.size, 4096));
    ck_assert(lac_pieces_need(pieces, origin.size + (UINT64_C(1) << 60), UINT64_MAX / 2));
    ck_assert(lac_pieces_need(pieces, 7, 0));
    lac_pieces_release(pieces);
    ck_assert_uint_eq(origin.done, 0);
    lac_pieces_forget(path);
    ck_assert_uint_eq(origin.done, 1);
    free(origin.bytes);
}
END_TEST

START_TEST(reading_in_order_asks_for_more_at_once)
{
    struct origin origin = origin_of(1000 * (uint64_t)PIECE + 1);
    struct lac_pieces *pieces = open_pieces(&origin, 0);

    for (uint64_t at = 0; at < origin.size; at += 16384) {
        ck_assert(lac_pieces_need(pieces, at, 16384));
    }
    ck_assert_uint_eq(origin.read_bytes, origin.size);
    ck_assert_uint_lt(origin.reads, 25);
    for (uint64_t at = 0; at + PIECE < origin.size; at += 37 * (uint64_t)PIECE) {
        is_there(&origin, at, PIECE);
    }
    ck_assert(lac_pieces_need(pieces, 0, origin.size));
    ck_assert_uint_lt(origin.reads, 25);
    close_pieces(pieces);
    free(origin.bytes);
}
END_TEST

START_TEST(nothing_is_fetched_twice_in_any_order)
{
    struct origin origin = origin_of(300 * (uint64_t)PIECE - 1);
    struct lac_pieces *pieces = open_pieces(&origin, PIECE);
    uint32_t state = 11;

    for (int i = 0; i < 2000; i++) {
        state = state * 1664525U + 1013904223U;
        const uint64_t offset = state % origin.size;
        state = state * 1664525U + 1013904223U;
        const uint64_t most = origin.size - offset;
        uint64_t size = state % (5 * (uint64_t)PIECE) + 1;
        size = size < most ? size : most;
        ck_assert(lac_pieces_need(pieces, offset, size));
        is_there(&origin, offset, (size_t)size);
    }
    ck_assert_uint_le(origin.read_bytes, origin.size - PIECE);
    close_pieces(pieces);
    free(origin.bytes);
}
END_TEST

START_TEST(a_source_that_is_away_is_told_and_asked_again)
{
    struct origin origin = origin_of(50 * (uint64_t)PIECE);
    struct lac_pieces *pieces = open_pieces(&origin, PIECE);
    struct lac_error error = {0};
    char problem[100];

    origin.is_away = true;
    ck_assert(lac_pieces_need(pieces, 10, 10));
    lac_pieces_problem(pieces, problem, sizeof(problem));
    ck_assert_str_eq(problem, "");
    ck_assert(!lac_pieces_need(pieces, 20 * (uint64_t)PIECE, 10));
    lac_pieces_problem(pieces, problem, sizeof(problem));
    ck_assert_str_eq(problem, "the storage is away");
    ck_assert_int_eq(lac_pieces_complete(path, &error), LAC_ERR_IO);
    ck_assert_str_eq(error.message, "the storage is away");
    origin.is_away = false;
    ck_assert(lac_pieces_need(pieces, 20 * (uint64_t)PIECE, 10));
    is_there(&origin, 20 * (uint64_t)PIECE, 10);
    ck_assert_int_eq(lac_pieces_complete(path, &error), LAC_OK);
    is_there(&origin, 0, (size_t)origin.size);
    /* whole: nobody is asked any more */
    origin.is_away = true;
    ck_assert(lac_pieces_need(pieces, 0, origin.size));
    close_pieces(pieces);
    free(origin.bytes);
}
END_TEST

START_TEST(one_that_is_forgotten_reads_what_is_there)
{
    struct origin origin = origin_of(50 * (uint64_t)PIECE);
    struct lac_pieces *pieces = open_pieces(&origin, PIECE);
    struct lac_error error = {0};
    char problem[100];

    lac_pieces_forget(path);
    ck_assert_ptr_null(lac_pieces_find(path));
    ck_assert_int_eq(lac_pieces_complete(path, &error), LAC_OK); /* knows no such file */
    ck_assert(lac_pieces_need(pieces, 0, PIECE));
    ck_assert(!lac_pieces_need(pieces, 40 * (uint64_t)PIECE, 1));
    ck_assert_uint_eq(origin.reads, 0);
    lac_pieces_problem(pieces, problem, sizeof(problem));
    ck_assert_str_eq(problem, "the trace was changed or deleted");
    ck_assert_uint_eq(origin.done, 0);
    lac_pieces_release(pieces);
    ck_assert_uint_eq(origin.done, 1);
    lac_pieces_forget(path);
    lac_pieces_release(NULL);
    free(origin.bytes);
}
END_TEST

START_TEST(a_file_that_cannot_be_made_is_told)
{
    struct origin origin = origin_of(PIECE);
    const struct lac_pieces_source source = {
        .read = read_origin, .done = origin_done, .context = &origin, .size_bytes = origin.size};
    struct lac_pieces *pieces = open_pieces(&origin, PIECE);
    struct lac_error error = {0};

    ck_assert_int_eq(lac_pieces_make(path, &source, origin.bytes, PIECE, &error), LAC_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "trace.db: File exists"));
    ck_assert_uint_eq(origin.done, 0); /* stays the caller's */
    is_there(&origin, 0, PIECE);       /* and the one that was there is as it was */
    ck_assert_int_eq(lac_pieces_make("/nowhere/x.db", &source, NULL, 0, &error), LAC_ERR_IO);
    close_pieces(pieces);
    free(origin.bytes);
}
END_TEST

struct reader {
    struct lac_pieces *pieces;
    const struct origin *origin;
    uint32_t state;
};

static void *read_much(void *context)
{
    struct reader *const reader = context;

    for (int i = 0; i < 300; i++) {
        reader->state = reader->state * 1664525U + 1013904223U;
        const uint64_t offset = reader->state % (reader->origin->size - 4096);
        ck_assert(lac_pieces_need(reader->pieces, offset, 4096));
        is_there(reader->origin, offset, 4096);
    }
    return NULL;
}

START_TEST(many_may_read_at_a_time)
{
    struct origin origin = origin_of(100 * (uint64_t)PIECE);
    struct lac_pieces *pieces = open_pieces(&origin, 0);
    pthread_t threads[4];
    struct reader readers[4];

    for (size_t i = 0; i < LAC_COUNT_OF(threads); i++) {
        readers[i] =
            (struct reader){.pieces = pieces, .origin = &origin, .state = (uint32_t)i * 77};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_much, &readers[i]), 0);
    }
    for (size_t i = 0; i < LAC_COUNT_OF(threads); i++) {
        (void)pthread_join(threads[i], NULL);
    }
    ck_assert_uint_le(origin.read_bytes, origin.size);
    close_pieces(pieces);
    free(origin.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pieces");
    TCase *tcase = tcase_create("pieces");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, what_is_read_is_there_and_little_else);
    tcase_add_test(tcase, reading_in_order_asks_for_more_at_once);
    tcase_add_test(tcase, nothing_is_fetched_twice_in_any_order);
    tcase_add_test(tcase, a_source_that_is_away_is_told_and_asked_again);
    tcase_add_test(tcase, one_that_is_forgotten_reads_what_is_there);
    tcase_add_test(tcase, a_file_that_cannot_be_made_is_told);
    tcase_add_test(tcase, many_may_read_at_a_time);
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
