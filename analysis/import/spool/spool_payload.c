#include "analysis/import/spool/spool_payload.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_members.h"
#include "analysis/import/spool/spool_schema.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/spool.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NESTED_MAX = 8, ELEMENTS_MAX = 64, STEPS_MAX = 512 /* members looked at for one payload */ };

#define UNKNOWN UINT64_MAX /* a place that the data do not tell */

/* ---- the bytes */

bool lac_spool_data_begin(struct lac_spool_process *process, struct lac_spool_data *data,
                          const struct lac_event *event)
{
    data->schema = event->ts;
    data->domain = event->domain;
    data->owner = event->flags;
    data->size_bytes = event->name & UINT16_MAX;
    data->text_count = event->name >> 16;
    data->bytes_read = 0;
    data->texts_read = 0;
    data->length_count = 0;
    if (data->size_bytes == 0) { /* so many payloads of the event could not be kept */
        process->payload_members_left_out += data->text_count;
        data->owner = 0;
    }
    if (data->size_bytes > LAC_DATA_BYTES_MAX || data->text_count > LAC_DATA_TEXTS_MAX) {
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
    } else if (event->type == LAC_EVENT_DATA_LENGTH && data->length_count < LAC_DATA_LENGTHS_MAX) {
        data->lengths[data->length_count].payload = event->name;
        data->lengths[data->length_count].value = event->ts;
        data->length_count++;
    }
    return data->bytes_read >= data->size_bytes && data->texts_read == data->text_count;
}

struct decoder {
    struct lac_members_writer writer;
    struct lac_spool_process *process;
    const struct lac_spool_data *data;
    uint32_t steps;
    bool has_color;
    bool has_category;
    uint32_t color;
    uint32_t category;
};

/* A member that is being read. */
struct reading {
    const struct lac_spool_schema *schema;
    const struct lac_spool_schema *nested; /* what its type is, unless that is a plain one */
    const struct lac_spool_member *member;
    const uint64_t *places; /* of all members of the struct, UNKNOWN where they are not known yet */
    uint64_t at;
    uint32_t index;
    uint32_t element_bytes; /* 0: not known */
    struct lac_spool_type type;
};

/* How many elements: a plain value has no dimension. */
struct shape {
    uint64_t count;
    uint64_t lengths[LAC_DATA_LENGTHS_MAX];
    uint32_t dimensions;
    uint64_t terminator_bytes; /* after them */
};

static uint64_t load(const struct decoder *decoder, uint64_t at, uint32_t size_bytes)
{
    uint64_t word = 0;

    memcpy(&word, decoder->data->bytes + at, size_bytes > 8 ? 8 : size_bytes);
    return word;
}

/* `size_bytes` from `at` on are there. */
static bool holds(const struct decoder *decoder, uint64_t at, uint64_t size_bytes)
{
    return at <= decoder->data->size_bytes && size_bytes <= decoder->data->size_bytes - at;
}

static bool is_integer(struct lac_spool_type type)
{
    return type.size_bytes > 0 && type.size_bytes <= 8 && type.form != 'f' && type.form != 't';
}

static bool is_struct(const struct lac_spool_schema *schema)
{
    return schema != NULL && schema->kind != LAC_SCHEMA_ENUM;
}

/* ---- lengths and selectors */

static bool add_length(struct shape *shape, uint64_t length)
{
    if (shape->dimensions == LAC_DATA_LENGTHS_MAX || length > LAC_DATA_BYTES_MAX) {
        return false; /* more than any payload holds */
    }
    shape->lengths[shape->dimensions++] = length;
    shape->count *= length;
    return true;
}

/* The member holds one length, or one for each dimension. A negative one is none. */
static bool read_lengths(const struct decoder *decoder, const struct reading *reading,
                         struct shape *shape)
{
    const uint32_t index = reading->member->detail;
    const struct lac_spool_member *const length =
        index < reading->schema->count
            ? lac_spool_schema_members(decoder->process, reading->schema) + index
            : NULL;
    const struct lac_spool_type type =
        length != NULL ? lac_spool_type_of(length->type) : (struct lac_spool_type){0, 0};
    const uint32_t array = length != NULL ? length->flags & LAC_MEMBER_ARRAY_MASK : 0;
    const uint64_t dimensions = array == LAC_MEMBER_ARRAY_FIXED        ? length->detail
                                : array == LAC_MEMBER_ARRAY_TERMINATED ? UINT64_MAX
                                                                       : 1;

