/*
 * line_profiler: for each function that was decorated how often each line ran and how long it took,
 * with what it called. `kernprof -l` pickles it (.lprof), `python3 -m line_profiler` prints it. A
 * function is a frame, its lines are the frames on it.
 *
 * Source: line_profiler/line_profiler.py, show_text() and LineStats
 */

#include "analysis/import/profilers/pickled.h"
#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 64, TEXT_BYTES = 1024 };

static const char LINE_NOT_UNDERSTOOD[] = "lines without a number or a time";

static void tell_inclusive(const struct lac_profile *profile)
{
    lac_model_report(profile->model, LAC_REPORT_INFO, "line_times_include_calls", 1, 0,
                     "A line's time holds what it called: functions that call each other are "
                     "counted in both.");
}

/* A line of the function whose stack is `below`. */
static enum lac_status weigh_line(const struct lac_profile *profile, uint32_t below,
                                  const char *file, size_t file_bytes, int64_t line, double seconds)
{
    char text[TEXT_BYTES + 32];
    uint32_t name = 0;
    uint32_t stack = 0;
    const char *base = file;
    for (const char *at = file; at < file + file_bytes; at++) {
        base = *at == '/' || *at == '\\' ? at + 1 : base;
    }
    const size_t bytes = (size_t)(file + file_bytes - base);
    const int length =
        snprintf(text, sizeof(text), "%.*s:%lld", (int)(bytes < TEXT_BYTES ? bytes : TEXT_BYTES),
                 base, (long long)line);
    profile->model->info.event_count++;
    if (!(seconds >= 0.0) || seconds > 1e9 || line < 0) {
        lac_model_report(profile->model, LAC_REPORT_DROPPED, "line_not_understood", 1, 0,
                         LINE_NOT_UNDERSTOOD);
        return LAC_OK;
    }
    enum lac_status status = lac_stacks_name(profile->stacks, text, (size_t)length, &name);
    const int64_t ns = (int64_t)llround(seconds * 1e9);
    if (status == LAC_OK && ns > 0) {
        status = lac_stacks_push(profile->stacks, below, name, &stack);
        status = status == LAC_OK ? lac_stacks_weigh(profile->stacks, stack, ns, 0) : status;
    }
    return status;
}

/* -- .lprof ------------------------------------------------------------------------------------ */

bool lac_line_profiler_is_pickled(const struct lac_plain *root)
{
    double unit = 0.0;
    return lac_plain_is(lac_plain_get(root, "timings"), LAC_PLAIN_DICT) &&
           lac_plain_number(lac_plain_get(root, "unit"), &unit);
}

/* (file, first line, function): [(line, hits, time), ...] */
static enum lac_status read_function(struct lac_profile_file *document, const struct lac_plain *key,
                                     const struct lac_plain *lines, double unit_s, uint32_t bottom)
{
    const struct lac_profile *const profile = &document->profile;
    const struct lac_plain *const file = lac_plain_at(key, 0);
    int64_t first = 0;
    uint32_t name = 0;
    uint32_t stack = 0;
    if (!lac_plain_is(file, LAC_PLAIN_TEXT) || !lac_plain_integer(lac_plain_at(key, 1), &first) ||
        !lac_plain_is(lines, LAC_PLAIN_LIST)) {
        lac_document_drop(document, "function_not_understood", "functions without a place");
        return LAC_OK;
    }
    if (!lac_document_visit(document, (uint64_t)lines->count + 1)) {
        return LAC_ERR_LIMIT;
    }
    enum lac_status status = lac_document_frame(document, lac_plain_at(key, 2), file, first, &name);
    status = status == LAC_OK ? lac_stacks_push(profile->stacks, bottom, name, &stack) : status;
    for (uint32_t i = 0; i < lines->count && status == LAC_OK; i++) {
        int64_t line = -1;
        double time = (double)NAN;
        if (lac_plain_integer(lac_plain_at(lines->items[i], 0), &line) &&
            lac_plain_number(lac_plain_at(lines->items[i], 2), &time)) {
            status = weigh_line(profile, stack, file->text, file->count, line, time * unit_s);
        } else {
            lac_document_drop(document, "line_not_understood", LINE_NOT_UNDERSTOOD);
        }
    }
    return status;
}

enum lac_status lac_line_profiler_read(struct lac_profile_file *document,
                                       struct lac_model **ret_model)
{
    const struct lac_plain *const timings = lac_plain_get(document->root, "timings");
    double unit_s = 0.0;
    uint32_t bottom = 0;
    (void)lac_plain_number(lac_plain_get(document->root, "unit"), &unit_s);
    enum lac_status status = lac_document_begin(document, LAC_FORMAT_LINE_PROFILER);
    if (status == LAC_OK) {
        status = lac_stacks_thread(document->profile.stacks, 0, 0, 0, 0, &bottom);
        tell_inclusive(&document->profile);
    }
    for (uint32_t i = 0; i + 1 < timings->count && status == LAC_OK; i += 2) {
        status = read_function(document, timings->items[i], timings->items[i + 1], unit_s, bottom);
    }
    return lac_document_end(document, status, "profile of line_profiler", NULL, ret_model);
}

/* -- text -------------------------------------------------------------------------------------- */

