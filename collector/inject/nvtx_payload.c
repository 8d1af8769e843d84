/*
 * Payloads of NVTX's extension: the bytes of structs that a program described (nvtx_schema.c), with
 * ranges and marks; NCCL tells communicator, size and reduction that way. We record the bytes. What
 * their pointers lead to must be read here and now, and is stored after them.
 */
#include "collector/base/count_of.h"
#include "collector/base/utf8.h"
#include "collector/inject/capture.h"
#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"
#include "collector/inject/nvtx_schema.h"
#include "collector/inject/recorder.h"
#include "collector/inject/step_range.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PAYLOADS_MAX = 32, NESTED_MAX = 8, TEXT_BYTES_MAX = 1024, ELEMENTS_MAX = 65536 };

#define UNKNOWN UINT32_MAX /* of a place in the image */

/* One payload on its way into the spool. */
struct walk {
    struct lac_thread *self;
    const struct nvtx_data *payloads; /* of the event: pointers and lengths lead into them */
    size_t payload_count;
    const struct nvtx_data *payload; /* this one */
    uint16_t domain;
    uint8_t image[LAC_DATA_BYTES_MAX + 8]; /* its bytes, after them what they point to */
    uint32_t own_bytes;                    /* of the payload itself */
    uint32_t size_bytes;
    struct {
        uint32_t offset;
        uint32_t name;
    } texts[LAC_DATA_TEXTS_MAX];
    uint32_t text_count;
    struct {
        uint32_t payload;
        uint64_t value;
    } lengths[LAC_DATA_LENGTHS_MAX];
    uint32_t length_count;
    uint32_t message; /* name of the event, 0 none */
};

/* A member that is being looked at, in its struct. */
struct place {
    const struct lac_schema *schema;
    const struct lac_schema *nested;
    const struct lac_schema_member *member;
    const uint32_t *places; /* of all members in the image, UNKNOWN where they are not known yet */
    uint32_t at;
    uint32_t element_bytes; /* 0: not known */
};

static uint64_t load(const uint8_t *at, uint32_t size_bytes)
{
    uint64_t word = 0;

    memcpy(&word, at, size_bytes > 8 ? 8 : size_bytes);
    return word;
}

/* ---- lengths and selectors */

/* Bytes of an integer type, 0 for the others. */
static uint32_t integer_bytes(uint64_t type)
{
    const bool is_integer = (type >= NVTX_TYPE_CHAR && type < NVTX_TYPE_FLOAT) ||
                            type == NVTX_TYPE_SIZE || type == NVTX_TYPE_BYTE ||
                            type == NVTX_TYPE_UNION_SELECTOR;

    return is_integer ? lac_schema_type_bytes(type) : 0;
}

/* A length; a negative one is none. Signed types have odd numbers. */
static uint64_t load_length(const uint8_t *at, uint64_t type)
{
    const uint32_t size_bytes = integer_bytes(type);
    const uint64_t value = load(at, size_bytes);
    const bool is_negative =
        type < NVTX_TYPE_FLOAT && (type & 1) != 0 && (value >> (8 * size_bytes - 1) & 1) != 0;

    return is_negative ? 0 : value;
}

/* The product of the lengths that `member` at `from` holds; false when it holds none. */
static bool multiply_lengths(struct walk *walk, const struct lac_schema_member *member,
                             const uint8_t *from, size_t available, uint32_t payload,
                             uint64_t *ret_count)
{
    const uint32_t size_bytes = integer_bytes(member->type);
    const uint32_t array = member->flags & NVTX_ENTRY_ARRAY_MASK;
    const uint64_t dimensions = array == NVTX_ENTRY_ARRAY_FIXED        ? member->detail
                                : array == NVTX_ENTRY_ARRAY_TERMINATED ? LAC_DATA_LENGTHS_MAX
                                                                       : 1;

    *ret_count = 1;
    if (size_bytes == 0 || array > NVTX_ENTRY_ARRAY_TERMINATED ||
        dimensions > LAC_DATA_LENGTHS_MAX) {
        return false;
    }
    for (uint64_t i = 0; i < dimensions; i++) {
        uint64_t length;

        if ((i + 1) * size_bytes > available) {
            return false;
        }
        length = load_length(from + i * size_bytes, member->type);
        if (length == 0 && array == NVTX_ENTRY_ARRAY_TERMINATED) {
            return i > 0;
        }
        if (length > ELEMENTS_MAX || *ret_count * length > ELEMENTS_MAX) {
            return false;
        }
        *ret_count *= length;
        if (payload != UNKNOWN && walk->length_count < LAC_DATA_LENGTHS_MAX) {
            walk->lengths[walk->length_count].payload = payload;
            walk->lengths[walk->length_count++].value = length;
        }
    }
    return true;
}

