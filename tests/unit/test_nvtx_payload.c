/*
 * Payloads with a schema, from a program that uses NVTX's own headers to the arguments of its
 * ranges: through the recorder, a spool and the importer.
 */
#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/inject/nvtx_abi.h"
#include "tests/support/check_main.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include "tests/support/nvtx_job.h"

#define SAME(ours, field, theirs, other)                                                           \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, other), "offset of " #field)
SAME(nvtx_data, bytes, nvtxPayloadData_t, payload);
SAME(nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries);
SAME(nvtx_schema, static_size, nvtxPayloadSchemaAttr_t, payloadStaticSize);
SAME(nvtx_schema, pack_align, nvtxPayloadSchemaAttr_t, packAlign);
SAME(nvtx_schema, id, nvtxPayloadSchemaAttr_t, schemaId);
SAME(nvtx_schema_entry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
SAME(nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset);
_Static_assert(sizeof(struct nvtx_schema_entry) == sizeof(nvtxPayloadSchemaEntry_t), "entry");
SAME(nvtx_enum, size_bytes, nvtxPayloadEnumAttr_t, sizeOfEnum);
SAME(nvtx_enum, id, nvtxPayloadEnumAttr_t, schemaId);
SAME(nvtx_enum_entry, is_flag, nvtxPayloadEnum_t, isFlag);
_Static_assert(NVTX_PAYLOAD_TYPE_SCHEMA == NVTX_PAYLOAD_TYPE_EXT, "type");
_Static_assert((int)NVTX_TYPE_REGISTERED_STRING ==
                   NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE,
               "type");
_Static_assert((int)NVTX_PAYLOAD_END == NVTX3EXT_CBID_nvtxRangeEndPayload, "slot");

struct all_reduce {
    uint64_t communicator;
    size_t bytes;
    int32_t root;
    uint8_t operation;
    float scale;
    double ratio;
    int64_t shape[3];
    char tag[8];
    const char *algorithm;
    nvtxStringHandle_t protocol;
};

static void job_struct(void)
{
    static const nvtxPayloadEnum_t values[] = {{"sum", 0, 0}, {"max", 2, 0}};
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadEnumAttr_t operations = {
        .fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE,
        .entries = values,
        .numEntries = 2,
        .sizeOfEnum = 1};
    const uint64_t operation = nvtxPayloadEnumRegister(domain, &operations);
#define MEMBER(flags, type, name, detail, field)                                                   \
    {                                                                                              \
        flags, type, name, NULL, detail, offsetof(struct all_reduce, field), NULL, NULL            \
    }
    const nvtxPayloadSchemaEntry_t entries[] = {
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "comm", 0, communicator),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "message size", 0, bytes),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "root", 0, root),
        MEMBER(0, operation, "operation", 0, operation),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "scale", 0, scale),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "ratio", 0, ratio),
        MEMBER(NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "shape", 3,
               shape),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "tag", 8, tag),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "algorithm", 0, algorithm),
        MEMBER(0, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "protocol", 0, protocol),
    };
    const uint64_t schema = DESCRIBE(domain, "AllReduce", entries, sizeof(struct all_reduce));
    struct all_reduce call = {.communicator = 0x7f0000001234,
                              .bytes = 4096,
                              .root = -1,
                              .operation = 2,
                              .scale = 0.5F,
                              .ratio = 2.25,
                              .shape = {3, -4, 5},
                              .tag = "a\"b",
                              .algorithm = "ring",
                              .protocol = nvtxDomainRegisterStringA(domain, "LL128")};

    range_with(domain, "ncclAllReduce", schema, &call, sizeof(call));
    call.operation = 9; /* no name for it */
    call.algorithm = NULL;
    range_with(domain, "no name", schema, &call, SIZE_MAX);
    if (fork() == 0) { /* the child describes it again */
        call.operation = 0;
        range_with(domain, "in a child", schema, &call, sizeof(call));
        _exit(0);
    }
    (void)wait(NULL);
}

