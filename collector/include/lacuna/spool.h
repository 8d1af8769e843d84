#ifndef LACUNA_SPOOL_H
#define LACUNA_SPOOL_H

/*
 * The spool: what a traced process leaves behind, one file a process. FORMAT.md explains it;
 * this header is the layout. Version 1 stays readable for ever.
 *
 *   file    = header (LAC_SPOOL_HEADER_BYTES), then segments of header.segment_bytes each
 *   segment = 64 bytes of header, then records of 16 bytes (events) or of any length (strings)
 *
 * Everything is little endian and written in place through a shared mapping, so that what was
 * recorded survives the death of the process at any instant. A record is valid when its type byte,
 * which is stored last, is not zero; a zero type ends a segment. So a torn tail needs no repair.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Files of a recording: "<pid>-<time>-<n>" LAC_SPOOL_ENDING, one a process, and what a job's own
 * profiler wrote, LAC_SPOOL_PROFILER "<pid>-<n>.json[.gz]". */
#define LAC_SPOOL_ENDING   ".spool"
#define LAC_SPOOL_PROFILER "torch-profiler-"

/* "comm" of the spool that a launcher writes its samples into. */
#define LAC_SPOOL_LAUNCHER "lacuna-node"
/* A launcher's note in the folder of a recording, and its line from the end of the recording on. */
#define LAC_SPOOL_NOTE       ".lacuna-launcher"
#define LAC_SPOOL_NOTE_ENDED "recording ended\n"

#define LAC_SPOOL_MAGIC           "LACSPOOL"
#define LAC_SPOOL_VERSION         1u
#define LAC_SPOOL_ENDIAN_MARK     0x01020304u
#define LAC_SPOOL_HEADER_BYTES    8192u
#define LAC_SPOOL_SEGMENTS_OFFSET 65536u /* where segment 0 begins: any page size can map it */
#define LAC_SPOOL_TEXT_OFFSET     512u
#define LAC_SPOOL_TEXT_BYTES      (LAC_SPOOL_HEADER_BYTES - LAC_SPOOL_TEXT_OFFSET)
#define LAC_SPOOL_FREE_RING       64u
#define LAC_SPOOL_ANCESTORS       8           /* of a process, in its header's text */
#define LAC_SEGMENT_MAGIC         0x4745534cu /* "LSEG" */
#define LAC_SEGMENT_HEADER_BYTES  64u

/** What time stamps count. */
enum lac_spool_clock {
    LAC_SPOOL_CLOCK_MONOTONIC = 1, /**< ns of CLOCK_MONOTONIC */
    LAC_SPOOL_CLOCK_TSC = 2,       /**< ticks of the invariant TSC; sync points give the rate */
};

/** What a launcher wants of the process. Ranges that are open then are still closed. */
enum lac_spool_stop {
    LAC_SPOOL_RECORD = 0,
    LAC_SPOOL_STOP = 1,  /**< record no more */
    LAC_SPOOL_PAUSE = 2, /**< not now */
    LAC_SPOOL_OFF = 3,   /**< not for long: the GPU's recording is switched off, too; a PAUSE comes
                              before it goes on, as switching on takes time */
    LAC_SPOOL_WAIT = 4,  /**< not before a range to capture opens: the process then stores RECORD
                             itself, and WAIT again behind it */
};

/** How far the recording of the GPU came. A launcher tells of trouble while the job runs. */
enum lac_gpu_state {
    LAC_GPU_STATE_NONE = 0, /**< the process has not initialized CUDA */
    LAC_GPU_STATE_FULL = 1,
    LAC_GPU_STATE_NO_KERNELS = 2, /**< gpu_recording_reason */
    LAC_GPU_STATE_REFUSED = 3,    /**< nothing; gpu_recording_reason */
    LAC_GPU_STATE_ENDED = 4,      /**< another tool has CUPTI now; gpu_recording_reason */
    LAC_GPU_STATE_SILENT = 5,     /**< no record comes any more; gpu_recording_silent */
    LAC_GPU_STATE_UNSEEN = 6,     /**< steps go on, and none has come yet; gpu_recording_unseen */
};