/* The lengths are another payload of the event. */
static bool length_in_payload(struct walk *walk, uint32_t index, uint64_t *ret_count)
{
    const struct nvtx_data *const data =
        index < walk->payload_count ? &walk->payloads[index] : NULL;
    const struct lac_schema *schema;
    struct lac_schema_member plain = {0};
    uint32_t size_bytes;

    if (data == NULL || data->bytes == NULL) {
        return false;
    }
    schema = lac_schema_find(walk->domain, data->schema);
    if (schema != NULL) {
        return multiply_lengths(walk, &schema->members[0], data->bytes, data->size_bytes, index,
                                ret_count);
    }
    plain.type = data->schema;
    size_bytes = integer_bytes(plain.type);
    if (size_bytes > 0 && data->size_bytes != SIZE_MAX && data->size_bytes > size_bytes) {
        plain.flags = NVTX_ENTRY_ARRAY_FIXED;
        plain.detail = (uint32_t)(data->size_bytes / size_bytes);
    }
    return multiply_lengths(walk, &plain, data->bytes, data->size_bytes, index, ret_count);
}

/* How many elements the member has, with the first at `from`; false when unknown. */
static bool count_elements(struct walk *walk, const struct place *place, const uint8_t *from,
                           size_t available, uint64_t *ret_count)
{
    static const uint8_t zero[16];
    const struct lac_schema_member *const member = place->member;
    const uint32_t length_at =
        member->detail < place->schema->member_count ? place->places[member->detail] : UNKNOWN;
    uint64_t count = 0;

    switch (member->flags & NVTX_ENTRY_ARRAY_MASK) {
    case 0:
        count = lac_schema_unit_bytes(member->type) != 0 ? member->detail : 1;
        break;
    case NVTX_ENTRY_ARRAY_FIXED:
        count = member->detail;
        break;
    case NVTX_ENTRY_ARRAY_TERMINATED:
        if (place->element_bytes == 0 || place->element_bytes > sizeof(zero) ||
            (lac_schema_unit_bytes(member->type) != 0 && member->detail > 0)) {
            return false; /* of large ones, or an array of texts: left to the reader */
        }
        while ((count + 1) * place->element_bytes <= available &&
               memcmp(from + count * place->element_bytes, zero, place->element_bytes) != 0 &&
               count < ELEMENTS_MAX) {
            count++;
        }
        break;
    case NVTX_ENTRY_ARRAY_LENGTH:
        if (length_at >= walk->size_bytes ||
            !multiply_lengths(walk, &place->schema->members[member->detail],
                              walk->image + length_at, walk->size_bytes - length_at, UNKNOWN,
                              &count)) {
            return false;
        }
        break;
    case NVTX_ENTRY_ARRAY_PAYLOAD:
        if (!length_in_payload(walk, member->detail, &count)) {
            return false;
        }
        break;
    default:
        return false;
    }
    *ret_count = count;
    return count <= ELEMENTS_MAX;
}

/* Which member of a union is meant, UNKNOWN if nothing says so. */
static uint32_t selected_member(const struct walk *walk, const struct place *place, uint32_t at)
{
    const struct lac_schema *const of = place->nested;
    const struct lac_schema *schema = place->schema;
    const struct lac_schema *as_enum;
    uint32_t selector = 0;
    uint32_t size_bytes;
    uint64_t value;

    if (of->kind == LAC_SCHEMA_UNION) {
        selector = place->member->detail;
    } else {
        schema = of;
        while (selector < of->member_count &&
               of->members[selector].type != NVTX_TYPE_UNION_SELECTOR) {
            selector++;
        }
    }
    if (selector >= schema->member_count) {
        return UNKNOWN;
    }
    at = schema == of ? at + of->members[selector].offset : place->places[selector];
    as_enum = lac_schema_find(walk->domain, schema->members[selector].type);
    size_bytes = as_enum != NULL && as_enum->kind == LAC_SCHEMA_ENUM
                     ? as_enum->size_bytes
                     : integer_bytes(schema->members[selector].type);
    if (size_bytes == 0 || at >= walk->size_bytes || size_bytes > walk->size_bytes - at) {
        return UNKNOWN;
    }
    value = load(walk->image + at, size_bytes);
    return value < of->member_count ? (uint32_t)value : UNKNOWN;
}

