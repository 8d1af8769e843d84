#ifndef LAC_COLLECTOR_SAMPLE_GPU_CHOICE_H
#define LAC_COLLECTOR_SAMPLE_GPU_CHOICE_H

/*
 * Which GPUs of the host a launcher samples. The first that says something decides:
 *
 *   CUDA_VISIBLE_DEVICES    the devices in it: indices, UUIDs, beginnings of UUIDs, both forms of
 *                           MIG (the GPU that the instance is part of)
 *   the first launcher      all: other processes of its job may see others
 *   a local rank            that device, where several tasks run on the host
 *   nothing                 all
 */

#include <stdbool.h>

enum { LAC_GPU_CHOICE_MAX = 64, LAC_GPU_CHOICE_TEXT = 96 };

/** A GPU of the host; its place in the array is NVML's index. */
struct lac_gpu_seen {
    char name[LAC_GPU_CHOICE_TEXT]; /**< "": not told */
    char uuid[LAC_GPU_CHOICE_TEXT]; /**< "GPU-..."; "": not told */
};

/** What the choice is made from. */
struct lac_gpu_situation {
    char *(*variable)(const char *name); /**< getenv(), but for tests */
    bool is_first;                       /**< it is the launcher that samples the host */
    const struct lac_gpu_seen *seen;
    unsigned count; /**< of `seen`; those behind LAC_GPU_CHOICE_MAX are not chosen */
    /** Write the UUID of the GPU that the MIG instance "MIG-..." is part of. @return false: none */
    bool (*whole_of)(void *context, const char *mig, char uuid[LAC_GPU_CHOICE_TEXT]);
    void *context; /**< of `whole_of` */
};

/**
 * @param wanted whether each is chosen; only `count` of them are written
 * @return the name of the variable that decided, "all" where none did
 */
const char *lac_gpu_choose(const struct lac_gpu_situation *situation,
                           bool wanted[LAC_GPU_CHOICE_MAX]);

#endif