/** One instant read on three clocks. `ticks` is the clock of the spool. */
struct lac_sync_point {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
};

struct lac_spool_header {
    char magic[8];        /**< LAC_SPOOL_MAGIC, stored last: a file without it is not a spool yet */
    uint32_t version;     /**< LAC_SPOOL_VERSION */
    uint32_t endian_mark; /**< LAC_SPOOL_ENDIAN_MARK */
    uint32_t header_bytes;  /**< LAC_SPOOL_HEADER_BYTES */
    uint32_t segment_bytes; /**< a multiple of 4096 */
    uint32_t clock;         /**< enum lac_spool_clock */
    int32_t pid;            /**< in the process's own pid namespace */
    int32_t parent_pid;
    uint32_t fork_depth;  /**< 0: started by exec; n: forked n times since */
    uint64_t start_ticks; /**< start time of the process, /proc/self/stat field 22 */
    uint8_t boot_id[16];
    struct lac_sync_point first; /**< when the file was made */
    /* written while recording, each by one 64-bit store */
    uint64_t segment_count;        /**< segments handed out, from 0 on */
    uint64_t dropped_count;        /**< events that could not be kept, all reasons */
    uint64_t dropped_disk_count;   /**< of these: no space, quota or size limit */
    uint64_t dropped_string_count; /**< names that could not be kept; their events carry name 0 */
    uint64_t size_limit_bytes;     /**< 0: none */
    uint32_t text_bytes;           /**< bytes used in text */
    uint32_t stop;                 /**< set by a launcher: enum lac_spool_stop */
    uint32_t named_count;          /**< domains and categories that got a name */
    uint32_t reserved0;
    uint64_t step_count;         /**< training steps that a hook saw end; 0 none */
    uint64_t lost_process_count; /**< children that could not make a spool of their own */
    uint64_t cut_name_count;     /**< events whose name was longer than is kept */
    uint32_t gpu_state;          /**< enum lac_gpu_state; what tells why is among the settings */
    uint32_t ask_count; /**< a launcher adds one, and wakes who waits for it (futex), to ask for
                             the stacks of all threads */
    uint64_t rank;      /**< world size << 32 | rank, as the job's framework told; 0: not */
    uint64_t
        rank_group; /**< hash of where those ranks met, so that two jobs of one recording are told
                            apart; stored before `rank` */
    uint64_t loader_wait_ns; /**< that threads of the hook spent waiting for batches */
    uint32_t captures_begun; /**< ranges to capture that the process opened */
    uint32_t captures_open;  /**< of these, now: it records itself meanwhile */
    uint64_t
        progress_count; /**< ranges that a hook opened in the thread that trains, also in pauses */
    int32_t training_tid;     /**< the thread that ends steps; 0: none is known */
    uint32_t gpu_buffers_out; /**< of CUPTI: what is in them is lost if the process dies now */
    uint64_t
        ended_ns; /**< CLOCK_MONOTONIC when a drainer had copied the last of it; 0: not known */
    uint32_t reserved[2];
    /* segments that a drainer emptied, for reuse: it stores at tail, threads take at head */
    uint64_t free_head;
    uint64_t free_tail;
    uint32_t free_ring[LAC_SPOOL_FREE_RING];
    char text[LAC_SPOOL_TEXT_BYTES]; /**< NUL-terminated "key=value" strings: host, comm, argv, cwd,
                                        ancestors, env.RANK... */
};

enum lac_segment_kind {
    LAC_SEGMENT_EVENTS = 1,  /**< struct lac_event, one thread */
    LAC_SEGMENT_STRINGS = 2, /**< struct lac_string_record, whole process */
    LAC_SEGMENT_GPU = 3,     /**< struct lac_gpu_record, whole process */
    LAC_SEGMENT_SAMPLES = 4, /**< struct lac_sample, written by a launcher in a spool of its own */
};

/** Life of a segment: free -> open (a thread fills it) -> full -> (a drainer copies it) -> free. */
enum lac_segment_state {
    LAC_SEGMENT_FREE = 0,
    LAC_SEGMENT_OPEN = 1,
    LAC_SEGMENT_FULL = 2,
};

