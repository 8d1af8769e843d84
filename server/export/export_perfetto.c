/* A trace as Perfetto's own protobuf: threads and ranges as track events, GPU work as render stages
 * of hardware queues, steps and the causes of idle time as tracks. Field numbers are those of
 * Perfetto's public .proto files. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "server/base/buffer.h"
#include "server/export/export_forms.h"
#include "server/export/export_out.h"
#include "server/export/protobuf.h"
#include "server/export/redact.h"
#include "server/export/report.h"
#include "server/export/slice_json.h"
#include "server/json/json_members.h"
#include "server/json/json_out.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_PACKET = 1 };
/* TracePacket */
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_RENDER_STAGE = 53,
    PACKET_TRACK_DESCRIPTOR = 60,
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
/* InternedData: lists of {iid = 1, name = 2} */
enum {
    INTERNED_CATEGORIES = 1,
    INTERNED_EVENT_NAMES = 2,
    INTERNED_ANNOTATION_NAMES = 3,
    INTERNED_CONTEXTS = 23,
    INTERNED_GPU_SPECIFICATIONS = 24,
    INTERNED_ANNOTATION_TEXTS = 29,
    INTERNED_LISTS
};
/* TrackEvent */
enum {
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_DOUBLE_COUNTER = 44,
    EVENT_FLOW = 47,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
/* DebugAnnotation */
enum {
    NOTE_NAME_IID = 1,
    NOTE_BOOL = 2,
    NOTE_INT = 4,
    NOTE_DOUBLE = 5,
    NOTE_TEXT = 6,
    NOTE_TEXT_IID = 17
};
/* TrackDescriptor */
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
};
/* GpuRenderStageEvent */
enum {
    STAGE_EVENT_ID = 1,
    STAGE_DURATION = 2,
    STAGE_CONTEXT = 5,
    STAGE_EXTRA = 6,
    STAGE_GPU = 11,
    STAGE_QUEUE_IID = 13,
    STAGE_STAGE_IID = 14,
};
enum { CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2, API_CUDA = 4, API_HIP = 5, CONTEXT_IID = 1 };
enum { CLOCK_REALTIME = 1, CLOCK_BOOTTIME = 6 };

/** Of a process or thread whose recorded number is none: numbers that no system gives. */
enum { MADE_UP_ID = 1 << 30 };

enum { LONG_TEXT_BYTES = 24 };

/** Slices that are open in a row, the outermost first. */
struct open_row {
    int64_t *end_ns;
    size_t depth, capacity;
};

struct perfetto {
    struct lac_export_out *out;
    const struct lac_report_source *source;
    struct lac_slice_json row; /**< into `args` */
    struct lac_buffer args, packet, event, note, interned, entry;
    struct lac_strings iids[INTERNED_LISTS]; /**< iid = id of the text; 0 is none */
    struct open_row *rows;                   /**< of the track that is being written */
    size_t row_count, row_capacity;
    uint64_t flow; /**< next recorded arrow */
};

static void fail(struct perfetto *p, enum lac_status status)
{
    p->out->buffer.status = p->out->buffer.status ? p->out->buffer.status : status;
}

/* -- packets ----------------------------------------------------------------------------------- */

/** Write the packet; what was interned since the last one goes before. */
static void put_packet(struct perfetto *p)
{
    struct lac_buffer *out = &p->out->buffer;
    if (p->interned.size_bytes > 0) {
        lac_proto_message(&p->packet, PACKET_INTERNED_DATA, &p->interned);
    }
    lac_proto_uint(&p->packet, PACKET_SEQUENCE_ID, 1);
    lac_proto_uint(&p->packet, PACKET_SEQUENCE_FLAGS, FLAG_NEEDS_STATE);
    lac_proto_message(out, TRACE_PACKET, &p->packet);
    lac_export_flow(p->out);
}

