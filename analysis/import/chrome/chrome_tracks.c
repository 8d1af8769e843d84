/* From recorded pids and tids to processes and tracks of the model, and their names at the end. */

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/chrome/json_scan.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/builder.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64 }; /* a power of two, as all that come of it */

/* --- strings -----------------------------------------------------------------------------------*/

static uint8_t name_flags(const char *name, size_t size)
{
    static const struct {
        const char *prefix;
        uint8_t flag;
    } prefixes[] = {
        {"loader.", LAC_NAME_LOADER},       {"ProfilerStep#", LAC_NAME_STEP},
        {"ProfilerStep*", LAC_NAME_STEP},   {"enumerate(Data", LAC_NAME_STEP},
        {"Optimizer.step#", LAC_NAME_STEP}, {"Optimizer.zero_grad#", LAC_NAME_STEP},
    };
    uint8_t flags = 0;
    for (size_t i = 0; i < LAC_COUNT_OF(prefixes); i++) {
        size_t length = strlen(prefixes[i].prefix);
        if (size >= length && memcmp(name, prefixes[i].prefix, length) == 0) {
            flags |= prefixes[i].flag;
        }
    }
    if (size == 8 && memcmp(name, "[memory]", 8) == 0) {
        flags |= LAC_NAME_MEMORY;
    }
    if (size == 6 && memcmp(name, "launch", 6) == 0) {
        flags |= LAC_NAME_LAUNCH;
    }
    return flags;
}

static bool reserve_decoded(struct lac_chrome *chrome, size_t size)
{
    if (size <= chrome->decoded_capacity) {
        return true;
    }
    uint8_t *decoded = realloc(chrome->decoded, size);
    if (decoded == NULL) {
        return false;
    }
    chrome->decoded = decoded;
    chrome->decoded_capacity = size;
    return true;
}

static enum lac_status intern_slow(struct lac_chrome *chrome, const struct lac_json_span *text,
                                   struct lac_chrome_name *ret_name)
{
    const char *bytes = (const char *)text->at;
    size_t size = text->size_bytes;
    if (!text->plain) {
        if (!reserve_decoded(chrome, (size_t)text->size_bytes * 3 + 4)) {
            return lac_chrome_no_memory(chrome);
        }
        size = lac_json_string_decode(text->at, text->size_bytes, chrome->decoded,
                                      &chrome->raw.repairs);
        bytes = (const char *)chrome->decoded;
    }
    if (size > chrome->limits->name_bytes_max) {
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "a name of %zu bytes at byte %" PRIu64 " (limit name_bytes_max is %u)",
                        size, chrome->event_offset, chrome->limits->name_bytes_max);
    }
    enum lac_status status =
        lac_strings_intern(&chrome->model->strings, bytes, size, &ret_name->id);
    ret_name->flags = name_flags(bytes, size);
    return lac_chrome_pass(chrome, status);
}

enum lac_status lac_chrome_intern(struct lac_chrome *chrome, const struct lac_json_span *text,
                                  struct lac_chrome_name *ret_name)
{
    if (text->at == NULL) {
        *ret_name = (struct lac_chrome_name){0, 0};
        return LAC_OK;
    }
    if (!text->plain) {
        return intern_slow(chrome, text, ret_name);
    }
    const struct lac_strings *strings = &chrome->model->strings;
    uint64_t hash = lac_hash_bytes(text->at, text->size_bytes, chrome->scratch.hash_seed);
    size_t slot = (size_t)hash & (LAC_NAME_CACHE_SLOTS - 1);
    if (chrome->names[slot].hash == hash &&
        lac_strings_length(strings, chrome->names[slot].name.id) == text->size_bytes &&
        memcmp(lac_strings_get(strings, chrome->names[slot].name.id), text->at, text->size_bytes) ==
            0) {
        *ret_name = chrome->names[slot].name;
        return LAC_OK;
    }
    enum lac_status status = intern_slow(chrome, text, ret_name);
    if (status == LAC_OK) {
        chrome->names[slot].hash = hash;
        chrome->names[slot].name = *ret_name;
    }
    return status;
}

/* --- processes and threads -------------------------------------------------------------------- */

/* Where a key is looked for first, with the seed of this import: ids can be chosen so that any mix
 * that is known maps all of them to one place. */
static uint64_t place_of(const struct lac_chrome *chrome, uint64_t key)
{
    return lac_hash_bytes(&key, sizeof(key), chrome->scratch.hash_seed);
}

/* For a cache, which forgets what collides. */
static uint64_t mix(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 32;
}

static uint64_t key_of_process(const struct lac_chrome *chrome, uint64_t index)
{
    return chrome->processes[index].pid_text;
}

