/* Packets that are events, as events of a Chrome trace. */

#include "analysis/import/perfetto/perfetto_private.h"
#include "analysis/import/perfetto/proto.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ARGUMENT_DEPTH_MAX = 8, ANCESTORS_MAX = 32, FLOWS_SEEN = 250 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

#define PUT(p, ...)                                                                                \
    do {                                                                                           \
        enum lac_status put_status = lac_perfetto_put((p), __VA_ARGS__);                           \
        if (put_status != LAC_OK) {                                                                \
            return put_status;                                                                     \
        }                                                                                          \
    } while (false)

#define PUT_STRING(p, text)                                                                        \
    do {                                                                                           \
        enum lac_status put_status = lac_perfetto_put_string((p), (text));                         \
        if (put_status != LAC_OK) {                                                                \
            return put_status;                                                                     \
        }                                                                                          \
    } while (false)

/* ---- arguments ---- */

/* Whether a text is a number, or a list of them, as our own export writes both. */
static bool is_numbers(const uint8_t *text, size_t size)
{
    char copy[64];
    char *end = NULL;
    if (size == 0 || size >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    const bool is_list = copy[0] == '[' && copy[size - 1] == ']';
    const size_t from = is_list ? 1 : 0;
    const size_t inside = size - 2 * from;
    if (strspn(copy + from, "0123456789") == inside && inside > 0 && inside < 19 &&
        (copy[from] != '0' || inside == 1)) {
        return true;
    }
    if (!is_list) {
        (void)strtod(copy, &end);
        return (copy[0] == '-' ? copy[1] : copy[0]) >= '1' &&
               (copy[0] == '-' ? copy[1] : copy[0]) <= '9' && *end == '\0' &&
               strspn(copy, "-0123456789.") == size && copy[size - 1] != '.';
    }
    bool digit_before = false;
    for (size_t i = 1; i + 1 < size; i++) {
        const bool is_digit = copy[i] >= '0' && copy[i] <= '9';
        if (!is_digit && (copy[i] != ',' || !digit_before || i + 2 == size)) {
            return false;
        }
        digit_before = is_digit;
    }
    return inside > 0;
}

static enum lac_status put_text_value(struct lac_perfetto *p, const struct lac_proto_field *field)
{
    uint32_t id = 0;
    if (field->wire == LAC_PROTO_BYTES && is_numbers(field->bytes, field->size_bytes)) {
        return lac_perfetto_put(p, "%.*s", (int)field->size_bytes, (const char *)field->bytes);
    }
    enum lac_status status = lac_perfetto_text(p, field, &id);
    return status == LAC_OK ? lac_perfetto_put_string(p, lac_strings_get(&p->strings, id)) : status;
}

static enum lac_status put_key(struct lac_perfetto *p, uint64_t scope, struct lac_proto message,
                               bool *ret_has_key, bool is_first)
{
    struct lac_proto_field field;
    uint32_t id = 0;
    *ret_has_key = false;
    while (lac_proto_next(&message, &field)) {
        if (field.number == 10 || field.number == 1) {
            const char *key = lac_perfetto_interned(p, scope, LAC_PERFETTO_KEYS, field.value);
            if (field.number == 10) {
                enum lac_status status = lac_perfetto_text(p, &field, &id);
                if (status != LAC_OK) {
                    return status;
                }
                key = lac_strings_get(&p->strings, id);
            }
            PUT(p, "%s", is_first ? "" : ",");
            PUT_STRING(p, key);
            *ret_has_key = true;
            return lac_perfetto_put(p, ":");
        }
    }
    return LAC_OK;
}

static enum lac_status put_value(struct lac_perfetto *p, uint64_t scope, struct lac_proto message,
                                 uint32_t depth);

/* Entries of a dictionary (11) or items of an array (12). */
static enum lac_status put_items(struct lac_perfetto *p, uint64_t scope, struct lac_proto message,
                                 uint32_t number, uint32_t depth)
{
    struct lac_proto_field field;
    bool is_first = true;
    bool has_key = true;
    enum lac_status status = lac_perfetto_put(p, "%s", number == 11 ? "{" : "[");
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number != number || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        if (number == 11) {
            status = put_key(p, scope, lac_proto_inside(&field), &has_key, is_first);
        } else if (!is_first) {
            status = lac_perfetto_put(p, ",");
        }
        if (status == LAC_OK && has_key) {
            status = put_value(p, scope, lac_proto_inside(&field), depth + 1);
            is_first = false;
        }
    }
    return status == LAC_OK ? lac_perfetto_put(p, "%s", number == 11 ? "}" : "]") : status;
}