/* ---- pointers */

/* Bytes that may be read from `pointer` on: to the end of the payload that it leads into. */
static size_t available_at(const struct walk *walk, const uint8_t *pointer, bool anywhere)
{
    for (size_t i = 0; i < walk->payload_count; i++) {
        const uint8_t *const begin = walk->payloads[i].bytes;
        const size_t size_bytes = walk->payloads[i].size_bytes;

        if (begin != NULL && size_bytes != SIZE_MAX && pointer >= begin &&
            (size_t)(pointer - begin) < size_bytes) {
            return size_bytes - (size_t)(pointer - begin);
        }
    }
    return anywhere ? SIZE_MAX : 0;
}

static uint32_t name_of_text(struct walk *walk, uint64_t type, const void *units, uint64_t count)
{
    char utf8[TEXT_BYTES_MAX];
    const size_t unit_bytes = lac_schema_unit_bytes(type);
    size_t unit_count = count < SIZE_MAX ? (size_t)count : SIZE_MAX;
    size_t length;

    if (unit_bytes > 1) {
        length = lac_utf8_from_units(units, unit_bytes, unit_count, utf8, sizeof(utf8));
    } else { /* in the program's encoding, which a reader checks */
        unit_count = unit_count < sizeof(utf8) ? unit_count : sizeof(utf8);
        length = strnlen(units, unit_count);
        memcpy(utf8, units, length);
    }
    return lac_recorder_name(walk->self, utf8, length);
}

/* Text stored elsewhere becomes a name. */
static void take_text(struct walk *walk, const struct place *place)
{
    const struct lac_registered_string *registered;
    const uint8_t *pointer;
    uint64_t count = UINT64_MAX;
    uint32_t name = 0;

    memcpy(&pointer, walk->image + place->at, sizeof(pointer));
    if (pointer != NULL && place->member->type == NVTX_TYPE_REGISTERED_STRING) {
        registered = (const struct lac_registered_string *)(const void *)pointer;
        name = lac_recorder_name(walk->self, registered->text, registered->length);
    } else if (pointer != NULL) {
        const uint32_t array = place->member->flags & NVTX_ENTRY_ARRAY_MASK;
        const uint32_t unit_bytes = lac_schema_unit_bytes(place->member->type);
        const uint64_t available = available_at(walk, pointer, true) / unit_bytes;

        if (array != NVTX_ENTRY_ARRAY_TERMINATED && (array != 0 || place->member->detail > 0) &&
            !count_elements(walk, place, pointer, 0, &count)) {
            return;
        }
        name =
            name_of_text(walk, place->member->type, pointer, count < available ? count : available);
    }
    if ((place->member->flags & NVTX_ENTRY_MESSAGE) != 0) {
        walk->message = name;
    }
    if (walk->text_count < LAC_DATA_TEXTS_MAX) {
        walk->texts[walk->text_count].offset = place->at;
        walk->texts[walk->text_count++].name = name;
    }
}

static void put_offset(struct walk *walk, uint32_t at, uint64_t offset)
{
    memcpy(walk->image + at, &offset, sizeof(offset));
}

static void walk_elements(struct walk *walk, const struct place *place, uint32_t at, uint64_t count,
                          unsigned depth);

