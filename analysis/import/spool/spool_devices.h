#ifndef LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_DEVICES_H
#define LAC_ANALYSIS_IMPORT_SPOOL_SPOOL_DEVICES_H

/*
 * Which device a record is of. A process counts the devices that it sees, from 0 on
 * (CUDA_VISIBLE_DEVICES), so two processes mean different devices by one number, and neither is the
 * number that the driver's counters go by. What is one device is known by its UUID:
 *
 *   process 1: 0 = GPU-aaaa  --+
 *   process 2: 0 = GPU-bbbb  --+--> the model's number: the driver's own, where its monitor told the
 *   driver:    3 = GPU-aaaa  --+    UUID, else the process's, else the next that is free
 *
 * Both come as settings: "gpu_device.0=UUID|name|memory bytes|multiprocessors|8.0" of a process,
 * "host.gpu_uuid.3=UUID" of the host.
 */

#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>

struct lac_spool_process;

enum { LAC_SPOOL_DEVICES_MAX = 64, LAC_SPOOL_UUID_BYTES = 48 };

struct lac_spool_known_device {
    char uuid[LAC_SPOOL_UUID_BYTES];
    int32_t number; /**< the model's */
    uint32_t name;  /**< string id */
    int32_t sm_count;
    int32_t cc_major;
    int32_t cc_minor;
    int64_t memory_bytes;
};

/** Of all processes of a trace. */
struct lac_spool_devices {
    struct lac_spool_known_device known[LAC_SPOOL_DEVICES_MAX];
    uint32_t count;
};

/** Of one process: its number -> the model's plus 1; 0 not told. */
struct lac_spool_device_numbers {
    uint8_t of[LAC_SPOOL_DEVICES_MAX];
};

/**
 * Take a setting that tells of a device.
 *
 * @param ret_is_device false: it is another setting, and nothing was done
 * @return LAC_OK, also for one that makes no sense; LAC_ERR_NOMEM
 */
LAC_MUST_USE enum lac_status lac_spool_device_setting(struct lac_spool_process *process,
                                                      const char *setting, bool *ret_is_device);

/** Give those devices of the model that did some work what is known of them. */
void lac_spool_devices_store(const struct lac_spool_process *process);

/** The model's number of a device that the process calls `number`. */
uint32_t lac_spool_device_number(const struct lac_spool_process *process, uint32_t number);

#endif
