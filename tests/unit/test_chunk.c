#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/chunk.h"
#include "collector/base/count_of.h"
#include "tests/support/check_main.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng_state = 3;

static uint64_t rng(uint64_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state % below;
}

/* Integers of all magnitudes. */
static uint64_t any_bits(uint32_t bits)
{
    uint32_t width = (uint32_t)rng(bits + 1);

    return width == 0 ? 0 : rng_state >> (64 - width);
}

static const char *const templates[] = {
    "",
    "{\"External id\":\x01}",
    "{\"External id\":\x01,\"shape\":[\x01,\x01]}",
    "{\"correlation\":\x01,\"occupancy\":\x02,\"External id\":\x01}",
    "{\"plain\":5}",
    "\x01\x02\"\x01\\",
};
enum { TEMPLATES = LAC_COUNT_OF(templates) };

enum flavour {
    FLAVOUR_NOISE, /* everything anywhere */
    FLAVOUR_TRACE, /* times ascend, numbers count, few names */
    FLAVOUR_EQUAL, /* all slices alike */
    FLAVOUR_COUNT_
};

static void add_numbers(struct lac_builder *builder, struct lac_slice_in *slice, uint32_t i,
                        enum flavour flavour, uint32_t template_index)
{
    int64_t numbers[4];
    uint32_t count =
        lac_args_number_count(templates[template_index], strlen(templates[template_index]));

    for (uint32_t n = 0; n < count; n++) {
        numbers[n] = flavour == FLAVOUR_NOISE ? (int64_t)(any_bits(64) * (rng(2) ? 1 : UINT64_MAX))
                     : n == 0 && template_index == 3 ? (int64_t)slice->corr
                                                     : (int64_t)(i * 3 + n);
    }
    if (lac_builder_arg_numbers(builder, numbers, count, &slice->arg_num) != LAC_OK) {
        ck_abort_msg("numbers of slice %u", i);
    }
}

static struct lac_model *model_of(uint32_t count, enum flavour flavour)
{
    struct lac_builder *builder = NULL;
    struct lac_model *model = NULL;
    uint32_t process = 0;
    uint32_t track = 0;
    uint32_t names[1000];
    uint32_t args[TEMPLATES];
    int64_t time_ns = 1000000;

    ck_assert_int_eq(lac_builder_create(&builder), LAC_OK);
    struct lac_strings *strings = &lac_builder_model(builder)->strings;
    for (uint32_t i = 0; i < 1000; i++) {
        char text[16];
        int length = snprintf(text, sizeof(text), "name %u", i);

        ck_assert_int_eq(lac_strings_intern(strings, text, (size_t)length, &names[i]), LAC_OK);
    }
    for (uint32_t i = 0; i < TEMPLATES; i++) {
        ck_assert_int_eq(lac_strings_intern(strings, templates[i], strlen(templates[i]), &args[i]),
                         LAC_OK);
    }
    ck_assert_int_eq(lac_builder_process(builder, 0, 1, &process), LAC_OK);
    ck_assert_int_eq(lac_builder_track(builder, LAC_TRACK_STREAM, process, 0, 1, &track), LAC_OK);
    for (uint32_t i = 0; i < count; i++) {
        bool noise = flavour == FLAVOUR_NOISE;
        bool equal = flavour == FLAVOUR_EQUAL;
        uint32_t t = noise ? (uint32_t)rng(TEMPLATES) : equal ? 3 : i % TEMPLATES;
        struct lac_slice_in slice = {
            .track = track,
            .start_ns = noise   ? (int64_t)any_bits(52)
                        : equal ? 1000000
                                : time_ns,
            .dur_ns = noise   ? (int64_t)any_bits(52)
                      : equal ? 0
                              : 1000 * (int64_t)(i % 7),
            .name = names[noise   ? rng(1000)
                          : equal ? 0
                                  : i % 17],
            .corr = noise        ? (uint32_t)any_bits(32)
                    : equal      ? 5
                    : i % 3 == 0 ? 0
                                 : i,
            .detail = noise ? (uint32_t)any_bits(32) : LAC_NONE,
            .args = args[t],
            .kind = noise        ? (enum lac_slice_kind)rng(LAC_SLICE_KIND_COUNT_)
                    : i % 17 < 5 ? LAC_SLICE_KERNEL
                                 : LAC_SLICE_API,
        };

        time_ns += 1000 * (int64_t)rng(50);
        add_numbers(builder, &slice, i, flavour, t);
        if (lac_builder_slice(builder, &slice) != LAC_OK) {
            ck_abort_msg("slice %u", i);
        }
    }
    ck_assert_int_eq(lac_builder_finish(builder, 0, &model), LAC_OK);
    return model;
}

