#include "collector/sample/gpu_choice.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VISIBLE "CUDA_VISIBLE_DEVICES"

/* Number of a task among those of the host, and how many they are. What starts tasks inside an
 * allocation comes before the allocation. */
static const struct {
    const char *rank;
    const char *tasks;
    bool needs_tasks; /* Slurm's batch script has a rank, too */
} ranks[] = {
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE", false},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", false},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", false},
    {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", false},
    {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", true},
};

enum { NONE = -1 };

static unsigned count_of(const struct lac_gpu_situation *situation)
{
    return situation->count < LAC_GPU_CHOICE_MAX ? situation->count : LAC_GPU_CHOICE_MAX;
}

static void want(const struct lac_gpu_situation *situation, bool *wanted, bool is_wanted)
{
    for (unsigned i = 0; i < count_of(situation); i++) {
        wanted[i] = is_wanted;
    }
}

/* A whole number of at most four digits; NONE: it is none. */
static int number_of(const char *text)
{
    enum { DIGITS_MAX = 4 };
    const size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits <= DIGITS_MAX && text[digits] == '\0' ? (int)strtol(text, NULL, 10)
                                                                      : NONE;
}

/* CUDA counts the fastest first, unless told otherwise; NVML counts by place on the bus. */
static bool is_order_known(const struct lac_gpu_situation *situation)
{
    const char *const order = situation->variable("CUDA_DEVICE_ORDER");

    for (unsigned i = 1; i < count_of(situation); i++) {
        if (strcmp(situation->seen[i].name, situation->seen[0].name) != 0) {
            return order != NULL && strcmp(order, "PCI_BUS_ID") == 0;
        }
    }
    return true;
}

/* The only one whose UUID begins so; NONE: none does, or several. */
static int find_uuid(const struct lac_gpu_situation *situation, const char *begin)
{
    int found = NONE;

    for (unsigned i = 0; i < count_of(situation); i++) {
        if (strncasecmp(situation->seen[i].uuid, begin, strlen(begin)) == 0) {
            if (found != NONE) {
                return NONE;
            }
            found = (int)i;
        }
    }
    return found;
}

static int find_device(const struct lac_gpu_situation *situation, char *entry)
{
    static const char old_mig[] = "MIG-GPU-";
    char whole[LAC_GPU_CHOICE_TEXT] = "";
    const int index = number_of(entry);

    if (index != NONE) {
        return index < (int)count_of(situation) ? index : NONE;
    }
    if (strncmp(entry, "GPU-", 4) == 0) {
        return find_uuid(situation, entry);
    }
    if (strncmp(entry, old_mig, sizeof(old_mig) - 1) == 0) { /* MIG-GPU-.../instance/instance */
        entry[strcspn(entry, "/")] = '\0';
        return find_uuid(situation, entry + strlen("MIG-"));
    }
    if (strncmp(entry, "MIG-", 4) == 0 && situation->whole_of != NULL &&
        situation->whole_of(situation->context, entry, whole) && whole[0] != '\0') {
        return find_uuid(situation, whole);
    }
    return NONE;
}

/* As CUDA reads it: what follows an entry that is none does not count. @return how many */
static unsigned choose_visible(const struct lac_gpu_situation *situation, const char *list,
                               bool *wanted)
{
    unsigned chosen = 0;

    want(situation, wanted, false);
    while (*list != '\0') {
        char entry[LAC_GPU_CHOICE_TEXT];
        size_t length;
        int device;

        list += strspn(list, " ");
        length = strcspn(list, ",");
        if (length >= sizeof(entry)) {
            break;
        }
        memcpy(entry, list, length);
        list += length + (list[length] == ',');
        while (length > 0 && isspace((unsigned char)entry[length - 1]) != 0) {
            length--;
        }
        entry[length] = '\0';
        device = find_device(situation, entry);
        if (device == NONE) {
            break;
        }
        if (isdigit((unsigned char)entry[0]) != 0 && !is_order_known(situation)) {
            want(situation, wanted, true); /* rather too many than another's */
            return count_of(situation);
        }
        chosen += !wanted[device];
        wanted[device] = true;
    }
    return chosen;
}

/* Whether the host has one task only: "1", Slurm's "1(x2)" for two hosts. */
static bool is_alone(const char *tasks, bool needs_tasks)
{
    return tasks == NULL ? needs_tasks : tasks[0] == '1' && isdigit((unsigned char)tasks[1]) == 0;
}

const char *lac_gpu_choose(const struct lac_gpu_situation *situation,
                           bool wanted[LAC_GPU_CHOICE_MAX])
{
    assert(situation != NULL && situation->variable != NULL && wanted != NULL);
    const char *const visible = situation->variable(VISIBLE);
    const unsigned count = count_of(situation);

    if (visible != NULL &&
        (choose_visible(situation, visible, wanted) > 0 || !situation->is_first)) {
        return VISIBLE;
    }
    want(situation, wanted, true);
    if (situation->is_first || count == 0 || !is_order_known(situation)) {
        return "all";
    }
    for (size_t i = 0; i < LAC_COUNT_OF(ranks); i++) {
        const char *const rank = situation->variable(ranks[i].rank);

        if (rank != NULL && number_of(rank) != NONE) {
            if (is_alone(situation->variable(ranks[i].tasks), ranks[i].needs_tasks)) {
                return "all";
            }
            want(situation, wanted, false);
            wanted[(unsigned)number_of(rank) % count] = true; /* several may share one */
            return ranks[i].rank;
        }
    }
    return "all";
}