START_TEST(the_members_of_a_struct_are_named_arguments)
{
    ck_assert_int_eq(lac_job_run(job_struct), 0);
    import_ok();
    check_args("ncclAllReduce",
               "{\"domain\":\"NCCL\",\"comm\":139637976732212,\"message size\":4096,\"root\":-1,"
               "\"operation\":\"max\",\"scale\":0.5,\"ratio\":2.25,\"shape\":[3,-4,5],"
               "\"tag\":\"a\\\"b\",\"algorithm\":\"ring\",\"protocol\":\"LL128\"}");
    check_args("no name",
               "{\"domain\":\"NCCL\",\"comm\":139637976732212,\"message size\":4096,\"root\":-1,"
               "\"operation\":9,\"scale\":0.5,\"ratio\":2.25,\"shape\":[3,-4,5],"
               "\"tag\":\"a\\\"b\",\"algorithm\":\"\",\"protocol\":\"LL128\"}");
    check_args("in a child",
               "{\"domain\":\"NCCL\",\"comm\":139637976732212,\"message size\":4096,\"root\":-1,"
               "\"operation\":\"sum\",\"scale\":0.5,\"ratio\":2.25,\"shape\":[3,-4,5],"
               "\"tag\":\"a\\\"b\",\"algorithm\":\"\",\"protocol\":\"LL128\"}");
}
END_TEST

struct point {
    int16_t x;
    uint32_t y;
};

struct shape {
    uint8_t kind;
    struct point corners[2];
    struct point centre;
};

/* Without any offset: where the members are follows from their types. */
static void job_nested(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t point_entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT16, "x"),
                                                      PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "y")};
    const uint64_t point = DESCRIBE(domain, "point", point_entries, 0);
    const nvtxPayloadSchemaEntry_t shape_entries[] = {
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "kind"),
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, point, "corners", NULL, 2, 0, NULL, NULL},
        PLAIN(point, "centre")};
    const uint64_t shape = DESCRIBE(domain, "shape", shape_entries, 0);
    const struct shape value = {.kind = 7, .corners = {{-1, 2}, {3, 4000000000}}, .centre = {5, 6}};

    range_with(domain, "nested", shape, &value, sizeof(value));
    range_with(domain, "cut short", shape, &value, 10);
}

START_TEST(structs_within_structs_are_placed_as_a_compiler_does)
{
    ck_assert_int_eq(lac_job_run(job_nested), 0);
    import_ok();
    check_args("nested", "{\"domain\":\"NCCL\",\"kind\":7,\"corners\":[{\"x\":-1,\"y\":2},{\"x\":3,"
                         "\"y\":4000000000}],\"centre\":{\"x\":5,\"y\":6}}");
    check_args("cut short", "{\"domain\":\"NCCL\",\"kind\":7}");
    ck_assert_uint_gt(report_count("payload_members_left_out"), 0);
}
END_TEST

/* A count, that many numbers, a text to its zero, and a number behind it. */
static void job_dynamic(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "count"),
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "sizes", NULL,
         0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "label",
         NULL, 0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_HIDE, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "hidden", NULL, 0, 0, NULL,
         NULL},
        PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT8, "last")};
    const uint64_t schema =
        describe(domain, "dynamic", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, entries, 5, 0);
    const uint8_t bytes[] = {3, 0, 0, 0, 10, 0, 20, 0, 30, 1, 'h', 'i', 0, 1, 0xfe};
    uint8_t hostile[sizeof(bytes)];

    range_with(domain, "dynamic", schema, bytes, sizeof(bytes));
    memcpy(hostile, bytes, sizeof(bytes));
    hostile[3] = 0x7f; /* two thousand million of them */
    range_with(domain, "hostile", schema, hostile, sizeof(hostile));
}

START_TEST(members_of_variable_length_are_read_and_checked)
{
    ck_assert_int_eq(lac_job_run(job_dynamic), 0);
    import_ok();
    check_args("dynamic", "{\"domain\":\"NCCL\",\"count\":3,\"sizes\":[10,20,286],\"label\":\"hi\","
                          "\"last\":-2}");
    check_args("hostile", "{\"domain\":\"NCCL\",\"count\":2130706435}");
}
END_TEST

struct message {
    const char *text;
    int32_t number;
};

