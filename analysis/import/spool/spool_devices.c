#include "analysis/import/spool/spool_devices.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_KEY "gpu_device."
#define HOST_KEY   "host.gpu_uuid."

/* The number between `key` and '='; -1: it is not that key. */
static int number_of(const char *setting, const char *key)
{
    char *end = NULL;
    long number;

    if (strncmp(setting, key, strlen(key)) != 0) {
        return -1;
    }
    number = strtol(setting + strlen(key), &end, 10);
    return end != setting + strlen(key) && *end == '=' && number >= 0 &&
                   number < LAC_SPOOL_DEVICES_MAX
               ? (int)number
               : -1;
}

/* What the driver's monitor calls the device with that UUID; -1 where it did not tell. */
static int number_on_host(const struct lac_spool_process *process, const char *uuid)
{
    const struct lac_strings *const strings = &lac_builder_model(process->builder)->strings;
    const struct lac_spool_settings *const settings = process->settings;

    for (uint32_t i = 0; i < settings->count; i++) {
        const char *const text = lac_strings_get(strings, settings->text[i]);

        if (number_of(text, HOST_KEY) >= 0 && strcmp(strchr(text, '=') + 1, uuid) == 0) {
            return number_of(text, HOST_KEY);
        }
    }
    return -1;
}

static bool is_taken(const struct lac_spool_devices *devices, int number)
{
    for (uint32_t i = 0; i < devices->count; i++) {
        if (devices->known[i].number == number) {
            return true;
        }
    }
    return false;
}

/* The entry of that UUID, a new one for a new one; NULL: there are too many. */
static struct lac_spool_known_device *find_or_add(const struct lac_spool_process *process,
                                                  const char *uuid, int own)
{
    struct lac_spool_devices *const devices = &process->settings->devices;
    struct lac_spool_known_device *added;
    int number = number_on_host(process, uuid);

    for (uint32_t i = 0; i < devices->count; i++) {
        if (strcmp(devices->known[i].uuid, uuid) == 0) {
            return &devices->known[i];
        }
    }
    if (devices->count == LAC_SPOOL_DEVICES_MAX) {
        return NULL;
    }
    number = number >= 0 ? number : own;
    for (int next = 0; is_taken(devices, number) && next < LAC_SPOOL_DEVICES_MAX; next++) {
        number = next;
    }
    added = &devices->known[devices->count++];
    added->number = number;
    (void)snprintf(added->uuid, LAC_SPOOL_UUID_BYTES, "%s", uuid);
    return added;
}

/* The next field of "a|b|c", at most `capacity` - 1 bytes of it; "" behind the last. */
static void next_field(const char **from, char *out, size_t capacity)
{
    const size_t length = strcspn(*from, "|");

    (void)snprintf(out, capacity, "%.*s", (int)(length < 256 ? length : 256), *from);
    *from += length + ((*from)[length] == '|');
}

static int64_t number_field(const char **from, int64_t max)
{
    char text[32];
    long long number;

    next_field(from, text, sizeof(text));
    number = strtoll(text, NULL, 10);
    return number > 0 && number <= max ? number : 0;
}

static enum lac_status describe(struct lac_spool_process *process,
                                struct lac_spool_known_device *device, const char *fields)
{
    enum { CAPABILITY_MAX = 99 };
    char name[128];
    char capability[16];
    char *minor = NULL;
    long major;

    next_field(&fields, name, sizeof(name));
    device->memory_bytes = number_field(&fields, INT64_MAX);
    device->sm_count = (int32_t)number_field(&fields, UINT16_MAX);
    next_field(&fields, capability, sizeof(capability));
    major = strtol(capability, &minor, 10);
    if (major > 0 && major <= CAPABILITY_MAX && *minor == '.') {
        const long low = strtol(minor + 1, NULL, 10);

        device->cc_major = (int32_t)major;
        device->cc_minor = low >= 0 && low <= CAPABILITY_MAX ? (int32_t)low : 0;
    }
    return lac_spool_intern(&lac_builder_model(process->builder)->strings, name, strlen(name),
                            &device->name);
}

/* So that the diagnosis sees whether counters of that number are of this device. */
static enum lac_status tell_uuid(struct lac_spool_process *process,
                                 const struct lac_spool_known_device *device)
{
    struct lac_strings *const strings = &lac_builder_model(process->builder)->strings;
    char text[LAC_SPOOL_UUID_BYTES + 32];
    uint32_t id = 0;
    const int length = snprintf(text, sizeof(text), "gpu_uuid.%d=%s", device->number, device->uuid);
    const enum lac_status status = lac_spool_intern(strings, text, (size_t)length, &id);

    if (status == LAC_OK) {
        lac_spool_settings_add(process->settings, strings, id);
    }
    return status;
}

enum lac_status lac_spool_device_setting(struct lac_spool_process *process, const char *setting,
                                         bool *ret_is_device)
{
    const int own = number_of(setting, DEVICE_KEY);
    struct lac_spool_known_device *device;
    char uuid[LAC_SPOOL_UUID_BYTES];
    const char *fields;
    enum lac_status status;

    *ret_is_device = own >= 0;
    if (own < 0) {
        return LAC_OK;
    }
    fields = strchr(setting, '=') + 1;
    next_field(&fields, uuid, sizeof(uuid));
    device = uuid[0] != '\0' ? find_or_add(process, uuid, own) : NULL;
    if (device == NULL) {
        return LAC_OK;
    }
    process->devices.of[own] = (uint8_t)(device->number + 1);
    status = tell_uuid(process, device);
    return status == LAC_OK ? describe(process, device, fields) : status;
}

void lac_spool_devices_store(const struct lac_spool_process *process)
{
    const struct lac_spool_devices *const devices = &process->settings->devices;
    struct lac_model *const model = lac_builder_model(process->builder);

    for (uint32_t i = 0; i < devices->count; i++) {
        for (uint32_t k = 0; k < model->device_count; k++) {
            if (model->devices[k].id == devices->known[i].number) {
                model->devices[k].name = devices->known[i].name;
                model->devices[k].cc_major = devices->known[i].cc_major;
                model->devices[k].cc_minor = devices->known[i].cc_minor;
                model->devices[k].sm_count = devices->known[i].sm_count;
                model->devices[k].memory_bytes = devices->known[i].memory_bytes;
            }
        }
    }
}

uint32_t lac_spool_device_number(const struct lac_spool_process *process, uint32_t number)
{
    return number < LAC_SPOOL_DEVICES_MAX && process->devices.of[number] != 0
               ? process->devices.of[number] - 1u
               : number;
}
