#include "analysis/import/spool/spool_read.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/import/spool/spool_external.h"
#include "analysis/import/spool/spool_gpu.h"
#include "analysis/import/spool/spool_samples.h"
#include "analysis/import/spool/spool_space.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "lacuna/spool.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES_MAX = 16 << 20, SEGMENTS_MAX = 1 << 20, STRINGS_MAX = 1 << 22 };

static const uint64_t LOST_MAX = (uint64_t)1 << 36;

/* Reads exactly `size_bytes`, or says how the file falls short. */
static enum lac_status read_at(const struct lac_spool_bytes *spool, void *out, size_t size_bytes,
                               uint64_t offset, struct lac_error *reterr)
{
    size_t done = 0;

    while (done < size_bytes) {
        const int64_t got =
            lac_spool_bytes_read(spool, (char *)out + done, size_bytes - done, offset + done);

        if (got < 0) {
            return lac_fail(reterr, LAC_ERR_IO, offset, "cannot read the spool");
        }
        if (got == 0) {
            return lac_fail(reterr, LAC_ERR_CORRUPT, offset + done,
                            "the spool ends inside its header");
        }
        done += (size_t)got;
    }
    return LAC_OK;
}

static enum lac_status read_header(const struct lac_spool_bytes *spool,
                                   struct lac_spool_header *header, struct lac_error *reterr)
{
    enum lac_status status = read_at(spool, header, sizeof(*header), 0, reterr);

    if (status != LAC_OK) {
        return status;
    }
    if (memcmp(header->magic, LAC_SPOOL_MAGIC, sizeof(header->magic)) != 0) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 0, "not a spool: it does not begin with LACSPOOL");
    }
    if (header->endian_mark != LAC_SPOOL_ENDIAN_MARK) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 12, "the spool was written in another byte order");
    }
    if (header->version != LAC_SPOOL_VERSION) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 8, "spool version %u, this program reads %u",
                        header->version, LAC_SPOOL_VERSION);
    }
    if (header->header_bytes != LAC_SPOOL_HEADER_BYTES || header->segment_bytes == 0 ||
        header->segment_bytes % 65536 != 0 || header->segment_bytes > SEGMENT_BYTES_MAX ||
        (header->clock != LAC_SPOOL_CLOCK_MONOTONIC && header->clock != LAC_SPOOL_CLOCK_TSC)) {
        return lac_fail(reterr, LAC_ERR_CORRUPT, 16, "the spool's header is inconsistent");
    }
    if (header->text_bytes > LAC_SPOOL_TEXT_BYTES) {
        header->text_bytes = LAC_SPOOL_TEXT_BYTES;
    }
    header->text[LAC_SPOOL_TEXT_BYTES - 1] = '\0';
    return LAC_OK;
}

/* The value of `key` in the header's text; NULL: it is not there. */
static const char *find_text(const struct lac_spool_header *header, const char *key)
{
    const size_t key_length = strlen(key);

    for (uint32_t at = 0; at < header->text_bytes;) {
        const char *const entry = header->text + at;
        const size_t length = strnlen(entry, header->text_bytes - at);

        if (length > key_length && entry[key_length] == '=' &&
            memcmp(entry, key, key_length) == 0) {
            return entry + key_length + 1;
        }
        at += (uint32_t)length + 1;
    }
    return NULL;
}

/* The same, or "". */
static const char *text_of(const struct lac_spool_header *header, const char *key)
{
    const char *const found = find_text(header, key);

    return found != NULL ? found : "";
}

static void copy_text(const struct lac_spool_header *header, const char *key, char *out,
                      size_t capacity)
{
    const char *const value = text_of(header, key);
    const size_t length = strnlen(value, capacity - 1);

    memcpy(out, value, length);
    out[length] = '\0';
}

static int32_t number_of(const struct lac_spool_header *header, const char *key)
{
    const char *const text = text_of(header, key);
    char *end = NULL;
    const long value = strtol(text, &end, 10);

    return end != text && *end == '\0' && value >= 0 && value < INT32_MAX ? (int32_t)value : -1;
}

/* What the environment says, by who sets it nearest to the process: torchrun and the launchers of
 * DeepSpeed, accelerate and Ray first, then MPI's, which a batch system may have started. */
