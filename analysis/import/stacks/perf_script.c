/*
 * Text of `perf script`: a line a sample (command, thread, CPU, time, event), under it its frames
 * from the innermost out, then an empty line.
 *
 * Frames are named as FlameGraph's stackcollapse-perf does with --all: "_[k]" marks the kernel's,
 * "_[j]" code of a just-in-time compiler, "_[i]" what was inlined; what has no symbol is named by
 * its module.
 */

#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_importers.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/json_text.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/reserve.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    const char *at;
    size_t length;
};

/* The line of a sample, taken apart. */
struct heading {
    struct piece command, event;
    int64_t pid, tid, cpu; /* -1: not there */
    int64_t time_ns;
    int64_t period;
    bool has_time;
};

/* A line of a frame that was seen before: its names, innermost first. */
struct known_frame {
    uint32_t first;
    uint32_t count;
};

struct thread {
    uint32_t key; /* id in perf.texts of "pid/tid/cpu" */
    uint32_t bottom;
    uint32_t command; /* string id in the model */
    uint32_t stack;   /* the command as the first frame */
};

struct perf {
    struct lac_profile profile;
    struct lac_strings texts;   /* lines of frames and keys of threads as they stand in the file */
    struct known_frame *frames; /* by id in texts */
    uint32_t frame_capacity;
    uint32_t *names;
    uint32_t name_count, name_capacity;
    struct thread *threads;
    uint32_t thread_count, thread_capacity;
    uint32_t *thread_of; /* by id in texts: row + 1 */
    uint32_t thread_of_capacity;
    uint32_t last_thread;
    uint32_t stack[LAC_STACK_FRAMES_MAX]; /* names of the sample, innermost first */
    uint32_t depth;
    uint32_t event; /* string id of the first event, 0: none yet */
    char *room;
    size_t room_bytes;
    int64_t constant_period; /* 0: none yet, -1: differs */
    bool in_sample, is_other_event, is_clock;
    struct heading heading; /* its command lies in command_text */
    char command_text[64];
    uint32_t command; /* of the sample */
};

/* --- the line of a sample --------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_at(const char *line, size_t at, size_t length)
{
    size_t count = 0;
    while (at + count < length && is_digit(line[at + count])) {
        count++;
    }
    return count;
}

static bool whole(const char *text, size_t length, int64_t *ret)
{
    return lac_decimal_integer((const uint8_t *)text, length, ret);
}

static size_t skip_spaces(const char *line, size_t at, size_t length)
{
    while (at < length && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    return at;
}

/* The command may hold spaces: it ends at the first number, or two with a "/" between, that stands
 * alone. @return where it goes on; 0: no such line */
static size_t read_command(const char *line, size_t length, struct heading *heading)
{
    const size_t first = skip_spaces(line, 0, length);
    for (size_t at = first + 1; at < length; at++) {
        const bool is_apart = line[at - 1] == ' ' || line[at - 1] == '\t';
        const size_t count = is_apart ? digits_at(line, at, length) : 0;
        if (count == 0) {
            continue;
        }
        size_t end = at + count;
        size_t second = 0;
        if (end < length && line[end] == '/') {
            second = digits_at(line, end + 1, length);
            end += second > 0 ? 1 + second : 0;
        }
        if (end >= length || (line[end] != ' ' && line[end] != '\t') ||
            !whole(line + at, count, &heading->pid)) {
            continue;
        }
        heading->tid = heading->pid;
        if (second > 0 && !whole(line + end - second, second, &heading->tid)) {
            continue;
        }
        size_t command = at;
        while (command > first && (line[command - 1] == ' ' || line[command - 1] == '\t')) {
            command--;
        }
        heading->command = (struct piece){line + first, command - first};
        return command > first ? end : 0;
    }
    return 0;
}