struct columns {
    struct lac_slices at;
    int64_t *numbers;
    uint64_t number_count;
    uint64_t number_capacity;
};

static struct columns new_columns(uint32_t count)
{
    size_t n = count;
    struct columns columns = {.at = {.start_ns = calloc(n, 8),
                                     .dur_ns = calloc(n, 8),
                                     .name = calloc(n, 4),
                                     .corr = calloc(n, 4),
                                     .link = calloc(n, 4),
                                     .detail = calloc(n, 4),
                                     .args = calloc(n, 4),
                                     .arg_num = calloc(n, 4),
                                     .lane = calloc(n, 2),
                                     .kind = calloc(n, 1)}};

    return columns;
}

static void free_columns(struct columns *columns)
{
    free(columns->at.start_ns);
    free(columns->at.dur_ns);
    free(columns->at.name);
    free(columns->at.corr);
    free(columns->at.link);
    free(columns->at.detail);
    free(columns->at.args);
    free(columns->at.arg_num);
    free(columns->at.lane);
    free(columns->at.kind);
    free(columns->numbers);
}

static enum lac_status decode(struct lac_chunk_codec *codec, const uint8_t *bytes, size_t size,
                              uint32_t count, uint64_t first, unsigned mask,
                              const struct lac_model *model, struct columns *columns)
{
    struct lac_chunk_out out = {.at = columns->at,
                                .strings = &model->strings,
                                .numbers = &columns->numbers,
                                .number_count = &columns->number_count,
                                .number_capacity = &columns->number_capacity};
    struct lac_error error = {0};
    enum lac_status status = lac_chunk_decode(codec, bytes, size, count, first, mask, &out, &error);

    if (status != LAC_OK) {
        ck_assert_int_ne(error.message[0], 0);
        ck_assert_int_eq(error.status, status);
    }
    return status;
}

static void expect_numbers(const struct lac_model *model, const struct columns *columns,
                           uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = model->slices.args[first + i];
        uint32_t n = lac_args_number_count(lac_model_str(model, id),
                                           lac_strings_length(&model->strings, id));

        if (columns->at.arg_num[i] + n > columns->number_count ||
            (n != 0 && memcmp(columns->numbers + columns->at.arg_num[i],
                              model->arg_numbers + model->slices.arg_num[first + i],
                              n * sizeof(int64_t)) != 0)) {
            ck_abort_msg("numbers of slice %u differ", i); /* an assertion each would be slow */
        }
    }
}

static void expect_columns(const struct lac_model *model, const struct columns *columns,
                           uint64_t first, uint32_t count, unsigned mask)
{
    const struct lac_slices *s = &model->slices;
    const struct lac_slices *at = &columns->at;

#define EXPECT(column, field)                                                                      \
    if (mask & 1u << (column)) {                                                                   \
        ck_assert_mem_eq(at->field, s->field + first, count * sizeof(*s->field));                  \
    }
    EXPECT(LAC_COLUMN_START, start_ns)
    EXPECT(LAC_COLUMN_DUR, dur_ns)
    EXPECT(LAC_COLUMN_NAME, name)
    EXPECT(LAC_COLUMN_LANE, lane)
    EXPECT(LAC_COLUMN_KIND, kind)
    EXPECT(LAC_COLUMN_CORR, corr)
    EXPECT(LAC_COLUMN_LINK, link)
    EXPECT(LAC_COLUMN_DETAIL, detail)
    EXPECT(LAC_COLUMN_ARGS, args)
#undef EXPECT
    if (mask & 1u << LAC_COLUMN_NUMBERS) {
        expect_numbers(model, columns, first, count);
    }
}

