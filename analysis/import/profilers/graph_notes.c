/*
 * Annotations of CUDA graphs: what the kernels of captured graphs belong to. PyTorch's mark_kernels()
 * writes them beside a trace, as JSON or as a pickle: a dictionary from the id of a node (what
 * cudaGraphNodeGetToolsId gives: the graph above the lowest 32 bits, the node below) to a list of
 * dictionaries with any members, or to one, or to a name.
 *
 * Alone they are a flame graph of how many nodes each module has; join/join_graph_notes.c gives them
 * to the kernels of a trace. Each node is a range: its name is the module, its arguments are the id
 * (GRAPH_NOTES_ID first, as a number of the slice) and the other members.
 *
 * Source: torch/cuda/_graph_annotations.py and _annotate_cuda_graph_trace.py of PyTorch 2.12 to 2.15
 */

#include "analysis/import/profilers/graph_notes.h"

#include "analysis/import/profilers/pickled.h"
#include "analysis/import/profilers/profile_document.h"
#include "analysis/import/profilers/profiler_importers.h"
#include "analysis/import/source/import_options.h"
#include "analysis/import/source/source.h"
#include "analysis/import/stacks/profile.h"
#include "analysis/import/stacks/stack_samples.h"
#include "analysis/import/text/json_text.h"
#include "analysis/import/text/plain.h"
#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS_MAX = 64,     /**< of a node: a collective has ten */
    MEMBERS_BYTES = 4096, /**< of their text */
    TEXT_BYTES_MAX = 512, /**< of one text among them */
    LIST_ITEMS_MAX = 128, /**< of a list among them: ranks of a group */
    DEPTH_MAX = 3
};

/** The members of a node, of all its annotations: of equal keys the last one counts. */
struct members {
    const struct lac_plain *keys[MEMBERS_MAX];
    const struct lac_plain *values[MEMBERS_MAX];
    uint32_t count;
};

struct reader {
    struct lac_profile_file *document;
    struct lac_builder *builder;
    struct members members;
    char text[MEMBERS_BYTES];
    size_t used;
    uint32_t process;
    uint32_t graph; /**< the one of `track` */
    uint32_t track; /**< LAC_NONE: none yet */
    int64_t at_ns;
};

/* -- recognition ------------------------------------------------------------------------------- */

static size_t skip_space(const uint8_t *head, size_t size_bytes, size_t at)
{
    while (at < size_bytes && (head[at] == ' ' || (head[at] >= '\t' && head[at] <= '\r'))) {
        at++;
    }
    return at;
}

/* { "4294967298": [ */
bool lac_graph_notes_is_json(const uint8_t *head, size_t size_bytes)
{
    size_t at = skip_space(head, size_bytes, 0);
    if (at >= size_bytes || head[at] != '{') {
        return false;
    }
    at = skip_space(head, size_bytes, at + 1);
    if (at >= size_bytes || head[at] != '"') {
        return false;
    }
    const size_t first = ++at;
    while (at < size_bytes && head[at] >= '0' && head[at] <= '9') {
        at++;
    }
    if (at == first || at >= size_bytes || head[at] != '"') {
        return false;
    }
    at = skip_space(head, size_bytes, at + 1);
    if (at >= size_bytes || head[at] != ':') {
        return false;
    }
    at = skip_space(head, size_bytes, at + 1);
    return at < size_bytes && (head[at] == '[' || head[at] == '{' || head[at] == '"');
}

static bool id_of(const struct lac_plain *key, int64_t *ret_id)
{
    if (lac_plain_is(key, LAC_PLAIN_TEXT)) {
        return lac_decimal_integer((const uint8_t *)key->text, key->count, ret_id) && *ret_id >= 0;
    }
    return lac_plain_is(key, LAC_PLAIN_INT) && lac_plain_integer(key, ret_id) && *ret_id >= 0;
}

static bool is_note(const struct lac_plain *value)
{
    return lac_plain_is(value, LAC_PLAIN_DICT) || lac_plain_is(value, LAC_PLAIN_TEXT);
}

bool lac_graph_notes_is_pickled(const struct lac_plain *root)
{
    int64_t id = 0;
    return lac_plain_is(root, LAC_PLAIN_DICT) && root->count >= 2 && id_of(root->items[0], &id) &&
           (is_note(root->items[1]) || is_note(lac_plain_at(root->items[1], 0)));
}

/* -- members as JSON --------------------------------------------------------------------------- */

/** Something found no room: the whole member is taken back. */
static bool is_full(const struct reader *reader)
{
    return reader->used == sizeof(reader->text);
}