/* CPU in brackets, "seconds.fraction:", a period, and the event's name with its ":". */
static bool read_heading(const char *line, size_t length, struct heading *heading)
{
    size_t at = read_command(line, length, heading);
    if (at == 0) {
        return false;
    }
    heading->cpu = -1;
    heading->period = 0;
    heading->has_time = false;
    heading->event.length = 0;
    at = skip_spaces(line, at, length);
    if (at < length && line[at] == '[') {
        const size_t count = digits_at(line, at + 1, length);
        if (count == 0 || at + 1 + count >= length || line[at + 1 + count] != ']' ||
            !whole(line + at + 1, count, &heading->cpu)) {
            return false;
        }
        at = skip_spaces(line, at + count + 2, length);
    }
    while (at < length) {
        size_t end = at;
        while (end < length && line[end] != ' ' && line[end] != '\t') {
            end++;
        }
        const size_t count = digits_at(line, at, end);
        const bool is_time = count > 0 && count < end - at && line[at + count] == '.' &&
                             line[end - 1] == ':' && !heading->has_time;
        if (is_time) {
            heading->has_time =
                lac_decimal_scaled((const uint8_t *)line + at, end - at - 1, 9, &heading->time_ns);
            if (!heading->has_time) {
                return false;
            }
        } else if (count > 0 && count == end - at) {
            (void)whole(line + at, count, &heading->period);
        } else if (line[end - 1] == ':' && end - at > 1) {
            heading->event = (struct piece){line + at, end - at - 1};
            return true;
        } else if (heading->has_time) {
            return false;
        }
        at = skip_spaces(line, end, length);
    }
    return heading
        ->has_time; /* an event may be left out: perf script -F comm,pid,tid,time,ip,sym */
}

/* --- frames ----------------------------------------------------------------------------------- */

static bool ends_with(struct piece text, const char *end)
{
    const size_t length = strlen(end);
    return text.length >= length && memcmp(text.at + text.length - length, end, length) == 0;
}

static bool contains(struct piece text, const char *part)
{
    return memmem(text.at, text.length, part, strlen(part)) != NULL;
}

/* "_[k]", "_[j]", "_[i]" or nothing. */
static const char *mark_of(struct piece module)
{
    const char *jit = memmem(module.at, module.length, "/tmp/perf-", 10);
    if (module.length == 7 && memcmp(module.at, "inlined", 7) == 0) {
        return "_[i]";
    }
    if ((module.length > 0 && module.at[0] == '[' && !contains(module, "unknown")) ||
        ends_with(module, "vmlinux")) {
        return contains(module, "unknown") ? "" : "_[k]";
    }
    if (jit != NULL) {
        jit += 10;
        const char *const end = module.at + module.length;
        const char *const first = jit;
        while (jit < end && is_digit(*jit)) {
            jit++;
        }
        return jit > first && end - jit >= 4 && memcmp(jit, ".map", 4) == 0 ? "_[j]" : "";
    }
    return "";
}

/* Where the parameters of a function begin, which are left out; Go's methods have none. */
static size_t without_parameters(struct piece symbol)
{
    static const char anonymous[] = "(anonymous namespace)";
    const char *const go = memmem(symbol.at, symbol.length, ".(", 2);
    if (go != NULL && memmem(go, symbol.length - (size_t)(go - symbol.at), ").", 2) != NULL) {
        return symbol.length;
    }
    for (size_t i = 0; i < symbol.length; i++) {
        if (symbol.at[i] == '(' && (symbol.length - i < sizeof(anonymous) - 1 ||
                                    memcmp(symbol.at + i, anonymous, sizeof(anonymous) - 1) != 0)) {
            return i;
        }
    }
    return symbol.length;
}

/* The name of one function of a line, into perf->room. */
static size_t tidy(struct perf *perf, struct piece symbol, struct piece module, const char *mark)
{
    char *out = perf->room;
    if (symbol.length == 9 && memcmp(symbol.at, "[unknown]", 9) == 0) {
        struct piece base = {"unknown", 7};
        if (!contains(module, "[unknown]") || module.length != 9) {
            const char *const slash = memrchr(module.at, '/', module.length);
            base = slash == NULL
                       ? module
                       : (struct piece){slash + 1, module.length - (size_t)(slash + 1 - module.at)};
        }
        *out++ = '[';
        memcpy(out, base.at, base.length);
        out += base.length;
        *out++ = ']';
    } else {
        const size_t length = without_parameters(symbol);
        const bool is_java =
            perf->heading.command.length >= 4 && memcmp(perf->heading.command.at, "java", 4) == 0;
        size_t i =
            is_java && length > 0 && symbol.at[0] == 'L' && memchr(symbol.at, '/', length) != NULL
                ? 1
                : 0;
        for (; i < length; i++) {
            const char c = symbol.at[i];
            if (c != '"' && c != '\'') {
                *out++ = (char)(c == ';' ? ':' : c);
            }
        }
    }
    const size_t length = (size_t)(out - perf->room);
    if (length < 4 || strcmp(mark, "_[k]") == 0 || memcmp(out - 4, mark, strlen(mark)) != 0) {
        memcpy(out, mark, strlen(mark));
        out += strlen(mark);
    }
    return (size_t)(out - perf->room);
}