    if (!is_integer(type) || array > LAC_MEMBER_ARRAY_TERMINATED ||
        (length->flags &
         (LAC_MEMBER_POINTER | LAC_MEMBER_OFFSET_FROM_BASE | LAC_MEMBER_OFFSET_FROM_HERE)) != 0) {
        return false;
    }
    for (uint64_t i = 0; i < dimensions; i++) {
        const uint64_t at = reading->places[index];
        uint64_t value;

        if (at == UNKNOWN || !holds(decoder, at + i * type.size_bytes, type.size_bytes)) {
            return false;
        }
        value = load(decoder, at + i * type.size_bytes, type.size_bytes);
        if (array == LAC_MEMBER_ARRAY_TERMINATED && value == 0) {
            return i > 0;
        }
        if ((type.form == 'i' || type.form == 'c') && value >> (8 * type.size_bytes - 1) != 0) {
            value = 0;
        }
        if (!add_length(shape, value)) {
            return false;
        }
    }
    return shape->dimensions > 0;
}

/* Elements up to one that is all zero, or to the end. */
static uint64_t count_to_zero(const struct decoder *decoder, uint64_t at, uint64_t size_bytes)
{
    const uint8_t *const bytes = decoder->data->bytes;
    uint64_t count = 0;

    while (size_bytes > 0 && holds(decoder, at, size_bytes)) {
        uint64_t zeros = 0;

        while (zeros < size_bytes && bytes[at + zeros] == 0) {
            zeros++;
        }
        if (zeros == size_bytes) {
            break;
        }
        count++;
        at += size_bytes;
    }
    return count;
}

/* How many elements lie from `at` on; false when that cannot be known or does not fit. */
static bool find_shape(const struct decoder *decoder, const struct reading *reading, uint64_t at,
                       struct shape *shape)
{
    const struct lac_spool_member *const member = reading->member;
    const bool is_text = reading->type.form == 't';
    bool ok = true;

    *shape = (struct shape){.count = 1};
    switch (member->flags & LAC_MEMBER_ARRAY_MASK) {
    case 0:
        if (is_text) {
            ok = add_length(shape, member->detail > 0
                                       ? member->detail
                                       : count_to_zero(decoder, at, reading->element_bytes));
        }
        break;
    case LAC_MEMBER_ARRAY_FIXED:
        ok = add_length(shape, member->detail);
        break;
    case LAC_MEMBER_ARRAY_TERMINATED:
        /* of texts with a length of their own: an array of them */
        shape->terminator_bytes = is_text && member->detail > 0
                                      ? (uint64_t)member->detail * reading->element_bytes
                                      : reading->element_bytes;
        ok = add_length(shape, count_to_zero(decoder, at, shape->terminator_bytes)) &&
             (!is_text || member->detail == 0 || add_length(shape, member->detail));
        break;
    case LAC_MEMBER_ARRAY_LENGTH:
        ok = read_lengths(decoder, reading, shape);
        break;
    case LAC_MEMBER_ARRAY_PAYLOAD:
        for (uint32_t i = 0; ok && i < decoder->data->length_count; i++) {
            if (decoder->data->lengths[i].payload == member->detail) {
                ok = add_length(shape, decoder->data->lengths[i].value);
            }
        }
        ok = ok && shape->dimensions > 0;
        break;
    default:
        return false;
    }
    return ok && shape->count <= LAC_DATA_BYTES_MAX &&
           (reading->element_bytes > 0 || (shape->dimensions == 0 && is_struct(reading->nested))) &&
           holds(decoder, at, shape->count * reading->element_bytes);
}

