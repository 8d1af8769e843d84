/*
 * What `perf stat` writes: as text, with a separator (-x,) or as JSON (-j). Each event is a counter:
 * over time with -I, else its total from the start to the end of the run. Counts of single CPUs or
 * sockets (-A, --per-socket) are counters of their own.
 *
 * Source: man perf-stat, "CSV FORMAT" and "JSON FORMAT"
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/json_plain.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIELDS_MAX = 16, FIELD_BYTES = 96, TOTALS_MAX = 1024, LINE_MAX = 4096 };

struct total {
    uint32_t track;
    double value;
};

struct reader {
    struct lac_profile profile;
    struct total totals[TOTALS_MAX]; /**< of a run without -I */
    uint32_t total_count;
    uint32_t process;
    double elapsed_s;
    int64_t started_ns; /**< 0: not told */
    bool is_text;       /**< else with separators, or JSON */
    bool has_samples;
};

/** One value of one event. */
struct value {
    double at_s; /**< negative: none */
    double number;
    char unit[FIELD_BYTES], event[FIELD_BYTES], place[FIELD_BYTES];
};

static bool begins(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

bool lac_perf_stat_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const uint8_t *const newline = memchr(head, '\n', size_bytes);
    const size_t first = newline != NULL ? (size_t)(newline - head) : size_bytes;
    static const char *const events[] = {",task-clock", ",cycles", ",instructions", ",cpu-clock",
                                         ",context-switches"};
    if (begins((const char *)head, size_bytes, "# started on ")) {
        return true;
    }
    if (lac_document_has(head, size_bytes, "Performance counter stats for") ||
        (size_bytes > 0 && head[0] == '{' && lac_document_has(head, first, "\"counter-value\""))) {
        return memchr(head, '\0', size_bytes) == NULL;
    }
    for (size_t i = 0; i < LAC_COUNT_OF(events) && first < LINE_MAX; i++) {
        if (lac_document_has(head, first, events[i]) && head[0] != '{' && head[0] != '"') {
            size_t commas = 0;
            for (size_t c = 0; c < first; c++) {
                commas += head[c] == ',';
            }
            return commas >= 4 && commas < FIELDS_MAX &&
                   (head[0] <= '9' || head[0] == 'S' || head[0] == 'C');
        }
    }
    return false;
}

/* -- values ------------------------------------------------------------------------------------ */

/* "1,234.5" of text, "1234.5" elsewhere. */
static bool read_number(const char *text, double *ret_number)
{
    char copy[FIELD_BYTES];
    size_t used = 0;
    char *end = NULL;
    for (; *text == ' '; text++) {
    }
    for (; *text != '\0' && used < sizeof(copy) - 1; text++) {
        copy[used] = *text;
        used += *text != ',';
    }
    copy[used] = '\0';
    if (used == 0 || ((copy[0] < '0' || copy[0] > '9') && copy[0] != '-')) {
        return false;
    }
    *ret_number = strtod(copy, &end);
    return *end == '\0' && isfinite(*ret_number) && fabs(*ret_number) < 1e18;
}

static enum lac_status take(struct reader *reader, const struct value *value)
{
    char text[4 * FIELD_BYTES];
    uint32_t name = 0;
    uint32_t track = 0;
    const bool has_unit = value->unit[0] != '\0';
    const bool has_place = value->place[0] != '\0';
    const int length =
        snprintf(text, sizeof(text), "%s%s%s%s%s%s", value->place, has_place ? ": " : "",
                 value->event, has_unit ? " (" : "", value->unit, has_unit ? ")" : "");
    enum lac_status status = lac_stacks_name(reader->profile.stacks, text, (size_t)length, &name);
    status = status == LAC_OK ? lac_builder_track(reader->profile.builder, LAC_TRACK_COUNTER,
                                                  reader->process, name, -1, &track)
                              : status;
    if (status != LAC_OK) {
        return status;
    }
    lac_builder_track_at(reader->profile.builder, track)->name = name;
    reader->profile.model->info.event_count++;
    if (value->at_s >= 0.0) {
        reader->has_samples = true;
        return lac_builder_sample(reader->profile.builder, track,
                                  reader->started_ns + (int64_t)llround(value->at_s * 1e9),
                                  value->number);
    }
    if (reader->total_count < TOTALS_MAX) {
        reader->totals[reader->total_count++] = (struct total){track, value->number};
    } else {
        lac_model_report(reader->profile.model, LAC_REPORT_DROPPED, "too_many_events", 1, 0,
                         "Totals beyond the 1024th were left out.");
    }
    return LAC_OK;
}

static bool is_time(double at_s)
{
    return at_s >= 0.0 && at_s < 1e7;
}

/* -- lines ------------------------------------------------------------------------------------- */

