/*
 * NVTX's payload extension: a program describes its structs once (schemas) and then passes their
 * bytes with ranges and marks; NCCL tells communicator, size and reduction that way. We record the
 * description and the bytes; what pointers in them point to must be read here and now.
 */
#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SCHEMAS_MAX = 512, PAYLOADS_MAX = 8, NESTED_MAX = 8, TEXT_BYTES_MAX = 1024 };

struct member {
    uint64_t type; /* of an enum: value */
    const char *name;
    uint32_t flags;
    uint32_t offset; /* UINT32_MAX: not known before the data are */
    uint32_t detail;
};

struct schema {
    uint64_t id;
    const char *name;
    struct member *members;
    uint32_t member_count;
    uint32_t size_bytes; /* 0: differs */
    uint32_t alignment;
    uint16_t domain;
    uint8_t kind;
};

struct text {
    uint32_t offset;
    uint32_t name;
};

static struct schema schemas[SCHEMAS_MAX];
static uint32_t schema_count;
static uint64_t next_id = NVTX_SCHEMA_ID_DYNAMIC;

static const struct schema *find_schema(uint16_t domain, uint64_t id)
{
    const uint32_t count = __atomic_load_n(&schema_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++) {
        if (schemas[i].id == id && schemas[i].domain == domain) {
            return &schemas[i];
        }
    }
    return NULL;
}

/* ---- where the members of a struct are */

static uint32_t size_of_type(uint64_t type)
{
    /* by NVTX's numbers, where long has 64 bits */
    static const uint8_t basic[] = {0, 1, 1, 2, 2, 4, 4, 8,  8, 8, 8, 1, 1, 2,
                                    2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 4, 1, 2, 4};

    if (type < sizeof(basic)) {
        return basic[type];
    }
    switch (type) {
    case NVTX_TYPE_BYTE:
        return 1;
    case 42: /* FLOAT16 */
    case 50: /* BF16 */
        return 2;
    case 43: /* FLOAT32 */
    case 52: /* TF32 */
    case 68: /* CATEGORY */
    case 69: /* COLOR_ARGB */
    case 71: /* PID, 32 bits */
    case 73: /* TID, 32 bits */
        return 4;
    case 33: /* INT128 */
    case 34:
    case 45: /* FLOAT128 */
        return 16;
    default:
        return type <= NVTX_TYPE_REGISTERED_STRING ? 8 : 0;
    }
}

static bool is_text(uint64_t type)
{
    return type >= NVTX_TYPE_CSTRING && type <= NVTX_TYPE_CSTRING_UTF32;
}

/* A pointer to text that is elsewhere, or a registered string. */
static bool is_text_pointer(const struct member *member)
{
    return member->type == NVTX_TYPE_REGISTERED_STRING ||
           ((member->type == NVTX_TYPE_CSTRING || member->type == NVTX_TYPE_CSTRING_UTF8) &&
            (member->flags & NVTX_ENTRY_ARRAY_MASK) == 0 && member->detail == 0);
}

static void measure(uint16_t domain, const struct member *member, uint32_t *ret_size,
                    uint32_t *ret_alignment)
{
    const struct schema *const nested =
        member->type >= NVTX_SCHEMA_ID_STATIC ? find_schema(domain, member->type) : NULL;
    const uint32_t array = member->flags & NVTX_ENTRY_ARRAY_MASK;
    uint64_t size = nested != NULL ? nested->size_bytes : size_of_type(member->type);

    *ret_alignment = nested != NULL ? nested->alignment : (uint32_t)size;
    if ((member->flags &
         (NVTX_ENTRY_POINTER | NVTX_ENTRY_OFFSET_FROM_BASE | NVTX_ENTRY_OFFSET_FROM_HERE)) != 0) {
        size = sizeof(void *);
        *ret_alignment = sizeof(void *);
    } else if (array == NVTX_ENTRY_ARRAY_FIXED || (is_text(member->type) && member->detail > 0)) {
        if (is_text(member->type)) {
            size = member->type <= NVTX_TYPE_CSTRING_UTF8    ? 1
                   : member->type == NVTX_TYPE_CSTRING_UTF32 ? 4
                                                             : 2;
            *ret_alignment = (uint32_t)size;
        }
        size *= member->detail;
    } else if (array != 0) {
        size = 0; /* the data say how long it is */
    }
    *ret_size = size <= UINT16_MAX ? (uint32_t)size : 0;
    *ret_alignment = *ret_alignment == 0 ? 1 : *ret_alignment;
}

