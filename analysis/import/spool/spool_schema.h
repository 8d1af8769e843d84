#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SCHEMA_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_SCHEMA_H

/*
 * What a spool says of the structs in payloads: schemas, their members, and the types, which are
 * numbered as NVTX numbers them. Private to the spool importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>

/** NVTX's numbers. */
enum lac_member_flag {
    LAC_MEMBER_POINTER = 1 << 1,          /**< in a spool: an offset in the payload's bytes */
    LAC_MEMBER_OFFSET_FROM_BASE = 1 << 2, /**< of the payload */
    LAC_MEMBER_OFFSET_FROM_HERE = 1 << 3, /**< from the end of the member */
    LAC_MEMBER_ARRAY_MASK = 7 << 4,
    LAC_MEMBER_ARRAY_FIXED = 1 << 4,
    LAC_MEMBER_ARRAY_TERMINATED = 2 << 4,
    LAC_MEMBER_ARRAY_LENGTH = 3 << 4,
    LAC_MEMBER_ARRAY_PAYLOAD = 4 << 4, /**< its length is another payload of the event */
    LAC_MEMBER_HIDE = 1 << 9,
    LAC_MEMBER_MESSAGE = 1 << 10,
};

enum lac_member_type {
    LAC_TYPE_CHAR = 1,
    LAC_TYPE_LONGDOUBLE = 21, /**< in a spool: the 80 bits of x86 */
    LAC_TYPE_BYTE = 32,
    LAC_TYPE_INT128,
    LAC_TYPE_UINT128,
    LAC_TYPE_FLOAT16 = 42,
    LAC_TYPE_FLOAT32,
    LAC_TYPE_FLOAT64,
    LAC_TYPE_FLOAT128,
    LAC_TYPE_BF16 = 50,
    LAC_TYPE_TF32 = 52,
    LAC_TYPE_RANGE_ID = 67,
    LAC_TYPE_CATEGORY,
    LAC_TYPE_COLOR,
    LAC_TYPE_SCOPE_ID,
    LAC_TYPE_PID_UINT32,
    LAC_TYPE_PID_UINT64,
    LAC_TYPE_TID_UINT32,
    LAC_TYPE_TID_UINT64,
    LAC_TYPE_CSTRING,
    LAC_TYPE_CSTRING_UTF8,
    LAC_TYPE_CSTRING_UTF16,
    LAC_TYPE_CSTRING_UTF32,
    LAC_TYPE_REGISTERED_STRING = 80,
    LAC_TYPE_UNION_SELECTOR = 100, /**< one byte: the index of a member of its union */
    LAC_TYPE_RAW = 1023,
    LAC_SCHEMA_ID_STATIC = 1 << 24, /**< from here on: a schema */
};

struct lac_spool_member {
    uint64_t type; /**< of an enum: value */
    uint32_t name; /**< string id */
    uint32_t flags;
    int64_t offset; /**< -1: after the member before it */
    uint32_t detail;
};

struct lac_spool_schema {
    uint64_t id;
    uint32_t size_bytes; /**< 0: differs */
    uint32_t alignment;
    uint32_t first;
    uint32_t count; /**< of members */
    uint32_t name;  /**< string id */
    uint16_t domain;
    uint8_t kind; /**< enum lac_schema_kind */
};

struct lac_spool_type {
    uint8_t size_bytes; /**< of text: one unit; 0: not one that we can read */
    char form;          /**< i signed, u unsigned, f real, c character, t text */
};

struct lac_spool_type lac_spool_type_of(uint64_t type);

/** Take note of the schemas that events of one segment describe, before they are used. */
LAC_MUST_USE enum lac_status lac_spool_schemas_collect(struct lac_spool_process *process,
                                                       const struct lac_event *events,
                                                       size_t count);
void lac_spool_schemas_destroy(struct lac_spool_schemas *schemas);

/** NULL when nobody described it. */
const struct lac_spool_schema *lac_spool_schema_find(const struct lac_spool_process *process,
                                                     uint16_t domain, uint64_t id);
/** Its first member, NULL when it has none; valid until more are collected. */
const struct lac_spool_member *lac_spool_schema_members(const struct lac_spool_process *process,
                                                        const struct lac_spool_schema *schema);

#endif