/** The number of a text in its list. @param category of GPU specifications, -1 elsewhere */
static uint64_t intern(struct perfetto *p, uint32_t list, const char *text, int category)
{
    struct lac_strings *strings = &p->iids[list];
    const uint32_t before = strings->count;
    uint32_t id = 0;
    char keyed[4096];
    if (category >= 0) { /* a kernel may be called as a stream is */
        (void)snprintf(keyed, sizeof(keyed), "%d%s", category, text);
    }
    const char *key = category >= 0 ? keyed : *text != '\0' ? text : "(no name)";
    const enum lac_status status = lac_strings_intern(strings, key, strlen(key), &id);
    if (status) {
        fail(p, status);
        return 0;
    }
    if (id >= before) {
        lac_proto_uint(&p->entry, 1, id);
        lac_proto_text(&p->entry, 2, *text != '\0' ? text : "(no name)");
        if (category >= 0) {
            lac_proto_uint(&p->entry, 4, (uint64_t)category);
        }
        lac_proto_message(&p->interned, list, &p->entry);
    }
    return id;
}

/* -- tracks ------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t value)
{
    value ^= value >> 31;
    value *= UINT64_C(0x7fb5d329728ea185);
    value ^= value >> 27;
    value *= UINT64_C(0x81dadef4bc2dd44d);
    return (value ^ (value >> 33)) | 1;
}

static uint64_t process_uuid(uint32_t process)
{
    return mix(((uint64_t)process << 8) + 1);
}

/** Of a process of the host, not of a group of a GPU's rows. */
static bool has_process(const struct lac_model *model, const struct lac_track *track)
{
    return track->process < model->process_count && !model->processes[track->process].is_gpu;
}

static bool is_thread(const struct lac_model *model, const struct lac_track *track)
{
    return has_process(model, track) &&
           (track->kind == LAC_TRACK_THREAD || track->kind == LAC_TRACK_MARKS);
}

/** Marks share the row of their thread; an overlap gets a row of its own. */
static uint64_t track_uuid(const struct lac_model *model, uint32_t t, size_t row)
{
    const struct lac_track *track = &model->tracks[t];
    const uint64_t own =
        is_thread(model, track)
            ? mix(process_uuid(track->process) + 2 * ((uint64_t)track->id_text + 1)) ^
                  ((uint64_t)track->tid << 1)
            : mix(((uint64_t)t << 8) + 2);
    return row == 0 ? own : mix(own + row);
}

static int64_t pid_of(const struct lac_model *model, uint32_t process)
{
    const int64_t pid = process < model->process_count ? model->processes[process].pid : -1;
    return pid >= 0 && pid < MADE_UP_ID ? pid : (int64_t)MADE_UP_ID + process;
}

static int64_t tid_of(const struct lac_track *track)
{
    return track->tid >= 0 && track->tid < MADE_UP_ID ? track->tid
                                                      : (int64_t)MADE_UP_ID + track->id_text;
}

static const char *track_name(struct perfetto *p, uint32_t t)
{
    return lac_redact_track(p->source->redactor, p->source->model, t);
}

static void put_processes(struct perfetto *p)
{
    const struct lac_model *model = p->source->model;
    for (uint32_t i = 0; i < model->process_count; i++) {
        if (model->processes[i].is_gpu) {
            continue;
        }
        lac_proto_int(&p->note, 1, pid_of(model, i));
        lac_proto_text(&p->note, 6,
                       lac_redact_process(p->source->redactor,
                                          lac_model_str(model, model->processes[i].name)));
        lac_proto_uint(&p->event, TRACK_UUID, process_uuid(i));
        lac_proto_message(&p->event, TRACK_PROCESS, &p->note);
        lac_proto_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->event);
        put_packet(p);
    }
}

