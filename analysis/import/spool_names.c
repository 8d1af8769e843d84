#include "analysis/import/spool_names.h"

#include "analysis/import/spool_events.h"
#include "analysis/model/builder.h"
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

enum { GIVEN_NAMES_MAX = 1024 };

/* What a row is called, in the order in which it counts: a thread knows best what it is. */
enum { GIVEN_THREAD, GIVEN_OWN_THREAD, GIVEN_DEVICE, GIVEN_STREAM, GIVEN_COUNT };

/* A thread, device or stream that a program named through NVTX. */
struct lac_spool_given_name {
    uint64_t what; /* tid; device; device << 32 | stream */
    uint32_t name;
    int given;
};

enum lac_status lac_spool_name_given(struct lac_spool_process *process, int32_t tid,
                                     const struct lac_event *event)
{
    const int given = event->type == LAC_EVENT_DEVICE_NAME   ? GIVEN_DEVICE
                      : event->type == LAC_EVENT_STREAM_NAME ? GIVEN_STREAM
                      : event->ts == (uint64_t)tid           ? GIVEN_OWN_THREAD
                                                             : GIVEN_THREAD;
    struct lac_spool_given_name *grown;

    for (size_t i = process->given_name_count; i > 0; i--) {
        struct lac_spool_given_name *const known = &process->given_names[i - 1];

        if (known->what == event->ts && known->given == given) {
            known->name = lac_spool_name_of(process, event->name);
            return LAC_OK;
        }
    }
    if (process->given_name_count == GIVEN_NAMES_MAX) {
        return LAC_OK; /* it keeps the name or number that the system has for it */
    }
    grown = realloc(process->given_names, (process->given_name_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return LAC_ERR_NOMEM;
    }
    process->given_names = grown;
    grown[process->given_name_count++] = (struct lac_spool_given_name){
        .what = event->ts, .name = lac_spool_name_of(process, event->name), .given = given};
    return LAC_OK;
}

/* Whether the row is what the name was given to. */
static bool is_meant(const struct lac_spool_process *process, const struct lac_track *track,
                     const struct lac_spool_given_name *given)
{
    if (given->given == GIVEN_THREAD || given->given == GIVEN_OWN_THREAD) {
        return track->kind == LAC_TRACK_THREAD && track->process == process->process &&
               track->tid >= 0 && (uint64_t)track->tid == given->what;
    }
    if (track->kind != LAC_TRACK_STREAM || track->device < 0) {
        return false;
    }
    return given->given == GIVEN_DEVICE ? (uint64_t)track->device == given->what
                                        : track->tid >= 0 && ((uint64_t)track->device << 32 |
                                                              (uint64_t)track->tid) == given->what;
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

enum lac_status lac_spool_names_store(struct lac_spool_process *process)
{
    const uint32_t track_count = lac_builder_model(process->builder)->track_count;
    enum lac_status status = LAC_OK;

    for (int pass = 0; pass < GIVEN_COUNT; pass++) {
        for (size_t n = 0; n < process->given_name_count; n++) {
            const struct lac_spool_given_name *const given = &process->given_names[n];

            for (uint32_t i = 0; given->given == pass && i < track_count; i++) {
                struct lac_track *const track = lac_builder_track_at(process->builder, i);

                if (!is_meant(process, track, given) || status != LAC_OK) {
                    continue;
                }
                if (given->given == GIVEN_DEVICE) {
                    status = name_device(process, track->process, given->what, given->name);
                    break; /* all rows of the device are in one process */
                }
                track->name = given->name;
            }
        }
    }
    return status;
}

void lac_spool_names_destroy(struct lac_spool_process *process)
{
    free(process->given_names);
    process->given_names = NULL;
    process->given_name_count = 0;
}
