/*
 * Every kind of member that NVTX's payload extension knows, from a program that uses its own
 * headers to the arguments of its ranges.
 */
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <stdio.h>

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include "tests/support/nvtx_job.h"

#include <uchar.h>
#include <wchar.h>

#define FIELD(flags, type, name, detail, owner, field)                                             \
    {                                                                                              \
        flags, type, name, NULL, detail, offsetof(struct owner, field), NULL, NULL                 \
    }
#define FLAGGED(flags, type, name, detail)                                                         \
    {                                                                                              \
        flags, type, name, NULL, detail, 0, NULL, NULL                                             \
    }

/* ---- unions */

struct scalar {
    uint8_t which;
    union {
        int32_t whole;
        double real;
        struct {
            const char *text;
            uint16_t length;
        } name;
    } value;
};

static uint64_t describe_name(nvtxDomainHandle_t domain)
{
    const nvtxPayloadSchemaEntry_t entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "length")};

    return DESCRIBE(domain, "name", entries, 0);
}

static void job_union(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t values[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "whole"),
                                               PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "real"),
                                               PLAIN(describe_name(domain), "name")};
    const uint64_t value = describe(domain, "value", NVTX_PAYLOAD_SCHEMA_TYPE_UNION, values, 3, 0);
    const nvtxPayloadSchemaEntry_t entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "which"),
                                                FLAGGED(0, value, "value", 0)};
    const uint64_t schema = DESCRIBE(domain, "scalar", entries, 0);
    struct scalar scalar = {.which = 0, .value = {.whole = -7}};

    range_with(domain, "whole", schema, &scalar, sizeof(scalar));
    scalar = (struct scalar){.which = 1, .value = {.real = 0.25}};
    range_with(domain, "real", schema, &scalar, sizeof(scalar));
    scalar = (struct scalar){.which = 2, .value = {.name = {"a text", 6}}};
    range_with(domain, "text", schema, &scalar, SIZE_MAX);
    scalar.which = 3; /* there is no such member; the text must not be looked for */
    scalar.value.name.text = (const char *)8;
    range_with(domain, "none", schema, &scalar, sizeof(scalar));
    range_with(domain, "alone", value, &scalar.value, sizeof(scalar.value));
}

START_TEST(a_union_shows_the_member_that_its_selector_names)
{
    ck_assert_int_eq(lac_job_run(job_union), 0);
    import_ok();
    check_args("whole", "{\"domain\":\"NCCL\",\"which\":0,\"value\":{\"whole\":-7}}");
    check_args("real", "{\"domain\":\"NCCL\",\"which\":1,\"value\":{\"real\":0.25}}");
    check_args("text", "{\"domain\":\"NCCL\",\"which\":2,\"value\":{\"name\":{\"text\":\"a "
                       "text\",\"length\":6}}}");
    check_args("none", "{\"domain\":\"NCCL\",\"which\":3,\"value\":{}}");
    check_args("alone", "{\"domain\":\"NCCL\"}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 2);
}
END_TEST

struct tagged {
    uint8_t which;
    uint8_t padding[3];
    union {
        uint32_t count;
        float share;
    } value;
};

struct tagged_pair {
    struct tagged both[2];
    int32_t last;
};

static void job_inner_selector(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t members[] = {
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR, "which"),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "count", 0, tagged, value),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "share", 0, tagged, value)};
    const uint64_t tagged =
        describe(domain, "tagged", NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR, members,
                 3, sizeof(struct tagged));
    const nvtxPayloadSchemaEntry_t entries[] = {
        FLAGGED(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, tagged, "both", 2),
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "last")};
    const uint64_t schema = DESCRIBE(domain, "pair", entries, 0);
    struct tagged_pair pair = {
        {{.which = 1, .value = {.count = 4}}, {.which = 2, .value = {.share = 0.5F}}}, -1};

    range_with(domain, "pair", schema, &pair, sizeof(pair));
    range_with(domain, "one", tagged, &pair.both[1], sizeof(pair.both[1]));
    pair.both[0].which = 0; /* itself */
    pair.both[1].which = 200;
    range_with(domain, "neither", schema, &pair, sizeof(pair));
}

