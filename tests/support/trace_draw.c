#include "tests/support/trace_draw.h"

#include "analysis/import/text/settings_text.h"
#include "analysis/model/builder.h"
#include "collector/base/count_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drawing {
    struct lac_builder *builder;
    const char *line;
    size_t line_length;
    bool has_shapes;
};

static void require(const struct drawing *drawing, bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "trace_draw: %s: \"%.*s\"\n", what, (int)drawing->line_length,
                drawing->line);
        abort();
    }
}

/** The next word at *at, cut to fit; "" at the end. */
static void word(const char **at, char *out, size_t capacity_bytes)
{
    *at += strspn(*at, " ");
    size_t length = strcspn(*at, " ");
    snprintf(out, capacity_bytes, "%.*s", (int)length, *at);
    *at += length;
}

/** Whether `text` is `prefix` and a number; `*ret_end` is what follows it. */
static bool numbered(const char *text, const char *prefix, long *ret_number, const char **ret_end)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0 || text[length] < '0' || text[length] > '9') {
        return false;
    }
    char *end = NULL;
    *ret_number = strtol(text + length, &end, 10);
    *ret_end = end;
    return true;
}

static uint32_t intern(struct drawing *drawing, const char *text)
{
    uint32_t id = 0;
    struct lac_strings *strings = &lac_builder_model(drawing->builder)->strings;
    require(drawing, lac_strings_intern(strings, text, strlen(text), &id) == LAC_OK, "no memory");
    return id;
}

static uint32_t process_of(struct drawing *drawing, int64_t pid)
{
    char text[32];
    uint32_t process = 0;
    snprintf(text, sizeof(text), "%lld", (long long)pid);
    require(drawing,
            lac_builder_process(drawing->builder, intern(drawing, text), pid, &process) == LAC_OK,
            "no memory");
    return process;
}

/** The track that a name stands for. */
static uint32_t track_of(struct drawing *drawing, const char *name)
{
    long device = 0;
    long stream = 0;
    long worker = 0;
    const char *rest = name;
    uint32_t track = 0;
    bool is_gpu = numbered(name, "gpu", &device, &rest) && numbered(rest, ".", &stream, &rest);
    bool is_worker = !is_gpu && numbered(name, "w", &worker, &rest);
    uint32_t process = process_of(drawing, is_gpu ? device : is_worker ? 5000 + worker : 1000);
    int64_t tid = is_gpu ? stream : (int64_t)(unsigned char)name[0] * 256 + name[1];
    require(drawing,
            lac_builder_track(drawing->builder, is_gpu ? LAC_TRACK_STREAM : LAC_TRACK_THREAD,
                              process, intern(drawing, name), tid, &track) == LAC_OK,
            "no memory");
    struct lac_track *at = lac_builder_track_at(drawing->builder, track);
    at->device = is_gpu ? device : -1;
    at->name = intern(drawing, name);
    return track;
}

/** The samples of a thread's stack, as slices. */
static uint32_t stacks_of(struct drawing *drawing, const char *name)
{
    struct lac_track *thread = lac_builder_track_at(drawing->builder, track_of(drawing, name));
    uint32_t id_text = thread->id_text;
    uint32_t track = 0;
    require(drawing,
            lac_builder_track(drawing->builder, LAC_TRACK_STACKS, thread->process, id_text,
                              thread->tid, &track) == LAC_OK,
            "no memory");
    lac_builder_track_at(drawing->builder, track)->name = id_text;
    return track;
}

static uint32_t copy_row(struct drawing *drawing, const char *text)
{
    static const char *const kinds[] = {"?", "HtoD", "DtoH", "DtoD"};
    char kind[16] = "";
    char memory[16] = "";
    word(&text, kind, sizeof(kind));
    word(&text, memory, sizeof(memory));
    require(drawing, *text == ' ', "a copy wants KIND MEMORY BYTES");
    long long bytes = strtoll(text, NULL, 10);
    struct lac_copy copy = {.bytes = bytes, .is_async = 2};
    for (size_t i = 1; i < LAC_COUNT_OF(kinds); i++) {
        if (strcmp(kind, kinds[i]) == 0) {
            copy.copy_kind = (uint8_t)i;
        }
    }
    uint8_t host = strcmp(memory, "pinned") == 0 ? LAC_MEMORY_PINNED : LAC_MEMORY_PAGEABLE;
    copy.src = copy.copy_kind == LAC_COPY_HTOD ? host : (uint8_t)LAC_MEMORY_DEVICE;
    copy.dst = copy.copy_kind == LAC_COPY_DTOH ? host : (uint8_t)LAC_MEMORY_DEVICE;
    uint32_t row = 0;
    require(drawing, lac_builder_copy(drawing->builder, &copy, &row) == LAC_OK, "no memory");
    return row;
}

