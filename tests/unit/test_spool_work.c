/* Recordings made to be hard work: what they cost is bounded by their bytes, and nothing of them
 * lies under a name. CPU time, which other programs do not stretch; what these guard against takes
 * tens of seconds. */

#include "analysis/import/import.h"
#include "analysis/model/model.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 1 << 20, CPU_SECONDS_MAX = 4 };

static uint8_t *bundle;
static size_t used, capacity;
static uint32_t segment_count;
static char folder[64];

static void put(const void *bytes, size_t size)
{
    if (used + size > capacity) {
        capacity = 2 * (used + size);
        bundle = realloc(bundle, capacity);
        ck_assert_ptr_nonnull(bundle);
    }
    if (size > 0) {
        memcpy(bundle + used, bytes, size);
    }
    used += size;
}

static void put_part(const char *name, uint64_t offset, const void *data, uint32_t size_bytes)
{
    const struct lac_bundle_part part = {.magic = LAC_BUNDLE_PART_MAGIC,
                                         .name_bytes = (uint32_t)strlen(name),
                                         .size_bytes = size_bytes,
                                         .data_bytes = size_bytes,
                                         .offset = offset};

    put(&part, sizeof(part));
    put(name, strlen(name));
    put(data, size_bytes);
}

static void begin(void)
{
    static struct lac_spool_header header;

    used = 0;
    segment_count = 0;
    put(LAC_BUNDLE_MAGIC, 8);
    header = (struct lac_spool_header){.version = LAC_SPOOL_VERSION,
                                       .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                       .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                       .segment_bytes = SEGMENT_BYTES,
                                       .clock = LAC_SPOOL_CLOCK_MONOTONIC,
                                       .pid = 42,
                                       .dropped_count = UINT64_MAX,
                                       .named_count = 1,
                                       .first = {1000, 1000, 2000}};
    memcpy(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic));
    put_part("1.spool", 0, &header, 4096);
}

/* Records in as many segments as they need. */
static void put_records(uint16_t kind, const void *records, size_t size)
{
    const size_t room = SEGMENT_BYTES - LAC_SEGMENT_HEADER_BYTES;
    const size_t step = room / 48 * 48; /* whole records of either kind */

    for (size_t at = 0; at < size; at += step) {
        const uint32_t length = (uint32_t)(size - at < step ? size - at : step);
        const struct lac_segment_header head = {.magic = LAC_SEGMENT_MAGIC,
                                                .kind = kind,
                                                .tid = 42,
                                                .seq = segment_count,
                                                .external_count = 1,
                                                .sync = {1000, 1000 + segment_count, 2000}};
        const uint64_t offset = LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)segment_count * SEGMENT_BYTES;

        put_part("1.spool", offset, &head, sizeof(head));
        put_part("1.spool", offset + sizeof(head), (const uint8_t *)records + at, length);
        segment_count++;
    }
    put_part("1.spool", LAC_SPOOL_SEGMENTS_OFFSET + (uint64_t)segment_count * SEGMENT_BYTES, NULL,
             0);
}

struct result {
    uint64_t slices, dropped;
    bool is_named; /* something of it lay in the temporary folder */
};

static enum lac_status look(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct result *const result = context;
    DIR *const open_folder = opendir(folder);

    (void)reterr;
    ck_assert_ptr_nonnull(open_folder);
    for (const struct dirent *entry = readdir(open_folder); entry != NULL;
         entry = readdir(open_folder)) {
        result->is_named = result->is_named || entry->d_name[0] != '.';
    }
    (void)closedir(open_folder);
    result->slices = model->slices.count;
    result->dropped = model->info.dropped_count;
    lac_model_destroy(model);
    return LAC_OK;
}

/* Imports what was put together; asserts what it may cost. */
static struct result import(enum lac_status expected)
{
    struct lac_import_options options = {.name = "job", .temporary_dir = folder};
    struct result result = {0};
    struct lac_error error = {0};
    const clock_t before = clock();

    lac_import_limits_default(&options.limits);
    ck_assert_int_eq(lac_import_bytes(bundle, used, &options, look, &result, &error), expected);
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    ck_assert_msg(seconds < CPU_SECONDS_MAX, "%.1f s of CPU", seconds);
    return result;
}

static const struct lac_event range[] = {{.ts = 1500, .name = 1, .type = LAC_EVENT_PUSH},
                                         {.ts = 1900, .type = LAC_EVENT_POP}};

