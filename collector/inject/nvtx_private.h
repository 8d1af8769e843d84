#ifndef LAC_COLLECTOR_INJECT_NVTX_PRIVATE_H
#define LAC_COLLECTOR_INJECT_NVTX_PRIVATE_H

/* What the files that implement NVTX share. */

#include "collector/inject/nvtx_abi.h"
#include "collector/inject/recorder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAC_NVTX_NO_DEPTH = -2 };

/* Handles that we give out live as long as the process: a library may use them at any time. */
struct lac_domain {
    uint16_t index;
};

struct lac_registered_string {
    const char *text;
    size_t length;
    struct lac_registered_string *next; /* in its chain */
};

static inline uint16_t lac_domain_index(const struct lac_domain *domain)
{
    return domain != NULL ? domain->index : 0;
}

/** Small things that live forever; the lock is held. NULL when there is no memory. */
void *lac_nvtx_allocate(size_t size_bytes);
/** Id of the next range that may end elsewhere. */
uint64_t lac_nvtx_range_id(struct lac_thread *self);

/* ---- nvtx_slots.c: our functions in the tables of the program's NVTX */

/** Put it into a slot of a table, and remember that. */
void lac_nvtx_take_slot(void *slot, nvtx_function function);
/** Whether lac_nvtx_let_go() was called: tables that appear now stay as they are. */
bool lac_nvtx_has_let_go(void);

/* ---- nvtx_payload.c */

/** Put our functions into the tables of the payload extension. */
void lac_payload_install(const struct nvtx_extension *extension);
/**
 * Record the payloads of an event, which were described by schemas or are of a plain type.
 *
 * @param owner type of the event that they belong to: the last of that type, for POP the next
 */
void lac_payload_put(struct lac_thread *self, uint16_t domain, enum lac_event_type owner,
                     const struct nvtx_data *data, size_t count);

#endif