static enum lac_status put_value(struct lac_perfetto *p, uint64_t scope, struct lac_proto message,
                                 uint32_t depth)
{
    const struct lac_proto whole = message;
    struct lac_proto_field field;
    while (lac_proto_next(&message, &field)) {
        switch (field.number) {
        case 2:
            return lac_perfetto_put(p, field.value != 0 ? "true" : "false");
        case 3:
        case 7:
            return lac_perfetto_put(p, "%" PRIu64, field.value);
        case 4:
            return lac_perfetto_put(p, "%" PRId64, (int64_t)field.value);
        case 5: {
            const double value = field.wire == LAC_PROTO_FIXED64 ? lac_proto_double(&field) : 0;
            return isfinite(value) ? lac_perfetto_put(p, "%.17g", value)
                                   : lac_perfetto_put(p, "\"NaN\"");
        }
        case 6:
        case 9:
            return put_text_value(p, &field);
        case 17: {
            const char *text = lac_perfetto_interned(p, scope, LAC_PERFETTO_TEXTS, field.value);
            return lac_perfetto_put_string(p, text);
        }
        case 11:
        case 12:
            if (depth < ARGUMENT_DEPTH_MAX) {
                return put_items(p, scope, whole, field.number, depth);
            }
            return lac_perfetto_put(p, "\"...\"");
        default:
            break;
        }
    }
    return lac_perfetto_put(p, "null");
}

static enum lac_status put_annotations(struct lac_perfetto *p, uint64_t scope,
                                       struct lac_proto message)
{
    struct lac_proto_field field;
    bool is_first = true;
    bool has_key = false;
    enum lac_status status = lac_perfetto_put(p, ",\"args\":{");
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number == 4 && field.wire == LAC_PROTO_BYTES) {
            status = put_key(p, scope, lac_proto_inside(&field), &has_key, is_first);
            if (status == LAC_OK && has_key) {
                status = put_value(p, scope, lac_proto_inside(&field), 0);
                is_first = false;
            }
        }
    }
    return status == LAC_OK ? lac_perfetto_put(p, "}") : status;
}

/* ---- rows ---- */

/* The process that a track belongs to, by its ancestors. */
static int64_t pid_of(const struct lac_perfetto *p, uint32_t index)
{
    for (uint32_t i = 0; i < ANCESTORS_MAX; i++) {
        const struct lac_perfetto_track *track = &p->tracks[index];
        const struct lac_perfetto_key key = {.id = track->parent};
        if (track->pid >= 0) {
            return track->pid;
        }
        index = track->parent != 0 ? lac_perfetto_map_get(&p->track_of, key) : LAC_NONE;
        if (index == LAC_NONE) {
            break;
        }
    }
    return -1;
}

enum lac_status lac_perfetto_put_row(struct lac_perfetto *p, uint32_t index)
{
    const struct lac_perfetto_track *track = &p->tracks[index];
    const int64_t pid = pid_of(p, index);
    p->tracks[index].is_told = true;
    if (pid >= 0) {
        PUT(p, ",\"pid\":%" PRId64, pid);
    } else {
        PUT(p, ",\"pid\":\"trace\"");
    }
    return track->is_thread && track->tid >= 0
               ? lac_perfetto_put(p, ",\"tid\":%" PRId64, track->tid)
               : lac_perfetto_put(p, ",\"tid\":\"track %u\"", index + 1);
}

