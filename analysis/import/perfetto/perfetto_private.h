#ifndef LAC_ANALYSIS_IMPORT_PERFETTO_PERFETTO_PRIVATE_H
#define LAC_ANALYSIS_IMPORT_PERFETTO_PERFETTO_PRIVATE_H

/* What the files of this folder share. */

#include "analysis/import/perfetto/perfetto.h"
#include "analysis/import/perfetto/proto.h"
#include "analysis/model/strings.h"

enum { LAC_PERFETTO_CLOCKS = 128, LAC_PERFETTO_BOOTTIME = 6, LAC_PERFETTO_REALTIME = 1 };

/** Lists of interned texts. */
enum lac_perfetto_list {
    LAC_PERFETTO_CATEGORIES = 1,
    LAC_PERFETTO_NAMES = 2,
    LAC_PERFETTO_KEYS = 3,
    LAC_PERFETTO_SPECIFICATIONS = 24,
    LAC_PERFETTO_TEXTS = 29,
    LAC_PERFETTO_COUNTERS = 200, /**< counter ids of GPUs: numbered by the whole trace */
    LAC_PERFETTO_STAGES = 201,   /**< specifications by their place: likewise */
    LAC_PERFETTO_QUEUES = 202,
};

/** A writer's packets: what it interned is its own. */
struct lac_perfetto_sequence {
    uint32_t generation; /**< counts how often its state was cleared */
    uint32_t default_clock;
    uint64_t default_track;
    int64_t clock_offset_ns[64]; /**< of its own clocks, 64 to 127: to the trace's */
    int64_t clock_unit_ns[64];   /**< 0: not seen */
    int64_t clock_last[64];      /**< of clocks that count from the packet before */
    bool clock_is_delta[64];
    bool needs_state; /**< packets were lost: until it is cleared nothing is known */
};

struct lac_perfetto_track {
    uint64_t uuid;
    uint64_t parent;
    int64_t pid, tid; /**< -1: none */
    uint32_t name;
    uint32_t unit;
    int64_t multiplier;
    double sum; /**< of a counter that is told by differences */
    uint32_t depth;
    bool is_counter, is_delta, is_thread, is_process;
    bool is_told; /**< its name is in the output */
    bool is_left; /**< derived by us: it is made again */
};

/** A hash from keys to numbers; keys are stored whole. */
struct lac_perfetto_map {
    struct lac_perfetto_slot *slots;
    uint64_t slot_count, count, seed;
};

struct lac_perfetto_key {
    uint64_t scope; /**< sequence and generation, or 0 */
    uint64_t id;
    uint32_t list;
    uint32_t zero;
};

struct lac_perfetto_slot {
    struct lac_perfetto_key key;
    uint32_t value; /**< LAC_NONE: free */
};

struct lac_perfetto {
    const struct lac_import_options *options;
    struct lac_error *reterr;
    struct lac_strings strings;
    struct lac_perfetto_map interned;    /**< -> string */
    struct lac_perfetto_map sequence_of; /**< -> index */
    struct lac_perfetto_map track_of;    /**< uuid -> index */
    struct lac_perfetto_sequence *sequences;
    uint32_t sequence_count, sequence_capacity;
    struct lac_perfetto_track *tracks;
    uint32_t track_count, track_capacity;
    int64_t clock_offset_ns[64]; /**< of the trace's clocks */
    bool has_clock[64];
    int64_t realtime_ns; /**< of time 0, 0 unknown */

    /* output */
    int fd;
    char *out;
    size_t out_used;
    uint64_t out_bytes;
    bool has_event;

    /* what is told */
    uint64_t offset_bytes;
    uint64_t event_count, ftrace_count, other_count, lost_count, damaged_count, no_clock_count;
    uint64_t inflated_bytes;
};

/** A packet's own fields. */
struct lac_perfetto_packet {
    struct lac_perfetto_sequence *sequence;
    uint64_t scope;
    int64_t time_ns;
};

/* perfetto_state.c */
uint32_t *lac_perfetto_map_at(struct lac_perfetto_map *map, struct lac_perfetto_key key);
uint32_t lac_perfetto_map_get(const struct lac_perfetto_map *map, struct lac_perfetto_key key);
void lac_perfetto_map_done(struct lac_perfetto_map *map);
LAC_MUST_USE enum lac_status lac_perfetto_failed(struct lac_perfetto *p, enum lac_status status);
LAC_MUST_USE enum lac_status
lac_perfetto_text(struct lac_perfetto *p, const struct lac_proto_field *field, uint32_t *ret_id);
LAC_MUST_USE enum lac_status lac_perfetto_intern(struct lac_perfetto *p, uint64_t scope,
                                                 uint32_t list, uint64_t id, uint32_t text);
/** The text, "" where it is not known. Valid until the next lac_perfetto_text(). */
const char *lac_perfetto_interned(const struct lac_perfetto *p, uint64_t scope, uint32_t list,
                                  uint64_t id);
LAC_MUST_USE enum lac_status lac_perfetto_read_interned(struct lac_perfetto *p, uint64_t scope,
                                                        struct lac_proto message);
LAC_MUST_USE enum lac_status lac_perfetto_sequence_of(struct lac_perfetto *p, uint64_t id,
                                                      uint32_t *ret_index);
LAC_MUST_USE enum lac_status lac_perfetto_track_of(struct lac_perfetto *p, uint64_t uuid,
                                                   uint32_t *ret_index);
LAC_MUST_USE enum lac_status lac_perfetto_read_track(struct lac_perfetto *p,
                                                     struct lac_proto message);
void lac_perfetto_read_clocks(struct lac_perfetto *p, struct lac_perfetto_sequence *sequence,
                              struct lac_proto message);
/** @return false: a clock that no snapshot relates to the trace's */
bool lac_perfetto_time(struct lac_perfetto *p, struct lac_perfetto_sequence *sequence,
                       uint32_t clock, uint64_t value, int64_t *ret_ns);

/* perfetto_events.c */
LAC_MUST_USE enum lac_status lac_perfetto_read_event(struct lac_perfetto *p,
                                                     const struct lac_perfetto_packet *packet,
                                                     struct lac_proto message);
LAC_MUST_USE enum lac_status lac_perfetto_read_stage(struct lac_perfetto *p,
                                                     const struct lac_perfetto_packet *packet,
                                                     struct lac_proto message);
LAC_MUST_USE enum lac_status
lac_perfetto_read_gpu_counters(struct lac_perfetto *p, const struct lac_perfetto_packet *packet,
                               struct lac_proto message);
LAC_MUST_USE enum lac_status lac_perfetto_read_gpu_memory(struct lac_perfetto *p,
                                                          const struct lac_perfetto_packet *packet,
                                                          struct lac_proto message);

/** pid and tid of a track. */
LAC_MUST_USE enum lac_status lac_perfetto_put_row(struct lac_perfetto *p, uint32_t track);

/* perfetto_out.c: JSON */
LAC_MUST_USE enum lac_status lac_perfetto_flush(struct lac_perfetto *p);
LAC_MUST_USE enum lac_status lac_perfetto_put(struct lac_perfetto *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** A string with its quotes. */
LAC_MUST_USE enum lac_status lac_perfetto_put_string(struct lac_perfetto *p, const char *text);
/** {"ph":..,"ts":.. without its end. */
LAC_MUST_USE enum lac_status lac_perfetto_begin_event(struct lac_perfetto *p, char phase,
                                                      int64_t time_ns);

#endif