/* Which member of the union at `at` is meant; false when nobody says. */
static bool find_selected(const struct decoder *decoder, const struct reading *reading, uint64_t at,
                          uint32_t *ret_selector, uint32_t *ret_selected)
{
    const struct lac_spool_schema *const of = reading->nested;
    const bool is_inside = of->kind == LAC_SCHEMA_UNION_SELECTED;
    const struct lac_spool_schema *const schema = is_inside ? of : reading->schema;
    const struct lac_spool_member *const members =
        lac_spool_schema_members(decoder->process, schema);
    const struct lac_spool_schema *as_enum;
    uint32_t selector = is_inside ? 0 : reading->member->detail;
    struct lac_spool_type type;
    uint64_t value;

    while (is_inside && selector < of->count && members[selector].type != LAC_TYPE_UNION_SELECTOR) {
        selector++;
    }
    if (selector >= schema->count) {
        return false;
    }
    if (!is_inside) {
        at = reading->places[selector];
    } else {
        at += members[selector].offset > 0 ? (uint64_t)members[selector].offset : 0;
    }
    as_enum = lac_spool_schema_find(decoder->process, schema->domain, members[selector].type);
    type = as_enum != NULL && as_enum->kind == LAC_SCHEMA_ENUM && as_enum->size_bytes <= 8
               ? (struct lac_spool_type){(uint8_t)as_enum->size_bytes, 'u'}
               : lac_spool_type_of(members[selector].type);
    if (!is_integer(type) || at == UNKNOWN || !holds(decoder, at, type.size_bytes)) {
        return false;
    }
    value = load(decoder, at, type.size_bytes);
    *ret_selector = selector;
    *ret_selected = (uint32_t)value;
    return value < of->count && !(is_inside && value == selector);
}

/* ---- values */

static struct lac_strings *strings_of(const struct decoder *decoder)
{
    return &lac_builder_model(decoder->process->builder)->strings;
}

/* The name of an enum's value, names of its bits joined, or the number. */
static void put_enum(struct decoder *decoder, const struct lac_spool_schema *schema, uint64_t at)
{
    const struct lac_spool_member *const values =
        lac_spool_schema_members(decoder->process, schema);
    const uint64_t word = load(decoder, at, schema->size_bytes);
    const unsigned shift = 64u - 8u * schema->size_bytes;
    uint64_t left = word;
    char joined[512];
    size_t used = 0;

    for (uint32_t i = 0; i < schema->count; i++) {
        if (values[i].type == word && values[i].name != 0) {
            lac_members_quoted(&decoder->writer,
                               lac_strings_get(strings_of(decoder), values[i].name));
            return;
        }
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        const char *const name = lac_strings_get(strings_of(decoder), values[i].name);
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
        lac_members_quoted(&decoder->writer, joined);
    } else {
        lac_members_integer(&decoder->writer, (uint64_t)((int64_t)(word << shift) >> shift), true);
    }
}

static void put_struct(struct decoder *decoder, const struct lac_spool_schema *schema,
                       uint64_t base, const uint32_t only[2], unsigned depth);

static void put_element(struct decoder *decoder, const struct reading *reading, uint64_t at,
                        unsigned depth)
{
    const struct lac_spool_schema *const nested = reading->nested;
    uint32_t only[2];

    if (nested == NULL) {
        lac_members_value(&decoder->writer, reading->member->type, decoder->data->bytes + at);
        return;
    }
    if (nested->kind == LAC_SCHEMA_ENUM) {
        put_enum(decoder, nested, at);
        return;
    }
    lac_members_char(&decoder->writer, '{');
    if (nested->kind != LAC_SCHEMA_UNION && nested->kind != LAC_SCHEMA_UNION_SELECTED) {
        put_struct(decoder, nested, at, NULL, depth + 1);
    } else if (find_selected(decoder, reading, at, &only[0], &only[1])) {
        only[0] = nested->kind == LAC_SCHEMA_UNION ? only[1] : only[0];
        put_struct(decoder, nested, at, only, depth + 1);
    } else {
        decoder->process->payload_members_left_out++;
    }
    lac_members_char(&decoder->writer, '}');
}