struct lac_segment_header {
    uint32_t magic;             /**< LAC_SEGMENT_MAGIC, stored last */
    uint16_t kind;              /**< enum lac_segment_kind */
    uint16_t state;             /**< enum lac_segment_state */
    int32_t tid;                /**< thread that writes it */
    uint32_t seq;               /**< 0, 1, ... of this thread's segments */
    struct lac_sync_point sync; /**< when it was opened */
    char thread_name[16];       /**< comm at that time */
    uint32_t gpu_clock;         /**< enum lac_gpu_clock, in segments of GPU records */
    union {
        uint32_t external_count; /**< LAC_GPU_EXTERNAL records, in segments of GPU records */
        uint32_t thread_count;   /**< LAC_EVENT_THREAD events, in segments of events */
    };
};

/** Types of 16-byte events. 0 is never written. Unknown ones are skipped and counted by readers. */
enum lac_event_type {
    LAC_EVENT_PUSH = 1,  /**< range opens; name */
    LAC_EVENT_POP = 2,   /**< innermost open range of this thread and domain closes; name 0 */
    LAC_EVENT_MARK = 3,  /**< instant; name */
    LAC_EVENT_START = 4, /**< range that may end on any thread; name; an LAC_EVENT_ID follows */
    LAC_EVENT_END = 5,   /**< ends the START with the id in the LAC_EVENT_ID that follows */
    LAC_EVENT_ID = 6,    /**< ts = id of the START or END before it */
    LAC_EVENT_PAYLOAD =
        7, /**< ts = 64 bits of the payload of the event before it; flags = enum lac_payload_type */
    LAC_EVENT_STYLE = 8, /**< ts = color << 32 | category of the event before it */
    LAC_EVENT_SYNC = 9,  /**< ts = ticks; a LAC_EVENT_SYNC_NS follows: ts = CLOCK_MONOTONIC ns */
    LAC_EVENT_SYNC_NS = 10,
    LAC_EVENT_DROPPED = 11,     /**< ts = events of this thread that were dropped before this one */
    LAC_EVENT_THREAD_NAME = 12, /**< name; ts = thread id named */
    LAC_EVENT_CATEGORY_NAME = 13, /**< name; ts = category id; domain */
    LAC_EVENT_DOMAIN_NAME = 14,   /**< name; domain says which one is named */
    LAC_EVENT_LOADER =
        15, /**< of the PUSH before it: ts = batch, name = worker + 1 (0: the training process) */
    LAC_EVENT_CPU = 16,     /**< before a POP: ts = CPU ns of the range that closes */
    LAC_EVENT_SETTING = 17, /**< name is "key=value": what a hook saw of the job's settings */
    /* payloads with a schema. SCHEMA, its PLACE, then an ENTRY with its PLACE for each member */
    LAC_EVENT_SCHEMA = 18,       /**< ts = id; name; domain; flags = enum lac_schema_kind */
    LAC_EVENT_SCHEMA_ENTRY = 19, /**< ts = type as NVTX numbers it; name. Of an enum: ts = value */
    LAC_EVENT_SCHEMA_PLACE =
        20, /**< of a SCHEMA: ts = bytes << 32 | alignment (0: natural); of an ENTRY: ts = offset <<
               32 | detail, name = NVTX's flags. Offset 2^32-1: behind the member before it */
    LAC_EVENT_DATA = 21, /**< ts = schema; name = bytes | texts << 16; domain; flags = the type of
                            the event it belongs to: the last one of that type, for POP the next.
                            Without bytes: so many payloads are not there */
    LAC_EVENT_DATA_BYTES = 22, /**< ts = the next 8 bytes */
    LAC_EVENT_DATA_TEXT = 23,  /**< name = what the pointer at offset ts points to */
    LAC_EVENT_DATA_LENGTH =
        24, /**< ts = a length that payload number `name` of the event holds; before the bytes */
    LAC_EVENT_THREAD = 25,      /**< what follows is another thread's: ts = its id, name its name. A
                                   SYNC with its SYNC_NS come next */
    LAC_EVENT_DEVICE_NAME = 26, /**< name; ts = number of the device */
    LAC_EVENT_STREAM_NAME = 27, /**< name; ts = device << 32 | stream, as GPU records number it */
    LAC_EVENT_STACK_FRAME =
        28, /**< domain = its number, from 1 on and larger than that of its caller; name = "path(first
               line): function"; ts = number of the caller << 32 | line that runs (caller 0: none) */
    LAC_EVENT_STACK_SAMPLE =
        29, /**< ts; name = id of the thread that was looked at, 0 unknown; domain = number of its
               innermost frame, 0: it could not be kept; flags = LAC_STACK_PERIOD_NSs that it is for */
    LAC_EVENT_METRIC = 30, /**< ts; name: a result of the job, such as its loss, has a value: */
    LAC_EVENT_METRIC_VALUE = 31, /**< ts = bits of a double, of the METRIC before it */
};

