#include "collector/hang/hang_said.h"

#include "collector/hang/hang_process.h"
#include "collector/hang/hang_rule.h"
#include "collector/hang/hang_verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "lacuna-hang 1\n";
static const char last_line[] = "end\n";

enum { PROCESS_BYTES = 16384, PID_BITS = 22 };

/* ---- to be written */

struct out {
    char *text;
    size_t capacity;
    size_t used;
    bool is_full; /* nothing of what does not fit is there */
};

static void put(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct out *out, const char *format, ...)
{
    const size_t room = out->capacity - out->used;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(out->text + out->used, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room) {
        out->is_full = true;
    } else {
        out->used += (size_t)length;
    }
}

/* The end of a path tells more than its beginning. */
static const char *tail_of(const char *path)
{
    enum { PATH_MAX_ = 240 };
    const size_t length = strlen(path);

    return length > PATH_MAX_ ? path + length - PATH_MAX_ : path;
}

static void put_thread(struct out *out, const struct lac_hang_thread *thread)
{
    put(out, "thread %d training %.60s\n", (int)thread->tid, thread->name);
    for (uint32_t i = 0; i < thread->frame_count; i++) {
        const struct lac_hang_frame *const frame = &thread->frames[i];

        put(out, "frame %u\t%.120s\t%s\n", frame->line, frame->function, tail_of(frame->path));
        if (thread->source[0] != '\0' && i == thread->source_frame) {
            put(out, "source %.240s\n", thread->source);
        }
    }
}

static void put_answer(struct out *out, const struct lac_hang_process *process)
{
    const struct lac_hang_thread *const thread = lac_hang_process_training(process);

    put(out, "lacuna-stacks 1\n");
    put(out, "collective %u %u %d %.60s\n", process->collective_total, process->collective_count,
        process->is_in_collective, process->collective);
    if (thread != NULL) {
        put_thread(out, thread);
    }
}

static void put_process(struct out *out, const struct lac_hang_process *process)
{
    const struct lac_hang_native *const native = &process->native;

    put(out, "process %d %d %d %d %d %d %" PRIu64 " %d %d %c %d %d %d\n", (int)process->pid,
        (int)process->parent, (int)process->rank, (int)process->world, (int)process->tid,
        process->is_rank, process->steps, process->is_busy, process->has_ended,
        native->state != 0 ? native->state : '-', native->is_syncing, native->is_sleeping,
        native->is_for_child);
    if (native->call != NULL && native->call[0] != '\0') {
        put(out, "call %.30s\n", native->call);
    }
    if (native->file[0] != '\0') {
        put(out, "file %s\n", native->file);
    }
    if (process->has_answered) {
        put_answer(out, process);
    }
}

static void put_processes(struct out *out, const struct lac_hang_process *processes, uint32_t count,
                          bool ranks, uint32_t *told)
{
    static char scratch[PROCESS_BYTES]; /* whole, or not at all */

    for (uint32_t i = 0; i < count && *told < LAC_HANG_SAID_PROCESSES; i++) {
        struct out one = {.text = scratch, .capacity = sizeof(scratch)};

        if (processes[i].is_rank != ranks) {
            continue;
        }
        put_process(&one, &processes[i]);
        if (!one.is_full && one.used + sizeof(last_line) < out->capacity - out->used) {
            put(out, "%s", scratch);
            ++*told;
        }
    }
}

static void put_verdict(struct out *out, const struct lac_hang_report *report)
{
    const struct lac_hang_verdict *const verdict = &report->verdict;

    put(out, "verdict %d %d %" PRIu64 "\n", (int)verdict->kind, (int)verdict->rank,
        report->verdict_quiet_ms);
    put(out, "doing %s\nwhere %s\nsource %s\nothers %s\n", verdict->doing, verdict->where,
        verdict->source, verdict->others);
}