/* What the pointer leads to goes after the payload; the pointer becomes its place there. */
static void take_pointed(struct walk *walk, const struct place *place, unsigned depth)
{
    const bool is_terminated =
        (place->member->flags & NVTX_ENTRY_ARRAY_MASK) == NVTX_ENTRY_ARRAY_TERMINATED;
    const uint8_t *const begin = walk->payload->bytes;
    uint32_t to = (walk->size_bytes + 7) & ~7u;
    const uint8_t *pointer;
    uint64_t count = 0;
    uint64_t size_bytes;
    size_t available;

    memcpy(&pointer, walk->image + place->at, sizeof(pointer));
    put_offset(walk, place->at, pointer == NULL ? 0 : LAC_DATA_NOT_THERE);
    available = pointer != NULL ? available_at(walk, pointer,
                                               (place->member->flags & NVTX_ENTRY_DEEP_COPY) != 0)
                                : 0;
    available = available > LAC_DATA_BYTES_MAX ? LAC_DATA_BYTES_MAX : available;
    if (available == 0 || !count_elements(walk, place, pointer, available, &count)) {
        return;
    }
    size_bytes = (count + is_terminated) * place->element_bytes;
    if (size_bytes == 0 || size_bytes > available) {
        return;
    }
    if (pointer >= begin && pointer < begin + walk->own_bytes) {
        to = (uint32_t)(pointer - begin); /* already copied */
    } else if (to + size_bytes <= LAC_DATA_BYTES_MAX) {
        memset(walk->image + walk->size_bytes, 0, to - walk->size_bytes);
        memcpy(walk->image + to, pointer, size_bytes);
        walk->size_bytes = to + (uint32_t)size_bytes;
    } else {
        return;
    }
    put_offset(walk, place->at, to);
    if (to >= walk->own_bytes) { /* what is in the payload itself is looked at where it lies */
        walk_elements(walk, place, to, count, depth);
    }
}

/* ---- the members of a payload */

static void walk_struct(struct walk *walk, const struct lac_schema *schema, uint32_t base,
                        uint32_t only, unsigned depth);

/* The structs that begin at `at`. */
static void walk_elements(struct walk *walk, const struct place *place, uint32_t at, uint64_t count,
                          unsigned depth)
{
    if (!lac_schema_is_struct(place->nested) || depth >= NESTED_MAX) {
        return;
    }
    for (uint64_t i = 0; i < count && at < walk->size_bytes; i++) {
        uint32_t only = UNKNOWN;

        if (lac_schema_is_union(place->nested)) {
            only = selected_member(walk, place, at);
            if (only == UNKNOWN) {
                return;
            }
        }
        walk_struct(walk, place->nested, at, only, depth + 1);
        at += place->element_bytes;
    }
}

/* One member; where the next one may begin, UNKNOWN if that cannot be known. */
static uint32_t walk_member(struct walk *walk, const struct place *place, unsigned depth)
{
    const struct lac_schema_member *const member = place->member;
    const uint32_t left = walk->size_bytes - place->at;
    const uint8_t *const from = walk->image + place->at;
    uint64_t count;
    uint64_t end;

    if (member->type == NVTX_TYPE_REGISTERED_STRING || lac_schema_is_text_pointer(member) ||
        (member->flags & (NVTX_ENTRY_POINTER | NVTX_ENTRY_OFFSET_MASK)) != 0) {
        if (left < sizeof(void *)) {
            return UNKNOWN;
        }
        if ((member->flags & NVTX_ENTRY_OFFSET_MASK) != 0) {
            return place->at + 8; /* a reader finds it in the payload */
        }
        if (member->type == NVTX_TYPE_REGISTERED_STRING || lac_schema_is_text_pointer(member)) {
            take_text(walk, place);
        } else {
            take_pointed(walk, place, depth);
        }
        return place->at + 8;
    }
    if (!count_elements(walk, place, from, left, &count)) {
        return UNKNOWN;
    }
    if ((member->flags & NVTX_ENTRY_MESSAGE) != 0 && lac_schema_unit_bytes(member->type) != 0) {
        const uint64_t available = left / place->element_bytes;

        walk->message =
            name_of_text(walk, member->type, from, count < available ? count : available);
    }
    walk_elements(walk, place, place->at, count, depth);
    count += (member->flags & NVTX_ENTRY_ARRAY_MASK) == NVTX_ENTRY_ARRAY_TERMINATED;
    end = place->at + count * place->element_bytes;
    return place->element_bytes > 0 && end <= walk->size_bytes ? (uint32_t)end : UNKNOWN;
}