/* Elements of dimension `dimension` from `at` on; the innermost ones of characters are text. */
static void put_dimension(struct decoder *decoder, const struct reading *reading,
                          const struct shape *shape, uint32_t dimension, uint64_t at,
                          unsigned depth)
{
    const uint64_t length = shape->lengths[dimension];
    const bool is_last = dimension + 1 == shape->dimensions;
    uint64_t stride = reading->element_bytes;

    if (is_last && (reading->type.form == 't' || reading->type.form == 'c')) {
        lac_members_text(&decoder->writer, decoder->data->bytes + at, reading->type.size_bytes,
                         length);
        return;
    }
    if (is_last && reading->member->type == LAC_TYPE_BYTE) {
        lac_members_hex(&decoder->writer, decoder->data->bytes + at, length);
        return;
    }
    for (uint32_t i = dimension + 1; i < shape->dimensions; i++) {
        stride *= shape->lengths[i];
    }
    lac_members_char(&decoder->writer, '[');
    for (uint64_t i = 0; i < length; i++) {
        if (i == ELEMENTS_MAX || !lac_members_room(&decoder->writer, 48)) {
            decoder->process->payload_members_left_out += length - i;
            break;
        }
        if (i > 0) {
            lac_members_char(&decoder->writer, ',');
        }
        if (is_last) {
            put_element(decoder, reading, at + i * stride, depth);
        } else {
            put_dimension(decoder, reading, shape, dimension + 1, at + i * stride, depth);
        }
    }
    lac_members_char(&decoder->writer, ']');
}

/* A member's value: its elements lie at `at`. */
static void put_value(struct decoder *decoder, const struct reading *reading,
                      const struct shape *shape, uint64_t at, unsigned depth)
{
    if (shape->dimensions == 0) {
        put_element(decoder, reading, at, depth);
    } else {
        put_dimension(decoder, reading, shape, 0, at, depth);
    }
}

static void put_name(struct decoder *decoder, const struct lac_spool_member *member, uint32_t index)
{
    struct lac_members_writer *const writer = &decoder->writer;
    char text[24];
    const char *name = lac_strings_get(strings_of(decoder), member->name);

    if (name[0] == '\0') {
        (void)snprintf(text, sizeof(text), "member %" PRIu32, index);
        name = text;
    }
    if (writer->used > 0 && writer->text[writer->used - 1] != '{') {
        lac_members_char(writer, ',');
    }
    lac_members_quoted(writer, name);
    lac_members_char(writer, ':');
}

/* ---- members */

/* Color and category are the event's, not only a member's. */
static bool is_attribute(const struct reading *reading)
{
    return (reading->member->type == LAC_TYPE_COLOR ||
            reading->member->type == LAC_TYPE_CATEGORY) &&
           (reading->member->flags & (LAC_MEMBER_ARRAY_MASK | LAC_MEMBER_POINTER)) == 0;
}

static void take_attribute(struct decoder *decoder, const struct reading *reading)
{
    if (reading->member->type == LAC_TYPE_COLOR) {
        decoder->has_color = true;
        decoder->color = (uint32_t)load(decoder, reading->at, 4);
    } else {
        decoder->has_category = true;
        decoder->category = (uint32_t)load(decoder, reading->at, 4);
    }
}

/* A text that the recorder followed a pointer to. */
static void put_pointed_text(struct decoder *decoder, const struct reading *reading)
{
    for (uint32_t i = 0; i < decoder->data->texts_read; i++) {
        if (decoder->data->texts[i].offset == reading->at &&
            lac_members_room(&decoder->writer, 64)) {
            put_name(decoder, reading->member, reading->index);
            lac_members_quoted(&decoder->writer,
                               lac_strings_get(strings_of(decoder), decoder->data->texts[i].name));
            return;
        }
    }
    decoder->process->payload_members_left_out++;
}

/* What lies elsewhere in the payload's bytes. */
static void put_referenced(struct decoder *decoder, const struct reading *reading, unsigned depth)
{
    const uint32_t flags = reading->member->flags;
    struct shape shape;
    uint64_t at = holds(decoder, reading->at, 8) ? load(decoder, reading->at, 8) : UNKNOWN;

    if ((flags & LAC_MEMBER_POINTER) != 0 && at == 0 && lac_members_room(&decoder->writer, 64)) {
        put_name(decoder, reading->member, reading->index);
        for (const char *c = "null"; *c != '\0'; c++) {
            lac_members_char(&decoder->writer, *c);
        }
        return;
    }
    if ((flags & LAC_MEMBER_OFFSET_FROM_HERE) != 0 && at <= decoder->data->size_bytes) {
        at += reading->at + 8;
    }
    if (at >= decoder->data->size_bytes || !find_shape(decoder, reading, at, &shape) ||
        !lac_members_room(&decoder->writer, 64) || depth >= NESTED_MAX ||
        ++decoder->steps > STEPS_MAX) {
        decoder->process->payload_members_left_out++;
        return;
    }
    put_name(decoder, reading->member, reading->index);
    put_value(decoder, reading, &shape, at, depth);
}

