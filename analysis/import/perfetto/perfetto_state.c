/* What packets say once: interned texts, tracks, clocks, sequences. */

#include "analysis/import/perfetto/perfetto_private.h"
#include "analysis/import/perfetto/proto.h"
#include "analysis/model/grow.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/reserve.h"
#include "collector/base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- map ---- */

static uint64_t slot_of(const struct lac_perfetto_map *map, const struct lac_perfetto_key *key)
{
    uint64_t slot = lac_hash_bytes(key, sizeof(*key), map->seed) & (map->slot_count - 1);
    while (map->slots[slot].value != LAC_NONE &&
           memcmp(&map->slots[slot].key, key, sizeof(*key)) != 0) {
        slot = (slot + 1) & (map->slot_count - 1);
    }
    return slot;
}

static bool grow(struct lac_perfetto_map *map)
{
    struct lac_perfetto_map wider = {.slot_count = map->slot_count == 0 ? 64 : map->slot_count * 2,
                                     .count = map->count,
                                     .seed = map->slot_count == 0 ? lac_hash_seed() : map->seed};
    wider.slots = calloc(wider.slot_count, sizeof(*wider.slots));
    if (wider.slots == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < wider.slot_count; i++) {
        wider.slots[i].value = LAC_NONE;
    }
    for (uint64_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].value != LAC_NONE) {
            wider.slots[slot_of(&wider, &map->slots[i].key)] = map->slots[i];
        }
    }
    free(map->slots);
    *map = wider;
    return true;
}

/* Its value is for the caller to set before the next call. */
uint32_t *lac_perfetto_map_at(struct lac_perfetto_map *map, struct lac_perfetto_key key)
{
    if (map->count * 2 >= map->slot_count && !grow(map)) {
        return NULL;
    }
    struct lac_perfetto_slot *slot = &map->slots[slot_of(map, &key)];
    if (slot->value == LAC_NONE) {
        slot->key = key;
        map->count++;
    }
    return &slot->value;
}

uint32_t lac_perfetto_map_get(const struct lac_perfetto_map *map, struct lac_perfetto_key key)
{
    return map->slot_count == 0 ? LAC_NONE : map->slots[slot_of(map, &key)].value;
}

void lac_perfetto_map_done(struct lac_perfetto_map *map)
{
    free(map->slots);
}

enum lac_status lac_perfetto_failed(struct lac_perfetto *p, enum lac_status status)
{
    return status == LAC_ERR_NOMEM ? lac_fail(p->reterr, status, p->offset_bytes, "out of memory")
           : status == LAC_ERR_LIMIT
               ? lac_fail(p->reterr, status, p->offset_bytes, "more names than a trace may have")
               : status;
}

/* ---- texts ---- */

enum lac_status lac_perfetto_text(struct lac_perfetto *p, const struct lac_proto_field *field,
                                  uint32_t *ret_id)
{
    size_t size = field->wire == LAC_PROTO_BYTES ? field->size_bytes : 0;
    const size_t most = p->options->limits.name_bytes_max;
    size = size > most ? lac_utf8_cut((const char *)field->bytes, size, most) : size;
    char *clean = malloc(size * 3 + 1);
    size_t repaired = 0;
    if (clean == NULL) {
        return lac_perfetto_failed(p, LAC_ERR_NOMEM);
    }
    const size_t used =
        lac_utf8_repair((const char *)field->bytes, size, clean, size * 3, &repaired);
    const enum lac_status status = lac_strings_intern(&p->strings, clean, used, ret_id);
    free(clean);
    return lac_perfetto_failed(p, status);
}

enum lac_status lac_perfetto_intern(struct lac_perfetto *p, uint64_t scope, uint32_t list,
                                    uint64_t id, uint32_t text)
{
    const struct lac_perfetto_key key = {.scope = scope, .id = id, .list = list};
    uint32_t *value = lac_perfetto_map_at(&p->interned, key);
    if (value == NULL) {
        return lac_perfetto_failed(p, LAC_ERR_NOMEM);
    }
    *value = text;
    return LAC_OK;
}

const char *lac_perfetto_interned(const struct lac_perfetto *p, uint64_t scope, uint32_t list,
                                  uint64_t id)
{
    const struct lac_perfetto_key key = {.scope = scope, .id = id, .list = list};
    const uint32_t text = lac_perfetto_map_get(&p->interned, key);
    return text == LAC_NONE ? "" : lac_strings_get(&p->strings, text);
}

