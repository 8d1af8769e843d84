#include "analysis/import/perfetto/perfetto.h"

#include "analysis/import/chrome/chrome.h"
#include "analysis/import/perfetto/perfetto_private.h"
#include "analysis/import/perfetto/proto.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/source/temporary.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/io_full.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACKET_BYTES_MAX = 64 << 20, OUT_BYTES = 1 << 18, TELL_PACKETS = 65536 };

/* TracePacket */
enum {
    PACKET_FTRACE = 1,
    PACKET_CLOCKS = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_CLEARED = 41,
    PACKET_LOST_BEFORE = 42,
    PACKET_COMPRESSED = 50,
    PACKET_GPU_COUNTERS = 52,
    PACKET_STAGE = 53,
    PACKET_CLOCK = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK = 60,
    PACKET_GPU_MEMORY = 71,
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

/* A trace is a list of packets (field 1); the first ones hold fields that a packet has. */
bool lac_perfetto_is_its_own(const uint8_t *head, size_t size_bytes)
{
    struct lac_proto trace = lac_proto_of(head, size_bytes);
    struct lac_proto_field field;
    uint32_t known = 0;
    uint32_t packets = 0;
    while (packets < 4 && trace.at < trace.end && *trace.at == 0x0a) {
        const uint8_t *at = trace.at + 1;
        uint64_t size = 0;
        if (!lac_proto_varint(&at, trace.end, &size) || size > PACKET_BYTES_MAX) {
            return false;
        }
        const uint64_t left = (uint64_t)(trace.end - at);
        const bool is_cut = size > left;
        struct lac_proto packet = lac_proto_of(at, (size_t)(is_cut ? left : size));
        while (lac_proto_next(&packet, &field)) {
            const bool is_number = field.wire == LAC_PROTO_VARINT;
            known += ((field.number == PACKET_TIMESTAMP || field.number == PACKET_SEQUENCE ||
                       field.number == 3 || field.number == PACKET_FLAGS ||
                       field.number == PACKET_CLOCK) &&
                      is_number) ||
                             (field.number == PACKET_COMPRESSED && !is_number)
                         ? 1
                         : 0;
        }
        if (packet.is_damaged && !is_cut) {
            return false;
        }
        known +=
            packet.is_damaged && field.number == PACKET_COMPRESSED && field.wire == LAC_PROTO_BYTES
                ? 1
                : 0; /* longer than what is looked at */
        packets++;
        trace.at = at + (is_cut ? left : size);
    }
    return packets > 0 && known > 0;
}

/* ---- packets ---- */

static enum lac_status read_packet(struct lac_perfetto *p, struct lac_proto packet, bool is_inner);

static enum lac_status inflate_packets(struct lac_perfetto *p, const struct lac_proto_field *field)
{
    size_t capacity = field->size_bytes * 8 + 65536;
    uint8_t *plain = NULL;
    struct inflate_state *state = malloc(sizeof(*state));
    int code = ISAL_OUT_OVERFLOW;
    enum lac_status status = state != NULL ? LAC_OK : lac_perfetto_failed(p, LAC_ERR_NOMEM);
    /* from its start again in a larger room: most fit the first */
    while (status == LAC_OK && code == ISAL_OUT_OVERFLOW) {
        capacity = capacity < PACKET_BYTES_MAX ? capacity : PACKET_BYTES_MAX;
        free(plain);
        plain = malloc(capacity);
        if (plain == NULL || state == NULL) { /* the latter is said already */
            status = lac_perfetto_failed(p, LAC_ERR_NOMEM);
            break;
        }
        isal_inflate_init(state);
        state->crc_flag = ISAL_ZLIB;
        memcpy(&state->next_in, &field->bytes, sizeof(state->next_in)); /* only read, not const */
        state->avail_in = (uint32_t)field->size_bytes;
        state->next_out = plain;
        state->avail_out = (uint32_t)capacity;
        code = isal_inflate_stateless(state);
        if (code == ISAL_OUT_OVERFLOW && capacity == PACKET_BYTES_MAX) {
            status = lac_fail(p->reterr, LAC_ERR_LIMIT, p->offset_bytes,
                              "compressed packets that expand to more than %d MiB",
                              PACKET_BYTES_MAX >> 20);
        }
        capacity *= 4;
    }
    if (status == LAC_OK && code != ISAL_DECOMP_OK) {
        p->damaged_count++;
    } else if (status == LAC_OK) {
        struct lac_proto inner = lac_proto_of(plain, state->total_out);
        struct lac_proto_field one;
        p->inflated_bytes += state->total_out;
        while (status == LAC_OK && lac_proto_next(&inner, &one)) {
            if (one.number == 1 && one.wire == LAC_PROTO_BYTES) {
                status = read_packet(p, lac_proto_inside(&one), true);
            }
        }
        p->damaged_count += inner.is_damaged ? 1 : 0;
    }
    free(plain);
    free(state);
    return status;
}

/* What stands for the fields that a packet leaves out. */
static void read_defaults(struct lac_perfetto_sequence *sequence, struct lac_proto message)
{
    struct lac_proto_field field;
    struct lac_proto_field part;
    while (lac_proto_next(&message, &field)) {
        if (field.number == PACKET_CLOCK) {
            sequence->default_clock = (uint32_t)(field.value & 0xff);
        } else if (field.number == PACKET_EVENT && field.wire == LAC_PROTO_BYTES) {
            struct lac_proto inner = lac_proto_inside(&field);
            while (lac_proto_next(&inner, &part)) {
                sequence->default_track = part.number == 11 ? part.value : sequence->default_track;
            }
        }
    }
}

struct header {
    uint64_t sequence, flags, time, clock;
    bool has_time, has_clock, is_lost;
};

static struct header read_header(struct lac_proto packet)
{
    struct header header = {.sequence = 0};
    struct lac_proto_field field;
    while (lac_proto_next(&packet, &field)) {
        if (field.number == PACKET_SEQUENCE) {
            header.sequence = field.value;
        } else if (field.number == PACKET_FLAGS) {
            header.flags |= field.value;
        } else if (field.number == PACKET_CLEARED && field.value != 0) {
            header.flags |= FLAG_CLEARED;
        } else if (field.number == PACKET_LOST_BEFORE) {
            header.is_lost = field.value != 0;
        } else if (field.number == PACKET_TIMESTAMP) {
            header.time = field.value;
            header.has_time = true;
        } else if (field.number == PACKET_CLOCK) {
            header.clock = field.value;
            header.has_clock = true;
        }
    }
    return header;
}

/* State first: texts and tracks that the packet's own event may use. */
static enum lac_status read_state(struct lac_perfetto *p, uint32_t index, uint64_t scope,
                                  struct lac_proto packet)
{
    struct lac_proto_field field;
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && lac_proto_next(&packet, &field)) {
        if (field.wire != LAC_PROTO_BYTES) {
            continue;
        }
        if (field.number == PACKET_INTERNED) {
            status = lac_perfetto_read_interned(p, scope, lac_proto_inside(&field));
        } else if (field.number == PACKET_TRACK) {
            status = lac_perfetto_read_track(p, lac_proto_inside(&field));
        } else if (field.number == PACKET_CLOCKS) {
            lac_perfetto_read_clocks(p, &p->sequences[index], lac_proto_inside(&field));
        } else if (field.number == PACKET_DEFAULTS) {
            read_defaults(&p->sequences[index], lac_proto_inside(&field));
        }
    }
    return status;
}