/* Offsets known only from the data follow from the end of the member before. */
static uint32_t place_after(const struct lac_schema *schema, const struct place *place,
                            uint32_t reached)
{
    uint32_t alignment = place->nested != NULL ? place->nested->alignment : place->element_bytes;

    if (lac_schema_is_text_pointer(place->member) ||
        (place->member->flags & (NVTX_ENTRY_POINTER | NVTX_ENTRY_OFFSET_MASK)) != 0) {
        alignment = sizeof(void *);
    }
    alignment = alignment < schema->alignment ? alignment : schema->alignment;
    if (reached == UNKNOWN || alignment == 0) {
        return UNKNOWN;
    }
    return (reached + alignment - 1) / alignment * alignment;
}

/* The members of the struct at `base`; of a union `only` that one. */
static void walk_struct(struct walk *walk, const struct lac_schema *schema, uint32_t base,
                        uint32_t only, unsigned depth)
{
    uint32_t places[LAC_SCHEMA_ENTRIES_MAX];
    uint32_t reached = base;

    for (uint32_t i = 0; i < schema->member_count; i++) {
        const uint32_t offset = schema->members[i].offset;

        places[i] = offset < LAC_DATA_BYTES_MAX ? base + offset : UNKNOWN;
    }
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct lac_schema_member *const member = &schema->members[i];
        const struct lac_schema *const nested = lac_schema_find(schema->domain, member->type);
        struct place place = {.schema = schema,
                              .nested = nested,
                              .member = member,
                              .places = places,
                              .element_bytes = lac_schema_element_bytes(member, nested)};

        if (only != UNKNOWN && i != only) {
            continue;
        }
        if (member->offset == UNKNOWN) {
            places[i] = place_after(schema, &place, reached);
        }
        place.at = places[i];
        reached = place.at < walk->size_bytes ? walk_member(walk, &place, depth) : UNKNOWN;
    }
}

/* ---- data into the spool */

/* Bytes of one payload: as told, else as the schema says, else a text's; 0: not known. */
static size_t size_of_data(const struct lac_schema *schema, const struct nvtx_data *data)
{
    const uint32_t unit_bytes = lac_schema_unit_bytes(data->schema);
    size_t count = 0;

    if (data->size_bytes != SIZE_MAX) {
        return data->size_bytes;
    }
    if (schema != NULL) {
        return schema->size_bytes;
    }
    if (unit_bytes == 0) {
        return lac_schema_type_bytes(data->schema);
    }
    while (count < LAC_DATA_BYTES_MAX / unit_bytes &&
           load((const uint8_t *)data->bytes + count * unit_bytes, unit_bytes) != 0) {
        count++;
    }
    return (count > 0 ? count : 1) * unit_bytes; /* an empty text is its zero */
}

/* Record that `count` payloads of the event are missing or incomplete. */
static void put_missing(struct walk *walk, uint8_t owner, size_t count)
{
    if (owner != 0 && count > 0 && lac_recorder_room(walk->self, 1)) {
        lac_recorder_put(walk->self, 0, (uint32_t)(count < UINT16_MAX ? count : UINT16_MAX) << 16,
                         walk->domain, owner, LAC_EVENT_DATA);
    }
}

static void put_walked(struct walk *walk, uint8_t owner)
{
    struct lac_thread *const self = walk->self;

    if (!lac_recorder_room(self, 1 + walk->length_count + (walk->size_bytes + 7) / 8 +
                                     walk->text_count)) {
        return;
    }
    lac_recorder_put(self, walk->payload->schema, walk->size_bytes | walk->text_count << 16,
                     walk->domain, owner, LAC_EVENT_DATA);
    for (uint32_t i = 0; i < walk->length_count; i++) {
        lac_recorder_put(self, walk->lengths[i].value, walk->lengths[i].payload, 0, 0,
                         LAC_EVENT_DATA_LENGTH);
    }
    for (uint32_t at = 0; at < walk->size_bytes; at += 8) {
        lac_recorder_put(
            self, load(walk->image + at, walk->size_bytes - at < 8 ? walk->size_bytes - at : 8), 0,
            0, 0, LAC_EVENT_DATA_BYTES);
    }
    for (uint32_t i = 0; i < walk->text_count; i++) {
        lac_recorder_put(self, walk->texts[i].offset, walk->texts[i].name, 0, 0,
                         LAC_EVENT_DATA_TEXT);
    }
}

