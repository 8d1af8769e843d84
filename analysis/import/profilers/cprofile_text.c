/*
 * What cProfile and pstats print: a row a function, with its own time and that with what it called.
 * No callers: each function is a frame of its own, as long as its own time.
 *
 * Source: Lib/pstats.py of CPython, Stats.print_stats()
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 64, TEXT_BYTES = 3072 };

static const char HEADING[] = "ncalls  tottime  percall  cumtime  percall";

bool lac_cprofile_is_text(const uint8_t *head, size_t size_bytes)
{
    return size_bytes > 0 && head[0] != '{' && lac_document_has(head, size_bytes, HEADING) &&
           lac_document_has(head, size_bytes, " function calls");
}

/* The next word. @return where it begins; *ret_length 0: there is none */
static const char *word(const char *at, const char *end, size_t *ret_length)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    const char *stop = at;
    while (stop < end && *stop != ' ' && *stop != '\t') {
        stop++;
    }
    *ret_length = (size_t)(stop - at);
    return at;
}

static bool read_number(const char *text, size_t length, double *ret_number)
{
    char copy[FIELD_BYTES];
    char *end = NULL;
    if (length == 0 || length >= sizeof(copy) || text[0] < '0' || text[0] > '9') {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    *ret_number = strtod(copy, &end);
    return (*end == '\0' || *end == '/') && isfinite(*ret_number);
}

/* "file.py:12(name)" as "name (file.py:12)"; "{built-in method x}" as "<built-in method x>", which
 * is what the dump has. */
static int say_function(const char *text, size_t length, char *out, size_t capacity)
{
    const char *open = memchr(text, '(', length);
    const char *const end = text + length;
    if (text[0] == '{' && length > 2 && end[-1] == '}') {
        return snprintf(out, capacity, "<%.*s>", (int)(length - 2 < 2000 ? length - 2 : 2000),
                        text + 1);
    }
    if (open == NULL || end[-1] != ')') {
        return snprintf(out, capacity, "%.*s", (int)(length < 2000 ? length : 2000), text);
    }
    const char *base = text;
    for (const char *at = text; at < open; at++) {
        base = *at == '/' || *at == '\\' ? at + 1 : base;
    }
    const size_t name = (size_t)(end - open) - 2;
    const size_t place = (size_t)(open - base);
    return snprintf(out, capacity, "%.*s (%.*s)", (int)(name < 2000 ? name : 2000), open + 1,
                    (int)(place < 1000 ? place : 1000), base);
}

static enum lac_status read_row(struct lac_profile *profile, const char *line, size_t length,
                                uint32_t bottom)
{
    const char *const end = line + length;
    const char *at = line;
    char text[TEXT_BYTES];
    double numbers[5];
    uint32_t name = 0;
    uint32_t stack = 0;
    for (size_t i = 0; i < 5; i++) {
        size_t bytes = 0;
        at = word(at, end, &bytes);
        if (!read_number(at, bytes, &numbers[i])) {
            return LAC_OK; /* a heading, or text between two tables */
        }
        at += bytes;
    }
    size_t bytes = 0;
    at = word(at, end, &bytes);
    profile->model->info.event_count++;
    if (bytes == 0 || numbers[1] > 1e9) {
        lac_model_report(profile->model, LAC_REPORT_DROPPED, "function_not_understood", 1,
                         profile->lines.offset_bytes, "rows without a function");
        return LAC_OK;
    }
    const int size = say_function(at, (size_t)(end - at), text, sizeof(text));
    const int64_t ns = (int64_t)llround(numbers[1] * 1e9);
    enum lac_status status = lac_stacks_name(profile->stacks, text, (size_t)size, &name);
    if (status == LAC_OK && ns > 0) {
        status = lac_stacks_push(profile->stacks, bottom, name, &stack);
        status = status == LAC_OK ? lac_stacks_weigh(profile->stacks, stack, ns, 0) : status;
    }
    return status;
}

enum lac_status lac_cprofile_import_text(struct lac_source *source,
                                         const struct lac_import_options *options,
                                         size_t window_bytes, const char *name,
                                         struct lac_model **ret_model, struct lac_error *reterr)
{
    struct lac_profile profile;
    uint32_t bottom = 0;
    bool is_table = false;
    enum lac_status status = lac_profile_open(&profile, source, options, window_bytes, name,
                                              LAC_FORMAT_CPROFILE, reterr);
    if (status == LAC_OK) {
        lac_model_report(
            profile.model, LAC_REPORT_INFO, "printed_without_callers", 1, 0,
            "A printed table has no callers: functions lie side by side, each with its "
            "own time. A dump (-o FILE) has them.");
        status =
            lac_profile_failed(&profile, lac_stacks_thread(profile.stacks, 0, 0, 0, 0, &bottom));
    }
    const char *line = "";
    while (status == LAC_OK && line != NULL) {
        size_t length = 0;
        status = lac_lines_next(&profile.lines, &line, &length, reterr);
        if (status == LAC_OK && line != NULL) {
            is_table = is_table || lac_document_has((const uint8_t *)line, length, HEADING);
            status = is_table
                         ? lac_profile_failed(&profile, read_row(&profile, line, length, bottom))
                         : LAC_OK;
        }
    }
    return lac_profile_close(&profile, status, "table of cProfile", NULL, 0, ret_model);
}
