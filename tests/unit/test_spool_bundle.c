/* Parts of a recording, as a running job sends them: any order, cut anywhere, hostile. */

#include "analysis/import/import.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "lacuna/bundle.h"
#include "lacuna/spool.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <string.h>

enum { SEGMENT_BYTES = 65536, BUNDLE_BYTES = 1 << 20 };

static uint8_t bundle[BUNDLE_BYTES];
static size_t used;
static struct lac_spool_header header;

static void add_part(const char *name, uint64_t offset, uint32_t size_bytes, const void *data,
                     uint32_t data_bytes)
{
    const struct lac_bundle_part part = {.magic = LAC_BUNDLE_PART_MAGIC,
                                         .name_bytes = (uint32_t)strlen(name),
                                         .size_bytes = size_bytes,
                                         .data_bytes = data_bytes,
                                         .offset = offset};

    ck_assert_uint_lt(used + sizeof(part) + strlen(name) + data_bytes, sizeof(bundle));
    memcpy(bundle + used, &part, sizeof(part));
    memcpy(bundle + used + sizeof(part), name, strlen(name));
    if (data_bytes > 0) {
        memcpy(bundle + used + sizeof(part) + strlen(name), data, data_bytes);
    }
    used += sizeof(part) + strlen(name) + data_bytes;
}

static void begin(void)
{
    memcpy(bundle, LAC_BUNDLE_MAGIC, 8);
    used = 8;
    header = (struct lac_spool_header){.version = LAC_SPOOL_VERSION,
                                       .endian_mark = LAC_SPOOL_ENDIAN_MARK,
                                       .header_bytes = LAC_SPOOL_HEADER_BYTES,
                                       .segment_bytes = SEGMENT_BYTES,
                                       .clock = LAC_SPOOL_CLOCK_MONOTONIC,
                                       .pid = 42,
                                       .first = {1000, 1000, 2000},
                                       .segment_count = 2};
    memcpy(header.magic, LAC_SPOOL_MAGIC, sizeof(header.magic));
}

static struct lac_segment_header segment(uint16_t kind)
{
    return (struct lac_segment_header){
        .magic = LAC_SEGMENT_MAGIC, .kind = kind, .tid = 42, .sync = {1000, 1000, 2000}};
}

static void add_events(const char *name)
{
    struct {
        struct lac_segment_header head;
        struct lac_event events[2];
    } data = {
        segment(LAC_SEGMENT_EVENTS),
        {{.ts = 1500, .name = 1, .type = LAC_EVENT_PUSH}, {.ts = 1900, .type = LAC_EVENT_POP}}};

    add_part(name, LAC_SPOOL_SEGMENTS_OFFSET + SEGMENT_BYTES, SEGMENT_BYTES, &data, sizeof(data));
}

static void add_names(const char *name, const char *text)
{
    struct {
        struct lac_segment_header head;
        struct lac_string_record record;
        char text[8];
    } data = {segment(LAC_SEGMENT_STRINGS), {1, 4}, ""};

    memcpy(data.text, text, 4);
    add_part(name, LAC_SPOOL_SEGMENTS_OFFSET, SEGMENT_BYTES, &data, sizeof(data));
}

struct result {
    uint64_t slices;
    uint32_t processes;
    uint32_t reports;
    bool has_name;
    uint16_t lanes[8]; /* of the first slices */
    int64_t first_ns;  /* when the first slice starts */
    int64_t last_ns;   /* when the last one does */
    int64_t cpu_ns[2]; /* of the first ranges of a loader */
};