START_TEST(many_names_with_many_parts)
{
    begin();
    put_records(LAC_SEGMENT_EVENTS, range, sizeof(range));
    for (int i = 0; i < 60000; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%d.other", i);
        put_part(name, 0, NULL, 0);
    }
    for (int i = 0; i < 200000; i++) {
        put_part("0.other", 0, NULL, 0);
    }
    (void)import(LAC_OK);
}
END_TEST

/* Multiplied by an odd constant and shifted, all of these were one place of the table. */
START_TEST(ids_of_ranges_that_were_chosen_to_collide)
{
    enum { COUNT = 150000 };
    struct lac_event *const events = calloc(2 * COUNT, sizeof(*events));
    uint64_t inverse = 1;

    ck_assert_ptr_nonnull(events);
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        events[2 * i] = (struct lac_event){.ts = 2000 + i, .type = LAC_EVENT_START};
        events[2 * i + 1] = (struct lac_event){.ts = (i + 1) * inverse, .type = LAC_EVENT_ID};
    }
    begin();
    put_records(LAC_SEGMENT_EVENTS, events, 2 * COUNT * sizeof(*events));
    free(events);
    ck_assert_uint_eq(import(LAC_OK).slices, COUNT);
}
END_TEST

START_TEST(pops_of_the_lowest_of_four_thousand_ranges)
{
    enum { OPEN = 4096, POPS = 700000 };
    struct lac_event *const events = calloc(OPEN + 2 * POPS, sizeof(*events));
    size_t count = 0;

    ck_assert_ptr_nonnull(events);
    for (uint32_t i = 0; i < OPEN + POPS; i++) {
        if (i >= OPEN) {
            events[count++] = (struct lac_event){
                .ts = 2000 + i, .domain = (uint16_t)(i % OPEN), .type = LAC_EVENT_POP};
        }
        events[count++] = (struct lac_event){
            .ts = 2000 + i, .domain = (uint16_t)(i % OPEN), .type = LAC_EVENT_PUSH};
    }
    begin();
    put_records(LAC_SEGMENT_EVENTS, events, count * sizeof(*events));
    free(events);
    ck_assert_uint_eq(import(LAC_OK).slices, OPEN + POPS);
}
END_TEST

START_TEST(ids_of_the_program_for_one_call)
{
    enum { COUNT = 150000 };
    struct lac_gpu_external *const ids = calloc(COUNT, sizeof(*ids));
    struct lac_gpu_call *const calls = calloc(COUNT, sizeof(*calls));

    ck_assert(ids != NULL && calls != NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        ids[i] = (struct lac_gpu_external){
            .head = {.correlation = 1, .units = 3, .type = LAC_GPU_EXTERNAL},
            .id = COUNT - i,
            .kind = 3};
        calls[i] = (struct lac_gpu_call){.head = {.start_ns = 2000 + i,
                                                  .end_ns = 2001 + i,
                                                  .correlation = 1,
                                                  .units = 3,
                                                  .type = LAC_GPU_RUNTIME_CALL}};
    }
    begin();
    put_records(LAC_SEGMENT_GPU, ids, COUNT * sizeof(*ids));
    put_records(LAC_SEGMENT_GPU, calls, COUNT * sizeof(*calls));
    free(ids);
    free(calls);
    ck_assert_uint_eq(import(LAC_OK).slices, COUNT);
}
END_TEST

START_TEST(nothing_lies_under_a_name_and_losses_stay_countable)
{
    begin();
    put_records(LAC_SEGMENT_EVENTS, range, sizeof(range));
    const struct result result = import(LAC_OK);

    ck_assert(!result.is_named);
    ck_assert_uint_gt(result.dropped, 0);
    ck_assert_uint_lt(result.dropped, UINT64_C(1) << 53);
}
END_TEST

static void make_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/lac_work_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    ck_assert_int_eq(rmdir(folder), 0);
    free(bundle);
    bundle = NULL;
    capacity = 0;
}

int main(void)
{
    Suite *const suite = suite_create("spool_work");
    TCase *const tcase = tcase_create("work");

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, make_folder, remove_folder);
    tcase_add_test(tcase, many_names_with_many_parts);
    tcase_add_test(tcase, ids_of_ranges_that_were_chosen_to_collide);
    tcase_add_test(tcase, pops_of_the_lowest_of_four_thousand_ranges);
    tcase_add_test(tcase, ids_of_the_program_for_one_call);
    tcase_add_test(tcase, nothing_lies_under_a_name_and_losses_stay_countable);
    return check_main(suite);
}