static void find_rank(const struct lac_spool_header *header, struct lac_spool_info *info)
{
    static const struct {
        const char *rank, *size;
    } keys[] = {
        {"env.RANK", "env.WORLD_SIZE"},
        {"env.OMPI_COMM_WORLD_RANK", "env.OMPI_COMM_WORLD_SIZE"},
        {"env.MV2_COMM_WORLD_RANK", "env.MV2_COMM_WORLD_SIZE"},
        {"env.PMI_RANK", "env.PMI_SIZE"},
        {"env.HOROVOD_RANK", "env.HOROVOD_SIZE"},
        {"env.SLURM_PROCID", "env.SLURM_NTASKS"},
    };

    info->rank = -1;
    info->world_size = -1;
    for (size_t i = 0; i < LAC_COUNT_OF(keys) && info->rank < 0; i++) {
        const int32_t rank = number_of(header, keys[i].rank);
        const int32_t size = number_of(header, keys[i].size);

        info->rank = size > 0 ? rank : -1;
        info->world_size = info->rank >= 0 ? size : -1;
    }
}

static void find_told_rank(const struct lac_spool_header *header, struct lac_spool_info *info)
{
    const uint64_t rank = header->rank & UINT32_MAX;
    const uint64_t world_size = header->rank >> 32;
    const bool is_told = world_size > 1 && world_size < INT32_MAX && rank < world_size;

    info->told_rank = is_told ? (int32_t)rank : -1;
    info->told_world_size = is_told ? (int32_t)world_size : -1;
    info->told_group = is_told ? header->rank_group : 0;
}

/* "pid:start ticks,...": as many as are written as they should be. */
static void find_ancestors(const struct lac_spool_header *header, struct lac_spool_info *info)
{
    const char *at = text_of(header, "ancestors");

    while (info->ancestor_count < LAC_SPOOL_ANCESTORS) {
        char *end = NULL;
        const long pid = strtol(at, &end, 10);
        uint64_t start_ticks;

        if (end == at || *end != ':' || pid <= 0 || pid > INT32_MAX) {
            break;
        }
        at = end + 1;
        start_ticks = strtoull(at, &end, 10);
        if (end == at) {
            break;
        }
        info->ancestors[info->ancestor_count++] =
            (struct lac_spool_ancestor){(int32_t)pid, start_ticks};
        if (*end != ',') {
            break;
        }
        at = end + 1;
    }
}

static int64_t realtime_offset_ns(const struct lac_spool_header *header)
{
    return lac_spool_ns(header->first.realtime_ns) - lac_spool_ns(header->first.monotonic_ns);
}

/* CUDA reads the list up to what is no device. */
static bool hides_gpus(const struct lac_spool_header *header)
{
    const char *const visible = find_text(header, "env.CUDA_VISIBLE_DEVICES");

    return visible != NULL && (visible[0] == '\0' || strncmp(visible, "-1", 2) == 0);
}

static void fill_info(const struct lac_spool_header *header, struct lac_spool_info *info)
{
    *info = (struct lac_spool_info){
        .realtime_offset_ns = realtime_offset_ns(header),
        .made_ns = lac_spool_ns(header->first.realtime_ns),
        .pid = header->pid,
        .parent_pid = header->parent_pid,
        .fork_depth = header->fork_depth,
        .dropped_count = header->dropped_count,
        .start_ticks = header->start_ticks,
        .hides_gpus = hides_gpus(header),
    };
    find_rank(header, info);
    find_told_rank(header, info);
    find_ancestors(header, info);
    memcpy(info->boot_id, header->boot_id, sizeof(info->boot_id));
    copy_text(header, "host", info->host, sizeof(info->host));
    copy_text(header, "comm", info->comm, sizeof(info->comm));
    copy_text(header, "argv", info->argv, sizeof(info->argv));
}

enum lac_status lac_spool_read_info(const struct lac_spool_bytes *spool,
                                    struct lac_spool_info *ret_info, struct lac_error *reterr)
{
    struct lac_spool_header *const header = malloc(sizeof(*header));
    enum lac_status status;

    if (header == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "spool header");
    }
    status = read_header(spool, header, reterr);
    if (status == LAC_OK) {
        fill_info(header, ret_info);
    }
    free(header);
    return status;
}

