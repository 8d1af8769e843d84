#ifndef LAC_COLLECTOR_INJECT_NVTX_ABI_H
#define LAC_COLLECTOR_INJECT_NVTX_ABI_H

/*
 * What NVTX version 3 fixes between a program and the library injected into it: function table
 * numbers, the attribute struct, the export table. Written from the public interface, so that we
 * build without CUDA; stable since 2018. test_nvtx_payload.c compares it with the toolkit's
 * headers.
 */

#include <stddef.h>
#include <stdint.h>

enum nvtx_module {
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CUDA = 2,
    NVTX_MODULE_CUDART = 4,
    NVTX_MODULE_CORE2 = 5,
};

enum nvtx_core {
    NVTX_CORE_MARK_EX = 1,
    NVTX_CORE_MARK_A,
    NVTX_CORE_MARK_W,
    NVTX_CORE_START_EX,
    NVTX_CORE_START_A,
    NVTX_CORE_START_W,
    NVTX_CORE_END,
    NVTX_CORE_PUSH_EX,
    NVTX_CORE_PUSH_A,
    NVTX_CORE_PUSH_W,
    NVTX_CORE_POP,
    NVTX_CORE_NAME_CATEGORY_A,
    NVTX_CORE_NAME_CATEGORY_W,
    NVTX_CORE_NAME_THREAD_A,
    NVTX_CORE_NAME_THREAD_W,
};

enum nvtx_core2 {
    NVTX_CORE2_MARK_EX = 1,
    NVTX_CORE2_START_EX,
    NVTX_CORE2_END,
    NVTX_CORE2_PUSH_EX,
    NVTX_CORE2_POP,
    NVTX_CORE2_RESOURCE_CREATE,
    NVTX_CORE2_RESOURCE_DESTROY,
    NVTX_CORE2_NAME_CATEGORY_A,
    NVTX_CORE2_NAME_CATEGORY_W,
    NVTX_CORE2_REGISTER_STRING_A,
    NVTX_CORE2_REGISTER_STRING_W,
    NVTX_CORE2_DOMAIN_CREATE_A,
    NVTX_CORE2_DOMAIN_CREATE_W,
    NVTX_CORE2_DOMAIN_DESTROY,
    NVTX_CORE2_INITIALIZE,
};

enum nvtx_cuda { /* the driver's handles; contexts and events have no rows to name */
                 NVTX_CUDA_NAME_DEVICE_A = 1,
                 NVTX_CUDA_NAME_DEVICE_W,
                 NVTX_CUDA_NAME_STREAM_A = 5,
                 NVTX_CUDA_NAME_STREAM_W,
};

enum nvtx_cudart {
    NVTX_CUDART_NAME_DEVICE_A = 1,
    NVTX_CUDART_NAME_DEVICE_W,
    NVTX_CUDART_NAME_STREAM_A,
    NVTX_CUDART_NAME_STREAM_W,
};

/** Functions of the payload extension. */
enum nvtx_payload {
    NVTX_PAYLOAD_SCHEMA_REGISTER = 0,
    NVTX_PAYLOAD_ENUM_REGISTER,
    NVTX_PAYLOAD_MARK,
    NVTX_PAYLOAD_PUSH,
    NVTX_PAYLOAD_POP,
    NVTX_PAYLOAD_START,
    NVTX_PAYLOAD_END,
};
enum { NVTX_EXTENSION_PAYLOAD = 2, NVTX_EXTENSION_COMPATIBLE = 1 /* high byte of compat_id */ };
/** payload_type in attributes: the payload points to struct nvtx_data. */
#define NVTX_PAYLOAD_TYPE_SCHEMA ((int32_t)0xDFBD0009)

struct nvtx_extension_segment {
    size_t id;
    size_t slot_count;
    intptr_t *slots;
};

struct nvtx_extension {
    uint16_t nvtx_version;
    uint16_t struct_size;
    uint16_t module_id;
    uint16_t compat_id;
    size_t segment_count;
    struct nvtx_extension_segment *segments;
};

struct nvtx_data {
    uint64_t schema;
    size_t size_bytes; /* SIZE_MAX: find out */
    const void *bytes;
};

struct nvtx_schema_entry {
    uint64_t flags;
    uint64_t type;
    const char *name;
    const char *description;
    uint64_t detail;
    uint64_t offset;
    const void *semantics;
    const void *reserved;
};

struct nvtx_schema {
    uint64_t field_mask;
    const char *name;
    uint64_t type;
    uint64_t flags;
    const struct nvtx_schema_entry *entries;
    size_t entry_count;
    size_t static_size;
    size_t pack_align;
    uint64_t id;
};

struct nvtx_enum_entry {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};

struct nvtx_enum {
    uint64_t field_mask;
    const char *name;
    const struct nvtx_enum_entry *entries;
    size_t entry_count;
    size_t size_bytes;
    uint64_t id;
};