size_t lac_hang_said_write(const struct lac_hang_report *report,
                           const struct lac_hang_process *processes, uint32_t count, char *text,
                           size_t capacity)
{
    assert(report != NULL && (processes != NULL || count == 0) && text != NULL && capacity > 0);
    struct out out = {.text = text, .capacity = capacity};
    uint32_t told = 0;

    put(&out, "%slauncher %" PRIu64 " %" PRIu64 " %d\n", head, report->number, report->quiet_ms,
        report->has_asked);
    put(&out, "host %s\nalive %" PRIu64 "\n", report->host, report->alive_ms);
    if (report->has_verdict) {
        put_verdict(&out, report);
    }
    put_processes(&out, processes, count, true, &told);
    put_processes(&out, processes, count, false, &told);
    put(&out, last_line);
    return out.is_full ? 0 : out.used;
}

/* ---- as it was read */

/* Numbers of one line, each with its bounds. */
struct numbers {
    const char *at;
    bool is_wrong;
};

static int64_t next_number(struct numbers *numbers, int64_t least, int64_t most)
{
    char *end = NULL;
    const long long value = strtoll(numbers->at, &end, 10);

    if (end == numbers->at || value < least || value > most) {
        numbers->is_wrong = true;
        return least;
    }
    numbers->at = end;
    return value;
}

static char next_letter(struct numbers *numbers)
{
    const char letter = numbers->at[0] == ' ' ? numbers->at[1] : '\0';

    numbers->is_wrong = numbers->is_wrong || letter == '\0';
    numbers->at += numbers->is_wrong ? 0 : 2;
    return letter;
}

static void take_launcher(struct lac_hang_report *report, const char *words)
{
    struct numbers numbers = {.at = words};

    report->number = (uint64_t)next_number(&numbers, 0, INT64_MAX);
    report->quiet_ms = (uint64_t)next_number(&numbers, 0, INT64_MAX / 1000000);
    report->has_asked = next_number(&numbers, 0, 1) != 0;
    report->alive_ms = report->quiet_ms;
    if (numbers.is_wrong) {
        report->number = 0; /* the first one has number 1 */
    }
}

static void take_alive(struct lac_hang_report *report, const char *words)
{
    struct numbers numbers = {.at = words};
    const uint64_t alive_ms = (uint64_t)next_number(&numbers, 0, INT64_MAX / 1000000);

    if (!numbers.is_wrong && alive_ms < report->quiet_ms) {
        report->alive_ms = alive_ms;
    }
}

static void take_verdict(struct lac_hang_report *report, const char *words)
{
    struct numbers numbers = {.at = words};

    report->verdict.kind = (enum lac_hang_kind)next_number(&numbers, 0, LAC_HANG_LONG);
    report->verdict.rank = (int32_t)next_number(&numbers, -1, INT32_MAX);
    report->verdict_quiet_ms = (uint64_t)next_number(&numbers, 0, INT64_MAX / 1000000);
    report->has_verdict = !numbers.is_wrong;
}

/* @return NULL: there is no room, or the line is wrong */
static struct lac_hang_process *take_process(struct lac_hang_said *said, const char *words)
{
    enum { PID_MOST = 1 << PID_BITS };
    struct numbers numbers = {.at = words};
    struct lac_hang_process *process;
    char state;

    if (said->count == LAC_HANG_SAID_PROCESSES) {
        return NULL;
    }
    process = &said->processes[said->count];
    memset(process, 0, sizeof(*process));
    process->pid = (int32_t)next_number(&numbers, 1, PID_MOST);
    process->parent = (int32_t)next_number(&numbers, 0, PID_MOST);
    process->rank = (int32_t)next_number(&numbers, -1, INT32_MAX);
    process->world = (int32_t)next_number(&numbers, 0, INT32_MAX);
    process->tid = (int32_t)next_number(&numbers, 0, PID_MOST);
    process->is_rank = next_number(&numbers, 0, 1) != 0;
    process->steps = (uint64_t)next_number(&numbers, 0, INT64_MAX);
    process->is_busy = next_number(&numbers, 0, 1) != 0;
    process->has_ended = next_number(&numbers, 0, 1) != 0;
    state = next_letter(&numbers);
    process->native.state = '\0';
    if (state != '-') {
        process->native.state = state;
    }
    process->native.is_syncing = next_number(&numbers, 0, 1) != 0;
    process->native.is_sleeping = next_number(&numbers, 0, 1) != 0;
    process->native.is_for_child = next_number(&numbers, 0, 1) != 0;
    if (numbers.is_wrong) {
        return NULL;
    }
    process->native.call = "";
    process->collective = "";
    process->host = said->report.host;
    process->thread_room = 1;
    process->threads = &said->threads[said->count];
    said->count++;
    return process;
}

