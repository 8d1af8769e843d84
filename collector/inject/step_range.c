#include "collector/inject/step_range.h"

#include "collector/base/count_of.h"
#include "collector/base/debug.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uint32_t lac_step_name_length;

static const char key[] = "step_named=";
static char setting[sizeof(key) + LAC_STEP_NAME_BYTES]; /* key and name */

/* Ranges that may end on any thread: of more than these at a time the rest count as they begin. */
static uint64_t open_ids[16];

static uint32_t told_epoch; /* process whose spool knows the name */

void lac_step_read(void)
{
    const char *const name = getenv("LACUNA_STEP");
    const size_t length = name != NULL ? strlen(name) : 0;

    if (length > 0 && length < LAC_STEP_NAME_BYTES) {
        memcpy(setting, key, sizeof(key) - 1);
        memcpy(setting + sizeof(key) - 1, name, length + 1);
        lac_step_name_length = (uint32_t)length;
    }
}

void lac_step_count(const struct lac_thread *self)
{
    struct lac_spool_header *const header = lac_spool_header();

    (void)__atomic_fetch_add(&header->step_count, 1u, __ATOMIC_RELAXED);
    __atomic_store_n(&header->training_tid, self->tid, __ATOMIC_RELAXED);
}

/* Whoever reads the recording takes these ranges for the steps. */
static void tell(struct lac_thread *self)
{
    const uint32_t epoch = *lac_epoch_page;

    if (__atomic_exchange_n(&told_epoch, epoch, __ATOMIC_RELAXED) != epoch &&
        lac_recorder_room_always(self, 1)) {
        lac_recorder_put(self, 0,
                         lac_recorder_name(self, setting, sizeof(key) - 1 + lac_step_name_length),
                         0, 0, LAC_EVENT_SETTING);
        LAC_DEBUG(PROCESS, 1, "%s: the first such range begins", setting);
    }
}

static bool is_the_one(struct lac_thread *self, uint32_t name)
{
    return lac_step_name_length > 0 && name != 0 &&
           name == lac_recorder_name(self, setting + sizeof(key) - 1, lac_step_name_length);
}

void lac_step_pushed(struct lac_thread *self, uint16_t domain, uint32_t name)
{
    if (self->step_level > 0) {
        self->step_level += self->step_domain == domain;
    } else if (is_the_one(self, name)) {
        self->step_level = 1;
        self->step_domain = domain;
        tell(self);
    }
}

void lac_step_popped(struct lac_thread *self, uint16_t domain)
{
    if (self->step_level == 0 || self->step_domain != domain) {
        return;
    }
    self->step_level--;
    if (self->step_level == 0) {
        lac_step_count(self);
    }
}

void lac_step_started(struct lac_thread *self, uint32_t name, uint64_t id)
{
    if (!is_the_one(self, name)) {
        return;
    }
    tell(self);
    for (size_t i = 0; i < LAC_COUNT_OF(open_ids) && id != 0; i++) {
        uint64_t none = 0;

        if (__atomic_compare_exchange_n(&open_ids[i], &none, id, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return;
        }
    }
    lac_step_count(self);
}

void lac_step_ended(struct lac_thread *self, uint64_t id)
{
    for (size_t i = 0; i < LAC_COUNT_OF(open_ids); i++) {
        uint64_t expected = id;

        if (__atomic_compare_exchange_n(&open_ids[i], &expected, 0, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            lac_step_count(self);
            return;
        }
    }
}
