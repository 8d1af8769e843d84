#ifndef LAC_TESTS_SUPPORT_NVTX_JOB_H
#define LAC_TESTS_SUPPORT_NVTX_JOB_H

/*
 * Programs that use NVTX's own headers, and what becomes of their payloads. To be included only
 * where the headers are: they define functions.
 */

#include "analysis/model/args.h"
#include "analysis/model/model.h"
#include "collector/base/count_of.h"
#include "tests/support/recorded_job.h"

#include <check.h>
#include <inttypes.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct lac_model *imported;

static inline void import_ok(void)
{
    struct lac_error error = {0};

    imported = lac_job_import(&error);
    ck_assert_msg(imported != NULL, "%s", error.message);
    ck_assert(lac_model_is_valid(imported));
}

/* The only slice of this name has these arguments. */
static inline void check_args(const char *name, const char *expected)
{
    char args[8192];
    unsigned found = 0;

    for (uint64_t i = 0; i < imported->slices.count; i++) {
        if (strcmp(lac_model_str(imported, imported->slices.name[i]), name) == 0) {
            ck_assert_uint_lt(lac_args_format(imported, i, args, sizeof(args)), sizeof(args));
            ck_assert_msg(strcmp(args, expected) == 0, "%s: %s, not %s", name, args, expected);
            found++;
        }
    }
    ck_assert_msg(found == 1, "%u slices are called %s", found, name);
}

static inline uint64_t report_count(const char *code)
{
    for (uint32_t i = 0; i < imported->report_count; i++) {
        if (strcmp(imported->report[i].code, code) == 0) {
            return imported->report[i].count;
        }
    }
    return 0;
}

static inline nvtxDomainHandle_t begin(void)
{
    (void)setenv("NVTX_INJECTION64_PATH", lac_job_file("liblacuna.so"), 1);
    return nvtxDomainCreateA("NCCL");
}

static inline uint64_t describe(nvtxDomainHandle_t domain, const char *name, uint64_t type,
                                const nvtxPayloadSchemaEntry_t *entries, size_t count,
                                size_t size_bytes)
{
    const nvtxPayloadSchemaAttr_t attributes = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     (size_bytes > 0 ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE : 0),
        .name = name,
        .type = type,
        .entries = entries,
        .numEntries = count,
        .payloadStaticSize = size_bytes};

    return nvtxPayloadSchemaRegister(domain, &attributes);
}

#define DESCRIBE(domain, name, entries, size)                                                      \
    describe(domain, name, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, LAC_COUNT_OF(entries), size)

/* A range with one payload, as NCCL makes them. */
static inline void range_with(nvtxDomainHandle_t domain, const char *name, uint64_t schema,
                              const void *bytes, size_t size_bytes)
{
    const nvtxPayloadData_t data = {schema, size_bytes, bytes};
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};

    attributes.message.ascii = name;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = (uint64_t)(uintptr_t)&data;
    (void)nvtxDomainRangePushEx(domain, &attributes);
    (void)nvtxDomainRangePop(domain);
}

#define PLAIN(type, name)                                                                          \
    {                                                                                              \
        0, type, name, NULL, 0, 0, NULL, NULL                                                      \
    }

#endif