static void put_raw(struct reader *reader, const char *text, size_t size)
{
    if (is_full(reader)) {
        return;
    }
    if (size < sizeof(reader->text) - reader->used) {
        memcpy(reader->text + reader->used, text, size);
        reader->used += size;
    } else {
        reader->used = sizeof(reader->text);
    }
}

static void put_text(struct reader *reader, const struct lac_plain *value)
{
    uint8_t out[6 * TEXT_BYTES_MAX + 8];
    const size_t size = value->count < TEXT_BYTES_MAX ? value->count : TEXT_BYTES_MAX;
    put_raw(reader, "\"", 1);
    for (size_t i = 0; i < size && !is_full(reader);) {
        const uint8_t c = (uint8_t)value->text[i];
        if (c == '"' || c == '\\' || c < 0x20) {
            char escaped[8];
            const int length = c < 0x20 ? snprintf(escaped, sizeof(escaped), "\\u%04x", c)
                                        : snprintf(escaped, sizeof(escaped), "\\%c", c);
            put_raw(reader, escaped, (size_t)length);
            i++;
            continue;
        }
        size_t run = i;
        struct lac_json_repairs repairs = {0};
        while (run < size && value->text[run] != '"' && value->text[run] != '\\' &&
               (uint8_t)value->text[run] >= 0x20) {
            run++;
        }
        /* no escape inside: only the UTF-8 is repaired */
        put_raw(reader, (const char *)out,
                lac_json_string_decode((const uint8_t *)value->text + i, run - i, out, &repairs));
        i = run;
    }
    put_raw(reader, "\"", 1);
}

static void put_value(struct reader *reader, const struct lac_plain *value, unsigned depth);

static void put_list(struct reader *reader, const struct lac_plain *value, unsigned depth)
{
    put_raw(reader, "[", 1);
    for (uint32_t i = 0; i < value->count && i < LIST_ITEMS_MAX && !is_full(reader); i++) {
        put_raw(reader, ",", i > 0);
        put_value(reader, value->items[i], depth + 1);
    }
    put_raw(reader, "]", 1);
}

static void put_value(struct reader *reader, const struct lac_plain *value, unsigned depth)
{
    char number[32];
    int length = 0;
    switch (value->kind) {
    case LAC_PLAIN_BOOL:
        put_raw(reader, value->integer != 0 ? "true" : "false", value->integer != 0 ? 4 : 5);
        return;
    case LAC_PLAIN_INT:
        length = snprintf(number, sizeof(number), "%" PRId64, value->integer);
        put_raw(reader, number, (size_t)length);
        return;
    case LAC_PLAIN_REAL: {
        double real = 0;
        if (lac_plain_number(value, &real)) {
            length = snprintf(number, sizeof(number), "%.17g", real);
            put_raw(reader, number, (size_t)length);
            return;
        }
        break;
    }
    case LAC_PLAIN_TEXT:
        put_text(reader, value);
        return;
    case LAC_PLAIN_LIST:
        if (depth < DEPTH_MAX) {
            put_list(reader, value, depth);
            return;
        }
        break;
    case LAC_PLAIN_NONE:
    case LAC_PLAIN_DICT:
    case LAC_PLAIN_OBJECT:
        break;
    }
    put_raw(reader, "null", 4);
}

/* A member that does not fit is left out, counted. */
static void put_member(struct reader *reader, const char *separator, const struct lac_plain *key,
                       const struct lac_plain *value)
{
    const size_t before = reader->used;
    put_raw(reader, separator, strlen(separator));
    put_text(reader, key);
    put_raw(reader, ":", 1);
    put_value(reader, value, 0);
    if (reader->used + 1 >= sizeof(reader->text)) { /* the bracket at the end needs one */
        reader->used = before;
        lac_document_drop(reader->document, "member_too_long",
                          "members of an annotation beyond 4096 bytes a node");
    }
}

/* -- a node ------------------------------------------------------------------------------------ */

static void take_members(struct reader *reader, const struct lac_plain *note)
{
    struct members *const members = &reader->members;
    for (uint32_t i = 0; i + 1 < note->count; i += 2) {
        const struct lac_plain *const key = note->items[i];
        uint32_t at = 0;
        if (!lac_plain_is(key, LAC_PLAIN_TEXT) || key->count == 0 || key->count > TEXT_BYTES_MAX) {
            continue;
        }
        while (at < members->count &&
               (members->keys[at]->count != key->count ||
                memcmp(members->keys[at]->text, key->text, key->count) != 0)) {
            at++;
        }
        if (at == MEMBERS_MAX) {
            lac_document_drop(reader->document, "too_many_members",
                              "members of an annotation beyond 64 a node");
            continue;
        }
        members->keys[at] = key;
        members->values[at] = note->items[i + 1];
        members->count += at == members->count;
    }
}