static enum lac_status read_content(struct lac_perfetto *p,
                                    const struct lac_perfetto_packet *packet,
                                    const struct lac_proto_field *field, bool is_inner)
{
    switch (field->number) {
    case PACKET_EVENT:
        return lac_perfetto_read_event(p, packet, lac_proto_inside(field));
    case PACKET_STAGE:
        return lac_perfetto_read_stage(p, packet, lac_proto_inside(field));
    case PACKET_GPU_COUNTERS:
        return lac_perfetto_read_gpu_counters(p, packet, lac_proto_inside(field));
    case PACKET_GPU_MEMORY:
        return lac_perfetto_read_gpu_memory(p, packet, lac_proto_inside(field));
    case PACKET_COMPRESSED:
        if (!is_inner) {
            return inflate_packets(p, field);
        }
        p->damaged_count++; /* compressed twice: nobody writes that */
        return LAC_OK;
    case PACKET_FTRACE:
        p->ftrace_count++;
        return LAC_OK;
    default:
        return LAC_OK;
    }
}

static bool has_event(struct lac_proto packet)
{
    struct lac_proto_field field;
    while (lac_proto_next(&packet, &field)) {
        if (field.number == PACKET_EVENT || field.number == PACKET_STAGE ||
            field.number == PACKET_GPU_COUNTERS || field.number == PACKET_GPU_MEMORY) {
            return true;
        }
    }
    return false;
}

