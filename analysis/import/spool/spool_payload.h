#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_PAYLOAD_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_PAYLOAD_H

/*
 * Payloads of NVTX's extension (NCCL uses it): bytes of a struct and the description of its
 * members, made into named arguments. Both come from a spool and are not trusted: offsets, sizes,
 * nesting, lengths and selectors are checked against the bytes that are there. Private to the spool
 * importer.
 */

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_members.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A payload on its way: the events of it that were read. */
struct lac_spool_data {
    uint64_t schema;
    uint16_t domain;
    uint8_t owner; /**< enum lac_event_type; 0: none is on its way */
    uint32_t size_bytes;
    uint32_t text_count; /**< that are to come */
    uint32_t bytes_read;
    uint32_t texts_read;
    uint32_t length_count;
    struct {
        uint64_t offset;
        uint32_t name; /**< string id */
    } texts[LAC_DATA_TEXTS_MAX];
    struct {
        uint32_t payload;
        uint64_t value;
    } lengths[LAC_DATA_LENGTHS_MAX];
    uint8_t bytes[LAC_DATA_BYTES_MAX + 8];
};

/** Begin with a DATA event; false when it makes no sense, or says that a payload is not there. */
bool lac_spool_data_begin(struct lac_spool_process *process, struct lac_spool_data *data,
                          const struct lac_event *event);
/** Add an event of one of the other DATA types, `name` its string id; true when all is there. */
bool lac_spool_data_add(struct lac_spool_data *data, const struct lac_event *event, uint32_t name);

/**
 * Append what the whole `data` say to *members, which is created when it is NULL. What cannot be
 * shown is left out and counted in process->payload_members_left_out.
 */
LAC_MUST_USE enum lac_status lac_spool_data_decode(struct lac_spool_process *process,
                                                   const struct lac_spool_data *data,
                                                   struct lac_spool_members **members);

#endif