static void put_track(struct perfetto *p, uint32_t t, size_t row)
{
    const struct lac_model *model = p->source->model;
    const struct lac_track *track = &model->tracks[t];
    lac_proto_uint(&p->event, TRACK_UUID, track_uuid(model, t, row));
    if (is_thread(model, track) && row == 0) {
        lac_proto_int(&p->note, 1, pid_of(model, track->process));
        lac_proto_int(&p->note, 2, tid_of(track));
        if (track->kind == LAC_TRACK_THREAD) {
            lac_proto_text(&p->note, 5, track_name(p, t));
        }
        lac_proto_message(&p->event, TRACK_THREAD, &p->note);
    } else {
        if (has_process(model, track)) {
            lac_proto_uint(&p->event, TRACK_PARENT, process_uuid(track->process));
        }
        lac_proto_text(&p->event, TRACK_NAME, track_name(p, t));
    }
    if (track->kind == LAC_TRACK_COUNTER) {
        lac_proto_message(&p->event, TRACK_COUNTER, &p->note);
    }
    lac_proto_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->event);
    put_packet(p);
}

/* -- rows: slices that overlap without lying inside of each other need one each ----------------- */

static void end_slice(struct perfetto *p, uint32_t t, size_t row)
{
    struct open_row *open = &p->rows[row];
    lac_proto_uint(&p->event, EVENT_TYPE, TYPE_END);
    lac_proto_uint(&p->event, EVENT_TRACK, track_uuid(p->source->model, t, row));
    lac_proto_int(&p->packet, PACKET_TIMESTAMP, open->end_ns[--open->depth]);
    lac_proto_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
    put_packet(p);
}

/** The row for a slice; ends what is over by then. @param has_ends render stages have none
 *  @return SIZE_MAX without memory */
static size_t row_of(struct perfetto *p, uint32_t t, int64_t start_ns, int64_t end_ns,
                     bool has_ends)
{
    size_t row = 0;
    for (; row < p->row_count; row++) {
        struct open_row *open = &p->rows[row];
        while (open->depth > 0 && open->end_ns[open->depth - 1] <= start_ns) {
            if (has_ends) {
                end_slice(p, t, row);
            } else {
                open->depth--;
            }
        }
        if (open->depth == 0 || open->end_ns[open->depth - 1] >= end_ns) {
            break;
        }
    }
    if (row == p->row_count) {
        if (row == p->row_capacity) {
            const size_t capacity = row == 0 ? 16 : 2 * row;
            void *more = realloc(p->rows, capacity * sizeof(*p->rows));
            if (more == NULL) {
                fail(p, LAC_ERR_NOMEM);
                return SIZE_MAX;
            }
            p->rows = more;
            memset(p->rows + row, 0, (capacity - row) * sizeof(*p->rows));
            p->row_capacity = capacity;
        }
        p->row_count++;
        if (has_ends) {
            put_track(p, t, row);
        }
    }
    struct open_row *open = &p->rows[row];
    if (open->depth == open->capacity) {
        const size_t capacity = open->depth == 0 ? 16 : 2 * open->depth;
        int64_t *more = realloc(open->end_ns, capacity * sizeof(*more));
        if (more == NULL) {
            fail(p, LAC_ERR_NOMEM);
            return SIZE_MAX;
        }
        open->end_ns = more;
        open->capacity = capacity;
    }
    open->end_ns[open->depth++] = end_ns;
    return row;
}

/** A track is written: the next one begins without rows, but with their memory. */
static void end_rows(struct perfetto *p, uint32_t t, bool has_ends)
{
    for (size_t row = 0; row < p->row_count; row++) {
        while (has_ends && p->rows[row].depth > 0 && p->out->buffer.status == LAC_OK) {
            end_slice(p, t, row);
        }
        p->rows[row].depth = 0;
    }
    p->row_count = 0;
}

/* -- slices ------------------------------------------------------------------------------------ */

/** The text of a JSON string without its escapes but for those of rare characters, which stay. */
static void plain_text(struct lac_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const bool is_escape = text[i] == '\\' && i + 1 < length;
        const char next = is_escape ? text[i + 1] : '\0';
        if (next == '"' || next == '\\' || next == '/') {
            i++;
        } else if (next == 'n' || next == 't') {
            lac_buffer_add(out, next == 'n' ? "\n" : "\t", 1);
            i++;
            continue;
        }
        lac_buffer_add(out, &text[i], 1);
    }
}