/* Offsets that the program left out follow from the order and the natural alignment. */
static void place_members(struct schema *schema, uint32_t pack)
{
    uint64_t at = 0;
    bool is_known = true;

    schema->alignment = 1;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        struct member *const member = &schema->members[i];
        uint32_t size;
        uint32_t alignment;

        measure(schema->domain, member, &size, &alignment);
        alignment = pack != 0 && pack < alignment ? pack : alignment;
        if (schema->kind >= LAC_SCHEMA_UNION) {
            member->offset = 0;
        } else if (member->offset == 0 && i > 0) {
            at = (at + alignment - 1) / alignment * alignment;
            member->offset = is_known && at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;
        } else {
            at = member->offset;
            is_known = true;
        }
        is_known = is_known && size > 0;
        at += size;
        schema->alignment = alignment > schema->alignment ? alignment : schema->alignment;
    }
    if (schema->size_bytes == 0 && is_known && schema->kind == LAC_SCHEMA_STATIC) {
        at = (at + schema->alignment - 1) / schema->alignment * schema->alignment;
        schema->size_bytes = at <= UINT16_MAX ? (uint32_t)at : 0;
    }
}

/* ---- schemas into the spool */

static uint32_t name_z(struct lac_thread *self, const char *text)
{
    return text != NULL ? lac_recorder_name(self, text, strlen(text)) : 0;
}

static void define(struct lac_thread *self, const struct schema *schema)
{
    if (!lac_recorder_room_always(self, 2 + 2 * schema->member_count)) {
        return;
    }
    lac_recorder_put(self, schema->id, name_z(self, schema->name), schema->domain, schema->kind,
                     LAC_EVENT_SCHEMA);
    (void)__atomic_fetch_add(&lac_spool_header()->named_count, 1u, __ATOMIC_RELAXED);
    lac_recorder_put(self, (uint64_t)schema->size_bytes << 32 | schema->alignment, 0, 0, 0,
                     LAC_EVENT_SCHEMA_PLACE);
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct member *const member = &schema->members[i];

        lac_recorder_put(self, member->type, name_z(self, member->name), 0, 0,
                         LAC_EVENT_SCHEMA_ENTRY);
        lac_recorder_put(self, (uint64_t)member->offset << 32 | member->detail, member->flags, 0, 0,
                         LAC_EVENT_SCHEMA_PLACE);
    }
}

void lac_schemas_define(struct lac_thread *self)
{
    const uint32_t count = __atomic_load_n(&schema_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++) {
        define(self, &schemas[i]);
    }
}

static const char *keep_text(const char *text)
{
    const size_t length = text != NULL ? strnlen(text, TEXT_BYTES_MAX) : 0;
    char *const copy = text != NULL ? lac_nvtx_allocate(length + 1) : NULL;

    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* The lock is held. */
static struct schema *add_schema(uint16_t domain, uint64_t id, const char *name, size_t count)
{
    struct schema *const schema = &schemas[schema_count];

    if (schema_count == SCHEMAS_MAX || count == 0 || count > LAC_SCHEMA_ENTRIES_MAX) {
        return NULL;
    }
    schema->members = lac_nvtx_allocate(count * sizeof(*schema->members));
    if (schema->members == NULL) {
        return NULL;
    }
    schema->id = id != 0 ? id : next_id++;
    schema->domain = domain;
    schema->name = keep_text(name);
    schema->member_count = (uint32_t)count;
    return schema;
}

static uint64_t publish(struct schema *schema)
{
    struct lac_thread *self;
    const uint64_t id = schema->id;

    __atomic_store_n(&schema_count, schema_count + 1, __ATOMIC_RELEASE);
    lac_unlock();
    self = lac_recorder_enter();
    if (self != NULL) {
        define(self, schema);
        lac_recorder_leave(self);
    }
    return id;
}

static uint32_t narrow(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint64_t register_schema(const struct lac_domain *domain, const struct nvtx_schema *from)
{
    const uint64_t needed = NVTX_SCHEMA_HAS_TYPE | NVTX_SCHEMA_HAS_ENTRIES | NVTX_SCHEMA_HAS_COUNT;
    struct schema *schema;

    if (from == NULL || (from->field_mask & needed) != needed || from->entries == NULL ||
        lac_lock_is_mine()) {
        return 0;
    }
    lac_lock();
    schema = add_schema(
        lac_domain_index(domain), (from->field_mask & NVTX_SCHEMA_HAS_ID) != 0 ? from->id : 0,
        (from->field_mask & NVTX_SCHEMA_HAS_NAME) != 0 ? from->name : NULL, from->entry_count);
    if (schema == NULL) {
        lac_unlock();
        return 0;
    }
    schema->kind = from->type <= LAC_SCHEMA_UNION_SELECTED ? (uint8_t)from->type : 0;
    schema->size_bytes =
        (from->field_mask & NVTX_SCHEMA_HAS_SIZE) != 0 && from->static_size <= UINT16_MAX
            ? (uint32_t)from->static_size
            : 0;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct nvtx_schema_entry *const entry = &from->entries[i];

        schema->members[i] = (struct member){.type = entry->type,
                                             .name = keep_text(entry->name),
                                             .flags = (uint32_t)entry->flags,
                                             .offset = narrow(entry->offset),
                                             .detail = narrow(entry->detail)};
    }
    place_members(
        schema, (from->field_mask & NVTX_SCHEMA_HAS_ALIGNMENT) != 0 ? narrow(from->pack_align) : 0);
    return publish(schema);
}

static uint64_t register_enum(const struct lac_domain *domain, const struct nvtx_enum *from)
{
    struct schema *schema;

    if (from == NULL || (from->field_mask & NVTX_ENUM_HAS_ENTRIES) == 0 ||
        (from->field_mask & NVTX_ENUM_HAS_COUNT) == 0 || from->entries == NULL ||
        lac_lock_is_mine()) {
        return 0;
    }
    lac_lock();
    schema = add_schema(
        lac_domain_index(domain), (from->field_mask & NVTX_ENUM_HAS_ID) != 0 ? from->id : 0,
        (from->field_mask & NVTX_ENUM_HAS_NAME) != 0 ? from->name : NULL, from->entry_count);
    if (schema == NULL) {
        lac_unlock();
        return 0;
    }
    schema->kind = LAC_SCHEMA_ENUM;
    schema->size_bytes = (from->field_mask & NVTX_ENUM_HAS_SIZE) != 0 && from->size_bytes <= 8 &&
                                 from->size_bytes > 0
                             ? (uint32_t)from->size_bytes
                             : 4;
    schema->alignment = schema->size_bytes;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        schema->members[i] = (struct member){.type = from->entries[i].value,
                                             .name = keep_text(from->entries[i].name),
                                             .flags = from->entries[i].is_flag != 0};
    }
    return publish(schema);
}