struct reader {
    struct lac_profile profile;
    double unit_s;
    uint32_t bottom, stack;
    bool is_open; /**< a function: rows follow */
    char file[TEXT_BYTES];
};

bool lac_line_profiler_is_text(const uint8_t *head, size_t size_bytes)
{
    const bool begins = size_bytes > 12 && memcmp(head, "Timer unit: ", 12) == 0;
    return (begins || (size_bytes > 6 && memcmp(head, "Wrote ", 6) == 0 &&
                       lac_document_has(head, size_bytes, "\nTimer unit: "))) &&
           (lac_document_has(head, size_bytes, "\nTotal time: ") ||
            lac_document_has(head, size_bytes, "\nFunction: "));
}

static bool begins(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* The next word as a number. @return what it takes, 0: it is none */
static size_t number_at(const char *line, size_t length, double *ret_number)
{
    char copy[FIELD_BYTES];
    size_t at = 0;
    char *end = NULL;
    while (at < length && line[at] == ' ') {
        at++;
    }
    size_t word = 0;
    while (at + word < length && line[at + word] != ' ') {
        word++;
    }
    if (word == 0 || word >= sizeof(copy) || line[at] < '0' || line[at] > '9') {
        return 0;
    }
    memcpy(copy, line + at, word);
    copy[word] = '\0';
    *ret_number = strtod(copy, &end);
    return *end == '\0' && isfinite(*ret_number) ? at + word : 0;
}

/* "Function: work at line 2" */
static enum lac_status open_function(struct reader *reader, const char *text, size_t length)
{
    static const char AT[] = " at line ";
    char frame[2 * TEXT_BYTES + 32];
    const char *at = NULL;
    const char *base = strrchr(reader->file, '/');
    uint32_t name = 0;
    double line = 0.0;
    for (size_t i = 0; i + sizeof(AT) - 1 <= length; i++) {
        at = memcmp(text + i, AT, sizeof(AT) - 1) == 0 ? text + i : at;
    }
    if (at == NULL ||
        number_at(at + sizeof(AT) - 1, (size_t)(text + length - at) - sizeof(AT) + 1, &line) == 0 ||
        line > 1e9) {
        return LAC_OK;
    }
    const size_t bytes = (size_t)(at - text);
    (void)snprintf(frame, sizeof(frame), "%.*s (%s:%lld)",
                   (int)(bytes < TEXT_BYTES ? bytes : TEXT_BYTES), text,
                   base != NULL ? base + 1 : reader->file, (long long)line);
    reader->is_open = true;
    enum lac_status status = lac_stacks_name(reader->profile.stacks, frame, strlen(frame), &name);
    return status == LAC_OK
               ? lac_stacks_push(reader->profile.stacks, reader->bottom, name, &reader->stack)
               : status;
}

static enum lac_status read_line(struct reader *reader, const char *line, size_t length)
{
    double number = 0.0;
    double hits = 0.0;
    double time = 0.0;
    if (begins(line, length, "Timer unit: ")) {
        if (number_at(line + 12, length - 12, &number) > 0) {
            reader->unit_s = number;
        }
        return LAC_OK;
    }
    if (begins(line, length, "Total time: ")) {
        reader->is_open = false;
        return LAC_OK;
    }
    if (begins(line, length, "File: ")) {
        const size_t bytes = length - 6 < TEXT_BYTES - 1 ? length - 6 : TEXT_BYTES - 1;
        (void)snprintf(reader->file, sizeof(reader->file), "%.*s", (int)bytes, line + 6);
        return LAC_OK;
    }
    if (begins(line, length, "Function: ")) {
        return open_function(reader, line + 10, length - 10);
    }
    if (!reader->is_open) {
        return LAC_OK;
    }
    const size_t first = number_at(line, length, &number);
    const size_t second = first > 0 ? number_at(line + first, length - first, &hits) : 0;
    /* a line that never ran has its source behind its number, 30 columns and more away */
    if (second == 0 || second > 24 ||
        number_at(line + first + second, length - first - second, &time) == 0 || number > 1e9) {
        return LAC_OK;
    }
    return weigh_line(&reader->profile, reader->stack, reader->file, strlen(reader->file),
                      (int64_t)number, time * reader->unit_s);
}

enum lac_status lac_line_profiler_import_text(struct lac_source *source,
                                              const struct lac_import_options *options,
                                              size_t window_bytes, const char *name,
                                              struct lac_model **ret_model,
                                              struct lac_error *reterr)
{
    struct reader reader = {.unit_s = 1e-6};
    enum lac_status status = lac_profile_open(&reader.profile, source, options, window_bytes, name,
                                              LAC_FORMAT_LINE_PROFILER, reterr);
    if (status == LAC_OK) {
        tell_inclusive(&reader.profile);
        status = lac_profile_failed(
            &reader.profile, lac_stacks_thread(reader.profile.stacks, 0, 0, 0, 0, &reader.bottom));
    }
    const char *line = "";
    while (status == LAC_OK && line != NULL) {
        size_t length = 0;
        status = lac_lines_next(&reader.profile.lines, &line, &length, reterr);
        if (status == LAC_OK && line != NULL) {
            status = lac_profile_failed(&reader.profile, read_line(&reader, line, length));
        }
    }
    return lac_profile_close(&reader.profile, status, "profile of line_profiler", NULL, 0,
                             ret_model);
}