/* ---- segments */

/* A segment, or the part of one that is one thread's. */
struct segment {
    uint64_t index;
    uint32_t first_event;
    uint32_t event_count;
    int32_t tid;
    uint32_t seq;
    struct lac_sync_point sync;
    char thread_name[16];
    uint32_t thread_name_id; /* of a string of the spool, where thread_name is empty */
    uint32_t gpu_clock;
    uint32_t external_count;
};

struct reader {
    const struct lac_spool_bytes *spool;
    struct lac_spool_header *header;
    struct lac_builder *builder;
    struct segment *events; /* of events, later in order of (tid, seq) */
    size_t event_segment_count;
    size_t event_segment_capacity;
    struct segment *gpu; /* of GPU records */
    size_t gpu_segment_count;
    struct segment *samples;
    size_t sample_segment_count;
    uint32_t *string_of_id; /* spool id -> string id of the model */
    uint32_t string_count;
    struct lac_spool_settings *settings;
    uint8_t *buffer; /* one segment */
    struct lac_error *reterr;
};

static uint64_t offset_of(const struct reader *reader, uint64_t index)
{
    return LAC_SPOOL_SEGMENTS_OFFSET + index * reader->header->segment_bytes;
}

static enum lac_status read_strings(struct reader *reader)
{
    struct lac_strings *const strings = &lac_builder_model(reader->builder)->strings;
    const size_t size_bytes = reader->header->segment_bytes;
    size_t at = LAC_SEGMENT_HEADER_BYTES;

    while (at + sizeof(struct lac_string_record) <= size_bytes) {
        struct lac_string_record record;
        enum lac_status status;

        memcpy(&record, reader->buffer + at, sizeof(record));
        if (record.length == 0) {
            break;
        }
        at += sizeof(record);
        if (record.length > size_bytes - at || record.id == 0 || record.id >= STRINGS_MAX) {
            lac_model_report(lac_builder_model(reader->builder), LAC_REPORT_DROPPED,
                             "bad_name_record", 1, at,
                             "a name's record is damaged; the rest of its segment is not read");
            break;
        }
        if (record.id >= reader->string_count) {
            uint32_t bigger = reader->string_count == 0 ? 1024 : reader->string_count;
            uint32_t *grown;

            while (bigger <= record.id) {
                bigger *= 2;
            }
            grown = realloc(reader->string_of_id, bigger * sizeof(*grown));
            if (grown == NULL) {
                return lac_fail(reader->reterr, LAC_ERR_NOMEM, 0, "names of the spool");
            }
            memset(grown + reader->string_count, 0,
                   (bigger - reader->string_count) * sizeof(*grown));
            reader->string_of_id = grown;
            reader->string_count = bigger;
        }
        status = lac_spool_intern(strings, (const char *)reader->buffer + at, record.length,
                                  &reader->string_of_id[record.id]);
        if (status != LAC_OK) {
            return lac_fail(reader->reterr, status, at, "names of the spool");
        }
        at += (record.length + 7u) & ~7u;
    }
    return LAC_OK;
}

/* ---- events, of one thread after the other */

static enum lac_status add_part(struct reader *reader, const struct segment *part)
{
    if (!LAC_RESERVE(reader->events, reader->event_segment_capacity, reader->event_segment_count,
                     1)) {
        return lac_fail(reader->reterr, LAC_ERR_NOMEM, 0, "spool segments");
    }
    reader->events[reader->event_segment_count++] = *part;
    return LAC_OK;
}

/* The segment whose header is in the buffer, in as many parts as threads wrote it. */
static enum lac_status add_events(struct reader *reader, uint64_t index)
{
    const struct lac_segment_header *const head =
        (const struct lac_segment_header *)(void *)reader->buffer;
    const struct lac_event *const events =
        (const struct lac_event *)(void *)(reader->buffer + LAC_SEGMENT_HEADER_BYTES);
    const uint32_t count = (uint32_t)((reader->header->segment_bytes - LAC_SEGMENT_HEADER_BYTES) /
                                      sizeof(struct lac_event));
    struct segment part = {.index = index,
                           .event_count = count,
                           .tid = head->tid,
                           .seq = head->seq,
                           .sync = head->sync};
    enum lac_status status = LAC_OK;