static uint64_t key_of_thread(const struct lac_chrome *chrome, uint64_t index)
{
    return chrome->threads[index].key;
}

/* Twice the places for `count` entries where more than half would be taken. A place holds the index
 * of an entry + 1; 0: it is free. */
static enum lac_status keep_half_free(struct lac_chrome *chrome, uint32_t **slots,
                                      uint64_t *slot_count, uint64_t count,
                                      uint64_t (*key_of)(const struct lac_chrome *, uint64_t))
{
    uint64_t bigger = *slot_count != 0 ? *slot_count * 2 : SLOTS_FIRST;
    if (count * 2 < *slot_count) {
        return LAC_OK;
    }
    uint32_t *grown = calloc((size_t)bigger, sizeof(*grown));
    if (grown == NULL) {
        return lac_chrome_no_memory(chrome);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t slot = place_of(chrome, key_of(chrome, i)) & (bigger - 1);
        while (grown[slot] != 0) {
            slot = (slot + 1) & (bigger - 1);
        }
        grown[slot] = (uint32_t)i + 1;
    }
    free(*slots);
    *slots = grown;
    *slot_count = bigger;
    return LAC_OK;
}

enum lac_status lac_chrome_find_process(struct lac_chrome *chrome, uint32_t pid_text, int64_t pid,
                                        uint32_t *ret_process)
{
    enum lac_status status =
        keep_half_free(chrome, &chrome->process_slots, &chrome->process_slot_count,
                       chrome->process_count, key_of_process);
    if (status != LAC_OK) {
        return status;
    }
    uint64_t mask = chrome->process_slot_count - 1, slot = place_of(chrome, pid_text) & mask;
    for (; chrome->process_slots[slot]; slot = (slot + 1) & mask) {
        uint32_t index = chrome->process_slots[slot] - 1;
        if (chrome->processes[index].pid_text == pid_text) {
            *ret_process = index;
            return LAC_OK;
        }
    }
    if (chrome->process_count >= chrome->limits->track_count_max) {
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "more than %u processes (limit track_count_max)",
                        chrome->limits->track_count_max);
    }
    status = LAC_GROW(chrome->processes, &chrome->process_capacity, chrome->process_count + 1);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    chrome->processes[chrome->process_count] = (struct lac_chrome_process){
        .pid_text = pid_text,
        .pid = pid,
        .index = LAC_NONE,
    };
    *ret_process = (uint32_t)chrome->process_count;
    chrome->process_slots[slot] = (uint32_t)++chrome->process_count;
    return LAC_OK;
}

enum lac_status lac_chrome_model_process(struct lac_chrome *chrome, uint32_t process,
                                         uint32_t *ret_index)
{
    struct lac_chrome_process *entry = &chrome->processes[process];
    if (entry->index == LAC_NONE) {
        enum lac_status status =
            lac_builder_process(chrome->builder, entry->pid_text, entry->pid, &entry->index);
        if (status != LAC_OK) {
            return lac_chrome_pass(chrome, status);
        }
    }
    *ret_index = entry->index;
    return LAC_OK;
}

int64_t lac_chrome_trailing_number(const struct lac_chrome *chrome, uint32_t text_id)
{
    const uint8_t *text = (const uint8_t *)lac_model_str(chrome->model, text_id);
    size_t size = lac_strings_length(&chrome->model->strings, text_id), digits = 0;
    int64_t value = -1;
    if (lac_decimal_integer(text, size, &value)) {
        return value;
    }
    while (digits < size && text[size - digits - 1] >= '0' && text[size - digits - 1] <= '9') {
        digits++;
    }
    return lac_decimal_integer(text + size - digits, digits, &value) ? value : -1;
}