/* One payload of the event; sets walk->message. Without `owner` that is all it does. */
static void put_one(struct walk *walk, uint8_t owner, const struct nvtx_data *data)
{
    const struct lac_schema *const schema = lac_schema_find(walk->domain, data->schema);
    size_t size_bytes;

    walk->payload = data;
    walk->text_count = 0;
    walk->length_count = 0;
    if (data->bytes == NULL || data->size_bytes == 0 || data->schema == NVTX_TYPE_REFERENCED ||
        (schema != NULL && (schema->flags & NVTX_SCHEMA_REFERENCED) != 0)) {
        return; /* it is empty, or only others point into it */
    }
    size_bytes = size_of_data(schema, data);
    if (size_bytes == 0 || (schema == NULL && data->schema != NVTX_TYPE_RAW &&
                            lac_schema_type_bytes(data->schema) == 0)) {
        put_missing(walk, owner, 1); /* neither type nor length is known */
        return;
    }
    if (size_bytes > LAC_DATA_BYTES_MAX) {
        size_bytes = LAC_DATA_BYTES_MAX;
        put_missing(walk, schema == NULL ? owner : 0,
                    1); /* of a schema's a reader misses members */
    }
    memcpy(walk->image, data->bytes, size_bytes);
    walk->own_bytes = (uint32_t)size_bytes;
    walk->size_bytes = walk->own_bytes;
    if (schema != NULL && !lac_schema_is_struct(schema)) {
        walk->message = 0;
    } else if (schema != NULL && !lac_schema_is_union(schema)) {
        walk_struct(walk, schema, 0, UNKNOWN, 0);
    } else if (schema != NULL && schema->kind == LAC_SCHEMA_UNION_SELECTED) {
        const struct place place = {.schema = schema, .nested = schema};

        walk_elements(walk, &place, 0, 1, 0);
    }
    if (owner != 0) {
        put_walked(walk, owner);
    }
}

void lac_payload_put(struct lac_thread *self, uint16_t domain, enum lac_event_type owner,
                     const struct nvtx_data *data, size_t count)
{
    struct walk walk;

    if (data == NULL) {
        return;
    }
    walk.self = self;
    walk.domain = domain;
    walk.payloads = data;
    walk.payload_count = count < PAYLOADS_MAX ? count : PAYLOADS_MAX;
    walk.message = 0;
    for (size_t i = 0; i < walk.payload_count; i++) {
        put_one(&walk, (uint8_t)owner, &data[i]);
    }
    put_missing(&walk, (uint8_t)owner, count - walk.payload_count);
}

/* The name of an event that has payloads only: the message in them, else what the
 * schema is called. */
static uint32_t name_in(struct lac_thread *self, uint16_t domain, const struct nvtx_data *data,
                        size_t count)
{
    const struct lac_schema *schema;
    struct walk walk;

    if (data == NULL || count == 0) {
        return 0;
    }
    walk.self = self;
    walk.domain = domain;
    walk.payloads = data;
    walk.payload_count = count < PAYLOADS_MAX ? count : PAYLOADS_MAX;
    walk.message = 0;
    for (size_t i = 0; i < walk.payload_count && walk.message == 0; i++) {
        put_one(&walk, 0, &data[i]);
    }
    schema = lac_schema_find(domain, data[0].schema);
    return walk.message == 0 && schema != NULL && schema->name != NULL
               ? lac_recorder_name(self, schema->name, strlen(schema->name))
               : walk.message;
}

/* ---- the functions that a program calls */

static void mark(const struct lac_domain *domain, const struct nvtx_data *data, size_t count)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);

    if (self == NULL) {
        return;
    }
    if (lac_recorder_room(self, 1)) {
        lac_recorder_put(self, lac_clock_now(), name_in(self, index, data, count), index, 0,
                         LAC_EVENT_MARK);
        lac_payload_put(self, index, LAC_EVENT_MARK, data, count);
    }
    lac_recorder_leave(self);
}