/* One member at its place; how far it reaches, UNKNOWN when that is not told. */
static uint64_t put_member(struct decoder *decoder, const struct reading *reading, unsigned depth)
{
    const uint32_t flags = reading->member->flags;
    const uint32_t array = flags & LAC_MEMBER_ARRAY_MASK;
    const bool is_shown = (flags & (LAC_MEMBER_HIDE | LAC_MEMBER_MESSAGE)) == 0;
    const bool is_offset =
        (flags & (LAC_MEMBER_OFFSET_FROM_BASE | LAC_MEMBER_OFFSET_FROM_HERE)) != 0;
    const bool is_text = reading->type.form == 't';
    struct shape shape;

    if (reading->member->type == LAC_TYPE_REGISTERED_STRING || is_offset ||
        (flags & LAC_MEMBER_POINTER) != 0 ||
        (is_text && array == 0 && reading->member->detail == 0)) {
        if (is_shown && !is_offset &&
            (is_text || reading->member->type == LAC_TYPE_REGISTERED_STRING)) {
            put_pointed_text(decoder, reading);
        } else if (is_shown) {
            put_referenced(decoder, reading, depth);
        }
        return reading->at + 8;
    }
    if (!find_shape(decoder, reading, reading->at, &shape) ||
        !lac_members_room(&decoder->writer, 64) || depth >= NESTED_MAX ||
        ++decoder->steps > STEPS_MAX) {
        decoder->process->payload_members_left_out++;
        return UNKNOWN;
    }
    if (is_attribute(reading)) {
        take_attribute(decoder, reading);
    } else if (is_shown) {
        put_name(decoder, reading->member, reading->index);
        put_value(decoder, reading, &shape, reading->at, depth);
    }
    if (reading->element_bytes == 0) {
        return UNKNOWN;
    }
    return reading->at + shape.count * reading->element_bytes + shape.terminator_bytes;
}

/* Where a member begins that lies after the one before it. */
static uint64_t place_after(const struct reading *reading, uint64_t reached)
{
    const bool is_pointer =
        (reading->member->flags &
         (LAC_MEMBER_POINTER | LAC_MEMBER_OFFSET_FROM_BASE | LAC_MEMBER_OFFSET_FROM_HERE)) != 0 ||
        reading->member->type == LAC_TYPE_REGISTERED_STRING ||
        (reading->type.form == 't' && (reading->member->flags & LAC_MEMBER_ARRAY_MASK) == 0 &&
         reading->member->detail == 0);
    uint64_t alignment = is_pointer                ? 8
                         : reading->nested != NULL ? reading->nested->alignment
                                                   : reading->element_bytes;

    alignment = alignment < reading->schema->alignment ? alignment : reading->schema->alignment;
    return reached == UNKNOWN || alignment == 0 ? UNKNOWN
                                                : (reached + alignment - 1) / alignment * alignment;
}

/* The members of a struct that lies at `base`, without the braces; or of a union these two, which
 * may be one and the same. */
