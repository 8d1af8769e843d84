#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <string.h>

/*
 * Names of categories, kept next to the spool: a program names them once, but a child that it forks
 * later writes a spool of its own, which must hold them, too.
 */

enum { CATEGORIES_MAX = 512, CATEGORY_NAME_BYTES = 64 };

static struct {
    uint32_t category;
    uint16_t domain;
    uint16_t length;
    char name[CATEGORY_NAME_BYTES];
} categories[CATEGORIES_MAX];
static uint32_t category_count;

void lac_categories_remember(uint16_t domain, uint32_t category, const char *text, size_t length)
{
    uint32_t at = 0;

    if (lac_lock_is_mine()) {
        return; /* from a signal handler that interrupted us */
    }
    lac_lock();
    while (at < category_count &&
           (categories[at].category != category || categories[at].domain != domain)) {
        at++;
    }
    if (at < CATEGORIES_MAX) {
        length = length > CATEGORY_NAME_BYTES ? CATEGORY_NAME_BYTES : length;
        memcpy(categories[at].name, text, length);
        categories[at].length = (uint16_t)length;
        categories[at].category = category;
        categories[at].domain = domain;
        if (at == category_count) {
            __atomic_store_n(&category_count, at + 1, __ATOMIC_RELEASE);
        }
    }
    lac_unlock();
}

void lac_categories_define(struct lac_thread *self)
{
    const uint32_t count = __atomic_load_n(&category_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count && lac_recorder_room_always(self, 1); i++) {
        lac_recorder_put_name(self, categories[i].category,
                              lac_recorder_name(self, categories[i].name, categories[i].length),
                              categories[i].domain, LAC_EVENT_CATEGORY_NAME);
    }
}