/** Between two looks at Python's stacks, where nothing delays one. */
#define LAC_STACK_PERIOD_NS 20000000u
enum {
    LAC_STACK_DEPTH_MAX = 128,    /* frames of a stack, the innermost ones */
    LAC_STACK_FRAMES_MAX = 16384, /* different ones of a process */
};

enum lac_schema_kind {
    LAC_SCHEMA_STATIC = 1,
    LAC_SCHEMA_DYNAMIC = 2, /**< members of variable length */
    LAC_SCHEMA_UNION = 3,
    LAC_SCHEMA_UNION_SELECTED = 4,
    LAC_SCHEMA_ENUM = 16,
};
enum {
    LAC_DATA_BYTES_MAX = 1024,
    LAC_DATA_TEXTS_MAX = 16,
    LAC_DATA_LENGTHS_MAX = 4, /* dimensions of an array */
    LAC_SCHEMA_ENTRIES_MAX = 128,
};
/** Of a pointer in a payload, which is an offset in it: what it led to could not be read. */
#define LAC_DATA_NOT_THERE UINT64_MAX

enum lac_payload_type {
    LAC_PAYLOAD_UINT64 = 1,
    LAC_PAYLOAD_INT64 = 2,
    LAC_PAYLOAD_DOUBLE = 3,
    LAC_PAYLOAD_UINT32 = 4,
    LAC_PAYLOAD_INT32 = 5,
    LAC_PAYLOAD_FLOAT = 6,
};

struct lac_event {
    uint64_t ts;     /**< clock of the spool, or what the type says */
    uint32_t name;   /**< id of a string record, 0 none */
    uint16_t domain; /**< 0: the default domain */
    uint8_t flags;
    uint8_t type; /**< enum lac_event_type, stored last */
};

/** Types of samples. 0 is never written. */
enum lac_sample_type {
    LAC_SAMPLE_TIME = 1,    /**< bits = CLOCK_MONOTONIC ns of the values that follow */
    LAC_SAMPLE_VALUE = 2,   /**< bits of a double; a series keeps its value until the next one */
    LAC_SAMPLE_SETTING = 3, /**< series is the string "key=value": a fact about the host */
};

/**
 * Series are strings of six fields with LAC_SERIES_SEPARATOR between them: process id (empty: the
 * whole host), process name, thread id (empty: the whole process), thread name, what, unit.
 */
#define LAC_SERIES_SEPARATOR '\x1f'

struct lac_sample {
    uint64_t bits;
    uint32_t series; /**< id of a string record */
    uint8_t reserved[3];
    uint8_t type; /**< enum lac_sample_type */
};

/** Followed by `length` bytes and padding to a multiple of 8. */
struct lac_string_record {
    uint32_t id;     /**< > 0 */
    uint32_t length; /**< stored last; 0 ends the segment */
};

/** What a GPU record is. Unknown ones are skipped (by their size) and counted by readers. */
enum lac_gpu_type {
    LAC_GPU_KERNEL = 1,
    LAC_GPU_COPY = 2,
    LAC_GPU_MEMSET = 3,
    LAC_GPU_RUNTIME_CALL = 4,
    LAC_GPU_DRIVER_CALL = 5,
    LAC_GPU_SYNC = 6,
    LAC_GPU_OVERHEAD = 7,
    LAC_GPU_MEMORY = 8, /**< allocation or release */
    LAC_GPU_GRAPH = 9,  /**< a whole graph launch, when nodes are not recorded one by one */
    LAC_GPU_EVENT =
        10, /**< a CUDA event recorded: no times, the call of its correlation has them */
    LAC_GPU_EXTERNAL = 11, /**< an id that the program gave to the call of this correlation */
};