static enum lac_status put_flow(struct lac_perfetto *p, uint32_t track, int64_t time_ns,
                                uint64_t id, bool is_last)
{
    const struct lac_perfetto_key key = {.id = id, .list = FLOWS_SEEN};
    uint32_t *seen = lac_perfetto_map_at(&p->interned, key);
    if (seen == NULL) {
        return lac_perfetto_failed(p, LAC_ERR_NOMEM);
    }
    const char phase = *seen == LAC_NONE ? 's' : is_last ? 'f' : 't';
    *seen = 1;
    enum lac_status status = lac_perfetto_begin_event(p, phase, time_ns);
    if (status == LAC_OK) {
        status = lac_perfetto_put_row(p, track);
    }
    return status == LAC_OK
               ? lac_perfetto_put(p,
                                  ",\"cat\":\"flow\",\"name\":\"flow\",\"bp\":\"e\",\"id\":"
                                  "\"0x%" PRIx64 "\"}",
                                  id)
               : status;
}

/* ---- track events ---- */

struct track_event {
    uint64_t type;
    uint32_t track;
    uint32_t name, category;
    double value;
    char phase;           /**< of an event in the older form, 0 none */
    uint64_t duration_us; /**< likewise */
};

/* The older form, of Chromium: phase 2, duration 3. */
static void read_legacy(struct track_event *event, struct lac_proto message)
{
    struct lac_proto_field field;
    while (lac_proto_next(&message, &field)) {
        if (field.number == 2 && field.value < 128) {
            event->phase = (char)field.value;
        } else if (field.number == 3) {
            event->duration_us = field.value;
        }
    }
}

static enum lac_status interned_text(struct lac_perfetto *p, uint64_t scope, uint32_t list,
                                     uint64_t id, uint32_t *ret_text)
{
    const struct lac_perfetto_key key = {.scope = scope, .id = id, .list = list};
    const uint32_t text = lac_perfetto_map_get(&p->interned, key);
    if (text == LAC_NONE) {
        p->lost_count++;
    }
    *ret_text = text == LAC_NONE ? 0 : text;
    return LAC_OK;
}

static enum lac_status read_fields(struct lac_perfetto *p, const struct lac_perfetto_packet *packet,
                                   struct lac_proto message, struct track_event *event)
{
    struct lac_proto_field field;
    uint64_t uuid = packet->sequence->default_track;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        switch (field.number) {
        case 3: /* a list of them, packed or not: the first counts */
            if (field.wire == LAC_PROTO_VARINT && event->category == 0) {
                status = interned_text(p, packet->scope, LAC_PERFETTO_CATEGORIES, field.value,
                                       &event->category);
            }
            break;
        case 22:
            status = lac_perfetto_text(p, &field, &event->category);
            break;
        case 6:
            if (field.wire == LAC_PROTO_BYTES) {
                read_legacy(event, lac_proto_inside(&field));
            }
            break;
        case 9:
            event->type = field.value;
            break;
        case 10:
            status = interned_text(p, packet->scope, LAC_PERFETTO_NAMES, field.value, &event->name);
            break;
        case 11:
            uuid = field.value;
            break;
        case 23:
            status = lac_perfetto_text(p, &field, &event->name);
            break;
        case 30:
            event->value = (double)(int64_t)field.value;
            break;
        case 44:
            event->value = field.wire == LAC_PROTO_FIXED64 ? lac_proto_double(&field) : 0;
            break;
        default:
            break;
        }
    }
    return status == LAC_OK ? lac_perfetto_track_of(p, uuid, &event->track) : status;
}

static enum lac_status put_counter(struct lac_perfetto *p, const struct track_event *event,
                                   int64_t time_ns)
{
    struct lac_perfetto_track *track = &p->tracks[event->track];
    track->sum = track->is_delta ? track->sum + event->value : event->value;
    const double value = track->sum * (double)track->multiplier;
    const char *name = lac_strings_get(&p->strings, track->name);
    if (!isfinite(value)) {
        return LAC_OK;
    }
    enum lac_status status = lac_perfetto_begin_event(p, 'C', time_ns);
    if (status == LAC_OK) {
        status = lac_perfetto_put_row(p, event->track);
    }
    if (status != LAC_OK) {
        return status;
    }
    PUT(p, ",\"name\":");
    PUT_STRING(p, *name != '\0' ? name : "counter");
    return lac_perfetto_put(p, ",\"args\":{\"value\":%.17g}}", value);
}

