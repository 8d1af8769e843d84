/*
 * What `py-spy dump` prints: the stack of each thread of a process at one moment. Each thread's stack
 * becomes a sample: a flame graph that says which threads stand where. Several dumps in one file are
 * added up.
 *
 *     Process 42: python3 train.py
 *     Python v3.11.2 (/usr/bin/python3.11)
 *
 *     Thread 42 (active+gil): "MainThread"
 *         forward (model.py:12)
 *         main (train.py:40)
 *
 * Source: py-spy's README and src/dump.rs
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_importers.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_MAX = 1024, TITLE_BYTES = 160 };

struct reader {
    struct lac_profile profile;
    uint32_t frames[FRAMES_MAX]; /**< string ids, innermost first */
    uint32_t frame_count;
    uint32_t bottom;
    uint32_t thread_count;
    int64_t pid;
    bool is_open; /**< a thread */
};

static bool begins(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

bool lac_pyspy_dump_is_its_own(const uint8_t *head, size_t size_bytes)
{
    return begins((const char *)head, size_bytes, "Process ") &&
           memmem(head, size_bytes, "\nPython v", 9) != NULL &&
           memmem(head, size_bytes, "\nThread ", 8) != NULL;
}

/* A whole number at the beginning. @return what follows it */
static size_t number_at(const char *text, size_t length, int64_t *ret_number)
{
    size_t at = 0;
    *ret_number = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9' && *ret_number < 1000000000000000;
         at++) {
        *ret_number = *ret_number * 10 + (text[at] - '0');
    }
    return at;
}

static enum lac_status end_thread(struct reader *reader)
{
    uint32_t stack = reader->bottom;
    enum lac_status status = LAC_OK;
    for (uint32_t i = reader->frame_count; i > 0 && status == LAC_OK; i--) {
        status = lac_stacks_push(reader->profile.stacks, stack, reader->frames[i - 1], &stack);
    }
    if (reader->is_open && reader->frame_count > 0 && status == LAC_OK) {
        status = lac_stacks_weigh(reader->profile.stacks, stack, 1, 0);
    }
    reader->is_open = false;
    reader->frame_count = 0;
    return status;
}

/* `Thread 42 (active): "MainThread"`, or `Thread 0x7F (idle)` */
static enum lac_status begin_thread(struct reader *reader, const char *text, size_t length)
{
    char title[TITLE_BYTES];
    uint32_t name = 0;
    int64_t tid = 0;
    const char *const open = memchr(text, '(', length);
    const char *const quote = memchr(text, '"', length);
    const char *const end = text + length;
    enum lac_status status = end_thread(reader);
    if (status != LAC_OK) {
        return status;
    }
    (void)number_at(text, length, &tid);
    const char *const stop = open != NULL ? memchr(open, ')', (size_t)(end - open)) : NULL;
    const int state = stop != NULL && stop - open < 64 ? (int)(stop - open) - 1 : 0;
    const char *const last =
        quote != NULL ? memchr(quote + 1, '"', (size_t)(end - quote) - 1) : NULL;
    const size_t called = last != NULL ? (size_t)(last - quote) - 1 : 0;
    int size = snprintf(title, sizeof(title), "%.*s%s%.*s%s", (int)(called < 80 ? called : 80),
                        called > 0 ? quote + 1 : "", state > 0 ? (called > 0 ? " (" : "(") : "",
                        state, state > 0 ? open + 1 : "", state > 0 ? ")" : "");
    size = size < TITLE_BYTES ? size : TITLE_BYTES - 1;
    status = lac_stacks_name(reader->profile.stacks, title, (size_t)size, &name);
    reader->is_open = true;
    reader->profile.model->info.event_count++;
    return status == LAC_OK
               ? lac_stacks_numbered_thread(reader->profile.stacks, reader->pid, tid,
                                            reader->thread_count++, name, &reader->bottom)
               : status;
}

static enum lac_status read_line(struct reader *reader, const char *line, size_t length)
{
    if (begins(line, length, "Process ")) {
        const enum lac_status status = end_thread(reader);
        (void)number_at(line + 8, length - 8, &reader->pid);
        return status;
    }
    if (begins(line, length, "Thread ")) {
        return begin_thread(reader, line + 7, length - 7);
    }
    size_t at = 0;
    while (at < length && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    if (!reader->is_open || at < 2 || at == length) {
        return LAC_OK;
    }
    /* local variables, with --locals: "Arguments:" and "name: value" lie deeper, without a place */
    if (line[length - 1] != ')' || at > 4) {
        return LAC_OK;
    }
    if (reader->frame_count == FRAMES_MAX) {
        lac_model_report(reader->profile.model, LAC_REPORT_DROPPED, "stack_too_deep", 1, 0,
                         "Frames beyond the 1024th of a stack were left out.");
        return LAC_OK;
    }
    return lac_stacks_name(reader->profile.stacks, line + at, length - at,
                           &reader->frames[reader->frame_count++]);
}

enum lac_status lac_pyspy_dump_import(struct lac_source *source,
                                      const struct lac_import_options *options, size_t window_bytes,
                                      const char *name, struct lac_model **ret_model,
                                      struct lac_error *reterr)
{
    struct reader reader = {.frame_count = 0};
    const char *line = "";
    enum lac_status status = lac_profile_open(&reader.profile, source, options, window_bytes, name,
                                              LAC_FORMAT_PYSPY_DUMP, reterr);
    while (status == LAC_OK && line != NULL) {
        size_t length = 0;
        status = lac_lines_next(&reader.profile.lines, &line, &length, reterr);
        if (status == LAC_OK) {
            status =
                lac_profile_failed(&reader.profile, line != NULL ? read_line(&reader, line, length)
                                                                 : end_thread(&reader));
        }
    }
    return lac_profile_close(&reader.profile, status, "dump of py-spy", "threads", 0, ret_model);
}