static bool begins(const char *line, const char *key)
{
    return strncmp(line, key, strlen(key)) == 0;
}

static void copy(char *out, size_t capacity, const char *words)
{
    (void)snprintf(out, capacity, "%s", words);
    (void)lac_hang_clean(out);
}

/* A line in front of the first process. */
static void take_of_all(struct lac_hang_report *report, const char *line)
{
    struct lac_hang_verdict *const verdict = &report->verdict;

    if (begins(line, "launcher ")) {
        take_launcher(report, line + 9);
    } else if (begins(line, "host ")) {
        copy(report->host, sizeof(report->host), line + 5);
    } else if (begins(line, "alive ")) {
        take_alive(report, line + 6);
    } else if (begins(line, "verdict ")) {
        take_verdict(report, line + 8);
    } else if (begins(line, "doing ")) {
        copy(verdict->doing, sizeof(verdict->doing), line + 6);
    } else if (begins(line, "where ")) {
        copy(verdict->where, sizeof(verdict->where), line + 6);
    } else if (begins(line, "source ")) {
        copy(verdict->source, sizeof(verdict->source), line + 7);
    } else if (begins(line, "others ")) {
        copy(verdict->others, sizeof(verdict->others), line + 7);
    }
}

static void take_of_process(struct lac_hang_process *process, char *line)
{
    if (begins(line, "call ")) {
        process->native.call = lac_hang_clean(line + 5);
    } else if (begins(line, "file ")) {
        copy(process->native.file, sizeof(process->native.file), line + 5);
    }
}

/* What a process answers: from here to the line before the next process. @return behind it */
static char *take_answer(struct lac_hang_process *process, char *text)
{
    char *const next = strstr(text, "\nprocess ");

    if (next != NULL) {
        *next = '\0';
    }
    process->text = text;
    lac_hang_process_parse(process);
    process->text = NULL; /* nobody is to free it */
    return next != NULL ? next + 1 : NULL;
}

bool lac_hang_said_parse(struct lac_hang_said *said, size_t length)
{
    assert(said != NULL && length <= LAC_HANG_SAID_BYTES && said->text[length] == '\0');
    struct lac_hang_process *process = NULL;
    const size_t shortest = strlen(head) + strlen(last_line);
    char *line = said->text;

    memset(&said->report, 0, sizeof(said->report));
    said->count = 0;
    if (length < shortest || strlen(line) != length || !begins(line, head) ||
        strcmp(line + length - strlen(last_line), last_line) != 0) {
        return false;
    }
    line[length - strlen(last_line)] = '\0';
    while (line != NULL && *line != '\0') {
        char *const end = strchr(line, '\n');
        char *const next = end != NULL ? end + 1 : NULL;
        const bool is_answer = begins(line, "lacuna-stacks 1\n");

        if (is_answer && process != NULL) {
            line = take_answer(process, line);
            process = NULL; /* one answer each */
            continue;
        }
        if (end != NULL) {
            *end = '\0';
        }
        if (begins(line, "process ")) {
            process = take_process(said, line + 8);
        } else if (process != NULL) {
            take_of_process(process, line);
        } else if (said->count == 0) {
            take_of_all(&said->report, line);
        }
        line = next;
    }
    return said->report.number > 0;
}