static enum lac_status put_interval(struct lac_perfetto *p,
                                    const struct lac_perfetto_packet *packet,
                                    const struct track_event *event, struct lac_proto message,
                                    char phase)
{
    const char *category = lac_strings_get(&p->strings, event->category);
    enum lac_status status = lac_perfetto_begin_event(p, phase, packet->time_ns);
    if (status == LAC_OK) {
        status = lac_perfetto_put_row(p, event->track);
    }
    if (status != LAC_OK || phase == 'E') {
        return status == LAC_OK ? lac_perfetto_put(p, "}") : status;
    }
    PUT(p, ",\"name\":");
    PUT_STRING(p, lac_strings_get(&p->strings, event->name));
    if (*category != '\0') {
        PUT(p, ",\"cat\":");
        PUT_STRING(p, category);
    }
    if (phase == 'X') {
        PUT(p, ",\"dur\":%" PRIu64, event->duration_us);
    } else if (phase == 'i') {
        PUT(p, ",\"s\":\"t\"");
    }
    status = put_annotations(p, packet->scope, message);
    return status == LAC_OK ? lac_perfetto_put(p, "}") : status;
}

enum lac_status lac_perfetto_read_event(struct lac_perfetto *p,
                                        const struct lac_perfetto_packet *packet,
                                        struct lac_proto message)
{
    static const char PHASES[] = {0, 'B', 'E', 'i'};
    struct track_event event = {.type = 0};
    struct lac_proto_field field;
    enum lac_status status = read_fields(p, packet, message, &event);
    if (status != LAC_OK || p->tracks[event.track].is_left) {
        return status;
    }
    if (event.type == TYPE_COUNTER) {
        return put_counter(p, &event, packet->time_ns);
    }
    char phase = event.type >= TYPE_BEGIN && event.type <= TYPE_INSTANT ? PHASES[event.type] : 0;
    if (phase == 0 && event.phase != 0 && strchr("BEXIi", event.phase) != NULL) {
        phase = event.phase == 'I' ? 'i' : event.phase;
    }
    if (phase == 0 || (phase == 'X' && event.duration_us > (UINT64_C(1) << 50))) {
        p->other_count++;
        return LAC_OK;
    }
    status = put_interval(p, packet, &event, message, phase);
    while (status == LAC_OK && phase != 'E' && lac_proto_next(&message, &field)) {
        const bool is_last = field.number == 48 || field.number == 42;
        if ((field.number == 47 || field.number == 36 || is_last) &&
            field.wire != LAC_PROTO_BYTES) {
            status = put_flow(p, event.track, packet->time_ns, field.value, is_last);
        }
    }
    return status;
}

/* ---- GPUs ---- */

/* Lists of a specification: queues and stages count by their place. */
static enum lac_status read_specifications(struct lac_perfetto *p, struct lac_proto message)
{
    struct lac_proto_field field;
    struct lac_proto_field part;
    uint64_t counts[2] = {0, 0};
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if ((field.number != 2 && field.number != 3) || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        struct lac_proto entry = lac_proto_inside(&field);
        uint32_t name = 0;
        while (status == LAC_OK && lac_proto_next(&entry, &part)) {
            if (part.number == 1) {
                status = lac_perfetto_text(p, &part, &name);
            }
        }
        if (status == LAC_OK) {
            status = lac_perfetto_intern(
                p, 0, field.number == 2 ? LAC_PERFETTO_QUEUES : LAC_PERFETTO_STAGES,
                counts[field.number - 2]++, name);
        }
    }
    return status;
}

struct stage {
    uint64_t duration_ns, gpu, queue_id, stage_id, queue_iid, stage_iid;
    bool has_device, has_stream; /**< among its own arguments */
};

static const char *category_of(const char *name)
{
    return strncasecmp(name, "memcpy", 6) == 0 || strncasecmp(name, "copy", 4) == 0 ? "gpu_memcpy"
           : strncasecmp(name, "memset", 6) == 0                                    ? "gpu_memset"
                                                                                    : "kernel";
}

