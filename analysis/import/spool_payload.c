#include "analysis/import/spool_payload.h"

#include "analysis/import/spool_events.h"
#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCHEMAS_MAX = 1024,
    SLOTS = 4096, /* a power of two beyond SCHEMAS_MAX */
    MEMBERS_MAX = 1 << 16,
    NESTED_MAX = 8,
    ELEMENTS_MAX = 64,
    NUMBERS_MAX = 256,
    STEPS_MAX = 512, /* members looked at for one payload */
    TEXT_BYTES_MAX = 8192,
    AFTER_PREVIOUS = -1,
};

/* NVTX's numbers. */
enum {
    FLAG_POINTER = 1 << 1 | 1 << 2 | 1 << 3, /* absolute, from the base, from here */
    FLAG_ARRAY_FIXED = 1 << 4,
    FLAG_ARRAY_TERMINATED = 2 << 4,
    FLAG_ARRAY_LENGTH = 3 << 4,
    FLAG_ARRAY_MASK = 7 << 4,
    FLAG_HIDE = 1 << 9,
    FLAG_MESSAGE = 1 << 10,
    TYPE_CHAR = 1,
    TYPE_CHAR8 = 25,
    TYPE_BYTE = 32,
    TYPE_FLOAT16 = 42,
    TYPE_BF16 = 50,
    TYPE_COLOR = 69,
    TYPE_CSTRING = 75,
    TYPE_CSTRING_UTF8 = 76,
    TYPE_CSTRING_LAST = 78,
    TYPE_REGISTERED_STRING = 80,
    SCHEMA_ID_STATIC = 1 << 24,
};

struct member {
    uint64_t type; /* of an enum: value */
    uint32_t name;
    uint32_t flags;
    int64_t offset; /* AFTER_PREVIOUS */
    uint32_t detail;
};

struct schema {
    uint64_t id;
    uint32_t size_bytes;
    uint32_t alignment;
    uint32_t first;
    uint32_t count;
    uint32_t name;
    uint16_t domain;
    uint8_t kind;
};

struct lac_spool_schemas {
    struct schema *schemas;
    uint32_t count;
    uint32_t capacity;
    struct member *members;
    uint32_t member_count;
    uint32_t member_capacity;
    uint16_t slots[SLOTS]; /* index + 1 by domain and id, open addressing */
};

/* ---- schemas */

/* Where the schema is, or where it would go. */
static uint32_t slot_of(const struct lac_spool_schemas *known, uint16_t domain, uint64_t id)
{
    uint32_t at = (uint32_t)((id + domain) * 0x9e3779b97f4a7c15u >> 40) & (SLOTS - 1);

    while (known->slots[at] != 0 && (known->schemas[known->slots[at] - 1].id != id ||
                                     known->schemas[known->slots[at] - 1].domain != domain)) {
        at = (at + 1) & (SLOTS - 1);
    }
    return at;
}

static const struct schema *find_schema(const struct lac_spool_process *process, uint16_t domain,
                                        uint64_t id)
{
    const struct lac_spool_schemas *const known = process->schemas;
    const uint16_t slot = known != NULL ? known->slots[slot_of(known, domain, id)] : 0;

    return slot != 0 ? &known->schemas[slot - 1] : NULL;
}

void lac_spool_schemas_destroy(struct lac_spool_schemas *schemas)
{
    if (schemas != NULL) {
        free(schemas->schemas);
        free(schemas->members);
        free(schemas);
    }
}

/* Room for one more of `size_bytes`; the array, grown if need be, or NULL. */
static void *grow(void *array, uint32_t count, uint32_t *capacity, size_t size_bytes)
{
    void *grown;

    if (count < *capacity) {
        return array;
    }
    grown = realloc(array, ((size_t)*capacity * 2 + 16) * size_bytes);
    *capacity = grown != NULL ? *capacity * 2 + 16 : *capacity;
    return grown;
}

static uint32_t string_of(const struct lac_spool_process *process, uint32_t id)
{
    return id < process->string_count ? process->string_of_id[id] : 0;
}

