#include "analysis/import/spool/spool_samples.h"

#include "analysis/import/spool/spool_events.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "lacuna/spool.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 6, FIELD_BYTES = 160, SERIES_TRACKS_MAX = 65536 };

/* Fields of a series, in order. */
enum { PID, PROCESS_NAME, TID, THREAD_NAME, WHAT, UNIT };

struct series {
    uint32_t track; /* LAC_NONE: not made yet */
    bool bad;
};

struct lac_spool_samples {
    struct lac_spool_process *process;
    struct series *series; /* by spool id of the name */
    uint32_t series_count;
    uint32_t track_count;
    bool has_time;
    bool is_outside; /* the time of the values that come, of the recording */
    int64_t now_ns;
    int64_t before_ns; /* time of the round before; now_ns when there is none */
};

static struct lac_strings *strings_of(const struct lac_spool_samples *samples)
{
    return &lac_builder_model(samples->process->builder)->strings;
}

struct lac_spool_samples *lac_spool_samples_open(struct lac_spool_process *process)
{
    struct lac_spool_samples *const samples = calloc(1, sizeof(*samples));

    if (samples == NULL) {
        return NULL;
    }
    samples->process = process;
    samples->series_count = process->string_count;
    samples->series = calloc((size_t)process->string_count + 1, sizeof(*samples->series));
    if (samples->series == NULL) {
        free(samples);
        return NULL;
    }
    for (uint32_t i = 0; i < samples->series_count; i++) {
        samples->series[i].track = LAC_NONE;
    }
    return samples;
}

void lac_spool_samples_close(struct lac_spool_samples *samples)
{
    if (samples != NULL) {
        free(samples->series);
        free(samples);
    }
}

static bool split(const char *text, char fields[FIELDS][FIELD_BYTES])
{
    int field = 0;
    size_t used = 0;

    for (const char *c = text; *c != '\0'; c++) {
        if (*c == LAC_SERIES_SEPARATOR) {
            fields[field++][used] = '\0';
            used = 0;
            if (field == FIELDS) {
                return false;
            }
        } else if (used + 1 < FIELD_BYTES) {
            fields[field][used++] = *c;
        }
    }
    fields[field][used] = '\0';
    return field == FIELDS - 1 && fields[WHAT][0] != '\0';
}

/* The process that a series belongs to; one of its own for what concerns the host. */
static enum lac_status find_process(struct lac_spool_samples *samples,
                                    char fields[FIELDS][FIELD_BYTES], uint32_t *ret_process)
{
    struct lac_builder *const builder = samples->process->builder;
    const bool is_host = fields[PID][0] == '\0';
    char *end = NULL;
    const int64_t pid = is_host ? -1 : strtoll(fields[PID], &end, 10);
    const char *const id = is_host ? "host" : fields[PID];
    const char *const name = is_host ? "host" : fields[PROCESS_NAME];
    uint32_t id_text;
    uint32_t name_id;
    enum lac_status status = lac_spool_intern(strings_of(samples), id, strlen(id), &id_text);

    if (status == LAC_OK) {
        status = lac_spool_intern(strings_of(samples), name, strlen(name), &name_id);
    }
    if (status == LAC_OK) {
        status = lac_builder_process(builder, id_text, pid, ret_process);
    }
    if (status == LAC_OK && lac_builder_process_at(builder, *ret_process)->name == 0) {
        lac_builder_process_at(builder, *ret_process)->name = name_id;
    }
    return status;
}

static enum lac_status make_track(struct lac_spool_samples *samples, uint32_t name,
                                  struct series *series)
{
    char fields[FIELDS][FIELD_BYTES] = {{0}};
    char text[FIELD_BYTES * 4];
    uint32_t process;
    uint32_t id;
    enum lac_status status;
    int length;

    if (samples->track_count >= SERIES_TRACKS_MAX ||
        !split(lac_strings_get(strings_of(samples), name), fields)) {
        series->bad = true;
        return LAC_OK;
    }
    status = find_process(samples, fields, &process);
    length = fields[TID][0] != '\0'
                 ? snprintf(text, sizeof(text), "%s %s: %s (%s)", fields[THREAD_NAME], fields[TID],
                            fields[WHAT], fields[UNIT])
                 : snprintf(text, sizeof(text), "%s (%s)", fields[WHAT], fields[UNIT]);
    if (status == LAC_OK) {
        status = lac_spool_intern(strings_of(samples), text, (size_t)length, &id);
    }
    if (status == LAC_OK) {
        status = lac_builder_track(samples->process->builder, LAC_TRACK_COUNTER, process, id, -1,
                                   &series->track);
    }
    if (status == LAC_OK) {
        const bool is_gpu = strncmp(fields[WHAT], "GPU ", 4) == 0;

        lac_builder_track_at(samples->process->builder, series->track)->name = id;
        lac_builder_track_at(samples->process->builder, series->track)->device =
            is_gpu ? strtoll(fields[WHAT] + 4, NULL, 10) : -1;
        samples->track_count++;
        /* a thread's begins when it is no longer nothing: until the round before it was */
        if (!is_gpu && samples->before_ns < samples->now_ns) {
            status =
                lac_builder_sample(samples->process->builder, series->track, samples->before_ns, 0);
        }
    }
    return status;
}

static enum lac_status on_value(struct lac_spool_samples *samples, const struct lac_sample *record)
{
    const uint32_t name = record->series < samples->process->string_count
                              ? samples->process->string_of_id[record->series]
                              : 0;
    enum lac_status status = LAC_OK;
    struct series *series;
    double value;

    memcpy(&value, &record->bits, sizeof(value));
    if (name == 0 || !isfinite(value)) {
        samples->process->missing_names++;
        return LAC_OK;
    }
    if (samples->is_outside) {
        samples->process->outside++;
        return LAC_OK;
    }
    if (!samples->has_time) {
        samples->process->unknown_events++;
        return LAC_OK;
    }
    series = &samples->series[record->series];
    if (series->track == LAC_NONE && !series->bad) {
        status = make_track(samples, name, series);
    }
    if (status != LAC_OK || series->bad) {
        samples->process->unknown_events += series->bad;
        return status;
    }
    lac_builder_model(samples->process->builder)->info.event_count++;
    return lac_builder_sample(samples->process->builder, series->track, samples->now_ns, value);
}

enum lac_status lac_spool_samples_read(struct lac_spool_samples *samples,
                                       const struct lac_sample *records, size_t count)
{
    enum lac_status status = LAC_OK;

    for (size_t i = 0; i < count && records[i].type != 0 && status == LAC_OK; i++) {
        switch (records[i].type) {
        case LAC_SAMPLE_TIME: {
            const int64_t now_ns = lac_spool_ns(records[i].bits) + samples->process->offset_ns;

            samples->is_outside = !lac_spool_is_inside(samples->process, now_ns);
            if (samples->is_outside) {
                break;
            }
            samples->before_ns = samples->has_time ? samples->now_ns : now_ns;
            samples->now_ns = now_ns;
            samples->has_time = true;
            break;
        }
        case LAC_SAMPLE_VALUE:
            status = on_value(samples, &records[i]);
            break;
        case LAC_SAMPLE_SETTING:
            if (records[i].series < samples->process->string_count) {
                lac_spool_settings_add(samples->process->settings, strings_of(samples),
                                       samples->process->string_of_id[records[i].series]);
            }
            break;
        default:
            samples->process->unknown_events++;
        }
    }
    return status;
}