/** Clock of the times in GPU records; a segment of them
 *  says which (lac_segment_header.gpu_clock). */
enum lac_gpu_clock { LAC_GPU_CLOCK_MONOTONIC = 1, LAC_GPU_CLOCK_REALTIME = 2 };

/** The first 32 bytes of every GPU record; `units` * 16 bytes in all. */
struct lac_gpu_record {
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t correlation;
    uint32_t context;
    uint32_t stream;
    uint16_t device;
    uint8_t units;
    uint8_t type; /**< enum lac_gpu_type, stored last */
};

struct lac_gpu_kernel { /* LAC_GPU_KERNEL and LAC_GPU_GRAPH, 5 units */
    struct lac_gpu_record head;
    uint32_t name;
    uint32_t grid[3];
    uint16_t block[3];
    uint16_t registers_per_thread;
    uint32_t static_shared_bytes;
    uint32_t dynamic_shared_bytes;
    uint64_t graph_node; /**< 0: not from a graph, or not recorded */
    uint32_t graph;
    uint32_t reserved;
};

struct lac_gpu_copy { /* LAC_GPU_COPY and LAC_GPU_MEMSET, 3 units */
    struct lac_gpu_record head;
    uint64_t bytes;
    uint8_t kind; /**< as CUPTI numbers them: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP ... */
    uint8_t src;  /**< 1 pageable, 2 pinned, 3 device, 4 array, 5 managed */
    uint8_t dst;
    uint8_t is_async; /**< 1 yes, 0 no */
    uint32_t value;   /**< of a memset */
};

struct lac_gpu_call { /* calls, sync, overhead, events: 3 units */
    struct lac_gpu_record head;
    uint32_t name;
    uint32_t tid;    /**< 0: of no thread, as some overhead */
    uint32_t result; /**< return value of a call; kind of a sync or an overhead */
    uint32_t number; /**< callback id of a call; event of a sync or an event record */
};

struct lac_gpu_external { /* 3 units; no times */
    struct lac_gpu_record head;
    uint64_t id;
    uint32_t kind; /**< which kind of id, as CUPTI numbers them: 3 to 5 are the program's own */
    uint32_t reserved;
};

struct lac_gpu_memory {         /* 4 units */
    struct lac_gpu_record head; /* start_ns = end_ns */
    uint64_t address;
    uint64_t bytes;
    uint32_t operation; /**< 1 allocation, 2 release */
    uint32_t memory_kind;
    uint64_t reserved;
};

_Static_assert(sizeof(struct lac_sample) == 16, "samples");
_Static_assert(sizeof(struct lac_gpu_record) == 32, "head of a GPU record");
_Static_assert(sizeof(struct lac_gpu_kernel) == 80, "kernels");
_Static_assert(sizeof(struct lac_gpu_copy) == 48, "copies");
_Static_assert(sizeof(struct lac_gpu_call) == 48, "calls");
_Static_assert(sizeof(struct lac_gpu_external) == 48, "ids of the program");
_Static_assert(sizeof(struct lac_gpu_memory) == 64, "allocations");
_Static_assert(sizeof(struct lac_event) == 16, "events are 16 bytes");
_Static_assert(sizeof(struct lac_segment_header) == LAC_SEGMENT_HEADER_BYTES, "segment header");
_Static_assert(sizeof(struct lac_spool_header) == LAC_SPOOL_HEADER_BYTES, "spool header");
_Static_assert(offsetof(struct lac_spool_header, text) == LAC_SPOOL_TEXT_OFFSET, "text offset");

/** Whether a file of that name is a process's part of a recording. */
static inline bool lac_spool_is_name(const char *name)
{
    const size_t length = strlen(name);
    const size_t ending = sizeof(LAC_SPOOL_ENDING) - 1;

    return length > ending && strcmp(name + length - ending, LAC_SPOOL_ENDING) == 0;
}

#endif