enum lac_status lac_perfetto_read_interned(struct lac_perfetto *p, uint64_t scope,
                                           struct lac_proto message)
{
    struct lac_proto_field field;
    struct lac_proto_field part;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        const bool is_kept =
            field.number == LAC_PERFETTO_CATEGORIES || field.number == LAC_PERFETTO_NAMES ||
            field.number == LAC_PERFETTO_KEYS || field.number == LAC_PERFETTO_SPECIFICATIONS ||
            field.number == LAC_PERFETTO_TEXTS;
        if (!is_kept || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        struct lac_proto entry = lac_proto_inside(&field);
        uint64_t id = 0;
        uint32_t text = 0;
        while (status == LAC_OK && lac_proto_next(&entry, &part)) {
            id = part.number == 1 ? part.value : id;
            if (part.number == 2) {
                status = lac_perfetto_text(p, &part, &text);
            }
        }
        if (status == LAC_OK) {
            status = lac_perfetto_intern(p, scope, field.number, id, text);
        }
    }
    return status;
}

/* ---- sequences and tracks ---- */

enum lac_status lac_perfetto_sequence_of(struct lac_perfetto *p, uint64_t id, uint32_t *ret_index)
{
    const struct lac_perfetto_key key = {.id = id};
    uint32_t *index = lac_perfetto_map_at(&p->sequence_of, key);
    if (index == NULL) {
        return lac_perfetto_failed(p, LAC_ERR_NOMEM);
    }
    if (*index == LAC_NONE) {
        if (!LAC_RESERVE(p->sequences, p->sequence_capacity, p->sequence_count, 1)) {
            *index = 0;
            return lac_perfetto_failed(p, LAC_ERR_NOMEM);
        }
        *index = p->sequence_count;
        p->sequences[p->sequence_count++] =
            (struct lac_perfetto_sequence){.default_clock = LAC_PERFETTO_BOOTTIME};
    }
    *ret_index = *index;
    return LAC_OK;
}

enum lac_status lac_perfetto_track_of(struct lac_perfetto *p, uint64_t uuid, uint32_t *ret_index)
{
    const struct lac_perfetto_key key = {.id = uuid};
    uint32_t *index = lac_perfetto_map_at(&p->track_of, key);
    if (index == NULL) {
        return lac_perfetto_failed(p, LAC_ERR_NOMEM);
    }
    if (*index == LAC_NONE) {
        if (p->track_count >= p->options->limits.track_count_max ||
            !LAC_RESERVE(p->tracks, p->track_capacity, p->track_count, 1)) {
            const bool is_limit = p->track_count >= p->options->limits.track_count_max;
            *index = 0;
            return is_limit ? lac_fail(p->reterr, LAC_ERR_LIMIT, p->offset_bytes,
                                       "more than %u tracks (limit track_count_max)",
                                       p->options->limits.track_count_max)
                            : lac_perfetto_failed(p, LAC_ERR_NOMEM);
        }
        *index = p->track_count;
        p->tracks[p->track_count++] =
            (struct lac_perfetto_track){.uuid = uuid, .pid = -1, .tid = -1, .multiplier = 1};
    }
    *ret_index = *index;
    return LAC_OK;
}

/* ProcessDescriptor: pid 1, name 6; ThreadDescriptor: pid 1, tid 2, name 5. */
static enum lac_status read_owner(struct lac_perfetto *p, struct lac_perfetto_track *track,
                                  struct lac_proto message, bool is_thread)
{
    struct lac_proto_field field;
    enum lac_status status = LAC_OK;
    track->is_thread = track->is_thread || is_thread;
    track->is_process = track->is_process || !is_thread;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number == 1) {
            track->pid = (int64_t)field.value;
        } else if (field.number == 2 && is_thread) {
            track->tid = (int64_t)field.value;
        } else if (field.number == (is_thread ? 5 : 6)) {
            status = lac_perfetto_text(p, &field, &track->name);
        }
    }
    return status;
}

static enum lac_status read_counter(struct lac_perfetto *p, struct lac_perfetto_track *track,
                                    struct lac_proto message)
{
    struct lac_proto_field field;
    enum lac_status status = LAC_OK;
    track->is_counter = true;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number == 4) {
            track->multiplier = (int64_t)field.value;
        } else if (field.number == 5) {
            track->is_delta = field.value != 0;
        } else if (field.number == 6) {
            status = lac_perfetto_text(p, &field, &track->unit);
        }
    }
    return status;
}

enum lac_status lac_perfetto_read_track(struct lac_perfetto *p, struct lac_proto message)
{
    static const char WHY_IDLE[] = "why idle, ";
    struct lac_proto look = message;
    struct lac_proto_field field;
    uint64_t uuid = 0;
    uint32_t index = 0;
    while (lac_proto_next(&look, &field)) {
        uuid = field.number == 1 ? field.value : uuid;
    }
    enum lac_status status = lac_perfetto_track_of(p, uuid, &index);
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        struct lac_perfetto_track *track = &p->tracks[index];
        if (field.number == 5) {
            track->parent = field.value;
        } else if (field.number == 2 || field.number == 10) {
            status = lac_perfetto_text(p, &field, &track->name);
            const char *name = lac_strings_get(&p->strings, track->name);
            track->is_left =
                strncmp(name, WHY_IDLE, sizeof(WHY_IDLE) - 1) == 0 || strcmp(name, "steps") == 0;
        } else if (field.number == 3 || field.number == 4) {
            status = read_owner(p, track, lac_proto_inside(&field), field.number == 4);
        } else if (field.number == 8) {
            status = read_counter(p, track, lac_proto_inside(&field));
        }
    }
    return status;
}