static uint32_t loader_row(struct drawing *drawing, const char *text)
{
    struct lac_loader_info info = {.batch = -1, .cpu_ns = -1, .worker = -1};
    const char *at = strstr(text, "batch=");
    info.batch = at != NULL ? strtoll(at + 6, NULL, 10) : -1;
    at = strstr(text, "worker=");
    info.worker = at != NULL ? (int32_t)strtol(at + 7, NULL, 10) : -1;
    at = strstr(text, "cpu=");
    info.cpu_ns = at != NULL ? strtoll(at + 4, NULL, 10) * 1000 : -1;
    uint32_t row = 0;
    require(drawing, lac_builder_loader_info(drawing->builder, &info, &row) == LAC_OK, "no memory");
    return row;
}

/** Cut " KEY=..." off the end of the text; NULL when it is not there. */
static const char *cut_option(char *text, const char *key)
{
    char *at = strstr(text, key);
    if (at == NULL) {
        return NULL;
    }
    *at = '\0';
    return at + strlen(key);
}

/** What may stand behind a name: blocks of a kernel, shapes of an operator, what
 *  a call returned. */
static void read_options(struct drawing *drawing, char *text, struct lac_slice_in *in)
{
    const char *value = cut_option(text, " args=");
    if (value != NULL) {
        in->args = intern(drawing, value);
    } else if (in->kind == LAC_SLICE_KERNEL && (value = cut_option(text, " grid=")) != NULL) {
        struct lac_kernel_config config = {.grid = {(uint32_t)strtoul(value, NULL, 10), 1, 1},
                                           .block = {128, 1, 1}};
        require(drawing,
                lac_builder_kernel_config(drawing->builder, &config, &in->detail) == LAC_OK,
                "no memory");
    } else if (in->kind == LAC_SLICE_OP && (value = cut_option(text, " dims=")) != NULL) {
        char args[256];
        snprintf(args, sizeof(args), "{\"Input Dims\":%s}", value);
        drawing->has_shapes = true;
        in->args = intern(drawing, args);
    } else if (in->kind == LAC_SLICE_OP && (value = cut_option(text, " seq=")) != NULL) {
        char args[64];
        snprintf(args, sizeof(args), "{\"Sequence number\":%lu}", strtoul(value, NULL, 10));
        in->args = intern(drawing, args);
    } else if (in->kind == LAC_SLICE_API && (value = cut_option(text, " ret=")) != NULL) {
        in->detail = (uint32_t)strtoul(value, NULL, 10);
    }
}

/** Memory of device 0: "BYTES TOTAL", on the row of marks of its thread. */
static void read_alloc(struct drawing *drawing, const char *text, struct lac_slice_in *in)
{
    const struct lac_track thread = *lac_builder_track_at(drawing->builder, in->track);
    char *end = NULL;
    struct lac_alloc alloc = {.bytes = strtoll(text, &end, 10)};
    alloc.total_allocated = strtoll(end, NULL, 10);
    require(drawing, lac_builder_alloc(drawing->builder, &alloc, &in->detail) == LAC_OK,
            "no memory");
    require(drawing,
            lac_builder_track(drawing->builder, LAC_TRACK_MARKS, thread.process, thread.id_text,
                              thread.tid, &in->track) == LAC_OK,
            "no memory");
}

