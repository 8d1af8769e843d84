#ifndef LAC_COLLECTOR_INJECT_NVTX_ABI_H
#define LAC_COLLECTOR_INJECT_NVTX_ABI_H

/*
 * What NVTX version 3 fixes between a program and the library injected into it: function table
 * numbers, the attribute struct, the export table. Written from the public interface, so that we
 * build without CUDA; stable since 2018. test_nvtx_abi.c compares it with the toolkit's headers.
 */

#include <stddef.h>
#include <stdint.h>

enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CUDART = 4, NVTX_MODULE_CORE2 = 5 };

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

enum nvtx_cudart {
    NVTX_CUDART_NAME_DEVICE_A = 1,
    NVTX_CUDART_NAME_DEVICE_W,
    NVTX_CUDART_NAME_STREAM_A,
    NVTX_CUDART_NAME_STREAM_W,
};

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