    memcpy(part.thread_name, head->thread_name, sizeof(part.thread_name) - 1);
    if (head->thread_count > 0) {
        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, index), reader->reterr);
        for (uint32_t i = 0; i + 2 < count && events[i].type != 0 && status == LAC_OK; i++) {
            if (events[i].type != LAC_EVENT_THREAD || events[i + 1].type != LAC_EVENT_SYNC ||
                events[i + 2].type != LAC_EVENT_SYNC_NS) {
                continue;
            }
            part.event_count = i - part.first_event;
            status = part.event_count > 0 ? add_part(reader, &part) : LAC_OK;
            part = (struct segment){
                .index = index,
                .first_event = i + 1,
                .event_count = count - i - 1,
                .tid = (int32_t)(uint32_t)events[i].ts,
                .thread_name_id = events[i].name,
                .sync = {.ticks = events[i + 1].ts, .monotonic_ns = events[i + 2].ts}};
        }
    }
    return status == LAC_OK ? add_part(reader, &part) : status;
}

static const struct lac_event *read_part(struct reader *reader, const struct segment *part,
                                         enum lac_status *ret_status)
{
    *ret_status =
        read_at(reader->spool, reader->buffer, part->event_count * sizeof(struct lac_event),
                offset_of(reader, part->index) + LAC_SEGMENT_HEADER_BYTES +
                    part->first_event * sizeof(struct lac_event),
                reader->reterr);
    return (const struct lac_event *)(void *)reader->buffer;
}

static enum lac_status take_segment(struct reader *reader, uint64_t index)
{
    const struct lac_segment_header *const head =
        (const struct lac_segment_header *)(void *)reader->buffer;
    enum lac_status status = read_at(reader->spool, reader->buffer, LAC_SEGMENT_HEADER_BYTES,
                                     offset_of(reader, index), reader->reterr);

    if (status != LAC_OK) {
        return status;
    }
    if (head->magic != LAC_SEGMENT_MAGIC) {
        return LAC_OK; /* never opened */
    }
    if (head->kind == LAC_SEGMENT_STRINGS) {
        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, index), reader->reterr);
        return status != LAC_OK ? status : read_strings(reader);
    }
    if (head->kind == LAC_SEGMENT_GPU) {
        reader->gpu[reader->gpu_segment_count++] =
            (struct segment){.index = index,
                             .seq = head->seq,
                             .gpu_clock = head->gpu_clock,
                             .external_count = head->external_count};
        return LAC_OK;
    }
    if (head->kind == LAC_SEGMENT_SAMPLES) {
        reader->samples[reader->sample_segment_count++] =
            (struct segment){.index = index, .seq = head->seq};
        return LAC_OK;
    }
    if (head->kind != LAC_SEGMENT_EVENTS) {
        lac_model_report(lac_builder_model(reader->builder), LAC_REPORT_INFO,
                         "segment_not_understood", 1, offset_of(reader, index),
                         "a segment of a kind that this version does not know");
        return LAC_OK;
    }
    return add_events(reader, index);
}

static int by_thread(const void *left, const void *right)
{
    const struct segment *const a = left;
    const struct segment *const b = right;

    if (a->tid != b->tid) {
        return a->tid < b->tid ? -1 : 1;
    }
    /* not by seq alone: an id may come back as another thread, which counts from 0 again */
    int order = LAC_ORDER(a->sync.monotonic_ns, b->sync.monotonic_ns);
    order = order != 0 ? order : LAC_ORDER(a->seq, b->seq);
    order = order != 0 ? order : LAC_ORDER(a->index, b->index);
    return order != 0 ? order : LAC_ORDER(a->first_event, b->first_event);
}

/* The segments of a thread are numbered from 0. */
static bool is_same_thread(const struct segment *before, const struct segment *segment)
{
    return before->tid == segment->tid && segment->seq > before->seq;
}

/* Ticks of one ns, over the longest distance the file offers. */
static double rate_of(const struct reader *reader)
{
    const struct lac_sync_point first = reader->header->first;
    struct lac_sync_point last = first;

    if (reader->header->clock == LAC_SPOOL_CLOCK_MONOTONIC) {
        return 1.0;
    }
    for (size_t i = 0; i < reader->event_segment_count; i++) {
        if (reader->events[i].sync.ticks > last.ticks) {
            last = reader->events[i].sync;
        }
    }
    if (last.ticks <= first.ticks || last.monotonic_ns <= first.monotonic_ns) {
        return 0.0;
    }
    return (double)(last.monotonic_ns - first.monotonic_ns) / (double)(last.ticks - first.ticks);
}

