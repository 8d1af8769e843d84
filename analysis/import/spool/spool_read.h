#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_READ_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_READ_H

/*
 * One spool file (collector/FORMAT.md) read segment by segment, untrusted, into a builder.
 *
 * A spool is one process; the spools of a folder are the processes of one host and share its
 * CLOCK_MONOTONIC, so one offset places all of them in absolute time.
 */

#include "analysis/import/spool/spool_space.h"
#include "analysis/model/builder.h"
#include "analysis/model/status.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_spool_settings;

/** A process as nothing else of one boot is called. */
struct lac_spool_ancestor {
    int32_t pid;
    uint64_t start_ticks;
};

/** What the header of a spool says, checked. */
struct lac_spool_info {
    int64_t realtime_offset_ns; /**< CLOCK_REALTIME - CLOCK_MONOTONIC when it was made */
    int64_t made_ns;            /**< CLOCK_REALTIME then */
    int32_t pid;
    int32_t parent_pid;
    uint32_t fork_depth;
    uint64_t dropped_count;
    uint8_t boot_id[16];
    char host[256];
    char comm[64];
    char argv[1024];
    uint64_t start_ticks;
    struct lac_spool_ancestor ancestors[LAC_SPOOL_ANCESTORS]; /**< the parent first */
    uint32_t ancestor_count;
    int32_t rank;       /**< -1 when not in the environment */
    int32_t world_size; /**< -1 */
    /** What the process told, of more than one rank; -1: nothing. */
    int32_t told_rank;
    int32_t told_world_size;
    uint64_t told_group; /**< the same in all ranks of a job */
    bool hides_gpus;     /**< its CUDA_VISIBLE_DEVICES names none */
};

/**
 * Read and check the header.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_CORRUPT (not a spool, or a newer version)
 */
LAC_MUST_USE enum lac_status lac_spool_read_info(const struct lac_spool_bytes *spool,
                                                 struct lac_spool_info *ret_info,
                                                 struct lac_error *reterr);

/**
 * Append all that the spool holds to `builder`, times as CLOCK_MONOTONIC + `realtime_offset_ns`;
 * settings that hooks recorded go to `settings`.
 * Damage is counted in the builder's report; nothing of a whole segment is lost to a torn one.
 *
 * @return LAC_OK, LAC_ERR_IO, LAC_ERR_CORRUPT, LAC_ERR_LIMIT, LAC_ERR_NOMEM
 * Cost: one pass over segment headers and names, one over events; memory of one segment.
 */
LAC_MUST_USE enum lac_status lac_spool_read(const struct lac_spool_bytes *spool,
                                            struct lac_builder *builder, int64_t realtime_offset_ns,
                                            struct lac_spool_settings *settings,
                                            struct lac_error *reterr);

/** Only what a launcher's monitor told of the host, into `settings`: the processes' devices are
 * numbered by it. The rest of the spool is read by lac_spool_read(). */
LAC_MUST_USE enum lac_status lac_spool_read_host(const struct lac_spool_bytes *spool,
                                                 struct lac_builder *builder,
                                                 struct lac_spool_settings *settings,
                                                 struct lac_error *reterr);

#endif