/** One argument as an annotation, or as a name and a value of a render stage. */
static void put_argument(struct perfetto *p, const struct lac_json_member *member, bool is_stage)
{
    char key[256];
    const size_t key_length =
        member->key_length < sizeof(key) ? member->key_length : sizeof(key) - 1;
    memcpy(key, member->key, key_length);
    key[key_length] = '\0';
    const char *value = member->value;
    const size_t length = member->value_length;
    const bool is_text = length >= 2 && value[0] == '"';
    const bool is_number = value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
    const bool is_whole = is_number && length < 19 && memchr(value, '.', length) == NULL &&
                          memchr(value, 'e', length) == NULL && memchr(value, 'E', length) == NULL;
    if (is_text) {
        plain_text(&p->entry, value + 1, length - 2);
    } else {
        lac_buffer_add(&p->entry, value, length);
    }
    if (is_stage) {
        lac_proto_text(&p->note, 1, key);
        lac_proto_message(&p->note, 2, &p->entry);
        lac_proto_message(&p->event, STAGE_EXTRA, &p->note);
        return;
    }
    struct lac_buffer text = p->entry;
    p->entry = (struct lac_buffer){.bytes = NULL};
    lac_proto_uint(&p->note, NOTE_NAME_IID, intern(p, INTERNED_ANNOTATION_NAMES, key, -1));
    if (is_whole) {
        lac_proto_int(&p->note, NOTE_INT, strtoll(text.bytes, NULL, 10));
    } else if (is_number) {
        lac_proto_double(&p->note, NOTE_DOUBLE, strtod(text.bytes, NULL));
    } else if (value[0] == 't' || value[0] == 'f') {
        lac_proto_uint(&p->note, NOTE_BOOL, value[0] == 't');
    } else if (text.size_bytes >= LONG_TEXT_BYTES) { /* call stacks come again and again */
        lac_proto_uint(&p->note, NOTE_TEXT_IID,
                       intern(p, INTERNED_ANNOTATION_TEXTS, text.bytes, -1));
    } else {
        lac_proto_message(&p->note, NOTE_TEXT, &text);
    }
    lac_proto_message(&p->event, EVENT_ANNOTATION, &p->note);
    lac_buffer_done(&p->entry);
    text.size_bytes = 0;
    p->entry = text;
}

static void put_arguments(struct perfetto *p, const struct lac_track *track, uint64_t slice,
                          bool is_stage)
{
    struct lac_json_member member;
    p->args.size_bytes = 0;
    lac_json_init_form(&p->row.json, &p->args, LAC_JSON_DOCUMENT);
    lac_json_open(&p->row.json, NULL, '{');
    lac_slice_json_args(&p->row, track, slice);
    lac_json_close(&p->row.json, '}');
    fail(p, p->args.status);
    struct lac_json_members outer = {p->args.bytes, p->args.bytes + p->args.size_bytes};
    if (p->args.status || !lac_json_member_next(&outer, &member)) {
        return;
    }
    struct lac_json_members members = {member.value, member.value + member.value_length};
    while (lac_json_member_next(&members, &member)) {
        put_argument(p, &member, is_stage);
    }
}

/** An arrow's number at both of its ends. */
static void put_flows(struct perfetto *p, uint64_t slice)
{
    const struct lac_model *model = p->source->model;
    while (p->flow < model->flow_count && model->flows[p->flow].src < slice) {
        p->flow++;
    }
    for (uint64_t f = p->flow; f < model->flow_count && model->flows[f].src == slice; f++) {
        lac_proto_fixed64(&p->event, EVENT_FLOW, mix(f));
    }
}