static enum lac_status read_packet(struct lac_perfetto *p, struct lac_proto packet, bool is_inner)
{
    const struct header header = read_header(packet);
    struct lac_proto_field field;
    uint32_t index = 0;
    enum lac_status status = lac_perfetto_sequence_of(p, header.sequence, &index);
    if (status != LAC_OK) {
        return status;
    }
    struct lac_perfetto_sequence *sequence = &p->sequences[index];
    sequence->needs_state = sequence->needs_state || header.is_lost;
    if ((header.flags & FLAG_CLEARED) != 0) {
        sequence->generation++;
        sequence->needs_state = false;
        sequence->default_clock = LAC_PERFETTO_BOOTTIME;
        sequence->default_track = 0;
    }
    if (sequence->needs_state && (header.flags & FLAG_NEEDS_STATE) != 0) {
        p->lost_count++;
        return LAC_OK;
    }
    struct lac_perfetto_packet own = {.scope = ((uint64_t)index + 1) << 32 | sequence->generation};
    status = read_state(p, index, own.scope, packet);
    if (status != LAC_OK) {
        return status;
    }
    own.sequence = &p->sequences[index];
    const uint32_t clock =
        header.has_clock ? (uint32_t)(header.clock & 0xff) : own.sequence->default_clock;
    if (!lac_perfetto_time(p, own.sequence, clock, header.time, &own.time_ns)) {
        p->no_clock_count += has_event(packet) ? 1 : 0;
        return LAC_OK;
    }
    if (!header.has_time && has_event(packet)) {
        p->other_count++; /* times in older fields */
        return LAC_OK;
    }
    struct lac_proto content = packet;
    while (status == LAC_OK && lac_proto_next(&content, &field)) {
        if (field.wire == LAC_PROTO_BYTES) {
            status = read_content(p, &own, &field, is_inner);
        }
    }
    p->damaged_count += content.is_damaged ? 1 : 0;
    return status;
}

/* ---- the file ---- */

struct window {
    struct lac_source *source;
    uint8_t *bytes;
    size_t capacity, begin, end;
    bool is_over;
};

/* Have `want` bytes from `begin` on, fewer only at the end. */
static enum lac_status fill(struct window *window, size_t want, struct lac_error *reterr)
{
    if (window->capacity - window->begin < want) {
        memmove(window->bytes, window->bytes + window->begin, window->end - window->begin);
        window->end -= window->begin;
        window->begin = 0;
    }
    if (window->capacity < want) {
        uint8_t *grown = realloc(window->bytes, want);
        if (grown == NULL) {
            return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
        }
        window->bytes = grown;
        window->capacity = want;
    }
    while (window->end - window->begin < want && !window->is_over) {
        size_t got = 0;
        enum lac_status status = lac_source_read(window->source, window->bytes + window->end,
                                                 window->capacity - window->end, &got, reterr);
        if (status != LAC_OK) {
            return status;
        }
        window->is_over = got == 0;
        window->end += got;
    }
    return LAC_OK;
}

