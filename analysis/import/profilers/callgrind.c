/*
 * What valgrind's callgrind writes, and what others write in its format (pyprof2calltree, Xdebug,
 * gperftools; cachegrind's, without calls): for each function costs of its own by line, and calls
 * with the cost of what was called. The costs of the first event are shown. Files of several parts
 * are added up.
 *
 * Source: valgrind.org/docs/manual/cl-format.html
 */

#include "analysis/import/profilers/call_graph.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/lines.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_IDS_MAX = 1 << 22, FRAME_TEXT_BYTES = 4096, EVENT_BYTES = 64 };

/** Names that a file shortens to "(12)" after their first use; of files, objects and functions. */
struct short_names {
    uint32_t *ids; /**< string ids, LAC_NONE: not told */
    uint32_t count, capacity;
};

/** Where costs belong. */
struct place {
    uint32_t object, file, function; /**< string ids, 0: none */
};

struct reader {
    struct lac_profile profile;
    struct lac_call_graph graph;
    struct short_names objects, files, functions;
    uint32_t *node_of; /**< of the string id of a frame, LAC_NONE: none */
    uint32_t node_of_count, node_of_capacity;
    struct place here, called;
    uint32_t
        inlined_file; /**< of the lines that follow: what a call's file is where none is told */
    uint32_t node;    /**< of `here`, LAC_NONE: to be found */
    bool is_call;     /**< the next line of costs is that of a call */
    uint32_t position_count;
    char event[EVENT_BYTES];
    double all;
};

bool lac_callgrind_is_its_own(const uint8_t *head, size_t size_bytes)
{
    const char *line = (const char *)head;
    const char *const end = line + size_bytes;
    bool has_events = false;
    if (size_bytes >= 18 && memcmp(head, "# callgrind format", 18) == 0) {
        return true;
    }
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((newline != NULL ? newline : end) - line);
        if (length > 7 && memcmp(line, "events:", 7) == 0) {
            has_events = true;
        } else if (has_events && length > 3 &&
                   (memcmp(line, "fn=", 3) == 0 || memcmp(line, "fl=", 3) == 0 ||
                    memcmp(line, "ob=", 3) == 0)) {
            return true;
        } else if (length > 0 && line[0] != '#' && !has_events &&
                   memchr(line, ':', length < 32 ? length : 32) == NULL) {
            return false;
        }
        line = newline != NULL ? newline + 1 : end;
    }
    return false;
}

static void count_dropped(struct reader *reader, const char *code, const char *what)
{
    lac_model_report(reader->profile.model, LAC_REPORT_DROPPED, code, 1,
                     reader->profile.lines.offset_bytes, what);
}

/* -- names ------------------------------------------------------------------------------------- */

/* "(12) name", "(12)" or "name". */
static enum lac_status read_name(struct reader *reader, struct short_names *names, const char *text,
                                 size_t length, uint32_t *ret_name)
{
    uint64_t number = 0;
    size_t at = 1;
    const bool is_short = length > 2 && text[0] == '(' && text[1] >= '0' && text[1] <= '9';
    *ret_name = 0;
    if (!is_short) {
        return lac_stacks_name(reader->profile.stacks, text, length, ret_name);
    }
    while (at < length && text[at] >= '0' && text[at] <= '9' && number < NAME_IDS_MAX) {
        number = number * 10 + (uint64_t)(text[at++] - '0');
    }
    if (at >= length || text[at] != ')' || number >= NAME_IDS_MAX) {
        count_dropped(reader, "name_not_understood", "names whose number is none, or beyond 2^22");
        return LAC_OK;
    }
    at += 1;
    while (at < length && text[at] == ' ') {
        at++;
    }
    if (number >= names->count &&
        !LAC_RESERVE(names->ids, names->capacity, names->count, number + 1 - names->count)) {
        return LAC_ERR_NOMEM;
    }
    for (; names->count <= number; names->count++) {
        names->ids[names->count] = LAC_NONE;
    }
    if (at < length) {
        const enum lac_status status =
            lac_stacks_name(reader->profile.stacks, text + at, length - at, &names->ids[number]);
        *ret_name = names->ids[number];
        return status;
    }
    if (names->ids[number] == LAC_NONE) {
        count_dropped(reader, "name_not_there", "numbers of names that the file does not tell");
        return LAC_OK;
    }
    *ret_name = names->ids[number];
    return LAC_OK;
}

static const char *base_of(const char *path)
{
    const char *base = path;
    for (; *path != '\0'; path++) {
        base = (*path == '/' || *path == '\\') && path[1] != '\0' ? path + 1 : base;
    }
    return base;
}

