/*
 * TensorFlow's Timeline. A GPU operation stands in several rows ("gpu:0/stream:7 Compute",
 * "stream:all", "memcpy", "gpu:0 Compute"); only the rows of single streams are the device. Which
 * row a process is, its name says, and that may come after its events: they wait for it.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct waiting {
    int64_t start_ns, dur_ns;
    uint32_t thread;
    struct lac_chrome_name name;
    enum lac_event_class class;
    uint32_t args; /**< index into args.entries, LAC_NONE */
    uint32_t first_number;
    uint32_t next; /**< of the same process */
};

struct lac_chrome_pending {
    struct waiting *items;
    uint64_t count, capacity, done_count;
    int64_t *numbers;
    uint64_t number_count, number_capacity;
};

/* Digits after `prefix` at p, case ignored. NULL when they are not there. */
static const char *number_after(const char *p, const char *prefix, int64_t *ret_value)
{
    size_t length = strlen(prefix);
    if (strncasecmp(p, prefix, length) != 0 || !isdigit((unsigned char)p[length])) {
        return NULL;
    }
    p += length;
    int64_t value = 0;
    for (; isdigit((unsigned char)*p); p++) {
        if (value > 100000000) {
            return NULL;
        }
        value = value * 10 + (*p - '0');
    }
    *ret_value = value;
    return p;
}

void lac_tensorflow_process_name(struct lac_chrome *chrome, uint32_t process)
{
    struct lac_chrome_process *entry = &chrome->processes[process];
    entry->is_device_row = false;
    entry->has_device_rows =
        lac_device_rows_of_process(lac_model_str(chrome->model, entry->name), &entry->device);
    for (const char *p = lac_model_str(chrome->model, entry->name); *p; p++) {
        int64_t device = 0, stream = 0;
        const char *q = number_after(p, "gpu:", &device);
        q = q != NULL ? number_after(q, "/stream:", &stream) : NULL;
        if (q != NULL && (*q == ' ' || *q == 0)) {
            entry->is_device_row = true;
            entry->device = device;
            entry->stream = stream;
            chrome->has_device_rows = true;
            return;
        }
    }
}

enum lac_event_class lac_tensorflow_class(const char *name)
{
    return strncmp(name, "MEMCPY", 6) == 0   ? LAC_CLASS_COPY
           : strncmp(name, "MEMSET", 6) == 0 ? LAC_CLASS_MEMSET
                                             : LAC_CLASS_KERNEL;
}

enum lac_status lac_tensorflow_wait(struct lac_chrome *chrome, uint32_t process,
                                    const struct lac_interval *interval)
{
    struct lac_chrome_pending *pending = chrome->pending;
    uint32_t number_count = interval->args != NULL ? interval->args->number_count : 0;
    enum lac_status status = LAC_OK;
    if (pending == NULL) {
        pending = chrome->pending = calloc(1, sizeof(*pending));
    }
    if (pending == NULL) {
        return lac_chrome_no_memory(chrome);
    }
    if (pending->count >= LAC_NONE || pending->number_count + number_count >= LAC_NONE) {
        return lac_chrome_pass(chrome, LAC_ERR_LIMIT);
    }
    status = LAC_GROW(pending->items, &pending->capacity, pending->count + 1);
    if (status == LAC_OK) {
        status = LAC_GROW(pending->numbers, &pending->number_capacity,
                          pending->number_count + number_count);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    uint32_t index = (uint32_t)pending->count++;
    pending->items[index] = (struct waiting){
        .start_ns = interval->start_ns,
        .dur_ns = interval->dur_ns,
        .thread = interval->thread,
        .name = interval->name,
        .class = interval->class,
        .args =
            interval->args != NULL ? (uint32_t)(interval->args - chrome->args.entries) : LAC_NONE,
        .first_number = (uint32_t)pending->number_count,
        .next = LAC_NONE,
    };
    if (number_count) {
        memcpy(pending->numbers + pending->number_count, interval->numbers,
               number_count * sizeof(*pending->numbers));
    }
    pending->number_count += number_count;
    struct lac_chrome_process *entry = &chrome->processes[process];
    if (entry->pending_last == LAC_NONE) {
        entry->pending_first = index;
    } else {
        pending->items[entry->pending_last].next = index;
    }
    entry->pending_last = index;
    return LAC_OK;
}

static enum lac_status flush_process(struct lac_chrome *chrome, uint32_t process)
{
    struct lac_chrome_pending *pending = chrome->pending;
    uint32_t index = chrome->processes[process].pending_first;
    chrome->processes[process].pending_first = LAC_NONE;
    chrome->processes[process].pending_last = LAC_NONE;
    while (index != LAC_NONE) {
        const struct waiting *item = &pending->items[index];
        struct lac_interval interval = {
            .start_ns = item->start_ns,
            .dur_ns = item->dur_ns,
            .thread = item->thread,
            .track = LAC_NONE,
            .name = item->name,
            .class = item->class,
            .args = item->args == LAC_NONE ? NULL : &chrome->args.entries[item->args],
            .numbers = pending->numbers != NULL ? pending->numbers + item->first_number : NULL,
        };
        enum lac_status status = lac_chrome_interval(chrome, &interval);
        if (status != LAC_OK) {
            return status;
        }
        pending->done_count++;
        index = item->next;
    }
    if (pending->done_count == pending->count) {
        pending->count = pending->done_count = pending->number_count = 0;
    }
    return LAC_OK;
}

enum lac_status lac_tensorflow_flush(struct lac_chrome *chrome, uint32_t process)
{
    enum lac_status status = LAC_OK;
    if (chrome->pending == NULL || chrome->pending->count == 0) {
        return LAC_OK;
    }
    if (process != LAC_NONE) {
        return flush_process(chrome, process);
    }
    for (uint64_t i = 0; i < chrome->process_count && status == LAC_OK; i++) {
        status = flush_process(chrome, (uint32_t)i);
    }
    return status;
}

void lac_chrome_pending_destroy(struct lac_chrome_pending *pending)
{
    if (pending == NULL) {
        return;
    }
    free(pending->items);
    free(pending->numbers);
    free(pending);
}