/* ---- clocks ---- */

struct clock_reading {
    uint32_t id;
    uint64_t value;
    int64_t unit_ns;
    bool is_delta;
};

static struct clock_reading read_clock(struct lac_proto message)
{
    struct clock_reading clock = {.unit_ns = 1};
    struct lac_proto_field field;
    while (lac_proto_next(&message, &field)) {
        clock.id = field.number == 1 ? (uint32_t)field.value : clock.id;
        clock.value = field.number == 2 ? field.value : clock.value;
        clock.is_delta = field.number == 3 ? field.value != 0 : clock.is_delta;
        clock.unit_ns = field.number == 4 && field.value > 0 && field.value < 1000000000
                            ? (int64_t)field.value
                            : clock.unit_ns;
    }
    return clock;
}

static bool scaled(uint64_t value, int64_t unit_ns, int64_t *ret_ns)
{
    if (value > (uint64_t)(INT64_C(1) << 61) / (uint64_t)unit_ns) {
        return false;
    }
    *ret_ns = (int64_t)value * unit_ns;
    return true;
}

/* All clocks of a snapshot were read at one moment: each is then known from the trace's. */
void lac_perfetto_read_clocks(struct lac_perfetto *p, struct lac_perfetto_sequence *sequence,
                              struct lac_proto message)
{
    struct lac_proto look = message;
    struct lac_proto_field field;
    int64_t boot_ns = 0;
    int64_t ns = 0;
    bool has_boot = false;
    while (lac_proto_next(&look, &field)) {
        struct clock_reading clock = field.number == 1 && field.wire == LAC_PROTO_BYTES
                                         ? read_clock(lac_proto_inside(&field))
                                         : (struct clock_reading){.unit_ns = 1};
        if (clock.id == LAC_PERFETTO_BOOTTIME && scaled(clock.value, clock.unit_ns, &boot_ns)) {
            has_boot = true;
        }
    }
    while (has_boot && lac_proto_next(&message, &field)) {
        if (field.number != 1 || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        const struct clock_reading clock = read_clock(lac_proto_inside(&field));
        if (!scaled(clock.value, clock.unit_ns, &ns) || clock.id >= LAC_PERFETTO_CLOCKS) {
            continue;
        }
        if (clock.id < 64) {
            if (!p->has_clock[clock.id]) {
                p->clock_offset_ns[clock.id] = boot_ns - ns;
                p->has_clock[clock.id] = true;
            }
            if (clock.id == LAC_PERFETTO_REALTIME && p->realtime_ns == 0) {
                p->realtime_ns = ns - boot_ns;
            }
        } else if (sequence != NULL) {
            const uint32_t own = clock.id - 64;
            sequence->clock_unit_ns[own] = clock.unit_ns;
            sequence->clock_is_delta[own] = clock.is_delta;
            sequence->clock_last[own] = ns;
            sequence->clock_offset_ns[own] = boot_ns - ns;
        }
    }
}

bool lac_perfetto_time(struct lac_perfetto *p, struct lac_perfetto_sequence *sequence,
                       uint32_t clock, uint64_t value, int64_t *ret_ns)
{
    int64_t ns = 0;
    if (clock >= 64 && clock < LAC_PERFETTO_CLOCKS) {
        const uint32_t own = clock - 64;
        if (sequence->clock_unit_ns[own] == 0 ||
            !scaled(value, sequence->clock_unit_ns[own], &ns)) {
            return false;
        }
        if (sequence->clock_is_delta[own]) {
            if (ns > (INT64_C(1) << 61) - sequence->clock_last[own]) {
                return false;
            }
            sequence->clock_last[own] += ns;
            ns = sequence->clock_last[own];
        }
        *ret_ns = ns + sequence->clock_offset_ns[own];
        return true;
    }
    if (clock >= 64 || !scaled(value, 1, &ns)) {
        return false;
    }
    if (clock != LAC_PERFETTO_BOOTTIME && clock != 0 && !p->has_clock[clock]) {
        return false;
    }
    *ret_ns = ns + (clock == LAC_PERFETTO_BOOTTIME || clock == 0 ? 0 : p->clock_offset_ns[clock]);
    return true;
}