/* A SCHEMA event and those that follow it; returns how many were used. */
static enum lac_status add_schema(struct lac_spool_process *process, const struct lac_event *events,
                                  size_t count)
{
    struct lac_spool_schemas *const known = process->schemas;
    struct schema schema = {.id = events->ts,
                            .kind = events->flags,
                            .domain = events->domain,
                            .name = string_of(process, events->name),
                            .first = known->member_count};
    void *grown;

    if (known->count >= SCHEMAS_MAX || count < 2 || events[1].type != LAC_EVENT_SCHEMA_PLACE) {
        process->payload_members_left_out++;
        return LAC_OK;
    }
    schema.size_bytes = (uint32_t)(events[1].ts >> 32);
    schema.alignment = (uint32_t)events[1].ts;
    for (size_t i = 2; i + 1 < count && events[i].type == LAC_EVENT_SCHEMA_ENTRY &&
                       events[i + 1].type == LAC_EVENT_SCHEMA_PLACE &&
                       schema.count < LAC_SCHEMA_ENTRIES_MAX && known->member_count < MEMBERS_MAX;
         i += 2) {
        const uint64_t place = events[i + 1].ts;

        grown = grow(known->members, known->member_count, &known->member_capacity,
                     sizeof(*known->members));
        if (grown == NULL) {
            return LAC_ERR_NOMEM;
        }
        known->members = grown;
        known->members[known->member_count++] = (struct member){
            .type = events[i].ts,
            .name = string_of(process, events[i].name),
            .flags = events[i + 1].name,
            .offset = place >> 32 == UINT32_MAX ? AFTER_PREVIOUS : (int64_t)(place >> 32),
            .detail = (uint32_t)place};
        schema.count++;
    }
    grown = grow(known->schemas, known->count, &known->capacity, sizeof(*known->schemas));
    if (grown == NULL) {
        return LAC_ERR_NOMEM;
    }
    known->schemas = grown;
    known->schemas[known->count++] = schema;
    known->slots[slot_of(known, schema.domain, schema.id)] = (uint16_t)known->count;
    return LAC_OK;
}

enum lac_status lac_spool_schemas_collect(struct lac_spool_process *process,
                                          const struct lac_event *events, size_t count)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < count && events[i].type != 0 && status == LAC_OK; i++) {
        if (events[i].type != LAC_EVENT_SCHEMA ||
            find_schema(process, events[i].domain, events[i].ts) != NULL) {
            continue;
        }
        if (process->schemas == NULL) {
            process->schemas = calloc(1, sizeof(*process->schemas));
        }
        status =
            process->schemas != NULL ? add_schema(process, &events[i], count - i) : LAC_ERR_NOMEM;
    }
    return status;
}

/* ---- the bytes */

bool lac_spool_data_begin(struct lac_spool_data *data, const struct lac_event *event)
{
    data->schema = event->ts;
    data->domain = event->domain;
    data->owner = event->flags;
    data->size_bytes = event->name & UINT16_MAX;
    data->text_count = event->name >> 16;
    data->bytes_read = 0;
    data->texts_read = 0;
    if (data->size_bytes == 0 || data->size_bytes > LAC_DATA_BYTES_MAX ||
        data->text_count > LAC_DATA_TEXTS_MAX) {
        data->owner = 0;
    }
    return data->owner != 0;
}

bool lac_spool_data_add(struct lac_spool_data *data, const struct lac_event *event, uint32_t name)
{
    if (event->type == LAC_EVENT_DATA_BYTES && data->bytes_read < data->size_bytes) {
        memcpy(data->bytes + data->bytes_read, &event->ts, 8);
        data->bytes_read += 8;
    } else if (event->type == LAC_EVENT_DATA_TEXT && data->texts_read < data->text_count) {
        data->texts[data->texts_read].offset = event->ts;
        data->texts[data->texts_read].name = name;
        data->texts_read++;
    }
    return data->bytes_read >= data->size_bytes && data->texts_read == data->text_count;
}

/* ---- bytes to text */

struct writer {
    struct lac_spool_process *process;
    const struct lac_spool_data *data;
    char *text;
    size_t used; /* beyond TEXT_BYTES_MAX - 64 nothing is begun any more */
    int64_t numbers[NUMBERS_MAX];
    uint32_t number_count;
    uint32_t steps;
    enum lac_status status;
};

void lac_spool_members_destroy(struct lac_spool_members *members)
{
    if (members != NULL) {
        free(members->text);
        free(members->numbers);
        free(members);
    }
}

static bool has_room(const struct writer *writer, size_t size_bytes)
{
    return writer->used + size_bytes + 64 < TEXT_BYTES_MAX && writer->number_count < NUMBERS_MAX;
}

static void put_char(struct writer *writer, char c)
{
    if (writer->used + 1 < TEXT_BYTES_MAX) {
        writer->text[writer->used++] = c;
    }
}