static void put_event(struct perfetto *p, uint32_t t, uint64_t slice)
{
    const struct lac_model *model = p->source->model;
    const struct lac_track *track = &model->tracks[t];
    const int64_t start_ns = model->slices.start_ns[slice];
    const bool is_mark = track->kind == LAC_TRACK_MARKS;
    const size_t row =
        is_mark ? 0 : row_of(p, t, start_ns, start_ns + model->slices.dur_ns[slice], true);
    struct lac_copy_name room;
    if (row == SIZE_MAX) {
        return;
    }
    lac_proto_uint(&p->event, EVENT_TYPE, is_mark ? TYPE_INSTANT : TYPE_BEGIN);
    lac_proto_uint(&p->event, EVENT_TRACK, track_uuid(model, t, row));
    lac_proto_uint(&p->event, EVENT_NAME_IID,
                   intern(p, INTERNED_EVENT_NAMES, lac_slice_json_name(&p->row, slice, &room), -1));
    lac_proto_uint(
        &p->event, EVENT_CATEGORY_IID,
        intern(p, INTERNED_CATEGORIES, lac_slice_category(model->slices.kind[slice]), -1));
    put_flows(p, slice);
    put_arguments(p, track, slice, false);
    lac_proto_int(&p->packet, PACKET_TIMESTAMP, start_ns);
    lac_proto_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
    put_packet(p);
}

/** Work of a GPU. Perfetto has a row for each queue of each GPU. */
static void put_stage(struct perfetto *p, uint32_t t, uint64_t slice)
{
    const struct lac_model *model = p->source->model;
    const struct lac_track *track = &model->tracks[t];
    const int64_t start_ns = model->slices.start_ns[slice];
    const int64_t dur_ns = model->slices.dur_ns[slice];
    const size_t row = row_of(p, t, start_ns, start_ns + dur_ns, false);
    struct lac_copy_name room;
    char queue[512], further[32] = "";
    if (row == SIZE_MAX) {
        return;
    }
    if (row > 0) {
        (void)snprintf(further, sizeof(further), " (%zu)", row + 1);
    }
    if (track->name == 0 && track->tid >= 0) {
        (void)snprintf(queue, sizeof(queue), "stream %lld%s", (long long)track->tid, further);
    } else {
        (void)snprintf(queue, sizeof(queue), "%.400s%s", track_name(p, t), further);
    }
    lac_proto_uint(&p->event, STAGE_EVENT_ID, slice + 1);
    lac_proto_int(&p->event, STAGE_DURATION, dur_ns);
    lac_proto_uint(&p->event, STAGE_QUEUE_IID,
                   intern(p, INTERNED_GPU_SPECIFICATIONS, queue, CATEGORY_OTHER));
    lac_proto_uint(&p->event, STAGE_STAGE_IID,
                   intern(p, INTERNED_GPU_SPECIFICATIONS,
                          lac_slice_json_name(&p->row, slice, &room), CATEGORY_COMPUTE));
    lac_proto_uint(&p->event, STAGE_CONTEXT, CONTEXT_IID);
    lac_proto_int(&p->event, STAGE_GPU, track->device >= 0 ? track->device : 0);
    put_arguments(p, track, slice, true);
    lac_proto_int(&p->packet, PACKET_TIMESTAMP, start_ns);
    lac_proto_message(&p->packet, PACKET_RENDER_STAGE, &p->event);
    put_packet(p);
}

static void put_samples(struct perfetto *p, uint32_t t)
{
    const struct lac_model *model = p->source->model;
    const struct lac_track *track = &model->tracks[t];
    put_track(p, t, 0);
    for (uint64_t s = track->first; model->sample_value != NULL && s < track->first + track->count;
         s++) {
        if (isfinite(model->sample_value[s])) {
            lac_proto_uint(&p->event, EVENT_TYPE, TYPE_COUNTER);
            lac_proto_uint(&p->event, EVENT_TRACK, track_uuid(model, t, 0));
            lac_proto_double(&p->event, EVENT_DOUBLE_COUNTER, model->sample_value[s]);
            lac_proto_int(&p->packet, PACKET_TIMESTAMP, model->sample_ts_ns[s]);
            lac_proto_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
            put_packet(p);
        }
    }
}

/* -- the whole --------------------------------------------------------------------------------- */