/* Names of the functions of a line that was not seen before. */
static enum lac_status learn_frame(struct perf *perf, struct piece symbol, struct piece module,
                                   struct known_frame *ret_frame)
{
    const char *const end = symbol.at + symbol.length;
    const char *const mark = mark_of(module);
    enum lac_status status = LAC_OK;
    *ret_frame = (struct known_frame){.first = perf->name_count};
    if (!LAC_RESERVE(perf->room, perf->room_bytes, 0, symbol.length + module.length + 32)) {
        return LAC_ERR_NOMEM;
    }
    const char *const offset = memrchr(symbol.at, '+', symbol.length);
    if (offset != NULL && end - offset > 3 && offset[1] == '0' && offset[2] == 'x' &&
        strspn(offset + 3, "0123456789abcdef") >= (size_t)(end - offset - 3)) {
        symbol.length = (size_t)(offset - symbol.at);
    }
    /* "caller->callee->..." of a compiler that inlined: the caller stands first */
    for (size_t to = symbol.length; status == LAC_OK;) {
        size_t from = to;
        while (from > 0 &&
               !(from >= 2 && symbol.at[from - 1] == '>' && symbol.at[from - 2] == '-')) {
            from--;
        }
        const size_t length = tidy(perf, (struct piece){symbol.at + from, to - from}, module, mark);
        uint32_t name = 0;
        if (to > from) {
            status = lac_stacks_name(perf->profile.stacks, perf->room, length, &name);
        }
        if (status == LAC_OK && to > from) {
            if (!LAC_RESERVE(perf->names, perf->name_capacity, perf->name_count, 1)) {
                return LAC_ERR_NOMEM;
            }
            perf->names[perf->name_count++] = name;
            ret_frame->count++;
        }
        if (from < 2) {
            break;
        }
        to = from - 2;
    }
    return status;
}

