#ifndef LAC_COLLECTOR_INJECT_CUPTI_ABI_H
#define LAC_COLLECTOR_INJECT_CUPTI_ABI_H

/*
 * The part of CUPTI's binary interface that we use, written from its public documentation so that
 * we build without a toolkit and one library serves CUDA 11 to 13. Records only ever grow at their
 * end: these are prefixes, and what a version added is read only when cuptiGetVersion() says that
 * it is there. test_cupti.c compares every offset with the toolkit's headers where one is
 * installed.
 */

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
    CUPTI_OK = 0,
    CUPTI_RESULT_OUT_OF_MEMORY = 8,
    CUPTI_RESULT_MAX_LIMIT = 12, /* of subscribe, before 39 existed: another one is there */
    CUPTI_RESULT_NOT_SUPPORTED = 27,
    CUPTI_RESULT_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_RESULT_MULTIPLE_SUBSCRIBERS = 39,
};

enum cupti_kind {
    CUPTI_KIND_MEMCPY = 1,
    CUPTI_KIND_MEMSET = 2,
    CUPTI_KIND_KERNEL = 3, /* serializes kernels: never enabled, but read */
    CUPTI_KIND_DRIVER = 4,
    CUPTI_KIND_RUNTIME = 5,
    CUPTI_KIND_DEVICE = 8,
    CUPTI_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_KIND_OVERHEAD = 17,
    CUPTI_KIND_MEMCPY2 = 22,
    CUPTI_KIND_CUDA_EVENT = 36,
    CUPTI_KIND_SYNCHRONIZATION = 38,
    CUPTI_KIND_EXTERNAL_CORRELATION = 39,
    CUPTI_KIND_MEMORY2 = 49,
    CUPTI_KIND_GRAPH_TRACE = 51,
};

/** Device of a graph whose first node runs on the host. */
enum { CUPTI_NO_DEVICE = 0x7fffffff };

/** Of a context; the value is a size_t. */
enum cupti_attribute { CUPTI_ATTRIBUTE_DEVICE_BUFFERS_MAX = 2 };

enum cupti_object { CUPTI_OBJECT_THREAD = 2 };

enum cupti_domain { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };

/** API versions (cuptiGetVersion) at which records grew. */
enum cupti_version {
    CUPTI_VERSION_GRAPH_NODES = 14,   /* CUDA 11.1: graph node in kernel records */
    CUPTI_VERSION_MIG = 17,           /* CUDA 11.6: parts of devices */
    CUPTI_VERSION_GRAPH_END = 26,     /* CUDA 12.8: where a graph ends */
    CUPTI_VERSION_REFUSE_BUFFER = 27, /* CUDA 12.9: a refused buffer no longer crashes */
};

struct cupti_activity {
    uint32_t kind;
} __attribute__((packed, aligned(8)));

struct cupti_kernel {
    uint32_t kind;
    uint8_t cache_config;
    uint8_t shared_memory_config;
    uint16_t registers_per_thread;
    uint32_t partitioned_cache[2];
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t completed_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    int32_t grid[3];
    int32_t block[3];
    int32_t static_shared_bytes;
    int32_t dynamic_shared_bytes;
    uint32_t local_memory_per_thread;
    uint32_t local_memory_total;
    uint32_t correlation;
    int64_t grid_id;
    const char *name;
    uint64_t reserved;
    uint64_t queued_ns;
    uint64_t submitted_ns;
    uint64_t flags;
    uint64_t graph_node; /* from CUPTI_VERSION_GRAPH_NODES on */
    uint32_t shared_memory_executed;
    uint32_t graph;
} __attribute__((packed, aligned(8)));

struct cupti_memcpy {
    uint32_t kind;
    uint8_t copy_kind;
    uint8_t src_kind;
    uint8_t dst_kind;
    uint8_t flags; /* bit 0: asynchronous */
    uint64_t bytes;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t correlation;
} __attribute__((packed, aligned(8)));

struct cupti_memcpy_peer { /* from one device to another */
    uint32_t kind;
    uint8_t copy_kind;
    uint8_t src_kind;
    uint8_t dst_kind;
    uint8_t flags;
    uint64_t bytes;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t src_device;
    uint32_t src_context;
    uint32_t dst_device;
    uint32_t dst_context;
    uint32_t correlation;
} __attribute__((packed, aligned(8)));

struct cupti_memset {
    uint32_t kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t correlation;
} __attribute__((packed, aligned(8)));

struct cupti_call {
    uint32_t kind;
    uint32_t number;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t process;
    uint32_t thread;
    uint32_t correlation;
    uint32_t result;
} __attribute__((packed, aligned(8)));

struct cupti_synchronization {
    uint32_t kind;
    uint32_t type;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t correlation;
    uint32_t context;
    uint32_t stream;
    uint32_t event;
} __attribute__((packed, aligned(8)));