START_TEST(a_union_with_a_selector_of_its_own_may_be_in_an_array)
{
    ck_assert_int_eq(lac_job_run(job_inner_selector), 0);
    import_ok();
    check_args("pair", "{\"domain\":\"NCCL\",\"both\":[{\"which\":1,\"count\":4},{\"which\":2,"
                       "\"share\":0.5}],\"last\":-1}");
    check_args("one", "{\"domain\":\"NCCL\",\"which\":2,\"share\":0.5}");
    check_args("neither", "{\"domain\":\"NCCL\",\"both\":[{},{}],\"last\":-1}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 2);
}
END_TEST

/* ---- wide numbers */

struct wide {
    uint64_t words[2];
};

static void put_wide(nvtxDomainHandle_t domain, const char *name, uint64_t type, uint64_t high,
                     uint64_t low)
{
    const struct wide wide = {{low, high}};

    range_with(domain, name, type, &wide, sizeof(wide));
}

struct numbers {
    uint8_t first;
    _Alignas(16) struct wide negative;
    long double real;
    uint64_t hash;
    uint16_t half;
    uint16_t brain;
};

static void job_wide(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "first"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT128, "negative"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE, "real"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "hash"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16, "half"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_BF16, "brain")};
    const uint64_t schema = DESCRIBE(domain, "numbers", entries, sizeof(struct numbers));
    const struct numbers numbers = {.first = 1,
                                    .negative = {{0, UINT64_MAX}},
                                    .real = -1234.5L,
                                    .hash = 0x8000000000000001,
                                    .half = 0x3c01,
                                    .brain = 0xbf80};
    const uint64_t quarter_less[2] = {0x8000000000000000, 0x3ffe7fffffffffff};

    put_wide(domain, "zero", NVTX_PAYLOAD_ENTRY_TYPE_UINT128, 0, 0);
    put_wide(domain, "small", NVTX_PAYLOAD_ENTRY_TYPE_INT128, UINT64_MAX, (uint64_t)-5);
    put_wide(domain, "beyond", NVTX_PAYLOAD_ENTRY_TYPE_INT128, 0, 0x8000000000000000);
    put_wide(domain, "largest", NVTX_PAYLOAD_ENTRY_TYPE_UINT128, UINT64_MAX, UINT64_MAX);
    put_wide(domain, "smallest", NVTX_PAYLOAD_ENTRY_TYPE_INT128, 0x8000000000000000, 0);
    range_with(domain, "numbers", schema, &numbers, sizeof(numbers));
    range_with(domain, "quad", NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128, quarter_less, 16);
}

START_TEST(numbers_beyond_64_bits_keep_every_digit)
{
    ck_assert_int_eq(lac_job_run(job_wide), 0);
    import_ok();
    check_args("zero", "{\"domain\":\"NCCL\",\"payload\":0}");
    check_args("small", "{\"domain\":\"NCCL\",\"payload\":-5}");
    check_args("beyond", "{\"domain\":\"NCCL\",\"payload\":\"9223372036854775808\"}");
    check_args("largest",
               "{\"domain\":\"NCCL\",\"payload\":\"340282366920938463463374607431768211455\"}");
    check_args("smallest",
               "{\"domain\":\"NCCL\",\"payload\":\"-170141183460469231731687303715884105728\"}");
    check_args("numbers", "{\"domain\":\"NCCL\",\"first\":1,\"negative\":\"-18446744073709551616\","
                          "\"real\":-1234.5,\"hash\":\"9223372036854775809\",\"half\":1.0009765625,"
                          "\"brain\":-1}");
    check_args("quad", "{\"domain\":\"NCCL\",\"payload\":0.7499999999999991}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 0);
}
END_TEST

/* ---- text */

struct texts {
    const char16_t *utf16;
    const char32_t *utf32;
    char16_t short_text[4];
    char full[4];
    wchar_t wide[3];
    char16_t letter;
    char names[3][4];
};

static void job_texts(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY,
              NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16, "utf16", 0, texts, utf16),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32, "utf32", 0, texts, utf32),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16, "short", 4, texts, short_text),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "full", 4,
              texts, full),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_WCHAR, "wide", 3,
              texts, wide),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_CHAR16, "letter", 0, texts, letter),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING,
              "names", 4, texts, names)};
    const uint64_t schema = DESCRIBE(domain, "texts", entries, sizeof(struct texts));
    struct texts texts = {.utf16 = u"Gr\u00f6\u00dfe \U0001f600",
                          .utf32 = U"\u4e2d\u6587",
                          .short_text = {u'a', 0xd800, u'b', u'c'},
                          .full = {'f', 'u', 'l', 'l'},
                          .wide = {L'w', 0, L'x'},
                          .letter = u'\u00e4',
                          .names = {{'a', 'b', 'c', 'd'}, {'e', 0}, {0}}};
    const nvtxPayloadData_t data = {schema, sizeof(texts), &texts};

    nvtxMarkPayload(domain, &data, 1);
    texts.utf16 = NULL;
    texts.utf32 = U"";
    range_with(domain, "empty", schema, &texts, sizeof(texts));
    range_with(domain, "plain", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16, u"plain \u00fc", SIZE_MAX);
    range_with(domain, "nothing", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32, U"", SIZE_MAX);
}