/* "   address symbol (module)"; address and module may be left out. */
static enum lac_status read_frame(struct perf *perf, const char *line, size_t length)
{
    size_t at = skip_spaces(line, 0, length);
    size_t end = at;
    uint32_t id;
    while (end < length && isxdigit((unsigned char)line[end])) {
        end++;
    }
    if (end > at && end < length && line[end] == ' ') {
        at = end + 1;
    }
    static const char anonymous[] = "(anonymous";
    if (at >= length ||
        (line[at] == '(' && (length - at < sizeof(anonymous) - 1 ||
                             memcmp(line + at, anonymous, sizeof(anonymous) - 1) != 0))) {
        return LAC_OK; /* names of processes */
    }
    enum lac_status status = lac_strings_intern(&perf->texts, line + at, length - at, &id);
    if (status != LAC_OK) {
        return status;
    }
    if (id >= perf->frame_capacity) {
        const uint32_t before = perf->frame_capacity;
        if (!LAC_RESERVE(perf->frames, perf->frame_capacity, id, 1)) {
            return LAC_ERR_NOMEM;
        }
        memset(perf->frames + before, 0,
               (size_t)(perf->frame_capacity - before) * sizeof(*perf->frames));
    }
    if (perf->frames[id].count == 0) {
        struct piece symbol = {line + at, length - at}, module = {"[unknown]", 9};
        const char *const open = memrchr(symbol.at, '(', symbol.length);
        if (open != NULL && open > symbol.at && open[-1] == ' ' && line[length - 1] == ')') {
            module = (struct piece){open + 1, (size_t)(line + length - 1 - open - 1)};
            symbol.length = (size_t)(open - 1 - symbol.at);
            if (symbol.length == 0) { /* a symbol without a name; FlameGraph shows a space */
                symbol.length = 1;
            }
        }
        status = learn_frame(perf, symbol, module, &perf->frames[id]);
    }
    const struct known_frame frame = perf->frames[id];
    for (uint32_t i = 0; i < frame.count && status == LAC_OK; i++) {
        if (perf->depth == LAC_STACK_FRAMES_MAX) {
            return LAC_ERR_LIMIT;
        }
        perf->stack[perf->depth++] = perf->names[frame.first + i];
    }
    return status;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* The command as FlameGraph writes it: spaces are underscores. */
static enum lac_status name_command(struct perf *perf, struct piece command, uint32_t *ret_name)
{
    char text[64];
    const size_t length = command.length < sizeof(text) ? command.length : sizeof(text);
    for (size_t i = 0; i < length; i++) {
        text[i] = (char)(command.at[i] == ' ' ? '_' : command.at[i] == ';' ? ':' : command.at[i]);
    }
    return lac_stacks_name(perf->profile.stacks, text, length, ret_name);
}

static enum lac_status make_thread(struct perf *perf, const char *key, size_t length, uint32_t id)
{
    const struct heading *const heading = &perf->heading;
    char text[96];
    uint32_t id_text, name;
    if (!LAC_RESERVE(perf->threads, perf->thread_capacity, perf->thread_count, 1)) {
        return LAC_ERR_NOMEM;
    }
    struct thread *const thread = &perf->threads[perf->thread_count];
    *thread = (struct thread){.key = id};
    const int size =
        heading->tid == 0 && heading->cpu >= 0
            ? snprintf(text, sizeof(text), "%.*s CPU %lld",
                       (int)(heading->command.length < 32 ? heading->command.length : 32),
                       heading->command.at, (long long)heading->cpu)
            : snprintf(text, sizeof(text), "%.*s",
                       (int)(heading->command.length < 64 ? heading->command.length : 64),
                       heading->command.at);
    enum lac_status status = lac_stacks_name(perf->profile.stacks, key, length, &id_text);
    if (status == LAC_OK) {
        status = lac_stacks_name(perf->profile.stacks, text, (size_t)size, &name);
    }
    if (status == LAC_OK) {
        status = lac_stacks_thread(perf->profile.stacks, heading->pid, heading->tid, id_text, name,
                                   &thread->bottom);
    }
    if (status == LAC_OK) {
        perf->thread_of[id] = ++perf->thread_count;
    }
    return status;
}

static enum lac_status find_thread(struct perf *perf, struct thread **ret_thread)
{
    const struct heading *const heading = &perf->heading;
    char key[80]; /* idle threads have one id on all CPUs */
    uint32_t id;
    const int size =
        snprintf(key, sizeof(key), "%lld/%lld/%lld", (long long)heading->pid,
                 (long long)heading->tid, (long long)(heading->tid == 0 ? heading->cpu : -1));
    enum lac_status status = lac_strings_intern(&perf->texts, key, (size_t)size, &id);
    if (status != LAC_OK) {
        return status;
    }
    if (id >= perf->thread_of_capacity) {
        const uint32_t before = perf->thread_of_capacity;
        if (!LAC_RESERVE(perf->thread_of, perf->thread_of_capacity, id, 1)) {
            return LAC_ERR_NOMEM;
        }
        memset(perf->thread_of + before, 0,
               (size_t)(perf->thread_of_capacity - before) * sizeof(*perf->thread_of));
    }
    if (perf->thread_of[id] == 0) {
        status = make_thread(perf, key, (size_t)size, id);
    }
    if (status == LAC_OK) {
        *ret_thread = &perf->threads[perf->thread_of[id] - 1];
    }
    return status;
}

static enum lac_status end_sample(struct perf *perf)
{
    struct lac_stacks *const stacks = perf->profile.stacks;
    struct thread *thread;
    if (!perf->in_sample) {
        return LAC_OK;
    }
    perf->in_sample = false;
    perf->profile.model->info.event_count++;
    if (perf->depth == 0) {
        lac_model_report(perf->profile.model, LAC_REPORT_INFO, "sample_without_stack", 1,
                         perf->profile.lines.offset_bytes,
                         "samples without a stack: record with perf record -g");
        return LAC_OK;
    }
    if (perf->is_other_event) {
        lac_model_report(perf->profile.model, LAC_REPORT_INFO, "other_event", 1,
                         perf->profile.lines.offset_bytes,
                         "samples of events other than the first, which are not shown");
        return LAC_OK;
    }
    enum lac_status status = find_thread(perf, &thread);
    if (status == LAC_OK && (thread->stack == 0 || thread->command != perf->command)) {
        thread->command = perf->command;
        status = lac_stacks_push(stacks, thread->bottom, perf->command, &thread->stack);
    }
    uint32_t stack = status == LAC_OK ? thread->stack : 0;
    for (uint32_t i = perf->depth; i > 0 && status == LAC_OK; i--) {
        status = lac_stacks_push(stacks, stack, perf->stack[i - 1], &stack);
    }
    if (status != LAC_OK) {
        return status;
    }
    return perf->heading.has_time ? lac_stacks_sample(stacks, stack, perf->heading.time_ns)
                                  : lac_stacks_weigh(stacks, stack, 1, 0);
}

static enum lac_status begin_sample(struct perf *perf)
{
    const struct heading *const heading = &perf->heading;
    uint32_t event = 0;
    enum lac_status status = name_command(perf, heading->command, &perf->command);
    if (status == LAC_OK && heading->event.length > 0) {
        status =
            lac_stacks_name(perf->profile.stacks, heading->event.at, heading->event.length, &event);
    }
    if (perf->event == 0 && event != 0) {
        perf->event = event;
        perf->is_clock =
            contains(heading->event, "cpu-clock") || contains(heading->event, "task-clock");
    }
    if (heading->period > 0) {
        perf->constant_period =
            perf->constant_period == 0 || perf->constant_period == heading->period ? heading->period
                                                                                   : -1;
    }
    perf->is_other_event = event != perf->event;
    perf->in_sample = true;
    perf->depth = 0;
    return status;
}

static enum lac_status read_line(struct perf *perf, const char *line, size_t length)
{
    if (length == 0) {
        return end_sample(perf);
    }
    if (line[0] == '#') {
        return LAC_OK;
    }
    /* a frame is indented, and so is a short command in newer versions: a heading has its event */
    if (line[0] == '\t' && perf->in_sample) {
        return read_frame(perf, line, length);
    }
    struct heading heading = {.pid = -1};
    if (read_heading(line, length, &heading)) {
        const enum lac_status status = end_sample(perf);
        /* the line is gone when its sample ends */
        const size_t most = sizeof(perf->command_text);
        heading.command.length = heading.command.length < most ? heading.command.length : most;
        memcpy(perf->command_text, heading.command.at, heading.command.length);
        heading.command.at = perf->command_text;
        perf->heading = heading;
        return status == LAC_OK ? begin_sample(perf) : status;
    }
    if (perf->in_sample && line[0] == ' ') {
        return read_frame(perf, line, length);
    }
    lac_model_report(perf->profile.model, LAC_REPORT_DROPPED, "line_not_understood", 1,
                     perf->profile.lines.offset_bytes - length,
                     "lines that are neither a sample nor a frame");
    return LAC_OK;
}

/* Whether the line may be a frame: an address, and something behind it. */
static bool is_frame(const char *line, size_t length)
{
    const size_t at = skip_spaces(line, 0, length);
    size_t end = at;
    while (end < length && isxdigit((unsigned char)line[end])) {
        end++;
    }
    return at > 0 && end > at + 1 && end < length && line[end] == ' ';
}

bool lac_perf_script_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const char *line = (const char *)head, *const end = line + size_bytes;
    struct heading heading = {.pid = -1};
    bool has_heading = false;
    if (memchr(head, '\0', size_bytes) != NULL) {
        return false;
    }
    for (const char *newline; (newline = memchr(line, '\n', (size_t)(end - line))) != NULL;
         line = newline + 1) {
        const size_t length = (size_t)(newline - line);
        if (has_heading) {
            return is_frame(line, length);
        }
        if (length > 1 && line[0] == '#') {
            if (memmem(line, length, "# captured on", 13) != NULL) {
                return true;
            }
        } else if (length > 1) {
            has_heading = read_heading(line, length, &heading);
            if (!has_heading) {
                return false;
            }
        }
    }
    return has_heading && is_frame(line, (size_t)(end - line));
}