static enum lac_slice_kind kind_of(const struct drawing *drawing, const char *word)
{
    static const struct {
        const char *word;
        enum lac_slice_kind kind;
    } kinds[] = {
        {"range", LAC_SLICE_RANGE}, {"op", LAC_SLICE_OP},         {"python", LAC_SLICE_PYTHON},
        {"other", LAC_SLICE_OTHER}, {"call", LAC_SLICE_API},      {"kernel", LAC_SLICE_KERNEL},
        {"copy", LAC_SLICE_COPY},   {"memset", LAC_SLICE_MEMSET}, {"wait", LAC_SLICE_RANGE},
        {"fetch", LAC_SLICE_RANGE}, {"part", LAC_SLICE_RANGE},    {"overhead", LAC_SLICE_OVERHEAD},
        {"stack", LAC_SLICE_PYTHON}};
    for (size_t i = 0; i < LAC_COUNT_OF(kinds); i++) {
        if (strcmp(word, kinds[i].word) == 0) {
            return kinds[i].kind;
        }
    }
    if (strcmp(word, "alloc") == 0) {
        return LAC_SLICE_ALLOC;
    }
    require(drawing, false, "no such kind");
    return LAC_SLICE_OTHER;
}

/** "bytes=" of a loader range as its arguments. */
static void add_bytes(struct drawing *drawing, const char *text, struct lac_slice_in *in)
{
    const char *at = strstr(text, "bytes=");
    if (at != NULL) {
        int64_t bytes = strtoll(at + 6, NULL, 10);
        in->args = intern(drawing, "{\"payload\":\x01}");
        require(drawing,
                lac_builder_arg_numbers(drawing->builder, &bytes, 1, &in->arg_num) == LAC_OK,
                "no memory");
    }
}

/** A sample of the host, of a process or of one of its threads. */
static void draw_sample(struct drawing *drawing, const char *track, double at_us, const char *rest)
{
    static const char of_thread[] = "thread: ";
    char name[160];
    uint32_t counter = 0;
    uint32_t process = 0;
    bool is_host = strcmp(track, "host") == 0;
    char *end = NULL;
    double value = strtod(rest, &end);
    require(drawing, end != rest, "wants TRACK count TIME VALUE SERIES");
    rest = end + strspn(end, " ");
    if (is_host) {
        require(drawing,
                lac_builder_process(drawing->builder, intern(drawing, "host"), -1, &process) ==
                    LAC_OK,
                "no memory");
        lac_builder_process_at(drawing->builder, process)->name = intern(drawing, "host");
        snprintf(name, sizeof(name), "%s", rest);
    } else {
        uint32_t thread = track_of(drawing, track);
        process = lac_builder_track_at(drawing->builder, thread)->process;
        long long tid = lac_builder_track_at(drawing->builder, thread)->tid;
        bool has_thread = strncmp(rest, of_thread, sizeof(of_thread) - 1) == 0;
        if (has_thread) {
            snprintf(name, sizeof(name), "python %lld: %s", tid, rest + sizeof(of_thread) - 1);
        } else {
            snprintf(name, sizeof(name), "%s", rest);
        }
    }
    uint32_t id = intern(drawing, name);
    require(drawing,
            lac_builder_track(drawing->builder, LAC_TRACK_COUNTER, process, id, -1, &counter) ==
                LAC_OK,
            "no memory");
    lac_builder_track_at(drawing->builder, counter)->name = id;
    require(drawing,
            lac_builder_sample(drawing->builder, counter, (int64_t)(at_us * 1000.0 + 0.5), value) ==
                LAC_OK,
            "no memory");
}