/* Interned text is UTF-8; cut where it would not fit, between characters. */
static void put_quoted(struct writer *writer, const char *text)
{
    put_char(writer, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if ((*c & 0xc0) != 0x80 && !has_room(writer, 16)) {
            break;
        }
        if (*c == '"' || *c == '\\') {
            put_char(writer, '\\');
            put_char(writer, *c);
        } else if ((unsigned char)*c < 0x20) {
            writer->used += (size_t)snprintf(writer->text + writer->used, 7, "\\u%04x", *c);
        } else {
            put_char(writer, *c);
        }
    }
    put_char(writer, '"');
}

static struct lac_strings *strings_of(const struct writer *writer)
{
    return &lac_builder_model(writer->process->builder)->strings;
}

static void put_bytes_as_text(struct writer *writer, const uint8_t *bytes, size_t length)
{
    uint32_t id = 0;

    if (writer->status == LAC_OK) {
        writer->status = lac_spool_intern(strings_of(writer), (const char *)bytes,
                                          strnlen((const char *)bytes, length), &id);
    }
    put_quoted(writer, lac_strings_get(strings_of(writer), id));
}

static void put_integer(struct writer *writer, int64_t value)
{
    put_char(writer, LAC_ARG_INTEGER);
    writer->numbers[writer->number_count++] = value;
}