static int push(const struct lac_domain *domain, const struct nvtx_data *data, size_t count)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);
    int depth = LAC_NVTX_NO_DEPTH;
    uint32_t name;

    if (self == NULL) {
        return LAC_NVTX_NO_DEPTH;
    }
    name = name_in(self, index, data, count);
    lac_capture_push(self, index, name);
    if (lac_recorder_opens(self, &self->depth[index], 1)) {
        lac_recorder_put(self, lac_clock_now(), name, index, 0, LAC_EVENT_PUSH);
        lac_payload_put(self, index, LAC_EVENT_PUSH, data, count);
        depth = self->depth[index].open - 1;
    }
    lac_recorder_leave(self);
    return depth;
}

/* The data come before the end, whose room is reserved. */
static int pop(const struct lac_domain *domain, const struct nvtx_data *data, size_t count)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);
    int depth = LAC_NVTX_NO_DEPTH;

    if (self == NULL) {
        return LAC_NVTX_NO_DEPTH;
    }
    if (self->depth[index].skipped == 0 && self->depth[index].open > 0) {
        lac_payload_put(self, index, LAC_EVENT_POP, data, count);
    }
    if (lac_recorder_closes(self, &self->depth[index])) {
        lac_recorder_put(self, lac_clock_now(), 0, index, 0, LAC_EVENT_POP);
        depth = self->depth[index].open;
    }
    lac_capture_pop(self, index);
    lac_recorder_leave(self);
    return depth;
}

static uint64_t start(const struct lac_domain *domain, const struct nvtx_data *data, size_t count)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);
    uint64_t id = 0;
    bool is_captured;
    uint32_t name;

    if (self == NULL) {
        return 0;
    }
    name = name_in(self, index, data, count);
    is_captured = lac_capture_starts(self, name);
    if (lac_recorder_room(self, 2)) {
        id = lac_nvtx_range_id(self);
        lac_recorder_put(self, lac_clock_now(), name, index, 0, LAC_EVENT_START);
        lac_recorder_put(self, id, 0, 0, 0, LAC_EVENT_ID);
        lac_payload_put(self, index, LAC_EVENT_START, data, count);
    }
    if (LAC_UNLIKELY(is_captured)) {
        lac_capture_started(id);
    }
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_step_started(self, name, id);
    }
    lac_recorder_leave(self);
    return id;
}

static void end(const struct lac_domain *domain, uint64_t id, const struct nvtx_data *data,
                size_t count)
{
    struct lac_thread *const self = id != 0 ? lac_recorder_enter() : NULL;
    const uint16_t index = lac_domain_index(domain);

    if (self == NULL) {
        return;
    }
    if (lac_recorder_room_always(self, 2)) {
        lac_recorder_put(self, lac_clock_now(), 0, index, 0, LAC_EVENT_END);
        lac_recorder_put(self, id, 0, 0, 0, LAC_EVENT_ID);
        lac_payload_put(self, index, LAC_EVENT_END, data, count);
    }
    if (LAC_UNLIKELY(lac_capture.looks_at_names)) {
        lac_capture_ended(self, id);
    }
    lac_recorder_leave(self);
}

void lac_payload_install(const struct nvtx_extension *extension)
{
    static const struct {
        size_t number;
        void (*function)(void);
    } hooks[] = {
        {NVTX_PAYLOAD_SCHEMA_REGISTER, (void (*)(void))lac_schema_register},
        {NVTX_PAYLOAD_ENUM_REGISTER, (void (*)(void))lac_schema_register_enum},
        {NVTX_PAYLOAD_MARK, (void (*)(void))mark},
        {NVTX_PAYLOAD_PUSH, (void (*)(void))push},
        {NVTX_PAYLOAD_POP, (void (*)(void))pop},
        {NVTX_PAYLOAD_START, (void (*)(void))start},
        {NVTX_PAYLOAD_END, (void (*)(void))end},
    };

    if (extension->struct_size < sizeof(*extension) || extension->segment_count == 0 ||
        extension->segments == NULL || extension->compat_id >> 8 != NVTX_EXTENSION_COMPATIBLE) {
        return;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(hooks); i++) {
        if (hooks[i].number < extension->segments->slot_count) {
            lac_nvtx_take_slot(&extension->segments->slots[hooks[i].number], hooks[i].function);
        }
    }
}