static void copy_field(const char *text, size_t length, char out[FIELD_BYTES])
{
    while (length > 0 && text[0] == ' ') {
        text++;
        length--;
    }
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    length = length < FIELD_BYTES - 1 ? length : FIELD_BYTES - 1;
    memcpy(out, text, length);
    out[length] = '\0';
}

/* "0.10,S0,2,0.97,msec,task-clock,...": time with -I, place and its CPUs where asked for. */
static bool split_line(const char *line, size_t length, struct value *value)
{
    char fields[FIELDS_MAX][FIELD_BYTES];
    const char separator = memchr(line, ',', length) != NULL ? ',' : ';';
    size_t count = 0;
    size_t at = 0;
    const char *begin = line;
    for (const char *c = line; c <= line + length && count < FIELDS_MAX; c++) {
        if (c == line + length || *c == separator) {
            copy_field(begin, (size_t)(c - begin), fields[count++]);
            begin = c + 1;
        }
    }
    *value = (struct value){.at_s = -1.0};
    if (line[0] == ' ' && count > 3 && read_number(fields[0], &value->at_s)) {
        at = 1;
        if (!is_time(value->at_s)) {
            return false;
        }
    }
    if (count > at + 4 &&
        (begins(fields[at], strlen(fields[at]), "CPU") ||
         (fields[at][0] == 'S' && fields[at][1] >= '0' && fields[at][1] <= '9'))) {
        memcpy(value->place, fields[at], FIELD_BYTES);
        at += fields[at][0] == 'S' ? 2 : 1;
    }
    if (count < at + 3 || !read_number(fields[at], &value->number)) {
        return false;
    }
    memcpy(value->unit, fields[at + 1], FIELD_BYTES);
    memcpy(value->event, fields[at + 2], FIELD_BYTES);
    return value->event[0] != '\0';
}

/* "  0.10   1,234 msec task-clock   #  0.9 CPUs utilized" */
static bool split_text(const char *line, size_t length, bool has_times, struct value *value)
{
    char words[5][FIELD_BYTES];
    size_t count = 0;
    size_t at = 0;
    while (count < 5 && at < length) {
        while (at < length && line[at] == ' ') {
            at++;
        }
        size_t end = at;
        while (end < length && line[end] != ' ') {
            end++;
        }
        if (end == at || line[at] == '#' || line[at] == '(') {
            break;
        }
        copy_field(line + at, end - at, words[count++]);
        at = end;
    }
    at = 0;
    *value = (struct value){.at_s = -1.0};
    if (has_times) {
        if (count < 3 || !read_number(words[0], &value->at_s) || !is_time(value->at_s)) {
            return false;
        }
        at = 1;
    }
    if (count < at + 2 || !read_number(words[at], &value->number)) {
        return false;
    }
    if (count > at + 2) {
        memcpy(value->unit, words[at + 1], FIELD_BYTES);
    }
    memcpy(value->event, words[count > at + 2 ? at + 2 : at + 1], FIELD_BYTES);
    return true;
}

static void copy_plain(const struct lac_plain *text, char out[FIELD_BYTES])
{
    if (lac_plain_is(text, LAC_PLAIN_TEXT)) {
        copy_field(text->text, text->count, out);
    }
}

static enum lac_status split_json(struct reader *reader, const char *line, size_t length,
                                  struct value *value, bool *ret_is_value)
{
    struct lac_plain_heap heap = {0};
    struct lac_plain *root = NULL;
    struct lac_error error = {0};
    char number[FIELD_BYTES] = "";
    lac_plain_limits_default(&heap.limits);
    const enum lac_status status =
        lac_json_plain_read((const uint8_t *)line, length, &heap, &root, &error);
    bool is_good = status == LAC_OK;
    *value = (struct value){.at_s = -1.0};
    if (is_good) {
        copy_plain(lac_plain_get(root, "counter-value"), number);
        copy_plain(lac_plain_get(root, "unit"), value->unit);
        copy_plain(lac_plain_get(root, "event"), value->event);
        copy_plain(lac_plain_get(root, "cpu"), value->place);
        copy_plain(lac_plain_get(root, "socket"), value->place);
        is_good = read_number(number, &value->number) && value->event[0] != '\0' &&
                  (!lac_plain_number(lac_plain_get(root, "interval"), &value->at_s) ||
                   is_time(value->at_s));
    } else if (status != LAC_ERR_NOMEM) {
        lac_model_report(reader->profile.model, LAC_REPORT_DROPPED, "line_not_understood", 1,
                         reader->profile.lines.offset_bytes, "lines that are no JSON");
    }
    lac_plain_done(&heap);
    *ret_is_value = is_good;
    return status == LAC_ERR_NOMEM ? status : LAC_OK;
}