/* "name (file.c)", "name [library.so]" where the file is not known. */
static enum lac_status find_node(struct reader *reader, const struct place *place,
                                 uint32_t *ret_node)
{
    const struct lac_model *model = reader->profile.model;
    const char *function = place->function != 0 ? lac_model_str(model, place->function) : "?";
    const char *file = base_of(lac_model_str(model, place->file));
    const char *object = base_of(lac_model_str(model, place->object));
    char text[FRAME_TEXT_BYTES];
    uint32_t name = 0;
    if (file[0] != '\0' && strcmp(file, "???") != 0 && strcmp(file, "~") != 0) {
        (void)snprintf(text, sizeof(text), "%.2000s (%.1000s)", function, file);
    } else if (object[0] != '\0' && strcmp(object, "???") != 0) {
        (void)snprintf(text, sizeof(text), "%.2000s [%.1000s]", function, object);
    } else {
        (void)snprintf(text, sizeof(text), "%.2000s", function);
    }
    enum lac_status status = lac_stacks_name(reader->profile.stacks, text, strlen(text), &name);
    if (status != LAC_OK) {
        return status;
    }
    if (name >= reader->node_of_count &&
        !LAC_RESERVE(reader->node_of, reader->node_of_capacity, reader->node_of_count,
                     (uint64_t)name + 1 - reader->node_of_count)) {
        return LAC_ERR_NOMEM;
    }
    for (; reader->node_of_count <= name; reader->node_of_count++) {
        reader->node_of[reader->node_of_count] = LAC_NONE;
    }
    if (reader->node_of[name] == LAC_NONE) {
        status = lac_call_graph_node(&reader->graph, name, &reader->node_of[name]);
    }
    *ret_node = reader->node_of[name];
    return status;
}

/* -- lines ------------------------------------------------------------------------------------- */

static size_t word_at(const char *line, size_t length, size_t *at)
{
    while (*at < length && (line[*at] == ' ' || line[*at] == '\t')) {
        (*at)++;
    }
    size_t end = *at;
    while (end < length && line[end] != ' ' && line[end] != '\t') {
        end++;
    }
    return end - *at;
}