/* One field of the trace, a packet or not. @param ret_over the file ends here, whole or cut */
static enum lac_status read_field(struct lac_perfetto *p, struct window *window, bool *ret_over)
{
    uint64_t key = 0;
    uint64_t size = 0;
    enum lac_status status = fill(window, 32, p->reterr);
    if (status != LAC_OK) {
        return status;
    }
    const uint8_t *at = window->bytes + window->begin;
    const uint8_t *end = window->bytes + window->end;
    const uint8_t *start = at;
    *ret_over = at == end;
    if (*ret_over) {
        return LAC_OK;
    }
    if (!lac_proto_varint(&at, end, &key) || (key & 7) != LAC_PROTO_BYTES ||
        !lac_proto_varint(&at, end, &size)) {
        p->damaged_count++;
        *ret_over = true;
        return LAC_OK;
    }
    const size_t head = (size_t)(at - start);
    if (size > PACKET_BYTES_MAX) {
        return lac_fail(p->reterr, LAC_ERR_LIMIT, p->offset_bytes, "a packet of more than %d MiB",
                        PACKET_BYTES_MAX >> 20);
    }
    status = fill(window, head + (size_t)size, p->reterr);
    if (status != LAC_OK) {
        return status;
    }
    if (window->end - window->begin < head + (size_t)size) {
        p->damaged_count++;
        *ret_over = true;
        return LAC_OK;
    }
    if (key >> 3 == 1) {
        status =
            read_packet(p, lac_proto_of(window->bytes + window->begin + head, (size_t)size), false);
    }
    window->begin += head + (size_t)size;
    p->offset_bytes += head + size;
    return status;
}

static enum lac_status read_all(struct lac_perfetto *p, struct lac_source *source)
{
    struct window window = {.source = source, .capacity = 1 << 20};
    const struct lac_source_budget *budget = lac_source_get_budget(source);
    bool is_over = false;
    window.bytes = malloc(window.capacity);
    enum lac_status status = window.bytes != NULL ? LAC_OK : lac_perfetto_failed(p, LAC_ERR_NOMEM);
    for (uint64_t i = 1; status == LAC_OK && !is_over; i++) {
        status = read_field(p, &window, &is_over);
        const uint64_t most =
            (uint64_t)p->options->limits.expansion_ratio_max * (p->offset_bytes + 1);
        if (status == LAC_OK && p->inflated_bytes > (16 << 20) &&
            p->options->limits.expansion_ratio_max > 0 && p->inflated_bytes > most) {
            status = lac_fail(p->reterr, LAC_ERR_LIMIT, p->offset_bytes,
                              "compressed packets expand to more than %u times their size",
                              p->options->limits.expansion_ratio_max);
        }
        if (status == LAC_OK && i % TELL_PACKETS == 0 && p->options->progress != NULL &&
            !p->options->progress(p->options->progress_context, budget->input_bytes / 2,
                                  budget->input_bytes_total, p->event_count)) {
            status = lac_fail(p->reterr, LAC_ERR_IO, 0, "canceled");
        }
    }
    free(window.bytes);
    return status;
}

/* ---- JSON of it ---- */

static enum lac_status put_names(struct lac_perfetto *p)
{
    enum lac_status status = LAC_OK;
    for (uint32_t i = 0; i < p->track_count && status == LAC_OK; i++) {
        const struct lac_perfetto_track *track = &p->tracks[i];
        const char *name = lac_strings_get(&p->strings, track->name);
        const bool is_process = track->is_process && !track->is_thread;
        if (*name == '\0' || (!track->is_told && !is_process) || track->is_counter) {
            continue;
        }
        status = lac_perfetto_put(p, "%s{\"ph\":\"M\",\"name\":\"%s\"", p->has_event ? ",\n" : "",
                                  is_process ? "process_name" : "thread_name");
        p->has_event = true;
        if (status == LAC_OK) {
            status = lac_perfetto_put_row(p, i);
        }
        if (status == LAC_OK) {
            status = lac_perfetto_put(p, ",\"args\":{\"name\":");
        }
        if (status == LAC_OK) {
            status = lac_perfetto_put_string(p, name);
        }
        if (status == LAC_OK) {
            status = lac_perfetto_put(p, "}}");
        }
    }
    return status;
}

static int64_t read_at(const void *context, void *out, size_t size_bytes, uint64_t offset)
{
    return lac_read_full_at(*(const int *)context, out, size_bytes, offset);
}

