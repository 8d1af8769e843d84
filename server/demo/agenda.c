#include "server/demo/agenda.h"

#include "analysis/model/status.h"

#include <stdint.h>
#include <stdlib.h>

static bool before(const struct lac_demo_entry *a, const struct lac_demo_entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(struct lac_demo_entry *a, struct lac_demo_entry *b)
{
    struct lac_demo_entry kept = *a;
    *a = *b;
    *b = kept;
}

enum lac_status lac_demo_agenda_add(struct lac_demo_agenda *agenda, int64_t at_ns, int32_t what,
                                    int64_t which)
{
    if (agenda->count == agenda->capacity) {
        uint32_t wanted = agenda->capacity == 0 ? 64 : agenda->capacity * 2;
        void *moved = realloc(agenda->entries, wanted * sizeof(*agenda->entries));
        if (moved == NULL) {
            return LAC_ERR_NOMEM;
        }
        agenda->entries = moved;
        agenda->capacity = wanted;
    }
    uint32_t at = agenda->count++;
    agenda->entries[at] = (struct lac_demo_entry){at_ns, agenda->entered++, what, which};
    while (at > 0 && before(&agenda->entries[at], &agenda->entries[(at - 1) / 2])) {
        swap(&agenda->entries[at], &agenda->entries[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    return LAC_OK;
}

bool lac_demo_agenda_take(struct lac_demo_agenda *agenda, struct lac_demo_entry *ret_entry)
{
    if (agenda->count == 0) {
        return false;
    }
    *ret_entry = agenda->entries[0];
    agenda->entries[0] = agenda->entries[--agenda->count];
    for (uint32_t at = 0;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < agenda->count; child++) {
            if (before(&agenda->entries[child], &agenda->entries[least])) {
                least = child;
            }
        }
        if (least == at) {
            return true;
        }
        swap(&agenda->entries[at], &agenda->entries[least]);
        at = least;
    }
}

void lac_demo_agenda_done(struct lac_demo_agenda *agenda)
{
    free(agenda->entries);
    *agenda = (struct lac_demo_agenda){0};
}
