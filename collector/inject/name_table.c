#include "collector/base/debug.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Holds every distinct name of this process once. Texts never move or go away: threads keep
 * pointers to them in their caches without a lock. All of it is under lac_lock().
 */

enum {
    TABLE_SLOTS_FIRST = 4096,
    NAMES_MAX = 1 << 20,
    ARENA_BYTES = 1 << 20,
    ARENAS_MAX = 256, /* a program that never repeats a name must not run out of memory by us */
};

struct entry {
    const char *text;
    uint32_t length;
    uint32_t hash;
    uint32_t id;    /* 0: not defined in the present spool */
    uint32_t epoch; /* of the definition */
};

static struct entry *table;
static uint32_t slot_count;
static uint32_t name_count;
static char *arena;
static size_t arena_left;
static unsigned arena_count;

/* where the next string record goes, in a strings segment of the spool */
static uint8_t *record_next;
static uint8_t *record_end;
static struct lac_segment_header *record_segment;
static uint32_t record_seq;
static uint32_t record_index;
static uint32_t next_id = 1;

static void *map(size_t size_bytes)
{
    void *const memory =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void lac_names_reset(void)
{
    record_next = NULL;
    record_end = NULL;
    record_segment = NULL;
    record_seq = 0;
    next_id = 1;
}

static bool grow(void)
{
    const uint32_t bigger = slot_count == 0 ? TABLE_SLOTS_FIRST : slot_count * 2;
    const uint32_t old_count = slot_count;
    struct entry *const fresh = map((size_t)bigger * sizeof(*fresh));
    struct entry *const old = table;

    if (fresh == NULL) {
        return false;
    }
    LAC_DEBUG(NAMES, 2, "room for %u names", bigger / 2);
    for (uint32_t i = 0; i < slot_count; i++) {
        if (table[i].text != NULL) {
            uint32_t at = table[i].hash & (bigger - 1);

            while (fresh[at].text != NULL) {
                at = (at + 1) & (bigger - 1);
            }
            fresh[at] = table[i];
        }
    }
    /* a handler may fork at any instant: the table must be consistent for the child */
    table = fresh;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    slot_count = bigger;
    if (old != NULL) {
        (void)munmap(old, (size_t)old_count * sizeof(*old));
    }
    return true;
}

static const char *keep(const char *text, uint32_t length)
{
    char *copy;

    if (arena_left < (size_t)length + 1) {
        arena = arena_count < ARENAS_MAX ? map(ARENA_BYTES) : NULL;
        if (arena == NULL) {
            arena_left = 0;
            return NULL;
        }
        arena_count++;
        arena_left = ARENA_BYTES;
    }
    copy = arena;
    memcpy(copy, text, length);
    copy[length] = '\0';
    arena += length + 1;
    arena_left -= (size_t)length + 1;
    return copy;
}

/* Write the definition into the spool; 0 when there is no room. */
static uint32_t define(const struct entry *entry)
{
    const size_t size_bytes = sizeof(struct lac_string_record) + ((entry->length + 7u) & ~7u);
    struct lac_string_record *record;

    if (record_next == NULL || (size_t)(record_end - record_next) < size_bytes) {
        if (record_segment != NULL) {
            lac_spool_release(record_segment, record_index);
        }
        record_segment = lac_spool_segment(LAC_SEGMENT_STRINGS, 0, record_seq, &record_index);
        if (record_segment == NULL) {
            record_next = NULL;
            return 0;
        }
        record_seq++;
        record_next = (uint8_t *)record_segment + LAC_SEGMENT_HEADER_BYTES;
        record_end = (uint8_t *)record_segment + lac_settings.segment_bytes;
    }
    record = (struct lac_string_record *)(void *)record_next;
    record->id = next_id;
    memcpy(record + 1, entry->text, entry->length);
    /* an empty name has length 0, which ends a segment: it is never defined, its id is 0 */
    __atomic_store_n(&record->length, entry->length, __ATOMIC_RELEASE);
    record_next += size_bytes;
    return next_id++;
}

/* The slot of the name, or the one for it. */
static struct entry *find(const char *text, uint32_t length, uint32_t hash)
{
    uint32_t at = hash & (slot_count - 1);

    while (table[at].text != NULL && (table[at].hash != hash || table[at].length != length ||
                                      memcmp(table[at].text, text, length) != 0)) {
        at = (at + 1) & (slot_count - 1);
    }
    return &table[at];
}

/* The first time is worth a line; from then on each new name comes here. */
static struct entry *no_room(const char *text, uint32_t length)
{
    static bool was_told;

    if (!was_told) {
        LAC_DEBUG(NAMES, 1, "the table is full with %u names; the first without a place: %.*s",
                  name_count, (int)length, text);
        was_told = true;
    }
    return NULL;
}

/* The entry of a name, made when it is new; NULL when there is no room for new ones. */
static struct entry *entry_of(const char *text, uint32_t length, uint32_t hash)
{
    struct entry *entry = slot_count > 0 ? find(text, length, hash) : NULL;
    const char *copy;

    if (entry != NULL && entry->text != NULL) {
        return entry;
    }
    if (name_count >= NAMES_MAX || ((name_count + 1) * 2 > slot_count && !grow())) {
        return no_room(text, length);
    }
    copy = keep(text, length);
    if (copy == NULL) {
        return no_room(text, length);
    }
    entry = find(text, length, hash);
    entry->length = length;
    entry->hash = hash;
    entry->id = 0;
    __atomic_store_n(&entry->text, copy, __ATOMIC_RELEASE);
    name_count++;
    LAC_DEBUG(NAMES, 3, "new: %.*s", (int)length, text);
    return entry;
}

uint32_t lac_names_define(const char *text, uint32_t length, uint32_t hash, const char **ret_text)
{
    struct entry *entry;
    uint32_t id = 0;

    *ret_text = NULL;
    if (length == 0) {
        return 0;
    }
    lac_lock();
    entry = entry_of(text, length, hash);
    if (entry != NULL) {
        if (entry->id == 0 || entry->epoch != *lac_epoch_page) {
            entry->id = define(entry);
            entry->epoch = *lac_epoch_page;
        }
        id = entry->id;
        *ret_text = entry->text;
    }
    if (id == 0 && lac_spool_header() != NULL) {
        lac_spool_header()->dropped_string_count++;
    }
    lac_unlock();
    return id;
}