/* A thread may use a domain or category that another one named. Most programs name none. */
static enum lac_status collect_names(struct reader *reader, struct lac_spool_process *process)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0;
         i < reader->event_segment_count && reader->header->named_count > 0 && status == LAC_OK;
         i++) {
        const struct lac_event *const events = read_part(reader, &reader->events[i], &status);

        if (status == LAC_OK) {
            status = lac_spool_names_collect(process, events, reader->events[i].event_count);
        }
    }
    return status;
}

/* Ids come before or after what they belong to. Most programs give none. */
static enum lac_status collect_externals(struct reader *reader, struct lac_spool_process *process)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < reader->gpu_segment_count && status == LAC_OK; i++) {
        if (reader->gpu[i].external_count == 0) {
            continue;
        }
        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, reader->gpu[i].index), reader->reterr);
        if (status == LAC_OK) {
            status = lac_spool_externals_collect(process, reader->buffer + LAC_SEGMENT_HEADER_BYTES,
                                                 reader->header->segment_bytes -
                                                     LAC_SEGMENT_HEADER_BYTES);
        }
    }
    lac_spool_externals_sort(process);
    return status;
}

/* Of a launcher's spool. Its segments lie in the order in which it opened them. */
static enum lac_status read_samples(struct reader *reader, struct lac_spool_process *process)
{
    struct lac_spool_samples *samples;
    enum lac_status status = LAC_OK;

    if (reader->sample_segment_count == 0) {
        return LAC_OK;
    }
    samples = lac_spool_samples_open(process);
    if (samples == NULL) {
        return LAC_ERR_NOMEM;
    }
    for (size_t i = 0; i < reader->sample_segment_count && status == LAC_OK; i++) {
        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, reader->samples[i].index), reader->reterr);
        if (status == LAC_OK) {
            status = lac_spool_samples_read(
                samples,
                (const struct lac_sample *)(void *)(reader->buffer + LAC_SEGMENT_HEADER_BYTES),
                (reader->header->segment_bytes - LAC_SEGMENT_HEADER_BYTES) /
                    sizeof(struct lac_sample));
        }
    }
    lac_spool_samples_close(samples);
    return status;
}

/* What the process is called: one that told its rank by that, too. */
static void name_process(const struct lac_spool_header *header, char *out, size_t capacity)
{
    struct lac_spool_info info;

    copy_text(header, "comm", out, capacity);
    find_told_rank(header, &info);
    if (info.told_rank >= 0) {
        const size_t length = strlen(out);

        (void)snprintf(out + length, capacity - length, " rank %d", (int)info.told_rank);
    }
}

/* When anything can have been. The file is made before the first event is taken down, and what ends
 * the recording copies it behind the last one. The margin is for clocks that are read apart: that
 * of the GPU where it is the time of day, which may be set, and ticks beyond the last point where
 * both clocks are known. */
static void bound_times(const struct lac_spool_header *header, struct lac_spool_process *process)
{
    static const int64_t MARGIN_NS = 60000000000;
    const int64_t begin_ns = lac_spool_ns(header->first.monotonic_ns);
    const int64_t ended_ns = lac_spool_ns(header->ended_ns);

    process->begin_ns = begin_ns - MARGIN_NS + process->offset_ns;
    process->end_ns = ended_ns >= begin_ns && ended_ns > 0
                          ? ended_ns + MARGIN_NS + process->offset_ns
                          : INT64_MAX;
}

static enum lac_status read_threads(struct reader *reader, int64_t offset_ns)
{
    char name[64];
    struct lac_spool_thread *thread = NULL;
    struct lac_spool_process process = {.builder = reader->builder,
                                        .string_of_id = reader->string_of_id,
                                        .string_count = reader->string_count,
                                        .settings = reader->settings,
                                        .corr_base = reader->settings->corr_end,
                                        .offset_ns = offset_ns,
                                        .ns_per_tick = rate_of(reader),
                                        .ticks_are_ns =
                                            reader->header->clock == LAC_SPOOL_CLOCK_MONOTONIC};
    enum lac_status status = LAC_OK;

