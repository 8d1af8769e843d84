#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_EVENTS_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_EVENTS_H

/*
 * The events of a spool, thread by thread, turned into ranges: pushes matched with pops, starts
 * with ends on whatever thread, ticks turned into ns. Private to the spool importer.
 */

#include "analysis/import/spool/spool_devices.h"
#include "analysis/model/builder.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** No clock of a recording comes this far (95 years); a broken file's is cut to less, so that three
 * of them add up without overflow. */
#define LAC_SPOOL_NS_END INT64_C(3000000000000000000)

static inline int64_t lac_spool_ns(uint64_t ns)
{
    return (int64_t)(ns % (uint64_t)LAC_SPOOL_NS_END);
}

struct lac_spool_categories;
struct lac_spool_given_names;
struct lac_spool_schemas;
struct lac_spool_members;
struct lac_spool_externals;
struct lac_spool_syncs;
struct lac_spool_stacks;
struct lac_spool_metrics;
struct lac_spool_range; /* a START that waits for its END, or the reverse */

/** One process. The first block of fields is the caller's to set; the rest belongs to these
 * functions. */
struct lac_spool_process {
    struct lac_builder *builder;
    const uint32_t *string_of_id; /**< spool id -> string id; 0 where undefined */
    uint32_t string_count;
    int64_t offset_ns;  /**< added to CLOCK_MONOTONIC */
    double ns_per_tick; /**< over the whole file; 0 unknown */
    bool ticks_are_ns;
    int64_t begin_ns, end_ns; /**< no time of the process is outside; absolute */

    uint32_t process;
    uint32_t domain_names[256];                /**< string ids, 0 unnamed */
    struct lac_spool_categories *categories;   /**< named ones; owned; NULL when there are none */
    struct lac_spool_given_names *given_names; /**< of rows; owned; NULL when there are none */
    struct lac_spool_schemas *schemas;         /**< of payloads; owned; NULL when there are none */
    struct lac_spool_stacks *stacks;           /**< of Python; owned; NULL when there are none */
    struct lac_spool_metrics *metrics;         /**< of the job; owned; NULL when there are none */
    uint64_t payload_members_left_out;         /**< that could not be shown */
    struct {
        uint32_t domain;
        uint32_t category;
        uint32_t color;
        uint32_t payload_type;
        uint32_t args; /**< string id of their template */
    } templates[64];
    struct lac_spool_range *ranges; /**< open addressing by id */
    size_t range_slots;
    size_t range_count;
    uint64_t unknown_events;
    uint64_t unmatched_pops;
    uint64_t open_ranges;
    uint64_t missing_names;
    struct lac_spool_syncs *syncs;         /**< waits held back; owned; NULL when there are none */
    struct lac_spool_externals *externals; /**< ids of calls; owned; NULL when there are none */
    uint64_t whole_graphs;               /**< launches of CUDA graphs without the kernels in them */
    struct lac_spool_settings *settings; /**< shared by all processes of the trace */
    int64_t last_ns;                     /**< latest time seen in the process */
    struct lac_spool_device_numbers devices;
    uint32_t corr_base; /**< added to correlation ids: each process counts its calls from 1 */
    uint64_t untimed;   /**< GPU records without times: operations that were still in progress */
    uint64_t outside;   /**< records that were left out since their times are outside */
    uint64_t moved;     /**< events that were put at the nearer end */
};

/** Whether something can have been at that time: the process had begun, its recording had not
 * ended. */
static inline bool lac_spool_is_inside(const struct lac_spool_process *process, int64_t ns)
{
    return ns >= process->begin_ns && ns <= process->end_ns;
}

struct lac_spool_thread;

enum { LAC_SPOOL_SETTINGS_MAX = 256 };

/** What the processes of a trace share: "key=value" strings that hooks recorded, the first value of
 * each key; their devices; how far their correlation ids go. */
struct lac_spool_settings {
    uint32_t text[LAC_SPOOL_SETTINGS_MAX];      /**< string ids */
    uint32_t key_bytes[LAC_SPOOL_SETTINGS_MAX]; /**< of the keys of these */
    uint32_t count;
    struct lac_spool_devices devices;
    uint32_t corr_end; /**< past the largest correlation id, as the model has them */
};

/** The correlation id of a record as the model has it: of this process alone. */
uint32_t lac_spool_corr(struct lac_spool_process *process, uint32_t correlation);

/** Keep `text` unless its key is there already or there are too many. */
void lac_spool_settings_add(struct lac_spool_settings *settings, const struct lac_strings *strings,
                            uint32_t text);

/** Set info.metadata to {"lacuna":{"version":1,"settings":{...},"host":{...}}}; nothing when there
 * are no settings. */
LAC_MUST_USE enum lac_status lac_spool_settings_store(const struct lac_spool_settings *settings,
                                                      struct lac_model *model);

LAC_MUST_USE enum lac_status lac_spool_process_open(struct lac_spool_process *process, int32_t pid,
                                                    const char *comm, const char *argv);
/** Report what did not match, free the tables; returns `status`, or the first failure
 *  of its own. */
LAC_MUST_USE enum lac_status lac_spool_process_close(struct lac_spool_process *process,
                                                     enum lac_status status);

/** Report to the model what was counted in the process and could not be read as it was meant. */
void lac_spool_report_counts(const struct lac_spool_process *process);

/** `name` as far as it is not empty, else the string `name_id` of the spool. */
LAC_MUST_USE enum lac_status lac_spool_thread_open(struct lac_spool_process *process, int32_t tid,
                                                   const char *name, uint32_t name_id,
                                                   struct lac_spool_thread **ret_thread);
/** Events of one segment; `next` is the sync point of the thread's next segment, or NULL. */
LAC_MUST_USE enum lac_status lac_spool_thread_events(struct lac_spool_thread *thread,
                                                     const struct lac_event *events, size_t count,
                                                     const struct lac_sync_point *sync,
                                                     const struct lac_sync_point *next);
/** End the ranges that are still open where the process was last heard of; frees the thread. */
LAC_MUST_USE enum lac_status lac_spool_thread_close(struct lac_spool_thread *thread);
/** Free without closing. NULL is allowed. */
void lac_spool_thread_destroy(struct lac_spool_thread *thread);

/** What a range or mark carries in addition to its name. */
struct lac_spool_extras {
    uint16_t domain;
    uint8_t payload_type; /**< enum lac_payload_type, 0 none */
    uint32_t category;
    uint32_t color; /**< ARGB */
    uint64_t payload;
    const struct lac_spool_members *members; /**< of payloads with a schema, or NULL */
};

/** Set slice->args and arg_num from `extras`. */
LAC_MUST_USE enum lac_status lac_spool_extras_store(struct lac_spool_process *process,
                                                    const struct lac_spool_extras *extras,
                                                    struct lac_slice_in *slice);

/** Take note of the domains and categories that events of one segment name, before
 *  they are used. */
LAC_MUST_USE enum lac_status lac_spool_names_collect(struct lac_spool_process *process,
                                                     const struct lac_event *events, size_t count);

/** Id of the string that the spool calls `id`; 0, and counted, when it was not defined. */
uint32_t lac_spool_name_of(struct lac_spool_process *process, uint32_t id);

/** Intern text of a spool: bytes that are not UTF-8 become U+FFFD. */
LAC_MUST_USE enum lac_status lac_spool_intern(struct lac_strings *strings, const char *text,
                                              size_t length, uint32_t *ret_id);

#endif