static enum lac_status find_thread(struct lac_chrome *chrome, uint32_t pid_text, uint32_t tid_text,
                                   uint32_t *ret_thread)
{
    enum lac_status status =
        keep_half_free(chrome, &chrome->thread_slots, &chrome->thread_slot_count,
                       chrome->thread_count, key_of_thread);
    if (status != LAC_OK) {
        return status;
    }
    uint64_t key = (uint64_t)pid_text << 32 | tid_text;
    uint64_t mask = chrome->thread_slot_count - 1, slot = place_of(chrome, key) & mask;
    for (; chrome->thread_slots[slot]; slot = (slot + 1) & mask) {
        *ret_thread = chrome->thread_slots[slot] - 1;
        if (chrome->threads[*ret_thread].key == key) {
            return LAC_OK;
        }
    }
    if (chrome->thread_count >= chrome->limits->track_count_max) {
        return lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                        "more than %u threads (limit track_count_max)",
                        chrome->limits->track_count_max);
    }
    uint32_t process = 0;
    int64_t pid = -1;
    if (!lac_decimal_integer((const uint8_t *)lac_model_str(chrome->model, pid_text),
                             lac_strings_length(&chrome->model->strings, pid_text), &pid)) {
        pid = -1;
    }
    status = lac_chrome_find_process(chrome, pid_text, pid, &process);
    if (status != LAC_OK) {
        return status;
    }
    status = LAC_GROW(chrome->threads, &chrome->thread_capacity, chrome->thread_count + 1);
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    struct lac_chrome_thread *thread = &chrome->threads[chrome->thread_count];
    *thread = (struct lac_chrome_thread){
        .key = key,
        .process = process,
        .tid_text = tid_text,
        .row_name = LAC_NONE,
        .tid = lac_chrome_trailing_number(chrome, tid_text),
    };
    for (int i = 0; i < LAC_ROW_COUNT_; i++) {
        thread->track[i] = LAC_NONE;
    }
    for (int i = 0; i < LAC_GPU_ROW_COUNT_; i++) {
        thread->gpu[i].track = LAC_NONE;
    }
    *ret_thread = (uint32_t)chrome->thread_count;
    chrome->thread_slots[slot] = (uint32_t)++chrome->thread_count;
    return LAC_OK;
}

/* The text of a short id as a number: with its length, ids up to 7 bytes are their own key. */
static bool short_key(const struct lac_json_span *text, uint64_t *ret_key)
{
    if (text->size_bytes > 7 || !text->plain || text->at == NULL) {
        return false;
    }
    uint64_t word = lac_load64(text->at) & (((uint64_t)1 << (8 * text->size_bytes)) - 1);
    *ret_key = word | (uint64_t)(text->size_bytes + 1) << 56;
    return true;
}

enum lac_status lac_chrome_thread(struct lac_chrome *chrome, const struct lac_json_span *pid,
                                  const struct lac_json_span *tid, uint32_t *ret_thread)
{
    uint64_t pid_key = 0, tid_key = 0;
    size_t slot = 0;
    bool is_short = short_key(pid, &pid_key) && short_key(tid, &tid_key);
    if (is_short) {
        slot = (size_t)(mix(pid_key ^ mix(tid_key)) >> 16) & (LAC_THREAD_CACHE_SLOTS - 1);
        if (chrome->thread_cache[slot].pid == pid_key &&
            chrome->thread_cache[slot].tid == tid_key) {
            *ret_thread = chrome->thread_cache[slot].thread;
            return LAC_OK;
        }
    }
    struct lac_chrome_name pid_name = {0}, tid_name = {0};
    enum lac_status status = lac_chrome_intern(chrome, pid, &pid_name);
    if (status == LAC_OK) {
        status = lac_chrome_intern(chrome, tid, &tid_name);
    }
    if (status == LAC_OK) {
        status = find_thread(chrome, pid_name.id, tid_name.id, ret_thread);
    }
    if (status == LAC_OK && is_short) {
        chrome->thread_cache[slot].pid = pid_key;
        chrome->thread_cache[slot].tid = tid_key;
        chrome->thread_cache[slot].thread = *ret_thread;
    }
    return status;
}

/* --- tracks ------------------------------------------------------------------------------------*/

enum lac_status lac_chrome_track(struct lac_chrome *chrome, uint32_t thread,
                                 enum lac_chrome_row row, uint32_t *ret_track)
{
    struct lac_chrome_thread *entry = &chrome->threads[thread];
    if (entry->track[row] == LAC_NONE) {
        uint32_t process = 0;
        enum lac_status status = lac_chrome_model_process(chrome, entry->process, &process);
        if (status == LAC_OK) {
            status = lac_chrome_pass(
                chrome,
                lac_builder_track(chrome->builder,
                                  row == LAC_ROW_MARKS ? LAC_TRACK_MARKS : LAC_TRACK_THREAD,
                                  process, entry->tid_text, entry->tid, &entry->track[row]));
        }
        if (status != LAC_OK) {
            return status;
        }
        lac_builder_track_at(chrome->builder, entry->track[row])->device = -1;
    }
    *ret_track = entry->track[row];
    return LAC_OK;
}

/* The process whose recorded id is the number of the device. */
static enum lac_status device_process(struct lac_chrome *chrome, uint32_t thread, int64_t device,
                                      uint32_t *ret_process)
{
    uint32_t process = chrome->threads[thread].process;
    const struct lac_chrome_process *entry = &chrome->processes[process];
    if (entry->pid != device && !entry->is_device_row && !entry->has_device_rows) {
        char text[24];
        uint32_t id = 0;
        int length = snprintf(text, sizeof(text), "%" PRId64, device);
        enum lac_status status =
            lac_strings_intern(&chrome->model->strings, text, (size_t)length, &id);
        if (status != LAC_OK) {
            return lac_chrome_pass(chrome, status);
        }
        status = lac_chrome_find_process(chrome, id, device, &process);
        if (status != LAC_OK) {
            return status;
        }
    }
    chrome->processes[process].has_gpu_tracks = true;
    *ret_process = process;
    return LAC_OK;
}