/* bits of field_mask: what a program has set */
enum nvtx_schema_field {
    NVTX_SCHEMA_HAS_NAME = 1 << 1,
    NVTX_SCHEMA_HAS_TYPE = 1 << 2,
    NVTX_SCHEMA_HAS_FLAGS = 1 << 3,
    NVTX_SCHEMA_HAS_ENTRIES = 1 << 4,
    NVTX_SCHEMA_HAS_COUNT = 1 << 5,
    NVTX_SCHEMA_HAS_SIZE = 1 << 6,
    NVTX_SCHEMA_HAS_ALIGNMENT = 1 << 7,
    NVTX_SCHEMA_HAS_ID = 1 << 8,
    NVTX_ENUM_HAS_NAME = 1 << 1,
    NVTX_ENUM_HAS_ENTRIES = 1 << 2,
    NVTX_ENUM_HAS_COUNT = 1 << 3,
    NVTX_ENUM_HAS_SIZE = 1 << 4,
    NVTX_ENUM_HAS_ID = 1 << 5,
};

enum nvtx_schema_flag { NVTX_SCHEMA_REFERENCED = 1 << 2 /* not to be shown by itself */ };

enum nvtx_entry_flag {
    NVTX_ENTRY_POINTER = 1 << 1,
    NVTX_ENTRY_OFFSET_MASK = 3 << 2, /* from the base of the payload, or from here */
    NVTX_ENTRY_ARRAY_MASK = 7 << 4,
    NVTX_ENTRY_ARRAY_FIXED = 1 << 4,
    NVTX_ENTRY_ARRAY_TERMINATED = 2 << 4,
    NVTX_ENTRY_ARRAY_LENGTH = 3 << 4,  /* detail is the entry that holds it */
    NVTX_ENTRY_ARRAY_PAYLOAD = 4 << 4, /* detail is the payload that holds it */
    NVTX_ENTRY_DEEP_COPY = 1 << 8,     /* the pointer leads anywhere */
    NVTX_ENTRY_MESSAGE = 1 << 10,
};

enum nvtx_entry_type {
    NVTX_TYPE_CHAR = 1,
    NVTX_TYPE_FLOAT = 19,
    NVTX_TYPE_LONGDOUBLE = 21,
    NVTX_TYPE_SIZE,
    NVTX_TYPE_CHAR32 = 27,
    NVTX_TYPE_BYTE = 32,
    NVTX_TYPE_INT128,
    NVTX_TYPE_UINT128,
    NVTX_TYPE_FLOAT16 = 42,
    NVTX_TYPE_FLOAT32,
    NVTX_TYPE_FLOAT64,
    NVTX_TYPE_FLOAT128,
    NVTX_TYPE_BF16 = 50,
    NVTX_TYPE_TF32 = 52,
    NVTX_TYPE_RANGE_ID = 67,
    NVTX_TYPE_CATEGORY,
    NVTX_TYPE_COLOR_ARGB,
    NVTX_TYPE_SCOPE_ID,
    NVTX_TYPE_PID_UINT32,
    NVTX_TYPE_PID_UINT64,
    NVTX_TYPE_TID_UINT32,
    NVTX_TYPE_TID_UINT64,
    NVTX_TYPE_CSTRING = 75,
    NVTX_TYPE_CSTRING_UTF8,
    NVTX_TYPE_CSTRING_UTF16,
    NVTX_TYPE_CSTRING_UTF32,
    NVTX_TYPE_REGISTERED_STRING = 80,
    NVTX_TYPE_UNION_SELECTOR = 100,
    NVTX_TYPE_REFERENCED = 1022, /* of a payload: others point into it */
    NVTX_TYPE_RAW = 1023,        /* of a payload: nobody says what it is */
    NVTX_SCHEMA_ID_STATIC = 1 << 24,
};
#define NVTX_SCHEMA_ID_DYNAMIC ((uint64_t)1 << 32)

enum nvtx_message_type {
    NVTX_MESSAGE_ASCII = 1,
    NVTX_MESSAGE_WIDE = 2,
    NVTX_MESSAGE_REGISTERED = 3,
};

/** Fields behind `size` bytes are absent: older programs pass a shorter struct. */
struct nvtx_attributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type; /**< 0 none, then as enum lac_payload_type */
    int32_t reserved;
    uint64_t payload;
    int32_t message_type; /**< enum nvtx_message_type */
    const void *message;
};

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t size_bytes;
    /** *(*ret_table)[number] is to be set, for number < *ret_count. Returns 0 when unknown. */
    int (*get_module_table)(int module, nvtx_function ***ret_table, unsigned *ret_count);
};

enum { NVTX_EXPORT_CALLBACKS = 1 };
typedef const void *(*nvtx_get_export_table)(uint32_t id);

#endif
