/*
 * NVTX's payload extension: a program describes its structs once. We keep the descriptions, place
 * the members whose offsets it left out, and write them into every spool of the process.
 */
#include "collector/inject/nvtx_schema.h"

#include "collector/inject/nvtx_abi.h"
#include "collector/inject/nvtx_private.h"
#include "collector/inject/recorder.h"
#include "lacuna/spool.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SCHEMAS_MAX = 512, TEXT_BYTES_MAX = 1024 };

static struct lac_schema schemas[SCHEMAS_MAX];
static uint32_t schema_count;
static uint64_t next_id = NVTX_SCHEMA_ID_DYNAMIC;

const struct lac_schema *lac_schema_find(uint16_t domain, uint64_t id)
{
    const uint32_t count =
        id >= NVTX_SCHEMA_ID_STATIC ? __atomic_load_n(&schema_count, __ATOMIC_ACQUIRE) : 0;

    for (uint32_t i = 0; i < count; i++) {
        if (schemas[i].id == id && schemas[i].domain == domain) {
            return &schemas[i];
        }
    }
    return NULL;
}

/* ---- where the members of a struct are */

uint32_t lac_schema_unit_bytes(uint64_t type)
{
    switch (type) {
    case NVTX_TYPE_CSTRING:
    case NVTX_TYPE_CSTRING_UTF8:
        return 1;
    case NVTX_TYPE_CSTRING_UTF16:
        return 2;
    case NVTX_TYPE_CSTRING_UTF32:
        return 4;
    default:
        return 0;
    }
}

uint32_t lac_schema_type_bytes(uint64_t type)
{
    /* by NVTX's numbers, where long has 64 bits */
    static const uint8_t basic[] = {0, 1, 1, 2, 2, 4, 4, 8,  8, 8, 8, 1, 1, 2,
                                    2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 4, 1, 2, 4};

    if (type < sizeof(basic)) {
        return basic[type];
    }
    if (lac_schema_unit_bytes(type) != 0) {
        return lac_schema_unit_bytes(type);
    }
    switch (type) {
    case NVTX_TYPE_BYTE:
    case NVTX_TYPE_UNION_SELECTOR:
        return 1;
    case NVTX_TYPE_FLOAT16:
    case NVTX_TYPE_BF16:
        return 2;
    case NVTX_TYPE_FLOAT32:
    case NVTX_TYPE_TF32:
    case NVTX_TYPE_CATEGORY:
    case NVTX_TYPE_COLOR_ARGB:
    case NVTX_TYPE_PID_UINT32:
    case NVTX_TYPE_TID_UINT32:
        return 4;
    case NVTX_TYPE_INT128:
    case NVTX_TYPE_UINT128:
    case NVTX_TYPE_FLOAT128:
        return 16;
    case NVTX_TYPE_FLOAT64:
    case NVTX_TYPE_RANGE_ID:
    case NVTX_TYPE_SCOPE_ID:
    case NVTX_TYPE_PID_UINT64:
    case NVTX_TYPE_TID_UINT64:
    case NVTX_TYPE_REGISTERED_STRING:
        return 8;
    default:
        return 0;
    }
}

uint32_t lac_schema_element_bytes(const struct lac_schema_member *member,
                                  const struct lac_schema *nested)
{
    return nested != NULL ? nested->size_bytes : lac_schema_type_bytes(member->type);
}

bool lac_schema_is_text_pointer(const struct lac_schema_member *member)
{
    return lac_schema_unit_bytes(member->type) != 0 &&
           ((member->flags & NVTX_ENTRY_POINTER) != 0 ||
            ((member->flags & (NVTX_ENTRY_ARRAY_MASK | NVTX_ENTRY_OFFSET_MASK)) == 0 &&
             member->detail == 0));
}

static void measure(uint16_t domain, const struct lac_schema_member *member, uint32_t *ret_size,
                    uint32_t *ret_alignment)
{
    const struct lac_schema *const nested = lac_schema_find(domain, member->type);
    const uint32_t array = member->flags & NVTX_ENTRY_ARRAY_MASK;
    const bool is_text = lac_schema_unit_bytes(member->type) != 0;
    uint64_t size = lac_schema_element_bytes(member, nested);

    *ret_alignment = nested != NULL ? nested->alignment : (uint32_t)size;
    if (lac_schema_is_text_pointer(member) ||
        (member->flags & (NVTX_ENTRY_POINTER | NVTX_ENTRY_OFFSET_MASK)) != 0) {
        size = sizeof(void *);
        *ret_alignment = sizeof(void *);
    } else if (array == NVTX_ENTRY_ARRAY_FIXED || (is_text && array == 0)) {
        size *= member->detail;
    } else if (array != 0) {
        size = 0; /* its length is in the data */
    }
    *ret_size = size <= UINT16_MAX ? (uint32_t)size : 0;
    *ret_alignment = *ret_alignment == 0 ? 1 : *ret_alignment;
}

/* Offsets that the program left out follow from the order and the natural alignment; the members
 * of a union all begin where it does. */
