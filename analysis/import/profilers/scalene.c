/*
 * scalene's JSON (scalene --json): for each line of each file its share of the time, in Python, in
 * native code and in the system, and its memory. Shares of the elapsed time become a profile in time:
 * a frame a file, on it one for each function, on these one for each line, split as scalene does.
 *
 * Source: scalene/scalene_json.py, FunctionDetail
 */

#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 1024 };

bool lac_scalene_is_its_own(const uint8_t *head, size_t size_bytes)
{
    size_t at = 0;
    while (at < size_bytes && head[at] != '\0' && strchr(" \t\r\n", head[at]) != NULL) {
        at++;
    }
    return at < size_bytes && head[at] == '{' &&
           (lac_document_has(head, size_bytes, "\"alloc_samples\"") ||
            lac_document_has(head, size_bytes, "\"n_cpu_percent_python\"")) &&
           !lac_document_has(head, size_bytes, "\"traceEvents\"");
}

static const char *base_of(const struct lac_plain *file, int *ret_bytes)
{
    const char *base = file->text;
    const char *const end = file->text + file->count;
    for (const char *at = base; at < end; at++) {
        base = (*at == '/' || *at == '\\') && at + 1 < end ? at + 1 : base;
    }
    *ret_bytes = end - base < TEXT_BYTES ? (int)(end - base) : TEXT_BYTES;
    return base;
}

static enum lac_status push(const struct lac_profile_file *document, const char *text, size_t size,
                            uint32_t *stack)
{
    uint32_t name = 0;
    enum lac_status status = lac_stacks_name(document->profile.stacks, text, size, &name);
    return status == LAC_OK ? lac_stacks_push(document->profile.stacks, *stack, name, stack)
                            : status;
}

/* A line's three parts of the time. */
static enum lac_status read_line(struct lac_profile_file *document, const struct lac_plain *file,
                                 const struct lac_plain *line, double elapsed_s, uint32_t stack)
{
    static const struct {
        const char *key, *name;
    } parts[] = {{"n_cpu_percent_python", "Python"},
                 {"n_cpu_percent_c", "native code"},
                 {"n_sys_percent", "system, or waiting"}};
    char text[TEXT_BYTES + 64];
    int base_bytes = 0;
    int64_t number = 0;
    const char *const base = base_of(file, &base_bytes);
    enum lac_status status = LAC_OK;
    document->profile.model->info.event_count++;
    if (!lac_plain_integer(lac_plain_get(line, "lineno"), &number)) {
        lac_document_drop(document, "line_not_understood", "lines without a number");
        return LAC_OK;
    }
    const int length =
        snprintf(text, sizeof(text), "%.*s:%lld", base_bytes, base, (long long)number);
    bool is_begun = false;
    for (size_t i = 0; i < LAC_COUNT_OF(parts) && status == LAC_OK; i++) {
        double share_pct = 0.0;
        uint32_t part = 0;
        if (!lac_plain_number(lac_plain_get(line, parts[i].key), &share_pct) || share_pct <= 0.0 ||
            share_pct > 1e5) {
            continue;
        }
        status = is_begun ? LAC_OK : push(document, text, (size_t)length, &stack);
        is_begun = true;
        part = stack;
        if (status == LAC_OK) {
            status = push(document, parts[i].name, strlen(parts[i].name), &part);
        }
        const int64_t ns = (int64_t)llround(share_pct / 100.0 * elapsed_s * 1e9);
        if (status == LAC_OK && ns > 0) {
            status = lac_stacks_weigh(document->profile.stacks, part, ns, 0);
        }
    }
    return status;
}

/* The function that a line belongs to: the last that begins at or before it. */
static const struct lac_plain *function_of(const struct lac_plain *functions, int64_t line)
{
    const struct lac_plain *best = NULL;
    int64_t best_first = -1;
    for (uint32_t i = 0; functions != NULL && i < functions->count; i++) {
        int64_t first = 0;
        int64_t last = INT64_MAX;
        const struct lac_plain *const each = functions->items[i];
        (void)lac_plain_integer(lac_plain_get(each, "end_lineno"), &last);
        if (lac_plain_integer(lac_plain_get(each, "lineno"), &first) && first <= line &&
            line <= last && first > best_first) {
            best = each;
            best_first = first;
        }
    }
    return best;
}