static void round_trip(struct lac_chunk_codec *codec, const struct lac_model *model, uint64_t first,
                       uint32_t count, unsigned mask)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    struct columns columns = new_columns(count);

    ck_assert_int_eq(lac_chunk_encode(codec, model, first, count, &bytes, &size), LAC_OK);
    ck_assert_int_eq(decode(codec, bytes, size, count, first, mask, model, &columns), LAC_OK);
    expect_columns(model, &columns, first, count, mask);
    free_columns(&columns);
}

START_TEST(all_columns_come_back_from_chunks_of_any_size)
{
    static const uint32_t counts[] = {1, 2, 3, 63, 64, 65, 300, 5000, LAC_CHUNK_SLICES};
    struct lac_chunk_codec *codec = NULL;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    for (int flavour = 0; flavour < FLAVOUR_COUNT_; flavour++) {
        struct lac_model *model = model_of(LAC_CHUNK_SLICES + 10, (enum flavour)flavour);

        for (size_t c = 0; c < LAC_COUNT_OF(counts); c++) {
            round_trip(codec, model, 0, counts[c], LAC_COLUMNS_ALL);
            round_trip(codec, model, 10, counts[c], LAC_COLUMNS_ALL);
        }
        lac_model_destroy(model);
    }
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(any_set_of_columns_can_be_decoded_alone)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(200, FLAVOUR_NOISE);

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    for (unsigned mask = 0; mask <= LAC_COLUMNS_ALL; mask++) {
        round_trip(codec, model, 5, 90, mask);
    }
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(columns_that_nobody_asked_for_may_be_null)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(200, FLAVOUR_TRACE);
    const uint8_t *bytes = NULL;
    size_t size = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, 200, &bytes, &size), LAC_OK);
    for (int only = 0; only < LAC_COLUMN_COUNT_; only++) {
        struct columns all = new_columns(200);
        struct columns some = {.at = {0}};

        some.at.start_ns = only == LAC_COLUMN_START ? all.at.start_ns : NULL;
        some.at.dur_ns = only == LAC_COLUMN_DUR ? all.at.dur_ns : NULL;
        some.at.name = only == LAC_COLUMN_NAME ? all.at.name : NULL;
        some.at.lane = only == LAC_COLUMN_LANE ? all.at.lane : NULL;
        some.at.kind = only == LAC_COLUMN_KIND ? all.at.kind : NULL;
        some.at.corr = only == LAC_COLUMN_CORR ? all.at.corr : NULL;
        some.at.link = only == LAC_COLUMN_LINK ? all.at.link : NULL;
        some.at.detail = only == LAC_COLUMN_DETAIL ? all.at.detail : NULL;
        some.at.args = only == LAC_COLUMN_ARGS ? all.at.args : NULL;
        some.at.arg_num = only == LAC_COLUMN_NUMBERS ? all.at.arg_num : NULL;
        ck_assert_int_eq(decode(codec, bytes, size, 200, 0, 1u << only, model, &some), LAC_OK);
        expect_columns(model, &some, 0, 200, 1u << only);
        free(some.numbers);
        free_columns(&all);
    }
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(numbers_are_appended_behind_those_that_are_there)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(300, FLAVOUR_TRACE);
    struct columns columns = new_columns(300);

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    for (uint32_t first = 0; first < 300; first += 100) {
        const uint8_t *bytes = NULL;
        size_t size = 0;
        struct columns part = columns;

        part.at = (struct lac_slices){.arg_num = columns.at.arg_num + first};
        ck_assert_int_eq(lac_chunk_encode(codec, model, first, 100, &bytes, &size), LAC_OK);
        ck_assert_int_eq(
            decode(codec, bytes, size, 100, first, 1u << LAC_COLUMN_NUMBERS, model, &part), LAC_OK);
        columns.numbers = part.numbers;
        columns.number_count = part.number_count;
        columns.number_capacity = part.number_capacity;
    }
    expect_numbers(model, &columns, 0, 300);
    free_columns(&columns);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(a_regular_trace_takes_few_bytes)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(LAC_CHUNK_SLICES, FLAVOUR_TRACE);
    const uint8_t *bytes = NULL;
    size_t size = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, LAC_CHUNK_SLICES, &bytes, &size), LAC_OK);
    ck_assert_uint_lt(size, LAC_CHUNK_SLICES * 2);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(cut_chunks_are_refused)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(100, FLAVOUR_NOISE);
    const uint8_t *bytes = NULL;
    size_t size = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, 100, &bytes, &size), LAC_OK);
    uint8_t *copy = malloc(size + 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    copy[size] = 0;
    for (size_t cut = 0; cut <= size + 1; cut++) {
        struct columns columns = new_columns(100);
        enum lac_status wanted = cut == size ? LAC_OK : LAC_ERR_CORRUPT;

        ck_assert_int_eq(decode(codec, copy, cut, 100, 0, LAC_COLUMNS_ALL, model, &columns),
                         wanted);
        free_columns(&columns);
    }
    struct columns columns = new_columns(101);
    ck_assert_int_eq(decode(codec, copy, size, 0, 0, LAC_COLUMNS_ALL, model, &columns),
                     LAC_ERR_CORRUPT);
    ck_assert_int_eq(decode(codec, copy, size, 101, 0, LAC_COLUMNS_ALL, model, &columns),
                     LAC_ERR_CORRUPT);
    ck_assert_int_eq(
        decode(codec, copy, size, LAC_CHUNK_SLICES + 1, 0, LAC_COLUMNS_ALL, model, &columns),
        LAC_ERR_CORRUPT);
    free_columns(&columns);
    free(copy);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

/* The encoder takes columns as they are; what a model must never hold is refused on
 * the way back. */
START_TEST(chunks_with_impossible_content_are_refused)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(100, FLAVOUR_TRACE);
    struct lac_slices *s = &model->slices;
    const uint8_t *bytes = NULL;
    size_t size = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
#define REFUSED(field, bad)                                                                        \
    do {                                                                                           \
        __typeof__(field) good = (field);                                                          \
        struct columns columns = new_columns(100);                                                 \
        (field) = (bad);                                                                           \
        ck_assert_int_eq(lac_chunk_encode(codec, model, 0, 100, &bytes, &size), LAC_OK);           \
        ck_assert_msg(decode(codec, bytes, size, 100, 0, LAC_COLUMNS_ALL, model, &columns) ==      \
                          LAC_ERR_CORRUPT,                                                         \
                      "%s = %s went through", #field, #bad);                                       \
        (field) = good;                                                                            \
        free_columns(&columns);                                                                    \
    } while (0)
    REFUSED(s->start_ns[99], LAC_TIME_MAX_NS + 1);
    REFUSED(s->start_ns[50], -1);
    REFUSED(s->start_ns[50], 0); /* before its neighbor */
    REFUSED(s->dur_ns[50], LAC_TIME_MAX_NS + 1);
    REFUSED(s->dur_ns[50], LAC_TIME_MAX_NS); /* alone it is in range, its end is not */
    REFUSED(s->dur_ns[50], -1);
    REFUSED(s->kind[50], LAC_SLICE_KIND_COUNT_);
#undef REFUSED
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

START_TEST(a_wrong_slice_count_is_noticed)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(5000, FLAVOUR_TRACE);
    struct columns columns = new_columns(5001);
    const uint8_t *bytes = NULL;
    size_t size = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, 5000, &bytes, &size), LAC_OK);
    for (uint32_t count = 4999; count <= 5001; count += 2) {
        for (int column = 0; column < LAC_COLUMN_DETAIL; column++) {
            enum lac_status status =
                decode(codec, bytes, size, count, 0, 1u << column, model, &columns);

            /* a column of one value does not know how many there are */
            ck_assert(status == LAC_ERR_CORRUPT || column == LAC_COLUMN_LINK);
        }
    }
    free_columns(&columns);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