static enum lac_status read_all(struct perf *perf)
{
    struct lac_profile *const profile = &perf->profile;
    for (;;) {
        const char *line;
        size_t length;
        enum lac_status status = lac_lines_next(&profile->lines, &line, &length, profile->reterr);
        if (status != LAC_OK) {
            return status;
        }
        if (line == NULL) {
            if (perf->in_sample) { /* perf ends each with an empty line */
                lac_model_report(profile->model, LAC_REPORT_DROPPED, "sample_cut", 1,
                                 profile->lines.offset_bytes,
                                 "the last sample, which is cut short");
            }
            return LAC_OK;
        }
        status = lac_profile_failed(profile, read_line(perf, line, length));
        if (status != LAC_OK) {
            return status;
        }
    }
}

enum lac_status lac_perf_script_import(struct lac_source *source,
                                       const struct lac_import_options *options,
                                       size_t window_bytes, const char *name,
                                       struct lac_model **ret_model, struct lac_error *reterr)
{
    struct perf *const perf = calloc(1, sizeof(*perf));
    if (perf == NULL) {
        return lac_fail(reterr, LAC_ERR_NOMEM, 0, "out of memory");
    }
    enum lac_status status = lac_profile_open(&perf->profile, source, options, window_bytes, name,
                                              LAC_FORMAT_PERF, reterr);
    if (status == LAC_OK) {
        status = lac_profile_failed(&perf->profile, lac_strings_init(&perf->texts));
    }
    if (status == LAC_OK) {
        status = read_all(perf);
    }
    const int64_t period_ns =
        perf->is_clock && perf->constant_period > 0 ? perf->constant_period : 0;
    status = lac_profile_close(&perf->profile, status, "output of perf script", "samples",
                               period_ns, ret_model);
    lac_strings_done(&perf->texts);
    free(perf->frames);
    free(perf->names);
    free(perf->threads);
    free(perf->thread_of);
    free(perf->room);
    free(perf);
    return status;
}