static enum lac_status read_file(struct lac_profile_file *document, const struct lac_plain *name,
                                 const struct lac_plain *file, double elapsed_s, uint32_t bottom)
{
    const struct lac_plain *const lines = lac_plain_get(file, "lines");
    const struct lac_plain *functions = lac_plain_get(file, "functions");
    uint32_t stack = bottom;
    int base_bytes = 0;
    functions = lac_plain_is(functions, LAC_PLAIN_LIST) ? functions : NULL;
    if (!lac_plain_is(name, LAC_PLAIN_TEXT) || !lac_plain_is(lines, LAC_PLAIN_LIST)) {
        lac_document_drop(document, "file_not_understood", "files without lines");
        return LAC_OK;
    }
    const uint64_t looks = 1 + (uint64_t)(functions != NULL ? functions->count : 0);
    if (!lac_document_visit(document, lines->count * looks)) {
        return LAC_ERR_LIMIT;
    }
    const char *const base = base_of(name, &base_bytes);
    enum lac_status status = push(document, base, (size_t)base_bytes, &stack);
    for (uint32_t i = 0; i < lines->count && status == LAC_OK; i++) {
        int64_t number = 0;
        uint32_t below = stack;
        (void)lac_plain_integer(lac_plain_get(lines->items[i], "lineno"), &number);
        const struct lac_plain *const function = function_of(functions, number);
        const struct lac_plain *const title = lac_plain_get(function, "line");
        if (lac_plain_is(title, LAC_PLAIN_TEXT)) {
            int64_t first = 0;
            uint32_t frame = 0;
            (void)lac_plain_integer(lac_plain_get(function, "lineno"), &first);
            status = lac_document_frame(document, title, name, first, &frame);
            status = status == LAC_OK
                         ? lac_stacks_push(document->profile.stacks, stack, frame, &below)
                         : status;
        }
        status = status == LAC_OK ? read_line(document, name, lines->items[i], elapsed_s, below)
                                  : status;
    }
    return status;
}

enum lac_status lac_scalene_import(struct lac_source *source,
                                   const struct lac_import_options *options, size_t window_bytes,
                                   const char *name, struct lac_model **ret_model,
                                   struct lac_error *reterr)
{
    struct lac_profile_file document;
    double elapsed_s = 0.0;
    uint32_t bottom = 0;
    enum lac_status status = lac_document_open(&document, source, options, window_bytes, name,
                                               LAC_DOCUMENT_JSON, reterr);
    const struct lac_plain *const files =
        status == LAC_OK ? lac_plain_get(document.root, "files") : NULL;
    if (status == LAC_OK &&
        (!lac_plain_is(files, LAC_PLAIN_DICT) ||
         !lac_plain_number(lac_plain_get(document.root, "elapsed_time_sec"), &elapsed_s) ||
         elapsed_s <= 0.0 || elapsed_s > 1e8)) {
        status = lac_fail(reterr, LAC_ERR_CORRUPT, 0,
                          "no files or no elapsed time in this profile of scalene");
    }
    if (status == LAC_OK) {
        status = lac_document_begin(&document, LAC_FORMAT_SCALENE);
        status = status == LAC_OK ? lac_stacks_thread(document.profile.stacks, 0, 0, 0, 0, &bottom)
                                  : status;
        for (uint32_t i = 0; i + 1 < files->count && status == LAC_OK; i += 2) {
            status = read_file(&document, files->items[i], files->items[i + 1], elapsed_s, bottom);
        }
        status = lac_document_end(&document, status, "profile of scalene", NULL, ret_model);
    }
    lac_document_close(&document);
    return status;
}