/* Events that are nothing but payloads, and payloads that come with the end. */
static void job_events(void)
{
    const nvtxDomainHandle_t domain = begin();
    const nvtxPayloadSchemaEntry_t entries[] = {{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
                                                 NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", NULL, 0,
                                                 offsetof(struct message, text), NULL, NULL},
                                                {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "number", NULL,
                                                 0, offsetof(struct message, number), NULL, NULL}};
    const nvtxPayloadSchemaEntry_t end_entries[] = {PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "result")};
    const uint64_t schema = DESCRIBE(domain, "message", entries, sizeof(struct message));
    const uint64_t end_schema = DESCRIBE(domain, "end", end_entries, 4);
    struct message message = {.text = "pushed", .number = 1};
    const int32_t result = 99;
    const nvtxPayloadData_t data = {schema, sizeof(message), &message};
    const nvtxPayloadData_t end = {end_schema, 4, &result};
    const nvtxPayloadData_t unnamed[] = {{end_schema, 4, &result},
                                         {NVTX_PAYLOAD_ENTRY_TYPE_INT64, 8, &(int64_t){-5}}};
    nvtxRangeId_t id;

    (void)nvtxRangePushPayload(domain, &data, 1);
    message = (struct message){.text = "marked", .number = 2};
    nvtxMarkPayload(domain, &data, 1);
    nvtxMarkPayload(domain, unnamed, 2);
    (void)nvtxRangePopPayload(domain, &end, 1);
    message = (struct message){.text = "started", .number = 3};
    id = nvtxRangeStartPayload(domain, &data, 1);
    nvtxRangeEndPayload(domain, id, &end, 1);
    range_with(domain, "plain", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "a text", SIZE_MAX);
    range_with(domain, "undescribed", (uint64_t)1 << 40, &result, 4);
}

START_TEST(events_that_are_payloads_have_names_and_arguments)
{
    ck_assert_int_eq(lac_job_run(job_events), 0);
    import_ok();
    check_args("pushed", "{\"domain\":\"NCCL\",\"number\":1,\"result\":99}");
    check_args("marked", "{\"domain\":\"NCCL\",\"number\":2}");
    check_args("end", "{\"domain\":\"NCCL\",\"result\":99,\"payload\":-5}");
    check_args("started", "{\"domain\":\"NCCL\",\"number\":3,\"result\":99}");
    check_args("plain", "{\"domain\":\"NCCL\",\"payload\":\"a text\"}");
    check_args("undescribed", "{\"domain\":\"NCCL\"}");
}
END_TEST

/* More of everything than is kept. */
static void job_too_much(void)
{
    static nvtxPayloadSchemaEntry_t entries[200];
    static const uint8_t bytes[4096];
    static char long_text[20000];
    const nvtxDomainHandle_t domain = begin();
    uint64_t schema = 0;

    for (size_t i = 0; i < 200; i++) {
        entries[i] = (nvtxPayloadSchemaEntry_t)PLAIN(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "m");
    }
    ck_assert_uint_eq(
        describe(domain, "too many", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 200, 0), 0);
    schema = describe(domain, "many", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 128, 0);
    range_with(domain, "many members", schema, bytes, sizeof(bytes));
    range_with(domain, "nothing", schema, NULL, 8);
    memset(long_text, 'x', sizeof(long_text) - 1);
    range_with(domain, "long text", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, long_text, sizeof(long_text));
    for (int i = 0; i < 600; i++) {
        schema = describe(domain, "one of many", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 1, 0);
    }
    ck_assert_uint_eq(schema, 0); /* the table is full; the job goes on */
    range_with(domain, "after all", schema, bytes, 8);
}

START_TEST(too_much_of_anything_is_refused_or_cut)
{
    uint64_t ranges = 0;

    ck_assert_int_eq(lac_job_run(job_too_much), 0);
    import_ok();
    for (uint64_t i = 0; i < imported->slices.count; i++) {
        char args[16384];
        const size_t length = lac_args_format(imported, i, args, sizeof(args));

        ranges += imported->slices.kind[i] == LAC_SLICE_RANGE;
        ck_assert_uint_lt(length, sizeof(args));
        ck_assert(length == 0 || (args[0] == '{' && args[length - 1] == '}'));
    }
    ck_assert_uint_eq(ranges, 4);
}
END_TEST
#endif

int main(void)
{
    Suite *const suite = suite_create("nvtx_payload");
    TCase *const tcase = tcase_create("payload");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, lac_job_setup, lac_job_teardown);
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
    tcase_add_test(tcase, the_members_of_a_struct_are_named_arguments);
    tcase_add_test(tcase, structs_within_structs_are_placed_as_a_compiler_does);
    tcase_add_test(tcase, members_of_variable_length_are_read_and_checked);
    tcase_add_test(tcase, events_that_are_payloads_have_names_and_arguments);
    tcase_add_test(tcase, too_much_of_anything_is_refused_or_cut);
#else
    (void)printf("skip: no nvToolsExtPayload.h on this machine\n");
#endif
    suite_add_tcase(suite, tcase);
    return check_main(suite);
}