/** cudaEventRecord; has no time of its own, the call has. */
struct cupti_cuda_event {
    uint32_t kind;
    uint32_t correlation;
    uint32_t context;
    uint32_t stream;
    uint32_t event;
} __attribute__((packed, aligned(8)));

/** An external id that the program had pushed when it made the call with this correlation id. */
struct cupti_external_correlation {
    uint32_t kind;
    uint32_t external_kind;
    uint64_t external_id;
    uint32_t correlation;
    uint32_t reserved;
} __attribute__((packed, aligned(8)));

struct cupti_overhead {
    uint32_t kind;
    uint32_t overhead_kind;
    uint32_t object_kind;
    uint32_t object[3]; /* process, thread where the object is a thread */
    uint64_t start_ns;
    uint64_t end_ns;
} __attribute__((packed, aligned(8)));

struct cupti_memory {
    uint32_t kind;
    uint32_t operation;
    uint32_t memory_kind;
    uint32_t correlation;
    uint64_t address;
    uint64_t bytes;
    uint64_t timestamp_ns;
    uint64_t program_counter;
    uint32_t process;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
} __attribute__((packed, aligned(8)));

struct cupti_device {
    uint32_t kind;
    uint32_t flags;
    uint64_t memory_kbytes_per_s;
    uint64_t memory_bytes;
    uint32_t constant_bytes;
    uint32_t l2_bytes;
    uint32_t threads_per_warp;
    uint32_t clock_khz;
    uint32_t copy_engines;
    uint32_t sm_count;
    uint32_t limits[14];
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t id;
    uint32_t ecc;
    uint8_t uuid[16];
    const char *name;
    uint8_t is_visible; /* to CUDA; this and the rest from CUPTI_VERSION_MIG on */
    uint8_t is_divided; /* the process sees a part of it, by MIG */
    uint8_t reserved[6];
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint8_t mig_uuid[16]; /* of that part */
} __attribute__((packed, aligned(8)));

struct cupti_graph_trace {
    uint32_t kind;
    uint32_t correlation;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t device;
    uint32_t graph;
    uint32_t context;
    uint32_t stream;
    uint64_t reserved;
    uint32_t end_device; /* of the last node; from CUPTI_VERSION_GRAPH_END on */
    uint32_t end_context;
} __attribute__((packed, aligned(8)));

typedef void (*cupti_buffer_requested)(uint8_t **buffer, size_t *size_bytes,
                                       size_t *record_count_max);
typedef void (*cupti_buffer_completed)(void *context, uint32_t stream, uint8_t *buffer,
                                       size_t size_bytes, size_t valid_bytes);
typedef void (*cupti_callback)(void *user, int domain, uint32_t number, const void *data);
typedef uint64_t (*cupti_timestamp)(void);

/* Where in a call a callback is made: the first member of its data. */
enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };

/* Calls that mark a range to capture. */
enum {
    CUPTI_DRIVER_PROFILER_START = 308,
    CUPTI_DRIVER_PROFILER_STOP = 309,
    CUPTI_RUNTIME_PROFILER_START = 171,
    CUPTI_RUNTIME_PROFILER_STOP = 172,
};

struct cupti_subscriber_parameters {
    size_t size_bytes;
    const char *name;
    char *holder; /* set to the name of the tool that holds CUPTI when we are refused */
    size_t holder_bytes;
};

/** CUPTI's functions, found with dlsym; those marked (may be NULL) came with later versions. */
struct cupti_functions {
    int (*get_version)(uint32_t *version);
    int (*get_result_string)(int result, const char **text);
    int (*subscribe)(void **subscriber, cupti_callback callback, void *user);
    int (*subscribe_named)(void **subscriber, cupti_callback callback, void *user,
                           struct cupti_subscriber_parameters *parameters); /* may be NULL */
    int (*unsubscribe)(void *subscriber);
    int (*enable)(int kind);
    int (*disable)(int kind);
    int (*enable_runtime_call)(uint32_t number, uint8_t on); /* may be NULL */
    int (*enable_driver_call)(uint32_t number, uint8_t on);  /* may be NULL */
    int (*get_callback_name)(int domain, uint32_t number, const char **name);
    int (*register_buffers)(cupti_buffer_requested requested, cupti_buffer_completed completed);
    int (*register_timestamp)(cupti_timestamp function); /* may be NULL */
    int (*get_next_record)(uint8_t *buffer, size_t valid_bytes, struct cupti_activity **record);
    int (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
    int (*flush_all)(uint32_t flag);
    int (*set_attribute)(int attribute, size_t *size_bytes, void *value); /* may be NULL */
    int (*set_thread_id_type)(int type); /* 1: the system's, as gettid(); may be NULL */
    int (*get_stream_id)(void *context, const void *stream, uint8_t per_thread,
                         uint32_t *id);                    /* may be NULL */
    int (*get_device_id)(void *context, uint32_t *device); /* may be NULL */
    int (*enable_callback)(uint32_t on, void *subscriber, int domain,
                           uint32_t number); /* may be NULL */
};

#endif
