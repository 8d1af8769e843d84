/*
 * TensorFlow's Timeline. A GPU operation stands in several rows ("gpu:0/stream:7 Compute",
 * "stream:all", "memcpy", "gpu:0 Compute"); only the rows of single streams are the device. Which
 * row a process is, its name says.
 */

#include "analysis/import/chrome/chrome.h"
#include "analysis/model/model.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

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