static void put_struct(struct decoder *decoder, const struct lac_spool_schema *schema,
                       uint64_t base, const uint32_t only[2], unsigned depth)
{
    const struct lac_spool_member *const members =
        lac_spool_schema_members(decoder->process, schema);
    uint64_t places[LAC_SCHEMA_ENTRIES_MAX];
    uint64_t reached = base;

    for (uint32_t i = 0; i < schema->count; i++) {
        places[i] = members[i].offset >= 0 ? base + (uint64_t)members[i].offset : UNKNOWN;
    }
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct lac_spool_schema *const nested =
            lac_spool_schema_find(decoder->process, schema->domain, members[i].type);
        struct reading reading = {.schema = schema,
                                  .nested = nested,
                                  .member = &members[i],
                                  .places = places,
                                  .index = i,
                                  .type = lac_spool_type_of(members[i].type)};

        if (only != NULL && i != only[0] && i != only[1]) {
            continue;
        }
        reading.element_bytes = nested != NULL ? nested->size_bytes : reading.type.size_bytes;
        if (nested != NULL && nested->kind == LAC_SCHEMA_ENUM && nested->size_bytes > 8) {
            reading.element_bytes = 0;
        }
        if (places[i] == UNKNOWN) {
            places[i] = place_after(&reading, reached);
        }
        if (places[i] >= decoder->data->size_bytes) { /* cut, or nobody knows where */
            decoder->process->payload_members_left_out++;
            reached = UNKNOWN;
            continue;
        }
        reading.at = places[i];
        reached = put_member(decoder, &reading, depth);
    }
}

/* ---- payloads */

/* Of a plain type, without a schema: one value, or as many as there are. */
static void put_plain(struct decoder *decoder)
{
    const struct lac_spool_member member = {.type = decoder->data->schema};
    const struct lac_spool_type type = lac_spool_type_of(member.type);
    const struct reading reading = {
        .member = &member, .type = type, .element_bytes = type.size_bytes};
    const uint64_t count = type.size_bytes > 0 ? decoder->data->size_bytes / type.size_bytes : 0;
    struct shape shape = {.count = 1};

    if (!lac_members_room(&decoder->writer, 64) || (count == 0 && member.type != LAC_TYPE_RAW)) {
        decoder->process->payload_members_left_out++;
        return;
    }
    if (decoder->writer.used > 0) {
        lac_members_char(&decoder->writer, ',');
    }
    lac_members_quoted(&decoder->writer, "payload");
    lac_members_char(&decoder->writer, ':');
    if (member.type == LAC_TYPE_RAW) {
        lac_members_hex(&decoder->writer, decoder->data->bytes, decoder->data->size_bytes);
        return;
    }
    if (count > 1 || type.form == 't') {
        (void)add_length(&shape, count);
    }
    put_value(decoder, &reading, &shape, 0, 0);
}

static void put_schema(struct decoder *decoder, const struct lac_spool_schema *schema)
{
    const struct reading reading = {.schema = schema, .nested = schema};
    uint32_t only[2];

    if (schema->kind == LAC_SCHEMA_UNION_SELECTED) {
        if (find_selected(decoder, &reading, 0, &only[0], &only[1])) {
            put_struct(decoder, schema, 0, only, 0);
            return;
        }
    } else if (schema->kind != LAC_SCHEMA_UNION && schema->kind != LAC_SCHEMA_ENUM) {
        put_struct(decoder, schema, 0, NULL, 0);
        return;
    }
    decoder->process->payload_members_left_out++;
}

enum lac_status lac_spool_data_decode(struct lac_spool_process *process,
                                      const struct lac_spool_data *data,
                                      struct lac_spool_members **members)
{
    struct decoder decoder;
    enum lac_status status;
    const struct lac_spool_schema *const schema =
        lac_spool_schema_find(process, data->domain, data->schema);

    decoder.process = process;
    decoder.data = data;
    decoder.steps = 0;
    decoder.has_color = false;
    decoder.has_category = false;
    lac_members_begin(&decoder.writer, &lac_builder_model(process->builder)->strings, *members);
    if (schema != NULL) {
        put_schema(&decoder, schema);
    } else if (data->schema < LAC_SCHEMA_ID_STATIC) {
        put_plain(&decoder);
    } else {
        process->payload_members_left_out++;
    }
    if (decoder.writer.status != LAC_OK) {
        return decoder.writer.status;
    }
    status = lac_members_store(&decoder.writer, members);
    if (status == LAC_OK && decoder.has_color) {
        (*members)->has_color = true;
        (*members)->color = decoder.color;
    }
    if (status == LAC_OK && decoder.has_category) {
        (*members)->has_category = true;
        (*members)->category = decoder.category;
    }
    return status;
}