static bool key_is(const struct lac_plain *key, const char *text)
{
    return lac_plain_equals(key, text);
}

/* The words before the last dot that all parameters of a layer share: {"p1": "encoder.linear.weight",
 * "p2": "encoder.linear.bias"} is encoder.linear. */
static size_t common_words(const struct lac_plain *map)
{
    const struct lac_plain *const first = map->items[1];
    size_t common = lac_plain_is(first, LAC_PLAIN_TEXT) ? first->count : 0;
    for (uint32_t i = 3; i < map->count && common > 0; i += 2) {
        const struct lac_plain *const other = map->items[i];
        size_t same = 0;
        while (lac_plain_is(other, LAC_PLAIN_TEXT) && same < common && same < other->count &&
               first->text[same] == other->text[same]) {
            same++;
        }
        common = same;
    }
    while (common > 0 && first->text[common - 1] != '.') {
        common--;
    }
    return common > 0 ? common - 1 : 0;
}

/* What the node belongs to, and the member that says so. */
static bool module_of(const struct reader *reader, const char **ret_text, size_t *ret_size,
                      uint32_t *ret_member)
{
    static const char *const KEYS[] = {"module_fqn", "module", "fqn", "name", "str"};
    const struct members *const members = &reader->members;
    for (size_t k = 0; k < LAC_COUNT_OF(KEYS); k++) {
        for (uint32_t i = 0; i < members->count; i++) {
            const struct lac_plain *const value = members->values[i];
            if (key_is(members->keys[i], KEYS[k]) && lac_plain_is(value, LAC_PLAIN_TEXT) &&
                value->count > 0) {
                *ret_text = value->text;
                *ret_size = value->count;
                *ret_member = i;
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < members->count; i++) {
        const struct lac_plain *const map = members->values[i];
        if (key_is(members->keys[i], "fqn_map") && lac_plain_is(map, LAC_PLAIN_DICT) &&
            map->count >= 2) {
            *ret_size = common_words(map);
            *ret_text = *ret_size > 0 ? map->items[1]->text : "";
            *ret_member = i;
            return *ret_size > 0;
        }
    }
    return false;
}

/* {"graph node id":\x01,"Group size":4} */
static enum lac_status put_arguments(struct reader *reader, uint32_t but, int64_t id,
                                     struct lac_slice_in *slice)
{
    static const char first[] = "{\"" LAC_GRAPH_NOTES_ID "\":";
    static const char placeholder[] = {LAC_ARG_INTEGER};
    struct lac_model *const model = reader->document->profile.model;
    reader->used = 0;
    put_raw(reader, first, sizeof(first) - 1);
    put_raw(reader, placeholder, 1);
    for (uint32_t i = 0; i < reader->members.count; i++) {
        if (i != but && !key_is(reader->members.keys[i], LAC_GRAPH_NOTES_ID)) {
            put_member(reader, ",", reader->members.keys[i], reader->members.values[i]);
        }
    }
    put_raw(reader, "}", 1);
    enum lac_status status =
        lac_strings_intern(&model->strings, reader->text, reader->used, &slice->args);
    return status == LAC_OK ? lac_builder_arg_numbers(reader->builder, &id, 1, &slice->arg_num)
                            : status;
}

/* The row of a graph: nodes of one follow each other. */
static enum lac_status row_of(struct reader *reader, uint32_t graph)
{
    char text[48];
    uint32_t name = 0;
    if (reader->track != LAC_NONE && reader->graph == graph) {
        return LAC_OK;
    }
    const int length = graph == 0 ? snprintf(text, sizeof(text), "CUDA graphs")
                                  : snprintf(text, sizeof(text), "CUDA graph %" PRIu32, graph);
    enum lac_status status =
        lac_stacks_name(reader->document->profile.stacks, text, (size_t)length, &name);
    if (status == LAC_OK) {
        status = lac_builder_track(reader->builder, LAC_TRACK_THREAD, reader->process, name, graph,
                                   &reader->track);
    }
    if (status == LAC_OK) {
        lac_builder_track_at(reader->builder, reader->track)->name = name;
        reader->graph = graph;
    }
    return status;
}

static enum lac_status take_node(struct reader *reader, int64_t id, const struct lac_plain *value)
{
    struct lac_slice_in slice = {
        .dur_ns = 1, .start_ns = reader->at_ns, .detail = LAC_NONE, .kind = LAC_SLICE_RANGE};
    const struct lac_plain *const *notes = &value;
    const char *module = NULL;
    size_t module_size = 0;
    uint32_t member = LAC_NONE;
    const bool is_list = lac_plain_is(value, LAC_PLAIN_LIST);
    const uint32_t count = is_list ? value->count : 1;
    reader->members.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lac_plain *const note = is_list ? value->items[i] : notes[0];
        if (lac_plain_is(note, LAC_PLAIN_TEXT) && note->count > 0) { /* of the first versions */
            module = note->text;
            module_size = note->count;
        } else if (lac_plain_is(note, LAC_PLAIN_DICT)) {
            if (!lac_document_visit(reader->document, note->count)) {
                return LAC_ERR_LIMIT;
            }
            take_members(reader, note);
        }
    }
    if (!module_of(reader, &module, &module_size, &member) && module == NULL &&
        reader->members.count == 0) {
        lac_document_drop(reader->document, "node_without_annotation",
                          "nodes without a name and without members");
        return LAC_OK;
    }
    enum lac_status status = lac_stacks_name(
        reader->document->profile.stacks, module != NULL ? module : "", module_size, &slice.name);
    status = status == LAC_OK ? row_of(reader, (uint32_t)((uint64_t)id >> 32)) : status;
    status = status == LAC_OK ? put_arguments(reader, member, id, &slice) : status;
    slice.track = reader->track;
    reader->at_ns++;
    reader->document->profile.model->info.slice_count++;
    return status == LAC_OK ? lac_builder_slice(reader->builder, &slice) : status;
}

/* -- the whole --------------------------------------------------------------------------------- */

static enum lac_status read_all(struct reader *reader)
{
    struct lac_profile_file *const document = reader->document;
    struct lac_trace_info *const info = &document->profile.model->info;
    const struct lac_plain *const root = document->root;
    enum lac_status status =
        lac_profile_process(&document->profile, "CUDA graphs", &reader->process);
    info->has_no_time = true;
    info->weight_scale = 1;
    if (status == LAC_OK) {
        status = lac_stacks_name(document->profile.stacks, "nodes", 5, &info->weight_unit);
    }
    for (uint32_t i = 0; i + 1 < root->count && status == LAC_OK; i += 2) {
        const struct lac_plain *const value = root->items[i + 1];
        const bool is_list = lac_plain_is(value, LAC_PLAIN_LIST);
        int64_t id = 0;
        info->event_count++;
        if (!id_of(root->items[i], &id) || (!is_note(value) && !is_list)) {
            lac_document_drop(document, "node_not_understood",
                              "entries whose key is no number of a node, or without annotations");
        } else if (!lac_document_visit(document, 1 + (is_list ? (uint64_t)value->count : 0))) {
            status = LAC_ERR_LIMIT;
        } else {
            status = take_node(reader, id, value);
        }
    }
    if (status == LAC_OK && info->slice_count == 0) {
        return lac_fail(document->reterr, LAC_ERR_CORRUPT, 0,
                        "no annotated node in these annotations of CUDA graphs: capture with "
                        "torch.cuda.graph(g, enable_annotations=True) and mark_kernels()");
    }
    return lac_profile_failed(&document->profile, status);
}

enum lac_status lac_graph_notes_read_pickled(struct lac_profile_file *document,
                                             struct lac_model **ret_model)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return lac_fail(document->reterr, LAC_ERR_NOMEM, 0, "no memory for the annotations");
    }
    reader->document = document;
    reader->track = LAC_NONE;
    enum lac_status status = lac_document_begin(document, LAC_FORMAT_GRAPH_NOTES);
    reader->builder = document->profile.builder;
    status =
        lac_document_end_timed(document, status == LAC_OK ? read_all(reader) : status, ret_model);
    free(reader);
    return status;
}

enum lac_status lac_graph_notes_import(struct lac_source *source,
                                       const struct lac_import_options *options,
                                       size_t window_bytes, const char *name,
                                       struct lac_model **ret_model, struct lac_error *reterr)
{
    struct lac_profile_file document;
    enum lac_status status = lac_document_open(&document, source, options, window_bytes, name,
                                               LAC_DOCUMENT_JSON, reterr);
    if (status == LAC_OK) {
        status = lac_graph_notes_read_pickled(&document, ret_model);
    }
    lac_document_close(&document);
    return status;
}
