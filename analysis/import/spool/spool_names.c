#include "analysis/import/spool/spool_names.h"

#include "analysis/import/spool/spool_devices.h"
#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIVEN_NAMES_MAX = 1024, SLOTS = 2 * GIVEN_NAMES_MAX };

/* What a row is called, in the order in which it counts: a thread knows best what it is. */
enum { GIVEN_THREAD, GIVEN_OWN_THREAD, GIVEN_DEVICE, GIVEN_STREAM, GIVEN_COUNT };

/* A thread, device or stream that a program named through NVTX. */
struct given_name {
    uint64_t what; /* tid; device; device << 32 | stream */
    uint32_t name;
    int given;
};

struct lac_spool_given_names {
    struct given_name names[GIVEN_NAMES_MAX];
    uint32_t count;
    uint16_t slots[SLOTS]; /* index + 1 by what was named, open addressing */
    uint64_t seed;
};

/* Slot of its name, or the free one where it would go. */
static uint16_t *slot_of(struct lac_spool_given_names *known, uint64_t what, int given)
{
    size_t at = (size_t)lac_hash_bytes(&what, sizeof(what), known->seed ^ (uint64_t)given) % SLOTS;

    while (known->slots[at] != 0 && (known->names[known->slots[at] - 1].what != what ||
                                     known->names[known->slots[at] - 1].given != given)) {
        at = (at + 1) % SLOTS;
    }
    return &known->slots[at];
}

enum lac_status lac_spool_name_given(struct lac_spool_process *process, int32_t tid,
                                     const struct lac_event *event)
{
    const int given = event->type == LAC_EVENT_DEVICE_NAME   ? GIVEN_DEVICE
                      : event->type == LAC_EVENT_STREAM_NAME ? GIVEN_STREAM
                      : event->ts == (uint64_t)tid           ? GIVEN_OWN_THREAD
                                                             : GIVEN_THREAD;
    struct lac_spool_given_names *known = process->given_names;
    uint16_t *slot;

    if (known == NULL) {
        known = calloc(1, sizeof(*known));
        if (known == NULL) {
            return LAC_ERR_NOMEM;
        }
        known->seed = lac_hash_seed();
        process->given_names = known;
    }
    slot = slot_of(known, event->ts, given);
    if (*slot == 0) {
        if (known->count == GIVEN_NAMES_MAX) {
            return LAC_OK; /* it keeps the name or number that the system has for it */
        }
        *slot = (uint16_t)++known->count;
    }
    known->names[*slot - 1] = (struct given_name){
        .what = event->ts, .name = lac_spool_name_of(process, event->name), .given = given};
    return LAC_OK;
}

static uint32_t number_text(const struct lac_spool_process *process, const char *before,
                            uint64_t number)
{
    char text[40];
    const int length = snprintf(text, sizeof(text), "%s%" PRIu64, before, number);

    return lac_strings_find(&lac_builder_model(process->builder)->strings, text, (size_t)length);
}

static uint64_t device_of(const struct lac_spool_process *process, uint64_t number)
{
    return number <= UINT32_MAX ? lac_spool_device_number(process, (uint32_t)number) : number;
}

/* The row that is meant, LAC_NONE when there is none. */
static uint32_t find_row(const struct lac_spool_process *process, const struct given_name *given)
{
    const bool is_thread = given->given != GIVEN_STREAM;
    const uint32_t text =
        number_text(process, "", is_thread ? given->what : given->what & UINT32_MAX);
    const uint32_t gpu =
        is_thread ? 0 : number_text(process, "GPU ", device_of(process, given->what >> 32));
    const uint32_t owner = is_thread  ? process->process
                           : gpu != 0 ? lac_builder_find_process(process->builder, gpu)
                                      : LAC_NONE;

    return text == 0 || owner == LAC_NONE
               ? LAC_NONE
               : lac_builder_find_track(process->builder,
                                        is_thread ? LAC_TRACK_THREAD : LAC_TRACK_STREAM, owner,
                                        text);
}

/* "GPU 0: what the program calls it" */
static enum lac_status name_device(struct lac_spool_process *process, uint32_t gpu, uint64_t device,
                                   uint32_t name)
{
    char text[300];
    const int length =
        snprintf(text, sizeof(text), "GPU %" PRIu64 ": %.200s", device,
                 lac_strings_get(&lac_builder_model(process->builder)->strings, name));

    return lac_spool_intern(&lac_builder_model(process->builder)->strings, text,
                            strnlen(text, (size_t)length),
                            &lac_builder_process_at(process->builder, gpu)->name);
}

static enum lac_status store(struct lac_spool_process *process, const struct given_name *given)
{
    uint32_t row;

    if (given->given == GIVEN_DEVICE) {
        const uint64_t device = device_of(process, given->what);
        const uint32_t gpu = number_text(process, "GPU ", device);

        row = gpu != 0 ? lac_builder_find_process(process->builder, gpu) : LAC_NONE;
        return row != LAC_NONE && lac_builder_process_at(process->builder, row)->is_gpu
                   ? name_device(process, row, device, given->name)
                   : LAC_OK;
    }
    row = find_row(process, given);
    if (row != LAC_NONE) {
        lac_builder_track_at(process->builder, row)->name = given->name;
    }
    return LAC_OK;
}

enum lac_status lac_spool_names_store(struct lac_spool_process *process)
{
    const struct lac_spool_given_names *const known = process->given_names;
    enum lac_status status = LAC_OK;

    for (int pass = 0; pass < GIVEN_COUNT && known != NULL; pass++) {
        for (uint32_t n = 0; n < known->count && status == LAC_OK; n++) {
            if (known->names[n].given == pass) {
                status = store(process, &known->names[n]);
            }
        }
    }
    return status;
}

void lac_spool_names_destroy(struct lac_spool_process *process)
{
    free(process->given_names);
    process->given_names = NULL;
}
