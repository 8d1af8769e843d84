#ifndef LAC_COLLECTOR_INJECT_NVTX_SCHEMA_H
#define LAC_COLLECTOR_INJECT_NVTX_SCHEMA_H

/* Descriptions of payloads (nvtx_schema.c), which nvtx_payload.c reads them by. */

#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_schema_member {
    uint64_t type; /**< of an enum: value */
    const char *name;
    uint32_t flags;
    uint32_t offset; /**< UINT32_MAX: not known before the data are */
    uint32_t detail;
};

/** Once registered it stays as it is, for the life of the process. */
struct lac_schema {
    uint64_t id;
    const char *name; /**< may be NULL */
    struct lac_schema_member *members;
    uint32_t member_count;
    uint32_t size_bytes; /**< 0: differs */
    uint32_t alignment;
    uint32_t flags; /**< enum nvtx_schema_flag */
    uint16_t domain;
    uint8_t kind; /**< enum lac_schema_kind */
};

/** NULL when nobody described it. Lock-free. */
const struct lac_schema *lac_schema_find(uint16_t domain, uint64_t id);

/** Bytes of one code unit of a text type, 0 when it is none. */
uint32_t lac_schema_unit_bytes(uint64_t type);
/** Bytes of a predefined type; of texts one unit; 0 when it has no size. */
uint32_t lac_schema_type_bytes(uint64_t type);
/** Bytes of one element of the member, where it lies itself; 0 when that differs. */
uint32_t lac_schema_element_bytes(const struct lac_schema_member *member,
                                  const struct lac_schema *nested);

static inline bool lac_schema_is_struct(const struct lac_schema *schema)
{
    return schema != NULL && schema->kind != LAC_SCHEMA_ENUM;
}

static inline bool lac_schema_is_union(const struct lac_schema *schema)
{
    return schema->kind == LAC_SCHEMA_UNION || schema->kind == LAC_SCHEMA_UNION_SELECTED;
}

/** The member is a pointer to text that lies elsewhere. */
bool lac_schema_is_text_pointer(const struct lac_schema_member *member);

/* ---- what a program calls */
uint64_t lac_schema_register(const struct lac_domain *domain, const struct nvtx_schema *from);
uint64_t lac_schema_register_enum(const struct lac_domain *domain, const struct nvtx_enum *from);

#endif