static enum lac_status look(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct result *const result = context;

    (void)reterr;
    result->slices = model->slices.count;
    result->processes = model->process_count;
    result->reports = model->report_count;
    for (uint64_t i = 0; i < model->slices.count; i++) {
        result->has_name =
            strcmp(lac_strings_get(&model->strings, model->slices.name[i]), "work") == 0;
        if (i < LAC_COUNT_OF(result->lanes)) {
            result->lanes[i] = model->slices.lane[i];
        }
        result->last_ns = model->slices.start_ns[i];
    }
    result->first_ns = model->slices.count > 0 ? model->slices.start_ns[0] : 0;
    for (uint32_t i = 0; i < model->loader_info_count && i < LAC_COUNT_OF(result->cpu_ns); i++) {
        result->cpu_ns[i] = model->loader_infos[i].cpu_ns;
    }
    lac_model_destroy(model);
    return LAC_OK;
}

static enum lac_status import(size_t size_bytes, struct result *ret, struct lac_error *error)
{
    const struct lac_import_options options = {.name = "job"};

    *ret = (struct result){0};
    return lac_import_bytes(bundle, size_bytes, &options, look, ret, error);
}

START_TEST(parts_in_any_order_are_one_recording)
{
    struct result result;
    struct lac_error error = {0};

    begin();
    add_part("1.spool", 0, sizeof(header), &header, 512);
    add_events("1.spool");
    add_events("2.spool");
    add_names("1.spool", "????"); /* as it was at first; the later one counts */
    add_names("2.spool", "work");
    add_names("1.spool", "work");
    header.pid = 43;
    add_part("2.spool", 0, sizeof(header), &header, 512);
    ck_assert_int_eq(import(used, &result, &error), LAC_OK);
    ck_assert_uint_eq(result.slices, 2);
    ck_assert_uint_eq(result.processes, 2);
    ck_assert_uint_eq(result.reports, 0);
    ck_assert(result.has_name);
}
END_TEST

START_TEST(a_bundle_that_ends_anywhere_is_readable_up_to_there)
{
    size_t whole_parts = 8;
    uint64_t readable = 0;

    begin();
    add_part("1.spool", 0, sizeof(header), &header, 512);
    whole_parts = used;
    add_names("1.spool", "work");
    add_events("1.spool");
    for (size_t size = 8; size <= used; size++) {
        struct result result;
        struct lac_error error = {0};
        const enum lac_status status = import(size, &result, &error);

        ck_assert_msg(status == LAC_OK || (size < whole_parts && status == LAC_ERR_CORRUPT),
                      "at %zu: %s", size, error.message);
        readable += result.slices;
        ck_assert(status != LAC_OK || size == used || size == whole_parts || result.reports > 0 ||
                  result.slices == 0);
    }
    ck_assert_uint_eq(readable, 1);
}
END_TEST

START_TEST(parts_that_make_no_sense_are_refused)
{
    struct result result;
    struct lac_error error = {0};
    const struct lac_bundle_part wrong[] = {
        {.magic = 1, .name_bytes = 1},
        {.magic = LAC_BUNDLE_PART_MAGIC, .name_bytes = 0},
        {.magic = LAC_BUNDLE_PART_MAGIC, .name_bytes = LAC_BUNDLE_NAME_BYTES + 1},
        {.magic = LAC_BUNDLE_PART_MAGIC, .name_bytes = 1, .size_bytes = LAC_BUNDLE_DATA_BYTES + 1},
        {.magic = LAC_BUNDLE_PART_MAGIC, .name_bytes = 1, .size_bytes = 4, .data_bytes = 5},
        {.magic = LAC_BUNDLE_PART_MAGIC, .name_bytes = 1, .offset = UINT64_MAX},
    };

    for (size_t i = 0; i < LAC_COUNT_OF(wrong); i++) {
        begin();
        memcpy(bundle + used, &wrong[i], sizeof(wrong[i]));
        ck_assert_int_eq(import(used + sizeof(wrong[i]) + 300, &result, &error), LAC_ERR_CORRUPT);
        ck_assert_ptr_nonnull(strstr(error.message, "at byte 8"));
    }
    begin();
    ck_assert_int_eq(import(used, &result, &error), LAC_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(error.message, "has no file"));
}
END_TEST