/* "stream 7 (2)": a second row of stream 7. */
static int64_t stream_number(const char *queue, uint64_t otherwise)
{
    const char *digits = strpbrk(queue, "0123456789");
    return digits != NULL ? (int64_t)(strtoull(digits, NULL, 10) & 0x7fffffff)
                          : (int64_t)(otherwise & 0x7fffffff);
}

static bool is_key(const struct lac_proto_field *field, const char *text)
{
    return field->size_bytes == strlen(text) && memcmp(field->bytes, text, field->size_bytes) == 0;
}

/* name 1, value 2, both texts. */
static enum lac_status put_extra(struct lac_perfetto *p, struct lac_proto message,
                                 struct stage *stage)
{
    struct lac_proto_field field;
    uint32_t key = 0;
    bool has_key = false;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number == 1 && field.wire == LAC_PROTO_BYTES) {
            stage->has_device = stage->has_device || is_key(&field, "device");
            stage->has_stream = stage->has_stream || is_key(&field, "stream");
            status = lac_perfetto_text(p, &field, &key);
            has_key = true;
        } else if (field.number == 2 && has_key) {
            PUT(p, ",");
            PUT_STRING(p, lac_strings_get(&p->strings, key));
            PUT(p, ":");
            return put_text_value(p, &field);
        }
    }
    return status;
}

enum lac_status lac_perfetto_read_stage(struct lac_perfetto *p,
                                        const struct lac_perfetto_packet *packet,
                                        struct lac_proto message)
{
    const struct lac_proto whole = message;
    struct lac_proto_field field;
    struct stage stage = {.duration_ns = 0};
    bool is_event = false;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        is_event = is_event || field.number == 2;
        stage.duration_ns = field.number == 2 ? field.value : stage.duration_ns;
        stage.queue_id = field.number == 3 ? field.value : stage.queue_id;
        stage.stage_id = field.number == 4 ? field.value : stage.stage_id;
        stage.gpu = field.number == 11 ? field.value % 4096 : stage.gpu;
        stage.queue_iid = field.number == 13 ? field.value : stage.queue_iid;
        stage.stage_iid = field.number == 14 ? field.value : stage.stage_iid;
        if (field.number == 7 && field.wire == LAC_PROTO_BYTES) {
            status = read_specifications(p, lac_proto_inside(&field));
        }
    }
    if (status != LAC_OK || !is_event || stage.duration_ns > (UINT64_C(1) << 60)) {
        return status;
    }
    const char *queue =
        stage.queue_iid != 0
            ? lac_perfetto_interned(p, packet->scope, LAC_PERFETTO_SPECIFICATIONS, stage.queue_iid)
            : lac_perfetto_interned(p, 0, LAC_PERFETTO_QUEUES, stage.queue_id);
    const int64_t stream = stream_number(queue, stage.queue_id);
    const char *name =
        stage.stage_iid != 0
            ? lac_perfetto_interned(p, packet->scope, LAC_PERFETTO_SPECIFICATIONS, stage.stage_iid)
            : lac_perfetto_interned(p, 0, LAC_PERFETTO_STAGES, stage.stage_id);
    status = lac_perfetto_begin_event(p, 'X', packet->time_ns);
    if (status != LAC_OK) {
        return status;
    }
    PUT(p, ",\"dur\":%" PRIu64 ".%03u,\"pid\":%" PRIu64 ",\"tid\":\"stream %" PRId64 "\"",
        stage.duration_ns / 1000, (unsigned)(stage.duration_ns % 1000), stage.gpu, stream);
    PUT(p, ",\"cat\":\"%s\",\"name\":", category_of(name));
    PUT_STRING(p, *name != '\0' ? name : "GPU work");
    PUT(p, ",\"args\":{\"queue\":%" PRIu64, stage.queue_id);
    message = whole;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number == 6 && field.wire == LAC_PROTO_BYTES) {
            status = put_extra(p, lac_proto_inside(&field), &stage);
        }
    }
    if (status == LAC_OK && !stage.has_device) {
        status = lac_perfetto_put(p, ",\"device\":%" PRIu64, stage.gpu);
    }
    if (status == LAC_OK && !stage.has_stream) {
        status = lac_perfetto_put(p, ",\"stream\":%" PRId64, stream);
    }
    return status == LAC_OK ? lac_perfetto_put(p, "}}") : status;
}