START_TEST(text_of_16_and_32_bits_is_read_where_it_lies)
{
    const char *const rest = "\"short\":\"a\xef\xbf\xbd"
                             "bc\",\"wide\":\"w\",\"letter\":\"\xc3\xa4\",\"names\":[\"abcd\","
                             "\"e\"]}";
    char expected[400];

    ck_assert_int_eq(lac_job_run(job_texts), 0);
    import_ok();
    (void)snprintf(expected, sizeof(expected),
                   "{\"domain\":\"NCCL\",\"utf16\":\"Gr\xc3\xb6\xc3\x9f"
                   "e \xf0\x9f\x98\x80\",\"utf32\":\"\xe4\xb8\xad\xe6\x96\x87\",%s",
                   rest);
    check_args("full", expected);
    (void)snprintf(expected, sizeof(expected),
                   "{\"domain\":\"NCCL\",\"utf16\":\"\",\"utf32\":\"\",%s", rest);
    check_args("empty", expected);
    check_args("plain", "{\"domain\":\"NCCL\",\"payload\":\"plain \xc3\xbc\"}");
    check_args("nothing", "{\"domain\":\"NCCL\",\"payload\":\"\"}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 0);
}
END_TEST

/* ---- what lies elsewhere */

struct tensor {
    const int32_t *shape;
    const uint8_t *bytes;
    const struct tensor *next;
    uint32_t dimensions;
};

static uint64_t describe_tensor(nvtxDomainHandle_t domain)
{
    nvtxPayloadSchemaEntry_t entries[] = {
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX |
                  NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY,
              NVTX_PAYLOAD_ENTRY_TYPE_INT32, "shape", 3, tensor, shape),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
              NVTX_PAYLOAD_ENTRY_TYPE_BYTE, "bytes", 3, tensor, bytes),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY, 0, "next", 0,
              tensor, next),
        FIELD(0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "dimensions", 0, tensor, dimensions)};
    const uint64_t static_id = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
    const nvtxPayloadSchemaAttr_t attributes = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries = entries,
        .numEntries = 4,
        .payloadStaticSize = sizeof(struct tensor),
        .schemaId = static_id};

    entries[2].type = static_id; /* a list of them */
    ck_assert_uint_eq(nvtxPayloadSchemaRegister(domain, &attributes), static_id);
    return nvtxPayloadSchemaRegister(domain, &attributes); /* again, as a second library does */
}

static void mark_all(nvtxDomainHandle_t domain, const char *name, const nvtxPayloadData_t *data,
                     size_t count)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};

    attributes.message.ascii = name;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = (int32_t)count;
    attributes.payload.ullValue = (uint64_t)(uintptr_t)data;
    nvtxDomainMarkEx(domain, &attributes);
}