/* "# started on Mon Nov 23 04:27:20 2026", in local time */
static void read_start(struct reader *reader, const char *line, size_t length)
{
    char text[64];
    struct tm tm = {0};
    (void)snprintf(text, sizeof(text), "%.*s", (int)(length < 60 ? length : 60), line);
    if (strptime(text, "# started on %a %b %d %H:%M:%S %Y", &tm) != NULL) {
        const time_t at = timegm(&tm);
        reader->started_ns = at > 0 && at < 4102444800 ? (int64_t)at * 1000000000 : 0;
    }
}

static enum lac_status read_line(struct reader *reader, const char *line, size_t length,
                                 bool *has_times)
{
    struct value value;
    bool is_value;
    if (length == 0 || length > LINE_MAX) {
        return LAC_OK;
    }
    if (line[0] == '#') {
        read_start(reader, line, length);
        if (memmem(line, length, " counts ", 8) != NULL &&
            memmem(line, length, "time ", 5) != NULL) {
            reader->is_text = true;
            *has_times = true;
        }
        return LAC_OK;
    }
    if (begins(line, length, " Performance counter stats for")) {
        reader->is_text = true;
        return LAC_OK;
    }
    if (memmem(line, length, "seconds time elapsed", 20) != NULL) {
        char number[FIELD_BYTES];
        const char *const word = memchr(line, 's', length);
        copy_field(line, word != NULL ? (size_t)(word - line) : length, number);
        reader->elapsed_s = read_number(number, &value.number) && is_time(value.number)
                                ? value.number
                                : reader->elapsed_s;
        return LAC_OK;
    }
    if (reader->is_text && (memmem(line, length, "seconds user", 12) != NULL ||
                            memmem(line, length, "seconds sys", 11) != NULL)) {
        return LAC_OK;
    }
    enum lac_status status = LAC_OK;
    if (line[0] == '{') {
        status = split_json(reader, line, length, &value, &is_value);
    } else {
        is_value = reader->is_text ? split_text(line, length, *has_times, &value)
                                   : split_line(line, length, &value);
    }
    return status == LAC_OK && is_value ? take(reader, &value) : status;
}

/* -- the whole --------------------------------------------------------------------------------- */

static enum lac_status finish(struct reader *reader, struct lac_model **ret_model)
{
    struct lac_builder *const builder = reader->profile.builder;
    const int64_t end_ns =
        reader->started_ns +
        (int64_t)llround((reader->elapsed_s > 0.0 ? reader->elapsed_s : 1.0) * 1e9);
    enum lac_status status = LAC_OK;
    if (reader->total_count == 0 && !reader->has_samples) {
        return lac_fail(reader->profile.reterr, LAC_ERR_CORRUPT, 0,
                        "no count in this output of perf stat: were the events supported?");
    }
    for (uint32_t i = 0; i < reader->total_count && status == LAC_OK; i++) {
        const struct total *const total = &reader->totals[i];
        status = lac_builder_sample(builder, total->track, reader->started_ns, total->value);
        status = status == LAC_OK ? lac_builder_sample(builder, total->track, end_ns, total->value)
                                  : status;
    }
    if (reader->total_count > 0) {
        lac_model_report(reader->profile.model, LAC_REPORT_INFO, "totals_of_the_run", 1, 0,
                         "Totals of the whole run are drawn as constants. perf stat -I 100 "
                         "counts every 100 ms.");
    }
    if (reader->started_ns != 0) {
        lac_model_report(reader->profile.model, LAC_REPORT_INFO, "times_without_zone", 1, 0,
                         "The log's times name no time zone: they are read as UTC.");
    }
    reader->profile.model->info.expanded_bytes = reader->profile.lines.offset_bytes;
    status = status == LAC_OK ? lac_builder_finish(builder, 0, ret_model) : status;
    reader->profile.builder = status == LAC_OK ? NULL : reader->profile.builder;
    return lac_profile_failed(&reader->profile, status);
}

enum lac_status lac_perf_stat_import(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    bool has_times = false;
    const char *line = "";
    if (reader == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "no memory for the counts");
    }
    enum lac_status status = lac_profile_open(&reader->profile, source, options, window_bytes, name,
                                              LAC_FORMAT_PERF_STAT, reterr);
    if (status == LAC_OK) {
        status = lac_profile_failed(
            &reader->profile, lac_profile_process(&reader->profile, "perf stat", &reader->process));
    }
    while (status == LAC_OK && line != NULL) {
        size_t length = 0;
        status = lac_lines_next(&reader->profile.lines, &line, &length, reterr);
        if (status == LAC_OK && line != NULL) {
            status =
                lac_profile_failed(&reader->profile, read_line(reader, line, length, &has_times));
        }
    }
    status = status == LAC_OK ? finish(reader, ret_model) : status;
    lac_stacks_close(reader->profile.stacks);
    lac_builder_destroy(reader->profile.builder);
    lac_lines_done(&reader->profile.lines);
    free(reader);
    return status;
}