/* A changed byte may make other content, never content that breaks what decode promises. */
static void flip_each_bit(enum flavour flavour, uint32_t count)
{
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(count, flavour);
    const uint8_t *bytes = NULL;
    size_t size = 0;
    uint32_t refused = 0;

    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, count, &bytes, &size), LAC_OK);
    uint8_t *copy = malloc(size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    for (size_t at = 0; at < size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct columns columns = new_columns(count);

            copy[at] ^= (uint8_t)(1u << bit);
            if (decode(codec, copy, size, count, 0, LAC_COLUMNS_ALL, model, &columns) == LAC_OK) {
                for (uint32_t i = 0; i < count; i++) {
                    if (columns.at.start_ns[i] < (i == 0 ? 0 : columns.at.start_ns[i - 1]) ||
                        columns.at.dur_ns[i] < 0 ||
                        columns.at.start_ns[i] + columns.at.dur_ns[i] > LAC_TIME_MAX_NS ||
                        columns.at.kind[i] >= LAC_SLICE_KIND_COUNT_) {
                        ck_abort_msg("bit %u of byte %zu: slice %u", bit, at, i);
                    }
                }
            } else {
                refused++;
            }
            copy[at] ^= (uint8_t)(1u << bit);
            free_columns(&columns);
        }
    }
    ck_assert_uint_gt(refused, 0);
    free(copy);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}