static void job_pointers(void)
{
    const nvtxDomainHandle_t domain = begin();
    const uint64_t schema = describe_tensor(domain);
    const int32_t shape[] = {64, 3, -1};
    const uint8_t blob[] = {9, 0xab, 0xcd, 0xef, 9};
    const struct tensor last = {.dimensions = 0};
    struct tensor tensor = {shape, blob + 1, &last, 3};
    const nvtxPayloadData_t data[] = {{schema, sizeof(tensor), &tensor},
                                      {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, sizeof(blob), blob}};
    static int32_t huge[2000];

    mark_all(domain, "pointers", data, 2);
    tensor.bytes = blob + 3; /* reaches beyond the blob */
    tensor.next = NULL;
    mark_all(domain, "beyond", data, 2);
    tensor = (struct tensor){.shape = huge, .bytes = (const uint8_t *)1, .dimensions = 2000};
    mark_all(domain, "too large", data, 2);
}

START_TEST(what_pointers_lead_to_travels_with_the_payload)
{
    ck_assert_int_eq(lac_job_run(job_pointers), 0);
    import_ok();
    check_args(
        "pointers",
        "{\"domain\":\"NCCL\",\"shape\":[64,3,-1],\"bytes\":\"0xabcdef\",\"next\":{\"shape\":"
        "null,\"bytes\":null,\"next\":null,\"dimensions\":0},\"dimensions\":3}");
    check_args("beyond",
               "{\"domain\":\"NCCL\",\"shape\":[64,3,-1],\"next\":null,\"dimensions\":3}");
    check_args("too large", "{\"domain\":\"NCCL\",\"next\":null,\"dimensions\":2000}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 3);
}
END_TEST

struct packed_text {
    uint64_t from_base;
    uint64_t from_here;
    char pool[16];
};

static void job_offsets(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "base", 0,
              packed_text, from_base),
        FIELD(NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE |
                  NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED,
              NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "here", 0, packed_text, from_here)};
    const uint64_t schema = DESCRIBE(domain, "packed", entries, sizeof(struct packed_text));
    struct packed_text packed = {.from_base = 16, .from_here = 4, .pool = "abc\0\1\2\3"};

    range_with(domain, "offsets", schema, &packed, sizeof(packed));
    packed.from_base = UINT64_MAX - 3;
    packed.from_here = UINT64_MAX - 30;
    range_with(domain, "wild", schema, &packed, sizeof(packed));
}

START_TEST(offsets_lead_into_the_payload_and_never_out_of_it)
{
    ck_assert_int_eq(lac_job_run(job_offsets), 0);
    import_ok();
    check_args("offsets", "{\"domain\":\"NCCL\",\"base\":\"abc\",\"here\":[1,2,3]}");
    check_args("wild", "{\"domain\":\"NCCL\"}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 2);
}
END_TEST

/* ---- arrays */

static void job_arrays(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t matrix_entries[] = {
        FLAGGED(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_INT16, "shape",
                2),
        FLAGGED(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_INT16, "matrix",
                0),
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT16, "last")};
    const uint64_t matrix =
        describe(domain, "matrix", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, matrix_entries, 3, 0);
    const nvtxPayloadSchemaEntry_t values_entries[] = {
        FLAGGED(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT,
                "values", 1)};
    const uint64_t values =
        describe(domain, "values", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, values_entries, 1, 0);
    const int16_t numbers[] = {2, 3, 1, 2, 3, 4, 5, 6, 99};
    const int16_t negative[] = {2, -3, 99};
    const float reals[] = {0.5F, 1, 1.5F, 2};
    const uint64_t lengths[] = {2, 2};
    const nvtxPayloadData_t data[] = {{values, sizeof(reals), reals},
                                      {NVTX_PAYLOAD_ENTRY_TYPE_UINT64, sizeof(lengths), lengths}};
    const uint8_t raw[] = {0, 1, 0xfe};

    range_with(domain, "matrix", matrix, numbers, sizeof(numbers));
    range_with(domain, "no rows", matrix, negative, sizeof(negative));
    mark_all(domain, "values", data, 2);
    mark_all(domain, "no lengths", data, 1);
    range_with(domain, "raw", NVTX_TYPE_PAYLOAD_SCHEMA_RAW, raw, sizeof(raw));
    range_with(domain, "several", NVTX_PAYLOAD_ENTRY_TYPE_INT16, numbers, 6);
}