START_TEST(names_are_no_places_and_holes_have_an_end)
{
    struct result result;
    struct lac_error error = {0};

    begin();
    add_part("../../../../tmp/lacuna-escaped", 0, sizeof(header), &header, 512);
    add_names("../../../../tmp/lacuna-escaped", "work");
    add_events("../../../../tmp/lacuna-escaped");
    ck_assert_int_eq(import(used, &result, &error), LAC_OK);
    ck_assert_uint_eq(result.slices, 1);
    begin();
    for (char name[] = "a"; name[0] <= 'z'; name[0]++) { /* 16 GiB of nothing in each */
        add_part(name, (uint64_t)1 << 33, 1, NULL, 0);
    }
    ck_assert_int_eq(import(used, &result, &error), LAC_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(error.message, "holes"));
}
END_TEST

/* A spool of this segment alone. */
static void import_events(const void *data, uint32_t size, struct result *ret)
{
    struct lac_error error = {0};

    begin();
    add_part("1.spool", 0, sizeof(header), &header, 512);
    add_part("1.spool", LAC_SPOOL_SEGMENTS_OFFSET + SEGMENT_BYTES, SEGMENT_BYTES, data, size);
    ck_assert_int_eq(import(used, ret, &error), LAC_OK);
}

/* The time-stamp counter of some processors steps by 10 ns: two ranges begin in one step and end in
 * another, and a third begins and ends within one. */
START_TEST(ranges_that_the_clock_cannot_tell_apart_are_nested)
{
    struct {
        struct lac_segment_header head;
        struct lac_event events[10];
    } data = {segment(LAC_SEGMENT_EVENTS),
              {{.ts = 1500, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 1500, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 1520, .type = LAC_EVENT_POP},
               {.ts = 1520, .type = LAC_EVENT_POP},
               {.ts = 1540, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 1550, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 1550, .type = LAC_EVENT_POP},
               {.ts = 1550, .type = LAC_EVENT_POP},
               {.ts = 1700, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 1800, .type = LAC_EVENT_POP}}};
    static const uint16_t lanes[] = {0, 1, 0, 1, 0};
    struct result result;

    import_events(&data, sizeof(data), &result);
    ck_assert_uint_eq(result.slices, LAC_COUNT_OF(lanes));
    for (size_t i = 0; i < LAC_COUNT_OF(lanes); i++) {
        ck_assert_uint_eq(result.lanes[i], lanes[i]);
    }
    ck_assert_int_eq(result.last_ns - result.first_ns, 200); /* the clock's, where it can tell */
}
END_TEST

/* The CPU clock is read before a range begins and after it has ended, and a file may say anything. */
START_TEST(a_range_computes_no_longer_than_it_takes)
{
    struct {
        struct lac_segment_header head;
        struct lac_event events[6];
    } data = {segment(LAC_SEGMENT_EVENTS),
              {{.ts = 1500, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 420, .type = LAC_EVENT_CPU},
               {.ts = 1900, .type = LAC_EVENT_POP},
               {.ts = 2000, .name = 1, .type = LAC_EVENT_PUSH},
               {.ts = 399, .type = LAC_EVENT_CPU},
               {.ts = 2400, .type = LAC_EVENT_POP}}};
    struct result result;

    import_events(&data, sizeof(data), &result);
    ck_assert_uint_eq(result.slices, 2);
    ck_assert_int_eq(result.cpu_ns[0], 400);
    ck_assert_int_eq(result.cpu_ns[1], 399);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("spool_bundle");
    TCase *const tcase = tcase_create("bundle");

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, parts_in_any_order_are_one_recording);
    tcase_add_test(tcase, a_bundle_that_ends_anywhere_is_readable_up_to_there);
    tcase_add_test(tcase, parts_that_make_no_sense_are_refused);
    tcase_add_test(tcase, names_are_no_places_and_holes_have_an_end);
    tcase_add_test(tcase, ranges_that_the_clock_cannot_tell_apart_are_nested);
    tcase_add_test(tcase, a_range_computes_no_longer_than_it_takes);
    return check_main(suite);
}