    bound_times(reader->header, &process);
    /* a launcher, which records samples and nothing else, is no process of the job */
    if (reader->sample_segment_count == 0 ||
        reader->event_segment_count + reader->gpu_segment_count > 0) {
        name_process(reader->header, name, sizeof(name));
        status = lac_spool_process_open(&process, reader->header->pid, name,
                                        text_of(reader->header, "argv"));
    }

    if (status == LAC_OK) {
        status = collect_names(reader, &process);
    }
    if (status == LAC_OK) {
        status = collect_externals(reader, &process);
    }
    for (size_t i = 0; i < reader->event_segment_count && status == LAC_OK; i++) {
        const struct segment *const segment = &reader->events[i];
        const struct segment *const next =
            i + 1 < reader->event_segment_count && is_same_thread(segment, &reader->events[i + 1])
                ? &reader->events[i + 1]
                : NULL;
        const struct lac_event *events = NULL;

        if (thread == NULL) {
            status = lac_spool_thread_open(&process, segment->tid, segment->thread_name,
                                           segment->thread_name_id, &thread);
        }
        if (status == LAC_OK) {
            events = read_part(reader, segment, &status);
        }
        if (status == LAC_OK) {
            status = lac_spool_thread_events(thread, events, segment->event_count, &segment->sync,
                                             next != NULL ? &next->sync : NULL);
        }
        if (status == LAC_OK && next == NULL) {
            status = lac_spool_thread_close(thread);
            thread = NULL;
        }
    }
    lac_spool_thread_destroy(thread);
    for (size_t i = 0; i < reader->gpu_segment_count && status == LAC_OK; i++) {
        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, reader->gpu[i].index), reader->reterr);
        if (status == LAC_OK) {
            status =
                lac_spool_gpu_records(&process, reader->buffer + LAC_SEGMENT_HEADER_BYTES,
                                      reader->header->segment_bytes - LAC_SEGMENT_HEADER_BYTES,
                                      reader->gpu[i].gpu_clock, realtime_offset_ns(reader->header));
        }
    }
    if (status == LAC_OK) {
        status = read_samples(reader, &process);
    }
    return lac_spool_process_close(&process, status);
}

/* A count of the header, which anybody may have written: an event a ns for two minutes at most, so
 * that all spools of a recording sum to less than 2^53. */
static uint64_t count_of(uint64_t count)
{
    return count < LOST_MAX ? count : LOST_MAX;
}

/* What the recorder could not keep. */
static void report_losses(struct lac_model *model, const struct lac_spool_header *header)
{
    const uint64_t dropped = count_of(header->dropped_count);
    const uint64_t no_space =
        header->dropped_disk_count < dropped ? header->dropped_disk_count : dropped;

    if (no_space > 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "not_recorded", no_space, 0,
                         "events that the recorder could not keep (no space, or the size limit)");
    }
    if (dropped > no_space) {
        lac_model_report(model, LAC_REPORT_DROPPED, "not_kept", dropped - no_space, 0,
                         "events that the recorder could not keep (GPU operations that had not "
                         "ended, or that CUPTI dropped; very deep ranges)");
    }
    if (header->gpu_buffers_out > 0) {
        lac_model_report(
            model, LAC_REPORT_DROPPED, "gpu_buffers_lost", count_of(header->gpu_buffers_out), 0,
            "buffers of CUPTI that did not come back, as of a process that was killed, "
            "with up to a thousand launches each");
    }
    if (header->lost_process_count > 0) {
        lac_model_report(model, LAC_REPORT_DROPPED, "processes_not_recorded",
                         count_of(header->lost_process_count), 0,
                         "forked processes that could not write into the folder of the recording: "
                         "another user or root, or no space");
    }
    if (header->dropped_string_count > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "names_not_recorded",
                         count_of(header->dropped_string_count), 0,
                         "events whose name did not fit: shown without one");
    }
    if (header->cut_name_count > 0) {
        lac_model_report(model, LAC_REPORT_INFO, "names_cut", count_of(header->cut_name_count), 0,
                         "events whose name is longer than 4096 bytes: its beginning is kept, of a "
                         "kernel's also the end");
    }
}