/* ---- data into the spool */

/* What the pointer at `at` points to, as a name. */
static uint32_t text_of(struct lac_thread *self, const struct member *member, const uint8_t *at)
{
    const void *pointer;
    const struct lac_registered_string *registered;

    memcpy(&pointer, at, sizeof(pointer));
    if (pointer == NULL) {
        return 0;
    }
    if (member->type == NVTX_TYPE_REGISTERED_STRING) {
        registered = pointer;
        return lac_recorder_name(self, registered->text, registered->length);
    }
    return lac_recorder_name(self, pointer, strnlen(pointer, TEXT_BYTES_MAX));
}

/* One payload, and the texts that it points to. */
struct walk {
    struct lac_thread *self;
    const uint8_t *bytes;
    size_t size_bytes;
    struct text texts[LAC_DATA_TEXTS_MAX];
    uint32_t text_count;
    uint32_t message; /* name of the event, 0 none */
};

/* Every text that the data point to, in the structs within too; the event's message apart. */
static void collect_texts(struct walk *walk, const struct schema *schema, uint32_t base,
                          unsigned depth)
{
    for (uint32_t i = 0; i < schema->member_count && schema->kind < LAC_SCHEMA_UNION; i++) {
        const struct member *const member = &schema->members[i];
        const struct schema *const nested = member->type >= NVTX_SCHEMA_ID_STATIC
                                                ? find_schema(schema->domain, member->type)
                                                : NULL;
        const bool is_message = (member->flags & NVTX_ENTRY_MESSAGE) != 0;
        const uint64_t at = (uint64_t)base + member->offset;

        if (member->offset == UINT32_MAX || at >= walk->size_bytes) {
            continue;
        }
        if (nested != NULL && depth < NESTED_MAX && member->flags == 0) {
            collect_texts(walk, nested, (uint32_t)at, depth + 1);
        } else if (is_text_pointer(member) && at + sizeof(void *) <= walk->size_bytes &&
                   walk->text_count < LAC_DATA_TEXTS_MAX) {
            const uint32_t name = text_of(walk->self, member, walk->bytes + at);

            walk->texts[walk->text_count].offset = (uint32_t)at;
            walk->texts[walk->text_count++].name = name;
            walk->message = is_message ? name : walk->message;
        } else if (is_message && is_text(member->type)) {
            const char *const text = (const char *)walk->bytes + at;

            walk->message =
                lac_recorder_name(walk->self, text, strnlen(text, walk->size_bytes - at));
        }
    }
}

/* Bytes of one payload: as told, else as the schema says, else a C string's. */
static size_t size_of_data(const struct schema *schema, const struct nvtx_data *data)
{
    if (data->bytes == NULL) {
        return 0;
    }
    if (data->size_bytes != SIZE_MAX) {
        return data->size_bytes;
    }
    if (schema != NULL) {
        return schema->size_bytes;
    }
    return data->schema == NVTX_TYPE_CSTRING || data->schema == NVTX_TYPE_CSTRING_UTF8
               ? strnlen(data->bytes, LAC_DATA_BYTES_MAX)
               : size_of_type(data->schema);
}