START_TEST(arrays_have_the_dimensions_that_the_data_tell)
{
    ck_assert_int_eq(lac_job_run(job_arrays), 0);
    import_ok();
    check_args("matrix", "{\"domain\":\"NCCL\",\"shape\":[2,3],\"matrix\":[[1,2,3],[4,5,6]],"
                         "\"last\":99}");
    check_args("no rows", "{\"domain\":\"NCCL\",\"shape\":[2,-3],\"matrix\":[[],[]],\"last\":99}");
    check_args("values", "{\"domain\":\"NCCL\",\"values\":[[0.5,1],[1.5,2]],\"payload\":[2,2]}");
    check_args("no lengths", "{\"domain\":\"NCCL\"}");
    check_args("raw", "{\"domain\":\"NCCL\",\"payload\":\"0x0001fe\"}");
    check_args("several", "{\"domain\":\"NCCL\",\"payload\":[2,3,1]}");
    ck_assert_uint_eq(report_count("payload_members_left_out"), 1);
}
END_TEST

/* ---- what belongs to the event, and what is not there */

struct look {
    uint32_t category;
    uint32_t color;
    uint32_t pid;
};

static void job_attributes(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, "category"),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB, NULL),
                                                PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT32, "pid")};
    const uint64_t schema = DESCRIBE(domain, "look", entries, 0);
    const struct look look = {4, 0xff123456, 77};

    nvtxDomainNameCategoryA(domain, 4, "ring");
    range_with(domain, "coloured", schema, &look, sizeof(look));
}

START_TEST(colour_and_category_in_a_payload_are_the_events)
{
    ck_assert_int_eq(lac_job_run(job_attributes), 0);
    import_ok();
    check_args("coloured", "{\"domain\":\"NCCL\",\"category\":\"ring\",\"color\":\"#123456\","
                           "\"pid\":77}");
}
END_TEST

static void job_missing(void)
{
    const nvtxDomainHandle_t domain = begin();
    static const uint8_t bytes[2000];
    nvtxPayloadData_t many[40];

    range_with(domain, "not described", (uint64_t)1 << 40, bytes, 4);
    range_with(domain, "of no size", NVTX_TYPE_PAYLOAD_SCHEMA_RAW, bytes, SIZE_MAX);
    range_with(domain, "cut", NVTX_TYPE_PAYLOAD_SCHEMA_RAW, bytes, sizeof(bytes));
    for (size_t i = 0; i < 40; i++) {
        many[i] = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_UINT8, 1, bytes};
    }
    mark_all(domain, "many", many, 40);
}

START_TEST(payloads_that_are_not_kept_are_counted)
{
    ck_assert_int_eq(lac_job_run(job_missing), 0);
    import_ok();
    ck_assert_uint_eq(report_count("payload_members_left_out"), 1 + 1 + 1 + 8);
}
END_TEST
#endif

int main(void)
{
    Suite *const suite = suite_create("nvtx_members");
    TCase *const tcase = tcase_create("members");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
    tcase_add_test(tcase, a_union_shows_the_member_that_its_selector_names);
    tcase_add_test(tcase, a_union_with_a_selector_of_its_own_may_be_in_an_array);
    tcase_add_test(tcase, numbers_beyond_64_bits_keep_every_digit);
    tcase_add_test(tcase, text_of_16_and_32_bits_is_read_where_it_lies);
    tcase_add_test(tcase, what_pointers_lead_to_travels_with_the_payload);
    tcase_add_test(tcase, offsets_lead_into_the_payload_and_never_out_of_it);
    tcase_add_test(tcase, arrays_have_the_dimensions_that_the_data_tell);
    tcase_add_test(tcase, colour_and_category_in_a_payload_are_the_events);
    tcase_add_test(tcase, payloads_that_are_not_kept_are_counted);
#else
    (void)printf("skip: no nvToolsExtPayload.h on this machine\n");
#endif
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