static void tell(const struct lac_perfetto *p, struct lac_model *model)
{
    const struct {
        const char *code;
        enum lac_report_severity severity;
        uint64_t count;
        const char *text;
    } LINES[] = {
        {"ftrace_left_out", LAC_REPORT_INFO, p->ftrace_count,
         "Packets of the kernel's own trace (ftrace) are not read."},
        {"events_not_shown", LAC_REPORT_INFO, p->other_count,
         "Track events of a form that is not read."},
        {"state_lost", LAC_REPORT_DROPPED, p->lost_count,
         "Packets or names were lost while recording: what needs them is not shown."},
        {"packet_damaged", LAC_REPORT_REPAIRED, p->damaged_count,
         "Packets that are damaged or cut were read up to there."},
        {"clock_unknown", LAC_REPORT_DROPPED, p->no_clock_count,
         "Events on clocks that no snapshot relates to the others were dropped."},
    };
    for (size_t i = 0; i < LAC_COUNT_OF(LINES); i++) {
        if (LINES[i].count > 0) {
            lac_model_report(model, LINES[i].severity, LINES[i].code, LINES[i].count, 0,
                             LINES[i].text);
        }
    }
}

static enum lac_status give_to_chrome(struct lac_perfetto *p, size_t window_bytes, const char *name,
                                      struct lac_model **ret_model)
{
    struct lac_import_options options = *p->options;
    struct lac_source_budget budget = {.input_bytes_total = p->out_bytes};
    struct lac_source *json = NULL;
    options.progress = NULL;
    enum lac_status status = lac_source_open_reader(read_at, &p->fd, &budget, &json, p->reterr);
    if (status == LAC_OK) {
        status = lac_chrome_import(json, &options, window_bytes, name, ret_model, p->reterr);
        lac_source_destroy(json);
    }
    if (status == LAC_OK) {
        (*ret_model)->info.format = LAC_FORMAT_PERFETTO;
        tell(p, *ret_model);
    }
    return status;
}

static enum lac_status convert(struct lac_perfetto *p, struct lac_source *source)
{
    enum lac_status status = lac_perfetto_put(p, "{\"traceEvents\":[\n");
    if (status == LAC_OK) {
        status = read_all(p, source);
    }
    if (status == LAC_OK && p->event_count == 0) {
        return lac_fail(p->reterr, LAC_ERR_CORRUPT, p->offset_bytes,
                        p->ftrace_count > 0
                            ? "a Perfetto trace of the kernel alone (ftrace): it has no track "
                              "events and nothing of a GPU"
                            : "a Perfetto trace without track events and without GPU events");
    }
    if (status == LAC_OK) {
        status = put_names(p);
    }
    if (status == LAC_OK) {
        status = lac_perfetto_put(p, "\n],\"baseTimeNanoseconds\":%" PRId64 "}\n", p->realtime_ns);
    }
    return status == LAC_OK ? lac_perfetto_flush(p) : status;
}

static void perfetto_done(struct lac_perfetto *p)
{
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    lac_strings_done(&p->strings);
    lac_perfetto_map_done(&p->interned);
    lac_perfetto_map_done(&p->sequence_of);
    lac_perfetto_map_done(&p->track_of);
    free(p->sequences);
    free(p->tracks);
    free(p->out);
    free(p);
}

enum lac_status lac_perfetto_import(struct lac_source *source,
                                    const struct lac_import_options *options, size_t window_bytes,
                                    const char *name, struct lac_model **ret_model,
                                    struct lac_error *reterr)
{
    struct lac_perfetto *p = calloc(1, sizeof(*p));
    *ret_model = NULL;
    if (p == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    p->options = options;
    p->reterr = reterr;
    p->fd = -1;
    p->out = malloc(OUT_BYTES);
    enum lac_status status = p->out != NULL ? lac_strings_init(&p->strings) : LAC_ERR_NOMEM;
    status = lac_perfetto_failed(p, status);
    if (status == LAC_OK) {
        status = lac_temporary_file(options->temporary_dir, &p->fd, reterr);
    }
    if (status == LAC_OK) {
        status = convert(p, source);
    }
    if (status == LAC_OK) {
        status = give_to_chrome(p, window_bytes, name, ret_model);
    }
    if (status == LAC_OK && lac_source_damage(source) != NULL) {
        lac_model_report(*ret_model, LAC_REPORT_REPAIRED, "input_damaged", 1, 0,
                         lac_source_damage(source));
    }
    perfetto_done(p);
    return status;
}