static void place_members(struct lac_schema *schema, uint32_t pack)
{
    const bool is_union = lac_schema_is_union(schema);
    uint64_t at = 0;
    uint64_t end = 0;
    bool is_known = true;

    schema->alignment = 1;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        struct lac_schema_member *const member = &schema->members[i];
        uint32_t size;
        uint32_t alignment;

        measure(schema->domain, member, &size, &alignment);
        alignment = pack != 0 && pack < alignment ? pack : alignment;
        if (is_union || member->offset != 0 || i == 0) {
            at = member->offset;
            is_known = is_union ? is_known : true;
        } else {
            at = (at + alignment - 1) / alignment * alignment;
            member->offset = is_known && at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;
        }
        is_known = is_known && size > 0;
        at += size;
        end = at > end || !is_union ? at : end;
        schema->alignment = alignment > schema->alignment ? alignment : schema->alignment;
    }
    if (schema->size_bytes == 0 && is_known && (is_union || schema->kind == LAC_SCHEMA_STATIC)) {
        end = (end + schema->alignment - 1) / schema->alignment * schema->alignment;
        schema->size_bytes = end <= UINT16_MAX ? (uint32_t)end : 0;
    }
}

/* ---- schemas into the spool */

static uint32_t name_z(struct lac_thread *self, const char *text)
{
    return text != NULL ? lac_recorder_name(self, text, strlen(text)) : 0;
}

static void define(struct lac_thread *self, const struct lac_schema *schema)
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
        const struct lac_schema_member *const member = &schema->members[i];

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

/* The lock is held. NULL when there is no room, or the program registered it before. */
static struct lac_schema *add_schema(uint16_t domain, uint64_t id, const char *name, size_t count)
{
    struct lac_schema *const schema = &schemas[schema_count];

    if (schema_count == SCHEMAS_MAX || count == 0 || count > LAC_SCHEMA_ENTRIES_MAX ||
        lac_schema_find(domain, id) != NULL) {
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

static uint64_t publish(struct lac_schema *schema)
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

/* A description that the program gives again, under an id of its own, stays the first one. */
static uint64_t registered_before(const struct lac_domain *domain, uint64_t has_id, uint64_t id)
{
    return has_id != 0 && lac_schema_find(lac_domain_index(domain), id) != NULL ? id : 0;
}

static uint32_t narrow(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* A spool has one kind of long double, the 80 bits of x86; elsewhere it is a type of its own. */
static uint64_t type_of_entry(uint64_t type)
{
    return type == NVTX_TYPE_LONGDOUBLE && __LDBL_MANT_DIG__ == 113 ? NVTX_TYPE_FLOAT128 : type;
}

uint64_t lac_schema_register(const struct lac_domain *domain, const struct nvtx_schema *from)
{
    const uint64_t needed = NVTX_SCHEMA_HAS_TYPE | NVTX_SCHEMA_HAS_ENTRIES | NVTX_SCHEMA_HAS_COUNT;
    struct lac_schema *schema;

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
        return registered_before(domain, from->field_mask & NVTX_SCHEMA_HAS_ID, from->id);
    }
    schema->kind = from->type <= LAC_SCHEMA_UNION_SELECTED ? (uint8_t)from->type : 0;
    schema->flags = (from->field_mask & NVTX_SCHEMA_HAS_FLAGS) != 0 ? (uint32_t)from->flags : 0;
    schema->size_bytes =
        (from->field_mask & NVTX_SCHEMA_HAS_SIZE) != 0 && from->static_size <= UINT16_MAX
            ? (uint32_t)from->static_size
            : 0;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        const struct nvtx_schema_entry *const entry = &from->entries[i];

        schema->members[i] = (struct lac_schema_member){.type = type_of_entry(entry->type),
                                                        .name = keep_text(entry->name),
                                                        .flags = (uint32_t)entry->flags,
                                                        .offset = narrow(entry->offset),
                                                        .detail = narrow(entry->detail)};
    }
    place_members(
        schema, (from->field_mask & NVTX_SCHEMA_HAS_ALIGNMENT) != 0 ? narrow(from->pack_align) : 0);
    return publish(schema);
}

uint64_t lac_schema_register_enum(const struct lac_domain *domain, const struct nvtx_enum *from)
{
    struct lac_schema *schema;

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
        return registered_before(domain, from->field_mask & NVTX_ENUM_HAS_ID, from->id);
    }
    schema->kind = LAC_SCHEMA_ENUM;
    schema->size_bytes = (from->field_mask & NVTX_ENUM_HAS_SIZE) != 0 && from->size_bytes <= 8 &&
                                 from->size_bytes > 0
                             ? (uint32_t)from->size_bytes
                             : 4;
    schema->alignment = schema->size_bytes;
    for (uint32_t i = 0; i < schema->member_count; i++) {
        schema->members[i] = (struct lac_schema_member){.type = from->entries[i].value,
                                                        .name = keep_text(from->entries[i].name),
                                                        .flags = from->entries[i].is_flag != 0};
    }
    return publish(schema);
}