static void draw_line(struct drawing *drawing)
{
    char line[512];
    char track[32];
    char kind[16];
    require(drawing, drawing->line_length < sizeof(line), "line too long");
    memcpy(line, drawing->line, drawing->line_length);
    line[drawing->line_length] = '\0';
    if (line[strspn(line, " ")] == '\0' || line[strspn(line, " ")] == '#') {
        return;
    }
    const char *at = line;
    char *end = NULL;
    word(&at, track, sizeof(track));
    word(&at, kind, sizeof(kind));
    double start_us = strtod(at, &end);
    require(drawing, end != at, "wants TRACK KIND START DUR");
    at = end;
    if (strcmp(kind, "count") == 0) {
        draw_sample(drawing, track, start_us, at);
        return;
    }
    double dur_us = strtod(at, &end);
    require(drawing, end != at, "wants TRACK KIND START DUR");
    const char *rest = end + strspn(end, " ");
    struct lac_slice_in in = {.start_ns = (int64_t)(start_us * 1000.0 + 0.5),
                              .dur_ns = (int64_t)(dur_us * 1000.0 + 0.5),
                              .track = strcmp(kind, "stack") == 0 ? stacks_of(drawing, track)
                                                                  : track_of(drawing, track),
                              .detail = LAC_NONE,
                              .kind = kind_of(drawing, kind)};
    if (rest[0] == '#' && rest[1] >= '0' && rest[1] <= '9') {
        in.corr = (uint32_t)strtoul(rest + 1, &end, 10);
        rest = end + strspn(end, " ");
    }
    char part[64];
    bool is_loader = strcmp(kind, "wait") == 0 || strcmp(kind, "fetch") == 0;
    if (strcmp(kind, "part") == 0) {
        in.detail = loader_row(drawing, rest);
        add_bytes(drawing, rest, &in);
        snprintf(part, sizeof(part), "%.*s", (int)strcspn(rest, " "), rest);
        rest = part;
    } else if (is_loader) {
        in.detail = loader_row(drawing, rest);
        rest = strcmp(kind, "wait") == 0 ? "loader.wait" : "loader.fetch";
    } else if (in.kind == LAC_SLICE_COPY) {
        in.detail = copy_row(drawing, rest);
        rest = "Memcpy";
    } else if (in.kind == LAC_SLICE_ALLOC) {
        read_alloc(drawing, rest, &in);
        rest = "[memory]";
    } else {
        read_options(drawing, line + (rest - line), &in);
    }
    in.name = intern(drawing, rest);
    require(drawing, lac_builder_slice(drawing->builder, &in) == LAC_OK, "no memory");
}

struct lac_model *trace_draw_with(const char *text, const char *metadata, int cc_major)
{
    struct drawing drawing = {.line = ""};
    struct lac_model *model = NULL;
    require(&drawing, lac_builder_create(&drawing.builder) == LAC_OK, "no memory");
    while (*text != '\0') {
        drawing.line = text;
        drawing.line_length = strcspn(text, "\n");
        draw_line(&drawing);
        text += drawing.line_length + (text[drawing.line_length] == '\n');
    }
    struct lac_trace_info *info = &lac_builder_model(drawing.builder)->info;
    info->format = LAC_FORMAT_KINETO;
    info->has_shapes = drawing.has_shapes;
    info->metadata = metadata != NULL ? intern(&drawing, metadata) : 0;
    if (cc_major > 0) {
        struct lac_device *device = lac_builder_device(drawing.builder, 0);
        require(&drawing, device != NULL, "no memory");
        device->cc_major = cc_major;
        device->sm_count = 80;
        device->memory_bytes = (int64_t)32 << 30;
        device->name = intern(&drawing, "Tesla V100-SXM2-32GB");
    }
    require(&drawing, lac_settings_read_text(lac_builder_model(drawing.builder)) == LAC_OK,
            "no memory");
    require(&drawing, lac_builder_finish(drawing.builder, 0, &model) == LAC_OK, "no memory");
    return model;
}

struct lac_model *trace_draw(const char *drawing)
{
    return trace_draw_with(drawing, NULL, 0);
}

struct lac_analysis *trace_diagnose(const struct lac_model *model)
{
    struct lac_analysis *analysis = NULL;
    struct lac_error error = {0};
    if (lac_diagnose(model, NULL, &analysis, &error) != LAC_OK) {
        fprintf(stderr, "trace_diagnose: %s\n", error.message);
        abort();
    }
    if (!lac_analysis_is_valid(analysis)) {
        fprintf(stderr, "trace_diagnose: the analysis breaks its invariants\n");
        abort();
    }
    return analysis;
}

const struct lac_finding *trace_finding(const struct lac_analysis *analysis, const char *id)
{
    for (uint32_t i = 0; i < analysis->finding_count; i++) {
        if (strcmp(analysis->findings[i].id, id) == 0) {
            return &analysis->findings[i];
        }
    }
    return NULL;
}