/* A whole number or a decimal, >= 0. */
static bool read_cost(const char *text, size_t length, double *ret_cost)
{
    char copy[64];
    char *end = NULL;
    if (length == 0 || length >= sizeof(copy) || text[0] < '0' || text[0] > '9') {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    *ret_cost = strtod(copy, &end);
    return *end == '\0' && *ret_cost >= 0.0 && *ret_cost < 1e16;
}

/* "15 400": where, then what it cost; further events are left out. */
static enum lac_status read_costs(struct reader *reader, const char *line, size_t length)
{
    const bool is_call = reader->is_call;
    size_t at = 0;
    double cost = 0.0;
    uint32_t callee = 0;
    enum lac_status status = LAC_OK;
    reader->is_call = false;
    reader->profile.model->info.event_count++;
    for (uint32_t i = 0; i < reader->position_count; i++) {
        at += word_at(line, length, &at);
    }
    const size_t word = word_at(line, length, &at);
    if (word > 0 && !read_cost(line + at, word, &cost)) {
        count_dropped(reader, "cost_not_understood", "costs that are no numbers from 0 to 1e16");
        return LAC_OK;
    }
    if (reader->node == LAC_NONE) {
        status = find_node(reader, &reader->here, &reader->node);
    }
    if (status == LAC_OK && is_call) {
        status = find_node(reader, &reader->called, &callee);
        reader->called =
            (struct place){.object = reader->here.object, .file = reader->inlined_file};
        if (status == LAC_OK && callee != reader->node) {
            reader->graph.nodes[reader->node].total += cost;
            reader->graph.nodes[callee].root -= cost; /* made up for by its total, below */
            status = lac_call_graph_edge(&reader->graph, reader->node, callee, cost);
        }
    } else if (status == LAC_OK) {
        reader->graph.nodes[reader->node].total += cost;
        reader->all += cost;
    }
    return status;
}

static enum lac_status read_place(struct reader *reader, const char *key, const char *text,
                                  size_t length)
{
    if (strcmp(key, "ob") == 0) {
        reader->node = LAC_NONE;
        return read_name(reader, &reader->objects, text, length, &reader->here.object);
    }
    if (strcmp(key, "fl") == 0) {
        reader->node = LAC_NONE;
        const enum lac_status status =
            read_name(reader, &reader->files, text, length, &reader->here.file);
        reader->inlined_file = reader->here.file;
        reader->called = reader->here;
        return status;
    }
    if (strcmp(key, "fn") == 0) {
        reader->node = LAC_NONE;
        reader->inlined_file = reader->here.file;
        reader->called = reader->here;
        return read_name(reader, &reader->functions, text, length, &reader->here.function);
    }
    if (strcmp(key, "fi") == 0 || strcmp(key, "fe") == 0) { /* inlined: the function's own */
        const enum lac_status status =
            read_name(reader, &reader->files, text, length, &reader->inlined_file);
        reader->called.file = reader->inlined_file;
        return status;
    }
    if (strcmp(key, "cob") == 0) {
        return read_name(reader, &reader->objects, text, length, &reader->called.object);
    }
    if (strcmp(key, "cfi") == 0 || strcmp(key, "cfl") == 0) {
        return read_name(reader, &reader->files, text, length, &reader->called.file);
    }
    if (strcmp(key, "cfn") == 0) {
        return read_name(reader, &reader->functions, text, length, &reader->called.function);
    }
    reader->is_call = strcmp(key, "calls") == 0;
    return LAC_OK;
}

/* "events: Ir Dr": the first; "positions: instr line": how many. */
static void read_heading(struct reader *reader, const char *line, size_t length)
{
    static const char EVENTS[] = "events:";
    static const char POSITIONS[] = "positions:";
    if (length > sizeof(EVENTS) && memcmp(line, EVENTS, sizeof(EVENTS) - 1) == 0) {
        size_t at = sizeof(EVENTS) - 1;
        const size_t word = word_at(line, length, &at);
        if (reader->event[0] == '\0') {
            (void)snprintf(reader->event, sizeof(reader->event), "%.*s",
                           (int)(word < EVENT_BYTES ? word : EVENT_BYTES - 1), line + at);
        }
    } else if (length > sizeof(POSITIONS) && memcmp(line, POSITIONS, sizeof(POSITIONS) - 1) == 0) {
        size_t at = sizeof(POSITIONS) - 1;
        reader->position_count = 0;
        for (size_t word = word_at(line, length, &at); word > 0 && reader->position_count < 8;
             word = word_at(line, length, &at)) {
            reader->position_count++;
            at += word;
        }
    }
}

static enum lac_status read_line(struct reader *reader, const char *line, size_t length)
{
    char key[8];
    size_t at = 0;
    if (length == 0 || line[0] == '#') {
        return LAC_OK;
    }
    if ((line[0] >= '0' && line[0] <= '9') || strchr("+-*", line[0]) != NULL) {
        return read_costs(reader, line, length);
    }
    while (at < length && at < sizeof(key) - 1 && line[at] >= 'a' && line[at] <= 'z') {
        key[at] = line[at];
        at++;
    }
    key[at] = '\0';
    if (at < length && line[at] == '=') {
        return read_place(reader, key, line + at + 1, length - at - 1);
    }
    read_heading(reader, line, length);
    return LAC_OK;
}

/* -- the whole --------------------------------------------------------------------------------- */

/* What the first event counts; NULL: ns. `ret_scale` makes weights of costs. */
static const char *unit_of(const char *event, double *ret_scale)
{
    static const struct {
        const char *event, *unit;
        double scale;
    } units[] = {{"Ir", "instructions", 1.0}, {"ns", NULL, 1.0},
                 {"us", NULL, 1e3},           {"ms", NULL, 1e6},
                 {"Time_(10ns)", NULL, 10.0}, {"Time_(100ns)", NULL, 100.0},
                 {"Time", NULL, 1e3},         {"", "costs", 1.0}};
    for (size_t i = 0; i < LAC_COUNT_OF(units); i++) {
        if (strcmp(event, units[i].event) == 0) {
            *ret_scale = units[i].scale;
            return units[i].unit;
        }
    }
    *ret_scale = 1.0;
    return event;
}

static enum lac_status read_all(struct reader *reader)
{
    enum lac_status status = LAC_OK;
    reader->node = LAC_NONE;
    reader->position_count = 1;
    while (status == LAC_OK) {
        const char *line = NULL;
        size_t length = 0;
        status = lac_lines_next(&reader->profile.lines, &line, &length, reader->profile.reterr);
        if (status != LAC_OK || line == NULL) {
            return status;
        }
        status = read_line(reader, line, length);
    }
    return lac_profile_failed(&reader->profile, status);
}

static enum lac_status build(struct reader *reader, const char **ret_unit)
{
    double scale = 1.0;
    *ret_unit = unit_of(reader->event, &scale);
    for (uint32_t i = 0; i < reader->graph.node_count; i++) {
        struct lac_call_node *node = &reader->graph.nodes[i];
        /* what is left after rounding is no call of its own */
        node->root += node->total;
        node->root = node->root > node->total * 1e-9 ? node->root : 0.0;
    }
    lac_model_report(reader->profile.model, LAC_REPORT_INFO, "stacks_from_callers", 1, 0,
                     "callgrind keeps callers, no stacks: a function's cost is divided among them");
    return lac_profile_failed(
        &reader->profile,
        lac_call_graph_weigh(&reader->graph, &reader->profile, reader->all, scale));
}

enum lac_status lac_callgrind_import(struct lac_source *source,
                                     const struct lac_import_options *options, size_t window_bytes,
                                     const char *name, struct lac_model **ret_model,
                                     struct lac_error *reterr)
{
    struct reader reader = {.position_count = 1};
    const char *unit = NULL;
    enum lac_status status = lac_profile_open(&reader.profile, source, options, window_bytes, name,
                                              LAC_FORMAT_CALLGRIND, reterr);
    status = status == LAC_OK ? read_all(&reader) : status;
    status = status == LAC_OK ? build(&reader, &unit) : status;
    status = lac_profile_close(&reader.profile, status, "profile of callgrind", unit, 0, ret_model);
    lac_call_graph_done(&reader.graph);
    free(reader.objects.ids);
    free(reader.files.ids);
    free(reader.functions.ids);
    free(reader.node_of);
    return status;
}