static enum lac_status put_gpu_counter(struct lac_perfetto *p, int64_t time_ns, uint64_t gpu,
                                       const char *name, double value)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "GPU %" PRIu64 ": %.200s", gpu, name);
    enum lac_status status = lac_perfetto_begin_event(p, 'C', time_ns);
    if (status != LAC_OK || !isfinite(value)) {
        return status == LAC_OK ? lac_perfetto_put(p, "}") : status;
    }
    PUT(p, ",\"pid\":\"GPU counters\",\"tid\":0,\"name\":");
    PUT_STRING(p, text);
    return lac_perfetto_put(p, ",\"args\":{\"value\":%.17g}}", value);
}

/* GpuCounterDescriptor: specs 1 {counter_id 1, name 2}. */
static enum lac_status read_counter_names(struct lac_perfetto *p, struct lac_proto message)
{
    struct lac_proto_field field;
    struct lac_proto_field part;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number != 1 || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        struct lac_proto entry = lac_proto_inside(&field);
        uint64_t id = 0;
        uint32_t name = 0;
        while (status == LAC_OK && lac_proto_next(&entry, &part)) {
            id = part.number == 1 ? part.value : id;
            if (part.number == 2) {
                status = lac_perfetto_text(p, &part, &name);
            }
        }
        if (status == LAC_OK) {
            status = lac_perfetto_intern(p, 0, LAC_PERFETTO_COUNTERS, id, name);
        }
    }
    return status;
}

enum lac_status lac_perfetto_read_gpu_counters(struct lac_perfetto *p,
                                               const struct lac_perfetto_packet *packet,
                                               struct lac_proto message)
{
    const struct lac_proto whole = message;
    struct lac_proto_field field;
    struct lac_proto_field part;
    uint64_t gpu = 0;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        gpu = field.number == 3 ? field.value % 4096 : gpu;
        if (field.number == 1 && field.wire == LAC_PROTO_BYTES) {
            status = read_counter_names(p, lac_proto_inside(&field));
        }
    }
    message = whole;
    while (status == LAC_OK && lac_proto_next(&message, &field)) {
        if (field.number != 2 || field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        struct lac_proto entry = lac_proto_inside(&field);
        uint64_t id = 0;
        double value = 0;
        while (lac_proto_next(&entry, &part)) {
            id = part.number == 1 ? part.value : id;
            value = part.number == 2 ? (double)(int64_t)part.value
                    : part.number == 3 && part.wire == LAC_PROTO_FIXED64 ? lac_proto_double(&part)
                                                                         : value;
        }
        const char *name = lac_perfetto_interned(p, 0, LAC_PERFETTO_COUNTERS, id);
        status = put_gpu_counter(p, packet->time_ns, gpu, *name != '\0' ? name : "counter", value);
    }
    return status;
}

/* GpuMemTotalEvent: gpu 1, pid 2 (0: all of them), size 3. */
enum lac_status lac_perfetto_read_gpu_memory(struct lac_perfetto *p,
                                             const struct lac_perfetto_packet *packet,
                                             struct lac_proto message)
{
    struct lac_proto_field field;
    uint64_t gpu = 0;
    uint64_t pid = 0;
    uint64_t size = 0;
    char name[64] = "memory used (MB)";
    while (lac_proto_next(&message, &field)) {
        gpu = field.number == 1 ? field.value % 4096 : gpu;
        pid = field.number == 2 ? field.value : pid;
        size = field.number == 3 ? field.value : size;
    }
    if (pid != 0) {
        (void)snprintf(name, sizeof(name), "memory used by process %" PRIu64 " (MB)", pid);
    }
    return put_gpu_counter(p, packet->time_ns, gpu, name, (double)size / 1e6);
}