START_TEST(damaged_chunks_are_refused_or_hold_times_in_range)
{
    flip_each_bit(FLAVOUR_NOISE, 60);
    flip_each_bit(FLAVOUR_TRACE, 150); /* with planes that are compressed */
}
END_TEST

START_TEST(more_numbers_than_a_chunk_may_hold_are_refused)
{
    enum { PLACES = 2048 };
    char *text = malloc(PLACES + 1);
    struct lac_chunk_codec *codec = NULL;
    struct lac_model *model = model_of(LAC_CHUNK_SLICES, FLAVOUR_EQUAL);
    const uint8_t *bytes = NULL;
    size_t size = 0;
    uint32_t id = 0;

    ck_assert_ptr_nonnull(text);
    memset(text, LAC_ARG_INTEGER, PLACES);
    ck_assert_int_eq(lac_strings_intern(&model->strings, text, PLACES, &id), LAC_OK);
    for (uint32_t i = 0; i < LAC_CHUNK_SLICES; i++) {
        model->slices.args[i] = id;
        model->slices.arg_num[i] = 0;
    }
    ck_assert_int_eq(lac_chunk_codec_create(&codec), LAC_OK);
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, LAC_CHUNK_SLICES, &bytes, &size),
                     LAC_ERR_LIMIT);
    round_trip(codec, model, 0, 100, LAC_COLUMNS_ALL);
    /* the same number of numbers claimed by a few bytes */
    model->slices.args[0] = 0;
    struct columns columns = new_columns(LAC_CHUNK_SLICES);
    for (uint32_t i = 0; i < LAC_CHUNK_SLICES; i++) {
        model->slices.args[i] = 0;
    }
    ck_assert_int_eq(lac_chunk_encode(codec, model, 0, LAC_CHUNK_SLICES, &bytes, &size), LAC_OK);
    struct lac_strings hostile;
    ck_assert_int_eq(lac_strings_init(&hostile), LAC_OK);
    hostile.bytes[0] = LAC_ARG_INTEGER; /* template 0 now wants one number a slice: none is there */
    struct lac_chunk_out out = {.at = columns.at,
                                .strings = &hostile,
                                .numbers = &columns.numbers,
                                .number_count = &columns.number_count,
                                .number_capacity = &columns.number_capacity};
    hostile.offset[1] = 2;
    ck_assert_int_eq(
        lac_chunk_decode(codec, bytes, size, LAC_CHUNK_SLICES, 0, LAC_COLUMNS_ALL, &out, NULL),
        LAC_ERR_CORRUPT);
    lac_strings_done(&hostile);
    free_columns(&columns);
    free(text);
    lac_model_destroy(model);
    lac_chunk_codec_destroy(codec);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chunk");
    TCase *tests = tcase_create("chunk");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, all_columns_come_back_from_chunks_of_any_size);
    tcase_add_test(tests, any_set_of_columns_can_be_decoded_alone);
    tcase_add_test(tests, columns_that_nobody_asked_for_may_be_null);
    tcase_add_test(tests, numbers_are_appended_behind_those_that_are_there);
    tcase_add_test(tests, a_regular_trace_takes_few_bytes);
    tcase_add_test(tests, cut_chunks_are_refused);
    tcase_add_test(tests, chunks_with_impossible_content_are_refused);
    tcase_add_test(tests, a_wrong_slice_count_is_noticed);
    tcase_add_test(tests, damaged_chunks_are_refused_or_hold_times_in_range);
    tcase_add_test(tests, more_numbers_than_a_chunk_may_hold_are_refused);
    suite_add_tcase(suite, tests);
    return check_main(suite);
}