/** Where time 0 is, and in what kind of context the GPU worked. */
static void put_head(struct perfetto *p)
{
    const struct lac_model *model = p->source->model;
    const uint64_t clocks[2][2] = {{CLOCK_BOOTTIME, 0},
                                   {CLOCK_REALTIME, (uint64_t)model->info.t0_ns}};
    for (int i = 0; i < 2; i++) {
        lac_proto_uint(&p->note, 1, clocks[i][0]);
        lac_proto_uint(&p->note, 2, clocks[i][1]);
        lac_proto_message(&p->event, 1, &p->note);
    }
    lac_proto_message(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->event);
    bool is_amd = false;
    uint32_t process = 0;
    for (uint32_t d = 0; d < model->device_count; d++) {
        is_amd = is_amd || strstr(lac_model_str(model, model->devices[d].name), "AMD") != NULL;
    }
    while (process < model->process_count && model->processes[process].is_gpu) {
        process++;
    }
    lac_proto_uint(&p->entry, 1, CONTEXT_IID);
    lac_proto_int(&p->entry, 2, pid_of(model, process));
    lac_proto_uint(&p->entry, 3, is_amd ? API_HIP : API_CUDA);
    lac_proto_message(&p->interned, INTERNED_CONTEXTS, &p->entry);
    lac_proto_message(&p->packet, PACKET_INTERNED_DATA, &p->interned);
    lac_proto_uint(&p->packet, PACKET_SEQUENCE_ID, 1);
    lac_proto_uint(&p->packet, PACKET_SEQUENCE_FLAGS, FLAG_CLEARED);
    lac_proto_message(&p->out->buffer, TRACE_PACKET, &p->packet);
}

static void put_slices(struct perfetto *p, uint32_t t)
{
    const struct lac_model *model = p->source->model;
    const struct lac_track *track = &model->tracks[t];
    const bool is_stream = track->kind == LAC_TRACK_STREAM;
    if (track->kind == LAC_TRACK_MARKS && track->count > 0) {
        put_track(p, t, 0);
    }
    for (uint64_t s = track->first; s < track->first + track->count && !p->out->buffer.status;
         s++) {
        if (is_stream) {
            put_stage(p, t, s);
        } else {
            put_event(p, t, s);
        }
    }
    end_rows(p, t, !is_stream);
}

static void done(struct perfetto *p)
{
    struct lac_buffer *const buffers[] = {&p->args, &p->packet,   &p->event,
                                          &p->note, &p->interned, &p->entry};
    for (size_t i = 0; i < LAC_COUNT_OF(buffers); i++) {
        lac_buffer_done(buffers[i]);
    }
    for (int i = 0; i < INTERNED_LISTS; i++) {
        lac_strings_done(&p->iids[i]);
    }
    for (size_t i = 0; i < p->row_capacity; i++) {
        free(p->rows[i].end_ns);
    }
    free(p->rows);
    lac_slice_json_done(&p->row);
}

void lac_export_perfetto(struct lac_export_out *out, const struct lac_report_source *source)
{
    assert(out != NULL && source != NULL);
    static const uint32_t lists[] = {INTERNED_CATEGORIES, INTERNED_EVENT_NAMES,
                                     INTERNED_ANNOTATION_NAMES, INTERNED_GPU_SPECIFICATIONS,
                                     INTERNED_ANNOTATION_TEXTS};
    struct perfetto perfetto = {.out = out, .source = source, .row = {.source = source}};
    for (size_t i = 0; i < LAC_COUNT_OF(lists); i++) {
        fail(&perfetto, lac_strings_init(&perfetto.iids[lists[i]]));
    }
    if (out->buffer.status == LAC_OK) {
        put_head(&perfetto);
        put_processes(&perfetto);
    }
    for (uint32_t t = 0; t < source->model->track_count && out->buffer.status == LAC_OK; t++) {
        if (source->model->tracks[t].kind == LAC_TRACK_COUNTER) {
            put_samples(&perfetto, t);
        } else {
            put_slices(&perfetto, t);
        }
    }
    done(&perfetto);
}