static enum lac_status add_gpu_track(struct lac_chrome *chrome, uint32_t thread,
                                     enum lac_gpu_row row, int64_t device, int64_t stream,
                                     uint32_t *ret_track)
{
    uint32_t process = 0, index = 0, id = 0;
    char text[32];
    bool is_number = stream > INT64_MIN / 2;
    int length = snprintf(text, sizeof(text),
                          row == LAC_GPU_ROW_SYNC ? "%" PRId64 " sync" : "%" PRId64, stream);
    enum lac_status status = device_process(chrome, thread, device, &process);
    if (status == LAC_OK) {
        status = lac_chrome_model_process(chrome, process, &index);
    }
    if (status != LAC_OK) {
        return status;
    }
    id = chrome->threads[thread].tid_text;
    if (is_number) {
        status = lac_strings_intern(&chrome->model->strings, text, (size_t)length, &id);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(
            chrome->builder, row == LAC_GPU_ROW_STREAM ? LAC_TRACK_STREAM : LAC_TRACK_GPU_RANGE,
            index, id, is_number ? stream : -1, ret_track);
    }
    if (status != LAC_OK) {
        return lac_chrome_pass(chrome, status);
    }
    lac_builder_track_at(chrome->builder, *ret_track)->device = device;
    if (row == LAC_GPU_ROW_STREAM && lac_builder_device(chrome->builder, device) == NULL) {
        return chrome->model->device_count < LAC_DEVICE_COUNT_MAX
                   ? lac_chrome_no_memory(chrome)
                   : lac_fail(chrome->reterr, LAC_ERR_LIMIT, chrome->event_offset,
                              "more than %u devices in one trace", LAC_DEVICE_COUNT_MAX);
    }
    return LAC_OK;
}

enum lac_status lac_chrome_gpu_track(struct lac_chrome *chrome, uint32_t thread,
                                     enum lac_gpu_row row, int64_t device, int64_t stream,
                                     uint32_t *ret_track)
{
    struct lac_chrome_thread *entry = &chrome->threads[thread];
    if (entry->gpu[row].track != LAC_NONE && entry->gpu[row].device == device &&
        entry->gpu[row].stream == stream) {
        *ret_track = entry->gpu[row].track;
        return LAC_OK;
    }
    enum lac_status status = add_gpu_track(chrome, thread, row, device, stream, ret_track);
    if (status != LAC_OK) {
        return status;
    }
    entry->gpu[row].track = *ret_track;
    entry->gpu[row].device = device;
    entry->gpu[row].stream = stream;
    return LAC_OK;
}

/* --- names -------------------------------------------------------------------------------------*/

static void name_track(struct lac_chrome *chrome, uint32_t track,
                       const struct lac_chrome_thread *thread)
{
    if (track == LAC_NONE) {
        return;
    }
    struct lac_track *entry = lac_builder_track_at(chrome->builder, track);
    if (thread->is_named) {
        entry->name = thread->name;
    }
    if (thread->sort_index) {
        entry->sort_index = thread->sort_index;
    }
}

enum lac_status lac_chrome_name_tracks(struct lac_chrome *chrome)
{
    for (uint64_t i = 0; i < chrome->process_count; i++) {
        const struct lac_chrome_process *process = &chrome->processes[i];
        if (process->index == LAC_NONE) {
            continue;
        }
        struct lac_process *entry = lac_builder_process_at(chrome->builder, process->index);
        entry->name = process->name;
        entry->labels = process->labels;
        entry->sort_index = process->sort_index;
        entry->is_gpu = process->has_gpu_tracks;
    }
    for (uint64_t i = 0; i < chrome->thread_count; i++) {
        const struct lac_chrome_thread *thread = &chrome->threads[i];
        for (int row = 0; row < LAC_ROW_COUNT_; row++) {
            name_track(chrome, thread->track[row], thread);
        }
        for (int row = 0; row < LAC_GPU_ROW_COUNT_; row++) {
            name_track(chrome, thread->gpu[row].track, thread);
        }
    }
    return LAC_OK;
}

void lac_chrome_tracks_done(struct lac_chrome *chrome)
{
    free(chrome->decoded);
    free(chrome->rewritten);
    free(chrome->names);
    free(chrome->processes);
    free(chrome->process_slots);
    free(chrome->threads);
    free(chrome->thread_slots);
}