/* One payload; returns the message in it as a name, or 0. Without `owner` that is all it does. */
static uint32_t put_one(struct lac_thread *self, uint16_t domain, uint8_t owner,
                        const struct nvtx_data *data)
{
    const struct schema *const schema =
        data->schema >= NVTX_SCHEMA_ID_STATIC ? find_schema(domain, data->schema) : NULL;
    size_t size_bytes = size_of_data(schema, data);
    struct walk walk = {.self = self, .bytes = data->bytes};

    if (size_bytes == 0 || (schema == NULL && data->schema > NVTX_TYPE_REGISTERED_STRING)) {
        return 0; /* raw bytes, or nobody said what they are */
    }
    size_bytes = size_bytes > LAC_DATA_BYTES_MAX ? LAC_DATA_BYTES_MAX : size_bytes;
    walk.size_bytes = size_bytes;
    if (schema != NULL) {
        collect_texts(&walk, schema, 0, 0);
    }
    if (owner == 0 ||
        !lac_recorder_room(self, 1 + (uint32_t)(size_bytes + 7) / 8 + walk.text_count)) {
        return walk.message;
    }
    lac_recorder_put(self, data->schema, (uint32_t)size_bytes | walk.text_count << 16, domain,
                     owner, LAC_EVENT_DATA);
    for (size_t at = 0; at < size_bytes; at += 8) {
        uint64_t word = 0;

        memcpy(&word, walk.bytes + at, size_bytes - at < 8 ? size_bytes - at : 8);
        lac_recorder_put(self, word, 0, 0, 0, LAC_EVENT_DATA_BYTES);
    }
    for (uint32_t i = 0; i < walk.text_count; i++) {
        lac_recorder_put(self, walk.texts[i].offset, walk.texts[i].name, 0, 0, LAC_EVENT_DATA_TEXT);
    }
    return walk.message;
}

void lac_payload_put(struct lac_thread *self, uint16_t domain, enum lac_event_type owner,
                     const struct nvtx_data *data, size_t count)
{
    for (size_t i = 0; data != NULL && i < count && i < PAYLOADS_MAX; i++) {
        (void)put_one(self, domain, (uint8_t)owner, &data[i]);
    }
}

/* The name of an event that has payloads only: the message in them, else what the schema is called.
 */
static uint32_t name_in(struct lac_thread *self, uint16_t domain, const struct nvtx_data *data,
                        size_t count)
{
    uint32_t name = 0;

    for (size_t i = 0; data != NULL && i < count && i < PAYLOADS_MAX && name == 0; i++) {
        name = put_one(self, domain, 0, &data[i]);
    }
    if (name == 0 && data != NULL && count > 0 && find_schema(domain, data[0].schema) != NULL) {
        name = name_z(self, find_schema(domain, data[0].schema)->name);
    }
    return name;
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

    if (self == NULL) {
        return LAC_NVTX_NO_DEPTH;
    }
    if (lac_recorder_opens(self, &self->depth[index], 1)) {
        lac_recorder_put(self, lac_clock_now(), name_in(self, index, data, count), index, 0,
                         LAC_EVENT_PUSH);
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
    lac_recorder_leave(self);
    return depth;
}

static uint64_t start(const struct lac_domain *domain, const struct nvtx_data *data, size_t count)
{
    struct lac_thread *const self = lac_recorder_enter();
    const uint16_t index = lac_domain_index(domain);
    uint64_t id = 0;

    if (self == NULL) {
        return 0;
    }
    if (lac_recorder_room(self, 2)) {
        id = lac_nvtx_range_id(self);
        lac_recorder_put(self, lac_clock_now(), name_in(self, index, data, count), index, 0,
                         LAC_EVENT_START);
        lac_recorder_put(self, id, 0, 0, 0, LAC_EVENT_ID);
        lac_payload_put(self, index, LAC_EVENT_START, data, count);
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
    lac_recorder_leave(self);
}

void lac_payload_install(const struct nvtx_extension *extension)
{
    static const struct {
        size_t number;
        void (*function)(void);
    } hooks[] = {
        {NVTX_PAYLOAD_SCHEMA_REGISTER, (void (*)(void))register_schema},
        {NVTX_PAYLOAD_ENUM_REGISTER, (void (*)(void))register_enum},
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
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        if (hooks[i].number < extension->segments->slot_count) {
            extension->segments->slots[hooks[i].number] = (intptr_t)hooks[i].function;
        }
    }
}