/* Settings among the samples, without the samples. */
static enum lac_status read_host(struct reader *reader)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < reader->sample_segment_count && status == LAC_OK; i++) {
        const struct lac_sample *const records =
            (const struct lac_sample *)(void *)(reader->buffer + LAC_SEGMENT_HEADER_BYTES);
        const size_t count =
            (reader->header->segment_bytes - LAC_SEGMENT_HEADER_BYTES) / sizeof(*records);

        status = read_at(reader->spool, reader->buffer, reader->header->segment_bytes,
                         offset_of(reader, reader->samples[i].index), reader->reterr);
        for (size_t k = 0; status == LAC_OK && k < count && records[k].type != 0; k++) {
            if (records[k].type == LAC_SAMPLE_SETTING && records[k].series < reader->string_count) {
                lac_spool_settings_add(reader->settings,
                                       &lac_builder_model(reader->builder)->strings,
                                       reader->string_of_id[records[k].series]);
            }
        }
    }
    return status;
}

static enum lac_status read_all(struct reader *reader, int64_t realtime_offset_ns)
{
    if (reader->event_segment_count > 0) {
        qsort(reader->events, reader->event_segment_count, sizeof(*reader->events), by_thread);
    }
    report_losses(lac_builder_model(reader->builder), reader->header);
    return read_threads(reader, realtime_offset_ns);
}

static enum lac_status read_spool(struct reader *reader, bool only_host, int64_t realtime_offset_ns)
{
    struct lac_error *const reterr = reader->reterr;
    const int64_t size_bytes = lac_spool_bytes_size(reader->spool);
    uint64_t segment_count = 0;
    enum lac_status status = LAC_ERR_NOMEM;

    reader->header = malloc(sizeof(*reader->header));
    if (reader->header == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "spool header");
    }
    status = read_header(reader->spool, reader->header, reterr);
    if (status != LAC_OK) {
        goto done;
    }
    if (size_bytes < 0) {
        status = lac_fail(reterr, LAC_ERR_IO, 0, "cannot read the spool");
        goto done;
    }
    if ((uint64_t)size_bytes > LAC_SPOOL_SEGMENTS_OFFSET) {
        segment_count =
            ((uint64_t)size_bytes - LAC_SPOOL_SEGMENTS_OFFSET) / reader->header->segment_bytes;
    }
    if (segment_count > SEGMENTS_MAX) {
        status =
            lac_fail(reterr, LAC_ERR_LIMIT, 0, "the spool has more than %d segments", SEGMENTS_MAX);
        goto done;
    }
    reader->buffer = malloc(reader->header->segment_bytes);
    reader->gpu = calloc(segment_count + 1, sizeof(*reader->gpu));
    reader->samples = calloc(segment_count + 1, sizeof(*reader->samples));
    if (reader->buffer == NULL || reader->gpu == NULL || reader->samples == NULL) {
        status = lac_fail(reterr, LAC_ERR_NOMEM, 0, "spool segments");
        goto done;
    }
    for (uint64_t i = 0; i < segment_count && status == LAC_OK; i++) {
        status = take_segment(reader, i);
    }
    if (status == LAC_OK) {
        status = only_host ? read_host(reader) : read_all(reader, realtime_offset_ns);
    }
done:
    free(reader->header);
    free(reader->buffer);
    free(reader->events);
    free(reader->gpu);
    free(reader->samples);
    free(reader->string_of_id);
    return status;
}

enum lac_status lac_spool_read(const struct lac_spool_bytes *spool, struct lac_builder *builder,
                               int64_t realtime_offset_ns, struct lac_spool_settings *settings,
                               struct lac_error *reterr)
{
    struct reader reader = {
        .spool = spool, .builder = builder, .settings = settings, .reterr = reterr};

    return read_spool(&reader, false, realtime_offset_ns);
}

enum lac_status lac_spool_read_host(const struct lac_spool_bytes *spool,
                                    struct lac_builder *builder,
                                    struct lac_spool_settings *settings, struct lac_error *reterr)
{
    struct reader reader = {
        .spool = spool, .builder = builder, .settings = settings, .reterr = reterr};

    return read_spool(&reader, true, 0);
}