static void put_real(struct writer *writer, double value)
{
    if (!isfinite(value)) { /* JSON has no such number */
        put_quoted(writer, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    put_char(writer, LAC_ARG_REAL);
    memcpy(&writer->numbers[writer->number_count++], &value, sizeof(value));
}

/* ---- types */

struct type {
    uint8_t size_bytes; /* 0: not one that we can read */
    char form;          /* i signed, u unsigned, f real, c character */
};

static struct type type_of(uint64_t type)
{
    /* by NVTX's numbers, where long has 64 bits */
    static const struct type basic[] = {
        {0, 0},   {1, 'c'}, {1, 'u'}, {2, 'i'}, {2, 'u'}, {4, 'i'}, {4, 'u'},
        {8, 'i'}, {8, 'u'}, {8, 'i'}, {8, 'u'}, {1, 'i'}, {1, 'u'}, {2, 'i'},
        {2, 'u'}, {4, 'i'}, {4, 'u'}, {8, 'i'}, {8, 'u'}, {4, 'f'}, {8, 'f'},
        {0, 0},   {8, 'u'}, {8, 'u'}, {4, 'u'}, {1, 'c'}, {2, 'u'}, {4, 'u'},
    };

    if (type < sizeof(basic) / sizeof(basic[0])) {
        return basic[type];
    }
    switch (type) {
    case TYPE_BYTE:
        return (struct type){1, 'u'};
    case TYPE_FLOAT16:
    case TYPE_BF16:
        return (struct type){2, 'f'};
    case 43: /* FLOAT32, TF32 */
    case 52:
        return (struct type){4, 'f'};
    case 44: /* FLOAT64 */
        return (struct type){8, 'f'};
    case 68: /* CATEGORY, COLOR_ARGB, PID and TID of 32 bits */
    case TYPE_COLOR:
    case 71:
    case 73:
        return (struct type){4, 'u'};
    case 70: /* SCOPE_ID, PID and TID of 64 bits */
    case 72:
    case 74:
        return (struct type){8, 'u'};
    default:
        return (struct type){0, 0};
    }
}

static bool is_text(uint64_t type)
{
    return type >= TYPE_CSTRING && type <= TYPE_CSTRING_LAST;
}

static uint64_t load(const uint8_t *bytes, uint32_t size_bytes)
{
    uint64_t word = 0;

    memcpy(&word, bytes, size_bytes > 8 ? 8 : size_bytes);
    return word;
}

static int64_t integer_of(uint64_t word, struct type type)
{
    const unsigned shift = 64u - 8u * type.size_bytes;

    if (type.form == 'i') {
        return (int64_t)(word << shift) >> shift;
    }
    return word <= INT64_MAX ? (int64_t)word : INT64_MAX;
}

static double real_of(uint64_t word, uint64_t type, uint32_t size_bytes)
{
    double real;
    float single;
    uint32_t bits = (uint32_t)word;

    if (size_bytes == 8) {
        memcpy(&real, &word, sizeof(real));
        return real;
    }
    if (type == TYPE_FLOAT16) {
        const int exponent = (int)(bits >> 10 & 0x1f);
        const double fraction = (double)(bits & 0x3ff) / 1024;
        const double sign = (bits >> 15 & 1) != 0 ? -1 : 1;

        return exponent == 0x1f ? (fraction > 0 ? (double)NAN : sign * (double)INFINITY)
               : exponent == 0  ? sign * ldexp(fraction, -14)
                                : sign * ldexp(1 + fraction, exponent - 15);
    }
    bits = type == TYPE_BF16 ? bits << 16 : bits;
    memcpy(&single, &bits, sizeof(single));
    return (double)single;
}

static void put_scalar(struct writer *writer, uint64_t type_number, const uint8_t *bytes)
{
    const struct type type = type_of(type_number);
    const uint64_t word = load(bytes, type.size_bytes);

    if (type.form == 'f') {
        put_real(writer, real_of(word, type_number, type.size_bytes));
    } else if (type.form == 'c') {
        put_bytes_as_text(writer, bytes, 1);
    } else {
        put_integer(writer, integer_of(word, type));
    }
}

/* The name of an enum's value, names of its bits joined, or the number. */
static void put_enum(struct writer *writer, const struct schema *schema, const uint8_t *bytes)
{
    const struct member *const values = writer->process->schemas->members + schema->first;
    const uint64_t word = load(bytes, schema->size_bytes);
    uint64_t left = word;
    char joined[512];
    size_t used = 0;

    for (uint32_t i = 0; i < schema->count; i++) {
        if (values[i].type == word && values[i].name != 0) {
            put_quoted(writer, lac_strings_get(strings_of(writer), values[i].name));
            return;
        }
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        const char *const name = lac_strings_get(strings_of(writer), values[i].name);
        const size_t length = strlen(name);

        if (values[i].flags != 0 && values[i].type != 0 &&
            (left & values[i].type) == values[i].type && length > 0 &&
            used + length + 2 < sizeof(joined)) {
            used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s",
                                     used > 0 ? "|" : "", name);
            left &= ~values[i].type;
        }
    }
    if (left == 0 && used > 0) {
        put_quoted(writer, joined);
    } else {
        put_integer(writer, integer_of(word, (struct type){(uint8_t)schema->size_bytes, 'i'}));
    }
}

/* ---- members */

static bool put_struct(struct writer *writer, const struct schema *schema, uint64_t base,
                       unsigned depth);

/* What one element of the member takes, 0 when that is not known. */
static uint32_t element_bytes(const struct schema *nested, const struct member *member)
{
    if (nested != NULL) {
        return nested->kind == LAC_SCHEMA_ENUM && nested->size_bytes > 8 ? 0 : nested->size_bytes;
    }
    return is_text(member->type) ? (member->type <= TYPE_CSTRING_UTF8 ? 1u : 0u)
                                 : type_of(member->type).size_bytes;
}

static void put_element(struct writer *writer, const struct schema *nested,
                        const struct member *member, uint64_t at, unsigned depth)
{
    if (nested == NULL) {
        put_scalar(writer, member->type, writer->data->bytes + at);
    } else if (nested->kind == LAC_SCHEMA_ENUM) {
        put_enum(writer, nested, writer->data->bytes + at);
    } else {
        put_char(writer, '{');
        (void)put_struct(writer, nested, at, depth + 1);
        put_char(writer, '}');
    }
}

static void put_array(struct writer *writer, const struct schema *nested,
                      const struct member *member, uint64_t at, uint64_t count, unsigned depth)
{
    const uint32_t size_bytes = element_bytes(nested, member);

    if (member->type == TYPE_CHAR || member->type == TYPE_CHAR8 || is_text(member->type)) {
        put_bytes_as_text(writer, writer->data->bytes + at, count);
        return;
    }
    put_char(writer, '[');
    for (uint64_t i = 0; i < count; i++) {
        if (i == ELEMENTS_MAX || !has_room(writer, 32)) {
            writer->process->payload_members_left_out += count - i;
            break;
        }
        if (i > 0) {
            put_char(writer, ',');
        }
        put_element(writer, nested, member, at + i * size_bytes, depth);
    }
    put_char(writer, ']');
}

/* Text that a pointer at this place led to. */
static const char *text_at(const struct writer *writer, uint64_t at)
{
    for (uint32_t i = 0; i < writer->data->texts_read; i++) {
        if (writer->data->texts[i].offset == at) {
            return lac_strings_get(strings_of(writer), writer->data->texts[i].name);
        }
    }
    return NULL;
}

/* A member that is being read. */
struct reading {
    const struct schema *schema;
    const uint64_t *places; /* of the members of the struct, up to this one */
    const struct member *member;
    uint32_t index;
    uint32_t size_bytes; /* of one element */
};

/* The array's length stands in a member before it; false when that cannot be. */
static bool read_length(const struct writer *writer, const struct reading *reading,
                        uint64_t *ret_count)
{
    const uint32_t index = reading->member->detail;
    const struct member *length;
    struct type type;

    if (index >= reading->index) {
        return false;
    }
    length = &writer->process->schemas->members[reading->schema->first + index];
    type = type_of(length->type);
    if (type.size_bytes == 0 || type.form == 'f' ||
        (length->flags & (FLAG_ARRAY_MASK | FLAG_POINTER)) != 0 ||
        reading->places[index] + type.size_bytes > writer->data->size_bytes) {
        return false;
    }
    *ret_count = load(writer->data->bytes + reading->places[index], type.size_bytes);
    return true;
}

/* Elements of a member from its place on; false when that cannot be known or does not fit. */
static bool count_elements(const struct writer *writer, const struct reading *reading,
                           uint64_t *ret_count)
{
    const uint32_t end = writer->data->size_bytes;
    const uint32_t size_bytes = reading->size_bytes;
    const uint64_t at = reading->places[reading->index];
    uint64_t count = 1;

    switch (reading->member->flags & FLAG_ARRAY_MASK) {
    case 0:
        count = is_text(reading->member->type) ? reading->member->detail : 1;
        break;
    case FLAG_ARRAY_FIXED:
        count = reading->member->detail;
        break;
    case FLAG_ARRAY_TERMINATED:
        count = 0;
        while (at + (count + 1) * size_bytes <= end &&
               load(writer->data->bytes + at + count * size_bytes, size_bytes) != 0) {
            count++;
        }
        break;
    case FLAG_ARRAY_LENGTH:
        if (!read_length(writer, reading, &count)) {
            return false;
        }
        break;
    default:
        return false;
    }
    *ret_count = count;
    return size_bytes > 0 && count <= end && at + count * size_bytes <= end;
}

static void put_name(struct writer *writer, const struct member *member, uint32_t index)
{
    char text[24];
    const char *name = lac_strings_get(strings_of(writer), member->name);

    if (name[0] == '\0') {
        (void)snprintf(text, sizeof(text), "member %" PRIu32, index);
        name = text;
    }
    if (writer->used > 0 && writer->text[writer->used - 1] != '{') {
        put_char(writer, ',');
    }
    put_quoted(writer, name);
    put_char(writer, ':');
}

static bool is_pointer(const struct member *member)
{
    return (member->flags & FLAG_POINTER) != 0 || member->type == TYPE_REGISTERED_STRING ||
           (is_text(member->type) && (member->flags & FLAG_ARRAY_MASK) == 0 && member->detail == 0);
}

static void put_pointed(struct writer *writer, const struct member *member, uint32_t index,
                        uint64_t at)
{
    const char *const text = text_at(writer, at);

    if (text != NULL && has_room(writer, 64)) {
        put_name(writer, member, index);
        put_quoted(writer, text);
    } else {
        writer->process->payload_members_left_out++;
    }
}

/* One member at its place; how far it reaches, 0 when that is not known. */
static uint64_t put_member(struct writer *writer, const struct schema *schema, uint32_t index,
                           const uint64_t *places, unsigned depth)
{
    const struct member *const member = &writer->process->schemas->members[schema->first + index];
    const struct schema *const nested =
        member->type >= SCHEMA_ID_STATIC
            ? find_schema(writer->process, schema->domain, member->type)
            : NULL;
    const struct reading reading = {.schema = schema,
                                    .places = places,
                                    .member = member,
                                    .index = index,
                                    .size_bytes = element_bytes(nested, member)};
    const uint32_t array = member->flags & FLAG_ARRAY_MASK;
    const bool is_shown = (member->flags & (FLAG_HIDE | FLAG_MESSAGE)) == 0;
    uint64_t count = 0;

    if (is_pointer(member)) {
        if (is_shown) {
            put_pointed(writer, member, index, places[index]);
        }
        return places[index] + sizeof(uint64_t);
    }
    if (!count_elements(writer, &reading, &count) || !has_room(writer, 64) || depth >= NESTED_MAX ||
        ++writer->steps > STEPS_MAX) {
        writer->process->payload_members_left_out++;
        return 0;
    }
    if (is_shown) {
        put_name(writer, member, index);
    }
    if (is_shown && (array != 0 || is_text(member->type))) {
        put_array(writer, nested, member, places[index], count, depth);
    } else if (is_shown) {
        put_element(writer, nested, member, places[index], depth);
    }
    return places[index] + (count + (array == FLAG_ARRAY_TERMINATED)) * reading.size_bytes;
}

/* The members of a struct that lies at `base`, without the braces. */
static bool put_struct(struct writer *writer, const struct schema *schema, uint64_t base,
                       unsigned depth)
{
    uint64_t places[LAC_SCHEMA_ENTRIES_MAX];
    uint64_t reached = base;

    if (schema->kind >= LAC_SCHEMA_UNION) { /* which member it is, only a selector knows */
        writer->process->payload_members_left_out++;
        return false;
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct member *const member = &writer->process->schemas->members[schema->first + i];

        places[i] = base + (uint64_t)(member->offset > 0 ? member->offset : 0);
        if (member->offset == AFTER_PREVIOUS) {
            const uint32_t size = type_of(member->type).size_bytes;
            const uint32_t alignment =
                size > 1 && size < schema->alignment ? size : schema->alignment;

            if (reached == 0 || alignment == 0) {
                writer->process->payload_members_left_out += schema->count - i;
                return false;
            }
            places[i] = size > 1 ? (reached + alignment - 1) / alignment * alignment : reached;
        }
        if (places[i] >= writer->data->size_bytes) {
            writer->process->payload_members_left_out++;
            reached = 0;
            continue;
        }
        reached = put_member(writer, schema, i, places, depth);
    }
    return true;
}

/* A payload of a plain type, without a schema. */
static void put_plain(struct writer *writer)
{
    const struct member member = {.type = writer->data->schema};
    const bool text = is_text(member.type) || member.type == TYPE_CHAR;

    if (!has_room(writer, 64) ||
        (!text && (type_of(member.type).size_bytes == 0 ||
                   type_of(member.type).size_bytes > writer->data->size_bytes))) {
        writer->process->payload_members_left_out++;
        return;
    }
    if (writer->used > 0) {
        put_char(writer, ',');
    }
    put_quoted(writer, "payload");
    put_char(writer, ':');
    if (text) {
        put_bytes_as_text(writer, writer->data->bytes, writer->data->size_bytes);
    } else {
        put_scalar(writer, member.type, writer->data->bytes);
    }
}

/* Continue what other payloads of the same event began. */
static void load_members(struct writer *writer, const struct lac_spool_members *members)
{
    if (members != NULL) {
        memcpy(writer->text, members->text, members->length);
        writer->used = members->length;
        memcpy(writer->numbers, members->numbers, members->number_count * sizeof(int64_t));
        writer->number_count = members->number_count;
    }
}

static enum lac_status store_members(const struct writer *writer,
                                     struct lac_spool_members **members)
{
    struct lac_spool_members *const fresh = calloc(1, sizeof(*fresh));

    if (fresh == NULL) {
        return LAC_ERR_NOMEM;
    }
    fresh->text = malloc(writer->used + 1);
    fresh->numbers = malloc((writer->number_count + 1) * sizeof(int64_t));
    if (fresh->text == NULL || fresh->numbers == NULL) {
        lac_spool_members_destroy(fresh);
        return LAC_ERR_NOMEM;
    }
    memcpy(fresh->text, writer->text, writer->used);
    fresh->length = writer->used;
    memcpy(fresh->numbers, writer->numbers, writer->number_count * sizeof(int64_t));
    fresh->number_count = writer->number_count;
    lac_spool_members_destroy(*members);
    *members = fresh;
    return LAC_OK;
}

enum lac_status lac_spool_data_decode(struct lac_spool_process *process,
                                      const struct lac_spool_data *data,
                                      struct lac_spool_members **members)
{
    char text[TEXT_BYTES_MAX];
    struct writer writer = {.process = process, .data = data, .text = text};
    const struct schema *const schema =
        data->schema >= SCHEMA_ID_STATIC ? find_schema(process, data->domain, data->schema) : NULL;

    load_members(&writer, *members);
    if (schema != NULL) {
        (void)put_struct(&writer, schema, 0, 0);
    } else if (data->schema < SCHEMA_ID_STATIC) {
        put_plain(&writer);
    } else {
        process->payload_members_left_out++;
    }
    return writer.status != LAC_OK ? writer.status : store_members(&writer, members);
}
