/*
 * Events that no category explains mean what the names of their rows say, and those may come after
 * them, at the end even: such events wait.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
    int64_t start_ns, dur_ns;
    uint32_t thread;
    struct lac_chrome_name name;
    enum lac_event_class event_class;
    uint32_t args; /**< index into args.entries, LAC_NONE */
    uint64_t first_number;
};

struct lac_chrome_waiting {
    struct waiting *items;
    uint64_t count, capacity;
    int64_t *numbers;
    uint64_t number_count, number_capacity;
};

enum lac_status lac_chrome_wait(struct lac_chrome *chrome, const struct lac_interval *interval)
{
    struct lac_chrome_waiting *waiting = chrome->waiting;
    uint32_t number_count = interval->args != NULL ? interval->args->number_count : 0;
    enum lac_status status = LAC_OK;
    if (waiting == NULL) {
        waiting = chrome->waiting = calloc(1, sizeof(*waiting));
    }
    if (waiting == NULL) {
        return lac_chrome_no_memory(chrome);
    }
    status = LAC_GROW(waiting->items, &waiting->capacity, waiting->count + 1);
    if (status == LAC_OK) {
        status = LAC_GROW(waiting->numbers, &waiting->number_capacity,
                          waiting->number_count + number_count);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    waiting->items[waiting->count++] = (struct waiting){
        .start_ns = interval->start_ns,
        .dur_ns = interval->dur_ns,
        .thread = interval->thread,
        .name = interval->name,
        .event_class = interval->event_class,
        .args =
            interval->args != NULL ? (uint32_t)(interval->args - chrome->args.entries) : LAC_NONE,
        .first_number = waiting->number_count,
    };
    if (number_count) {
        memcpy(waiting->numbers + waiting->number_count, interval->numbers,
               number_count * sizeof(*waiting->numbers));
    }
    waiting->number_count += number_count;
    return LAC_OK;
}

enum lac_status lac_chrome_wait_finish(struct lac_chrome *chrome)
{
    const struct lac_chrome_waiting *waiting = chrome->waiting;
    enum lac_status status = LAC_OK;
    for (uint64_t i = 0; waiting != NULL && i < waiting->count && status == LAC_OK; i++) {
        const struct waiting *item = &waiting->items[i];
        const struct lac_interval interval = {
            .start_ns = item->start_ns,
            .dur_ns = item->dur_ns,
            .thread = item->thread,
            .track = LAC_NONE,
            .name = item->name,
            .event_class = item->event_class,
            .args = item->args == LAC_NONE ? NULL : &chrome->args.entries[item->args],
            .numbers = waiting->numbers != NULL ? waiting->numbers + item->first_number : NULL,
        };
        status = lac_chrome_interval(chrome, &interval);
    }
    return status;
}

void lac_chrome_wait_destroy(struct lac_chrome_waiting *waiting)
{
    if (waiting == NULL) {
        return;
    }
    free(waiting->items);
    free(waiting->numbers);
    free(waiting);
}
